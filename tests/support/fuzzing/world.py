"""An engine among bad records, slow and faulty judges, and time that passes: one episode of fuzzing."""

from __future__ import annotations

import asyncio
import json
import random
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from guardrail.claims import BuiltinSeverityRater
from guardrail.engine import Captured, Change, ClosedResponse, Engine, Output, digest
from guardrail.errors import DecodeError, InputError, JudgeUnavailable, StateError, UnreadableSession
from guardrail.events import (
    Finding,
    InputEvent,
    Response,
    ResponseCompleted,
    ResponseDelta,
    ResponseStarted,
    parse_input,
)
from guardrail.judges import Judgement, JudgeRequest, Verdict
from guardrail.limits import Limits
from guardrail.policy import FailPolicy, OnIncomplete, Policy
from guardrail.routing import PolicyRouter, Route
from tests.support.constants import made
from tests.support.fuzzing.accounts import (
    BEGAN,
    PASSED_OVER,
    REPEATED,
    TOOK_EFFECT,
    WRONG_LANE,
    Life,
    Violation,
    expected,
    happened,
    rejected,
    require,
)
from tests.support.fuzzing.records import NASTY_VALUES, FuzzRecord


@dataclass(slots=True)
class _Stored:
    head: Any = None
    progress: list[Any] = field(default_factory=list)
    silent: bool = False


class Store:
    """Stores what changes as JSON, as a compacted topic would hold it, and restores sessions from that."""

    def __init__(self, rng: random.Random, counts: Counter[str]) -> None:
        self._rng = rng
        self._counts = counts
        self._stored: dict[int, _Stored] = {}
        self._changes: list[Change] = []
        self._finished: dict[Hashable, list[tuple[ClosedResponse, float]]] = {}

    def closed(self, response: ClosedResponse, now: float) -> None:
        """A response is over; its id is remembered."""
        self._stored.pop(response.born, None)
        self._finished.setdefault(response.lane, []).append((response, now))

    def changed(self, change: Change) -> None:
        """A response has something to store."""
        self._changes.append(change)

    def step(self, lane: Hashable, open_lives: Mapping[str, Life]) -> None:
        """Store what is new of the responses of this lane."""
        changes = [change for change in self._changes if change.lane == lane]
        self._changes = [change for change in self._changes if change.lane != lane]
        for change in changes:
            captured = change.take()
            if captured is not None:
                self._put(captured, open_lives[change.response_id])

    def _put(self, captured: Captured, life: Life) -> None:
        require(captured.born == life.born, "captured is what began there", life)
        stored = self._stored.setdefault(life.born, _Stored())
        if captured.head is not None:
            silent = bool(captured.head["silent"])
            once = stored.head is None or (silent and not stored.silent)
            require(once, "a head is captured once, and once more when nothing more will be said", life)
            stored.head, stored.silent = _through_json(captured.head), silent
            if silent:
                stored.progress.clear()  # what comes with it stands for all before
        if captured.progress is not None:
            stored.progress.append(_through_json(captured.progress))
            self._counts["captured"] += 1

    def restore(self, engine: Engine, lane: Hashable, lives: list[Life], now: float) -> None:
        """Give an engine, which knows nothing of this lane, what was stored of it."""
        for response, at in self._finished.get(lane, []):
            engine.remember(lane, response.response_id, response.digest, response.next_seq, now - at)
        for life in lives:
            stored = self._stored[life.born]
            if not life.spoilt and self._rng.randrange(50) == 49:
                self._spoil(life, stored)
            life.restored(now)
            self._counts["restored"] += 1
            try:
                engine.restore(
                    life.response_id, stored.head, stored.progress, life.policy, lane=lane, born=life.born
                )
            except (UnreadableSession, StateError):
                # What the consumer does with these is its own matter; here the response is forgotten.
                require(life.spoilt, "what was captured can be restored", life)
                life.lost = True

    def _spoil(self, life: Life, stored: _Stored) -> None:
        """Change something in it, as rot, a bug or an unknown version may."""
        life.spoilt = True
        self._counts["spoilt"] += 1
        rng = self._rng
        if not stored.progress or rng.randrange(4) == 0:
            stored.head = _changed(rng, stored.head)
        elif rng.randrange(3) == 0:
            del stored.progress[rng.randrange(len(stored.progress))]
        else:
            at = rng.randrange(len(stored.progress))
            stored.progress[at] = _changed(rng, stored.progress[at])


def _through_json(value: Any) -> Any:
    return json.loads(json.dumps(value, allow_nan=False))


