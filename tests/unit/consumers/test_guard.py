from __future__ import annotations

import asyncio
import time
from itertools import zip_longest
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from consumers.dead_letters import PREFIX
from consumers.guard import Waiting
from consumers.memory import MemoryBroker, MemoryTransport
from consumers.outputs import value_within
from consumers.settings import Producers
from consumers.transport import Record
from guardrail.events import (
    ClaimVerdict,
    Context,
    Decision,
    DeliveryBlocked,
    DeliveryCompleted,
    Event,
    FlaggedCase,
    Response,
    ResponseAborted,
    ResponseVerdict,
    parse_output,
)
from guardrail.judges import Evidence, Verdict
from guardrail.limits import Limits
from guardrail.partitioning import partition_of
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter, Route
from guardrail.session.machine import Session
from guardrail.session.outputs import Effect
from tests.support.cases import flagged_case
from tests.support.constants import made
from tests.support.guards import (
    TOPICS,
    DeliveryGuarantee,
    Reader,
    events_of,
    guard_on,
    member_of,
    new_broker,
    paused,
    running_guard,
    send,
    until,
)
from tests.support.judges import GatedJudge, WordJudge
from tests.support.records import claim_verdict, response_verdict

FAITHFUL = "Paris is in France. Rome is in Italy. "
WRONG = "Paris is in France. It costs wrong $79. Oslo is in Norway. "


def reason(record: Record) -> str:
    return (dict(record.headers)[PREFIX + "reason"] or b"").decode()


@pytest.fixture(params=["exactly_once", "at_least_once"])
def guarantee(request: pytest.FixtureRequest) -> DeliveryGuarantee:
    """What is promised beyond the guarantees themselves holds under both."""
    return cast("DeliveryGuarantee", request.param)


async def test_responses_are_guarded_from_topic_to_topics(guarantee: DeliveryGuarantee) -> None:
    broker = new_broker()
    read = Reader(broker)
    trace = (("tracestate", None), ("traceparent", b"00-abc-def-01"), ("other", b"x"))
    async with running_guard(broker, WordJudge(), delivery_guarantee=guarantee):
        send(broker, events_of("good", FAITHFUL), trace)
        send(broker, events_of("bad", WRONG), trace)
        await until(lambda: len(read.verdicts()) == 2)
    assert read.shown("good") == FAITHFUL
    assert read.shown("bad") == "Paris is in France. "
    [good] = read.finals("good")
    [bad] = read.finals("bad")
    assert isinstance(good, DeliveryCompleted)
    assert isinstance(bad, DeliveryBlocked)
    [case] = read.events(TOPICS.flagged)
    assert isinstance(case, FlaggedCase)
    assert case.response_id == "bad"
    assert all(
        record.headers == (trace[1], ("guardrail-group", b"guard"))
        for topic in (TOPICS.deliveries, TOPICS.verdicts, TOPICS.flagged)
        for record in broker.records(topic)
    )
    assert broker.lag("guard", TOPICS.responses) == 0


async def test_a_whole_response_in_one_event(guarantee: DeliveryGuarantee) -> None:
    broker = new_broker()
    read = Reader(broker)
    async with running_guard(broker, WordJudge(), delivery_guarantee=guarantee):
        send(broker, [Response(response_id="r", answer=FAITHFUL)])
        await until(lambda: len(read.verdicts()) == 1)
    assert read.shown("r") == FAITHFUL


async def said_of(
    events: list[Event], policy: Policy, *, alone: bool
) -> tuple[dict[str, list[tuple[str, str]]], list[tuple[bytes | None, str]]]:
    """The deliveries of each response, and the dead letters, of events that are read alone or together."""
    broker = new_broker(1)
    read = Reader(broker)
    if not alone:
        send(broker, events)
    limits = made(Limits, max_answer_chars=50)
    async with running_guard(broker, WordJudge(), policy, limits=limits):
        for event in events if alone else ():
            send(broker, [event])
            await until(lambda: broker.lag("guard", TOPICS.responses) == 0)
        await until(lambda: len(read.verdicts()) == 3)
    deliveries: dict[str, list[tuple[str, str]]] = {}
    for delivery in read.events(TOPICS.deliveries):
        text = getattr(delivery, "text", "")
        deliveries.setdefault(delivery.response_id, []).append((delivery.id, text))
    return deliveries, sorted((record.value, reason(record)) for record in read.dead_letters())


