"""Responses of an engine as they are stored, and sessions made of what is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

from guardrail.claims.cutter import ClaimCutter
from guardrail.engine.runs import Captured, Cutters, Headers, Run
from guardrail.errors import UnreadableSession
from guardrail.events import Response, ResponseStarted
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from guardrail.session.state import STATE_VERSION, check_version
from guardrail.session.stored import StoredSession


class _StoredHead(BaseModel):
    """What is stored of a response. ``headers`` holds bytes as characters of the same number."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    event: ResponseStarted | Response = Field(discriminator="type")
    headers: tuple[tuple[str, str], ...] = ()
    started_ms: int
    digest: str = ""
    silent: bool = False


@dataclass(frozen=True, slots=True)
class StoredHead:
    """What was stored of a response. ``started_ms`` is in Unix milliseconds.

    ``silent``: it had nothing more to say, so that its contexts and the like were not stored again.
    """

    event: ResponseStarted | Response
    headers: Headers
    started_ms: int
    digest: bytes
    silent: bool = False


def capture_head(run: Run, unix_ms: Callable[[float], int]) -> dict[str, Any]:
    """What is stored of a response, JSON-able.

    Of one with nothing more to say its id and place: it has let go of its question, contexts and metadata,
    and no output will carry its headers. A whole response never waits in that state for more input.
    """
    silent = run.session.silent
    return {
        "v": STATE_VERSION,
        "event": from_json(run.session.head.to_json()),
        "headers": [] if silent else [[name, value.decode("latin-1")] for name, value in run.headers],
        "started_ms": unix_ms(run.session.started_at),
        "digest": run.digest.hex(),
        "silent": silent,
    }


def read_head(head: Mapping[str, Any]) -> StoredHead:
    """Read what ``capture_head`` made.

    Raises StateError when a newer version wrote it, UnreadableSession when it makes no sense.
    """
    check_version(head)
    try:
        stored = _StoredHead.model_validate(head)
        headers = tuple((name, value.encode("latin-1")) for name, value in stored.headers)
        digest = bytes.fromhex(stored.digest)
        return StoredHead(stored.event, headers, stored.started_ms, digest, stored.silent)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UnreadableSession(f"head: {where}: {first['msg']}") from None
    except ValueError:
        raise UnreadableSession("head: a digest or header can't be read") from None


def capture(run: Run, epoch: float) -> Captured:
    """What is new of a response. ``epoch``: Unix time, in seconds, at which the engine's clock was 0."""
    session = run.session
    if not isinstance(session, StoredSession):
        raise TypeError("an engine without journal captures nothing")

    def unix_ms(reading: float) -> int:
        return round((epoch + reading) * 1000)

    silent = session.silent
    known = run.silence_captured if silent else run.head_captured
    head = None if known else capture_head(run, unix_ms)
    run.head_captured, run.silence_captured = True, silent
    return Captured(run.born, head, session.capture(unix_ms), session.policy)


def restored_session(
    head: StoredHead,
    progress: Sequence[Mapping[str, Any]],
    policy: Policy | None,
    router: PolicyRouter,
    cutters: Cutters,
    *,
    now: float,
    epoch: float,
    max_answer_chars: int,
) -> tuple[StoredSession, bool]:
    """The session that was captured, or what can be had of it; and if it, with its policy, could be read.

    Raises StateError when a newer version wrote it.
    """
    event = head.event
    if policy is None:
        used = router.for_unknown(event.route, event.tenant)
    else:  # one object for all that have it, where it is still configured
        used = next((known for known in router.policies if known == policy), policy)

    def new_cutter() -> ClaimCutter:
        return cutters.new(used, event.contexts)

    def reading(unix_ms: int) -> float:
        return unix_ms / 1000 - epoch

    try:
        for stored in progress:
            check_version(stored)
        _require_policy(policy)
        session = StoredSession.restored(
            event,
            used,
            progress,
            new_cutter=new_cutter,
            started_at=min(now, reading(head.started_ms)),
            now=now,
            reading=reading,
            max_answer_chars=max_answer_chars,
        )
    except UnreadableSession:
        session = StoredSession.salvaged(
            event, used, progress, new_cutter=new_cutter, now=now, max_answer_chars=max_answer_chars
        )
        readable = False
    else:
        readable = True
    if head.silent:  # whatever became of its progress
        session.fall_silent()
    return session, readable


def _require_policy(policy: Policy | None) -> None:
    if policy is None:
        raise UnreadableSession("its policy can't be read")
