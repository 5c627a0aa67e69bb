"""What a reply says of a claim, in whichever form it was written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from guardrail.events import ClaimPart, Verdict

MAX_REASONING_CHARS: Final = 2_000
MOST_NUMBERS: Final = 10
"""Of sentences that a claim's evidence may name; the settings ask for no more (``max_quotes``)."""
ASSUMED_CONFIDENCE: Final = 0.9
"""In a verdict that says none: none was asked for, or a compact one is not in doubt."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a reply says of one claim, by the claim's short id. ``problem`` says why it can't be used.

    ``evidence`` and ``against`` are numbers of sentences as they were given, which may not exist; 0, which
    never does, stands for what is no number.
    """

    label: str
    verdict: Verdict = Verdict.UNVERIFIED
    confidence: float = 0.0
    evidence: tuple[int, ...] = ()
    against: tuple[int, ...] = ()
    reasoning: str = ""
    parts: tuple[ClaimPart, ...] = ()
    problem: str = ""
