"""The Kafka settings, and the whole configuration of a guard on Kafka.

``kafka.client`` is passed to the client library, aiokafka, under the library's own names; everything else in
the section is the guard's. This module imports no Kafka client until ``kafka.client`` sets something.

Security settings without effect are rejected: otherwise somebody who sets a password and forgets the protocol
would send data in the clear without knowing. Every message names the field, the problem and the remedy.
"""

from __future__ import annotations

import functools
import inspect
import ipaddress
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    Field,
    PrivateAttr,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.config import JsonDict
from pydantic_core import InitErrorDetails
from pydantic_settings import BaseSettings

from consumers.gateway.settings import ServeSettings
from guardrail import config
from guardrail.config import SettingsFile
from guardrail.errors import ConfigError
from guardrail.frozen import Frozen
from guardrail.routing import Scope
from guardrail.secrets import Secret

_TLS_ONLY: Final = ("ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_key_password")
_PASSWORD_ONLY: Final = ("sasl_username", "sasl_password")
_CLIENT_ONLY: Final = ("sasl_oauth_client_id", "sasl_oauth_client_secret", "sasl_oauth_scope")
_OAUTH_ONLY: Final = ("sasl_oauth_token_file", "sasl_oauth_token_url", *_CLIENT_ONLY)


def check_security(settings: KafkaSettings) -> None:
    """Raise ValueError for security settings that can't work or have no effect."""
    protocol, mechanism = settings.security_protocol, settings.sasl_mechanism
    encrypts, logs_in = protocol.endswith("SSL"), protocol.startswith("SASL_")
    by_token = logs_in and mechanism == "OAUTHBEARER"
    by_url = settings.sasl_oauth_token_url is not None or settings.sasl_oauth_token_file is None
    by_protocol, by_mechanism = f"with security_protocol {protocol}", f"with sasl_mechanism {mechanism}"
    log_in = f"set security_protocol to {'SASL_SSL' if encrypts else 'SASL_SSL (or SASL_PLAINTEXT)'}"
    pair = (settings.ssl_certfile is None) == (settings.ssl_keyfile is None)
    # Which settings, whether they have an effect, where they have none, and what to do.
    for names, works, where, instead in (
        (_TLS_ONLY, encrypts, by_protocol, f"set security_protocol to {'SASL_SSL' if logs_in else 'SSL'}"),
        (
            _TLS_ONLY[3:],
            settings.ssl_keyfile or not pair,
            "without ssl_keyfile",
            "give ssl_certfile and ssl_keyfile",
        ),
        ((*_PASSWORD_ONLY, *_OAUTH_ONLY), logs_in, by_protocol, log_in),
        (_OAUTH_ONLY, by_token, by_mechanism, "set sasl_mechanism to OAUTHBEARER"),
        (_PASSWORD_ONLY, not by_token, by_mechanism, "give the client's id and secret"),
        (_CLIENT_ONLY, by_url, "with sasl_oauth_token_file", "give sasl_oauth_token_url instead of it"),
    ):
        given = [name for name in names if getattr(settings, name) is not None]
        if given and not works:
            have, them = ("has", "it") if len(given) == 1 else ("have", "them")
            raise ValueError(f"{' and '.join(given)} {have} no effect {where}; {instead}, or take {them} out")
    if not pair:
        raise ValueError("ssl_certfile and ssl_keyfile go together; give both or neither")
    if logs_in:
        _check_login(settings, f"security_protocol {protocol} {by_mechanism} needs")
    elif mechanism != "PLAIN":
        raise ValueError(
            f"sasl_mechanism {mechanism} has no effect {by_protocol}; {log_in}, or leave sasl_mechanism out"
        )


