"""Premise and hypothesis -> the tokens that a model reads. Nothing is ever cut off."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from guardrail.judges.classifier.settings import ClassifierSettings
from guardrail.judges.special_tokens import SpecialTokens

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer


@dataclass(frozen=True, slots=True)
class Pair:
    """A window of a premise, ``text[start:end]``, and a hypothesis. Pairs share the text."""

    text: str
    start: int
    end: int
    hypothesis: str

    @property
    def premise(self) -> str:
        return self.text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Tokens:
    """One encoded pair."""

    ids: array[int]
    type_ids: array[int]

    def __len__(self) -> int:
        return len(self.ids)


class PairForm:
    """How a tokenizer and a template put a pair. Thread-safe."""

    def __init__(self, tokenizer: Tokenizer, settings: ClassifierSettings) -> None:
        """``tokenizer`` is changed: what its file says of truncation and padding no longer holds."""
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self._template = settings.template
        self._premise_first = settings.order == "premise_first"
        self._special = SpecialTokens(tokenizer)
        (pair,) = self.encode([Pair("a", 0, 1, "a")])
        self._marks_of_pair = self._special.count(pair.ids)

    def plain(self, text: str) -> str:
        """``text`` without anything that the tokenizer would take for one of its special tokens.

        A context that holds the separator could otherwise end the premise and bring its own hypothesis.
        As long as ``text``: offsets stay what they are.
        """
        return self._special.plain(text)

    def forged(self, tokens: Tokens) -> bool:
        """Whether a pair holds other special tokens than those of its form."""
        return self._special.count(tokens.ids) != self._marks_of_pair

    def encode(self, pairs: Sequence[Pair]) -> list[Tokens]:
        """The tokens of each pair, special ones included, however many they are."""
        inputs: list[str | tuple[str, str]] = [self._input(pair.premise, pair.hypothesis) for pair in pairs]
        return [_tokens(encoding) for encoding in self._tokenizer.encode_batch(inputs)]

    def overhead(self, hypothesis: str) -> int:
        """Tokens of a pair beside those of its premise."""
        return len(self._tokenizer.encode_batch([self._input("", hypothesis)])[0].ids)

    def offsets(self, text: str) -> tuple[array[int], array[int]]:
        """Starts and ends (code points) of the tokens of ``text``."""
        encoding = self._tokenizer.encode_batch([text], add_special_tokens=False)[0]
        starts, ends = array("I"), array("I")
        for start, end in encoding.offsets:
            if end > start:
                starts.append(start)
                ends.append(end)
        return starts, ends

    def _input(self, premise: str, hypothesis: str) -> str | tuple[str, str]:
        if self._template is None:
            return (premise, hypothesis) if self._premise_first else (hypothesis, premise)
        # One pass over the template: what stands in the texts is never taken for a place.
        before, _, after = self._template.partition("{premise}")
        if "{hypothesis}" in before:
            first, _, second = before.partition("{hypothesis}")
            return f"{first}{hypothesis}{second}{premise}{after}"
        first, _, second = after.partition("{hypothesis}")
        return f"{before}{premise}{first}{hypothesis}{second}"


def _tokens(encoding: Encoding) -> Tokens:
    return Tokens(array("q", encoding.ids), array("q", encoding.type_ids))
