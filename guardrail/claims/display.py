"""Where a text displays otherwise than it reads: what no reader can see is no support for what is shown.

Controls that turn the direction of text with nothing in it to turn, digits of several scripts in one number,
characters without width inside of a word or number, letters of another script that look like those beside
them, signs laid over digits and letters, struck words, pictures for words, and HTML that hides. Texts in
Hebrew or Arabic need marks and isolates to display well, and Persian and the scripts of India joiners to
spell: these are none.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from importlib.resources import files
from typing import Final

from guardrail.events import Span

INVISIBLE: Final = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U000e0000-\U000e01ef"
)
"""What has no width, as the inside of a class of characters."""

_OVERRIDE: Final = re.compile("[\u202d\u202e][^\u202c\n]{0,2000}[\u202c]?")
_TURN: Final = re.compile("[\u202b\u2067][^\u202c\u2069\n]{0,2000}|(?<=\\d)[^\\w\n]{0,3}[\u200f\u061c]")
_RIGHT_TO_LEFT: Final = re.compile(
    "[\u05d0-\u05ea\u0620-\u064a\u066e-\u06d3\u0700-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]"
)
# Soft hyphens are for words that may be parted; selectors choose the form of the picture before them.
_HIDDEN: Final = re.compile(rf"(?<=\w)(?:(?![\ufe00-\ufe0f])[{INVISIBLE}]){{1,64}}(?=\w)")
_JOINED: Final = re.compile(
    "[\u0590-\u0fff\u1000-\u109f\u1780-\u17ff\u1800-\u18af\u0e00-\u0eff\u3040-\u9fff\uac00-\ud7af]"
)
_NUMBER: Final = re.compile(r"\d(?:[.,:٫٬]?\d){1,64}")
_OVERLAID: Final = re.compile(
    "\\d[\\u0300-\\u036f\\u20d0-\\u20df\\u20e1\\u20e2\\u20e4-\\u20f0]{1,16}"
    "|[\\w ][\\u0300-\\u0333]{0,8}"
    "[\\u0334-\\u0338\\u20d2\\u20d3\\u20d8-\\u20da\\u20dd-\\u20e0\\u20e4-\\u20e6\\u20ea\\u20eb]"
)
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
# Comments, elements that are shown struck, folded up or not at all, and attributes that may hide.
_HIDES: Final = re.compile(
    r"<!--[^<>\w]{0,2000}+[\w<]"
    r"|<(?:s|del|strike|details|dialog|template|noscript|script|title|datalist)(?:\s[^<>]{0,2000}+)?>"
    r"|<[a-z][a-z0-9]{0,9}\s[^<>]{0,2000}?\b(?:style|hidden|class|color|size|opacity)\b[^<>]{0,2000}+>?"
    r"|<(?!img|t[adh]|col)[a-z][a-z0-9]{0,9}\s[^<>]{0,2000}?\b(?:width|height)\b[^<>]{0,2000}+>?",
    re.IGNORECASE,
)
_STRUCK: Final = re.compile(
    r"(?<!~)~~(?=[^\s~])(?:[^~]|~(?!~)){1,2000}+~~(?!~)|(?<![~\w])~(?=[^\s~])[^~\n]{1,2000}+(?<=\S)~(?![~\w])"
)
# What is shown in place of a picture's words is the picture.
_IMAGE: Final = re.compile(
    r"!\[(?:[^\[\]\n]|\[[^\[\]\n]{0,100}+\]){1,300}+\](?:\([^()\n]{0,2000}+\)|\[[^\[\]\n]{0,100}+\])"
    r"|<img\b[^<>]{0,2000}?\balt\s{0,4}=[^<>]{0,2000}+>",
    re.IGNORECASE,
)
_SENTENCE_BREAKS: Final = ".!?:…。！？\n|>"
_BESIDE: Final = " \t*_~"
_REACH: Final = 16
_SUSPECT: Final = re.compile(
    rf"[{INVISIBLE}\u0300-\u052f\u0531-\u0587\u13a0-\u13f5\u20d0-\u20f0]|(?![0-9])\d"
)
_OTHER_SCRIPTS: Final = re.compile("[\u0370-\u03ff\u0400-\u052f\u0531-\u0587\u13a0-\u13f5]")

_looks: Final[dict[str, str]] = json.loads(
    (files("guardrail.claims") / "data" / "lookalikes.json").read_text(encoding="utf-8")
)
_DIGITS: Final = _looks.pop("digits")
_POSING_DIGIT: Final = re.compile(rf"[0-9$€£¥][.,]?[{_DIGITS}]|[{_DIGITS}][.,]?[0-9]")
_LOOKALIKES: Final = {letter: script for script, letters in _looks.items() for letter in letters}


def misleading(text: str) -> tuple[Span, ...]:
    """The spans of ``text`` that display otherwise than they read: ascending and apart. Linear."""
    found = [match.span() for match in _HIDES.finditer(text)] if "<" in text else []
    if "~" in text:
        found += (match.span() for match in _STRUCK.finditer(text))
    if "![" in text or "<" in text:
        found += (match.span() for match in _IMAGE.finditer(text) if _stands_in_words(text, match))
    if not (text.isascii() and text.isprintable()) and _SUSPECT.search(text):
        found += _turned(text)
        found += _concealed(text)
        found += (match.span() for match in _OVERLAID.finditer(text))
        found += (match.span() for match in _NUMBER.finditer(text) if _mixes_digits(match[0]))
        if _OTHER_SCRIPTS.search(text):
            found += (match.span() for match in _POSING_DIGIT.finditer(text))
            found += (match.span() for match in _WORD.finditer(text) if _poses(match[0]))
    return apart(found)


def apart(spans: list[Span]) -> tuple[Span, ...]:
    """``spans`` in their order; those that overlap or touch are one."""
    if len(spans) < 2:
        return tuple(spans)
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return tuple(joined)


def _stands_in_words(text: str, image: re.Match[str]) -> bool:
    """Whether an image stands within a sentence, as if its words were some of it."""
    before = text[max(0, image.start() - _REACH) : image.start()].rstrip(_BESIDE)
    after = text[image.end() : image.end() + _REACH].lstrip(_BESIDE)
    return before[-1:] not in _SENTENCE_BREAKS or after[:1].isalnum()


def _turned(text: str) -> Iterator[Span]:
    """Text whose direction is overridden, or turned to the left where no letter is written so."""
    yield from (match.span() for match in _OVERRIDE.finditer(text))
    if not _RIGHT_TO_LEFT.search(text):
        yield from (match.span() for match in _TURN.finditer(text))


def _concealed(text: str) -> Iterator[Span]:
    """What has no width between two letters or two digits, in scripts that have no use for it."""
    for match in _HIDDEN.finditer(text):
        before, after = text[match.start() - 1], text[match.end()]
        if before.isdigit() != after.isdigit() or _JOINED.match(before) or _JOINED.match(after):
            continue
        if match[0] == "\u00ad" and not before.isdigit():
            continue
        yield match.start() - 1, match.end() + 1


def _mixes_digits(number: str) -> bool:
    """Digits of two scripts. Wide and mathematical ones look like, and are read as, the plain ones."""
    zeros = {
        ord(digit) - unicodedata.digit(digit)
        for digit in unicodedata.normalize("NFKC", number)
        if digit.isdecimal()
    }
    return len(zeros) > 1


def _poses(word: str) -> bool:
    """Letters of two scripts, all those of the one looking like letters of the other."""
    if word.isascii():
        return False
    scripts: dict[str, list[str]] = {}
    for letter in word:
        script = unicodedata.name(letter, "").partition(" ")[0].lower()
        if script in _looks:
            scripts.setdefault(script, []).append(letter)
    if len(scripts) < 2:
        return False
    return any(all(letter in _LOOKALIKES for letter in letters) for letters in scripts.values())
