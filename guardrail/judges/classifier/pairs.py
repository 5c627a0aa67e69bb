"""Premise and hypothesis -> the tokens that a model reads. Nothing is ever cut off."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from guardrail.judges.classifier.settings import ClassifierSettings

# Blanking a token can bring its neighbours together; what is left after so many rounds is refused later.
_ROUNDS: Final = 4

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
        added = tokenizer.get_added_tokens_decoder().values()
        special = [token.content for token in added if token.special and token.content.strip()]
        self._special = tuple(special)
        # What stands for unknown characters is no mark that a model reads structure from.
        self._marks = frozenset(
            tokenizer.token_to_id(token) for token in special if "unk" not in token.lower()
        )
        (pair,) = self.encode([Pair("a", 0, 1, "a")])
        self._marks_of_pair = self._count_marks(pair)

    def plain(self, text: str) -> str:
        """``text`` without anything that the tokenizer would take for one of its special tokens.

        A context that holds the separator could otherwise end the premise and bring its own hypothesis.
        As long as ``text``: offsets stay what they are.
        """
        for token in self._special:
            if token in text:
                text = text.replace(token, " " + token[1:] if len(token) > 1 else " ")
        # Normalisation makes more of them, of full-width brackets say, and a vocabulary may hold them too.
        for _ in range(_ROUNDS):
            encoding = self._tokenizer.encode_batch([text], add_special_tokens=False)[0]
            spans = [
                span
                for span, number in zip(encoding.offsets, encoding.ids, strict=True)
                if number in self._marks
            ]
            if not spans:
                break
            text = _blanked(text, spans)
        return text

    def forged(self, tokens: Tokens) -> bool:
        """Whether a pair holds other special tokens than those of its form."""
        return self._count_marks(tokens) != self._marks_of_pair

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

    def _count_marks(self, tokens: Tokens) -> int:
        return sum(number in self._marks for number in tokens.ids)

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


def _blanked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """``text`` with blanks in place of the spans, which ascend."""
    parts: list[str] = []
    at = 0
    for start, end in spans:
        parts += [text[at:start], " " * (end - max(start, at))]
        at = max(at, end)
    return "".join(parts) + text[at:]


def _tokens(encoding: Encoding) -> Tokens:
    return Tokens(array("q", encoding.ids), array("q", encoding.type_ids))
