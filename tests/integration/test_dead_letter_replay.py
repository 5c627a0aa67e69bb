"""Listing and replaying dead letters on a real Kafka."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace

import pytest
from aiokafka import AIOKafkaProducer

from consumers import dead_letter_replay
from consumers.dead_letter_replay import (
    DeadLetterFilter,
    ReplayReport,
    ReplayRequest,
    plan_replay,
    read_letter,
    run_replay,
)
from consumers.dead_letters import REPLAYED, dead_letter
from consumers.kafka import TransactionalProducer
from consumers.reading import open_topic
from consumers.settings import KafkaSettings
from consumers.topics import create_topics
from consumers.transport import Commit, OutRecord, Partition, Record, StateRecord
from guardrail.errors import ConfigError, DecodeError, StepFailed, TransportError, TransportUnavailable
from tests.support.kafka_guards import own_settings
from tests.support.programs import call
from tests.support.transports import KafkaHarness

pytestmark = pytest.mark.kafka

PARTITIONS = 2


class Side:
    """Topics of their own, dead letters in them, and a plain read_committed reader."""

    def __init__(self, settings: KafkaSettings) -> None:
        self.settings = settings
        self.producer = AIOKafkaProducer(bootstrap_servers=settings.bootstrap_servers)

    def letter(self, number: int, reason: str = "invalid_json", key: bytes | None = None) -> OutRecord:
        place = Partition(self.settings.topics.responses, 0)
        key = b"response-%d" % (number % 7) if key is None else key
        record = Record(
            place, number, key, b"%d \xff" % number, (("h", b"\x00\xfe"), ("h", b"")), 1_000 + number
        )
        return dead_letter(
            self.settings.topics.dead_letters, record, DecodeError(reason, "refused"), 1_000_000
        )

    async def write(self, records: Iterable[OutRecord]) -> None:
        futures = [
            await self.producer.send(record.topic, record.value, record.key, headers=list(record.headers))
            for record in records
        ]
        await asyncio.gather(*futures)

    async def back(self) -> list[Record]:
        """What was written back."""
        return await self.read(self.settings.topics.responses)

    async def read(self, topic: str) -> list[Record]:
        return await KafkaHarness(self.settings.bootstrap_servers).read_all(topic)

    async def replay(self, request: ReplayRequest | None = None) -> ReplayReport:
        return await run_replay(self.settings, await plan_replay(self.settings, request or ReplayRequest()))


@pytest.fixture
async def side(kafka_bootstrap: str) -> AsyncIterator[Side]:
    made = Side(own_settings(kafka_bootstrap))
    await create_topics(made.settings, partitions=PARTITIONS, replication_factor=1)
    await made.producer.start()
    yield made
    await made.producer.stop()


def numbers(records: Sequence[Record]) -> list[int]:
    return [int((record.value or b"").split()[0]) for record in records]


async def test_reading_ends_at_the_present_end_and_sees_nothing_aborted(side: Side) -> None:
    topic = side.settings.topics.dead_letters
    await side.write(side.letter(number) for number in range(20))
    transactional = AIOKafkaProducer(
        bootstrap_servers=side.settings.bootstrap_servers, transactional_id=f"t-{uuid.uuid4().hex}"
    )
    await transactional.start()
    await transactional.begin_transaction()
    for partition in range(PARTITIONS):
        await transactional.send_and_wait(topic, b"aborted", partition=partition)
    await transactional.abort_transaction()
    await transactional.stop()
    async with open_topic(side.settings, topic) as reader:
        await side.write([side.letter(99)])
        found = [read_letter(record) async for record in reader.until_end()]
    assert len(reader.spans) == PARTITIONS
    assert sorted(numbers([letter.record for letter in found])) == list(range(20))
    assert {letter.reason for letter in found} == {"invalid_json"}
    assert all(letter.headers == (("h", b"\x00\xfe"), ("h", b"")) for letter in found)


async def test_records_go_back_as_they_were_and_only_once(side: Side) -> None:
    await side.write(side.letter(number) for number in range(30))
    report = await side.replay()
    assert report.written == 30
    assert report.by_topic == {side.settings.topics.responses: 30}
    back = await side.back()
    assert sorted(numbers(back)) == list(range(30))
    for record in back:
        (number,) = numbers([record])
        assert (record.key, record.value) == (b"response-%d" % (number % 7), b"%d \xff" % number)
        assert record.headers == (("h", b"\x00\xfe"), ("h", b""), (REPLAYED, b"1"))
    for key in {record.key for record in back}:
        of_key = numbers([record for record in back if record.key == key])
        assert of_key == sorted(of_key)
    assert (await side.replay()).written == 0
    await side.write(side.letter(number) for number in range(30, 35))
    assert (await side.replay()).written == 5
    assert sorted(numbers(await side.back())) == list(range(35))
    again = await side.replay(ReplayRequest(from_beginning=True))
    assert again.written == 35
    assert Counter(numbers(await side.back())) == dict.fromkeys(range(35), 2)


async def test_what_a_filter_leaves_behind_is_replayed_later_and_nothing_twice(side: Side) -> None:
    reasons = ["invalid_json", "unknown_schema", "sequence_gap"]
    await side.write(side.letter(number, reasons[number % 3]) for number in range(60))
    chosen = ReplayRequest(DeadLetterFilter(reason="unknown_schema"))
    assert (await side.replay(replace(chosen, limit=7))).written == 7
    assert (await side.replay(chosen)).written == 13
    report = await side.replay(chosen)
    assert (report.written, report.left) == (0, 40)
    by_key = await side.replay(ReplayRequest(DeadLetterFilter(key=b"response-3")))
    assert by_key.written == len([n for n in range(60) if n % 7 == 3 and n % 3 != 1])
    rest = await side.replay()
    assert rest.left == 0
    assert Counter(numbers(await side.back())) == dict.fromkeys(range(60), 1)
    # Once more, by hand, and what was not chosen stays done.
    assert (await side.replay(replace(chosen, from_beginning=True))).written == 20
    assert (await side.replay()).written == 0


async def test_each_destination_has_a_progress_of_its_own(side: Side) -> None:
    await side.write(side.letter(number) for number in range(5))
    copy = f"copy-{uuid.uuid4().hex}"
    with pytest.raises(TransportUnavailable, match=copy):
        await plan_replay(side.settings, ReplayRequest(to=copy))
    elsewhere = side.settings.topics.model_copy(update={"responses": copy})
    await create_topics(side.settings.model_copy(update={"topics": elsewhere}), PARTITIONS, 1)
    for written in (5, 0):
        assert (await side.replay(ReplayRequest(to=copy))).written == written
    assert sorted(numbers(await side.read(copy))) == list(range(5))
    assert await side.back() == []
    assert (await side.replay()).written == 5


@pytest.mark.parametrize("topic", ["sessions", "dead_letters", "verdicts"])
async def test_the_guards_own_topics_are_no_destination(side: Side, topic: str) -> None:
    name = getattr(side.settings.topics, topic)
    with pytest.raises(ConfigError, match="name another topic"):
        await plan_replay(side.settings, ReplayRequest(to=name))
    forged = Record(Partition(name, 0), 1, b"k", b"v")
    letter = dead_letter(side.settings.topics.dead_letters, forged, DecodeError("r", "m"), 10_000)
    await side.write([letter])
    plan = await plan_replay(side.settings, ReplayRequest())
    assert (plan.written, plan.unusable) == (0, 1)
    assert name in plan.told[0]


async def test_what_can_not_be_written_back_is_told_and_holds_up_nothing(side: Side) -> None:
    dead = side.settings.topics.dead_letters
    huge = Record(Partition(side.settings.topics.responses, 0), 9, b"k", b"x" * 9_000)
    gone = Record(Partition("no-such-topic", 0), 9, b"k", b"v")
    error = DecodeError("r", "m")
    await side.write(
        [
            side.letter(1),
            OutRecord(dead, b"k", b"not ours"),
            dead_letter(dead, huge, error, 10_000),
            dead_letter(dead, gone, error, 10_000),
            side.letter(2),
        ]
    )
    report = await side.replay()
    assert (report.written, report.unusable) == (2, 3)
    told = "\n".join(report.told)
    assert "which topic it came from" in told
    assert "9000 bytes" in told
    assert "no topic no-such-topic" in told
    again = await side.replay()
    assert (again.written, again.unusable) == (0, 0)


class Failing(TransactionalProducer):
    """Fails at its second step: before anything was sent, or with the commit done and not heard of."""

    after_commit = False
    steps = 0

    async def transact(
        self, records: Sequence[OutRecord], state: Sequence[StateRecord], commit: Commit
    ) -> None:
        Failing.steps += 1
        if Failing.steps == 2 and not self.after_commit:
            raise StepFailed("cut off before")
        await super().transact(records, state, commit)
        if Failing.steps == 2:
            raise StepFailed("cut off after")


@pytest.mark.parametrize("after_commit", [False, True])
async def test_a_replay_that_fails_is_gone_on_with(
    side: Side, monkeypatch: pytest.MonkeyPatch, after_commit: bool
) -> None:
    monkeypatch.setattr(dead_letter_replay, "MAX_STEP_RECORDS", 10)
    await side.write(side.letter(number, key=b"one") for number in range(50))
    with monkeypatch.context() as patch:
        patch.setattr(Failing, "after_commit", after_commit)
        patch.setattr(Failing, "steps", 0)
        patch.setattr(dead_letter_replay, "TransactionalProducer", Failing)
        with pytest.raises(TransportError, match="run the replay again"):
            await side.replay()
    written = 20 if after_commit else 10
    assert numbers(await side.back()) == list(range(written))
    assert (await side.replay()).written == (30 if after_commit else 40)
    assert numbers(await side.back()) == list(range(50))


async def test_of_two_replays_at_once_the_later_one_goes_on_and_nothing_is_doubled(
    side: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    await side.write(side.letter(number, key=b"one") for number in range(40))
    monkeypatch.setattr(dead_letter_replay, "MAX_STEP_RECORDS", 10)
    paused, go_on = asyncio.Event(), asyncio.Event()

    class Pausing(TransactionalProducer):
        async def transact(
            self, records: Sequence[OutRecord], state: Sequence[StateRecord], commit: Commit
        ) -> None:
            await super().transact(records, state, commit)
            paused.set()
            await go_on.wait()

    plan = await plan_replay(side.settings, ReplayRequest())
    with monkeypatch.context() as patch:
        patch.setattr(dead_letter_replay, "TransactionalProducer", Pausing)
        first = asyncio.create_task(run_replay(side.settings, plan))
        await paused.wait()
    assert (await run_replay(side.settings, plan)).written == 30
    go_on.set()
    with pytest.raises(StepFailed, match="fenced"):
        await first
    assert numbers(await side.back()) == list(range(40))


async def command(settings: KafkaSettings, *arguments: str) -> tuple[int, str, str]:
    variables = {f"GUARDRAIL_KAFKA__TOPICS__{name.upper()}": value for name, value in settings.topics}
    variables["GUARDRAIL_KAFKA__GROUP_ID"] = settings.group_id
    words = ("dead-letters", *arguments, "-b", settings.bootstrap_servers)
    done = await asyncio.to_thread(call, *words, **variables)
    return done.returncode, done.stdout, done.stderr


async def test_the_commands_from_list_to_replay(side: Side) -> None:
    await side.write(
        side.letter(number, ["invalid_json", "unknown_schema"][number % 2]) for number in range(6)
    )
    status, out, err = await command(side.settings, "list", "--reason", "unknown_schema")
    assert (status, err) == (0, "")
    heading, *rows, summary = out.splitlines()
    assert heading.split() == ["at", "refused", "reason", "from", "key", "bytes", "message"]
    assert len(rows) == 3
    assert all(f"unknown_schema  {side.settings.topics.responses}[0]:" in row for row in rows)
    assert summary == "3 dead letters: 3 unknown_schema"

    status, out, err = await command(side.settings, "list", "--json", "--show-values", "--key", "response-1")
    (found,) = [json.loads(line) for line in out.splitlines()]
    assert found["origin"] == {
        "topic": side.settings.topics.responses,
        "partition": 0,
        "offset": 1,
        "timestamp_ms": 1_001,
    }
    assert (found["key"], found["value"]) == ("response-1", {"base64": "MSD/"})
    assert found["headers"][0] == ["h", {"base64": "AP4="}]

    status, out, err = await command(side.settings, "replay", "--dry-run")
    assert (status, out) == (0, "")
    assert "6 dead letters to write back: 3 invalid_json, 3 unknown_schema" in err
    assert f"{side.settings.group_id}-dead-letters-replay" in err
    assert await side.back() == []

    status, out, err = await command(side.settings, "replay", "--reason", "invalid_json", "--yes")
    assert (status, out) == (0, "3 dead letters written back: 3 invalid_json\n")
    assert "3 are left out by the filters and stay to be replayed" in err
    status, out, err = await command(side.settings, "replay", "--yes")
    assert out == "3 dead letters written back: 3 unknown_schema\n"
    assert sorted(numbers(await side.back())) == list(range(6))
