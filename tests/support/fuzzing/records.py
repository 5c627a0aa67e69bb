"""Makes episodes: a few responses side by side, as Kafka records, with things wrong with many of them.

All choices come from one ``random.Random``: a seeded one repeats an episode, and ``BytesRandom`` makes
episodes out of the bytes that Hypothesis invents and shrinks.
"""

from __future__ import annotations

import json
import random
from typing import Any, Final, NamedTuple

SENTENCES: Final = (
    "Paris is in France. ",
    "It costs $50. ",
    "It costs wrong $79. ",
    "Take 400 mg every 8 hours. ",
    "Oslo is unbacked in Norway. ",
    "Hello! ",
    "Is that so? ",
    "I don't know. ",
    "- Take 5 mg.\n",
    "1. The term is 30 days.\n",
    "| a | b |\n",
    "|---|---|\n",
    "# Heading\n",
    "```\ncode = 1\n",
    "```\n",
    "\n\n",
    "它在北京。",
    "Call +1 555 0100, or see https://example.org/a?b=c. ",
)

NASTY_TEXTS: Final = (
    "",
    " ",
    "\x00",
    "\ufeff",
    "\u2028\u2029\x85",
    "\r\n\r",
    "\u202eelbmarcs\u202c",
    "e\u0301\u0300" * 9,
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "\U0010ffff\ufffe",
    "İıſß",
    "٣٫٥ ٪ ｆｕｌｌ",
    "1" * 400,
    "1e400 costs $NaN. ",
    "." * 120,
    "a." * 60,
    "*" * 90 + "_" * 90,
    "`" * 99,
    "|" * 99,
    "(" * 99 + ")" * 9,
    "\t- " * 30,
    '"}]}\\',
    "<script>{{7*7}}${7*7}%s%n",
    "x" * 700,
    "no end at all " * 12,
    "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
)

NASTY_VALUES: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    0.5,
    1.0,
    -0.0,
    2**31 - 1,
    2**31,
    2**63,
    -(2**63) - 1,
    10**80,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "1",
    "nope",
    [],
    [[]],
    [None],
    {},
    {"": ""},
    {"id": "c1", "text": "A source."},
    [{"id": "c1", "text": "A source."}] * 2,
    "\x00",
    "x" * 300,
)

NASTY_BYTES: Final = (
    b"",
    b"null",
    b"{}",
    b"[]",
    b'""',
    b"\x00",
    b"\xff\xfe{\x00}\x00",
    b"\xef\xbb\xbf{}",
    b"\xc3\x28",
    b'"\\ud800"',
    b'{"type":',
    b"[" * 3_000,
    b'{"a":' * 1_000,
    b"9" * 5_000,
    b"-",
    b"1e99999",
    b"/*",
    b" " * 200,
)
"""Whole values, or pieces to put into one."""


Body = dict[str, Any]
FIELDS = (
    "type",
    "schema",
    "schema_version",
    "response_id",
    "seq",
    "text",
    "answer",
    "question",
    "contexts",
    "route",
    "tenant",
    "generator_model",
    "deadline_ms",
    "metadata",
    "reason",
    "finish_reason",
)
TYPES = ("response.started", "response.delta", "response.completed", "response.aborted", "response")
OTHER_TYPES = ("delivery.segment", "verdict.claim", "Response", "response.", "", "response.delta ")
ROUTES = ("stream", "hold", "observe", "flag", "release", "")


class FuzzRecord(NamedTuple):
    """One record, and what was done to it; no mutation: it is as a sound producer sends it."""

    key: bytes | None
    value: bytes | None
    mutations: tuple[str, ...] = ()


class _Draft(NamedTuple):
    body: Body
    mutations: tuple[str, ...] = ()

    def marked(self, mutation: str) -> _Draft:
        return _Draft(self.body, (*self.mutations, mutation))


