"""``training.base_from_onnx``: a base model out of the ONNX file that a package carries."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from tests.training.tiny_base import write_base
from training import base_from_onnx

_MISSING = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.training,
    pytest.mark.skipif(
        bool(_MISSING), reason=f"{', '.join(_MISSING)} not installed: pip install '.[training,test]'"
    ),
    pytest.mark.filterwarnings("ignore"),  # of torch's exporter
    pytest.mark.timeout(120),
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base's folder, with ``model.onnx`` as transformers' exporters write it: no pooler, three inputs."""
    import torch
    from transformers import BertModel

    folder = write_base(tmp_path_factory.mktemp("onnx") / "base")
    names = ["input_ids", "attention_mask", "token_type_ids"]
    module = torch.nn.Module()
    module.bert = BertModel.from_pretrained(folder, add_pooling_layer=False, attn_implementation="eager")
    module.forward = lambda *inputs: module.bert(**dict(zip(names, inputs, strict=True))).last_hidden_state
    axes = {name: {0: "batch", 1: "length"} for name in (*names, "last_hidden_state")}
    torch.onnx.export(
        module.eval(), tuple(torch.ones(1, 6, dtype=torch.int64) for _ in names), folder / "model.onnx",
        input_names=names, output_names=["last_hidden_state"], dynamic_axes=axes, opset_version=17,
        dynamo=False,
    )  # fmt: skip
    return folder


def run(monkeypatch: pytest.MonkeyPatch, model: Path, out: Path, *, heads: int = 4) -> None:
    words = ("--onnx", model, "--tokenizer", model.parent / "tokenizer.json", "--heads", heads, "--out", out)
    monkeypatch.setattr(sys, "argv", ["base_from_onnx", *map(str, words)])
    base_from_onnx.main()


def test_the_weights_are_those_that_were_exported(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from safetensors.torch import load_file

    from training.verifier import Verifier

    run(monkeypatch, base / "model.onnx", tmp_path)
    assert capsys.readouterr().out == f"{tmp_path}: 2 layers of width 32\n"
    original = load_file(base / "model.safetensors")
    found = load_file(tmp_path / "model.safetensors")
    assert found.keys() == {name for name in original if not name.startswith("pooler.")}
    assert all((found[name] == original[name]).all() for name in found)
    assert Verifier.from_base(tmp_path).config.num_attention_heads == 4  # training takes it


def test_wrong_heads_are_found_by_what_the_model_says(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, base / "model.onnx", tmp_path / "out", heads=2)
    assert ended.value.code == 1
    assert "read as a BERT of 2 heads it says something else" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("there", [True, False])
def test_a_file_that_is_none_is_named(
    base: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    there: bool,
) -> None:
    model = tmp_path / "model.onnx"
    (tmp_path / "tokenizer.json").write_bytes((base / "tokenizer.json").read_bytes())
    if there:
        model.write_bytes(b"no graph")
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, model, tmp_path / "out")
    assert ended.value.code == 1
    told = capsys.readouterr().err
    assert told.startswith(f"base_from_onnx: {model}: {'no BERT in float32' if there else 'missing'}")
    assert told.count("\n") == 1
