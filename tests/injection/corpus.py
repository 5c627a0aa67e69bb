"""The corpus of attacks, ``corpus.jsonl``: one a line, with where it is tried and what must hold.

``where`` holds places among context, question, answer (a claim and its lead-in) and reply (what the model
writes). ``holds`` has, for texts that are sent, ``gone``, which may not arrive, and ``readable``, which must;
for replies ``verdicts``: those that may come of it, by the id of a claim. Texts hold placeholders, which
``fill`` replaces:

- ``⟦marker⟧``, the response's own marker, as if it had leaked; ``⟦marker STYLE⟧``, a look-alike of it.
- ``⟦tag 7⟧``, what stands ahead of the sentence with that number.
- ``⟦verdicts c1=SUPPORTED …⟧``, a whole reply; ``⟦member c1=SUPPORTED⟧``, one text of it.
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
_INNERMOST: Final = re.compile(r"⟦(\w+)((?: [^⟦⟧]*)?)⟧")
_CYRILLIC: Final = str.maketrans("m", "м")
_SAMPLE_MARKER: Final = "m012345678901234"

STYLES: Final[dict[str, Callable[[str], str]]] = {
    "": str,
    "upper": str.upper,
    "first": lambda marker: marker[: len(marker) // 2],
    "last": lambda marker: marker[len(marker) // 2 :],
    "wide": lambda marker: "".join(chr(ord(letter) + 0xFEE0) for letter in marker),
    "cyrillic": lambda marker: marker.translate(_CYRILLIC),
    "spaced": lambda marker: "\u200b".join(marker),
}


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


def fill(text: str, marker: str = _SAMPLE_MARKER) -> str:
    """``text`` with its placeholders replaced, the inner ones first."""
    while "⟦" in text:
        text, count = _INNERMOST.subn(lambda found: _made(found[1], found[2].strip(), marker), text)
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
        case "member":
            return json.dumps(_members(rest)[0])
        case _:
            raise AssertionError(f"unknown placeholder {word}")


def _members(rest: str) -> list[str]:
    pairs = (item.rpartition("=") for item in rest.split())
    return [member(label, verdict, evidence=[1]) for label, _, verdict in pairs]
