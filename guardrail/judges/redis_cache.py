"""Verdicts shared between guards through Redis, which helps if it is available and does no harm if it isn't.

Keys are hashes, keyed by the signing key if there is one. Values contain a verdict, spans, and the judge's
reasoning, which may quote; they expire. Every value carries a MAC over its key and itself: without a signing
key that is a checksum against damage, with one it also proves who wrote it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from guardrail.errors import ConfigError, install_hint
from guardrail.judges.cache import CacheSettings
from guardrail.log_events import EventLog

try:
    import redis.asyncio as redis_asyncio
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
    from redis.exceptions import RedisError
except ImportError as error:
    raise ConfigError(
        f"judge.cache.redis_url: the Redis client is not installed; {install_hint('redis')}, "
        "or leave judge.cache.redis_url out"
    ) from error

_log = EventLog(__name__)
_MAC_BYTES: Final = 32
_MAX_VALUE_BYTES: Final = 16_384
_FAILURES: Final = 3
_LONGEST_S: Final = 2.0
_PREFIX: Final = "guardrail:verdict:"
TIMEOUT_MS: Final = 10
"""Longest time for one look-up or one write, connecting included: claims wait for it, and a server nearby
answers in less."""
MAX_CONNECTIONS: Final = 32
PAUSE_MS: Final = 5_000
"""How long the server is left alone after three failures in a row."""
_UNSIGNED: Final = b"guardrail verdict cache, not signed"

Got = TypeVar("Got")


class RedisCache:
    """A SharedCache. Raises only cancellation; a failed or slow look-up finds nothing."""

    def __init__(
        self,
        settings: CacheSettings,
        *,
        timeout_ms: int = TIMEOUT_MS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Connects at the first call. Raises ConfigError for unreadable secrets.

        ``timeout_ms`` is for one look-up or one write, including connecting.
        """
        self._timeout_s = timeout_ms / 1000
        self._clock = clock
        self._signing_key = settings.resolve_signing_key() or _UNSIGNED
        self._client = _client(settings, self._timeout_s)
        self._failed_in_a_row = 0
        self._paused_until = float("-inf")
        self._told: set[str] = set()
        self._under_way: set[asyncio.Task[Any]] = set()

    async def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of ``keys``, in order; None for missing or wrongly signed ones."""
        names = [self._name(key) for key in keys]
        nothing: list[bytes | None] = [None] * len(names)
        if not names:
            return nothing
        found = await self._try(lambda: self._client.mget(names))
        if not isinstance(found, list) or len(found) != len(names):
            return nothing
        return [self._opened(name, value) for name, value in zip(names, found, strict=True)]

    async def put(self, entries: dict[bytes, bytes], ttl_seconds: float) -> None:
        """Write all entries, each to expire after ``ttl_seconds``."""
        if not entries:
            return
        pipeline = self._client.pipeline(transaction=False)
        for key, value in entries.items():
            name = self._name(key)
            pipeline.set(name, self._mac(name, value) + value, px=max(1, int(ttl_seconds * 1000)))
        await self._try(pipeline.execute)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=_LONGEST_S)
        with contextlib.suppress(RedisError, OSError, TimeoutError):
            async with asyncio.timeout(_LONGEST_S):
                await self._client.aclose()

    async def _try(self, call: Callable[[], Awaitable[Got]]) -> Got | None:
        if self._clock() < self._paused_until or len(self._under_way) >= MAX_CONNECTIONS:
            return None
        # A separate task: a client whose call is cancelled half-way drops the connection. The task ends by
        # the client's own timeouts, and callers stop waiting when their time is up.
        task = asyncio.create_task(self._caught(call))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        await asyncio.wait({task}, timeout=self._timeout_s)
        outcome = task.result() if task.done() else TimeoutError()
        if isinstance(outcome, Exception):
            self._failed(outcome)
            return None
        if self._failed_in_a_row >= _FAILURES:
            _log.warning("judge.cache_back")
            self._told.clear()
        self._failed_in_a_row = 0
        return outcome

    async def _caught(self, call: Callable[[], Awaitable[Got]]) -> Got | Exception:
        try:
            async with asyncio.timeout(_LONGEST_S):
                return await call()
        except (RedisError, OSError, TimeoutError, ValueError, RuntimeError) as error:
            return error

    def _failed(self, error: Exception) -> None:
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= _FAILURES:
            self._paused_until = self._clock() + PAUSE_MS / 1000
        kind = type(error).__name__
        if kind not in self._told:
            self._told.add(kind)
            _log.warning("judge.cache_failed", error=kind, effect="going on without it")

    def _opened(self, name: str, value: object) -> bytes | None:
        if value is None:
            return None
        if isinstance(value, bytes) and _MAC_BYTES < len(value) <= _MAX_VALUE_BYTES:
            mac, data = value[:_MAC_BYTES], value[_MAC_BYTES:]
            if hmac.compare_digest(mac, self._mac(name, data)):
                return data
        if "rejected" not in self._told:
            self._told.add("rejected")
            who = "no guard" if self._signing_key == _UNSIGNED else "no guard with this signing key"
            _log.warning("judge.cache_entry_rejected", written_by=who)
        return None

    def _name(self, key: bytes) -> str:
        return _PREFIX + hmac.digest(self._signing_key, key, hashlib.sha256).hex()

    def _mac(self, name: str, data: bytes) -> bytes:
        return hmac.digest(self._signing_key, name.encode() + b"\0" + data, hashlib.sha256)


def _client(settings: CacheSettings, seconds: float) -> Any:
    url = settings.resolve_redis_url()
    try:
        return redis_asyncio.from_url(
            url,
            max_connections=MAX_CONNECTIONS,
            socket_timeout=seconds,
            socket_connect_timeout=seconds,
            retry=Retry(NoBackoff(), 0),
            decode_responses=False,
        )
    except (TypeError, ValueError):
        raise ConfigError(
            "judge.cache.redis_url: the Redis client can't use it, for an option after its ? perhaps; "
            "write it as redis://HOST:PORT/0"
        ) from None
