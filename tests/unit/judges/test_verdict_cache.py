"""Judging the same claim once: what is remembered, what is shared while under way, and what never is."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from guardrail.errors import JudgeUnavailable
from guardrail.events import ClaimPart, Context, Evidence, Finding, Usage, Verdict
from guardrail.judges import CachedJudge, Judgement
from guardrail.judges.cache import CacheSettings, pack, unpack
from tests.support.constants import made
from tests.support.judges import reply_of
from tests.unit.judges.doubles import CONTEXTS, ScriptedJudge, judgement, request

S, U, X = Verdict.SUPPORTED, Verdict.UNVERIFIED, Verdict.CONTRADICTED
QUOTED = replace(
    judgement(),
    evidence=(Evidence(context_id="doc-0", quote="costs $50", span=(15, 24)),),
    conflicting_contexts=("doc-1",),
    reasoning="It says so.",
    parts=(ClaimPart(text="It costs $50.", verdict=S),),
    attempts=3,
    usage=Usage(judge_calls=1),
)
MARKED = replace(
    QUOTED,
    verdict=X,
    unsupported_spans=((3, 8), (9, 12)),
    contradiction=0.75,
    findings=(Finding.FIGURE_CONFLICT, Finding.LINK_ABSENT),
)


async def test_a_claim_is_judged_once_and_the_second_answer_is_free() -> None:
    inner = ScriptedJudge({"It costs $50.": QUOTED})
    cached = CachedJudge(inner, "f")
    first = await reply_of(cached, request("It costs $50."))
    second = await reply_of(cached, request("It costs $50.", response_id="r2"))
    assert inner.asked == [["It costs $50."]]
    assert second.judgements == (replace(first.judgements[0], attempts=0, usage=None),)
    assert (first.judgements[0].attempts, first.usage.judge_calls) == (3, 1)
    assert second.usage == Usage()


async def test_only_what_is_new_is_asked_for_and_all_is_answered_in_order() -> None:
    inner = ScriptedJudge({"a": S, "b": X, "c": S})
    cached = CachedJudge(inner, "f")
    await reply_of(cached, request("b"))
    reply = await reply_of(cached, request("a", "b", "c"))
    assert inner.asked == [["b"], ["a", "c"]]
    assert [(j.claim_id, j.verdict) for j in reply.judgements] == [("k0", S), ("k1", X), ("k2", S)]


async def test_the_same_claim_twice_in_one_response_is_asked_once() -> None:
    inner = ScriptedJudge({"a": S})
    reply = await reply_of(CachedJudge(inner, "f"), request("a", "a"))
    assert inner.asked == [["a"]]
    assert [(j.claim_id, j.attempts) for j in reply.judgements] == [("k0", 1), ("k1", 0)]


@pytest.mark.parametrize(
    "changed",
    [
        request("a", question="Another one?"),
        request("a", tenant="acme"),
        request("a", contexts=(*CONTEXTS, "More.")),
        request("a", contexts=(CONTEXTS[0] + " ", CONTEXTS[1])),
        request("a", contexts=tuple(reversed(CONTEXTS))),
        request("a", contexts=("".join(CONTEXTS), "")),
        request("a "),
    ],
)
async def test_whatever_could_change_the_verdict_makes_it_another_claim(changed: object) -> None:
    inner = ScriptedJudge({"a": S, "a ": S})
    cached = CachedJudge(inner, "f")
    await reply_of(cached, request("a"))
    await reply_of(cached, changed)  # type: ignore[arg-type]
    assert len(inner.asked) == 2


async def test_the_lead_in_and_the_fingerprint_count_too() -> None:
    inner, shared = ScriptedJudge({"a": S}), Shelf()
    asked = request("a")
    await reply_of(CachedJudge(inner, "f", shared=shared), asked)
    await reply_of(CachedJudge(inner, "g", shared=shared), asked)
    claim = replace(asked.claims["k0"], lead_in="Of the basic plan:")
    await reply_of(CachedJudge(inner, "f", shared=shared), replace(asked, claims={"k0": claim}))
    assert len(inner.asked) == 3


async def test_ids_of_contexts_do_not_count_and_evidence_bears_those_of_the_request() -> None:
    inner = ScriptedJudge({"a": QUOTED})
    cached = CachedJudge(inner, "f")
    await reply_of(cached, request("a"))
    renamed = [Context(id=f"new-{n}", text=text) for n, text in enumerate(CONTEXTS)]
    (found,) = (await reply_of(cached, request("a", contexts=renamed))).judgements
    assert found.evidence == (Evidence(context_id="new-0", quote="costs $50", span=(15, 24)),)
    assert found.conflicting_contexts == ("new-1",)
    assert len(inner.asked) == 1


@pytest.mark.parametrize(
    "line",
    [
        judgement(verdict=U, support=None),
        replace(judgement(), degraded_from=("llm:big: late",)),
        replace(judgement(), evidence=(Evidence(context_id="doc-0", quote="not there", span=(0, 9)),)),
    ],
)
async def test_what_is_of_the_moment_or_can_not_be_located_is_never_remembered(line: Judgement) -> None:
    inner = ScriptedJudge({"a": line})
    cached = CachedJudge(inner, "f")
    for _ in range(2):
        assert (await reply_of(cached, request("a"))).judgements[0].verdict is line.verdict
    assert len(inner.asked) == 2


async def test_a_claim_that_the_judge_leaves_out_is_left_out_and_asked_again() -> None:
    inner = ScriptedJudge({"a": S})
    cached = CachedJudge(inner, "f")
    reply = await reply_of(cached, request("a", "b"))
    assert [(j.claim_id, j.verdict) for j in reply.judgements] == [("k0", S)]
    await reply_of(cached, request("a", "b"))
    assert inner.asked == [["a", "b"], ["b"]]


async def test_verdicts_grow_old() -> None:
    now = 1000.0
    inner = ScriptedJudge({"a": S})
    cached = CachedJudge(inner, "f", CacheSettings(ttl_seconds=60), clock=lambda: now)
    await reply_of(cached, request("a"))
    now += 59.9
    await reply_of(cached, request("a"))
    assert len(inner.asked) == 1
    now += 0.2
    await reply_of(cached, request("a"))
    assert len(inner.asked) == 2


async def test_the_one_unused_longest_makes_room() -> None:
    inner = ScriptedJudge({"a": S, "b": S, "c": S})
    cached = CachedJudge(inner, "f", made(CacheSettings, max_entries=2))
    for text in ("a", "b", "a", "c", "a", "b"):
        await reply_of(cached, request(text))
    assert inner.asked == [["a"], ["b"], ["c"], ["b"]]


async def test_two_at_the_same_time_share_one_call_and_both_hear_early() -> None:
    gate = asyncio.Event()
    inner = ScriptedJudge({"a": S, "b": S}, gate=gate, early=["a"])
    cached = CachedJudge(inner, "f")
    heard: list[str] = []
    async with asyncio.TaskGroup() as group:
        first = group.create_task(reply_of(cached, request("a", "b")))
        await inner.started.wait()
        second = group.create_task(
            reply_of(cached, request("a", "b"), lambda each: heard.append(each.claim_id))
        )
        for _ in range(20):
            await asyncio.sleep(0)
        assert heard == ["k0"]  # announced by the other's call, which has not ended
        gate.set()
    assert len(inner.asked) == 1
    assert [j.verdict for j in second.result().judgements] == [S, S]
    assert [j.attempts for j in second.result().judgements] == [0, 0]
    assert first.result().usage.judge_calls == 1
    assert second.result().usage == Usage()


@pytest.mark.parametrize("error", [None, JudgeUnavailable("down"), ZeroDivisionError("bug")], ids=repr)
async def test_when_the_first_is_cancelled_or_fails_the_second_asks_for_itself(
    error: Exception | None,
) -> None:
    gate = asyncio.Event()
    inner = ScriptedJudge({"a": S}, gate=gate, error=error)
    cached = CachedJudge(inner, "f")
    first = asyncio.create_task(reply_of(cached, request("a")))
    await inner.started.wait()
    inner.started.clear()
    second = asyncio.create_task(reply_of(cached, request("a")))
    await asyncio.sleep(0)
    if error is None:
        first.cancel()
    else:
        gate.set()
    with pytest.raises(asyncio.CancelledError if error is None else type(error)):
        await first
    inner.error = None
    await inner.started.wait()
    gate.set()
    assert (await second).judgements[0].verdict is S
    assert (inner.cancelled, len(inner.asked)) == (error is None, 2)


async def test_when_the_second_is_cancelled_the_first_does_not_notice() -> None:
    gate = asyncio.Event()
    inner = ScriptedJudge({"a": S}, gate=gate)
    cached = CachedJudge(inner, "f")
    first = asyncio.create_task(reply_of(cached, request("a")))
    await inner.started.wait()
    second = asyncio.create_task(reply_of(cached, request("a")))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    gate.set()
    assert (await first).judgements[0].verdict is S
    assert inner.cancelled == 0


async def test_where_all_fails_the_meter_tells_what_every_round_took() -> None:
    """The second asks for its own claim, and then for the one that it had waited for."""
    gate = asyncio.Event()

    inner = ScriptedJudge(gate=gate, error=JudgeUnavailable("down"), usage=Usage(judge_calls=2))
    cached = CachedJudge(inner, "f")
    one, other = request("a"), request("a", "b")
    first = asyncio.create_task(reply_of(cached, one))
    await inner.started.wait()
    second = asyncio.create_task(reply_of(cached, other))
    for _ in range(5):
        await asyncio.sleep(0)
    assert inner.asked == [["a"], ["b"]]
    gate.set()
    for task, asked, calls in ((first, one, 2), (second, other, 4)):
        with pytest.raises(JudgeUnavailable):
            await task
        assert asked.meter.attempts == calls


async def test_nobody_waits_for_another_longer_than_half_of_its_own_time() -> None:
    """The first never ends; the second's clock says that half of its time has passed."""
    inner = ScriptedJudge({"a": S}, gate=asyncio.Event())
    now = 1000.0
    cached = CachedJudge(inner, "f", clock=lambda: now)
    first = asyncio.create_task(reply_of(cached, replace(request("a"), deadline=1060.0)))
    await inner.started.wait()
    inner.gate = None
    second = replace(request("a"), deadline=1000.0)  # no time at all: it asks at once
    assert (await reply_of(cached, second)).judgements[0].verdict is S
    assert len(inner.asked) == 2
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_failure_does_not_take_with_it_what_was_known_or_had_come_early() -> None:
    inner = ScriptedJudge({"a": S, "b": S, "c": S}, early=["b"])
    cached = CachedJudge(inner, "f")
    await reply_of(cached, request("a"))
    inner.error = JudgeUnavailable("cut off")
    reply = await reply_of(cached, request("a", "b", "c"))
    assert [(j.claim_id, j.verdict) for j in reply.judgements] == [("k0", S), ("k1", S)]
    assert reply.error is inner.error


