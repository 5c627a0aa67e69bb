"""What is found out about a claim -> the numbers that the combiner looks at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from guardrail.evidence.index import EvidenceIndex
from guardrail.evidence.tokens import term_of
from guardrail.figures import FigureCheck, State
from guardrail.judges.local.candidates import Candidates
from guardrail.judges.local.claim_view import ClaimView
from guardrail.judges.local.verifier import Reading
from guardrail.judges.local.windows import Window

_SUREST: Final = 0.999  # beyond it, and its like at the other end, log-odds grow no more
_COVERED: Final = 0.75  # of a claim, by a sentence whose denials are counted against the claim's
_NEGATORS: Final = frozenset(
    term_of(word)
    for word in """not no non never without neither nor none nobody nothing nowhere cannot except hardly
    barely unable unless""".split()  # noqa: SIM905
)

WORDS: Final = (
    "share",
    "share_missing_most",
    "best_sentence",
    "denied",
    "words",
    "figures",
    "figures_absent",
    "figures_conflicting",
)
"""Of words and figures alone, known whether or not the verifier reads."""
READ: Final = (
    "support",
    "support_first",
    "support_mean",
    "contradiction",
    "contradiction_at_best",
    "unsupported_most",
    "unsupported_mean",
    "support_share",
)
"""Of what the verifier reads."""
FEATURES: Final = (*READ, *WORDS)


@dataclass(frozen=True, slots=True)
class Read:
    """A window and what the verifier says of the claim beside it."""

    window: Window
    reading: Reading


def word_features(
    view: ClaimView, found: Candidates, figures: Sequence[FigureCheck], evidence: EvidenceIndex
) -> dict[str, float]:
    """Those of ``WORDS``; shares are 0..1, by rarity."""
    missing = [weight for term, weight in view.content.items() if term not in found.present]
    strong = [check for check in figures if not check.figure.name]
    return {
        "share": view.share(found.present),
        "share_missing_most": max(missing, default=0.0),
        "best_sentence": max((match.coverage for match in found.sentences), default=0.0),
        "denied": float(_denied(view, found, evidence)),
        "words": math.log1p(len(view.terms)),
        "figures": float(bool(strong)),
        "figures_absent": float(any(check.state is State.ABSENT for check in strong)),
        "figures_conflicting": float(any(check.state is State.CONFLICT for check in strong)),
    }


def _denied(view: ClaimView, found: Candidates, evidence: EvidenceIndex) -> bool:
    """Whether the sentence that has most of the claim denies where the claim doesn't, or the reverse, and no
    sentence that has as much says it as the claim does."""
    layout = evidence.layout
    own = _denials(view.terms)
    best = max((match.coverage for match in found.sentences), default=0.0)
    if best < _COVERED:
        return False
    for match in found.sentences:
        if match.coverage >= best - 0.05:
            first, last = layout.sentences.first[match.number], layout.sentences.last[match.number]
            if (_denials(layout.terms[first:last]) - own) % 2 == 0:
                return False
    return True


def _denials(terms: Sequence[int]) -> int:
    return sum(term in _NEGATORS for term in terms)


def read_features(read: Sequence[Read], share: float) -> dict[str, float]:
    """Those of ``READ``, of at least one window; probabilities enter as log-odds. ``share`` is that of
    ``WORDS``."""
    best = best_of(read).reading
    marks = [unsupported for _, _, unsupported in best.tokens]
    support = log_odds(best.support)
    return {
        "support": support,
        "support_first": log_odds(read[0].reading.support),
        "support_mean": sum(log_odds(each.reading.support) for each in read) / len(read),
        "contradiction": log_odds(max(each.reading.contradiction for each in read)),
        "contradiction_at_best": log_odds(best.contradiction),
        "unsupported_most": max(marks, default=0.0),
        "unsupported_mean": sum(marks) / len(marks) if marks else 0.0,
        "support_share": support * share,
    }


def best_of(read: Sequence[Read]) -> Read:
    """The window that supports the claim most."""
    return max(read, key=lambda each: each.reading.support)


def log_odds(p: float) -> float:
    """``ln(p / (1 - p))``, within those of 0.001 and 0.999."""
    p = min(max(p, 1.0 - _SUREST), _SUREST)
    return math.log(p / (1.0 - p))
