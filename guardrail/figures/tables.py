"""The words that figures are written with, from ``tables.yaml``, and texts cut into such words and signs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntEnum
from typing import Any, Final, NamedTuple

from guardrail.figures.model import Bound
from guardrail.shipped import shipped_yaml

_TABLES: Final[dict[str, Any]] = shipped_yaml("guardrail.figures", "tables.yaml")


def words(*names: str) -> frozenset[str]:
    """The words of these lists."""
    return frozenset(word for name in names for word in _TABLES[name].split())


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _phrases(text: str) -> list[str]:
    return [phrase.strip() for phrase in text.split("|")]


def alternatives(words: Iterable[str]) -> str:
    """Words as the alternatives of a regular expression, the longest first."""
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))


def _numbered(table: dict[int, str]) -> dict[str, int]:
    return {word: number for number, names in table.items() for word in names.split()}


class Unit(NamedTuple):
    """A unit: ``base = amount * factor + zero`` in the dimension's base unit."""

    name: str
    dimension: str
    factor: float
    zero: float = 0.0


def _units() -> dict[str, Unit]:
    units: dict[str, Unit] = {}
    for dimension, table in _TABLES["units"].items():
        for name, (factor, spellings, *zero) in table.items():
            unit = Unit(name, dimension, float(factor), *map(float, zero))
            for spelling in (name, *spellings.split()):
                units.setdefault(spelling.replace("-", " "), unit)
    return units


def _ratio(text: str) -> float:
    over, _, under = text.partition("/")
    return int(over) / int(under)


