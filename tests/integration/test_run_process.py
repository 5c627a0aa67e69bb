"""``guardrail run`` as operators run it: a process, a real Kafka, signals."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
import yaml

from guardrail.events import Decision, Event, Response, ResponseVerdict
from tests.integration.test_shutdown import EVENTS, HEAD, ID, answered_once, chat, configuration
from tests.support.kafka_guards import KafkaSide
from tests.support.llm_server import Hang, LlmServer, Reply, obliging
from tests.support.programs import call, running

pytestmark = pytest.mark.kafka


async def decisions(side: KafkaSide, count: int) -> dict[str, Decision]:
    """By response, once so many have their verdict."""
    while True:
        events = await side.read(side.settings.topics.verdicts)
        found = {each.response_id: each.decision for each in events if isinstance(each, ResponseVerdict)}
        if len(found) >= count:
            return found


async def test_it_guards_until_sigterm_and_leaves_cleanly(kafka_bootstrap: str, tmp_path: Path) -> None:
    wrong: Event = Response(response_id="wrong", answer="The Pro plan costs $35 per month.", **HEAD)
    config = configuration(kafka_bootstrap)
    async with chat(config) as side:
        with running(tmp_path, config) as guard:
            await side.send(EVENTS)
            await answered_once(side)
            await side.send([wrong])
            found = await decisions(side, 2)
            assert await guard.ends() == 0
    assert found[ID] is Decision.RELEASE
    assert found["wrong"] is not Decision.RELEASE
    assert {"guard.starting", "guard.assigned", "guard.stopping", "guard.stopped"} <= guard.events()
    assert "Pro plan" not in str(guard.lines())


async def test_a_standstill_of_the_guard_is_not_charged_to_the_claims_in_flight(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    """The call in flight gets no answer: it has no time left when the guard goes on, but the claim has."""
    async with LlmServer(Hang(), Reply(obliging)) as server:  # one after the other
        judge = {"kind": "llm", "llm": {"base_url": server.url, "model": "m", "api_key": "none"}}
        policies = {"default": {"claim_timeout_ms": 4_000, "on_unverified": "fail_closed"}}
        config = configuration(kafka_bootstrap, judge=judge) | {"policies": policies}
        config["kafka"]["client"]["session_timeout_ms"] = 30_000  # it is to stay in its group
        async with chat(config) as side:
            with running(tmp_path, config) as frozen:
                await side.send(EVENTS)
                await server.until_calls(1)
                frozen.process.send_signal(signal.SIGSTOP)
                await asyncio.sleep(5.0)
                frozen.process.send_signal(signal.SIGCONT)
                assert (await decisions(side, 1))[ID] is Decision.RELEASE
    assert "guard.stood_still" in frozen.events()


def test_missing_topics_are_one_message_with_the_remedy(kafka_bootstrap: str, tmp_path: Path) -> None:
    config = tmp_path / "guardrail.yaml"
    config.write_text(yaml.safe_dump(configuration(kafka_bootstrap)), encoding="utf-8")
    done = call("run", "--config", str(config), "--log-level", "error")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "guardrail topics create" in done.stderr
