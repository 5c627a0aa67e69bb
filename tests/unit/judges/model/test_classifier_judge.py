"""The classifier judge on a real runtime with a tiny model: verdicts, evidence, windows, hostile texts."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from guardrail.claims.model import Claim
from guardrail.errors import JudgeError, JudgeReplyError, JudgeUnavailable
from guardrail.events import Verdict
from guardrail.judges.base import Judge
from guardrail.judges.model import ClassifierJudge, ClassifierSettings, Pair
from guardrail.judges.model import judge as judging
from guardrail.judges.model.classifier import Scores
from guardrail.judges.model.judge import Batcher
from guardrail.judges.model.tokens import PairForm, TokenisedText
from guardrail.judges.recorder import recording
from tests.support.judges import Reply, joined, reply_of
from tests.unit.judges.model.asking import claim, request
from tests.unit.judges.model.tiny import write_model


def batcher_of(judge: ClassifierJudge) -> Batcher:
    """Of a judge whose model is in process."""
    assert isinstance(judge._batcher, Batcher)
    return judge._batcher


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "tiny-nli")


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that reads 64 tokens."""
    return write_model(tmp_path_factory.mktemp("models") / "tiny-nli", max_tokens=64)


async def judged(folder: Path, claims: list[str | Claim], contexts: list[str], **settings: object) -> Reply:
    judge = ClassifierJudge(ClassifierSettings.model_validate({"model": str(folder), **settings}))
    try:
        asked = request(claims, contexts)
        reply = await reply_of(judge, asked)
        for judgement in reply.judgements:
            for evidence in judgement.evidence:
                context = next(c for c in asked.evidence.contexts if c.id == evidence.context_id)
                assert context.text[slice(*evidence.span)] == evidence.quote
        return reply
    finally:
        await judge.aclose()


async def test_each_claim_gets_its_verdict_and_the_sentence_that_backs_it(folder: Path) -> None:
    contexts = ["Filler here. The sky is blue today. More filler.", "not red"]
    reply = await judged(folder, ["The sky is blue", "red 29", "alpha beta"], contexts[:1])
    verdicts = {j.claim_id: j.verdict for j in reply.judgements}
    assert verdicts == {"c0": Verdict.SUPPORTED, "c1": Verdict.UNSUPPORTED, "c2": Verdict.UNSUPPORTED}
    backed = reply.judgements[0]
    assert [e.quote for e in backed.evidence] == ["The sky is blue today."]
    assert backed.confidence == backed.support == pytest.approx(0.88, abs=0.01)
    assert not reply.judgements[1].evidence
    assert backed.judge == "classifier:tiny-nli"


async def test_the_strongest_contradiction_decides_where_nothing_supports_more(folder: Path) -> None:
    reply = await judged(folder, ["red"], ["The sky is blue.", "It is not that."])
    (judgement,) = reply.judgements
    assert judgement.verdict is Verdict.CONTRADICTED
    assert judgement.support is not None
    assert judgement.support < 0.1
    assert judgement.contradiction == judgement.confidence
    assert [(e.context_id, e.quote) for e in judgement.evidence] == [("d1", "It is not that.")]


async def test_support_that_is_stronger_wins_and_names_who_contradicts(folder: Path) -> None:
    reply = await judged(folder, ["alpha beta gamma delta"], ["alpha beta gamma delta", "not alpha"])
    (judgement,) = reply.judgements
    assert judgement.verdict is Verdict.SUPPORTED
    assert judgement.conflicting_contexts == ("d1",)
    assert judgement.evidence[0].context_id == "d0"


async def test_a_long_context_is_read_to_its_end(short: Path) -> None:
    """The tokenizer's file says to cut after 8 tokens; the fact stands after some 3,000."""
    context = "filler " * 3_000 + "The sky is blue. " + "filler " * 50
    reply = await judged(short, ["sky blue"], [context])
    assert reply.judgements[0].verdict is Verdict.SUPPORTED
    assert "sky is blue" in reply.judgements[0].evidence[0].quote
    assert reply.judgements[0].reasoning == ""


async def test_the_lead_in_stands_before_the_claim(folder: Path) -> None:
    reply = await judged(folder, [claim("blue", lead_in="sky"), "blue"], ["the sky is blue"])
    assert [j.verdict for j in reply.judgements] == [Verdict.SUPPORTED, Verdict.UNSUPPORTED]