async def test_where_nothing_is_known_the_error_is_the_judges_own() -> None:
    error = JudgeUnavailable("down")
    with pytest.raises(JudgeUnavailable) as caught:
        await reply_of(CachedJudge(ScriptedJudge(error=error), "f"), request("a"))
    assert caught.value is error


class Shelf:
    """A shared cache in memory."""

    def __init__(self) -> None:
        self.entries: dict[bytes, bytes] = {}
        self.closed = False

    async def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.entries.get(key) for key in keys]

    async def put(self, entries: dict[bytes, bytes], ttl_seconds: float) -> None:
        self.entries.update(entries)

    async def aclose(self) -> None:
        self.closed = True


async def test_guards_share_verdicts_and_no_text_is_in_the_keys() -> None:
    shelf = Shelf()
    one, two = ScriptedJudge({"a": QUOTED}), ScriptedJudge({})
    await reply_of(CachedJudge(one, "f", shared=shelf), request("a"))
    other = CachedJudge(two, "f", shared=shelf)
    (found,) = (await reply_of(other, request("a"))).judgements
    assert (found.verdict, found.attempts, two.asked) == (S, 0, [])
    assert all(len(key) == 32 for key in shelf.entries)
    assert b"costs $50" not in b"".join(shelf.entries.values()).replace(b"It costs $50.", b"")
    await other.aclose()
    assert (shelf.closed, two.closed) == (True, True)


