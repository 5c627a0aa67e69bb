"""The LLM judge: all claims of a request in one call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import openai

from guardrail.errors import JudgeReplyError, JudgeUnavailable
from guardrail.events import Usage, Verdict
from guardrail.judges.base import Judgement, JudgeReply, JudgeRequest
from guardrail.judges.llm.chat import Chat, Question, Spent
from guardrail.judges.llm.fence import fences
from guardrail.judges.llm.prompt import Prompt, build_prompt
from guardrail.judges.llm.reply import Answer, read_reply, reply_schema
from guardrail.judges.llm.settings import LlmJudgeSettings
from guardrail.judges.llm.verdicts import settle

_NO_CONTEXTS = "There are no contexts to support it."


class LlmJudge:
    """Asks a model behind an OpenAI-compatible API. Verdicts it doesn't give are left out of the reply."""

    def __init__(self, settings: LlmJudgeSettings, client: openai.AsyncOpenAI | None = None) -> None:
        """A ``client`` that is given stays the caller's to close. Raises ConfigError when there is no key.

        Whichever client it is, its own retries are off: they know nothing of deadlines.
        """
        self._settings = settings
        self._chat = Chat(settings, client)
        self._fence = fences()
        self._schema = reply_schema(settings.reasoning)

    @property
    def name(self) -> str:
        return f"llm:{self._settings.model}"

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        """One call for all claims, repeated while the deadline allows. Without contexts nothing is asked."""
        if not request.claims:
            return JudgeReply(())
        if not any(context.text.strip() for context in request.evidence.contexts):
            return JudgeReply(tuple(self._nothing_supports(claim_id) for claim_id in request.claims))
        left = min(request.deadline - time.monotonic(), self._settings.timeout_ms / 1000)
        deadline = asyncio.get_running_loop().time() + left
        prompt = await asyncio.to_thread(
            build_prompt, request, self._fence(request.response_id), self._settings
        )
        spent = Spent()
        answers: Sequence[Answer] = ()
        if prompt.claim_ids:
            answers = await self._ask(prompt, deadline, spent)
        judgements, dropped = await asyncio.to_thread(
            settle, answers, prompt, request.evidence, self._settings, self.name
        )
        usage = Usage(
            judge_calls=spent.calls,
            input_tokens=spent.input_tokens,
            cached_input_tokens=spent.cached_input_tokens,
            output_tokens=spent.output_tokens,
            dropped_quotes=dropped,
        )
        return JudgeReply(tuple(judgements), usage)

    async def aclose(self) -> None:
        await self._chat.aclose()

    async def _ask(self, prompt: Prompt, deadline: float, spent: Spent) -> list[Answer]:
        if asyncio.get_running_loop().time() >= deadline:
            raise JudgeUnavailable("the deadline has passed before the first call")
        question = Question(
            prompt.messages,
            self._schema,
            lambda: _WholeReply(prompt),
            _not_heard,
            spent,
        )
        return await self._chat.ask(question, deadline)

    def _nothing_supports(self, claim_id: str) -> Judgement:
        return Judgement(claim_id, Verdict.UNSUPPORTED, 1.0, 0.0, self.name, reasoning=_NO_CONTEXTS)


def _not_heard(answers: Sequence[Answer]) -> None:
    """Answers are taken when the reply has ended."""
    del answers


class _WholeReply:
    """Reads a reply when it has ended."""

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt
        self._pieces: list[str] = []

    def feed(self, text: str) -> list[Answer]:
        self._pieces.append(text)
        return []

    def finish(self) -> list[Answer]:
        answers = read_reply("".join(self._pieces))
        if not any(answer.label in self._prompt.claim_ids for answer in answers):
            raise JudgeReplyError("the reply has no verdict for any claim that was asked")
        return answers
