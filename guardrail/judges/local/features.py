"""What is found out about a claim -> the numbers that the combiner looks at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from guardrail.evidence.tokens import words
from guardrail.figures import FigureCheck, State
from guardrail.judges.local.candidates import Candidates
from guardrail.judges.local.claim_view import ClaimView
from guardrail.judges.local.verifier import Reading
from guardrail.judges.local.windows import Window

_SUREST: Final = 0.999  # beyond it, and its like at the other end, log-odds grow no more

WORDS: Final = ("share", "figures_absent", "figures_conflicting")
"""Of words and figures alone, known whether or not the verifier reads."""
READ: Final = ("support", "support_mean", "contradiction", "unsupported_most", "unsupported_mean")
"""Of what the verifier reads."""
FEATURES: Final = (*READ, *WORDS)


@dataclass(frozen=True, slots=True)
class Read:
    """A window and what the verifier says of the claim beside it."""

    window: Window
    reading: Reading


def word_features(view: ClaimView, found: Candidates, figures: Sequence[FigureCheck]) -> dict[str, float]:
    """Those of ``WORDS``; ``share`` is by rarity, 0..1, with the words of figures that the sources back."""
    strong = [check for check in figures if not check.figure.name]
    backed = {
        term
        for check in figures
        if check.state in (State.FOUND, State.DERIVED, State.ECHOED)
        for _, term, _ in words(check.figure.text)
    }
    return {
        "share": view.share(found.present | backed),
        "figures_absent": float(any(check.state is State.ABSENT for check in strong)),
        "figures_conflicting": float(any(check.state is State.CONFLICT for check in strong)),
    }


def read_features(read: Sequence[Read]) -> dict[str, float]:
    """Those of ``READ``, of at least one window; probabilities of the claim enter as log-odds."""
    best = best_of(read).reading
    marks = [unsupported for _, _, unsupported in best.tokens]
    return {
        "support": log_odds(best.support),
        "support_mean": sum(log_odds(each.reading.support) for each in read) / len(read),
        "contradiction": log_odds(max(each.reading.contradiction for each in read)),
        "unsupported_most": max(marks, default=0.0),
        "unsupported_mean": sum(marks) / len(marks) if marks else 0.0,
    }


def best_of(read: Sequence[Read]) -> Read:
    """The window that supports the claim most."""
    return max(read, key=lambda each: each.reading.support)


def log_odds(p: float) -> float:
    """``ln(p / (1 - p))``, within those of 0.001 and 0.999."""
    p = min(max(p, 1.0 - _SUREST), _SUREST)
    return math.log(p / (1.0 - p))
