"""The form of a reply, and reading one: strictly where it matters, with tolerance for what surrounds it.

Whatever a model writes around its JSON (prose, code fences, thoughts) is skipped. What it says of a claim is
taken by exact value or not at all: "not SUPPORTED" is no verdict. A wrong member spoils its claim only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from guardrail.errors import JudgeReplyError
from guardrail.events import Verdict
from guardrail.judges.llm.settings import Reasoning

MAX_REPLY_CHARS: Final = 1_000_000
MAX_REASONING_CHARS: Final = 2_000

# A start of an object that has no end costs a pass over the rest of the reply: this bounds how many.
_MAX_FAILED_STARTS: Final = 64
_DUPLICATE: Final = "\0duplicate"
_VERDICTS: Final = {v.value: v for v in Verdict if v is not Verdict.UNVERIFIED}


@dataclass(frozen=True, slots=True)
class Quote:
    """A quote as offered, not yet found in its document. ``document`` is a label such as d1."""

    document: str
    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a reply says of one claim, by the claim's short id. ``problem`` says why it can't be used."""

    label: str
    verdict: Verdict = Verdict.UNVERIFIED
    confidence: float = 0.0
    quotes: tuple[Quote, ...] = ()
    contradicted_by: tuple[str, ...] = ()
    reasoning: str = ""
    problem: str = ""


def reply_schema(reasoning: Reasoning) -> dict[str, Any]:
    """The JSON Schema of a reply, for strict structured outputs.

    It doesn't depend on the claims asked for: a provider compiles each new schema once, which takes seconds.
    Members are written in the order they stand here, so quotes come before the verdict that rests on them.
    """
    text = {"type": "string"}
    quote = _object({"document": text, "quote": text})
    members: dict[str, Any] = {"id": text, "quotes": {"type": "array", "items": quote}}
    if reasoning is Reasoning.BEFORE:
        members["reasoning"] = text
    members["verdict"] = {"type": "string", "enum": list(_VERDICTS)}
    members["confidence"] = {"type": "number"}
    members["contradicted_by"] = {"type": "array", "items": text}
    if reasoning in {Reasoning.AFTER, Reasoning.NOT_SUPPORTED}:
        members["reasoning"] = text
    return _object({"verdicts": {"type": "array", "items": _object(members)}})


def _object(members: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


def reply_form(reasoning: Reasoning) -> str:
    """An example of the form, for servers that take no schema; its values show types, not verdicts."""
    values = {
        "id": '"c1"',
        "quotes": '[{"document": "d1", "quote": "…"}]',
        "verdict": '"…"',
        "confidence": "0.0",
        "contradicted_by": "[]",
        "reasoning": '"…"',
    }
    order = reply_schema(reasoning)["properties"]["verdicts"]["items"]["required"]
    return '{"verdicts": [{' + ", ".join(f'"{name}": {values[name]}' for name in order) + "}]}"


def read_reply(text: str) -> list[Answer]:
    """The answers of a reply in its order, at least one. Raises JudgeReplyError, which quotes nothing of it.

    Of a reply that was cut off, the answers that were complete are returned. An id may occur twice.
    """
    if len(text) > MAX_REPLY_CHARS:
        raise JudgeReplyError(f"the reply has {len(text)} characters, more than {MAX_REPLY_CHARS}")
    # Verdicts may stand in one list, in several, or (a list cut off, a verdict a line) by themselves. All are
    # taken: where two disagree, one may be a document's words repeated by the model, and neither is believed.
    members = [member for value in _values(text.rpartition("</think>")[2]) for member in _members(value)]
    answers = [answer for answer in map(_answer, members) if answer is not None]
    if not answers:
        raise JudgeReplyError("the reply holds no verdicts in JSON")
    return answers


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; one with a member given twice is marked, since either may be meant."""
    made = dict(pairs)
    if len(made) != len(pairs):
        made[_DUPLICATE] = True
    return made


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_decoder: Final = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_no_constant)


def _decode(text: str, start: int) -> tuple[Any, int] | None:
    try:
        value, end = _decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return value, end


def _values(text: str) -> Iterator[Any]:
    """The JSON objects and arrays that stand in ``text``, outermost only."""
    at = 0
    failed = 0
    while failed < _MAX_FAILED_STARTS:
        starts = [found for found in (text.find("{", at), text.find("[", at)) if found >= 0]
        if not starts:
            return
        at = min(starts)
        decoded = _decode(text, at)
        if decoded is None:
            at += 1
            failed += 1
        else:
            value, at = decoded
            yield value


def _members(value: Any) -> list[Any]:
    """The verdicts that ``value`` is or holds, unchecked."""
    if isinstance(value, dict):
        inner = value.get("verdicts")
        return inner if isinstance(inner, list) else [value] if "verdict" in value else []
    return value if isinstance(value, list) else []


def _answer(member: Any) -> Answer | None:
    if not isinstance(member, dict) or not isinstance(member.get("id"), str):
        return None
    label = member["id"].strip().lower()
    if _DUPLICATE in member:
        return Answer(label, problem="the judge gave a member of its verdict twice")
    verdict = member.get("verdict")
    name = (
        "_".join(verdict.upper().replace("-", " ").replace("_", " ").split())
        if isinstance(verdict, str)
        else ""
    )
    if name not in _VERDICTS:
        return Answer(label, problem="the judge's verdict is none of the four")
    confidence = member.get("confidence", 0.5)
    if isinstance(confidence, bool) or not isinstance(confidence, int | float):
        return Answer(label, problem="the judge's confidence is not a number")
    if not 0.0 <= confidence <= 1.0:
        return Answer(label, problem="the judge's confidence is not between 0 and 1")
    reasoning = member.get("reasoning")
    return Answer(
        label,
        _VERDICTS[name],
        float(confidence),
        tuple(_quotes(member.get("quotes"))),
        tuple(_labels(member.get("contradicted_by"))),
        reasoning.strip()[:MAX_REASONING_CHARS] if isinstance(reasoning, str) else "",
    )


MOST_QUOTES: Final = 10
"""Of one claim; the settings ask for no more (``max_quotes``)."""


def _quotes(value: Any) -> Iterator[Quote]:
    """Quotes in the forms that models use for them. What is none counts as empty: nowhere to be found."""
    # Locating a quote is CPU work in a thread that can't be cancelled: a reply is not to order much of it.
    for item in value[:MOST_QUOTES] if isinstance(value, list) else ():
        parts = item if isinstance(item, dict) else {"quote": item}
        document, text = parts.get("document"), parts.get("quote")
        yield Quote(
            document.strip().lower() if isinstance(document, str) else "",
            text if isinstance(text, str) else "",
        )


def _labels(value: Any) -> Iterator[str]:
    for item in value if isinstance(value, list) else ():
        if isinstance(item, str):
            yield item.strip().lower()
