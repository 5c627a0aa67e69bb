"""The LLM judge: all claims of a request in one call, judgements as the reply's answers arrive.

An answer becomes a judgement by resolving its id, and turning sentence numbers into quotes or dropping them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from guardrail import telemetry
from guardrail.errors import JudgeError, JudgeUnavailable
from guardrail.events import ClaimPart, Usage, Verdict
from guardrail.judges.base import JudgeRequest, Meter, support_of, without_contexts
from guardrail.judges.llm.chat import Chat, ModelEndpoint, Question
from guardrail.judges.llm.prompt import Prompt, Prompts, fences
from guardrail.judges.llm.reply import Answer, ReplyReader
from guardrail.judges.llm.settings import LlmJudgeSettings
from guardrail.judges.spending import BudgetExhausted, PriceTable
from guardrail.judges.streams import closing, from_callback
from guardrail.verdicts import TWO_VERDICTS, Judgement, unverified


@dataclass(frozen=True, slots=True)
class AnsweringModel:
    """The source of answers: the judge's name, the calls made so far, and the models that failed before
    it.
    """

    judge: str
    attempts: int = 1
    degraded_from: tuple[str, ...] = ()

    def unverified(self, claim_id: str, reason: str) -> Judgement:
        return unverified(
            claim_id, self.judge, reason, attempts=self.attempts, degraded_from=self.degraded_from
        )


class CollectedJudgements:
    """Collects the judgements of one request, over all its calls.

    A judgement that was yielded is final, whatever is said about its claim later. If a claim got two
    different verdicts before either was yielded, neither counts. A claim has one judgement or none.

    What excerpts lack may stand elsewhere in the contexts: until the second look is over, only a SUPPORTED
    that names its sentences is yielded.
    """

    __slots__ = ("_asked", "_dropped", "_final", "_found", "_holding", "_prompt")

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt
        self._asked = tuple(prompt.claim_ids.values())
        self._holding = prompt.partial
        self._final: set[str] = set()
        self._found: dict[str, Judgement] = {}
        self._dropped: dict[str, int] = {}

    def take_early(
        self, answers: Sequence[Answer], model: AnsweringModel, tell: Callable[[Judgement], None]
    ) -> None:
        """Take in answers of a reply that is still being written, and yield those that are reliable."""
        for judgement in self._judgements(answers, model).values():
            if judgement.claim_id not in self._final and self._firm(judgement):
                self._keep(judgement, answers)
                self._final.add(judgement.claim_id)
                tell(judgement)

    def take(self, answers: Sequence[Answer], model: AnsweringModel) -> None:
        """Take in all answers of a reply that has ended, including those taken earlier."""
        for judgement in self._judgements(answers, model).values():
            if judgement.claim_id not in self._final:
                self._keep(judgement, answers)

    def settle(self, tell: Callable[[Judgement], None]) -> None:
        """Yield everything that was taken in, because the next step may take long."""
        for claim_id, judgement in self._found.items():
            if claim_id not in self._final and self._firm(judgement):
                self._final.add(claim_id)
                tell(judgement)

    def missing(self) -> list[str]:
        """Ids of claims that were asked for and have no judgement."""
        return [claim_id for claim_id in self._asked if claim_id not in self._found]

    def held(self) -> list[str]:
        """Ids of claims whose judgement a second look may change."""
        return [
            claim_id
            for claim_id, judgement in self._found.items()
            if claim_id not in self._final and not self._firm(judgement)
        ]

    def look_again(self, prompt: Prompt) -> None:
        """From now on ``prompt`` is what is answered, and takes the place of what was held."""
        self._asked += tuple(id_ for id_ in prompt.claim_ids.values() if id_ not in self._asked)
        self._prompt = prompt
        self._holding = False

    @property
    def dropped_quotes(self) -> int:
        """Sentences that were named as evidence and were not shown, over all claims."""
        return sum(self._dropped.values())

    def rest(self, usage: Usage) -> list[Judgement]:
        """The judgements not yielded yet, in claim order, each with its share of ``usage``.

        The shares of all claims with a judgement add up to the whole.
        """
        found = [id_ for id_ in self._asked if id_ in self._found]
        return [
            replace(
                self._found[claim_id],
                usage=share.model_copy(update={"dropped_quotes": self._dropped.get(claim_id, 0)}),
            )
            for claim_id, share in zip(found, split(usage, len(found)), strict=True)
            if claim_id not in self._final
        ]

    def _judgements(self, answers: Sequence[Answer], model: AnsweringModel) -> dict[str, Judgement]:
        """One for each answered claim, in the order they came."""
        made: dict[str, Judgement] = {}
        for answer in answers:
            judgement = settle(answer, self._prompt, model)
            if judgement is None:
                continue
            other = made.setdefault(judgement.claim_id, judgement)
            if other.verdict is not judgement.verdict:
                made[other.claim_id] = model.unverified(other.claim_id, TWO_VERDICTS)
        return made

    def _firm(self, judgement: Judgement) -> bool:
        """Whether no later answer can change it. Asking again may fix unusable answers."""
        if self._holding:
            return judgement.verdict is Verdict.SUPPORTED and bool(judgement.evidence)
        return judgement.support is not None

    def _keep(self, judgement: Judgement, answers: Collection[Answer]) -> None:
        claim_id = judgement.claim_id
        if judgement.support is None and claim_id in self._found:
            return  # what a first look found stands
        self._found[claim_id] = judgement
        first = next(answer for answer in answers if self._prompt.claim_ids.get(answer.label) == claim_id)
        self._dropped[claim_id] = sum(number not in self._prompt.shown for number in first.evidence)


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


def settle(answer: Answer, prompt: Prompt, model: AnsweringModel) -> Judgement | None:
    """The judgement from an answer; None if its claim was not asked for. Cheap: a few slices."""
    claim_id = prompt.claim_ids.get(answer.label)
    if claim_id is None:
        return None
    if answer.problem:
        return model.unverified(claim_id, prompt.fence.scrub(answer.problem))
    evidence = prompt.sentences.evidence(_shown(answer.evidence, prompt))
    confidence = answer.confidence
    notes = [_sayable(prompt.fence.scrub(answer.reasoning))] if answer.reasoning else []
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
        model.judge,
        evidence,
        _conflicts(answer, prompt) if answer.verdict in _SUPPORTING else (),
        " ".join(notes),
        tuple(
            ClaimPart(text=_sayable(prompt.fence.scrub(part.text)), verdict=part.verdict)
            for part in answer.parts
        ),
        attempts=model.attempts,
        degraded_from=model.degraded_from,
    )


def _shown(numbers: Sequence[int], prompt: Prompt) -> list[int]:
    return [number for number in numbers if number in prompt.shown]


def _conflicts(answer: Answer, prompt: Prompt) -> tuple[str, ...]:
    """Ids of the contexts said to contradict the claim, in the order they were named."""
    sentences = prompt.sentences
    positions = (sentences.position(number) for number in _shown(answer.against, prompt))
    return tuple(dict.fromkeys(sentences.contexts[position].id for position in positions))


def _sayable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


# -------------------------------------------------------------------------------------------------- the judge

# The share of the time that a second question leaves: known verdicts must get through as well.
_RESERVE: Final = 0.05


class LlmJudge:
    """Asks a model behind an OpenAI-compatible API. Gives no judgement on claims for which it gets no
    verdict.
    """

    def __init__(
        self,
        settings: LlmJudgeSettings,
        prices: PriceTable | None = None,
    ) -> None:
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

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """One call for all claims, repeated while the deadline allows. Without contexts the model isn't
        asked.

        Verdicts come as soon as they are complete in the reply. Claims that a reply lacks are asked for once
        more. Raises JudgeError if there is no verdict at all.
        """
        if not request.claims:
            return
        request.meter.add(Usage())  # counted here, so that zero calls are known to be zero
        if not request.has_contexts:
            for judgement in without_contexts(request, self.name):
                yield judgement
            return
        left = request.deadline - time.monotonic()
        deadline = asyncio.get_running_loop().time() + left
        fence = self._fence(request.response_id)
        prompts = (request.parts and self._apart) or self._prompts
        prompt = await asyncio.to_thread(prompts.build, request, fence)
        case = _Case(self._chat, prompts, request, prompt, self._settings)
        async with closing(from_callback(partial(case.decide, deadline))) as judgements:
            async for judgement in judgements:
                if prompts is self._apart and judgement.support is not None and not judgement.parts:
                    only = ClaimPart(
                        text=request.claims[judgement.claim_id].prose.text, verdict=judgement.verdict
                    )
                    judgement = replace(judgement, parts=(only,))
                yield judgement

    async def aclose(self) -> None:
        await self._chat.aclose()


class _Case:
    """One request on its way through one or two questions."""

    def __init__(
        self,
        chat: Chat,
        prompts: Prompts,
        request: JudgeRequest,
        prompt: Prompt,
        settings: LlmJudgeSettings,
    ) -> None:
        self._chat = chat
        self._prompts = prompts
        self._request = request
        self._prompt = prompt
        self._uncovered = prompt.uncovered
        self._again = settings.ask_again
        self._collected = CollectedJudgements(prompt)
        self._meter = Meter(request.meter)
        self._question: Question | None = None
        """The latest, or the one under way."""

    async def decide(self, deadline: float, tell: Callable[[Judgement], None]) -> None:
        """Yield all verdicts; ``deadline`` is in the event loop's time. Raises JudgeError if there are
        none.
        """
        failed: list[Judgement] = []
        try:
            if self._prompt.claim_ids:
                await self._ask(self._prompt, deadline, tell)
        except JudgeError as error:
            if len(self._collected.missing()) == len(self._prompt.claim_ids):
                raise
            # For a reply that broke off, what it said in time stands.
            failed = self._failed(f"{type(error).__name__}: {error}")
        else:
            failed = await self._ask_further(deadline, tell)
        self._meter.add(Usage(dropped_quotes=self._collected.dropped_quotes))
        not_asked = uncovered(self._uncovered, self._chat.endpoints[0].name)
        for judgement in (*self._collected.rest(self._meter.usage), *failed, *not_asked):
            tell(judgement)

    async def _ask_further(self, deadline: float, tell: Callable[[Judgement], None]) -> list[Judgement]:
        """Ask once more about claims without a verdict, and with more of the contexts about those that their
        passages don't support; returns those that still have none.
        """
        collected = self._collected
        missing = collected.missing() if self._again else []
        unsupported = [*collected.held(), *self._uncovered] if self._prompt.partial else []
        if not missing and not unsupported:
            return []
        # This may take long, so yield what is known first.
        collected.settle(tell)
        prompt = await asyncio.to_thread(
            self._prompts.build,
            self._request,
            self._prompt.fence,
            frozenset([*missing, *unsupported]),
            second_look=bool(unsupported),
        )
        now = asyncio.get_running_loop().time()
        if not missing:
            if all(number in self._prompt.shown for number in prompt.shown):
                return []  # it has seen all that fits
            if deadline - now < (self._endpoint().caller.typical_s() or 0.0):
                return []
        self._uncovered = self._uncovered.difference(prompt.claim_ids.values())
        collected.look_again(prompt)
        try:
            await self._ask(
                prompt, deadline - (deadline - now) * _RESERVE, tell, second_look=bool(unsupported)
            )
        except JudgeError as error:
            asked = "not asked" if isinstance(error, BudgetExhausted) else "asked"
            return self._failed(f"left out of the first reply, and {asked} again: {error}")
        return []

    async def _ask(
        self,
        prompt: Prompt,
        deadline: float,
        tell: Callable[[Judgement], None],
        *,
        second_look: bool = False,
    ) -> None:
        asked = frozenset(prompt.claim_ids)

        def on_answers(answers: Sequence[Answer]) -> None:
            self._collected.take_early(answers, self._answering_model(), tell)

        self._question = Question(
            prompt.messages,
            self._prompts.schema,
            lambda: ReplyReader(self._prompts.form, asked),
            on_answers,
            Meter(self._meter),
            self._request.response_id,
            tuple(prompt.claim_ids.values()),
        )
        if asyncio.get_running_loop().time() >= deadline:
            raise JudgeUnavailable("the deadline has passed before the first call")
        sent = "more" if second_look else "passages" if prompt.partial else "whole"
        telemetry.LLM_CONTEXTS.labels(sent).inc()
        answers = await self._chat.ask(self._question, deadline)
        self._collected.take(answers, self._answering_model())

    def _endpoint(self) -> ModelEndpoint:
        """The model to ask: models are asked in order, and each that failed has left a note."""
        endpoints = self._chat.endpoints
        failed = len(self._question.failed) if self._question is not None else 0
        return endpoints[min(failed, len(endpoints) - 1)]

    def _answering_model(self) -> AnsweringModel:
        name = self._endpoint().name
        failed: tuple[str, ...] = ()
        if self._question is not None:
            name, failed = self._question.answered_by or name, tuple(self._question.failed)
        return AnsweringModel(name, self._meter.usage.judge_calls, failed)

    def _failed(self, reason: str) -> list[Judgement]:
        model = self._answering_model()
        return [
            unverified(
                claim_id,
                self._chat.endpoints[0].name,
                reason,
                attempts=model.attempts,
                degraded_from=model.degraded_from,
            )
            for claim_id in self._collected.missing()
        ]
