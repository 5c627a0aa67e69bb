"""How much a wrong claim would cost, judged by what the claim is about.

The words of the claim (``severity.yaml``) and the kinds of its figures give reasons; the gravest counts. A
word that only touches a topic ("tax", "fee") makes a claim major; together with a figure, a "must" or a "not"
it makes it critical. Negation and superlatives raise a claim by one step, at most to major, because they
reverse a statement but are not by themselves a matter of money or health.

In ``severity.yaml`` a word or phrase has *marks*: the name of a reason, if the word is sufficient for it;
that after a "~", if it only touches the topic; or what else it contributes to a claim ("modals", "medical"
...).

Claims are rated on the event loop, so this must be cheap: all words are looked up together, figures are
recognised by their neighbours alone (``guardrail.figures`` also reads their amounts and bounds, at four times
the cost), and the reasons of a set of marks are cached.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final, NamedTuple, Self

import re2
from pydantic import Field, field_validator, model_validator

from guardrail.events import SegmentKind, Severity
from guardrail.figures.tables import (
    CENTS,
    CURRENCY_WORDS,
    LETTER_MAGNITUDES,
    MAGNITUDES,
    MONTHS,
    PERCENT_WORDS,
    SIGNS,
    UNITS,
    Tok,
    tokenize,
)
from guardrail.frozen import Frozen
from guardrail.shipped import shipped_yaml

#: Lists of words whose mark is the list's name.
_CONTRIBUTING: Final = tuple(
    "modals addressed medical directions rights counts perhaps_counts calendar chatter".split()  # noqa: SIM905
)
_WORD: Final = re.compile(r"[^\W_]++(?:'[^\W_]++)*+")


class Reason(NamedTuple):
    """A built-in reason: the severity it sets, and what it means."""

    severity: Severity
    description: str


class Lexicon(NamedTuple):
    """Reasons in the order of report; marks by word; phrases and their marks by the word to find them by.

    A phrase has a space on either side, and its words are those of ``words_of``.
    """

    reasons: dict[str, Reason]
    lifting: frozenset[str]
    words: dict[str, frozenset[str]]
    phrases: dict[str, tuple[tuple[str, str], ...]]
    units: dict[str, frozenset[str]]
    lists: dict[str, frozenset[str]]


def words_of(text: str) -> list[str]:
    """The words and figures of ``text`` in lower case, cut at hyphens and all other signs except
    apostrophes.
    """
    if "’" in text:
        text = text.replace("’", "'")
    return _WORD.findall(text.lower())


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    """The built-in lexicon."""
    data = shipped_yaml("guardrail.claims", "severity.yaml")
    words: dict[str, set[str]] = {}
    phrases: dict[str, list[tuple[str, str]]] = {}
    for mark, entry in _marked(data):
        parts = words_of(entry)
        if len(parts) == 1:
            words.setdefault(parts[0], set()).add(mark)
        elif parts:  # found by the longest word, which is usually the rarest
            phrases.setdefault(max(parts, key=len), []).append((f" {' '.join(parts)} ", mark))
    return Lexicon(
        {name: Reason(Severity(severity), means) for name, (severity, means) in data["reasons"].items()},
        frozenset(data["lifting"]),
        {word: frozenset(marks) for word, marks in words.items()},
        {key: tuple(group) for key, group in phrases.items()},
        {name: frozenset(units) for name, units in data["units"].items()},
        {name: frozenset(_entries(data[name])) for name in (*_CONTRIBUTING, "clock", "due", "german")},
    )


def _marked(data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every word or phrase of a claim that says something, after its mark."""
    for reason, phrases in data["keywords"].items():
        yield from ((reason, entry) for entry in _entries(phrases))
    for reason, phrases in data["topics"].items():
        yield from ((f"~{reason}", entry) for entry in _entries(phrases))
    for name in _CONTRIBUTING:
        yield from ((name, entry) for entry in _entries(data[name]))


