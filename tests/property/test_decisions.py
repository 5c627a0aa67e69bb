"""What a policy decides again on given verdicts is what a session under it decides.

That early ends are no exception is in test_session_properties, and restarts in test_restored_sessions.
"""

from __future__ import annotations

from hypothesis import event, given, settings

from guardrail.decisions import redecide_record
from guardrail.events import Decision
from guardrail.policy import Policy
from tests.property.test_session_properties import policies, texts
from tests.support.sessions import Driver, verdict_by_hash


@settings(max_examples=400)
@given(text=texts, champion=policies, challenger=policies)
def test_a_challenger_decides_as_a_session_of_its_own_would(
    text: str, champion: Policy, challenger: Policy
) -> None:
    """Where the champion judges all of the answer, or the challenger needs no more than it judged."""
    challenger = challenger.model_copy(update={"max_segment_chars": champion.max_segment_chars})
    both = Driver(champion, verdict_of=verdict_by_hash, challenger=challenger)
    alone = Driver(challenger, verdict_of=verdict_by_hash)
    both.whole(text)
    alone.whole(text)
    assert both.verdict is not None
    assert alone.verdict is not None
    found, wanted = both.verdict.challenger, alone.verdict
    assert found is not None
    assert found.policy == challenger.ref
    if found.complete:
        assert (found.decision, found.rule, found.score) == (wanted.decision, wanted.rule, wanted.score)
    else:
        assert both.verdict.decision is Decision.BLOCK
    event(f"complete {found.complete}, {both.verdict.decision} {found.decision}")


@settings(max_examples=200)
@given(text=texts, policy=policies)
def test_a_published_verdict_is_enough_to_decide_again(text: str, policy: Policy) -> None:
    driver = Driver(policy, verdict_of=verdict_by_hash)
    driver.whole(text)
    assert driver.verdict is not None
    found = redecide_record(policy, driver.verdict)
    assert found[:3] == (driver.verdict.decision, driver.verdict.rule, driver.verdict.score)
