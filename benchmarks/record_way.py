"""The way of one record through the guard: what its delta passes, from being taken to its delivery.

    python -m benchmarks.record_way [--calls]

A guard on the memory transport, exactly once, with a judge that answers at once, has the beginning of a
response. Then comes one delta, which makes a sentence whole. Every function of the product that is entered is
noted in order, in whatever task, from ``Intake.take`` until the step with the delivery of that sentence is
handed to the transport. What claims/, figures/, evidence/ and scoring compute is counted where they are
entered and not below: that is work on the text and no way. The reading loop and the engine's beat, which go
on meanwhile, are left out. A coroutine counts when it begins, a comprehension with its function.

Printed are the functions entered; the returns, which are entries into a module that had been left before;
and the entries into guardrail/engine/engine.py from another module. ``--calls`` prints the way itself.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.frame import command_line
from benchmarks.instant_judge import InstantJudge
from consumers.guarantee import GuardOptions
from consumers.guard import GuardConsumer
from consumers.memory import MemoryBroker, MemoryTransport
from consumers.settings import Topics
from guardrail.config import LoggingSettings
from guardrail.events import Context, ResponseDelta, ResponseStarted
from guardrail.logs import configure_logging
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter

TOPICS = Topics()
ROOT = Path(__file__).resolve().parent.parent
ENGINE = "guardrail/engine/engine.py"
COMPUTING = ("guardrail/claims/", "guardrail/figures/", "guardrail/evidence/", "guardrail/scoring.py")
"""Counted where they are entered."""
FIRST, LAST = "Intake.take", "MemoryTransport.transact"
LOOPS = ("GuardConsumer._read", "Engine._beat", "Engine._turned", "_delivered")
PIECES = ("The tower was ", "built in 1889. It", " has three ", "levels", ". They")
"""The last piece shows that the second sentence is whole."""


class Way:
    """The functions of the product that are entered, in order, as (module, function)."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def begin(self) -> None:
        """Note from the next record on that is taken."""
        sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_qualname
        if event != "call" or _resumed(frame) or name.endswith(("comp>", "<genexpr>")):
            return
        module = _module(frame)
        if module is None or (not self.calls and name != FIRST) or _left_out(name, frame.f_back):
            return
        self.calls.append((module, name))
        if name == LAST:
            sys.setprofile(None)

    def switches(self) -> list[str]:
        """The modules, in the order in which they are entered from others."""
        modules = [module for module, _ in self.calls]
        return [module for before, module in zip([None, *modules], modules, strict=False) if module != before]


def _resumed(frame: FrameType) -> bool:
    return frame.f_code.co_code[frame.f_lasti + 1] != 0  # RESUME, with why: 0 is the beginning


def _module(frame: FrameType) -> str | None:
    path = Path(frame.f_code.co_filename)
    module = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""
    return module if module.startswith(("guardrail/", "consumers/")) else None


def _left_out(name: str, caller: FrameType | None) -> bool:
    """Whether this is part of a computing room's work, of the reading loop, or of this script's waiting."""
    while name not in LOOPS and caller is not None and name != FIRST:
        name = caller.f_code.co_qualname
        if (_module(caller) or "").startswith(COMPUTING):
            return True
        caller = caller.f_back
    return name in LOOPS


async def traced() -> Way:
    """The way of the last of ``PIECES``."""
    broker = MemoryBroker(dict.fromkeys(TOPICS.names(), 1), compacted=[TOPICS.sessions])
    transport = MemoryTransport(broker, "guard", TOPICS.responses, sessions_topic=TOPICS.sessions)
    guard = GuardConsumer(
        transport, InstantJudge(), PolicyRouter.single(Policy(mode="stream")), GuardOptions(topics=TOPICS)
    )
    stop, way = asyncio.Event(), Way()
    running = asyncio.create_task(guard.run(stop))
    head = ResponseStarted(response_id="r", contexts=(Context(id="c1", text="Built in 1889; three levels."),))
    deltas = [ResponseDelta(response_id="r", seq=seq, text=text) for seq, text in enumerate(PIECES)]
    for event in (head, *deltas[:-1]):
        broker.append(TOPICS.responses, b"r", event.to_json())
    await _delivered(broker, 1)
    await asyncio.sleep(1.0)  # the guard has stored everything and waits for records
    way.begin()
    broker.append(TOPICS.responses, b"r", deltas[-1].to_json())
    await _delivered(broker, 2)
    stop.set()
    await running
    return way


async def _delivered(broker: MemoryBroker, segments: int) -> None:
    async with asyncio.timeout(60):
        while len(broker.records(TOPICS.deliveries)) < segments:  # noqa: ASYNC110 - only the topic counts
            await asyncio.sleep(0)


def main() -> None:
    """Command line."""
    parser = command_line(__doc__)
    parser.add_argument("--calls", action="store_true", help="print every function entered")
    arguments = parser.parse_args()
    configure_logging(LoggingSettings(level="error"))
    way = asyncio.run(traced())
    if arguments.calls:
        for module, name in way.calls:
            print(f"{module:<40} {name}")
    entered, times = Counter(module for module, _ in way.calls), Counter(way.switches())
    print(f"{'module':<40} {'functions entered':>17} {'returns':>8}")
    for module, number in entered.most_common():
        print(f"{module:<40} {number:>17} {times[module] - 1:>8}")
    print(f"{'together':<40} {len(way.calls):>17} {sum(times.values()) - len(times):>8}")
    print(f"entries into {ENGINE}: {times[ENGINE]}")


if __name__ == "__main__":
    main()