@pytest.mark.parametrize(
    "poison",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b"[" * 4000,
        *(
            json.dumps({"v": 3, "verdict": "SUPPORTED", "confidence": 1, "support": 1, "judge": "x"} | odd)
            for odd in (
                {"verdict": "UNVERIFIED", "confidence": 0, "support": None},
                {"confidence": 7},
                {"support": math.nan},
                {"evidence": [[0, 5, 9999]]},
                {"evidence": [[-1, 0, 3]]},
                {"evidence": [[9, 0, 3]]},
                {"evidence": [[0, 3, 3]]},
                {"v": 2},
                {"verdict": "UNSUPPORTED", "support": 0, "unsupported": [[0, 99]]},
                {"verdict": "UNSUPPORTED", "support": 0, "unsupported": [7]},
                {"confidence": "0.9"},
                {"support": True},
            )
        ),
    ],
)
async def test_an_entry_that_makes_no_sense_is_as_none(poison: bytes | str) -> None:
    shelf = Shelf()
    inner = ScriptedJudge({"a": X})
    await reply_of(CachedJudge(inner, "f", shared=shelf), request("a"))
    shelf.entries = dict.fromkeys(shelf.entries, poison if isinstance(poison, bytes) else poison.encode())
    (found,) = (await reply_of(CachedJudge(inner, "f", shared=shelf), request("a"))).judgements
    assert (found.verdict, len(inner.asked)) == (X, 2)


