"""What the stand-in LLM server can do with a call: what it records of one, what a model writes when it is
asked for verdicts, with the ways in which models get it wrong, and how a server answers or fails to.

Where a chunk is counted it is, in a stream, one event: 0 has the role, then come the deltas, the one with the
finish reason, the usage where it was asked for, and ``[DONE]``. In a reply that isn't streamed it is
``chunk_chars`` bytes of the body.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from enum import StrEnum
from typing import Any, Final, Literal, TypeAlias

_WORDS: Final = {
    "SUPPORTED": "supported",
    "PARTIALLY_SUPPORTED": "partial",
    "UNSUPPORTED": "unsupported",
    "CONTRADICTED": "contradicted",
}
_ASKED: Final = re.compile(r"Give the verdicts on (.+?), as one JSON object")


class Outcome(StrEnum):
    """How a call ended."""

    ANSWERED = "answered"  # everything was sent
    CUT = "cut"  # the server ended the connection in the middle
    LEFT = "left"  # the caller closed the connection first: cancelled, or out of patience
    STOPPED = "stopped"  # the test ended before the call


@dataclass(slots=True, eq=False)
class Recorded:
    """One call as it arrived, and what became of it. Times are the event loop's, in seconds."""

    headers: dict[str, str]
    body: dict[str, Any]
    query: str = ""  # of its URL
    number: int = 0  # in the order of arrival, over all connections
    in_flight: int = 1  # calls under way when this one arrived, itself included
    arrived_at: float = 0.0
    ended_at: float | None = None
    outcome: Outcome | None = None  # None: still under way
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def left(self) -> bool:
        return self.outcome is Outcome.LEFT

    @property
    def streamed(self) -> bool:
        """Was a stream asked for?"""
        return self.body.get("stream") is True

    @property
    def wants_usage(self) -> bool:
        """Of a stream: was the chunk with the usage asked for?"""
        return (self.body.get("stream_options") or {}).get("include_usage") is True

    @property
    def response_format(self) -> str | None:
        kind = (self.body.get("response_format") or {}).get("type")
        return None if kind is None else str(kind)

    @property
    def system(self) -> str:
        return str(self.body["messages"][0]["content"])

    @property
    def user(self) -> str:
        return str(self.body["messages"][-1]["content"])

    @property
    def asked(self) -> list[str]:
        """The short ids of the claims asked for."""
        found = _ASKED.findall(self.user)
        return str(found[-1]).split(", ") if found else []


def member(
    label: str,
    verdict: str = "SUPPORTED",
    *,
    evidence: Iterable[object] = (),
    confidence: float = 0.9,
    against: Iterable[object] = (),
    reasoning: str = "",
) -> str:
    """One verdict of a reply, as a model that keeps to the form would write it."""
    words = [label, *evidence, _WORDS.get(verdict, verdict)]
    words += [f"{confidence:.0%}"] if confidence != 0.9 else []
    words += [f"!{number}" for number in against]
    return " ".join(map(str, words)) + (f": {reasoning}" if reasoning else "")


def verdicts(*members: str) -> str:
    return json.dumps({"v": list(members)})


def obliging(call: Recorded) -> str:
    """SUPPORTED for every claim asked for."""
    return verdicts(*(member(label) for label in call.asked))


def missing(call: Recorded) -> str:
    """All but the last."""
    return verdicts(*(member(label) for label in call.asked[:-1]))


@dataclass(frozen=True, slots=True)
class Wire:
    """How a reply is cut up, paced and framed."""

    chunk_chars: int = 16  # of content in each delta
    events_per_write: int | None = 1  # None: all of them at once
    split_bytes: int | None = None  # written at once instead, through events and characters alike
    first_pause_s: float = 0.0  # ahead of the head
    pause_s: float = 0.0  # ahead of every write of the body but the first
    newline: str = "\n"
    ping_every: int = 0  # a comment ahead of every so many chunks; 0: none
    insert: Mapping[int, str] = field(default_factory=dict)  # text ahead of the chunk with this number
    end_after: int | None = None  # the stream ends in order after so many chunks, without [DONE]
    done: bool = True  # False: no [DONE]
    hold_after: int | None = None  # after so many chunks nothing comes …
    until: asyncio.Event | None = None  # … until this is set; None: until the caller gives up
    close_framed: bool = False  # a stream without HTTP chunks: its end is the connection's, cut or not
    ignore_stream: bool = False  # answers as if no stream had been asked for
    usage_with_finish: bool = False  # the usage in the chunk with the finish reason, as some servers send it


