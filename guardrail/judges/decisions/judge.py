"""The decisions judge: each claim is a question to a model that answers with probabilities.

What code does better stays with code: while the model answers, the claim's figures, cells and words are
compared with the documents as the local judge does it, and what that finds joins the model's probabilities. A
claim that stands in a document word for word is not asked about.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Container,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import accumulate
from typing import Any, Final

from guardrail import telemetry
from guardrail.claims.model import Claim
from guardrail.errors import JudgeError, JudgeRefused, JudgeUnavailable
from guardrail.events import Verdict
from guardrail.judges.base import JudgeRequest, Meter, support_of
from guardrail.judges.calibrated import VerdictLines
from guardrail.judges.decisions.settings import DecisionsSettings, Form
from guardrail.judges.decisions.transports import (
    Answer,
    Choice,
    DecisionCall,
    DecisionsEndpoint,
    QuestionSheet,
    Reply,
    Unanswered,
)
from guardrail.judges.llm.judge import PARTIAL, split, uncovered
from guardrail.judges.llm.prompt import Fence, Sentences, fences, select
from guardrail.judges.local import verdict
from guardrail.judges.local.check import ClaimChecker
from guardrail.judges.local.combiner import Lines, Probabilities, load_parameters
from guardrail.judges.local.examination import Examination
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.judges.spending import PriceTable
from guardrail.judges.streams import decided
from guardrail.log_events import EventLog
from guardrail.printable import shorten
from guardrail.shipped import shipped_yaml
from guardrail.verdicts import Judgement, unverified

# --------------------------------------------------------------------------- how much a model prefers a place

FIRST: Final = 24
"""Claims that are asked twice, from the first on; afterwards it is one of ``EVERY``."""
EVERY: Final = 32
_MOST_SAID: Final = 2.0  # by one claim, in log-odds: whoever writes claims or documents may steer the model
_PRIOR: Final = 8.0  # claims without a preference, which the sample has to outweigh
_LEAST: Final = 1e-3  # a probability, below which servers' figures are noise
_REMEMBERED: Final = 512.0
_LATEST: Final = 64.0


def in_second_order(question: Choice) -> Choice:
    """The same question with its options in the second order; its id has a b behind it."""
    first, *others = question.options.items()
    return replace(question, id=f"{question.id}b", options=dict((*others, first)))


class OrderBias:
    """How much one model prefers an option of a form for its place in the list, measured without labels and
    taken out. Not for several threads at once.

    Of some claims the model is asked twice, the second time with the options moved on by one place. With
    ``q`` the probability of an option as the model means it and ``b`` the preference for a place, in
    log-odds,

        log p1(option i) = log q(i) + b(i) + c1        log p2(option i) = log q(i) + b(i - 1) + c2

    so the differences of the two answers give ``b(i) - b(i - 1)``, after their mean (``c1 - c2``) is taken
    out. Their running mean over the sample, with less weight while it is small, is what ``fair`` takes out of
    every answer. What the two answers still differ by then is reported: it is not the place, but the model's
    own unsteadiness.
    """

    def __init__(self, places: int) -> None:
        self._steps = [0.0] * places  # b(i) - b(i - 1)
        self._weight = 0.0
        self._count = 0
        self.differs = 0.0
        """By how much the first option's probability still differs between the two orders, in the mean."""

    def to_measure(self) -> bool:
        """Whether the next claim is one of those to ask twice."""
        self._count += 1
        return self._weight < FIRST or self._count % EVERY == 0

    @property
    def preferences(self) -> tuple[float, ...]:
        """Of each place, in log-odds; their mean is 0."""
        known = self._weight / (self._weight + _PRIOR)
        sums = list(accumulate([0.0, *self._steps[1:]]))
        mean = sum(sums) / len(sums)
        return tuple(known * (each - mean) for each in sums)

    def learn(self, first: Mapping[str, float], second: Mapping[str, float]) -> None:
        """``first`` and ``second`` are the answers to a question in the two orders, in the first's order."""
        differences = [math.log(max(_LEAST, first[v]) / max(_LEAST, second[v])) for v in first]
        mean = sum(differences) / len(differences)
        self._weight = min(self._weight + 1.0, _REMEMBERED)
        for place, difference in enumerate(differences):
            said = max(-_MOST_SAID, min(_MOST_SAID, difference - mean))
            self._steps[place] += (said - self._steps[place]) / self._weight
        value = next(iter(first))
        left = abs(self.fair(first)[value] - self.fair(second, moved=True)[value])
        self.differs += (left - self.differs) / min(self._weight, _LATEST)

    def fair(self, answer: Mapping[str, float], *, moved: bool = False) -> dict[str, float]:
        """``answer``, in the first order, without the preference; ``moved``: it was asked in the second."""
        preferences = self.preferences
        weighed = {
            value: probability * math.exp(-preferences[place - 1 if moved else place])
            for place, (value, probability) in enumerate(answer.items())
        }
        whole = sum(weighed.values())
        return {value: each / whole for value, each in weighed.items()}


