from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from guardrail import Context, Decision, Guard, GuardrailError, InputError, Policy, Response
from guardrail.errors import DecodeError
from guardrail.events import (
    MAX_CONTEXTS,
    AnyOutputEvent,
    DeliveryBlocked,
    DeliverySegment,
    ResponseVerdict,
    parse_input,
)
from guardrail.inputs import ContextLike, as_json, event_of
from guardrail.judges.local import LocalJudgeSettings
from guardrail.judges.local.check import ClaimChecker, build_checker
from guardrail.limits import Limits
from guardrail.policy import NO_CONTEXTS, MissingContexts
from tests.support.constants import made
from tests.support.judges import GatedJudge, WordJudge

SOURCE = "The basic plan costs $49 a month. Refunds are paid within 14 days."


async def tokens(text: str, step: int = 4) -> AsyncIterator[str]:
    for start in range(0, len(text), step):
        yield text[start : start + step]
        await asyncio.sleep(0)


def shown(events: list[AnyOutputEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, DeliverySegment))


async def test_check_with_the_local_judge() -> None:
    async with Guard() as guard:
        good = await guard.check("Price?", [SOURCE], "The basic plan costs $49 a month.")
        bad = await guard.check("Price?", [SOURCE], "The basic plan costs $79 a month.")
    assert good.decision is Decision.RELEASE
    assert good.claims[0].evidence[0].quote in SOURCE
    assert bad.decision is Decision.BLOCK
    assert bad.hallucinated_claims == ("The basic plan costs $79 a month.",)


