"""Judge many complete responses at once and hand the verdicts back in the order of the input."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import from_json

from guardrail.errors import DecodeError, InputError, only_cause
from guardrail.events import SCHEMA_VERSION, Response, ResponseVerdict
from guardrail.guard import Guard
from guardrail.inputs import named_contexts
from guardrail.judges.base import Judge
from guardrail.limits import Limits
from guardrail.offline.lines import MAX_LINE_BYTES, InputLine
from guardrail.policy import Mode, Policy
from guardrail.printable import escape_controls, shorten
from guardrail.routing import PolicyRouter

_HELD_BYTES: Final = 64 * 1024 * 1024
_LINES_PER_SLOT: Final = 4
_MOST_PROBLEMS: Final = 10
_OBJECT: Final = "Input should be an object, or in a line without a type a text"
_CLAIM_TIMEOUT_MS: Final = 24 * 3_600_000
"""Ends a judge that hangs; no answer that can be read takes as long. Judges that call out have limits of
their own for a call."""


Check = Callable[[Response], Awaitable[ResponseVerdict]]


@dataclass(frozen=True, slots=True)
class ScoredLine:
    """What became of a line: a verdict, or the reason why it could not be read. ``size`` is in bytes.

    ``response`` is what was judged.
    """

    line: int
    size: int
    verdict: ResponseVerdict | None
    problem: str | None
    response: Response | None = None


def judging_everything(policy: Policy) -> Policy:
    """The policy for offline use: same rules and thresholds, but no claim goes unjudged.

    A live answer ends at the first claim that blocks it; here nobody waits for the text, and the score is
    to speak of all claims, so that answers can be compared. For the same reason no verdict may depend on
    how fast the machine is: the live limit on the wait for one is lifted.
    """
    return policy.model_copy(update={"mode": "observe", "claim_timeout_ms": _CLAIM_TIMEOUT_MS})


def checker(
    judge: Judge,
    router: PolicyRouter,
    limits: Limits | None = None,
    judges: Mapping[str, Judge] | None = None,
    modes: Mapping[str, Mode] | None = None,
) -> Check:
    """A function that judges one response with a guard of its own.

    A shared guard takes an id once only, as a stream must; in a file the same id may stand twice, with two
    answers to compare, and both are judged. The judge, which is what costs, is shared. A response's
    ``deadline_ms`` is for the user who waited for it then, so it does not hold here.

    ``modes`` are those that the policies have live, by name: verdicts bear them, since that is what their
    readers know the policies by.
    """

    async def check(response: Response) -> ResponseVerdict:
        async with Guard(judge, router=router, judges=judges, limits=limits) as guard:
            verdict = await guard.check_event(response.model_copy(update={"deadline_ms": None}))
        live = (modes or {}).get(verdict.policy.name, verdict.mode)
        return verdict if live == verdict.mode else verdict.model_copy(update={"mode": live})

    return check


def decode_line(line: InputLine) -> Response:
    """Read one line: a ``response`` event, a flagged case, or an object without a type.

    Such a plain object has ``answer`` and ``contexts``, which may be mere texts, and any other field of the
    event. Its id is ``response_id`` or ``id``, else it is made from the line's number. Raises InputError with
    a message that names everything wrong and quotes nothing of the line.
    """
    if line.data is None:
        raise DecodeError(
            "line_too_long",
            f"{line.size:,} bytes; a line may have {MAX_LINE_BYTES:,}: give fewer or shorter contexts",
        )
    try:
        line.data.decode()
    except UnicodeDecodeError as error:
        message = f"not UTF-8 (byte {error.start + 1} of the line); convert the file to UTF-8"
        raise DecodeError("invalid_utf8", message) from None
    try:
        found: Any = from_json(line.data)
    except ValueError as error:
        # The parser counts lines within the event, which is one line; that number would mislead.
        message = f"not valid JSON: {error}".replace(" at line 1 column ", " at column ")
        raise DecodeError("invalid_json", message) from None
    if not isinstance(found, dict):
        raise DecodeError("invalid_event", "no JSON object; give one answer a line")
    if "type" not in found:
        found = _plain(found, line.number)
    elif found["type"] == "case.flagged":
        if found.get("omitted"):
            raise DecodeError("case_incomplete", "a flagged case without its documents can't be scored")
        found = {**found, "type": "response"}
    elif found["type"] != "response":
        raise DecodeError(
            "no_response",
            f"type '{escape_controls(shorten(str(found['type']), 40))}': only whole answers can be scored, "
            "those of type 'response' or 'case.flagged', or without a type",
        )
    if found.get("schema", SCHEMA_VERSION) != SCHEMA_VERSION:
        raise DecodeError(
            "unknown_schema", f"field 'schema': this program reads version {SCHEMA_VERSION} only"
        )
    try:
        return Response.model_validate(found)
    except ValidationError as error:
        raise DecodeError("invalid_event", _problems(error)) from None


def _plain(found: dict[str, Any], number: int) -> dict[str, Any]:
    """What a line without a type stands for, as the fields of a response."""
    # Without documents nothing is supported: a misspelt name must not pass for "none".
    missing = [name for name in ("answer", "contexts") if name not in found]
    contexts = found.get("contexts")
    if missing:
        raise DecodeError(
            "invalid_event",
            f"{' and '.join(missing)}: missing; give {{question, contexts: [texts], answer}}, or a "
            "'response' event with its type",
        )
    fields = {**found, "response_id": found.get("response_id", found.get("id", f"line-{number}"))}
    if isinstance(fields["response_id"], int) and not isinstance(fields["response_id"], bool):
        fields["response_id"] = str(fields["response_id"])
    if isinstance(contexts, list):
        fields["contexts"] = named_contexts(contexts)
    return fields


def _problems(error: ValidationError) -> str:
    """Every field that is wrong and why, the first few of them; quotes no value."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    told = [
        f"{'.'.join(map(str, each['loc']))}: {_OBJECT if each['type'] == 'model_type' else each['msg']}"
        for each in found[:_MOST_PROBLEMS]
    ]
    more = len(found) - len(told)
    return "; ".join([*told, *([f"and {more} more"] if more else [])])


