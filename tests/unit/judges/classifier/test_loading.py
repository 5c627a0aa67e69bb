"""Loading: from folders and from the hub's cache, pinned or not; and what is told when it fails."""

from __future__ import annotations

import builtins
import importlib.util
from pathlib import Path
from typing import Any

import pytest
import structlog
from pydantic import ValidationError

from guardrail.errors import ConfigError
from guardrail.judges.classifier.loading import load_classifier
from guardrail.judges.classifier.settings import ClassifierSettings, HhemSettings, Outcome
from guardrail.judges.factory import build_judge
from guardrail.judges.settings import JudgeSettings
from tests.unit.judges.classifier.tiny import write_model

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def load(section: str = "judge.classifier", **settings: Any) -> None:
    load_classifier(ClassifierSettings.model_validate(settings), section)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """The hub client's cache as it is after a download of ``acme/tiny``."""
    repository = tmp_path / "models--acme--tiny"
    write_model(repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT, encoding="utf-8")
    return tmp_path


def test_a_pinned_model_comes_from_the_cache_without_a_warning(cache: Path) -> None:
    with structlog.testing.capture_logs() as logs:
        load(model="acme/tiny", revision=COMMIT, cache_dir=cache, offline=True, unpinned="refuse")
    assert not logs


@pytest.mark.parametrize("revision", [None, "main", COMMIT[:7]])
def test_what_is_not_pinned_warns_or_is_refused(cache: Path, revision: str | None) -> None:
    asked: dict[str, Any] = {"model": "acme/tiny", "revision": revision, "cache_dir": cache, "offline": True}
    with pytest.raises(ConfigError, match=r"judge\.classifier\.revision: .* 40 hexadecimal digits"):
        load(**asked, unpinned="refuse")
    if revision != COMMIT[:7]:
        with structlog.testing.capture_logs() as logs:
            load(**asked)
        assert [(log["event"], log["log_level"]) for log in logs] == [("classifier.unpinned", "warning")]


def test_remote_code_needs_a_pinned_revision_whatever_unpinned_says() -> None:
    with pytest.raises(ConfigError, match="allow_remote_code would run whatever is there"):
        load(model="acme/tiny", allow_remote_code=True, unpinned="allow")


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"judge\.classifier\.model: acme/none .* not in the cache"):
        load(model="acme/none", cache_dir=tmp_path, offline=True, unpinned="allow")
    with pytest.raises(ConfigError, match=r"judge\.classifier\.model: the folder /nowhere/x does not exist"):
        load(model="/nowhere/x")
    with pytest.raises(ConfigError, match=r"judge\.classifier\.model is not set"):
        load()


def test_files_that_are_broken(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m")
    (folder / "onnx" / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(ConfigError, match=r"judge\.classifier\.onnx_file: .* can't be loaded"):
        load(model=str(folder))
    (folder / "tokenizer.json").write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"judge\.classifier\.tokenizer: .* can't be read"):
        load(model=str(folder))
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ConfigError, match=r"judge\.classifier\.tokenizer: .* has no tokenizer\.json"):
        load(model=str(folder))


def test_labels_without_a_meaning(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m", ("LABEL_0", "LABEL_1"), file="model.onnx")
    with pytest.raises(ConfigError, match="LABEL_0, LABEL_1"):
        load(model=str(folder))
    load(model=str(folder), labels={"0": "unsupported", "LABEL_1": "supported"})


def test_no_onnx_file_where_one_is_asked_for(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m", file="elsewhere/graph.onnx")
    with pytest.raises(ConfigError, match=r"has no onnx/model\.onnx or model\.onnx; export"):
        load(model=str(folder), backend="onnx")
    load(model=str(folder), onnx_file="elsewhere/graph.onnx", labels={
        "0": "contradicted", "1": "neutral", "2": "supported"})  # fmt: skip


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed")
def test_without_torch_the_extra_is_named(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m", file="elsewhere/graph.onnx")
    for backend in ("auto", "torch"):
        with pytest.raises(ConfigError, match=r"pip install 'streaming-guardrail\[classifier-torch\]'"):
            load("judge.hhem", model=str(folder), backend=backend)


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
    with pytest.raises(ConfigError, match=r"pip install 'streaming-guardrail\[classifier\]'") as caught:
        load(model=str(folder), backend="onnx")
    assert module in str(caught.value)


def test_presets_fill_in_and_what_is_set_wins() -> None:
    hhem = HhemSettings()
    assert hhem.model == "vectara/hallucination_evaluation_model"
    assert (hhem.architecture, hhem.tokenizer) == ("hhem", "google/flan-t5-base")
    assert hhem.labels == {"0": Outcome.UNSUPPORTED, "1": Outcome.SUPPORTED}
    mini = ClassifierSettings(preset="minicheck-roberta-large", max_length=256, model="/models/mini")
    assert (mini.model, mini.max_length, mini.template) == ("/models/mini", 256, "{premise}</s>{hypothesis}")
    assert ClassifierSettings().model is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"template": "{premise} only"}, "must hold {hypothesis} once, not 0"),
        ({"labels": {"0": "unsupported"}}, "names no label that means supported"),
        ({"supported_at": 0.4, "partially_supported_at": 0.6}, "is above supported_at"),
        ({"device": "gpu"}, "device"),
        ({"preset": "hhem9"}, "preset"),
        ({"allow_remote_code": True, "backend": "onnx"}, "allow_remote_code"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ClassifierSettings.model_validate(settings)
    assert message in str(caught.value)


async def test_the_factory_builds_both_kinds(tmp_path: Path) -> None:
    folder = str(write_model(tmp_path / "m", ("no", "yes")))
    values = {"model": folder, "tokenizer": folder, "template": "{premise} {hypothesis}"}
    for settings in (
        JudgeSettings.model_validate({"kind": "hhem", "hhem": values}),
        JudgeSettings.model_validate(
            {
                "kind": "classifier",
                "classifier": {"model": folder, "labels": {"0": "neutral", "1": "supported"}},
            }
        ),
    ):
        judge = build_judge(settings)
        assert judge.name == f"{settings.kind}:m"
        await judge.aclose()
    with pytest.raises(ConfigError, match=r"judge\.classifier\.model is not set"):
        build_judge(JudgeSettings(kind="classifier"))


def test_that_torch_is_missing_is_told_ahead_of_any_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "torch" else found(name, *more)
    )
    settings = HhemSettings(offline=True, unpinned="allow", cache_dir=tmp_path)
    with pytest.raises(ConfigError, match=r"judge\.hhem: torch is not installed; run: pip install"):
        load_classifier(settings, "judge.hhem")
