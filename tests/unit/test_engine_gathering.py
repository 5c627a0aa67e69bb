"""Claims that a judge puts off: they go with the next ones, in time, and each of them once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail.events import Decision
from guardrail.judges import CachedJudge, Judge, Judgement, JudgeRequest, Verdict
from guardrail.judges.streams import GatheringAround
from guardrail.limits import Limits
from guardrail.policy import Policy
from tests.support.constants import made
from tests.support.engine_bench import Bench, bench
from tests.support.judges import GatedJudge, WordJudge
from tests.support.sessions import judgement

LONG_S = 100.0
SENTENCES = ("Paris is in France.", "Rome is in Italy.", "Oslo is in Norway.", "Bern is in Peru.")


class PatientJudge(WordJudge):
    """Puts everything off as long as it may; ``urgent`` words can't wait for later text."""

    def __init__(self, max_wait_s: float = LONG_S, urgent: Sequence[str] = ()) -> None:
        super().__init__()
        self.max_wait_s = max_wait_s
        self.urgent = urgent
        self.asked: list[list[str]] = []

    async def sift(self) -> None:
        """What comes before it decides whether to put off."""

    async def go(self) -> None:
        """What takes long."""

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        gathering = request.gathering
        assert gathering is not None
        self.asked.append([claim.text for claim in request.claims.values()])
        fresh = [claim_id for claim_id in request.claims if claim_id not in gathering.known]
        assert all(gathering.known[claim_id].reasoning == "so far" for claim_id in gathering.known)
        await self.sift()
        doubted = any(word in text for text in self.asked[-1] for word in self.urgent)
        known = [*gathering.known.values(), *map(so_far, fresh)]
        if gathering.defer(known, urgent=doubted):
            return
        await self.go()
        async for each in super().judge(request):
            yield each

    @property
    def judged(self) -> list[list[str]]:
        """The texts of the claims that were not put off, call by call."""
        return [[claim.text for claim in request.claims.values()] for request in self.requests]


class GatedPatientJudge(PatientJudge):
    """Sifts and goes on when the test opens the gate to it."""

    def __init__(self, max_wait_s: float = LONG_S, urgent: Sequence[str] = ()) -> None:
        super().__init__(max_wait_s, urgent)
        self.sifting, self.going = GatedJudge(), GatedJudge()
        self.sifting.gate.set()
        self.going.gate.set()

    async def _through(self, gated: GatedJudge) -> None:
        gated.asked.set()
        await gated.gate.wait()

    async def sift(self) -> None:
        await self._through(self.sifting)

    async def go(self) -> None:
        await self._through(self.going)


def so_far(claim_id: str) -> Judgement:
    """What a judge knows of a claim that it puts off."""
    return replace(judgement(claim_id, Verdict.UNVERIFIED), reasoning="so far")


async def settled() -> None:
    """Let everything happen that needs no time."""
    for _ in range(20):
        await asyncio.sleep(0)


@asynccontextmanager
async def begun(judge: Judge, **limits: int) -> AsyncIterator[tuple[Bench, Callable[[str], None]]]:
    """A bench with a response under way, and what writes the next of its text."""
    policy = Policy(mode="observe", claim_timeout_ms=600_000)
    async with bench(judge, policy, made(Limits, **limits)) as b:
        b.start()
        seqs = iter(range(1_000))

        def write(text: str) -> None:
            b.delta(next(seqs), text)

        yield b, write


async def test_claims_gather_until_the_end_of_the_text_and_are_then_judged_in_one_call() -> None:
    judge = PatientJudge()
    async with begun(judge) as (b, write):
        for count, sentence in enumerate(SENTENCES, 1):
            write(f"{sentence} ")
            await settled()
            assert b.engine.pending_claims == count - 1  # the last may go on
        assert judge.judged == []
        await b.ended(len(SENTENCES))
    assert judge.judged == [list(SENTENCES)]
    assert [claim.text for claim in b.claims()] == list(SENTENCES)


