"""Records of verdicts suffice to decide again as a session would, and columns decide as one record does."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import event, given, reject, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from guardrail.claims import Claim
from guardrail.decisions import redecide_record
from guardrail.events import (
    CitationBacking,
    ClaimVerdict,
    Decision,
    Finding,
    Interruption,
    ResponseVerdict,
    SegmentKind,
    Severity,
    Verdict,
    parse_output,
)
from guardrail.offline.records import Decisions, Records, decide_all
from guardrail.policy import FailPolicy, OnIncomplete, Policy, Rule
from guardrail.scoring import Formula
from tests.property.test_session_properties import drive, policies, texts
from tests.support.records import claim, recorded
from tests.support.sessions import Driver, verdict_by_hash


def some_unverified(claim: Claim) -> Verdict:
    return Verdict.UNVERIFIED if "Oslo" in claim.text else verdict_by_hash(claim)


@settings(max_examples=400)
@given(
    text=texts,
    cuts=st.lists(st.integers(0, 200), max_size=12),
    champion=policies,
    challenger=policies,
    steps=st.lists(st.tuples(st.sampled_from("ffffvvvwtT"), st.integers(0, 50)), min_size=5, max_size=40),
    accident=st.sampled_from(["", "", "", "abort", "gap", "overload"]),
)
def test_a_record_is_enough_to_decide_as_a_session_under_another_policy_would(
    text: str,
    cuts: list[int],
    champion: Policy,
    challenger: Policy,
    steps: list[tuple[str, int]],
    accident: str,
) -> None:
    """However the response went: complete, aborted, with a gap, late verdicts, without a judge."""
    challenger = challenger.model_copy(update={"max_segment_chars": champion.max_segment_chars})
    watched, alone = (Driver(policy, verdict_of=some_unverified) for policy in (champion, challenger))
    for driver in (watched, alone):
        drive(driver, text, cuts, steps, accident)
    assert watched.verdict is not None
    assert alone.verdict is not None
    record = parse_output(watched.verdict.to_json())
    assert isinstance(record, ResponseVerdict)
    found = decide_all(challenger, Records.of([record]))
    if found.complete[0]:
        wanted = alone.verdict
        assert found.at(0)[:3] == (wanted.decision, wanted.rule, wanted.score)
    else:
        assert watched.verdict.decision is Decision.BLOCK
    event(f"complete {found.complete[0]}, {watched.verdict.decision} {found.at(0).decision}, {accident}")


probabilities = st.one_of(st.sampled_from([0.0, 0.15, 0.3, 0.5, 0.7, 1.0]), st.floats(0, 1))
maybe = st.one_of(st.none(), probabilities)
claims: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    segment=st.integers(0, 5),
    severity=st.sampled_from(Severity),
    severity_reasons=st.sampled_from([(), ("price",), ("dosage", "price"), ("date",)]),
    verdict=st.sampled_from(Verdict),
    confidence=probabilities,
    support=maybe,
    contradiction=maybe,
    findings=st.lists(st.sampled_from(Finding), max_size=2, unique=True).map(tuple),
    citation_backing=st.one_of(st.none(), st.sampled_from(CitationBacking)),
)
interruptions = st.one_of(
    st.none(),
    st.none(),
    st.builds(
        Interruption,
        rule=st.sampled_from(["aborted", "timed out", "overloaded"]),
        after=st.integers(0, 8),
        forced=st.booleans(),
    ),
)
records = st.lists(
    st.tuples(
        st.lists(claims, max_size=8),
        st.one_of(st.none(), st.lists(st.sampled_from(SegmentKind), max_size=8)),
        interruptions,
        interruptions,
        st.sampled_from([None, True, False]),
    ),
    max_size=5,
).map(
    lambda drawn: [
        recorded(
            f"r{number}", found, kinds, ended_early=ended, judging_stopped=stopped, judged_to_end=to_the_end
        )
        for number, (found, kinds, ended, stopped, to_the_end) in enumerate(drawn)
    ]
)
rules = st.builds(
    Rule,
    verdict=st.lists(st.sampled_from(Verdict), max_size=2, unique=True).map(tuple),
    finding=st.lists(st.sampled_from(Finding), max_size=2, unique=True).map(tuple),
    citation=st.lists(st.sampled_from(CitationBacking), max_size=1).map(tuple),
    min_severity=st.sampled_from([Severity.MINOR, Severity.NORMAL, Severity.MAJOR]),
    max_severity=st.sampled_from([Severity.MAJOR, Severity.CRITICAL]),
    support_below=st.sampled_from([None, None, 0.3, 0.7]),
    min_contradiction=st.sampled_from([None, None, 0.5]),
    min_confidence=st.sampled_from([None, None, 0.15]),
    reason=st.sampled_from([(), (), ("price",), ("date", "dosage")]),
    action=st.sampled_from(Decision),
)


def accepted(**fields: Any) -> Policy:
    """The policy, if it isn't refused for a rule that would decide nothing."""
    try:
        return Policy(**fields)
    except ValidationError:
        reject()