@dataclass(frozen=True, slots=True)
class Reply:
    """A completion with this content, streamed if it was asked for; a callable is given the call."""

    content: str | Callable[[Recorded], str] | None
    finish_reason: str = "stop"
    refusal: str | None = None
    usage: dict[str, Any] | None = field(
        default_factory=lambda: {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "total_tokens": 120,
            "prompt_tokens_details": {"cached_tokens": 64},
        }
    )
    choices: list[Any] | None = None  # instead of the content; a stream has each of them in one chunk
    wire: Wire = field(default_factory=Wire)


@dataclass(frozen=True, slots=True)
class Status:
    """An HTTP error, or with 200 a body that is no completion."""

    code: int
    error: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class Hang:
    """Nothing, until the caller gives up: before the head, or after so many chunks (0: after the head)."""

    after: int | None = None
    reply: Reply = field(default_factory=lambda: Reply(obliging))


@dataclass(frozen=True, slots=True)
class Drip:
    """A head, then white space (in a stream comments) now and then: never silent for long, and never done."""

    every_s: float = 0.01


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection ends in the middle of a reply's body (or, with 0, before any byte).

    With ``chunks`` it ends after so many of them, with ``inside`` too in the middle of the next. ``reset``
    ends it with an RST, which may overtake what was sent.
    """

    after: int = 40  # bytes of the body
    chunks: int | None = None
    inside: bool = False
    reset: bool = False
    reply: Reply = field(default_factory=lambda: Reply(obliging))


@dataclass(frozen=True, slots=True)
class StreamError:
    """An error object in the middle of a stream, with the status 200; not streamed, that status.

    ``done``: with a ``[DONE]`` after it, as vLLM sends it.
    """

    after: int = 2  # chunks
    error: Mapping[str, Any] = field(
        default_factory=lambda: {
            "message": "The server had an error while processing your request.",
            "type": "server_error",
            "param": None,
            "code": None,
        }
    )
    status: int = 500
    done: bool = False
    reply: Reply = field(default_factory=lambda: Reply(obliging))


Act: TypeAlias = Reply | Status | Hang | Drip | Cut | StreamError
Behaviour: TypeAlias = Act | Callable[[Recorded], Act]


def resolve(behaviour: Behaviour, call: Recorded) -> Act:
    return behaviour(call) if callable(behaviour) else behaviour


def event(data: object) -> str:
    """The text of one event, for ``Wire.insert``; a str goes in as it is, anything else as JSON."""
    return f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n"


def busy(
    form: Literal["none", "seconds", "date", "ms"] = "none", after_s: float = 0.0, code: int = 429
) -> Status:
    """A 429 (or 503), with Retry-After in one of its forms or without."""
    headers = {}
    if form == "seconds":
        headers["Retry-After"] = f"{after_s:g}"
    elif form == "date":
        headers["Retry-After"] = format_datetime(datetime.now(UTC) + timedelta(seconds=after_s), usegmt=True)
    elif form == "ms":
        headers["retry-after-ms"] = f"{after_s * 1000:g}"
    return Status(
        code, {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}, headers
    )


def refusing(*formats: str, status: int = 400, then: Behaviour | None = None) -> Callable[[Recorded], Act]:
    """A server that takes no response_format of these types; what it takes, ``then`` answers."""

    def behave(call: Recorded) -> Act:
        kind = call.response_format
        if kind in formats:
            return Status(status, {"message": f"'response_format.type' {kind} is not supported"})
        return resolve(then or Reply(obliging), call)

    return behave


def refusing_field(name: str, status: int = 400, then: Behaviour | None = None) -> Callable[[Recorded], Act]:
    """A server that takes no request with this field, like ``stream`` or ``stream_options``."""

    def behave(call: Recorded) -> Act:
        value = call.body.get(name)
        if not value:
            return resolve(then or Reply(obliging), call)
        message = f"Unsupported parameter: '{name}' is not supported with this model."
        error = {"message": message, "type": "invalid_request_error", "param": name}
        return Status(status, error | {"code": "unsupported_parameter"})

    return behave
