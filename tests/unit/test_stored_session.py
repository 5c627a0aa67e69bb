"""What a session writes down, and what is made of it. Restarts in general: tests/property."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from guardrail.claims import ClaimCutter
from guardrail.errors import StateError, UnreadableSession
from guardrail.events import Context, Response, ResponseStarted, ResponseVerdict
from guardrail.judges import Verdict
from guardrail.policy import Policy
from guardrail.session import AskJudge, Emit, Session, StoredSession
from guardrail.session.state import STATE_VERSION
from tests.support.restarts import Restartable, Step, asked_by
from tests.support.sessions import PlainRater, judgement

GOLDEN = Path(__file__).parent / "golden" / "session_state_v1.json"
CONTEXTS = (Context(id="c1", text="A source."), Context(id="c2", text="An other one."))
HEAD = ResponseStarted(response_id="r1", question="What?", contexts=CONTEXTS)
SENTENCES = ["Paris is in France. ", "It costs $50 in all. ", "Oslo is in Norway. "]


def bench(policy: Policy | None = None, chunks: list[str] | None = None) -> Restartable:
    return Restartable(HEAD, policy or Policy(), list(SENTENCES if chunks is None else chunks))


def captured(*steps: str, policy: Policy | None = None) -> list[dict[str, Any]]:
    """What is written of these steps, one capture after each."""
    found = bench(policy)
    found.run([Step(step, then="capture") for step in steps])
    return found.progress


def restored(
    progress: list[Any], policy: Policy | None = None, head: ResponseStarted = HEAD, **fields: Any
) -> StoredSession:
    return StoredSession.restored(
        head,
        policy or Policy(),
        progress,
        new_cutter=lambda: ClaimCutter(PlainRater()),
        started_at=0.0,
        reading=lambda unix_ms: unix_ms / 1000,
        max_answer_chars=1_000,
        **{"now": 0.0, **fields},
    )


def test_each_fact_is_written_once() -> None:
    progress = captured("feed", "feed", "verdict", "feed", policy=Policy(on_incomplete="flag"))
    assert "".join(record.get("text", "") for record in progress) == "".join(SENTENCES)
    written = json.dumps(progress)
    assert "Paris" in written
    assert "source" not in written, "the contexts stand in the head"
    assert [claim["index"] for record in progress for claim in record.get("claims", ())] == [0, 1]
    [verdict] = [verdict for record in progress for verdict in record.get("verdicts", ())]
    assert verdict["evidence"] == [[1, 3, 8]], "a quote is given by its place"
    assert "span" not in verdict, "the claim was written before"
    assert [record["number"] for record in progress] == list(range(len(progress)))
    assert {record["v"] for record in progress} == {STATE_VERSION}


def test_a_time_is_written_once_however_the_clocks_drift() -> None:
    found = bench()
    found.run([Step("feed"), Step("feed"), Step("verdict")])
    assert "first_verdict_ms" in (found.session.capture(lambda reading: round(reading * 1000)) or {})
    assert found.session.capture(lambda reading: round(reading * 1000) + 1) is None


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("mode", ["stream", "observe"])
def test_what_was_left_to_cut_of_an_ended_text_is_cut_after_a_restart(
    monkeypatch: pytest.MonkeyPatch, mode: str, early: bool
) -> None:
    monkeypatch.setattr(Session, "MOST_CUT_CHARS", 25)
    policy = Policy.model_validate({"mode": mode, "on_incomplete": "flag"})
    first = StoredSession(HEAD, policy, ClaimCutter(PlainRater()), now=0.0, max_answer_chars=1_000)
    first.delta(0, "".join(SENTENCES), 0.0)
    if early:
        first.end_early("aborted", 0.0)
    else:
        first.complete(1, 0.0)
    first.cut_on(0.0)
    written = first.capture(lambda reading: round(reading * 1000))
    assert written is not None
    again = restored([written], policy)
    effects = again.resume(1.0)
    assert [type(effect) for effect in effects] == [AskJudge, AskJudge]  # said nothing twice
    asked = [claim for effect in effects for claim in asked_by(effect)]
    assert [claim.text for _, claim in asked] == [sentence.strip() for sentence in SENTENCES]
    assert again.answer_chars == sum(map(len, SENTENCES))
    assert not again.reading
    found = again.judged([judgement(name, Verdict.SUPPORTED) for name, _ in asked], 2.0)
    assert sum(isinstance(e, Emit) and isinstance(e.event, ResponseVerdict) for e in found) == 1


def test_of_a_silent_session_only_that_is_written() -> None:
    progress = captured("feed", "gap", "feed", "feed", "end")
    assert progress[1:] == [{"v": 1, "number": 0, "next_seq": 1, "decided": True}]
    assert restored(progress).next_seq == 1
    session = restored(progress[1:])
    assert session.capture(lambda _: 0) is None
    assert (session.silent, session.closed) == (True, False)
    assert session.resume(0.0) == []
    assert session.head.contexts == ()
    assert session.complete(3, 0.0) == []
    assert session.closed
    assert session.next_seq == 3, "what had been sent is known, so that a repeated piece is told from a new"


def test_the_text_of_a_whole_response_stands_in_the_head() -> None:
    head = Response(response_id="r1", contexts=CONTEXTS, answer="".join(SENTENCES))
    found = Restartable(head, Policy(mode="hold"), [])
    found.run([Step("answer", then="capture"), Step("verdict", then="restart"), Step("verdicts")])
    assert found.session.closed
    assert found.restarts == 1
    assert not any("text" in record for record in found.progress)


@pytest.mark.parametrize("mode", ["stream", "hold", "observe"])
@pytest.mark.parametrize("words", [400, 4_000])
def test_what_is_written_grows_with_the_text(mode: str, words: int) -> None:
    """Token by token, a capture and a verdict after each: so many bytes a character, however long it is."""
    policy = Policy.model_validate({"mode": mode, "rules": [], "block_below": 0.0})
    head = ResponseStarted(response_id="r1", contexts=CONTEXTS)
    session = StoredSession(head, policy, ClaimCutter(PlainRater()), now=0.0, max_answer_chars=10**6)
    bench = Restartable(head, policy, [])
    bench.session = session
    chars = written = 0
    for seq in range(words):
        token = "It costs $5. " if seq % 12 == 11 else f"word{seq} "
        chars += len(token)
        bench.apply(session.delta(seq, token, 0.0))
        written += len(json.dumps(session.capture(bench.unix_ms)))
        bench.happen(Step("verdict"))
        written += len(json.dumps(session.capture(bench.unix_ms)))
    assert written <= 60 * chars


def test_newer_state_is_refused_and_says_what_to_do() -> None:
    progress = captured("feed")
    progress[0]["v"] = STATE_VERSION + 1
    with pytest.raises(StateError, match=r"version 2, and this program reads versions up to 1.*newer"):
        restored(progress)


def without(name: str) -> Any:
    def change(progress: list[Any]) -> None:
        for record in progress:
            record.pop(name, None)

    return change


def first(name: str, **fields: Any) -> Any:
    def change(progress: list[Any]) -> None:
        record = next(record for record in progress if name in record)
        record[name][0].update(fields)

    return change


@pytest.mark.parametrize(
    "change",
    [
        without("v"),
        without("text"),
        without("segments"),
        without("claims"),
        first("claims", span=[0, 10_000]),
        first("claims", span=[9, 3]),
        first("claims", segment=77),
        first("claims", severity="terrible"),
        first("segments", kind="limerick"),
        first("segments", index=5),
        first("verdicts", verdict="MAYBE"),
        first("verdicts", confidence=7.0),
        first("verdicts", claim=40),
        first("verdicts", evidence=[[9, 0, 1]]),
        first("verdicts", evidence=[[0, 5, 1_000]]),
        first("verdicts", unsupported=[[0, 1_000]]),
        first("verdicts", unsupported=[[9, 3]]),
        first("verdicts", unsupported=[["a", 3]]),
        lambda progress: progress.pop(0),
        lambda progress: progress.insert(1, progress[0]),
        lambda progress: progress[-1].update(resolved=0),
        lambda progress: progress[-1].update(cut=[10_000, 3, 3]),
        lambda progress: progress[-1].update(next_seq="many"),
        lambda progress: progress[-1].update(text=None),
        lambda progress: progress[-1].update(delivered=2**31),  # what no event could carry
    ],
)
def test_state_that_makes_no_sense_is_told_from_state_that_does(change: Any) -> None:
    progress = captured("feed", "feed", "verdict", "feed")
    restored(copy.deepcopy(progress))
    change(progress)
    with pytest.raises(UnreadableSession) as raised:
        restored(progress)
    assert "Paris" not in str(raised.value)


def test_unknown_fields_are_ignored_and_missing_ones_have_defaults() -> None:
    progress = captured("feed", "feed", "verdict", "feed")
    for record in progress:
        record["mood"] = "good"
        del record["number"]
        record.pop("usage", None)
        for found in (*record.get("claims", ()), *record.get("segments", ()), *record.get("verdicts", ())):
            found["colour"] = "red"
            for name in ("lead_in", "reasons", "header", "reasoning", "conflicts", "judge", "latency_ms"):
                found.pop(name, None)
    session = restored(progress)
    assert session.next_seq == 3
    assert len(session.pending) == 1


def test_the_deadline_counts_from_the_start_and_the_idle_time_from_the_restart() -> None:
    head = HEAD.model_copy(update={"deadline_ms": 5_000})
    policy = Policy(claim_timeout_ms=60_000, incomplete_timeout_ms=10_000)
    found = Restartable(head, policy, list(SENTENCES), now=1_000.0)
    found.run([Step("feed"), Step("feed")])
    found.now += 4.0
    found.capture()
    found.restart()
    now = found.now - found.clock_origin
    assert found.session.next_deadline == pytest.approx(now + 1.0)
    found.happen(Step("verdicts"))
    assert found.session.next_deadline == now + 10.0


def test_state_of_version_1_is_read() -> None:
    """Written by an earlier program; never to be changed."""
    stored = json.loads(GOLDEN.read_text(encoding="utf-8"))
    for case in stored["cases"]:
        head = ResponseStarted.model_validate(case["head"]["event"])
        policy = Policy.model_validate(case["policy"], extra="ignore")  # as of the sessions topic
        session = restored(case["progress"], policy, head)
        expected = case["expected"]
        asked = [claim.text for effect in session.resume(0.0) for _, claim in asked_by(effect)]
        assert asked == expected["asked"]
        assert session.next_seq == expected["next_seq"]
        assert session.silent == expected["silent"]
        effects = [
            *session.delta(session.next_seq, expected["then"], 0.0),
            *session.end_early("test", 0.0, force_block=True),
        ]
        emitted = [effect.event for effect in effects if isinstance(effect, Emit)]
        assert [event.id for event in emitted] == expected["ids"]


DEADLINE = HEAD.model_copy(update={"deadline_ms": 10_000})


def judging_started(progress: list[Any], excused_s: float, now: float) -> StoredSession:
    """A session with a deadline, begun at 0 and taken up at ``now``."""
    policy = Policy(claim_timeout_ms=60_000)
    session = restored(progress, policy, DEADLINE, now=now, excused_s=excused_s)
    session.resume(now)
    return session


def test_time_in_which_nobody_held_it_is_not_counted_against_its_deadline() -> None:
    progress = captured("feed", "feed")
    assert judging_started(progress, 0.0, now=15.0).next_deadline == 10.0
    session = judging_started(progress, 7.0, now=15.0)
    assert session.next_deadline == 17.0
    assert session.tick(16.9) == []
    assert session.tick(17.0) != []


def test_what_was_excused_before_stays_excused() -> None:
    progress = captured("feed", "feed")
    written = judging_started(progress, 7.0, now=15.0).capture(lambda reading: round(reading * 1000))
    assert written is not None
    assert written["excused_ms"] == 7_000
    assert judging_started([*progress, written], 2.5, now=18.0).next_deadline == 19.5
