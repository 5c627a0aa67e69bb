"""What an engine keeps beside its sessions, and the records it hands out about them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

from guardrail.claims.model import Claim
from guardrail.effects import Channel
from guardrail.engine_load import Load
from guardrail.errors import UnreadableSession
from guardrail.events import OutputEvent, Response, ResponseHead, ResponseStarted
from guardrail.evidence.index import EvidenceIndex
from guardrail.finished import FinishedResponses
from guardrail.policy import Policy
from guardrail.session import Session
from guardrail.session_state import STATE_VERSION, check_version

Headers = tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class Output:
    """One event to publish, with the headers that came with the response's start, and its lane."""

    channel: Channel
    event: OutputEvent
    headers: Headers
    lane: Hashable = None


@dataclass(frozen=True, slots=True)
class ClosedResponse:
    """A response of which nothing more will be emitted or read.

    ``born`` is the number it was started with, ``digest`` (hex) tells its start from another with the same
    id, ``next_seq`` is the number of deltas read.
    """

    response_id: str
    lane: Hashable
    born: int
    digest: str
    next_seq: int


@dataclass(frozen=True, slots=True)
class Captured:
    """What is new of a response in flight, JSON-able. ``head`` comes once; None: nothing new."""

    born: int
    head: dict[str, Any] | None
    progress: dict[str, Any] | None
    policy: Policy


@dataclass(slots=True, eq=False)
class Lane:
    """Responses that are read from one place and written to one place: a partition."""

    key: Hashable
    finished: FinishedResponses
    load: Load = field(default_factory=Load)
    runs: dict[str, Run] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Run:
    """A session and what the engine keeps beside it."""

    session: Session
    lane: Lane
    born: int
    headers: Headers
    digest: bytes
    chars: int
    head_captured: bool = False
    evidence: EvidenceIndex | None = None
    waiting: list[tuple[str, Claim]] = field(default_factory=list)
    task: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None
    timer_due: float = float("inf")
    pending: int = 0
    silent: bool = False
    dropped: bool = False


class _StoredHead(BaseModel):
    """What is stored of a response once. ``headers`` holds bytes as characters of the same number."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    event: ResponseStarted | Response = Field(discriminator="type")
    headers: tuple[tuple[str, str], ...] = ()
    started_ms: int
    digest: str = ""


@dataclass(frozen=True, slots=True)
class StoredHead:
    """What was stored of a response once. ``started_ms`` is in Unix milliseconds."""

    event: ResponseStarted | Response
    headers: Headers
    started_ms: int
    digest: bytes


def capture_head(run: Run, unix_ms: Callable[[float], int]) -> dict[str, Any]:
    """What is stored of a response once, JSON-able."""
    return {
        "v": STATE_VERSION,
        "event": from_json(run.session.head.to_json()),
        "headers": [[name, value.decode("latin-1")] for name, value in run.headers],
        "started_ms": unix_ms(run.session.started_at),
        "digest": run.digest.hex(),
    }


def read_head(head: Mapping[str, Any]) -> StoredHead:
    """Read what ``capture_head`` made.

    Raises StateError when a newer version wrote it, UnreadableSession when it makes no sense.
    """
    check_version(head)
    try:
        stored = _StoredHead.model_validate(head)
        headers = tuple((name, value.encode("latin-1")) for name, value in stored.headers)
        return StoredHead(stored.event, headers, stored.started_ms, bytes.fromhex(stored.digest))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UnreadableSession(f"head: {where}: {first['msg']}") from None
    except ValueError:
        raise UnreadableSession("head: a digest or header can't be read") from None


def size_of(head: ResponseHead) -> int:
    """Characters that a response holds before its deltas."""
    size = len(head.question) + sum(len(c.text) + len(c.id) + len(c.source or "") for c in head.contexts)
    return size + (len(json.dumps(head.metadata)) if head.metadata else 0)
