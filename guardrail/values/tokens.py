"""Text -> tokens: one regular expression, possessive throughout, so that no input makes it backtrack.

Every alternative either fails within a bounded number of characters or keeps all that it has read; the
only unbounded re-reading is a word that turns out not to be an identifier, which is read twice.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Final, NamedTuple


class Tok(IntEnum):
    """Kinds of tokens."""

    PHONE = 1
    DATE = 2
    TIME = 3
    VERSION = 4
    IDENT = 5
    NUMBER = 6
    ABBREVIATION = 7
    WORD = 8
    SYMBOL = 9
    END = 10


class Token(NamedTuple):
    """A piece of the text; ``low`` is its case-folded form. Spans are code points."""

    kind: Tok
    text: str
    start: int
    end: int
    low: str


# Spaces that group digits: plain, no-break, thin, narrow no-break.
_GROUP_SPACE: Final = " \u00a0\u2009\u202f"

# "mid-2021" is a date, "omega-3" a name.
_PREFIXES: Final = (
    "mid|pre|post|non|sub|late|early|top|under|over|age|aged|ages|between|from|to|and|or|twenty|page|pages|"
    "jan|january|feb|february|mar|march|apr|april|may|jun|june|jul|july|aug|august|sep|sept|september|oct|"
    "october|nov|november|dec|december"
)

_TOKEN: Final = re.compile(
    rf"""
    ( [A-Za-z]++(?![\w.'’\-]) )    # most words; the rest below
    | ( \+(?=(?:[ .\-/()]{{0,2}}\d){{8}})  # eight digits and more
      \d{{1,3}}[ .\-/]?(?:\(\d{{1,4}}\)[ .\-/]?)?\d{{1,8}}(?:[ .\-/]?\d{{2,8}}){{0,5}}+(?!\d)
    | \(\d{{3,5}}\)[ .\-]?\d{{3,4}}[ .\-]?\d{{3,5}}(?!\d)
    | (?:1[.\- ])?\d{{3}}[.\-]\d{{3}}[.\-]\d{{4}}(?![\d\-])
    | 1[ ]\d{{3}}[ ]\d{{3}}[ ]\d{{4}}(?!\d)
    | 0\d{{1,4}}[ \-/]\d{{2,4}}(?:[ \-]\d{{2,4}}){{1,3}}+(?!\d)
    | 0\d{{1,4}}[ \-/]\d{{5,8}}(?!\d)
    )
    | ( \d{{4}}(?P<s>[\-/.])\d{{1,2}}(?P=s)\d{{1,2}}(?!\d)
      | \d{{1,2}}(?P<t>[\-/.])\d{{1,2}}(?P=t)\d{{4}}(?!\d)
      | \d{{1,2}}/\d{{1,2}}/\d{{2}}(?!\d)
      )
    | ( \d{{1,2}}:\d{{2}}(?::\d{{2}})?(?![\d:]) )
    | ( [vV]\d++(?:\.\d++)*+(?:-?(?:alpha|beta|rc|b|a)\.?\d*+)?(?!\w)
      | \d++(?:\.\d++){{2,}}+(?:-(?:alpha|beta|rc)\.?\d*+)? )
    | ( (?<!\d)[A-Za-zÀ-ɏ]++\d[\dA-Za-zÀ-ɏ]*+(?:[\-_][\dA-Za-zÀ-ɏ]++)*+
      | (?!(?i:{_PREFIXES})-)[A-Za-z]{{1,16}}(?:-[A-Z][A-Za-z]{{0,15}})?-\d{{1,5}}(?!\d|[.,/:]\d|%)
        \w*+(?:-\w++)*+
      | \d++[A-Za-z]{{1,4}}+\d\w*+
      )
    | ( \d{{1,3}}(?:[{_GROUP_SPACE}]\d{{3}}(?!\d))++(?:[.,]\d{{1,3}}(?!\d))?
      | \d++(?:[.,'’]\d++)*+
      | (?<![\w.])\.\d++
      )
    | ( (?:[^\W\d_]\.){{2,}}+ )
    | ( [^\W\d_]++(?:['’][^\W\d_]++)*+ )
    | ( [^\s\w] | _ )
    """,
    re.VERBOSE,
)

# ``lastindex`` is the group that closed last: the outer one, for the named groups stand inside DATE.
_NUMBER_OF: Final = (
    Tok.END, Tok.WORD, Tok.PHONE, Tok.DATE, Tok.END, Tok.END, Tok.TIME, Tok.VERSION, Tok.IDENT, Tok.NUMBER,
    Tok.ABBREVIATION, Tok.WORD, Tok.SYMBOL,
)  # fmt: skip


def tokenize(text: str) -> list[Token]:
    """The tokens of ``text`` in order, with an END token last. White space is between tokens."""
    kinds = _NUMBER_OF
    tokens: list[Token] = []
    add, new = tokens.append, tuple.__new__
    for match in _TOKEN.finditer(text):
        piece = match.group()
        start, end = match.span()
        # what Token(...) does, without its Python frame: this is the innermost loop
        add(new(Token, (kinds[match.lastindex or 0], piece, start, end, piece.casefold())))
    add(Token(Tok.END, "", len(text), len(text), ""))
    return tokens
