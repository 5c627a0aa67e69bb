"""Claims against the contexts of their response: candidates, comparisons, features, verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from typing import Final

from guardrail.claims.model import Claim
from guardrail.errors import ConfigError
from guardrail.events import Context, Severity, Span, Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.base import Judgement
from guardrail.judges.local.candidates import Candidates, find_candidates
from guardrail.judges.local.claim_view import ClaimView, view_of
from guardrail.judges.local.combiner import BoostedTrees, Logistic, Parameters, load_rules_parameters
from guardrail.judges.local.compare import Comparison, compare_all
from guardrail.judges.local.details import ValueCheck, check_values, settled_terms
from guardrail.judges.local.features import comparison_features, detail_features, overlap_features
from guardrail.judges.local.fitted import FittedVerifier
from guardrail.judges.local.rarity import Rarity
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.judges.local.source import Source, tokens_within
from guardrail.judges.local.verdict import NO_WORD_SHARED, Lines, Seen, decide, wrong_details
from guardrail.judges.local.verification import FEATURES, Reader, Verification, joint_features
from guardrail.judges.local.verifier import Verifier
from guardrail.judges.spans import spans_within

NAME: Final = "local"
_NO_TIME: Final = "verifier: too little time was left"
_NOTHING_SHARED: Final = 0.01
_ANY: Final = "The sky is blue."


@dataclass(frozen=True, slots=True)
class Examination:
    """Everything found out about one claim. ``compared`` holds at least one sentence.

    ``features`` has those of the verifier only where it has read the claim, which ``verification`` tells.
    """

    view: ClaimView
    found: Candidates
    compared: Sequence[Comparison]
    values: Sequence[ValueCheck]
    features: dict[str, float]
    verification: Verification | None = None


class ClaimChecker:
    """CPU work without state of its own, so threads may share one."""

    def __init__(
        self, settings: LocalJudgeSettings, parameters: Parameters, verifier: Verifier | None = None
    ) -> None:
        """``verifier`` is the one that ``parameters`` name. With parameters that name none its features are
        found out, and nothing is made of them: for fitting. Raises ConfigError, also for parameters that
        look at what is not found out: those of another release.
        """
        require_own_verifier(parameters, None if verifier is None else verifier.fitted())
        self._settings = settings
        self._verifier = verifier
        self._fitted = _as_set(parameters, settings, verifier)
        self._rarity = Rarity(parameters.rarity)
        self._full = _Fit.of(parameters, settings)
        # What the verifier can't read is judged by parameters that don't look at it; of what it can, theirs
        # is one opinion.
        self._rules = self._full if verifier is None else _Fit.of(load_rules_parameters(), settings)
        self.require_known(parameters)

    def require_known(self, parameters: Parameters) -> None:
        """Raises ConfigError for parameters that look at features which are not found out."""
        unknown = parameters.features - self._known_features()
        if unknown:
            raise ConfigError(
                f"judge.local.parameters_path: the parameters look at {', '.join(sorted(unknown))}, which "
                "this release does not find out; fit them again, or leave judge.local.parameters_path unset"
            )

    def check(self, claim_id: str, claim: Claim, question: str, evidence: EvidenceIndex) -> Judgement:
        """The judgement of one claim. Raises JudgeError when the verifier fails."""
        return self._settle(claim_id, self.examine(claim, question, evidence), evidence)

    def check_all(
        self,
        claims: Mapping[str, Claim],
        question: str,
        evidence: EvidenceIndex,
        stopped: Callable[[], bool],
        hurried: Callable[[], bool] = lambda: False,
    ) -> Iterator[Judgement]:
        """The judgements of a request's claims, in their order, until ``stopped()``.

        Asked before each claim and each batch of the verifier; a claim that isn't wholly read by then has no
        judgement. Claims that come up once it is ``hurried()`` are judged by the rules alone, and say so: a
        verdict of theirs is better than none. Raises JudgeError when the verifier fails.
        """
        if self._verifier is None or self._fitted is None:
            for claim_id, claim in claims.items():
                if stopped():
                    return
                yield self.check(claim_id, claim, question, evidence)
            return
        reader = self._reader(self._verifier, self._fitted, stopped)
        waiting = iter(claims.items())
        while group := dict(islice(waiting, reader.claims_at_once)):
            if stopped():
                return
            if hurried():
                yield from self._check_in_haste(group, question, evidence, stopped)
                continue
            yield from self._check_group(group, question, evidence, reader, stopped)

    def _check_in_haste(
        self,
        group: Mapping[str, Claim],
        question: str,
        evidence: EvidenceIndex,
        stopped: Callable[[], bool],
    ) -> Iterator[Judgement]:
        """Claims by the rules alone, which take a fifth of the time."""
        for claim_id, claim in group.items():
            if stopped():
                return
            judgement = self._settle(claim_id, self._examine(claim, question, evidence), evidence)
            yield replace(judgement, degraded_from=(_NO_TIME,))

    def _reader(
        self, verifier: Verifier, fitted: FittedVerifier, stopped: Callable[[], bool] = lambda: False
    ) -> Reader:
        # Whoever sets a limit of tokens means it, for long claims too.
        return Reader(verifier, fitted, stopped, longer=self._settings.verifier.tokens_per_claim is None)

    def _check_group(
        self,
        group: Mapping[str, Claim],
        question: str,
        evidence: EvidenceIndex,
        reader: Reader,
        stopped: Callable[[], bool],
    ) -> Iterator[Judgement]:
        """Claims whose readings share batches."""
        in_time = takewhile(lambda _: not stopped(), group.items())
        examined = {claim_id: self._examine(claim, question, evidence) for claim_id, claim in in_time}
        premises = {
            claim_id: reader.premises(each.view, evidence, each.found)
            for claim_id, each in examined.items()
            if each is not None
        }
        reader.read(
            (each.view.text, premises[claim_id]) for claim_id, each in examined.items() if each is not None
        )
        for claim_id, each in examined.items():
            if each is None or not premises[claim_id]:
                yield self._settle(claim_id, each, evidence)
                continue
            verification = reader.verification(each.view.text, premises[claim_id])
            if verification is not None:  # else there was no time to read it
                yield self._settle(claim_id, self._with(each, verification), evidence)

    def examine(self, claim: Claim, question: str, evidence: EvidenceIndex) -> Examination | None:
        """What is found out about a claim before anything fitted has its say; None if there is nothing to
        compare it with: no context, or none that shares a word and no verifier that knows others.

        Raises JudgeError when the verifier fails.
        """
        examined = self._examine(claim, question, evidence)
        if examined is None or self._verifier is None or self._fitted is None:
            return examined
        reader = self._reader(self._verifier, self._fitted)
        premises = reader.premises(examined.view, evidence, examined.found)
        reader.read([(examined.view.text, premises)])
        verification = reader.verification(examined.view.text, premises)
        return examined if verification is None else self._with(examined, verification)

    def _settle(self, claim_id: str, examined: Examination | None, evidence: EvidenceIndex) -> Judgement:
        if examined is None or (examined.verification is None and not examined.found.shared):
            empty = not evidence.layout.terms
            reason = "There is no context to support it." if empty else NO_WORD_SHARED
            return Judgement(
                claim_id, Verdict.UNSUPPORTED, 1.0 - _NOTHING_SHARED, _NOTHING_SHARED, NAME, reasoning=reason
            )
        fit = self._rules if examined.verification is None else self._full
        support = fit.combiner.probability(examined.features)
        outcome = decide(
            examined.view,
            examined.found,
            examined.compared,
            examined.values,
            support,
            fit.lines,
            _seen(examined, evidence),
        )
        return Judgement(
            claim_id,
            outcome.verdict,
            outcome.confidence,
            outcome.support,
            NAME,
            outcome.evidence,
            outcome.conflicting_contexts,
            outcome.reasoning,
            unsupported_spans=_unsupported(examined, outcome.verdict),
        )

    def _examine(self, claim: Claim, question: str, evidence: EvidenceIndex) -> Examination | None:
        """What the rules find out."""
        source = Source(evidence)
        layout = source.layout
        view = view_of(claim, question, self._rarity)
        settings = self._settings
        found = find_candidates(
            layout,
            view,
            settings.sentences_per_claim,
            settings.passages_per_claim,
            # A verifier knows other words for a thing; to the rules there is nothing to compare.
            in_other_words=self._verifier is not None and bool(view.content),
        )
        if not found.sentences:
            return None
        compared = compare_all(view, source, found.sentences)
        values = check_values(view, source, self._to_search(source, found))
        features = overlap_features(layout, view, found, settled_terms(view, values))
        features |= comparison_features(compared, view)
        features |= detail_features(values, layout, view, found)
        return Examination(view, found, compared, values, features)

    def _with(self, examined: Examination, verification: Verification) -> Examination:
        features = examined.features | verification.features()
        features |= joint_features(features, self._rules.combiner.probability(examined.features))
        return replace(examined, features=features, verification=verification)

    def _known_features(self) -> frozenset[str]:
        """The names of all features, as they are found out of any claim."""
        claim = Claim(0, 0, _ANY, 0, len(_ANY), Severity.NORMAL)
        examined = self._examine(claim, "", EvidenceIndex([Context(id="any", text=_ANY)]))
        return frozenset(FEATURES).union(() if examined is None else examined.features)

    def _to_search(self, source: Source, found: Candidates) -> list[int]:
        """The sentences in which values are looked for: the candidates, and all of the best passage."""
        numbers = [match.number for match in found.sentences]
        if found.passages:
            layout = source.layout
            best = found.passages[0].number
            position, last = layout.passages.first[best], layout.passages.last[best]
            while position < last:
                holding = layout.sentences.holding(position)
                numbers.extend(holding)
                position = max((layout.sentences.last[n] for n in holding), default=position + 1)
        return numbers


@dataclass(frozen=True, slots=True)
class _Fit:
    """What one file of parameters makes of features."""

    combiner: Logistic | BoostedTrees
    lines: Lines

    @classmethod
    def of(cls, parameters: Parameters, settings: LocalJudgeSettings) -> _Fit:
        high = parameters.supported_at if settings.supported_at is None else settings.supported_at
        low = settings.partially_supported_at
        low = min(high, parameters.partially_supported_at if low is None else low)
        return cls(parameters.combiner, Lines(high, low, parameters.least_share, parameters.contradicted_at))


def require_own_verifier(parameters: Parameters, loaded: FittedVerifier | None) -> None:
    """Raises ConfigError for parameters that were fitted with another verifier than the one there is."""
    fitted = parameters.verifier
    if fitted is None or (loaded is not None and loaded.sha256 == fitted.sha256):
        return
    given = "none is loaded" if loaded is None else f"{loaded.name} (sha256 {loaded.sha256}) is loaded"
    raise ConfigError(
        f"judge.local.verifier: the parameters were fitted with {fitted.name} (sha256 {fitted.sha256}), but "
        f"{given}; set judge.local.verifier.path to its folder, or judge.local.parameters_path to parameters "
        "that training.calibrate wrote for this one"
    )


def _as_set(
    parameters: Parameters, settings: LocalJudgeSettings, verifier: Verifier | None
) -> FittedVerifier | None:
    """How the verifier reads: as it was fitted, but for what the settings say."""
    if verifier is None:
        return None
    wanted = settings.verifier
    changes = {"readings": wanted.readings, "tokens_per_claim": wanted.tokens_per_claim}
    fitted = parameters.verifier or verifier.fitted()
    return fitted.model_copy(update={name: value for name, value in changes.items() if value is not None})


def _unsupported(examined: Examination, verdict: Verdict) -> tuple[Span, ...]:
    """The words of a claim that the rules find wrong or the verifier finds no support for; none where they
    are no fewer than all."""
    if verdict is Verdict.SUPPORTED or (verdict is Verdict.UNSUPPORTED and not examined.found.shared):
        return ()
    text = examined.view.text
    spans = wrong_details(examined.view, examined.found, examined.compared, examined.values)
    if examined.verification is not None:
        spans += examined.verification.unsupported(text)
    return spans_within(text, spans)


def _seen(examined: Examination, evidence: EvidenceIndex) -> Seen | None:
    """What the verdict needs of the verifier's reading."""
    verification = examined.verification
    if verification is None:
        return None
    view, text = examined.view, examined.view.text
    told = [
        text[start:end]
        for start, end in verification.unsupported(text)
        if any(view.terms[at] in view.content for at in tokens_within(view.starts, start, end))
    ]
    return Seen(
        verification.contradiction,
        Source(evidence).sentence(verification.contradicting).evidence,
        tuple(told),
    )
