"""Rows made from the documents of the training pool: minimal pairs in passages of real length."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

from guardrail.evidence.sentences import sentence_spans
from training.perturb import NEGATIVE_KINDS, change, claim_sentences, names_of, reworded
from training.rows import LICENCES, Row, is_held_out

_CHUNK_WORDS: Final = 220
_CONTEXTS: Final = 5
_LEAST_WORDS: Final = 60


def documents(rows: Iterable[Row], *, held_out: bool) -> list[str]:
    """The distinct long contexts of rows that a shipped model may be fitted on; a fifth of them is held
    out."""
    found: dict[str, None] = {}
    for row in rows:
        if row.dataset in LICENCES and row.held_out in (None, held_out):
            for text in row.contexts:
                if text.count(" ") >= _LEAST_WORDS and is_held_out(text) == held_out:
                    found[text] = None
    return list(found)


def minimal_pairs(texts: list[str], *, per_document: int, seed: int) -> Iterator[Row]:
    """For sentences of the texts: as they stand, reworded, with one detail changed, and with no source.

    Data sets are named ``synthetic-<kind>``; labels are supported, contradicted and unsupported.
    """
    random_ = random.Random(seed)
    for text in texts:
        names = names_of(text)
        contexts = _contexts(text, texts, random_)
        shown = [" ".join(context.split()) for context in contexts]  # of a long text not all of it
        sentences = [s for s in claim_sentences(text) if any(s in context for context in shown)]
        for sentence in random_.sample(sentences, min(per_document, len(sentences))):
            yield Row("synthetic-verbatim", contexts, sentence, "supported")
            if other := reworded(sentence, random_):
                yield Row("synthetic-reworded", contexts, other, "supported")
            for kind in NEGATIVE_KINDS:
                changed = change(kind, sentence, names, random_)
                if changed and not any(changed in context for context in contexts):
                    yield Row(f"synthetic-{kind}", contexts, changed, "contradicted")
            without = tuple(" ".join(c.split()).replace(sentence, " ") for c in contexts)
            yield Row("synthetic-absent", without, sentence, "unsupported")


def _contexts(text: str, texts: list[str], random_: random.Random) -> tuple[str, ...]:
    """The document in chunks, and chunks of others up to five; shuffled."""
    chunks = _chunks(text)[: _CONTEXTS * 2]
    while len(chunks) < _CONTEXTS and random_.random() < 0.6:
        chunks.append(random_.choice(_chunks(random_.choice(texts))))
    random_.shuffle(chunks)
    return tuple(chunks)


def _chunks(text: str) -> list[str]:
    chunks: list[str] = []
    words = 0
    for line in claim_pieces(text):
        if not chunks or words > _CHUNK_WORDS:
            chunks.append(line)
            words = 0
        else:
            chunks[-1] += line
        words += line.count(" ") + 1
    return chunks


def claim_pieces(text: str) -> list[str]:
    """The text cut behind its sentences; joined, the pieces give it back."""
    _, ends = sentence_spans(text)
    borders = [0, *ends[:-1], len(text)]
    return [text[a:b] for a, b in pairwise(borders)]
