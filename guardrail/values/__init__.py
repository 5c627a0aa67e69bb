"""The checkable values of a text (numbers, dates, money, names, contacts ...) and whether two agree."""

from guardrail.values.agreement import agree, comparable
from guardrail.values.matching import Match, MatchState, ValueSet, match
from guardrail.values.model import Bound, DateParts, Value, ValueKind
from guardrail.values.scan import extract

__all__ = [
    "Bound",
    "DateParts",
    "Match",
    "MatchState",
    "Value",
    "ValueKind",
    "ValueSet",
    "agree",
    "comparable",
    "extract",
    "match",
]
