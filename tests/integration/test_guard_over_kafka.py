"""The guard on a real Kafka: the same outcome as in process, and nothing lost when guards come and go."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from guardrail.demo import load_demo_settings, load_examples
from guardrail.errors import TransportUnavailable
from guardrail.events import (
    AnyOutputEvent,
    ClaimVerdict,
    DeliveryBlocked,
    DeliveryCompleted,
    DeliverySegment,
    Event,
    Response,
    ResponseCompleted,
    ResponseDelta,
    ResponseStarted,
    ResponseVerdict,
)
from guardrail.judges import Verdict
from guardrail.judges.local import LocalJudge
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from tests.support.guards import TOPICS, Reader, events_of, new_broker, running_guard, send, until
from tests.support.judges import GatedJudge, WordJudge
from tests.support.kafka_guards import KafkaSide, kafka_guard, kafka_side

pytestmark = pytest.mark.kafka


def streamed(response: Response, step: int) -> list[Event]:
    head = response.model_dump(exclude={"type", "answer"})
    pieces = [response.answer[start : start + step] for start in range(0, len(response.answer), step)]
    deltas = [ResponseDelta(response_id=response.response_id, seq=n, text=p) for n, p in enumerate(pieces)]
    completed = ResponseCompleted(response_id=response.response_id, seq=len(pieces))
    return [ResponseStarted.model_validate(head), *deltas, completed]


def interleaved(streams: Sequence[Sequence[Event]]) -> Iterable[Event]:
    for turn in range(max(map(len, streams))):
        for stream in streams:
            if turn < len(stream):
                yield stream[turn]


def outcomes(events: Sequence[AnyOutputEvent]) -> dict[str, dict[str, Any]]:
    """By response: the delivered text and the final verdict, everything but times."""
    found: dict[str, dict[str, Any]] = {}
    for event in events:
        entry = found.setdefault(event.response_id, {"segments": {}})
        if isinstance(event, DeliverySegment):
            entry["segments"][event.seq] = event.text
        elif isinstance(event, DeliveryCompleted | DeliveryBlocked):
            entry["final"] = event.model_dump()
        elif isinstance(event, ResponseVerdict):
            entry["verdict"] = event.model_dump(exclude={"timings", "usage"})
            for claim in entry["verdict"]["claims"]:
                del claim["latency_ms"]
    for entry in found.values():
        if (entry["verdict"])["mode"] == "observe":  # released as it comes: cut as the stream is
            entry["segments"] = "".join(entry["segments"].values())
            entry["final"] = {k: v for k, v in entry["final"].items() if k != "seq"}
    return found


def differences(one: Any, other: Any, where: str = "") -> list[str]:
    """Where two outcomes differ. An assertion on the whole of them prints so much that nobody finds it."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = [*one, *(name for name in other if name not in one)]
        return [
            told for name in names for told in differences(one.get(name), other.get(name), f"{where}.{name}")
        ]
    if isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [told for n, (a, b) in pairs for told in differences(a, b, f"{where}[{n}]")]
    return [] if one == other else [f"{where}: {one!r} and {other!r}"]


async def finished(side: KafkaSide, ids: Sequence[str]) -> list[AnyOutputEvent]:
    """Everything that came out, once all of these responses have ended."""
    while True:
        topics = side.settings.topics
        events = [*await side.read(topics.deliveries), *await side.read(topics.verdicts)]
        finals = {e.response_id for e in events if isinstance(e, DeliveryCompleted | DeliveryBlocked)}
        verdicts = {e.response_id for e in events if isinstance(e, ResponseVerdict)}
        if finals >= set(ids) and verdicts >= set(ids):
            return events
        await asyncio.sleep(0.05)


async def test_the_same_answers_have_the_same_outcome_in_process_and_over_kafka(kafka_bootstrap: str) -> None:
    """A dozen realistic answers under five policies, judged by the local judge, cut differently each time."""
    responses = [example.response for example in load_examples()]
    ids = [response.response_id for response in responses]
    # However busy the machine is, what the claims come to is not that there was no time to judge them.
    patient = {
        name: policy.model_copy(update={"claim_timeout_ms": 120_000})
        for name, policy in load_demo_settings().policies.items()
    }
    router = load_demo_settings().model_copy(update={"policies": patient}).router()
    judge = LocalJudge()

    broker = new_broker()
    read = Reader(broker)
    async with running_guard(broker, judge, router=router):
        send(broker, interleaved([streamed(response, 5) for response in responses]))
        await until(lambda: len(read.verdicts()) == len(ids) and all(read.finals(name) for name in ids))
    in_process = outcomes([*read.events(TOPICS.deliveries), *read.events(TOPICS.verdicts)])

    async with kafka_side(kafka_bootstrap) as side, kafka_guard(side.settings, judge, router):
        await side.send(interleaved([streamed(response, 3) for response in responses]))
        over_kafka = outcomes(await finished(side, ids))
    await judge.aclose()
    assert differences(in_process, over_kafka) == []


@pytest.mark.parametrize(("grace_ms", "verdict"), [(20_000, Verdict.SUPPORTED), (0, Verdict.UNVERIFIED)])
async def test_a_claim_outlives_an_outage_longer_than_its_deadline(
    kafka_bootstrap: str, grace_ms: int, verdict: Verdict
) -> None:
    """A guard dies while its judge has the claim, and the next one comes after the deadline, by the clock."""
    router = PolicyRouter.single(Policy())
    async with kafka_side(kafka_bootstrap) as side:
        settings = side.settings
        started, *rest = events_of("r", "Paris is in France. ")
        slow = GatedJudge()

        async def doomed() -> None:
            async with kafka_guard(settings, slow, router):
                await asyncio.Event().wait()

        task = asyncio.ensure_future(doomed())
        await side.send([started.model_copy(update={"deadline_ms": 6_000}), *rest])
        sent_at = time.monotonic()
        await slow.asked.wait()
        while not await side.read_raw(settings.topics.sessions):  # noqa: ASYNC110 - it looks from outside
            await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while time.monotonic() < sent_at + 7.0:  # noqa: ASYNC110 - what is waited for is the time
            await asyncio.sleep(0.05)
        second = GatedJudge()
        async with kafka_guard(settings, second, router, recovery_grace_ms=grace_ms):
            await second.asked.wait()
            await side.read_raw(settings.topics.verdicts)  # time enough for a deadline that has passed
            second.gate.set()
            events = await finished(side, ["r"])
    [claim] = [event for event in events if isinstance(event, ClaimVerdict)]
    assert claim.verdict is verdict


async def test_of_two_guards_with_one_instance_id_the_first_ends_and_says_why(kafka_bootstrap: str) -> None:
    router = PolicyRouter.single(Policy())
    async with kafka_side(kafka_bootstrap) as side:
        settings = side.settings.model_copy(update={"group_instance_id": "guard-0"})
        await side.send(events_of("first", "Paris is in France. "))

        async def replaced() -> None:
            async with kafka_guard(settings, WordJudge(), router):
                await asyncio.Event().wait()

        first = asyncio.create_task(replaced())
        while not await side.read(side.settings.topics.deliveries):
            assert not first.done()
        async with kafka_guard(settings, WordJudge(), router):
            with pytest.raises(BaseExceptionGroup) as caught:
                await first
            await side.send(events_of("second", "Rome is in Italy. "))
            while "second" not in {e.response_id for e in await side.read(side.settings.topics.verdicts)}:
                continue
    found = caught.value.subgroup(TransportUnavailable)
    assert found is not None
    assert "group_instance_id guard-0" in str(found.exceptions[0])
