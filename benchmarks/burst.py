"""What a burst of answers does to their readers: ``python -m benchmarks.burst``.

    python -m benchmarks.burst [--answers 1000] [--seconds 3.6] [--through topics|python] [--rounds 1]
        [--claim-timeout-ms 10000]

So many answers begin at once, each written word by word in ``--seconds``: two claims on one context, right
but for every tenth, whose price is wrong. The guard is the usual one (default policy, local judge): as a
consumer on an in-process broker, to which the answers are written whether the guard keeps up or not
(``topics``), or as the Python API, which takes the words from the models itself (``python``).

Printed: answers by decision; right ones withheld, and those of them that had no verdict in time; wrong ones
that went out without a flag; claims checked in part, and how many of these are SUPPORTED; how long after the
model would have ended an answer did (p50, p99, most); and claims judged a second, with the processor time of
one. With a ``--claim-timeout-ms`` of an hour the judge is never behind: its pace without any regulation.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Final

import uvloop

from benchmarks.frame import command_line
from consumers.guarantee import GuardOptions
from consumers.guard import GuardConsumer
from consumers.memory import MemoryBroker, MemoryTransport
from consumers.settings import Topics
from guardrail import Guard
from guardrail.config import LoggingSettings
from guardrail.events import (
    Decision,
    Event,
    ResponseCompleted,
    ResponseDelta,
    ResponseStarted,
    ResponseVerdict,
    Verdict,
    parse_output,
)
from guardrail.judges.local import LocalJudge
from guardrail.logs import configure_logging
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter

PARTITIONS: Final = 6
_WRONG_ONE_IN: Final = 10
_LOOK_S: Final = 0.05


def context_of(number: int) -> str:
    """What an answer is based on."""
    return (
        f"The basic plan costs ${30 + number % 60} a month. Refunds are paid within {10 + number % 20} days."
    )


def is_wrong(number: int) -> bool:
    """Whether this answer states a wrong price."""
    return number % _WRONG_ONE_IN == 0


def words_of(number: int) -> list[str]:
    """The answer, word by word."""
    text = context_of(number)
    if is_wrong(number):
        text = text.replace(f"${30 + number % 60}", f"${130 + number % 60}")
    words = text.split()
    return [f"{word} " for word in words[:-1]] + words[-1:]


@dataclass(slots=True)
class Tally:
    """What became of the answers."""

    delays: list[float] = field(default_factory=list)
    decisions: dict[Decision, int] = field(default_factory=lambda: dict.fromkeys(Decision, 0))
    withheld_right: int = 0
    in_no_time: int = 0
    wrong_clean: int = 0
    unread_clean: int = 0
    claims: int = 0
    in_part: int = 0

    def note(self, number: int, verdict: ResponseVerdict, delay: float) -> None:
        """One answer is decided, ``delay`` seconds after the model's last word."""
        self.delays.append(delay)
        self.decisions[verdict.decision] += 1
        unverified = any(claim.verdict is Verdict.UNVERIFIED for claim in verdict.claims)
        if verdict.decision is Decision.BLOCK and not is_wrong(number):
            self.withheld_right += 1
            self.in_no_time += unverified
        self.wrong_clean += verdict.decision is Decision.RELEASE and is_wrong(number)
        self.claims += len(verdict.claims)
        in_part = [claim for claim in verdict.claims if "checked_in_part" in claim.findings]
        self.in_part += len(in_part)
        self.unread_clean += sum(claim.verdict is Verdict.SUPPORTED for claim in in_part)

    def __str__(self) -> str:
        shares = ", ".join(f"{decision.value} {number:,}" for decision, number in self.decisions.items())
        delays = sorted(self.delays)
        late = [statistics.median(delays), delays[int(len(delays) * 0.99)], delays[-1]]
        return (
            f"{shares}; right ones withheld {self.withheld_right:,} ({self.in_no_time:,} for time); "
            f"wrong ones clean {self.wrong_clean}; claims checked in part {self.in_part:,} "
            f"({self.unread_clean} SUPPORTED); delay {' / '.join(f'{one:.1f}' for one in late)} s"
        )


