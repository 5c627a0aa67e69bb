"""Sets whose claims were held against cited passages, web pages, abstracts and trials become rows."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.training.made_published import SAME as SAME_RESULT
from tests.training.made_published import SENTENCE, TRIAL, jsonl, write, write_all
from training import published_evidence as evidence
from training.published import sources
from training.published_readers import PoolRow

ASKED = "PromptID,PMCID,Outcome,Intervention,Comparator\n"
ANSWERED = "PromptID,PMCID,Valid Label,Valid Reasoning,Label,Annotations\n"
HIGHER = ("higher", "increase")
LOWER = ("lower", "reduced", "decrease")
SAME = ("did not differ", "no significant", "similar")


@pytest.fixture(name="rows")
def _rows(tmp_path: Path) -> dict[str, list[PoolRow]]:
    return {source.published.dataset: list(source.rows()) for source in sources(write_all(tmp_path))}


def test_multinli_says_only_whether_it_follows(rows: dict[str, list[PoolRow]]) -> None:
    assert [(row["contexts"], row["claim"], row["label"]) for row in rows["multinli"]] == [
        (['The mill, "Old Tom", is old.'], "The mill isn't new.", "supported"),
        (["The mill is old."], "The mill is red.", "not_supported"),
    ]


def test_attribution_bench_has_statements_only(tmp_path: Path) -> None:
    claims = (
        "According to the given context,",
        "Berg.",
        "Berg built the mill in Leeds.",
        "It has these parts:",
    )
    row = {"question": "Q?", "references": [SENTENCE], "attribution_label": "attributable"}
    rows = ({**row, "claim": claim, "src_dataset": "HAGRID"} for claim in claims)
    path = write(tmp_path / "dev.jsonl", jsonl(*rows))
    found = list(evidence.attribution_bench("attribution-bench", [path]))
    assert [each["claim"] for each in found] == ["Berg built the mill in Leeds."]


def test_attribution_bench_loses_marks_of_citations_and_what_is_measured_on(
    rows: dict[str, list[PoolRow]],
) -> None:
    assert [(row["contexts"], row["claim"], row["label"]) for row in rows["attribution-bench"]] == [
        ([f"{SENTENCE}."], "Berg has built it.", "supported"),
        ([f"{SENTENCE}."], "Tom has built it.", "not_supported"),
    ]
    assert {row["question"] for row in rows["attribution-bench"]} == {"Who built it?"}


def test_check_covid_has_the_other_sentences_beside_only_where_they_cannot_decide(
    rows: dict[str, list[PoolRow]],
) -> None:
    found = [(row["contexts"], row["label"], row["distractors"]) for row in rows["check-covid"]]
    assert found == [
        (["Masks helped."], "supported", ["Why.", "More did not."]),
        (["Why."], "unsupported", []),
        (["Masks helped. More did not."], "contradicted", ["Why."]),
    ]
    assert {row["source"] for row in rows["check-covid"]} == {"a1"}


def test_evidence_inference_leaves_out_what_does_not_decide_its_prompt(
    rows: dict[str, list[PoolRow]],
) -> None:
    found = rows["evidence-inference"]
    assert [row["contexts"] for row in found] == [[TRIAL], [SAME_RESULT]]
    assert {row["source"] for row in found} == {"99"}
    assert "HbA1c" in found[1]["claim"]


def test_claims_about_a_trial_say_what_it_found_or_something_else(tmp_path: Path) -> None:
    with (tmp_path / "prompts.csv").open("w", newline="") as file:
        file.write(ASKED)
        csv.writer(file).writerows([n, 1, "Pain", "Ibuprofen", "Placebo"] for n in range(200))
    with (tmp_path / "answers.csv").open("w", newline="") as file:
        file.write(ANSWERED)
        csv.writer(file).writerows([n, 1, True, True, "significantly decreased", TRIAL] for n in range(200))
    files = [tmp_path / "prompts.csv", tmp_path / "answers.csv"]
    found = list(evidence.evidence_inference("trials", files))
    assert found == list(evidence.evidence_inference("trials", files))
    assert 50 < sum(row["label"] == "supported" for row in found) < 130
    assert len({row["claim"] for row in found}) > 15
    for row in found:
        claim = row["claim"].lower()
        assert claim.index("pain") >= 0
        if any(word in claim for word in SAME):
            assert row["label"] == "contradicted", claim
            continue
        # "compared with placebo" and "than with placebo": what stands first is what the claim is about
        about_the_drug = claim.index("ibuprofen") < claim.index("placebo")
        if claim.startswith("compared with"):
            about_the_drug = not about_the_drug
        says_lower = any(word in claim for word in LOWER)
        assert says_lower != any(word in claim for word in HIGHER), claim
        assert (row["label"] == "supported") == (about_the_drug == says_lower), claim