def _check_login(settings: KafkaSettings, needs: str) -> None:
    if settings.sasl_mechanism != "OAUTHBEARER":
        if not settings.sasl_username:
            raise ValueError(f"{needs} sasl_username; give the user's name")
        if settings.sasl_password is None:
            raise ValueError(f"{needs} sasl_password; give it, or the file that holds it as {{file: PATH}}")
        return
    if settings.sasl_oauth_token_url is None:
        if settings.sasl_oauth_token_file is None:
            raise ValueError(f"{needs} sasl_oauth_token_file or sasl_oauth_token_url; give one of them")
        return
    if settings.sasl_oauth_token_file is not None:
        raise ValueError(
            "sasl_oauth_token_file and sasl_oauth_token_url are both given, and not both may be; take one out"
        )
    _check_url(settings.sasl_oauth_token_url)
    if settings.sasl_oauth_client_id is None:
        raise ValueError("sasl_oauth_token_url needs sasl_oauth_client_id; give the client's id there")
    if settings.sasl_oauth_client_secret is None:
        raise ValueError(
            "sasl_oauth_token_url needs sasl_oauth_client_secret; give it, or the file that holds it as "
            "{file: PATH}"
        )


def _check_url(url: str) -> None:
    """The client's secret goes there: nobody may read it in transit, and the URL itself holds none."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    form = "write https://HOST[:PORT]/PATH"
    if not host or parts.scheme not in {"http", "https"}:
        raise ValueError(f"sasl_oauth_token_url {without_query(url)!r} is not an https URL; {form}")
    if parts.username or parts.password:
        raise ValueError(
            "sasl_oauth_token_url holds a user name or password; give them as sasl_oauth_client_id and "
            "sasl_oauth_client_secret"
        )
    if parts.fragment:
        raise ValueError(f"sasl_oauth_token_url {without_query(url)!r} has a fragment; {form}")
    if parts.scheme == "http" and not is_loopback(host):
        raise ValueError(
            f"sasl_oauth_token_url {without_query(url)!r} would send the client's secret in the clear; "
            "write it with https, http is for this machine only (localhost)"
        )


def without_query(url: str) -> str:
    """A URL for messages, without its query, which may contain a key."""
    return url.split("?", 1)[0].split("#", 1)[0]


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


TopicName = Annotated[str, StringConstraints(min_length=1, max_length=249, pattern=r"^[a-zA-Z0-9._-]+$")]
SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]

_SERVERS: Final = "HOST:PORT, with commas between several, as in kafka-1:9092,kafka-2:9092 or [::1]:9092"
_PORTS: Final = 65_536
MEBIBYTE: Final = 1024 * 1024


class Topics(Frozen):
    """The topics, all keyed by ``response_id``. ``sessions`` has as many partitions as ``responses``."""

    responses: TopicName = Field(default="rag.responses", description="Input: answers as they are written.")
    deliveries: TopicName = Field(
        default="rag.deliveries", description="Output: what the chat service may show, segment by segment."
    )
    verdicts: TopicName = Field(
        default="rag.verdicts", description="Output: a verdict for each claim and each response."
    )
    flagged: TopicName = Field(
        default="rag.flagged",
        description="Output: the whole case of every flagged, redacted or blocked response.",
    )
    dead_letters: TopicName = Field(
        default="rag.dead-letters", description="Output: unusable input, byte for byte, with the reasons."
    )
    sessions: TopicName = Field(
        default="guardrail.sessions", description="Internal, compacted: the responses in flight."
    )
    labels: TopicName = Field(
        default="rag.labels",
        description="Labels: people's verdicts on claims and responses, for tune and replay; the guard "
        "doesn't need it.",
    )

    @model_validator(mode="after")
    def _distinct(self) -> Topics:
        names = [*self.names(), self.labels]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"two topics have the name {', '.join(twice)}; give every topic a name of its own"
            )
        return self

    def names(self) -> tuple[str, ...]:
        """The topics that the guard needs, input first."""
        return (self.responses, *self.outputs(), self.sessions)

    def outputs(self) -> tuple[str, ...]:
        """The topics that the guard writes for others to read."""
        return (self.deliveries, self.verdicts, self.flagged, self.dead_letters)


class Producers(Scope):
    """What the producers of the input topic are held to, as a key of the gateway holds callers."""

    holder: ClassVar[str] = "a producer of this topic"


class _Parameter(NamedTuple):
    """A parameter of aiokafka for which the guard has its own default, and the type of its values."""

    default: int | str | None
    kind: Any


def _whole(least: int, most: int | None = None) -> Any:
    return Annotated[int, Field(ge=least, le=most)]


_CLIENT: Final = {
    "client_id": _Parameter("guardrail", Annotated[str, Field(min_length=1)]),
    "request_timeout_ms": _Parameter(30_000, _whole(100)),
    "session_timeout_ms": _Parameter(7_000, _whole(1_000)),
    "heartbeat_interval_ms": _Parameter(2_000, _whole(100)),
    "max_poll_interval_ms": _Parameter(300_000, _whole(1_000)),
    "max_poll_records": _Parameter(2_000, _whole(1, 100_000)),
    "fetch_max_wait_ms": _Parameter(100, _whole(1)),
    "fetch_min_bytes": _Parameter(1, _whole(1)),
    "fetch_max_bytes": _Parameter(50 * MEBIBYTE, _whole(1_024)),
    "max_partition_fetch_bytes": _Parameter(MEBIBYTE, _whole(1_024)),
    "isolation_level": _Parameter("read_committed", Literal["read_committed", "read_uncommitted"]),
    "compression_type": _Parameter(None, Literal["gzip", "snappy", "lz4", "zstd"] | None),
    "linger_ms": _Parameter(0, _whole(0, 1_000)),
    "max_batch_size": _Parameter(128 * 1024, _whole(1_024)),
    "max_request_size": _Parameter(8 * MEBIBYTE, _whole(1_024)),
    "transaction_timeout_ms": _Parameter(15_000, _whole(1_000, 900_000)),
}
_KINDS: Final[Mapping[str, Any]] = {"client_rack": str, "rebalance_timeout_ms": int}
"""Where aiokafka's default doesn't tell the type, or says too little."""

_ELSEWHERE: Final = {
    name: f"set kafka.{name}"
    for name in (
        "bootstrap_servers",
        "group_id",
        "group_instance_id",
        "auto_offset_reset",
        "security_protocol",
        "sasl_mechanism",
    )
} | {
    "topics": "set kafka.topics",
    "ssl_context": "set kafka.ssl_cafile, kafka.ssl_certfile and kafka.ssl_keyfile",
    "sasl_plain_username": "set kafka.sasl_username",
    "sasl_plain_password": "set kafka.sasl_password",
    "sasl_oauth_token_provider": "set kafka.sasl_oauth_token_file or kafka.sasl_oauth_token_url",
    "transactional_id": "the guard makes one for each partition",
}
_OURS: Final = frozenset(
    {
        "acks",
        "api_version",
        "auto_commit_interval_ms",
        "consumer_timeout_ms",
        "enable_auto_commit",
        "enable_idempotence",
        "key_deserializer",
        "key_serializer",
        "loop",
        "partition_assignment_strategy",
        "partitioner",
        "sasl_kerberos_domain_name",
        "sasl_kerberos_service_name",
        "value_deserializer",
        "value_serializer",
    }
)
"""What the guard's promises rest on, and what can't be written in a file."""


@functools.cache
def _parameters() -> dict[str, Any]:
    """The parameters of aiokafka's clients that a user may set, with aiokafka's defaults."""
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.admin import AIOKafkaAdminClient

    return {
        name: parameter.default
        for kind in (AIOKafkaAdminClient, AIOKafkaConsumer, AIOKafkaProducer)
        for name, parameter in inspect.signature(kind).parameters.items()
        if name not in _OURS and name not in _ELSEWHERE
    }


def _known_parameter(name: str) -> str:
    """Raise ValueError, listing the alternatives, unless users may set this parameter of aiokafka."""
    if name in _ELSEWHERE:
        raise ValueError(f"this is not a matter of the client; {_ELSEWHERE[name]}")
    if name in _OURS:
        raise ValueError("the guard sets it, because its promises rest on it; take it out")
    if name not in _CLIENT and name not in _parameters():
        known = ", ".join(sorted(_parameters()))
        raise ValueError(f"aiokafka has no parameter of this name; it has: {known}")
    return name


def _kind(name: str) -> Any:
    """The type of a parameter's values, as an annotation."""
    if name in _CLIENT:
        return _CLIENT[name].kind
    if name in _KINDS:
        return _KINDS[name]
    default = _parameters()[name]
    if default is None:
        return bool | int | float | str | None
    return _whole(0) if type(default) is int else type(default)