def _entries(phrases: str) -> Iterable[str]:
    return (phrase.strip() for phrase in phrases.split(","))


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
_CONTACTS: Final = frozenset({Tok.EMAIL, Tok.URL, Tok.PHONE})

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
    """The reasons that the figures of ``text`` give, together with the ``marks`` of its words.

    Near medicine "5 ml" and "twice a day" are doses; near a word for deadlines every day, time and duration
    is one.
    """
    digit = _DIGIT.search(text)
    contact = "@" in text or "://" in text or _DOMAIN.search(text) or (digit and _PHONE.search(text))
    if not (contact or digit or " May" in text) and _STARTING.isdisjoint(marks):
        return frozenset()
    reasons: set[str] = set()
    if contact and (found := [token for token in tokenize(text) if token.kind in _CONTACTS]):
        reasons.add("contact")
        starts, ends = [0, *(each.end for each in found)], [*(each.start for each in found), len(text)]
        text = " ; ".join(text[start:end] for start, end in zip(starts, ends, strict=True))
    resolved = _CLINICAL if "medical" in marks or "safety" in marks else _RESOLVED
    due = "deadline" in marks or "~deadline" in marks
    tokens = _TOKEN.findall(text)
    lows = [token if len(token) == 1 or token in _SHY else token.lower() for token in tokens]
    lows += [""] * 4  # so that looking ahead needs no check
    for i, low in enumerate(lows):
        if low in _STARTS or (not low.isalpha() and _has_figure(low)):
            kind = _kind(tokens, lows, i)
            if kind in _TIMED and (due or not _DUE.isdisjoint(lows[max(0, i - _WORDS_BEFORE) : i + 1])):
                reasons.add("deadline")
            elif kind:
                reasons.add(resolved.get(kind, kind))
    if "date" in reasons:
        reasons.discard("period")  # usually the year of the date
    return frozenset(reasons)


def _has_figure(low: str) -> bool:
    return low[:1].isdigit() or (low[-1:].isdigit() and low not in _MEASURES)


def _kind(tokens: list[str], lows: list[str], i: int) -> str | None:
    """What the figure at token ``i`` is: a reason or a name of ``units``. None: nothing, or another figure
    decides.
    """
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
    """What the form of a figure, or the letters right after it, say: "500mg", "3rd", "1990s", "10:30"."""
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


# ------------------------------------------------------------------------------------------ operators' rules
#
# Patterns run on RE2, so that no text makes them slow. RE2's own classes know ASCII only; here they are
# Python's, which know the letters and digits of every language.

_IN_WORDS: Final = r"\pL\pN_"
_OTHER_CONNECTORS: Final = "\u203f\u2040\u2054\ufe33\ufe34\ufe4d-\ufe4f\uff3f"  # all of \p{Pc} but "_"
_CLASSES: Final = {  # what stands in a set for a class
    r"\w": _IN_WORDS,
    r"\W": rf"\pM\pZ\pC\pS\p{{Ps}}\p{{Pe}}\p{{Pi}}\p{{Pf}}\p{{Pd}}\p{{Po}}{_OTHER_CONNECTORS}",
    r"\d": r"\p{Nd}",
    r"\D": r"\P{Nd}",
    r"\s": r"\t-\r\x1c-\x1f\x{85}\pZ",
    r"\S": r"\pL\pM\pN\pP\pS\p{Cf}\p{Co}\x00-\x08\x0e-\x1b\x7f-\x{84}\x{86}-\x{9f}",
}
_ESCAPE: Final = re.compile(r"\\.", re.DOTALL)
_FLAGS: Final = re.compile(r"\(\?[a-zA-Z]+\)")
# Flags of the whole pattern; a set; an escape; any other character.
_PART: Final = re.compile(
    rf"\A{_FLAGS.pattern}|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*+\]|{_ESCAPE.pattern}|.", re.DOTALL
)
_NO_LEAST: Final = re.compile(r"(?<!\\)\{,\d+\}")
_NO_WORD: Final = f"[^{_IN_WORDS}]"
_NOT_OF_A_WORD: Final = re.compile(r"\\[^a-zA-Z0-9_]|\\[bBWsAZz]|[^\w()\[.+*?{}]")
_REMEDY: Final = (
    "write it in RE2's syntax (https://github.com/google/re2/wiki/Syntax), which has no look-around, "
    "back-references, possessive quantifiers and comments, and repeats 1,000 times at most, or give keywords"
)


def linear_search(pattern: str) -> Callable[[str], bool]:
    """Says whether a text has a match of the pattern, ignoring case, in time linear in the text.

    Raises ValueError for what is not a regular expression, or more than RE2 can express.
    """
    if _NO_LEAST.search(pattern):
        raise ValueError("RE2 takes {,n} for text; write {0,n}")
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False  # they would appear on the console beside the message
    options.never_capture = True
    try:
        compiled = re2.compile(_for_re2(pattern), options)
    except re2.error as error:
        told = error.args[0].decode(errors="replace")
        raise ValueError(f"RE2 can't read it: {told}; {_REMEDY}") from None
    if compiled.search(b""):
        raise ValueError(
            "it matches the empty text, and thereby every claim; let it ask for one character at least"
        )
    return lambda text: compiled.search(text.encode(errors="replace")) is not None


