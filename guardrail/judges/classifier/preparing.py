"""A request -> the pairs of each claim. CPU work, off the event loop."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from guardrail.claims.model import Claim
from guardrail.evidence.tokens import STOP_TERMS, words
from guardrail.judges.base import JudgeRequest
from guardrail.judges.classifier.pairs import Pair, PairForm
from guardrail.judges.classifier.settings import MIN_PREMISE_TOKENS, ClassifierSettings
from guardrail.judges.classifier.windows import TokenisedText, Window
from guardrail.verdicts import Judgement, unverified

# Tokens come out a few more or fewer where a window meets the template.
_SLACK = 4


@dataclass(frozen=True, slots=True)
class Prepared:
    """A claim's windows and their pairs, in the same order; ``note`` says what was left out."""

    windows: list[Window]
    pairs: list[Pair]
    note: str = ""


class Preparer:
    """Cuts contexts into windows beside claims."""

    def __init__(self, form: PairForm, settings: ClassifierSettings, judge: str) -> None:
        self._form = form
        self._settings = settings
        self._judge = judge

    def prepare(
        self, request: JudgeRequest, stopped: threading.Event
    ) -> Iterator[tuple[str, Prepared | Judgement]]:
        """The pairs of each claim, or its judgement where it can't be put to the model.

        Ends early when ``stopped`` is set or the deadline has passed.
        """
        plain: list[str] = []
        texts: list[TokenisedText] = []
        for context in request.evidence.contexts:
            if stopped.is_set() or time.monotonic() >= request.deadline:
                return
            # As long as the context's own text, so that spans hold for both.
            plain.append(self._form.plain(context.text))
            texts.append(TokenisedText(plain[-1], *self._form.offsets(plain[-1])))
        by_budget: dict[int, tuple[list[Window], list[set[int]]]] = {}
        for claim_id, claim in request.claims.items():
            if stopped.is_set() or time.monotonic() >= request.deadline:
                return
            hypothesis = self._form.plain(statement(claim))
            budget = self._settings.max_length - self._form.overhead(hypothesis) - _SLACK
            if budget < MIN_PREMISE_TOKENS:
                yield (
                    claim_id,
                    unverified(
                        claim_id, self._judge, "the claim is too long for the model's window (max_length)"
                    ),
                )
                continue
            # Claims of about one length share their windows.
            budget = budget // 16 * 16
            if budget not in by_budget:
                windows = self._windows(texts, budget)
                limited = len(windows) > (self._settings.max_windows_per_claim or len(windows))
                terms = [_terms(plain[w.context][w.start : w.end]) for w in windows] if limited else []
                by_budget[budget] = windows, terms
            windows, note = self._chosen(*by_budget[budget], claim)
            pairs = [Pair(plain[w.context], w.start, w.end, hypothesis) for w in windows]
            yield claim_id, Prepared(windows, pairs, note)

    def _windows(self, texts: list[TokenisedText], budget: int) -> list[Window]:
        return [
            Window(number, start, end)
            for number, text in enumerate(texts)
            for start, end in text.windows(budget, self._settings.overlap_tokens)
        ]

    def _chosen(self, windows: list[Window], terms: list[set[int]], claim: Claim) -> tuple[list[Window], str]:
        """All windows, or those that share most words with the claim; never silently."""
        most = self._settings.max_windows_per_claim
        if most is None or len(windows) <= most:
            return windows, ""
        wanted = _terms(statement(claim))
        ranked = sorted(range(len(windows)), key=lambda at: (-len(wanted & terms[at]), at))
        note = f"Judged by {most} of {len(windows)} windows of the contexts (max_windows_per_claim)."
        return [windows[at] for at in sorted(ranked[:most])], note


def _terms(text: str) -> set[int]:
    terms = {term for _, term, _ in words(text)}
    return terms - STOP_TERMS or terms


def statement(claim: Claim) -> str:
    """What is to follow from the premise: the claim after what it needs to be understood."""
    lead_in = " ".join(claim.lead_in.split())
    text = " ".join(claim.prose.text.split())
    return f"{lead_in} {text}" if lead_in else text
