"""Which reasons the figures of a claim give: prices, doses, dates, quantities ...

``guardrail.figures`` reads figures with their amounts and bounds, in order to compare them, at four times the
cost; claims are rated on the event loop. Here a figure is told by its neighbours alone, with the tables of
``guardrail.figures``, which is asked only for addresses and telephone numbers.
"""

from __future__ import annotations

import re
from typing import Final

from guardrail.claims.severity_lexicon import lexicon
from guardrail.figures import Kind, find_figures
from guardrail.figures.tables import (
    CENTS,
    CURRENCY_WORDS,
    LETTER_MAGNITUDES,
    MAGNITUDES,
    MONTHS,
    PERCENT_WORDS,
    SIGNS,
    UNITS,
)

_LEXICON: Final = lexicon()
_DUE: Final = _LEXICON.lists["due"]
_WORDS_BEFORE: Final = 3  # within which a word of ``_DUE`` makes a time a deadline
_COUNTS: Final = _LEXICON.lists["counts"]
_PERHAPS: Final = _LEXICON.lists["perhaps_counts"]
# "May" and "March" are months with a capital only; other months are written small in some languages.
_SHY: Final = frozenset(("May", "March"))
_MONTHS: Final = MONTHS.keys() - {"may", "march"} | _SHY
_CALENDAR: Final = _LEXICON.lists["calendar"] - {"march"} | _MONTHS
_STARTS: Final = _COUNTS | _PERHAPS | _CALENDAR | {"½", "¼", "¾"}
_ARTICLES: Final = frozenset(("a", "an", "einer", "eine", "un", "une"))
_EACH: Final = _ARTICLES | {"daily", "weekly", "per", "every", "each"}
_ADVERBS: Final = frozenset(("once", "twice", "thrice"))
_RANGE: Final = frozenset(("to", "or", "and", "bis", "oder", "und", "à", "y"))
_LETTERS: Final = "gmlh"  # units of one letter, other than those that are more often something else
_MAX_MULTIPLIERS: Final = 3  # "two hundred million dollars"
_CONTACTS: Final = frozenset((Kind.EMAIL, Kind.URL, Kind.PHONE))

_STARTING: Final = frozenset(("counts", "perhaps_counts", "calendar"))
_DIGIT: Final = re.compile(r"[\d½¼¾]")
_DOMAIN: Final = re.compile(r"\.(?:com|org|net|edu|gov|io|eu|de|fr|es|uk)(?![\w-])")
_PHONE: Final = re.compile(r"\d(?:[ ()/.\-]{0,2}\d){6}")  # maybe one: seven digits
_TOKEN: Final = re.compile(
    r"[A-Za-z]{2,}+(?![^\W_])|\d++(?:[.,:/'’\-–]\d++)*+(?:-?[^\W\d_]++)?"  # most words; figures
    r"|(?:[^\W\d_]\.){2,8}|[^\W\d_]++(?:\d++[^\W_]*+)?|[$€£¥₹¢%½¼¾]|°[CF]?"
)
_FIGURE: Final = re.compile(r"(\d++(?:[.,:/'’\-–]\d++)*+)-?([^\W\d_]*+)")
_DATE: Final = re.compile(r"\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2\d{4}|\d{1,2}/\d{1,2}/\d\d")
_TIME: Final = re.compile(r"\d{1,2}:\d\d(?::\d\d)?(?:[-–]\d{1,2}:\d\d)?")
_YEAR: Final = re.compile(r"(?:1\d|20)\d\d(?:[-–/](?:\d\d|\d{4}))?")
_FRACTION: Final = re.compile(r"\d/\d{1,2}")


def _measures() -> dict[str, str]:
    """What follows a figure, in lower case -> a reason, or a name of ``units`` that the claim makes one."""
    of_unit = {unit: name for name, units in _LEXICON.units.items() for unit in units}
    table = {
        spelling.lower(): of_unit.get(unit.name, "quantity")
        for spelling, unit in UNITS.items()
        if len(spelling) > 1 or spelling in _LETTERS
    }
    table |= dict.fromkeys((*CURRENCY_WORDS, *CENTS, *"$€£¥₹"), "price")
    table |= dict.fromkeys((*PERCENT_WORDS, "per cent"), "percentage")
    return table | dict.fromkeys((*_LEXICON.lists["clock"], "a.m.", "p.m."), "time")


_MEASURES: Final = _measures()
#: Capitalised words that name nothing.
NO_NAMES: Final = frozenset((*_MEASURES, *_LEXICON.lists["calendar"]))
_RESOLVED: Final = {"maybe_dosage": "quantity", "times": "number", "years": "period", "durations": "quantity"}
_CLINICAL: Final = _RESOLVED | {"maybe_dosage": "dosage", "times": "dosage"}
_TIMED: Final = frozenset(("date", "time", "years", "durations"))