def _for_re2(pattern: str) -> str:
    """The pattern with Python's classes and ends, and with its word boundaries as what stands there."""
    parts = [match[0] for match in _PART.finditer(pattern)]
    read, depth = "", 0
    for i, part in enumerate(parts):
        depth += (part == "(") - (part == ")")
        if part in {r"\b", r"\B"}:
            begins = i == 0 or parts[i - 1] == "|" or _FLAGS.fullmatch(parts[i - 1]) is not None
            ends = parts[i + 1 : i + 2] in ([], ["|"])
            if part == r"\B" or depth or not (begins or ends):
                raise ValueError(
                    rf"{part} may only stand at the beginning or end of a whole pattern, or of an "
                    r"alternative of it, as in '\bpn-?\d+\b'; inside write \W, or give keywords, which are "
                    "whole words"
                )
            beside = parts[i + 1 : i + 2] if begins else parts[i - 1 : i]
            if not beside or _NOT_OF_A_WORD.fullmatch(beside[0]):
                raise ValueError(
                    rf"\b needs a letter or digit beside it, or what stands for one: in {''.join(parts)!r} "
                    r"it has none; leave it out there, or write \W or \w"
                )
            read += rf"(?:\A|{_NO_WORD})" if begins else rf"(?:{_NO_WORD}|\z)"
        elif part[0] == "[":
            read += _ESCAPE.sub(lambda escape: _CLASSES.get(escape[0], escape[0]), part)
        elif part in _CLASSES:
            read += f"[{'^' if part[1].isupper() else ''}{_CLASSES[part.lower()]}]"
        else:
            read += r"\z" if part == r"\Z" else part
    return read


