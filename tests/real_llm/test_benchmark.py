"""The benchmark of judges runs on a real model, however badly that judges."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.judges import measure
from benchmarks.judges_tables import tables
from tests.benchmarks.judging import run_options
from tests.support.llama_server import LlamaServer

pytestmark = pytest.mark.real_llm


async def test_every_answer_and_claim_gets_a_row_and_every_call_is_counted(
    llama: LlamaServer, tmp_path: Path
) -> None:
    options = run_options(
        tmp_path, part=["answers", "claims"], systems=["guardrail-decisions", "guardrail-llm"], limit_s=240.0
    )
    await measure(options, llama.url)
    lines = options.out.read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines[1:]]
    assert {(row["part"], row["system"]) for row in rows} == {
        (part, system) for part in options.part for system in options.systems
    }
    assert len(rows) == 2 * (2 * options.answers + options.claims)
    for row in rows:
        assert row["score"] is None or 0.0 <= row["score"] <= 1.0
        assert row["calls"] == len(row["seconds_of_calls"]) + row["cut"] > 0
        assert row["tokens_in"] >= row["cached"] >= 0
        assert (row["tokens_in"] > 0) is (row["tokens_out"] > 0) is bool(row["seconds_of_calls"])
    assert "\n\n".join(tables(lines)).count("| guardrail-decisions |") == 3
