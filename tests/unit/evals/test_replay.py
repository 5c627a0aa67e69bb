"""Replay: what changes, what is not known and why, and what labels say of both sides."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guardrail.evals.replay import RIGHT, WRONG, ChangedResponse, Replay, Side
from guardrail.evals.truths import LabelsByResponse, answer_truth
from guardrail.events import Decision, Label, ResponseVerdict, SegmentKind, Verdict
from guardrail.policy import Policy, Rule
from guardrail.routing import PolicyRouter
from tests.support.records import claim, recorded

SENTENCE = SegmentKind.SENTENCE
STRICT = Policy(
    name="strict",
    mode="hold",
    rules=(Rule.model_validate("verdict CONTRADICTED|UNSUPPORTED: block"),),
    flag_below=0.0,
)
LENIENT = Policy(name="lenient", mode="observe", rules=(), flag_below=0.0)
FLAGGED = {"decision": Decision.FLAG, "rule": "verdict UNSUPPORTED: flag"}


def good(name: str, **fields: Any) -> ResponseVerdict:
    return recorded(name, [claim()], [SENTENCE], **{"judged_to_end": True} | fields)


def bad(name: str, **fields: Any) -> ResponseVerdict:
    claims = [claim(), claim(Verdict.UNSUPPORTED, text="A phone is free.")]
    return recorded(name, claims, [SENTENCE], **{"judged_to_end": True} | FLAGGED | fields)


def add(replay: Replay, *verdicts: ResponseVerdict) -> list[ChangedResponse]:
    changes = (replay.add(verdict, f"f line {at}") for at, verdict in enumerate(verdicts, start=1))
    return [change for change in changes if change is not None]


def side(policy: Policy) -> Side:
    return Side(policy.name, PolicyRouter.single(policy))


def test_a_policy_is_set_against_what_was_decided() -> None:
    replay = Replay(side(STRICT))
    changes = add(replay, good("r1"), bad("r2", route="sales"), bad("r3", route="sales"))
    assert [change.response_id for change in changes] == ["r2", "r3"]
    (change, _) = changes
    assert (change.before.decision, change.after.decision) == (Decision.FLAG, Decision.BLOCK)
    assert change.before.rule == "verdict UNSUPPORTED: flag"
    assert change.after.rule == "verdict CONTRADICTED|UNSUPPORTED: block"
    assert change.place == "f line 2"
    assert dict(replay.moves) == {(Decision.RELEASE, Decision.RELEASE): 1, (Decision.FLAG, Decision.BLOCK): 2}
    assert (replay.compared, replay.stricter, replay.milder) == (3, 2, 0)
    assert replay.routes["sales"].changed == 2
    assert replay.routes[None].changed == 0


def test_examples_name_the_claims_that_decided_and_are_bounded() -> None:
    replay = Replay(side(STRICT), examples=2)
    add(replay, *(bad(f"r{number}") for number in range(5)))
    (kept,) = replay.examples.values()
    assert [example.response_id for example in kept] == ["r0", "r1"]
    assert [each.text for each in kept[0].claims] == ["A phone is free."]


@pytest.mark.parametrize(
    ("verdict", "policy", "by_head", "reason"),
    [
        (bad("r", judged_to_end=False), LENIENT, False, "a block ended the judging"),
        (good("r", claims=(), omitted=("claims",)), STRICT, False, "omits its claims"),
        (
            good("r", segment_kinds=None),
            STRICT.model_copy(update={"segment_kinds": {SegmentKind.CODE: Decision.BLOCK}}),
            False,
            "kinds of segments",
        ),
        (good("r", judged_to_end=None), LENIENT, True, "route, tenant and model"),
    ],
)
def test_what_a_record_does_not_tell_is_counted_apart(
    verdict: ResponseVerdict, policy: Policy, by_head: bool, reason: str
) -> None:
    replay = Replay(Side("new", PolicyRouter.single(policy), by_head))
    assert add(replay, verdict, good("known")) == []
    assert replay.compared == 1
    ((said, count),) = replay.unknown.items()
    assert reason in said
    assert count == 1


def test_a_block_that_the_other_policy_makes_too_is_known_though_the_judging_ended() -> None:
    blocked = {"decision": Decision.BLOCK, "judged_to_end": False, "complete": False}
    replay = Replay(side(STRICT))
    assert add(replay, bad("r", **blocked)) == []
    assert replay.moves[Decision.BLOCK, Decision.BLOCK] == 1


def label(response_id: str, verdict: Verdict, **fields: Any) -> Label:
    return Label(response_id=response_id, verdict=verdict, **fields)


@pytest.mark.parametrize(
    ("labels", "truth"),
    [
        ([label("r", Verdict.SUPPORTED, claim_id=f"r-{each}") for each in (0, 1)], RIGHT),
        ([label("r", Verdict.UNSUPPORTED, span=(0, 3))], WRONG),
        ([label("r", Verdict.SUPPORTED, claim_id="r-0")], None),
        ([label("other", Verdict.SUPPORTED)], None),
    ],
)
def test_labels_are_joined_to_records_as_to_any_verdict(labels: list[Label], truth: str | None) -> None:
    verdict = bad("r")
    replay = Replay(side(STRICT), labels=LabelsByResponse(labels))
    add(replay, verdict)
    found = [name for name, tally in replay.labelled.items() if tally.total]
    assert found == ([] if truth is None else [truth])
    right = answer_truth(verdict.claims, [each for each in labels if each.response_id == "r"]).right
    assert right == {RIGHT: True, WRONG: False, None: None}[truth]


def test_labels_that_fit_nothing_or_several_answers_are_counted() -> None:
    said = [label("r", Verdict.UNSUPPORTED, claim_id="lost"), label("gone", Verdict.SUPPORTED)]
    replay = Replay(side(STRICT), labels=LabelsByResponse(said))
    add(replay, bad("r"))
    assert (replay.stray, replay.unknown_claims, replay.ambiguous) == (1, 1, 0)
    assert replay.as_json()["labels_left_out"] == {"of_no_answer": 1, "of_unknown_claims": 1}
    add(replay, bad("r"))
    assert replay.ambiguous == 1


def test_wrongful_blocks_and_misses_are_told_before_and_after() -> None:
    labels = LabelsByResponse(
        [label("r1", Verdict.SUPPORTED), label("r2", Verdict.UNSUPPORTED), label("r3", Verdict.SUPPORTED)]
    )
    replay = Replay(side(STRICT), labels=labels)
    released = {"decision": Decision.RELEASE, "rule": "score and rules passed"}
    add(replay, good("r1"), bad("r2", **released), bad("r3"), bad("unlabelled"))
    told = replay.as_json()
    assert [told["wrongful_blocks"][when]["count"] for when in ("before", "after")] == [0, 1]
    assert [told["misses"][when]["count"] for when in ("before", "after")] == [1, 0]
    assert told["labels"][RIGHT]["responses"] == 2


def test_figures_of_nothing_are_null_and_no_text_is_told() -> None:
    replay = Replay(side(STRICT))
    assert replay.as_json()["total"]["changed"]["value"] is None
    add(replay, bad("r1"))
    told = json.dumps(replay.as_json(), allow_nan=False)
    assert "A phone is free." not in told
