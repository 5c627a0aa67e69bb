"""``GuardClient`` on the broker in memory: with the guard of production, or deliveries that a test writes."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from guardrail.client import AnswerBlocked, GuardClient, GuardTimeout, Piece
from guardrail.errors import GuardrailError, InputError, TransportError
from guardrail.events import (
    Decision,
    ResponseCompleted,
    ResponseDelta,
    ResponseStarted,
    parse_input,
)
from guardrail.policy import Policy
from guardrail.testing import MemoryClientTransport, MemoryGuard, ScriptedJudge, check_events
from tests.support.guards import TOPICS, new_broker, until
from tests.support.stages import Stage, staged

CONTEXTS = ["The basic plan costs $49 a month. Refunds are paid within 14 days."]
RIGHT = "The basic plan costs $49 a month. Refunds are paid within 14 days."
WRONG = "The basic plan costs $49 a month. Refunds are paid within 30 days."
JUDGE = {"30 days": "CONTRADICTED", "perhaps": "UNSUPPORTED"}
BLOCKING = Policy(rules=["verdict CONTRADICTED: block"])
REDACTING = Policy(rules=["verdict CONTRADICTED: redact"])


def tokens(text: str, size: int = 4) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


async def slowly(text: str, gate: asyncio.Event | None = None) -> AsyncIterator[str]:
    """Tokens as a model writes them; after the first sentence it waits for the gate."""
    for token in tokens(text):
        yield token
        await asyncio.sleep(0)
    if gate is not None:
        await gate.wait()


class Endless:
    """A model that has written a text, and never ends; ``closed`` when it was told to."""

    def __init__(self, text: str) -> None:
        self.closed = asyncio.Event()
        self._text = text

    async def tokens(self) -> AsyncIterator[str]:
        try:
            async for token in slowly(self._text, asyncio.Event()):
                yield token
        finally:
            self.closed.set()


async def failing(text: str) -> AsyncIterator[str]:
    yield text
    raise ConnectionResetError("the model is gone")


async def shown(pieces: AsyncIterator[Piece], seen: list[str] | None = None) -> str:
    """All text, ``seen`` gets it as it comes: what came before an error counts."""
    seen = [] if seen is None else seen
    async for piece in pieces:
        seen.append(piece.text)
    return "".join(seen)


@asynccontextmanager
async def guarded(
    policy: Policy | None = None, judge: ScriptedJudge | None = None, **options: Any
) -> AsyncIterator[tuple[MemoryGuard, GuardClient]]:
    async with MemoryGuard(judge or ScriptedJudge(JUDGE), policy or BLOCKING) as guard:
        async with GuardClient(transport=guard.transport(), **options) as client:
            yield guard, client
        assert check_events(guard.records("responses")) == []
        assert guard.records("dead_letters") == []


# ------------------------------------------------------------------------- with the real guard


async def test_a_right_answer_is_yielded_whole_and_in_order() -> None:
    async with guarded() as (guard, client):
        answer = client.guard("What does it cost?", CONTEXTS, slowly(RIGHT), route="sales", tenant="t")
        pieces = [piece async for piece in answer]
    assert "".join(piece.text for piece in pieces) == RIGHT
    assert len(pieces) == 2
    assert {piece.decision for piece in pieces} == {Decision.RELEASE}
    assert (answer.decision, answer.rule, answer.score) == ("release", "score and rules passed", 0.97)
    started = parse_input(guard.records("responses")[0].value or b"")
    assert isinstance(started, ResponseStarted)
    assert (started.route, started.tenant, started.contexts[0].id) == ("sales", "t", "c1")


async def test_a_block_is_raised_with_the_policys_message_after_what_was_verified() -> None:
    policy = Policy(rules=["verdict CONTRADICTED: block"], fallback_message="Ask the support team.")
    seen: list[str] = []
    async with guarded(policy) as (_, client):
        answer = client.guard("?", CONTEXTS, slowly(WRONG))
        with pytest.raises(AnswerBlocked) as raised:
            await shown(answer, seen)
    assert [text.strip() for text in seen] == ["The basic plan costs $49 a month."]
    assert raised.value.message == "Ask the support team."
    assert raised.value.released_chars == len(seen[0])
    assert raised.value.response_id == answer.response_id
    assert answer.decision is Decision.BLOCK


async def test_a_block_may_be_yielded_instead() -> None:
    async with guarded(on_block="yield") as (_, client):
        pieces = [piece async for piece in client.guard("?", CONTEXTS, slowly(WRONG))]
    assert [piece.replaces for piece in pieces] == [False, True]
    assert (pieces[-1].decision, pieces[-1].verified) == ("block", True)


async def test_the_model_is_stopped_at_a_block() -> None:
    model = Endless(WRONG + " And more.")
    async with guarded() as (guard, client):
        with pytest.raises(AnswerBlocked):
            await shown(client.guard("?", CONTEXTS, model.tokens()))
        await model.closed.wait()
        await until(lambda: "response.aborted" in types(guard))


def types(guard: MemoryGuard) -> list[str]:
    return [parse_input(record.value or b"").type for record in guard.records("responses")]


async def test_redacted_and_flagged_text_is_told_as_such() -> None:
    text = WRONG + " It is perhaps nice."
    policy = Policy(rules=["verdict CONTRADICTED: redact", "verdict UNSUPPORTED: flag"])
    async with guarded(policy) as (_, client):
        pieces = [piece async for piece in client.guard("?", CONTEXTS, slowly(text))]
    assert [(piece.redacted, piece.flagged) for piece in pieces] == [
        (False, False),
        (True, False),
        (False, True),
    ]
    assert "30 days" not in "".join(piece.text for piece in pieces)


async def test_a_policy_that_holds_yields_all_at_the_end() -> None:
    gate = asyncio.Event()
    async with guarded(Policy(mode="hold"), max_stream_chars=10) as (guard, client):
        answer = client.guard("?", CONTEXTS, slowly(RIGHT, gate))
        first = asyncio.ensure_future(anext(answer))
        await until(lambda: len(types(guard)) > 1)
        assert not first.done()
        gate.set()
        assert (await first).text + await shown(answer) == RIGHT


async def test_whole_answers() -> None:
    async with guarded() as (_, client):
        right = await client.check("?", CONTEXTS, RIGHT)
        wrong = await client.check("?", CONTEXTS, WRONG)
    assert (right.text, right.decision, right.score) == (RIGHT, "release", 0.97)
    assert wrong.decision == "block"
    assert wrong.text == BLOCKING.fallback_message
    assert wrong.pieces[-1].replaces


async def test_a_failing_model_ends_the_answer_as_aborted_and_its_error_is_raised() -> None:
    async with guarded(Policy(on_incomplete="release")) as (guard, client):
        seen: list[str] = []
        answer = client.guard("?", CONTEXTS, failing("The basic plan costs $49 a month. And"))
        with pytest.raises(ConnectionResetError, match="the model is gone"):
            await shown(answer, seen)
        assert "".join(seen).startswith("The basic plan costs $49 a month.")
        assert types(guard)[-1] == "response.aborted"


async def test_a_block_of_an_aborted_answer_has_the_models_error_as_its_cause() -> None:
    async with guarded(Policy(on_incomplete="block")) as (_, client):
        with pytest.raises(AnswerBlocked) as raised:
            await shown(client.guard("?", CONTEXTS, failing("The basic plan costs $49")))
        assert isinstance(raised.value.__cause__, ConnectionResetError)


async def test_leaving_the_loop_ends_the_answer_and_closes_the_model() -> None:
    model = Endless(RIGHT + " More. ")
    async with guarded() as (guard, client):
        async for _ in client.guard("?", CONTEXTS, model.tokens()):
            break
        gc.collect()
        await model.closed.wait()
        await until(lambda: types(guard)[-1] == "response.aborted")


async def test_a_cancelled_reader_ends_its_answer_only() -> None:
    never = asyncio.Event()
    async with guarded() as (guard, client):
        task = asyncio.ensure_future(shown(client.guard("?", CONTEXTS, slowly("Hello. ", never))))
        await until(lambda: "response.delta" in types(guard))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: types(guard)[-1] == "response.aborted")
        assert await shown(client.guard("?", CONTEXTS, slowly(RIGHT))) == RIGHT


async def test_an_answer_as_a_context_manager_ends_with_it() -> None:
    async with guarded() as (guard, client):
        async with client.guard("?", CONTEXTS, slowly(RIGHT, asyncio.Event())) as answer:
            await anext(answer)
        await until(lambda: types(guard)[-1] == "response.aborted")
        assert [piece async for piece in answer] == []


async def test_an_answer_that_somebody_holds_goes_on_until_it_is_closed() -> None:
    """What docs/client.md says of leaving the loop: nothing tells an iterator that a loop has left it."""
    gate = asyncio.Event()
    async with guarded() as (guard, client):
        answer = client.guard("?", CONTEXTS, slowly(RIGHT, gate))
        async for _ in answer:
            break
        gc.collect()
        gate.set()
        await until(lambda: "response.completed" in types(guard))
        held = client.guard("?", CONTEXTS, slowly(RIGHT, asyncio.Event()))
        async for _ in held:
            break
        await held.aclose()
        await until(lambda: "response.aborted" in types(guard))


async def test_thousands_of_answers_at_once_over_one_client() -> None:
    async with guarded() as (guard, client):

        async def one(number: int) -> None:
            text = f"Plan {number} costs $49 a month. It is number {number}."
            assert await shown(client.guard("?", CONTEXTS, slowly(text))) == text

        async with asyncio.TaskGroup() as group:
            for number in range(2_000):
                group.create_task(one(number))
        assert len({record.key for record in guard.records("responses")}) == 2_000


async def test_answers_go_on_through_a_restart_of_the_guard() -> None:
    gate = asyncio.Event()
    judge = ScriptedJudge(JUDGE)

    async def halting() -> AsyncIterator[str]:
        for token in tokens("The basic plan costs $49 a month. Refunds are "):
            yield token
        await gate.wait()
        for token in tokens("paid within 14 days."):
            yield token

    async with guarded(judge=judge) as (guard, client):
        answer = client.guard("?", CONTEXTS, halting())
        first = await anext(answer)
        await guard.restart()
        gate.set()
        assert first.text + await shown(answer) == RIGHT


async def test_the_guard_passes_over_what_a_retry_writes_twice() -> None:
    """The client's producer is not idempotent, and relies on this."""
    async with MemoryGuard(ScriptedJudge()) as guard, GuardClient(transport=guard.transport()) as client:
        assert await shown(client.guard("?", CONTEXTS, tokens(RIGHT))) == RIGHT
        deliveries = guard.records("deliveries")
        for record in guard.records("responses"):
            guard.broker.append(record.partition.topic, record.key, record.value)
        await until(lambda: guard.broker.lag("guardrail", TOPICS.responses) == 0)
        assert guard.records("deliveries") == deliveries
        assert guard.records("dead_letters") == []


