"""Text -> tokens: where the words of a text are, and which of them are the same word.

A token is a word, a number, or two neighbouring characters of a script written without spaces. Words that
differ only in case, a plural or a verb ending share a *term*. A term is a 32-bit number, so that the tokens
of a context fit in two arrays of four bytes each.
"""

from __future__ import annotations

import re
import zlib
from array import array
from typing import Any, Final

from guardrail.shipped import shipped_yaml

# Scripts without spaces between words: kana, han, hangul (agglutinated), Thai, Lao, Khmer, Burmese.
_DENSE: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
)
# Vowel signs and accents are not \w in Python, but belong to their word. Danda (U+0964, U+0965) is a full
# stop.
_MARKS: Final = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u0dff"
_LETTER: Final = rf"(?:(?![{_DENSE}])[^\W\d_]|[{_MARKS}])"
_TOKEN: Final = re.compile(rf"\d+(?:[.,:/]\d+)*|[{_DENSE}]+|{_LETTER}+(?:['’]{_LETTER}+)*")
# What is neither a space nor surrounds words.
_WRITTEN: Final = re.compile(r"[^\s—…。、，；：！？（）「」『』【】《》〈〉()\[\]{}\"“”„«»;!?*|<>`~]+")
_IS_DENSE: Final = re.compile(f"[{_DENSE}]")
CITATION: Final = re.compile(r"\[\d{1,3}(?:[,;–-] ?\d{1,3}){0,20}\]")
"""A citation mark such as "[3]" or "[1, 2]": says nothing about the facts."""

_WORDS: Final[dict[str, Any]] = shipped_yaml("guardrail.evidence", "words.yaml")


def _folded(table: str) -> dict[str, str]:
    """Each form of a table, with the form that it is folded to."""
    return {form: common for common, forms in _WORDS[table].items() for form in forms.split()}


_IRREGULAR: Final = _folded("irregular")
_APART: Final = _folded("apart")
_KEEP: Final = frozenset(_WORDS["kept"].split())
_VOWELS: Final = frozenset("aeiouy")
_CACHE_TERMS: Final = 65_536

_terms: dict[
    str, int
] = {}  # surface -> term, for the whole process; emptied when full. Races only repeat work.


def stem(word: str) -> str:
    """The common form of a word's inflections: case, plurals, -ing, -ed, irregular verbs folded."""
    w = word.casefold().replace("’", "'")
    if w in _IRREGULAR:
        return _strip_e(_IRREGULAR[w])
    w = w.removesuffix("'s")
    if w in _APART:
        return _APART[w]
    if w[:1].isdigit():
        return _plain_number(w)
    if len(w) < 4 or w in _KEEP or not w.isascii():
        return w
    if w.endswith("ies") and len(w) > 4:
        w = w[:-3] + "y"
    elif w.endswith(("sses", "shes", "ches", "xes", "zes")):
        w = w[:-2]
    elif w.endswith("s") and w[-2] not in "sui":
        w = w[:-1]
    w = _strip_verb_ending(w)
    if w.endswith("ly") and len(w) > 5:
        w = w[:-2]
    return _strip_e(w)


def _strip_verb_ending(w: str) -> str:
    for ending, shortest in (("ing", 6), ("ed", 5)):
        if w.endswith(ending) and len(w) >= shortest:
            root = w[: -len(ending)]
            if not _VOWELS.isdisjoint(root):
                if len(root) > 3 and root[-1] == root[-2] and root[-1] not in "lsz":
                    root = root[:-1]
                return root[:-1] + "y" if root.endswith("i") else root
    return w


def _strip_e(w: str) -> str:
    return w[:-1] if len(w) > 3 and w.endswith("e") else w


def _plain_number(w: str) -> str:
    w = re.sub(r",(?=\d{3})", "", w)
    if "." in w and w.count(".") == 1:
        w = w.rstrip("0").rstrip(".")
    return w


def term_of_stem(stemmed: str) -> int:
    """The term of a result of ``stem``."""
    return zlib.crc32(stemmed.encode("utf-8", "surrogatepass"))


def term_of(word: str) -> int:
    """The 32-bit term of a word. Stable across processes, so that verdicts are."""
    term = _terms.get(word)
    if term is None:
        term = term_of_stem(stem(word))
        if len(_terms) >= _CACHE_TERMS:
            _terms.clear()
        if len(word) <= 64:
            _terms[word] = term
    return term


def tokenize(text: str) -> tuple[array[int], array[int]]:
    """Terms and start offsets (code points) of the tokens of ``text``; linear in its length."""
    terms, starts = array("I"), array("I")
    known = _terms
    for match in _TOKEN.finditer(text):
        word, start = match.group(), match.start()
        if _IS_DENSE.match(word):
            for offset in range(max(1, len(word) - 1)):
                terms.append(term_of(word[offset : offset + 2]))
                starts.append(start + offset)
            continue
        term = known.get(word)
        terms.append(term_of(word) if term is None else term)
        starts.append(start)
    return terms, starts


def words(text: str) -> list[tuple[int, int, str]]:
    """``(start, term, surface)`` of every token of ``text``, without citation marks."""
    masked = CITATION.sub(lambda m: " " * len(m.group()), text) if "[" in text else text
    found: list[tuple[int, int, str]] = []
    for match in _TOKEN.finditer(masked):
        word, start = match.group(), match.start()
        if _IS_DENSE.match(word):
            found.extend(
                (start + i, term_of(word[i : i + 2]), word[i : i + 2]) for i in range(max(1, len(word) - 1))
            )
        else:
            found.append((start, term_of(word), word))
    return found


def terms_of(text: str) -> frozenset[int]:
    """The terms of ``text``, without citation marks."""
    return frozenset(term for _, term, _ in words(text))


def written(text: str) -> list[tuple[int, int]]:
    """Where the words of ``text`` are, as written: "$0.04", "x86", "six-month", "50%".

    Code points, ascending. In scripts without spaces, everything between two marks is one word.
    """
    found = []
    for match in _WRITTEN.finditer(text):
        word = match[0]
        start = match.start() + len(word) - len(word.lstrip(",:'’‘/_–"))
        end = match.end() - len(word) + len(word.rstrip(".,:'’‘/_–-"))
        if any(char.isalnum() for char in word):
            found.append((start, end))
    return found


#: Function words (and pairs of kana), which say little about the subject of a text.
STOP_WORDS: Final = frozenset(_WORDS["stop_words"].split())
STOP_TERMS: Final = frozenset(term_of(word) for word in STOP_WORDS)
