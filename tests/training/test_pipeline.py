"""A tiny model from base to report: trained a few steps, exported, read by the judge, measured."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from guardrail.judges.local import load_parameters
from guardrail.judges.model import load_verifier
from tests.training.made_data import write_data, write_work
from tests.training.tiny_base import write_base

_MISSING = [name for name in ("torch", "transformers", "scipy") if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.training,
    pytest.mark.skipif(
        bool(_MISSING), reason=f"{', '.join(_MISSING)} not installed: pip install '.[training,test]'"
    ),
    pytest.mark.filterwarnings("ignore"),  # of torch and its exporter, which deprecate much
    pytest.mark.timeout(300),
]
PAIRS = [
    (
        "The otter of Oslo weighs 412 kilograms.",
        "The otter of Oslo weighs 412 kilograms and sleeps in the barn.",
    ),
    ("The keeper of Porto feeds a horse every day.", "The camel of Turin weighs 212 kilograms."),
    ("A heron.", "The heron of Malmo weighs 300 kilograms. " * 4),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``data``, ``work``, ``base``, and in ``work/checkpoint`` what a few steps of training made of it."""
    folder = tmp_path_factory.mktemp("pipeline")
    write_data(folder / "data")
    write_work(folder / "work")
    write_base(folder / "base")
    run("pairs", "--data", folder / "data", "--work", folder / "work", "--processes", 1)
    checkpoint = folder / "work" / "checkpoint"
    run(
        "train", "--work", folder / "work", "--out", checkpoint, "--base", folder / "base", "--pairs", 120,
        "--rate", 3e-3, "--threads", 1,
    )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def exported(place: Path) -> Path:
    run(
        "export",
        "--checkpoint",
        place / "work" / "checkpoint",
        "--out",
        place / "verifier",
        "--name",
        "tiny-1",
    )
    return place / "verifier"


def run(step: str, *words: object) -> None:
    module: Any = importlib.import_module(f"training.{step}")
    before, sys.argv = sys.argv, [step, *(str(word) for word in words)]
    try:
        module.main()
    finally:
        sys.argv = before


def test_a_checkpoint_is_loaded_as_it_was_saved(place: Path, tmp_path: Path) -> None:
    import torch

    from training.verifier import Verifier

    checkpoint = place / "work" / "checkpoint"
    first = Verifier.load(checkpoint).eval()
    first.save(tmp_path)
    second = Verifier.load(tmp_path, attention="eager").eval()
    ids = torch.tensor([[2, 5, 6, 3, 7, 8, 3, 0], [2, 9, 10, 11, 3, 12, 13, 3]])
    attended = torch.tensor([[1] * 7 + [0], [1] * 8])
    types = torch.tensor([[0, 0, 0, 0, 1, 1, 1, 0], [0, 0, 0, 0, 0, 1, 1, 1]])
    with torch.inference_mode():
        for a, b in zip(first(ids, attended, types), second(ids, attended, types), strict=True):
            assert torch.allclose(a, b, atol=1e-5)
    assert not first.encoder.embeddings.word_embeddings.weight.requires_grad


def test_training_goes_on_from_a_checkpoint_and_says_so(place: Path, tmp_path: Path) -> None:
    import torch

    from training.verifier import Verifier

    work = place / "work"
    first = Verifier.load(work / "checkpoint")
    before = json.loads((work / "checkpoint" / "training.json").read_text(encoding="utf-8"))
    run("train", "--work", work, "--out", tmp_path, "--start-from", work / "checkpoint", "--rate", "0.0",
        "--pairs", "40", "--threads", "1")  # fmt: skip
    after = json.loads((tmp_path / "training.json").read_text(encoding="utf-8"))
    assert after["before"] == before
    assert after["base"] == before["base"]
    second = Verifier.load(tmp_path).state_dict()
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.state_dict().items())


