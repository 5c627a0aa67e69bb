from __future__ import annotations

import pytest

from guardrail.claims.cutter import MOST_CLAIMS
from guardrail.errors import ProtocolError
from guardrail.events import Decision, DeliveryBlocked, DeliveryCompleted, Finding
from guardrail.judges import Verdict
from guardrail.policy import FailPolicy, OnIncomplete, Policy
from guardrail.session import Session
from tests.support.constants import made
from tests.support.sessions import Driver

FAITHFUL = "Paris is in France. Berlin is in Germany. Rome is in Italy. "
CUTTING = Policy.model_validate({"redaction_text": "[cut]", "rules": ["verdict CONTRADICTED: redact"]})


def test_stream_mode_releases_each_segment_when_its_claims_pass() -> None:
    driver = Driver()
    driver.feed("Paris is in France. Berlin is ")
    assert driver.shown == ""
    driver.answer_claims()
    assert driver.shown == "Paris is in France. "
    driver.feed("in Germany.")
    driver.complete()
    assert driver.shown == "Paris is in France. "
    driver.answer_claims()
    assert driver.shown == "Paris is in France. Berlin is in Germany."
    driver.check_end()
    assert (driver.verdict.score, driver.verdict.decision) == (0.95, Decision.RELEASE)


def test_text_without_claims_is_not_held() -> None:
    driver = Driver()
    driver.feed("Hello! How can I help you? ")
    assert driver.shown.startswith("Hello!")
    assert not driver.pending


def test_nine_supported_claims_and_one_contradicted_price_are_not_released() -> None:
    cities = "".join(f"City number {n} is in France. " for n in ("one", "two", "three", "four", "five"))
    more = "".join(f"Town number {n} is in Spain. " for n in ("one", "two", "three", "four"))
    for mode in ("hold", "stream"):
        driver = Driver(Policy(mode=mode))
        driver.whole(cities + more + "The wrong price is $79.")
        driver.check_end()
        assert isinstance(driver.final, DeliveryBlocked)
        assert driver.final.rule == Policy().rules[0].name
        assert "$79" not in driver.shown


def test_blocking_stops_at_once_and_ignores_the_rest() -> None:
    driver = Driver()
    driver.feed("Paris is in France. It costs wrong $5. Rome is in Italy. ")
    driver.answer_claims()
    assert isinstance(driver.final, DeliveryBlocked)
    assert driver.shown == "Paris is in France. "
    assert (driver.session.decided, driver.session.closed) == (True, False)
    driver.apply(driver.session.delta(1, "More text comes. And more. ", 1.0))
    driver.apply(driver.session.complete(2, 2.0))
    assert (driver.session.decided, driver.session.closed) == (True, True)
    assert not driver.pending
    driver.check_end()


def test_hold_mode_releases_nothing_of_an_answer_whose_score_is_too_low() -> None:
    driver = Driver(Policy(mode="hold", block_below=0.3))
    driver.whole("Paris is unbacked in France. Rome is unbacked in Italy.")
    assert isinstance(driver.final, DeliveryBlocked)
    assert driver.final.rule == "score < block_below 0.3"
    assert driver.shown == ""
    driver.check_end()


def test_observe_mode_lets_everything_through_at_once_and_says_what_it_would_have_done() -> None:
    driver = Driver(Policy(mode="observe"))
    driver.feed("It costs wro")
    assert driver.shown == "It costs wro"
    driver.feed("ng $5. ")
    driver.complete()
    assert isinstance(driver.final, DeliveryCompleted)
    driver.answer_claims()
    driver.check_end()
    assert driver.verdict.decision is Decision.BLOCK


def test_redaction_replaces_the_segment_and_keeps_its_white_space() -> None:
    driver = Driver(CUTTING)
    driver.whole("Paris is in France. Rome is wrong in Italy. Berlin is in Germany.")
    assert driver.shown == "Paris is in France. [cut] Berlin is in Germany."
    driver.check_end()
    assert driver.case.decision is Decision.REDACT


def test_a_redacted_list_item_keeps_its_marker() -> None:
    driver = Driver(CUTTING)
    driver.whole("- Paris is in France.\n- Rome is wrong in Italy.\n- Berlin is in Germany.\n")
    assert driver.shown == "- Paris is in France.\n- [cut]\n- Berlin is in Germany.\n"


def test_a_flagged_segment_is_released_with_its_mark() -> None:
    driver = Driver()
    driver.whole("Paris is in France. Rome is unbacked in Italy. Oslo is in Norway. Bern is a city.")
    assert [event.decision for event in driver.delivered][:2] == [Decision.RELEASE, Decision.FLAG]
    driver.check_end()
    assert driver.case.decision is Decision.FLAG


def test_the_running_score_blocks_only_after_enough_claims() -> None:
    policy = made(Policy, rules=(), block_below=0.5, score_after_claims=3)
    driver = Driver(policy)
    for n, sentence in enumerate(
        ("Paris is unbacked here. ", "Rome is unbacked here. ", "Oslo is unbacked here. ")
    ):
        driver.feed(sentence + "Ok? ")
        driver.answer_claims()
        assert (driver.final is not None) == (n == 2)