async def test_the_traceparent_comes_with_everything_the_guard_writes() -> None:
    parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    async with guarded() as (guard, client):
        await shown(client.guard("?", CONTEXTS, tokens(RIGHT), traceparent=parent))
        headers = {record.headers for record in guard.records("deliveries")}
    assert headers == {(("traceparent", parent.encode()), ("guardrail-group", b"guardrail"))}


async def test_replies_of_ids_that_the_caller_gives_are_read_whatever_their_partition() -> None:
    async with (
        MemoryGuard(ScriptedJudge(), partitions=8) as guard,
        GuardClient(transport=guard.transport(reply_partitions=[3])) as client,
    ):
        for number in range(12):
            answer = client.guard("?", CONTEXTS, tokens(RIGHT), response_id=f"mine-{number}")
            assert await shown(answer) == RIGHT
        assert len({record.partition for record in guard.records("deliveries")}) > 3


async def test_ids_made_up_hash_to_the_partitions_that_are_read() -> None:
    async with MemoryGuard(ScriptedJudge(), partitions=8) as guard:
        async with GuardClient(transport=guard.transport(reply_partitions=[2, 5])) as client:
            for _ in range(20):
                await client.check("?", CONTEXTS, RIGHT)
        assert {record.partition.index for record in guard.records("deliveries")} == {2, 5}


