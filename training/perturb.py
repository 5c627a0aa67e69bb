"""Minimal pairs from plain text: a sentence its document says, and the same with one detail changed."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from guardrail.evidence.sentences import sentence_spans
from guardrail.evidence.tokens import stem
from guardrail.judges.local.antonyms import ANTONYMS

_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
_UNIT_FAMILIES: Final = (
    ("mg", "g", "kg", "mcg"), ("milligrams", "grams", "kilograms"), ("ml", "l"), ("km", "m", "cm", "mm"),
    ("kilometers", "meters", "miles", "feet"), ("kilometres", "metres"), ("miles", "kilometers"),
    ("seconds", "minutes", "hours", "days", "weeks", "months", "years"),
    ("second", "minute", "hour", "day", "week", "month", "year"), ("million", "billion", "thousand"),
    ("percent", "points"), ("dollars", "euros", "pounds"),
)  # fmt: skip
_SMALL: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_AUXILIARY: Final = re.compile(
    r"\b(is|are|was|were|can|could|will|would|should|must|has|have|had|may)\b(?! not)(?!n't)"
)
_NEGATED: Final = re.compile(
    r"\b(is|are|was|were|can|could|will|would|should|must|has|have|had|may|do|does|did) not "
)
_NUMBER: Final = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})*(?:\.\d+)?(?![\w]|[.,]\d)")
_YEAR: Final = re.compile(r"\b(1[5-9]\d\d|20[0-4]\d)\b")
_NAME: Final = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+(?: [A-Z][a-z]+){0,3}\b")
_PARENTHESIS: Final = re.compile(r" \([^()]{2,80}\)")
_LEADING: Final = re.compile(r"^[A-Z][\w ]{3,50}, (?=[a-z])")
_TRAILING: Final = re.compile(r", (?:which|who|including|such as|and|but|while|with)\b[^,;]{5,}(?=\.$)")

NEGATIVE_KINDS: Final = ("number", "date", "unit", "name", "negation", "antonym", "swap")


def claim_sentences(text: str) -> list[str]:
    """The sentences of a text that can stand as claims."""
    found = []
    for start, end in zip(*sentence_spans(text), strict=True):
        sentence = " ".join(text[start:end].split())
        if 6 <= sentence.count(" ") + 1 <= 40 and sentence[0].isupper() and sentence.endswith("."):
            found.append(sentence)
    return found


def change(kind: str, sentence: str, names: Sequence[str], random_: random.Random) -> str | None:
    """``sentence`` with one detail of a kind changed, or None where it has none of the kind."""
    changed = _CHANGES[kind](sentence, names, random_)
    return changed if changed and changed != sentence else None


def names_of(text: str) -> list[str]:
    """Names in running text, the material for a wrong name."""
    return sorted({match.group() for match in _NAME.finditer(text)})


def reworded(sentence: str, random_: random.Random) -> str | None:
    """The sentence made shorter or written otherwise, saying nothing that it does not say; None if
    nothing fits."""
    options = []
    if _PARENTHESIS.search(sentence):
        options.append(_PARENTHESIS.sub("", sentence))
    if match := _LEADING.match(sentence):
        rest = sentence[match.end() :]
        options.append(rest[0].upper() + rest[1:])
        options.append(
            rest[0].upper() + rest[1:-1] + ", " + sentence[0].lower() + sentence[1 : match.end() - 2] + "."
        )
    if _TRAILING.search(sentence):
        options.append(_TRAILING.sub("", sentence))
    if match := re.search(r"\d,\d{3}\b", sentence):
        options.append(sentence[: match.start() + 1] + sentence[match.start() + 2 :])
    if "%" in sentence:
        options.append(sentence.replace("%", " percent"))
    options.extend(
        re.sub(rf"\b{word}\b", str(number), sentence)
        for number, word in enumerate(_SMALL[1:], 2)
        if re.search(rf"\b{word}\b", sentence)
    )
    for one, other in (
        (" do not ", " don't "),
        (" is not ", " isn't "),
        (" cannot ", " can't "),
        (" it's ", " it is "),
    ):
        if one in sentence:
            options.append(sentence.replace(one, other))
    if sentence.split()[0] in ("The", "In", "It", "A", "This"):
        opening = random_.choice(("According to the document, ", "As stated, ", "The source says that "))
        options.append(opening + sentence[0].lower() + sentence[1:])
    return random_.choice(options) if options else None


def _number(sentence: str, _names: Sequence[str], random_: random.Random) -> str | None:
    matches = [m for m in _NUMBER.finditer(sentence) if not _YEAR.fullmatch(m.group())]
    if not matches:
        words = [m for m in re.finditer(r"\b[a-z]+\b", sentence) if m.group() in _SMALL[1:]]
        if not words:
            return None
        match = random_.choice(words)
        return _put(sentence, match, random_.choice([w for w in _SMALL[1:] if w != match.group()]))
    match = random_.choice(matches)
    digits = match.group()
    places = [i for i, c in enumerate(digits) if c.isdigit()]
    at = random_.choice(places)
    choices = [d for d in "123456789" if d != digits[at]]
    return _put(sentence, match, digits[:at] + random_.choice(choices) + digits[at + 1 :])


def _date(sentence: str, _names: Sequence[str], random_: random.Random) -> str | None:
    months = [
        m
        for m in re.finditer(r"\b[A-Z][a-z]{2,8}\b", sentence)
        if m.group() in _MONTHS and m.group() != "May"
    ]
    if months and random_.random() < 0.5:
        match = random_.choice(months)
        return _put(sentence, match, random_.choice([month for month in _MONTHS if month != match.group()]))
    years = list(_YEAR.finditer(sentence))
    if not years:
        return None
    match = random_.choice(years)
    shift = random_.choice((-11, -10, -3, -2, -1, 1, 2, 3, 10))
    return _put(sentence, match, str(int(match.group()) + shift))


def _unit(sentence: str, _names: Sequence[str], random_: random.Random) -> str | None:
    found: list[tuple[re.Match[str], str]] = []
    for match in re.finditer(r"(?<=\d )[a-z]+\b|(?<=\d)(?:mg|g|kg|km|cm|ml)\b|[$€£](?=\d)", sentence):
        for family in (*_UNIT_FAMILIES, ("$", "€", "£")):
            if match.group() in family:
                found.extend((match, other) for other in family if other != match.group())
    if not found:
        return None
    match, other = random_.choice(found)
    return _put(sentence, match, other)


def _name(sentence: str, names: Sequence[str], random_: random.Random) -> str | None:
    found = [m for m in _NAME.finditer(sentence) if m.group() not in _MONTHS]
    others = [name for name in names if name not in sentence and name not in _MONTHS]
    if not found or not others:
        return None
    match = random_.choice(found)
    others = [name for name in others if not set(name.split()) & set(match.group().split())]
    return _put(sentence, match, random_.choice(others)) if others else None


def _negation(sentence: str, _names: Sequence[str], random_: random.Random) -> str | None:
    if match := _NEGATED.search(sentence):
        return sentence[: match.end() - 5] + " " + sentence[match.end() :]
    found = list(_AUXILIARY.finditer(sentence))
    if not found:
        return None
    match = found[0]
    if match.group() in ("has", "have", "had") and not re.match(
        r" (been|be|\w+ed)\b", sentence[match.end() :]
    ):
        return None
    contracted = {"is": "isn't", "are": "aren't", "was": "wasn't", "were": "weren't", "can": "cannot"}
    plain = f"{match.group()} not"
    return _put(sentence, match, random_.choice((plain, contracted.get(match.group(), plain))))


def _antonym(sentence: str, _names: Sequence[str], random_: random.Random) -> str | None:
    found: list[tuple[re.Match[str], str]] = []
    for match in re.finditer(r"\b[a-z]{3,}\b", sentence):
        word = match.group()
        stemmed = stem(word)
        if stemmed in ANTONYMS and word in (stemmed, stemmed + "e"):
            found.extend((match, other) for other in sorted(ANTONYMS[stemmed]) if other.isalpha())
    if not found:
        return None
    match, other = random_.choice(found)
    return _put(sentence, match, other)


def _swap(sentence: str, _names: Sequence[str], _random: random.Random) -> str | None:
    matches = list(_NUMBER.finditer(sentence))
    for one, other in pairwise(matches):
        years = [bool(_YEAR.fullmatch(m.group())) for m in (one, other)]
        if one.group() != other.group() and years[0] == years[1]:
            between = sentence[one.end() : other.start()]
            if between.strip() in ("-", "–", "to", "and", "or"):
                continue  # "5 and 7" swapped says the same
            return sentence[: one.start()] + other.group() + between + one.group() + sentence[other.end() :]
    return None


def _put(sentence: str, match: re.Match[str], text: str) -> str:
    return sentence[: match.start()] + text + sentence[match.end() :]


_CHANGES: Final[dict[str, Callable[[str, Sequence[str], random.Random], str | None]]] = {
    "number": _number,
    "date": _date,
    "unit": _unit,
    "name": _name,
    "negation": _negation,
    "antonym": _antonym,
    "swap": _swap,
}