@pytest.mark.parametrize("text", ["", "   \n", "Hello!", "I don't know."])
def test_nothing_to_check_is_released_with_that_reason(text: str) -> None:
    driver = Driver()
    driver.whole(text)
    driver.check_end()
    assert driver.shown == text
    assert driver.verdict.score is None
    assert driver.verdict.rule == "nothing to check"


@pytest.mark.parametrize(
    ("fail_policy", "decision"),
    [
        (FailPolicy.FAIL_CLOSED, Decision.BLOCK),
        (FailPolicy.FAIL_OPEN, Decision.RELEASE),
        (FailPolicy.FLAG, Decision.FLAG),
    ],
)
def test_a_claim_without_a_verdict_in_time_follows_the_fail_policy(
    fail_policy: FailPolicy, decision: Decision
) -> None:
    driver = Driver(Policy(on_unverified=fail_policy, claim_timeout_ms=1000))
    driver.feed("Paris is in France. ")
    driver.complete()
    driver.pass_time(0.999)
    assert not driver.claims
    driver.pass_time(0.002)
    driver.check_end()
    assert driver.verdict.decision is decision
    assert driver.verdict.claims[0].verdict is Verdict.UNVERIFIED
    assert driver.verdict.score is None


def test_the_response_deadline_bounds_every_claim() -> None:
    driver = Driver(Policy(on_unverified=FailPolicy.FLAG), deadline_ms=500)
    driver.feed("Paris is in France. And so on")
    driver.pass_time(0.5)
    assert driver.claims[0].verdict is Verdict.UNVERIFIED


@pytest.mark.parametrize("end", ["abort", "silence", "gap"])
@pytest.mark.parametrize("on_incomplete", list(OnIncomplete))
def test_a_response_that_ends_early_follows_on_incomplete(end: str, on_incomplete: OnIncomplete) -> None:
    driver = Driver(Policy(on_incomplete=on_incomplete, incomplete_timeout_ms=5000))
    driver.feed("Paris is in France. Rome is in It")
    driver.answer_claims()
    if end == "abort":
        driver.apply(driver.session.abort(driver.now))
    elif end == "silence":
        driver.pass_time(5.0)
    else:
        with pytest.raises(ProtocolError, match="delta 1 was expected, 7 came"):
            driver.session.delta(7, "aly. ", driver.now)
        driver.apply(driver.session.end_early("sequence_gap", driver.now))
    driver.answer_claims()
    driver.check_end()
    expected = {"block": Decision.BLOCK, "flag": Decision.FLAG, "release": Decision.RELEASE}[on_incomplete]
    assert driver.verdict.decision is expected
    assert not driver.verdict.complete


def test_a_lost_last_delta_is_noticed() -> None:
    driver = Driver()
    driver.feed("Paris is in France. ")
    with pytest.raises(ProtocolError, match="says 2 deltas were sent, 1 have been read"):
        driver.session.complete(2, 0.0)


def test_a_delta_after_the_completion_is_refused() -> None:
    driver = Driver()
    driver.feed("Paris is in France. ")
    driver.complete()
    with pytest.raises(ProtocolError) as caught:
        driver.session.delta(1, "More.", 0.0)
    assert caught.value.reason == "response_finished"
    driver.answer_claims()
    driver.check_end()


def test_an_answer_longer_than_the_limit_is_refused() -> None:
    driver = Driver(max_answer_chars=10)
    with pytest.raises(ProtocolError) as caught:
        driver.session.delta(0, "x" * 11, 0.0)
    assert caught.value.reason == "answer_too_long"


def test_a_response_for_which_no_judge_is_to_be_asked_is_never_released_in_silence() -> None:
    driver = Driver(Policy(on_unverified=FailPolicy.FLAG))
    driver.apply(driver.session.stop_judging("overloaded", 0.0))
    driver.whole("Paris is in France. ")
    driver.check_end()
    assert not driver.asked
    assert driver.verdict.decision is Decision.FLAG
    assert driver.verdict.claims[0].reasoning == "overloaded"


def test_ids_are_the_same_on_every_run() -> None:
    def ids(step: int) -> list[str]:
        driver = Driver()
        for start in range(0, len(FAITHFUL), step):
            driver.feed(FAITHFUL[start : start + step])
        driver.complete()
        driver.answer_claims()
        assert driver.final is not None
        return [
            *(c.id for c in driver.claims),
            *(d.id for d in driver.delivered),
            driver.verdict.id,
            driver.final.id,
        ]

    assert ids(3) == ids(1000)
    assert len(set(ids(3))) == len(ids(3))


def test_ids_change_with_the_policy_version() -> None:
    first, second = Driver(Policy(version="1")), Driver(Policy(version="2"))
    for driver in (first, second):
        driver.whole(FAITHFUL)
    assert first.verdict.id != second.verdict.id


