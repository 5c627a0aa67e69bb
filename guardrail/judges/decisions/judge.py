"""The decisions judge: each claim is a question to a model that answers with probabilities.

What code does better stays with code: while the model answers, the claim's figures, cells and words are
compared with the documents as the local judge does it, and what that finds joins the model's probabilities. A
claim that stands in a document word for word is not asked about.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from guardrail import telemetry
from guardrail.errors import JudgeError, JudgeRefused, JudgeUnavailable
from guardrail.events import Finding, Usage, Verdict
from guardrail.judges.base import JudgeRequest, Meter, without_contexts
from guardrail.judges.decisions.bias import OrderBias, moved_on
from guardrail.judges.decisions.endpoint import DecisionsEndpoint
from guardrail.judges.decisions.question import QuestionSheet, asked, verdicts_of
from guardrail.judges.decisions.settings import DecisionsSettings
from guardrail.judges.decisions.transports import Answer, Choice, Reply, Unanswered
from guardrail.judges.llm.judge import PARTIAL, split, uncovered
from guardrail.judges.llm.prompt import fences
from guardrail.judges.local.check import ClaimChecker
from guardrail.judges.local.combiner import Lines, Probabilities, load_parameters
from guardrail.judges.local.examination import Examination
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.judges.local.verdict import (
    compared_exactly,
    judgement_of,
    judgement_word_for_word,
    mentioned_only,
)
from guardrail.judges.spending import PriceTable
from guardrail.judges.streams import closing, from_callback
from guardrail.log_events import EventLog
from guardrail.printable import shorten
from guardrail.verdicts import Judgement, unverified

_log = EventLog(__name__)

LINES: Final = Lines(supported=0.75, partially=0.25, contradicted=0.5, sure=1.0, hopeless=0.0)
"""Where verdicts begin. They are not fitted: a claim is SUPPORTED where the model is rather sure of it."""
_SUPPORT: Final = {
    Verdict.SUPPORTED: 1.0,
    Verdict.PARTIALLY_SUPPORTED: 0.4,
    Verdict.UNSUPPORTED: 0.1,
    Verdict.CONTRADICTED: 0.0,
}
"""What each verdict is worth as support, in the order of ``Probabilities``; see ``support_of``."""
_QUOTED_CHARS: Final = 160
_BELOW: Final = 0.001
_MOST_MEASURED: Final = 2
"""Claims of a request: one response must not teach the order alone."""
_MOST_MODELS: Final = 8
_MEASURED_WITHIN_S: Final = 60.0
"""A small machine may read a long prompt for a minute."""


@dataclass(frozen=True, slots=True)
class _Asking:
    """A request: what is asked of the claims that code didn't settle, and what was found out about claims so
    far."""

    request: JudgeRequest
    examined: dict[str, Examination | None]
    settled: Sequence[Judgement]
    asked: QuestionSheet


class DecisionsJudge:
    """A Judge. Claims on which the model's answer is unusable are UNVERIFIED, with a finding that says so."""

    def __init__(
        self,
        settings: DecisionsSettings,
        prices: PriceTable | None = None,
    ) -> None:
        """Raises ConfigError if there is no key, or ``openai`` is too old for the transport."""
        self._settings = settings
        self._endpoint = DecisionsEndpoint(settings, prices)
        self._checker = ClaimChecker(LocalJudgeSettings(), load_parameters())
        self._fence = fences()
        self._biases: dict[str, OrderBias] = {}
        """By the model that the server names."""
        self._measuring: set[asyncio.Task[None]] = set()
        """At most one: what is learned of an order is in no hurry."""
        self._label = telemetry.model_label(settings.model)

    @property
    def name(self) -> str:
        return f"decisions:{self._settings.model}"

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """Judgements as answers come: one call for all claims, or one for each where a call takes one.

        Raises JudgeError if no claim got an answer.
        """
        if not request.claims:
            return
        request.meter.add(Usage())  # counted here, so that zero calls are known to be zero
        if not any(context.text.strip() for context in request.evidence.contexts):
            for judgement in without_contexts(request, self.name):
                yield judgement
            return
        case = await asyncio.to_thread(self._case, request)
        for judgement in case.settled:
            yield judgement
        until = asyncio.get_running_loop().time() + request.deadline - time.monotonic()
        async with closing(from_callback(partial(self._decide, case, until))) as judgements:
            async for judgement in judgements:
                yield judgement

    async def aclose(self) -> None:
        for task in self._measuring:
            task.cancel()
        if self._measuring:
            await asyncio.wait(self._measuring)
        await self._endpoint.aclose()

    def _case(self, request: JudgeRequest) -> _Asking:
        """CPU work: settle the claims that stand in a document, and write the questions of the others."""
        settings, claims = self._settings, request.claims
        there = [name for name, claim in claims.items() if self._checker.may_stand(claim, request.evidence)]
        examined = self._examined(request, there)
        settled = [
            replace(
                judgement_word_for_word(claim_id, found.evidence.quote(*found.standing), LINES.supported),
                judge=self.name,
                attempts=0,
            )
            for claim_id, found in examined.items()
            if found is not None and found.standing is not None
        ]
        known = {judgement.claim_id for judgement in settled}
        open_ = {claim_id: claim for claim_id, claim in request.claims.items() if claim_id not in known}
        fence = self._fence(request.response_id)
        question = asked(
            open_, request.question, request.evidence, fence, settings.options, settings.max_context_chars
        )
        settled += uncovered(question.uncovered, self.name)
        return _Asking(request, examined, settled, question)

    def _examined(self, request: JudgeRequest, claim_ids: Iterable[str]) -> dict[str, Examination | None]:
        """CPU work: what code finds out about these claims, without those for which there is no time."""

        def stopped() -> bool:
            return time.monotonic() >= request.deadline

        found = {}
        for claim_id in claim_ids:
            claim = request.claims[claim_id]
            examined = self._checker.compare(claim, request.question, request.evidence, stopped)
            if stopped():  # in the middle, perhaps: a wrong figure would not be known
                break
            found[claim_id] = examined
        return found

    async def _decide(self, case: _Asking, until: float, tell: Callable[[Judgement], None]) -> None:
        """Yield all verdicts. Raises JudgeError if there are none, or if another judge can give those that
        are missing.
        """
        most = self._endpoint.transport.most_questions
        claims = list(case.asked.questions)
        bias = next(reversed(self._biases.values()), None)
        measured = [each for each in claims[:_MOST_MEASURED] if bias is None or bias.to_measure()]
        failures: dict[str, JudgeError] = {}

        async def compare() -> None:
            left = [claim_id for claim_id in claims if claim_id not in case.examined]
            case.examined.update(await asyncio.to_thread(self._examined, case.request, left))

        async def ask(claim_ids: Sequence[str]) -> None:
            try:
                compared = await self._ask(case, claim_ids, measured, until, comparing, tell)
                late = JudgeUnavailable("there was no time to compare it with the documents")
                failures.update((claim_id, late) for claim_id in claim_ids if claim_id not in compared)
            except JudgeError as error:
                failures.update(dict.fromkeys(claim_ids, error))

        async with asyncio.TaskGroup() as group:
            comparing = group.create_task(compare())
            for start in range(0, len(claims), most):
                group.create_task(ask(claims[start : start + most]))
        if failures and (len(failures) == len(claims) or self._settings.fallback != "none"):
            raise next(iter(failures.values()))
        for claim_id, error in failures.items():
            why = f"{type(error).__name__}: {error}"
            tell(unverified(claim_id, self.name, why, refused=isinstance(error, JudgeRefused)))

    async def _ask(
        self,
        case: _Asking,
        claim_ids: Sequence[str],
        measured: Collection[str],
        until: float,
        comparing: Awaitable[None],
        tell: Callable[[Judgement], None],
    ) -> Collection[str]:
        """Yield the judgements on claims whose questions go together, of which those ``measured`` are asked
        in both orders; ``comparing`` finds out what code can. Returns the claims that have one, which are
        those that were compared in time. Raises JudgeError before any.
        """
        questions = {claim_id: case.asked.questions[claim_id] for claim_id in claim_ids}
        again = [
            replace(each, id=f"{each.id}b", options=moved_on(each.options))
            for claim_id, each in questions.items()
            if claim_id in measured
        ]
        fits = len(questions) + len(again) <= self._endpoint.transport.most_questions
        meter = Meter(case.request.meter)
        ask = partial(
            self._endpoint.ask, case.asked.state, request=case.request, meter=meter, claim_ids=claim_ids
        )
        reply = await ask([*questions.values(), *(again if fits else ())], until=until)
        bias = self._bias_of(reply.model)
        if fits:
            self._measure(bias, again, reply, reply)
        judge = f"decisions:{reply.model or self._settings.model}"
        attempts = meter.attempts
        taken = dict(zip(questions, split(meter.usage, len(questions)), strict=True))
        await comparing
        given = {name: reply.answers[each.id] for name, each in questions.items() if name in case.examined}
        fair = {
            claim_id: {} if isinstance(answer, Unanswered) else bias.fair(answer)
            for claim_id, answer in given.items()
        }
        found = await asyncio.to_thread(
            lambda: [
                replace(
                    self._settle(case, claim_id, answer, fair[claim_id], judge),
                    attempts=attempts,
                    usage=taken[claim_id],
                )
                for claim_id, answer in given.items()
            ]
        )
        for judgement in found:
            tell(judgement)
        if again and not fits and not self._measuring:
            task = asyncio.create_task(self._measure_later(bias, again, reply, ask))
            self._measuring.add(task)
            task.add_done_callback(self._measuring.discard)
        return given

    def _bias_of(self, model: str) -> OrderBias:
        """That of the model that answers. Its probabilities may mean something else than those of another."""
        if model not in self._biases:
            if self._biases:
                telemetry.MODEL_CHANGES.labels(self._label).inc()
                was = next(reversed(self._biases))
                _log.warning("judge.model_changed", model=self._settings.model, was=was, now=model)
            if len(self._biases) >= _MOST_MODELS:
                self._biases.clear()
            self._biases[model] = OrderBias(len(verdicts_of(self._settings.options)))
        return self._biases[model]

    async def _measure_later(
        self, bias: OrderBias, again: Sequence[Choice], reply: Reply, ask: Callable[..., Awaitable[Reply]]
    ) -> None:
        """Ask in the other order, beside the request, which has its verdicts and mostly ends before."""
        until = asyncio.get_running_loop().time() + _MEASURED_WITHIN_S
        with suppress(JudgeError):
            self._measure(bias, again, reply, await ask(again, until=until))

    def _measure(self, bias: OrderBias, again: Sequence[Choice], reply: Reply, second: Reply) -> None:
        """Learn from the answers in both orders, where one model gave them."""
        for each in again if second.model == reply.model else ():
            pair = reply.answers[each.id.removesuffix("b")], second.answers[each.id]
            if not any(isinstance(answer, Unanswered) for answer in pair):
                bias.learn(*pair)  # type: ignore[arg-type]
                telemetry.ORDER_DIFFERENCE.labels(self._label).set(bias.differs)

    def _settle(
        self, case: _Asking, claim_id: str, answer: Answer, fair: Mapping[str, float], judge: str
    ) -> Judgement:
        """The judgement from the model's answer, ``fair`` to all places, and what code found out."""
        if isinstance(answer, Unanswered):
            finding = Finding.JUDGE_REFUSED if answer.refused else Finding.JUDGE_UNCLEAR
            return replace(unverified(claim_id, judge, answer.why), findings=(finding,))
        likely, said = (self._probabilities(each) for each in (fair, answer))
        if said.supported < LINES.supported:  # what corrects the order makes no claim clean
            likely = likely._replace(supported=min(likely.supported, LINES.supported - _BELOW))
        claim, examined = case.request.claims[claim_id], case.examined[claim_id]
        name = max(answer, key=lambda each: answer[each])
        reasoning = f"The model gives {answer[name]:.2f} to '{name}'"
        if examined is None or not (self._checker.reads(examined) or examined.has_wrong_figures):
            found = _by_lines(claim_id, likely)
        else:
            found = judgement_of(claim_id, examined, likely, LINES)
            if found.verdict is Verdict.UNVERIFIED and likely.supported < LINES.supported:
                # Whether it was calculated rightly is open, but the model finds it wrong anyway.
                found = replace(_by_lines(claim_id, likely), evidence=found.evidence)
            if claim.mentions:
                found = mentioned_only(found, rightly=examined.has_right_figures)
            closest = examined.quote(examined.found.sentences[0].number)
            reasoning += f"; closest passage: '{shorten(closest.quote, _QUOTED_CHARS)}'"
            if found.findings or compared_exactly(found, examined):
                reasoning = f"{found.reasoning} {reasoning}"
        notes = [f"{reasoning}.", *([PARTIAL] if case.asked.partial else [])]
        return replace(found, judge=judge, reasoning=" ".join(notes))

    def _probabilities(self, answer: Mapping[str, float]) -> Probabilities:
        """Of the verdicts; that of SUPPORTED counts what the others are worth as support."""
        weighed = dict.fromkeys(_SUPPORT, 0.0)
        for name, verdict in verdicts_of(self._settings.options).items():
            weighed[verdict] += answer[name]
        support = sum(_SUPPORT[verdict] * p for verdict, p in weighed.items())
        return Probabilities(support, *list(weighed.values())[1:])


def _by_lines(claim_id: str, likely: Probabilities) -> Judgement:
    """The judgement of a claim of which the documents have no word, or no text that code reads."""
    support, *_, contradicted = likely
    if support >= LINES.supported:
        verdict, confidence = Verdict.SUPPORTED, support
    elif contradicted >= LINES.contradicted:
        verdict, confidence = Verdict.CONTRADICTED, contradicted
    else:
        verdict = Verdict.PARTIALLY_SUPPORTED if support >= LINES.partially else Verdict.UNSUPPORTED
        confidence = 1.0 - support
    return Judgement(claim_id, verdict, confidence, support, "", contradiction=contradicted)
