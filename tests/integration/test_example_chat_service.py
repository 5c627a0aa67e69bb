"""The example of a chat service, run as its docstring says, against a guard on a real Kafka."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from guardrail.judges.local import LocalJudge
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from tests.support.kafka_broker import free_ports
from tests.support.kafka_guards import kafka_guard, kafka_side

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(120)]

SCRIPT = Path(__file__).parents[2] / "examples" / "chat_service.py"


async def run(*arguments: str) -> tuple[int | None, str, str]:
    """Status, stdout and stderr of the script."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(SCRIPT),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


async def test_the_right_answer_is_shown_and_the_wrong_one_withdrawn(kafka_bootstrap: str) -> None:
    judge = LocalJudge()
    async with kafka_side(kafka_bootstrap) as side:
        topics = side.settings.topics
        async with kafka_guard(side.settings, judge, PolicyRouter.single(Policy())):
            status, shown, err = await run(
                *("--bootstrap-servers", kafka_bootstrap),
                *("--responses", topics.responses, "--deliveries", topics.deliveries),
            )
    await judge.aclose()
    assert (status, err) == (0, ""), shown
    first, second = shown.split("✔ complete")
    assert "within 14 days" in first
    assert "✘ withdrawn" in second
    assert "within 30 days" not in second


async def test_a_broker_that_is_not_there_is_one_line_with_the_remedy() -> None:
    (port,) = free_ports(1)
    status, out, err = await run("--bootstrap-servers", f"127.0.0.1:{port}")
    assert (status, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert f"can't be reached at 127.0.0.1:{port}" in err
    assert "start it" in err


async def test_topics_that_are_not_there_are_named_with_the_remedy(kafka_bootstrap: str) -> None:
    names = ("--responses", "no-such-in", "--deliveries", "no-such-out")
    status, out, err = await run("--bootstrap-servers", kafka_bootstrap, *names)
    assert (status, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert "no topic no-such-in, no-such-out" in err
    assert "guardrail topics create" in err
