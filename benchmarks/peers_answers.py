"""The answers that ``benchmarks.peers`` streams, and what a judge that knows the truth says of them.

Needs nothing but PyYAML: the simulated model reads it in the peers' environment, where there is no guardrail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

import yaml

ANSWERS: Final = Path(__file__).with_suffix(".yaml")
TOKENS_PER_SECOND: Final = 50.0

_WORD: Final = re.compile(r"\w+")
_SENTENCE: Final = re.compile(r"(?<=[.!?]) (?=[A-Z\d])")
# Letters in runs of up to seven, digits in threes, marks one by one: within a tenth of o200k_base on prose.
_TOKEN: Final = re.compile(r" ?[^\W\d_]{1,7}|\d{1,3}|\s+(?=\s)|\s|[^\w\s]{1,2}|_")


def pieces(text: str) -> list[str]:
    """``text`` in about the pieces that a tokenizer makes of it; joined, they give it back."""
    return _TOKEN.findall(text)


@dataclass(frozen=True, slots=True)
class Truth:
    """One claim of an answer, a sentence, and the verdict that a faithful judge gives it.

    ``evidence`` is the sentence of the documents that it is closest to; empty when it is UNSUPPORTED.
    """

    text: str
    verdict: str
    evidence: str

    @property
    def bad(self) -> bool:
        return self.verdict != "SUPPORTED"


@dataclass(frozen=True, slots=True)
class Case:
    """A question, the documents that were found for it, and an answer with errors planted."""

    id: str
    question: str
    contexts: tuple[str, ...]
    claims: tuple[Truth, ...]

    @property
    def answer(self) -> str:
        return " ".join(claim.text for claim in self.claims)

    def deltas(self) -> list[str]:
        """The answer as it is streamed, a token each."""
        return pieces(self.answer)

    def copy(self, number: int) -> Case:
        """The same case with documents that begin otherwise: no prefix cache takes it for the same."""
        contexts = tuple(f"Document {number}-{at}\n{text}" for at, text in enumerate(self.contexts, 1))
        return replace(self, id=f"{self.id}#{number}", contexts=contexts)


@cache
def load(path: Path = ANSWERS) -> tuple[Case, ...]:
    """The cases of the file, in its order."""
    return tuple(_cases(yaml.safe_load(path.read_text(encoding="utf-8"))))


def _cases(topics: Sequence[dict[str, object]]) -> Iterator[Case]:
    for topic in topics:
        documents = topic["documents"]
        answers = topic["answers"]
        assert isinstance(documents, list)
        assert isinstance(answers, list)
        contexts = tuple(" ".join(document.split()) for document in documents)
        sentences = [sentence for context in contexts for sentence in _SENTENCE.split(context)]
        for number, answer in enumerate(answers, 1):
            claims = tuple(_truth(claim, sentences) for claim in answer["claims"])
            yield Case(f"{topic['topic']} {number}", answer["question"], contexts, claims)


def _truth(claim: str | dict[str, str], sentences: Sequence[str]) -> Truth:
    ((verdict, text),) = claim.items() if isinstance(claim, dict) else (("SUPPORTED", claim),)
    evidence = "" if verdict == "UNSUPPORTED" else closest(text, sentences)
    return Truth(text, verdict, evidence)


def closest(text: str, sentences: Sequence[str]) -> str:
    """The sentence that shares the largest part of both texts' words."""
    words = _words(text)

    def shared(sentence: str) -> float:
        other = _words(sentence)
        return len(words & other) / (len(words) * len(other)) ** 0.5 if other else 0.0

    return max(sentences, key=shared)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))
