"""How to reach Kafka and which topics to use: plain, frozen settings, no client.

Kept apart from ``consumers`` so that configuration, command line and documentation can name them without
importing a Kafka client.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    field_validator,
    model_validator,
)

from guardrail.kafka_security_rules import check_security

TopicName = Annotated[str, StringConstraints(min_length=1, max_length=249, pattern=r"^[a-zA-Z0-9._-]+$")]
SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]

_SERVERS: Final = "HOST:PORT, with commas between several, as in kafka-1:9092,kafka-2:9092 or [::1]:9092"
_PORTS: Final = 65_536
MEBIBYTE: Final = 1024 * 1024


class Topics(BaseModel):
    """The topics, all keyed by ``response_id``. ``sessions`` has as many partitions as ``responses``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    responses: TopicName = Field(default="rag.responses", description="Input: answers as they are written.")
    deliveries: TopicName = Field(
        default="rag.deliveries", description="Output: what the chat service may show, segment by segment."
    )
    verdicts: TopicName = Field(
        default="rag.verdicts", description="Output: a verdict per claim and response."
    )
    flagged: TopicName = Field(
        default="rag.flagged",
        description="Output: the whole case of every flagged, redacted or blocked response.",
    )
    dead_letters: TopicName = Field(
        default="rag.dead-letters",
        description="Output: input that could not be read, byte for byte, with reasons.",
    )
    sessions: TopicName = Field(
        default="guardrail.sessions", description="Internal, compacted: the responses in flight."
    )

    @model_validator(mode="after")
    def _distinct(self) -> Topics:
        names = list(self.names())
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"two topics have the name {', '.join(twice)}; give every topic a name of its own"
            )
        return self

    def names(self) -> tuple[str, ...]:
        """All topic names, input first."""
        return (self.responses, *self.outputs(), self.sessions)

    def outputs(self) -> tuple[str, ...]:
        """The topics that the guard writes for others to read."""
        return (self.deliveries, self.verdicts, self.flagged, self.dead_letters)


