"""At least once: however often guards crash, stop, start and share the work, every answer arrives.

And it arrives once by id: what is written twice after a crash has the id it had the first time.
"""

from __future__ import annotations

import asyncio
import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st

from consumers.memory import MemoryBroker
from guardrail.events import DeliverySegment, Event
from tests.support.guards import TOPICS, Reader, events_of, guard_on, new_broker, send, until

FAITHFUL = "Paris is in France. Rome is in Italy. Hello! Oslo is in Norway. "
WRONG = "Paris is in France. It costs wrong $79. Oslo is in Norway. "
RESPONSES = {"a": FAITHFUL, "b": WRONG, "c": FAITHFUL, "d": "Hello! ", "e": FAITHFUL}
SHOWN = {"a": FAITHFUL, "b": "Paris is in France. ", "c": FAITHFUL, "d": "Hello! ", "e": FAITHFUL}

steps = st.lists(
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


class Fleet:
    """Guards of one group, started, stopped and crashed at will."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker
        self._guards: list[tuple[asyncio.Task[None], asyncio.Event]] = []

    def start(self) -> None:
        if len(self._guards) < 2:
            guard = guard_on(
                self._broker, delivery_guarantee="at_least_once", poll_timeout_ms=2, commit_interval_ms=1
            )
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

    async def close(self) -> None:
        while self._guards:
            await self.end(crash=False)


async def live(plan: list[tuple[str, str, int]]) -> Reader:
    broker = new_broker(2)
    fleet = Fleet(broker)
    fleet.start()
    waiting: dict[str, list[Event]] = {name: events_of(name, text) for name, text in RESPONSES.items()}
    for step, name, number in plan:
        if step == "send":
            send(broker, waiting[name][:number])
            del waiting[name][:number]
        elif step == "start":
            fleet.start()
        elif step == "work":
            await asyncio.sleep(number / 1000)  # positions are committed by time
        else:
            await fleet.end(crash=step == "crash")
    fleet.start()
    for name in RESPONSES:
        send(broker, waiting[name])
    await until(lambda: broker.lag("guard", TOPICS.responses) == 0)
    await fleet.close()
    return Reader(broker)


@settings(max_examples=200)
@given(plan=steps)
def test_every_answer_arrives_whatever_happens_to_the_guards(plan: list[tuple[str, str, int]]) -> None:
    read = asyncio.run(live(plan))
    assert {name: read.shown(name) for name in RESPONSES} == SHOWN
    assert read.dead_letters() == []
    for name in RESPONSES:
        assert len({event.id for event in read.finals(name)}) == 1
    by_place: dict[tuple[str, int], DeliverySegment] = {}
    for event in read.events(TOPICS.deliveries):
        if isinstance(event, DeliverySegment):
            first = by_place.setdefault((event.response_id, event.seq), event)
            assert (event.id, event.text, event.span) == (first.id, first.text, first.span)
