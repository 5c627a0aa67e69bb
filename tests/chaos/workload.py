"""Responses whose right outcome is known from their text, made from a seed one by one.

Case ``n`` of a seed is always the same and is made again where it is needed, so that no run has to keep
what it sent. A case is one response, with what is wrong about it.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from tests.chaos.policies import DEFAULT_ROUTE, DELICATE_ROUTES, ORPHAN_ROUTES, SOUND_ROUTES

_ADJECTIVES: Final = ("blue", "red", "small", "annual", "basic", "northern")
_NOUNS: Final = ("tariff", "pass", "contract", "service", "offer", "licence")
_UNITS: Final = ("devices", "rooms", "trips", "users", "seats", "pages")
_PERIODS: Final = ("month", "week", "year", "day")
WRONG: Final = "wrong"
DELICATE: Final = "delicate"
_NUMBER: Final = re.compile(rb"\bcase-(\d{7})\b")


class Ending(StrEnum):
    """How a case goes on after its start, and what is wrong with it."""

    COMPLETE = "complete"
    WHOLE = "whole"
    """One ``response`` event with everything."""
    REPEATED = "repeated"
    """Complete, with deltas sent twice, and its start and last delta again after the end."""
    ABORTED = "aborted"
    ORPHAN = "orphan"
    """Nothing ends it: its time runs out."""
    GAP = "gap"
    """One delta is missing on the way."""
    GARBLED = "garbled"
    """A record with its key that can't be read, on the way."""
    GARBAGE = "garbage"
    """Nothing but one record that can't be read; its key names the response."""
    KEYLESS = "keyless"
    """The same without a key: nobody waits for it."""
    UNKNOWN = "unknown"
    """One delta of a response that was never started."""


_WEIGHTS: Final = {
    Ending.COMPLETE: 800,
    Ending.WHOLE: 60,
    Ending.REPEATED: 50,
    Ending.ABORTED: 25,
    Ending.ORPHAN: 15,
    Ending.GAP: 12,
    Ending.GARBLED: 12,
    Ending.GARBAGE: 10,
    Ending.KEYLESS: 8,
    Ending.UNKNOWN: 8,
}
DELICATE_SHARE: Final = 0.1
CUT: Final = frozenset({Ending.ABORTED, Ending.ORPHAN, Ending.GAP, Ending.GARBLED})
"""Their text ends before it is complete."""
SILENT: Final = frozenset({Ending.KEYLESS, Ending.UNKNOWN})
"""Nobody waits for an answer to these: all that comes of them is a dead letter."""


class Sent(NamedTuple):
    """One input record. ``bad``: it must be dead-lettered, exactly once."""

    key: bytes | None
    value: bytes
    bad: bool = False


