"""However often guards crash, stop, start and share the work: every answer arrives, by either guarantee.

At least once, what is written twice after a crash has the id that it had the first time. Exactly once,
nothing is written twice, and steps fail too: one that fails may have been applied or not, and the guard can't
know which.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from consumers.memory import MemoryBroker
from guardrail.events import ClaimVerdict, DeliverySegment, Event
from guardrail.judges import Judgement, JudgeRequest
from guardrail.limits import Limits
from tests.support.constants import made
from tests.support.faulty_transport import Fault, FaultyTransport
from tests.support.guards import TOPICS, Reader, events_of, guard_on, member_of, new_broker, send, until
from tests.support.judges import WordJudge

FAITHFUL = "Paris is in France. Rome is in Italy. Hello! Oslo is in Norway. "
WRONG = "Paris is in France. It costs wrong $79. Oslo is in Norway. "
RESPONSES = {"a": FAITHFUL, "b": WRONG, "c": FAITHFUL, "d": "Hello! ", "e": FAITHFUL}
SHOWN = {"a": FAITHFUL, "b": "Paris is in France. ", "c": FAITHFUL, "d": "Hello! ", "e": FAITHFUL}
LIMITS = made(Limits, finished_response_ttl_ms=60_000)

plans = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.sampled_from(sorted(RESPONSES)), st.sampled_from([1, 5, 9, 30])),
        st.tuples(
            st.sampled_from(["start", "crash", "stop", "work", "work", "work"]),
            st.just(""),
            st.integers(0, 3),
        ),
    ),
    min_size=8,
    max_size=30,
)
faults = st.lists(st.sampled_from([None, None, None, "before", "after", "lost"]), max_size=12)


class Explaining(WordJudge):
    """Gives reasons a moment after its verdicts."""

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        async for each in super().judge(request):
            yield replace(each, explain=_because)


async def _because(final: Judgement) -> str:
    del final
    return await asyncio.sleep(0.004, "Because.")


class Fleet:
    """Guards of one group, started, stopped and crashed at will; exactly once with planned faults."""

    def __init__(self, broker: MemoryBroker, planned: list[Fault] | None, *, explaining: bool) -> None:
        self._broker = broker
        self._judge = Explaining() if explaining else WordJudge()
        self._exactly = planned is not None
        self._faults: Iterator[Fault] = iter(planned or ())
        self._guards: list[tuple[asyncio.Task[None], asyncio.Event]] = []

    def start(self) -> None:
        if len(self._guards) < 2:
            quick: dict[str, Any] = {"poll_timeout_ms": 2, "commit_interval_ms": 1}
            if self._exactly:
                transport = member_of(FaultyTransport, self._broker)
                transport.next_fault = lambda: next(self._faults, None)
                guard = guard_on(transport, self._judge, limits=LIMITS, commit_gap_ms=0, **quick)
            else:
                guard = guard_on(self._broker, self._judge, delivery_guarantee="at_least_once", **quick)
            stop = asyncio.Event()
            self._guards.append((asyncio.ensure_future(guard.run(stop)), stop))

    async def end(self, *, crash: bool) -> None:
        if self._guards:
            task, stop = self._guards.pop(0)
            if crash:
                task.cancel()
            else:
                stop.set()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def rejoin(self) -> None:
        """A partition that was lost comes back with a rebalance only: let one guard go and another join."""
        await self.end(crash=False)
        self.start()

    async def close(self) -> None:
        while self._guards:
            await self.end(crash=False)


async def live(
    plan: list[tuple[str, str, int]], planned: list[Fault] | None, *, explaining: bool = False
) -> Reader:
    broker = new_broker(2)
    fleet = Fleet(broker, planned, explaining=explaining)
    fleet.start()
    waiting: dict[str, list[Event]] = {name: events_of(name, text) for name, text in RESPONSES.items()}
    for step, name, number in plan:
        if step == "send":
            send(broker, waiting[name][:number])
            del waiting[name][:number]
        elif step == "start":
            fleet.start()
        elif step == "work":
            await asyncio.sleep(number / 1000)  # steps are taken, and positions committed, by time
        else:
            await fleet.end(crash=step == "crash")
    for name in RESPONSES:
        send(broker, waiting[name])
    fleet.start()
    read = Reader(broker)
    if planned is None:
        await until(lambda: broker.lag("guard", TOPICS.responses) == 0)
    for _ in range(0 if planned is None else len(planned) + 1):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.3):
                await until(
                    lambda: all(read.finals(name) for name in RESPONSES) and nothing_in_flight(broker)
                )
            break
        await fleet.rejoin()
    await fleet.close()
    return read


def nothing_in_flight(broker: MemoryBroker) -> bool:
    """Is all input read, and every session closed?"""
    return broker.lag("guard", TOPICS.responses) == 0 and kinds_of_state(broker) <= {b"finished", b"policy"}


def kinds_of_state(broker: MemoryBroker) -> set[bytes]:
    return {(record.key or b"").split(b"/")[1] for record in broker.records(TOPICS.sessions)}


def seqs(read: Reader, name: str) -> list[int]:
    events = read.events(TOPICS.deliveries)
    return [e.seq for e in events if isinstance(e, DeliverySegment) and e.response_id == name]


@settings(max_examples=100)
@given(plan=plans, planned=faults, explaining=st.booleans())
def test_every_event_comes_exactly_once_whatever_happens(
    plan: list[tuple[str, str, int]], planned: list[Fault], explaining: bool
) -> None:
    read = asyncio.run(live(plan, planned, explaining=explaining))
    assert read.dead_letters() == []
    assert {name: read.shown(name) for name in RESPONSES} == SHOWN
    for name in RESPONSES:
        assert seqs(read, name) == list(range(len(seqs(read, name)))), "in order, none twice"
        assert len(read.finals(name)) == 1
    for topic in (TOPICS.deliveries, TOPICS.verdicts, TOPICS.flagged):
        ids = Counter(event.id for event in read.events(topic))
        assert {event_id: count for event_id, count in ids.items() if count > 1} == {}
    verdicts = read.events(TOPICS.verdicts)
    claims: dict[str, list[int]] = {event.response_id: [] for event in verdicts}
    for event in verdicts:
        if isinstance(event, ClaimVerdict):
            claims[event.response_id].append(event.index)
    assert all(sorted(indices) == list(range(len(indices))) for indices in claims.values())
    assert Counter(e.response_id for e in verdicts if not isinstance(e, ClaimVerdict)) == dict.fromkeys(
        RESPONSES, 1
    )
    assert nothing_in_flight(read.broker)


@settings(max_examples=200)
@given(plan=plans)
def test_every_answer_arrives_whatever_happens_to_the_guards(plan: list[tuple[str, str, int]]) -> None:
    read = asyncio.run(live(plan, None))
    assert {name: read.shown(name) for name in RESPONSES} == SHOWN
    assert read.dead_letters() == []
    for name in RESPONSES:
        assert len({event.id for event in read.finals(name)}) == 1
    by_place: dict[tuple[str, int], DeliverySegment] = {}
    for event in read.events(TOPICS.deliveries):
        if isinstance(event, DeliverySegment):
            first = by_place.setdefault((event.response_id, event.seq), event)
            assert (event.id, event.text, event.span) == (first.id, first.text, first.span)
