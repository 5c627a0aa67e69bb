"""What the stand-in LLM server records of every call."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

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
