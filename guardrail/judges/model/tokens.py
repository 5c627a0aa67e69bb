"""Turns texts into a model's tokens. Nothing is ever truncated, and texts can't introduce special tokens."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from guardrail.evidence.sentences import sentence_spans
from guardrail.judges.model.settings import ClassifierSettings

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

# Blanking a token can make new neighbours; what is left after this many rounds is refused later.
_ROUNDS: Final = 4
IDS: Final = "input_ids"
MASK: Final = "attention_mask"
TYPES: Final = "token_type_ids"
_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")


class SpecialTokens:
    """The special tokens of one tokenizer, which have no effect inside a text. Thread-safe."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        added = tokenizer.get_added_tokens_decoder().values()
        special = [token.content for token in added if token.special and token.content.strip()]
        self._special = tuple(special)
        # The token for unknown characters is not a mark from which a model reads structure.
        self._marks = frozenset(
            tokenizer.token_to_id(token) for token in special if "unk" not in token.lower()
        )
        self._unknown = frozenset(tokenizer.token_to_id(token) for token in special) - self._marks

    def plain(self, text: str) -> str:
        """``text`` without anything that the tokenizer would read as one of its special tokens.

        A context that contains the separator could otherwise end the premise and bring its own hypothesis.
        The length stays the same, so offsets remain valid.
        """
        return self.read(text)[0]

    def encode(self, text: str) -> Encoding:
        """The tokens of ``plain(text)``, with none added; offsets are code points of ``text``."""
        return self.read(text)[1]

    def read(self, text: str) -> tuple[str, Encoding]:
        """``plain(text)`` and ``encode(text)`` in one pass.

        Lone surrogates, which no tokenizer accepts, are read as U+FFFD.
        """
        text = _HALF_PAIR.sub("\ufffd", text)
        for token in self._special:
            if token in text:
                text = text.replace(token, " " + token[1:] if len(token) > 1 else " ")
        # Normalisation creates more of them, from full-width brackets, say, and a vocabulary may contain them
        # too.
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
        """How many of ``ids`` are special tokens that a model reads structure from."""
        return sum(number in self._marks for number in ids)

    def unknown(self, encoding: Encoding) -> list[tuple[int, int]]:
        """The spans of text that the vocabulary lacks: they are all the same to a model."""
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


@dataclass(frozen=True, slots=True)
class Pair:
    """A window of a premise, ``text[start:end]`` (code points), and a hypothesis. Pairs share the text.

    ``context`` is the number of the context that the text comes from.
    """

    text: str
    start: int
    end: int
    hypothesis: str
    context: int = 0

    @property
    def premise(self) -> str:
        return self.text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Tokens:
    """One encoded pair."""

    ids: array[int]
    type_ids: array[int]

    @classmethod
    def of(cls, encoding: Encoding) -> Tokens:
        """Those of a pair that the tokenizer has assembled."""
        return cls(array("q", encoding.ids), array("q", encoding.type_ids))

    def __len__(self) -> int:
        return len(self.ids)


def padded(batch: Sequence[Tokens], pad_id: int) -> dict[str, list[array[int]]]:
    """What models take of a batch, by the names of their inputs: rows that are as long as the longest."""
    longest = max(len(tokens) for tokens in batch)
    rows: dict[str, list[array[int]]] = {IDS: [], MASK: [], TYPES: []}
    for tokens in batch:
        size, filler = len(tokens), longest - len(tokens)
        rows[IDS].append(tokens.ids + array("q", [pad_id]) * filler)
        rows[MASK].append(array("q", [1]) * size + array("q", [0]) * filler)
        rows[TYPES].append(tokens.type_ids + array("q", [0]) * filler)
    return rows


class PairForm:
    """How a tokenizer and a template assemble a pair. Thread-safe."""

    def __init__(self, tokenizer: Tokenizer, settings: ClassifierSettings) -> None:
        """Modifies ``tokenizer``: its file's truncation and padding no longer apply."""
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self._template = settings.template
        self._special = SpecialTokens(tokenizer)
        (pair,) = self.encode([Pair("a", 0, 1, "a")])
        self._marks_of_pair = self._special.count(pair.ids)

    def plain(self, text: str) -> str:
        """``text`` without special tokens, with the same length."""
        return self._special.plain(text)

    def tokenised(self, text: str) -> TokenisedText:
        """``plain(text)`` with its tokens."""
        plain, encoding = self._special.read(text)
        return TokenisedText(plain, [(start, end) for start, end in encoding.offsets if end > start])

    def forged(self, tokens: Tokens) -> bool:
        """Whether a pair contains special tokens other than those of its form."""
        return self._special.count(tokens.ids) != self._marks_of_pair

    def encode(self, pairs: Sequence[Pair]) -> list[Tokens]:
        """The tokens of each pair, including special ones, however many they are."""
        inputs = [self.texts(pair) for pair in pairs]
        return [Tokens.of(encoding) for encoding in self._tokenizer.encode_batch(inputs)]

    def texts(self, pair: Pair) -> str | tuple[str, str]:
        """A pair as a tokenizer takes it: two texts, or the one that the template makes of them."""
        premise, hypothesis = pair.premise, pair.hypothesis
        if self._template is None:
            return premise, hypothesis
        # One pass over the template, so that the texts are never searched for placeholders.
        before, _, after = self._template.partition("{premise}")
        if "{hypothesis}" in before:
            first, _, second = before.partition("{hypothesis}")
            return f"{first}{hypothesis}{second}{premise}{after}"
        first, _, second = after.partition("{hypothesis}")
        return f"{before}{premise}{first}{hypothesis}{second}"

    def overhead(self, hypothesis: str) -> int:
        """Tokens of a pair besides those of its premise."""
        return len(self.encode([Pair("", 0, 0, hypothesis)])[0])


class TokenisedText:
    """A text with its tokens and sentences, to be cut into windows of any size."""

    def __init__(self, text: str, tokens: Sequence[tuple[int, int]]) -> None:
        """``tokens`` are spans in code points, ascending."""
        self.text = text
        self._starts, self._ends = array("I"), array("I")
        for start, end in tokens:
            self._starts.append(start)
            self._ends.append(end)
        begins, _ = sentence_spans(text)
        # Token numbers at which sentences begin.
        self._sentences = [bisect_left(self._starts, begin) for begin in begins]

    def windows(self, budget: int, overlap: int) -> Iterator[tuple[int, int]]:
        """Spans of at most ``budget`` tokens (at least 4) that together contain every token.

        A window ends at a sentence end, if that leaves it at least half full; the next one begins up to
        ``overlap`` tokens earlier, at the start of a sentence if there is one.
        """
        overlap = min(overlap, budget // 4)
        first, tokens = 0, len(self._starts)
        while first < tokens:
            last = min(tokens, first + budget)
            if last < tokens:
                last = self._sentence_at_or_before(last, least=first + (budget + 1) // 2) or last
            yield self._starts[first], self._ends[last - 1]
            if last == tokens:
                return
            shared = last - overlap
            first = self._sentence_at_or_after(shared, below=last) if overlap else last

    def _sentence_at_or_before(self, token: int, least: int) -> int | None:
        at = bisect_left(self._sentences, token + 1) - 1
        return self._sentences[at] if at >= 0 and self._sentences[at] >= least else None

    def _sentence_at_or_after(self, token: int, below: int) -> int:
        at = bisect_left(self._sentences, token)
        found = self._sentences[at] if at < len(self._sentences) else below
        return found if found < below else token