class Sentence(NamedTuple):
    """A claim of ours and its place in the text, without the space behind it."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Case:
    """One response. ``text`` is all that the guard may count: what comes after a cut is left out."""

    number: int
    response_id: str
    route: str
    ending: Ending
    text: str
    sentences: tuple[Sentence, ...]
    boundaries: tuple[int, ...]
    """Ends of the deltas within ``text``."""
    records: tuple[Sent, ...]
    """In the order in which they are sent."""

    @property
    def delicate(self) -> bool:
        """May its claims stay UNVERIFIED?"""
        return self.route in DELICATE_ROUTES


def response_id(number: int) -> str:
    return f"case-{number:07d}"


def number_of(key: bytes | None, value: bytes | None) -> int | None:
    """Whose record this is: by its key, or where there is none by its value."""
    found = _NUMBER.search(key if key is not None else value or b"")
    return int(found.group(1)) if found else None


class Workload:
    """The cases of one seed."""

    def __init__(self, seed: int, cases: int) -> None:
        self.seed = seed
        self.cases = cases

    def case(self, number: int) -> Case:
        """Case ``number``, from 0."""
        rng = random.Random(self.seed * 1_000_003 + number)
        if number < len(Ending) * 2:  # also in a small run each is there
            ending = list(Ending)[number % len(Ending)]
        else:
            ending = rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        route = rng.choice(SOUND_ROUTES)
        if ending is Ending.ORPHAN:
            route = rng.choice(ORPHAN_ROUTES)
        elif ending in CUT:
            # What a policy that only observes lets through after the end of the judging is another matter.
            route = rng.choice([name for name in SOUND_ROUTES if name != "observe"])
        elif ending is Ending.GARBAGE:
            route = DEFAULT_ROUTE
        elif ending is Ending.COMPLETE and rng.random() < DELICATE_SHARE:
            route = rng.choice(DELICATE_ROUTES)
        return _build(number, route, ending, rng)

    def __iter__(self) -> Iterator[Case]:
        return (self.case(number) for number in range(self.cases))


def _build(number: int, route: str, ending: Ending, rng: random.Random) -> Case:
    sentences = _sentences(number, rng, delicate=route in DELICATE_ROUTES)
    text = " ".join(sentence.text for sentence in sentences)
    pieces = _pieces(text, rng)
    name = response_id(number)
    key = name.encode()
    head = _head(name, route, number)
    deltas = [
        Sent(key, _event("response.delta", name, seq=seq, text=piece)) for seq, piece in enumerate(pieces)
    ]
    completed = Sent(key, _event("response.completed", name, seq=len(pieces)))
    start = Sent(key, _event("response.started", name, **head))
    kept = len(pieces)
    match ending:
        case Ending.COMPLETE:
            records = [start, *deltas, completed]
        case Ending.WHOLE:
            records = [Sent(key, _event("response", name, answer=text, **head))]
        case Ending.REPEATED:
            again = rng.randrange(len(deltas))
            records = [start, *deltas[: again + 1], *deltas[max(0, again - 2) :], completed]
            records += [start, deltas[-1]]
        case Ending.ABORTED | Ending.ORPHAN:
            kept = rng.randint(1, len(pieces))
            records = [start, *deltas[:kept]]
            if ending is Ending.ABORTED:
                records.append(Sent(key, _event("response.aborted", name, reason="gone")))
        case Ending.GAP:
            kept = rng.randint(1, len(pieces) - 2)
            first_after = deltas[kept + 1]._replace(bad=True)
            records = [start, *deltas[:kept], first_after, *deltas[kept + 2 :], completed]
        case Ending.GARBLED:
            kept = rng.randint(1, len(pieces) - 1)
            records = [start, *deltas[:kept], _poison(key, name, rng), *deltas[kept:], completed]
        case Ending.GARBAGE:
            kept, records = 0, [_poison(key, name, rng)]
        case Ending.KEYLESS:
            kept, records = 0, [_poison(None, name, rng)]
        case Ending.UNKNOWN:
            kept, records = 0, [deltas[0]._replace(bad=True)]
    boundaries, at = [], 0
    for piece in pieces[:kept]:
        at += len(piece)
        boundaries.append(at)
    counted = tuple(sentence for sentence in sentences if sentence.start < at)
    return Case(number, name, route, ending, text[:at], counted, tuple(boundaries), tuple(records))


def _sentences(number: int, rng: random.Random, *, delicate: bool) -> list[Sentence]:
    found: list[Sentence] = []
    at = 0
    wrong_ones = 0.12 if rng.random() < 0.6 else 0.0
    for _ in range(rng.randint(2, 5)):
        adjective = DELICATE if delicate and rng.random() < 0.5 else rng.choice(_ADJECTIVES)
        wrong = f"{WRONG} " if rng.random() < wrong_ones else ""
        text = (
            f"The {adjective} {rng.choice(_NOUNS)} of plan {number} covers {wrong}{rng.randint(2, 99)} "
            f"{rng.choice(_UNITS)} a {rng.choice(_PERIODS)}."
        )
        found.append(Sentence(at, at + len(text), text))
        at += len(text) + 1
    return found


def _pieces(text: str, rng: random.Random) -> list[str]:
    """The text in 6 to 12 deltas, cut anywhere."""
    cuts = sorted(rng.sample(range(1, len(text)), rng.randint(5, 11)))
    return [text[low:high] for low, high in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def _head(name: str, route: str, number: int) -> dict[str, Any]:
    contexts = [{"id": "c1", "text": f"What plan {number} covers is in the price list."}]
    return {"question": f"What does plan {number} cover?", "contexts": contexts, "route": route}


def _poison(key: bytes | None, name: str, rng: random.Random) -> Sent:
    """A record that can't be read: no JSON, half of it, no UTF-8, another version, an unknown type."""
    value = rng.choice(
        (
            f"not json {name}".encode(),
            f'{{"type":"response.delta","response_id":"{name}"'.encode(),
            b"\xff\xfe\x00 " + name.encode(),
            _event("response.delta", name, seq=0, text="x", schema=99),
            _event("response.paused", name),
        )
    )
    return Sent(key, value, bad=True)


def _event(kind: str, name: str, *, schema: int = 1, **fields: Any) -> bytes:
    event = {"type": kind, "schema": schema, "response_id": name, **fields}
    return json.dumps(event, separators=(",", ":")).encode()


def streams(workload: Workload, *, at_once: int) -> Iterator[tuple[int, Sent]]:
    """Every record of every case with its number, ``at_once`` cases side by side, delta by delta in turn.

    An orphan comes in one go: its producer dies, and does not dawdle.
    """
    rng = random.Random(workload.seed)
    cases = iter(workload)
    live: list[tuple[int, Iterator[Sent]]] = []
    while True:
        while len(live) < at_once and (case := next(cases, None)) is not None:
            if case.ending is Ending.ORPHAN:
                yield from ((case.number, record) for record in case.records)
            else:
                live.append((case.number, iter(case.records)))
        if not live:
            return
        rng.shuffle(live)
        still = []
        for number, records in live:
            sent = next(records, None)
            if sent is not None:
                still.append((number, records))
                yield number, sent
        live = still
