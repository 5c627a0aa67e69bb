"""A sentence in other words, saying nothing that it does not say.

Steps of two sorts: those that keep all that is said (``KEEPING``) and those that leave something out
(``SHORTENING``). Each takes a sentence and gives another, or None where it does not fit; they are written to
fit seldom rather than wrongly.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Final

from training.lexicon import MONTHS, PARTICIPLE_TO_PAST, SMALL_NUMBERS, SYNONYMS

Step = Callable[[str, random.Random], str | None]

_LOWERED: Final = frozenset(
    """
    The A An He She It They This These Those His Her Its Their There In On At We You One Some Many Most During
    After Before By For From When While As Each Both Several Although Since Such Our Your My With Under Over
    """.split()  # noqa: SIM905
)
_SYNONYM: Final = re.compile(
    r"(?<![\w-])(?:" + "|".join(sorted(map(re.escape, SYNONYMS), key=len, reverse=True)) + r")(?![\w-])"
)
_MONTH: Final = "(?:" + "|".join(MONTHS) + ")"
_US_DATE: Final = re.compile(rf"\b({_MONTH}) (\d{{1,2}}), (\d{{4}})\b(,?)")
_UK_DATE: Final = re.compile(rf"\b(\d{{1,2}}) ({_MONTH}) (\d{{4}})\b")
_DATED: Final = re.compile(r"\d{3,4}|[a-z] [A-Z]")
_FRONT: Final = re.compile(r"^((?:In|On|At|During|After|From|By|Following) [^,.;:]{3,45}), (?=[a-zA-Z])")
_CONNECTIVE: Final = re.compile(
    r"^(?:However|Additionally|Furthermore|Moreover|In addition|As a result|Meanwhile|Eventually|Finally"
    r"|Also|Consequently|Subsequently|Later|Therefore|Thus|Indeed|In fact|For example"
    r"|Similarly), (?=[a-zA-Z])"
)
_HEDGED_FRONT: Final = re.compile(
    r"\b(theory|cases?|some|many|most|adults|fiction|principle|event|absence|contrast|least|order|"
    r"general|particular|addition|fact|comparison|early|late|least|times|countries|place|according)\b"
)
_TRAILING_RELATIVE: Final = re.compile(r", (?:which|who|where|whose|including|such as) [^,;:()\"]{8,}(?=\.$)")
_PARENTHESIS: Final = re.compile(r" ?\([^()]{2,90}\)")
_APPOSITION: Final = re.compile(
    r"^([A-Z][\w.'-]+(?: [A-Z][\w.'-]+){0,3}), ((?:an?|the) [a-z][^,;:()\"]{6,60}), "
    r"(is|was|has|had|became|won|died|moved|joined|said|played|wrote)\b"
)
_SECOND_CLAUSE: Final = re.compile(
    r", (?:and|but) (?:he|she|it|they|the [a-z]+) (?:is|was|were|are|has|had|have|[a-z]+ed)\b"
)
_PASSIVE: Final = re.compile(
    r"^((?:The|A|An|It|He|She|They|His|Her|Its|Their|[A-Z][\w'’.-]+)(?: [\w'’-]+){0,6}?) (was|were) ("
    + "|".join(PARTICIPLE_TO_PAST)
    + r") by ((?:the |a |an )?[A-Z]?[\w'’.-]+(?: (?:of |the )?[A-Z][\w'’.-]+){0,4}|the [a-z]+(?: [a-z]+)?)"
    r"((?: in| on| at) [^,;:]{2,40})?\.$"
)
_ACTIVE: Final = re.compile(
    r"^([A-Z][\w'’-]+(?: [A-Z][\w'’.-]+){1,2}) (wrote|directed|founded|designed|produced|invented|discovered"
    r"|created|published|recorded|composed|developed|established|painted|acquired|purchased|defeated|built) "
    r"((?:an?|the) [\w'’ -]{3,45}?)((?: in| on) (?:\d{4}|[A-Z]\w+(?: \d{4})?))?\.$"
)
_PARTICIPLES: Final = {past: participle for participle, past in PARTICIPLE_TO_PAST.items()}
_OF: Final = re.compile(
    r"\bthe (capital|president|author|son|daughter|father|mother|wife|husband|brother|sister|founder"
    r"|director|"
    r"leader|king|queen|chairman|owner|mayor|population|economy|government|home|birthplace|death|widow|"
    r"debut album|first album) of ([A-Z][\w-]+(?: [A-Z][\w-]+){0,2})(?=[ ,.])(?! (?:of|and|de|von|van) )"
)
_CONTRACTED: Final = (
    ("do not", "don't"), ("does not", "doesn't"), ("did not", "didn't"), ("is not", "isn't"),
    ("are not", "aren't"), ("was not", "wasn't"), ("were not", "weren't"), ("cannot", "can't"),
    ("could not", "couldn't"), ("would not", "wouldn't"), ("will not", "won't"), ("has not", "hasn't"),
    ("have not", "haven't"), ("had not", "hadn't"), ("should not", "shouldn't"), ("it is", "it's"),
    ("they are", "they're"), ("you are", "you're"), ("we are", "we're"),
)  # fmt: skip
_ABBREVIATED: Final = (
    ("United States", "U.S."), ("United States", "US"), ("United Kingdom", "UK"), ("European Union", "EU"),
    ("United Nations", "UN"), ("World War II", "the Second World War"),
    ("World War I", "the First World War"),
    ("kilometers", "km"), ("kilometres", "km"), ("kilograms", "kg"), ("milligrams", "mg"), ("percent", "%"),
    ("per cent", "%"), ("for example", "for instance"), ("television", "TV"), ("miles per hour", "mph"),
    ("Doctor", "Dr."), ("versus", "vs."), ("and so on", "etc."), ("New York City", "NYC"),
)  # fmt: skip
_SHARES: Final = {"50": "half", "25": "a quarter", "20": "a fifth", "75": "three quarters", "10": "a tenth"}


def lowered(sentence: str) -> str | None:
    """The sentence as it goes on behind other words; None where its first word may be a name."""
    first = sentence.split(" ", 1)[0].rstrip(",")
    return sentence[0].lower() + sentence[1:] if first in _LOWERED else None


def running_on(sentence: str) -> str | None:
    """``lowered``, or the sentence as it stands where it begins with two capitals, most likely a name."""
    if low := lowered(sentence):
        return low
    return sentence if re.match(r"[A-Z][\w'’.-]+ (?:[A-Z]|is |was |has |had )", sentence) else None


def raised(sentence: str) -> str:
    """With a capital in front."""
    return sentence[:1].upper() + sentence[1:]


def joined(one: str, other: str, random_: random.Random) -> str | None:
    """Two sentences as one: "A, and B." """
    low = running_on(other)
    if low is None or not (one.endswith(".") and len(one.split()) + len(low.split()) <= 45):
        return None
    if re.match(r"(?i)(?:however|but|and|also|although|while|when|this|these|such|in addition)\b", other):
        return None
    return f"{one[:-1]}{random_.choice((', and ', ', and ', '; '))}{low}"


def paraphrased(
    sentence: str, random_: random.Random, *, shorten: bool = True, most: int = 3
) -> tuple[str, tuple[str, ...]]:
    """``(sentence in other words, names of the steps taken)``; unchanged where no step fits.

    ``shorten`` lets it leave out what may be left out.
    """
    steps = [*KEEPING.items(), *(SHORTENING.items() if shorten else ())]
    random_.shuffle(steps)
    taken: list[str] = []
    wanted = random_.randint(1, most)
    for name, step in steps:
        if len(taken) == wanted:
            break
        changed = step(sentence, random_)
        if changed and changed != sentence and len(changed.split()) >= 4:
            sentence = changed
            taken.append(name)
    return sentence, tuple(taken)


def left_out(whole: str, part: str) -> tuple[int, int] | None:
    """Where in ``whole`` stands what ``part`` lacks, if that is one place: the start, the end or the
    middle."""
    head = 0
    while head < min(len(whole), len(part)) and whole[head] == part[head]:
        head += 1
    tail = 0
    limit = min(len(whole), len(part)) - head
    while tail < limit and whole[-1 - tail].lower() == part[-1 - tail].lower():
        tail += 1
    if head + tail < len(part) or head + tail >= len(whole):
        return None
    start, end = head, len(whole) - tail
    while start < end and whole[start] in " ,":
        start += 1
    while start < end and whole[end - 1] in " ,":
        end -= 1
    return start, end


def _synonym(sentence: str, random_: random.Random) -> str | None:
    found = list(_SYNONYM.finditer(sentence))
    for match in random_.sample(found, min(len(found), 2)):
        other = random_.choice(SYNONYMS[match.group()])
        at = sentence.find(match.group())
        if sentence.count(match.group()) == 1:
            sentence = sentence[:at] + other + sentence[at + len(match.group()) :]
    return sentence if found else None


def _numeral(sentence: str, random_: random.Random) -> str | None:
    options = []
    for number, word in enumerate(SMALL_NUMBERS[1:], 2):
        if (
            match := re.search(rf"(?<![\w.,$€£:/–-]){number} (?=[a-z]{{3,}}s\b)", sentence)
        ) and match.start():
            options.append(sentence[: match.start()] + word + sentence[match.end() - 1 :])
        if match := re.search(rf"(?<![\w-]){word} (?=[a-z]{{3,}}s\b)", sentence):
            options.append(sentence[: match.start()] + str(number) + sentence[match.end() - 1 :])
    if match := re.search(r"(?<![\d,.])(\d{1,3}),(\d{3})(?![\d,])", sentence):
        options.append(sentence[: match.start()] + "".join(match.groups()) + sentence[match.end() :])
    if match := re.search(r"(?<![\w.,$€£])(\d{1,3}) million (?=[a-z]+s\b)", sentence):
        options.append(sentence[: match.start()] + f"{match[1]},000,000 " + sentence[match.end() :])
    if match := re.search(r"(?<![\w.,])(50|25|20|75|10)(?:%| percent| per cent) of\b", sentence):
        share = _SHARES[match[1]]
        options.append(raised(sentence[: match.start()] + share + " of" + sentence[match.end() :]))
    return random_.choice(options) if options else None


def _date(sentence: str, random_: random.Random) -> str | None:
    if match := _US_DATE.search(sentence):
        month, day, year, _ = match.groups()
        forms = [
            f"{day} {month} {year}",
            f"{month[:3]} {day}, {year}",
            f"the {_ordinal(day)} of {month} {year}",
        ]
        if match.start() > 3 and sentence[match.start() - 3 : match.start()] == "on ":
            forms.append(f"{year}-{MONTHS.index(month) + 1:02}-{int(day):02}")
    elif match := _UK_DATE.search(sentence):
        day, month, year = match.groups()
        forms = [f"{month} {day}, {year}", f"{day} {month[:3]} {year}"]
    else:
        return None
    return sentence[: match.start()] + random_.choice(forms) + sentence[match.end() :]


def _ordinal(day: str) -> str:
    ending = "th" if day in ("11", "12", "13") else {"1": "st", "2": "nd", "3": "rd"}.get(day[-1], "th")
    return day + ending


def _contraction(sentence: str, random_: random.Random) -> str | None:
    options = []
    for long, short in _CONTRACTED:
        for one, other in ((long, short), (short, long)):
            if one == "it's":
                continue  # "it's been"
            if match := re.search(rf"\b{one}(?= )", sentence):
                options.append(sentence[: match.start()] + other + sentence[match.end() :])
    return random_.choice(options) if options else None


def _abbreviation(sentence: str, random_: random.Random) -> str | None:
    options = []
    for long, short in _ABBREVIATED:
        pattern = rf"(?<=\d) {long}\b" if short == "%" else rf"\b{long}\b"
        match = re.search(pattern, sentence)
        if not match or (short.startswith("the ") and sentence[: match.start()].endswith("the ")):
            continue
        rest = sentence[match.end() :]
        if short.endswith(".") and rest.startswith("."):
            rest = rest[1:]
        options.append(sentence[: match.start()] + short + rest)
    if (match := re.search(r"(?<=\d)%", sentence)) and random_.random() < 0.8:
        options.append(sentence[: match.start()] + " percent" + sentence[match.end() :])
    if match := re.search(r"\b(?:the )?(?:US|U\.S\.)(?= [a-z])", sentence):
        options.append(sentence[: match.start()] + "the United States" + sentence[match.end() :])
    options = [option for option in options if "the United States dollar" not in option]
    return random_.choice(options) if options else None


def _to_back(sentence: str, _random: random.Random) -> str | None:
    match = _FRONT.match(sentence)
    if not match or _HEDGED_FRONT.search(match[1].lower()) or not _DATED.search(match[1]):
        return None
    rest = sentence[match.end() : -1]
    if len(rest.split()) > 18 or re.search(
        r"[,;:()]| (?:and|but|which|who|that|while|when|where|before) ", rest
    ):
        return None
    return f"{raised(rest)} {match[1][0].lower()}{match[1][1:]}."


def _to_front(sentence: str, _random: random.Random) -> str | None:
    match = re.search(r" ((?:in|on|during) (?:the )?(?:[A-Z][a-z]+ )?(?:\d{1,2}, )?\d{4}s?)\.$", sentence)
    if not match or len(sentence.split()) > 24:
        return None
    rest = sentence[: match.start()]
    clause = r"[,;:()]| (?:and|but|which|who|that|while|when|where|before|from|between|or|since|until|to) "
    low = lowered(rest) if not re.search(clause, rest) else None
    if low is None and not re.search(clause, rest) and re.match(r"[A-Z][\w.'-]+ (?:[A-Z]|was |is )", rest):
        low = rest
    return f"{raised(match[1])}, {low}." if low else None


def _active(sentence: str, _random: random.Random) -> str | None:
    match = _PASSIVE.match(sentence)
    if not match or re.search(r"\b(?:that|which|who|and)\b", match[1]) or match[4] in ("a", "an", "the"):
        return None
    objects = {"He": "him", "She": "her", "They": "them", "It": "it"}
    patient = objects.get(match[1]) or running_on(match[1] + " x")
    if patient is None:
        return None
    patient = patient.removesuffix(" x")
    subjects = {"him": "He", "her": "She", "them": "They", "it": "It", "us": "We", "me": "I"}
    agent = subjects.get(match[4]) or raised(match[4])
    return f"{agent} {PARTICIPLE_TO_PAST[match[3]]} {patient}{match[5] or ''}."


def _passive(sentence: str, _random: random.Random) -> str | None:
    match = _ACTIVE.match(sentence)
    if not match or re.search(r" (?:and|or|with|for|who|that|which|as|to|after|by|from)\b", match[3]):
        return None
    if match[3].endswith("s"):
        return None
    participle = _PARTICIPLES[match[2]]
    return f"{raised(match[3])} was {participle} by {match[1]}{match[4] or ''}."


def _possessive(sentence: str, _random: random.Random) -> str | None:
    match = _OF.search(sentence)
    if not match or re.search(r"[A-Z][\w-]+ and ", sentence[match.start() : match.end() + 5]):
        return None
    owner = match[2] + ("'" if match[2].endswith("s") else "'s")
    return sentence[: match.start()] + f"{owner} {match[1]}" + sentence[match.end() :]


def _without_parenthesis(sentence: str, _random: random.Random) -> str | None:
    return _PARENTHESIS.sub("", sentence) if _PARENTHESIS.search(sentence) else None


def _without_front(sentence: str, random_: random.Random) -> str | None:
    if match := _CONNECTIVE.match(sentence):
        return raised(sentence[match.end() :])
    match = _FRONT.match(sentence)
    if not match or _HEDGED_FRONT.search(match[1].lower()) or not _DATED.search(match[1]):
        return None
    if random_.random() < 0.5 or re.match(r"(?:and|or|[A-Z]\w+,)\b", sentence[match.end() :]):
        return None
    return raised(sentence[match.end() :])


def _without_relative(sentence: str, _random: random.Random) -> str | None:
    return _TRAILING_RELATIVE.sub("", sentence) if _TRAILING_RELATIVE.search(sentence) else None


def _apposition(sentence: str, random_: random.Random) -> str | None:
    match = _APPOSITION.match(sentence)
    if not match:
        return None
    if random_.random() < 0.5:
        return f"{match[1]} {sentence[match.start(3) :]}"
    return f"{match[1]} {'is' if match[3] in ('is', 'has') else 'was'} {match[2]}."


def _first_clause(sentence: str, _random: random.Random) -> str | None:
    match = _SECOND_CLAUSE.search(sentence)
    if not match or not len(sentence[: match.start()].split()) >= 5:
        return None
    if re.match(r"(?i)(?:if|when|although|while|because|since|unless|as|whether)\b", sentence):
        return None
    if re.search(r"\b(?:that|if|whether|not|said|believed)\b", sentence[: match.start()]):
        return None
    return sentence[: match.start()] + "."


KEEPING: Final[dict[str, Step]] = {
    "synonyms": _synonym,
    "numerals": _numeral,
    "dates": _date,
    "contraction": _contraction,
    "abbreviation": _abbreviation,
    "to the back": _to_back,
    "to the front": _to_front,
    "active": _active,
    "passive": _passive,
    "possessive": _possessive,
}
SHORTENING: Final[dict[str, Step]] = {
    "parenthesis": _without_parenthesis,
    "adverbial": _without_front,
    "relative clause": _without_relative,
    "apposition": _apposition,
    "first clause": _first_clause,
}
