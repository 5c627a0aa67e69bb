"""From what a model answered to judgements: ids resolved, quotes found in their contexts or dropped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from guardrail.events import Evidence, Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.base import Judgement, unverified
from guardrail.judges.llm.prompt import Prompt
from guardrail.judges.llm.reply import Answer
from guardrail.judges.llm.settings import LlmJudgeSettings

# How far full confidence in a verdict moves the probability of support away from 1/2.
_SWING: Final = {
    Verdict.SUPPORTED: 0.5,
    Verdict.PARTIALLY_SUPPORTED: -0.1,
    Verdict.UNSUPPORTED: -0.4,
    Verdict.CONTRADICTED: -0.5,
}

# A SUPPORTED whose quotes are all invented is worth less, but models that paraphrase instead of copying are
# right more often than not: half the confidence keeps support at or below 0.75, where rules can catch it.
_UNQUOTED_FACTOR: Final = 0.5
_UNQUOTED: Final = "No quote that was given for it stands in the contexts."
_PARTIAL: Final = "Judged by excerpts: the contexts are longer than max_context_chars."


def support_of(verdict: Verdict, confidence: float) -> float | None:
    """The probability that a claim is supported, from a verdict and the model's confidence in it.

    ``1/2 + swing(verdict) * confidence``: no confidence says nothing, whatever the verdict; full confidence
    makes 1.0 for SUPPORTED, 0.4 for PARTIALLY_SUPPORTED (a part of it is not), 0.1 for UNSUPPORTED (it may
    stand where the model overlooked it) and 0.0 for CONTRADICTED. Monotone and fixed, not yet fitted to data.
    """
    swing = _SWING.get(verdict)
    return None if swing is None else round(0.5 + swing * confidence, 6)


def settle(
    answers: Sequence[Answer], prompt: Prompt, index: EvidenceIndex, settings: LlmJudgeSettings, judge: str
) -> tuple[list[Judgement], int]:
    """The judgements on claims that were asked for, and the number of quotes dropped.

    Answers for ids that weren't asked are left out; so are claims without an answer. CPU work: quotes are
    searched in all contexts.
    """
    judgements = [
        unverified(claim_id, judge, "no passage for this claim fits into max_context_chars; raise it")
        for claim_id in sorted(prompt.uncovered)
    ]
    dropped = 0
    for answer in answers:
        claim_id = prompt.claim_ids.get(answer.label)
        if claim_id is None:
            continue
        if answer.problem:
            judgements.append(unverified(claim_id, judge, answer.problem))
            continue
        evidence = _located(answer, prompt, index)
        dropped += len(answer.quotes) - len(evidence)
        judgements.append(_judgement(claim_id, answer, evidence, prompt, settings, judge))
    return judgements, dropped


def _located(answer: Answer, prompt: Prompt, index: EvidenceIndex) -> list[Evidence]:
    found = (index.locate(quote.text, prompt.context_ids.get(quote.document)) for quote in answer.quotes)
    return [evidence for evidence in found if evidence is not None]


def _judgement(
    claim_id: str,
    answer: Answer,
    evidence: list[Evidence],
    prompt: Prompt,
    settings: LlmJudgeSettings,
    judge: str,
) -> Judgement:
    confidence = answer.confidence
    notes = [prompt.fence.scrub(answer.reasoning)] if answer.reasoning else []
    if answer.verdict is Verdict.SUPPORTED and not evidence:
        if settings.unquoted_support == "unverified":
            return unverified(claim_id, judge, f"SUPPORTED, but unfounded: {_UNQUOTED}")
        confidence *= _UNQUOTED_FACTOR
        notes.append(_UNQUOTED)
    if prompt.partial:
        notes.append(_PARTIAL)
    conflicts: tuple[str, ...] = ()
    if answer.verdict in {Verdict.SUPPORTED, Verdict.PARTIALLY_SUPPORTED}:
        known = (prompt.context_ids.get(label) for label in answer.contradicted_by)
        conflicts = tuple(dict.fromkeys(context_id for context_id in known if context_id is not None))
    return Judgement(
        claim_id,
        answer.verdict,
        confidence,
        support_of(answer.verdict, confidence),
        judge,
        tuple(dict.fromkeys(evidence)),
        conflicts,
        " ".join(notes),
    )
