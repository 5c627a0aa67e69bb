"""The published faithfulness scores, each computed from the same verdicts.

What another system's judge says of a statement stands here in the verdict on a claim, or on a part of one:
``statements`` says which, and ``MEANING`` is the whole translation. Only the judge and the cut are other ones
than the original's; from there on the arithmetic is the original's, so that its judge's 0s and 1s give the
same number here.

UNVERIFIED is not an answer of a judge, and the originals have no word for it. Such claims are left out, as if
the judge had not been asked, or count as not supported (``unverified="fail"``). If no claim is left because
none could be checked, there is no score. A score over part of the answer says so in its ``reason``.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Literal, NamedTuple

from guardrail.evals.results import ScoreValue
from guardrail.events import ClaimVerdict, ResponseVerdict, Severity, Verdict
from guardrail.scoring import DEFAULT_CREDITS, DEFAULT_WEIGHTS, Formula, ScoreKeeper

Unverified = Literal["leave_out", "fail"]
"""What UNVERIFIED claims do in a score: they are left out, or count as not supported."""


class MastraAnswer(StrEnum):
    """What Mastra's judge says of a claim."""

    YES = "yes"
    NO = "no"
    UNSURE = "unsure"


class Meaning(NamedTuple):
    """One of our verdicts in the words of other systems; None: they have no word for it."""

    binary: Literal[0, 1] | None
    """Haystack's ``statement_scores``, Ragas' ``verdict``, and the binary variant of the prompt."""
    mastra: MastraAnswer | None
    passes: bool | None
    """Whether an answer of such claims alone passes in LlamaIndex."""


MEANING: Final[Mapping[Verdict, Meaning]] = {
    Verdict.SUPPORTED: Meaning(1, MastraAnswer.YES, True),
    Verdict.PARTIALLY_SUPPORTED: Meaning(0, MastraAnswer.UNSURE, False),
    Verdict.UNSUPPORTED: Meaning(0, MastraAnswer.UNSURE, False),
    Verdict.CONTRADICTED: Meaning(0, MastraAnswer.NO, False),
    Verdict.UNVERIFIED: Meaning(None, None, None),
}


class ScoredStatement(NamedTuple):
    """What published scores count; ``claim`` has its severity, its evidence and the reason."""

    text: str
    verdict: Verdict
    claim: ClaimVerdict

    @property
    def reasoning(self) -> str:
        """The claim's; a supported part has none if that speaks of what is wrong with others."""
        spoken_of = self.verdict is not Verdict.SUPPORTED or self.claim.verdict is Verdict.SUPPORTED
        return self.claim.reasoning if spoken_of else ""


def statements(verdict: ResponseVerdict) -> list[ScoredStatement]:
    """The statements of an answer, in its order: the parts of a claim that has any, else the claim.

    A claim that is not supported although all its parts are is one statement: what is wrong lies between the
    parts, and a score must not lose it. So is one that is UNVERIFIED.
    """
    found: list[ScoredStatement] = []
    for claim in verdict.claims:
        told = {part.verdict for part in claim.parts}
        apart = claim.verdict is Verdict.SUPPORTED or told - {Verdict.SUPPORTED, Verdict.UNVERIFIED}
        if apart and claim.verdict is not Verdict.UNVERIFIED and claim.parts:
            found += (ScoredStatement(part.text, part.verdict, claim) for part in claim.parts)
        else:
            found.append(ScoredStatement(claim.text, claim.verdict, claim))
    return found


_NO_CLAIMS: Final = "the answer states nothing that can be checked"
_COUNTS_AS_0: Final = f"{_NO_CLAIMS}, which counts as 0 in this score"
_NONE_CHECKED: Final = "no claim could be checked"
_WEIGHTLESS: Final = "the weights of all checked claims are 0"
_NO_RECORD: Final = "the verdict was stored without its claims"


@dataclass(frozen=True, slots=True)
class ScoreOptions:
    """``scale`` is Mastra's, its highest score. ``formula``, ``weights`` and ``credits`` are those of
    ``severity_weighted``; without any, it is what the verdict's own policy calculated.
    """

    unverified: Unverified = "leave_out"
    scale: float = 1.0
    formula: Formula | None = None
    weights: Mapping[Severity, float] | None = None
    credits: Mapping[Verdict, float] | None = None

    def __post_init__(self) -> None:
        if self.unverified not in ("leave_out", "fail"):
            raise ValueError(f"unverified: {self.unverified!r} is neither 'leave_out' nor 'fail'")
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise ValueError(f"scale: {self.scale!r} is not a positive number; give Mastra's highest score")


# -------------------------------------------------------------------- arithmetic of the originals


def strict_score(verdicts: Sequence[Verdict]) -> float | None:
    """SUPPORTED / total: the four-verdict prompt ("RAG Faithfulness Evaluation Prompt", of 2026-02-25, its
    ``faithfulness_score``), calculated here and not by the model. None of no claims: the prompt doesn't say.
    """
    return sum(verdict is Verdict.SUPPORTED for verdict in verdicts) / len(verdicts) if verdicts else None


