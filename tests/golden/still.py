"""A process whose clock stands still while anything happens, and whose network and threads are in the loop.

A guard that runs here does the same things in the same order every time, at any load of the machine:

- time passes only where the event loop would wait, and then at once to the next timer;
- work for another thread is done where it is handed over, as if it took no time;
- connections to servers of the same loop are pairs of sockets, on which what is written can be read at once;
- what is drawn at random is always the same.

Modules bind ``time.monotonic`` when they are imported, so ``stand_still`` is called before the guard's are:
in a process of its own, never in that of the tests.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import selectors
import socket
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, Final

UNIX_AT_START: Final = 1_800_000_000.0
_MONOTONIC_AT_START: Final = 1_000.0


class NothingScheduled(Exception):
    """The loop would wait for ever: no timer is set, and nothing comes from outside."""


_passed_s = 0.0


class _NoWaiting(selectors.DefaultSelector):
    """Instead of waiting, has the clock show what would have been waited."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        global _passed_s  # noqa: PLW0603 - the clock of the process
        ready = super().select(0)
        if not ready and timeout is None:
            raise NothingScheduled
        if not ready and timeout is not None:
            _passed_s += max(0.0, timeout)
        return ready


class StillLoop(asyncio.SelectorEventLoop):
    """The one event loop of a process that stands still; with each the time begins anew."""

    def __init__(self) -> None:
        global _passed_s  # noqa: PLW0603
        super().__init__(_NoWaiting())
        _passed_s = 0.0
        self._served: dict[int, Any] = {}

    def time(self) -> float:
        return _MONOTONIC_AT_START + _passed_s

    def run_in_executor(  # type: ignore[override]  # typeshed's return type is that of an async function
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        del executor
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is whoever awaits it who gets it
            done.set_exception(error)
        return done

    async def create_server(self, protocol_factory: Any, *args: Any, **options: Any) -> Any:  # type: ignore[override]
        server = await super().create_server(protocol_factory, *args, **options)
        for listening in server.sockets:
            self._served[listening.getsockname()[1]] = protocol_factory
        return server

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Any, host: str | None = None, port: int | None = None, **options: Any
    ) -> Any:
        if host is None or port is None:
            return await super().create_connection(protocol_factory, host, port, **options)
        if port not in self._served:
            raise ConnectionRefusedError(f"nothing of this loop listens on port {port}")
        ours, theirs = socket.socketpair()
        await self.connect_accepted_socket(self._served[port], theirs)
        return await super().create_connection(protocol_factory, sock=ours)


def stand_still() -> None:
    """Stop the clocks of this process, and what it draws at random. Raises RuntimeError when it is too late."""
    early = [name for name in sys.modules if name.partition(".")[0] in {"guardrail", "consumers"}]
    if early:
        raise RuntimeError(f"{early[0]} was imported before the clock stood still; it may have kept the other")

    def monotonic() -> float:
        return _MONOTONIC_AT_START + _passed_s

    def unix() -> float:
        return UNIX_AT_START + _passed_s

    time.monotonic = time.perf_counter = monotonic
    time.time = unix
    time.monotonic_ns = time.perf_counter_ns = lambda: round(monotonic() * 1e9)
    time.time_ns = lambda: round(unix() * 1e9)
    random.random = lambda: 0.5
    secrets.token_bytes = lambda nbytes=None: bytes(nbytes or 32)
