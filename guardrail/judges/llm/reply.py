"""Reading a reply: strictly where it matters, with tolerance for what surrounds it.

Whatever a model writes around its JSON (prose, code fences, thoughts) is skipped. What it says of a claim is
taken by exact value or not at all: "not SUPPORTED" is no verdict. A wrong member spoils its claim only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from guardrail.errors import JudgeReplyError
from guardrail.events import ClaimPart, Verdict
from guardrail.judges.llm import compact
from guardrail.judges.llm.answer import (
    ASSUMED_CONFIDENCE,
    MAX_REASONING_CHARS,
    MOST_NUMBERS,
    Answer,
    shown,
)
from guardrail.judges.llm.parts import decided, together
from guardrail.judges.llm.reply_form import ReplyForm

__all__ = [
    "ASSUMED_CONFIDENCE",
    "MAX_REPLY_CHARS",
    "Answer",
    "decode",
    "read_lists",
    "read_member",
    "read_reply",
]

MAX_REPLY_CHARS: Final = 1_000_000
MOST_PARTS: Final = 20
MAX_PART_CHARS: Final = 500

# A start of an object that has no end costs a pass over the rest of the reply: this bounds how many.
_MAX_FAILED_STARTS: Final = 64
_MAX_VALUES: Final = 1_000
_DUPLICATE: Final = "\0duplicate"
_THOUGHTS: Final = re.compile(r"</?(?:think|thinking|thought|reasoning)>|\[/?THINK\]", re.IGNORECASE)
_NOTHING: Final = re.compile(r"(?:[\s,;`\ufeff]|json(?:l|5)?\b)*+", re.IGNORECASE)
_START: Final = re.compile(r"[{\[]")
_LIST_NAMES: Final = ("v", "verdicts")
_LIST_START: Final = re.compile(r'(?:\{\s*"(?:v|verdicts)"\s*:\s*)?\[\s*(?=[{"])')
_JSON_START: Final = re.compile(r'\{\s*"|\[\s*[\[{"]')
_SEPARATOR: Final = re.compile(r"\s*,\s*")
_NO_PARTS: Final = "the judge's verdict is a text, which can't tell of the parts that decompose asks for"
_TELLING: Final = {"verdict", "parts"}
_NUMBER: Final = re.compile(r"\[?([0-9]{1,9})\]?")


def read_reply(text: str, form: ReplyForm) -> list[Answer]:
    """The answers of a reply in its order, at least one. Raises JudgeReplyError, which quotes nothing of it.

    Of a reply that was cut off, the answers that were complete are returned. An id may occur twice.
    """
    if len(text) > MAX_REPLY_CHARS:
        raise JudgeReplyError(f"the reply has more than {MAX_REPLY_CHARS} characters")
    answers = _read_parts(_without_thoughts(text), form)
    if not answers:
        raise JudgeReplyError("the reply holds no verdicts in JSON")
    return answers


def read_lists(text: str, form: ReplyForm) -> list[Answer]:
    """The answers in the lists of verdicts that stand in ``text``; perhaps none."""
    return _read_parts([text], form, lists_only=True)


def _read_parts(texts: Sequence[str], form: ReplyForm, *, lists_only: bool = False) -> list[Answer]:
    """Of JSON that breaks off or is none, what was complete is taken, and nothing that follows.

    Verdicts that stand by themselves, or in an array, are taken only where there is nothing else: beside a
    list of them, or in prose, they may be a document's, repeated.
    """
    lists: list[Any] = []
    alone: list[Any] = []
    around: list[str] = []
    for text in texts:
        for value, before in _values(text):
            around.append(before)
            if isinstance(value, list):
                alone += value
            elif isinstance(value, dict) and _DUPLICATE not in value:  # of two lists either may be meant
                inner = [value[name] for name in _LIST_NAMES if isinstance(value.get(name), list)]
                lists += [each for members in inner for each in members]
                if not inner and value.keys() & _TELLING:
                    alone.append(value)
    if lists_only or not _NOTHING.fullmatch("".join(around)):
        alone.clear()
    # Where two lists disagree, one may be a document's words too, and neither is believed.
    found = (read_member(member, form) for member in lists or alone)
    return [answer for answer in found if answer is not None]


def decode(text: str, start: int = 0) -> tuple[Any, int] | None:
    """The JSON value that begins at ``start``, and where it ends; None when none does."""
    try:
        value, end = _decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return value, end


def read_member(member: Any, form: ReplyForm) -> Answer | None:
    """What one member of a list of verdicts says; None when it names no claim.

    Models don't always keep to the form that was asked for: an object is read in the compact form too, and a
    text in the other, unless that asks for what a text can't hold.
    """
    if isinstance(member, str):
        answer = compact.read(member, form)
        if answer is None or form.may_be_compact:
            return answer
        return Answer(answer.label, problem=_NO_PARTS)
    if not isinstance(member, dict) or not isinstance(member.get("id"), str):
        return None
    label = member["id"].strip().lower()
    if _DUPLICATE in member:
        return Answer(label, problem="the judge gave a member of its verdict twice")
    parts = _parts(member.get("parts"), form) if form.decompose else []
    if parts is None:
        return Answer(label, problem="the judge's verdicts on the parts of the claim are unusable")
    said = verdict = _verdict(member.get("verdict"), form)
    if parts and (reckoned := together(parts, binary=form.binary)) is not Verdict.SUPPORTED:
        # What the parts add up to is reckoned here, models are poor at it; but they never outvote a doubt.
        verdict = reckoned
    if verdict is None:
        known = "two" if form.binary else "four"
        word = shown(member.get("verdict"))
        return Answer(label, problem=f"the judge's verdict{word} is none of the {known}")
    confidence = member.get("confidence", 0.5) if form.confidence else ASSUMED_CONFIDENCE
    if isinstance(confidence, bool) or not isinstance(confidence, int | float):
        return Answer(label, problem="the judge's confidence is not a number")
    if not 0.0 <= confidence <= 1.0:
        return Answer(label, problem="the judge's confidence is not between 0 and 1")
    reasoning = member.get("reasoning")
    answer = Answer(
        label,
        verdict,
        float(confidence),
        tuple(_numbers(member.get("evidence"))),
        tuple(_numbers(member.get("against"))) if form.conflicts else (),
        reasoning.strip()[:MAX_REASONING_CHARS] if isinstance(reasoning, str) else "",
        tuple(parts),
    )
    return decided(answer, said)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; one with a member given twice is marked, since either may be meant."""
    made = dict(pairs)
    if len(made) != len(pairs):
        made[_DUPLICATE] = True
    return made


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_decoder: Final = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_no_constant)


