"""What an engine stores of responses, and what it makes of what can't be read of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guardrail.errors import StateError, UnreadableSession
from guardrail.events import DeliveryBlocked, DeliveryCompleted, DeliverySegment
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from tests.support.engine_bench import captured_halfway, process
from tests.support.judges import WordJudge

WATCHING = Policy(mode="observe")
DELIVERED = DeliverySegment | DeliveryBlocked | DeliveryCompleted


async def test_state_that_cannot_be_read_ends_its_response_blocked() -> None:
    first, progress = await captured_halfway()
    progress[1]["claims"] = "none"
    async with process(WordJudge()) as p:
        p.restore(first.head, progress, first.policy)
        [blocked] = p.of(DeliveryBlocked)
        assert blocked.rule == "session_state_unreadable"
        assert blocked.seq == 1
        assert blocked.released_chars == len("Paris is in France. ")
        assert p.engine.pending_claims == 0
        after = p.capture()
        assert after.progress is not None
        p.delta(2, " in Norway.")
        p.complete(3)
        assert p.closed
    async with process(WordJudge()) as p:
        p.restore(first.head, [*progress, after.progress], first.policy)
        assert p.outputs == [], "it is blocked once"
        p.complete(3)
        assert p.closed
        assert p.outputs == []


async def test_a_policy_that_cannot_be_read_ends_its_response_where_it_was() -> None:
    first, progress = await captured_halfway(Policy(mode="stream"))
    router = PolicyRouter({"default": WATCHING, "strict": Policy(name="strict")})
    async with process(WordJudge(), router=router) as p:
        p.restore(first.head, progress, None)
        [blocked] = p.of(DeliveryBlocked)
        assert blocked.rule == "session_state_unreadable"
        assert (blocked.seq, blocked.released_chars) == (1, len("Paris is in France. "))
        after = p.capture()
        p.delta(2, " in Norway. Or in Peru.")
    async with process(WordJudge(), router=router) as p:
        p.restore(first.head, [*progress, after.progress], None)
        p.delta(3, " Or in Chile.")
        p.complete(4)
        assert p.closed
        assert p.outputs == [], "it is blocked once, and nothing leaves after that"
    async with process(WordJudge(), router=router) as p:
        with pytest.raises(StateError, match="newer"):
            p.restore(first.head, [{**progress[0], "v": 2}], None)


async def test_nothing_leaves_of_what_began_unknown_while_the_default_observes() -> None:
    router = PolicyRouter({"default": WATCHING, "strict": Policy(name="strict", mode="hold")})
    async with process(WordJudge(), router=router) as p:
        p.engine.reject("r1", "invalid_event", lane="p0")
        p.delta(0, "Take 900 mg. ")
        assert [type(event) for event in p.events if isinstance(event, DELIVERED)] == [DeliveryBlocked]
    async with process(WordJudge(), WATCHING) as p:
        p.engine.reject("r1", "invalid_event", lane="p0")
        p.delta(0, "Take 900 mg. ")
        p.complete(1)
        delivered = [type(event) for event in p.events if isinstance(event, DELIVERED)]
        assert delivered == [DeliverySegment, DeliveryCompleted], "there is none that blocks"


async def test_a_head_that_cannot_be_read_is_told() -> None:
    first, progress = await captured_halfway()
    assert first.head is not None
    async with process(WordJudge()) as p:
        for change in ({"event": {"type": "response.started"}}, {"digest": "xyz"}, {"v": None}):
            with pytest.raises(UnreadableSession):
                p.restore({**first.head, **change}, progress, first.policy)
        with pytest.raises(UnreadableSession, match="another response's"):
            p.restore(first.head, progress, first.policy, response_id="r2")
        with pytest.raises(StateError, match="newer"):
            p.restore({**first.head, "v": 2}, progress, first.policy)
        assert p.engine.sessions == 0


async def test_of_a_blocked_response_what_is_stored_is_small_from_then_on() -> None:
    texts: dict[str, Any] = {"contexts": [{"id": "c1", "text": "x" * 5_000}], "question": "q" * 5_000}
    async with process(WordJudge()) as p:
        p.start(**texts, metadata={"m": "m" * 5_000})
        p.delta(0, f"{'A word. ' * 500}Wrong is")
        before = p.capture()
        assert len(json.dumps([before.head, before.progress])) > 19_000
        p.engine.reject("r1", "invalid_event", lane="p0")
        after = p.capture()
        assert len(json.dumps([after.head, after.progress])) < 600
        again = p.capture()
        assert (again.head, again.progress) == (None, None)
    async with process(WordJudge()) as p:
        p.restore(after.head, [after.progress], after.policy)
        assert p.changes == {}, "all of it is stored already"
        p.start(**texts, metadata={"m": "m" * 5_000})
        p.delta(0, "again")
        p.delta(1, " and more")
        p.complete(2)
        assert [closed.next_seq for closed in p.closings] == [2]
        assert p.outputs == [], "its start is known, and nothing more is said"


async def test_a_blocked_response_stays_so_whatever_becomes_of_its_progress() -> None:
    async with process(WordJudge()) as p:
        p.start()
        p.engine.reject("r1", "invalid_event", lane="p0")
        captured = p.capture()
    for progress, policy in (([{}], captured.policy), ([], captured.policy), ([captured.progress], None)):
        async with process(WordJudge()) as p:
            p.restore(captured.head, progress, policy)
            p.delta(0, "Take 900 mg. ")
            p.complete(1)
            assert p.closed
            assert p.outputs == []