async def test_claims_wait_no_longer_than_the_judge_says() -> None:
    judge = PatientJudge(max_wait_s=0.02)
    async with begun(judge) as (b, write):
        write(f"{SENTENCES[0]} {SENTENCES[1]} And")
        await b.until(lambda: len(b.claims()) == 2)  # nothing else comes, and the text goes on
        assert judge.judged == [list(SENTENCES[:2])]
        await b.ended(1)


async def test_in_a_busy_guard_they_wait_so_many_times_as_long() -> None:
    judge = PatientJudge(max_wait_s=0.2)
    busy = True

    async def burden() -> None:
        while busy:
            time.sleep(0.2)  # noqa: ASYNC251 - what a turn of the loop takes
            await asyncio.sleep(0)

    async with begun(judge) as (b, write), asyncio.TaskGroup() as group:
        group.create_task(burden())
        for _ in range(20):  # until it is noticed
            await asyncio.sleep(0.05)
        write(f"{SENTENCES[0]} And")
        await asyncio.sleep(0.4)
        assert judge.judged == []
        busy = False
        await b.ended(1)
    assert judge.judged == [[SENTENCES[0], "And"]]


async def test_nor_longer_than_leaves_the_judge_three_quarters_of_their_time() -> None:
    judge = PatientJudge(max_wait_s=LONG_S)
    async with bench(judge, Policy(mode="observe", claim_timeout_ms=400)) as b:
        b.start()
        b.delta(0, f"{SENTENCES[0]} And")
        await b.until(lambda: bool(b.claims()))
        assert [claim.verdict for claim in b.claims()] == [Verdict.SUPPORTED]
        await b.ended(1)


async def test_a_judge_that_ends_at_its_deadline_is_heard_on_the_claim_that_waited_longest() -> None:
    class Punctual(PatientJudge):
        async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
            self.deadline = request.deadline
            async for each in super().judge(request):
                yield each

        async def go(self) -> None:
            await asyncio.sleep(self.deadline - time.monotonic() - 0.06)

    judge = Punctual(max_wait_s=0.2)
    async with bench(judge, Policy(mode="observe", claim_timeout_ms=1_000)) as b:
        b.start()
        b.delta(0, f"{SENTENCES[0]} And")
        await asyncio.sleep(0.15)
        b.delta(1, f" {SENTENCES[1]} And")
        await b.ended(2)
        assert judge.judged[0][0] == SENTENCES[0]
        assert Verdict.UNVERIFIED not in {claim.verdict for claim in b.claims()}


async def test_what_is_urgent_goes_at_once_and_takes_along_what_has_gathered() -> None:
    judge = PatientJudge(urgent=["Oslo"])
    async with begun(judge) as (b, write):
        for sentence in SENTENCES:
            write(f"{sentence} ")
            await settled()
        assert judge.judged == [list(SENTENCES[:3])]
        await b.ended(len(SENTENCES))
    assert judge.judged == [list(SENTENCES[:3]), [SENTENCES[3]]]


async def test_urgent_claims_wait_for_those_that_wait_already() -> None:
    judge = GatedPatientJudge(urgent=["Paris"])
    judge.sifting.gate.clear()
    async with begun(judge) as (b, write):
        write(f"{SENTENCES[0]} And")
        await judge.sifting.asked.wait()
        write(f"orra is small. {SENTENCES[1]} And")
        judge.sifting.gate.set()
        await b.until(lambda: len(b.claims()) == 3)
        assert judge.judged == [[SENTENCES[0], "Andorra is small.", SENTENCES[1]]]
        await b.ended(2)


async def test_at_the_end_nothing_is_asked_beside_a_call_that_may_still_be_joined() -> None:
    judge = GatedPatientJudge()
    judge.sifting.gate.clear()
    async with begun(judge) as (b, write):
        write(f"{SENTENCES[0]} {SENTENCES[1][:6]}")
        await judge.sifting.asked.wait()
        write(SENTENCES[1][6:])
        b.complete(2)
        await settled()
        assert judge.asked == [[SENTENCES[0]]]
        judge.sifting.gate.set()
        await b.until(lambda: bool(b.closed))
    assert judge.judged == [list(SENTENCES[:2])]


