"""What the sessions topic holds of one partition: which changes a step makes to it, and how it is read back.

A value is JSON under a key. One that a record can't hold is kept in parts: ``{"v": 1, "parts": n}`` under its
key and n slices of its JSON under ``part/<i>/<key>``.

Keys, before which the transport puts the group, with ``born`` the input offset of the record that began a
session, and n counting up:

- ``head/<born>/<response_id>``: what the session began with, and the digest of its policy. Written once,
  and once more, small, when the session has nothing more to say and only waits for its input to end.
- ``progress/<n>``: what is new in every session that a step touched, by ``born``. Nothing is written twice:
  what is stored grows with the text.
- ``finished/<n>``: the responses that a step closed: id, digest of the start, deltas read, time.
- ``policy/<digest>``: a policy in use, so that a response ends under the one it began with.

A head is deleted when its session closes, a progress record when all sessions in it have, or have nothing
more to say, a finished record when all in it are forgotten. A session that begins and ends within one step
is never stored.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from math import isfinite
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import structlog

from consumers.transport import Partition, Restored, StateRecord
from guardrail.engine.engine import Captured, ClosedResponse, Engine
from guardrail.errors import StateError
from guardrail.policy import Policy
from guardrail.session.state import stands_alone

VERSION: Final = 1
"""Of every value: ``{"v": 1, …}``. Raised when an older version could misread what is written."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def key_prefix(group_id: str) -> bytes:
    """Prefix of a group's keys in the sessions topic, which several groups may share."""
    return quote(group_id, safe="").encode() + b"/"


class UnreadableState(Exception):
    """A stored value that neither this version nor an older one can have written."""


def encoded(key: str, value: Mapping[str, Any], max_bytes: int) -> list[StateRecord]:
    """The records that store ``value``, the first under ``key``; no value exceeds ``max_bytes``."""
    # The way json.loads reads bytes: a lone surrogate in a text is stored as it came.
    data = _encode({"v": VERSION, **value}).encode("utf-8", "surrogatepass")
    if len(data) <= max_bytes:
        return [StateRecord(key.encode(), data)]
    slices = [data[start : start + max_bytes] for start in range(0, len(data), max_bytes)]
    about = _encode({"v": VERSION, "parts": len(slices)}).encode()
    return [StateRecord(key.encode(), about)] + [
        StateRecord(part_key(key, index), piece) for index, piece in enumerate(slices)
    ]


def part_key(key: str, index: int) -> bytes:
    """The key of slice ``index`` of the value of ``key``."""
    return f"part/{index}/{key}".encode()


def decoded(state: Mapping[bytes, bytes], key: str) -> tuple[dict[str, Any], int]:
    """The value stored under ``key``, and its number of parts (0: in one record).

    Raises StateError if a newer version wrote it, UnreadableState if it makes no sense.
    """
    value = _parsed(state[key.encode()], key)
    parts = value.get("parts")
    if parts is None:
        return value, 0
    try:
        data = b"".join(state[part_key(key, index)] for index in range(parts))
    except (KeyError, TypeError) as error:
        raise UnreadableState(f"a part of {key} is missing") from error
    return _parsed(data, key), parts


