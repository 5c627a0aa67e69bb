"""How much a wrong claim would cost, from what the claim is about.

One pass over the claim's words: a dictionary says what each means for severity, key phrases are found by
their rarest word, and what stands at numbers, months and number words is told by their neighbours. What
counts most wins. A word that only touches a topic ("tax", "fee") makes a claim major; beside a number, a
date, a "must" or a "not" it makes it critical. Negation and superlatives lift a claim by one step, at
most to major, because they turn a statement round but are not by themselves a matter of money or health.

Claims are rated on the event loop, so this must be cheap. ``guardrail.values``, which reads the values
themselves, is asked only for e-mail addresses, web addresses and what may be a telephone number.
"""

from __future__ import annotations

import re
from itertools import compress
from operator import ne
from typing import Final

from guardrail.claims import severity_amounts as amounts
from guardrail.claims import severity_lexicon as lexicon
from guardrail.claims.severity_names import names_something
from guardrail.claims.severity_reasons import BIT, REASON_BITS, SEVERITY_REASONS, Reason, grade
from guardrail.claims.severity_rules import SeverityPattern, SeverityRules
from guardrail.claims.severity_words import (
    ADDRESSED,
    CHATTER,
    DIRECTION,
    HANDLING,
    MEDICAL,
    MODAL,
    PHRASE,
    PHRASES,
    SPOT,
    STEMS,
    SURROUNDINGS,
    TOPIC_SHIFT,
    WORDS,
)
from guardrail.events import SegmentKind, Severity
from guardrail.values import ValueKind, extract
from guardrail.values.addresses import find_addresses

__all__ = ["SEVERITY_REASONS", "BuiltinSeverityRater", "Reason"]

_UNRATED: Final = frozenset({SegmentKind.HEADING, SegmentKind.CODE, SegmentKind.BLANK})
# Linear on any text: what may fail after having read something is bounded, but for a word, which is read
# twice at most. Commas and white space are no tokens; spaces are read here as failing at each costs more.
_TOKENS: Final = re.compile(
    r"""
    [ ,]{0,2}+
    ( [A-Za-z]{2,}+(?![\w'’\-])                             # most words
    | [^\W\d_](?:\.[^\W\d_]){1,8}+(?![^\W\d_])\.?          # a.m.  U.S.
    | \d++(?:[.,:/'’\-–−]?\w++)*+                          # 5,000  10:30  500mg  3rd  2.3.1
    | [^\W_]++(?:['’\-][^\W_]++)*+                         # other words
    | [^\w\s,] | _
    )
    """,
    re.VERBOSE,
).findall
# What can't be told to be a number by the dictionary: digits, and "twenty-five".
_NUMERIC: Final = re.compile(r"[\d\-]")
_CITATION: Final = re.compile(r"\[\d{1,3}+(?:[ ,;–\-]{1,3}+\d{1,3}+){0,12}+\]")
_ADDRESS: Final = re.compile(
    r"\.(?:com|org|net|gov|edu|io|eu|de|fr|es|uk|info|int|dev|app|ai|co|ch|at|nl|COM|ORG|NET)(?![\w-])"
)
_PAD: Final = [""] * 4  # so that looking ahead needs no check

_REASONS: Final = (1 << REASON_BITS) - 1
_LIMIT: Final = BIT["limit"]
_NEGATION: Final = BIT["negation"]
_CLINICAL: Final = BIT["clinical_direction"]
_SAFETY: Final = BIT["safety_warning"]
_PERMISSION: Final = BIT["permission"]
_NAMED: Final = BIT["named_entity"]
_NAMING: Final = _NAMED | BIT["identifier"]


class BuiltinSeverityRater:
    """Rates claims by the built-in rules and the operator's. Stateless after construction, safe to share."""

    __slots__ = ("_enabled", "_patterns")

    def __init__(self, rules: SeverityRules = SeverityRules()) -> None:  # noqa: B008 - frozen
        self._enabled = sum(bit for reason, bit in BIT.items() if reason not in rules.disabled_reasons)
        self._patterns = tuple((pattern, _compile(pattern)) for pattern in rules.patterns)

    def rate(self, text: str, kind: SegmentKind) -> tuple[Severity, tuple[str, ...]]:
        """The severity of a claim and the reasons for it, the gravest first. Never raises.

        Claims never stand in headings, code or blank segments; asked all the same, these are minor unless the
        operator's rules say otherwise.
        """
        severity, reasons = (Severity.MINOR, ()) if kind in _UNRATED else self._builtin(text)
        if not self._patterns:
            return severity, reasons
        added: dict[str, Severity] = {}
        for pattern, expressions in self._patterns:
            if any(_found(expression, text) for expression in expressions):
                added[pattern.reason] = max(
                    added.get(pattern.reason, pattern.severity), pattern.severity, key=_rank
                )
        if not added:
            return severity, reasons
        gravest = sorted(added, key=lambda reason: -added[reason].rank)
        merged = (*gravest, *(reason for reason in reasons if reason not in added))
        return max(severity, *added.values(), key=_rank), merged

    def _builtin(self, text: str) -> tuple[Severity, tuple[str, ...]]:
        addresses = 0
        if "@" in text or "://" in text or "www." in text or _ADDRESS.search(text):
            text, addresses = _without(text, phones=False)
        if "[" in text:
            text = _CITATION.sub(" ", text)
        reasons, marks, lows = _read(text)
        if reasons & amounts.MAYBE_PHONE:
            text, phones = _without(text, phones=True)
            addresses |= phones
            reasons, marks, lows = _read(text)
            reasons &= ~amounts.MAYBE_PHONE
        valued = reasons & ~_NAMING | addresses
        if marks & _LIMIT and not valued:
            marks &= ~_LIMIT  # a limit needs its number
        if marks & MEDICAL and marks & DIRECTION:
            marks |= _CLINICAL << TOPIC_SHIFT
        if marks & HANDLING and marks & (ADDRESSED | SURROUNDINGS) and _permitted(lows):
            if marks & ADDRESSED:
                reasons |= _PERMISSION
            if marks & SURROUNDINGS:
                marks |= _SAFETY << TOPIC_SHIFT
        topics = marks >> TOPIC_SHIFT
        reasons |= addresses | marks & _REASONS
        pointed = valued or marks & (MODAL | _NEGATION) or _directs(lows)
        mentions = 0 if pointed else topics & ~reasons
        return grade((reasons | topics) & self._enabled, mentions, bool(marks & CHATTER))


