"""A real Apache Kafka for tests and benchmarks: one node in KRaft mode, started from its Maven Central jars.

No look-alike broker enforces groups and transactions as Kafka does, so tests run against the real one.
``$GUARDRAIL_KAFKA_VERSION`` chooses another release. Needs Java 17 or later, and Maven once: the jars are
kept in ``$GUARDRAIL_KAFKA_CACHE`` (default ``~/.cache/guardrail/kafka-VERSION``) and found there without a
network afterwards.

``python -m tests.support.kafka_broker`` runs one in the foreground until Ctrl-C.
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import base64
import contextlib
import ctypes
import fcntl
import functools
import hashlib
import logging
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from tests.support.kafka_listeners import Listener, plain_login

DEFAULT_KAFKA_VERSION: Final[str] = "4.2.0"
"""Not 4.3.0, which loses transactions where its only broker is stopped (docs/reliability.md)."""
KAFKA_VERSION: Final = os.environ.get("GUARDRAIL_KAFKA_VERSION") or DEFAULT_KAFKA_VERSION
MINIMUM_JAVA: Final = 17
START_ATTEMPTS: Final = 3
START_TIMEOUT_S: Final = 240.0
_ARCHIVE_TIMEOUT_S: Final = 120.0
_SHORT_LIVED: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Most of what the second compiler and more threads of the collector do would come too late for a test."""

_DRAWN: Final = random.SystemRandom()  # not what a test may seed alike in two processes
_SERVERS_PORTS: Final = (15_000, 32_768)
"""Below those of outgoing connections: Linux's default begins at 32768, others' at 49152."""

_POM: Final = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>guardrail.tests</groupId>
  <artifactId>kafka</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{KAFKA_VERSION}</version>
    </dependency>
    <!-- Without a binding Kafka logs nothing. -->
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
"""

_PROPERTIES: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
"""


class BrokerError(Exception):
    """The broker did not start; the message has the end of its log."""


class JavaMissing(BrokerError):
    """This machine can't run Kafka; the message says what to install."""


def java_version() -> int | None:
    """Major version of the ``java`` on the path, or None."""
    found = re.search(r'version "(\d+)', _java_says())
    return int(found.group(1)) if found else None


@functools.cache
def _java_of(path: str) -> str:
    answer = subprocess.run([path, "-version"], capture_output=True, text=True, check=False, timeout=60)
    return answer.stderr + answer.stdout


def _java_says() -> str:
    """What the ``java`` on the path says of itself; empty without one."""
    java = shutil.which("java")
    return "" if java is None else _java_of(java)


