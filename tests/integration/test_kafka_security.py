"""Every way to encrypt the wire and to log in, against a real broker: what works, and what is told if not."""

from __future__ import annotations

import asyncio
import ssl
import uuid
from asyncio.selector_events import BaseSelectorEventLoop
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import NewTopic

from consumers.kafka import client_options, connect_admin, require_topics
from consumers.settings import KafkaSettings
from guardrail.errors import ConfigError, TransportUnavailable
from tests.conftest import own_broker
from tests.support.certificates import KEY_PASSWORD, Authority, Issued
from tests.support.constants import made
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_listeners import Listener, oauth_login, plain_login, scram_login, tls
from tests.support.token_server import CLIENT_ID, CLIENT_SECRET, Answer, TokenServer, unsigned_token

pytestmark = pytest.mark.kafka

PASSWORD = "right-one"
WRONG = "wrong-one"
LONG_MS = 60_000
"""A connect timeout that no test waits for: where it is set, the error has to come before."""
SHORT_MS = 1_000


@dataclass(frozen=True, slots=True)
class Wire:
    """A broker with a listener for every way in, and the files that belong to it."""

    broker: KafkaBroker
    authority: Authority
    stranger: Authority
    server: Issued
    client: Issued

    def settings(self, listener: str, **changes: Any) -> KafkaSettings:
        protocol = {"TLS": "SSL", "MUTUAL": "SSL", "ELSEWHERE": "SSL", "SCRAM": "SASL_PLAINTEXT"}
        base: dict[str, Any] = {
            "bootstrap_servers": self.broker.listener(listener),
            "security_protocol": protocol.get(listener, "SASL_SSL"),
            "connect_timeout_ms": LONG_MS,
        }
        if base["security_protocol"].endswith("SSL"):
            base["ssl_cafile"] = self.authority.cafile
        return made(KafkaSettings, **base | changes)