async def score_lines(
    lines: AsyncIterator[InputLine],
    check: Check,
    on_outcome: Callable[[ScoredLine], None],
    *,
    concurrency: int,
    max_held_bytes: int = _HELD_BYTES,
) -> None:
    """Judge every line, ``concurrency`` at a time; ``on_outcome`` is called for each in order, as soon as
    all before it are done.

    Memory is bounded: no more than a few lines for each concurrent judgement, and about
    ``max_held_bytes`` of them, are read ahead of the first that is not done. What ``on_outcome`` raises
    ends everything and is raised here.
    """
    slots = asyncio.Semaphore(concurrency)
    ahead = asyncio.Queue[asyncio.Task[ScoredLine] | None](concurrency * _LINES_PER_SLOT)
    held = _BytesHeld(max_held_bytes)

    async def score(line: InputLine) -> ScoredLine:
        async with slots:
            try:
                response = decode_line(line)
                verdict = await check(response)
            except InputError as error:
                return ScoredLine(line.number, line.size, None, str(error))
            return ScoredLine(line.number, line.size, verdict, None, response)

    async def read(group: asyncio.TaskGroup) -> None:
        async for line in lines:
            await held.take(line.size)
            await ahead.put(group.create_task(score(line)))
        await ahead.put(None)

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(read(group))
            while (task := await ahead.get()) is not None:
                outcome = await task
                held.give_back(outcome.size)
                on_outcome(outcome)
    except BaseExceptionGroup as errors:
        # Callers handle causes (a closed pipe, a full disk), not groups.
        raise only_cause(errors) from None


class _BytesHeld:
    """Bytes of lines between being read and being done. One taker."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0
        self._room = asyncio.Event()

    async def take(self, size: int) -> None:
        # A line above the limit is let through alone.
        while self._bytes and self._bytes + size > self._limit:
            self._room.clear()
            await self._room.wait()
        self._bytes += size

    def give_back(self, size: int) -> None:
        self._bytes = max(0, self._bytes - size)
        self._room.set()