def cache_folder() -> Path:
    """Where the jars are kept."""
    named = os.environ.get("GUARDRAIL_KAFKA_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "guardrail" / f"kafka-{KAFKA_VERSION}"


def ensure_jars() -> Path:
    """Folder with Kafka's jars, resolved by Maven the first time. Raises JavaMissing."""
    version = java_version()
    if version is None or version < MINIMUM_JAVA:
        found = "no java was found" if version is None else f"java is version {version}"
        raise JavaMissing(
            f"Kafka needs Java {MINIMUM_JAVA} or later and {found}; "
            "install it (Debian: apt-get install openjdk-17-jre-headless maven)"
        )
    cache = cache_folder()
    libs = cache / "libs"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not libs.is_dir():
                _resolve(cache, libs)
    except OSError as error:
        raise JavaMissing(
            f"Kafka's jars can't be kept: {error}; name a folder: GUARDRAIL_KAFKA_CACHE"
        ) from None
    return libs


def _resolve(cache: Path, libs: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise JavaMissing(
            f"no Kafka jars in {cache} and no mvn to fetch them; install it (Debian: apt-get install maven)"
        )
    with tempfile.TemporaryDirectory(dir=cache) as work:
        (Path(work) / "pom.xml").write_text(_POM)
        fetched = Path(work) / "libs"
        answer = subprocess.run(
            [maven, "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={fetched}"],
            cwd=work,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        if answer.returncode != 0:
            raise JavaMissing(
                f"Maven could not fetch Kafka {KAFKA_VERSION}:\n{(answer.stdout + answer.stderr)[-2000:]}"
            )
        fetched.rename(libs)


def class_archive() -> Path:
    """Kafka's classes as this Java maps them into memory, so that no start reads and verifies them.

    Made by a broker that is started and stopped for it, once for each Java.
    """
    java = hashlib.sha256(_java_says().encode()).hexdigest()[:12]
    archive = cache_folder() / f"classes-{java}.jsa"
    with (cache_folder() / ".classes-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            made = archive.with_suffix(".new")
            made.unlink(missing_ok=True)
            with _ArchivingBroker(made) as broker:
                broker.archive()
            made.rename(archive)
    return archive


class KafkaBroker:
    """One broker process. A context manager; ``stop``, ``kill`` and ``start`` again keep address and data."""

    def __init__(
        self,
        port: int | None = None,
        *,
        sasl_users: Mapping[str, str] | None = None,
        listeners: Sequence[Listener] = (),
        scram_users: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
        short_lived: bool = False,
    ) -> None:
        """``sasl_users`` (name to password) adds a listener LOGIN that wants a login, SASL PLAIN.

        ``scram_users`` are known to listeners that log in with SCRAM. ``properties`` are the broker's own.
        ``short_lived`` starts with a third of the work, but is slower after minutes: not for figures.
        """
        self._properties = dict(properties or {})
        self._listeners = list(listeners)
        if sasl_users:
            self._listeners.append(Listener("LOGIN", "SASL_PLAINTEXT", plain_login(sasl_users)))
        self._scram_users = dict(scram_users or {})
        self._listener_ports: dict[str, int] = {}
        self._libs = ensure_jars()
        self._options = [*_SHORT_LIVED, f"-XX:SharedArchiveFile={class_archive()}"] if short_lived else []
        self._fixed_port = port
        self._port = port or 0
        self._process: subprocess.Popen[bytes] | None = None
        self.folder = Path(tempfile.mkdtemp(prefix="guardrail-kafka-"))
        self.log = self.folder / "kafka.log"

    @property
    def bootstrap_servers(self) -> str:
        """Address for clients."""
        return f"127.0.0.1:{self._port}"

    @property
    def sasl_bootstrap_servers(self) -> str:
        """Address of the listener that wants a login."""
        return self.listener("LOGIN")

    def listener(self, name: str) -> str:
        """Address of one of ``listeners``."""
        return f"127.0.0.1:{self._listener_ports[name]}"

    def start(self) -> None:
        """Start, unless it runs, and wait until it answers. Raises BrokerError with the end of its log."""
        if self._process is not None and self._process.poll() is None:
            return
        configured = (self.folder / "server.properties").exists()
        for attempt in range(1, START_ATTEMPTS + 1):
            if not configured:
                self._configure()
            self._launch()
            try:
                self._wait_ready()
            except BrokerError:
                self.kill()
                # A port can be taken between choosing and binding: choose others, unless they are fixed.
                if attempt == START_ATTEMPTS or configured or self._fixed_port:
                    raise
            else:
                return

    def wait(self) -> int | None:
        """Block until the process ends; its status, None when none runs."""
        return None if self._process is None else self._process.wait()

    def stop(self) -> None:
        """Shut down in order (SIGTERM), killed after 20 seconds."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End at once (SIGKILL)."""
        self._end(signal.SIGKILL)

    def close(self, *, keep_log: bool = False) -> None:
        """End the process and remove its files; the log stays when asked for."""
        self.kill()
        atexit.unregister(self.close)
        if keep_log:
            shutil.rmtree(self.folder / "data", ignore_errors=True)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close(keep_log=True)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def _configure(self) -> None:
        port, controller_port, *others = free_ports(2 + len(self._listeners))
        self._port = self._fixed_port or port
        self._listener_ports = {one.name: number for one, number in zip(self._listeners, others, strict=True)}
        data = self.folder / "data"
        shutil.rmtree(data, ignore_errors=True)
        properties = self.folder / "server.properties"
        text = _PROPERTIES.format(port=self._port, controller_port=controller_port, data=data)
        properties.write_text(self._with_listeners(text))
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        users = [
            f"--add-scram={mechanism}=[name={name},password={password}]"
            for name, password in self._scram_users.items()
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
        ]
        format_command = self._java(
            "kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(properties), *users
        )
        answer = subprocess.run(format_command, capture_output=True, text=True, check=False, timeout=120)
        if answer.returncode != 0:
            raise BrokerError(f"formatting the storage failed:\n{answer.stdout}{answer.stderr}")

    def _with_listeners(self, properties: str) -> str:
        """The properties with the further listeners."""
        addresses = [f"{one.name}://{self.listener(one.name)}" for one in self._listeners]
        protocols = [f"{one.name}:{one.protocol}" for one in self._listeners]
        lines = []
        for line in properties.splitlines():
            name, _, value = line.partition("=")
            if name in {"listeners", "advertised.listeners"}:
                value = ",".join([value, *addresses])
            elif name == "listener.security.protocol.map":
                value = ",".join([value, *protocols])
            lines.append(f"{name}={value}")
        for one in self._listeners:
            lines += one.properties()
        lines += [f"{name}={value}" for name, value in self._properties.items()]
        return "\n".join(lines) + "\n"

    def _java(self, main: str, *arguments: str, heap_mb: int = 128) -> list[str]:
        # Kafka writes names in capitals by the rules of the user's language: in Turkish "classic" is CLASSİC.
        options = [*self._options, "-Duser.language=en", f"-Xmx{heap_mb}m"]
        options.append("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
        return ["java", *options, "-cp", f"{self._libs}/*", main, *arguments]

    def _launch(self) -> None:
        command = self._java("kafka.Kafka", str(self.folder / "server.properties"), heap_mb=512)
        with self.log.open("ab") as log:
            # A session of its own, so that a Ctrl-C reaches the tests first and they take it down in order.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,
            )
        atexit.register(self.close)

    def _wait_ready(self) -> None:
        process = self._process
        deadline = time.monotonic() + START_TIMEOUT_S
        while process is not None and time.monotonic() < deadline:
            if process.poll() is not None:
                raise BrokerError(f"Kafka ended with status {process.returncode}:\n{self.log_tail()}")
            if _accepts("127.0.0.1", self._port):
                # In a thread: an async test that restarts its broker has a running loop here.
                with ThreadPoolExecutor(1) as thread:
                    if thread.submit(asyncio.run, _answers(self.bootstrap_servers)).result():
                        return
            time.sleep(0.1)
        raise BrokerError(f"Kafka did not answer within {START_TIMEOUT_S:.0f} s:\n{self.log_tail()}")

    def log_tail(self, characters: int = 3000) -> str:
        """The end of the broker's log."""
        return self.log.read_text(errors="replace")[-characters:] if self.log.exists() else "(no log)"

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        end_process(process, how)


class _ArchivingBroker(KafkaBroker):
    """Its classes are in a file once it has ended."""

    def __init__(self, archive: Path) -> None:
        super().__init__()
        self._archive = archive

    def _launch(self) -> None:
        self._options = [*_SHORT_LIVED, f"-XX:ArchiveClassesAtExit={self._archive}"]
        super()._launch()

    def archive(self) -> None:
        """End, and write the file. Raises BrokerError."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(_ARCHIVE_TIMEOUT_S)
        if not self._archive.exists():
            raise BrokerError(f"Java wrote no archive of Kafka's classes:\n{self.log_tail()}")


def end_process(process: subprocess.Popen[bytes] | None, how: signal.Signals) -> None:
    """Have a process of ours ended, if it runs; it is killed where it takes longer than 20 seconds."""
    if process is None or process.poll() is not None:
        return
    process.send_signal(how)
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_ports(number: int) -> list[int]:
    """Ports of the loopback interface that nobody listens on now.

    None that a system gives to outgoing connections: one of those may take such a port before the server has
    it, even a client's own that tries to reach a server that is away.
    """
    with contextlib.ExitStack() as stack:
        ports: list[int] = []
        while len(ports) < number:
            one = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                one.bind(("127.0.0.1", _DRAWN.randrange(*_SERVERS_PORTS)))
                ports.append(int(one.getsockname()[1]))
        return ports


def _die_with_parent() -> None:
    """In the child, before java: be killed should the tests be killed (Linux: PR_SET_PDEATHSIG = 1)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _port_free(port: int) -> bool:
    """Whether a server could listen on this port of the loopback interface now."""
    with socket.socket() as probe:
        # As java does, so that connections of a server that has just ended are no hindrance.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _accepts(host: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=1):
        return True
    return False


async def _answers(bootstrap_servers: str) -> bool:
    """Whether the broker lists itself, which it does only when it is ready for requests."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers, request_timeout_ms=2_000)
    try:
        await admin.start()
        cluster = await admin.describe_cluster()
        return bool(cluster["brokers"])
    except (KafkaError, OSError, TimeoutError):
        return False
    finally:
        await admin.close()
        logging.getLogger("aiokafka").setLevel(logging.NOTSET)


@contextlib.contextmanager
def running_broker(port: int | None = None) -> Iterator[str]:
    """Address of a broker for as long as the block runs: ``$GUARDRAIL_TEST_KAFKA``, or one of our own."""
    existing = os.environ.get("GUARDRAIL_TEST_KAFKA")
    if existing:
        yield existing
    else:
        with KafkaBroker(port) as broker:
            yield broker.bootstrap_servers


def main() -> int:
    """Run a broker until SIGINT or SIGTERM; its data goes with it. Status 1 when it fails."""
    parser = argparse.ArgumentParser(
        description=f"Run Apache Kafka {KAFKA_VERSION} on loopback until Ctrl-C."
    )
    parser.add_argument("--port", type=int, default=9092, help="port of the broker (default 9092)")
    port = parser.parse_args().port
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if not _port_free(port):
        sys.stderr.write(f"port {port} is in use: stop what listens there or choose another with --port\n")
        return 1
    try:
        with KafkaBroker(port) as broker:
            sys.stdout.write(f"Kafka {KAFKA_VERSION} is up on {broker.bootstrap_servers}; Ctrl-C ends it.\n")
            sys.stdout.flush()
            status = broker.wait()
            sys.stderr.write(f"Kafka ended by itself with status {status}:\n{broker.log_tail()}\n")
    except KeyboardInterrupt:
        return 0
    except BrokerError as error:
        sys.stderr.write(f"{error}\n")
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
