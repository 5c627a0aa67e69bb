"""From the scores of a claim's windows to its judgement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from guardrail.events import Evidence, Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.evidence.sentences import sentence_spans
from guardrail.evidence.tokens import STOP_TERMS, words
from guardrail.judges.classifier.labels import Scores
from guardrail.judges.classifier.settings import ClassifierSettings
from guardrail.judges.classifier.windows import Window
from guardrail.verdicts import Judgement

_MAX_QUOTE_CHARS: Final = 600


def settle(
    claim_id: str,
    claim: str,
    windows: Sequence[Window],
    scores: Sequence[Scores],
    index: EvidenceIndex,
    settings: ClassifierSettings,
    judge: str,
    note: str,
    *,
    tells_contradiction: bool = True,
) -> Judgement:
    """The judgement on one claim by all its windows; ``note`` is appended to what it says for itself.

    Support is that of the window that supports most: a claim needs one source. A contradiction counts where
    it reaches ``contradicted_at`` and no window supports the claim more; where one does, the contexts that
    contradict are named as conflicting. Without ``tells_contradiction`` the model has no label for it.
    """
    best = max(range(len(scores)), key=lambda number: scores[number].support)
    worst = max(range(len(scores)), key=lambda number: scores[number].contradiction)
    support, contradiction = round(scores[best].support, 6), round(scores[worst].contradiction, 6)
    partial_at = settings.partially_supported_at
    conflicts: tuple[str, ...] = ()
    if contradiction >= settings.contradicted_at and contradiction > support:
        verdict, confidence, decisive = Verdict.CONTRADICTED, contradiction, worst
        support = min(support, round(1.0 - contradiction, 6))
    else:
        if support >= settings.supported_at:
            verdict = Verdict.SUPPORTED
        elif partial_at is not None and support >= partial_at:
            verdict = Verdict.PARTIALLY_SUPPORTED
        else:
            verdict = Verdict.UNSUPPORTED
        decisive = best
        confidence = support if verdict is Verdict.SUPPORTED else max(support, 1.0 - support)
        if verdict is not Verdict.UNSUPPORTED:
            conflicts = _conflicts(windows, scores, index, settings)
    evidence: tuple[Evidence, ...] = ()
    if verdict is not Verdict.UNSUPPORTED:
        evidence = (quote(windows[decisive], claim, index),)
    return Judgement(
        claim_id,
        verdict,
        confidence,
        support,
        judge,
        evidence,
        conflicts,
        note,
        contradiction=contradiction if tells_contradiction else None,
    )


def quote(window: Window, claim: str, index: EvidenceIndex) -> Evidence:
    """The sentence of ``window`` that shares most words with ``claim``, the first one of equals.

    The model says which window, not which of its words: the quote is a pointer for people. A sentence longer
    than 600 characters is cut there.
    """
    context = index.contexts[window.context]
    text = context.text[window.start : window.end]
    wanted = {term for _, term, _ in words(claim)}
    wanted = wanted - STOP_TERMS or wanted
    found, most = (0, len(text)), -1
    for start, end in zip(*sentence_spans(text), strict=True):
        shared = len(wanted & {term for _, term, _ in words(text[start:end])})
        if shared > most:
            found, most = (start, end), shared
    start, end = window.start + found[0], window.start + min(found[1], found[0] + _MAX_QUOTE_CHARS)
    return Evidence(context_id=context.id, quote=context.text[start:end], span=(start, end))


def _conflicts(
    windows: Sequence[Window], scores: Sequence[Scores], index: EvidenceIndex, settings: ClassifierSettings
) -> tuple[str, ...]:
    ids = (
        index.contexts[window.context].id
        for window, score in zip(windows, scores, strict=True)
        if score.contradiction >= settings.contradicted_at and score.contradiction > score.support
    )
    return tuple(dict.fromkeys(ids))
