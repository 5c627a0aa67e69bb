"""The example of a chat service, run as its docstring says, against a guard on a real Kafka."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from guardrail.judges.local import LocalJudge
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from tests.support.kafka_guards import kafka_guard, kafka_side

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(120)]

SCRIPT = Path(__file__).parents[2] / "examples" / "chat_service.py"


async def test_the_right_answer_is_shown_and_the_wrong_one_withdrawn(kafka_bootstrap: str) -> None:
    judge = LocalJudge()
    async with kafka_side(kafka_bootstrap) as side:
        topics = side.settings.topics
        async with kafka_guard(side.settings, judge, PolicyRouter.single(Policy())):
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                str(SCRIPT),
                *("--bootstrap-servers", kafka_bootstrap),
                *("--responses", topics.responses, "--deliveries", topics.deliveries),
                stdout=asyncio.subprocess.PIPE,
            )
            out, _ = await process.communicate()
    await judge.aclose()
    shown = out.decode()
    assert process.returncode == 0, shown
    first, second = shown.split("✔ complete")
    assert "within 14 days" in first
    assert "✘ withdrawn" in second
    assert "within 30 days" not in second
