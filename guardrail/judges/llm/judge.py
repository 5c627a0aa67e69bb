"""The LLM judge: all claims of a request in one call, judgements as the reply's answers arrive.

An answer becomes a judgement by resolving its id, and turning sentence numbers into quotes or dropping them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from guardrail import telemetry
from guardrail.errors import JudgeError, JudgeUnavailable
from guardrail.events import ClaimPart, Usage, Verdict
from guardrail.judges.base import JudgeRequest, Meter, support_of
from guardrail.judges.llm.chat import Chat, ModelEndpoint, Question
from guardrail.judges.llm.prompt import Prompt, Prompts, fences
from guardrail.judges.llm.reply import Answer, ReplyReader
from guardrail.judges.llm.settings import LlmJudgeSettings
from guardrail.judges.spending import BudgetExhausted, PriceTable
from guardrail.judges.streams import decided
from guardrail.verdicts import TWO_VERDICTS, Judgement, unverified


def split(usage: Usage, ways: int) -> list[Usage]:
    """``usage`` in ``ways`` parts that are as equal as whole tokens allow and add up to it."""
    if not ways:
        return []
    counts = {
        name: [total * (n + 1) // ways - total * n // ways for n in range(ways)]
        for name in ("judge_calls", "input_tokens", "cached_input_tokens", "output_tokens")
        for total in [getattr(usage, name)]
    }
    costs = [usage.cost_usd / ways] * (ways - 1)
    costs.append(usage.cost_usd - sum(costs))
    return [
        Usage(**{name: parts[n] for name, parts in counts.items()}, cost_usd=max(0.0, costs[n]))
        for n in range(ways)
    ]


# ----------------------------------------------------------------------------------- an answer -> a judgement

UNQUOTED_FACTOR: Final = 0.5
"""What is left of the confidence in a SUPPORTED that names no sentence it could rest on.