class KafkaSettings(BaseModel):
    """Connection, group membership, reading and writing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bootstrap_servers: str = Field(
        default="localhost:9092", min_length=1, description="Brokers to ask first, as HOST:PORT[,HOST:PORT…]."
    )
    group_id: str = Field(
        default="guardrail",
        min_length=1,
        description="Consumer group; guards with the same one share the partitions.",
    )
    client_id: str = Field(
        default="guardrail", min_length=1, description="Name shown in the broker's logs and quotas."
    )
    topics: Topics = Field(default_factory=Topics, description="Names of the topics.")

    security_protocol: SecurityProtocol = Field(
        default="PLAINTEXT", description="Encryption and authentication."
    )
    ssl_cafile: Path | None = Field(
        default=None, description="PEM file of the authorities to trust; the system's when left out."
    )
    ssl_certfile: Path | None = Field(
        default=None, description="PEM file with the client's certificate chain."
    )
    ssl_keyfile: Path | None = Field(default=None, description="PEM file with the client's private key.")
    ssl_key_password: SecretStr | None = Field(
        default=None, description="Password of an encrypted ssl_keyfile. Better in a file or the environment."
    )
    ssl_key_password_file: Path | None = Field(
        default=None, description="File that holds that password (a mounted secret); read at every connect."
    )
    ssl_check_hostname: bool = Field(
        default=True, description="Refuse a broker whose certificate does not carry its host name."
    )
    sasl_mechanism: SaslMechanism = Field(
        default="PLAIN",
        description="How to log in with the SASL_ protocols: by password (PLAIN, SCRAM) or by token.",
    )
    sasl_username: str | None = Field(default=None, description="Used with PLAIN and SCRAM.")
    sasl_password: SecretStr | None = Field(
        default=None, description="Used with PLAIN and SCRAM. Better in a file or in the environment."
    )
    sasl_password_file: Path | None = Field(
        default=None, description="File that holds the password (a mounted secret); read at every connect."
    )
    sasl_oauth_token_file: Path | None = Field(
        default=None,
        description="OAUTHBEARER: file with the token; read for every connection, so it can be renewed.",
    )
    sasl_oauth_token_url: str | None = Field(
        default=None,
        description="OAUTHBEARER: token endpoint, asked with the client's id and secret.",
    )
    sasl_oauth_client_id: str | None = Field(
        default=None, min_length=1, description="The client's id at the token endpoint."
    )
    sasl_oauth_client_secret: SecretStr | None = Field(
        default=None, description="The client's secret there. Better in a file or in the environment."
    )
    sasl_oauth_client_secret_file: Path | None = Field(
        default=None, description="File that holds the client's secret; read for every token."
    )
    sasl_oauth_scope: str | None = Field(
        default=None, min_length=1, description="Scope to ask the token endpoint for; blanks between several."
    )
    sasl_oauth_cafile: Path | None = Field(
        default=None,
        description="PEM file of the authorities to trust at the token endpoint; the system's when left out.",
    )

    delivery_guarantee: Literal["exactly_once", "at_least_once"] = Field(
        default="exactly_once",
        description="exactly_once: positions, sessions and outputs in one transaction, and a restart resumes "
        "answers where they were. at_least_once: no transactions; after a restart, answers in flight begin "
        "again and what was written is written twice, with the same ids.",
    )
    transactional_id_prefix: str = Field(
        default="guardrail",
        min_length=1,
        max_length=100,
        description="Transactional ids are PREFIX-GROUP-TOPIC-PARTITION; grant the guard's user this prefix.",
    )
    transaction_timeout_ms: int = Field(
        default=15_000,
        ge=1_000,
        le=900_000,
        description="Time after which the broker gives up a transaction, so how long a dead guard can keep "
        "read_committed readers of a partition waiting.",
    )
    commit_gap_ms: int = Field(
        default=5,
        ge=0,
        le=1_000,
        description="Least time between two transactions of a partition: a broker that is still finishing "
        "one makes the next wait for longer than this.",
    )
    commit_interval_ms: int = Field(
        default=500,
        ge=1,
        le=60_000,
        description="Longest time that what was read stays uncommitted while nothing is written.",
    )
    recovery_timeout_ms: int = Field(
        default=300_000,
        ge=1_000,
        description="How long a partition that is taken over, or whose transaction failed, waits for the "
        "broker; then the guard stops.",
    )
    group_instance_id: str | None = Field(
        default=None,
        min_length=1,
        description="A name that stays the same over restarts makes the member static: back within "
        "session_timeout_ms it gets its partitions without a rebalance. Different for every guard.",
    )
    auto_offset_reset: Literal["earliest", "latest"] = Field(
        default="earliest",
        description="Where a group without a committed position begins; latest skips what is there already, "
        "and commits that position before it reads.",
    )
    isolation_level: Literal["read_committed", "read_uncommitted"] = Field(
        default="read_committed", description="Whether records of aborted transactions stay unseen."
    )
    connect_timeout_ms: int = Field(
        default=10_000, ge=100, description="Total time to reach a broker and find the topics at start."
    )
    request_timeout_ms: int = Field(
        default=30_000, ge=100, description="Longest wait for one answer of a broker."
    )
    delivery_timeout_ms: int = Field(
        default=60_000,
        ge=100,
        description="Longest wait for records to be acknowledged, or for a commit; then the guard stops.",
    )
    session_timeout_ms: int = Field(
        default=30_000,
        ge=1_000,
        description="Silence after which a guard counts as dead; also its time to drain at a rebalance.",
    )
    heartbeat_interval_ms: int = Field(
        default=3_000, ge=100, description="At most a third of the session timeout."
    )
    max_poll_interval_ms: int = Field(
        default=300_000,
        ge=1_000,
        description="Longest time between two polls before the guard leaves its group.",
    )
    max_poll_records: int = Field(default=2_000, ge=1, le=100_000, description="Most records taken at once.")
    poll_timeout_ms: int = Field(
        default=200, ge=1, le=60_000, description="Longest wait of one poll for records."
    )
    fetch_max_wait_ms: int = Field(
        default=100, ge=1, description="Longest time a broker holds a fetch until fetch_min_bytes are there."
    )
    fetch_min_bytes: int = Field(default=1, ge=1, description="A fetch is answered when this much is there.")
    max_partition_fetch_bytes: int = Field(
        default=MEBIBYTE,
        ge=1_024,
        description="Most bytes fetched ahead per partition; one larger record still comes.",
    )
    fetch_max_bytes: int = Field(default=50 * MEBIBYTE, ge=1_024, description="Most bytes in one fetch.")

    compression: Literal["none", "gzip"] = Field(
        default="none", description="Compression of what is written; these two need no further package."
    )
    linger_ms: int = Field(
        default=0,
        ge=0,
        le=1_000,
        description="Time a batch waits for company; records published together never wait.",
    )
    max_batch_bytes: int = Field(
        default=128 * 1024, ge=1_024, description="Size of a batch to one partition."
    )
    max_request_bytes: int = Field(
        default=8 * MEBIBYTE, ge=1_024, description="Largest record written; the topics' max.message.bytes."
    )

    @field_validator("bootstrap_servers")
    @classmethod
    def _have_ports(cls, value: str) -> str:
        """A server without its port would be asked on the client library's default one, unsaid."""
        for server in (part.strip() for part in value.split(",")):
            host, colon, port = server.rpartition(":")
            bare = not colon or "]" in port or (":" in host and not host.startswith("["))
            if not server or (not bare and not host):
                raise ValueError(f"{server!r} names no server; write {_SERVERS}")
            if bare or not port:
                raise ValueError(f"{server!r} has no port; write {_SERVERS}")
            if not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < _PORTS):
                raise ValueError(f"{server!r} has a port that is no number from 1 to 65535; write {_SERVERS}")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> KafkaSettings:
        if self.heartbeat_interval_ms * 3 > self.session_timeout_ms:
            raise ValueError(
                f"heartbeat_interval_ms {self.heartbeat_interval_ms} is more than a third of "
                f"session_timeout_ms {self.session_timeout_ms}; lower the first or raise the second"
            )
        check_security(self)
        return self
