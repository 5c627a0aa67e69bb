"""Runs a group: ``python -m tests.golden.replay GROUP`` prints a JSON line with what came of each case.

``--moved SEED …`` runs all of them once more for each seed, with every probability of the verifier moved a
little, as another processor might; ``--all`` runs the cases too that are left out of a sample for what comes
of that. Without a group it reads such arguments, a line each, and ends what it prints of each with an empty
line: to load the judge takes as long as many cases.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import random
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from tests.golden.still import UNIX_AT_START, StillLoop, stand_still
from tests.support.constants import made

if __name__ == "__main__":
    stand_still()  # ahead of whatever may import the guard

from consumers.guarantee import GuardOptions
from consumers.guard import GuardConsumer
from consumers.memory import MemoryBroker, MemoryTransport
from consumers.settings import GuardSettings
from guardrail import Guard, build_judge
from guardrail.judges.model import Reading, Verifier
from tests.golden.cases import STREAMED_CHARS, Case, Step, load
from tests.golden.judges import SERVER
from tests.support.llm_server import (
    Behaviour,
    Cut,
    Hang,
    LlmServer,
    Outcome,
    Recorded,
    Reply,
    Status,
    StreamError,
    Wire,
    refusing,
    refusing_field,
)

PARTITIONS: Final = 3
_PAUSE_MS: Final = 20
_LONGEST_S: Final = 3_600.0
_EVENT_TYPES: Final = {
    "whole": "response",
    **{n: f"response.{n}" for n in ("started", "completed", "aborted")},
}
_HEADS: Final = ("started", "whole")
_kept_judges: dict[str, Any] = {}
_MOVED: Final = 0.6
"""In log-odds: 0.15 of a probability of a half, 0.07 of one of 0.87. Below 0.05 and above 0.95 it is more
than any processor that was tried moves one (``python -m benchmarks.instruction_sets``)."""


def run(case: Case) -> dict[str, Any]:
    """What was sent, and every record that was written, by topic."""
    with asyncio.Runner(loop_factory=StillLoop) as runner:
        return runner.run(_run(case))


async def _run(case: Case) -> dict[str, Any]:
    async with LlmServer(*map(_behaviour, case.server)) as server:
        SERVER.set(server.url)
        values = json.loads(json.dumps(dict(case.settings)).replace("SERVER", server.url))
        settings = made(GuardSettings, **values)
        async with _judge(settings) as judge:
            through = _through_guard if case.through == "python" else _through_broker
            result = await through(case, settings, judge)
    result["calls"] = [_told(call) for call in server.calls]
    return {"case": case.id, "through": case.through, **result}


@contextlib.asynccontextmanager
async def _judge(settings: GuardSettings) -> AsyncIterator[Any]:
    """The judge of the settings. The local one keeps nothing between answers, and takes time to load."""
    key = settings.judge.model_dump_json()
    judge = _kept_judges.get(key)
    if judge is not None:
        yield judge
        return
    judge = build_judge(settings.judge)
    if settings.judge.kind == "local":
        _kept_judges[key] = judge
        yield judge
        return
    try:
        yield judge
    finally:
        await judge.aclose()


# ------------------------------------------------------------------------------------- through the broker


class _Sender:
    """Writes the records of a case."""

    def __init__(self, case: Case, send: Callable[[dict[str, Any]], None]) -> None:
        self._case = case
        self._send = send
        self._seqs: dict[str, int] = {}
        self.begun: list[str] = []

    async def take(self, step: Step) -> None:
        pause_ms = step.get("pause_ms", _PAUSE_MS)
        for record in self._records(step):
            self._send(record)
            await asyncio.sleep(pause_ms / 1000)

    def _records(self, step: Step) -> Iterator[dict[str, Any]]:
        response_id = str(step.get("id", self._case.id))
        key = step.get("key", response_id)
        headers = [[name, value] for name, value in step.get("headers", {}).items()]
        for value in self._values(step, response_id):
            yield {"key": key, "value": value, "headers": headers}

    def _values(self, step: Step, response_id: str) -> Iterator[str]:
        if "raw" in step:
            yield step["raw"]
            return
        if "hex" in step:
            yield bytes.fromhex(step["hex"]).decode("utf-8", "surrogateescape")
            return
        for name, kind in _EVENT_TYPES.items():
            if name in step:
                told = step[name]
                fields = {"answer": told} if name == "whole" and isinstance(told, str) else told or {}
                if name in _HEADS:
                    fields = {**self._case.head, **fields}
                    self.begun.append(response_id)
                if name in ("completed", "aborted"):
                    fields = {"seq": self._seqs.get(response_id, 0), **fields}
                yield _json({"type": kind, "response_id": response_id, **fields})
                return
        if "text" in step:
            text, size = step["text"], step.get("step", STREAMED_CHARS)
            deltas = [{"text": text[at : at + size]} for at in range(0, len(text), size)]
        else:
            deltas = [{"text": step["delta"]} if isinstance(step["delta"], str) else step["delta"]]
        for delta in deltas:
            seq = delta.get("seq", self._seqs.get(response_id, 0))
            self._seqs[response_id] = max(seq + 1, self._seqs.get(response_id, 0))
            yield _json({"type": "response.delta", "response_id": response_id, "seq": seq, **delta})


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogateescape")


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogateescape")


async def _through_broker(case: Case, settings: GuardSettings, judge: Any) -> dict[str, Any]:
    topics = settings.kafka.topics
    broker = MemoryBroker(dict.fromkeys(topics.names(), PARTITIONS), compacted=[topics.sessions])
    sent: list[dict[str, Any]] = []

    def send(record: dict[str, Any]) -> None:
        headers = tuple((name, _bytes(value)) for name, value in record["headers"])
        at_ms = round(UNIX_AT_START * 1000) + len(sent)
        written = broker.append(
            topics.responses, _bytes(record["key"]), _bytes(record["value"]), headers, at_ms
        )
        place = {"topic": written.partition.topic, "partition": written.partition.index}
        sent.append(record | place | {"offset": written.offset, "timestamp": at_ms})

    def unanswered() -> set[str]:
        written = [record.value or b"" for record in broker.records(topics.verdicts)]
        verdicts = [event for value in written if (event := json.loads(value))["type"] == "verdict.response"]
        return set(sender.begun) - {event["response_id"] for event in verdicts}

    sender = _Sender(case, send)
    guard = _Running(case, settings, broker, judge)
    await guard.start()
    for step in case.steps:
        if "wait_ms" in step:
            await asyncio.sleep(step["wait_ms"] / 1000)
        elif "restart" in step:
            await guard.end(orderly=step["restart"] == "stop")
            await guard.start()
        elif "reread" in step:
            for record in sent[:]:
                send({name: record[name] for name in ("key", "value", "headers")})
        else:
            await sender.take(step)
    waited = _PAUSE_MS / 1000
    while unanswered() and waited < _LONGEST_S:
        await asyncio.sleep(waited)
        waited *= 2
    await asyncio.sleep(1.0)
    await guard.end(orderly=True)
    roles = ("deliveries", "verdicts", "flagged", "dead_letters")
    written = {role: [_record(one) for one in broker.records(getattr(topics, role))] for role in roles}
    return {
        "sent": sent,
        "written": written,
        "unread": broker.lag("guard", topics.responses),
        "failed": guard.failed,
    }


def _record(record: Any) -> dict[str, Any]:
    return {
        "partition": record.partition.index,
        "key": _text(record.key),
        "headers": [[name, _text(value)] for name, value in record.headers],
        "value": _text(record.value),
    }


class _Running:
    """One guard after another on a broker."""

    def __init__(self, case: Case, settings: GuardSettings, broker: MemoryBroker, judge: Any) -> None:
        self._case = case
        self._settings = settings
        self._broker = broker
        self._judge = judge
        self._task: asyncio.Task[None]
        self._stop = asyncio.Event()
        self.failed: str | None = None

    async def start(self) -> None:
        settings = self._settings
        topics, guarantee = settings.kafka.topics, settings.kafka.delivery_guarantee
        sessions = topics.sessions if guarantee == "exactly_once" else None
        options = {"poll_timeout_ms": 5_000, **self._case.guard}
        guard = GuardConsumer(
            MemoryTransport(self._broker, "guard", topics.responses, sessions_topic=sessions),
            self._judge,
            settings.router(),
            GuardOptions(limits=settings.limits, topics=topics, delivery_guarantee=guarantee, **options),
        )
        self._stop = asyncio.Event()
        self._task = asyncio.create_task(guard.run(self._stop))
        await asyncio.sleep(_PAUSE_MS / 1000)

    async def end(self, *, orderly: bool) -> None:
        if orderly:
            self._stop.set()
        else:
            self._task.cancel()
        try:
            await self._task
        except asyncio.CancelledError:
            pass
        except Exception as error:  # noqa: BLE001 - that the guard stops, and with what, is part of what it does
            self.failed = type(error).__name__


# --------------------------------------------------------------------------------- through the Python API


async def _through_guard(case: Case, settings: GuardSettings, judge: Any) -> dict[str, Any]:
    events: list[Any] = []
    fields = {name: value for name, value in case.head.items() if name not in {"question", "contexts"}}
    about = (case.head.get("question", ""), case.head.get("contexts", []))
    failed = None
    async with Guard(judge, router=settings.router(), limits=settings.limits) as guard:
        whole = next((step["whole"] for step in case.steps if "whole" in step), None)
        try:
            if whole is not None:
                events.append(await guard.check(*about, whole, response_id=case.id, **fields))
            else:
                deltas = _deltas(case.steps)
                async for event in guard.stream(*about, deltas, response_id=case.id, **fields):
                    events.append(event)  # noqa: PERF401 - what came before an error counts
        except Exception as error:  # noqa: BLE001 - what a caller gets to see
            failed = type(error).__name__
    place = {"partition": 0, "key": case.id, "headers": []}
    records = [{**place, "value": _text(event.to_json())} for event in events]
    head = {"type": "response", "response_id": case.id, **case.head}
    head["answer"] = "".join(step.get("whole", step.get("text", "")) for step in case.steps)
    sent = [{"key": case.id, "value": _json(head), "headers": [], "partition": 0, "offset": 0}]
    return {"sent": sent, "written": {"python": records}, "unread": 0, "failed": failed}


async def _deltas(steps: Sequence[Step]) -> AsyncIterator[str]:
    for step in steps:
        text, size = step.get("text", ""), step.get("step", STREAMED_CHARS)
        for at in range(0, len(text), size):
            yield text[at : at + size]
            await asyncio.sleep(step.get("pause_ms", _PAUSE_MS) / 1000)
        if "wait_ms" in step:
            await asyncio.sleep(step["wait_ms"] / 1000)
        if "aborted" in step:
            raise ConnectionError


# --------------------------------------------------------------------------------------- the model server


def _behaviour(told: Mapping[str, Any]) -> Behaviour:
    """What the server does with a call: a reply, 16 characters a millisecond, or something else.

    Named by one of ``reply`` (a text), ``says`` (a verdict for all claims that are asked for), ``judges``
    (see ``_judging``), ``status`` and ``hang``. A reply can be ``cut``, have an ``error`` in its stream, or
    come only for calls without what the server ``refuses``.
    """
    times = {"first_pause_s": told.get("after_ms", 0) / 1000, "pause_s": told.get("pause_ms", 1) / 1000}
    wire = Wire(**times, **told.get("wire", {}))
    more = {name: told[name] for name in ("finish_reason", "refusal", "usage") if name in told}
    if "judges" in told:
        return _judging(told)
    if "status" in told:
        return Status(
            told["status"], dict(told.get("error", {})), dict(told.get("headers", {})), told.get("raw")
        )
    if "says" in told:
        verdict = told["says"]

        def content(call: Recorded) -> str:
            return json.dumps({"v": [f"{label} {verdict}" for label in call.asked]})

        reply = Reply(content, wire=wire, **more)
    else:
        reply = Reply(told.get("reply"), wire=wire, **more)
    if "hang" in told:
        return Hang(told["hang"].get("after") if isinstance(told["hang"], Mapping) else None, reply)
    if "cut" in told:
        return Cut(reply=reply, **told["cut"])
    if "error" in told:
        return StreamError(after=told["error"], reply=reply)
    if "refuses" in told:
        return refusing(*told["refuses"], then=reply)
    if "refuses_field" in told:
        return refusing_field(told["refuses_field"], then=reply)
    return reply


def _judging(told: Mapping[str, Any]) -> Behaviour:
    """A judge of one's own behind HTTP: ``judges`` maps words of a claim to its verdict; else SUPPORTED."""

    def verdict(claim: Mapping[str, Any]) -> dict[str, Any]:
        for words, fields in told["judges"].items():
            if words in claim["text"]:
                return {"id": claim["id"], "verdict": "SUPPORTED", "confidence": 0.9, **fields}
        return {"id": claim["id"], "verdict": "SUPPORTED", "confidence": 0.9, "support": 0.95}

    def behave(call: Recorded) -> Status:
        verdicts = [verdict(claim) for claim in call.body["claims"]]
        left_out = [each for each in verdicts if each["verdict"] != "left out"]
        return Status(200, raw=json.dumps({"verdicts": left_out}))

    return behave