def _describe_client(schema: JsonDict) -> None:
    """Describes aiokafka's parameters to editors, with their types and the defaults that apply."""
    defaults = _parameters() | {name: each.default for name, each in _CLIENT.items()}
    schema["properties"] = {
        name: TypeAdapter(_kind(name)).json_schema()
        | {"default": default, "description": "A parameter of aiokafka; its documentation says more."}
        for name, default in sorted(defaults.items())
    }
    schema["additionalProperties"] = False


@dataclass(frozen=True)
class _ReadFrom:
    """The file that settings came from. The same settings of another file are equal to them."""

    path: Path | None = field(default=None, compare=False)


class KafkaSettings(Frozen):
    """Connection, group membership, reading and writing."""

    connect_timeout_ms: ClassVar[int] = 10_000
    """Total time to reach a broker and find the topics at start. Whatever starts the guard tries again."""
    delivery_timeout_ms: ClassVar[int] = 60_000
    """Longest wait for records to be acknowledged, or for a commit; then the guard stops. Brokers that take
    longer than a fail-over takes don't come back by waiting."""
    recovery_timeout_ms: ClassVar[int] = 300_000
    """How long a partition that is taken over, or whose transaction failed, waits for the broker; then the
    guard stops. Long enough for a rolling restart of the brokers."""
    transactional_id_prefix: ClassVar[str] = "guardrail"
    """Transactional ids are PREFIX-GROUP-TOPIC-PARTITION; the guard's user is granted the prefix."""

    _file: _ReadFrom = PrivateAttr(default=_ReadFrom())

    @property
    def create_command(self) -> str:
        """The command that makes the topics of these settings; errors name it as the remedy."""
        path = self._file.path
        given = "" if path is None else f" -c {shlex.quote(str(path))}"
        return f"guardrail topics create{given} --bootstrap-servers {shlex.quote(self.bootstrap_servers)}"

    bootstrap_servers: str = Field(
        default="localhost:9092",
        min_length=1,
        description="Brokers to contact first, as HOST:PORT[,HOST:PORT…].",
    )
    group_id: str = Field(
        default="guardrail",
        min_length=1,
        description="Consumer group; guards with the same group share the partitions.",
    )
    topics: Topics = Field(default_factory=Topics, description="Names of the topics.")
    producers: Producers | None = Field(
        default=None,
        description="What all who may write to topics.responses are held to; null: a producer names tenant, "
        "route and model, and thereby chooses its policy (docs/security.md).",
    )

    security_protocol: SecurityProtocol = Field(
        default="PLAINTEXT", description="Encryption and authentication."
    )
    ssl_cafile: Path | None = Field(
        default=None,
        description="PEM file of the CAs to trust; if omitted, the system's. A token endpoint may be of "
        "these or of the system's.",
    )
    ssl_certfile: Path | None = Field(
        default=None, description="PEM file with the client's certificate chain."
    )
    ssl_keyfile: Path | None = Field(default=None, description="PEM file with the client's private key.")
    ssl_key_password: Secret | None = Field(
        default=None,
        description="Password of an encrypted ssl_keyfile, better as {file: PATH}; read for every "
        "connection.",
    )
    sasl_mechanism: SaslMechanism = Field(
        default="PLAIN",
        description="How to log in with the SASL_ protocols: by password (PLAIN, SCRAM) or by token.",
    )
    sasl_username: str | None = Field(default=None, description="Used with PLAIN and SCRAM.")
    sasl_password: Secret | None = Field(
        default=None,
        description="Used with PLAIN and SCRAM. Better as {file: PATH} (a mounted secret), read for "
        "every connection, or in the environment.",
    )
    sasl_oauth_token_file: Path | None = Field(
        default=None,
        description="OAUTHBEARER: file with the token; read for every connection, so that it can be renewed.",
    )
    sasl_oauth_token_url: str | None = Field(
        default=None, description="OAUTHBEARER: token endpoint, called with the client's id and secret."
    )
    sasl_oauth_client_id: str | None = Field(
        default=None, min_length=1, description="The client's id at the token endpoint."
    )
    sasl_oauth_client_secret: Secret | None = Field(
        default=None,
        description="The client's secret at the token endpoint. Better as {file: PATH}, read for "
        "every token, or in the environment.",
    )
    sasl_oauth_scope: str | None = Field(
        default=None,
        min_length=1,
        description="Scopes to request from the token endpoint, separated by spaces.",
    )

    delivery_guarantee: Literal["exactly_once", "at_least_once"] = Field(
        default="exactly_once",
        description="exactly_once: positions, sessions and outputs in one transaction; a restart "
        "resumes answers where they were. at_least_once: no transactions; after a "
        "restart, answers in flight start over and their outputs are written twice, with "
        "the same ids.",
    )
    group_instance_id: str | None = Field(
        default=None,
        min_length=1,
        description="A name that stays the same across restarts makes the member static: if it is "
        "back within session_timeout_ms, it gets its partitions without a rebalance. Use "
        "a different one for every guard.",
    )
    auto_offset_reset: Literal["earliest", "latest"] = Field(
        default="earliest",
        description="Where a group without a committed position starts. latest skips existing "
        "records, and commits that position before reading.",
    )
    client: dict[Annotated[str, AfterValidator(_known_parameter)], Any] = Field(
        default_factory=dict,
        validate_default=True,
        json_schema_extra=_describe_client,
        description="Parameters of aiokafka's consumer, producer and admin client by aiokafka's names, such "
        "as fetch_max_bytes or linger_ms; each client gets those that it knows. What is left out is as "
        "'guardrail config show' prints it, else aiokafka's default.",
    )

    @field_validator("bootstrap_servers")
    @classmethod
    def _have_ports(cls, value: str) -> str:
        """Without a port, the client library would silently use its default one."""
        for server in (part.strip() for part in value.split(",")):
            host, colon, port = server.rpartition(":")
            bare = not colon or "]" in port or (":" in host and not host.startswith("["))
            if not server or (not bare and not host):
                raise ValueError(f"{server!r} names no server; write {_SERVERS}")
            if bare or not port:
                raise ValueError(f"{server!r} has no port; write {_SERVERS}")
            if not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < _PORTS):
                raise ValueError(
                    f"{server!r} has a port that is not a number from 1 to 65535; write {_SERVERS}"
                )
        return value

    @field_validator("client")
    @classmethod
    def _complete(cls, value: Mapping[str, Any]) -> dict[str, Any]:
        """The given parameters, converted to their types, over the guard's own defaults."""
        complete: dict[str, Any] = {name: each.default for name, each in _CLIENT.items()}
        wrong: list[InitErrorDetails] = []
        for name, given in value.items():
            try:
                complete[name] = TypeAdapter(_kind(name)).validate_python(given)
            except ValidationError as error:
                first = error.errors()[0]
                wrong.append(
                    {"type": first["type"], "loc": (name,), "input": given, "ctx": first.get("ctx", {})}
                )
        if wrong:
            raise ValidationError.from_exception_data(cls.__name__, wrong)
        return complete

    @model_validator(mode="after")
    def _consistent(self) -> KafkaSettings:
        heartbeat_ms = self.client["heartbeat_interval_ms"]
        if heartbeat_ms * 3 > self.session_timeout_ms:
            raise ValueError(
                f"client.heartbeat_interval_ms {heartbeat_ms} is more than a third of "
                f"client.session_timeout_ms {self.session_timeout_ms}; lower the first or raise the second"
            )
        check_security(self)
        return self

    def __hash__(self) -> int:  # a mapping, as client is one, has none
        return hash((self.bootstrap_servers, self.group_id, self.topics))

    @property
    def request_timeout_ms(self) -> int:
        """Longest wait for a broker's response."""
        return int(self.client["request_timeout_ms"])

    @property
    def session_timeout_ms(self) -> int:
        """Silence after which a guard counts as dead; also its time to drain at a rebalance."""
        return int(self.client["session_timeout_ms"])

    @property
    def transaction_timeout_ms(self) -> int:
        """Time after which the broker aborts a transaction."""
        return int(self.client["transaction_timeout_ms"])

    @property
    def max_request_bytes(self) -> int:
        """Largest record written; the topics allow as much."""
        return int(self.client["max_request_size"])


