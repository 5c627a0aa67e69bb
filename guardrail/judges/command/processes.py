"""A judge that is a program: some processes of it, fed a line and read a line at a time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from dataclasses import dataclass
from typing import Any, Final

import structlog

from guardrail.errors import ConfigError, JudgeError, JudgeReplyError, JudgeUnavailable
from guardrail.events import Usage
from guardrail.judges.base import Meter
from guardrail.judges.command.protocol import read_reply
from guardrail.judges.command.settings import CommandJudgeSettings

# Replies to requests that were given up, which a process may still write before the one that is waited for.
_MOST_STALE: Final = 16
_CLOSE_GRACE_S: Final = 2.0
# After SIGKILL; what still isn't gone hangs in the kernel.
_REAP_S: Final = 5.0

_log = structlog.stdlib.get_logger("guardrail.judges.command")


@dataclass(slots=True)
class _QueuedRequest:
    line: bytes
    request_id: str
    deadline: float
    future: asyncio.Future[dict[str, Any]]
    meter: Meter
    repeated: bool = False


class _Ended(JudgeUnavailable):
    """The process ended before it answered."""


class Processes:
    """Keeps ``concurrency`` processes running and gives each one request at a time.

    A process that ends, writes what is no reply or hangs past a request's deadline is killed with all it
    started, and started again after a wait that doubles from one failure to the next.
    """

    def __init__(self, settings: CommandJudgeSettings, section: str) -> None:
        """Starts nothing yet. Raises ConfigError when there is no such program."""
        program = settings.argv[0]
        if shutil.which(program, path=_path(settings)) is None:
            raise ConfigError(
                f"{section}.argv: {program} is no program that can be run; give its path, or install it"
            )
        if settings.cwd is not None and not settings.cwd.is_dir():
            raise ConfigError(f"{section}.cwd: {settings.cwd} is no folder; correct the path")
        self._settings = settings
        self._queue: asyncio.Queue[_QueuedRequest] = asyncio.Queue(settings.max_queued_requests)
        self._tasks: list[asyncio.Task[None]] = []
        self._closed = False

    async def ask(self, line: bytes, request_id: str, deadline: float, meter: Meter) -> dict[str, Any]:
        """The reply to ``line``. ``deadline`` is in the loop's time. Raises JudgeError."""
        if self._closed:
            raise JudgeUnavailable("the judge is closed")
        loop = asyncio.get_running_loop()
        if not self._tasks:
            self._tasks = [
                loop.create_task(
                    _Worker(self._settings, self._queue, number).run(), name=f"judge-command-{number}"
                )
                for number in range(self._settings.concurrency)
            ]
        work = _QueuedRequest(line, request_id, deadline, loop.create_future(), meter)
        try:
            self._queue.put_nowait(work)
        except asyncio.QueueFull:
            raise JudgeUnavailable(
                f"{self._queue.qsize()} requests wait for the command, as many as may"
            ) from None
        try:
            async with asyncio.timeout_at(deadline) as scope:
                return await work.future
        except TimeoutError:
            if not scope.expired():
                raise
            raise JudgeUnavailable("the command gave no verdict within the deadline") from None

    async def aclose(self) -> None:
        """Fail what waits, then end the processes: their stdin is closed, and after 2 s they are killed."""
        self._closed = True
        while not self._queue.empty():
            _fail(self._queue.get_nowait(), JudgeUnavailable("the judge is closed"))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class _Worker:
    """One process after the other."""

    def __init__(
        self, settings: CommandJudgeSettings, queue: asyncio.Queue[_QueuedRequest], number: int
    ) -> None:
        self._settings = settings
        self._queue = queue
        self._number = number
        self._process: Process | None = None
        self._failures = 0
        self._served = False  # whether this process has answered a request
        self._work: _QueuedRequest | None = None

    async def run(self) -> None:
        try:
            while True:
                try:
                    await self._step()
                except JudgeError as error:
                    await self._broken(error)
                except Exception as error:  # noqa: BLE001 (a worker that ended would stall its requests)
                    await self._broken(JudgeUnavailable(f"the command failed ({type(error).__name__})"))
        finally:
            if self._work is not None:
                _fail(self._work, JudgeUnavailable("the judge is closed"))
            await self._end(_CLOSE_GRACE_S)

    async def _step(self) -> None:
        """Have a process, then a request, then its reply. Raises JudgeError when the process is lost."""
        process = self._process
        if process is None:
            await asyncio.sleep(self._wait_s())
            process = await self._start()
        if self._work is None:
            self._work = await self._queue.get()
        work = self._work
        if work.future.done():
            self._work = None
        elif process.returncode is not None:
            # It ended while there was nothing to do: the request goes to the next one.
            await self._lost(f"ended with status {process.returncode}")
        else:
            reply = await self._exchange(process, work)
            self._work = None
            self._failures = 0
            self._served = True
            if not work.future.done():
                work.future.set_result(reply)

    async def _exchange(self, process: Process, work: _QueuedRequest) -> dict[str, Any]:
        stdin, stdout = process.stdin, process.stdout
        if stdin is None or stdout is None:
            raise JudgeUnavailable("the command has no pipes")
        try:
            async with asyncio.timeout_at(work.deadline + self._settings.hang_timeout_ms / 1000) as scope:
                work.meter.add(Usage(judge_calls=1))
                stdin.write(work.line)
                await stdin.drain()
                for _ in range(_MOST_STALE):
                    line = await stdout.readline()
                    if not line.endswith(b"\n"):
                        raise _Ended("the command ended")
                    reply = await asyncio.to_thread(read_reply, line)
                    if reply.get("request_id") == work.request_id:
                        return reply
        except TimeoutError:
            if not scope.expired():
                raise
            raise JudgeUnavailable("the command hung and was killed") from None
        except (OSError, RuntimeError) as error:
            raise _Ended(f"the command ended ({type(error).__name__})") from None
        except ValueError:  # of readline
            raise JudgeReplyError(
                f"the reply is longer than {self._settings.max_reply_bytes:,} bytes"
            ) from None
        raise JudgeReplyError("the command answers other requests than it was asked")

    async def _start(self) -> Process:
        settings = self._settings
        environment = os.environ | {name: value.get_secret_value() for name, value in settings.env.items()}
        try:
            self._process = await asyncio.create_subprocess_exec(
                *settings.argv,
                stdin=PIPE,
                stdout=PIPE,
                stderr=None if settings.stderr == "inherit" else DEVNULL,
                cwd=settings.cwd,
                env=environment,
                limit=settings.max_reply_bytes,
                start_new_session=True,  # so that what it starts can be ended with it
            )
        except OSError as error:
            raise JudgeUnavailable(f"the command can't be started ({error.strerror})") from None
        self._served = False
        return self._process

    async def _broken(self, error: JudgeError) -> None:
        work = self._work
        if work is not None and self._process is not None:
            if isinstance(error, _Ended) and self._served and not work.repeated:
                # A program may serve some requests and end; whether it saw this one can't be known.
                work.repeated = True
            else:
                # By the name that is documented: whoever reads the verdict sees it.
                _fail(work, JudgeUnavailable(str(error)) if isinstance(error, _Ended) else error)
                self._work = None
        await self._lost(str(error))

    async def _lost(self, why: str) -> None:
        self._failures += 1
        _log.warning(
            "judge_command.restarting", worker=self._number, why=why, wait_s=round(self._wait_s(), 3)
        )
        await self._end(0.0)

    def _wait_s(self) -> float:
        """Seconds before the next start: none before the first, then doubling, less a random quarter."""
        if not self._failures:
            return 0.0
        doublings = min(self._failures - 1, 40)
        full = min(self._settings.restart_max_ms, self._settings.restart_initial_ms * 2.0**doublings) / 1000
        return full * (1.0 - 0.25 * random.random())

    async def _end(self, grace_s: float) -> None:
        """End the process and what it started; it gets ``grace_s`` seconds from the end of its input."""
        process = self._process
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            if grace_s:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(grace_s):
                        await process.wait()
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_REAP_S):
                    await process.wait()
            # Only now, so that a cancelled wait is taken up again when the worker ends.
            self._process = None


def _fail(work: _QueuedRequest, error: JudgeError) -> None:
    if not work.future.done():
        work.future.set_exception(error)


def _path(settings: CommandJudgeSettings) -> str | None:
    own = settings.env.get("PATH")
    return own.get_secret_value() if own is not None else None