# ---------------------------------------------------------------------------------------------- what is asked


@cache
def wording() -> Mapping[str, Any]:
    """The package's texts, by name."""
    loaded: Mapping[str, Any] = shipped_yaml("guardrail.judges.decisions", "questions.yaml")
    return loaded


@cache
def verdicts_of(form: Form) -> dict[str, Verdict]:
    """The options of a form by name, and the verdict that each stands for."""
    return {name: Verdict(verdict) for name, verdict in wording()["forms"][form].items()}


def asked(
    request: JudgeRequest, settled: Container[str], fence: Fence, settings: DecisionsSettings
) -> QuestionSheet:
    """The questions of the claims that are not ``settled``, over the documents, or over the passages closest
    to them where the documents are too long. CPU work: passes over everything that is sent."""
    evidence, most = request.evidence, settings.max_context_chars
    claims = {claim_id: claim for claim_id, claim in request.claims.items() if claim_id not in settled}
    whole = sum(len(context.text) for context in evidence.contexts) <= most
    if whole:
        shown = [fence.named(f"document d{n}", each.text) for n, each in enumerate(evidence.contexts, 1)]
    else:
        sentences = evidence.kept(Sentences, lambda: Sentences(evidence.contexts))
        closest = select(evidence, sentences, claims, most, excerpts=True)
        shown = [fence.named(f"excerpt of document {each.label}", each.text) for each in closest.shown]
        claims = {name: claim for name, claim in claims.items() if name not in closest.uncovered}
    texts = wording()
    options = {name: texts["options"][name] for name in verdicts_of(settings.options)}
    documents = [*([] if whole else [texts["excerpts"]]), fence.group(shown)]
    if request.question:
        documents.append(fence.group([fence.named("question", request.question)]))
    meanings = (f"{name}: {text}" for name, text in options.items())
    return QuestionSheet(
        texts["instructions"].format(marker=fence.marker),
        "\n".join(documents),
        fence.marker,
        "\n".join([f"{texts['refers']} {texts['counts']}", *meanings]),
        texts["labels"],
        {
            claim_id: _choice(f"c{number}", claim, fence, options)
            for number, (claim_id, claim) in enumerate(claims.items(), 1)
        },
        not whole,
    )


def _choice(name: str, claim: Claim, fence: Fence, options: Mapping[str, str]) -> Choice:
    before = [fence.named("text before", claim.lead_in)] if claim.lead_in else []
    brief = f"{fence.group([*before, fence.named('claim', claim.prose.text)])}\n{wording()['asks']}"
    return Choice(name, f"{wording()['refers']}\n{brief} {wording()['counts']}", options, brief)


_log = EventLog(__name__)

LINES: Final = Lines(supported=0.75, partially=0.25, contradicted=0.5, sure=1.0, hopeless=0.0)
"""Where verdicts begin. They are not fitted: a claim is SUPPORTED where the model is rather sure of it."""
_LINES: Final = VerdictLines(supported=LINES.supported, contradicted=LINES.contradicted)
_NOT_SUPPORTED: Final = (Verdict.PARTIALLY_SUPPORTED, Verdict.UNSUPPORTED, Verdict.CONTRADICTED)
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
    sheet: QuestionSheet