async def through_python(answers: int, seconds: float, policy: Policy) -> Tally:
    """The Python API: one process has the models and the guard."""
    tally = Tally()

    async def model(number: int) -> AsyncIterator[str]:
        words = words_of(number)
        for word in words:
            yield word
            await asyncio.sleep(seconds / len(words))

    async def one(guard: Guard, number: int) -> None:
        began = time.monotonic()
        async for event in guard.stream("", [context_of(number)], model(number)):
            if isinstance(event, ResponseVerdict):
                tally.note(number, event, time.monotonic() - began - seconds)

    async with Guard(policy=policy) as guard, asyncio.TaskGroup() as group:
        for number in range(answers):
            group.create_task(one(guard, number))
    return tally


def _put(broker: MemoryBroker, topic: str, events: Iterable[Event]) -> None:
    for event in events:
        broker.append(topic, event.response_id.encode(), event.to_json())  # type: ignore[attr-defined]


async def _write(broker: MemoryBroker, topic: str, answers: int, seconds: float) -> None:
    """All answers, a word of each at a time."""
    texts = {f"burst-{number}": words_of(number) for number in range(answers)}
    contexts = {f"burst-{number}": context_of(number) for number in range(answers)}
    _put(
        broker,
        topic,
        (
            ResponseStarted.model_validate(
                {"response_id": name, "question": "", "contexts": [{"id": "c", "text": text}]}
            )
            for name, text in contexts.items()
        ),
    )
    most = max(map(len, texts.values()))
    began = time.monotonic()
    for seq in range(most):
        for name, words in texts.items():
            if seq < len(words):
                _put(broker, topic, [ResponseDelta(response_id=name, seq=seq, text=words[seq])])
        await asyncio.sleep(max(0.0, began + seconds * (seq + 1) / most - time.monotonic()))
    _put(
        broker, topic, (ResponseCompleted(response_id=name, seq=len(words)) for name, words in texts.items())
    )


async def through_topics(answers: int, seconds: float, policy: Policy) -> Tally:
    """A guard on an in-process broker, and answers that are written at their own pace."""
    tally, topics = Tally(), Topics()
    broker = MemoryBroker(dict.fromkeys(topics.names(), PARTITIONS), compacted=[topics.sessions])
    judge = LocalJudge()
    guard = GuardConsumer(
        MemoryTransport(broker, "guard", topics.responses, sessions_topic=topics.sessions),
        judge,
        PolicyRouter.single(policy),
        GuardOptions(topics=topics),
    )
    stop, read = asyncio.Event(), [0] * PARTITIONS
    running = asyncio.create_task(guard.run(stop))
    began = time.monotonic()
    writing = asyncio.create_task(_write(broker, topics.responses, answers, seconds))
    while len(tally.delays) < answers and not running.done():
        await asyncio.sleep(_LOOK_S)
        for index in range(PARTITIONS):
            fresh = broker.read(topics.verdicts, index, read[index])
            read[index] += len(fresh)
            for event in (parse_output(record.value or b"") for record in fresh):
                if isinstance(event, ResponseVerdict):
                    number = int(event.response_id.removeprefix("burst-"))
                    tally.note(number, event, time.monotonic() - began - seconds)
    await writing
    stop.set()
    await running
    await judge.aclose()
    return tally


def main() -> None:
    """Command line."""
    parser = command_line(__doc__)
    parser.add_argument("--answers", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=3.6)
    parser.add_argument("--through", choices=["topics", "python"], action="append")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--claim-timeout-ms", type=int, default=10_000)
    arguments = parser.parse_args()
    policy = Policy(claim_timeout_ms=arguments.claim_timeout_ms)
    configure_logging(LoggingSettings(level="warning"))
    for way in arguments.through or ["topics", "python"]:
        for _ in range(arguments.rounds):
            run = through_topics if way == "topics" else through_python
            began, busy = time.monotonic(), time.process_time()
            tally = uvloop.run(run(arguments.answers, arguments.seconds, policy))
            rate = tally.claims / (time.monotonic() - began)
            cost = (time.process_time() - busy) / tally.claims
            pace = f"{rate:.0f} claims a second, {cost * 1000:.1f} ms each"
            print(f"{way:<7} {arguments.answers:,} answers: {tally}; {pace}")


if __name__ == "__main__":
    main()
