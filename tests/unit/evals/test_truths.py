"""Labels joined to claims: which are about which, whose word counts, what follows from the whole answer."""

from __future__ import annotations

from typing import Any

import pytest

from guardrail.evals.truths import AnswerTruth, LabelsByResponse, answer_truth
from guardrail.event_ids import EventIds
from guardrail.events import Label, LabelSource, PolicyRef, Severity, Verdict
from tests.unit.evals.verdicts import WIDTH, of

S, P, U, C, X = Verdict
ANSWER = of(S, S, S)


def label(verdict: Verdict = U, **changes: Any) -> Label:
    return Label(**{"response_id": "r1", "verdict": verdict} | changes)


def marked(start: int, end: int, verdict: Verdict = U, **changes: Any) -> Label:
    return label(verdict, span=(start, end), **changes)


def dataset(verdict: Verdict, **changes: Any) -> Label:
    return label(verdict, source=LabelSource.DATASET, **changes)


def rights(truth: AnswerTruth) -> dict[int, bool]:
    return {each.claim.index: each.right for each in truth.claims}


def test_a_label_is_about_the_claim_whose_id_it_has() -> None:
    truth = answer_truth(ANSWER.claims, [label(U, claim_id="c1"), label(S, claim_id="c2")])
    assert (rights(truth), truth.right, truth.outside) == ({1: False, 2: True}, False, 0)


@pytest.mark.parametrize(
    ("span", "verdict", "about"),
    [
        ((22, 25), U, {1: False}),  # a word of claim 1
        ((0, WIDTH * 3), U, {0: False, 1: False, 2: False}),  # all of the answer
        ((17, 38), U, {1: False}),  # claim 1, and the end of claim 0
        ((9, 31), U, {0: False, 1: False}),  # about half of both
        ((22, 25), S, {}),  # that a word is supported says nothing of the claim
        ((20, 32), S, {1: True}),
        ((19, 20), U, {}),  # the blank between two claims
    ],
)
def test_which_claims_a_span_is_about(span: tuple[int, int], verdict: Verdict, about: Any) -> None:
    truth = answer_truth(ANSWER.claims, [marked(*span, verdict)])
    assert rights(truth) == about


def test_an_error_outside_of_all_claims_makes_the_answer_wrong_and_is_counted() -> None:
    truth = answer_truth(ANSWER.claims, [marked(100, 110)])
    assert (truth.claims, truth.right, truth.outside) == ((), False, 1)


def test_a_label_of_a_claim_that_the_answer_does_not_have_is_counted_and_left_out() -> None:
    truth = answer_truth(ANSWER.claims, [label(U, claim_id="of another policy")])
    assert (truth.claims, truth.right, truth.outside, truth.unknown) == ((), None, 0, 1)
    right = [label(S, claim_id=claim.claim_id) for claim in ANSWER.claims]
    assert answer_truth(ANSWER.claims, right).right is True
    assert answer_truth(ANSWER.claims, [*right, label(U, claim_id="lost")]).right is None


def test_a_label_of_another_policy_is_joined_by_the_id_that_the_claim_has_there_or_by_its_span() -> None:
    claim = ANSWER.claims[1]
    name = EventIds("r1", "strict", "7").claim(claim.index, claim.span, claim.text)
    policy = PolicyRef(name="strict", version="7")
    assert rights(answer_truth(ANSWER.claims, [label(U, claim_id=name, policy=policy)])) == {1: False}
    assert rights(answer_truth(ANSWER.claims, [label(S, claim_id="else", span=claim.span)])) == {1: True}
    assert answer_truth(ANSWER.claims, [label(U, claim_id=name)]).unknown == 1


def test_an_answer_that_is_right_has_right_claims_only() -> None:
    truth = answer_truth(ANSWER.claims, [label(S)])
    assert (rights(truth), truth.right) == ({0: True, 1: True, 2: True}, True)


def test_an_answer_that_a_reviewer_calls_wrong_says_nothing_of_its_claims() -> None:
    assert rights(answer_truth(ANSWER.claims, [label(U)])) == {}
    assert rights(answer_truth(ANSWER.claims, [label(U), label(U, claim_id="c0")])) == {0: False}


