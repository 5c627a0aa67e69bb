"""The protocol of the peers' worker, with a stand-in for a peer."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Mapping
from typing import Any

import pytest

from benchmarks.peers_answers import load
from benchmarks.peers_environment import REQUIREMENTS
from benchmarks.peers_systems import PEERS, Skipped, _Peer, opened
from benchmarks.peers_worker import PEERS as WORKERS
from benchmarks.peers_worker import serve


def lines(*ids: str) -> io.StringIO:
    return io.StringIO("".join(json.dumps({"id": name}) + "\n" for name in ids))


async def test_answers_are_judged_side_by_side_and_told_as_they_are_done() -> None:
    second = asyncio.Event()

    async def evaluate(item: Mapping[str, Any]) -> float:
        if item["id"] == "slow":
            await second.wait()
            return 0.5
        second.set()
        return 1.0

    sink = io.StringIO()
    await serve(evaluate, lines("slow", "fast"), sink)
    told = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert [(item["id"], item["score"]) for item in told] == [("fast", 1.0), ("slow", 0.5)]
    assert told[0]["at"] <= told[1]["at"]


async def test_an_error_of_the_peer_is_told_and_ends_nothing() -> None:
    async def evaluate(item: Mapping[str, Any]) -> float:
        if item["id"] == "bad":
            raise ValueError("no JSON")
        return 1.0

    sink = io.StringIO()
    await serve(evaluate, lines("bad", "good"), sink)
    told = {item["id"]: item for item in map(json.loads, sink.getvalue().splitlines())}
    assert told["bad"]["error"] == "ValueError: no JSON"
    assert told["good"]["score"] == 1.0


class Sink:
    """Takes what is written to a worker."""

    def __init__(self) -> None:
        self.written: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def write(self, line: bytes) -> None:
        self.written.put_nowait(json.loads(line))

    async def drain(self) -> None:
        return


@pytest.mark.parametrize(
    ("peer", "score", "right"),
    [("haystack", 0.75, True), ("haystack", 1.0, False), ("llama_index", 0.0, True), ("ragas", 0.875, False)],
)
async def test_a_score_is_compared_with_the_truth(peer: str, score: float, right: bool) -> None:
    case = load()[0]  # two of its eight claims are wrong
    sink: Any = Sink()
    source = asyncio.StreamReader()
    system = _Peer(peer, sink)
    judging = asyncio.create_task(system.judge(case, start=-1_000.0))
    asked = await sink.written.get()
    assert asked["answer"] == case.answer
    source.feed_data(
        json.dumps({"id": asked["id"], "score": score, "at": 0.0, "processor_s": 0.5}).encode() + b"\n"
    )
    source.feed_eof()
    await system.read(source)
    outcome = await judging
    assert outcome.right is right
    assert outcome.first_bad_s == (outcome.delay_s if score < 1 else None)


async def test_a_worker_that_ends_leaves_no_answer_waiting() -> None:
    sink: Any = Sink()
    source = asyncio.StreamReader()
    system = _Peer("ragas", sink)
    judging = asyncio.create_task(system.judge(load()[0], start=-1_000.0))
    await sink.written.get()
    source.feed_eof()
    await system.read(source)
    outcome = await judging
    assert outcome.error == "the worker ended"
    assert not outcome.right


async def test_a_peer_without_its_environment_is_skipped_with_a_reason() -> None:
    with pytest.raises(Skipped, match="ragas: no environment"):
        async with opened("ragas", "http://127.0.0.1:1/v1", None):
            pass


def test_every_peer_has_a_worker() -> None:
    assert set(PEERS.values()) == set(WORKERS)


def test_every_requirement_of_the_peers_is_pinned_to_one_version() -> None:
    lines = [line for line in REQUIREMENTS.read_text().splitlines() if not line.startswith("#")]
    assert lines
    assert all(line.count("==") == 1 for line in lines)
