"""What was sent to a model, taken apart as its instructions tell it to: by the lines that hold the marker."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tests.support.llm_server import Recorded

# The marker is the only long word with a digit among harmless texts and our own.
_LONG_WORD: Final = re.compile(r"(?<![\w-])(?=[\w-]*\d)[\w-]{16,}(?![\w-])")
_TAG: Final = re.compile(r"\[(\d+)\] ")
# Characters put in the place of those that would be read as control: readers see the same.
_STAND_INS: Final = str.maketrans({"‹": "<", "›": ">", "［": "[", "］": "]", "｜": "|"})


@dataclass(frozen=True, slots=True)
class Sent:
    """``fences`` are (name, text) in their order; ``outside`` is the user message without them."""

    marker: str
    instructions: str
    user: str
    fences: tuple[tuple[str, str], ...]
    outside: str

    @property
    def everything(self) -> str:
        return f"{self.instructions}\n{self.user}"

    def documents(self) -> list[str]:
        return [text for name, text in self.fences if "document" in name]

    def texts(self, place: str) -> list[str]:
        """Of the fences for ``place`` (context, question or answer) that hold what a test put there."""
        names = {
            "context": ("document d1",),
            "question": ("question",),
            "answer": ("claim c1", "lead-in of c1"),
        }
        return [text for name, text in self.fences if name.endswith(names[place])]


def marker_of(harmless: Recorded) -> str:
    """The marker, found in a call that carries harmless texts only."""
    words = set(_LONG_WORD.findall(contents(harmless)))
    assert len(words) == 1, words
    return str(words.pop())


def contents(call: Recorded) -> str:
    return "\n".join(str(message["content"]) for message in call.body["messages"])


def take_apart(call: Recorded, marker: str) -> Sent:
    """Fails where a text stands outside of a group, or a group isn't closed."""
    fences: list[tuple[str, str]] = []
    outside: list[str] = []
    inside: list[str] = []
    name = ""
    for line in call.user.split("\n"):
        mark = re.fullmatch(rf"\[{marker} (.+)\]", line)
        if mark is None:
            (inside if name else outside).append(line)
            continue
        if name:
            fences.append((name, "\n".join(inside)))
        name, inside = "" if mark[1] == "end" else mark[1], []
        outside.append(f"({mark[1]})")
    assert not name, "a group without end"
    return Sent(marker, call.system, call.user, tuple(fences), "\n".join(outside))


def numbered(documents: Iterable[str]) -> list[tuple[int, str]]:
    """The sentences by their numbers. Fails on a line, by any reader's idea of lines, without a number."""
    found = []
    for text in documents:
        for line in text.splitlines():
            tag = _TAG.match(line)
            assert tag is not None, f"a line without number: {line[:40]!r}"
            found.append((int(tag[1]), line[tag.end() :]))
    return found


def plain(text: str) -> str:
    """``text`` as a reader takes it: stand-ins for what they stand for, white space as one blank."""
    return " ".join(text.translate(_STAND_INS).split())


def letters(text: str, marker: str) -> str:
    """Letters and digits only, without the marker; what may never change on the way to the model."""
    text = re.sub(re.escape(marker), "", text, flags=re.IGNORECASE)
    return "".join(letter for letter in text if unicodedata.category(letter)[0] in "LN")
