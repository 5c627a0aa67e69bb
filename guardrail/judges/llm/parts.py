"""What the verdicts on the parts of a claim add up to, and which of them decide it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from guardrail.events import ClaimPart, Verdict
from guardrail.judges.llm.answer import MAX_REASONING_CHARS, Answer

_MOST_TOLD: Final = 3
_AGAINST: Final = frozenset({Verdict.UNSUPPORTED, Verdict.CONTRADICTED})


def together(parts: Sequence[ClaimPart], *, binary: bool) -> Verdict:
    """The verdict on a claim from those on its parts, of which there is one at least."""
    given = {part.verdict for part in parts}
    if Verdict.CONTRADICTED in given:
        return Verdict.CONTRADICTED
    if given == {Verdict.SUPPORTED}:
        return Verdict.SUPPORTED
    if binary or given == {Verdict.UNSUPPORTED}:
        return Verdict.UNSUPPORTED
    return Verdict.PARTIALLY_SUPPORTED


def decided(answer: Answer, said: Verdict | None) -> Answer:
    """The answer whose verdict its parts made, where the model ``said`` another of the whole.

    Its reason is that of what it said, so the parts that decide are told instead. Neither are the sentences
    that it named for a support proof of the opposite. They are no loss: parts name none of their own.
    """
    if said is answer.verdict:
        return answer
    against = answer.verdict in _AGAINST and said not in _AGAINST
    return replace(
        answer,
        reasoning=_reason(answer.verdict, answer.parts)[:MAX_REASONING_CHARS],
        evidence=() if against else answer.evidence,
    )


def _reason(verdict: Verdict, parts: Sequence[ClaimPart]) -> str:
    deciding = [part for part in parts if part.verdict is verdict]
    deciding = deciding or [part for part in parts if part.verdict is not Verdict.SUPPORTED]
    told = [f"{part.verdict.value}: {part.text}" for part in deciding[:_MOST_TOLD]]
    more = len(deciding) - len(told)
    return "Of its parts, " + "; ".join([*told, *([f"and {more} more"] if more else [])])
