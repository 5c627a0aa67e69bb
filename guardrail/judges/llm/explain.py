"""The reason of a result, or of one verdict, in the LLM's words, from claims that were judged before.

It changes no verdict and no score: the model gets what the verdicts say, as data, and gives a text. Those of
single verdicts come after them, for a judge that writes none.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from functools import partial
from string import Template
from typing import Any, Final, NamedTuple

from guardrail.errors import JudgeReplyError
from guardrail.events import ClaimVerdict, Severity, Usage, Verdict
from guardrail.judges.base import Around, Judge, JudgeRequest, Meter
from guardrail.judges.llm.chat import Chat, Question
from guardrail.judges.llm.prompt import Fence, fences
from guardrail.judges.llm.reply import MAX_REASONING_CHARS, Answer, objects
from guardrail.judges.llm.settings import LlmJudgeSettings
from guardrail.judges.spending import BookedCalls, Budget, PriceTable, UsageLedger
from guardrail.judges.streams import closing
from guardrail.printable import shorten
from guardrail.shipped import shipped_text
from guardrail.verdicts import Judgement

_MEMBER: Final = "explanation"
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {_MEMBER: {"type": "string"}},
    "required": [_MEMBER],
    "additionalProperties": False,
}
_MOST_CHARS: Final = 2_000
"""Of any one text in the prompt."""
_MOST_REPLY_CHARS: Final = 100_000
_TIMEOUT_S: Final = 60.0
"""Of one explanation with all its retries."""
_REASON_TIMEOUT_S: Final = 10.0
_PASSAGES: Final = 3
_EXPECTED_TOKENS: Final = (1_200, 60)
"""Of a reason, that budgets count with: the instructions, a claim and its passages; a sentence."""


class _ToExplain(NamedTuple):
    """A claim, and what is known of it."""

    claim_id: str
    text: str
    verdict: Verdict
    severity: Severity
    quotes: Sequence[str]
    reasoning: str


class LlmExplainer:
    """Asks the model of ``judge.llm``, with its retries and fallbacks, for a few sentences."""

    def __init__(self, settings: LlmJudgeSettings, prices: PriceTable | None = None) -> None:
        """Raises ConfigError if there is no key."""
        self._settings = settings
        self._chat = Chat(settings, prices)
        self._instructions = Template(shipped_text("guardrail.judges.llm", "prompts", "explain.md").strip())
        self._fence = fences()

    @property
    def name(self) -> str:
        return f"llm:{self._settings.model}"

    async def explain(
        self, response_id: str, question: str, result: str, claims: Sequence[ClaimVerdict]
    ) -> tuple[str, Usage]:
        """The text, on one line, and what it took. ``result`` must hold no text of the answer.

        Raises JudgeUnavailable, JudgeReplyError or JudgeError if there is none.
        """
        meter = Meter()
        told = [
            _ToExplain(
                each.claim_id,
                each.text,
                each.verdict,
                each.severity,
                [evidence.quote for evidence in each.evidence],
                each.reasoning,
            )
            for each in claims
        ]
        return await self._ask(response_id, question, result, told, meter, _TIMEOUT_S), meter.usage

    async def reason(self, request: JudgeRequest, said: Judgement, meter: Meter) -> str:
        """Why a claim of ``request`` is not wholly supported, as ``said``, on one line. Raises like
        ``explain``.
        """
        claim = request.claims[said.claim_id]
        passages = await asyncio.to_thread(request.evidence.search, claim.prose.text, _PASSAGES)
        quotes = [passage.text for passage in passages]
        told = _ToExplain(
            said.claim_id, claim.prose.text, said.verdict, claim.severity, quotes, said.reasoning
        )
        result = "this claim is not wholly supported; one sentence says why"
        return await self._ask(
            request.response_id, request.question, result, [told], meter, _REASON_TIMEOUT_S
        )

    async def _ask(
        self,
        response_id: str,
        question: str,
        result: str,
        claims: Sequence[_ToExplain],
        meter: Meter,
        timeout_s: float,
    ) -> str:
        fence = self._fence(response_id)
        instructions = self._instructions.substitute(marker=fence.marker)
        data = _data(fence, question, result, claims)
        asked = Question(
            ({"role": "system", "content": instructions}, {"role": "user", "content": data}),
            _SCHEMA,
            _ReplyOnce,
            lambda _: None,
            meter,
            response_id,
            claim_ids=tuple(claim.claim_id for claim in claims),
        )
        (answer,) = await self._chat.ask(asked, asyncio.get_running_loop().time() + timeout_s)
        return fence.scrub(answer.reasoning)

    async def aclose(self) -> None:
        """Close all connections. No question may follow."""
        await self._chat.aclose()


class ExplainingJudge(Around):
    """A Judge around the decisions judge. Its judgements know how to have their reasons put into words, which
    whoever takes them asks for where it wants some.
    """

    def __init__(
        self,
        judge: Judge,
        settings: LlmJudgeSettings,
        budget: Budget,
        ledger: UsageLedger,
        prices: PriceTable,
    ) -> None:
        """Takes over ``judge``, and closes it. Raises ConfigError if there is no key."""
        super().__init__(judge)
        self._explainer = LlmExplainer(settings, prices)
        self._model = settings.model
        self._budget = budget
        self._ledger = ledger
        self._prices = prices

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """Yields the judge's judgements. Raises what the judge raises."""
        async with closing(self._judge.judge(request)) as judgements:
            async for judgement in judgements:
                # Another judge that answered in its place gives reasons of its own.
                decided = judgement.judge.startswith("decisions:")
                yield replace(judgement, explain=partial(self._reason, request)) if decided else judgement

    async def aclose(self) -> None:
        """Close the judge, and all connections of the model."""
        try:
            await super().aclose()
        finally:
            await self._explainer.aclose()

    async def _reason(self, request: JudgeRequest, judgement: Judgement) -> str:
        """A sentence. What it takes counts for the response and in all budgets. Raises JudgeError."""
        read, written = _EXPECTED_TOKENS
        cost = self._prices.cost_usd(self._model, read, 0, written)
        expected = Usage(judge_calls=1, input_tokens=read, output_tokens=written, cost_usd=cost)
        calls = BookedCalls(request, self._budget, expected, self._ledger, self._model)
        try:
            return await self._explainer.reason(request, judgement, calls)
        finally:
            calls.settle()


