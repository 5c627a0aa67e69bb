"""The command judge with real processes: verdicts, and programs that die, hang and babble."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from guardrail.errors import ConfigError, JudgeError, JudgeReplyError, JudgeUnavailable
from guardrail.judges import Judge, Verdict
from guardrail.judges.command.judge import CommandJudge
from guardrail.judges.command.settings import CommandJudgeSettings
from tests.support.constants import made
from tests.support.judges import joined, reply_of
from tests.unit.judges.model.asking import request

PROGRAM = str(Path(__file__).with_name("program.py"))
CONTEXT = "The sky is blue. Grass is green."


@asynccontextmanager
async def running(mode: str, marks: Path, **settings: Any) -> AsyncIterator[CommandJudge]:
    values = {"restart_initial_ms": 1, "restart_max_ms": 5, **settings}
    judge = CommandJudge(
        made(CommandJudgeSettings, argv=(sys.executable, PROGRAM, mode, str(marks)), **values)
    )
    try:
        yield judge
    finally:
        await judge.aclose()


def started(marks: Path) -> list[int]:
    """Ids of the processes that began so far."""
    return [int(mark.name.rpartition("-")[2]) for mark in marks.glob("start-*")]


def starts(marks: Path) -> int:
    return len(started(marks))


async def until(true: Callable[[], bool]) -> None:
    while not true():  # noqa: ASYNC110 (what other processes do sets no event)
        await asyncio.sleep(0.01)


def gone(pid: int) -> bool:
    """Whether the process is no more, or a zombie that nobody has asked about yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


async def test_verdicts_with_quotes_that_stand_in_the_contexts(tmp_path: Path) -> None:
    async with running("good", tmp_path) as judge:
        assert isinstance(judge, Judge)
        asked = request(["The sky is blue.", "Water is wet.", "Grass is not green."], [CONTEXT])
        reply = await reply_of(judge, asked)
        supported, unsupported, contradicted = reply.judgements
        assert supported.verdict is Verdict.SUPPORTED
        assert supported.confidence == 0.9
        assert supported.support == pytest.approx(0.95)
        assert [(e.context_id, e.quote, e.span) for e in supported.evidence] == [
            ("d0", "The sky is blue.", (0, 16))
        ]
        assert supported.reasoning == "It stands."
        assert unsupported.verdict is Verdict.UNSUPPORTED
        assert (contradicted.verdict, contradicted.support) == (Verdict.CONTRADICTED, 0.01)
        assert (reply.usage.judge_calls, reply.usage.dropped_quotes) == (1, 1)
        assert judge.name == f"command:{Path(sys.executable).name}"
        assert set(joined(asked, reply, judge.name)) == {"c0", "c1", "c2"}


async def test_one_process_serves_many_requests_and_ends_with_the_judge(tmp_path: Path) -> None:
    async with running("good", tmp_path) as judge:
        replies = await asyncio.gather(
            *(reply_of(judge, request([f"claim {n}", "The sky is blue."], [CONTEXT])) for n in range(20))
        )
        for reply in replies:
            assert [j.verdict for j in reply.judgements] == [Verdict.UNSUPPORTED, Verdict.SUPPORTED]
        (pid,) = started(tmp_path)
    assert starts(tmp_path) == 1
    assert gone(pid)
    with pytest.raises(JudgeUnavailable, match="closed"):
        await reply_of(judge, request(["x"], [CONTEXT]))


async def test_workers_are_so_many_processes(tmp_path: Path) -> None:
    async with running("good", tmp_path, max_concurrency=3) as judge:
        await reply_of(judge, request(["x"], [CONTEXT]))
        await until(lambda: starts(tmp_path) == 3)


@pytest.mark.parametrize(
    ("mode", "error", "message"),
    [
        ("dies_first", JudgeUnavailable, "ended"),
        ("garbage", JudgeReplyError, "not JSON"),
        ("huge", JudgeReplyError, "longer than 20,000 bytes"),
    ],
)
async def test_a_broken_process_fails_its_request_and_is_started_again(
    tmp_path: Path, mode: str, error: type[JudgeError], message: str
) -> None:
    async with running(mode, tmp_path, max_reply_bytes=20_000) as judge:
        asked = request(["The sky is blue."], [CONTEXT])
        with pytest.raises(JudgeError, match=message) as failed:
            await reply_of(judge, asked)
        assert failed.type is error  # no subclass: its name is told in the verdict
        assert asked.meter.attempts == 1
        reply = await reply_of(judge, request(["The sky is blue."], [CONTEXT]))
        assert reply.judgements[0].verdict is Verdict.SUPPORTED
    assert starts(tmp_path) == 2


async def test_a_program_that_serves_one_request_only_is_started_for_each(tmp_path: Path) -> None:
    async with running("one_each", tmp_path) as judge:
        for number in range(3):
            reply = await reply_of(judge, request(["The sky is blue."], [CONTEXT]))
            assert reply.judgements[0].verdict is Verdict.SUPPORTED
            assert starts(tmp_path) == number + 1
            assert reply.usage.judge_calls == reply.judgements[0].attempts >= 1