async def test_the_loop_goes_on_while_the_local_judge_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading its model takes tenths of a second, for all that the loop serves."""
    turned = threading.Event()
    made: list[bool] = []

    def slow(settings: LocalJudgeSettings) -> ClaimChecker:
        made.append(turned.wait(10))
        return build_checker(settings)

    monkeypatch.setattr("guardrail.judges.local.judge.build_checker", slow)
    guard = Guard()
    assert made == []
    asyncio.get_running_loop().call_soon(turned.set)
    async with guard:
        verdict = await guard.check("Price?", [SOURCE], "The basic plan costs $49 a month.")
    assert made == [True]
    assert verdict.decision is Decision.RELEASE


async def test_a_guard_with_the_local_judge_can_be_entered_again() -> None:
    guard = Guard()
    for _ in range(2):
        async with guard:
            verdict = await guard.check("Price?", [SOURCE], "The basic plan costs $49 a month.")
        assert verdict.decision is Decision.RELEASE


async def test_stream_gives_text_as_it_passes_and_stops_at_what_does_not() -> None:
    async with Guard(WordJudge()) as guard:
        text = "Paris is in France. It costs wrong $79. Oslo is in Norway."
        events = [event async for event in guard.stream("?", [SOURCE], tokens(text))]
    assert shown(events) == "Paris is in France. "
    assert sum(isinstance(event, DeliveryBlocked) for event in events) == 1
    assert sum(isinstance(event, ResponseVerdict) for event in events) == 1


async def test_a_block_stops_the_model() -> None:
    asked = 0
    closed = asyncio.Event()

    async def model() -> AsyncIterator[str]:
        nonlocal asked
        try:
            for asked in range(1_000):
                yield "It costs wrong $79. " if asked == 2 else "Paris is in France. "
                await asyncio.sleep(0.001)
        finally:
            closed.set()

    async with Guard(WordJudge()) as guard:
        events = [event async for event in guard.stream("?", [], model())]
    assert any(isinstance(event, DeliveryBlocked) for event in events)
    assert asked < 100
    assert closed.is_set()


async def test_many_streams_at_once_do_not_mix() -> None:
    async with Guard(WordJudge()) as guard:

        async def one(n: int) -> str:
            text = f"City number {n} is in France. Town {n} is in Spain."
            return shown([event async for event in guard.stream("?", [], tokens(text, 3))])

        found = await asyncio.gather(*(one(n) for n in range(50)))
    assert found == [f"City number {n} is in France. Town {n} is in Spain." for n in range(50)]


async def test_an_error_of_the_stream_ends_the_answer_and_is_raised_again() -> None:
    async def broken() -> AsyncIterator[str]:
        yield "Paris is in France. Rome is"
        raise ConnectionError("the model went away")

    events: list[AnyOutputEvent] = []

    async def read(guard: Guard) -> None:
        async for event in guard.stream("?", [], broken()):
            events.append(event)  # noqa: PERF401 - what came before the error is looked at

    async with Guard(WordJudge()) as guard:
        with pytest.raises(ConnectionError, match="the model went away"):
            await read(guard)
    assert isinstance(events[-1], DeliveryBlocked | ResponseVerdict) or events[-1].type == "case.flagged"
    assert any(isinstance(event, DeliveryBlocked) and event.rule == "aborted" for event in events)


async def test_a_reader_that_leaves_early_stops_everything() -> None:
    judge = GatedJudge()
    async with Guard(judge) as guard:
        stream = guard.stream("?", [], tokens("Paris is in France. Rome is in Italy."))
        reader = asyncio.ensure_future(anext(stream))
        await judge.asked.wait()
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        await stream.aclose()  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        assert judge.cancelled == 1


async def test_a_caller_that_is_cancelled_takes_its_judgements_along() -> None:
    judge = GatedJudge()
    async with Guard(judge) as guard:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await guard.check("?", [], "Paris is in France.")
        await asyncio.sleep(0)
        assert judge.cancelled == 1
        judge.gate.set()
        assert (await guard.check("?", [], "Paris is in France.")).decision is Decision.RELEASE


async def test_the_same_id_twice_at_once_or_later_is_refused() -> None:
    judge = GatedJudge()
    async with Guard(judge) as guard:
        first = asyncio.ensure_future(guard.check("?", [], "Paris is in France.", response_id="r"))
        await judge.asked.wait()
        with pytest.raises(InputError, match="is being checked already"):
            await guard.check("?", [], "Paris is in France.", response_id="r")
        judge.gate.set()
        await first
        with pytest.raises(InputError, match="has been checked already"):
            await guard.check("?", [], "Paris is in France.", response_id="r")
        stream = guard.stream("?", [], tokens("Paris is in France."), response_id="r")
        with pytest.raises(InputError, match="finished"):
            await anext(stream)


async def test_calls_wait_for_room() -> None:
    judge = GatedJudge()
    async with Guard(judge, limits=made(Limits, max_sessions=2, resume_at=0.6)) as guard:
        calls = [asyncio.ensure_future(guard.check("?", [], f"Paris is {n}.")) for n in range(6)]
        await judge.asked.wait()
        await asyncio.sleep(0)
        assert judge.at_once <= 2
        judge.gate.set()
        assert all(verdict.decision is Decision.RELEASE for verdict in await asyncio.gather(*calls))
    assert judge.most_at_once == 2


async def test_contexts_as_texts_mappings_and_objects() -> None:
    judge = WordJudge()
    async with Guard(judge) as guard:
        contexts: list[ContextLike] = [
            "one",
            {"id": "two", "text": "2"},
            Context(id="three", text="3"),
            {"text": "4"},
        ]
        await guard.check("?", contexts, "Paris is in France.")
        with pytest.raises(TypeError, match="give a list of contexts"):
            await guard.check("?", "one text", "Paris is in France.")
    assert [context.id for context in judge.requests[0].evidence.contexts] == ["c1", "two", "three", "c4"]


async def test_input_that_cannot_be_is_named() -> None:
    async with Guard(WordJudge()) as guard:
        with pytest.raises(InputError, match=r"^deadline_ms: "):
            await guard.check("?", [], "Paris is in France.", deadline_ms=-1)
        with pytest.raises(InputError, match=r"^contexts\.1: give a text, or a mapping .*, not a NoneType$"):
            await guard.check("?", ["Paris", None], "Paris")  # type: ignore[list-item]
        with pytest.raises(InputError, match=r"^contexts\.0\.text: "):
            guard.stream("?", [{"id": "x", "text": 3}], ["Paris"])
        with pytest.raises(InputError, match="half of a surrogate pair"):
            await guard.check("?", [], "half a pair \ud800")
        with pytest.raises(InputError, match="half of a surrogate pair"):
            async for _ in guard.stream("?", [], ["Paris is ", "\ud83d"]):
                pass


def nested(levels: int) -> dict[str, Any]:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    made: dict[str, Any] = value
    return made


CIRCULAR: dict[str, Any] = {}
CIRCULAR["a"] = CIRCULAR


@pytest.mark.parametrize(
    "metadata",
    [
        {"a": 10**5_000},
        {"a": [-(10**4_300)]},
        nested(200),
        nested(300),
        CIRCULAR,
        {"a": "\ud800"},
        {"a": b"\xff"},
    ],
    ids=["huge", "negative", "deep", "deeper", "circular", "surrogate", "bytes"],
)
async def test_metadata_that_no_record_could_hold_are_named(metadata: dict[str, Any]) -> None:
    async with Guard(WordJudge()) as guard:
        with pytest.raises(InputError, match=r"^metadata: .*give texts, numbers"):
            await guard.check("?", [], "Paris is in France.", metadata=metadata)
        with pytest.raises(InputError, match=r"^metadata: .*give texts, numbers"):
            async for _ in guard.stream("?", [], ["Paris"], metadata=metadata):
                pass


@pytest.mark.parametrize("metadata", [{"a": 10**4_299}, nested(199), {"a": {1}, "b": (float("nan"), None)}])
async def test_metadata_that_a_record_can_hold_pass_in_process_and_on_the_wire(
    metadata: dict[str, Any],
) -> None:
    head = event_of(Response, "r", {"question": "?", "contexts": (), "answer": "", "metadata": metadata})
    assert parse_input(as_json(head))
    async with Guard(WordJudge()) as guard:
        await guard.check("?", [], "Paris is in France.", metadata=metadata)


async def test_deltas_that_are_no_texts_end_the_answer_with_a_clear_error() -> None:
    async with Guard(WordJudge()) as guard:
        with pytest.raises(InputError, match=r"^text: "):
            async for _ in guard.stream("?", [], ["Paris is ", None]):  # type: ignore[list-item]
                pass
        with pytest.raises(TypeError, match="not one text"):
            guard.stream("?", [], "Paris is in France.")


def test_what_is_no_judge_or_policy_is_refused_at_once() -> None:
    class Half:
        async def judge(self, request: object) -> None: ...

    class Replying(WordJudge):
        async def judge(self, request: object) -> None: ...  # type: ignore[override]

    with pytest.raises(TypeError, match="Half has not all of name, judge and aclose"):
        Guard(Half())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"Replying\.judge returns one reply; make it an async generator"):
        Guard(Replying())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"give a guardrail\.Policy"):
        Guard(WordJudge(), "strict")  # type: ignore[arg-type]


async def test_a_guard_that_is_not_open_says_so() -> None:
    with pytest.raises(GuardrailError, match="async with"):
        await Guard(WordJudge()).check("?", [], "Paris is in France.")


async def test_a_judge_that_was_handed_in_stays_open() -> None:
    judge = WordJudge()
    async with Guard(judge, Policy(mode="hold")) as guard:
        verdict = await guard.check_event(Response(response_id="r", answer="Paris is in France."))
    assert verdict.mode == "hold"
    assert not judge.closed


async def test_an_argument_that_there_is_not_is_an_error_with_the_remedy() -> None:
    async with Guard(WordJudge()) as guard:
        with pytest.raises(TypeError, match=r"'rout' is not a field of a response; did you mean 'route'\?"):
            await guard.check("Why?", ["Because."], "Because.", rout="sales")
        with pytest.raises(TypeError, match="'xyz' is not a field of a response; there are: response_id, "):
            guard.stream("Why?", ["Because."], ["Because."], xyz=1)


@pytest.mark.parametrize(("action", "decision"), [("refuse", "block"), ("flag", "flag")])
@pytest.mark.parametrize("mode", ["stream", "hold", "observe"])
async def test_claims_without_documents_follow_one_setting(action: Any, decision: str, mode: Any) -> None:
    missing = MissingContexts(action, "No documents.")
    told = "Paris is in France."
    async with Guard(WordJudge(), Policy(mode=mode)) as guard:
        for contexts in ([], ["  "]):
            verdict = await guard.check("?", contexts, told, missing_contexts=missing)
            assert (verdict.decision, verdict.rule) == (decision, NO_CONTEXTS)
        verdict = await guard.check("?", [], "How can I help you?", missing_contexts=missing)
        assert verdict.decision == "release"
        verdict = await guard.check("?", ["Another text."], told, missing_contexts=missing)
        assert verdict.rule != NO_CONTEXTS
        events = [each async for each in guard.stream("?", [], [told], missing_contexts=missing)]
    shown = [each.text for each in events if isinstance(each, DeliverySegment)]
    messages = [each.message for each in events if isinstance(each, DeliveryBlocked)]
    withheld = (action, mode) in {("refuse", "stream"), ("refuse", "hold")}
    assert "".join(shown) == ("" if withheld else told)
    assert messages == (["No documents."] if withheld else [])


@pytest.mark.parametrize("given", [MAX_CONTEXTS + 1, 5 * MAX_CONTEXTS])
async def test_too_many_contexts_are_refused_with_a_remedy(given: int) -> None:
    contexts = [{"id": str(number), "text": "A source."} for number in range(given)]
    async with Guard(WordJudge()) as guard:
        with pytest.raises(
            InputError, match=rf"contexts: {given:,} are more than the 10,000 .* send the best"
        ):
            await guard.check("Where?", contexts, SOURCE)
        assert (await guard.check("Where?", contexts[:MAX_CONTEXTS], SOURCE)).decision is Decision.RELEASE
    event = {"type": "response", "schema": 1, "response_id": "r", "contexts": contexts, "answer": SOURCE}
    with pytest.raises(DecodeError, match=r"contexts: .* more than the 10,000"):
        parse_input(json.dumps(event))