def test_a_labelled_set_marks_all_errors_of_an_answer() -> None:
    truth = answer_truth(ANSWER.claims, [dataset(U), dataset(U, span=(0, 10))])
    assert rights(truth) == {0: False, 1: True, 2: True}
    assert rights(answer_truth(ANSWER.claims, [dataset(U)])) == {}


def test_the_answer_is_right_if_all_its_claims_are_known_to_be() -> None:
    two = [label(S, claim_id="c0"), label(S, claim_id="c1")]
    assert answer_truth(ANSWER.claims, two).right is None
    assert answer_truth(ANSWER.claims, [*two, label(S, claim_id="c2")]).right is True
    assert answer_truth(of().claims, []).right is None


def test_most_reviewers_decide_and_a_tie_is_disputed() -> None:
    def by(reviewer: str, verdict: Verdict) -> Label:
        return label(verdict, claim_id="c0", reviewer=reviewer)

    assert rights(answer_truth(ANSWER.claims, [by("a", U), by("b", S), by("c", S)])) == {0: True}
    truth = answer_truth(ANSWER.claims, [by("a", U), by("b", S)])
    assert (rights(truth), truth.disputed, truth.right) == ({}, 1, None)


def test_one_reviewer_has_one_vote_for_the_worst_and_a_later_label_replaces_an_earlier() -> None:
    several = [marked(0, 3), marked(5, 8), label(S, claim_id="c0"), label(S, claim_id="c0", reviewer="b")]
    assert answer_truth(ANSWER.claims, several).disputed == 1
    changed = [label(U, claim_id="c0", id="l1"), label(S, claim_id="c0", id="l1")]
    assert rights(answer_truth(ANSWER.claims, changed)) == {0: True}


def test_who_could_not_say_has_no_vote() -> None:
    truth = answer_truth(ANSWER.claims, [label(X, claim_id="c0"), label(X)])
    assert (truth.claims, truth.right, truth.disputed) == ((), None, 0)


@pytest.mark.parametrize(("mildest", "right"), [(P, False), (U, True), (C, True)])
def test_what_is_the_mildest_error_is_up_to_the_caller(mildest: Verdict, right: bool) -> None:
    assert rights(answer_truth(ANSWER.claims, [label(P, claim_id="c0")], mildest)) == {0: right}


def test_severity_and_category_are_the_labels_where_they_give_them() -> None:
    labels = [
        marked(0, 5, category="wrong price", severity=Severity.CRITICAL),
        marked(6, 9, category="wrong name"),
        label(S, claim_id="c1", category="fine"),
    ]
    first, second = answer_truth(ANSWER.claims, labels).claims
    assert (first.severity, first.categories) == (Severity.CRITICAL, ("wrong price", "wrong name"))
    assert (second.severity, second.categories) == (Severity.NORMAL, ())
    assert answer_truth(ANSWER.claims, labels).worst is Severity.CRITICAL


def test_the_worst_error_is_a_claims_or_else_what_a_label_on_the_answer_says() -> None:
    def worst(*labels: Label, mildest: Verdict = P) -> Severity | None:
        return answer_truth(ANSWER.claims, labels, mildest).worst

    minor = label(U, claim_id="c0", severity=Severity.MINOR)
    assert worst(label(S)) is None
    assert worst(label(U)) is None
    assert worst(minor) is Severity.MINOR
    assert worst(minor, label(U, claim_id="c1")) is Severity.NORMAL
    assert worst(label(U, severity=Severity.MAJOR)) is Severity.MAJOR
    assert worst(label(P, severity=Severity.MAJOR), mildest=U) is None
    assert worst(label(U, severity=Severity.MAJOR), minor) is Severity.MINOR


def test_labels_are_kept_by_response_and_a_later_one_with_the_same_id_replaces_the_earlier() -> None:
    first, second = label(S, id="x"), label(U, id="x")
    own, other = label(S, id="y"), label(U, id="x", response_id="other")
    labels = LabelsByResponse([first, other])
    labels.add([second])
    assert labels.of(first.response_id) == (second,)
    assert labels.of(first.response_id, [own, first]) == (own, second)
    assert (len(labels), labels.of("nobody"), labels.stray({"other"})) == (2, (), 2)