class BytesRandom(random.Random):
    """Choices read from ``data``; when it is used up all of them are the first one."""

    def __init__(self, data: bytes) -> None:
        super().__init__(0)
        self._data = data
        self._at = 0

    def getrandbits(self, k: int, /) -> int:
        size = (k + 7) // 8
        taken = self._data[self._at : self._at + size]
        self._at += size
        return int.from_bytes(taken, "little") & ((1 << k) - 1)

    def random(self) -> float:
        return self.getrandbits(16) / 65_536


def episode(rng: random.Random, responses: int = 5) -> list[FuzzRecord]:
    """Up to ``responses`` responses, mixed, mutated and encoded."""
    scripts = [_script(rng, f"r{number}") for number in range(1 + rng.randrange(responses))]
    drafts: list[_Draft] = []
    while scripts:
        script = rng.choice(scripts)
        drafts.append(_Draft(script.pop(0)))
        if not script:
            scripts.remove(script)
    for _ in range(rng.randrange(4)):
        drafts = _reordered(rng, drafts)
    # Where much is wrong, responses end before much has happened to them.
    one_in = rng.choice((60, 20, 3))
    return [_record(rng, _changed(rng, draft, one_in), one_in) for draft in drafts]


def _script(rng: random.Random, response_id: str) -> list[Body]:
    """What a sound producer sends for one response."""
    text = "".join(
        rng.choice(NASTY_TEXTS) if rng.randrange(8) == 7 else rng.choice(SENTENCES)
        for _ in range(rng.randrange(12))
    )
    head: Body = {"type": "response.started", "schema": 1, "response_id": response_id, "question": "What?"}
    head["contexts"] = [
        {"id": f"c{n}", "text": rng.choice(SENTENCES) * 3, "score": rng.choice([None, 0.5])}
        for n in range(rng.randrange(3))
    ]
    head["route"] = rng.choice(ROUTES)
    if rng.randrange(6) == 5:
        head["deadline_ms"] = rng.choice([1, 700, 3_000, 86_400_000])
    if rng.randrange(5) == 4:
        return [{**head, "type": "response", "answer": text}]
    size = rng.choice([4, 1, 9, 30, 200])
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    events: list[Body] = [head]
    events += [_event("delta", response_id, seq=seq, text=piece) for seq, piece in enumerate(pieces)]
    if rng.randrange(6) == 5:
        events.append(_event("aborted", response_id, reason="cancelled"))
    else:
        events.append(_event("completed", response_id, seq=len(pieces), finish_reason="stop"))
    return events


def _event(kind: str, response_id: str, **fields: Any) -> Body:
    return {"type": f"response.{kind}", "schema": 1, "response_id": response_id, **fields}


def _reordered(rng: random.Random, drafts: list[_Draft]) -> list[_Draft]:
    """The same records in a way that no sound producer sends them."""
    size = len(drafts)
    at, other = rng.randrange(size), rng.randrange(size)
    kind = rng.randrange(6)
    if kind == 0:  # sent twice
        drafts.insert(other, drafts[at].marked("repeated"))
    elif kind == 1:  # a stretch again, as after a producer's restart
        again = [draft.marked("replayed") for draft in drafts[at : at + 20]]
        drafts[other:other] = again
    elif kind == 2:
        drafts[at], drafts[other] = drafts[other].marked("swapped"), drafts[at].marked("swapped")
    elif kind == 3 and size > 1:
        del drafts[at]
        follower = min(at, size - 2)
        drafts[follower] = drafts[follower].marked("after a lost one")
    elif kind == 4:  # another response's events
        body = {**drafts[at].body, "response_id": drafts[other].body["response_id"]}
        drafts.insert(other, _Draft(body, ("under another id",)))
    else:  # all again under a new id, or cut off
        tail = [
            _Draft({**draft.body, "response_id": f"{draft.body['response_id']}-b"}, ("replayed as new",))
            for draft in drafts[at : at + 30]
        ]
        drafts = drafts + tail if rng.randrange(2) else [*drafts[: at + 1], *tail]
    return drafts