def haystack_score(statement_scores: Sequence[int]) -> float:
    """The mean of the statements' 0s and 1s, and 0 of no statements: haystack-ai 3.4.1,
    ``FaithfulnessEvaluator._postprocess_results`` (haystack/components/evaluators/faithfulness.py).
    """
    return sum(statement_scores) / len(statement_scores) if statement_scores else 0.0


def ragas_score(verdicts: Sequence[int]) -> float | None:
    """The share of statements with verdict 1: ragas 0.4.3, ``Faithfulness._compute_score``
    (ragas/metrics/collections/faithfulness/metric.py, and the same in ragas/metrics/_faithfulness.py). It is
    NaN of no statements there, None here.
    """
    return sum(1 if verdict else 0 for verdict in verdicts) / len(verdicts) if verdicts else None


def mastra_score(verdicts: Sequence[str], scale: float = 1.0) -> float:
    """``yes / verdicts * scale`` with two decimals, and 0 of no verdicts: @mastra/evals 1.10.2,
    ``createFaithfulnessScorer``'s ``generateScore`` (src/scorers/llm/faithfulness/index.ts).
    """
    if not verdicts:
        return 0.0
    return _two_decimals(sum(verdict == MastraAnswer.YES for verdict in verdicts) / len(verdicts) * scale)


def _two_decimals(number: float) -> float:
    """As ``roundToTwoDecimals`` does (@mastra/evals 1.10.2, src/scorers/utils.ts):
    ``Math.round((num + Number.EPSILON) * 100) / 100``. JavaScript rounds halves up, Python to even.
    """
    scaled = (number + sys.float_info.epsilon) * 100
    below = math.floor(scaled)
    return (below + 1 if scaled - below >= 0.5 else below) / 100


def llama_index_score(passing: bool) -> float:
    """1.0 of an answer that passes as a whole, else 0.0: llama-index-core 0.14.25,
    ``FaithfulnessEvaluator.aevaluate`` (llama_index/core/evaluation/faithfulness.py).
    """
    return 1.0 if passing else 0.0


# ---------------------------------------------------------------------- scores of our verdicts


Score = Callable[[ResponseVerdict, ScoreOptions], ScoreValue]


@dataclass(frozen=True, slots=True)
class _Counted:
    """The verdicts that count, and how many don't because they are UNVERIFIED."""

    verdicts: Sequence[Verdict]
    left_out: int
    units: str
    whole: int = 0
    """Claims that count as one statement because their parts could not be judged."""

    @property
    def note(self) -> str | None:
        """What a reader of a score over part of the claims has to know."""
        notes = []
        if self.left_out:
            of = f"{self.left_out} of {len(self.verdicts) + self.left_out} {self.units}"
            notes.append(f"{of} could not be checked and {_are(self.left_out)} left out")
        if self.whole:
            are = "1 claim counts" if self.whole == 1 else f"{self.whole} claims count, each,"
            notes.append(f"{are} as one statement: the parts could not be judged")
        return "; ".join(notes) or None


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _severity_weighted(verdict: ResponseVerdict, options: ScoreOptions) -> ScoreValue:
    """``sum(weight * credit) / sum(weight)`` over the checked claims; ours (``guardrail/scoring.py``).

    It is the verdict's own ``score``, with its policy's formula and weights, unless the options give others
    or have UNVERIFIED claims fail; what they leave out is then as in the default policy.
    """
    claims = _claims(verdict, options)
    if not claims.verdicts:
        return _undefined(_NONE_CHECKED if claims.left_out else _NO_CLAIMS)
    given = (options.formula, options.weights, options.credits)
    fails = options.unverified == "fail" and verdict.counts.unverified > 0
    if not fails and all(each is None for each in given):
        reason = claims.note if verdict.score is not None else _WEIGHTLESS
        return ScoreValue(value=verdict.score, reason=reason)
    if not verdict.claims:
        return _undefined(f"{_NO_RECORD}, and with them their severities; its own score is {verdict.score}")
    keeper = ScoreKeeper(
        options.formula or Formula.SEVERITY_WEIGHTED,
        DEFAULT_WEIGHTS if options.weights is None else options.weights,
        DEFAULT_CREDITS if options.credits is None else options.credits,
    )
    for claim in verdict.claims:
        if claim.verdict is Verdict.UNVERIFIED and options.unverified == "fail":
            keeper.add(claim.severity, Verdict.UNSUPPORTED, 0.0)
        else:
            keeper.add(claim.severity, claim.verdict, claim.support)
    if keeper.score is None:
        return _undefined(_WEIGHTLESS)
    return ScoreValue(value=keeper.score, reason=claims.note)