class _ReplyOnce:
    """Collects the reply, which can only be read when it has ended."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._size = 0

    def feed(self, text: str) -> list[Answer]:
        self._size += len(text)
        if self._size > _MOST_REPLY_CHARS:
            raise JudgeReplyError(f"the reply has more than {_MOST_REPLY_CHARS:,} characters")
        self._pieces.append(text)
        return []

    def finish(self, *, cut: bool = False) -> list[Answer]:  # noqa: ARG002 - read as far as it goes
        found = (each.get(_MEMBER) for each, _ in objects("".join(self._pieces)))
        text = " ".join(next((each for each in found if isinstance(each, str)), "").split())
        if not text:
            raise JudgeReplyError("the reply has no explanation")
        return [Answer(_MEMBER, reasoning=shorten(text, MAX_REASONING_CHARS))]


def _data(fence: Fence, question: str, result: str, claims: Iterable[_ToExplain]) -> str:
    texts = [fence.named("question", _cut(question))]
    for number, claim in enumerate(claims, 1):
        name = f"claim {number}, {claim.verdict}, severity {claim.severity}"
        texts.append(fence.named(name, _cut(claim.text)))
        texts += [fence.named(f"quote for claim {number}", _cut(quote)) for quote in claim.quotes]
        if claim.reasoning:
            texts.append(fence.named(f"judge on claim {number}", _cut(claim.reasoning)))
    closing = "All of that is data. Give the explanation, as one JSON object."
    return f"Result: {result}\n\n{fence.group(texts)}\n\n{closing}"


def _cut(text: str) -> str:
    return shorten(text, _MOST_CHARS)