def _changed(rng: random.Random, value: Any, *, top: bool = True) -> Any:
    """The same with one value, at any depth, replaced or taken out; a mapping, as the consumer sees to."""
    if isinstance(value, dict) and value and (top or rng.randrange(5)):
        key = rng.choice(sorted(value))
        changed = {**value, key: _changed(rng, value[key], top=False)}
        if rng.randrange(6) == 0:
            del changed[key]
        return changed
    if isinstance(value, list) and value and rng.randrange(5):
        at = rng.randrange(len(value))
        return [*value[:at], _changed(rng, value[at], top=False), *value[at + 1 :]]
    return rng.choice(NASTY_VALUES)


SETTLED_S = 60.0
LANES = ("p0", "p1")
REFUSED = "refused: "
OUTCOMES = (BEGAN, TOOK_EFFECT, PASSED_OVER, REPEATED, REFUSED)
"""How the count of every kind of outcome begins."""
REASONS = frozenset(
    """
    empty_value invalid_json unknown_type unknown_schema invalid_event contexts_too_large answer_too_long
    sequence_gap response_finished unknown_response duplicate_start wrong_partition
    """.split()  # noqa: SIM905
)


def _policy(name: str, **fields: object) -> Policy:
    times = {"claim_timeout_ms": 1_000, "incomplete_timeout_ms": 5_000}
    return Policy.model_validate({"name": name, **times, **fields})


POLICIES = {
    "stream": _policy("stream"),
    "hold": _policy("hold", mode="hold", on_unverified=FailPolicy.FLAG),
    "observe": _policy("observe", mode="observe", on_incomplete=OnIncomplete.FLAG),
    "flag": _policy("flag", on_unverified=FailPolicy.FLAG, on_incomplete=OnIncomplete.FLAG),
    "release": _policy("release", on_unverified=FailPolicy.FAIL_OPEN, on_incomplete=OnIncomplete.RELEASE),
}
ROUTES = [Route(route=name, policy=name) for name in POLICIES]
FINDINGS = (Finding.FIGURE_ABSENT, Finding.LINK_ABSENT, Finding.DISPLAY_MISMATCH)
RATER = BuiltinSeverityRater(POLICIES["stream"].severity)


class FaultyJudge:
    """Answers at once, late or never, right, half or in nonsense, or fails; chosen by ``rng``."""

    name = "fuzz"

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        found = [self._judgement(claim_id, claim.text) for claim_id, claim in request.claims.items()]
        kind = self._rng.randrange(16)
        if kind == 1:
            await asyncio.sleep(self._rng.random() * 3)
        elif kind == 2:
            await asyncio.sleep(1e6)
        elif kind == 3:
            raise JudgeUnavailable("fuzz")
        elif kind == 4:
            raise ZeroDivisionError
        elif kind == 5:
            found = found[:-1]
        elif kind == 6:
            found += [Judgement("nobody asked", Verdict.SUPPORTED, 1.0, 1.0, self.name), *found]
        elif kind == 7:
            found[0] = Judgement(found[0].claim_id, Verdict.SUPPORTED, float("nan"), 7.0, "\ud800")
        elif kind > 11:
            await asyncio.sleep(0.01)
        for each in found:
            yield each

    def _judgement(self, claim_id: str, text: str) -> Judgement:
        draw = blake2b(text.encode("utf-8", "replace"), digest_size=1).digest()[0]
        verdict = list(Verdict)[draw % 4] if draw % 3 == 0 else Verdict.SUPPORTED
        support = 0.9 if verdict is Verdict.SUPPORTED else 0.2
        return Judgement(
            claim_id,
            verdict,
            0.9,
            support,
            self.name,
            reasoning="because",
            contradiction=(None, 0.1, 0.9)[draw % 3],
            findings=FINDINGS[:1] if draw % 5 == 0 else FINDINGS[1:] if draw % 7 == 0 else (),
        )

    async def aclose(self) -> None:
        return


