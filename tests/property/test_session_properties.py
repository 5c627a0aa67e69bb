"""Whatever happens in whatever order: what a session promises holds (see guardrail.session.machine)."""

from __future__ import annotations

from itertools import pairwise
from unittest import mock

from hypothesis import event, given, settings
from hypothesis import strategies as st

from guardrail.errors import ProtocolError
from guardrail.events import ResponseVerdict
from guardrail.policy import FailPolicy, OnIncomplete, Policy, Rule
from guardrail.scoring import Formula
from guardrail.session import Session
from tests.support.constants import made
from tests.support.sessions import Driver, verdict_by_hash, verdict_by_word

SENTENCES = (
    "Paris is in France. ",
    "It costs $50. ",
    "It costs wrong $79. ",
    "Rome is wrong in Italy. ",
    "Oslo is unbacked in Norway. ",
    "Bern is partly in Austria. ",
    "Hello! ",
    "Is that so? ",
    "- Take 5 mg.\n",
    "| a | b |\n",
    "\n\n",
    "# Heading\n",
    "```\ncode\n```\n",
    "它在北京。",
    "I don't know. ",
)

texts = st.one_of(st.lists(st.sampled_from(SENTENCES), max_size=8).map("".join), st.text(max_size=80))
# By default findings alone have text redacted, and most judges here find nothing.
REDACTING = tuple(
    Rule.model_validate(rule)
    for rule in ("verdict CONTRADICTED and severity >= critical: block", "verdict CONTRADICTED: redact")
)


def policies_with(max_segment_chars: int) -> st.SearchStrategy[Policy]:
    return st.builds(
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
        segment_kinds=st.sampled_from([{}, {"heading": "flag"}, {"code": "redact"}, {"blank": "block"}]),
        claim_timeout_ms=st.just(1000),
        incomplete_timeout_ms=st.just(5000),
        max_segment_chars=st.just(max_segment_chars),
    )


policies = policies_with(40) | policies_with(600)


def chunks(text: str, cuts: list[int]) -> list[str]:
    edges = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[a:b] for a, b in pairwise(edges)]


@settings(max_examples=600)
@given(
    text=texts,
    cuts=st.lists(st.integers(0, 200), max_size=12),
    policy=policies,
    steps=st.lists(st.tuples(st.sampled_from("ffffvvvwtTrce"), st.integers(0, 50)), min_size=5, max_size=40),
    accident=st.sampled_from(["", "", "", "abort", "gap", "overload"]),
    most_cut=st.sampled_from([7, 4_000]),
    explaining=st.booleans(),
)
def test_invariants_hold_for_every_interleaving(
    text: str,
    cuts: list[int],
    policy: Policy,
    steps: list[tuple[str, int]],
    accident: str,
    most_cut: int,
    explaining: bool,
) -> None:
    driver = Driver(policy, verdict_of=verdict_by_hash, challenger=policy, explaining=explaining)
    with mock.patch.object(Session, "MOST_CUT_CHARS", most_cut):
        drive(driver, text, cuts, steps, accident)
    assert driver.final is not None, "no delivery waits for reasons"
    driver.pass_time(10.0)
    driver.check_end()
    assert driver.session.closed
    assert driver.session.next_deadline == float("inf")
    check_challenged_by_itself(driver.verdict)
    event(f"{policy.mode} {driver.verdict.decision} {driver.verdict.rule.partition(':')[0]}")


def drive(driver: Driver, text: str, cuts: list[int], steps: list[tuple[str, int]], accident: str) -> None:
    """Take a session to its end by these steps."""
    waiting = chunks(text, cuts)
    for done, (step, number) in enumerate(steps):
        if step == "f" and waiting and not driver.session.input_ended:
            driver.feed(waiting.pop(0))
        elif step == "v" and driver.pending:
            driver.answer_claims([list(driver.pending)[number % len(driver.pending)]])
        elif step == "w":
            driver.answer_claims()
        elif step == "c" and driver.cutting:
            driver.cut_on()
        elif step == "e" and driver.unexplained:
            driver.explain(driver.unexplained[number % len(driver.unexplained)], "Because.")
        elif step in "tT":
            driver.pass_time(0.4 if step == "t" else 1.5)
        elif step == "r" and driver.seq:
            assert driver.session.delta(number % driver.seq, "repeated", driver.now) == []
        if done == 4 and not driver.session.input_ended:
            happen(accident, driver)
    for chunk in waiting:
        if not driver.session.input_ended:
            driver.feed(chunk)
    driver.complete()
    driver.answer_claims()


def check_challenged_by_itself(verdict: ResponseVerdict) -> None:
    """A policy that decides again on its own verdicts decides as it did."""
    challenger = verdict.challenger
    assert challenger is not None
    assert (challenger.policy, challenger.decision) == (verdict.policy, verdict.decision)
    assert (challenger.rule, challenger.score) == (verdict.rule, verdict.score)
    assert challenger.complete


def happen(accident: str, driver: Driver) -> None:
    if accident == "abort":
        driver.apply(driver.session.abort(driver.now))
    elif accident == "overload":
        driver.apply(driver.session.stop_judging("overloaded", driver.now))
    elif accident == "gap":
        try:
            driver.apply(driver.session.delta(driver.seq + 1, "later text. ", driver.now))
            driver.seq += 2
        except ProtocolError as error:
            driver.apply(driver.session.end_early(error.reason, driver.now))


@settings(max_examples=300)
@given(
    text=texts,
    cuts=st.lists(st.integers(0, 200), max_size=12),
    policy=policies,
    order=st.lists(st.tuples(st.booleans(), st.integers(0, 50)), max_size=40),
    most_cut=st.sampled_from([7, 4_000]),
)
def test_the_outcome_depends_on_text_and_verdicts_only(
    text: str, cuts: list[int], policy: Policy, order: list[tuple[bool, int]], most_cut: int
) -> None:
    """Any cuts, however much is cut at a time, and any order of verdicts give the same delivered text and
    the same final verdict."""
    reference = Driver(policy, verdict_of=verdict_by_word)
    reference.whole(text)

    driver = Driver(policy, verdict_of=verdict_by_word)
    waiting = chunks(text, cuts)
    with mock.patch.object(Session, "MOST_CUT_CHARS", most_cut):
        for read, number in order:
            if read and waiting:
                driver.feed(waiting.pop(0))
            elif driver.pending:
                driver.answer_claims([list(driver.pending)[number % len(driver.pending)]])
            elif driver.cutting:
                driver.cut_on()
        for chunk in waiting:
            driver.feed(chunk)
        driver.complete()
        driver.answer_claims()

    assert driver.shown == reference.shown
    assert type(driver.final) is type(reference.final)
    assert outcome(driver.verdict) == outcome(reference.verdict)


def outcome(verdict: ResponseVerdict) -> dict[str, object]:
    """All but the times."""
    found = verdict.model_dump(exclude={"timings"})
    for claim in found["claims"]:
        del claim["latency_ms"]
    return found