class DecisionsJudge:
    """A Judge. Claims on which the model's answer is unusable are UNVERIFIED, with a finding that says so."""

    def __init__(self, settings: DecisionsSettings, prices: PriceTable | None = None) -> None:
        """Raises ConfigError if there is no key."""
        self._settings = settings
        self._endpoint = DecisionsEndpoint(settings, prices)
        self.name = self._endpoint.name
        self._checker = ClaimChecker(LocalJudgeSettings(), load_parameters())
        self._fence = fences()
        self._biases: dict[str, OrderBias] = {}
        """By the model that the server names."""
        self._measuring: asyncio.Task[None] | None = None
        """The latest; there is one at a time: what is learned of an order is in no hurry."""
        self._label = telemetry.model_label(settings.model)

    def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """Judgements as answers come: one call for all claims, or one for each where a call takes one.

        Raises JudgeError if no claim got an answer.
        """
        return decided(request, self.name, self._decide)

    async def aclose(self) -> None:
        if self._measuring is not None and not self._measuring.done():
            self._measuring.cancel()
            await asyncio.wait([self._measuring])
        await self._endpoint.clients.aclose()

    async def _decide(self, request: JudgeRequest, tell: Callable[[Judgement], None]) -> None:
        """Tell all verdicts. Raises JudgeError if there are none, or another judge can give the others."""
        until = asyncio.get_running_loop().time() + request.deadline - time.monotonic()
        case, settled = await asyncio.to_thread(self._case, request)
        for judgement in settled:
            tell(judgement)
        claims, most = list(case.sheet.questions), self._endpoint.wire.most_questions
        bias = next(reversed(self._biases.values()), None)
        measured = [each for each in claims[:_MOST_MEASURED] if bias is None or bias.to_measure()]
        late = JudgeUnavailable("there was no time to compare it with the documents")
        failures: dict[str, JudgeError] = dict.fromkeys(claims, late)

        async def ask(claim_ids: Sequence[str]) -> None:
            try:
                for judgement in await self._ask(case, claim_ids, measured, until, comparing):
                    del failures[judgement.claim_id]
                    tell(judgement)
            except JudgeError as error:
                failures.update(dict.fromkeys(claim_ids, error))

        async with asyncio.TaskGroup() as group:
            comparing = group.create_task(asyncio.to_thread(self._examine, request, claims, case.examined))
            for start in range(0, len(claims), most):
                group.create_task(ask(claims[start : start + most]))
        if failures and (len(failures) == len(claims) or self._settings.fallback != "none"):
            raise next(iter(failures.values()))
        for claim_id, error in failures.items():
            why = f"{type(error).__name__}: {error}"
            tell(unverified(claim_id, self.name, why, refused=isinstance(error, JudgeRefused)))

    def _case(self, request: JudgeRequest) -> tuple[_Asking, list[Judgement]]:
        """CPU work: settle the claims that stand in a document, and write the questions of the others."""
        may_stand = partial(self._checker.may_stand, evidence=request.evidence)
        examined: dict[str, Examination | None] = {}
        self._examine(request, [name for name, claim in request.claims.items() if may_stand(claim)], examined)
        settled = {}
        for claim_id, found in examined.items():
            if found is not None and found.standing is not None:
                quote = found.evidence.quote(*found.standing)
                said = verdict.judgement_word_for_word(claim_id, quote, LINES.supported)
                settled[claim_id] = replace(said, judge=self.name, attempts=0)
        sheet = asked(request, settled, self._fence(request.response_id), self._settings)
        not_asked = request.claims.keys() - settled.keys() - sheet.questions.keys()
        return _Asking(request, examined, sheet), [*settled.values(), *uncovered(not_asked, self.name)]

    def _examine(
        self, request: JudgeRequest, claim_ids: Iterable[str], examined: dict[str, Examination | None]
    ) -> None:
        """CPU work: add what code finds out about these claims, but for those for which there is no time."""

        def stopped() -> bool:
            return time.monotonic() >= request.deadline

        for claim_id in claim_ids:
            if claim_id not in examined:
                claim = request.claims[claim_id]
                found = self._checker.compare(claim, request.question, request.evidence, stopped)
                if stopped():  # in the middle, perhaps: a wrong figure would not be known
                    return
                examined[claim_id] = found

    async def _ask(
        self,
        case: _Asking,
        claim_ids: Sequence[str],
        measured: Collection[str],
        until: float,
        comparing: Awaitable[None],
    ) -> list[Judgement]:
        """The judgements on claims whose questions go together, of which those ``measured`` are asked in both
        orders; ``comparing`` finds out what code can; who isn't in time has none. Raises JudgeError."""
        questions = {claim_id: case.sheet.questions[claim_id] for claim_id in claim_ids}
        again = [in_second_order(each) for claim_id, each in questions.items() if claim_id in measured]
        fits = len(questions) + len(again) <= self._endpoint.wire.most_questions
        meter = Meter(case.request.meter)
        call = partial(DecisionCall, self._endpoint, case.sheet, meter, claim_ids)
        reply = await self._endpoint.ask(call([*questions.values(), *(again if fits else ())]), until)
        bias = self._bias_of(reply.model)
        if fits:
            self._measure(bias, again, reply, reply)
        judge = f"decisions:{reply.model or self._settings.model}"
        attempts, shares = meter.attempts, split(meter.usage, len(questions))
        taken = dict(zip(questions, shares, strict=True))
        await comparing
        given = {name: reply.answers[each.id] for name, each in questions.items() if name in case.examined}
        fair = {name: bias.fair(said) for name, said in given.items() if not isinstance(said, Unanswered)}

        def settle(name: str) -> Judgement:
            found = self._settle(case, name, given[name], fair.get(name, {}))
            return replace(found, judge=judge, attempts=attempts, usage=taken[name])

        found = await asyncio.to_thread(lambda: [settle(name) for name in given])
        if again and not fits and (self._measuring is None or self._measuring.done()):
            self._measuring = asyncio.create_task(self._measure_later(bias, reply, call(again)))
        return found

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

    async def _measure_later(self, bias: OrderBias, reply: Reply, call: DecisionCall) -> None:
        """Ask in the other order, beside the request, which has its verdicts and mostly ends before."""
        until = asyncio.get_running_loop().time() + _MEASURED_WITHIN_S
        with suppress(JudgeError):
            self._measure(bias, call.questions, reply, await self._endpoint.ask(call, until))

    def _measure(self, bias: OrderBias, again: Sequence[Choice], reply: Reply, second: Reply) -> None:
        """Learn from the answers in both orders, where one model gave them."""
        for each in again if second.model == reply.model else ():
            one, other = reply.answers[each.id.removesuffix("b")], second.answers[each.id]
            if not isinstance(one, Unanswered) and not isinstance(other, Unanswered):
                bias.learn(one, other)
                telemetry.ORDER_DIFFERENCE.labels(self._label).set(bias.differs)

    def _settle(self, case: _Asking, claim_id: str, answer: Answer, fair: Mapping[str, float]) -> Judgement:
        """The judgement from the model's answer, ``fair`` to all places, and what code found out."""
        if isinstance(answer, Unanswered):
            return replace(unverified(claim_id, self.name, answer.why), findings=(answer.finding,))
        likely, said = (self._probabilities(each) for each in (fair, answer))
        if said.supported < LINES.supported:  # what corrects the order makes no claim clean
            likely = likely._replace(supported=min(likely.supported, LINES.supported - _BELOW))
        claim, examined = case.request.claims[claim_id], case.examined[claim_id]
        name = max(answer, key=lambda each: answer[each])
        reasoning = f"The model gives {answer[name]:.2f} to '{name}'"
        if examined is None or not (self._checker.reads(examined) or examined.has_wrong_figures):
            found = _by_lines(claim_id, likely)
        else:
            found = verdict.Ruling(examined, likely, LINES).judgement(claim_id)
            if found.verdict is Verdict.UNVERIFIED and likely.supported < LINES.supported:
                # Whether it was calculated rightly is open, but the model finds it wrong anyway.
                found = replace(_by_lines(claim_id, likely), evidence=found.evidence)
            if claim.mentions:
                found = verdict.mentioned_only(found, rightly=examined.has_right_figures)
            closest = examined.quote(examined.found.sentences[0].number)
            reasoning += f"; closest passage: '{shorten(closest.quote, _QUOTED_CHARS)}'"
            if found.findings or verdict.compared_exactly(found, examined):
                reasoning = f"{found.reasoning} {reasoning}"
        notes = [f"{reasoning}.", *([PARTIAL] if case.sheet.partial else [])]
        return replace(found, reasoning=" ".join(notes))

    def _probabilities(self, answer: Mapping[str, float]) -> Probabilities:
        """Of the verdicts; that of SUPPORTED counts what the others are worth as support."""
        given = {means: answer[name] for name, means in verdicts_of(self._settings.options).items()}
        support = sum((support_of(means, 1.0) or 0.0) * p for means, p in given.items())
        return Probabilities(support, *(given.get(each, 0.0) for each in _NOT_SUPPORTED))


def _by_lines(claim_id: str, likely: Probabilities) -> Judgement:
    """The judgement of a claim of which the documents have no word, or no text that code reads."""
    support, *_, contradicted = likely
    least = Verdict.PARTIALLY_SUPPORTED if support >= LINES.partially else Verdict.UNSUPPORTED
    given = _LINES.verdict(least, support, contradicted, exact=False)
    sure = {Verdict.SUPPORTED: support, Verdict.CONTRADICTED: contradicted}.get(given, 1.0 - support)
    return Judgement(claim_id, given, sure, support, "", contradiction=contradicted)
