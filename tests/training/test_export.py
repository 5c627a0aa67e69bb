"""What export refuses and what its card says; no torch."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from guardrail.judges.local import packaged_folder
from tests.training.made_data import write_work
from tests.unit.judges.model.tiny import VOCABULARY, write_tokenizer
from training.examples import DataError, Example, write_examples
from training.export import FLOAT_TOLERANCE, MOST_BYTES, _failures, held_out_pairs, licences_of
from training.model_card import card, datasets_of, unshippable
from training.parity import Difference

pytest.importorskip("tokenizers", reason="the extra 'classifier' is not installed")

FINE = Difference(1e-6, 0.001, 0.01, 0.001, 0.1)
TRAINING = {
    "seed": 1,
    "versions": {"torch": "2.13.0"},
    "datasets": {
        "fever": {"pairs": 12_345, "licence": "CC-BY-SA-3.0"},
        "lingnli": {"pairs": 10, "licence": "not stated"},
    },
}
EXPORTED = {
    "bits": 7,
    "pairs": 400,
    "differences": [{"name": "int8 against float32", "difference": asdict(FINE)}],
    "milliseconds": {"float32": 40.0, "int8": 20.0},
}


def text() -> str:
    sizes = {"model.onnx": 23_000_000, "tokenizer.json": 500_000}
    return card(name="v", max_tokens=256, sizes=sizes, training=TRAINING, exported=EXPORTED)


@pytest.mark.parametrize(
    ("same", "rounded", "size", "said"),
    [
        (FINE, FINE, MOST_BYTES, None),
        (replace(FINE, logits_max=1.1 * FLOAT_TOLERANCE), FINE, 1, "from torch"),
        (replace(FINE, logits_max=float("nan")), FINE, 1, "from torch"),
        (FINE, replace(FINE, probability_mean=0.05), 1, "from float32"),
        (FINE, replace(FINE, probability_mean=float("nan")), 1, "from float32"),
        (FINE, replace(FINE, auroc_lost=0.6), 1, "points of AUROC"),
        (FINE, replace(FINE, auroc_lost=None), 1, None),
        (FINE, FINE, MOST_BYTES + 1, "bytes"),
    ],
)
def test_each_check_fails_on_its_own(
    same: Difference, rounded: Difference, size: int, said: str | None
) -> None:
    found = list(_failures(same, rounded, size))
    assert len(found) == (said is not None)
    assert said is None or said in found[0]


def test_the_card_names_data_settings_and_limits() -> None:
    assert unshippable(TRAINING) == ["lingnli"]
    assert "**An experiment, not to be shipped**" in text()
    assert "| fever | CC-BY-SA-3.0 | 12,345 |" in text()
    assert "- versions: torch 2.13.0" in text()
    assert "English" in text()


def test_the_shipped_card_says_where_the_figures_are_as_new_ones_do() -> None:
    folder = packaged_folder()
    assert folder is not None
    shipped = (folder / "MODEL_CARD.md").read_text(encoding="utf-8")
    (section,) = (part for part in text().split("\n## ") if part.startswith("Figures"))
    assert section in shipped
    assert "docs/benchmarks/local-judge.md" in section


def test_the_licence_of_a_base_goes_with_its_weights() -> None:
    (text,) = licences_of("bge-small-en-v1.5")
    folder = packaged_folder()
    assert folder is not None
    assert (folder / text.name).read_bytes() == text.read_bytes()
    assert licences_of("of-nobody") == []


def test_the_card_names_what_a_checkpoint_before_was_trained_on() -> None:
    before = {"seed": 7, "datasets": {"fever": {"pairs": 5, "licence": "CC-BY-SA-3.0"}}}
    fine = {"seed": 1, "datasets": {"help": {"pairs": 3, "licence": "MIT"}, "fever": {"pairs": 2}}}
    training = {**fine, "before": {**before, "before": TRAINING}}
    assert unshippable(training) == ["lingnli"]  # of the first course of three
    sizes = {"model.onnx": 1}
    made = card(name="v", max_tokens=256, sizes=sizes, training=training, exported=EXPORTED)
    assert "| fever | CC-BY-SA-3.0 | 12,352 |" in made
    assert "| help | MIT | 3 |" in made
    assert made.index("Course 1:") < made.index("Course 2:\n\n- seed: 7") < made.index("Course 3:")


def test_a_licence_that_only_a_later_course_names_counts() -> None:
    before = {"datasets": {"synthetic-date": {"pairs": 5, "licence": "ODC-BY"}}}
    training = {"datasets": {"synthetic-date": {"pairs": 3, "licence": "MIT, not stated"}}, "before": before}
    assert unshippable(training) == ["synthetic-date"]
    assert datasets_of(training) == {"synthetic-date": {"licence": "MIT, ODC-BY, not stated", "pairs": 8}}


def test_parity_is_measured_on_held_out_pairs_that_are_read_whole(tmp_path: Path) -> None:
    work = write_work(tmp_path)
    long = Example("conjnli", "MIT", "A claim.", ("word " * 200,), "supported", held_out=True)
    seen = Example("conjnli", "MIT", "Trained on.", ("A premise.",), "supported")
    kept = Example("conjnli", "MIT", "Held out.", ("A premise.", "Another."), "unsupported", held_out=True)
    write_examples(work / "prepared.jsonl.gz", [long, seen, kept])
    (work / "synthetic.jsonl.gz").unlink()
    (pair,) = held_out_pairs(work)
    assert (pair.claim, pair.premise, pair.supported) == ("Held out.", "A premise. Another.", False)
    write_examples(work / "prepared.jsonl.gz", [long, seen])
    with pytest.raises(DataError, match="no held-out rows"):
        held_out_pairs(work)


def test_pairs_are_cut_at_the_end_of_the_premise(tmp_path: Path) -> None:
    from tokenizers import Tokenizer

    from training.encoding import encode

    write_tokenizer(tmp_path)
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    found = encode(tokenizer, [("sky blue", "red red red red red red"), ("sky", "blue")], 7)
    sky, blue, red = VOCABULARY["sky"], VOCABULARY["blue"], VOCABULARY["red"]
    first, last = VOCABULARY["[CLS]"], VOCABULARY["[SEP]"]
    assert found["input_ids"].tolist() == [
        [first, sky, blue, last, red, red, last],
        [first, sky, last, blue, last, 0, 0],
    ]
    assert found["attention_mask"].tolist() == [[1] * 7, [1] * 5 + [0] * 2]
    assert found["token_type_ids"].tolist() == [[0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 0, 0]]
    (cut,) = encode(tokenizer, [("sky " * 9, "blue")], 7)["input_ids"].tolist()
    assert cut == [first, sky, sky, sky, sky, last, last]
