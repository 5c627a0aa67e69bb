"""A process whose clock stands still while anything happens, and whose network and threads are in the loop.

A guard that runs here does the same things in the same order every time, at any load of the machine:

- time passes only where the event loop would wait, and then at once to the next timer (a turn of the loop
  takes a nanosecond, or who looks whether it is time yet would do so for ever);
- work for the loop's executors is done where it is handed over, as if it took no time (a thread that
  somebody starts without the loop would not be waited for: none here does);
- connections to servers of the same loop are pairs of sockets, on which what is written can be read at once;
- what is drawn at random is always the same.

Modules bind ``time.monotonic`` when they are imported, so ``stand_still`` is called before the guard's are:
in a process of its own, never in that of the tests.
"""

from __future__ import annotations

import asyncio
import math
import random
import secrets
import selectors
import socket
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, Final

UNIX_AT_START: Final = 1_800_000_000
_MONOTONIC_AT_START: Final = 1_000
_SECOND_NS: Final = 1_000_000_000


class NothingScheduled(Exception):
    """The loop would wait for ever: no timer is set, and nothing comes from outside."""


_passed_ns = 0


def _monotonic() -> float:
    return _MONOTONIC_AT_START + _passed_ns / _SECOND_NS


class _NoWaiting(selectors.DefaultSelector):
    """Instead of waiting, has the clock show what would have been waited."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        global _passed_ns
        ready = super().select(0)
        if not ready and timeout is None:
            raise NothingScheduled
        _passed_ns += 1 if ready or timeout is None else max(1, math.ceil(timeout * 1e9))
        return ready


class StillLoop(asyncio.SelectorEventLoop):
    """The one event loop of a process that stands still; with each the time begins anew."""

    def __init__(self) -> None:
        global _passed_ns
        super().__init__(_NoWaiting())
        _passed_ns = 0
        self._served: dict[int, Any] = {}

    def time(self) -> float:
        return _monotonic()

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

    async def create_server(self, protocol_factory: Any, *args: Any, **options: Any) -> Any:
        server = await super().create_server(protocol_factory, *args, **options)
        for listening in server.sockets:
            self._served[listening.getsockname()[1]] = protocol_factory
        return server

    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any
    ) -> Any:
        if host is None or port is None:
            return await super().create_connection(protocol_factory, host, port, **options)
        if port not in self._served:
            raise ConnectionRefusedError(f"nothing of this loop listens on port {port}")
        ours, theirs = socket.socketpair()
        await self.connect_accepted_socket(self._served[port], theirs)
        return await super().create_connection(protocol_factory, sock=ours)


def stand_still() -> None:
    """Stop this process's clocks, and what it draws at random. Raises RuntimeError when it is too late."""
    early = [name for name in sys.modules if name.partition(".")[0] in {"guardrail", "consumers"}]
    if early:
        raise RuntimeError(
            f"{early[0]} was imported before the clock stood still; it may have kept the other"
        )

    time.monotonic = time.perf_counter = _monotonic
    time.monotonic_ns = time.perf_counter_ns = lambda: _MONOTONIC_AT_START * _SECOND_NS + _passed_ns
    time.time = lambda: UNIX_AT_START + _passed_ns / _SECOND_NS
    time.time_ns = lambda: UNIX_AT_START * _SECOND_NS + _passed_ns
    random.random = lambda: 0.5
    secrets.token_bytes = lambda nbytes=None: bytes(nbytes or 32)
