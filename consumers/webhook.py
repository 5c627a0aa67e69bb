"""Posts of stored cases to a webhook, signed as Standard Webhooks says (standardwebhooks.com).

At least once: a case is pending in the store until the receiver answered 2xx, whatever happens to this
process. The receiver knows a repeated post by its ``webhook-id``, which is the case's deterministic id.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import httpx2
import structlog

from consumers.cases import CaseStore, DueCase
from consumers.settings import is_loopback
from guardrail import __version__, telemetry
from guardrail.calls import BackOff
from guardrail.errors import CaseStoreError, ConfigError

ATTEMPTS: Final = 10
"""After so many a case's webhook has failed: three hours and a half after the first, with the waits below."""
WAITS: Final = BackOff(first_s=5.0, longest_s=3_600.0, growth=3.0)
_TIMEOUT_S: Final = 10.0
_LEASE_MS: Final = 60_000
"""Longer than a batch takes; so long after a process died another one posts what it had taken."""
_AT_ONCE: Final = 8
_LOOK_S: Final = 5.0
"""Between looks at the store for what has become due, where nothing new was stored."""
_PREFIX: Final = "whsec_"
_KEY_BYTES: Final = range(24, 65)

IN_CLEAR: Final = "cases go to another host unencrypted, with questions, contexts and answers"

_log = structlog.stdlib.get_logger("guardrail.flagged")


def signing_key(secret: str, setting: str) -> bytes:
    """The bytes to sign with. Raises ConfigError, which holds nothing of the secret."""
    try:
        key = base64.b64decode(secret.strip().removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) not in _KEY_BYTES:
        raise ConfigError(
            f"{setting}: this is not {_PREFIX} and the base64 of 24 to 64 bytes; make one with: "
            f"echo {_PREFIX}$(openssl rand -base64 32)"
        )
    return key


def receiver(url: str) -> httpx2.URL:
    """Where to post. Raises ConfigError for what is not a URL of HTTP."""
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL:
        parsed = httpx2.URL("")
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        # The URL itself may be the secret of the receiver.
        raise ConfigError("flagged.webhook_url: this is not an http:// or https:// URL; correct it")
    return parsed


def in_clear(url: httpx2.URL) -> bool:
    """Do posts leave this machine without encryption?"""
    return url.scheme == "http" and not is_loopback(url.host)


def signature(key: bytes, case_id: str, timestamp_s: int, body: bytes) -> str:
    """The value of ``webhook-signature``: HMAC-SHA256 over id, time and body, joined by dots."""
    signed = f"{case_id}.{timestamp_s}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def wait_ms(attempt: int) -> int | None:
    """How long after this failed attempt, counted from 1, the next one comes; None after the last."""
    if attempt >= ATTEMPTS:
        return None
    return int(WAITS.bound(attempt - 1) * 1000)


class Webhook:
    """Posts what is due in a store. Use as a context manager, on one event loop."""

    def __init__(
        self, store: CaseStore, url: str, key: bytes, *, clock: Callable[[], float] = time.time
    ) -> None:
        """Raises ConfigError for what is not a URL of HTTP."""
        self._store = store
        self._url = receiver(url)
        self._key = key
        self._clock = clock
        self._client = httpx2.AsyncClient(timeout=_TIMEOUT_S, follow_redirects=False)
        self._news = asyncio.Event()
        if in_clear(self._url):
            _log.warning("webhook.in_clear", effect=IN_CLEAR, remedy="use https://")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def wake(self) -> None:
        """There is something new in the store, or it is time to leave."""
        self._news.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Post until ``stop``, whatever receiver or store do; what was begun is ended, within seconds."""
        while not stop.is_set():
            self._news.clear()
            try:
                posted = await self.post_due()
            except CaseStoreError as error:
                _log.warning("webhook.store_away", error=str(error))
                posted = 0
            if posted < _AT_ONCE and not stop.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_S):
                        await self._news.wait()

    async def post_due(self) -> int:
        """Post some of what is due now, side by side; how many were tried. Raises CaseStoreError."""
        due = await self._store.claim_due(int(self._clock() * 1000), _LEASE_MS, _AT_ONCE)
        outcomes = await asyncio.gather(*(self._deliver(case) for case in due), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return len(due)

    async def _deliver(self, case: DueCase) -> None:
        why = await self._post(case)
        if why is None:
            await self._store.sent(case.id)
            telemetry.WEBHOOK_POSTS.labels("sent").inc()
            _log.info("webhook.sent", case=case.id, attempt=case.attempt)
            return
        wait = wait_ms(case.attempt)
        if wait is None:
            await self._store.not_sent(case.id, why, None)
            telemetry.WEBHOOK_POSTS.labels("given_up").inc()
            _log.error("webhook.given_up", case=case.id, attempts=case.attempt, why=why)
            return
        # Spread, so that what failed together doesn't come back together.
        next_at_ms = int(self._clock() * 1000) + int(wait * random.uniform(0.8, 1.2))
        await self._store.not_sent(case.id, why, next_at_ms)
        telemetry.WEBHOOK_POSTS.labels("failed").inc()
        _log.warning("webhook.not_sent", case=case.id, attempt=case.attempt, why=why, again_in_s=wait // 1000)

    async def _post(self, case: DueCase) -> str | None:
        """None once the receiver has taken it, else why not. What it answers is not read."""
        try:
            now_s = int(self._clock())
            headers = {
                "content-type": "application/json",
                "user-agent": f"streaming-guardrail/{__version__}",
                "idempotency-key": case.id,
                "webhook-id": case.id,
                "webhook-timestamp": str(now_s),
                "webhook-signature": signature(self._key, case.id, now_s, case.body),
            }
            async with (
                asyncio.timeout(_TIMEOUT_S),
                self._client.stream("POST", self._url, content=case.body, headers=headers) as reply,
            ):
                return None if reply.is_success else f"HTTP {reply.status_code}"
        except Exception as error:  # noqa: BLE001 - nothing that a receiver does may end the storing
            return type(error).__name__
