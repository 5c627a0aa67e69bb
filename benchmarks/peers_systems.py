"""The systems that ``benchmarks.peers`` compares, behind one interface.

The peers can't be installed beside the guard, which builds on openai 3, that none of them takes yet: they
live in an environment of their own, made when it is first needed.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from benchmarks.peers_answers import TOKENS_PER_SECOND, Case
from guardrail import Guard, Policy
from guardrail.events import ClaimVerdict, ResponseVerdict
from guardrail.judges import Verdict
from guardrail.judges.factory import build_judge
from guardrail.judges.settings import JudgeSettings
from guardrail.limits import Limits
from tests.support import environments

ROOT: Final = Path(__file__).resolve().parent.parent
REQUIREMENTS: Final = Path(__file__).with_name("peers-requirements.txt")
CACHE: Final = ROOT / ".cache"
MODEL: Final = "gpt-4.1-mini"
OURS: Final[Mapping[str, Mapping[str, Any]]] = {
    "guardrail-llm": {"kind": "llm"},
    "guardrail-decisions": {"kind": "decisions"},
    "guardrail-logprobs": {"kind": "decisions", "decisions": {"transport": "logprobs", "model": MODEL}},
    "guardrail-cascade": {"kind": "cascade"},
}
DECIDED: Final = {"guardrail-decisions", "guardrail-cascade"}
"""Those that ask the decision model, at its price."""
PEERS: Final = {"haystack": "haystack", "llama-index": "llama_index", "ragas": "ragas"}
SYSTEMS: Final = (*PEERS, *OURS)
TIMEOUT_MS: Final = 60_000
AT_ONCE: Final = 1_000
"""Calls that may be under way, as many as the peers' clients have connections: a deployment for hundreds of
answers at once sets this too."""
_BAD: Final = {Verdict.UNSUPPORTED, Verdict.CONTRADICTED, Verdict.PARTIALLY_SUPPORTED}


def peers_python() -> Path:
    """The Python of the environment, which takes minutes and 900 MB when it is new.

    Raises EnvironmentMissing when a package can't be had.
    """
    if not environments.is_installed(_folder()):
        print(f"installing the peers into {_folder()}", file=sys.stderr, flush=True)
    # --no-deps: the file pins everything, and a resolver would trip over bounds tighter than needed.
    environments.installed(_folder(), ["--no-deps", "--requirement", str(REQUIREMENTS)], "the peers")
    return _folder() / "bin" / "python"


def installed() -> Path | None:
    """The Python of the environment if it has been made before."""
    return peers_python() if environments.is_installed(_folder()) else None


def _folder() -> Path:
    name = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()[:12]
    return CACHE / f"peers-{name}"


class Outcome(NamedTuple):
    """What one answer came to. Seconds, from the moment its last token was due."""

    delay_s: float
    """To the verdict on the whole answer."""
    first_bad_s: float | None
    """To the first time that a planted error is known, which may be before; None: never."""
    right: bool
    """Is what it says the truth? Of each claim where it tells, else of the answer."""
    error: str = ""


class System(Protocol):
    """Judges one answer, whose first token is due one token's time after ``start`` on the monotonic clock."""

    async def judge(self, case: Case, start: float) -> Outcome: ...

    def processor_s(self) -> float:
        """Processor time that its process has used so far."""


@asynccontextmanager
async def opened(
    name: str,
    base_url: str,
    python: Path | None,
    judge: Mapping[str, Any] | None = None,
    slow_motion: float = 1.0,
) -> AsyncIterator[System]:
    """The system of this name, asking ``base_url``. A peer needs the peers' ``python``.

    ``judge`` are settings of ours, as they stand under ``judge`` in a configuration. With ``slow_motion`` an
    answer takes so many times its time to be written, and outcomes are given as if it had not.
    """
    if name in OURS:
        async with _ours(OURS[name], base_url, judge or {}, slow_motion) as guard:
            yield guard
    else:
        if python is None:
            raise RuntimeError(f"{name}: no environment with the peers was given")
        async with opened_peer(PEERS[name], base_url, python, slow_motion) as peer:
            yield peer


@asynccontextmanager
async def _ours(
    ours: Mapping[str, Any], base_url: str, given: Mapping[str, Any], slow_motion: float
) -> AsyncIterator[System]:
    llm = {"model": MODEL, "max_concurrency": AT_ONCE, **given.get("llm", {}), "base_url": base_url}
    decisions = {**ours.get("decisions", {}), **given.get("decisions", {}), "base_url": base_url}
    settings = {**given, "kind": ours["kind"], "llm": llm, "decisions": decisions}
    judge = build_judge(_slowed(JudgeSettings.model_validate(settings), slow_motion))
    # Observed, since a block would end the judging and with it what is to be measured.
    policy = Policy(mode="observe", claim_timeout_ms=TIMEOUT_MS)
    try:
        async with Guard(judge, policy, limits=Limits(max_concurrent_judgements=AT_ONCE)) as guard:
            yield _Ours(guard, slow_motion)
    finally:
        await judge.aclose()


