"""How much a wrong claim would cost, from what the claim is about.

Two linear passes over the claim: its values (see ``guardrail.values``) and its words, matched against key
phrases by their first word. What counts most wins. A word that only touches a topic ("tax", "fee") makes a
claim major; beside a number, a date, a "must" or a "not" it makes it critical. Negation and superlatives
lift a claim by one step, at most to major, because they turn a statement round but are not by themselves a
matter of money or health.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from guardrail.claims.severity_lexicon import (
    CHATTER,
    DEADLINE_BEFORE,
    DIRECTIONS,
    DOSE_UNITS,
    KEYWORDS,
    MAYBE_DOSE_UNITS,
    MEDICAL,
    MODALS,
    TOPICS,
)
from guardrail.claims.severity_rules import SeverityPattern, SeverityRules
from guardrail.events import SegmentKind, Severity
from guardrail.values import Bound, Value, ValueKind, extract


class Reason(NamedTuple):
    """A built-in reason: the severity it sets, and what it means."""

    severity: Severity
    description: str


#: Every built-in reason, in the order of report within a severity. ``disabled_reasons`` names these. The
#: severity is the highest that the reason sets: a mere mention of a topic is major.
SEVERITY_REASONS: Final[dict[str, Reason]] = {
    "dosage": Reason(Severity.CRITICAL, "an amount of a medicine, or how often it is taken"),
    "clinical_direction": Reason(Severity.CRITICAL, "what to do or not to do with a medicine or an illness"),
    "safety_warning": Reason(Severity.CRITICAL, "a danger, and what protects from it"),
    "price": Reason(Severity.CRITICAL, "an amount of money, a price, fee, refund or discount"),
    "deadline": Reason(Severity.CRITICAL, "by when, until when or within what time"),
    "limit": Reason(Severity.CRITICAL, "a maximum, minimum or allowance"),
    "quantity": Reason(Severity.CRITICAL, "a number with a unit of measure"),
    "legal": Reason(Severity.CRITICAL, "a right, duty, prohibition, contract term, tax or eligibility"),
    "contact": Reason(Severity.CRITICAL, "an e-mail address or telephone number"),
    "url": Reason(Severity.CRITICAL, "a web address"),
    "date": Reason(Severity.CRITICAL, "a day, a weekday or a time of day"),
    "period": Reason(Severity.MAJOR, "a year, month, decade or century, or a duration in years"),
    "percentage": Reason(Severity.MAJOR, "a percentage or a share of a whole"),
    "number": Reason(Severity.MAJOR, "a number, count or rank without a unit of measure"),
    "identifier": Reason(Severity.MAJOR, "a version, model, standard or reference number"),
    "named_entity": Reason(Severity.MAJOR, "a named person, organisation, place or product"),
    "negation": Reason(Severity.MAJOR, "says that something is not so; lifts by one step, at most to major"),
    "superlative": Reason(Severity.MAJOR, "most, best, only, always; lifts by one step, at most to major"),
}
_LIFTING: Final = frozenset({"negation", "superlative"})
_ORDER: Final = {reason: i for i, reason in enumerate(SEVERITY_REASONS)}
_RANKED: Final = tuple(Severity)
_UNRATED: Final = frozenset({SegmentKind.HEADING, SegmentKind.CODE, SegmentKind.BLANK})
_WORD: Final = re.compile(r"\w++(?:['’\-]\w++)*+%?")
_CHATTER: Final = "chatter"
_MEDICAL: Final = "medical"
_DIRECTION: Final = "direction"
_MODAL: Final = "modal"
_TOPIC: Final = "topic:"
_NO_REASON: Final = frozenset({_CHATTER, _MEDICAL, _DIRECTION, _MODAL, "limit"})  # a limit needs its number
_NAMING: Final = frozenset({"named_entity", "identifier"})
_LONG_DURATIONS: Final = frozenset({"year", "decade", "century", "deg", "time", "pp", "bp"})
_DURATIONS: Final = frozenset({"s", "min", "h", "day", "week", "fortnight", "workday", "month", "year"})
_BEFORE: Final = 32  # characters before a value that may make it a deadline


class _Phrases:
    """Key phrases by their first word: finding all of a text's is linear in its words."""

    __slots__ = ("_first", "_stems")

    def __init__(self, phrases: Iterable[tuple[str, str]]) -> None:
        self._first: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        self._stems: dict[str, list[tuple[str, str]]] = {}
        for phrase, reason in phrases:
            words = tuple(phrase.split())
            if len(words) == 1 and words[0].endswith("*"):
                self._stems.setdefault(words[0][:4], []).append((words[0][:-1], reason))
            else:
                self._first.setdefault(words[0], []).append((words[1:], reason))

    def find(self, words: list[str], into: set[str]) -> None:
        """Add the reasons of every phrase that ``words`` (lower case) contain."""
        first, stems = self._first, self._stems
        for i, word in enumerate(words):
            for rest, reason in first.get(word, ()):
                if not rest or _follows(rest, words, i + 1):
                    into.add(reason)
            for stem, reason in stems.get(word[:4], ()):
                if word.startswith(stem):
                    into.add(reason)


def _follows(rest: tuple[str, ...], words: list[str], at: int) -> bool:
    if at + len(rest) > len(words):
        return False
    for offset, want in enumerate(rest):
        have = words[at + offset]
        if have != want and not (want[-1] == "*" and have.startswith(want[:-1])):
            return False
    return True


