"""How much a wrong claim would cost, from what the claim is about.

The words of the claim (``severity.yaml``) and the kinds of its figures give reasons; the gravest counts. A
word that only touches a topic ("tax", "fee") makes a claim major; beside a figure, a "must" or a "not" it
makes it critical. Negation and superlatives lift a claim by one step, at most to major, because they turn a
statement round but are not by themselves a matter of money or health.

Claims are rated on the event loop, so this must be cheap: all words are looked up together, figures are read
only where there may be some, and what a set of marks amounts to is kept.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from operator import attrgetter
from typing import Final

from guardrail.claims.patterns import compile_quietly
from guardrail.claims.severity_figures import NO_NAMES, figure_reasons
from guardrail.claims.severity_lexicon import Reason, lexicon, words_of
from guardrail.claims.severity_rules import SeverityPattern, SeverityRules
from guardrail.events import SegmentKind, Severity

__all__ = ["SEVERITY_REASONS", "BuiltinSeverityRater", "Reason"]

_LEXICON: Final = lexicon()
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
_rank: Final = attrgetter("rank")
_GERMAN_SHARE: Final = 1 / 12  # of the words


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
    """ "You can ...", "Guests must ...": one of those addressed right before a modal."""
    addressed, modals = _LISTS["addressed"], _LISTS["modals"]
    return any(word in addressed and after in modals for word, after in pairwise(words))


def _names_something(text: str, words: list[str]) -> bool:
    """Is there a proper name? Capitals tell, but not at the beginning nor, singly, in German."""
    german: bool | None = None  # not looked yet
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
    if "medical" in marks and "directions" in marks:
        reasons |= {"safety"}
    pointed = bool(figures or marks & {"modals", "negation"})
    graded = {
        name: reason.severity if name in reasons or pointed else Severity.MAJOR
        for name, reason in SEVERITY_REASONS.items()
        if (name in reasons or f"~{name}" in marks) and name not in disabled
    }
    gravest = max(graded.values(), key=_rank, default=Severity.NORMAL)
    if "chatter" in marks and graded.keys() <= _LEXICON.lifting:
        gravest = Severity.NORMAL if graded else Severity.MINOR
    return gravest, tuple(sorted(graded, key=lambda name: -graded[name].rank))


def _compile(rule: SeverityPattern) -> tuple[re.Pattern[str], ...]:
    """The operator's expression, and one for the keywords as whole words with any white space between."""
    expressions = []
    if rule.pattern is not None:
        expressions.append(compile_quietly(rule.pattern))
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
