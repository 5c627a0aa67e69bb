"""What all Kafka clients of a process share: options from settings, the check before start, errors.

The check before start exists because the client library reports "unable to bootstrap" for a wrong port, a
wrong password and a wrong certificate alike, and would create a misspelt topic if the broker allows it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    CommitFailedError,
    GroupAuthorizationFailedError,
    GroupCoordinatorNotAvailableError,
    IllegalStateError,
    KafkaError,
    MessageSizeTooLargeError,
    NoError,
    NotEnoughReplicasError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    for_code,
)

from consumers.kafka.security import TokenUnavailable, hint, refusal, security_options
from consumers.kafka.workarounds import confirm_token, connection, hang_up, patch_client_library
from consumers.settings import KafkaSettings
from guardrail.client.library import Repetitions, closing_failed, demoted, known_to, named
from guardrail.errors import PartitionLost, TransportError, TransportUnavailable
from guardrail.log_events import EventLog

_RETRY_S: Final = 0.25
_CLOSE_S: Final = 0.1
_NEWS_TAKES_S: Final = 0.5
_NOISY: Final = (
    "aiokafka",
    "aiokafka.cluster",
    "aiokafka.conn",
    "aiokafka.consumer.fetcher",
    "aiokafka.consumer.group_coordinator",
    "aiokafka.producer.sender",
)

_log = EventLog(__name__)


class _ThrottledLog(logging.Filter):
    """Filters log messages of the library that help nobody.

    It repeats itself ten times a second while a broker or a topic is away, and calls it an error that a new
    cluster has no group coordinator for a moment. While the guard knows that Kafka or the topics are away,
    and has said so, all of it is for debugging.
    """

    def __init__(self) -> None:
        super().__init__()
        self.away: set[object] = set()
        """Those who know and have said that something is away."""
        self._said = Repetitions()

    def filter(self, record: logging.LogRecord) -> bool:
        if self.away and record.levelno > logging.DEBUG:
            return demoted(record)
        error: object = record.args[0] if isinstance(record.args, tuple) and record.args else None
        if isinstance(error, GroupCoordinatorNotAvailableError):
            return False
        if isinstance(record.args, tuple) and NotEnoughReplicasError in record.args:
            # Brokers tell older clients this while they are still looking at the transaction. If replicas
            # were really missing, the step would fail in time and say so.
            return False
        # A topic or host comes first in a line.
        return not self._said.is_one(record, error if isinstance(error, str) else "")


_THROTTLED: Final = _ThrottledLog()


def quiet_client_log() -> None:
    """Make aiokafka log warnings and errors, without repetitions, unless the operator set a level for it."""
    log = logging.getLogger("aiokafka")
    if log.level == logging.NOTSET:
        log.setLevel(logging.WARNING)
    # Filters are not inherited, so add them to the loggers that write. Adding one again changes nothing.
    for name in _NOISY:
        logging.getLogger(name).addFilter(_THROTTLED)


def quiet_while(who: object, *, away: bool) -> None:
    """Send what aiokafka logs to debug for as long as ``who`` finds something away."""
    if away:
        _THROTTLED.away.add(who)
    else:
        _THROTTLED.away.discard(who)


def client_options(
    settings: KafkaSettings,
    kind: type[AIOKafkaAdminClient | AIOKafkaConsumer | AIOKafkaProducer] = AIOKafkaAdminClient,
) -> dict[str, Any]:
    """Arguments for a client of ``kind``: how to reach Kafka, and its part of ``settings.client``.

    Those of the admin client work for the others too. Raises ConfigError.
    """
    patch_client_library()
    return {
        **known_to(kind, settings.client),
        "bootstrap_servers": settings.bootstrap_servers,
        **security_options(settings),
    }


def groupless_options(settings: KafkaSettings) -> dict[str, Any]:
    """Arguments for a consumer without a group that reads committed records from the beginning."""
    return {
        **client_options(settings, AIOKafkaConsumer),
        "group_id": None,
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "isolation_level": "read_committed",
    }


async def connect_admin(settings: KafkaSettings, *, told: bool = False) -> AIOKafkaAdminClient:
    """A started admin client, after waiting up to ``connect_timeout_ms`` for any broker.

    Waits for a broker that is still starting, but not after a refused login; logs it, unless it was ``told``.
    Raises TransportUnavailable and ConfigError. The caller closes it.
    """
    quiet_client_log()
    reached = await _reach_any(settings, told)
    # The client would try the others for request_timeout_ms each, and in any order.
    admin = AIOKafkaAdminClient(**client_options(settings) | {"bootstrap_servers": reached})
    try:
        async with _reaching(settings):
            await admin.start()
    except BaseException:
        await admin.close()
        raise
    return admin


@asynccontextmanager
async def connected_admin(settings: KafkaSettings) -> AsyncIterator[AIOKafkaAdminClient]:
    """Within the block, the client of ``connect_admin``."""
    admin = await connect_admin(settings)
    try:
        yield admin
    finally:
        await admin.close()


@asynccontextmanager
async def _reaching(settings: KafkaSettings) -> AsyncIterator[None]:
    """Raises TransportUnavailable if Kafka doesn't answer within ``connect_timeout_ms``."""
    try:
        async with asyncio.timeout(settings.connect_timeout_ms / 1000):
            yield
    except (KafkaError, OSError, TimeoutError) as error:
        raise _unreachable(settings, error) from error