async def test_at_the_end_what_is_left_goes_beside_a_call_that_can_not_be_joined() -> None:
    judge = GatedPatientJudge(urgent=["Paris"])
    judge.going.gate.clear()
    async with begun(judge) as (b, write):
        write(f"{SENTENCES[0]} {SENTENCES[1][:6]}")
        await judge.going.asked.wait()
        write(SENTENCES[1][6:])
        b.complete(2)
        await settled()
        assert judge.asked == [[SENTENCES[0]], [SENTENCES[1]]]
        judge.going.gate.set()
        await b.until(lambda: bool(b.closed))
    assert judge.judged == [[SENTENCES[0]], [SENTENCES[1]]]


async def test_a_call_that_goes_after_the_end_lets_the_others_begin() -> None:
    """One that is full can't be joined, though the text ended before it went."""
    judge = GatedPatientJudge()
    judge.sifting.gate.clear()
    judge.going.gate.clear()
    async with begun(judge, max_claims_per_call=1) as (b, write):
        write(f"{SENTENCES[0]} {SENTENCES[1]}")
        b.complete(1)
        await judge.sifting.asked.wait()
        judge.sifting.gate.set()
        await settled()
        assert judge.asked == [[SENTENCES[0]], [SENTENCES[1]]]
        judge.going.gate.set()
        await b.until(lambda: bool(b.closed))


async def test_a_full_call_puts_nothing_off() -> None:
    judge = PatientJudge()
    async with begun(judge, max_claims_per_call=2) as (b, write):
        write(f"{' '.join(SENTENCES)} And")
        await b.until(lambda: len(b.claims()) == 4)
        assert judge.judged == [list(SENTENCES[:2]), list(SENTENCES[2:])]
        await b.ended(1)


async def test_what_is_put_off_though_it_may_not_be_could_not_be_checked() -> None:
    class Stubborn(PatientJudge):
        async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
            assert request.gathering is not None
            said = [judgement(each, Verdict.SUPPORTED) for each in request.claims]
            request.gathering.defer(said)
            for each in said[:0]:
                yield each

    async with begun(Stubborn()) as (b, write):
        write(f"{SENTENCES[0]} {SENTENCES[1]}")
        await settled()
        assert not b.claims()
        await b.ended(1)
    assert [claim.verdict for claim in b.claims()] == [Verdict.UNVERIFIED] * 2


async def test_nothing_is_put_off_that_has_a_verdict_or_was_not_asked() -> None:
    class Muddled(PatientJudge):
        async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
            gathering = request.gathering
            assert gathering is not None
            first, *_ = asked = list(request.claims)
            if gathering.defer([so_far(each) for each in (*asked, "unasked", *asked)]):
                yield judgement(first, Verdict.CONTRADICTED)
                return
            async for each in super().judge(request):
                yield each

    judge = Muddled()
    async with begun(judge) as (b, write):
        write(f"{SENTENCES[0]} {SENTENCES[1]} ")
        await b.until(lambda: bool(b.claims()))
        await b.ended(1)
    assert judge.judged == [[SENTENCES[1]]]
    assert [claim.verdict for claim in b.claims()] == [Verdict.CONTRADICTED, Verdict.SUPPORTED]


async def test_when_a_response_is_decided_nobody_is_asked_about_what_was_put_off() -> None:
    judge = PatientJudge(max_wait_s=0.02)
    async with bench(judge, Policy(mode="stream")) as b:
        b.start()
        b.delta(0, f"{SENTENCES[0]} And")
        await settled()
        b.engine.reject("r1", "unreadable")
        await b.until(lambda: bool(b.finals()))
        b.complete(1)
        await asyncio.sleep(0.05)
    assert judge.judged == []
    assert b.verdict().decision is Decision.BLOCK