def _parsed(data: bytes, key: str) -> dict[str, Any]:
    try:
        value = json.loads(data)
        version = value["v"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UnreadableState(f"{key} is not a value with a version") from error
    if not isinstance(version, int):
        raise UnreadableState(f"{key} has the version {type(version).__name__}")
    if version > VERSION:
        raise StateError(
            f"the stored session record {key} has version {version}, and this guard reads up to {VERSION}: "
            "run a guard at least as new as the one that wrote it, until no response is in flight"
        )
    return dict(value)


_NUMBER: Final = re.compile("[0-9]{1,19}")
_DECODE_ERRORS: Final = (
    UnreadableState,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What reading a value raises that no version has written."""
_NEW_POLICIES: Final = 1_000
"""Policies remembered by identity; a program that makes one for each response must not fill the guard."""


class ClosedEarlier(NamedTuple):
    """A response that was closed. ``at_s``: Unix time."""

    response_id: str
    digest: str
    next_seq: int
    at_s: float


@dataclass(slots=True)
class SavedSession:
    """A session as it was stored; ``head`` or ``policy`` is None if unreadable.

    In ``progress`` an empty mapping marks missing state, which the engine treats as unreadable.
    """

    response_id: str
    born: int
    head: Mapping[str, Any] | None = None
    policy: Policy | None = None
    progress: list[Mapping[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class _SessionRecords:
    """What is stored for a session in flight: its head's key, and the numbers of its progress records."""

    key: str
    records: list[int] = field(default_factory=list)


class SessionStore:
    """The store of one lane. What ``changes`` returns counts as stored, so a failed step is its end."""

    def __init__(
        self, *, max_value_bytes: int, max_finished: int, ttl_s: float, wall: Callable[[], float] = time.time
    ) -> None:
        self._max_value_bytes = max_value_bytes
        self._max_finished = max_finished
        self._ttl_s = ttl_s
        self._wall = wall
        self._sessions: dict[int, _SessionRecords] = {}
        self._sharing: dict[int, int] = {}  # sessions in flight that a progress record contains state of
        self._finished: deque[tuple[int, int, float]] = (
            deque()
        )  # n, number of its responses, time of the last one
        self._finished_count = 0
        self._next_progress = 0
        self._next_finished = 0
        self._parts: dict[str, int] = {}
        self._stored_policies: set[str] = set()
        self._digests: dict[int, tuple[Policy, str]] = {}
        self._left_over: list[StateRecord] = []  # deletions for the next step
        self.written_at_s: float | None = None
        """When the latest of the records that were loaded was written, in Unix seconds; None if unknown."""

    @property
    def next_expiry_s(self) -> float | None:
        """Seconds until a stored record is to be deleted; None if none is."""
        if self._left_over:
            return 0.0
        return self._finished[0][2] + self._ttl_s - self._wall() if self._finished else None

    # ------------------------------------------------------------------------------------ writing

    def changes(
        self, captures: Iterable[tuple[str, Captured]], closed: Iterable[ClosedResponse]
    ) -> list[StateRecord]:
        """What a step writes: state of sessions touched and in flight, by id, and of closed responses."""
        changes, self._left_over = self._left_over, []
        at_ms = int(self._wall() * 1000)
        progress: dict[str, dict[str, Any]] = {}
        for response_id, captured in captures:
            session = self._sessions.get(captured.born)
            if session is None:
                session = self._sessions[captured.born] = _SessionRecords(
                    f"head/{captured.born}/{response_id}"
                )
            if captured.head is not None:
                policy = self._policy(captured.policy, changes)
                self._put(changes, session.key, {"policy": policy, "head": captured.head, "at_ms": at_ms})
            if captured.progress is not None:
                progress[str(captured.born)] = captured.progress
                if captured.progress.get("decided") and stands_alone(captured.progress):
                    self._release(changes, session)
                session.records.append(self._next_progress)
        if progress:
            self._put(changes, f"progress/{self._next_progress}", {"sessions": progress, "at_ms": at_ms})
            self._sharing[self._next_progress] = len(progress)
            self._next_progress += 1
        self._close(changes, closed)
        self._expire(changes)
        return changes

    def _close(self, changes: list[StateRecord], closed: Iterable[ClosedResponse]) -> None:
        now = self._wall()
        entries: list[tuple[str, str, int, int]] = []
        for response in closed:
            entries.append((response.response_id, response.digest, response.next_seq, int(now * 1000)))
            session = self._sessions.pop(response.born, None)
            if session is None:
                continue  # began after the last step
            self._delete(changes, session.key)
            self._release(changes, session)
        if entries:
            self._put(changes, f"finished/{self._next_finished}", {"responses": entries})
            self._finished.append((self._next_finished, len(entries), now))
            self._finished_count += len(entries)
            self._next_finished += 1

    def _release(self, changes: list[StateRecord], session: _SessionRecords) -> None:
        """This session's progress records no longer matter."""
        for number in session.records:
            self._sharing[number] -= 1
            if not self._sharing[number]:
                del self._sharing[number]
                self._delete(changes, f"progress/{number}")
        session.records.clear()

    def _expire(self, changes: list[StateRecord]) -> None:
        now = self._wall()
        while self._finished:
            number, count, last = self._finished[0]
            # As long as the others alone fill the bound, the oldest record contains nothing that is
            # remembered.
            if last + self._ttl_s > now and self._finished_count - count < self._max_finished:
                break
            self._finished.popleft()
            self._finished_count -= count
            self._delete(changes, f"finished/{number}")

    def _policy(self, policy: Policy, changes: list[StateRecord]) -> str:
        """The digest of a policy, which is stored if it isn't yet."""
        known = self._digests.get(id(policy))
        if known is None:
            value = policy.model_dump(mode="json")
            digest = blake2b(policy.model_dump_json().encode(), digest_size=16).hexdigest()
            if len(self._digests) >= _NEW_POLICIES:
                self._digests.clear()
            known = self._digests[id(policy)] = (policy, digest)
            if digest not in self._stored_policies:
                self._put(changes, f"policy/{digest}", {"policy": value})
                self._stored_policies.add(digest)
        return known[1]

    def _put(self, changes: list[StateRecord], key: str, value: Mapping[str, Any]) -> None:
        records = encoded(key, value, self._max_value_bytes)
        parts = len(records) - 1
        surplus = range(parts, self._parts.pop(key, 0))
        if parts:
            self._parts[key] = parts
        changes += records
        changes += [StateRecord(part_key(key, index), None) for index in surplus]

    def _delete(self, changes: list[StateRecord], key: str) -> None:
        changes.append(StateRecord(key.encode(), None))
        changes += [StateRecord(part_key(key, index), None) for index in range(self._parts.pop(key, 0))]

    # ------------------------------------------------------------------------------------ reading

    def load(self, state: Mapping[bytes, bytes]) -> tuple[list[SavedSession], list[ClosedEarlier]]:
        """Read back the stored state: sessions in the order they began, finished responses by age.

        Raises StateError if a newer version wrote any of it.
        """
        names: dict[str, list[tuple[int, str]]] = {"head": [], "progress": [], "finished": []}
        policies: dict[str, Policy] = {}
        for raw in state:
            try:
                key = raw.decode()
            except UnicodeDecodeError:
                self._left_over.append(StateRecord(raw, None))
                continue
            kind, _, rest = key.partition("/")
            number, _, rest_of_head = rest.partition("/")
            if kind in names:
                if _NUMBER.fullmatch(number) and bool(rest_of_head) == (kind == "head"):
                    names[kind].append((int(number), key))
                else:
                    with suppress(UnreadableState):
                        self._value(state, key)  # not ours to delete if a newer version wrote it
                    self._delete(self._left_over, key)
            elif kind == "policy":
                self._load_policy(state, key, rest, policies)
        stored = {born: self._load_head(state, born, key, policies) for born, key in sorted(names["head"])}
        self._load_progress(state, sorted(names["progress"]), stored)
        used = {id(session.policy) for session in stored.values()}
        for digest, policy in policies.items():
            if id(policy) not in used:
                self._stored_policies.discard(digest)
                self._delete(self._left_over, f"policy/{digest}")
        return list(stored.values()), self._load_finished(state, sorted(names["finished"]))

    def forget(self, state: Mapping[bytes, bytes]) -> None:
        """Delete everything with the next step: it belongs to a position that is gone."""
        self._left_over = [StateRecord(key, None) for key in state]

    def _value(self, state: Mapping[bytes, bytes], key: str) -> dict[str, Any]:
        value, parts = decoded(state, key)
        if parts:
            self._parts[key] = parts
        return value

    def _load_policy(
        self, state: Mapping[bytes, bytes], key: str, digest: str, policies: dict[str, Policy]
    ) -> None:
        try:
            # Fields that a newer version has added are ignored, rather than the responses it stored.
            policies[digest] = Policy.model_validate(self._value(state, key)["policy"], extra="ignore")
        except _DECODE_ERRORS:
            self._delete(self._left_over, key)
        else:
            self._stored_policies.add(digest)

    def _load_head(
        self, state: Mapping[bytes, bytes], born: int, key: str, policies: Mapping[str, Policy]
    ) -> SavedSession:
        self._sessions[born] = _SessionRecords(key)
        session = SavedSession(key.split("/", 2)[2], born)
        try:
            value = self._value(state, key)
            session.head, session.policy = dict(value["head"]), policies.get(value["policy"])
            self._written(value.get("at_ms"))
        except _DECODE_ERRORS:
            session.head = None
        return session

    def _load_progress(
        self,
        state: Mapping[bytes, bytes],
        names: Iterable[tuple[int, str]],
        stored: Mapping[int, SavedSession],
    ) -> None:
        unreadable: list[int] = []
        for number, key in names:
            self._next_progress = number + 1
            try:
                value = self._value(state, key)
                entries = value["sessions"]
                found = {int(born): dict(increment) for born, increment in entries.items()}
            except _DECODE_ERRORS:
                unreadable.append(number)
                self._delete(self._left_over, key)
                continue
            self._written(value.get("at_ms"))
            self._sharing[number] = len(found.keys() & stored.keys())
            for born in found.keys() & stored.keys():
                if stands_alone(found[born]):
                    self._release(self._left_over, self._sessions[born])
                    stored[born].progress.clear()
                stored[born].progress.append(found[born])
                self._sessions[born].records.append(number)
            if not self._sharing[number]:
                del self._sharing[number]
                self._delete(self._left_over, key)
        for born, session in stored.items() if unreadable else ():
            # Its latest increment may have been in there. Increments are numbered, so a missing one in
            # between is noticed.
            numbers = self._sessions[born].records
            if not numbers or numbers[-1] < unreadable[-1]:
                session.progress.append({})

    def _load_finished(
        self, state: Mapping[bytes, bytes], names: Iterable[tuple[int, str]]
    ) -> list[ClosedEarlier]:
        found: list[ClosedEarlier] = []
        for number, key in names:
            self._next_finished = number + 1
            try:
                entries = [_finished(entry) for entry in self._value(state, key)["responses"]]
            except _DECODE_ERRORS:
                entries = []
            if not entries:
                self._delete(self._left_over, key)
                continue
            self._finished.append((number, len(entries), max(entry.at_s for entry in entries)))
            self._finished_count += len(entries)
            self._written(int(self._finished[-1][2] * 1000))
            found += entries
        return found

    def _written(self, at_ms: object) -> None:
        """Note when a loaded record was written, if it says so: earlier versions don't."""
        if isinstance(at_ms, int) and 0 < at_ms < 2**53:
            self.written_at_s = max(self.written_at_s or 0.0, at_ms / 1000)


def _finished(stored: Iterable[Any]) -> ClosedEarlier:
    response_id, digest, next_seq, at_ms = stored
    at_s = at_ms / 1000
    if not isfinite(at_s):
        raise UnreadableState("a timestamp is missing")
    return ClosedEarlier(str(response_id), bytes.fromhex(digest).hex(), int(next_seq), at_s)


UNREADABLE: Final = "session_state_unreadable"
SLICE: Final = 50

log = structlog.get_logger(__name__)


async def restore(
    engine: Engine, partition: Partition, store: SessionStore, restored: Restored, *, grace_s: float = 0.0
) -> int:
    """Resume the stored sessions of a partition; returns how many were in flight.

    A session whose start is unreadable ends blocked, just as the engine ends one whose progress is
    unreadable; the others continue. Time since the partition's last step, up to ``grace_s`` seconds, is not
    counted against their deadlines: nobody held them. Raises StateError if a newer version of the program
    stored them. Other tasks run in between.
    """
    if restored.commit is None:
        if restored.state:
            # Somebody deleted the group's position. Its sessions belong to records that are read again.
            log.warning("guard.sessions_without_position", partition=f"{partition.topic}-{partition.index}")
            store.forget(restored.state)
        return 0
    sessions, finished = store.load(restored.state)
    now = time.time()
    for response in finished:
        age_s = max(0.0, now - response.at_s)
        engine.remember(partition, response.response_id, response.digest, response.next_seq, age_s)
    unheld_s = 0.0 if store.written_at_s is None else now - store.written_at_s
    excused_s = min(grace_s, max(0.0, unheld_s))
    for number, session in enumerate(sessions, 1):
        if not _resumed(engine, partition, session, excused_s):
            log.error("guard.session_unreadable", response_id=session.response_id, born=session.born)
            engine.reject(session.response_id, UNREADABLE, lane=partition, born=session.born)
        if number % SLICE == 0:
            await asyncio.sleep(0)
    return len(sessions)


def _resumed(engine: Engine, partition: Partition, session: SavedSession, excused_s: float) -> bool:
    if session.head is None:
        return False
    try:
        engine.restore(
            session.response_id,
            session.head,
            session.progress,
            session.policy,
            lane=partition,
            born=session.born,
            excused_s=excused_s,
        )
    except StateError:
        raise
    except Exception as error:  # noqa: BLE001 - one session that we fail on must not stop all others for ever
        # No traceback: it may quote the session.
        log.error("guard.restore_failed", error=type(error).__name__)  # noqa: TRY400
        engine.discard([session.response_id])
        return False
    return True
