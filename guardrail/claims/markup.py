"""Reads a text's markup: what is left without the characters that readers don't see.

One expression with bounded repeats finds everything, so a reading is linear in the length of the text.

The first part finds text that looks different from what it says, which can't support what is shown: controls
that reverse the direction of text with nothing in it to reverse, digits of several scripts in one number,
blanks and controls inside a word, hyphens that may show inside a number, letters of another script that look
like their neighbours, marks laid over digits and letters, struck-through words, pictures for words, and HTML
that hides. Zero-width characters that display as if they weren't there don't count. Hebrew and Arabic need
marks and isolates to display well, and Persian and the scripts of India joiners to spell: these pass.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from guardrail.events import Span
from guardrail.shipped import shipped_text, shipped_yaml
from guardrail.structure.tex import RAISED, formula_changes

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
_UNHYPHENED: Final = frozenset("\u200b\u200c\u200d\u2060\ufeff")
_WIDTHLESS: Final = _UNHYPHENED | {"\u00ad"}
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
HTML: Final[dict[str, Any]] = shipped_yaml("guardrail.claims", "data", "html.yaml")
HIDING_TAGS: Final = frozenset(HTML["hiding"].split())
"""Elements that are shown struck or not at all."""
# Comments, elements that are shown struck, folded up or not at all, and attributes that may hide.
_HIDES: Final = re.compile(
    r"<!--[^<>\w]{0,2000}+[\w<]"
    rf"|<(?:details|{'|'.join(sorted(HIDING_TAGS))})(?:\s[^<>]{{0,2000}}+)?>"
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
_MIXED_WITH: Final = " \t*_~"
_REACH: Final = 16
_SUSPECT: Final = re.compile(
    rf"[{INVISIBLE}\u0300-\u052f\u0531-\u0587\u13a0-\u13f5\u20d0-\u20f0]|(?![0-9])\d"
)
_UNIT: Final = re.compile(r"[kMGTmnµμ]?Ω|[µμ][A-Za-z]{1,3}|[ΔΣΩπμσ][A-Za-z]")  # and what formulas have
_OTHER_SCRIPTS: Final = re.compile("[\u0370-\u03ff\u0400-\u052f\u0531-\u0587\u13a0-\u13f5]")

_looks: Final[dict[str, str]] = json.loads(shipped_text("guardrail.claims", "data", "lookalikes.json"))
_DIGITS: Final = _looks.pop("digits")
_POSING_DIGIT: Final = re.compile(rf"[0-9$€£¥][.,]?[{_DIGITS}]|[{_DIGITS}][.,]?[0-9]")
_LOOKALIKES: Final = {letter: script for script, letters in _looks.items() for letter in letters}


def misleading(text: str) -> tuple[Span, ...]:
    """The spans of ``text`` that look different from what they say: ascending and apart. Linear."""
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
    """Whether an image is inside a sentence, as if it were one of its words."""
    before = text[max(0, image.start() - _REACH) : image.start()].rstrip(_MIXED_WITH)
    after = text[image.end() : image.end() + _REACH].lstrip(_MIXED_WITH)
    return before[-1:] not in _SENTENCE_BREAKS or after[:1].isalnum()


def _turned(text: str) -> Iterator[Span]:
    """Text whose direction is overridden, or turned to the left where no letter is written so."""
    yield from (match.span() for match in _OVERRIDE.finditer(text))
    if not _RIGHT_TO_LEFT.search(text):
        yield from (match.span() for match in _TURN.finditer(text))


def _concealed(text: str) -> Iterator[Span]:
    """Invisible characters between two letters or two digits, in scripts that have no use for them, except
    those that don't change how the text displays. A hyphen within a number may show.
    """
    for match in _HIDDEN.finditer(text):
        before, after = text[match.start() - 1], text[match.end()]
        if before.isdigit() != after.isdigit() or _JOINED.match(before) or _JOINED.match(after):
            continue
        if (_UNHYPHENED if before.isdigit() else _WIDTHLESS).issuperset(match[0]):
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
    """Letters of two scripts, where all those of one look like letters of the other."""
    if word.isascii() or _UNIT.fullmatch(word):
        return False
    scripts: dict[str, list[str]] = {}
    for letter in word:
        script = unicodedata.name(letter, "").partition(" ")[0].lower()
        if script in _looks:
            scripts.setdefault(script, []).append(letter)
    if len(scripts) < 2:
        return False
    return any(all(letter in _LOOKALIKES for letter in letters) for letters in scripts.values())


ODD_SPACES: Final = "\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\x85"
# Pictures, save those that say something: stars of a rating, arrows, flags, letters in boxes.
_PICTURES: Final = (
    "\u2600-\u2604\u2607-\u263f\u2641\u2643-\u2775\u2794-\u27bf\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55"
    "\U0001f000-\U0001f0ff\U0001f18e\U0001f191-\U0001f1ad\U0001f200-\U0001fbef"
)
_YES, _NO = "✅✓✔☑", "❌✗✘✖❎"
INLINE_TAGS: Final = frozenset(HTML["inline"].split())
TAGS: Final = INLINE_TAGS.union(HTML["blocks"].split())

# --- one character for one

_RANGES: Final = (
    *((0xFF10, 0xFF19), (0xFF21, 0xFF3A), (0xFF41, 0xFF5A), (0x1D400, 0x1D7FF)),
    *((0x24B6, 0x24E9), (0x1F130, 0x1F149)),
)
_WIDE_CODES: Final = [code for start, end in _RANGES for code in range(start, end + 1)]
PLAIN_CHARS: Final[dict[int, str]] = {
    **{code: unicodedata.normalize("NFKC", chr(code)) for code in _WIDE_CODES},
    **{ord(wide): chr(ord(wide) - 0xFEE0) for wide in "％＄＃＆＋－＝＠／"},
    **{ord(wide): plain for wide, plain in zip("￥￡￠", "¥£¢", strict=True)},
    **{first + n: chr(ord("A") + n) for first in (0x1F110, 0x1F150, 0x1F170) for n in range(26)},
    **{first + n: str(n + 1) for first in (0x2460, 0x2776, 0x2780, 0x278A, 0x24F5) for n in range(9)},
}

# --- lists

_NUMERAL: Final = r"(?:[0-9]{1,2}|[A-Za-z]|[ivx]{2,4})"
_MARKER: Final = (
    r"[-*+•‣◦▪●○∙·–—](?=\s)|\(?"
    + _NUMERAL
    + r"\)(?=\s|\*\*)|#{1,6}(?=\s)|\[[ xX✓]\](?=\s)|>(?![ \t>]{0,8}\d)"
    "|[0-9]\ufe0f?\u20e3|[\u2460-\u2473\u2776-\u2793\u24f5-\u24fe]"
)
_LINE_MARK: Final = re.compile(
    rf"[ \t]*(?:{_MARKER}|([0-9]{{1,3}})\.(?=[ \t]{{1,4}}[^\W\d]|[ \t]{{1,4}}[*_`\"“\[]))[ \t]*"
)
_ANY_NUMBER, _NO_NUMBER = -1, -2
_NO_LINE: Final = re.compile(
    r"[ \t]*(?:[-*_=]{3,}|\|?(?:[ \t]*:?-{2,}:?[ \t]*\|)+[ \t]*:?-*:?)[ \t]*(?=\n|\Z)"
)
_INLINE_MARK: Final = re.compile(rf"(?<![^\s:;,.])(\(?)({_NUMERAL})([.)])[ \t]+(?=[^\W\d]|[*_`\"“])")
_CIRCLED: Final = re.compile("[\u2460-\u2473\u2776-\u2793\u24f5-\u24fe]")
_ROMAN: Final = {"i": 1, "ii": 2, "iii": 3, "iv": 4, "v": 5, "vi": 6, "vii": 7, "viii": 8, "ix": 9, "x": 10}
_ITEM_WORD: Final = re.compile(
    r"\b(?!(?:and|or|to|through|und|oder|bis|et|ou|à|y|o|e|a)\b)[^\W\d_]{2,}", re.IGNORECASE
)

# --- the rest

_URL: Final = r"(?:https?://|ftp://|www\.)[^\s<>\"'“”‘’()\[\]{}|\\^`*…]{1,2000}"
_MAIL: Final = r"[\w.+%-]{1,64}@[\w.-]{1,255}"
_TARGET: Final = (
    r"\]\([ \t]{0,4}(?:<[^<>\n]{0,2000}>|[^\s()<>]{0,2000}+(?:\([^\s()<>]{0,200}\)[^\s()<>]{0,200}){0,2})"
    r"(?:\s{1,4}(?:\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'))?[ \t]{0,4}\)"
)
_ENTITY: Final = r"&(?:\#[0-9]{1,7}|\#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
ENTITY: Final = re.compile(_ENTITY)
_SIGNS: Final = re.compile(
    rf"""
    (?= [\\`<&\[\]!*_~|\#\n\-{{hfw] | [^\x20-\x7e] ) (?:
    (?P<url> {_URL} )
  | (?P<auto> <(?:{_URL}|mailto:{_MAIL}|{_MAIL})> )
  | (?P<target> {_TARGET} )
  | (?P<open> !?\[ ) | (?P<close> \] )
  | (?P<escape> \\(?:[!-/:-@\[-`{{-~]|(?=\n)) )
  | (?P<code> `++ )
  | (?P<sup> <sup[^<>]{{0,100}}> [ \t]{{0,4}}
      \[? (?P<raised> [0-9]{{1,2}}(?:[,;][ ]?[0-9]{{1,2}}){{0,8}} ) \]? [ \t]{{0,4}} </sup\s{{0,4}}> )
  | (?P<tag> </?(?P<name>[A-Za-z][A-Za-z0-9]{{0,9}})(?P<attributes>\s[^<>]{{0,500}}|\s?/)?> )
  | (?P<comment> <!--|--> )
  | (?P<entity> {_ENTITY} )
  | (?P<stars> (?<!\S)\*++(?!\s) | (?<=[^\s*])\*++ )
  | (?P<lows> (?<!\w)_++(?=\S) | (?<=[^\s_])_++(?!\w) )
  | (?P<waves> (?<!~)~~++(?=\S) | (?<=[^\s~])~~++ )
  | (?P<pipe> (?:(?<=\s)|(?<![^\n]))\|(?=[ \t\n]|\Z)|(?<![^\n])\||\|(?=[ \t]*(?:\n|\Z)) )
  | (?P<picture> [{_PICTURES}][{INVISIBLE}\U0001f3fb-\U0001f3ff\u20e3{_PICTURES}]{{0,32}} )
  | (?P<space> [{ODD_SPACES}] )
  | (?P<unseen> [{INVISIBLE}\u20e3] )
  | (?P<hashes> (?<=\s)\#{{1,6}}+[ \t]*+(?=\n|\Z) )
  | (?P<line> \n )
    )
    """,
    re.VERBOSE,
)
_ALT: Final = re.compile(r"\balt\s{0,4}=\s{0,4}(?:\"([^\"]{0,300})\"|'([^']{0,300})')", re.IGNORECASE)
# Each begins with one set of characters, which is searched for much faster than alternatives.
_MAY_MARK: Final = re.compile(
    rf"[\\`<&\[*_~|\n#^${{{INVISIBLE}{ODD_SPACES}{_PICTURES}"
    "\u20e3\u2460-\u27ff\uff00-\uffef\U0001d400-\U0001d7ff\U0001f110-\U0001f189]"
)
_MAY_COUNT: Final = re.compile(r"[0-9]\.[ \t]")
_MAY_LETTER: Final = re.compile(r"\w\)[\s*]")
_BEGINS_MARK: Final = tuple("-+>=•‣◦▪●○∙·–—")
_CELL_GAP: Final = re.compile(r"[ \t]*(?:\||\n|\Z)")
_SPELT_WITH_JOINERS: Final = re.compile("[\u0600-\u08ff\u0900-\u0dff\u1780-\u18af]")
_ENDS: Final = " \t\n.,;:!?)…。，！？"
_UNIT_LETTERS: Final = 3
_BESIDE: Final = 64


class ReadCharacters:
    """The characters read so far, each with its position in the text."""

    __slots__ = ("chars", "ends", "number", "starts", "text")

    def __init__(self, text: str, number: int) -> None:
        """``number`` is that of the latest numbered item."""
        self.text = text
        self.number = number
        self.chars: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []

    def copy(self, start: int, end: int) -> None:
        """Take ``text[start:end]`` as it is."""
        self.chars += self.text[start:end]
        self.starts += range(start, end)
        self.ends += range(start + 1, end + 1)

    def put(self, said: str, start: int, end: int) -> None:
        """Take ``said`` for ``text[start:end]``."""
        self.chars += said
        self.starts += [start] * len(said)
        self.ends += [end] * len(said)

    def omit(self, end: int) -> int:
        """Leave out something that stood like a word and ends at ``end``, with a space beside it; returns
        where to continue.
        """
        chars, text = self.chars, self.text
        if not chars or chars[-1] == "\n":
            while end < len(text) and text[end] in " \t":
                end += 1
        elif text[end : end + 1] in _ENDS:  # so is the end of the text
            self.trim()
        return end

    def trim(self) -> None:
        """Take back the spaces at the end."""
        chars = self.chars
        while chars and chars[-1] in " \t":
            del chars[-1], self.starts[-1], self.ends[-1]


def may_be_marked(text: str) -> bool:
    """Whether there is anything to remove; most claims contain nothing."""
    return (
        _MAY_MARK.search(text) is not None
        or _MAY_COUNT.search(text) is not None
        or (")" in text and _MAY_LETTER.search(text) is not None)
        or text.lstrip(" \t").startswith(_BEGINS_MARK)
    )


def read_markup(text: str, left_out: Sequence[Span], *, begins_line: bool) -> ReadCharacters:
    """One reading of ``text``, without ``left_out`` and what readers don't see."""
    reading = ReadCharacters(text, _ANY_NUMBER if begins_line else _NO_NUMBER)
    opened: list[int] = []
    at = _line_begins(reading, 0)
    length = len(text)
    match = _SIGNS.search(text, at)
    for start, end, said in (*_changes(text, left_out), (length, length, None)):
        while at < start:
            # Looked for again only behind it: a sign far away would be searched for from every span.
            if match is not None and match.start() < at:
                match = _SIGNS.search(text, at)
            if match is None or match.start() >= start:
                reading.copy(at, start)
                at = start
            else:
                reading.copy(at, match.start())
                at = _take(reading, match, opened)
        if at < end and said is None:
            at = reading.omit(end)
        elif at <= start < end:
            reading.put(said or "", start, end)
            at = end
    return _compact(reading)


def _changes(text: str, left_out: Sequence[Span]) -> list[tuple[int, int, str | None]]:
    """What is left out of a text, None, and what is shown instead in formulas outside of it; ascending."""
    spans = apart([*_enumerators(text), *left_out])
    starts = [start for start, _ in spans]
    changes: list[tuple[int, int, str | None]] = [(start, end, None) for start, end in spans]
    for start, end, said in formula_changes(text):
        before = bisect_right(starts, end - 1)
        if not before or spans[before - 1][1] <= start:
            changes.append((start, end, said))
    return sorted(changes, key=lambda change: change[:2])


def _compact(reading: ReadCharacters) -> ReadCharacters:
    if "" in reading.chars:
        kept = [i for i, char in enumerate(reading.chars) if char]
        reading.starts = [reading.starts[i] for i in kept]
        reading.ends = [reading.ends[i] for i in kept]
        reading.chars = [reading.chars[i] for i in kept]
    for i, char in enumerate(reading.chars):
        if char > "\x7f" and (plain := PLAIN_CHARS.get(ord(char))):
            reading.chars[i] = plain
        elif char in "．，" and _is_wide_point(reading.text, reading.starts[i]):
            reading.chars[i] = "." if char == "．" else ","
    return reading


def _is_wide_point(text: str, at: int) -> bool:
    """A point or comma within a number of wide digits; elsewhere a wide comma is one of Chinese."""
    return 0 < at < len(text) - 1 and all("\uff10" <= text[i] <= "\uff19" for i in (at - 1, at + 1))


def _take(reading: ReadCharacters, match: re.Match[str], opened: list[int]) -> int:
    """Read the sign that ``match`` found; where to go on."""
    kind, (start, end) = match.lastgroup or "", match.span()
    if kind in _BRACKETS:
        return _bracket(reading, match, opened)
    if kind in _READERS:
        return _READERS[kind](reading, match)
    if (
        kind == "url"
        or (kind == "stars" and multiplies(reading.text, start, end))
        or (kind == "unseen" and joins(reading.text, start))
    ):
        reading.copy(start, end)
    elif kind == "auto":
        reading.copy(start + 1, end - 1)
    elif kind == "escape":
        reading.put(match[0][1:], start, end)
    elif kind == "entity":
        reading.put(html.unescape(match[0]), start, end)
    elif kind == "space":
        reading.put(" ", start, end)
    elif kind == "hashes":
        reading.trim()
    return end


def _bracket(reading: ReadCharacters, match: re.Match[str], opened: list[int]) -> int:
    """Keep brackets, save those around the text of a link."""
    start, end = match.span()
    if match.lastgroup == "target":
        if not opened:
            end = start + 2
            reading.copy(start, end)
            return end
        bracket = opened.pop()
        image = reading.chars[bracket] == "!"
        reading.chars[bracket : bracket + 1 + image] = [""] * (1 + image)
        return end
    if match.lastgroup == "open":
        opened.append(len(reading.chars))
    elif opened:
        opened.pop()
    reading.copy(start, end)
    return end


def _line_begins(reading: ReadCharacters, at: int) -> int:
    """Skip what marks a heading, quotation or list item, and lines that hold nothing but a rule.

    A number that does not count on is one of a sentence that wraps: "in room\n50. Then".
    """
    while rule := _NO_LINE.match(reading.text, at):
        if rule.end() == len(reading.text):
            return rule.end()
        at = rule.end() + 1
    while found := _LINE_MARK.match(reading.text, at):
        if found[1]:
            if reading.number != _ANY_NUMBER and int(found[1]) not in (1, reading.number + 1):
                break
            reading.number = int(found[1])
        at = found.end()
    return at


def _line_ends(reading: ReadCharacters, match: re.Match[str]) -> int:
    start, end = match.span()
    reading.number = max(reading.number, 0)
    at = _line_begins(reading, end)
    reading.copy(start, end)
    return at


def multiplies(text: str, start: int, end: int) -> bool:
    """ "2*3" is not emphasis."""
    return text[start - 1 : start].isdigit() and text[end : end + 1].isdigit()


def _raised(reading: ReadCharacters, match: re.Match[str]) -> int:
    """ "10<sup>6</sup>" and "m<sup>2</sup>" are powers; after a longer word it is the number of a note."""
    before = "".join(reading.chars[-_UNIT_LETTERS - 1 :])
    power = before[-1:].isdigit() or (
        before[-1:].isalpha() and not (len(before) > _UNIT_LETTERS and before.isalpha())
    )
    if power and match["raised"].isdigit():
        reading.put(match["raised"].translate(RAISED), *match.span())
        return match.end()
    return reading.omit(match.end())


def _tag(reading: ReadCharacters, match: re.Match[str]) -> int:
    name = match["name"].lower()
    start, end = match.span()
    if name not in TAGS:
        reading.copy(start, start + 1)
        return start + 1
    if name == "img" and (alt := _ALT.search(match["attributes"] or "")):
        reading.put(alt[1] or alt[2] or "", start, end)
    elif (
        name not in INLINE_TAGS
        and "".join(reading.chars[-1:]).strip()
        and reading.text[end : end + 1] not in _ENDS
    ):
        reading.put(" ", start, end)
    return end


def _cell_ends(reading: ReadCharacters, match: re.Match[str]) -> int:
    """Cells of a row are told apart by commas."""
    start, end = match.span()
    reading.trim()
    chars = reading.chars
    if chars and chars[-1] not in "\n,:;.|" and not _CELL_GAP.match(reading.text, end):
        reading.put(",", start, end)
    return end if chars and chars[-1] != "\n" else reading.omit(end)


def joins(text: str, at: int) -> bool:
    """Whether a (non-)joiner belongs to the spelling of its word."""
    around = text[max(0, at - 1) : at], text[at + 1 : at + 2]
    return text[at] in "\u200c\u200d" and all(_SPELT_WITH_JOINERS.match(letter) for letter in around)


def _picture(reading: ReadCharacters, match: re.Match[str]) -> int:
    """A picture is not a word; a check mark with a cell, or the place after a colon, to itself is one."""
    start, end = match.span()
    text = reading.text
    said = "yes" if match[0][0] in _YES else "no" if match[0][0] in _NO else ""
    before = text[max(0, start - _BESIDE) : start].rstrip(" \t")[-1:]
    after = text[end : end + _BESIDE].lstrip(" \t*_")[:1]
    if said and before and before in "|:–—" and after in ("", "|", "\n", ","):
        reading.put(said, start, end)
        return end
    return reading.omit(end)


def _enumerators(text: str) -> Iterator[Span]:
    """The marks of items in a line, "(1) … (2) …": at least two that count on from the first."""
    circled = [match.span() for match in _CIRCLED.finditer(text)]
    if len(circled) > 1:
        yield from circled
    runs: dict[tuple[str, str, str], list[re.Match[str]]] = {}
    for match in _INLINE_MARK.finditer(text):
        if match[3] == "." and (match[1] or not match[2].isdigit()):
            continue
        for style, value in _values(match[2]):
            run = runs.setdefault((match[1], style, match[3]), [])
            if value == 1:
                if len(run) > 1:
                    yield from (mark.span() for mark in run)
                run[:] = [match]
            elif (
                run
                and value == _value(run[-1], style) + 1
                and _ITEM_WORD.search(text, run[-1].end(), match.start())
            ):
                run.append(match)
    for run in runs.values():
        if len(run) > 1:
            yield from (mark.span() for mark in run)


def _values(numeral: str) -> Iterator[tuple[str, int]]:
    if numeral.isdigit():
        yield "1", int(numeral)
        return
    if len(numeral) == 1:
        yield ("a" if numeral.islower() else "A"), ord(numeral.lower()) - ord("a") + 1
    if numeral in _ROMAN:
        yield "i", _ROMAN[numeral]


def _value(match: re.Match[str], style: str) -> int:
    return next((value for own, value in _values(match[2]) if own == style), 0)


_BRACKETS: Final = frozenset(("open", "close", "target"))
_READERS: Final[dict[str, Callable[[ReadCharacters, re.Match[str]], int]]] = {
    "line": _line_ends,
    "sup": _raised,
    "tag": _tag,
    "pipe": _cell_ends,
    "picture": _picture,
}