@pytest.mark.parametrize("at_once", [1, 2, 64])
@settings(max_examples=60)
@given(
    cuts=st.lists(st.integers(1, 200), max_size=12),
    pauses=st.lists(st.sampled_from([0, 1, 30]), min_size=13, max_size=13),
    urgent=st.sets(st.sampled_from(["Paris", "Rome", "Oslo", "Bern"])),
    wait_ms=st.sampled_from([1, 5, 100_000]),
)
def test_however_the_text_comes_each_claim_gets_the_verdict_it_would_get_at_once(
    at_once: int, cuts: list[int], pauses: list[int], urgent: set[str], wait_ms: int
) -> None:
    text = " ".join(SENTENCES * 2)
    ends = [*sorted({cut for cut in cuts if cut < len(text)}), len(text)]

    class Slow(PatientJudge):
        async def sift(self) -> None:
            await asyncio.sleep(0)

        async def go(self) -> None:
            await asyncio.sleep(0.001)

    async def run() -> None:
        judge = Slow(wait_ms / 1000, sorted(urgent))
        async with begun(judge, max_claims_per_call=at_once) as (b, write):
            begin = 0
            for end, pause in zip(ends, pauses, strict=False):
                write(text[begin:end])
                begin = end
                for _ in range(pause):
                    await asyncio.sleep(0)
            await b.ended(len(ends))
        asked = [each for call in judge.judged for each in call]
        assert sorted(asked) == sorted(SENTENCES)  # which the text says twice
        assert sorted(claim.text for claim in b.claims()) == sorted(SENTENCES * 2)
        assert {claim.verdict for claim in b.claims()} == {Verdict.SUPPORTED}

    asyncio.run(run())


# ------------------------------------------------- judges that know nothing of a claim while it waits


def around(judge: WordJudge, max_wait_s: float) -> Judge:
    return GatheringAround(judge, max_wait_s)


def cached(judge: WordJudge, max_wait_s: float) -> Judge:
    return CachedJudge(judge, "words", max_wait_s=max_wait_s)


AROUND = pytest.mark.parametrize("wrap", [around, cached])


def judged(judge: WordJudge) -> list[list[str]]:
    return [[claim.text for claim in request.claims.values()] for request in judge.requests]


@AROUND
async def test_claims_share_a_call_and_four_wait_for_no_more(
    wrap: Callable[[WordJudge, float], Judge],
) -> None:
    judge = WordJudge()
    async with begun(wrap(judge, LONG_S)) as (b, write):
        for sentence in SENTENCES[:3]:
            write(f"{sentence} ")
            await settled()
        assert judge.requests == []
        write(f"{SENTENCES[3]} {SENTENCES[0][:-1]} again. And")
        await b.until(lambda: len(b.claims()) >= 4)
        assert judged(judge)[0][:4] == list(SENTENCES)
        await b.ended(4)
    assert all(claim.verdict is Verdict.SUPPORTED for claim in b.claims())
    assert b.verdict().usage.judge_calls == len(judge.requests) == 2


@AROUND
async def test_a_lone_claim_is_asked_about_in_time(wrap: Callable[[WordJudge, float], Judge]) -> None:
    judge = WordJudge()
    async with begun(wrap(judge, 0.02)) as (b, write):
        write(f"{SENTENCES[0]} And")
        await b.until(lambda: bool(b.claims()))
        await b.ended(1)
    assert judged(judge)[0] == [SENTENCES[0]]


async def test_a_cached_verdict_waits_for_nothing() -> None:
    judge = WordJudge()
    known = cached(judge, LONG_S)
    async with begun(known) as (b, write):
        write(f"{SENTENCES[0]} ")
        await b.ended(1)
        b.start("r2")
        b.delta(0, f"{SENTENCES[0]} {SENTENCES[0]} And", "r2")
        await b.until(lambda: len(b.claims()) == 3)
    assert len(judge.requests) == 1