async def test_an_id_in_use_is_refused() -> None:
    async with guarded() as (_, client):
        gate = asyncio.Event()
        first = client.guard("?", CONTEXTS, slowly(RIGHT, gate), response_id="r-1")
        await anext(first)
        with pytest.raises(InputError, match="r-1"):
            await anext(client.guard("?", CONTEXTS, slowly(RIGHT), response_id="r-1"))
        gate.set()
        await shown(first)


async def test_half_of_a_surrogate_pair_ends_its_answer_with_an_error_that_says_so() -> None:
    async with guarded(Policy(on_incomplete="release")) as (_, client):
        with pytest.raises(InputError, match="surrogate"):
            await shown(client.guard("?", CONTEXTS, ["fine ", "\ud83d"]))
        with pytest.raises(TypeError, match="give texts, not int"):
            await shown(client.guard("?", CONTEXTS, [1]))  # type: ignore[list-item]
        with pytest.raises(TypeError, match="not one text"):
            client.guard("?", CONTEXTS, "text")
        with pytest.raises(InputError, match="question"):
            client.guard(1, CONTEXTS, [])  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"metadata: .*give texts, numbers, lists"):
            client.guard("?", CONTEXTS, [], metadata={"a": object()})
        with pytest.raises(InputError, match="surrogate"):
            client.guard("?", CONTEXTS, [], metadata={"a": "\ud83d"})


