"""FactCG's documents: claims that draw on many sentences of a news text, and texts that lack one relation of
theirs (docs/training.md). Rows of one document are held out together."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from guardrail.evidence.sentences import sentence_spans
from training.examples import DataError
from training.rows import Row, is_held_out

FILE: Final = "factcg-doc.jsonl.gz"
DATASET: Final = "factcg-doc"
_TELLING_WORDS: Final = 8  # of a sentence that no two documents share by chance


def factcg_rows(data: Path) -> list[Row]:
    """The rows of ``FILE`` in a folder, none where it has no such file. Raises DataError."""
    path = data / FILE
    if not path.exists():
        return []
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            raw = [json.loads(line) for line in lines]
            texts = [(each["claim"], tuple(each["contexts"])) for each in raw]
            labels = [each["label"] for each in raw]
            documents = _documents(texts)
    except (OSError, EOFError, KeyError, TypeError, ValueError, zlib.error) as error:
        raise DataError(f"{path}: can't be read ({type(error).__name__}: {error}); copy it again") from error
    return [
        Row(DATASET, contexts, claim, label, held_out=is_held_out(texts[document][0]))
        for (claim, contexts), label, document in zip(texts, labels, documents, strict=True)
    ]


def _documents(texts: Sequence[tuple[str, tuple[str, ...]]]) -> list[int]:
    """For each claim with its contexts a row of the same document: rows that share the claim or a sentence,
    and those that share one with these."""
    found = list(range(len(texts)))

    def root(number: int) -> int:
        while found[number] != number:
            found[number] = found[found[number]]
            number = found[number]
        return number

    seen: dict[str, int] = {}
    for number, (claim, contexts) in enumerate(texts):
        for key in (claim, *_sentences(contexts)):
            first = seen.setdefault("".join(filter(str.isalnum, key)), number)
            found[root(number)] = root(first)
    return [root(number) for number in found]


def _sentences(contexts: Sequence[str]) -> Iterator[str]:
    for text in contexts:
        for start, end in zip(*sentence_spans(text), strict=True):
            if text.count(" ", start, end) >= _TELLING_WORDS:
                yield text[start:end]
