"""Text -> tokens: one expression, possessive or bounded throughout, so that no input makes it backtrack."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Final, NamedTuple

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
