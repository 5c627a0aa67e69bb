"""The LLM judge: all claims of a request in one call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import openai

from guardrail.errors import JudgeError, JudgeUnavailable
from guardrail.events import Usage, Verdict
from guardrail.judges.base import Judgement, JudgeReply, JudgeRequest, tell_usage, unverified
from guardrail.judges.llm.answer import Answer
from guardrail.judges.llm.chat import Chat
from guardrail.judges.llm.endpoint import Prices, Question, Spent
from guardrail.judges.llm.hearing import Hearing, Speaker
from guardrail.judges.llm.prompt import Prompt, Prompts, fences
from guardrail.judges.llm.reply import ReplyReader
from guardrail.judges.llm.settings import LlmJudgeSettings
from guardrail.judges.llm.verdicts import uncovered
from guardrail.judges.spending import BudgetExhausted

_NO_CONTEXTS = "There are no contexts to support it."
# The share of the time that asking again leaves over: what is known must arrive as well.
_RESERVE = 0.05


class LlmJudge:
    """Asks a model behind an OpenAI-compatible API. Verdicts it doesn't give are left out of the reply."""

    def __init__(
        self,
        settings: LlmJudgeSettings,
        client: openai.AsyncOpenAI | None = None,
        prices: Prices | None = None,
    ) -> None:
        """A ``client`` that is given stays the caller's to close. ``prices`` make ``usage.cost_usd``.

        Raises ConfigError when there is no key, or a prompt of the user's own can't be read. Whichever
        client it is, its own retries are off: they know nothing of deadlines.
        """
        self._settings = settings
        self._prompts = Prompts(settings)
        self._chat = Chat(settings, client, prices)
        self._fence = fences()
        self._schema = self._prompts.form.schema()

    @property
    def name(self) -> str:
        return f"llm:{self._settings.model}"

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        """One call for all claims, repeated while the deadline allows. Without contexts nothing is asked.

        Verdicts are announced as their objects close (``request.on_judgement``). Claims that a reply lacks
        are asked for once more. Raises JudgeError, with ``usage``, when there is no verdict at all.
        """
        if not request.claims:
            return JudgeReply(())
        if not any(context.text.strip() for context in request.evidence.contexts):
            return JudgeReply(tuple(self._nothing_supports(claim_id) for claim_id in request.claims))
        left = min(request.deadline - time.monotonic(), self._settings.timeout_ms / 1000)
        deadline = asyncio.get_running_loop().time() + left
        try:
            prompt = await asyncio.to_thread(self._prompts.build, request, self._fence(request.response_id))
        except asyncio.CancelledError as error:
            tell_usage(error, Usage())
            raise
        if not prompt.claim_ids:
            return JudgeReply(tuple(uncovered(prompt, self.name)))
        hearing = Hearing(request, prompt, self._settings)
        case = _Case(self._chat, self._prompts, self._schema, request, prompt, hearing)
        try:
            return await case.decide(deadline, again=self._settings.ask_again)
        except (JudgeError, asyncio.CancelledError) as error:
            tell_usage(error, case.usage())
            raise

    async def aclose(self) -> None:
        await self._chat.aclose()

    def _nothing_supports(self, claim_id: str) -> Judgement:
        return Judgement(
            claim_id, Verdict.UNSUPPORTED, 1.0, 0.0, self.name, reasoning=_NO_CONTEXTS, attempts=0
        )


class _Case:
    """One request on its way through one or two questions."""

    def __init__(
        self,
        chat: Chat,
        prompts: Prompts,
        schema: dict[str, object],
        request: JudgeRequest,
        prompt: Prompt,
        hearing: Hearing,
    ) -> None:
        self._chat = chat
        self._prompts = prompts
        self._schema = schema
        self._request = request
        self._prompt = prompt
        self._hearing = hearing
        self._spent: list[Spent] = []

    async def decide(self, deadline: float, *, again: bool) -> JudgeReply:
        """The verdicts; ``deadline`` is in the event loop's time. Raises JudgeError when there are none."""
        failed: list[Judgement] = []
        try:
            await self._ask(self._prompt, deadline)
        except JudgeError as error:
            if len(self._hearing.missing()) == len(self._prompt.claim_ids):
                raise
            # A reply that broke off: what it said in time stands.
            failed = self._failed(f"{type(error).__name__}: {error}")
        else:
            if again and self._hearing.missing():
                failed = await self._ask_again(deadline)
        judgements, usage = self._hearing.judgements(self.usage())
        not_asked = uncovered(self._prompt, self._chat.endpoints[0].name)
        return JudgeReply((*judgements, *failed, *not_asked), usage)

    async def _ask_again(self, deadline: float) -> list[Judgement]:
        """Put the claims that have no verdict once more; those that then have none still."""
        now = asyncio.get_running_loop().time()
        # This may take long: what is known by now is told first.
        self._hearing.settle()
        only = frozenset(self._hearing.missing())
        prompt = await asyncio.to_thread(self._prompts.build, self._request, self._prompt.fence, only)
        try:
            await self._ask(prompt, deadline - (deadline - now) * _RESERVE)
        except JudgeError as error:
            asked = "not asked" if isinstance(error, BudgetExhausted) else "asked"
            return self._failed(f"left out of the first reply, and {asked} again: {error}")
        return []

    async def _ask(self, prompt: Prompt, deadline: float) -> None:
        asked = frozenset(prompt.claim_ids)
        spent = Spent(changed=self._tell_usage)
        self._spent.append(spent)

        def heard(answers: Sequence[Answer]) -> None:
            self._hearing.hear(_to(answers, asked), self._speaker(spent))

        if asyncio.get_running_loop().time() >= deadline:
            raise JudgeUnavailable("the deadline has passed before the first call")
        answers = await self._chat.ask(
            Question(
                prompt.messages,
                self._schema,
                lambda: ReplyReader(self._prompts.form, asked),
                heard,
                spent,
                self._request.response_id,
                self._request.admit,
            ),
            deadline,
        )
        self._hearing.take(_to(answers, asked), self._speaker(spent))

    def _speaker(self, spent: Spent) -> Speaker:
        """Who is answering: models are asked in order, and each that failed has left a note."""
        failed = tuple(spent.models)
        endpoints = self._chat.endpoints
        name = spent.answered_by or endpoints[min(len(failed), len(endpoints) - 1)].name
        return Speaker(name, sum(each.calls for each in self._spent), failed)

    def _failed(self, reason: str) -> list[Judgement]:
        spent = self._spent[-1]
        speaker = self._speaker(spent)
        return [
            unverified(
                claim_id,
                self._chat.endpoints[0].name,
                reason,
                attempts=speaker.attempts,
                degraded_from=speaker.degraded_from,
            )
            for claim_id in self._hearing.missing()
        ]

    def _tell_usage(self) -> None:
        if self._request.on_usage is not None:
            self._request.on_usage(self.usage())

    def usage(self) -> Usage:
        """What all calls so far took, as far as the servers have told."""
        return Usage(
            judge_calls=sum(spent.calls for spent in self._spent),
            input_tokens=sum(spent.input_tokens for spent in self._spent),
            cached_input_tokens=sum(spent.cached_input_tokens for spent in self._spent),
            output_tokens=sum(spent.output_tokens for spent in self._spent),
            cost_usd=sum(spent.cost_usd for spent in self._spent),
        )


def _to(answers: Sequence[Answer], asked: frozenset[str]) -> list[Answer]:
    """Those to what was asked in this call."""
    return [answer for answer in answers if answer.label in asked]