async def test_a_claim_that_leaves_no_room_is_unverified_and_the_others_are_judged(short: Path) -> None:
    reply = await judged(short, ["alpha " * 60, "sky blue"], ["the sky is blue"])
    long, other = reply.judgements
    assert long.verdict is Verdict.UNVERIFIED
    assert "too long for the model's window" in long.reasoning
    assert other.verdict is Verdict.SUPPORTED


async def test_without_contexts_nothing_is_supported(folder: Path) -> None:
    reply = await judged(folder, ["sky blue"], ["", " \n"])
    assert [(j.verdict, j.support) for j in reply.judgements] == [(Verdict.UNSUPPORTED, 0.0)]
    assert (await judged(folder, [], ["the sky"])).judgements == ()


async def test_the_premise_comes_first(folder: Path) -> None:
    judge = ClassifierJudge(ClassifierSettings.model_validate({"model": str(folder)}))
    try:
        form = judge._classifier.reader.form
        (tokens,) = form.encode([Pair("xx sky", 3, 6, "blue blue")])
        words = [form._tokenizer.id_to_token(number) for number in tokens.ids]
        assert words == ["[CLS]", "sky", "[SEP]", "blue", "blue", "[SEP]"]
        assert list(tokens.type_ids) == [0] * 3 + [1] * 3
    finally:
        await judge.aclose()


async def test_braces_and_places_in_texts_are_text(folder: Path) -> None:
    template = "premise : {premise} hypothesis : {hypothesis}"
    contexts = ["the sky is blue {hypothesis} {0} {premise}"]
    reply = await judged(folder, ["sky blue {premise}"], contexts, template=template)
    assert reply.judgements[0].verdict is Verdict.SUPPORTED
    reply = await judged(folder, ["red {premise} {premise}"], contexts, template=template)
    assert reply.judgements[0].verdict is Verdict.UNSUPPORTED


@pytest.mark.parametrize("per_token", [False, True])
async def test_a_model_of_two_labels_knows_no_contradiction(tmp_path: Path, per_token: bool) -> None:
    folder = write_model(tmp_path / "m", ("no", "yes"), per_token=per_token)
    reply = await judged(
        folder,
        ["sky blue", "not red"],
        ["the sky is blue not"],
        labels={"no": "unsupported", "1": "supported"},
    )
    assert [j.verdict for j in reply.judgements] == [Verdict.SUPPORTED, Verdict.UNSUPPORTED]
    assert [j.contradiction for j in reply.judgements] == [None, None]


