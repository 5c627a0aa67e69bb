"""A judgement as the session and the cache store it."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest

from guardrail.events import ClaimPart, ClaimVerdict, Context, Evidence, Finding, Usage
from guardrail.judges import Judgement, Verdict
from guardrail.verdicts import SAID

CONTEXTS = (Context(id="c1", text="A source."), Context(id="c2", text="An other one."))
FULL = Judgement(
    "claim",
    Verdict.PARTIALLY_SUPPORTED,
    0.75,
    0.5,
    "test",
    evidence=(
        Evidence(context_id="c2", quote="other", span=(3, 8)),
        Evidence(context_id="nowhere", quote="quote", span=(0, 5)),
    ),
    conflicting_contexts=("c1", "nowhere"),
    reasoning="why",
    parts=(ClaimPart(text="a part", verdict=Verdict.SUPPORTED),),
    attempts=2,
    degraded_from=("first: broken",),
    usage=Usage(judge_calls=2),
    unsupported_spans=((0, 1), (3, 5)),
    contradiction=0.25,
    findings=(Finding.FIGURE_ABSENT,),
)


def test_what_is_packed_is_unpacked_and_repeats_no_text_of_the_contexts() -> None:
    packed = json.loads(json.dumps(FULL.pack(CONTEXTS, 100)))
    assert Judgement.unpack("claim", packed, CONTEXTS, 100) == FULL
    assert packed["evidence"][0] == [1, 3, 8]
    assert packed["conflicts"] == [0, "nowhere"]
    assert packed["unsupported"] == [[100, 101], [103, 105]]


def test_what_has_its_default_is_not_packed() -> None:
    plain = Judgement("claim", Verdict.UNVERIFIED, 0.0, None, "test")
    assert plain.pack(CONTEXTS) == {
        "verdict": "UNVERIFIED",
        "confidence": 0.0,
        "support": None,
        "judge": "test",
    }
    assert Judgement.unpack("claim", plain.pack(CONTEXTS), CONTEXTS) == plain


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "MAYBE"},
        {"confidence": "much"},
        {"confidence": "0.9"},
        {"support": True},
        {"attempts": -5},
        {"attempts": 2**31},
        {"evidence": [[2, 0, 1]]},
        {"evidence": [[-1, 0, 1]]},
        {"evidence": [[0, 5, 100]]},
        {"evidence": [["c1", 0, 1]]},
        {"evidence": [[0, 1]]},
        {"evidence": [[True, 0, 1]]},
        {"evidence": [[0, False, 1]]},
        {"evidence": 1},
        {"conflicts": [7]},
        {"conflicts": [None]},
        {"conflicts": [True]},
        {"parts": [["a part"]]},
        {"unsupported": [["a", 3]]},
        {"unsupported": [["0", 3]]},
    ],
)
def test_what_nobody_can_have_packed_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Judgement.unpack("claim", FULL.pack(CONTEXTS) | change, CONTEXTS)


def test_the_event_about_a_verdict_has_all_its_fields() -> None:
    """A new field of a judgement is one of the event, or it belongs to the moment."""
    assert set(SAID) <= ClaimVerdict.model_fields.keys()
    assert {field.name for field in fields(Judgement)} - set(SAID) == {
        "claim_id",
        "explain",
        "hurried",
        "unsupported_spans",
    }