async def test_a_half_reply_is_none(tmp_path: Path) -> None:
    async with running("half", tmp_path) as judge:
        with pytest.raises(JudgeUnavailable, match="ended"):
            await reply_of(judge, request(["x"], [CONTEXT]))


async def test_replies_to_other_requests_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    async with running("stale", tmp_path / "a") as judge:
        assert len((await reply_of(judge, request(["x"], [CONTEXT]))).judgements) == 1
    async with running("never_ours", tmp_path) as judge:
        with pytest.raises(JudgeReplyError, match="other requests"):
            await reply_of(judge, request(["x"], [CONTEXT]))


async def test_a_hung_process_is_killed_and_the_next_request_answered(tmp_path: Path) -> None:
    async with running("hangs_first", tmp_path, hang_timeout_ms=50) as judge:
        with pytest.raises(JudgeUnavailable, match="no verdict within the deadline"):
            await reply_of(judge, request(["x"], [CONTEXT], seconds=1.5))
        reply = await reply_of(judge, request(["The sky is blue."], [CONTEXT]))
        assert reply.judgements[0].verdict is Verdict.SUPPORTED
    assert starts(tmp_path) == 2


async def test_what_a_process_started_is_killed_with_it(tmp_path: Path) -> None:
    async with running("child", tmp_path, hang_timeout_ms=0) as judge:
        asking = asyncio.ensure_future(reply_of(judge, request(["x"], [CONTEXT])))
        await until((tmp_path / "asked").exists)
        child = int((tmp_path / "child").read_text())
        assert not gone(child)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    await until(lambda: gone(child))


async def test_a_program_that_never_runs_leaves_the_deadline_to_decide(tmp_path: Path) -> None:
    async with running("ends_at_once", tmp_path) as judge:
        with pytest.raises(JudgeUnavailable):
            await reply_of(judge, request(["x"], [CONTEXT], seconds=1.0))
    assert starts(tmp_path) >= 1


async def test_requests_that_wait_are_bounded(tmp_path: Path) -> None:
    async with running("hangs", tmp_path, max_queued_requests=2) as judge:
        asking = [asyncio.ensure_future(reply_of(judge, request(["x"], [CONTEXT])))]
        await until((tmp_path / "asked").exists)
        asking += [asyncio.ensure_future(reply_of(judge, request(["x"], [CONTEXT]))) for _ in range(2)]
        queue = judge._port._queue  # type: ignore[attr-defined]
        await until(lambda: queue.qsize() == 2)
        refused = request(["x"], [CONTEXT])
        with pytest.raises(JudgeUnavailable, match="2 requests wait"):
            await reply_of(judge, refused)
        assert refused.meter.attempts == 0
        closing = asyncio.ensure_future(judge.aclose())
        for future in asking:
            with pytest.raises(JudgeUnavailable, match="closed"):
                await future
        await closing


async def test_what_it_writes_to_stderr_is_not_shown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with running("noisy", tmp_path) as judge:
        await reply_of(judge, request(["x"], [CONTEXT]))
    assert "sky" not in capfd.readouterr().err
    async with running("noisy", tmp_path, stderr="inherit") as judge:
        await reply_of(judge, request(["x"], [CONTEXT]))
    assert "sky" in capfd.readouterr().err


async def test_no_shell_reads_the_arguments(tmp_path: Path) -> None:
    echo = "import json, sys\nfor l in sys.stdin:\n print(json.dumps({'protocol': 1, 'request_id': " \
        "json.loads(l)['request_id'], 'verdicts': [{'id': 'c0', 'verdict': 'SUPPORTED', 'confidence': 1, " \
        "'reasoning': sys.argv[1]}]}), flush=True)"  # fmt: skip
    hostile = f"$(touch {tmp_path}/ran); `touch {tmp_path}/ran`"
    judge = CommandJudge(CommandJudgeSettings(argv=(sys.executable, "-c", echo, hostile)))
    try:
        reply = await reply_of(judge, request(["x"], [CONTEXT]))
    finally:
        await judge.aclose()
    assert reply.judgements[0].reasoning == hostile
    assert os.listdir(tmp_path) == []  # noqa: PTH208


async def test_without_contexts_and_without_claims_nothing_is_asked(tmp_path: Path) -> None:
    async with running("good", tmp_path) as judge:
        assert (await reply_of(judge, request([], [CONTEXT]))).judgements == ()
        (judgement,) = (await reply_of(judge, request(["x"], [" "]))).judgements
        assert judgement.verdict is Verdict.UNSUPPORTED
        late = request(["x"], [CONTEXT], seconds=-1)
        with pytest.raises(JudgeUnavailable, match="deadline has passed"):
            await reply_of(judge, late)
        assert (late.meter.attempts, judgement.attempts) == (0, 0)
    assert starts(tmp_path) == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "neither argv nor url is set"),
        ({"argv": ["no-such-program-here"]}, r"judge\.command\.argv: no-such-program-here is no program"),
        ({"argv": [sys.executable], "cwd": "/nowhere/x"}, r"judge\.command\.cwd: /nowhere/x is no folder"),
    ],
)
def test_what_cannot_run_is_told_at_start(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        CommandJudge(CommandJudgeSettings.model_validate(settings))