def test_an_exported_verifier_is_restored_and_trained_on(place: Path, exported: Path, tmp_path: Path) -> None:
    from tokenizers import Tokenizer

    from training.export import _torch_form, held_out_pairs
    from training.parity import compare, onnx_form
    from training.verifier import Verifier

    run("restore", "--verifier", exported, "--out", tmp_path / "restored")
    model = Verifier.load(tmp_path / "restored", attention="eager")
    pairs = held_out_pairs(place / "work", count=60)
    tokenizer = Tokenizer.from_str(model.tokenizer_json)
    told = compare(_torch_form(model), onnx_form(exported / "model.onnx"), tokenizer, pairs, 256)
    assert told.probability_mean < 0.02  # activations are rounded, nothing else
    described = json.loads((tmp_path / "restored" / "training.json").read_text(encoding="utf-8"))
    assert described["weights"] == "restored from those of tiny-1 in int8"
    run("train", "--work", place / "work", "--out", tmp_path / "on", "--start-from", tmp_path / "restored",
        "--pairs", "40", "--threads", "1", "--precision", "bfloat16", "--freeze-layers", "1")  # fmt: skip
    trained = json.loads((tmp_path / "on" / "training.json").read_text(encoding="utf-8"))
    assert (trained["before"], trained["precision"]) == (described, "bfloat16")
    run("export", "--checkpoint", tmp_path / "on", "--work", place / "work", "--out", tmp_path / "again",
        "--most-lost", "50")  # fmt: skip
    assert "restored from those of tiny-1" in (tmp_path / "again" / "MODEL_CARD.md").read_text(
        encoding="utf-8"
    )


def test_the_shipped_verifier_is_restored(tmp_path: Path) -> None:
    from training.verifier import Verifier

    run("restore", "--out", tmp_path)
    config = Verifier.load(tmp_path).config
    assert (config.num_hidden_layers, config.max_position_embeddings) == (12, 256)


def test_checkpoints_are_averaged(place: Path, tmp_path: Path) -> None:
    import torch

    from training.verifier import Verifier

    later = place / "work" / "checkpoint"
    other = Verifier.load(later)
    other.state_dict()["out.bias"].add_(1.0)
    other.save(tmp_path / "earlier")
    (tmp_path / "earlier" / "training.json").write_text('{"pairs": 5}', encoding="utf-8")
    run("average", "--later", later, "--earlier", tmp_path / "earlier", "--out", tmp_path / "both",
        "--share", "0.75")  # fmt: skip
    bias = Verifier.load(tmp_path / "both").state_dict()["out.bias"]
    assert torch.allclose(bias, Verifier.load(later).state_dict()["out.bias"] + 0.25)
    described = json.loads((tmp_path / "both" / "training.json").read_text(encoding="utf-8"))
    assert described["weights"].startswith("0.75 of those")


@pytest.mark.parametrize(
    ("described", "said"),
    [
        ('{"datasets": {"lingnli": {"pairs": 5, "licence": "not stated"}}}', "was trained on lingnli"),
        ("[]", "training.json: no object"),
        ('{"pairs": 5', "training.json: can't be read"),
        (None, "training.json: missing"),
    ],
)
def test_what_is_no_earlier_checkpoint_of_the_same_training_is_not_averaged(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], described: str | None, said: str
) -> None:
    """The card of a model names all that it was trained on, and a licence may forbid to ship it."""
    later = place / "work" / "checkpoint"
    if described is not None:
        (tmp_path / "training.json").write_text(described, encoding="utf-8")
    with pytest.raises(SystemExit):
        run("average", "--later", later, "--earlier", tmp_path, "--out", tmp_path / "both")
    assert said in capsys.readouterr().err
    assert not (tmp_path / "both").exists()


