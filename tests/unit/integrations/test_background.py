"""A guard on an event loop of its own, called from threads and from loops."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from guardrail import ConfigError, DeliverySegment, Guard, InputError
from guardrail.integrations import background
from guardrail.integrations.background import BackgroundGuard, GuardClosed
from tests.support.judges import WordJudge

RIGHT = "Paris is in France."
CONTEXTS = ["Paris is in France."]


def guard_threads() -> int:
    return sum(thread.name == "guard" for thread in threading.enumerate())


def test_threads_share_one_guard() -> None:
    before = guard_threads()
    with BackgroundGuard(judge=WordJudge()) as guard, ThreadPoolExecutor(8) as pool:
        verdicts = list(pool.map(lambda _: guard.check("?", CONTEXTS, RIGHT), range(40)))
        assert {each.decision for each in verdicts} == {"release"}
        assert len({each.response_id for each in verdicts}) == 40
        assert guard_threads() == before + 1


def test_closing_ends_its_thread_leaves_the_judge_open_and_may_be_repeated() -> None:
    before = guard_threads()
    judge = WordJudge()
    guard = BackgroundGuard(judge=judge)
    guard.close()
    guard.check("?", CONTEXTS, RIGHT)
    assert guard_threads() == before + 1
    guard.close()
    guard.close()
    assert guard_threads() == before
    assert not judge.closed
    assert guard.check("?", CONTEXTS, RIGHT).decision == "release"
    guard.close()


def test_judge_and_policies_come_from_a_file_of_settings(tmp_path: Path) -> None:
    (tmp_path / "guardrail.yaml").write_text(
        "policies: {default: {}, strict: {rules: ['verdict SUPPORTED: block']}}\n"
        "routes: [{route: sales, policy: strict}]\n"
    )
    with BackgroundGuard(tmp_path / "guardrail.yaml") as guard:
        assert guard.check("?", CONTEXTS, RIGHT).decision == "release"
        verdict = guard.check("?", CONTEXTS, RIGHT, route="sales")
        assert (verdict.policy.name, verdict.decision) == ("strict", "block")


def test_wrong_settings_and_wrong_fields_are_told_to_the_caller(tmp_path: Path) -> None:
    with BackgroundGuard(tmp_path / "none.yaml") as guard:
        with pytest.raises(ConfigError, match=r"none\.yaml"):
            guard.check("?", CONTEXTS, RIGHT)
        with pytest.raises(ConfigError, match=r"none\.yaml"):
            list(guard.stream("?", CONTEXTS, iter([RIGHT])))
    with BackgroundGuard(judge=WordJudge()) as guard:
        with pytest.raises(InputError, match="answer"):
            guard.check("?", CONTEXTS, 7)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="did you mean 'route'"):
            guard.check("?", CONTEXTS, RIGHT, rout="sales")


def test_an_error_of_a_plain_iterator_is_raised_where_the_stream_is_read() -> None:
    def broken() -> object:
        yield f"{RIGHT} "
        raise ConnectionError("the model went away")

    shown: list[str] = []
    with BackgroundGuard(judge=WordJudge()) as guard:
        events = guard.stream("?", CONTEXTS, broken())  # type: ignore[arg-type]
        with pytest.raises(ConnectionError, match="went away"):
            shown.extend(each.text for each in events if isinstance(each, DeliverySegment))


def test_a_plain_iterator_is_closed_where_the_guard_can_not_be_opened(tmp_path: Path) -> None:
    closed = threading.Event()

    def deltas() -> Iterator[str]:
        try:
            yield ""
            yield RIGHT
        finally:
            closed.set()

    begun = deltas()
    next(begun)
    with BackgroundGuard(tmp_path / "none.yaml") as guard, pytest.raises(ConfigError, match=r"none\.yaml"):
        list(guard.stream("?", CONTEXTS, begun))
    assert closed.is_set()


async def test_an_iterator_is_closed_where_the_guard_can_not_be_opened(tmp_path: Path) -> None:
    closed = asyncio.Event()

    async def deltas() -> AsyncIterator[str]:
        try:
            yield ""
            yield RIGHT
        finally:
            closed.set()

    begun = deltas()
    await anext(begun)
    async with BackgroundGuard(tmp_path / "none.yaml") as guard:
        with pytest.raises(ConfigError, match=r"none\.yaml"):
            [each async for each in guard.astream("?", CONTEXTS, begun)]
    assert closed.is_set()


def test_an_error_of_closing_is_raised_to_who_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    before = guard_threads()

    closes = Guard.__aexit__

    async def fails(self: Guard, *none: None) -> None:
        await closes(self, *none)
        raise ConnectionError("the judge went away")

    monkeypatch.setattr(Guard, "__aexit__", fails)
    guard = BackgroundGuard(judge=WordJudge())
    guard.check("?", CONTEXTS, RIGHT)
    with pytest.raises(ConnectionError, match="went away"):
        guard.close()
    assert guard_threads() == before
    guard.close()


def test_a_closing_that_does_not_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    before, closes, ends = guard_threads(), Guard.__aexit__, threading.Event()

    async def hangs(self: Guard, *none: None) -> None:
        await asyncio.to_thread(ends.wait)
        await closes(self, *none)

    monkeypatch.setattr(background, "_CLOSE_S", 0.01)
    monkeypatch.setattr(Guard, "__aexit__", hangs)
    guard = BackgroundGuard(judge=WordJudge())
    guard.check("?", CONTEXTS, RIGHT)
    try:
        with pytest.raises(TimeoutError, match="did not close"):
            guard.close()
    finally:
        ends.set()
    deadline = time.monotonic() + 10  # a guard that lives on keeps the clock of all others going
    while guard_threads() != before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert guard_threads() == before


async def test_an_iterator_is_read_on_the_loop_it_came_from() -> None:
    loops: set[asyncio.AbstractEventLoop] = set()

    async def deltas() -> object:
        for word in RIGHT.split(" "):
            loops.add(asyncio.get_running_loop())
            yield f"{word} "

    async with BackgroundGuard(judge=WordJudge()) as guard:
        events = [each async for each in guard.astream("?", CONTEXTS, deltas())]  # type: ignore[arg-type]
    assert "".join(each.text for each in events if isinstance(each, DeliverySegment)).strip() == RIGHT
    assert loops == {asyncio.get_running_loop()}


async def test_closing_on_a_loop_ends_answers_that_it_still_writes() -> None:
    before = guard_threads()
    begun = asyncio.Event()

    async def endless() -> object:
        while True:
            begun.set()
            yield "Paris "
            await asyncio.sleep(0)

    guard = BackgroundGuard(judge=WordJudge())

    async def read() -> None:
        async for _ in guard.astream("?", CONTEXTS, endless()):  # type: ignore[arg-type]
            pass

    reading = asyncio.create_task(read())
    await begun.wait()
    await guard.aclose()
    with suppress(GuardClosed):  # or the stream ends, if the guard was waiting for nothing
        await reading
    assert guard_threads() == before
