"""From a model's answers to judgements: resolves ids, and turns sentence numbers into quotes or drops
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from guardrail.events import ClaimPart, Verdict
from guardrail.judges.llm.prompt import Prompt
from guardrail.judges.llm.reply import Answer
from guardrail.verdicts import Judgement, unverified

# How far full confidence in a verdict moves the probability of support away from 1/2.
_SWING: Final = {
    Verdict.SUPPORTED: 0.5,
    Verdict.PARTIALLY_SUPPORTED: -0.1,
    Verdict.UNSUPPORTED: -0.4,
    Verdict.CONTRADICTED: -0.5,
}

UNQUOTED_FACTOR: Final = 0.5
"""What is left of the confidence in a SUPPORTED that names no sentence it could rest on.

It is worth less, but models are right more often than not: half keeps support at or below 0.75, where rules
can catch it.
"""
_UNQUOTED: Final = "No sentence that was named for it stands in the contexts."
PARTIAL: Final = "Judged by excerpts of the contexts."
_SUPPORTING: Final = frozenset({Verdict.SUPPORTED, Verdict.PARTIALLY_SUPPORTED})


def support_of(verdict: Verdict, confidence: float) -> float | None:
    """The probability that a claim is supported, from a verdict and the model's confidence in it.

    ``1/2 + swing(verdict) * confidence``: zero confidence says nothing, whatever the verdict; full confidence
    gives 1.0 for SUPPORTED, 0.4 for PARTIALLY_SUPPORTED (a part of it is not), 0.1 for UNSUPPORTED (the model
    may have overlooked it) and 0.0 for CONTRADICTED. Monotone and fixed, not yet fitted to data.
    """
    swing = _SWING.get(verdict)
    return None if swing is None else round(0.5 + swing * confidence, 6)


def without_contexts(claim_id: str, judge: str) -> Judgement:
    """The judgement where there are no contexts, and nobody is asked."""
    return Judgement(
        claim_id,
        Verdict.UNSUPPORTED,
        1.0,
        0.0,
        judge,
        reasoning="There are no contexts to support it.",
        attempts=0,
    )


def uncovered(claim_ids: Iterable[str], judge: str) -> list[Judgement]:
    """The judgements on claims that could not be asked for."""
    return [
        unverified(claim_id, judge, "no passage for this claim fits into max_context_chars; raise it")
        for claim_id in sorted(claim_ids)
    ]


def dropped_quotes(answer: Answer, prompt: Prompt) -> int:
    """How many sentences were named as evidence that the model was not shown."""
    return sum(number not in prompt.shown for number in answer.evidence)


def settle(answer: Answer, prompt: Prompt, judge: str) -> Judgement | None:
    """The judgement from an answer; None if its claim was not asked for. Cheap: a few slices."""
    claim_id = prompt.claim_ids.get(answer.label)
    if claim_id is None:
        return None
    if answer.problem:
        return unverified(claim_id, judge, prompt.fence.scrub(answer.problem))
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
        judge,
        evidence,
        _conflicts(answer, prompt) if answer.verdict in _SUPPORTING else (),
        " ".join(notes),
        tuple(
            ClaimPart(text=_sayable(prompt.fence.scrub(part.text)), verdict=part.verdict)
            for part in answer.parts
        ),
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