def test_segments_of_a_kind_can_be_treated_by_policy() -> None:
    driver = Driver(Policy.model_validate({"segment_kinds": {"code": "redact"}, "redaction_text": "[cut]"}))
    driver.whole("Paris is in France.\n\n```\nrm -rf /\n```\n")
    assert "rm -rf" not in driver.shown
    driver.check_end()


@pytest.mark.parametrize("mode", ["hold", "stream", "observe"])
def test_a_long_text_is_cut_piece_by_piece_and_ends_as_a_short_one(mode: str) -> None:
    text = FAITHFUL * (3 * Session.MOST_CUT_CHARS // len(FAITHFUL))
    driver = Driver(Policy.model_validate({"mode": mode}))
    driver.feed(text)
    assert (driver.cutting, driver.pending) == (True, {})
    assert (driver.session.pending, bool(driver.session.uncut)) == ({}, True)
    driver.cut_on()
    first = len(driver.pending)
    assert 0 < first < text.count(".") / 2
    driver.answer_claims(list(driver.pending))
    driver.complete()
    assert not driver.session.decided
    driver.answer_claims()
    driver.check_end()
    assert len(driver.asked) == text.count(".")
    assert driver.shown == text


def test_a_block_ends_the_cutting() -> None:
    driver = Driver()
    driver.feed("The wrong price is $79. " + FAITHFUL * (Session.MOST_CUT_CHARS // 10))
    driver.complete()
    driver.cut_on()
    driver.answer_claims([next(iter(driver.pending))])
    driver.check_end()
    driver.cut_on()
    assert (driver.cutting, driver.session.pending, list(driver.session.uncut)) == (False, {}, [])


def test_a_claim_behind_others_has_its_time_from_the_latest_verdict_on_them() -> None:
    driver = Driver(Policy(claim_timeout_ms=1000, on_unverified=FailPolicy.FLAG))
    driver.feed(FAITHFUL)
    driver.complete()
    first, second, third = driver.pending
    driver.session.judging_started([first])
    driver.pass_time(0.9)
    driver.answer_claims([first])
    driver.session.judging_started([second])
    driver.pass_time(0.9)
    assert len(driver.claims) == 1  # 1.8 s after all of them were cut
    driver.answer_claims([second])
    driver.pass_time(0.9)
    assert len(driver.claims) == 2
    driver.pass_time(0.2)  # the third, which is still behind them
    assert driver.claims[-1].verdict is Verdict.UNVERIFIED
    assert driver.claims[-1].claim_id == third
    driver.check_end()


def test_a_judge_that_says_nothing_has_its_time_once() -> None:
    driver = Driver(Policy(claim_timeout_ms=1000, on_unverified=FailPolicy.FLAG))
    driver.feed(FAITHFUL)
    driver.complete()
    driver.session.judging_started(list(driver.pending)[:1])
    driver.pass_time(1.0)
    assert [claim.verdict for claim in driver.claims] == [Verdict.UNVERIFIED] * 3


def test_no_claim_waits_longer_than_its_response_may() -> None:
    driver = Driver(Policy(claim_timeout_ms=1000, on_unverified=FailPolicy.FLAG), deadline_ms=1500)
    driver.feed(FAITHFUL)
    driver.complete()
    first, second, _ = driver.pending
    driver.session.judging_started([first])
    driver.pass_time(0.9)
    driver.answer_claims([first])
    driver.session.judging_started([second])
    driver.pass_time(0.7)
    assert [claim.verdict for claim in driver.claims][1:] == [Verdict.UNVERIFIED] * 2


@pytest.mark.parametrize("mode", ["hold", "stream", "observe"])
def test_of_one_answer_so_many_claims_are_judged_and_the_rest_is_never_clean(mode: str) -> None:
    """Neither released as if it were judged, nor blocked as if the judge had failed: a rule decides."""
    text = "".join(f"- Item {n} is right.\n" for n in range(MOST_CLAIMS + 300))
    driver = Driver(Policy(mode=mode))
    driver.whole(text)
    driver.check_end()
    assert len(driver.asked) == MOST_CLAIMS
    rest = driver.verdict.claims[MOST_CLAIMS:]
    assert {(claim.verdict, claim.findings) for claim in rest} == {
        (Verdict.UNVERIFIED, (Finding.TOO_MANY_CLAIMS,))
    }
    assert (driver.verdict.decision, driver.verdict.rule) == (Decision.FLAG, "left open")
    assert driver.shown == text


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_is_cut_no_faster_than_it_is_judged(streamed: bool) -> None:
    """So that one answer takes a small part of what may wait for the judge."""
    text = "".join(f"- Item {n} is right.\n" for n in range(900))
    driver = Driver()
    for at in range(0, len(text), 40) if streamed else (0,):
        driver.feed(text[at : at + 40] if streamed else text)
    driver.complete()
    most = 0
    while not driver.final:
        while driver.cutting:
            driver.cut_on()
        most = max(most, len(driver.pending))
        driver.answer_claims(list(driver.pending)[:16])
    assert Session.MOST_AHEAD <= most < Session.MOST_AHEAD + 2 * Session.MOST_CUT_CLAIMS
    assert driver.shown == text
    assert len(driver.asked) == 900
