"""Minimal pairs from plain text: a sentence its document says, and the same with one detail changed.

``altered`` makes a ``Change`` of a kind: the claim, and where in it stands what is now unsupported. The kinds
of details (numbers, dates, units, names, swaps) are here, those of meaning in ``training.perturb_meaning``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from guardrail.evidence.sentences import sentence_spans
from training.changes import Change, replaced
from training.lexicon import FIRST_NAMES, GAZETTEER, HEADS, MONTHS, OVERLAPPING, SMALL_NUMBERS, WEEKDAYS
from training.paraphrase import paraphrased
from training.perturb_meaning import MEANING

_UNIT_FAMILIES: Final = (
    ("mg", "g", "kg", "mcg"), ("milligrams", "grams", "kilograms"), ("ml", "cl"), ("km", "miles"),
    ("cm", "mm", "inches"), ("kilometers", "meters", "miles", "feet"), ("kilometres", "metres", "miles"),
    ("seconds", "minutes", "hours", "days", "weeks", "months", "years"), ("acres", "hectares"),
    ("second", "minute", "hour", "day", "week", "month", "year"), ("million", "billion", "thousand"),
    ("dollars", "euros", "pounds", "yen"), ("°C", "°F"), ("km/h", "mph"), ("kg", "pounds"), ("GB", "MB",
    "TB"),
)  # fmt: skip
_FAMILIES_OF: Final = {
    unit: tuple(o for family in _UNIT_FAMILIES if unit in family for o in family if o != unit)
    for unit in {unit for family in _UNIT_FAMILIES for unit in family}
}
_UNIT: Final = re.compile(
    r"(?:(?<=\d )|(?<=\d)|(?<=\b(?:two|six|ten) )|(?<=\b(?:four|five|nine) )|(?<=\b(?:three|seven|eight) ))"
    r"(?:" + "|".join(sorted(map(re.escape, _FAMILIES_OF), key=len, reverse=True)) + r")(?![\w/-])"
)
_NUMBER: Final = re.compile(r"(?<![\w.,:/–$€£-])[$€£]?\d{1,3}(?:,\d{3})*(?:\.\d+)?(?![\w:/–-]|[.,]\d)")
_ANY_YEAR: Final = r"(?:1[5-9]\d\d|20[0-4]\d)"
_YEAR: Final = re.compile(rf"(?<![\w.,:/-]){_ANY_YEAR}(?![\w:/]|[.,-]\d)")
_DECADE: Final = re.compile(r"\b(1[5-9]|20)(\d)0s\b")
_DAY: Final = re.compile(rf"\b(?:(?:{'|'.join(MONTHS)}) (\d{{1,2}})|(\d{{1,2}}) (?:{'|'.join(MONTHS)}))\b")
_BOUNDED: Final = re.compile(
    r"(?i)\b(?:than|over|under|least|most|to|above|below|before|after|until|since|by|exceeding|maximum"
    r"|minimum|"
    r"beyond|almost|nearly|as|from|within|and|or|onwards|between)\s+(?:the )?(?:a )?[$€£]?\Z"
)
_ABOUT: Final = re.compile(
    r"(?i)\b(?:about|approximately|around|roughly|some|circa|estimated|an average of) [$€£]?\Z"
)
_NAME: Final = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+(?: [A-Z][a-z]+){0,3}\b")
_KIND_OF: Final = {name: kind for kind, names in GAZETTEER.items() for name in names}
_LISTED: Final = re.compile(
    r"\b(?:" + "|".join(sorted((n for n in _KIND_OF if n != "May"), key=len, reverse=True)) + r")\b"
)
_PERSON: Final = re.compile(r"(?:^|(?<=[a-z,] ))([A-Z][a-z]+)((?: [A-Z]\.?)? [A-Z][a-z]{2,})\b(?! [A-Z])")
_ROLE: Final = re.compile(
    r"\b(?:acquired|defeated|beat|succeeded|replaced|led|founded|taught|bought|sued|appointed|hired|killed|"
    r"followed|preceded|outsold|invited|persuaded|accused|son of|daughter of|father of|mother of|student of|"
    r"teacher of|than|influenced|directed|produced|told|praised|inspired|murdered|betrayed|owned|"
    r"overtook|joined|before|after|attacked|invaded|conquered|from)\b"
)

NEGATIVE_KINDS: Final = (
    "number", "date", "unit", "name", "swap", "negation", "antonym", "comparison", "qualifier",
    "overgeneralisation", "addition",
)  # fmt: skip


def claim_sentences(text: str) -> list[str]:
    """The sentences of a text that can stand as claims."""
    found = []
    for start, end in zip(*sentence_spans(text), strict=True):
        sentence = " ".join(text[start:end].split())
        if 6 <= sentence.count(" ") + 1 <= 40 and sentence[0].isupper() and sentence.endswith("."):
            found.append(sentence)
    return found


def altered(kind: str, sentence: str, names: Sequence[str], random_: random.Random) -> Change | None:
    """``sentence`` with one detail of a kind changed, or None where it has none of the kind.

    ``names`` are those of the same document or its siblings, material for a wrong one.
    """
    change_ = _CHANGES[kind](sentence, names, random_)
    return change_ if change_ and change_.claim != sentence else None


def change(kind: str, sentence: str, names: Sequence[str], random_: random.Random) -> str | None:
    """The claim of ``altered``."""
    found = altered(kind, sentence, names, random_)
    return found.claim if found else None


def names_of(text: str) -> list[str]:
    """Names in running text, the material for a wrong name."""
    return sorted({match.group() for match in _NAME.finditer(text)})


def reworded(sentence: str, random_: random.Random) -> str | None:
    """The sentence made shorter or written otherwise, saying nothing that it does not say; None if
    nothing fits."""
    other, steps = paraphrased(sentence, random_)
    return other if steps else None


def _number(sentence: str, _names: Sequence[str], random_: random.Random) -> Change | None:
    matches = [
        m for m in _NUMBER.finditer(sentence)
        if not _YEAR.fullmatch(m.group()) and not _BOUNDED.search(sentence[: m.start()])
        and not _DAY.search(sentence[max(0, m.start() - 12) : m.end() + 12])
    ]  # fmt: skip
    if matches:
        match = random_.choice(matches)
        sign = match.group()[0] if match.group()[0] in "$€£" else ""
        about = bool(_ABOUT.search(sentence[: match.start()]))
        new = _other_number(match.group()[len(sign) :], random_, about=about)
        return replaced("number", sentence, match.span(), sign + new) if new else None
    words = [
        m for m in re.finditer(r"\b[a-z]+\b(?= [a-z]{3,}s\b)", sentence)
        if m.group() in SMALL_NUMBERS[1:] and not _BOUNDED.search(sentence[: m.start()])
    ]  # fmt: skip
    if not words:
        return None
    match = random_.choice(words)
    at = SMALL_NUMBERS.index(match.group())
    new = random_.choice([w for i, w in enumerate(SMALL_NUMBERS) if i and i != at and abs(i - at) <= 4])
    return replaced("number", sentence, match.span(), new)


def _other_number(number: str, random_: random.Random, *, about: bool) -> str | None:
    """A near miss, digits swapped, another digit, or ten times as many; written in the same way.
    ``about``: only
    what is far off."""
    plain = number.replace(",", "")
    decimals = len(plain.partition(".")[2])
    value = float(plain)
    way = random_.choice(("near", "near", "swap", "digit", "digit", "magnitude"))
    if way == "near":
        new = value + random_.choice((-2, -1, 1, 2)) * 10 ** max(
            -decimals, len(str(int(value))) - 2 - decimals
        )
    elif way == "magnitude":
        new = value * 10 if random_.random() < 0.6 or value % 10 else value / 10
    else:
        digits = list(plain)
        places = [i for i, c in enumerate(digits) if c.isdigit()]
        if way == "swap" and len(places) > 1:
            i = random_.randrange(len(places) - 1)
            one, other = places[i], places[i + 1]
            digits[one], digits[other] = digits[other], digits[one]
        else:
            at = random_.choice(places)
            digits[at] = random_.choice([d for d in "123456789" if d != digits[at]])
        new = float("".join(digits))
    if new <= 0 or new == value or (about and 0.75 < new / value < 1.3):
        return None
    text = f"{new:.{decimals}f}"
    if "," in number or (new >= 10000 and value < 10000):
        whole, dot, rest = text.partition(".")
        text = f"{int(whole):,}{dot}{rest}"
    return None if text == number else text


def _date(sentence: str, _names: Sequence[str], random_: random.Random) -> Change | None:
    options: list[tuple[tuple[int, int], str]] = []
    for match in _YEAR.finditer(sentence):
        if not _BOUNDED.search(sentence[: match.start()]):
            shift = random_.choice((-11, -10, -5, -3, -2, -1, 1, 2, 3, 4, 10))
            options.append((match.span(), str(int(match.group()) + shift)))
    for match in _DECADE.finditer(sentence):
        new = random_.choice([d for d in "12345678" if d != match[2]])
        options.append((match.span(), f"{match[1]}{new}0s"))
    options += [
        (match.span(), random_.choice([m for m in family if m != match.group()]))
        for match in _LISTED.finditer(sentence)
        for family in (MONTHS, WEEKDAYS)
        if match.group() in family and match.group() not in ("May", "March")
    ]
    for match in _DAY.finditer(sentence):
        group = 1 if match[1] else 2
        new = str(random_.choice([d for d in range(1, 29) if str(d) != match[group]]))
        options.append((match.span(group), new))
    if not options:
        return None
    span, text = random_.choice(options)
    if re.match(r"\s?[–-]\s?\d|\s(?:to|until|onwards?)\b", sentence[span[1] :]):
        return None
    return replaced("date", sentence, span, text)


def _unit(sentence: str, _names: Sequence[str], random_: random.Random) -> Change | None:
    found: list[tuple[tuple[int, int], str]] = []
    for match in _UNIT.finditer(sentence):
        if not re.match(r" ago\b| olds?\b| of age", sentence[match.end() :]):
            found.extend((match.span(), other) for other in _FAMILIES_OF[match.group()])
    for match in re.finditer(r"[$€£](?=\d)", sentence):
        found.extend((match.span(), other) for other in "$€£" if other != match.group())
    if not found:
        return None
    span, other = random_.choice(found)
    made = replaced("unit", sentence, span, other)
    # What is wrong is the quantity: the span begins with its number.
    begin = re.search(r"[\w.,]+ ?\Z", sentence[: span[0]])
    start = begin.start() if begin else span[0]
    end = made.spans[0][1]
    after = re.match(r"[\d.,]*\d", made.claim[end:])
    return Change(
        made.claim, "unit", ((start, end + (after.end() if after and other in "$€£" else 0)),), made.old
    )


def kind_of_name(name: str) -> str:
    """``country``, ``city``, …, ``person``, the last word of a name such as "Lake", or ``""``."""
    if kind := _KIND_OF.get(name):
        return kind
    words = name.split()
    if len(words) > 1 and words[-1] in HEADS:
        return words[-1]
    if len(words) in (2, 3) and words[0] in FIRST_NAMES:
        return "person"
    return ""


def _name(sentence: str, names: Sequence[str], random_: random.Random) -> Change | None:
    found = [m for m in _NAME.finditer(sentence) if m.group() not in (*MONTHS, *WEEKDAYS)]
    found += [m for m in _LISTED.finditer(sentence) if _KIND_OF[m.group()] not in ("month", "weekday")]
    found += [m for m in _PERSON.finditer(sentence) if m[1] in FIRST_NAMES]
    random_.shuffle(found)
    for match in found[:4]:
        old, kind = match.group(), kind_of_name(match.group())
        if re.match(r" [A-Z]|['’]s [A-Z]|-", sentence[match.end() :]) or re.search(
            r"[A-Z][\w.]*,? (?:of |and |& )?\Z|-\Z", sentence[: match.start()]
        ):
            continue  # a part of a longer name
        others = [n for n in names if kind_of_name(n) == kind] if kind else []
        if kind in GAZETTEER and (len(others) < 2 or random_.random() < 0.5):
            others = list(GAZETTEER[kind])
        if not kind:
            continue
        others = [n for n in others if n not in sentence and not _same(n, old)]
        if others:
            new = random_.choice(others)
            if kind == "nationality" and old[0] in "AEIOU" and new[0] not in "AEIOU":
                continue
            if kind == "nationality" and old[0] not in "AEIOU" and new[0] in "AEIOU":
                continue
            return replaced("name", sentence, match.span(), new)
    return None


def _same(one: str, other: str) -> bool:
    if set(one.split()) & (set(other.split()) - HEADS):
        return True
    return any(one in group and other in group for group in OVERLAPPING)


def _swap(sentence: str, _names: Sequence[str], random_: random.Random) -> Change | None:
    """Two of the same sort in each other's place: "A acquired B", "from A to B", "5 men and 7 women"."""
    options: list[tuple[tuple[int, int], tuple[int, int]]] = []
    names = [*_PERSON.finditer(sentence), *_LISTED.finditer(sentence)]
    names = [m for m in names if not re.match(r"['’]s|,? [A-Z]|-| and |, ", sentence[m.end() :])]
    names.sort(key=lambda m: m.start())
    for one, other in pairwise(names):
        between = sentence[one.end() : other.start()]
        kinds = {kind_of_name(one.group()), kind_of_name(other.group())}
        if one.end() > other.start() or len(kinds) != 1 or _same(one.group(), other.group()):
            continue
        if re.search(r"^,| and |[;:]", between) or len(between.split()) > 8:
            continue
        if kinds & {"nationality", ""} or not (_ROLE.search(between) or re.search(r"\bby $", between)):
            continue
        if re.search(r"\bfrom\b", between) and not re.search(r"\bfrom $", sentence[: one.start()]):
            continue
        options.append((one.span(), other.span()))
    options += [
        (first.span(1), first.span(2))
        for first in re.finditer(r"\bfrom ([A-Z][a-z]+) to ([A-Z][a-z]+)\b(?! [A-Z])", sentence)
        if first[1] not in MONTHS and first[1] not in WEEKDAYS
    ]
    numbers = [m for m in _NUMBER.finditer(sentence) if not _YEAR.fullmatch(m.group())]
    for one, other in pairwise(numbers):
        between = sentence[one.end() : other.start()]
        signs = {m.group()[0] if m.group()[0] in "$€£" else "" for m in (one, other)}
        if one.group() == other.group() or len(signs) > 1 or not re.search(r"[a-z]{3,}", between):
            continue
        if between.strip() in ("and", "or", "to", "out of", "percent to") or _DAY.search(one.group()):
            continue
        options.append((one.span(), other.span()))
    years = list(_YEAR.finditer(sentence))
    for one, other in pairwise(years):
        between = sentence[one.end() : other.start()]
        if one.group() != other.group() and len(between.split()) > 2 and not re.search(r"[()]", between):
            options.append((one.span(), other.span()))
    if not options:
        return None
    (a, b), (c, d) = random_.choice(options)
    one_text, other_text = sentence[a:b], sentence[c:d]
    claim = sentence[:a] + other_text + sentence[b:c] + one_text + sentence[d:]
    shift = len(other_text) - len(one_text)
    return Change(claim, "swap", ((a, a + len(other_text)), (c + shift, c + shift + len(one_text))), None)


_CHANGES: Final[dict[str, Callable[[str, Sequence[str], random.Random], Change | None]]] = {
    "number": _number,
    "date": _date,
    "unit": _unit,
    "name": _name,
    "swap": _swap,
    **MEANING,
}