def _told(call: Recorded) -> dict[str, Any]:
    """A call as far as others can rely on it: which claims went together, and in which form was asked."""
    if "claims" in call.body:
        # Reckoned in floats, and cut down to a whole number: 9,899 is 9,900.
        return {"claims": len(call.body["claims"]), "deadline_ms": round(call.body["deadline_ms"], -1)}
    told = {
        "model": call.body["model"],
        "asked": " ".join(call.asked),
        "form": call.response_format or "text",
        "with": " ".join(sorted(call.body.keys() - {"model", "messages", "response_format"})),
        "prompt_chars": [len(message["content"]) for message in call.body["messages"]],
    }
    if call.outcome is not Outcome.ANSWERED and call.ended_at is not None:
        told |= {"outcome": str(call.outcome), "after_ms": round((call.ended_at - call.arrived_at) * 1000)}
    return told


def keep_readings() -> None:
    """Have the verifier read each pair once, and say it again whenever it is asked."""
    read = Verifier.read
    kept: dict[tuple[tuple[int, ...], tuple[int, ...]], Reading] = {}
    if read.__name__ == "kept_or_read":
        return

    def kept_or_read(self: Verifier, claim: Any, premise: Any) -> Reading:
        pair = tuple(claim.ids), tuple(premise.ids)
        if pair not in kept:
            kept[pair] = read(self, claim, premise)
        return kept[pair]

    Verifier.read = kept_or_read  # type: ignore[method-assign]


