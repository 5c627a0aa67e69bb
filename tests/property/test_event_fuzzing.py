"""A short piece of ``benchmarks.fuzz``: mutated events through decoding, a live engine and its sessions.

No crash, no hang, every event accounted for, every response ended once, nothing released unverified.
"""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail.decisions import Decider
from guardrail.engine import Engine, FinishedResponses
from guardrail.events import Decision
from guardrail.session import Session
from tests.support.fuzzing.run import NothingScheduled, VirtualTimeLoop, run_bytes, run_seeds
from tests.support.fuzzing.world import OUTCOMES, REASONS, REFUSED


def test_twenty_thousand_records_are_all_accounted_for() -> None:
    tally = run_seeds(range(250))
    assert tally.findings == []
    assert tally.records >= 20_000
    assert tally.accounted == tally.records
    assert tally.mutated >= 5_000


def test_every_outcome_and_every_reason_is_reached() -> None:
    counts = run_seeds(range(250)).counts
    for outcome in (*OUTCOMES, *(f"{REFUSED}{reason}" for reason in REASONS)):
        assert any(n for what, n in counts.items() if what.startswith(outcome)), outcome


def test_a_seed_gives_the_same_episode_every_time() -> None:
    assert run_seeds([7, 8]).counts == run_seeds([7, 8]).counts


@settings(max_examples=150)
@given(st.binary(max_size=1_000))
def test_whatever_bytes_choose(data: bytes) -> None:
    run_bytes(data)


def _always_release(_decider: Decider, _kind: object, _claims: object) -> tuple[Decision, str]:
    return Decision.RELEASE, "sabotage"


def _never_knows(_finished: FinishedResponses, _response_id: str, _now: float) -> None:
    return None


_never = property(lambda _session: float("inf"))


@pytest.mark.parametrize(
    ("where", "name", "sabotage", "seen"),
    [
        (Decider, "segment", _always_release, "claim was released"),
        (FinishedResponses, "get", _never_knows, "expected"),
        (Session, "next_deadline", _never, "nothing is left"),
    ],
)
def test_a_guard_that_breaks_a_promise_is_found_out(
    monkeypatch: pytest.MonkeyPatch, where: type, name: str, sabotage: object, seen: str
) -> None:
    monkeypatch.setattr(where, name, sabotage)
    findings = run_seeds(range(40)).findings
    assert any(seen in finding.message for finding in findings)


def test_an_engine_that_crashes_on_a_record_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(_engine: Engine, *_: object, **__: object) -> None:
        raise KeyError("crash")

    monkeypatch.setattr(Engine, "handle", crash)
    assert {finding.kind for finding in run_seeds(range(5)).findings} == {"KeyError"}


def test_a_wait_for_nothing_is_an_error_in_virtual_time() -> None:
    loop = VirtualTimeLoop()
    task = loop.create_task(asyncio.Event().wait())
    with pytest.raises(NothingScheduled):
        loop.run_until_complete(task)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(task)
    loop.close()
