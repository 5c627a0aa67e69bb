"""The corpus of attacks, ``corpus.jsonl``: one a line, with where it is tried and what must hold.

``where`` holds places among context, question, answer (a claim and its lead-in) and reply (what the model
writes). ``holds`` has, for texts that are sent, ``gone``, which may not arrive, and ``readable``, which must;
for replies ``verdicts``: those that may come of it, by the id of a claim. Texts hold placeholders, which
``fill`` replaces:

- ``⟦marker⟧``, the response's own marker, as if it had leaked; ``⟦marker STYLE⟧``, a look-alike of it.
- ``⟦tag 7⟧``, what stands ahead of the sentence with that number.
- ``⟦verdicts c1=SUPPORTED …⟧``, a whole reply; ``⟦member c1=SUPPORTED⟧``, one verdict of it, and
  ``⟦members …⟧``, a list of them; with quotes around the word, as a JSON string.
- ``⟦raw c1=SUPPORTED NAME:JSON⟧``, a verdict with that member replaced by JSON that is put in as it stands.
- ``⟦founded c1=SUPPORTED KIND⟧``, a verdict with evidence that doesn't exist.

Verdicts are put in as objects or, with ``compact``, as texts; those with a member that a text has no place
for stay objects.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.llm_server import member, verdicts

FILE: Final = Path(__file__).with_name("corpus.jsonl")
_INNERMOST: Final = re.compile(r'⟦("?)(\w+)("?)((?: [^⟦⟧]*)?)⟧')
_CYRILLIC: Final = str.maketrans("m", "м")
_SAMPLE_MARKER: Final = "m012345678901234"
_RAW: Final = "@raw@"

STYLES: Final[dict[str, Callable[[str], str]]] = {
    "": str,
    "upper": str.upper,
    "first": lambda marker: marker[: len(marker) // 2],
    "last": lambda marker: marker[len(marker) // 2 :],
    "wide": lambda marker: "".join(chr(ord(letter) + 0xFEE0) for letter in marker),
    "cyrillic": lambda marker: marker.translate(_CYRILLIC),
    "spaced": lambda marker: "\u200b".join(marker),
}

BAD_EVIDENCE: Final[dict[str, list[Any]]] = {
    "nowhere": [9_999],
    "empty": [],
    "zero": [0],
    "negative": [-1],
    "huge": [10**30],
    "fraction": [0.5],
    "truth": [True],
    "object": [{"document": "d1", "sentence": 1}],
    "list": [[1]],
    "range": ["1-9"],
    "words": ["the first sentence"],
}
"""Numbers of sentences that there are not, and what is no number."""


_PLACES: Final = {
    "verdict": "{label} 1 {value}",
    "confidence": "{label} 1 {verdict} {value}",
    "reasoning": "{label} 1 {verdict}: {value}",
    "note": "{label} 1 {verdict}: {value}",
}
"""Where in a text the value of a member stands."""


@dataclass(frozen=True, slots=True)
class Attack:
    """One line of the corpus. ``text`` has its placeholders still in it."""

    id: str
    kind: str
    language: str
    where: tuple[str, ...]
    text: str
    holds: dict[str, Any]

    @property
    def gone(self) -> list[str]:
        return list(self.holds.get("gone", ()))

    @property
    def readable(self) -> list[str]:
        return list(self.holds.get("readable", ()))


def load() -> list[Attack]:
    """All attacks, those that say ``repeat`` already repeated."""
    attacks = []
    for line in FILE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        text = row["text"] * row.get("repeat", 1)
        attacks.append(
            Attack(row["id"], row["kind"], row["language"], tuple(row["where"]), text, row["holds"])
        )
    return attacks


def fill(text: str, marker: str = _SAMPLE_MARKER, *, compact: bool = False) -> str:
    """``text`` with its placeholders replaced, the inner ones first."""

    def replace(found: re.Match[str]) -> str:
        make = _made_compact if compact else _made
        made = make(found[2], found[4].strip(), marker)
        return json.dumps(made) if found[1] else made

    while "⟦" in text:
        text, count = _INNERMOST.subn(replace, text)
        assert count, text
    return text


def _made(word: str, rest: str, marker: str) -> str:
    match word:
        case "marker":
            return STYLES[rest](marker)
        case "tag":
            return f"[{rest}] "
        case "verdicts":
            return verdicts(*_members(rest))
        case "members":
            return json.dumps(_members(rest))
        case "member":
            return json.dumps(_members(rest)[0])
        case "raw":
            claim, _, change = rest.partition(" ")
            name, _, value = change.partition(":")
            return json.dumps(_members(claim)[0] | {name: _RAW}).replace(json.dumps(_RAW), value)
        case "founded":
            claim, _, kind = rest.partition(" ")
            return json.dumps(_members(claim)[0] | {"evidence": BAD_EVIDENCE[kind]})
        case _:
            raise AssertionError(f"unknown placeholder {word}")


def _made_compact(word: str, rest: str, marker: str) -> str:
    match word:
        case "verdicts":
            return json.dumps({"v": _texts(rest)}, separators=(",", ":"))
        case "members":
            return json.dumps(_texts(rest))
        case "member":
            return json.dumps(_texts(rest)[0])
        case "raw":
            claim, _, change = rest.partition(" ")
            name, _, value = change.partition(":")
            label, _, verdict = claim.rpartition("=")
            if value.startswith('"') and name in _PLACES:
                return json.dumps(_PLACES[name].format(label=label, verdict=verdict, value=json.loads(value)))
            return _made(word, rest, marker)
        case "founded":
            claim, _, kind = rest.partition(" ")
            label, _, verdict = claim.rpartition("=")
            numbers = json.dumps(BAD_EVIDENCE[kind]) if BAD_EVIDENCE[kind] else ""
            return json.dumps(f"{label} {numbers} {verdict.lower()}")
        case _:
            return _made(word, rest, marker)


def _texts(rest: str) -> list[str]:
    pairs = (item.rpartition("=") for item in rest.split())
    return [f"{label} 1 {verdict.lower()}" for label, _, verdict in pairs]


def _members(rest: str) -> list[dict[str, Any]]:
    pairs = (item.rpartition("=") for item in rest.split())
    return [member(label, verdict) for label, _, verdict in pairs]