It is worth less, but models are right more often than not: half keeps support at or below 0.75, where rules
can catch it.
"""
_UNQUOTED: Final = "No sentence that was named for it stands in the contexts."
PARTIAL: Final = "Judged by excerpts of the contexts."
_SUPPORTING: Final = frozenset({Verdict.SUPPORTED, Verdict.PARTIALLY_SUPPORTED})


def uncovered(claim_ids: Iterable[str], judge: str) -> list[Judgement]:
    """The judgements on claims that could not be asked for."""
    return [
        unverified(claim_id, judge, "no passage for this claim fits into max_context_chars; raise it")
        for claim_id in sorted(claim_ids)
    ]


def settle(answer: Answer, prompt: Prompt) -> Judgement | None:
    """The judgement from an answer, but for who gave it; None if its claim was not asked for. Cheap: a few
    slices.
    """
    claim_id = prompt.claim_ids.get(answer.label)
    if claim_id is None:
        return None
    readable = prompt.fence.scrub
    if answer.problem:
        return unverified(claim_id, "", readable(answer.problem))
    sentences = prompt.sentences
    evidence = sentences.evidence([number for number in answer.evidence if number in prompt.shown])
    # Contexts that are said to contradict the claim, in the order they were named.
    against = [sentences.position(number) for number in answer.against if number in prompt.shown]
    conflicts = dict.fromkeys(sentences.contexts[position].id for position in against)
    confidence = answer.confidence
    notes = [readable(answer.reasoning)] if answer.reasoning else []
    if answer.verdict is Verdict.SUPPORTED and not evidence:
        confidence *= UNQUOTED_FACTOR
        notes.append(_UNQUOTED)
    if prompt.partial:
        notes.append(PARTIAL)
    return Judgement(
        claim_id,
        answer.verdict,
        confidence,
        support_of(answer.verdict, confidence),
        "",
        evidence,
        tuple(conflicts) if answer.verdict in _SUPPORTING else (),
        " ".join(notes),
        tuple(ClaimPart(text=readable(part.text), verdict=part.verdict) for part in answer.parts),
    )


# -------------------------------------------------------------------------------------------------- the judge

# The share of the time that a second question leaves: known verdicts must get through as well.
_RESERVE: Final = 0.05


class LlmJudge:
    """Asks a model behind an OpenAI-compatible API. Gives no judgement on claims for which it gets no
    verdict.
    """

    def __init__(self, settings: LlmJudgeSettings, prices: PriceTable | None = None) -> None:
        """``prices`` determine ``usage.cost_usd``. Raises ConfigError if there is no key, or a custom prompt
        can't be read.
        """
        self._settings = settings
        self._prompts = Prompts(settings)
        # For scores that count statements, unless the user wants claims whole.
        apart = settings.decompose or "decompose" not in settings.model_fields_set
        self._apart = Prompts(settings.model_copy(update={"decompose": True})) if apart else None
        self._chat = Chat(settings, prices)
        self._fence = fences()

    @property
    def name(self) -> str:
        return f"llm:{self._settings.model}"

    def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """One call for all claims, repeated while the deadline allows. Without contexts the model isn't
        asked.

        Verdicts come as soon as they are complete in the reply. Claims that a reply lacks are asked for once
        more. Raises JudgeError if there is no verdict at all.
        """
        return decided(request, self.name, self._decide)

    async def aclose(self) -> None:
        await self._chat.aclose()

    async def _decide(self, request: JudgeRequest, tell: Callable[[Judgement], None]) -> None:
        """Tell all verdicts. Raises JudgeError if there are none."""
        deadline = asyncio.get_running_loop().time() + request.deadline - time.monotonic()
        prompts = (request.parts and self._apart) or self._prompts
        prompt = await asyncio.to_thread(prompts.build, request, self._fence(request.response_id))
        await _Case(self._chat, prompts, request, prompt, tell).decide(
            deadline, ask_again=self._settings.ask_again
        )


class _Case:
    """One request on its way through one or two questions.

    A judgement that was told is final, whatever is said about its claim later. If a claim got two different
    verdicts before either was told, neither counts. A claim has one judgement or none.

    What excerpts lack may stand elsewhere in the contexts: until the second look is over, only a SUPPORTED
    that names its sentences is told.
    """

    def __init__(
        self,
        chat: Chat,
        prompts: Prompts,
        request: JudgeRequest,
        prompt: Prompt,
        tell: Callable[[Judgement], None],
    ) -> None:
        self._chat = chat
        self._prompts = prompts
        self._request = request
        self._prompt = prompt
        """That of the latest question, or of the one under way."""
        self._tell = tell
        self._uncovered = prompt.uncovered
        self._holding = prompt.partial
        self._meter = Meter(request.meter)
        self._failures: Sequence[str] = ()
        """Of the models that failed in that question, in order."""
        self._found: dict[str, Judgement] = {}
        self._told: set[str] = set()
        self._dropped: dict[str, int] = {}
        """How many sentences were named as evidence of a claim and were not shown."""

    async def decide(self, deadline: float, *, ask_again: bool) -> None:
        """Tell all verdicts; ``deadline`` is in the event loop's time. Raises JudgeError if there are none.

        ``ask_again``: also ask once more about claims that the reply left out.
        """
        try:
            if self._prompt.claim_ids:
                await self._ask(deadline)
            failed = await self._ask_further(deadline, self._missing() if ask_again else [])
        except JudgeError as error:
            if not self._found:
                raise
            # For a reply that broke off, what it said in time stands.
            failed = f"{type(error).__name__}: {error}"
        self._meter.add(Usage(dropped_quotes=sum(self._dropped.values())))
        self._tell_rest()
        judge = self._chat.endpoints[0].name
        for claim_id in self._missing() if failed else ():
            self._tell(self._by_model(unverified(claim_id, "", failed), judge))
        for judgement in uncovered(self._uncovered, judge):
            self._tell(judgement)

    async def _ask_further(self, deadline: float, missing: Sequence[str]) -> str:
        """Ask once more about claims without a verdict, and with more of the contexts about those that their
        passages don't support. Returns why some still have none, where that is known.
        """
        held = [id_ for id_, found in self._found.items() if id_ not in self._told and not self._firm(found)]
        unsupported = [*held, *self._uncovered] if self._prompt.partial else []
        if not missing and not unsupported:
            return ""
        # This may take long, so tell what is known first.
        for judgement in self._found.values():
            if self._firm(judgement):
                self._tell_once(judgement)
        only = frozenset([*missing, *unsupported])
        prompt = await asyncio.to_thread(
            self._prompts.build, self._request, self._prompt.fence, only, second_look=bool(unsupported)
        )
        now = asyncio.get_running_loop().time()
        if not missing:
            if all(number in self._prompt.shown for number in prompt.shown):
                return ""  # it has seen all that fits
            if deadline - now < (self._endpoint().caller.typical_s() or 0.0):
                return ""
        self._prompt = prompt
        self._holding = False
        self._uncovered = self._uncovered.difference(prompt.claim_ids.values())
        try:
            await self._ask(deadline - (deadline - now) * _RESERVE, second_look=bool(unsupported))
        except JudgeError as error:
            asked = "not asked" if isinstance(error, BudgetExhausted) else "asked"
            return f"left out of the first reply, and {asked} again: {error}"
        return ""

    async def _ask(self, deadline: float, *, second_look: bool = False) -> None:
        prompt = self._prompt
        asked = frozenset(prompt.claim_ids)
        question = Question(
            prompt.messages,
            self._prompts.schema,
            lambda: ReplyReader(self._prompts.form, asked),
            partial(self._take, early=True),
            Meter(self._meter),
            self._request.response_id,
            tuple(prompt.claim_ids.values()),
        )
        self._failures = question.failed
        if asyncio.get_running_loop().time() >= deadline:
            raise JudgeUnavailable("the deadline has passed before the first call")
        sent = "more" if second_look else "passages" if prompt.partial else "whole"
        telemetry.LLM_CONTEXTS.labels(sent).inc()
        self._take(await self._chat.ask(question, deadline))

    def _take(self, answers: Sequence[Answer], *, early: bool = False) -> None:
        """Take in all answers of a reply, including those taken before; ``early``: of one that is still being
        written, and only those that are reliable, which are told at once.
        """
        made: dict[str, Judgement] = {}
        dropped: dict[str, int] = {}
        for answer in answers:
            judgement = settle(answer, self._prompt)
            if judgement is None:
                continue
            claim_id = judgement.claim_id
            dropped.setdefault(claim_id, sum(number not in self._prompt.shown for number in answer.evidence))
            if made.setdefault(claim_id, judgement).verdict is not judgement.verdict:
                made[claim_id] = unverified(claim_id, "", TWO_VERDICTS)
        for claim_id, judgement in made.items():
            if claim_id in self._told or (early and not self._firm(judgement)):
                continue
            if judgement.support is None and claim_id in self._found:
                continue  # what a first look found stands
            judgement = self._by_model(self._with_parts(judgement), self._endpoint().name)
            self._found[claim_id] = judgement
            self._dropped[claim_id] = dropped[claim_id]
            if early:
                self._tell_once(judgement)

    def _with_parts(self, judgement: Judgement) -> Judgement:
        """With a claim of a single statement as its own only part, where parts are wanted."""
        wanted = self._request.parts and self._prompts.form.decompose
        if not wanted or judgement.support is None or judgement.parts:
            return judgement
        text = self._request.claims[judgement.claim_id].prose.text
        return replace(judgement, parts=(ClaimPart(text=text, verdict=judgement.verdict),))

    def _by_model(self, judgement: Judgement, judge: str) -> Judgement:
        attempts = self._meter.usage.judge_calls
        return replace(judgement, judge=judge, attempts=attempts, degraded_from=tuple(self._failures))

    def _endpoint(self) -> ModelEndpoint:
        """The model that answers: models are asked in order, and each that failed has left a note."""
        endpoints = self._chat.endpoints
        return endpoints[min(len(self._failures), len(endpoints) - 1)]

    def _firm(self, judgement: Judgement) -> bool:
        """Whether no later answer can change it. Asking again may fix unusable answers."""
        if self._holding:
            return judgement.verdict is Verdict.SUPPORTED and bool(judgement.evidence)
        return judgement.support is not None

    def _missing(self) -> list[str]:
        """Claims that were asked for and have no judgement."""
        return [id_ for id_ in self._request.claims if id_ not in self._found and id_ not in self._uncovered]

    def _tell_once(self, judgement: Judgement) -> None:
        if judgement.claim_id not in self._told:
            self._told.add(judgement.claim_id)
            self._tell(judgement)

    def _tell_rest(self) -> None:
        """The judgements not told yet, in claim order, each with its share of what was used.

        The shares of all claims with a judgement add up to the whole.
        """
        found = [claim_id for claim_id in self._request.claims if claim_id in self._found]
        for claim_id, share in zip(found, split(self._meter.usage, len(found)), strict=True):
            usage = share.model_copy(update={"dropped_quotes": self._dropped[claim_id]})
            self._tell_once(replace(self._found[claim_id], usage=usage))