def test_packing_and_unpacking_give_back_all_but_what_the_call_cost() -> None:
    asked = request("It costs $50.")
    contexts, (claim,) = asked.evidence.contexts, asked.claims.values()
    for packed in (QUOTED, MARKED):
        data = pack(packed, contexts)
        assert data is not None
        assert unpack(data, "k7", claim, contexts) == replace(packed, claim_id="k7", attempts=0, usage=None)


async def test_words_without_support_are_remembered_with_the_verdict() -> None:
    """Wherever the claim stands in the next answer: they are places in its text."""
    inner = ScriptedJudge({"It costs $50.": MARKED, "Well.": S})
    cached = CachedJudge(inner, "f")
    await reply_of(cached, request("It costs $50."))
    reply = await reply_of(cached, request("Well.", "It costs $50."))
    assert [found.unsupported_spans for found in reply.judgements] == [(), ((3, 8), (9, 12))]
    assert inner.asked == [["It costs $50."], ["Well."]]


def test_an_entry_of_an_earlier_release_tells_less() -> None:
    asked = request("It costs $50.")
    contexts, (claim,) = asked.evidence.contexts, asked.claims.values()
    kept = json.loads(pack(MARKED, contexts) or b"")
    for name in ("unsupported", "contradiction", "findings"):
        del kept[name]
    found = unpack(json.dumps(kept).encode(), "k0", claim, contexts)
    told = replace(MARKED, unsupported_spans=(), contradiction=None, findings=())
    assert found == replace(told, attempts=0, usage=None)


def test_a_verdict_with_a_very_long_text_is_not_kept() -> None:
    assert pack(replace(QUOTED, reasoning="x" * 10_000), request("a").evidence.contexts) is None