# --------------------------------------------------------------- with deliveries that the test writes


async def begun(stage: Stage, **options: Any) -> tuple[str, asyncio.Future[str]]:
    answer = stage.client.guard("?", CONTEXTS, ["one ", "two"], **options)
    reader = asyncio.ensure_future(shown(answer))
    await until(lambda: stage.completed(answer.response_id))
    return answer.response_id, reader


async def test_a_delivery_that_is_missing_or_cannot_be_read_fails_closed() -> None:
    async with staged() as stage:
        response_id, reader = await begun(stage)
        stage.segment(response_id, 1, "two", (4, 7))
        with pytest.raises(TransportError, match=r"delivery 0 .* is missing, number 1 came"):
            await reader
        response_id, reader = await begun(stage)
        stage.fail(response_id)
        with pytest.raises(TransportError, match="can't be read"):
            await reader


async def test_a_block_counts_whatever_its_number() -> None:
    async with staged() as stage:
        response_id, reader = await begun(stage)
        stage.segment(response_id, 0, "one ", (0, 4))
        stage.segment(response_id, 1, "two", (4, 7))
        stage.block(response_id, 0)
        with pytest.raises(AnswerBlocked):
            await reader


async def test_a_guard_that_says_nothing_raises_by_default() -> None:
    async with staged(timeout_s=0.02) as stage:
        response_id, reader = await begun(stage)
        with pytest.raises(GuardTimeout, match=r"for 0\.02 s; is 'guardrail run'"):
            await reader
        assert isinstance(stage.sent(response_id)[-1], ResponseCompleted)


async def test_the_rest_that_is_not_verified_may_be_a_message() -> None:
    async with staged(on_timeout="message", timeout_message="Sorry.") as stage:
        answer = stage.client.guard("?", CONTEXTS, ["one ", "two"])
        reader = asyncio.ensure_future(collect(answer))
        await until(lambda: bool(stage.sent(answer.response_id)))
        stage.segment(answer.response_id, 0, "one ", (0, 4))
        stage.fail(answer.response_id)
        pieces = await reader
    assert [(piece.text, piece.verified) for piece in pieces] == [("one ", True), ("Sorry.", False)]
    assert pieces[-1].rule == "not verified: TransportError"


async def test_text_that_waits_while_the_model_writes_on_has_a_time_of_its_own() -> None:
    async with staged(stall_timeout_s=0.01) as stage:
        with pytest.raises(GuardTimeout, match=r"for 0\.01 s"):
            await shown(stage.client.guard("?", CONTEXTS, slowly("text", asyncio.Event())))


async def collect(pieces: AsyncIterator[Piece]) -> list[Piece]:
    return [piece async for piece in pieces]