def _slowed(settings: JudgeSettings, times: float) -> JudgeSettings:
    """With waits that are as long beside an answer that takes so many times its time."""
    wait_ms = settings.max_wait_ms
    if wait_ms is None:
        wait_ms = getattr(settings, settings.kind).max_wait_ms
    return settings.model_copy(update={"max_wait_ms": round(wait_ms * times)})


class _Ours:
    """The guard's public API, fed token by token."""

    def __init__(self, guard: Guard, slow_motion: float) -> None:
        self._guard = guard
        self._slow = slow_motion
        self._token_s = slow_motion / TOKENS_PER_SECOND

    def processor_s(self) -> float:
        return time.process_time()

    async def judge(self, case: Case, start: float) -> Outcome:
        deltas = case.deltas()
        end = start + len(deltas) * self._token_s

        async def answer() -> AsyncIterator[str]:
            for number, delta in enumerate(deltas, 1):
                await asyncio.sleep(start + number * self._token_s - time.monotonic())
                yield delta

        bad = {claim.text for claim in case.claims if claim.bad}
        first: float | None = None
        verdict: ResponseVerdict | None = None
        delay = 0.0
        async for event in self._guard.stream(case.question, case.contexts, answer(), response_id=case.id):
            if isinstance(event, ClaimVerdict) and event.verdict in _BAD and event.text in bad:
                first = min(first or time.monotonic(), time.monotonic())
            elif isinstance(event, ResponseVerdict):
                verdict, delay = event, (time.monotonic() - end) / self._slow
        if verdict is None:
            return Outcome(0.0, None, right=False, error="no verdict")
        told = {claim.text: claim.verdict for claim in verdict.claims}
        open_ = [claim.reasoning for claim in verdict.claims if claim.verdict is Verdict.UNVERIFIED]
        right = not open_ and {text for text, said in told.items() if said in _BAD} == bad
        error = f"unverified: {open_[0]}" if open_ else ""
        if len(told) != len(case.claims):
            error = f"{len(told)} claims instead of {len(case.claims)}"
        return Outcome(delay, None if first is None else (first - end) / self._slow, right, error)


@asynccontextmanager
async def opened_peer(
    peer: str, base_url: str, python: Path, slow_motion: float = 1.0
) -> AsyncIterator[Peer]:
    """A worker of its own for ``peer``, a name of ``peers_worker``."""
    command = [str(python), "-m", "benchmarks.peers_worker", peer, "--base-url", base_url]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        if not await process.stdout.readline():
            raise RuntimeError(f"{peer}: its worker did not start, see above")
        system = Peer(peer, process.stdin, slow_motion)
        reading = asyncio.create_task(system.read(process.stdout))
        try:
            yield system
        finally:
            process.stdin.close()
            await reading
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


class Peer:
    """A framework's evaluator in its own process, which gets the answer when its last token is due."""

    def __init__(self, peer: str, sink: asyncio.StreamWriter, slow_motion: float = 1.0) -> None:
        self._slow = slow_motion
        self._binary = peer == "llama_index"
        self._sink = sink
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._processor_s = 0.0

    def processor_s(self) -> float:
        return self._processor_s

    async def read(self, source: asyncio.StreamReader) -> None:
        """Hand on what the worker tells until it ends."""
        while line := await source.readline():
            told = json.loads(line)
            self._processor_s = told["processor_s"]
            future = self._waiting.pop(told["id"], None)
            if future is not None and not future.done():  # done: it was late, and nobody waits any more
                future.set_result(told)
        for future in self._waiting.values():
            if not future.done():
                future.set_result({"error": "the worker ended"})

    async def ask(self, fields: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """What the worker tells of an answer: its ``id``, ``question``, ``contexts`` and ``answer``."""
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[fields["id"]] = future
        self._sink.write(json.dumps(fields).encode() + b"\n")
        await self._sink.drain()
        return await asyncio.wait_for(future, timeout_s)

    async def judge(self, case: Case, start: float) -> Outcome:
        end = start + len(case.deltas()) * self._slow / TOKENS_PER_SECOND
        fields = {"id": case.id, "question": case.question, "contexts": case.contexts, "answer": case.answer}
        await asyncio.sleep(end - time.monotonic())
        told = await self.ask(fields, TIMEOUT_MS / 1000)
        if "error" in told:
            return Outcome(0.0, None, right=False, error=told["error"])
        bad = sum(claim.bad for claim in case.claims)
        expected = float(not bad) if self._binary else 1 - bad / len(case.claims)
        delay = (told["at"] - end) / self._slow
        # It tells that something is wrong when it tells its score, and not before.
        return Outcome(delay, delay if told["score"] < 1 else None, abs(told["score"] - expected) < 1e-6)