async def test_a_single_output_is_the_logit_of_support(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m", ("score",))
    reply = await judged(folder, ["sky blue", "red"], ["the sky is blue"])
    assert [j.verdict for j in reply.judgements] == [Verdict.SUPPORTED, Verdict.UNSUPPORTED]
    assert reply.judgements[0].support == pytest.approx(0.8808, abs=1e-3)


async def test_nothing_is_asked_after_the_deadline(folder: Path) -> None:
    judge = ClassifierJudge(ClassifierSettings(model=str(folder)))
    try:
        with pytest.raises(JudgeUnavailable, match="deadline"):
            await reply_of(judge, request(["sky"], ["the sky"], seconds=-1))
    finally:
        await judge.aclose()


async def test_it_is_a_judge_and_every_claim_has_one_judgement(folder: Path) -> None:
    judge = ClassifierJudge(ClassifierSettings(model=str(folder)))
    assert isinstance(judge, Judge)
    asked = request(["sky blue"] * 40, ["the sky is blue"])
    reply = await reply_of(judge, asked)
    await judge.aclose()
    found = joined(asked, reply, judge.name)
    assert len(reply.judgements) == 40
    assert {j.verdict for j in found.values()} == {Verdict.SUPPORTED}
    with pytest.raises((JudgeUnavailable, RuntimeError)):
        await reply_of(judge, asked)


async def test_verdicts_are_told_as_they_come(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first while the second waits for the model; the third has no room in it, which is known at once."""
    monkeypatch.setattr(judging, "BATCH_SIZE", 1)
    judge = ClassifierJudge(ClassifierSettings(model=str(short)))
    real = batcher_of(judge)._score
    told: list[tuple[str, bool]] = []
    release = threading.Event()

    def slow(pairs: Sequence[Pair]) -> Sequence[Scores | JudgeError]:
        if "red" in pairs[0].hypothesis:
            release.wait()
        return real(pairs)

    batcher_of(judge)._score = slow
    try:
        asked = request(["sky blue", "red", "alpha " * 60], ["the sky is blue"])
        async for judgement in judge.judge(asked):
            told.append((judgement.claim_id, judgement.verdict is not Verdict.UNVERIFIED))
            if len(told) == 2:
                release.set()
    finally:
        release.set()
        await judge.aclose()
    assert told == [("c2", False), ("c0", True), ("c1", True)]


async def test_a_full_queue_leaves_claims_unverified_and_a_cancelled_request_leaves_room(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "_MOST_QUEUED", 3)
    judge = ClassifierJudge(ClassifierSettings(model=str(folder)))
    release, entered = threading.Event(), threading.Event()
    real = batcher_of(judge)._score

    def slow(pairs: Sequence[Pair]) -> Sequence[Scores | JudgeError]:
        entered.set()
        release.wait()
        return real(pairs)

    batcher_of(judge)._score = slow
    try:
        first = asyncio.ensure_future(reply_of(judge, request(["sky blue"], ["the sky is blue"])))
        await asyncio.to_thread(entered.wait)
        second = asyncio.ensure_future(reply_of(judge, request(["red"] * 5, ["the sky is blue"])))
        while batcher_of(judge)._queued < 3:  # noqa: ASYNC110 (a thread's counter sets no event)
            await asyncio.sleep(0.001)
        with pytest.raises(JudgeUnavailable, match="3 pairs wait for the model"):
            await reply_of(judge, request(["blue"] * 2, ["the sky is blue"]))
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        third = asyncio.ensure_future(reply_of(judge, request(["sky blue"] * 5, ["the sky is blue"])))
        while batcher_of(judge)._queued < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        release.set()
        assert (await first).judgements[0].verdict is Verdict.SUPPORTED
        verdicts = [j.verdict for j in (await third).judgements]
        assert verdicts == [Verdict.SUPPORTED] * 3 + [Verdict.UNVERIFIED] * 2
        reply = await reply_of(judge, request(["sky blue", "red"], ["the sky is blue"]))
        assert [j.verdict for j in reply.judgements] == [Verdict.SUPPORTED, Verdict.UNSUPPORTED]
    finally:
        release.set()
        await judge.aclose()
    assert batcher_of(judge)._queued == 0


async def test_a_pair_with_special_tokens_all_the_same_is_not_put_to_the_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PairForm, "plain", lambda self, text: text)
    monkeypatch.setattr(PairForm, "tokenised", lambda self, text: TokenisedText(text, [(0, len(text))]))
    reply = await judged(folder, ["sky blue", "[SEP] sky blue [SEP]"], ["the sky is blue"])
    assert [j.verdict for j in reply.judgements] == [Verdict.SUPPORTED, Verdict.UNVERIFIED]
    assert "special tokens" in reply.judgements[1].reasoning


async def test_what_was_read_and_made_of_it_is_recorded_on_request(folder: Path) -> None:
    contexts = ["The sky is blue today.", "Filler."]
    with recording() as record:
        reply = await judged(folder, ["The sky is blue"], contexts)
    (step,) = record.steps
    assert (step.kind, step.claim_ids, step.judge) == ("reading", ("c0",), "classifier:tiny-nli")
    assert step.prompt == "[1] The sky is blue today.\n[2] Filler."
    (backed,) = reply.judgements
    lines = (step.reply or "").splitlines()
    assert lines[0].startswith(f"[1] support {backed.support:.3f}")
    assert lines[2] == f"SUPPORTED, support {backed.support:.3f}"


# ------------------------------------------------------------------------------------------------ the batcher


class Gate:
    """A model that records its batches and answers when the test lets it."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.entered = threading.Semaphore(0)
        self.leave = threading.Semaphore(0)

    def __call__(self, pairs: Sequence[Pair]) -> list[Scores | JudgeError]:
        self.batches.append([pair.hypothesis for pair in pairs])
        self.entered.release()
        self.leave.acquire()
        if any(pair.hypothesis == "boom" for pair in pairs):
            raise RuntimeError("secret text of a context")
        return [
            JudgeReplyError("not a number") if pair.hypothesis == "nan" else Scores(0.9, 0.0)
            for pair in pairs
        ]


def pairs(name: str, count: int = 1) -> list[Pair]:
    return [Pair("", 0, 0, name)] * count


def later(seconds: float = 60.0) -> float:
    return time.monotonic() + seconds


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest_asyncio.fixture
async def batcher(gate: Gate) -> AsyncIterator[Batcher]:
    made = Batcher(gate, batch_size=4, max_queued=9, name="test-batcher")
    yield made
    gate.leave.release(1000)
    await made.aclose()


async def held(gate: Gate, batcher: Batcher) -> asyncio.Future[list[Scores]]:
    """A first batch that the model sits on, so that what follows waits."""
    first = batcher.submit(pairs("first"), later())
    await asyncio.to_thread(gate.entered.acquire)
    return first


async def test_claims_of_different_requests_share_a_batch(gate: Gate, batcher: Batcher) -> None:
    first = await held(gate, batcher)
    waiting = [batcher.submit(pairs(name, 2), later(60 + n)) for n, name in enumerate("abc")]
    gate.leave.release(10)
    results = await asyncio.gather(first, *waiting)
    assert [len(scores) for scores in results] == [1, 2, 2, 2]
    assert gate.batches == [["first"], ["a", "a", "b", "b"], ["c", "c"]]


async def test_the_most_urgent_claim_goes_first(gate: Gate, batcher: Batcher) -> None:
    await held(gate, batcher)
    calm, urgent = batcher.submit(pairs("calm", 4), later(90)), batcher.submit(pairs("urgent", 4), later(30))
    gate.leave.release(10)
    await asyncio.gather(calm, urgent)
    assert [batch[0] for batch in gate.batches] == ["first", "urgent", "calm"]


async def test_what_was_cancelled_or_is_too_late_is_not_run(gate: Gate, batcher: Batcher) -> None:
    await held(gate, batcher)
    cancelled = batcher.submit(pairs("cancelled", 3), later())
    late = batcher.submit(pairs("late", 3), time.monotonic() - 1)
    good = batcher.submit(pairs("good", 2), later())
    cancelled.cancel()
    await asyncio.sleep(0)
    gate.leave.release(10)
    assert len(await good) == 2
    with pytest.raises(JudgeUnavailable, match="deadline"):
        await late
    assert gate.batches == [["first"], ["good", "good"]]


async def test_a_full_queue_refuses_and_cancelling_makes_room(gate: Gate, batcher: Batcher) -> None:
    await held(gate, batcher)
    waiting = batcher.submit(pairs("waiting", 6), later())
    with pytest.raises(JudgeUnavailable, match="6 pairs wait"):
        await batcher.submit(pairs("more", 4), later())
    waiting.cancel()
    await asyncio.sleep(0)
    # Alone a claim is taken whatever its size: refused for ever it could never be judged.
    huge = batcher.submit(pairs("huge", 20), later())
    gate.leave.release(10)
    assert len(await huge) == 20


async def test_a_failure_is_its_claims_alone_and_tells_no_text(gate: Gate, batcher: Batcher) -> None:
    first = await held(gate, batcher)
    nan, good = batcher.submit(pairs("nan"), later()), batcher.submit(pairs("good", 3), later())
    boom, after = batcher.submit(pairs("boom", 4), later(61)), batcher.submit(pairs("after"), later(62))
    gate.leave.release(10)
    await first
    with pytest.raises(JudgeReplyError):
        await nan
    assert len(await good) == 3
    with pytest.raises(JudgeUnavailable, match=r"the model failed \(RuntimeError\)") as caught:
        await boom
    assert "secret" not in str(caught.value)
    assert len(await after) == 1


async def test_closing_fails_what_waits_and_ends_the_thread(gate: Gate) -> None:
    batcher = Batcher(gate, batch_size=1, max_queued=8, name="test-closing")
    first = await held(gate, batcher)
    waiting = batcher.submit(pairs("waiting"), later())
    closing = asyncio.ensure_future(batcher.aclose())
    with pytest.raises(JudgeUnavailable, match="closed"):
        await waiting
    gate.leave.release(10)
    await closing
    assert len(await first) == 1
    assert not any(thread.name == "test-closing" for thread in threading.enumerate())
    with pytest.raises(JudgeUnavailable, match="closed"):
        await batcher.submit(pairs("x"), later())
    assert gate.batches == [["first"]]


def test_a_loop_that_is_gone_is_no_failure(gate: Gate) -> None:
    """The loop of a request can end before the model does."""
    made: list[Batcher] = []

    async def ask(then: Callable[[], None]) -> None:
        made.append(Batcher(gate, batch_size=1, max_queued=8, name="test-orphan"))
        await held(gate, made[0])
        then()

    asyncio.run(ask(lambda: None))
    gate.leave.release(10)
    asyncio.run(made[0].aclose())
    assert gate.batches == [["first"]]
