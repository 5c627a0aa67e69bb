"""Texts of others beside a tokenizer's own marks: whatever stands in a text, it separates nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

# Blanking a token can bring its neighbours together; what is left after so many rounds is refused later.
_ROUNDS: Final = 4


class SpecialTokens:
    """The special tokens of one tokenizer. Thread-safe."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        added = tokenizer.get_added_tokens_decoder().values()
        special = [token.content for token in added if token.special and token.content.strip()]
        self._special = tuple(special)
        # What stands for unknown characters is no mark that a model reads structure from.
        self._marks = frozenset(
            tokenizer.token_to_id(token) for token in special if "unk" not in token.lower()
        )
        self._unknown = frozenset(tokenizer.token_to_id(token) for token in special) - self._marks

    def plain(self, text: str) -> str:
        """``text`` without anything that the tokenizer would take for one of its special tokens.

        A context that holds the separator could otherwise end the premise and bring its own hypothesis.
        As long as ``text``: offsets stay what they are.
        """
        return self._read(text)[0]

    def encode(self, text: str) -> Encoding:
        """The tokens of ``plain(text)``, none added; offsets are code points of ``text``."""
        return self._read(text)[1]

    def _read(self, text: str) -> tuple[str, Encoding]:
        for token in self._special:
            if token in text:
                text = text.replace(token, " " + token[1:] if len(token) > 1 else " ")
        # Normalisation makes more of them, of full-width brackets say, and a vocabulary may hold them too.
        encoding = self._encode(text)
        for _ in range(_ROUNDS):
            spans = [
                span
                for span, number in zip(encoding.offsets, encoding.ids, strict=True)
                if number in self._marks
            ]
            if not spans:
                break
            text = _blanked(text, spans)
            encoding = self._encode(text)
        return text, encoding

    def _encode(self, text: str) -> Encoding:
        return self._tokenizer.encode(text, add_special_tokens=False)

    def count(self, ids: Iterable[int]) -> int:
        """How many of ``ids`` are marks that a model reads structure from."""
        return sum(number in self._marks for number in ids)

    def unknown(self, encoding: Encoding) -> list[tuple[int, int]]:
        """The spans of what the vocabulary has nothing for: to a model all of it is the same."""
        return [
            span
            for span, number in zip(encoding.offsets, encoding.ids, strict=True)
            if number in self._unknown
        ]


def _blanked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """``text`` with blanks in place of the spans, which ascend."""
    parts: list[str] = []
    at = 0
    for start, end in spans:
        parts += [text[at:start], " " * (end - max(start, at))]
        at = max(at, end)
    return "".join(parts) + text[at:]
