"""A claim as a chat assistant would word it: "you", plain words, what an answer begins and ends with.

It says the same, so the label stays, whichever it is.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Final

from training.lexicon import LEADS, PEOPLE, PLAIN, TRAILS, YOU_VERBS
from training.paraphrase import raised, running_on

_SOMEONE: Final = re.compile(
    rf"^(?:(?:All |The )?(?:{'|'.join(PEOPLE)})|One)(?= (?:can|may|must|should|will|need|have to|pay"
    r"|receive|cannot|could|might|are (?:allowed|entitled|required|advised|expected))\b)",
    re.IGNORECASE,
)
_BY_THEM: Final = rf"(?: by (?:the |its )?(?:{'|'.join(PEOPLE)}|anyone|the public))?"
_PASSIVE: Final = re.compile(
    r"^((?:The |A |An |These |Those |This |It|They|Its )?[\w' -]{0,40}?) ?\b(can|may|must|should|cannot)"
    rf" (?:(also|only|not) )?be ({'|'.join(YOU_VERBS)})\b{_BY_THEM}(?= |\.|,)"
)
_OBJECTS: Final = {"It": "it", "They": "them", "This": "this", "These": "these", "Those": "those"}
_PLAIN_WORD: Final = re.compile(
    r"\b(?:" + "|".join(sorted(map(re.escape, PLAIN), key=len, reverse=True)) + r")(?= |\.$|,)"
)


def chat_worded(claim: str, random_: random.Random) -> str:
    """The claim in one to three steps; as it was where none fits."""
    steps = random_.sample(_STEPS, len(_STEPS))
    wanted, taken = random_.randint(1, 3), 0
    for step in steps:
        changed = step(claim, random_)
        if changed and changed != claim:
            claim, taken = changed, taken + 1
        if taken == wanted:
            break
    return claim


def spans_in(
    before: str, after: str, spans: tuple[tuple[int, int], ...] | None
) -> tuple[tuple[int, int], ...] | None:
    """Where the spans of ``before`` stand in ``after``; None where that can't be told."""
    if not spans or before == after:
        return spans
    found = []
    for start, end in spans:
        text = before[start:end]
        if (start, end) == (0, len(before)):
            found.append((0, len(after)))
        elif len(text) > 1 and after.count(text) == 1 == before.count(text):
            at = after.index(text)
            found.append((at, at + len(text)))
        else:
            return None
    return tuple(found)


def _second_person(claim: str, _random: random.Random) -> str | None:
    match = _SOMEONE.match(claim)
    if not match:
        return None
    rest = claim[match.end() :]
    if rest.count(" their ") == 1 and " who " not in rest:
        rest = rest.replace(" their ", " your ")
    return f"You{rest}"


def _you_do_it(claim: str, _random: random.Random) -> str | None:
    match = _PASSIVE.match(claim)
    if not match or not match[1]:
        return None
    thing = _OBJECTS.get(match[1]) or running_on(match[1])
    if thing is None or (match[3] == "not" and match[2] == "may"):
        return None
    between = f" {match[3]}" if match[3] else ""
    return f"You {match[2]}{between} {YOU_VERBS[match[4]]} {thing}{claim[match.end() :]}"


def _lead_in(claim: str, random_: random.Random) -> str | None:
    low = claim if claim[:4] == "You " or claim[:2] == "I " else running_on(claim)
    if low is None:
        return None
    lead = random_.choice(LEADS)
    return lead + (low if lead.endswith(": ") or not low.startswith("You ") else f"y{low[1:]}")


def _trailing(claim: str, random_: random.Random) -> str | None:
    return f"{claim[:-1]}{random_.choice(TRAILS)}." if claim.endswith(".") else None


def _plain_words(claim: str, random_: random.Random) -> str | None:
    found = list(_PLAIN_WORD.finditer(claim))
    for match in sorted(random_.sample(found, min(len(found), 3)), key=lambda m: -m.start()):
        claim = claim[: match.start()] + PLAIN[match.group()] + claim[match.end() :]
    return raised(claim) if found else None


def _no_full_stop(claim: str, _random: random.Random) -> str | None:
    return claim[:-1] if claim.endswith(".") and not claim.endswith("..") else None


_STEPS: Final[tuple[Callable[[str, random.Random], str | None], ...]] = (
    _second_person,
    _second_person,
    _you_do_it,
    _you_do_it,
    _lead_in,
    _trailing,
    _plain_words,
    _plain_words,
    _no_full_stop,
)
"""Those that seldom fit come up twice."""
