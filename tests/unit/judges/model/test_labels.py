"""Labels: what may be guessed, what must be said, and the numbers that come of it."""

from __future__ import annotations

import math

import pytest

from guardrail.errors import ConfigError, JudgeReplyError
from guardrail.judges.model import LabelMeaning
from guardrail.judges.model.classifier import LabelMap, resolve_labels

NLI = ["ENTAILMENT", "neutral", "Contradiction"]


def resolved(
    configured: dict[str, LabelMeaning], names: list[str], outputs: int, *, subset: bool = False
) -> LabelMap:
    return resolve_labels(configured, names, outputs, subset=subset)


def test_known_names_need_no_map() -> None:
    labels = resolved({}, NLI, 3)
    scores = labels.scores([math.log(0.7), math.log(0.2), math.log(0.1)])
    assert scores.support == pytest.approx(0.7)
    assert scores.contradiction == pytest.approx(0.1)
    assert labels.has_contradiction
    assert not resolved({}, ["not_entailment", "entailment"], 2).has_contradiction


def test_several_labels_may_mean_the_same() -> None:
    labels = resolved(
        {"0": LabelMeaning.SUPPORTED, "1": LabelMeaning.SUPPORTED, "2": LabelMeaning.UNSUPPORTED}, [], 3
    )
    assert labels.scores([0.0, 0.0, 0.0]).support == pytest.approx(2 / 3)


def test_of_a_vocabulary_only_the_labels_count() -> None:
    labels = resolved({"3": LabelMeaning.UNSUPPORTED, "5": LabelMeaning.SUPPORTED}, [], 8, subset=True)
    row = [99.0, 99.0, 99.0, 1.0, 99.0, 1.0, 99.0, 99.0]
    assert labels.scores(row).support == pytest.approx(0.5)


def test_huge_logits_do_not_overflow_and_those_that_are_none_are_refused() -> None:
    labels = resolved({}, NLI, 3)
    assert labels.scores([1e308, -1e308, 0.0]).support == 1.0
    assert resolved({}, [], 1).scores([-1e6]).support == 0.0
    for bad in (math.nan, math.inf, -math.inf):
        with pytest.raises(JudgeReplyError):
            labels.scores([0.0, bad, 0.0])


@pytest.mark.parametrize(
    ("configured", "names", "outputs", "subset", "message"),
    [
        ({}, ["LABEL_0", "LABEL_1"], 2, False, "the model's labels are LABEL_0, LABEL_1"),
        ({}, [], 2, False, "0 to 1"),
        ({"yes": LabelMeaning.SUPPORTED}, ["no", "ja"], 2, False, "has no label 'yes'"),
        ({"7": LabelMeaning.SUPPORTED}, [], 2, False, "has no label '7'"),
        ({"1": LabelMeaning.SUPPORTED}, [], 3, False, "say what label 0, 2 means too"),
        (
            {"1": LabelMeaning.SUPPORTED, "yes": LabelMeaning.NEUTRAL},
            ["no", "yes"],
            2,
            False,
            "given two meanings",
        ),
        ({"0": LabelMeaning.UNSUPPORTED}, [], 1, False, "only output must mean supported"),
        ({"3": LabelMeaning.SUPPORTED}, [], 9, True, "token ids that mean supported and unsupported"),
        ({}, [], 9, True, "token ids"),
    ],
)
def test_what_cannot_be_understood_is_told(
    configured: dict[str, LabelMeaning], names: list[str], outputs: int, subset: bool, message: str
) -> None:
    with pytest.raises(ConfigError, match=r"^judge\.classifier\.labels: ") as caught:
        resolved(configured, names, outputs, subset=subset)
    assert message in str(caught.value)