async def _reach_any(settings: KafkaSettings, told: bool) -> str:
    """Log in to the first bootstrap server that answers, and disconnect. Returns it, as HOST:PORT."""
    servers = [server.strip().rpartition(":") for server in settings.bootstrap_servers.split(",")]
    patch_client_library()
    security = security_options(settings)
    with_token = settings.security_protocol.startswith("SASL_") and settings.sasl_mechanism == "OAUTHBEARER"
    loop = asyncio.get_running_loop()
    deadline = loop.time() + settings.connect_timeout_ms / 1000
    last: BaseException = TimeoutError("no answer")
    while True:
        for number, (host, _, port) in enumerate(servers):
            # One that is away and refuses nothing leaves the others their share of the time.
            share_s = (deadline - loop.time()) / (len(servers) - number)
            left_ms = max(100, int(share_s * 1000))
            attempt = connection(
                host.strip("[]"),
                int(port),
                client_id=settings.client["client_id"],
                request_timeout_ms=left_ms,
                **security,
            )
            try:
                async with asyncio.timeout(left_ms / 1000):
                    await attempt.connect()
                    if with_token:
                        await confirm_token(attempt)
            except (KafkaError, OSError, TimeoutError, ValueError) as error:
                final = refusal(settings, f"{host}:{port}", error)
                if final is not None:
                    raise final from error
                # A time-out says less than the error before it.
                if not isinstance(error, TimeoutError) or isinstance(last, TimeoutError):
                    last = error
            else:
                return f"{host}:{port}"
            finally:
                # With TLS, closing takes a moment, which a loop that ends at once would not allow.
                await asyncio.wait([attempt.close()], timeout=_CLOSE_S)
        if loop.time() + _RETRY_S >= deadline:
            raise _unreachable(settings, last) from last
        if not told:
            _log.warning("guard.kafka_awaited", servers=settings.bootstrap_servers, error=named(last))
            told = True
        await asyncio.sleep(_RETRY_S)


def _unreachable(settings: KafkaSettings, error: BaseException) -> TransportUnavailable:
    if isinstance(error, TokenUnavailable):
        return TransportUnavailable(
            f"no token to log in to Kafka with within {settings.connect_timeout_ms} ms: {error.args[0]}"
        )
    return TransportUnavailable(
        f"Kafka can't be reached at {settings.bootstrap_servers} within {settings.connect_timeout_ms} ms "
        f"({named(error)}); start it, or check bootstrap_servers and security_protocol "
        f"{settings.security_protocol}{hint(settings, error)}"
    )


async def require_topics(admin: AIOKafkaAdminClient, settings: KafkaSettings, names: Collection[str]) -> None:
    """Raise TransportUnavailable naming those of ``names`` that don't exist. Creates none of them.

    Asks twice before it raises: a broker learns about a new topic with a delay.
    """
    missing = await _missing(admin, settings, names)
    if missing:
        await asyncio.sleep(_NEWS_TAKES_S)
        missing = await _missing(admin, settings, names)
    if missing:
        raise TransportUnavailable(
            f"Kafka at {settings.bootstrap_servers} has no topic {', '.join(missing)}, or this user "
            f"may not see it; create it with: {settings.create_command}"
        )
    if settings.topics.sessions in names:
        await _require_compacted(admin, settings, settings.topics.sessions)


