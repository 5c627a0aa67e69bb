"""A flagged case on a terminal: what a reviewer needs, and nothing that a hostile text does to it."""

from __future__ import annotations

from typing import Any

import pytest

from guardrail.events import Context, Decision, Verdict
from guardrail.render import case_card, symbols_for
from tests.support.cases import ANSWER, flagged_case
from tests.unit.render.shown import shown

UNICODE = symbols_for("utf-8")


def test_a_card_has_the_answer_with_its_claims_marked_and_what_was_wrong() -> None:
    text = shown(case_card(flagged_case(1), UNICODE, 110, at_ms=1_700_000_000_000), width=110)
    for wanted in (
        "✘ BLOCKED · r-1",
        "Q: How long do returns take?",
        "Returns take 30 days. ✘ Shipping is free. ✔",
        "✘ CONTRADICTED normal",
        "“within 14 days” doc-1",
        "14, not 30",
        "nothing of it was shown",
        "verdict CONTRADICTED: block · default policy · score 0.40 · route support · 2023-11-14 22:13:20Z",
    ):
        assert wanted in text
    assert "it says so" not in text
    assert "terms.pdf" not in text


def test_a_whole_card_goes_on_with_every_claim_and_with_the_documents_if_they_are_asked_for() -> None:
    case = flagged_case(1, tenant="acme")
    text = shown(case_card(case, UNICODE, 100, whole=True))
    for wanted in ("1 supported claim", "it says so", "14, not 30", "case case-1 · tenant acme"):
        assert wanted in text
    assert "Returns are accepted within 14 days." not in text
    assert "1 document: --documents shows them" in text
    full = shown(case_card(case, UNICODE, 100, whole=True, documents=True))
    assert "1 document " in full
    assert (
        full.index("it says so") < full.index("doc-1 terms.pdf") < full.index("Returns are accepted within")
    )


def test_the_claim_that_decided_comes_first_and_is_named_as_such_with_its_number() -> None:
    doubted = flagged_case(1).claims[1].model_copy(update={"verdict": Verdict.UNSUPPORTED})
    wrong = flagged_case(1).claims[0].model_copy(update={"index": 4})
    text = shown(case_card(flagged_case(1, claims=(doubted, wrong)), UNICODE, 100))
    first, second = (
        text.index("✘ CONTRADICTED normal · claim 5, decided"),
        text.index("UNSUPPORTED normal · c"),
    )
    assert first < second
    by_score: dict[str, Any] = {"rule": "score < flag_below 0.9", "decision": Decision.FLAG}
    by_score |= {"claims": (wrong, doubted), "deciding_claim": "claim-1"}
    assert "claim 2, weighs most in the score" in shown(case_card(flagged_case(1, **by_score), UNICODE, 100))


def test_where_it_is_not_known_which_claim_decided_those_in_doubt_are_shown_in_their_order() -> None:
    doubted = flagged_case(1).claims[1].model_copy(update={"verdict": Verdict.UNSUPPORTED})
    claims = (flagged_case(1).claims[0], doubted)
    text = shown(case_card(flagged_case(1, claims=claims, deciding_claim=None), UNICODE, 100))
    assert "decided" not in text
    assert text.index("claim 1") < text.index("claim 2")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"delivered": ANSWER[:21]}, "a part of 21 characters of it was shown before the decision"),
        ({"delivered": ANSWER}, "all of it was shown before the decision"),
        (
            {"decision": Decision.REDACT, "delivered": "[removed] Shipping is free."},
            "the user read: “[removed]",
        ),
        ({"omitted": ("contexts",)}, "left out, as too large for a record: contexts"),
    ],
)
def test_what_the_user_got(changes: dict[str, object], says: str) -> None:
    assert says in shown(case_card(flagged_case(1, **changes), UNICODE, 100))


@pytest.mark.parametrize("decision", [Decision.BLOCK, Decision.REDACT])
def test_an_observed_answer_does_not_look_withheld(decision: Decision) -> None:
    observed = flagged_case(1, mode="observe", decision=decision, delivered=ANSWER)
    text = shown(case_card(observed, UNICODE, 100))
    assert f"would be {decision.name}" in text
    assert "default policy, observe" in text
    assert "all of it was shown: the policy only observes" in text
    assert "the user read" not in text


def test_what_was_kept_back_is_struck_through_and_what_was_shown_is_not() -> None:
    kept = shown(case_card(flagged_case(1, claims=()), UNICODE, 100), colour=True)
    part = shown(case_card(flagged_case(1, claims=(), delivered=ANSWER[:22]), UNICODE, 100), colour=True)
    assert "\x1b[2;9mReturns take 30 days. Shipping is free." in kept
    assert "\x1b[2;9mShipping is free." in part
    assert "\x1b[2;9mReturns" not in part


@pytest.mark.parametrize("whole", [True, False])
def test_hostile_texts_can_do_nothing_to_the_terminal(whole: bool) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07 [red]markup[/] \u202e\x9b31m\r\n"
    claims = [
        claim.model_copy(
            update={"text": evil, "reasoning": evil, "severity_reasons": (evil,), "span": (3, 99_999)}
        )
        for claim in flagged_case(1).claims
    ]
    case = flagged_case(
        1,
        response_id=evil,
        question=evil,
        answer=evil * 3,
        delivered=evil,
        decision=Decision.REDACT,
        rule=evil,
        route=evil,
        tenant=evil,
        claims=tuple(claims),
        contexts=(Context(id=evil, text=evil * 3_000, source=evil),),
        omitted=(evil,),
    )
    text = shown(case_card(case, UNICODE, 100, whole=whole))
    assert not {"\x1b", "\x07", "\x9b", "\r", "\u202e"} & set(text)
    assert "[red]markup[/]" in text
    assert max(map(len, text.splitlines())) <= 100
