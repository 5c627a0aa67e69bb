"""Real answers of real models, with what people said of each of their sentences.

Two forms are read, told apart by their labels in ``metadata.labels`` of the ``response`` events: those of
LFQA-Verification (``span``, ``label``: the majority of three votes) and those of ExpertQA (``text``,
``support``). Texts are hostile input like any other: a label whose place can't be found is left out.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from guardrail.events import Response, Span

SUPPORTED: Final = frozenset(("supported", "Complete"))
"""What both sets call a sentence that the sources say wholly."""
_UNRATED: Final = (None, "N/A")


@dataclass(frozen=True, slots=True)
class Label:
    """What people said of one stretch of an answer; ``label`` None: they did not rate it."""

    span: Span
    label: str | None


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """An answer and the labels whose place in it is known; ``share`` counts the others, too."""

    response: Response
    labels: tuple[Label, ...]
    share: float | None
    """Of the rated sentences those that are supported, 0..1; None where none is rated."""

    @property
    def group(self) -> str:
        """``all supported``, ``less than half`` or ``others``."""
        if self.share is None:
            return "others"
        return "all supported" if self.share == 1.0 else "less than half" if self.share < 0.5 else "others"

    def label_of(self, span: Span) -> str | None:
        """The label of the sentence that holds most of ``span``; None where none does, or it isn't rated."""
        shared = [(_overlap(label.span, span), label.label) for label in self.labels]
        most, label = max(shared, key=lambda pair: pair[0], default=(0, None))
        return label if most > 0 else None


def read_answers(path: Path, limit: int | None = None, seed: int = 1) -> list[LabelledAnswer]:
    """The answers of a ``.jsonl`` or ``.jsonl.gz`` in their order, at most ``limit`` drawn with ``seed``.

    Raises OSError where the file can't be read, ValueError where a line is no response with labels.
    """
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = raw.splitlines()
    if limit is not None and limit < len(lines):
        lines = [lines[n] for n in sorted(random.Random(seed).sample(range(len(lines)), limit))]
    return [labelled_answer(json.loads(line)) for line in lines]


def labelled_answer(raw: dict[str, Any]) -> LabelledAnswer:
    """One line of either set. Raises ValueError where it is none."""
    response = Response.model_validate(raw)
    given = response.metadata.get("labels")
    if not isinstance(given, list):
        raise ValueError(f"response {response.response_id!r} has no list metadata.labels")  # noqa: TRY004 - of the file
    told = [label["label"] if "span" in label else label["support"] for label in given]
    rated = [label in SUPPORTED for label in told if label not in _UNRATED]
    spans = _given_spans(given) if given and "span" in given[0] else _found_spans(response.answer, given)
    return LabelledAnswer(
        response,
        tuple(
            Label(span, None if label in _UNRATED else label)
            for span, label in zip(spans, told, strict=True)
            if span is not None
        ),
        sum(rated) / len(rated) if rated else None,
    )


def _given_spans(labels: Iterable[dict[str, Any]]) -> list[Span | None]:
    return [(label["span"][0], label["span"][1]) for label in labels]


def _found_spans(answer: str, labels: Iterable[dict[str, Any]]) -> list[Span | None]:
    """Where the labelled texts stand, each behind the one before if it is there; white space may differ."""
    spans: list[Span | None] = []
    at = 0
    for label in labels:
        words = re.compile(r"\s+".join(map(re.escape, label["text"].split())))
        found = words.search(answer, at) or words.search(answer)
        if found is None or found.start() == found.end():
            spans.append(None)
            continue
        at = found.end()
        spans.append(found.span())
    return spans


def _overlap(one: Sequence[int], other: Sequence[int]) -> int:
    return min(one[1], other[1]) - max(one[0], other[0])