@pytest.mark.parametrize("mode", ["stream", "observe"])
async def test_deltas_that_come_together_mean_what_they_mean_one_by_one(mode: str) -> None:
    """Three responses by turns, one with a gap, one that gets too long in the middle."""
    responses = [events_of("good", FAITHFUL), events_of("gap", FAITHFUL), events_of("long", FAITHFUL * 2)]
    del responses[1][5]
    events = [event for turn in zip_longest(*responses) for event in turn if event is not None]
    # What ends early is released all the same: how far its verdicts had come then is nobody's promise.
    policy = Policy.model_validate({"mode": mode, "on_incomplete": "flag"})
    alone = await said_of(events, policy, alone=True)
    assert await said_of(events, policy, alone=False) == alone
    assert {reason for _, reason in alone[1]} == {"sequence_gap", "answer_too_long"}


async def test_joined_deltas_are_as_old_as_the_first_and_none_is_lost_if_we_fail_on_them(
    guarantee: DeliveryGuarantee, monkeypatch: pytest.MonkeyPatch
) -> None:
    ages: list[float] = []

    def broken(self: Session, seq: int, text: str, now: float, pieces: int = 1) -> list[Effect]:
        assert pieces > 1
        ages.append(self.late_s)
        raise RuntimeError

    monkeypatch.setattr(Session, "delta", broken)
    broker = new_broker(1)
    read = Reader(broker)
    started, *deltas = events_of("r", FAITHFUL, complete=False)
    send(broker, [started])
    for number, delta in enumerate(deltas):
        written_s = time.time() - 100 + number
        broker.append(TOPICS.responses, b"r", delta.to_json(), timestamp_ms=round(1000 * written_s))
    with capture_logs():
        async with running_guard(broker, WordJudge(), delivery_guarantee=guarantee):
            await until(lambda: len(read.dead_letters()) == len(deltas))
            await until(lambda: bool(read.verdicts()))
    assert [record.value for record in read.dead_letters()] == [delta.to_json() for delta in deltas]
    assert {reason(record) for record in read.dead_letters()} == {"internal_error"}
    assert 100 <= ages[0] < 110


def key_on(partition: int, name: str = "r") -> bytes:
    """A key whose records are in this one of two partitions."""
    return next(key for n in range(20) if partition_of((key := f"{name}{n}".encode()), 2) == partition)


def litter(broker: MemoryBroker, partition: int, records: int) -> None:
    for _ in range(records):
        broker.append(TOPICS.responses, key_on(partition), b"rubbish")