class OpsSettings(Frozen):
    """Where health and metrics are served."""

    host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address to listen on; 0.0.0.0 in a container, so that probes and Prometheus reach it.",
    )
    port: Annotated[int, Field(ge=0, le=65_535)] | None = Field(
        default=8080,
        description="Port of /livez, /readyz, /startupz and /metrics; null: none. If it is taken, the "
        "guard logs that and runs without it. guardrail flagged serves them too, on another "
        "port where both run on one machine.",
    )
    traces: bool = Field(
        default=False,
        description="Export OpenTelemetry spans and evaluation events, as configured by the OTEL_ "
        "variables; needs the extra otel.",
    )


class FlaggedSettings(Frozen):
    """What ``guardrail flagged`` does with the cases of flagged answers."""

    store: Secret | None = Field(
        default=None,
        description="Where cases are kept: sqlite:///FILE, or postgresql://USER@HOST/DATABASE with the extra "
        "postgres. It may hold a password, so it can stand in a file or a variable.",
    )
    webhook_url: Secret | None = Field(
        default=None,
        description="Each new case is posted there, signed; none when left out. The whole case goes, with "
        "question, contexts and answer.",
    )
    webhook_secret: Secret | None = Field(
        default=None,
        description="What posts are signed with: whsec_ and the base64 of 24 to 64 random bytes.",
    )

    @model_validator(mode="after")
    def _signed(self) -> FlaggedSettings:
        if self.webhook_url is not None and self.webhook_secret is None:
            raise ValueError(
                "webhook_url is set and webhook_secret is not; posts are signed: make a secret with "
                "echo whsec_$(openssl rand -base64 32), and give it to the receiver too"
            )
        return self

    def notes(self) -> list[str]:
        """A line for each thing that ``guardrail flagged`` would refuse or warn of here."""
        if self.store is None and self.webhook_url is None:
            return []  # most guards run without it, and doctor must not need its packages
        from consumers.cases import check_store
        from consumers.flagged import IN_CLEAR, in_clear, receiver, signing_key
        from guardrail.doctor import refused

        def store() -> None:
            if self.store is not None:
                check_store(self.store.read("flagged.store", "store's URL"), "flagged.store")

        def secret() -> None:
            if self.webhook_secret is not None:
                name = "flagged.webhook_secret"
                signing_key(self.webhook_secret.read(name, "webhook's secret"), name)

        def url() -> None:
            if self.webhook_url is not None:
                place = receiver(self.webhook_url.read("flagged.webhook_url", "webhook's URL"))
                if in_clear(place):
                    raise ConfigError(f"flagged.webhook_url: {IN_CLEAR}; use https://")

        return [*refused(store), *refused(secret), *refused(url)]


