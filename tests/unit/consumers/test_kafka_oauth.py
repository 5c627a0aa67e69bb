"""Tokens for OAUTHBEARER: kept, renewed, asked for once, and never told. Brokers are in tests/integration."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from consumers.kafka import client_options
from consumers.kafka.security import (
    ClientCredentials,
    FileTokens,
    TokenRefused,
    TokenUnavailable,
    expiry,
    token_provider,
)
from consumers.settings import KafkaSettings
from guardrail.errors import ConfigError
from tests.support.token_server import CLIENT_ID, CLIENT_SECRET, Answer, TokenServer, unsigned_token


class Clock:
    """Moved by hand."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def settings(url: str, **changes: Any) -> KafkaSettings:
    return KafkaSettings.model_validate(
        {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauth_token_url": url,
            "sasl_oauth_client_id": CLIENT_ID,
            "sasl_oauth_client_secret": CLIENT_SECRET,
            "sasl_oauth_scope": "kafka more",
        }
        | changes
    )


def numbered(**members: Any) -> Callable[[Any], Answer]:
    """Tokens t1, t2, …, with ``members`` in every answer."""
    count = 0

    def answer(_form: Any) -> Answer:
        nonlocal count
        count += 1
        return Answer(200, {"access_token": f"t{count}", **members})

    return answer