async def test_unreadable_records_slow_down_their_partition_and_no_other(
    guarantee: DeliveryGuarantee, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consumers.dead_letters.BAD_RECORD_PAUSE_S", 3600.0)
    broker = new_broker()
    read = Reader(broker)
    litter(broker, 0, 3_000)
    behind, beside = (key_on(partition, "good").decode() for partition in (0, 1))
    with capture_logs() as logs:
        async with running_guard(broker, WordJudge(), delivery_guarantee=guarantee) as guard:
            await until(lambda: bool(guard.note()))
            send(
                broker,
                [
                    Response(response_id=beside, answer=FAITHFUL),
                    Response(response_id=behind, answer=FAITHFUL),
                ],
            )
            await until(lambda: beside in read.verdicts())
            await until(lambda: len(read.dead_letters()) == 100)
            state = {partition.index: partition for partition in guard.state().partitions}
            assert "rag.responses-0" in guard.note()
            assert not guard.waits_for()
            assert [state[index].unreadable for index in (0, 1)] == [True, False]
            assert state[0].paused
            assert state[0].lag == 2_901  # all that is unread, or read and held back
    assert [entry["partition"] for entry in logs if entry["event"] == "guard.unreadable"] == [
        "rag.responses-0"
    ]
    assert behind not in read.verdicts()
    assert broker.lag("guard", TOPICS.responses) == 2_901

    monkeypatch.setattr("consumers.dead_letters.BAD_RECORD_PAUSE_S", 0.0)
    with capture_logs() as logs:
        async with running_guard(broker, WordJudge(), delivery_guarantee=guarantee) as guard:
            await until(lambda: behind in read.verdicts())
            await until(lambda: len(read.dead_letters()) == 3_000)
            assert [record.value for record in read.dead_letters()] == [b"rubbish"] * 3_000
            await until(lambda: broker.lag("guard", TOPICS.responses) == 0)
            send(broker, (Response(response_id=f"more{n}", answer="") for n in range(2_500)))
            await until(lambda: not guard.note())
    assert "guard.readable_again" in [entry["event"] for entry in logs]
    assert [read.shown(name) for name in (behind, beside)] == [FAITHFUL, FAITHFUL]


async def test_a_partition_that_goes_begins_anew_where_it_is_read_next(
    guarantee: DeliveryGuarantee, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consumers.dead_letters.BAD_RECORD_PAUSE_S", 3600.0)
    broker = new_broker()
    read = Reader(broker)
    litter(broker, 0, 150)
    async with running_guard(broker, WordJudge(), delivery_guarantee=guarantee) as first:
        await until(lambda: bool(first.note()))
        async with running_guard(broker, WordJudge(), delivery_guarantee=guarantee) as second:
            await until(lambda: broker.lag("guard", TOPICS.responses) == 0 or len(read.dead_letters()) >= 150)
            assert not (first.note() and second.note())
    offsets = [dict(record.headers)[PREFIX + "offset"] for record in read.dead_letters()]
    assert set(offsets) == {str(offset).encode() for offset in range(150)}


RUBBISH = [
    (b"", "empty_value"),
    (b"{", "invalid_json"),
    (b"\xff\xfe\x00", "invalid_json"),
    (b"[1, 2]", "invalid_event"),
    (b'{"type": "response.exploded", "response_id": "x"}', "unknown_type"),
    (b'{"type": "response.delta", "schema": 9, "response_id": "x", "seq": 0, "text": ""}', "unknown_schema"),
    (b'{"type": "response.delta", "response_id": "x", "seq": "one", "text": ""}', "invalid_event"),
    (b'{"type": "response.delta", "response_id": "x", "seq": 0, "text": "lost"}', "unknown_response"),
]


@pytest.mark.parametrize(("value", "expected"), RUBBISH)
async def test_rubbish_goes_to_the_dead_letters_byte_for_byte_and_the_stream_goes_on(
    value: bytes, expected: str, guarantee: DeliveryGuarantee
) -> None:
    broker = new_broker(1)
    read = Reader(broker)
    async with running_guard(broker, WordJudge(), delivery_guarantee=guarantee):
        sent = broker.append(TOPICS.responses, None, value, (("mine", b"\x00\xff"),))
        send(broker, events_of("good", FAITHFUL))
        await until(lambda: len(read.verdicts()) == 1)
    [letter] = read.dead_letters()
    assert (letter.key, letter.value or b"") == (None, value)
    assert letter.headers[0] == ("mine", b"\x00\xff")
    headers = dict(letter.headers)
    assert headers[PREFIX + "reason"] == expected.encode()
    assert headers[PREFIX + "topic"] == TOPICS.responses.encode()
    assert int(headers[PREFIX + "offset"] or b"") == sent.offset
    assert read.shown("good") == FAITHFUL


async def test_a_record_without_a_value_is_a_dead_letter_too(guarantee: DeliveryGuarantee) -> None:
    broker = new_broker(1)
    read = Reader(broker)
    async with running_guard(broker, WordJudge(), delivery_guarantee=guarantee):
        broker.append(TOPICS.responses, b"k", None)
        await until(lambda: len(read.dead_letters()) == 1)
    assert read.dead_letters()[0].value is None


async def test_rubbish_under_the_key_of_a_response_ends_that_response_and_no_other(
    guarantee: DeliveryGuarantee,
) -> None:
    broker = new_broker(1)
    read = Reader(broker)
    async with running_guard(broker, WordJudge(), delivery_guarantee=guarantee):
        send(broker, events_of("hit", FAITHFUL, complete=False))
        send(broker, events_of("spared", FAITHFUL, complete=False)[:3])
        broker.append(TOPICS.responses, b"hit", b"rubbish")
        send(broker, events_of("spared", FAITHFUL)[3:])
        await until(lambda: len(read.verdicts()) == 2)
    assert isinstance(read.finals("hit")[0], DeliveryBlocked)
    assert read.shown("spared") == FAITHFUL


async def test_a_chat_service_does_not_wait_for_a_response_whose_start_was_rubbish(
    guarantee: DeliveryGuarantee,
) -> None:
    broker = new_broker(1)
    read = Reader(broker)
    async with running_guard(broker, WordJudge(), delivery_guarantee=guarantee):
        broker.append(TOPICS.responses, b"r", b'{"type": "response.started"}')
        send(broker, events_of("r", FAITHFUL)[1:])
        await until(lambda: bool(read.finals("r")))
    assert isinstance(read.finals("r")[0], DeliveryBlocked)
    assert len(read.dead_letters()) == 1


LAX = PolicyRouter(
    {"strict": Policy(name="strict"), "lax": Policy(name="lax", mode="observe")},
    [
        Route(route="lax", policy="lax"),
        Route(tenant="b*", policy="lax"),
        Route(generator_model="m", policy="lax"),
    ],
    "strict",
)


async def test_producers_choose_no_policy_but_theirs(guarantee: DeliveryGuarantee) -> None:
    broker = new_broker(1)
    read = Reader(broker)
    held: dict[str, Any] = {"router": LAX, "producers": Producers(tenant="acme", routes=("chat", "mail"))}
    named: dict[str, dict[str, str]] = {
        "first": {},
        "mail": {"route": "mail", "tenant": "acme", "generator_model": "m"},
        "lax": {"route": "lax"},
        "other": {"route": "mail", "tenant": "beta"},
    }
    async with running_guard(broker, WordJudge(), delivery_guarantee=guarantee, **held):
        for name, more in named.items():
            start, *rest = events_of(name, WRONG)
            send(broker, [start.model_copy(update=more), *rest])
        broker.append(
            TOPICS.responses, None, Response(response_id="whole", answer=WRONG, route="lax").to_json()
        )
        await until(lambda: all(read.finals(name) for name in (*named, "whole")))
    assert {
        (name, each.tenant, each.route) for name, each in read.verdicts().items() if name in ("first", "mail")
    } == {
        ("first", "acme", "chat"),
        ("mail", "acme", "mail"),
    }
    assert [read.verdicts()[name].policy.name for name in named] == ["strict"] * 4
    assert [reason(each) for each in read.dead_letters()] == [
        "route_not_allowed",
        "tenant_not_allowed",
        "route_not_allowed",
    ]
    for name in ("lax", "other", "whole"):
        (final,) = read.finals(name)
        assert isinstance(final, DeliveryBlocked)
        assert (final.rule, read.shown(name)) == (
            f"{'tenant' if name == 'other' else 'route'}_not_allowed",
            "",
        )


async def test_without_that_setting_producers_choose(guarantee: DeliveryGuarantee) -> None:
    broker = new_broker(1)
    read = Reader(broker)
    async with running_guard(broker, WordJudge(), router=LAX, delivery_guarantee=guarantee):
        start, *rest = events_of("r", WRONG)
        send(broker, [start.model_copy(update={"route": "lax"}), *rest])
        await until(lambda: bool(read.verdicts()))
    assert (read.shown("r"), read.verdicts()["r"].policy.name) == (WRONG, "lax")


@pytest.mark.parametrize(
    ("irregular", "expected_reason", "rule"),
    [
        (lambda e: [*e[:3], *e[4:]], "sequence_gap", "sequence_gap"),
        (lambda e: [*e[:-2], e[-1]], "sequence_gap", "sequence_gap"),
        (
            lambda e: [e[0], e[0].model_copy(update={"question": "Other?"}), *e[1:]],
            "duplicate_start",
            "duplicate_start",
        ),
        (lambda e: [*e, e[-2].model_copy(update={"seq": e[-2].seq + 1})], "response_finished", None),
        (lambda e: [e[0], *e], None, None),
        (lambda e: [*e[:4], e[2], e[3], *e[4:]], None, None),
        (lambda e: [*e, *e], None, None),
        (lambda e: [*e[:-1], ResponseAborted(response_id="r")], None, "aborted"),
    ],
    ids=["gap", "lost-last", "two-starts", "after-end", "start-twice", "repeat", "all-twice", "aborted"],
)
async def test_irregular_sequences_have_a_defined_outcome(  # type: ignore[no-untyped-def]
    irregular, expected_reason, rule, guarantee: DeliveryGuarantee
) -> None:
    broker = new_broker(1)
    read = Reader(broker)
    async with running_guard(broker, WordJudge(), delivery_guarantee=guarantee):
        send(broker, irregular(events_of("r", FAITHFUL)))
        send(broker, events_of("other", FAITHFUL))
        await until(lambda: len(read.verdicts()) == 2)
    assert [reason(letter) for letter in read.dead_letters()] == (
        [expected_reason] if expected_reason else []
    )
    assert len(read.finals("r")) == 1
    assert read.verdicts()["r"].rule == (rule or "score and rules passed")
    assert read.shown("other") == FAITHFUL
    assert broker.lag("guard", TOPICS.responses) == 0


async def test_a_response_that_never_completes_ends_and_lets_go_of_its_offset(
    guarantee: DeliveryGuarantee,
) -> None:
    broker = new_broker(1)
    read = Reader(broker)
    async with running_guard(
        broker, WordJudge(), Policy(incomplete_timeout_ms=30), delivery_guarantee=guarantee
    ):
        send(broker, events_of("r", FAITHFUL, complete=False))
        await until(lambda: bool(read.verdicts()) and broker.lag("guard", TOPICS.responses) == 0)
    assert read.verdicts()["r"].rule == "timed out"


async def test_stopping_waits_for_verdicts_that_are_under_way() -> None:
    broker = new_broker(1)
    judge = GatedJudge()
    read = Reader(broker)
    stop = asyncio.Event()
    guard = guard_on(broker, judge)
    send(broker, events_of("r", FAITHFUL))
    async with asyncio.TaskGroup() as group:
        group.create_task(guard.run(stop))
        await judge.asked.wait()
        stop.set()
        await asyncio.sleep(0.02)
        assert not read.finals("r")
        judge.gate.set()
    assert isinstance(read.finals("r")[0], DeliveryCompleted)
    assert broker.lag("guard", TOPICS.responses) == 0


async def test_a_partition_that_moves_takes_its_responses_along(guarantee: DeliveryGuarantee) -> None:
    broker = new_broker(2)
    read = Reader(broker)
    ids = [f"r{n}" for n in range(8)]
    async with running_guard(broker, WordJudge(), delivery_guarantee=guarantee):
        for name in ids:
            send(broker, events_of(name, FAITHFUL)[:5])
        async with running_guard(broker, WordJudge(), delivery_guarantee=guarantee):
            for name in ids:
                send(broker, events_of(name, FAITHFUL)[5:])
            await until(lambda: len(read.verdicts()) == len(ids))
    assert {name: read.shown(name) for name in ids} == dict.fromkeys(ids, FAITHFUL)
    assert not read.dead_letters()


async def test_reading_pauses_at_the_bounds_and_goes_on_when_there_is_room(
    guarantee: DeliveryGuarantee,
) -> None:
    broker = new_broker(1)
    read = Reader(broker)
    judge = GatedJudge()
    async with running_guard(
        broker, judge, limits=made(Limits, max_sessions=3, resume_at=0.5), delivery_guarantee=guarantee
    ) as guard:
        for n in range(3):
            send(broker, events_of(f"r{n}", FAITHFUL))
        await judge.asked.wait()
        await until(lambda: paused(guard))
        for n in range(3, 9):
            send(broker, events_of(f"r{n}", FAITHFUL))
        judge.gate.set()
        await until(lambda: len(read.verdicts()) == 9)
    assert {v.rule for v in read.verdicts().values()} == {"score and rules passed"}


async def test_a_full_guard_turns_new_responses_away_rather_than_stand_still(
    guarantee: DeliveryGuarantee,
) -> None:
    broker = new_broker(1)
    read = Reader(broker)
    limits = made(Limits, max_sessions=2, resume_at=0.6, overload_grace_ms=30)
    async with running_guard(broker, WordJudge(), limits=limits, delivery_guarantee=guarantee):
        for name in ("a", "b"):
            send(broker, events_of(name, FAITHFUL, complete=False))
        await until(lambda: len(read.events(TOPICS.deliveries)) == 2)
        send(broker, events_of("c", FAITHFUL))
        for name in ("a", "b"):
            send(broker, events_of(name, FAITHFUL)[-1:])
        await until(lambda: len(read.verdicts()) == 3)
    assert read.verdicts()["c"].rule == "overloaded"
    assert read.shown("a") == read.shown("b") == FAITHFUL


async def test_a_guard_that_is_still_connecting_can_be_stopped() -> None:
    connecting = asyncio.Event()

    class Unreachable(MemoryTransport):
        async def start(self, listener) -> None:  # type: ignore[no-untyped-def]
            connecting.set()
            await asyncio.Event().wait()

    async with running_guard(member_of(Unreachable, new_broker(1))):
        await connecting.wait()


async def test_an_event_too_large_for_a_record_is_written_without_its_largest_parts() -> None:
    broker = new_broker(1)
    read = Reader(broker)
    contexts = tuple(Context(id=f"c{n}", text="x" * 10_000) for n in range(3))
    send(broker, [Response(response_id="r", contexts=contexts, answer=WRONG)])
    async with running_guard(broker, max_record_bytes=12_000):
        await until(lambda: bool(read.events(TOPICS.flagged)))
    [case] = read.events(TOPICS.flagged)
    assert isinstance(case, FlaggedCase)
    assert case.omitted == ("contexts",)
    assert [(context.id, context.text) for context in case.contexts] == [("c0", ""), ("c1", ""), ("c2", "")]
    assert case.claims
    assert read.verdicts()["r"].omitted == ()


async def test_rubbish_too_large_for_a_dead_letter_does_not_stop_the_guard() -> None:
    broker = new_broker(1)
    read = Reader(broker)
    broker.append(TOPICS.responses, b"k", b"x" * 20_000)
    async with running_guard(broker, max_record_bytes=12_000):
        await until(lambda: bool(read.dead_letters()))
    [letter] = read.dead_letters()
    assert letter.value is None
    assert dict(letter.headers)[PREFIX + "value-bytes"] == b"20000"
    assert dict(letter.headers)[PREFIX + "offset"] == b"0"


def test_a_long_wait_is_told_once_and_its_end() -> None:
    now = 0.0
    waiting = Waiting("give ids", lambda: now)

    def look(at: float, waits_for: str) -> list[str]:
        nonlocal now
        now = at
        with capture_logs() as logs:
            waiting.look(waits_for, 6)
        return [line["event"] for line in logs]

    told = [look(at, "partitions") for at in (0.0, 2.9, 3.1, 9.0)]
    assert told == [[], [], ["guard.waiting"], []]
    assert look(10.0, "") == ["guard.ready"]
    assert look(11.0, "") == []
    assert look(12.0, "partitions") == []
    assert look(13.0, "") == ["guard.ready"]
    assert look(20.0, "partitions") == []
    assert look(24.0, "partitions") == ["guard.waiting"]


async def test_a_guard_that_reads_says_so() -> None:
    with capture_logs() as logs:
        async with running_guard(new_broker(), WordJudge()):
            await until(lambda: any(line["event"] == "guard.ready" for line in logs))
    assert [line["partitions"] for line in logs if line["event"] == "guard.ready"] != [0]


# ------------------------------------------------------------------ an event that a record can't hold


def claim(index: int, quote_chars: int = 1_000) -> ClaimVerdict:
    quote = Evidence(context_id="c", quote="q" * quote_chars, span=(0, quote_chars))
    said = {"verdict": Verdict.UNSUPPORTED, "support": 0.0, "evidence": (quote,)}
    return claim_verdict("r", index, text="A claim.", span=(0, 8), **said)


def case(contexts: int = 2, claims: int = 2) -> FlaggedCase:
    return flagged_case(
        contexts=tuple(Context(id=f"c{n}", text="x" * 50_000) for n in range(contexts)),
        answer="An answer. " * 100,
        claims=tuple(claim(n) for n in range(claims)),
        metadata={"huge": "y" * 5_000},
    )


def verdict(claims: int) -> ResponseVerdict:
    of = [claim(n) for n in range(claims)]
    return response_verdict("r", of, decision=Decision.FLAG, hallucinated_claims=("A claim.",) * claims)


def test_what_fits_is_untouched() -> None:
    assert value_within(case(), 10_000_000) == (case().to_json(), ())


@pytest.mark.parametrize(
    ("limit", "omitted"),
    [
        (20_000, ("contexts",)),
        (9_000, ("contexts", "claims.evidence")),
        (6_900, ("contexts", "claims.evidence", "claims")),
        (1_700, ("contexts", "claims.evidence", "claims", "metadata")),
    ],
)
def test_a_case_loses_what_is_easiest_to_find_elsewhere_first(limit: int, omitted: tuple[str, ...]) -> None:
    value, left_out = value_within(case(), limit)
    assert len(value) <= limit
    assert left_out == omitted
    found = parse_output(value)
    assert isinstance(found, FlaggedCase)
    assert found.omitted == omitted
    assert found.answer == case().answer


def test_a_verdict_keeps_its_counts_whatever_it_loses() -> None:
    value, left_out = value_within(verdict(500), 5_000)
    found = parse_output(value)
    assert isinstance(found, ResponseVerdict)
    assert found.counts.unsupported == 500
    assert left_out == ("claims.evidence", "claims", "hallucinated_claims")


def test_a_claim_keeps_its_verdict() -> None:
    value, left_out = value_within(claim(0, 100_000), 2_000)
    assert len(value) <= 2_000
    assert left_out == ("evidence",)
