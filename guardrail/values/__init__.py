"""The checkable values of a text (numbers, dates, money, names, contacts ...) and whether two agree.

``extract`` finds them, ``agree`` says whether a source's value may back a claim's, ``ValueSet`` matches many.

Why no library reads them: what was tried is pint, babel, phonenumbers, text2num, dateutil, dateparser,
price-parser and quantulum3 (``benchmarks/values.py --libraries`` measures those that are installed). The ones
that find things in running text (quantulum3, dateparser) take many times as long for a sentence and
tens of megabytes; phonenumbers alone takes as long as everything here. The others read one value once it has
been found, and give a single reading, where a guardrail needs all of them: "03/04/2021" and "1.500" must not
be called wrong for having been read in the other country's way. So there is one scanning expression, linear
on any text, small readers that look a bounded number of tokens ahead, and tables.
"""

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
