"""The combiner is fitted: on features whose truth is known, and on rows as the judge reads them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy", reason="the extra 'training' is not installed")

from guardrail.judges.local import FEATURES, WORDS, load_parameters, packaged_folder
from guardrail.judges.model import read_folder
from tests.training.made_data import write_data, write_work
from training import calibrate, calibration_rows
from training.combiner_fit import Features, fits, weights_of
from training.examples import DataError
from training.rows import SUPPORTED_SHARE

CLASSES = ("supported", "partially_supported", "unsupported", "contradicted")
SETS = ("wice-claim", "begin-tc", "fever", "synthetic-number")


def known(rows: int, *, seed: int = 1) -> tuple[Features, Any]:
    """Features, and the probabilities that their labels were drawn from; the last feature tells nothing."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, len(FEATURES)))
    slopes = np.zeros((len(FEATURES), 4))
    slopes[0] = (2.0, 0.0, -1.0, -1.0)
    slopes[FEATURES.index(WORDS[0])] = (1.0, 1.0, 0.0, -2.0)
    grown = np.exp(x @ slopes)
    told = grown / grown.sum(axis=1, keepdims=True)
    labels = [str(random.choice(CLASSES, p=p)) for p in told]
    # A fifth of the labels don't tell which of the three it is.
    hidden = random.random(rows) < 0.2
    labels = [
        "not_supported" if h and each != CLASSES[0] else each for h, each in zip(hidden, labels, strict=True)
    ]
    return Features(x, labels, [SETS[n % len(SETS)] for n in range(rows)]), told


def test_the_truth_is_recovered_and_the_lines_are_in_order() -> None:
    features, told = known(12_000)
    read, words = fits(features, sure=0.9, hopeless=0.04)
    assert tuple(read.combiner.weights) == FEATURES
    assert tuple(words.combiner.weights) == WORDS
    found = np.array(
        [read.combiner.probabilities(dict(zip(FEATURES, row, strict=True))) for row in features.x]
    )
    # Probabilities are for SUPPORTED_SHARE: the odds of the made rows are brought to that.
    share, made = np.array([SUPPORTED_SHARE, 1 - SUPPORTED_SHARE]), told[:, 0].mean()
    meant = told * (share / [made, 1 - made])[[0, 1, 1, 1]]
    meant /= meant.sum(axis=1, keepdims=True)
    assert np.abs(found - meant).mean() < 0.03
    assert max(abs(weight) for weight in read.combiner.weights[FEATURES[-1]]) < 0.1
    for each in (read, words):
        assert 0.0 < each.lines.partially <= each.lines.supported == 0.5 <= each.lines.contradicted <= 1.0
    assert (read.lines.sure, read.lines.hopeless) == (0.9, 0.04)
    wrongly = found[features.supported, 3] >= read.lines.contradicted
    assert wrongly.mean() <= 0.004


def test_one_class_alone_is_refused() -> None:
    features, _ = known(60)
    with pytest.raises(DataError, match="supported and other claims are needed"):
        fits(features.of(features.supported), sure=0.9, hopeless=0.04)


def test_large_sets_count_no_more_than_small_ones_and_classes_as_claims_come() -> None:
    sets = ["fever"] * 400 + ["conjnli"] * 100
    supported = np.array([n % 4 == 0 for n in range(500)])
    weights = weights_of(sets, supported)
    assert weights[supported].sum() == pytest.approx(SUPPORTED_SHARE * len(sets))
    assert weights[:400].sum() == pytest.approx(weights[400:].sum())


def run(*words: object) -> None:
    before, sys.argv = sys.argv, ["calibrate", *map(str, words)]
    try:
        calibrate.main()
    finally:
        sys.argv = before


def test_what_is_written_is_what_the_judge_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration_rows, "_DOCUMENTS", 2)
    data, work = write_data(tmp_path / "data"), write_work(tmp_path / "work")
    folder = packaged_folder()
    assert folder is not None
    out, kept = tmp_path / "parameters.json", tmp_path / "features.npz"
    words = ("--data", data, "--work", work, "--verifier", folder, "--out", out, "--features", kept)
    run(*words, "--rows", 20)
    found = load_parameters(tmp_path)
    manifest, _, _ = read_folder(folder)
    assert (found.verifier.name, found.verifier.sha256) == (manifest.name, manifest.checksum)
    assert found.provenance["licences"] == {"conjnli": "MIT"}
    assert tuple(found.read.combiner.weights) == FEATURES
    # Features that were kept are fitted again without reading anything.
    first = out.read_bytes()
    run(*words[:2], "--work", tmp_path / "nowhere", *words[4:])
    assert out.read_bytes() == first


def test_features_of_another_release_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "old.npz", x=np.zeros((1, 1)), labels=["supported"], sets=["fever"], names=["old"])
    with pytest.raises(DataError, match="other features"):
        Features.load(tmp_path / "old.npz")