async def _missing(admin: AIOKafkaAdminClient, settings: KafkaSettings, names: Collection[str]) -> list[str]:
    async with _reaching(settings):
        return sorted(set(names).difference(await admin.list_topics()))


async def closed_in_time(what: str, closing: Coroutine[Any, Any, None], limit_s: float) -> bool:
    """Close a client, and return whether that worked in time; logs if it didn't. See ``closing_failed``."""
    met = await closing_failed(closing, limit_s)
    if met is not None:
        _log.warning("guard.kafka_close_failed", what=what, error=met)
    return met is None


async def close_consumer(consumer: AIOKafkaConsumer, limit_s: float) -> None:
    """Leave the group, if there is one, and close all connections, even if no broker answers."""
    if not await closed_in_time("consumer", consumer.stop(), limit_s):
        # If closing is interrupted, which an absent broker can cause, connections stay open.
        await hang_up(consumer)


async def _require_compacted(admin: AIOKafkaAdminClient, settings: KafkaSettings, name: str) -> None:
    """Raise TransportUnavailable if the topic deletes by age: answers in flight would be lost.

    If this user may not see the topic's configuration, assumes that it is right.
    """
    async with _reaching(settings):
        found = await described_configs(admin, ConfigResourceType.TOPIC, {name: ["cleanup.policy"]})
    policy = found.get(name, {}).get("cleanup.policy", "compact")
    if policy != "compact":
        raise TransportUnavailable(
            f"topic {name} has cleanup.policy={policy} and keeps the answers in flight, "
            "which must not be deleted by age or size; set cleanup.policy=compact, or name another "
            f"topic in topics.sessions and make it with: {settings.create_command}"
        )


async def described_configs(
    admin: AIOKafkaAdminClient, kind: ConfigResourceType, asked: Mapping[str, Collection[str]]
) -> dict[str, dict[str, str]]:
    """Settings of topics or brokers, by name, as far as this user may see them. Raises KafkaError."""
    resources = [
        ConfigResource(kind, name, configs=dict.fromkeys(names, "")) for name, names in asked.items()
    ]
    answers: list[Any] = await admin.describe_configs(resources) if resources else []
    return {
        name: {entry[0]: entry[1] for entry in entries}
        for answer in answers
        for code, _message, _kind, name, entries in answer.resources
        if for_code(code) is NoError
    }


@asynccontextmanager
async def asking(doing: str, within_ms: int | None = None) -> AsyncIterator[None]:
    """Raises our error for one of aiokafka's that the block ends with, or where it takes longer than
    ``within_ms``; see ``translated``.
    """
    try:
        async with asyncio.timeout(None if within_ms is None else within_ms / 1000):
            yield
    except (KafkaError, OSError, TimeoutError) as error:
        raise translated(error, doing) from error


def translated(error: BaseException, doing: str, if_late: str = "") -> TransportError:
    """Our error for one of aiokafka's, begun with ``doing``; ``if_late``: the remedy without an answer."""
    match error:
        case TransportError():
            return error
        case TimeoutError():
            remedy = f"; {if_late}" if if_late else ""
            return TransportError(
                f"{doing}: no answer from Kafka in time; whether it was done is unknown{remedy}"
            )
        case CommitFailedError() | IllegalStateError():
            return PartitionLost(f"{doing}: the group has given the partition to another member")
        case GroupAuthorizationFailedError() | TopicAuthorizationFailedError():
            return TransportUnavailable(
                f"{doing}: access denied ({named(error)}); grant this user access to it"
            )
        case UnknownTopicOrPartitionError():
            return TransportUnavailable(f"{doing}: the topic does not exist; run guardrail topics create")
        case MessageSizeTooLargeError():
            return TransportError(f"{doing}: a record is over the topic's max.message.bytes; raise it there")
        case _:
            return TransportError(f"{doing}: {named(error)}")