def _ways(table: dict[str, str]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for measures, words in table.items():
        ways = {measure[:-1]: 1 if measure[-1] == "+" else -1 for measure in measures.split()}
        found |= dict.fromkeys(words.split(), ways)
    return found


ONES: Final[dict[str, int]] = _TABLES["ones"]
TENS: Final[dict[str, int]] = _TABLES["tens"]
MAGNITUDES: Final[dict[str, int]] = _TABLES["magnitudes"]
LETTER_MAGNITUDES: Final[dict[str, int]] = _TABLES["letter_magnitudes"]
PARTS: Final[dict[str, int]] = _TABLES["parts"]
VULGAR: Final = {sign: _ratio(text) for sign, text in _TABLES["vulgar"].items()}
ORDINALS: Final[dict[str, int]] = _TABLES["ordinals"]
ADVERBS: Final[dict[str, int]] = _TABLES["adverbs"]
NUMBER_WORDS: Final = frozenset({*ONES, *TENS, *PARTS, *MAGNITUDES}) - _words("mio mn tn bn bln mln mrd mil")
ARTICLES: Final = _words("a an ein eine einer un une una")

MONTHS: Final = _numbered(_TABLES["months"])
SHY_MONTHS: Final = words("shy_months")
WEEKDAYS: Final = {
    day + of: number for day, number in _numbered(_TABLES["weekdays"]).items() for of in ("", "'s", "’s")
}
WEEKDAYS_SHORT: Final[dict[str, int]] = _TABLES["weekdays_short"]
DAY_GROUPS: Final[dict[str, list[int]]] = _TABLES["day_groups"]
DAY_PARTS: Final = {word: number for number, part in enumerate(_TABLES["day_parts"]) for word in part.split()}
ZONES: Final[dict[str, int]] = _TABLES["zones"]
YEAR_AFTER: Final = words("year_after")
CLOSED: Final = words("closed")
OPEN: Final = words("open")
HOUR_AFTER: Final = words("hour_after")
MONTH_AFTER: Final = words("month_after")

BOUNDS: Final = {p: Bound(name) for name, text in _TABLES["bounds"].items() for p in _phrases(text)}
TRAILING_BOUNDS: Final = {phrase: Bound(name) for phrase, name in _TABLES["trailing_bounds"].items()}
BEFORE_SIGNS: Final = words("before_signs")  # of which "minus" takes nothing
PER_MILLE: Final = frozenset(_phrases(_TABLES["per_mille"]))
PERCENT_WORDS: Final = words("percent")
RATES: Final[dict[str, str]] = _TABLES["rates"]
LABELS: Final = words("labels")
NO_NOUN: Final = words("no_noun")
MEASURES: Final = words("measures")
NO_COUNT: Final = words("no_count")

#: By spelling; words of four letters and more are in lower case.
UNITS: Final = _units()
#: By the name that ``Figure.unit`` carries.
UNIT: Final = {unit.name: unit for unit in UNITS.values()}
TWO_WORD_UNITS: Final = frozenset(spelling.split()[0] for spelling in UNITS if " " in spelling) | _words(
    "us u.s. canadian australian swiss pound pounds"
)
_MONEY: Final = _TABLES["currencies"]
SIGNS: Final[dict[str, str]] = {code: code for code in _MONEY["codes"].split()} | _MONEY["signs"]
CURRENCY_WORDS: Final[dict[str, str]] = _MONEY["words"]
CENTS: Final[dict[str, str]] = _MONEY["cents"]
#: Signs and words that stand for several currencies.
FAMILIES: Final = {sign: _words(codes) for sign, codes in _MONEY["families"].items()}

FREE_PHRASES: Final = frozenset(_phrases(_TABLES["free"]["phrases"]))
FREE_BEFORE: Final = _words(_TABLES["free"]["before"])
FREE_NOT_AFTER: Final = _words(_TABLES["free"]["not_after"])
#: Calls a figure the sum of the lines above it; for text in lower case.
TOTAL: Final = re.compile(rf"\b(?:{alternatives(_phrases(_TABLES['totals']))})\b")
#: Words that compare, with +1 (more) or -1 by what is measured; "any" for all else.
COMPARATIVES: Final = _ways(_TABLES["comparatives"])
SUPERLATIVES: Final = _ways(_TABLES["superlatives"])
COMPARING: Final = words("more", "less", "rising", "falling", "comparing")
WHOLE: Final = words("whole")
OPERATORS: Final = {
    word: sign for sign, phrases in _TABLES["operators"].items() for word in _phrases(phrases)
}
PRICING: Final = words("pricing")
AWAY: Final = words("away")
FILLERS: Final = words("fillers")
TELLING: Final = words("telling")


def find_unit(text: str) -> Unit | None:
    """The unit that ``text`` spells, or None. Short symbols are case-sensitive (MW is not mW)."""
    unit = UNITS.get(text)
    return UNITS.get(text.lower()) if unit is None and len(text) > 2 else unit


def backs_currency(claimed: str, given: str) -> bool:
    """May an amount in ``given`` back one in ``claimed``? A bare "$" is no Canadian dollar."""
    return same_currency(claimed, given) and (given != "$" or claimed in (*FAMILIES, "USD", ""))


def same_currency(a: str, b: str) -> bool:
    """May both signs or codes mean the same currency? "$" may be any dollar; what is free has none."""
    families = FAMILIES.get(a, frozenset()), FAMILIES.get(b, frozenset())
    return a == b or not a or not b or b in families[0] or a in families[1]


# --------------------------------------------------------------------------------------------------- tokens
#
# One expression, possessive or bounded throughout, so that no input makes it backtrack.

Tok = IntEnum("Tok", "WORD EMAIL URL PHONE DATE TIME VERSION IDENT NUMBER SYMBOL END")


class Token(NamedTuple):
    """A piece of the text; ``low`` is its case-folded form. Spans are code points."""

    kind: Tok
    text: str
    start: int
    end: int
    low: str


_SPACE: Final = " \u00a0\u2009\u202f"  # what groups digits
# "mid-2021" is a date, "page-3" a label, "omega-3" a name.
_PREFIXES: Final = (
    "mid|pre|post|non|sub|late|early|top|under|over|age|aged|ages|between|from|to|and|or|twenty|page|pages|"
    "jan|january|feb|february|mar|march|apr|april|may|jun|june|jul|july|aug|august|sep|sept|september|oct|"
    "october|nov|november|dec|december"
)
_ENDINGS: Final = "com|org|net|gov|edu|io|eu|de|fr|es|uk|info|int|dev|app|ai|co|ch|at|nl"
_TOKEN: Final = re.compile(
    rf"""
    (?P<WORD> [A-Za-z]++(?![\w.'’\-@]|://) )      # most words; the rest is below
    | (?P<EMAIL> [\w.+\-%]{{1,64}}+@[A-Za-z0-9][\w\-]{{0,62}}(?:\.[\w\-]{{1,63}}){{1,8}} )
    | (?P<URL> (?:https?://|ftp://|www\.)[^\s<>\"“”‘’\[\]{{}}|\\^`]{{1,2000}}+
      | [A-Za-z0-9][A-Za-z0-9\-]{{0,40}}+(?:\.[A-Za-z0-9\-]{{1,40}}+){{0,3}}?\.(?:{_ENDINGS})(?![\w\-]|\.\w)
        (?:/[^\s<>\"“”‘’\[\]{{}}|\\^`]{{0,2000}}+)? )
    | (?P<PHONE> \+(?=(?:[ .\-/()]{{0,2}}\d){{8}})  # eight digits and more
      \d{{1,3}}[ .\-/]?(?:\(\d{{1,4}}\)[ .\-/]?)?\d{{1,8}}(?:[ .\-/]?\d{{2,8}}){{0,5}}+(?!\d)
      | \(\d{{3,5}}\)[ .\-]?\d{{3,4}}[ .\-]?\d{{3,5}}(?!\d)
      | (?:1[.\- ])?\d{{3}}[.\-]\d{{3}}[.\-]\d{{4}}(?![\d\-])
      | 1[ ]\d{{3}}[ ]\d{{3}}[ ]\d{{4}}(?!\d)
      | 0\d{{1,4}}[ \-/]\d{{2,4}}(?:[ \-]\d{{2,4}}){{1,3}}+(?!\d)
      | 0\d{{1,4}}[ \-/]\d{{5,8}}(?!\d)
      | 0\d{{3,4}}[ \-/]\d{{4}}(?![\d.,/-]) )
    | (?P<DATE> \d{{4}}(?P<s>[\-/.])\d{{1,2}}(?P=s)\d{{1,2}}(?!\d)
      | \d{{1,2}}(?P<t>[\-/.])\d{{1,2}}(?P=t)\d{{4}}(?!\d)
      | \d{{1,2}}/\d{{1,2}}/\d{{2}}(?!\d)
      | (?<![$€£¥])(?<![$€£¥][ ])(?:0[1-9]|[12]\d|3[01])\.(?:0[1-9]|1[0-2])\.(?!\w) )
    | (?P<TIME> \d{{1,2}}:\d{{2}}(?::\d{{2}})?(?![\d:]) | \d{{1,2}}[hH]\d{{2}}(?!\w) )
    | (?P<VERSION> (?!\d{{1,3}}(?:\.\d{{3}}){{2,5}}(?!\.?\d))
      (?: [vV]\d++(?:\.\d++)*+(?:-?(?:alpha|beta|rc|b|a)\.?\d*+)?(?!\w)
      | \d++(?:\.\d++){{2,}}+(?:-(?:alpha|beta|rc)\.?\d*+)? ) )
    | (?P<IDENT> (?<!\d)[A-Za-zÀ-ɏ]++\d[\dA-Za-zÀ-ɏ]*+(?:[\-_][\dA-Za-zÀ-ɏ]++)*+
      | (?!(?i:{_PREFIXES})-)[A-Za-z]{{1,16}}(?:-[A-Z][A-Za-z]{{0,15}})?-\d{{1,5}}(?!\d|[.,/:]\d|%)
        \w*+(?:-\w++)*+
      | \d++[A-Za-z]{{1,4}}+\d\w*+ | 24/7(?![\d/]) )
    | (?P<NUMBER> \d{{1,3}}(?:[{_SPACE}]\d{{3}}(?!\d))++(?:[.,]\d{{1,3}}(?!\d))?
      | \d++(?:[.,'’]\d++)*+
      | (?<![\w.])\.\d++ )
    | (?P<OTHER> (?:[^\W\d_]\.){{2,}}+ | [^\W\d_]++(?:['’][^\W\d_]++)*+ )
    | (?P<SYMBOL> [^\s\w] | _ )
    """,
    re.VERBOSE,
)
_KIND: Final = {**Tok.__members__, "OTHER": Tok.WORD}
_PADDING: Final = 8  # so that looking ahead needs no check


def tokenize(text: str) -> list[Token]:
    """The tokens of ``text`` in order, with END tokens last. White space is between tokens."""
    tokens: list[Token] = []
    kinds, new = _KIND, tuple.__new__
    for match in _TOKEN.finditer(text):
        kind, piece, start = kinds[match.lastgroup or ""], match.group(), match.start()
        if kind is Tok.URL:
            piece = piece.rstrip(".,;:!?)*_…。，'")
        # what Token(...) does, without its Python frame: this is the innermost loop
        tokens.append(new(Token, (kind, piece, start, start + len(piece), piece.casefold())))
    tokens.extend([Token(Tok.END, "", len(text), len(text), "")] * _PADDING)
    return tokens


def touches(tokens: list[Token], j: int) -> bool:
    """Is there no space before token ``j``?"""
    return j > 0 and tokens[j].start == tokens[j - 1].end
