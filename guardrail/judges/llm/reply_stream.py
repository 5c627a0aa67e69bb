"""Reading a reply while it is written: a verdict is known when its text or object closes, not at the end.

Only a reply that is our object from its first character on (``{"v":["…"]}`` or ``{"verdicts":[{…}]}``) is
believed early. In anything else (prose, thoughts, a code fence) an object may be one that stood in a
document and is repeated before the real ones; such a reply is read as a whole, when it has ended, and what
disagrees is not believed.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from enum import Enum, auto
from typing import Final

from guardrail.errors import JudgeReplyError
from guardrail.judges.llm.reply import MAX_REPLY_CHARS, Answer, decode, read_lists, read_member, read_reply
from guardrail.judges.llm.reply_form import ReplyForm

_HEAD: Final = re.compile(r'\s*\{\s*"(?:v|verdicts)"\s*:\s*\[')
_HEAD_MAX_CHARS: Final = 200
_BETWEEN: Final = re.compile(r"[\s,]*")
_STRUCTURE: Final = re.compile(r'["{}\[\]]')
_IN_STRING: Final = re.compile(r'["\\]')


class _At(Enum):
    HEAD = auto()  # ahead of the first verdict
    BETWEEN = auto()  # ahead of the next verdict, or of the end of the list
    INSIDE = auto()  # in the text or the object of a verdict
    REST = auto()  # behind the list, or in what is not to be believed early


class ReplyReader:
    """Reads one reply. Linear in its length, which is bounded; an object is decoded once.

    ``feed`` and ``finish`` together return every answer once, in the order of the reply, also those with an
    id that was not asked for, and those with one that occurs twice.
    """

    __slots__ = (
        "_asked", "_at", "_broken", "_chars", "_depth", "_escaped", "_form", "_found", "_parted", "_quoted",
        "_read", "_rest",
    )  # fmt: skip

    def __init__(self, form: ReplyForm, asked: Collection[str]) -> None:
        """``asked`` are the short ids (c1, …) of the claims."""
        self._form = form
        self._asked = asked
        self._at = _At.HEAD
        self._rest: list[str] = []  # what no answer was made of yet, in pieces
        self._chars = 0
        self._depth = 0
        self._quoted = self._escaped = self._broken = False
        self._parted = True  # from a text before, by a comma
        self._read = self._found = 0  # answers, and those of them to what was asked

    def feed(self, text: str) -> list[Answer]:
        """The answers whose objects ``text``, which follows what was fed before, has closed.

        Raises JudgeReplyError when the reply is longer than any reply may be.
        """
        self._chars += len(text)
        if self._chars > MAX_REPLY_CHARS:
            raise JudgeReplyError(f"the reply has more than {MAX_REPLY_CHARS} characters")
        start = 0
        if self._at is _At.HEAD:
            text, start = self._head(text)
        answers: list[Answer] = []
        while start < len(text) and self._at in {_At.BETWEEN, _At.INSIDE}:
            if self._at is _At.BETWEEN:
                start = self._begin(text, start)
                continue
            end = self._end(text, start)
            self._rest.append(text[start:end])
            start = end
            if self._whole:
                answers += self._closed()
        if start < len(text):
            self._rest.append(text[start:])
        self._count(answers)
        return answers

    def finish(self) -> list[Answer]:
        """The answers that ``feed`` didn't return, now that the reply has ended, be it in the middle.

        Raises JudgeReplyError when the whole reply has no verdict on any claim that was asked for.
        """
        rest = "".join(self._rest)
        if not self._read:
            answers = read_reply(rest, self._form)
        elif self._broken or self._at is _At.INSIDE:
            answers = []  # what stands in an object that has no end, or is none, is nothing by itself
        else:
            answers = read_lists(rest, self._form)
        self._count(answers)
        if not self._found:
            raise JudgeReplyError("the reply has no verdict for any claim that was asked")
        return answers

    def _count(self, answers: list[Answer]) -> None:
        self._read += len(answers)
        self._found += sum(answer.label in self._asked for answer in answers)

    def _head(self, text: str) -> tuple[str, int]:
        """All that came so far, and where in it the list begins if it does."""
        text = "".join([*self._rest, text])
        self._rest.clear()
        match = _HEAD.match(text)
        if match is not None:
            self._at = _At.BETWEEN
            return text, match.end()
        if len(text) > _HEAD_MAX_CHARS or (text.strip() and not text.lstrip().startswith("{")):
            self._at = _At.REST
        return text, 0

    def _begin(self, text: str, start: int) -> int:
        """Where the next verdict begins; what begins is no verdict when the state is REST."""
        match = _BETWEEN.match(text, start)
        if match is not None:
            self._parted = self._parted or "," in match[0]
            start = match.end()
        if start < len(text):
            # Behind a text without a comma stands what belonged into it: a quotation, in quotes of its own.
            # Unless the list ends there, lists that follow may be quoted as well.
            if text[start] in '{"' and self._parted:
                self._at, self._depth = _At.INSIDE, 0
            else:
                self._at, self._broken = _At.REST, text[start] != "]"
        return start

    def _end(self, text: str, start: int) -> int:
        """Where the object that is being read ends, or ``text`` does."""
        at = start
        while at < len(text):
            if self._escaped:
                self._escaped = False
                at += 1
                continue
            match = (_IN_STRING if self._quoted else _STRUCTURE).search(text, at)
            if match is None:
                break
            at = match.end()
            self._step(match[0])
            if self._whole:
                return at
        return len(text)

    @property
    def _whole(self) -> bool:
        """Has the verdict that is being read come to its end?"""
        return self._depth == 0 and not self._quoted

    def _step(self, mark: str) -> None:
        if mark == '"':
            self._quoted = not self._quoted
        elif mark == "\\":
            self._escaped = True
        else:
            self._depth += 1 if mark in "{[" else -1

    def _closed(self) -> list[Answer]:
        """The answer of the object that was just closed. One that is no JSON ends all early belief."""
        decoded = decode("".join(self._rest))
        if decoded is None:
            self._at, self._broken = _At.REST, True
            return []
        self._rest.clear()
        self._at, self._parted = _At.BETWEEN, not isinstance(decoded[0], str)
        answer = read_member(decoded[0], self._form)
        return [] if answer is None else [answer]