any_policies = st.builds(
    accepted,
    mode=st.sampled_from(["hold", "stream", "observe"]),
    rules=st.one_of(st.just(Policy().rules), st.lists(rules, max_size=4).map(tuple)),
    on_unverified=st.sampled_from(FailPolicy),
    on_incomplete=st.sampled_from(OnIncomplete),
    score_after_claims=st.integers(1, 4),
    score=st.sampled_from(Formula),
    flag_below=st.sampled_from([0.75, 0.9, 1.0]),
    block_below=st.one_of(st.sampled_from([0.0, 0.5, 2 / 3]), st.floats(0, 0.7)),
    weights=st.sampled_from([{}, {"minor": 0}, {"minor": 0.1, "normal": 0.3}]),
    segment_kinds=st.dictionaries(st.sampled_from(SegmentKind), st.sampled_from(Decision), max_size=3),
)


@settings(max_examples=400)
@given(found=records, policy=any_policies)
def test_columns_decide_as_one_record_does(found: list[ResponseVerdict], policy: Policy) -> None:
    decided = decide_all(policy, Records.of(found))
    for place, verdict in enumerate(found):
        assert decided.at(place) == redecide_record(policy, verdict)
        event(f"{decided.at(place).decision} {decided.at(place).rule.partition(':')[0][:20]}")


@settings(max_examples=200)
@given(found=records, policy=any_policies, data=st.data())
def test_records_can_be_joined_and_taken_apart(
    found: list[ResponseVerdict], policy: Policy, data: st.DataObject
) -> None:
    """Decisions are those of the same records, wherever these stand, and however often."""
    cut = data.draw(st.integers(0, len(found)))
    joined = Records.joined([Records.of(found[:cut]), Records.of(found[cut:])])
    places = data.draw(st.lists(st.integers(0, len(found) - 1), max_size=8)) if found else []
    whole = decide_all(policy, Records.of(found))
    assert told(decide_all(policy, joined)) == told(whole)
    taken = joined.take(np.array(places, dtype=int))
    assert taken.ids == [found[place].response_id for place in places]
    assert taken.claim_ids == [claim.claim_id for place in places for claim in ordered(found[place])]
    assert told(decide_all(policy, taken)) == [told(whole)[place] for place in places]


def ordered(verdict: ResponseVerdict) -> list[ClaimVerdict]:
    return sorted(verdict.claims, key=lambda claim: claim.segment)


def told(decisions: Decisions) -> list[object]:
    return [decisions.at(place) for place in range(len(decisions))]


def test_the_running_score_is_rounded_before_it_is_compared() -> None:
    """Of two thirds, 0.666667 is left: that is not below 0.666667."""
    found = [claim(), claim(segment=1), claim(Verdict.UNSUPPORTED, segment=2), claim(segment=3)]
    record = recorded("r", found, [SegmentKind.SENTENCE] * 4)
    policy = Policy(
        rules=(), score=Formula.CREDITS, score_after_claims=3, block_below=0.666667, flag_below=0.666667
    )
    decided = decide_all(policy, Records.of([record]))
    assert decided.at(0) == redecide_record(policy, record)
    assert decided.at(0).decision is Decision.RELEASE