def _of_verdicts(figure: Callable[[Sequence[Verdict], ScoreOptions], float | None], of_nothing: str) -> Score:
    """The score that ``figure`` gives of statements; ``of_nothing`` is said of an answer without claims."""

    def score(verdict: ResponseVerdict, options: ScoreOptions) -> ScoreValue:
        told = _statements(verdict, options)
        if not told.verdicts and told.left_out:
            return _undefined(_NONE_CHECKED)
        value = figure(told.verdicts, options)
        return ScoreValue(value=value, reason=told.note if told.verdicts else of_nothing)

    return score


def _llama_index(verdict: ResponseVerdict, options: ScoreOptions) -> ScoreValue:
    """Passes if every claim is supported. An unsupported claim fails the answer whatever the others are;
    without one, a claim that could not be checked leaves it open.
    """
    claims = _claims(verdict, options)
    failing = sum(not MEANING[each].passes for each in claims.verdicts)
    if not failing and claims.left_out:
        are = _are(claims.left_out)
        return _undefined(f"no claim fails it, but {claims.left_out} {are} unverified: it may not pass")
    if not claims.verdicts:
        return _undefined(f"{_NO_CLAIMS}; LlamaIndex asks its model all the same")
    return ScoreValue(value=llama_index_score(not failing), passed=not failing)


SCORES: Final[Mapping[str, Score]] = {
    "severity_weighted": _severity_weighted,
    "strict": _of_verdicts(lambda verdicts, _: strict_score(verdicts), _NO_CLAIMS),
    "haystack": _of_verdicts(lambda verdicts, _: haystack_score(as_binary(verdicts)), _COUNTS_AS_0),
    "ragas": _of_verdicts(
        lambda verdicts, _: ragas_score(as_binary(verdicts)), f"{_NO_CLAIMS}, which is NaN in Ragas"
    ),
    "mastra": _of_verdicts(
        lambda verdicts, options: mastra_score(as_mastra(verdicts), options.scale), _COUNTS_AS_0
    ),
    "llama_index": _llama_index,
}
"""Every score by its name."""
OF_CLAIMS: Final = frozenset({"severity_weighted", "llama_index"})
"""The scores that count claims, since a part has no severity, and an answer passes only if everything holds.
The others count statements."""


def score_value(
    name: str,
    verdict: ResponseVerdict,
    *,
    unverified: Unverified = "leave_out",
    scale: float = 1.0,
    formula: Formula | None = None,
    weights: Mapping[Severity, float] | None = None,
    credits: Mapping[Verdict, float] | None = None,
) -> ScoreValue:
    """The score called ``name`` of an answer, as ``ScoreOptions`` say. Raises ValueError for a wrong one."""
    return _score(name)(verdict, ScoreOptions(unverified, scale, formula, weights, credits))


def all_scores(
    verdict: ResponseVerdict, names: Iterable[str] = SCORES, options: ScoreOptions | None = None
) -> dict[str, ScoreValue]:
    """Several scores of one answer, by name. Raises ValueError for an unknown name."""
    return {name: _score(name)(verdict, options or ScoreOptions()) for name in names}


def _score(name: str) -> Score:
    if name not in SCORES:
        raise ValueError(f"score {name!r} is unknown; there are {', '.join(SCORES)}")
    return SCORES[name]


def as_binary(verdicts: Iterable[Verdict]) -> list[int]:
    """The verdicts as 0 and 1, without those that are UNVERIFIED."""
    return [meaning.binary for each in verdicts if (meaning := MEANING[each]).binary is not None]


def as_mastra(verdicts: Iterable[Verdict]) -> list[MastraAnswer]:
    """The verdicts as Mastra's judge would say them, without those that are UNVERIFIED."""
    return [meaning.mastra for each in verdicts if (meaning := MEANING[each]).mastra is not None]


def _claims(verdict: ResponseVerdict, options: ScoreOptions) -> _Counted:
    """From the counts, which a verdict has even if it was too large for its claims."""
    counts = {each: getattr(verdict.counts, each.lower()) for each in Verdict}
    return _counted([each for each, count in counts.items() for _ in range(count)], options, "claims")


def _statements(verdict: ResponseVerdict, options: ScoreOptions) -> _Counted:
    if not any(claim.parts for claim in verdict.claims):
        return _claims(verdict, options)
    counted = _counted([each.verdict for each in statements(verdict)], options, "statements")
    open_ = [{part.verdict for part in claim.parts} == {Verdict.UNVERIFIED} for claim in verdict.claims]
    return replace(counted, whole=sum(open_))


def _counted(verdicts: Sequence[Verdict], options: ScoreOptions, units: str) -> _Counted:
    """No score depends on the order."""
    checked = [each for each in verdicts if each is not Verdict.UNVERIFIED]
    unverified = len(verdicts) - len(checked)
    if options.unverified == "fail":
        return _Counted([*checked, *[Verdict.UNSUPPORTED] * unverified], 0, units)
    return _Counted(checked, unverified, units)


def _undefined(reason: str) -> ScoreValue:
    return ScoreValue(value=None, reason=reason)