def figure_reasons(text: str, marks: set[str]) -> frozenset[str]:
    """The reasons that the figures of ``text`` give, seen the ``marks`` of its words.

    Beside medicine "5 ml" and "twice a day" are doses; beside a word of deadlines every day, time and
    duration is one.
    """
    digit = _DIGIT.search(text)
    contact = "@" in text or "://" in text or _DOMAIN.search(text) or (digit and _PHONE.search(text))
    if not (contact or digit or " May" in text) and _STARTING.isdisjoint(marks):
        return frozenset()
    reasons: set[str] = set()
    if contact and (found := [figure for figure in find_figures(text) if figure.kind in _CONTACTS]):
        reasons.add("contact")
        starts, ends = [0, *(each.end for each in found)], [*(each.start for each in found), len(text)]
        text = " ; ".join(text[start:end] for start, end in zip(starts, ends, strict=True))
    resolved = _CLINICAL if "medical" in marks or "safety" in marks else _RESOLVED
    due = "deadline" in marks or "~deadline" in marks
    tokens = _TOKEN.findall(text)
    lows = [token if len(token) == 1 or token in _SHY else token.lower() for token in tokens]
    lows += [""] * 4  # so that looking ahead needs no check
    for i, low in enumerate(lows):
        if low in _STARTS or low[:1].isdigit() or (low[-1:].isdigit() and low not in _MEASURES):
            kind = _kind(tokens, lows, i)
            if kind in _TIMED and (due or not _DUE.isdisjoint(lows[max(0, i - _WORDS_BEFORE) : i + 1])):
                reasons.add("deadline")
            elif kind:
                reasons.add(resolved.get(kind, kind))
    if "date" in reasons:
        reasons.discard("period")  # mostly the year of the date
    return frozenset(reasons)


def _kind(tokens: list[str], lows: list[str], i: int) -> str | None:
    """What the figure at token ``i`` is: a reason or a name of ``units``. None: nothing, or another tells."""
    low, before, after = lows[i], lows[i - 1], lows[i + 1]
    if low in {"noon", "midnight"}:
        return "time"
    if low in _CALENDAR:
        told = low in _MONTHS and (before[:1].isdigit() or after[:1].isdigit())  # by the number beside it
        return None if told or not tokens[i][0].isupper() else "period" if low in _MONTHS else "date"
    figure = _FIGURE.fullmatch(tokens[i]) if low[0].isdigit() else None
    if figure and i and tokens[i - 1] in SIGNS:
        return "price"
    if figure and (kind := _formed(figure[1], figure[2], lows, i)):
        return kind
    following = lows[i + 3] if after == "out" else lows[i + 2]
    ranged = following[:1].isdigit() or following in _COUNTS
    if ranged and after in {"in", "out"}:
        return "percentage"
    if low in _ADVERBS and after in _EACH:
        return "times"
    kind = _measured(lows, i + 1 + (low in _PERHAPS and after in _ARTICLES))
    if low == "within" and after not in _ARTICLES:
        return None  # the number behind it tells
    if kind or low in _PERHAPS:
        return kind or ("percentage" if low == "half" else None)
    if low in MAGNITUDES and (before[:1].isdigit() or before in _COUNTS):
        return None  # read with what it multiplies
    if ranged and after in _RANGE:
        return None  # the upper end tells
    return "period" if figure and _YEAR.fullmatch(figure[1]) else "number"


def _formed(number: str, suffix: str, lows: list[str], i: int) -> str | None:
    """What the form of a figure tells, or the letters right behind it: "500mg", "3rd", "1990s", "10:30"."""
    if _DATE.fullmatch(number):
        return "date"
    if _TIME.fullmatch(number):
        return "time"
    if suffix in {"", "st", "nd", "rd", "th"}:
        beside = (lows[i - 1], lows[i + 1], lows[i + 2] if lows[i + 1] == "of" else "")
        if len(number) <= 2 and not _MONTHS.isdisjoint(beside):
            return "date"
        if suffix:
            return "period" if lows[i + 1] in {"century", "quarter"} else "number"
        return "percentage" if _FRACTION.fullmatch(number) and not _measured(lows, i + 1) else None
    if suffix == "s" and number[-1] == "0":
        return "period"
    kind = _MEASURES.get(suffix.lower() if len(suffix) > 1 else suffix)
    if kind is None and suffix in LETTER_MAGNITUDES:
        kind = _measured(lows, i + 1)
    return kind or "number"


def _measured(lows: list[str], j: int) -> str | None:
    """What the words from ``j`` on make of the number before them."""
    for _ in range(_MAX_MULTIPLIERS):
        j += lows[j] in MAGNITUDES or lows[j] in _COUNTS
    return _MEASURES.get(f"{lows[j]} {lows[j + 1]}") or _MEASURES.get(lows[j])
