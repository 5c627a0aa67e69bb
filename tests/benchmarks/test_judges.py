"""Judges on one endpoint: what is asked of it, what is counted, and the tables."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from benchmarks import judges
from benchmarks.judges import Item, Theirs, cut, injections, measure
from benchmarks.judges_tables import tables
from benchmarks.labelled_answers import labelled_answer
from benchmarks.relay import Relay
from tests.benchmarks.judging import CONTEXT, answer, run_options
from tests.support.decisions_server import DecisionsServer
from tests.support.llm_server import LlmServer, Reply, Wire, obliging


async def test_a_run_goes_on_where_it_was_ended(tmp_path: Path) -> None:
    options = run_options(tmp_path, systems=["guardrail-decisions", "guardrail-local"])
    async with DecisionsServer() as server:
        await measure(options, server.url)
        whole = options.out.read_text().splitlines()
        asked = len(server.claims)
        await measure(options, server.url)
        assert len(server.claims) == asked, "all is known"
        options.out.write_text("\n".join(whole[:-1]) + "\n")
        await measure(options, server.url)
    again = [json.loads(line) for line in options.out.read_text().splitlines()]
    assert [(row["part"], row["id"], row["system"]) for row in again[1:]] == [
        (row["part"], row["id"], row["system"]) for row in map(json.loads, whole[1:])
    ]
    models = {body["model"] for path, body in server.asked if path == "/v1/chat/completions"}
    assert models == {"small"}
    ours = {row["id"]: row for row in again[1:] if row["system"] == "guardrail-decisions"}
    assert ours["good"]["truth"]
    assert ours["good"]["passed"]
    assert [claim["truth"] for claim in ours["bad"]["claims"]] == [True, False]
    assert (
        ours["good"]["tokens_in"]
        == 100 * ours["good"]["calls"]
        == 100 * len(ours["good"]["seconds_of_calls"])
    )
    assert all(row["calls"] == 0 for row in again[1:] if row["system"] == "guardrail-local")
    options.seed = 2
    with pytest.raises(SystemExit, match="other options"):
        await measure(options, "http://127.0.0.1:9/v1")


async def test_a_run_ends_with_its_endpoint_and_keeps_what_it_has(tmp_path: Path) -> None:
    options = run_options(tmp_path, systems=["guardrail-decisions"], part=["claims"])
    with pytest.raises(SystemExit, match="can't be reached"):
        await measure(options, "http://127.0.0.1:9/v1")
    assert len(options.out.read_text().splitlines()) == 1, "what nobody judged is no result"


async def test_streamed_replies_are_counted(tmp_path: Path) -> None:
    options = run_options(tmp_path, systems=["guardrail-llm"], part=["claims"])
    pinged = Reply(obliging, wire=Wire(ping_every=1))
    async with LlmServer(pinged) as server:
        await measure(options, server.url)
    rows = [json.loads(line) for line in options.out.read_text().splitlines()][1:]
    assert [(row["calls"], row["tokens_in"], row["cached"], row["tokens_out"]) for row in rows] == [
        (1, 100, 64, 20)
    ] * 2
    assert [row["score"] for row in rows] != [None, None]


async def test_a_call_that_takes_too_long_is_cut_and_none_follows() -> None:
    async with DecisionsServer() as server, Relay(server.url, "small", "key", 1) as relay:
        server.hold = asyncio.Event()
        account = relay.begin("haystack", 1.0)
        async with httpx2.AsyncClient(trust_env=False) as client:
            url = f"{relay.base_url('haystack')}/chat/completions"
            late = await client.post(url, json={"messages": []})
            refused = await client.post(url, json={"messages": []})
        assert (late.status_code, refused.status_code) == (400, 400)
        assert (account.calls, account.cut, account.seconds_of_calls) == (1, 1, [])
        assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("told", "score", "passed"),
    [
        ({"score": 1.0}, 1.0, True),
        ({"score": 0.5}, 0.5, False),
        ({"score": float("nan")}, None, False),
        ({"error": "no JSON"}, None, False),
    ],
)
async def test_an_evaluators_answer_passes_at_a_score_of_one(
    told: dict[str, Any], score: float | None, passed: bool
) -> None:
    class Peer:
        async def ask(self, fields: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
            assert fields["contexts"] == [CONTEXT]
            return told

    item = Item("answers", "good", truth=True, what=labelled_answer(answer("good", "supported", "supported")))
    peer: Any = Peer()
    found = await Theirs(peer, 1.0)(item)
    assert (found["score"], found["passed"]) == (score, passed)


@pytest.mark.parametrize(
    ("lengths", "most", "kept"),
    [((5, 5), 20, [5, 5]), ((2, 90, 30), 50, [2, 24, 24]), ((2, 90, 10), 50, [2, 38, 10]), ((), 5, [])],
)
def test_documents_are_cut_to_equal_shares(lengths: Sequence[int], most: int, kept: list[int]) -> None:
    assert [len(text) for text in cut(["x" * length for length in lengths], most)] == kept


def test_every_order_stands_in_a_document_beside_the_plain_one() -> None:
    plain = [item for item in injections() if item.id.endswith("plain")]
    assert len(injections()) == len(plain) * (1 + len(judges.ORDERS))
    assert not any(item.truth for item in injections())


def row(part: str, name: str, score: float | None, *, truth: bool, passed: bool, **more: Any) -> str:
    spent = {"calls": 2, "tokens_in": 1000, "cached": 10, "tokens_out": 5, "seconds": 4.0, "claims": []}
    told = {"part": part, "id": name, "system": "guardrail-llm", "seconds_of_calls": [1.0, 3.0]}
    return json.dumps({**told, "truth": truth, "score": score, "passed": passed, **spent, **more})


def test_what_has_no_score_does_not_pass_and_ranks_last() -> None:
    run = {"model": "m", "machine": "2 cores", "most_chars": 6000, "limit_s": 180.0, "at_once": 1}
    claim = {"truth": True, "score": 0.9, "passed": True}
    told = "\n\n".join(
        tables(
            [
                json.dumps(run),
                row("answers", "a", 0.9, truth=True, passed=True, claims=[claim]),
                row("answers", "b", None, truth=True, passed=False),
                row("answers", "c", 0.1, truth=False, passed=False, claims=[claim | {"truth": None}]),
                row("injection", "0 plain", 0.1, truth=False, passed=False),
                row("injection", "0 order 1", 0.9, truth=False, passed=True),
            ]
        )
    )
    cells = [
        line.strip("| ").split(" | ") for line in told.splitlines() if line.startswith("| guardrail-llm")
    ]
    assert cells[0][1] == "3 (2)"
    assert [cells[0][place].split(" ")[0] for place in (2, 3)] == ["50.0", "75.0"]
    assert cells[0][5:] == ["1", "2.0", "1,000", "10", "5", "2.0", "4.0"]
    assert cells[1][:3] == ["guardrail-llm", "answers", "1 (1)"]
    assert cells[2] == ["guardrail-llm", "0 of 1 (0.10)", "1 of 1 (0.90)", "1 of 1", "0"]
