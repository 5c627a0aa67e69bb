"""What is stored of sessions, and that nothing which stands in its place can stop a guard."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from consumers.sessions_topic import SavedSession, SessionStore
from consumers.transport import StateRecord
from guardrail.engine import Captured, ClosedResponse
from guardrail.errors import StateError
from guardrail.policy import Policy

POLICY = Policy(name="strict", mode="hold", rules=("verdict CONTRADICTED: block",))
HEAD = {"v": 1, "event": {"contexts": ["x" * 9_000]}}
SMALL = {"v": 1, "event": {}, "silent": True}
SILENT = {"v": 1, "number": 0, "next_seq": 2, "decided": True}


def new_store() -> SessionStore:
    return SessionStore(max_value_bytes=4_000, max_finished=100, ttl_s=600.0, wall=lambda: 1_000.0)


class Topic:
    """What is left in the sessions topic, and the store that fills it."""

    def __init__(self) -> None:
        self.store = new_store()
        self.state: dict[bytes, bytes] = {}

    def apply(self, changes: Iterable[StateRecord]) -> None:
        for change in changes:
            self.state.pop(change.key, None)
            if change.value is not None:
                self.state[change.key] = change.value

    def step(self, *captures: tuple[int, Any, Any], closed: Iterable[int] = ()) -> None:
        """``captures``: birth, head and progress of a session; ``closed``: births."""
        gone = [ClosedResponse(f"r{born}", None, born, "00", 1) for born in closed]
        found = [(f"r{born}", Captured(born, head, progress, POLICY)) for born, head, progress in captures]
        self.apply(self.store.changes(found, gone))

    def restart(self) -> list[SavedSession]:
        self.store = new_store()
        sessions, _ = self.store.load(self.state)
        self.step()
        return sessions

    @property
    def keys(self) -> list[str]:
        return sorted(key.decode() for key in self.state if not key.startswith((b"policy/", b"part/")))

    @property
    def size(self) -> int:
        return sum(map(len, self.state.values()))


def increment(number: int) -> dict[str, Any]:
    return {"v": 1, "number": number, "text": "y" * 500}


def test_of_a_session_with_nothing_more_to_say_next_to_nothing_is_stored() -> None:
    topic = Topic()
    topic.step((1, HEAD, increment(0)), (2, HEAD, increment(0)))
    topic.step((1, None, increment(1)))
    full = topic.size
    topic.step((1, SMALL, SILENT))
    assert topic.keys == ["head/1/r1", "head/2/r2", "progress/0", "progress/2"], "progress/0 is shared"
    topic.step((2, SMALL, SILENT))
    assert topic.keys == ["head/1/r1", "head/2/r2", "progress/2", "progress/3"]
    assert not [key for key in topic.state if key.startswith(b"part/")]
    policy = sum(len(value) for key, value in topic.state.items() if b"policy/" in key)
    assert topic.size - policy < 400 < full - policy
    assert [(found.head, found.progress) for found in topic.restart()] == [(SMALL, [SILENT])] * 2
    topic.step(closed=[1, 2])
    assert topic.keys == ["finished/0"]


def test_what_came_before_the_last_word_of_a_session_is_not_read_again() -> None:
    topic = Topic()
    topic.step((1, HEAD, increment(0)), (2, HEAD, increment(0)))
    topic.step((1, SMALL, SILENT))
    first, second = topic.restart()
    assert (first.head, first.progress, first.policy) == (SMALL, [SILENT], POLICY)
    assert (second.head, second.progress, second.policy) == (HEAD, [increment(0)], POLICY)
    topic.step((2, SMALL, SILENT))
    assert topic.keys == ["head/1/r1", "head/2/r2", "progress/1", "progress/2"]
    topic.step(closed=[1, 2])
    assert topic.keys == ["finished/0"]


def test_a_session_stored_whole_by_an_older_version_is_read_and_made_small() -> None:
    topic = Topic()
    old = [increment(0), {"v": 1, "number": 1, "decided": True}]
    topic.step((1, HEAD, old[0]))
    topic.step((1, None, old[1]))
    [session] = topic.restart()
    assert (session.head, session.progress) == (HEAD, old)
    topic.step((1, SMALL, None))
    [session] = topic.restart()
    assert (session.head, session.progress) == (SMALL, old)


def test_a_field_that_a_newer_version_added_to_a_policy_is_passed_over() -> None:
    topic = Topic()
    topic.step((1, HEAD, increment(0)))
    [key] = [key for key in topic.state if key.startswith(b"policy/")]
    value = json.loads(topic.state[key])
    for place in (value["policy"], value["policy"]["rules"][0], value["policy"]["severity"]):
        place["a_new_field"] = 1
    topic.state[key] = json.dumps(value).encode()
    [session] = topic.restart()
    assert session.policy == POLICY


def test_a_policy_that_cannot_be_read_costs_its_session_no_more_than_that() -> None:
    topic = Topic()
    topic.step((1, HEAD, increment(0)))
    [key] = [key for key in topic.state if key.startswith(b"policy/")]
    topic.state[key] = b'{"v":1,"policy":{"mode":"sideways"}}'
    [session] = topic.restart()
    assert (session.head, session.progress, session.policy) == (HEAD, [increment(0)], None)
    assert key not in topic.state


DEEP = b'{"v":1,"x":' + b"[" * 200_000 + b"]" * 200_000 + b"}"


@pytest.mark.parametrize(
    "value",
    [
        b'{"v":1,"responses":[["x","00",1e400,1]]}',
        b'{"v":1,"responses":[["x","00",1,1e400]]}',
        b'{"v":1,"responses":[["x","00",1,NaN]]}',
        b'{"v":1,"responses":[["x","00",1,1' + b"0" * 400 + b"]]}",
        b'{"v":1,"responses":[["x","00",1,1' + b"0" * 5_000 + b"]]}",
        b'{"v":1,"responses":[["x","00",1]]}',
        b'{"v":1,"responses":[["x","zz",1,1]]}',
        b'{"v":1,"responses":1}',
        b'{"v":1,"parts":1e400}',
        DEEP,
    ],
)
def test_finished_responses_that_make_no_sense_are_dropped_and_deleted(value: bytes) -> None:
    topic = Topic()
    topic.step(closed=[1])
    topic.state[b"finished/7"] = value
    store = new_store()
    sessions, finished = store.load(topic.state)
    assert sessions == []
    assert [response.response_id for response in finished] == ["r1"]
    assert store.changes([], []) == [StateRecord(b"finished/7", None)]


@pytest.mark.parametrize(
    "key",
    [
        b"finished/" + b"9" * 5_000,
        "finished/\u0663".encode(),
        b"finished/\xff",
        b"progress/",
        b"progress/1/2",
        b"head/5/\xff",
        b"head/" + b"9" * 5_000 + b"/r",
        b"head/5",
    ],
)
def test_what_has_a_key_that_none_could_have_written_is_deleted(key: bytes) -> None:
    store = new_store()
    assert store.load({key: b'{"v":1,"responses":[["x","00",1,1]]}'}) == ([], [])
    assert store.changes([], []) == [StateRecord(key, None)]


def test_a_key_that_only_a_newer_version_writes_stops_the_guard() -> None:
    with pytest.raises(StateError, match="version 2"):
        new_store().load({b"head/5": b'{"v":2}'})


@pytest.mark.parametrize("kind", ["head", "progress", "policy"])
@pytest.mark.parametrize(
    "value", [DEEP, b'{"v":1}', b'{"v":1,"policy":[],"head":1e400,"sessions":{"1e9":{}}}']
)
def test_a_value_that_makes_no_sense_is_of_its_session_only(kind: str, value: bytes) -> None:
    topic = Topic()
    topic.step((1, {"v": 1}, increment(0)))
    [key] = [key for key in topic.state if key.startswith(kind.encode())]
    topic.state[key] = value
    [session] = topic.restart()
    assert (session.head is None) == (kind == "head")
    assert (session.policy is None) == (kind in {"head", "policy"})
    assert session.progress == ([{}] if kind == "progress" else [increment(0)])


def test_what_is_loaded_tells_when_the_partition_last_stepped() -> None:
    topic = Topic()
    topic.step((1, HEAD, increment(0)))
    topic.restart()
    assert topic.store.written_at_s == 1_000.0
    topic.step(closed=[1])
    topic.restart()
    assert topic.store.written_at_s == 1_000.0, "finished responses tell it too"


@pytest.mark.parametrize("at_ms", [None, "soon", -1, 10**30, []])
def test_a_time_that_is_none_says_nothing(at_ms: object) -> None:
    topic = Topic()
    topic.step((1, None, increment(0)))
    key = b"progress/0"
    topic.state[key] = json.dumps(json.loads(topic.state[key]) | {"at_ms": at_ms}).encode()
    topic.restart()
    assert topic.store.written_at_s is None