class TestClientCredentials:
    async def test_the_request_is_that_of_the_standard(self) -> None:
        async with TokenServer() as server:
            token = await ClientCredentials(settings(server.url)).token()
        assert server.asked == [
            {
                "grant_type": "client_credentials",
                "scope": "kafka more",
                "client_id": CLIENT_ID,
                "client_secret": CLIENT_SECRET,
            }
        ]
        assert expiry(token) == pytest.approx(time.time() + 3600, abs=60)

    async def test_a_token_is_kept_until_shortly_before_its_end(self) -> None:
        clock = Clock()
        async with TokenServer(numbered(expires_in=100)) as server:
            provider = ClientCredentials(settings(server.url), clock)
            assert await provider.token() == "t1"
            clock.now += 79
            assert await provider.token() == "t1"
            clock.now += 2
            assert await provider.token() == "t2"

    async def test_the_end_is_read_from_the_token_where_the_endpoint_does_not_say(self) -> None:
        clock = Clock()
        token = unsigned_token(life_s=1_000)
        async with TokenServer(lambda _: Answer(200, {"access_token": token})) as server:
            provider = ClientCredentials(settings(server.url), clock)
            await provider.token()
            clock.now += 900
            await provider.token()
            assert len(server.asked) == 1
            clock.now += 60
            await provider.token()
            assert len(server.asked) == 2

    async def test_many_connections_ask_once(self) -> None:
        async with TokenServer(numbered(expires_in=100)) as server:
            server.hold = asyncio.Event()
            provider = ClientCredentials(settings(server.url))
            asking = [asyncio.create_task(provider.token()) for _ in range(20)]
            while not server.asked:  # noqa: ASYNC110 - until the request is there
                await asyncio.sleep(0)
            server.hold.set()
            assert await asyncio.gather(*asking) == ["t1"] * 20
            assert len(server.asked) == 1

    async def test_a_cancelled_request_leaves_the_next_one_free(self) -> None:
        async with TokenServer(numbered(expires_in=100)) as server:
            server.hold = asyncio.Event()
            provider = ClientCredentials(settings(server.url))
            asking = asyncio.create_task(provider.token())
            while not server.asked:  # noqa: ASYNC110 - until the request is there
                await asyncio.sleep(0)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            server.hold.set()
            assert await provider.token() in {"t1", "t2"}

    async def test_a_failure_stands_for_a_while_and_a_good_token_outlives_it(self) -> None:
        clock = Clock()
        async with TokenServer(numbered(expires_in=100)) as server:
            provider = ClientCredentials(settings(server.url), clock)
            await provider.token()
            server.answer = lambda _: Answer(500)
            clock.now += 90
            assert [await provider.token() for _ in range(5)] == ["t1"] * 5
            assert len(server.asked) == 2
            clock.now += 20
            for _ in range(2):
                with pytest.raises(TokenUnavailable, match="HTTP 500"):
                    await provider.token()
            assert len(server.asked) == 3
            server.answer = numbered(expires_in=100)
            clock.now += 10
            assert await provider.token() == "t1"

    @pytest.mark.parametrize(
        ("answer", "kind", "says"),
        [
            (Answer(400, {"error": "invalid_scope"}), TokenRefused, r"invalid_scope, HTTP 400.*'kafka more'"),
            (Answer(403, "<html>"), TokenRefused, r"\(HTTP 403\)"),
            (Answer(400, {"error": f"bad {CLIENT_SECRET}"}), TokenRefused, r"\(HTTP 400\)"),
            (Answer(429), TokenUnavailable, "HTTP 429"),
            (Answer(200, {"token": "x"}), TokenRefused, "without an access_token"),
            (Answer(200, {"access_token": "a\x01b"}), TokenRefused, "without an access_token"),
            (Answer(200, "[" * 100_000), TokenRefused, "without an access_token"),
            (Answer(200, "x" * 1_000_000), TokenRefused, "too much"),
            (Answer(302, "", {"Location": "http://127.0.0.1:1/"}), TokenRefused, "HTTP 302"),
            (Answer(200, {"access_token": "a", "expires_in": 0}), TokenUnavailable, "clocks"),
        ],
    )
    async def test_what_is_no_token(self, answer: Answer, kind: type[Exception], says: str) -> None:
        async with TokenServer(lambda _: answer) as server:
            with pytest.raises(kind, match=says) as caught:
                await ClientCredentials(settings(server.url + "?key=sk-hidden")).token()
        assert CLIENT_SECRET not in str(caught.value)
        assert "sk-hidden" not in str(caught.value)

    async def test_nobody_there(self) -> None:
        async with TokenServer() as server:
            url = server.url
        with pytest.raises(TokenUnavailable, match=r"can't be reached.*sasl_oauth_token_url"):
            await ClientCredentials(settings(url)).token()

    async def test_a_secret_file_is_read_for_every_token(self, tmp_path: Path) -> None:
        file = tmp_path / "secret"
        from_file = {"sasl_oauth_client_secret": {"file": file}}
        clock = Clock()
        async with TokenServer() as server:
            provider = ClientCredentials(settings(server.url, **from_file), clock)
            for content, says in [(None, "can't be read"), ("\n", "is empty"), ("wrong", "invalid_client")]:
                if content is not None:
                    file.write_text(content)
                with pytest.raises(TokenRefused, match=says):
                    await provider.token()
                clock.now += 10
            file.write_text(CLIENT_SECRET + "\n")
            assert expiry(await provider.token()) is not None

    async def test_authorities_that_can_not_be_used(self, tmp_path: Path) -> None:
        asked = settings("https://idp.test/token", security_protocol="SASL_SSL", ssl_cafile=tmp_path / "gone")
        with pytest.raises(ConfigError, match=r"ssl_cafile .*gone"):
            client_options(asked)

    async def test_the_clients_of_a_process_share_their_tokens(self) -> None:
        one = settings("https://idp.test/token")
        assert token_provider(one) is token_provider(one.model_copy())
        assert token_provider(one) is not token_provider(settings("https://idp.test/other"))


class TestFile:
    @pytest.mark.parametrize(
        ("content", "says"),
        [
            ("", "is empty"),
            ("Bearer abc", "without 'Bearer'"),
            ("a\x01auth=b", "characters"),
            ("ä", "not ASCII"),
            (unsigned_token(life_s=-10), "expired"),
        ],
    )
    async def test_what_is_no_token(self, tmp_path: Path, content: str, says: str) -> None:
        (tmp_path / "token").write_text(content, encoding="utf-8")
        with pytest.raises(TokenRefused, match=says) as caught:
            await FileTokens(tmp_path / "token").token()
        assert not content or content not in str(caught.value)

    async def test_an_opaque_token(self, tmp_path: Path) -> None:
        (tmp_path / "token").write_text("abc.-_~+/==\n")
        assert await FileTokens(tmp_path / "token").token() == "abc.-_~+/=="


@pytest.mark.parametrize("token", ["a", "a.b.c", "a.!!.c", "..", "a.W10.c", "a.bnVsbA.c"])
def test_what_does_not_say_when_it_ends(token: str) -> None:
    assert expiry(token) is None
