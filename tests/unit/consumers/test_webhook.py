"""The webhook: a real server gets each stored case, signed, until it answers 2xx or there is an end."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

import pytest

from consumers.cases import CaseFilter, CaseStore, DueCase, open_store
from consumers.flagged import ATTEMPTS, WAITS, Webhook, signing_key, wait_ms
from guardrail.errors import CaseStoreError, ConfigError
from tests.support.cases import new_case
from tests.support.webhook_server import Post, WebhookServer

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
KEY = signing_key(SECRET, "flagged.webhook_secret")
T0 = 1_800_000_000.0


class Clock:
    def __init__(self) -> None:
        self.now = T0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[CaseStore]:
    async with open_store(f"sqlite:///{tmp_path}/cases.db", "flagged.store", create=True) as found:
        yield found


async def states(store: CaseStore) -> list[tuple[str, int, str | None]]:
    rows = await store.newest(CaseFilter(), 99)
    return [(row.webhook, row.attempts, row.webhook_error) for row in rows]


def verified(post: Post, secret: str) -> bool:
    """As a receiver does it, written from the specification."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{post.headers['webhook-id']}.{post.headers['webhook-timestamp']}.".encode() + post.body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return hmac.compare_digest(post.headers["webhook-signature"], f"v1,{expected}")


async def test_a_case_is_posted_whole_signed_and_with_its_key(store: CaseStore) -> None:
    case = new_case(1)
    await store.add([case], notify=True)
    async with WebhookServer() as server:
        webhook = Webhook(store, server.url, KEY, clock=Clock())
        assert await webhook.post_due() == 1
        assert await webhook.post_due() == 0
        await webhook.aclose()
    (post,) = server.posts
    assert post.body == case.body, "the event as the guard wrote it, byte for byte"
    told = json.loads(post.body)
    assert (told["type"], told["deciding_claim"]) == ("case.flagged", "claim-0")
    assert post.headers["webhook-id"] == post.headers["idempotency-key"] == "case-1"
    assert post.headers["webhook-timestamp"] == "1800000000"
    assert verified(post, SECRET)
    assert not verified(post._replace(body=post.body + b" "), SECRET)
    assert not verified(post, "whsec_" + base64.b64encode(bytes(32)).decode())
    assert await states(store) == [("sent", 1, None)]


async def test_the_known_answer_of_the_specification() -> None:
    """The example of the Standard Webhooks reference libraries."""
    from consumers.flagged import signature

    key = signing_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "x")
    signed = signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("status", [0, 301, 400, 404, 429, 500])
async def test_what_is_not_taken_comes_again_with_the_same_key(store: CaseStore, status: int) -> None:
    await store.add([new_case(1)], notify=True)
    clock = Clock()
    async with WebhookServer([status]) as server:
        webhook = Webhook(store, server.url, KEY, clock=clock)
        await webhook.post_due()
        ((state, attempts, why),) = await states(store)
        assert (state, attempts) == ("pending", 1)
        assert why == (f"HTTP {status}" if status else "RemoteProtocolError")
        assert await webhook.post_due() == 0
        clock.now += 10
        assert await webhook.post_due() == 1
        await webhook.aclose()
    assert [post.headers["webhook-id"] for post in server.posts] == ["case-1", "case-1"]
    assert all(verified(post, SECRET) for post in server.posts)
    assert await states(store) == [("sent", 2, None)]


async def test_there_is_an_end_to_it(store: CaseStore) -> None:
    await store.add([new_case(1)], notify=True)
    clock = Clock()
    async with WebhookServer([500] * (ATTEMPTS + 1)) as server:
        webhook = Webhook(store, server.url, KEY, clock=clock)
        for _ in range(ATTEMPTS + 1):
            await webhook.post_due()
            clock.now += 2 * WAITS.longest_s
        await webhook.aclose()
    assert len(server.posts) == ATTEMPTS
    assert await states(store) == [("failed", ATTEMPTS, "HTTP 500")]


def test_the_waits_grow_and_are_bounded() -> None:
    waits = [wait_ms(attempt) for attempt in range(1, ATTEMPTS + 1)]
    assert waits[:3] == [5_000, 15_000, 45_000]
    assert waits[-2:] == [WAITS.longest_s * 1000, None]


async def test_what_a_dead_process_had_taken_is_posted_by_the_next(store: CaseStore) -> None:
    await store.add([new_case(1)], notify=True)
    clock = Clock()
    assert len(await store.claim_due(int(clock() * 1000), 60_000, 8)) == 1  # and there it died
    async with WebhookServer() as server:
        webhook = Webhook(store, server.url, KEY, clock=clock)
        assert await webhook.post_due() == 0
        clock.now += 60
        assert await webhook.post_due() == 1
        await webhook.aclose()
    assert await states(store) == [("sent", 2, None)]


async def test_the_loop_posts_what_is_new_and_ends_when_told(store: CaseStore) -> None:
    async with WebhookServer() as server:
        webhook = Webhook(store, server.url, KEY)
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(webhook.run(stop))
            for number in range(1, 4):
                await store.add([new_case(number)], notify=True)
                webhook.wake()
                await server.got(number)
            stop.set()
            webhook.wake()
        await webhook.aclose()
    assert await states(store) == [("sent", 1, None)] * 3


async def test_a_store_that_is_away_does_not_end_the_loop(store: CaseStore) -> None:
    class Away:
        asked = 0

        async def claim_due(self, now_ms: int, lease_ms: int, limit: int) -> Sequence[DueCase]:
            self.asked += 1
            if self.asked == 1:
                webhook.wake()
                raise CaseStoreError("away")
            return await store.claim_due(now_ms, lease_ms, limit)

        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

    await store.add([new_case(1)], notify=True)
    async with WebhookServer() as server:
        webhook = Webhook(Away(), server.url, KEY)  # type: ignore[arg-type]
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(webhook.run(stop))
            await server.got(1)
            stop.set()
            webhook.wake()
        await webhook.aclose()


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_!!", "password", "whsec_" + "A" * 28])
def test_a_weak_or_misspelt_secret_is_refused_and_not_quoted(secret: str) -> None:
    with pytest.raises(ConfigError, match="24 to 64 bytes") as raised:
        signing_key(secret, "flagged.webhook_secret")
    assert "password" not in str(raised.value)


@pytest.mark.parametrize("url", ["ftp://host/secret", "/secret", "http://", "https:secret"])
async def test_a_url_that_is_none_is_refused_and_not_quoted(store: CaseStore, url: str) -> None:
    with pytest.raises(ConfigError, match=r"flagged\.webhook_url") as raised:
        Webhook(store, url, KEY)
    assert "secret" not in str(raised.value)


async def test_a_receiver_that_does_as_the_page_says_tells_genuine_from_forged(store: CaseStore) -> None:
    page = (Path(__file__).parents[3] / "docs" / "review.md").read_text("utf-8")
    code = page.partition("```python\n")[2].partition("```")[0]
    names: dict[str, Callable[[Mapping[str, str], bytes, str], bool]] = {}
    exec(code, names)  # noqa: S102 - our own page
    await store.add([new_case(1)], notify=True)
    async with WebhookServer() as server:
        webhook = Webhook(store, server.url, KEY)
        await webhook.post_due()
        await webhook.aclose()
    (post,) = server.posts
    assert names["is_genuine"](post.headers, post.body, SECRET)
    assert not names["is_genuine"](post.headers, post.body + b" ", SECRET)
    later = {**post.headers, "webhook-timestamp": "1"}
    assert not names["is_genuine"](later, post.body, SECRET)
