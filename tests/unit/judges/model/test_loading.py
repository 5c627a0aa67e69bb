"""Loading: from folders and from the hub's cache, pinned or not; and what is told when it fails."""

from __future__ import annotations

import builtins
import importlib.util
import math
import os
from pathlib import Path
from typing import Any

import pytest
import structlog
from pydantic import ValidationError

from guardrail.errors import ConfigError, JudgeReplyError
from guardrail.judges.cascade import CascadeSettings
from guardrail.judges.factory import build_judge
from guardrail.judges.model import (
    PRESETS,
    Classifier,
    ClassifierSettings,
    LabelMeaning,
    default_threads,
    load_classifier,
    runtime,
)
from guardrail.judges.model.classifier import LabelMap, resolve_labels
from guardrail.judges.model.runtime import ModelFiles, usable_processors
from guardrail.judges.settings import JudgeSettings
from tests.unit.judges.model.tiny import write_model

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def load(**settings: Any) -> Classifier:
    return load_classifier(ClassifierSettings.model_validate(settings))


@pytest.fixture(autouse=True)
def without_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As HF_HUB_OFFLINE and HF_HUB_CACHE set it when the hub's client is imported."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """The hub client's cache as it is after a download of ``acme/tiny``."""
    repository = tmp_path / "models--acme--tiny"
    write_model(repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT, encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("cache")
def test_a_pinned_model_comes_from_the_cache_without_a_warning() -> None:
    with structlog.testing.capture_logs() as logs:
        load(model="acme/tiny", revision=COMMIT)
    assert not logs


@pytest.mark.parametrize("revision", [None, "main"])
@pytest.mark.usefixtures("cache")
def test_what_is_not_pinned_is_warned_of(revision: str | None) -> None:
    with structlog.testing.capture_logs() as logs:
        load(model="acme/tiny", revision=revision)
    assert [(log["event"], log["log_level"]) for log in logs] == [("classifier.unpinned", "warning")]
    assert logs[0]["problem"].startswith("judge.classifier.revision: acme/tiny comes from the hub without")
    assert "40 hexadecimal digits" in logs[0]["problem"]


@pytest.mark.parametrize("revision", [None, "main", COMMIT[:7]])
def test_remote_code_needs_a_pinned_revision(revision: str | None) -> None:
    with pytest.raises(ConfigError, match="allow_remote_code would run whatever is there"):
        load(model="acme/tiny", revision=revision, allow_remote_code=True)


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"judge\.classifier\.model: acme/none .*can't be had"):
        load(model="acme/none")
    with pytest.raises(ConfigError, match=r"judge\.classifier\.model: the folder /nowhere/x does not exist"):
        load(model="/nowhere/x")
    with pytest.raises(ConfigError, match=r"judge\.classifier\.model is not set"):
        load()


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_pin_what_they_bring(preset: str) -> None:
    settings = ClassifierSettings.model_validate({"preset": preset, "allow_remote_code": True})
    assert ModelFiles(settings.model, settings.revision, settings).unpinned is None
    known = settings.known()
    assert known is not None
    if known.tokenizer is not None:
        assert ModelFiles(*known.tokenizer, settings).unpinned is None


@pytest.mark.parametrize("own", [False, True])
def test_a_folder_s_own_tokenizer_goes_before_that_of_the_preset(tmp_path: Path, own: bool) -> None:
    folder = write_model(tmp_path / "m", ("no", "yes"))
    settings = {"preset": "hhem", "model": str(folder)}
    if own:
        assert load(**settings).max_tokens == 512
        return
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ConfigError, match=r"google/flan-t5-base at 7bcac\w+ can't be had"):
        load(**settings)


def test_a_model_reads_as_many_tokens_as_its_files_say(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m")
    assert load(model=str(folder)).max_tokens == 512
    said = folder / "tokenizer_config.json"
    said.write_text('{"model_max_length": 1000000000000000019884624838656}', encoding="utf-8")
    assert load(model=str(folder)).max_tokens == 512
    said.write_text('{"model_max_length": 96}', encoding="utf-8")
    assert load(model=str(folder)).max_tokens == 96
    write_model(tmp_path / "m", max_tokens=80)
    assert load(model=str(folder)).max_tokens == 80


def test_files_that_are_broken(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m")
    (folder / "onnx" / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(ConfigError, match=r"judge\.classifier\.model: .* can't be loaded"):
        load(model=str(folder))
    (folder / "tokenizer.json").write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"judge\.classifier\.model: .* can't be read"):
        load(model=str(folder))
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ConfigError, match=r"judge\.classifier\.model: .* has no tokenizer\.json"):
        load(model=str(folder))


def test_labels_without_a_meaning(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m", ("LABEL_0", "LABEL_1"), file="model.onnx")
    with pytest.raises(ConfigError, match="LABEL_0, LABEL_1"):
        load(model=str(folder))
    load(model=str(folder), labels={"0": "unsupported", "LABEL_1": "supported"})


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed")
def test_without_torch_the_extra_is_named(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m", file="elsewhere/graph.onnx")
    with pytest.raises(ConfigError, match=r"pip install '\.\[classifier-torch\]'"):
        load(model=str(folder))


@pytest.mark.parametrize("module", ["tokenizers", "onnxruntime"])
def test_without_its_runtime_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    folder = write_model(tmp_path / "m")
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == module:
            raise ImportError(name=name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError, match=r"pip install '\.\[classifier\]'") as caught:
        load(model=str(folder))
    assert module in str(caught.value)


def test_presets_fill_in_and_what_is_set_wins() -> None:
    hhem = ClassifierSettings(preset="hhem")
    assert (hhem.model, hhem.revision) == (PRESETS["hhem"].model, PRESETS["hhem"].revision)
    assert hhem.labels == {"0": LabelMeaning.UNSUPPORTED, "1": LabelMeaning.SUPPORTED}
    assert ClassifierSettings(preset="hhem", revision=COMMIT).revision == COMMIT
    other = ClassifierSettings(preset="hhem", model="acme/hhem")
    assert (other.model, other.revision, other.template) == ("acme/hhem", None, hhem.template)
    mini = ClassifierSettings(preset="minicheck-roberta-large", model="/models/mini")
    assert (mini.model, mini.template) == ("/models/mini", "{premise}</s>{hypothesis}")
    assert ClassifierSettings().model is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"template": "{premise} only"}, "must hold {hypothesis} once, not 0"),
        ({"labels": {"0": "unsupported"}}, "names no label that means supported"),
        ({"preset": "hhem9"}, "preset"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ClassifierSettings.model_validate(settings)
    assert message in str(caught.value)


async def test_the_factory_builds_both_kinds(tmp_path: Path) -> None:
    folder = str(write_model(tmp_path / "m", ("no", "yes")))
    labels = {"0": "neutral", "1": "supported"}
    for values in (
        {"kind": "hhem", "classifier": {"model": folder, "template": "{premise} {hypothesis}"}},
        {"kind": "hhem", "classifier": ClassifierSettings(model=folder)},
        {"kind": "classifier", "classifier": {"model": folder, "labels": labels}},
    ):
        judge = build_judge(JudgeSettings.model_validate(values))
        assert judge.name == f"{values['kind']}:m"
        await judge.aclose()
    with pytest.raises(ConfigError, match=r"judge\.classifier\.model is not set"):
        build_judge(JudgeSettings(kind="classifier"))


@pytest.mark.parametrize(
    "values",
    [
        {"kind": "hhem"},
        {"kind": "hhem", "classifier": {"preset": "hhem"}},
        {"kind": "cascade", "cascade": {"first": "hhem"}},
        {"kind": "cascade", "cascade": CascadeSettings(second="hhem")},
    ],
)
def test_hhem_is_a_classifier_with_that_preset(values: dict[str, Any]) -> None:
    settings = JudgeSettings.model_validate(values)
    assert settings.classifier.preset == "hhem"
    assert settings.classifier.model == PRESETS["hhem"].model
    assert "classifier" in settings.kinds()
    assert JudgeSettings.model_validate(settings.model_dump()) == settings


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"kind": "hhem", "classifier": {"preset": "minicheck-roberta-large"}},
            "kind is hhem, but classifier.preset minicheck-roberta-large; write classifier",
        ),
        (
            {"kind": "cascade", "cascade": {"first": "hhem", "second": "classifier"}},
            "cascade.first: hhem is the classifier, with a preset; name two different judges",
        ),
    ],
)
def test_hhem_is_no_second_classifier(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        JudgeSettings.model_validate(values)


def test_that_torch_is_missing_is_told_ahead_of_any_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "torch" else found(name, *more)
    )
    with pytest.raises(ConfigError, match=r"judge\.classifier: torch is not installed; in a checkout"):
        load(preset="hhem")


# ----------------------------------------------------------------------------------------------------- labels

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


# ------------------------------------------------------------------------------------------------- processors

HERE = 8


@pytest.fixture
def eight_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(HERE)), raising=False)


def found(folder: Path, own: str, files: dict[str, str]) -> int:
    for name, content in files.items():
        path = folder / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    (folder / "own").write_text(own, encoding="utf-8")
    return usable_processors(folder / "groups", folder / "own")


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        ("0::/\n", {"cpu.max": "300000 100000\n"}, 3),
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "5000 100000\n"}, 1),
        ("0::/\n", {"cpu.max": "max 100000\n"}, HERE),
        ("0::/\n", {"cpu.max": "6400000 100000\n"}, HERE),
        ("0::/\n", {"cpu.max": "nonsense\n"}, HERE),
        ("0::/\n", {"cpu.max": "100 0\n"}, HERE),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "200000 100000\n"}, 2),
        ("0::/of/the/host\n", {"cpu.max": "100000 100000\n"}, 1),
        ("0::/../etc\n", {"cpu.max": "200000 100000\n", "../etc/cpu.max": "100000 100000\n"}, 2),
        ("4:cpu,cpuacct:/x\n0::/\n", {"cpu,cpuacct/x/cpu.cfs_quota_us": "400000\n",
                                      "cpu,cpuacct/x/cpu.cfs_period_us": "100000\n"}, 4),
        ("4:cpu:/of/the/host\n", {"cpu/cpu.cfs_quota_us": "250000", "cpu/cpu.cfs_period_us": "100000"}, 3),
        ("4:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, HERE),
        ("4:memory:/\n", {"cpu.max": "100000 100000"}, HERE),
        ("", {}, HERE),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("eight_processors")
def test_the_smaller_of_affinity_and_quotas(
    tmp_path: Path, own: str, files: dict[str, str], expected: int
) -> None:
    assert found(tmp_path, own, files) == expected


@pytest.mark.usefixtures("eight_processors")
def test_where_there_are_no_control_groups(tmp_path: Path) -> None:
    assert usable_processors(tmp_path / "none", tmp_path / "none") == HERE


def test_threads_unless_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for usable, threads in ((1, 1), (2, 2), (8, 2)):
        monkeypatch.setattr(runtime, "usable_processors", lambda count=usable: count)
        assert default_threads() == threads