@contextlib.contextmanager
def moved_probabilities(seed: int | None) -> Iterator[None]:
    """Have the verifier say something else: every probability up or down by ``_MOVED``, which of them by the
    seed and the pair. None: leave all as it is."""
    if seed is None:
        yield
        return
    read = Verifier.read

    def moved(self: Verifier, claim: Any, premise: Any) -> Reading:
        reading = read(self, claim, premise)
        draw = random.Random(f"{seed} {claim.ids} {premise.ids}")

        def move(p: float) -> float:
            odds = math.exp(draw.choice((-_MOVED, _MOVED)))
            return p * odds / (1.0 - p + p * odds)

        tokens = tuple((start, end, move(mark)) for start, end, mark in reading.tokens)
        return Reading(move(reading.support), move(reading.contradiction), tokens)

    Verifier.read = moved  # type: ignore[method-assign]
    try:
        yield
    finally:
        Verifier.read = read  # type: ignore[method-assign]


def lines_of(group: str, seeds: Sequence[int] = (), *, whole: bool = False) -> Iterator[str]:
    """A line for each case of the group, and once more for each with every seed."""
    if seeds:
        keep_readings()
    cases = load(group, whole=whole)
    for seed in (None, *seeds):
        with moved_probabilities(seed):
            for case in cases:
                yield json.dumps(run(case))


def main() -> None:
    """Print a line for each case of each group; logs go to stderr."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("group", nargs="?")
    parser.add_argument("--moved", type=int, nargs="*", default=[], metavar="SEED")
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        if arguments.group is not None:
            for line in lines_of(arguments.group, arguments.moved, whole=arguments.all):
                print(line, file=out)
            return
        for asked in sys.stdin:
            arguments = parser.parse_args(asked.split())
            for line in lines_of(arguments.group, arguments.moved, whole=arguments.all):
                print(line, file=out)
            print(file=out, flush=True)


if __name__ == "__main__":
    main()