async def test_the_unverified_rest_may_be_passed_through_marked() -> None:
    """What was verified stays so, what waited comes at once, and what is written later as it comes."""
    gate = asyncio.Event()

    async def halting() -> AsyncIterator[str]:
        yield "one "
        yield "two "
        await gate.wait()
        yield "three"

    async with staged(on_timeout="pass") as stage:
        answer = stage.client.guard("?", CONTEXTS, halting())
        reader = asyncio.ensure_future(anext(answer))
        await until(lambda: stage.text_sent(answer.response_id) == "one two ")
        stage.segment(answer.response_id, 0, "one ", (0, 4))
        assert (await reader).text == "one "
        stage.fail(answer.response_id)
        waited = await anext(answer)
        gate.set()
        rest = await collect(answer)
        await until(lambda: isinstance(stage.sent(answer.response_id)[-1], ResponseCompleted))
        assert stage.text_sent(answer.response_id) == "one two three"
    assert (waited.text, waited.verified, waited.decision, waited.span) == ("two ", False, None, (4, 8))
    assert [(piece.text, piece.verified) for piece in rest] == [("three", False)]
    assert answer.decision is None


async def test_a_block_counts_while_text_is_passed_through_unverified() -> None:
    async with staged(on_timeout="pass") as stage:
        answer = stage.client.guard("?", CONTEXTS, slowly("text", asyncio.Event()))
        seen: list[str] = []
        reader = asyncio.ensure_future(shown(answer, seen))
        await until(lambda: stage.text_sent(answer.response_id) == "text")
        stage.fail(answer.response_id)
        await until(lambda: seen == ["text"])
        stage.segment(answer.response_id, 0, "text", (0, 4))
        stage.block(answer.response_id, 1)
        with pytest.raises(AnswerBlocked):
            await reader
        assert seen == ["text"]


async def test_the_timeout_policy_may_be_chosen_for_each_answer() -> None:
    async with staged(timeout_s=60) as stage:
        answer = stage.client.guard("?", CONTEXTS, ["text"], on_timeout="pass", timeout_s=0.01)
        assert [(piece.text, piece.verified) for piece in await collect(answer)] == [("text", False)]
        checked = await stage.client.check("?", CONTEXTS, "text", on_timeout="message", timeout_s=0.01)
        assert not checked.pieces[0].verified
        assert checked.decision is None


class Refusing(MemoryClientTransport):
    """A broker that takes nothing while the test says so."""

    refuses = False

    async def publish(self, records: Any) -> Any:
        if self.refuses:
            return [TransportError("writing failed")] * len(records)
        return await super().publish(records)


@pytest.mark.parametrize("policy", ["raise", "pass"])
async def test_where_kafka_takes_nothing_the_policy_of_the_caller_holds(policy: Any) -> None:
    broker = new_broker()
    transport = Refusing(broker, TOPICS.responses, TOPICS.deliveries)
    transport.refuses = True
    async with GuardClient(transport=transport, on_timeout=policy) as client:
        answer = client.guard("?", CONTEXTS, slowly("some text"))
        if policy == "raise":
            with pytest.raises(TransportError, match="writing failed"):
                await shown(answer)
        else:
            pieces = await collect(answer)
            assert "".join(piece.text for piece in pieces) == "some text"
            assert not any(piece.verified for piece in pieces)
        transport.refuses = False
        later = client.guard("?", CONTEXTS, slowly("some text"), timeout_s=0.01, on_timeout="raise")
        with pytest.raises(GuardTimeout):
            await shown(later)
    assert broker.records(TOPICS.responses)[0].key == later.response_id.encode()


