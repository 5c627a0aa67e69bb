"""A claim as a chat assistant would word it: "you", plain words, what an answer begins and ends with.

It says the same, so the label stays, whichever it is.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Final

from training.paraphrase import raised, running_on

_PEOPLE: Final = (
    "customers", "users", "employees", "members", "guests", "visitors", "passengers", "patients",
    "residents", "students", "applicants", "players", "travellers", "travelers", "viewers", "buyers",
    "drivers", "tenants", "owners", "participants", "workers", "citizens", "subscribers", "candidates",
    "shoppers", "clients", "cyclists", "parents", "homeowners", "diners", "hikers", "people", "staff",
)  # fmt: skip
_SOMEONE: Final = re.compile(
    rf"^(?:(?:All |The )?(?:{'|'.join(_PEOPLE)})|One)(?= (?:can|may|must|should|will|need|have to|pay"
    r"|receive|cannot|could|might|are (?:allowed|entitled|required|advised|expected))\b)",
    re.IGNORECASE,
)
_BY_THEM: Final = rf"(?: by (?:the |its )?(?:{'|'.join(_PEOPLE)}|anyone|the public))?"
_VERBS: Final[dict[str, str]] = {
    "used": "use",
    "found": "find",
    "seen": "see",
    "made": "make",
    "taken": "take",
    "ordered": "order",
    "returned": "return",
    "paid": "pay",
    "booked": "book",
    "changed": "change",
    "cancelled": "cancel",
    "canceled": "cancel",
    "downloaded": "download",
    "installed": "install",
    "applied": "apply",
    "combined": "combine",
    "stored": "store",
    "kept": "keep",
    "obtained": "get",
    "purchased": "buy",
    "bought": "buy",
    "reached": "reach",
    "visited": "visit",
    "accessed": "access",
    "stopped": "stop",
    "mixed": "mix",
    "heated": "heat",
    "eaten": "eat",
    "worn": "wear",
    "carried": "carry",
    "removed": "remove",
    "added": "add",
    "viewed": "see",
    "played": "play",
    "grown": "grow",
    "cooked": "cook",
    "washed": "wash",
    "cleaned": "clean",
    "replaced": "replace",
    "renewed": "renew",
    "submitted": "hand in",
    "requested": "ask for",
    "avoided": "avoid",
    "treated": "treat",
    "read": "read",
    "heard": "hear",
    "chosen": "choose",
    "given": "give",
    "opened": "open",
    "closed": "close",
    "built": "build",
    "bred": "breed",
    "caught": "catch",
    "hired": "hire",
    "rented": "rent",
    "sent": "send",
    "shown": "show",
    "written": "write",
    "performed": "do",
    "done": "do",
    "considered": "consider",
    "observed": "observe",
    "measured": "measure",
    "controlled": "control",
    "connected": "connect",
    "configured": "configure",
    "deleted": "delete",
    "reported": "report",
}
_PASSIVE: Final = re.compile(
    r"^((?:The |A |An |These |Those |This |It|They|Its )?[\w' -]{0,40}?) ?\b(can|may|must|should|cannot)"
    rf" (?:(also|only|not) )?be ({'|'.join(_VERBS)})\b{_BY_THEM}(?= |\.|,)"
)
_OBJECTS: Final = {"It": "it", "They": "them", "This": "this", "These": "these", "Those": "those"}
_LEADS: Final = (
    "Yes, ",
    "In short, ",
    "Basically, ",
    "According to the document, ",
    "According to the text, ",
    "The document says that ",
    "It says that ",
    "Note that ",
    "Keep in mind that ",
    "So ",
    "As for your question, ",
    "Sure: ",
    "Based on the information given, ",
    "From what is written there, ",
    "Here, ",
    "As the text puts it, ",
    "Good question: ",
    "To answer that: ",
    "You'll find that ",
    "Just to be clear, ",
    "In other words, ",
)
_TRAILS: Final = (
    ", according to the document",
    ", as the text says",
    ", by the way",
    ", it says",
    " (see the text)",
    ", as stated there",
    ", according to the source",
)
_PLAIN: Final[dict[str, str]] = {
    "purchasing": "buying",
    "requires": "needs",
    "require": "need",
    "receive": "get",
    "receives": "gets",
    "receiving": "getting",
    "approximately": "about",
    "permitted": "allowed",
    "prohibited": "not allowed",
    "forbidden": "not allowed",
    "commence": "start",
    "commences": "starts",
    "prior to": "before",
    "in addition": "also",
    "additional": "extra",
    "assist": "help",
    "attempted": "tried",
    "utilize": "use",
    "utilizes": "uses",
    "currently": "right now",
    "immediately": "right away",
    "frequently": "often",
    "numerous": "lots of",
    "sufficient": "enough",
    "regarding": "about",
    "concerning": "about",
    "in order to": "to",
    "free of charge": "for free",
    "at no cost": "for free",
    "complimentary": "free",
    "contains": "has",
    "provides": "gives",
    "comprises": "is made up of",
    "consists of": "is made up of",
    "is able to": "can",
    "are able to": "can",
    "is required to": "has to",
    "are required to": "have to",
    "is permitted to": "may",
    "are permitted to": "may",
    "is not permitted to": "may not",
    "is known as": "is called",
    "are known as": "are called",
    "was known as": "was called",
    "resides": "lives",
    "reside": "live",
    "passed away": "died",
    "children": "kids",
    "physician": "doctor",
    "physicians": "doctors",
    "film": "movie",
    "films": "movies",
    "television": "TV",
    "residence": "home",
    "employment": "work",
    "beverages": "drinks",
    "beverage": "drink",
    "obtain": "get",
    "obtains": "gets",
    "depart": "leave",
    "departs": "leaves",
    "conclude": "end",
    "concludes": "ends",
    "terminate": "end",
    "terminated": "ended",
    "remained": "stayed",
    "enables": "lets",
    "difficult": "hard",
    "large": "big",
    "larger": "bigger",
    "largest": "biggest",
    "rapidly": "fast",
    "upon": "on",
    "therefore": "so",
    "such as": "like",
    "e.g.": "for example",
    "i.e.": "that is",
    "per annum": "a year",
    "annually": "every year",
    "every day": "daily",
    "daily": "every day",
    "weekly": "every week",
    "monthly": "every month",
    "primarily": "mainly",
    "discontinued": "stopped",
    "is situated": "is",
    "is located": "is",
    "was situated": "was",
    "are located": "are",
    "constructed": "built",
    "manufactured": "made",
    "assists": "helps",
    "remuneration": "pay",
    "individuals": "people",
    "persons": "people",
    "subsequent to": "after",
    "throughout": "all through",
}
_PLAIN_WORD: Final = re.compile(
    r"\b(?:" + "|".join(sorted(map(re.escape, _PLAIN), key=len, reverse=True)) + r")(?= |\.$|,)"
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
    return f"You {match[2]}{between} {_VERBS[match[4]]} {thing}{claim[match.end() :]}"


def _lead_in(claim: str, random_: random.Random) -> str | None:
    low = claim if claim[:4] == "You " or claim[:2] == "I " else running_on(claim)
    if low is None:
        return None
    lead = random_.choice(_LEADS)
    return lead + (low if lead.endswith(": ") or not low.startswith("You ") else f"y{low[1:]}")


def _trailing(claim: str, random_: random.Random) -> str | None:
    return f"{claim[:-1]}{random_.choice(_TRAILS)}." if claim.endswith(".") else None


def _plain_words(claim: str, random_: random.Random) -> str | None:
    found = list(_PLAIN_WORD.finditer(claim))
    for match in sorted(random_.sample(found, min(len(found), 3)), key=lambda m: -m.start()):
        claim = claim[: match.start()] + _PLAIN[match.group()] + claim[match.end() :]
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