class SeverityPattern(Frozen):
    """A regular expression or a list of keywords that sets at least this severity."""

    reason: str = Field(min_length=1, description="Reported with the claim, e.g. 'recall_notice'.")
    severity: Severity = Field(description="The claim gets at least this severity.")
    pattern: str | None = Field(
        default=None,
        description="Regular expression in RE2's syntax, searched ignoring case in linear time: without "
        "look-around and back-references, and with \\b at its beginning and end only.",
    )
    keywords: tuple[str, ...] = Field(
        default=(), description="Whole words or phrases, compared ignoring case."
    )

    @model_validator(mode="after")
    def _finds_something(self) -> Self:
        if not self.pattern and not self.keywords:
            raise ValueError("it has neither pattern nor keywords and finds nothing; give one of them")
        return self

    @field_validator("keywords")
    @classmethod
    def _words(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for keyword in value:
            if not any(map(str.isalnum, keyword)):
                raise ValueError(f"{keyword!r} has no letter or digit and finds nothing; take it out")
        return value

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        if value:
            linear_search(value)
        return value


class SeverityRules(Frozen):
    """Rules in addition to the built-in severity rules."""

    patterns: tuple[SeverityPattern, ...] = Field(
        default=(), description="Every pattern that matches a claim raises its severity and is reported."
    )
    disabled_reasons: frozenset[str] = Field(
        default=frozenset(), description="Built-in reasons to switch off."
    )


# -------------------------------------------------------------------------------------------------- rating

#: Every built-in reason, in the order of report within a severity. ``disabled_reasons`` names these.
SEVERITY_REASONS: Final = _LEXICON.reasons
_WORDS: Final = _LEXICON.words
_KNOWN: Final = frozenset(_WORDS)
_PHRASE_KEYS: Final = frozenset(_LEXICON.phrases)
_LISTS: Final = _LEXICON.lists
_CACHED: Final = 4096  # sets of marks; a thousand or two occur
_UNRATED: Final = frozenset({SegmentKind.HEADING, SegmentKind.CODE, SegmentKind.BLANK})
# A capitalised word that does not begin the sentence, and whether another follows.
_CAPITALISED: Final = re.compile(
    r" (?<=[\w,;)'’.] )(?!I\b)([A-ZÀ-Þ][A-ZÀ-Þ'’]*+[a-zß-ÿ][\w'’]*+)( (?=[A-ZÀ-Þ]))?"
)
_RAISED: Final = frozenset(("safety", "legal"))
_DUE_BY: Final = frozenset(("deadline", "date", "time", "quantity", "limit"))
_rank: Final = attrgetter("rank")
_GERMAN_SHARE: Final = 1 / 12  # of the words


class BuiltinSeverityRater:
    """Rates claims by the built-in and the operator's rules. Stateless after construction, safe to share."""

    __slots__ = ("_disabled", "_patterns")

    def __init__(self, rules: SeverityRules = SeverityRules()) -> None:  # noqa: B008 - frozen
        self._disabled = rules.disabled_reasons
        self._patterns = tuple((pattern, _compile(pattern)) for pattern in rules.patterns)

    def rate(self, text: str, kind: SegmentKind) -> tuple[Severity, tuple[str, ...]]:
        """The severity of a claim and the reasons for it, gravest first. Never raises.

        Headings, code and blank segments never contain claims; if asked anyway, they are minor unless the
        operator's rules say otherwise.
        """
        severity, reasons = (Severity.MINOR, ()) if kind in _UNRATED else self._builtin(text)
        if not self._patterns:
            return severity, reasons
        added: dict[str, Severity] = {}
        for pattern, searches in self._patterns:
            if any(search(text) for search in searches):
                added[pattern.reason] = max(
                    added.get(pattern.reason, pattern.severity), pattern.severity, key=_rank
                )
        if not added:
            return severity, reasons
        gravest = sorted(added, key=lambda reason: -added[reason].rank)
        merged = (*gravest, *(reason for reason in reasons if reason not in added))
        return max(severity, *added.values(), key=_rank), merged

    def _builtin(self, text: str) -> tuple[Severity, tuple[str, ...]]:
        words = words_of(text)
        marks = _marks(words)
        figures = figure_reasons(text, marks)
        if "addressed" in marks and _permits(words):
            marks.add("permission")
        if _names_something(text, words):
            marks.add("name")
        return _grade(frozenset(marks), figures, self._disabled)


def _marks(words: list[str]) -> set[str]:
    """The marks of all words and phrases."""
    marks = set().union(*map(_WORDS.__getitem__, _KNOWN.intersection(words)))
    if keys := _PHRASE_KEYS.intersection(words):
        joined = f" {' '.join(words)} "
        phrases = _LEXICON.phrases
        marks.update(mark for key in keys for phrase, mark in phrases[key] if phrase in joined)
    return marks


def _permits(words: list[str]) -> bool:
    """ "You can ...", "Guests must ...": a group of readers right before a modal."""
    addressed, modals = _LISTS["addressed"], _LISTS["modals"]
    return any(word in addressed and after in modals for word, after in pairwise(words))


def _names_something(text: str, words: list[str]) -> bool:
    """Whether there is a proper name. Capitals show that, but not at the beginning nor, singly, in German."""
    german: bool | None = None  # not checked yet
    for match in _CAPITALISED.finditer(text):
        if match[1].lower() in NO_NAMES:
            continue
        if german is None:
            german = sum(map(_LISTS["german"].__contains__, words)) > len(words) * _GERMAN_SHARE
        if not german or match[2]:
            return True
    return False


@lru_cache(maxsize=_CACHED)
def _grade(
    marks: frozenset[str], figures: frozenset[str], disabled: frozenset[str]
) -> tuple[Severity, tuple[str, ...]]:
    """The severity of a claim with these marks and reasons of figures; its reasons, the gravest first."""
    reasons = marks | figures
    if not figures:
        reasons -= {"limit"}  # a limit needs its figure
    if "medical" in marks and not marks.isdisjoint(("directions", "negation")):
        reasons |= {"safety"}
    if "rights" in marks and not (_DUE_BY.isdisjoint(reasons) and "~deadline" not in marks):
        reasons |= {"legal"}
    pointed = bool(figures or marks & {"modals", "negation"})
    graded = {
        name: reason.severity if name in reasons or (pointed and name in _RAISED) else Severity.MAJOR
        for name, reason in SEVERITY_REASONS.items()
        if (name in reasons or f"~{name}" in marks) and name not in disabled
    }
    gravest = max(graded.values(), key=_rank, default=Severity.NORMAL)
    if "chatter" in marks and graded.keys() <= _LEXICON.lifting:
        gravest = Severity.NORMAL if graded else Severity.MINOR
    return gravest, tuple(sorted(graded, key=lambda name: -graded[name].rank))


def _compile(rule: SeverityPattern) -> tuple[Callable[[str], object], ...]:
    """Searches for the operator's expression, and for the keywords as whole words with any white space
    between.
    """
    searches: list[Callable[[str], object]] = []
    if rule.pattern is not None:
        searches.append(linear_search(rule.pattern))
    words = [r"\s+".join(map(re.escape, keyword.split())) for keyword in rule.keywords]
    if words:
        searches.append(re.compile(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)", re.IGNORECASE).search)
    return tuple(searches)