def _read(text: str) -> tuple[int, int, list[str]]:
    """The reasons of a claim's numbers, dates and names; the marks of its words; its tokens in lower case."""
    tokens = _TOKENS(text) or ["."]
    joined = " ".join(tokens).lower()
    if "’" in text:
        joined = joined.replace("’", "'")
    lows = joined.split(" ")
    marks, spots, keys = _look_up(lows, joined)
    if keys:
        joined = f" {joined} "
        for key in set(keys):
            for phrase, meaning in PHRASES[key]:
                if phrase in joined:
                    marks |= meaning
    reasons = 0
    capitals = list(compress(range(len(tokens)), map(ne, tokens, lows)))
    if spots or capitals:
        tokens += _PAD
        lows += _PAD
        for i in spots:
            reasons |= amounts.at(tokens, lows, i, marks)
        if capitals and names_something(tokens, lows, capitals):
            reasons |= _NAMED
    return reasons, marks, lows


def _look_up(lows: list[str], joined: str) -> tuple[int, list[int], list[str]]:
    """The marks of all words, where a number or date may stand, and the words by which to find phrases."""
    marks = 0
    spots: list[int] = []
    keys: list[str] = []
    for i, mark in enumerate(map(WORDS.get, lows)):
        if mark:
            marks |= mark
            if mark & (PHRASE | SPOT):
                if mark & PHRASE:
                    keys.append(lows[i])
                if mark & SPOT:
                    spots.append(i)
        elif mark is None:
            low = lows[i]
            if low[:4] in STEMS:
                for stem, meaning in STEMS[low[:4]]:
                    if low.startswith(stem):
                        marks |= meaning
    if _NUMERIC.search(joined):
        spots += [i for i, low in enumerate(lows) if not low.isalpha() and low not in WORDS]
    return marks, spots, keys


def _directs(lows: list[str]) -> bool:
    """Is the first word one of direction ("Monitor ...")? Bullets and quotes before it are none."""
    first = lows[0] if lows[0].isalpha() else next((low for low in lows if low.isalpha()), "")
    return first in lexicon.DIRECTIONS


def _permitted(lows: list[str]) -> bool:
    """Does a "can" or "must" stand right before what is done with a thing: "can only be used"?"""
    return any(
        low in lexicon.HANDLING and not lexicon.PERMITS.isdisjoint(lows[max(0, i - 3) : i])
        for i, low in enumerate(lows)
    )


def _without(text: str, *, phones: bool) -> tuple[str, int]:
    """``text`` with its addresses, or its telephone numbers, blanked out, and the reasons that they are."""
    reasons, pieces, last = 0, [], 0
    for value in extract(text) if phones else find_addresses(text):
        if phones and value.kind is not ValueKind.PHONE:
            continue
        reasons |= BIT["url"] if value.kind is ValueKind.URL else BIT["contact"]
        pieces += [text[last : value.start], " ; "]
        last = value.end
    return "".join([*pieces, text[last:]]), reasons


def _rank(severity: Severity) -> int:
    return severity.rank


def _compile(rule: SeverityPattern) -> tuple[re.Pattern[str], ...]:
    """The operator's expression, and one for the keywords as whole words with any white space between."""
    expressions = []
    if rule.pattern is not None:
        expressions.append(re.compile(rule.pattern, re.IGNORECASE))
    words = [r"\s+".join(map(re.escape, keyword.split())) for keyword in rule.keywords if keyword.strip()]
    if words:
        expressions.append(re.compile(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)", re.IGNORECASE))
    return tuple(expressions)


def _found(expression: re.Pattern[str], text: str) -> bool:
    """A search that can't fail: an expression too deep for this text counts as found, the careful reading."""
    try:
        return expression.search(text) is not None
    except (RecursionError, MemoryError, OverflowError):
        return True