class World:
    """One engine, the model beside it, and a count of what became of every record."""

    def __init__(self, rng: random.Random, counts: Counter[str]) -> None:
        """``counts`` is added to."""
        self._rng = rng
        self._counts = counts
        names = list(POLICIES)
        self._router = PolicyRouter(POLICIES, ROUTES, rng.choice(names))
        self._limits = made(
            Limits,
            max_sessions=rng.choice((1_000, 3)),
            max_bytes=rng.choice((1_000_000, 2_000)),
            max_answer_chars=rng.choice((100_000, 300)),
            max_context_chars=rng.choice((100_000, 100_000, 200)),
            max_claims_per_call=rng.choice((16, 1)),
            max_concurrent_judgements=rng.choice((64, 2)),
            finished_responses_remembered=rng.choice((20_000, 2)),
            finished_response_ttl_ms=rng.choice((900_000, 2_000)),
        )
        self._forgets = (
            self._limits.finished_responses_remembered < 20 or self._limits.finished_response_ttl_ms < 5_000
        )
        self._judge = FaultyJudge(rng)
        self._store = Store(rng, counts)
        self._restarts = rng.randrange(2) == 1
        self._read = 0
        self._open: dict[str, Life] = {}
        self._finished: dict[tuple[str, str], Life] = {}
        self._candidate: Life | None = None
        self._lives: list[Life] = []
        self._violations: list[Violation] = []

    async def run(self, records: list[FuzzRecord]) -> None:
        """Take all records, let time pass, and settle the accounts. Raises Violation, or what crashed."""
        half = self._rng.randrange(len(records)) if self._restarts and records else 0
        async with self._engine() as engine:
            await self._feed(engine, records[:half])
            for lane in LANES:
                self._store.step(lane, self._open)
        async with self._engine() as engine:
            for lane in LANES:
                self._restore(engine, lane)
            await self._feed(engine, records[half:])
            await asyncio.sleep(SETTLED_S)
            if self._violations:
                raise self._violations[0]
            require(engine.sessions == 0 and engine.pending_claims == 0, "nothing is left", engine.sessions)
            require(not engine.saturated, "all bounds are free again")
            require(all(engine.load(lane) == 0.0 for lane in LANES), "no lane has a share of the bounds")
        require(not self._open, "every response ends", list(self._open))
        for life in self._lives:
            life.check_end(RATER)
        self._counts["responses"] += len(self._lives)

    def _engine(self) -> Engine:
        loop = asyncio.get_running_loop()
        return Engine(
            self._judge,
            self._router,
            emit=self._emitted,
            on_closed=self._closed,
            limits=self._limits,
            on_change=self._store.changed if self._restarts else None,
            clock=loop.time,
            wall=lambda: 1_700_000_000 + loop.time(),
        )

    async def _feed(self, engine: Engine, records: list[FuzzRecord]) -> None:
        loop = asyncio.get_running_loop()
        for record in records:
            if not self._read % 8:
                await self._let_time_pass(engine)
            if self._restarts and self._rng.randrange(60) == 59:
                self._recover(engine, self._rng.choice(LANES))
            self._counts[self._take(engine, record, loop.time())] += 1
            self._read += 1

    def _recover(self, engine: Engine, lane: str) -> None:
        """A lane is thrown away and taken up again, as after a failed step."""
        self._store.step(lane, self._open)
        engine.drop_lane(lane)
        self._restore(engine, lane)

    def _restore(self, engine: Engine, lane: str) -> None:
        if self._restarts:
            lives = [
                life for life in self._lives if life.lane == lane and life is self._open.get(life.response_id)
            ]
            self._store.restore(engine, lane, lives, asyncio.get_running_loop().time())
            for life in lives:
                if life.lost:
                    del self._open[life.response_id]

    async def _let_time_pass(self, engine: Engine) -> None:
        kind = self._rng.randrange(8)
        if kind == 0:
            await asyncio.sleep(self._rng.random() * 7)
        elif kind < 6:
            await asyncio.sleep(self._rng.random() / 50)
        if engine.saturated and kind == 7:
            engine.shedding = True

    # ------------------------------------------------------------------------------ one record

    def _take(self, engine: Engine, record: FuzzRecord, now: float) -> str:
        """What became of the record."""
        try:
            event = parse_input(record.value or b"")
        except DecodeError as error:
            require(error.reason in REASONS and bool(str(error)), "a reason is given", error.reason)
            self._refuse(engine, record.key, error.reason, now)
            return f"{REFUSED}{error.reason}"
        lane = _lane(record.key)
        life, finished = self._open.get(event.response_id), self._finished.get((lane, event.response_id))
        allowed = (
            {WRONG_LANE}
            if life is not None and life.lane != lane
            else expected(
                event,
                life,
                finished,
                now,
                self._limits.max_answer_chars,
                self._forgets and finished is not None,
            )
        )
        if isinstance(event, ResponseStarted | Response) and life is None:
            outcome = self._start(engine, event, lane, now)
        else:
            outcome = self._go_on(engine, event, life, lane, allowed, now)
        spoilt = any(one is not None and one.spoilt for one in (life, finished))
        require(
            outcome in allowed or spoilt, f"an event came to {outcome!r}, expected {sorted(allowed)}", event
        )
        return outcome if outcome in OUTCOMES else f"{REFUSED}{outcome}"

    def _start(self, engine: Engine, event: ResponseStarted | Response, lane: str, now: float) -> str:
        policy = self._router.choose(event.route, event.tenant)
        life = self._candidate = Life(
            event.response_id, policy, digest(event), lane, self._read, contexts=event.contexts
        )
        life.noted(now)
        if isinstance(event, Response):
            life.text, life.next_seq, life.completed = event.answer, 1, True
            life.end_input()
        outcome = BEGAN
        try:
            engine.handle(event, lane=lane, born=life.born)
        except InputError as error:
            outcome = error.reason
            life.reading = False
            if isinstance(event, Response) and not life.observing:
                life.completed = False
        began = self._adopt(engine, life)
        if outcome == BEGAN and not began:
            outcome = REPEATED
        return outcome

    def _adopt(self, engine: Engine, life: Life) -> bool:
        """Did this response begin indeed? Then it is one of those whose end is awaited."""
        self._candidate = None
        if engine.knows(life.response_id):
            self._open[life.response_id] = life
        elif not life.touched:
            return False
        else:
            require(life.closed, "a response that is not in flight is over", life)
            self._finished[life.lane, life.response_id] = life
        self._lives.append(life)
        return True

    def _go_on(
        self,
        engine: Engine,
        event: InputEvent,
        life: Life | None,
        lane: str,
        allowed: set[str],
        now: float,
    ) -> str:
        """An event of a response in flight, or of none."""
        text = life.text if life is not None else ""
        heads = isinstance(event, ResponseStarted | Response)
        if life is not None and not heads and isinstance(event, ResponseDelta):
            lets_through = PASSED_OVER in allowed and life.observing
            if TOOK_EFFECT in allowed or lets_through:
                life.text += event.text
        completes = life is not None and isinstance(event, ResponseCompleted) and life.reading
        if completes and life is not None and TOOK_EFFECT in allowed:
            life.completed = True
        outcome = ""
        try:
            engine.handle(event, lane=lane, born=self._read)
        except InputError as error:
            outcome = error.reason
            require(error.reason in REASONS and bool(str(error)), "a reason is given", error.reason)
        if life is None:
            return outcome or REPEATED
        if outcome:
            life.text = text
            if outcome in {"duplicate_start", WRONG_LANE}:
                life.reading = False
        else:
            outcome = next(iter(allowed & {TOOK_EFFECT, PASSED_OVER}), REPEATED)
        if not isinstance(event, ResponseStarted | Response):
            happened(event, life, outcome, now)
        return outcome

    def _refuse(self, engine: Engine, key: bytes | None, reason: str, now: float) -> None:
        """As the consumer does with what it can't read: end the response that the key names."""
        try:
            response_id = (key or b"").decode()
        except UnicodeDecodeError:
            return
        if not 0 < len(response_id) <= 256:
            return
        life = self._open.get(response_id)
        if life is not None:
            life.reading = False
        else:
            policy = self._router.for_unknown()
            self._candidate = Life(response_id, policy, b"", _lane(key), self._read)
            self._candidate.noted(now)
        engine.reject(response_id, reason, lane=_lane(key), born=self._read)
        if self._candidate is not None:
            rejected(self._candidate)
            self._adopt(engine, self._candidate)

    # --------------------------------------------------------------------------------- callbacks

    def _emitted(self, outputs: Sequence[Output]) -> None:
        try:
            for output in outputs:
                self._check(output)
        except Violation as violation:
            # Raised into a timer of the loop it would be logged and forgotten.
            self._violations.append(violation)
            raise

    def _check(self, output: Output) -> None:
        response_id = output.event.response_id
        life = self._open.get(response_id) or self._candidate
        if life is None or life.response_id != response_id:
            raise Violation(f"an output without a response: {output.event}")
        output.event.to_json()
        life.said(output)
        self._counts[f"output: {output.event.type}"] += 1  # type: ignore[attr-defined]

    def _closed(self, response: ClosedResponse) -> None:
        life = self._open.pop(response.response_id, None)
        if life is not None:
            self._finished[life.lane, life.response_id] = life
        else:
            life = self._candidate
        if life is None or life.response_id != response.response_id or life.closed:
            raise Violation(f"an end without a response: {response}")
        require((life.lane, life.born) == (response.lane, response.born), "it ends where it began", response)
        life.closed = True
        self._store.closed(response, asyncio.get_running_loop().time())


def _lane(key: bytes | None) -> str:
    """Where a record with this key lies; most records of one response have the same."""
    return LANES[zlib.crc32(key or b"") % 2]
