"""What a reply says of a claim, in whichever form it was written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from guardrail.events import ClaimPart, Verdict
from guardrail.printable import shorten

MAX_REASONING_CHARS: Final = 2_000
MOST_NUMBERS: Final = 10
"""Of sentences that a claim's evidence may name; the settings ask for no more (``max_quotes``)."""
ASSUMED_CONFIDENCE: Final = 0.9
"""In a verdict that says none: none was asked for, or a compact one is not in doubt."""

_SHOWN_CHARS: Final = 40


def shown(word: object) -> str:
    """`` 'WORD'`` for a sentence on what a model wrote in a verdict's place, fit to print and short.

    Empty where it wrote no text.
    """
    text = " ".join(word[: 2 * _SHOWN_CHARS].split()) if isinstance(word, str) else ""
    return f" {shorten(text, _SHOWN_CHARS)!r}" if text else ""


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