async def test_where_reading_fails_every_answer_is_told_and_it_may_come_back() -> None:
    class Broken(MemoryClientTransport):
        fails = False

        async def poll(self, timeout_ms: int) -> Any:
            if self.fails:
                raise TransportError("reading rag.deliveries: denied")
            return await super().poll(1)

    broker = new_broker()
    transport = Broken(broker, TOPICS.responses, TOPICS.deliveries)
    async with GuardClient(transport=transport) as client:
        reader = asyncio.ensure_future(shown(client.guard("?", CONTEXTS, slowly("text"))))
        await asyncio.sleep(0)
        transport.fails = True
        with pytest.raises(TransportError, match="denied"):
            await reader
        with pytest.raises(TransportError, match="denied"):
            await shown(client.guard("?", CONTEXTS, slowly("text")))
        passed = await collect(client.guard("?", CONTEXTS, slowly("text"), on_timeout="pass"))
        assert "".join(piece.text for piece in passed) == "text"
        transport.fails = False
        await until(lambda: client._broken is None)
        answer = client.guard("?", CONTEXTS, slowly("text"))
        reader = asyncio.ensure_future(shown(answer))
        await until(lambda: bool(broker.records(TOPICS.responses)))
        Stage(client, broker).complete(answer.response_id, 0)
        assert await reader == ""


# ------------------------------------------------------------------------------------ back-pressure


class Model:
    """A token stream that counts what was taken of it."""

    def __init__(self, total: int) -> None:
        self.taken = 0
        self.total = total

    async def __aiter__(self) -> AsyncIterator[str]:
        while self.taken < self.total:
            self.taken += 1
            yield "word "
            await asyncio.sleep(0)


async def settled() -> None:
    """Let everything run that can."""
    for _ in range(300):
        await asyncio.sleep(0)


async def test_no_more_tokens_are_taken_at_the_bound_and_decisions_make_room() -> None:
    async with staged(max_stream_chars=50, max_held_chars=100, coalesce_ms=0) as stage:
        model = Model(60)
        answer = stage.client.guard("?", CONTEXTS, model)
        first = asyncio.ensure_future(anext(answer))
        await until(lambda: len(stage.text_sent(answer.response_id)) == 100)
        await settled()
        assert model.taken == 20  # 100 characters: nothing was released, it may be held to its end
        stage.segment(answer.response_id, 0, "word " * 12, (0, 60))
        await first
        await until(lambda: len(stage.text_sent(answer.response_id)) == 110)
        await settled()
        assert model.taken == 22  # 50 characters beyond the released ones


async def test_a_slow_reader_stops_its_own_model_only() -> None:
    async with staged(max_stream_chars=50, max_held_chars=50, max_total_chars=200, coalesce_ms=0) as stage:
        slow, quick = Model(1_000), Model(40)
        lazy = stage.client.guard("?", CONTEXTS, slow)
        begun = asyncio.ensure_future(anext(lazy))
        await until(lambda: len(stage.text_sent(lazy.response_id)) == 50)
        stage.segment(lazy.response_id, 0, "word " * 5, (0, 25))
        await begun
        await until(lambda: len(stage.text_sent(lazy.response_id)) == 75)
        stage.segment(lazy.response_id, 1, "word " * 10, (25, 75))
        await settled()
        assert slow.taken == 15  # decided, and not read

        other = stage.client.guard("?", CONTEXTS, quick)
        reader = asyncio.ensure_future(shown(other))
        for seq in range(20):
            await until(lambda end=seq * 10 + 10: len(stage.text_sent(other.response_id)) >= end)  # type: ignore[misc]
            stage.segment(other.response_id, seq, "word word ", (seq * 10, seq * 10 + 10))
        stage.complete(other.response_id, 20)
        assert await reader == "word " * 40
        assert slow.taken == 15
        await lazy.aclose()


async def test_all_answers_together_are_bounded_and_none_waits_for_ever() -> None:
    """Held to their end, all of them; one goes on to its end at a time where nothing else makes room."""
    async with staged(max_total_chars=100, coalesce_ms=0) as stage:
        models = [Model(30) for _ in range(5)]
        answers = [stage.client.guard("?", CONTEXTS, model) for model in models]
        readers = [asyncio.ensure_future(shown(answer)) for answer in answers]

        waiting = set(answers)
        while waiting:
            await until(lambda: any(stage.completed(answer.response_id) for answer in waiting))
            await settled()
            # The bound, what the one of them has that went past it, and a token of each.
            assert sum(model.taken for model in models) * 5 - 150 * (5 - len(waiting)) <= 100 + 150 + 5 * 5
            for answer in [answer for answer in waiting if stage.completed(answer.response_id)]:
                stage.segment(answer.response_id, 0, "word " * 30, (0, 150))
                stage.complete(answer.response_id, 1)
                waiting.discard(answer)
        assert await asyncio.gather(*readers) == ["word " * 30] * 5