class _ProcessSections(BaseSettings):
    kafka: KafkaSettings = Field(
        default_factory=KafkaSettings, description="Brokers, consumer group, topics, security, the client."
    )
    ops: OpsSettings = Field(default_factory=OpsSettings, description="Health and metrics over HTTP.")
    flagged: FlaggedSettings = Field(
        default_factory=FlaggedSettings, description="What guardrail flagged does with cases for review."
    )
    serve: ServeSettings = Field(
        default_factory=ServeSettings, description="The gateway in front of a model, guardrail serve."
    )


class GuardSettings(config.Settings, _ProcessSections):  # in this order ``kafka`` is shown first
    """The whole configuration of the processes: the core's sections and those above."""

    model_config = config.Settings.model_config


def load_settings(
    path: Path | str | SettingsFile | None = None, overrides: Mapping[str, Any] | None = None
) -> GuardSettings:
    """As ``guardrail.config.load_settings``, with the section ``kafka``. Raises SettingsError."""
    settings = config.load_settings(path, overrides, kind=GuardSettings)
    if path is not None:
        settings.kafka._file = _ReadFrom(path.path if isinstance(path, SettingsFile) else Path(path))
    return settings


def with_places(
    error: ConfigError, path: Path | SettingsFile | None, overrides: Mapping[str, Any] | None = None
) -> ConfigError:
    """Like ``guardrail.config.with_places``, with the section ``kafka``."""
    return config.with_places(error, path, overrides, kind=GuardSettings)
