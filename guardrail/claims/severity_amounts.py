"""What kind of detail stands at a number, month, weekday or number word: a reason, without the value itself.

``guardrail.values`` reads the same details in order to compare them, with their amounts, units and bounds, at
many times the cost. Here a number is told by its neighbours alone; how units, currencies, months and number
words are called is in the tables of ``guardrail.values``. Every reader looks at a bounded number of tokens.
"""

from __future__ import annotations

import re
from typing import Final

from guardrail.claims.severity_lexicon import DEADLINE_BEFORE, DOSE_UNITS, MAYBE_DOSE_UNITS
from guardrail.claims.severity_reasons import BIT
from guardrail.claims.severity_words import ARTICLES, CLOCK_WORDS, DUE, MEDICAL, TOPIC_SHIFT, WEEKDAYS_SHORT
from guardrail.values.affixes import TWO_WORD_UNITS
from guardrail.values.lexicon import (
    MONTHS,
    NO_NAME,
    NO_NOUN,
    PERCENT_WORDS,
    RATE_WORDS,
    SHY_MONTHS,
    WEEKDAYS,
    words,
)
from guardrail.values.numerals import ADVERBS, LETTER_MAGNITUDES, MAGNITUDES, NUMBER_WORDS, ORDINALS, VULGAR
from guardrail.values.quantities import MEASURES
from guardrail.values.units import CENTS, CURRENCY_WORDS, SIGNS, UNITS

PRICE: Final = BIT["price"]
PERCENTAGE: Final = BIT["percentage"]
DOSAGE: Final = BIT["dosage"]
DEADLINE: Final = BIT["deadline"]
QUANTITY: Final = BIT["quantity"]
PERIOD: Final = BIT["period"]
NUMBER: Final = BIT["number"]
IDENTIFIER: Final = BIT["identifier"]
DATE: Final = BIT["date"]
CONTACT: Final = BIT["contact"]
#: Stands for "this may be a telephone number: ask ``guardrail.values``".
MAYBE_PHONE: Final = 1 << 62

_CLINICAL: Final = BIT["clinical_direction"] | MEDICAL
_DEADLINES: Final = BIT["deadline"] | BIT["deadline"] << TOPIC_SHIFT
# What a unit measures, beside the reasons themselves: these need the rest of the claim.
_MAYBE_DOSE: Final = 1 << 57
_TIMES: Final = 1 << 58
_DURATION: Final = 1 << 59
_YEARS: Final = 1 << 60
_DURATIONS: Final = frozenset({"s", "min", "h", "day", "week", "fortnight", "workday", "month"})

_CLOCK_AFTER: Final = words("am pm a.m. p.m. a.m p.m uhr o'clock")
_SUFFIXES: Final = frozenset({"st", "nd", "rd", "th", "er", "º", "ª"})
_RANGE: Final = words("to or - – — − ~ bis oder à through and und et y")
_RATES: Final = ARTICLES | RATE_WORDS.keys() | {"per", "every", "each"}
_ERAS: Final = frozenset({"bc", "bce", "ad", "ce", "b.c.", "b.c.e.", "a.d."})
_YEAR_AFTER: Final = words("""
    in since from until till by during before after of to around circa year fiscal early late mid and ( - – ,
    through im seit bis en depuis desde
""")
_MONTH_AFTER: Final = words("""
    in of by until till since from before after during early late mid to through next last every
""")
_MONTH_LINKS: Final = words(". - of de st nd rd th")
_PARTS: Final = words("""
    half halves third thirds quarter quarters fourth fourths fifth fifths sixth sixths seventh sevenths eighth
    eighths ninth ninths tenth tenths drittel viertel
""")
_HALVES: Final = words("half halves hälfte moitié mitad drittel viertel")
_TO: Final = frozenset({"-", "–", "to", "bis"})
_QUARTERS: Final = re.compile(r"q[1-4]\Z|fy(?:\d{4})?\Z")
_YEAR_TAIL: Final = re.compile(r"(?:[12]\d{3}|\d0)s?\Z")