async def test_tokens_are_sent_together() -> None:
    async with staged(coalesce_ms=200) as stage:
        response_id, reader = await begun(stage)
        deltas = [event for event in stage.sent(response_id) if isinstance(event, ResponseDelta)]
        assert [delta.text for delta in deltas] == ["one two"]
        reader.cancel()


async def test_a_text_longer_than_an_event_should_be_is_sent_in_several() -> None:
    async with staged() as stage:
        answer = stage.client.guard("?", CONTEXTS, ["x" * 20_000])
        reader = asyncio.ensure_future(shown(answer))
        await until(lambda: len(stage.text_sent(answer.response_id)) == 20_000)
        seqs = [event.seq for event in stage.sent(answer.response_id) if isinstance(event, ResponseDelta)]
        assert seqs == [0, 1, 2]
        reader.cancel()


# ----------------------------------------------------------------------------------------- closing


async def test_closing_waits_for_answers_in_flight() -> None:
    judge = ScriptedJudge()
    judge.gate.clear()
    async with MemoryGuard(judge) as guard:
        client = GuardClient(transport=guard.transport())
        async with client:
            reader = asyncio.ensure_future(shown(client.guard("?", CONTEXTS, tokens(RIGHT))))
            await until(lambda: "response.completed" in types(guard))
            asyncio.get_running_loop().call_later(0.01, judge.gate.set)
        assert await reader == RIGHT
        with pytest.raises(GuardrailError, match="not open"):
            client.guard("?", CONTEXTS, tokens(RIGHT))


async def test_closing_ends_what_is_left_after_its_deadline() -> None:
    async with MemoryGuard(ScriptedJudge()) as guard:
        async with GuardClient(
            transport=guard.transport(), drain_timeout_s=0.01, on_timeout="pass"
        ) as client:
            answer = client.guard("?", CONTEXTS, slowly(RIGHT, asyncio.Event()))
            reader = asyncio.ensure_future(shown(answer))
            await until(lambda: "response.delta" in types(guard))
        with pytest.raises(GuardrailError, match="closed before the answer was decided"):
            await reader
        assert types(guard)[-1] == "response.aborted"
        assert check_events(guard.records("responses")) == []


async def test_an_error_in_the_block_is_raised_as_it_is_and_waits_for_nothing() -> None:
    async with MemoryGuard(ScriptedJudge()) as guard:
        with pytest.raises(ZeroDivisionError):  # noqa: PT012 - the block is what is tested
            async with GuardClient(transport=guard.transport(), drain_timeout_s=100) as client:
                answer = client.guard("?", CONTEXTS, slowly(RIGHT, asyncio.Event()))
                await anext(answer)
                raise ZeroDivisionError
        assert types(guard)[-1] == "response.aborted"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give bootstrap_servers"),
        ({"transport": object(), "bootstrap_servers": "x"}, "give bootstrap_servers"),
        ({"transport": object(), "acks": 1}, "acks"),
        ({"bootstrap_servers": "x", "timeout_s": 0}, "timeout_s 0"),
        ({"bootstrap_servers": "x", "group_id": "g"}, "group_id can't be chosen"),
        ({"bootstrap_servers": "x", "no_such_thing": 1}, "no_such_thing"),
        ({"bootstrap_servers": "x", "reply_partitions": 0}, "reply_partitions 0"),
    ],
)
def test_what_cannot_be_is_refused_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, GuardrailError), match=message):
        GuardClient(**options)


def test_the_client_is_light() -> None:
    """A chat service that imports it, and opens it, loads no judge, model or command line."""
    code = (
        "import sys, guardrail.client, guardrail.client.kafka; "
        "heavy = {'onnxruntime', 'openai', 'numpy', 'tokenizers', 'typer', 'rich', 'structlog', 'yaml', "
        "'pydantic_settings', 'consumers'}; "
        "print(sorted(heavy & {name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
