"""Verdicts shared through Redis: with a real server, and with one that is not there or does not answer.

The server is the one on the PATH (Debian: ``apt-get install redis-server``); without it the tests that
need one are skipped, and say so; in CI they fail.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from guardrail.errors import ConfigError
from guardrail.events import Verdict
from guardrail.judges import CachedJudge
from guardrail.judges.cache import CacheSettings
from guardrail.judges.redis_cache import RedisCache
from tests.support.judges import reply_of
from tests.unit.judges.doubles import ScriptedJudge, request

KEY, OTHER = b"k" * 32, b"o" * 32
SIGNED = SecretStr("a key that guards share")


@pytest.fixture
async def url(tmp_path: Path) -> AsyncIterator[str]:
    """A Redis server of this test's own."""
    program = shutil.which("redis-server")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("redis-server is missing: apt-get install redis-server")
        pytest.skip("redis-server is missing: apt-get install redis-server")
    path = tmp_path / "redis.sock"
    if len(str(path)) > 100:  # the kernel's limit for names of sockets
        pytest.skip(f"the temporary folder's name is too long for a socket: {path}")
    options = ["--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(tmp_path)]
    process = await asyncio.create_subprocess_exec(program, *options, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(30):
            while b"eady to accept" not in await process.stdout.readline():
                assert process.returncode is None
        yield f"unix://{path}"
    finally:
        process.terminate()
        await process.communicate()


def cache(url: str, **changes: Any) -> RedisCache:
    """With time enough that a busy machine doesn't matter."""
    return RedisCache(CacheSettings.model_validate({"redis_url": url, **changes}), timeout_ms=1_000)


async def test_what_is_written_is_read_by_another_guard_and_expires(url: str) -> None:
    one, two = cache(url, signing_key=SIGNED), cache(url, signing_key=SIGNED)
    await one.put({KEY: b"verdict"}, ttl_seconds=600)
    assert await two.get([OTHER, KEY]) == [None, b"verdict"]
    (name,) = await two._client.keys("*")
    assert 0 < await two._client.pttl(name) <= 600_000
    await one.aclose()
    await two.aclose()


async def test_keys_are_hashes_with_the_prefix(url: str) -> None:
    used = cache(url)
    await used.put({b"The basic plan costs $50": b"verdict"}, 60)
    (name,) = await used._client.keys("*")
    assert len(name) == 18 + 64
    assert name.startswith(b"guardrail:verdict:")
    assert b"basic" not in name
    await used.aclose()


async def test_with_a_signing_key_nothing_else_is_believed(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    signing, unsigned = cache(url, signing_key=SIGNED), cache(url)
    await unsigned.put({KEY: b"forged"}, 60)
    assert await signing.get([KEY]) == [None]  # another key, so even its name is another
    await signing.put({KEY: b"first", OTHER: b"second"}, 60)
    name, other = signing._name(KEY), signing._name(OTHER)
    client = signing._client
    for forged in (
        await client.get(unsigned._name(KEY)),  # signed by nobody
        await client.get(other),  # rightly signed, for another claim
        b"short",
        b"x" * 100_000,
        (await client.get(name))[:-1] + b"X",
    ):
        await client.set(name, forged)
        assert await signing.get([KEY]) == [None]
    assert [r.getMessage() for r in caplog.records] == [
        "judge.cache_entry_rejected written_by='no guard with this signing key'"
    ]
    await signing.aclose()
    await unsigned.aclose()


async def test_without_a_signing_key_none_is_spoken_of(url: str, caplog: pytest.LogCaptureFixture) -> None:
    unsigned = cache(url)
    await unsigned.put({KEY: b"first"}, 60)
    await unsigned._client.set(unsigned._name(KEY), b"rubbish")
    assert await unsigned.get([KEY]) == [None]
    assert [r.getMessage() for r in caplog.records] == ["judge.cache_entry_rejected written_by='no guard'"]
    await unsigned.aclose()


async def test_a_value_of_another_type_under_our_key_is_a_failure_and_no_error(url: str) -> None:
    used = cache(url)
    await used._client.lpush(used._name(KEY), "x")
    assert await used.get([KEY]) == [None]
    await used.aclose()


@pytest.fixture
async def silent() -> AsyncIterator[tuple[str, list[asyncio.StreamWriter]]]:
    """A server that takes connections, one a call, and never answers."""
    held: list[asyncio.StreamWriter] = []

    async def hold(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0", held
    server.close()
    for writer in held:
        writer.close()
    await server.wait_closed()


async def test_a_server_that_does_not_answer_is_gone_on_without_and_then_left_alone(
    silent: tuple[str, list[asyncio.StreamWriter]], caplog: pytest.LogCaptureFixture
) -> None:
    now = 0.0
    url, calls = silent
    used = RedisCache(settings(redis_url=url), timeout_ms=100, clock=lambda: now)
    judge = ScriptedJudge(dict.fromkeys("abcd", Verdict.SUPPORTED))
    cached = CachedJudge(judge, "f", shared=used)
    for text in "abcd":
        assert (await reply_of(cached, request(text))).judgements[0].verdict is Verdict.SUPPORTED
    assert len(calls) == 3
    now = 5.1
    await used.get([KEY])
    assert len(calls) == 4
    assert len([r for r in caplog.records if "going on without" in r.getMessage()]) <= 2
    await cached.aclose()


async def test_a_server_that_is_not_there_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: connecting is refused
        used = cache(f"redis://127.0.0.1:{taken.getsockname()[1]}/0")
        with caplog.at_level(logging.WARNING):
            assert await used.get([KEY]) == [None]
            await used.put({KEY: b"v"}, 60)
        assert len(caplog.records) == 1
        await used.aclose()


async def test_cancelling_a_look_up_cancels_it_and_the_next_one_works(url: str) -> None:
    used = cache(url)
    await used.put({KEY: b"v"}, 60)
    looking = asyncio.create_task(used.get([KEY]))
    await asyncio.sleep(0)
    looking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await looking
    assert await used.get([KEY]) == [b"v"]
    await used.aclose()


def settings(**values: Any) -> CacheSettings:
    return CacheSettings.model_validate({"redis_url": "redis://cache/0", **values})


async def test_user_and_password_stand_in_the_url_and_are_shown_nowhere(url: str, tmp_path: Path) -> None:
    admin = cache(url)
    await admin._client.execute_command("ACL", "SETUSER", "guard", "on", ">hunter2", "~*", "+@all")
    await admin._client.execute_command("ACL", "SETUSER", "default", "off")
    login = f"unix://guard:hunter2@{url.removeprefix('unix://')}"
    (tmp_path / "url").write_text(login + "\n")
    for given in (login, {"file": tmp_path / "url"}):
        made = settings(redis_url=given)
        assert "hunter2" not in repr(made) + made.model_dump_json()
        used = RedisCache(made, timeout_ms=1_000)
        await used.put({KEY: b"v"}, 60)
        assert await used.get([KEY]) == [b"v"]
        await used.aclose()
    await admin.aclose()


def test_settings_say_what_is_wrong_with_secrets(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="not a Redis URL"):
        settings(redis_url="http://cache")
    with pytest.raises(ValidationError, match="no usable host and port"):
        settings(redis_url="redis://cache:abc/0")
    with pytest.raises(ConfigError, match="an option after its"):
        RedisCache(settings(redis_url="redis://cache/0?socket_timeout=abc"))
    with pytest.raises(ConfigError, match="too few"):
        settings(signing_key="short").resolve_signing_key()
    with pytest.raises(ValidationError, match="signing_key has no effect without redis_url"):
        settings(redis_url=None, signing_key=SIGNED)
    with pytest.raises(ConfigError, match="can't be read"):
        settings(redis_url={"file": tmp_path / "none"}).resolve_redis_url()
    (tmp_path / "wrong").write_text("http://:hunter2@cache\n")
    with pytest.raises(ConfigError, match=r"judge\.cache\.redis_url: .*not a Redis URL") as caught:
        settings(redis_url={"file": tmp_path / "wrong"}).resolve_redis_url()
    assert "hunter2" not in str(caught.value)
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(ConfigError, match="is empty"):
        settings(signing_key={"file": tmp_path / "empty"}).resolve_signing_key()


@pytest.mark.parametrize("url", ["http://:hunter2@cache/0", "redis://:hunter2@cache:abc/0", ":hunter2@cache"])
def test_a_password_in_the_url_is_not_repeated_in_the_message(url: str) -> None:
    with pytest.raises(ValidationError) as caught:
        settings(redis_url=url)
    assert "hunter2" not in str(caught.value.errors(include_input=False))
