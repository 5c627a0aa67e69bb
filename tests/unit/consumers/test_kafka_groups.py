"""What the members of other groups tell of themselves, whoever they are."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from consumers.kafka import watch as module
from consumers.kafka.watch import GroupWatch, OtherGroup, announcing
from consumers.kafka.workarounds import Subscription
from tests.support.kafka_settings import kafka_settings

SETTINGS = kafka_settings(bootstrap_servers="127.0.0.1:1", group_id="ours")
INPUT = SETTINGS.topics.responses
OURS = SETTINGS.topics.deliveries


class Admin:
    """A cluster of one broker with these groups."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.asked: list[list[str]] = []

    async def describe_cluster(self) -> dict[str, Any]:
        return {"brokers": [{"node_id": 1}]}

    async def list_consumer_groups(self, nodes: list[int]) -> list[tuple[str, str]]:
        assert nodes == [1]
        return [(name, "consumer") for name in self.names]


def watch(monkeypatch: pytest.MonkeyPatch, **members: list[Subscription]) -> tuple[GroupWatch, Admin]:
    admin = Admin("ours", *members)

    async def subscriptions(_: Any, node: int, names: list[str]) -> dict[str, list[Subscription]]:
        admin.asked.append(names)
        return {name: members[name] for name in names}

    monkeypatch.setattr(module, "subscriptions", subscriptions)
    return GroupWatch(SETTINGS, cast("AIOKafkaAdminClient", admin)), admin


def member(deliveries: str, topic: str = INPUT) -> Subscription:
    told = announcing(deliveries).metadata([topic])
    return Subscription(tuple(told.subscription), told.user_data)


async def test_guards_on_the_same_input_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    looking, _ = watch(
        monkeypatch,
        same=[member(OURS)],
        own=[member("elsewhere"), member("elsewhere")],
        others=[member(OURS, "another.input")],
    )
    assert await looking.look() == [OtherGroup("own", "elsewhere"), OtherGroup("same", OURS)]


@pytest.mark.parametrize(
    "user_data",
    [b"", b"\xff", b"[" * 20_000, b"{}", b"[]", b'{"guardrail": null}', b'{"guardrail": {"deliveries": 1}}'],
)
async def test_what_others_tell_harms_nothing(user_data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    looking, admin = watch(monkeypatch, odd=[Subscription((INPUT,), user_data)], same=[member(OURS)])
    assert await looking.look() == [OtherGroup("same", OURS)]
    assert await looking.look() == [OtherGroup("same", OURS)]
    assert admin.asked == [["odd", "same"], ["same"]], "who is no guard is not asked each time"


async def test_looking_goes_on_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    looking, _ = watch(monkeypatch)
    looks, third = 0, asyncio.Event()

    async def fails() -> list[OtherGroup]:
        nonlocal looks
        looks += 1
        if looks == 3:
            third.set()
        raise RuntimeError("odd")

    monkeypatch.setattr(module, "_GROUPS_EVERY_S", 0.0)
    monkeypatch.setattr(looking, "look", fails)
    running = asyncio.create_task(looking.run())
    await third.wait()
    assert not running.done()
    running.cancel()
    await asyncio.wait([running])
