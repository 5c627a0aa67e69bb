"""The broker and the guards of a run, as processes that may be killed, frozen and started again."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

from tests.chaos.proxy import FaultProxy
from tests.support.kafka_broker import KafkaBroker, free_ports

_RESPAWN_S: Final = 0.2
_END_S: Final = 20.0
_ROOT: Final = Path(__file__).resolve().parents[2]


class ChaosBroker(KafkaBroker):
    """A broker with a listener for each proxy, advertised at the proxy's port."""

    def __init__(self, advertised: Sequence[int], *, short_lived: bool) -> None:
        super().__init__(short_lived=short_lived)
        self._advertised = tuple(advertised)
        self.listener_ports: tuple[int, ...] = ()

    def _java(self, main: str, *arguments: str, heap_mb: int = 128) -> list[str]:
        # It says there when it gives up the markers of a transaction: see Nemesis.broker_anytime.
        telling = "-Dorg.slf4j.simpleLogger.log.kafka.coordinator.transaction.TransactionMarkerChannelManager"
        java, *rest = super()._java(main, *arguments, heap_mb=heap_mb)
        return [java, f"{telling}=info", *rest]

    def _configure(self) -> None:
        super()._configure()
        self.listener_ports = tuple(free_ports(len(self._advertised)))
        properties = self.folder / "server.properties"
        added = {
            "listeners": self.listener_ports,
            "advertised.listeners": self._advertised,
            "listener.security.protocol.map": None,
        }
        lines = []
        for line in properties.read_text().splitlines():
            name, _, value = line.partition("=")
            if name in added:
                ports = added[name]
                more = [
                    f"PROXY{n}:PLAINTEXT" if ports is None else f"PROXY{n}://127.0.0.1:{ports[n]}"
                    for n in range(len(self._advertised))
                ]
                value = ",".join([value, *more])
            lines.append(f"{name}={value}")
        # Smaller segments: after a kill the broker reads the last one of each partition again.
        lines += [
            "log.segment.bytes=33554432",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms=1000",
        ]
        properties.write_text("\n".join(lines) + "\n")


class BrokerControl:
    """The broker's blocking calls, off the loop.

    In one thread that lives as long as this: the broker dies with the thread that started it.
    """

    def __init__(self, broker: ChaosBroker) -> None:
        self.broker = broker
        self.lock = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="broker")

    @property
    def bootstrap_servers(self) -> str:
        """For those who are to see no fault of the network."""
        return self.broker.bootstrap_servers

    async def start(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self.broker.start)

    async def kill(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self.broker.kill)

    async def stop(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self.broker.stop)

    def close(self, *, keep_log: bool) -> None:
        self._thread.submit(self.broker.close, keep_log=keep_log).result()
        self._thread.shutdown()


class GuardSlot:
    """A place for one guard behind its own proxies. An async context manager; ends its guard on leaving.

    A guard that has ended is started again for as long as the slot is ``wanted``, as a supervisor would.
    """

    def __init__(
        self,
        number: int,
        proxies: Sequence[FaultProxy],
        kafka: dict[str, Any],
        pace: dict[str, int],
        bug: str,
        folder: Path,
    ) -> None:
        self.number = number
        self.proxies = proxies
        """One to each broker; a fault of the network hits all of them, or one."""
        self.lock = asyncio.Lock()
        """Held by the fault that is at work on this guard."""
        self.wanted = asyncio.Event()
        self.up = asyncio.Event()
        self.ends: Counter[int] = Counter()
        """Exit statuses."""
        own = {**kafka, "bootstrap_servers": ",".join(proxy.address for proxy in proxies)}
        self._order = json.dumps({"kafka": own, "pace": pace, "bug": bug})
        self._log = folder / f"guard-{number}.log"
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._keeper = asyncio.create_task(self._keep(), name=f"guard-{self.number}")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.wanted.clear()
        self.signal(signal.SIGKILL)
        assert self._keeper is not None
        await self._gone()
        self._keeper.cancel()
        await asyncio.gather(self._keeper, return_exceptions=True)

    @property
    def pid(self) -> int | None:
        """Of the guard that runs now."""
        return self._process.pid if self._process is not None and self.up.is_set() else None

    def signal(self, number: signal.Signals) -> None:
        """Send it, if a guard runs."""
        pid = self.pid
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def order(self, **order: Any) -> None:
        """See guard_process."""
        if self.pid is not None and self._process is not None and self._process.stdin is not None:
            with suppress(RuntimeError):  # of a handle that uvloop has closed: the guard has just ended
                self._process.stdin.write(json.dumps(order).encode() + b"\n")

    @property
    def frozen(self) -> bool:
        """Is it stopped by a SIGSTOP?"""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] == "T"

    async def ended(self, pid: int | None, timeout_s: float) -> bool:
        """Wait until the guard with this pid has ended; False when it has not in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self.pid == pid and pid is not None:  # noqa: ASYNC110 - a process has no event to wait for
                    await asyncio.sleep(0.02)
                return True
        return False

    async def retire(self) -> None:
        """End in order, and stay away."""
        self.wanted.clear()
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        await self._gone()

    async def _gone(self) -> None:
        pid = self.pid
        if not await self.ended(pid, _END_S):
            self.signal(signal.SIGKILL)
            await self.ended(pid, _END_S)

    async def _keep(self) -> None:
        while True:
            await self.wanted.wait()
            with self._log.open("ab") as log:
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    "tests.chaos.guard_process",
                    self._order,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    cwd=_ROOT,
                    start_new_session=True,
                )
            self.up.set()
            status = await self._process.wait()
            self.up.clear()
            self.ends[status] += 1
            await asyncio.sleep(_RESPAWN_S)