def _without_thoughts(text: str) -> list[str]:
    """The parts of ``text`` that are no thoughts of the model: what stands between, or behind, their marks.

    Templates may begin the thoughts within the prompt, so that a reply has their end only. What precedes such
    an end is read too: if it holds verdicts, it may be the reply, and what follows a document's.
    """
    parts = []
    at, thinking = 0, False
    for mark in _THOUGHTS.finditer(text):
        begins = "/" not in mark[0]
        if thinking and begins:
            continue
        if not thinking:
            parts.append(text[at : mark.start()])
        thinking = begins
        at = mark.end()
    return parts if thinking else [*parts, text[at:]]


def _values(text: str) -> Iterator[tuple[Any, str]]:
    """The JSON objects and arrays that stand in ``text``, outermost only, each with the text ahead of it.

    Of a list of verdicts that breaks off comes what was complete. Last come None and what follows.
    """
    at = end = failed = read = 0
    while failed < _MAX_FAILED_STARTS and read < _MAX_VALUES:
        start = _START.search(text, at)
        if start is None:
            break
        at = start.start()
        decoded = decode(text, at)
        if decoded is not None:
            read += 1
            yield decoded[0], text[end:at]
            at = end = decoded[1]
        elif (broken := _LIST_START.match(text, at)) is not None:
            complete = list(_complete(text, broken.end()))
            yield complete if text[at] == "[" else {"verdicts": complete}, text[end:at]
            return
        elif _JSON_START.match(text, at) is not None:
            break  # what is found within it may be a part of it, or a document's words
        else:
            at += 1
            failed += 1
    yield None, text[end:]


def _complete(text: str, at: int) -> Iterator[Any]:
    """The values of a list from ``at`` on, until one is not complete."""
    while (decoded := decode(text, at)) is not None:
        value, end = decoded
        yield value
        separator = _SEPARATOR.match(text, end)
        if separator is None:
            return
        at = separator.end()


def _verdict(value: Any, form: ReplyForm) -> Verdict | None:
    """A verdict by its whole value; case, and what stands between its words, may differ."""
    if not isinstance(value, str) or not value.isascii():  # the upper case of "ſ" is an S
        return None
    return form.understood.get("_".join(value.upper().replace("-", " ").replace("_", " ").split()))


def _parts(value: Any, form: ReplyForm) -> list[ClaimPart] | None:
    """The statements a claim was taken apart into; None when one is unusable: it might be the wrong one."""
    if not isinstance(value, list):
        return [] if value is None else None
    if len(value) > MOST_PARTS:
        return None
    parts = []
    for item in value:
        if not isinstance(item, dict) or _DUPLICATE in item:
            return None
        text, verdict = item.get("text"), _verdict(item.get("verdict"), form)
        if not isinstance(text, str) or verdict is None:
            return None
        parts.append(ClaimPart(text=text.strip()[:MAX_PART_CHARS], verdict=verdict))
    return parts


def _numbers(value: Any) -> Iterator[int]:
    """Numbers of sentences in the forms that models use for them: 12, "12", "[12]"."""
    for item in value[:MOST_NUMBERS] if isinstance(value, list) else ():
        if isinstance(item, int) and not isinstance(item, bool):
            yield item
        else:
            match = _NUMBER.fullmatch(item.strip()) if isinstance(item, str) else None
            yield int(match[1]) if match else 0
