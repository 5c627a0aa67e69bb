"""Three brokers with replication, each of which may die, lose its network or run out of disk.

    guard ──three proxies──> three brokers, each of which is a controller too

Every broker keeps its data on a small file system of its own (tmpfs, which takes root) that a file can fill.
Where none may be mounted, ``fill_disk`` raises.
"""

from __future__ import annotations

import asyncio
import base64
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from tests.chaos.proxy import FaultProxy
from tests.support.kafka_broker import BrokerError, KafkaBroker, free_ports

BROKERS: Final = 3
DISK_MB: Final = 256
HEAP_MB: Final = 256
IN_SYNC_S: Final = 90.0
"""How long the others may take to have a broker's records again."""
_MIB: Final = 1024 * 1024

_PROPERTIES: Final = """\
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
controller.listener.names=CONTROLLER
log.dirs={data}
auto.create.topics.enable=false
default.replication.factor=3
min.insync.replicas=2
offsets.topic.replication.factor=3
offsets.topic.num.partitions=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
transaction.state.log.num.partitions=3
share.coordinator.state.topic.replication.factor=3
share.coordinator.state.topic.min.isr=2
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
broker.session.timeout.ms=4000
broker.heartbeat.interval.ms=500
replica.lag.time.max.ms=6000
log.segment.bytes=16777216
log.index.size.max.bytes=1048576
metadata.log.segment.bytes=8388608
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
"""


class ClusterNode(KafkaBroker):
    """One of the brokers. ``advertised``: the port of each guard's proxy to it."""

    def __init__(
        self,
        node: int,
        ports: Sequence[int],
        controllers: Sequence[int],
        cluster: str,
        advertised: Sequence[int],
    ) -> None:
        super().__init__(port=ports[node])
        self.node = node
        self._controllers = controllers
        self._cluster = cluster
        self._advertised = tuple(advertised)
        self.listener_ports = tuple(free_ports(len(advertised)))
        self.disk = self.folder / "disk"
        self.mounted = False

    def mount(self) -> None:
        """Give it a small file system of its own, if this process may."""
        self.disk.mkdir()
        options = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(self.disk)]
        self.mounted = subprocess.run(options, check=False, capture_output=True, timeout=20).returncode == 0

    def fill_disk(self) -> None:
        """Leave no room."""
        if not self.mounted:
            raise BrokerError("a full disk needs a file system of the broker's own, and so root")
        with (self.disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
            while True:
                filler.write(bytes(_MIB))

    def empty_disk(self) -> None:
        """Make room again."""
        (self.disk / "filler").unlink(missing_ok=True)

    @property
    def ended(self) -> bool:
        """Whether no process runs."""
        return self._process is None or self._process.poll() is not None

    def close(self, *, keep_log: bool = False) -> None:
        self.kill()
        if self.mounted:
            subprocess.run(["umount", str(self.disk)], check=False, capture_output=True, timeout=20)
            self.mounted = False
        super().close(keep_log=keep_log)

    def _java(self, main: str, *arguments: str, heap_mb: int = 128) -> list[str]:
        return super()._java(main, *arguments, heap_mb=min(heap_mb, HEAP_MB))

    def _configure(self) -> None:
        numbered = list(enumerate(self._advertised))
        voters = ",".join(f"{n}@127.0.0.1:{port}" for n, port in enumerate(self._controllers))
        names = ["PLAINTEXT", "CONTROLLER", *(f"PROXY{n}" for n, _ in numbered)]
        own = [f"PLAINTEXT://{self.bootstrap_servers}"]
        listeners = [*own, f"CONTROLLER://127.0.0.1:{self._controllers[self.node]}"]
        listeners += [f"PROXY{n}://127.0.0.1:{port}" for n, port in enumerate(self.listener_ports)]
        lines = [
            _PROPERTIES.format(node=self.node, voters=voters, data=self.disk / "data"),
            f"listeners={','.join(listeners)}",
            f"advertised.listeners={','.join([*own, *(f'PROXY{n}://127.0.0.1:{p}' for n, p in numbered)])}",
            f"listener.security.protocol.map={','.join(f'{name}:PLAINTEXT' for name in names)}",
        ]
        properties = self.folder / "server.properties"
        properties.write_text("\n".join(lines) + "\n")
        command = self._java(
            "kafka.tools.StorageTool", "format", f"--cluster-id={self._cluster}", "-c", str(properties)
        )
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        if answer.returncode != 0:
            raise BrokerError(f"formatting the storage failed:\n{answer.stdout}{answer.stderr}")


class NodeControl:
    """A broker's blocking calls, in the one thread that it lives with."""

    def __init__(self, broker: ClusterNode) -> None:
        self.broker = broker
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"broker-{broker.node}")

    async def do(self, work: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        self._thread.submit(self.broker.close).result()
        self._thread.shutdown()


class ClusterControl:
    """All brokers. An async context manager that ends them, and keeps their logs in ``folder``."""

    def __init__(self, networks: Sequence[Sequence[FaultProxy]], folder: Path) -> None:
        ports, controllers = free_ports(BROKERS), free_ports(BROKERS)
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self.nodes = [
            NodeControl(ClusterNode(n, ports, controllers, cluster, [each[n].port for each in networks]))
            for n in range(BROKERS)
        ]
        for guard, each in enumerate(networks):
            for node, proxy in zip(self.nodes, each, strict=True):
                proxy.target = ("127.0.0.1", node.broker.listener_ports[guard])
        self.lock = asyncio.Lock()
        """Held by the fault that is at work on a broker: two at once may stop everything, by design."""
        self._folder = folder

    @property
    def bootstrap_servers(self) -> str:
        """For those who are to see no fault of the network."""
        return ",".join(node.broker.bootstrap_servers for node in self.nodes)

    async def __aenter__(self) -> Self:
        for node in self.nodes:
            node.broker.mount()
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for node in self.nodes:
            if node.broker.log.exists():
                shutil.copy(node.broker.log, self._folder / f"kafka-{node.broker.node}.log")
            node.close()

    async def start(self) -> None:
        """Start those that don't run: together, since one alone has no quorum."""
        for node in self.nodes:
            node.broker.empty_disk()
        await asyncio.gather(*(node.do(node.broker.start) for node in self.nodes))

    async def coordinator(self, name: str, kind: int) -> NodeControl:
        """The broker that coordinates a group (kind 0) or a transactional id (1). Raises KafkaError."""
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap_servers, request_timeout_ms=5_000)
        try:
            await admin.start()
            return self.nodes[await admin.find_coordinator(name, kind)]
        finally:
            await admin.close()

    async def in_sync(self) -> bool:
        """Wait until every partition has all its replicas; False when that takes too long."""
        deadline = time.monotonic() + IN_SYNC_S
        while time.monotonic() < deadline:
            with suppress(KafkaError, OSError, TimeoutError):
                if await self._all_in_sync():
                    return True
            await asyncio.sleep(0.3)
        return False

    async def _all_in_sync(self) -> bool:
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap_servers, request_timeout_ms=5_000)
        try:
            await admin.start()
            return all(
                len(one["isr"]) == BROKERS
                for topic in await admin.describe_topics()
                for one in topic["partitions"]
            )
        finally:
            await admin.close()