def _changed(rng: random.Random, draft: _Draft, one_in: int) -> _Draft:
    """Wrong fields, in one of so many records."""
    if rng.randrange(one_in) != one_in - 1:
        return draft
    body, done = dict(draft.body), list(draft.mutations)
    for _ in range(1 + rng.randrange(2)):
        kind = rng.randrange(9)
        name = rng.choice(FIELDS if rng.randrange(2) else sorted(body) or FIELDS)
        if kind == 0:
            body.pop(name, None)
            done.append("field missing")
        elif kind == 1:
            body[name] = rng.choice(NASTY_VALUES)
            done.append("odd value")
        elif kind == 2:
            body[rng.choice(("text", "answer", "question", name))] = rng.choice(NASTY_TEXTS)
            done.append("odd text")
        elif kind == 3:
            body["seq"] = rng.choice((0, 1, 2, 3, 5, 8, 2**31 - 1, 2**31, -1, 10**30, 1.0, "1", True, None))
            done.append("another seq")
        elif kind == 4:
            body["schema"] = rng.choice((0, 2, 99, -1, "1", 1.0, True, None, [1]))
            done.append("another version")
        elif kind == 5:
            body["type"] = rng.choice(TYPES + OTHER_TYPES)
            done.append("another type")
        elif kind == 6:
            body["response_id"] = rng.choice(
                ("r0", "r1", "", "x" * 257, "r0\x00", "\ufeffr0", 7, None, ["r0"])
            )
            done.append("another id")
        elif kind == 7:
            body[rng.choice(("metadata", "contexts", "extra"))] = _nested(rng.choice((3, 50, 150, 400)))
            done.append("deeply nested")
        else:
            body["contexts"] = [
                {"id": rng.choice(("c", "", "c", "d" * 600)), "text": rng.choice(NASTY_TEXTS)}
                for _ in range(rng.choice((1, 2, 40)))
            ]
            done.append("odd contexts")
    return _Draft(body, tuple(done))


def _nested(depth: int) -> Any:
    value: Any = {}
    for level in range(depth):
        value = [value] if level % 2 else {"k": value}
    return value


def _record(rng: random.Random, draft: _Draft, one_in: int) -> FuzzRecord:
    """Encoded; with wrong bytes or a wrong key somewhat less often than wrong fields."""
    done = list(draft.mutations)
    response_id = draft.body.get("response_id")
    key: bytes | None = str(response_id).encode("utf-8", "surrogatepass") if response_id else None
    style = rng.randrange(8)
    text = json.dumps(draft.body, ensure_ascii=style < 4, separators=(",", ":") if style % 2 else None)
    value: bytes | None = text.encode("utf-8", "surrogatepass")
    if rng.randrange(2 * one_in) == 2 * one_in - 1:
        value, what = _damaged(rng, value or b"")
        done.append(what)
    if rng.randrange(4 * one_in) == 4 * one_in - 1:
        key = rng.choice((None, b"", b"r0", b"r1", b"r9", b"\xff\xfe", b"k" * 257, "r0\u0301".encode()))
        done.append("another key")
    return FuzzRecord(key, value, tuple(done))


def _damaged(rng: random.Random, value: bytes) -> tuple[bytes | None, str]:
    at = rng.randrange(len(value) + 1)
    kind = rng.randrange(8)
    if kind == 0:
        return value[:at], "cut off"
    if kind == 1:
        flipped = bytearray(value)
        for _ in range(1 + rng.randrange(3)):
            if flipped:
                flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
        return bytes(flipped), "bits flipped"
    if kind == 2:
        return value[:at] + rng.choice(NASTY_BYTES) + value[at:], "bytes put in"
    if kind == 3:
        return rng.choice(NASTY_BYTES), "other bytes"
    if kind == 4:  # a key twice; which one counts is the parser's choice, not a crash
        field = rng.choice((b'"seq":1', b'"type":"response"', b'"response_id":"r1"', b'"schema":2'))
        return value[:-1] + b"," + field + b"}", "repeated key"
    if kind == 5:
        return value + value, "two values"
    if kind == 6:
        return value.decode("utf-8", "replace").encode("utf-16"), "UTF-16"
    return None, "no value"
