"""A tiny teacher and a tiny student, from pairs to a checkpoint that can be exported."""

from __future__ import annotations

import gzip
import importlib.util
import json
import lzma
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.training.made_data import fact
from tests.training.tiny_base import write_base

_MISSING = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.training,
    pytest.mark.skipif(
        bool(_MISSING), reason=f"{', '.join(_MISSING)} not installed: pip install '.[training,test]'"
    ),
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.timeout(300),
]


def write_mpnet(folder: Path) -> Path:
    """A base of the other kind that may teach: other special tokens, no types, two marks in the middle."""
    import torch
    from transformers import MPNetConfig, MPNetModel

    text = (write_base(folder) / "tokenizer.json").read_text(encoding="utf-8")
    for bert, mpnet in (("[PAD]", "<pad>"), ("[CLS]", "<s>"), ("[SEP]", "</s>")):
        text = text.replace(bert, mpnet)
    (folder / "tokenizer.json").write_text(text, encoding="utf-8")
    torch.manual_seed(4)
    config = MPNetConfig(
        vocab_size=len(json.loads(text)["model"]["vocab"]), hidden_size=32, num_hidden_layers=2,
        num_attention_heads=4, intermediate_size=64, max_position_embeddings=514, pad_token_id=0,
    )  # fmt: skip
    MPNetModel(config).save_pretrained(folder)
    return folder


def write_pairs(path: Path, count: int, *, seed: int) -> Path:
    import random

    random_ = random.Random(seed)
    with gzip.open(path, "wt", encoding="utf-8") as out:
        for number in range(count):
            (first, claims), (second, _) = fact(random_), fact(random_)
            label = ("supported", "contradicted", "supported", "unsupported")[number % 4]
            supported = label == "supported"
            row = {
                "dataset": "conjnli" if number % 2 else "fever",
                "licence": "MIT",
                "claim": claims[label],
                "premise": f"{first} {second}",
                "readings": [
                    [[0, len(first)]],
                    [[0, len(first)], [len(first) + 1, len(first) + 1 + len(second)]],
                ],
                "settled": [True, supported],
                "supported": supported,
                "contradicted": label == "contradicted" if number % 3 else None,
                "spans": [] if supported else [[0, 3]] if number % 5 else None,
                "held_out": number % 4 == 1,
            }
            out.write(json.dumps(row) + "\n")
    return path


@pytest.mark.parametrize("teacher", [write_base, write_mpnet])
def test_what_is_distilled_is_a_checkpoint_that_is_exported(
    teacher: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from training import distil
    from training.checkpoint import described_in
    from training.verifier import Verifier

    base = write_base(tmp_path / "base")
    pairs = write_pairs(tmp_path / "pairs.jsonl.gz", 160, seed=1)
    packed = tmp_path / "measured.jsonl.xz"
    packed.write_bytes(lzma.compress(gzip.decompress(pairs.read_bytes())))
    words = [
        "--pairs", pairs, "--teacher", teacher(tmp_path / "teacher"), "--base", base, "--measure", packed,
        "--out", tmp_path / "out", "--teacher-epochs", 1, "--epochs", 2, "--batch-tokens", 1024,
        "--processes", 1, "--rate", 1e-2,
    ]  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["distil", *map(str, words)])
    distil.main()
    model = Verifier.load(tmp_path / "out", attention="eager")
    before = Verifier.from_base(base).state_dict()
    after = model.state_dict()
    name = "encoder.embeddings.word_embeddings.weight"
    assert (after[name] == before[name]).all()  # half of the parameters, and left as they were
    layer = "encoder.encoder.layer.0.attention.self.query.weight"
    assert not (after[layer] == before[layer]).all()
    described = described_in(tmp_path / "out")
    assert (described["base"], described["teacher"]) == ("base", "teacher")
    assert described["pairs"] == 2 * 120
    assert described["datasets"] == {
        "conjnli": {"pairs": 80, "licence": "MIT"},
        "fever": {"pairs": 160, "licence": "MIT"},
    }
    told = json.loads((tmp_path / "out" / "measured.json").read_text(encoding="utf-8"))
    assert len(told["teacher_long"]) == 160
    assert told["student_rows"] == told["teacher_rows"] == [n // 2 for n in range(320)]
    # What the student is asked when it is measured is what the shipped reader says of the same texts.
    row = json.loads(gzip.decompress(pairs.read_bytes()).splitlines()[0])
    first = row["premise"][slice(*row["readings"][0][0])]
    assert told["student"][0] == pytest.approx(said(model, row["claim"], first), abs=0.01)


def said(model: Any, claim: str, premise: str) -> list[float]:
    import torch
    from tokenizers import Tokenizer

    from training.encoding import encode

    arrays = encode(Tokenizer.from_str(model.tokenizer_json), [(claim, premise)], 256)
    with torch.inference_mode():
        logits, _ = model.eval()(**{name: torch.from_numpy(array) for name, array in arrays.items()})
    probabilities: list[float] = torch.sigmoid(logits)[0].tolist()
    return probabilities


def test_it_runs_where_nothing_that_the_guardrail_needs_is_installed() -> None:
    block = "import sys; sys.modules.update(dict.fromkeys(('pydantic', 'scipy')))"
    subprocess.run([sys.executable, "-c", f"{block}; import training.distil"], check=True, timeout=120)
