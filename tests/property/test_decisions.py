"""What a policy decides again on given verdicts is what a session under it decides.

That early ends are no exception is in test_session_properties, and restarts in test_restored_sessions.
"""

from __future__ import annotations

from hypothesis import event, given, settings
from hypothesis import strategies as st

from guardrail.claims import Claim
from guardrail.decisions import redecide_record
from guardrail.events import Decision, ResponseVerdict, Verdict, parse_output
from guardrail.policy import Policy
from tests.property.test_session_properties import drive, policies_with, texts
from tests.support.sessions import Driver, verdict_by_hash

# Of a champion and a challenger: they cut alike.
PAIRS = st.one_of(*(st.tuples(policies_with(bound), policies_with(bound)) for bound in (40, 600)))


@settings(max_examples=400)
@given(text=texts, policies=PAIRS)
def test_a_challenger_decides_as_a_session_of_its_own_would(
    text: str, policies: tuple[Policy, Policy]
) -> None:
    """Where the champion judges all of the answer, or the challenger needs no more than it judged."""
    champion, challenger = policies
    both = Driver(champion, verdict_of=verdict_by_hash, challenger=challenger)
    alone = Driver(challenger, verdict_of=verdict_by_hash)
    both.whole(text)
    alone.whole(text)
    found, wanted = both.verdict.challenger, alone.verdict
    assert found is not None
    assert found.policy == challenger.ref
    if found.complete:
        assert (found.decision, found.rule, found.score) == (wanted.decision, wanted.rule, wanted.score)
    else:
        assert both.verdict.decision is Decision.BLOCK
    event(f"complete {found.complete}, {both.verdict.decision} {found.decision}")


def some_unverified(claim: Claim) -> Verdict:
    return Verdict.UNVERIFIED if "Oslo" in claim.text else verdict_by_hash(claim)


@settings(max_examples=400)
@given(
    text=texts,
    cuts=st.lists(st.integers(0, 200), max_size=12),
    policies=PAIRS,
    steps=st.lists(st.tuples(st.sampled_from("ffffvvvwtT"), st.integers(0, 50)), min_size=5, max_size=40),
    accident=st.sampled_from(["", "", "", "abort", "gap", "overload"]),
)
def test_a_record_is_enough_to_decide_as_a_session_under_another_policy_would(
    text: str,
    cuts: list[int],
    policies: tuple[Policy, Policy],
    steps: list[tuple[str, int]],
    accident: str,
) -> None:
    """However the response went: complete, aborted, with a gap, late verdicts, without a judge."""
    champion, challenger = policies
    watched, alone = (Driver(policy, verdict_of=some_unverified) for policy in (champion, challenger))
    for driver in (watched, alone):
        drive(driver, text, cuts, steps, accident)
    record = parse_output(watched.verdict.to_json())
    assert isinstance(record, ResponseVerdict)
    found = redecide_record(challenger, record)
    known = found.early or record.judged_to_end
    if known:
        wanted = alone.verdict
        assert found[:3] == (wanted.decision, wanted.rule, wanted.score)
    else:
        assert watched.verdict.decision is Decision.BLOCK
    event(f"known {known}, {watched.verdict.decision} {found.decision}, {accident}")
