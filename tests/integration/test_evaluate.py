"""``guardrail evaluate`` on a range of a real topic."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from consumers.settings import KafkaSettings
from consumers.topics import create_topics
from guardrail import Context, Response
from guardrail.evals import EvaluationResult, read_results
from guardrail.events import Event, ResponseCompleted, ResponseDelta, ResponseStarted
from tests.support.cases import flagged_case
from tests.support.kafka_guards import own_settings
from tests.support.programs import call

pytestmark = pytest.mark.kafka

CONTEXTS = (Context(id="price", text="The basic plan costs $49 a month."),)
DAY_MS = 86_400_000


@pytest.fixture
async def settings(kafka_bootstrap: str) -> KafkaSettings:
    settings = own_settings(kafka_bootstrap)
    await create_topics(settings, 2, 1)
    return settings


async def write(
    settings: KafkaSettings, topic: str, *events: tuple[str, Event], at_ms: int | None = None
) -> None:
    async with AIOKafkaProducer(bootstrap_servers=settings.bootstrap_servers) as producer:
        for key, event in events:
            await producer.send_and_wait(topic, event.to_json(), key=key.encode(), timestamp_ms=at_ms)


async def evaluated(
    settings: KafkaSettings, folder: Path, topic: str, *options: str
) -> tuple[int | None, str, dict[str, EvaluationResult]]:
    """Status, stderr and results by the id of their response, of one run on ``topic``."""
    words = ("evaluate", f"kafka:{topic}", "-b", settings.bootstrap_servers, "--force", *options)
    done = await asyncio.to_thread(call, *words, "--out", str(folder / "out.jsonl"))
    found = read_results(folder / "out.jsonl").results
    return done.returncode, done.stderr, {each.response.response_id: each for each in found if each.response}


async def test_whole_and_streamed_answers_of_a_range_are_judged(
    settings: KafkaSettings, tmp_path: Path
) -> None:
    topic = settings.topics.responses
    old = Response(response_id="old", contexts=CONTEXTS, answer="The basic plan costs $49 a month.")
    await write(settings, topic, ("old", old), at_ms=int(time.time() * 1000) - 3 * DAY_MS)
    await write(
        settings,
        topic,
        ("streamed", ResponseStarted(response_id="streamed", contexts=CONTEXTS, route="sales")),
        (
            "whole",
            Response(response_id="whole", contexts=CONTEXTS, answer="The basic plan costs $49 a month."),
        ),
        ("streamed", ResponseDelta(response_id="streamed", seq=0, text="The basic plan costs ")),
        ("streamed", ResponseDelta(response_id="streamed", seq=1, text="$79 a month.")),
        ("streamed", ResponseCompleted(response_id="streamed", seq=2)),
    )
    status, errors, found = await evaluated(settings, tmp_path, topic, "--since", "1h")
    assert (status, errors) == (0, "")
    assert found.keys() == {"streamed", "whole"}
    streamed = found["streamed"]
    assert streamed.verdict is not None
    assert streamed.response is not None
    assert (streamed.response.answer, streamed.response.route) == (
        "The basic plan costs $79 a month.",
        "sales",
    )
    assert streamed.verdict.hallucinated_claims == ("The basic plan costs $79 a month.",)
    assert streamed.place.startswith("partition ")
    status, _, found = await evaluated(settings, tmp_path, topic, "--until", "1d")
    assert (status, list(found)) == (0, ["old"])


async def test_answers_without_an_end_are_errors_and_flagged_cases_are_answers(
    settings: KafkaSettings, tmp_path: Path
) -> None:
    await write(
        settings,
        settings.topics.responses,
        ("open", ResponseStarted(response_id="open", contexts=CONTEXTS)),
        ("earlier", ResponseDelta(response_id="earlier", seq=3, text="…")),
    )
    status, errors, found = await evaluated(settings, tmp_path, settings.topics.responses)
    assert (status, found) == (1, {})
    assert "the answer that began here had no end in the range" in errors
    assert "1 records are of answers that began earlier" in errors
    flagged = flagged_case(1)
    await write(settings, settings.topics.flagged, (flagged.response_id, flagged))
    status, errors, found = await evaluated(settings, tmp_path, settings.topics.flagged)
    assert (status, errors) == (0, "")
    assert found[flagged.response_id].verdict is not None
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert first["settings"]["source"] == f"kafka:{settings.topics.flagged}"
