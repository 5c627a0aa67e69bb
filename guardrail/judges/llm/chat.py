"""Asking a chat-completions API, within one absolute deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import openai
from openai.types.chat import ChatCompletion

from guardrail.errors import JudgeReplyError, JudgeUnavailable
from guardrail.judges.llm.dialect import Dialect
from guardrail.judges.llm.failures import Backoff, Failure, describe
from guardrail.judges.llm.settings import LlmJudgeSettings

Read = TypeVar("Read")


class ReplyRefused(JudgeReplyError):
    """The model or the provider's filter declined. Asking again gives the same."""


@dataclass(slots=True)
class Spent:
    """What the calls for one request cost, failed ones included as far as the server told."""

    calls: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0

    def add(self, completion: ChatCompletion) -> None:
        usage = completion.usage
        if usage is None:
            return
        details = usage.prompt_tokens_details
        self.input_tokens += _count(usage.prompt_tokens)
        self.output_tokens += _count(usage.completion_tokens)
        self.cached_input_tokens += _count(getattr(details, "cached_tokens", 0))


def _count(value: object) -> int:
    """A number of tokens as the server says, which the client doesn't check."""
    return value if isinstance(value, int) and value > 0 else 0


@dataclass(frozen=True)
class Question(Generic[Read]):
    """What to ask, and what makes an answer of the reply's text (or raises JudgeReplyError)."""

    messages: Sequence[dict[str, str]]
    schema: dict[str, Any]
    read: Callable[[str], Read]
    spent: Spent


class Chat:
    """One model on one server: calls in flight bounded, failed ones repeated while there is time."""

    def __init__(self, client: openai.AsyncOpenAI, settings: LlmJudgeSettings) -> None:
        """``client`` must not retry by itself."""
        self._client = client
        self._settings = settings
        self._backoff = Backoff(settings)
        self._dialect = Dialect(settings)
        self._headers = {name: value.get_secret_value() for name, value in settings.extra_headers.items()}
        self._slots = asyncio.Semaphore(settings.max_concurrency)

    async def ask(self, question: Question[Read], deadline: float) -> Read:
        """The answer to ``question``; a reply that can't be used is asked for again.

        ``deadline`` is in the event loop's time. Raises JudgeUnavailable, JudgeReplyError or, when the server
        refuses for good, JudgeError.
        """
        try:
            async with asyncio.timeout_at(deadline) as scope:
                return await self._repeat(question, deadline)
        except TimeoutError:
            if not scope.expired():
                raise
            raise JudgeUnavailable(
                f"no verdict within the deadline, {_calls(question.spent.calls)} made"
            ) from None

    async def _repeat(self, question: Question[Read], deadline: float) -> Read:
        retries = 0
        while True:
            failure = await self._once(question)
            if not isinstance(failure, Failure):
                return failure
            if not failure.retry or retries >= self._settings.max_retries:
                raise failure.error from None
            wait = self._backoff.seconds(retries, failure.retry_after)
            if asyncio.get_running_loop().time() + wait >= deadline:
                # Nothing can come of waiting: say so now, while the caller still has time for something else.
                raise JudgeUnavailable(f"{failure.error}; no time is left to try again") from None
            await asyncio.sleep(wait)
            retries += 1

    async def _once(self, question: Question[Read]) -> Read | Failure:
        """One call, and more only where the server refuses an argument that can be left out."""
        while True:
            arguments = self._dialect.arguments(question.schema)
            try:
                completion = await self._call(question, arguments)
                return question.read(_text(completion))
            except openai.APIStatusError as error:
                if not self._dialect.adapt(error, arguments):
                    return describe(error)
            except openai.APIError as error:
                return describe(error)
            except JudgeReplyError as error:
                return Failure(error, retry=not isinstance(error, ReplyRefused))
            except JudgeUnavailable as error:
                return Failure(error, retry=True)

    async def _call(self, question: Question[Any], arguments: dict[str, Any]) -> ChatCompletion:
        limit = self._settings.attempt_timeout_ms
        async with self._slots:
            question.spent.calls += 1
            create: Any = self._client.chat.completions.create
            try:
                async with asyncio.timeout(limit / 1000 if limit else None) as scope:
                    completion = await create(
                        model=self._settings.model,
                        messages=list(question.messages),
                        extra_headers=self._headers,
                        extra_body=self._settings.extra_body or None,
                        **arguments,
                    )
            except TimeoutError:
                if not scope.expired():
                    raise
                raise JudgeUnavailable(f"a call took longer than {limit} ms") from None
            except ValueError:
                # A body that claims to be JSON and isn't: the client passes its decoder's error on.
                raise JudgeReplyError("the server's answer is not JSON") from None
        if not isinstance(completion, ChatCompletion):
            raise JudgeReplyError("the server's answer is no chat completion; check judge.llm.base_url")
        question.spent.add(completion)
        return completion


def _text(completion: ChatCompletion) -> str:
    """The text of the only choice. The client checks nothing of what a server sends, so each step is."""
    choices: Any = completion.choices
    choice = choices[0] if isinstance(choices, list) and choices else None
    message: Any = getattr(choice, "message", None)
    if choice is None or message is None:
        raise JudgeReplyError("the reply has no choices")
    if getattr(message, "refusal", None):
        raise ReplyRefused("the model refused to judge")
    if choice.finish_reason == "content_filter":
        raise ReplyRefused("the provider's content filter withheld the reply")
    content = getattr(message, "content", None)
    if not isinstance(content, str) or not content.strip():
        cause = "; raise judge.llm.max_output_tokens" if choice.finish_reason == "length" else ""
        raise JudgeReplyError(f"the reply is empty{cause}")
    return content


def _calls(number: int) -> str:
    return "1 call" if number == 1 else f"{number} calls"