# The forms of a token that begins with a digit and holds more; each alternative is bounded or possessive.
_FORM: Final = re.compile(
    r"""
    (?P<date> \d{4}(?P<s>[\-/.])\d{1,2}(?P=s)\d{1,2} | \d{1,2}(?P<t>[\-/.])\d{1,2}(?P=t)\d{4}
            | \d{1,2}/\d{1,2}/\d{2} )\Z
    | (?P<time> \d{1,2}:\d{2}(?::\d{2})?(?:[ap]m)?(?:[\-–]\d{1,2}(?::\d{2})?(?:[ap]m)?)? | \d{1,2}h\d{2}
            | \d{1,2}(?:[.]\d{2})?[ap]m | \d{1,2}[\-–]\d{1,2}[ap]m )\Z
    | (?P<phone> (?:1[.\-])?\d{3}[.\-]\d{3}[.\-]\d{4} | 0\d{1,4}[\-/]\d{4,8}
             | 0\d{1,4}(?:[\-/]\d{2,4}){2,5} )\Z
    | (?P<grouped> \d{1,3}(?:[.,'’]\d{3}){2,}+ )(?P<group_unit>[^\W\d_]*+)\Z
    | (?P<version> \d++(?:\.\d++){2,}+ )
    | (?P<fraction> \d{1,3}/\d{1,3} )\Z
    | \d++ (?:[.,'’]\d++)*+ (?P<upper> [\-–−] \d++ (?:[.,'’]\d++)*+ )?+
      (?P<hyphen> \- )?+ (?P<tail> [^\W\d_]*+ ) (?P<rest> .*+ )
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


def _measures() -> dict[str, int]:
    """Spelling of a unit or currency -> its reason, or what the reason depends on."""
    of_unit = dict.fromkeys(DOSE_UNITS, DOSAGE)
    of_unit |= dict.fromkeys(MAYBE_DOSE_UNITS, _MAYBE_DOSE)
    of_unit |= dict.fromkeys(_DURATIONS, _DURATION)
    of_unit |= {"time": _TIMES, "year": _YEARS, "decade": PERIOD, "century": PERIOD}
    of_unit |= {"deg": NUMBER, "pp": PERCENTAGE, "bp": PERCENTAGE}
    table = {spelling: of_unit.get(unit.name, QUANTITY) for spelling, unit in UNITS.items()}
    table |= dict.fromkeys((*SIGNS, *CURRENCY_WORDS, *CENTS), PRICE)
    table |= dict.fromkeys((*PERCENT_WORDS, "‰"), PERCENTAGE)
    return table


MEASURED: Final = _measures()
_UNCOUNTED: Final = (NO_NOUN | NO_NAME) - {"most", "few", "two", "three"}
# Magnitudes that are numbers without one before them; "millions of people" says no number.
_NO_YEAR: Final = 2200
_LONG: Final = 6  # characters that may be a telephone number after a "+"
_ALONE: Final = words("hundred thousand million dozen mille hundert tausend")


def at(tokens: list[str], lows: list[str], i: int, marks: int) -> int:
    """The reason of what stands at token ``i``: a bit, 0 for none, or ``MAYBE_PHONE``.

    ``lows`` are the tokens in lower case. Both end in empty ones, so that looking a few tokens ahead or two
    back needs no check. ``marks`` are those of the whole claim.
    """
    low = lows[i]
    if low[0].isdecimal():
        return _digits(tokens, lows, i, marks)
    if low in MONTHS:
        return _month(tokens, lows, i, marks)
    if low in WEEKDAYS:
        return _dated(lows, i, marks, DATE) if tokens[i][0].isupper() else 0
    if low in CLOCK_WORDS:  # but not "High Noon"
        return _dated(lows, i, marks, DATE) if not i or tokens[i] == low else 0
    if low in NUMBER_WORDS or low in VULGAR:
        return _number_word(tokens, lows, i, marks)
    if low in ORDINALS:
        return _ordinal(tokens, lows, i)
    if low in ADVERBS:
        if lows[i + 1] in _RATES:
            return _resolve(_TIMES, lows, i, marks)
        return 0 if low == "once" else NUMBER
    if low in ARTICLES:  # "within a week"
        code = MEASURED.get(lows[i + 1], 0) if lows[i - 1] in MEASURES and lows[i + 1] != "second" else 0
        return _resolve(code, lows, i, marks) if code in (_DURATION, _YEARS, PERIOD) else 0
    if low in WEEKDAYS_SHORT:
        ranged = lows[i + 1] in _TO or lows[i - 1] in _TO
        return _dated(lows, i, marks, DATE) if ranged and tokens[i][0].isupper() else 0
    return _joined(tokens, lows, i, marks) if low[0].isalpha() else 0


def _digits(tokens: list[str], lows: list[str], i: int, marks: int) -> int:
    token, before, after = tokens[i], lows[i - 1], lows[i + 1]
    if not token.isdecimal():
        return _formed(tokens, lows, i, marks)
    if _priced(tokens, i):
        return PRICE
    size = len(token)
    if _dialled(tokens, i):
        return MAYBE_PHONE
    if size <= 2 and (after in MONTHS or (after in _MONTH_LINKS and lows[i + 2] in MONTHS)):
        month = lows[i + 1] if after in MONTHS else lows[i + 2]
        if month not in SHY_MONTHS or tokens[i + 1 + (after not in MONTHS)][0].isupper():
            return _dated(lows, i, marks, DATE)
    if size <= 2 and before in MONTHS:
        return 0  # read with its month
    if size <= 3 and after in {".", ")"} and tokens[i + 2] and (not i or (i == 1 and before in "*#>(")):
        return 0  # the marker of a list item
    if after in _CLOCK_AFTER:
        return _dated(lows, i, marks, DATE)
    if after in _ERAS:
        return PERIOD
    code = measure(tokens, lows, i + 1)
    if code:
        return _resolve(code, lows, i, marks)
    if size == 4 and token[0] in "12" and int(token) < _NO_YEAR:
        return _year(lows, i, marks)
    if after in _RANGE and (lows[i + 2][:1].isdecimal() or lows[i + 2] in NUMBER_WORDS):
        return _range(tokens, lows, i)
    if size < 4 and len(tokens[i + 1]) == 3 and tokens[i + 1].isdecimal():
        return 0  # "10 000 km": the last group tells
    return _counted(tokens, lows, i)


def _priced(tokens: list[str], i: int) -> bool:
    """Does a currency stand before the number: "$5", "US$ 5", "EUR 5", "Rs. 5"?"""
    return tokens[i - 1] in SIGNS or (tokens[i - 1] == "." and tokens[i - 2] == "Rs")


def _dialled(tokens: list[str], i: int) -> bool:
    """May a telephone number begin here: "+1 555", "(030) 123", "020 7946 0958"?"""
    token, before, after = tokens[i], tokens[i - 1], tokens[i + 1]
    if before == "+":
        return True
    if before == "(" and after == ")":
        return 3 <= len(token) <= 5 and tokens[i + 2][:1].isdecimal()
    if not after[:1].isdecimal():
        return False
    if token[0] == "0":
        return len(token) + len(after) >= 4
    both_years = len(token) == len(after) == 4 and token[0] in "12" and after[0] in "12"
    return not both_years and len(after) >= 3 and len(token) in (1, 3, 4) and tokens[i + 2][:1].isdecimal()


def _formed(tokens: list[str], lows: list[str], i: int, marks: int) -> int:
    """A token of digits and more: "5,000", "500mg", "3rd", "10:30", "2021-03-03", "5-10", "2.3.1"."""
    if lows[i].replace(".", "", 1).replace(",", "").isdecimal():  # "19.90", "5,000": what most are
        if tokens[i - 1] == "+" and len(lows[i]) > _LONG:
            return MAYBE_PHONE
        return PRICE if _priced(tokens, i) else _plain(tokens, lows, i, marks)
    form = _FORM.match(lows[i])
    if form is None:
        return NUMBER
    kind = form.lastgroup
    if kind in ("date", "time"):
        return _dated(lows, i, marks, DATE)
    if kind == "phone":
        return MAYBE_PHONE
    if _priced(tokens, i):
        return PRICE
    if tokens[i - 1] == "+" and len(tokens[i]) > _LONG:
        return MAYBE_PHONE
    if kind == "version":
        return IDENTIFIER
    if kind == "fraction":
        top, bottom = lows[i].split("/")
        code = measure(tokens, lows, i + 1)
        return _resolve(code, lows, i, marks) if code else PERCENTAGE if int(top) < int(bottom) else NUMBER
    tail = form["tail"] if kind == "rest" else form["group_unit"]
    if not tail:
        if kind == "rest" and form["rest"]:
            return NUMBER
        return _plain(tokens, lows, i, marks)
    if kind == "rest" and form["hyphen"]:
        if tail in MONTHS:
            return _dated(lows, i, marks, DATE)
        return _resolve(MEASURED.get(tail, NUMBER), lows, i, marks)
    return _tailed(tokens, lows, i, marks, form)


def _plain(tokens: list[str], lows: list[str], i: int, marks: int) -> int:
    """ "5,000", "2.5", "5-10", "2010-2015" with nothing attached."""
    after, low = lows[i + 1], lows[i]
    if after in _CLOCK_AFTER or (after in MONTHS and len(low) <= 5):
        return _dated(lows, i, marks, DATE)
    if lows[i - 1] in MONTHS and len(low) <= 5:
        return 0
    code = measure(tokens, lows, i + 1)
    if code:
        return _resolve(code, lows, i, marks)
    if len(low) in (7, 9) and low[4] in "-–−" and low[0] in "12":
        return PERIOD  # 2010-2015, 2010-15
    if lows[i - 1] in {"version", "v"}:
        return IDENTIFIER
    if after in _RANGE and lows[i + 2][:1].isdecimal():
        return _range(tokens, lows, i)
    return NUMBER


def _tailed(tokens: list[str], lows: list[str], i: int, marks: int, form: re.Match[str]) -> int:
    """Letters right after the number: "500mg", "3rd", "1990s", "5M", "5G"."""
    token, low = tokens[i], lows[i]
    start = form.start("tail") if form.lastgroup == "rest" else form.start("group_unit")
    end = form.end("tail") if form.lastgroup == "rest" else form.end("group_unit")
    raw, tail = token[start:end], low[start:end]
    after = lows[i + 1]
    if tail in _SUFFIXES:
        if after in MONTHS or (after in {"of", "de"} and lows[i + 2] in MONTHS):
            return _dated(lows, i, marks, DATE)
        if lows[i - 1] in MONTHS:
            return 0
        return PERIOD if after in {"century", "centuries"} else NUMBER
    if tail == "s" and low[start - 1] == "0" and start in (2, 4):
        return PERIOD
    if raw in LETTER_MAGNITUDES or tail in MAGNITUDES:
        code = measure(tokens, lows, i + 1)
        if code:
            return _resolve(code, lows, i, marks)
    code = MEASURED.get(raw, 0) or (MEASURED.get(tail, 0) if len(tail) > 1 else 0)
    if code:
        return _resolve(code, lows, i, marks)
    if tail in {"p", "m"} and form.lastgroup == "rest":
        return PRICE if tail == "p" else QUANTITY
    if raw in LETTER_MAGNITUDES:
        return NUMBER
    return IDENTIFIER


def _counted(tokens: list[str], lows: list[str], i: int) -> int:
    """A bare number without a unit: a count, a share ("3 out of 5"), or a part of a name ("ISO 9001")."""
    before = tokens[i - 1]
    if before in {"version", "Version", "v"}:
        return IDENTIFIER
    if 3 <= len(tokens[i]) <= 8 and 2 <= len(before) <= 6 and before.isupper() and before.isalpha():
        return IDENTIFIER
    return PERCENTAGE if _odds(lows, i + 1) else NUMBER


def _odds(lows: list[str], j: int) -> bool:
    """ "in four", "out of 5"."""
    if lows[j] == "out" and lows[j + 1] == "of":
        j += 1
    elif lows[j] != "in":
        return False
    whole = lows[j + 1]
    if whole in NUMBER_WORDS:
        return not MEASURED.get(lows[j + 2])
    return whole.isdecimal() and not (len(whole) == 4 and whole[0] in "12") and not MEASURED.get(lows[j + 2])


def _range(tokens: list[str], lows: list[str], i: int) -> int:
    """The lower end of "5 to 10 mg": the upper end tells; of "5 and 10 mg" it is a number of its own."""
    joins = lows[i + 1] not in {"and", "und", "et", "y"} or lows[i - 1] in {"between", "zwischen", "entre"}
    return 0 if joins else _counted(tokens, lows, i)


def _year(lows: list[str], i: int, marks: int) -> int:
    before, after, year = lows[i - 1], lows[i + 1], lows[i]
    if before in _YEAR_AFTER or before in MONTHS:
        if after in {"people", "patients"}:
            return NUMBER
    elif not ("1800" <= year <= "2100") or (after.endswith("s") and after not in {"is", "was", "has", "as"}):
        return NUMBER
    if before in MONTHS or (lows[i - 2] in MONTHS and before[:1].isdecimal()):
        return 0  # read with its month
    return _dated(lows, i, marks, PERIOD) if year >= "2000" else PERIOD


def _month(tokens: list[str], lows: list[str], i: int, marks: int) -> int:
    """ "March 3rd", "March 2021", "in March"; a day before it has told already."""
    token, low, after, before = tokens[i], lows[i], lows[i + 1], lows[i - 1]
    shy = low in SHY_MONTHS
    if (before[:1].isdecimal() and len(before) <= 4) or (before == "of" and lows[i - 2][:1].isdecimal()):
        return 0
    if token[0].islower() and (shy or len(token) < 5 or not token.isascii()):
        return 0
    if after == "." and lows[i + 2][:1].isdecimal():
        after = lows[i + 2]
    if after[:1].isdecimal():
        if len(after) == 4 and after.isdecimal():
            return PERIOD if after < "2000" else _dated(lows, i, marks, PERIOD)
        if not MEASURED.get(lows[i + 2], 0):
            return _dated(lows, i, marks, DATE)
    if after in {"of", ",", "-"} and len(lows[i + 2]) == 4 and lows[i + 2].isdecimal():
        return _dated(lows, i, marks, PERIOD)
    return 0 if shy and before not in _MONTH_AFTER else _dated(lows, i, marks, PERIOD)


def _number_word(tokens: list[str], lows: list[str], i: int, marks: int) -> int:
    low, before, after = lows[i], lows[i - 1], lows[i + 1]
    if before[:1].isdecimal():
        return 0  # "5 million", "3 quarters"
    if after in NUMBER_WORDS:
        if after in _PARTS:
            return PERCENTAGE if low not in ORDINALS else PERIOD
        if after not in MAGNITUDES:
            return 0  # "twenty five": the last word tells
    if low in _HALVES or low in VULGAR:
        return 0 if before in ORDINALS else _half(tokens, lows, i, marks)
    if low in _PARTS:
        if before in NUMBER_WORDS:
            return 0
        if before in {"a", "an", "one"} and after == "of":
            return PERCENTAGE
        return _ordinal(tokens, lows, i) if low in ORDINALS else 0
    code = measure(tokens, lows, i + 1)
    if code:
        return _resolve(code, lows, i, marks)
    if after in _RANGE and after != "and" and (lows[i + 2] in NUMBER_WORDS or lows[i + 2][:1].isdecimal()):
        return 0
    if _odds(lows, i + 1):
        return PERCENTAGE
    if low == "one" and after not in MAGNITUDES:
        return 0  # a pronoun
    vague = low in MAGNITUDES and low not in _ALONE and before not in ARTICLES
    return 0 if vague else NUMBER


def _half(tokens: list[str], lows: list[str], i: int, marks: int) -> int:
    """ "half of them", "half an hour", "half a million dollars", "½ cup"."""
    after = lows[i + 1]
    if after in {"a", "of"} and lows[i + 2] in MAGNITUDES:
        return _resolve(measure(tokens, lows, i + 2) or NUMBER, lows, i, marks)
    code = MEASURED.get(lows[i + 2] if after in ARTICLES else after, PERCENTAGE)
    return _resolve(code, lows, i, marks)


def _ordinal(tokens: list[str], lows: list[str], i: int) -> int:
    """ "the third edition", "20th century"; "first" and "second" only right before what they count."""
    low, after = lows[i], lows[i + 1]
    if lows[i - 1][:1].isdecimal() or lows[i - 1] in NUMBER_WORDS:
        return 0
    if after in {"century", "quarter"}:
        return PERIOD
    counts = after.isalpha() and after not in _UNCOUNTED
    return 0 if low in {"first", "second"} and (not counts or tokens[i][0].isupper()) else NUMBER


def _joined(tokens: list[str], lows: list[str], i: int, marks: int) -> int:
    """Words with hyphens or digits in them: "twenty-five", "three-day", "mid-2021", "B12", "Mon-Fri"."""
    head, _, tail = lows[i].partition("-")
    if head in NUMBER_WORDS:
        last = tail.rpartition("-")[2]
        if last in _PARTS:
            return PERCENTAGE
        if last in NUMBER_WORDS:
            code = measure(tokens, lows, i + 1)
            return _resolve(code, lows, i, marks) if code else NUMBER
        code = MEASURED.get(tail.partition("-")[0], 0)
        if not code and head not in {"one", "half", "second"}:
            return NUMBER
        return _resolve(code, lows, i, marks)
    if head in WEEKDAYS_SHORT or head in WEEKDAYS:
        return _dated(lows, i, marks, DATE) if tokens[i][0].isupper() else 0
    if not tail:
        if not any(map(str.isdecimal, head)) or (head in MEASURED and lows[i - 1][:1].isdecimal()):
            return 0  # the latter is "5 m2"
        return _dated(lows, i, marks, PERIOD) if _QUARTERS.match(head) else IDENTIFIER
    if not any(map(str.isdecimal, lows[i])):
        return 0
    return PERIOD if _YEAR_TAIL.match(tail) else IDENTIFIER


def measure(tokens: list[str], lows: list[str], j: int) -> int:
    """What the number before token ``j`` measures: a reason, a code for ``_resolve``, or 0."""
    low = lows[j]
    if low in MAGNITUDES:
        j += 1
        if lows[j] in MAGNITUDES or (lows[j] == "." and lows[j - 1] in {"mio", "mrd"}):
            j += 1
        low = lows[j]
    elif low in LETTER_MAGNITUDES and tokens[j] in LETTER_MAGNITUDES and MEASURED.get(lows[j + 1]) == PRICE:
        return PRICE
    if low in TWO_WORD_UNITS or low == "per":
        if low == "per":
            return PERCENTAGE if lows[j + 1] in {"cent", "ciento"} else 0
        if lows[j + 1] in {"point", "points"}:
            return PERCENTAGE
        pair = MEASURED.get(f"{low} {lows[j + 1]}")
        if pair:
            return pair
    token = tokens[j]
    if token in {"A", "t"}:
        return 0  # more often a word than amperes or tonnes
    if low in {"°", "º", "degrees", "degree", "grad", "degrés", "grados"}:
        return QUANTITY if lows[j + 1] in {"c", "f", "celsius", "fahrenheit", "centigrade"} else NUMBER
    code = MEASURED.get(token, 0) or (MEASURED.get(low, 0) if len(low) > 1 else 0)
    if code == PRICE and token in SIGNS and tokens[j + 1][:1].isdecimal():
        return 0  # "2021 $50": the sign belongs to what follows
    return code


def _resolve(code: int, lows: list[str], i: int, marks: int) -> int:
    """The reason of a measure, seen what else the claim says."""
    if code == _DURATION:
        return DEADLINE if _due(lows, i, marks) else QUANTITY
    if code == _YEARS:
        return DEADLINE if _due(lows, i, marks) else PERIOD
    if code == _TIMES:
        return DOSAGE if marks & _CLINICAL else NUMBER
    if code == _MAYBE_DOSE:
        return DOSAGE if marks & _CLINICAL else QUANTITY
    return code


def _dated(lows: list[str], i: int, marks: int, otherwise: int) -> int:
    return DEADLINE if _due(lows, i, marks) else otherwise


def _due(lows: list[str], i: int, marks: int) -> bool:
    """Does a word of the claim, or one of the few before token ``i``, make a time a deadline?"""
    if marks & _DEADLINES:
        return True
    return bool(marks & DUE) and not DEADLINE_BEFORE.isdisjoint(lows[max(0, i - 3) : i])