@pytest.fixture(scope="module")
def wire(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    folder = tmp_path_factory.mktemp("certificates")
    authority, stranger = Authority(folder / "own"), Authority(folder / "stranger")
    server = authority.issue("127.0.0.1")
    listeners = [
        Listener("TLS", "SSL", tls(server)),
        Listener("MUTUAL", "SSL", tls(server, client_ca=authority.cafile)),
        Listener("ELSEWHERE", "SSL", tls(authority.issue("kafka.elsewhere.test"))),
        Listener("PLAIN", "SASL_SSL", tls(server) | plain_login({"guard": PASSWORD})),
        Listener("SCRAM", "SASL_PLAINTEXT", scram_login()),
        Listener("SCRAMTLS", "SASL_SSL", tls(server) | scram_login()),
        Listener("OAUTH", "SASL_SSL", tls(server) | oauth_login("kafka")),
    ]
    broker = own_broker(request.config, listeners=listeners, scram_users={"guard": PASSWORD})
    try:
        broker.start()
        yield Wire(broker, authority, stranger, server, authority.issue("guard"))
    finally:
        broker.close()


@pytest.fixture(autouse=True)
async def closed_connections() -> AsyncIterator[None]:
    """The client library does not wait for the end of its first connection; with TLS it takes a moment."""
    yield
    loop = asyncio.get_running_loop()
    assert isinstance(loop, BaseSelectorEventLoop)
    transports = list(loop._transports.values())  # type: ignore[attr-defined]  # by file descriptor
    async with asyncio.timeout(10):
        while any(transport._sock is not None for transport in transports):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def round_trip(settings: KafkaSettings) -> None:
    """All clients of a guard: make a topic, read, write and commit the position in a transaction."""
    topic, group = f"topic-{uuid.uuid4().hex}", uuid.uuid4().hex
    place = TopicPartition(topic, 0)
    admin = await connect_admin(settings)
    producer = AIOKafkaProducer(**client_options(settings), transactional_id=group)
    consumer = AIOKafkaConsumer(
        **client_options(settings),
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    try:
        await admin.create_topics([NewTopic(topic, 1, 1)])
        await require_topics(admin, settings, [topic])
        async with asyncio.timeout(60):
            await producer.start()
            await consumer.start()
            consumer.subscribe([topic])
            async with producer.transaction():
                await (await producer.send(topic, b"question", partition=0))
            assert (await consumer.getone()).value == b"question"
            async with producer.transaction():
                await (await producer.send(topic, b"verdict", partition=0))
                await producer.send_offsets_to_transaction({place: 1}, group)
            # The marker of the first transaction lies between the two records.
            assert (await consumer.getone()).value == b"verdict"
            assert await consumer.committed(place) == 1
    finally:
        await consumer.stop()
        await producer.stop()
        await admin.close()


async def refused(settings: KafkaSettings) -> str:
    """The message of the attempt to connect, which is soon refused and has no secret in it."""
    async with asyncio.timeout(30):
        with pytest.raises(TransportUnavailable) as caught:
            await connect_admin(settings)
    message = str(caught.value)
    assert all(secret not in message for secret in (PASSWORD, WRONG, CLIENT_SECRET, KEY_PASSWORD, "eyJ"))
    return message


class TestTls:
    async def test_the_broker_is_trusted_by_its_authority(self, wire: Wire) -> None:
        await round_trip(wire.settings("TLS"))

    async def test_a_client_certificate(self, wire: Wire) -> None:
        client = wire.client
        await round_trip(wire.settings("MUTUAL", ssl_certfile=client.certfile, ssl_keyfile=client.keyfile))

    async def test_an_encrypted_key_with_its_password_in_a_file(self, wire: Wire, tmp_path: Path) -> None:
        (tmp_path / "password").write_text(KEY_PASSWORD + "\n")
        settings = wire.settings(
            "MUTUAL",
            ssl_certfile=wire.client.certfile,
            ssl_keyfile=wire.client.encrypted_keyfile,
            ssl_key_password={"file": tmp_path / "password"},
        )
        await (await connect_admin(settings)).close()

    async def test_an_unknown_authority(self, wire: Wire) -> None:
        message = await refused(wire.settings("TLS", ssl_cafile=wire.stranger.cafile))
        assert "is not trusted" in message
        assert f"ssl_cafile (now {wire.stranger.cafile})" in message

    async def test_another_host_name(self, wire: Wire) -> None:
        message = await refused(wire.settings("ELSEWHERE"))
        assert "not valid for '127.0.0.1'" in message
        assert "connect by a name that stands in it" in message

    async def test_no_client_certificate_where_one_is_wanted(self, wire: Wire) -> None:
        message = await refused(wire.settings("MUTUAL", connect_timeout_ms=SHORT_MS))
        assert "give ssl_certfile and ssl_keyfile" in message

    async def test_a_client_certificate_of_a_stranger(self, wire: Wire) -> None:
        other = wire.stranger.issue("guard")
        settings = wire.settings(
            "MUTUAL", ssl_certfile=other.certfile, ssl_keyfile=other.keyfile, connect_timeout_ms=SHORT_MS
        )
        assert "check also that the broker trusts the certificate" in await refused(settings)

    async def test_a_port_without_tls(self, wire: Wire) -> None:
        settings = wire.settings("TLS", bootstrap_servers=wire.broker.bootstrap_servers)
        assert "security_protocol SSL" in await refused(
            settings.model_copy(update={"connect_timeout_ms": SHORT_MS})
        )


class TestPasswords:
    async def test_plain(self, wire: Wire, tmp_path: Path) -> None:
        (tmp_path / "password").write_text(PASSWORD + "\n")
        settings = wire.settings(
            "PLAIN", sasl_username="guard", sasl_password={"file": tmp_path / "password"}
        )
        await round_trip(settings)

    @pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
    @pytest.mark.parametrize("listener", ["SCRAM", "SCRAMTLS"])
    async def test_scram(self, wire: Wire, listener: str, mechanism: str) -> None:
        login = {"sasl_mechanism": mechanism, "sasl_username": "guard", "sasl_password": PASSWORD}
        await round_trip(wire.settings(listener, **login))

    @pytest.mark.parametrize(
        ("listener", "mechanism"),
        [("PLAIN", "PLAIN"), ("SCRAM", "SCRAM-SHA-256"), ("SCRAM", "SCRAM-SHA-512")],
    )
    async def test_a_wrong_password(self, wire: Wire, listener: str, mechanism: str) -> None:
        login = {"sasl_mechanism": mechanism, "sasl_username": "guard", "sasl_password": WRONG}
        message = await refused(wire.settings(listener, **login))
        assert f"check sasl_mechanism {mechanism}, sasl_username 'guard' and the password" in message

    async def test_a_mechanism_that_the_broker_has_not(self, wire: Wire) -> None:
        message = await refused(wire.settings("SCRAM", sasl_username="guard", sasl_password=PASSWORD))
        assert "check sasl_mechanism PLAIN" in message
        assert "does not offer this mechanism" in message


class TestTokenFile:
    def settings(self, wire: Wire, file: Path, **changes: Any) -> KafkaSettings:
        return wire.settings("OAUTH", sasl_mechanism="OAUTHBEARER", sasl_oauth_token_file=file, **changes)

    async def test_a_token(self, wire: Wire, tmp_path: Path) -> None:
        (tmp_path / "token").write_text(unsigned_token() + "\n")
        await round_trip(self.settings(wire, tmp_path / "token"))

    async def test_a_renewed_token_is_used_by_the_next_connection(self, wire: Wire, tmp_path: Path) -> None:
        file = tmp_path / "token"
        file.write_text(unsigned_token(scope="another"))
        options = client_options(self.settings(wire, file))
        file.write_text(unsigned_token())
        producer = AIOKafkaProducer(**options)
        await producer.start()
        await producer.stop()

    async def test_a_token_that_the_broker_does_not_take(self, wire: Wire, tmp_path: Path) -> None:
        (tmp_path / "token").write_text(unsigned_token(scope="another"))
        message = await refused(self.settings(wire, tmp_path / "token"))
        assert "the token was not accepted" in message
        assert "scope" in message


class TestTokenEndpoint:
    def settings(self, wire: Wire, url: str, **changes: Any) -> KafkaSettings:
        return wire.settings(
            "OAUTH",
            **{
                "sasl_mechanism": "OAUTHBEARER",
                "sasl_oauth_token_url": url,
                "sasl_oauth_client_id": CLIENT_ID,
                "sasl_oauth_client_secret": CLIENT_SECRET,
                "sasl_oauth_scope": "kafka",
            }
            | changes,
        )

    async def test_client_credentials_over_tls(self, wire: Wire) -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(wire.server.certfile, wire.server.keyfile)
        async with TokenServer(tls=context) as server:
            await round_trip(self.settings(wire, server.url, ssl_cafile=wire.authority.cafile))
            assert len(server.asked) == 1, "one token for all clients"
            assert server.asked[0]["grant_type"] == "client_credentials"

    async def test_an_endpoint_of_an_unknown_authority(self, wire: Wire) -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        strange = wire.stranger.issue("127.0.0.1")
        context.load_cert_chain(strange.certfile, strange.keyfile)
        async with TokenServer(tls=context) as server:
            settings = self.settings(wire, server.url, connect_timeout_ms=SHORT_MS)
            message = await refused(settings)
            assert "check sasl_oauth_token_url and, for its certificate, ssl_cafile" in message
            assert not server.asked

    async def test_an_endpoint_that_stays_away(self, wire: Wire) -> None:
        async with TokenServer() as server:
            server.answer = lambda form: Answer(503)
            settings = self.settings(wire, server.url, connect_timeout_ms=5 * SHORT_MS)
            message = await refused(settings)
        assert f"no token to log in to Kafka with within {5 * SHORT_MS} ms" in message
        assert "HTTP 503" in message


async def test_a_key_whose_password_is_missing_or_wrong_is_told_and_not_asked_for(wire: Wire) -> None:
    """Without a password OpenSSL would wait for one on the terminal."""
    files = {"ssl_certfile": wire.client.certfile, "ssl_keyfile": wire.client.encrypted_keyfile}
    for password in ({}, {"ssl_key_password": WRONG}):
        with pytest.raises(ConfigError, match="ssl_key_password") as caught:
            await connect_admin(wire.settings("MUTUAL", **files, **password))
        assert WRONG not in str(caught.value)
