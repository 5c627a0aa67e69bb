"""Numbers that the combiner looks at -> probabilities, and files of parameters: what is refused, and why."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guardrail.errors import ConfigError
from guardrail.figures import check_figures
from guardrail.judges.local.combiner import (
    FEATURES,
    READ,
    WORDS,
    Combiner,
    Read,
    best_of,
    load_parameters,
    log_odds,
    packaged_folder,
    read_features,
    word_features,
)
from guardrail.judges.local.search import WindowText
from guardrail.judges.model import Reading, read_folder
from tests.unit.figures.sources import source_of
from tests.unit.judges.local.contexts import index_of, looked_up

FIT: dict[str, Any] = {
    "combiner": {"biases": [0.0, 0.0, 0.0, 0.0], "weights": {"share": [1.0, 0.0, 0.0, 0.0]}},
    "lines": {"supported": 0.5, "partially": 0.2, "contradicted": 0.6, "sure": 0.9, "hopeless": 0.0},
}
GOOD: dict[str, Any] = {
    "version": 2,
    "provenance": {},
    "verifier": {"name": "some", "sha256": "0" * 64},
    "read": FIT,
    "words": FIT,
}


def changed(**changes: Any) -> dict[str, Any]:
    """Good parameters; names are places, ``__`` between their parts."""
    made: dict[str, Any] = json.loads(json.dumps(GOOD))
    for place, value in changes.items():
        *path, last = place.split("__")
        at = made
        for part in path:
            at = at[part]
        at[last] = value
    return made


def written(folder: Path, content: dict[str, Any]) -> Path:
    (folder / "parameters.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def test_probabilities_are_a_softmax() -> None:
    combiner = Combiner(biases=(1.0, 0.0, -1.0, 0.0), weights={"a": (2.0, 0.0, 0.0, -1.0)})
    totals = (1.0 + 2.0 * 3.0, 0.0, -1.0, -3.0)
    found = combiner.probabilities({"a": 3.0, "b": 5.0})
    assert found == pytest.approx([math.exp(t) / sum(map(math.exp, totals)) for t in totals])


@pytest.mark.parametrize("value", [1e6, -1e6])
def test_great_features_overflow_nothing(value: float) -> None:
    found = Combiner(biases=(0, 0, 0, 0), weights={"a": (1, 0, 0, 0)}).probabilities({"a": value})
    assert found.supported == (1.0 if value > 0 else 0.0)
    assert sum(found) == pytest.approx(1.0)


def of_words(claim: str, source: str) -> dict[str, float]:
    index = index_of(source)
    view, found = looked_up(claim, index)
    figures = check_figures(claim, source_of(source), [0])
    return word_features(view, found, figures)


def read(support: float, contradiction: float = 0.5, *tokens: float) -> Read:
    marked = tuple((n, n + 1, unsupported) for n, unsupported in enumerate(tokens))
    return Read(WindowText("", (0,), 0), Reading(support, contradiction, marked))


@pytest.mark.parametrize(
    ("claim", "source", "expected"),
    [
        ("The garden is open.", "The garden is open.", {"share": 1, "figures_absent": 0}),
        ("The garden is big.", "The garden is open.", {"share": 0.5}),
        ("Owls hunt mice.", "The garden is open.", {"share": 0}),
        ("Entry costs $5.", "Entry costs $5.", {"figures_absent": 0, "figures_conflicting": 0}),
        ("Entry costs $9.", "Entry costs money.", {"figures_absent": 1, "figures_conflicting": 0}),
        ("Entry for adults costs $9.", "Entry for adults costs $5.", {"figures_conflicting": 1}),
    ],
)
def test_words_and_figures(claim: str, source: str, expected: dict[str, float]) -> None:
    found = of_words(claim, source)
    assert found.keys() == set(WORDS)
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_what_is_read() -> None:
    found = read_features([read(0.2, 0.9, 0.1), read(0.8, 0.3, 0.6, 0.2)])
    assert found == pytest.approx(
        {
            "support": log_odds(0.8),
            "support_mean": (log_odds(0.2) + log_odds(0.8)) / 2,
            "contradiction": log_odds(0.9),
            "unsupported_most": 0.6,
            "unsupported_mean": 0.4,
        }
    )
    assert found.keys() == set(READ)
    assert set(FEATURES) == {*READ, *WORDS}


def test_a_claim_without_a_token_has_no_mark() -> None:
    found = read_features([read(0.5)])
    assert (found["unsupported_most"], found["unsupported_mean"]) == (0.0, 0.0)


def test_the_best_window_supports_most_and_the_first_of_equals() -> None:
    reads = [read(0.4), read(0.7), read(0.7)]
    assert best_of(reads) is reads[1]


@pytest.mark.parametrize(("p", "expected"), [(0.5, 0.0), (1.0, math.log(999)), (0.0, -math.log(999))])
def test_log_odds_have_bounds(p: float, expected: float) -> None:
    assert log_odds(p) == pytest.approx(expected)


def test_a_file_that_is_right_is_read(tmp_path: Path) -> None:
    assert load_parameters(written(tmp_path, GOOD)).words.lines.partially == 0.2


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (changed(version=99), "it has version 99, this release reads version 2; fit it again with training"),
        (changed(version="2"), "it has version '2', this release reads version 2"),
        (changed(read__lines__supported=5.0), "read.lines.supported = 5.0: Input should be less than"),
        (changed(words__lines__hopeless=-0.1), "words.lines.hopeless = -0.1: Input should be greater than"),
        (changed(read__lines__partially=0.7), "read.lines: partially (0.7) is above supported"),
        (changed(read__combiner__biases=[0.0]), "read.combiner.biases.1: Field required"),
        (
            changed(read__combiner__weights={"of_another_release": [0, 0, 0, 0]}),
            "read.combiner has weights of of_another_release, which this release does not find out",
        ),
        # what is read is unknown where nothing is
        (
            changed(words__combiner__weights={"support": [0, 0, 0, 0]}),
            "words.combiner has weights of support",
        ),
        (changed(read__combiner__biases=[float("nan"), 0, 0, 0]), "read.combiner.biases.0 = nan: Input"),
        (changed(verifier__sha256="beef"), "verifier.sha256 = 'beef': String should match"),
        (changed(more=1), "more = 1: Extra inputs are not permitted"),
    ],
)
def test_what_can_not_be_is_refused_with_its_place_and_a_remedy(
    tmp_path: Path, content: dict[str, Any], told: str
) -> None:
    path = written(tmp_path, content) / "parameters.json"
    with pytest.raises(ConfigError) as caught:
        load_parameters(tmp_path)
    message = str(caught.value)
    assert message.startswith(f"judge.local.verifier: {path} is not a parameters file of this version: ")
    assert told in message
    assert "training.calibrate" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_text("{"),
        lambda path: path.write_bytes(b"\xff\xfe"),
        lambda path: path.write_text("[" * 100_000),
        lambda path: path.write_text("[]"),
    ],
)
def test_what_is_no_parameters_at_all_is_a_config_error(
    tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    path = tmp_path / "parameters.json"
    spoil(path)
    with pytest.raises(ConfigError, match="is not a parameters file"):
        load_parameters(tmp_path)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"parameters\.json can't be read: .*; fit it again with training"):
        load_parameters(tmp_path)


def test_the_packaged_parameters_are_of_the_packaged_verifier_and_say_where_they_come_from() -> None:
    parameters, folder = load_parameters(), packaged_folder()
    assert folder is not None
    assert parameters.verifier.sha256 == read_folder(folder)[0].checksum
    licences = parameters.provenance["licences"]
    assert isinstance(licences, dict)
    assert licences
    assert not {"lingnli", "climate-fever", "nli4ct", "mpe", "rte", "healthver"} & set(licences)