@pytest.mark.parametrize("step", ["train", "average", "export"])
@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("training.json", "missing; training writes it at its end"),
        ("model.safetensors", "damaged (SafetensorError"),
        ("config.json", "damaged (JSONDecodeError"),
        ("tokenizer.json", "damaged (JSONDecodeError"),
    ],
)
def test_a_damaged_checkpoint_is_one_line_that_names_the_file(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], step: str, file: str, said: str
) -> None:
    whole, checkpoint, out = place / "work" / "checkpoint", tmp_path / "checkpoint", tmp_path / "out"
    shutil.copytree(whole, checkpoint)
    half = (checkpoint / file).read_bytes()[: (checkpoint / file).stat().st_size // 2]
    (checkpoint / file).write_bytes(half)
    if file == "training.json":
        (checkpoint / file).unlink()
    words = {
        "train": ("--work", place / "work", "--start-from", checkpoint, "--pairs", 1, "--threads", 1),
        "average": ("--later", whole, "--earlier", checkpoint),
        "export": ("--checkpoint", checkpoint, "--work", place / "work"),
    }
    with pytest.raises(SystemExit) as left:
        run(step, *words[step], "--out", out)
    assert left.value.code == 1
    told = capsys.readouterr().err.strip().splitlines()[-1]
    assert told.startswith(f"{step}: {checkpoint / file}: {said}")
    assert not out.exists()


@pytest.fixture
def cut_short(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is left of a run that was killed in its fourth batch."""
    from training import trainer

    loss_of, seen = trainer.loss_of, 0

    def killed(*words: Any) -> Any:
        nonlocal seen
        seen += 1
        if seen > 3:
            raise KeyboardInterrupt
        return loss_of(*words)

    monkeypatch.setattr(trainer, "loss_of", killed)
    with pytest.raises(KeyboardInterrupt):
        train_in_small_batches(place, tmp_path / "cut")
    monkeypatch.undo()
    return tmp_path / "cut"


def train_in_small_batches(place: Path, out: Path, *words: object) -> None:
    run("train", "--work", place / "work", "--out", out, "--base", place / "base", "--pairs", 60, "--threads",
        1, "--batch-tokens", 256, "--rate", 1e-3, "--save-minutes", 0, *words)  # fmt: skip


def test_a_training_that_was_cut_short_comes_to_the_same_when_gone_on_with(
    place: Path, cut_short: Path, tmp_path: Path
) -> None:
    import torch

    from training.verifier import Verifier

    train_in_small_batches(place, tmp_path / "whole")
    assert not (cut_short / "training.json").exists()
    (cut_short / "model.safetensors").write_bytes(b"killed while this was writ")
    train_in_small_batches(place, cut_short, "--resume")
    whole, gone_on = (Verifier.load(folder).state_dict() for folder in (tmp_path / "whole", cut_short))
    assert all(torch.allclose(tensor, gone_on[name], atol=1e-6) for name, tensor in whole.items())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--precision", "bfloat16"),
            "precision was 'float32' in the run that was cut short and is 'bfloat16'",
        ),
        (("--seed", 7), "seed was "),
        (("--pairs", 50), "pairs was 60 in the run that was cut short and is 50"),
        (("--batch-tokens", 512), "batch_tokens was 256 in the run that was cut short and is 512"),
    ],
)
def test_a_training_is_not_gone_on_with_in_another_way(
    place: Path,
    cut_short: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[object, ...],
    said: str,
) -> None:
    with pytest.raises(SystemExit):
        train_in_small_batches(place, cut_short, "--resume", *words)
    assert f"train: {cut_short / 'progress.pt'}: {said}" in capsys.readouterr().err


def test_the_claims_tokens_are_those_between_the_first_two_marks() -> None:
    import torch

    from training.verifier import claim_mask

    attended = torch.tensor([[1, 1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0, 0]])
    types = torch.tensor([[0, 0, 0, 0, 1, 1, 0], [0, 0, 1, 1, 1, 1, 1], [0, 1, 1, 0, 0, 0, 0]])
    assert claim_mask(attended, types).tolist() == [
        [0, 1, 1, 0, 0, 0, 0],  # [CLS] a b [SEP] c [SEP] pad
        [0, 0, 0, 0, 0, 0, 0],  # [CLS] [SEP] …: an empty claim
        [0, 0, 0, 0, 0, 0, 0],
    ]


def test_twins_share_a_batch_and_the_loss_falls_as_they_are_told_apart(place: Path) -> None:
    import torch
    from tokenizers import Tokenizer

    from training.pairs import TrainingPair
    from training.trainer import batches, loss_of

    pairs = [
        TrainingPair(
            "d", "MIT", f"{who} won {'again and ' * (n % 7)}once.", "Oslo won.", right, None, None, n
        )
        for n in range(30)
        for who, right in (("Porto", False), ("Oslo", True))
    ]
    tokenizer = Tokenizer.from_file(str(place / "base" / "tokenizer.json"))
    made = list(batches(pairs, tokenizer, batch_tokens=128, max_tokens=64, seed=1))
    assert len(made) > 3
    assert sum(len(batch.twins) for batch in made) == 30
    batch = made[0]
    assert batch.targets[batch.twins[:, 0], 0].tolist() == [1.0] * len(batch.twins)
    assert batch.targets[batch.twins[:, 1], 0].tolist() == [0.0] * len(batch.twins)
    nothing = torch.zeros_like(batch.tokens)
    undecided, apart = torch.zeros(len(batch.targets), 2), torch.zeros(len(batch.targets), 2)
    apart[batch.twins[:, 0], 0], apart[batch.twins[:, 1], 0] = 1.0, -1.0
    alone = dataclasses.replace(batch, twins=batch.twins[:0])
    assert loss_of(undecided, nothing, batch) > loss_of(undecided, nothing, alone)
    gained = loss_of(undecided, nothing, batch) - loss_of(apart, nothing, batch)
    assert gained > loss_of(undecided, nothing, alone) - loss_of(apart, nothing, alone)


def test_what_is_remembered_moves_the_targets_of_all_pairs_but_twins(place: Path) -> None:
    import torch
    from tokenizers import Tokenizer

    from training.pairs import TrainingPair
    from training.trainer import batches, remembered
    from training.verifier import Verifier

    pairs = [
        TrainingPair("d", "MIT", "Oslo won.", "Oslo won.", True, None, None, 1),
        TrainingPair("d", "MIT", "Porto won.", "Oslo won.", False, True, None, 1),
        TrainingPair("d", "MIT", "Oslo lost.", "Oslo won.", False, None, None),
        TrainingPair("d", "MIT", "Oslo won again.", "Oslo won.", False, False, None),
    ]
    tokenizer = Tokenizer.from_file(str(place / "base" / "tokenizer.json"))
    (batch,) = batches(pairs, tokenizer, batch_tokens=128, max_tokens=64, seed=1)
    memory = Verifier.load(place / "work" / "checkpoint").eval()
    with torch.inference_mode():
        said = torch.sigmoid(memory(**batch.inputs)[0])
    targets = remembered(batch, memory).targets
    twins = batch.twins[0].tolist()
    assert torch.equal(targets[twins], batch.targets[twins])
    for row, pair in enumerate(pairs):
        if pair.twin is None:
            label = torch.tensor(
                [0.0, said[row, 1].item() if pair.contradicted is None else float(pair.contradicted)]
            )
            assert torch.allclose(targets[row], (label + said[row]) / 2, atol=1e-5)


def test_the_judge_reads_what_was_trained(exported: Path, place: Path) -> None:
    import torch
    from tokenizers import Tokenizer

    from training.encoding import encode
    from training.verifier import Verifier

    trained = Verifier.load(place / "work" / "checkpoint", attention="eager").eval()
    tokenizer = Tokenizer.from_str(trained.tokenizer_json)
    for (claim, premise), reading in zip(PAIRS, load_verifier(exported).score(PAIRS), strict=True):
        arrays = encode(tokenizer, [(claim, premise)], 256)
        with torch.inference_mode():
            logits, tokens = trained(**{name: torch.from_numpy(array) for name, array in arrays.items()})
        support, contradiction = torch.sigmoid(logits)[0].tolist()
        # Seven bits of weights: probabilities within five points.
        assert reading.support == pytest.approx(support, abs=0.05)
        assert reading.contradiction == pytest.approx(contradiction, abs=0.05)
        expected = torch.sigmoid(tokens)[0, 1 : 1 + len(reading.tokens)].tolist()
        assert [p for _, _, p in reading.tokens] == pytest.approx(expected, abs=0.08)


def test_the_folder_says_what_it_is(exported: Path) -> None:
    manifest = json.loads((exported / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["name"], manifest["version"], manifest["max_tokens"]) == ("tiny-1", 1, 256)
    assert manifest["bytes"] == sum((exported / n).stat().st_size for n in ("model.onnx", "tokenizer.json"))
    card = (exported / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "| conjnli | MIT |" in card
    assert "float32 graph against torch" in card
    assert "## Limits" in card


def test_positions_that_no_pair_reaches_are_left_out(place: Path) -> None:
    import torch
    from transformers import BertConfig

    from training.verifier import MAX_TOKENS, Verifier

    tokenizer = (place / "base" / "tokenizer.json").read_text(encoding="utf-8")
    config = BertConfig(
        vocab_size=40, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=MAX_TOKENS + 9,
    )  # fmt: skip
    model = Verifier(config, tokenizer, attention="eager").eval()
    ids = torch.randint(5, 40, (1, MAX_TOKENS))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": ids % 2}
    before = model(**inputs)[0]
    for _ in range(2):
        model.cut_positions()
        assert torch.equal(model(**inputs)[0], before)
        assert model.encoder.embeddings.position_embeddings.num_embeddings == MAX_TOKENS
        assert model.config.max_position_embeddings == MAX_TOKENS


def test_words_are_looked_up_as_exactly_with_one_scale_each(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import onnx

    from training import onnx_graph
    from training.parity import Pair, compare, onnx_form
    from training.verifier import Verifier

    monkeypatch.setattr(onnx_graph, "_LARGE", 1000)
    trained = Verifier.load(place / "work" / "checkpoint", attention="eager")
    onnx_graph.write_float(trained, tmp_path / "float.onnx")
    onnx_graph.write_int8(tmp_path / "float.onnx", tmp_path / "int8.onnx", reduce_range=True)
    tables = {i.name: i.data_type for i in onnx.load(tmp_path / "int8.onnx").graph.initializer}
    assert onnx.TensorProto.INT8 in {tables[name] for name in tables if name.endswith("_int8")}
    tokenizer = load_tokenizer(trained)
    pairs = [Pair(claim, premise) for claim, premise in PAIRS]
    forms = onnx_form(tmp_path / "float.onnx"), onnx_form(tmp_path / "int8.onnx")
    assert compare(*forms, tokenizer, pairs, 256).probability_mean < 0.03


def load_tokenizer(trained: Any) -> Any:
    from tokenizers import Tokenizer

    return Tokenizer.from_str(trained.tokenizer_json)


def test_what_may_not_be_shipped_is_not_exported(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(place / "work" / "checkpoint", checkpoint)
    described = json.loads((checkpoint / "training.json").read_text(encoding="utf-8"))
    described["datasets"]["lingnli"] = {"pairs": 10, "licence": "not stated"}
    (checkpoint / "training.json").write_text(json.dumps(described), encoding="utf-8")
    with pytest.raises(SystemExit):
        run("export", "--checkpoint", checkpoint, "--work", place / "work", "--out", tmp_path / "out")
    assert "lingnli" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_calibrated_and_measured_beside_baselines(
    exported: Path, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks import offline_sets

    run(
        "calibrate", "--data", place / "data", "--work", place / "work", "--verifier", exported, "--rows", 100
    )
    assert load_parameters(exported).verifier.name == "tiny-1"
    config, told = tmp_path / "judge.yaml", tmp_path / "told.json"
    config.write_text(
        json.dumps({"judge": {"local": {"verifier": {"path": str(exported)}}}}),
        encoding="utf-8",
    )
    words = ["--data", place / "data", "--config", config, "--baselines", "--json", told, "--rows", 10]
    monkeypatch.setattr(sys, "argv", ["offline_sets", *map(str, words)])
    offline_sets.main()
    assert list(json.loads(told.read_text(encoding="utf-8"))["baselines"]) == [
        "words and figures alone",
        "verifier alone",
    ]
