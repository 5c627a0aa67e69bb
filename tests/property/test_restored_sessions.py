"""Wherever a process ends, the next goes on as if nothing had been (see guardrail.session.stored)."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import event, given, settings
from hypothesis import strategies as st

from guardrail.events import Context, Response, ResponseStarted
from guardrail.policy import FailPolicy, OnIncomplete, Policy
from guardrail.scoring import Formula
from guardrail.session import Channel
from tests.property.test_session_properties import REDACTING, SENTENCES
from tests.support.constants import made
from tests.support.restarts import Restartable, Step

CITING = ("Lima is in Peru [c2]. ", "It is wrong. [1] ")
texts = st.one_of(
    st.lists(st.sampled_from((*SENTENCES, *CITING)), max_size=8).map("".join), st.text(max_size=60)
)
policies = st.builds(
    made,
    st.just(Policy),
    mode=st.sampled_from(["hold", "stream", "observe"]),
    on_unverified=st.sampled_from(FailPolicy),
    on_incomplete=st.sampled_from(OnIncomplete),
    score_after_claims=st.integers(1, 4),
    rules=st.sampled_from([Policy().rules, REDACTING]),
    score=st.sampled_from(Formula),
    flag_below=st.just(0.8),
    block_below=st.sampled_from([0.0, 0.4, 0.7]),
    segment_kinds=st.sampled_from([{}, {"heading": "flag"}, {"code": "redact"}]),
    # Time-outs begin anew with a restart, so only what is far beyond them is a fair comparison.
    claim_timeout_ms=st.just(10_000_000),
    incomplete_timeout_ms=st.just(20_000_000),
    max_segment_chars=st.sampled_from([40, 600]),
)
steps = st.lists(
    st.builds(
        Step,
        st.sampled_from(
            ["feed"] * 6
            + ["verdict"] * 4
            + ["explain"] * 2
            + ["verdicts", "later", "repeat", "complete", "late", "abort", "gap", "overload", "end"]
        ),
        st.integers(0, 50),
        st.sampled_from(["", "", "", "capture", "restart"]),
    ),
    min_size=3,
    max_size=30,
)
contexts = (Context(id="c1", text="A source."), Context(id="c2", text="An other one."))


def chunked(text: str, cuts: list[int]) -> list[str]:
    edges = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[a:b] for a, b in pairwise(edges)]


def is_delivery(effect: object) -> bool:
    return isinstance(effect, tuple) and effect[0] is Channel.DELIVERIES


@settings(max_examples=1500)
@given(
    text=texts,
    cuts=st.lists(st.integers(0, 200), max_size=12),
    policy=policies,
    script=steps,
    whole=st.sampled_from([False, False, False, True]),
    deadline_ms=st.sampled_from([None, 20_000]),
    challenger=st.one_of(st.none(), policies),
    explaining=st.booleans(),
)
def test_a_restart_anywhere_changes_nothing(
    text: str,
    cuts: list[int],
    policy: Policy,
    script: list[Step],
    whole: bool,
    deadline_ms: int | None,
    challenger: Policy | None,
    explaining: bool,
) -> None:
    fields = {"response_id": "r1", "question": "What?", "contexts": contexts, "deadline_ms": deadline_ms}
    head = (
        Response.model_validate({**fields, "answer": text})
        if whole
        else ResponseStarted.model_validate(fields)
    )
    script = [*([Step("answer", then="restart")] if whole else []), *script]
    script += [Step("feed")] * 4 + [Step("verdicts"), Step("complete"), Step("verdicts")]
    script += [Step("explain")] * 12

    reference = Restartable(head, policy, chunked(text, cuts), challenger, explaining)
    reference.run([Step(step.what, step.number) for step in script])
    restarted = Restartable(head, policy, chunked(text, cuts), challenger, explaining)
    restarted.run(script)

    assert [each for each in restarted.effects if is_delivery(each)] == [
        each for each in reference.effects if is_delivery(each)
    ]
    # Who takes a response over doesn't wait for reasons.
    assert [each for each in restarted.effects if not is_delivery(each)] == [
        each for each in reference.effects if not is_delivery(each)
    ]
    assert explaining or restarted.effects == reference.effects
    assert restarted.session.closed == reference.session.closed
    if not reference.session.silent:  # of one that is, nothing more is written down
        assert restarted.session.next_seq == reference.session.next_seq
    event(f"{policy.mode}, {min(restarted.restarts, 3)} restarts")
    event(f"rule {restarted.session._decider.worst_rule.partition(':')[0] or 'none'}")