def _split(phrases: str) -> list[str]:
    return [" ".join(phrase.split()) for phrase in phrases.split("|")]


_PHRASES: Final = _Phrases(
    [(phrase, reason) for reason, phrases in KEYWORDS.items() for phrase in _split(phrases)]
    + [(phrase, _CHATTER) for phrase in _split(CHATTER)]
    + [(word, _MEDICAL) for word in MEDICAL]
    + [(word, _DIRECTION) for word in DIRECTIONS]
    + [(word, _MODAL) for word in MODALS]
    + [(phrase, _TOPIC + reason) for reason, phrases in TOPICS.items() for phrase in _split(phrases)]
)


class BuiltinSeverityRater:
    """Rates claims by the built-in rules and the operator's. Stateless after construction, safe to share."""

    __slots__ = ("_disabled", "_patterns")

    def __init__(self, rules: SeverityRules = SeverityRules()) -> None:  # noqa: B008 - frozen
        self._disabled = rules.disabled_reasons
        self._patterns = tuple((pattern, _compile(pattern)) for pattern in rules.patterns)

    def rate(self, text: str, kind: SegmentKind) -> tuple[Severity, tuple[str, ...]]:
        """The severity of a claim and the reasons for it, the gravest first. Never raises.

        Claims never stand in headings, code or blank segments; asked all the same, these are minor unless the
        operator's rules say otherwise.
        """
        severity, reasons = (Severity.MINOR, ()) if kind in _UNRATED else self._builtin(text)
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
        words = [word.replace("’", "'") for word in _WORD.findall(text.lower())]
        found: set[str] = set()
        _PHRASES.find(words, found)
        clinical = "clinical_direction" in found or _MEDICAL in found
        if _MEDICAL in found and _DIRECTION in found:
            found.add(_TOPIC + "clinical_direction")
        topics = {mark.removeprefix(_TOPIC) for mark in found if mark.startswith(_TOPIC)}
        reasons = {mark for mark in found - _NO_REASON if not mark.startswith(_TOPIC)}
        pointed = _MODAL in found or "negation" in found or (bool(words) and words[0] in DIRECTIONS)
        deadline = "deadline" in found or "deadline" in topics
        for value in extract(text):
            reason = _reason_of(value, text, clinical, deadline)
            if reason is None:
                continue
            reasons.add(reason)
            if reason not in _NAMING:
                pointed = True
                if "limit" in found or value.bound in (Bound.AT_MOST, Bound.AT_LEAST):
                    reasons.add("limit")
        mentions: AbstractSet[str] = frozenset() if pointed else topics - reasons
        return _grade((reasons | topics) - self._disabled, mentions, _CHATTER in found)


def _grade(reasons: set[str], mentions: AbstractSet[str], chatter: bool) -> tuple[Severity, tuple[str, ...]]:
    """The gravest of the reasons; those only mentioned are major at most, lifting ones add one step."""

    def severity_of(reason: str) -> Severity:
        return Severity.MAJOR if reason in mentions else SEVERITY_REASONS[reason].severity

    about = [severity_of(reason) for reason in reasons if reason not in _LIFTING]
    severity = max(about, key=_rank) if about else Severity.MINOR if chatter else Severity.NORMAL
    if len(about) < len(reasons) and severity.rank < Severity.MAJOR.rank:
        severity = _RANKED[severity.rank + 1]
    return severity, tuple(sorted(reasons, key=lambda reason: (-severity_of(reason).rank, _ORDER[reason])))


def _reason_of(value: Value, text: str, clinical: bool, deadline: bool) -> str | None:
    kind = value.kind
    if kind is ValueKind.MONEY:
        return "price"
    if kind is ValueKind.QUANTITY:
        if value.unit in DOSE_UNITS or (clinical and value.unit in MAYBE_DOSE_UNITS):
            return "dosage"
        if value.unit in _DURATIONS and (deadline or _deadline_before(value, text)):
            return "deadline"
        return "period" if value.unit in _LONG_DURATIONS else "quantity"
    if kind is ValueKind.PERCENT:
        return "percentage"
    if kind is ValueKind.DATE:
        return _reason_of_date(value, text, deadline)
    if kind is ValueKind.TIME:
        return "deadline" if deadline or _deadline_before(value, text) else "date"
    if kind in (ValueKind.NUMBER, ValueKind.ORDINAL):
        return "percentage" if value.fraction else "number"
    if kind in (ValueKind.EMAIL, ValueKind.PHONE):
        return "contact"
    if kind is ValueKind.URL:
        return "url"
    if kind in (ValueKind.VERSION, ValueKind.IDENTIFIER):
        return "identifier"
    acronym = len(value.words) == 1 and value.text.replace(".", "").isupper()
    return None if acronym else "named_entity"


def _reason_of_date(value: Value, text: str, deadline: bool) -> str:
    parts = value.dates[0]
    past = parts.day is None and parts.year is not None and parts.year < 2000
    if not past and (deadline or _deadline_before(value, text)):
        return "deadline"
    return "date" if parts.day is not None or parts.weekday is not None else "period"


def _deadline_before(value: Value, text: str) -> bool:
    """Does one of the three words before the value make it a deadline ("by 31 March", "within 30 days")?"""
    before = text[max(0, value.start - _BEFORE) : value.start].lower().split()[-3:]
    return any(word.strip("(,.:;") in DEADLINE_BEFORE for word in before)


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
