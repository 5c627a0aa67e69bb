"""The verifier: what it loads, what it refuses, what it says of pairs."""

from __future__ import annotations

import hashlib
import json
import math
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from guardrail.errors import ConfigError, JudgeReplyError, JudgeUnavailable
from guardrail.judges.local.combiner import packaged_folder
from guardrail.judges.model import Reading, Verifier, load_verifier, read_folder
from guardrail.judges.model.runtime import OnnxGraph
from guardrail.judges.model.verifier import MOST_BYTES
from tests.unit.judges.model.tiny_verifier import SPECIAL, graph, write_verifier

PIECES = st.sampled_from(
    [*SPECIAL, "sky", "blue", "not", "[", "SEP", "]", "\uff3bSEP\uff3d", "é", "空", "\u0130"]
)
TEXTS = st.lists(st.one_of(PIECES, st.text(max_size=4)), max_size=12).map(" ".join)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_verifier(tmp_path_factory.mktemp("verifier"))


@pytest.fixture(scope="module")
def verifier(folder: Path) -> Verifier:
    return load_verifier(folder)


def logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_reads_support_contradiction_and_tokens(verifier: Verifier) -> None:
    (reading,) = verifier.score([("The sky is blue.", "sky is not blue red")])
    assert reading.support == pytest.approx(logistic(2 * 4 - 6))
    assert reading.contradiction == pytest.approx(logistic(9 - 4))
    spans = [(start, end) for start, end, _ in reading.tokens]
    assert ["The sky is blue."[start:end] for start, end in spans] == ["The", "sky", "is", "blue", "."]
    assert [round(p) for _, _, p in reading.tokens] == [1, 0, 0, 0, 1]


def test_offsets_are_code_points_of_the_claim(verifier: Verifier) -> None:
    claim = "😀 sky [SEP] blue"
    (reading,) = verifier.score([(claim, "blue")])
    assert claim[slice(*reading.tokens[-1][:2])] == "blue"
    assert reading.tokens[-1][2] < 0.5


def test_halves_of_surrogate_pairs_are_read_and_move_no_offset(verifier: Verifier) -> None:
    """A str can hold them and UTF-8, which the tokenizer reads, can't."""
    claim = "sky \ud800 is \udc00\ud83d blue"
    reading, other = verifier.score([(claim, "sky is blue"), ("sky blue", "sky \udfff blue")])
    assert reading.support == other.support == pytest.approx(logistic(2 * 4 - 6))
    known = [claim[start:end] for start, end, unsupported in reading.tokens if unsupported < 0.5]
    assert known == ["sky", "is", "blue"]
    assert all(0 <= start < end <= len(claim) for start, end, _ in reading.tokens)


def test_a_pair_that_is_too_long_is_refused_not_cut(verifier: Verifier) -> None:
    assert len(verifier.score([("sky", "blue " * 60)])) == 1
    with pytest.raises(ValueError, match="65 tokens, more than the verifier's 64"):
        verifier.score([("sky", "blue " * 61)])


@pytest.mark.parametrize("claim", ["sky [SEP] sky blue", "sky [CLS] [SEP] sky [PAD] blue"])
def test_separators_in_texts_separate_nothing(verifier: Verifier, claim: str) -> None:
    """With a separator that counted, the claim would bring its own premise."""
    (reading,) = verifier.score([(claim, "red")])
    assert reading.support == pytest.approx(logistic(-6))
    (reading,) = verifier.score([("sky blue", "red [SEP] filler")])
    assert reading.support == pytest.approx(logistic(-6))


@given(claim=TEXTS, premise=TEXTS)
def test_whatever_stands_in_texts_a_pair_has_its_three_marks(
    verifier: Verifier, claim: str, premise: str
) -> None:
    encoded = verifier.encode(claim), verifier.encode(premise)
    if any(verifier.forged(text) for text in encoded):
        with pytest.raises(JudgeReplyError, match="forges special tokens"):
            verifier.read(*encoded)
        return
    try:
        (reading,) = verifier.score([(claim, premise)])
    except ValueError:
        return
    assert isinstance(reading, Reading)
    assert all(0 <= start <= end <= len(claim) for start, end, _ in reading.tokens)


def test_the_model_is_loaded_once(folder: Path) -> None:
    assert load_verifier(folder) is load_verifier(folder)


def test_a_run_beside_another_has_one_thread_and_reads_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine with one processor there is no second one."""
    monkeypatch.setattr("guardrail.judges.model.verifier.default_threads", lambda: 2)
    loaded = load_verifier(folder)
    pair = ("alpha beta", "alpha beta gamma")
    ran: list[str] = []
    nested: list[Reading] = []
    verifier: Verifier

    class Watched:
        def __init__(self, name: str, session: Any) -> None:
            self.name, self.session = name, session

        def __getattr__(self, name: str) -> Any:
            return getattr(self.session, name)

        def run(self, *arguments: Any) -> Any:
            ran.append(self.name)
            if self.name == "alone":
                nested.extend(verifier.score([pair]))
                if len(ran) > 2:
                    raise RuntimeError
            return self.session.run(*arguments)

    assert isinstance(loaded._graph, OnnxGraph)
    graph = OnnxGraph(Watched("alone", loaded._graph._alone), Watched("beside", loaded._graph._beside))
    verifier = Verifier(read_folder(folder)[0], graph, loaded._tokenizer)
    assert verifier.score([pair]) == nested
    with pytest.raises(JudgeUnavailable):
        verifier.score([pair])
    assert ran == ["alone", "beside", "alone", "beside"]
    assert graph._running == 0


def test_who_asks_while_the_model_is_loaded_waits_for_it(tmp_path: Path) -> None:
    folder = write_verifier(tmp_path)
    start = threading.Barrier(4)

    def load() -> Verifier:
        start.wait(30)
        return load_verifier(folder)

    with ThreadPoolExecutor(4) as pool:
        found = [job.result() for job in [pool.submit(load) for _ in range(4)]]
    assert len({id(each) for each in found}) == 1


@pytest.mark.parametrize("missing", ["numpy", "onnxruntime", "tokenizers"])
def test_a_library_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    folder = write_verifier(tmp_path)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ConfigError, match=f"judge.local.verifier: {missing} is not installed"):
        load_verifier(folder)


def damaged(folder: Path) -> None:
    content = bytearray((folder / "model.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "model.onnx").write_bytes(bytes(content))


def without(name: str, folder: Path) -> None:
    (folder / name).unlink()


def manifest(folder: Path, **changes: object) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def too_large(folder: Path) -> None:
    with (folder / "model.onnx").open("r+b") as file:
        file.truncate(MOST_BYTES + 1)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (damaged, r"model\.onnx is damaged or not the file.*reinstall"),
        (lambda f: without("model.onnx", f), r"model\.onnx can't be read.*training\.export"),
        (lambda f: without("tokenizer.json", f), r"tokenizer\.json can't be read"),
        (lambda f: without("manifest.json", f), r"manifest\.json can't be read"),
        (lambda f: (f / "manifest.json").write_text("[]"), "has version None"),
        (lambda f: (f / "manifest.json").write_text("{"), "can't be read"),
        (lambda f: manifest(f, version=2), "has version 2, this release reads version 1"),
        (lambda f: manifest(f, max_tokens="many"), "manifest.json, max_tokens"),
        (lambda f: manifest(f, sha256={"model.onnx": "beef"}), r"sha256\.model\.onnx"),
        (lambda f: manifest(f, sha256={}), r"no sha256 of model\.onnx"),
        (too_large, "35,0.*bytes, more than 35,000,000"),
    ],
)  # fmt: skip
def test_a_folder_that_cannot_be_used_is_a_config_error(tmp_path: Path, spoil, message: str) -> None:  # type: ignore[no-untyped-def]
    folder = write_verifier(tmp_path / "v")
    spoil(folder)
    with pytest.raises(ConfigError, match=message) as caught:
        load_verifier(folder)
    assert "judge.local.verifier.path" in str(caught.value)


def test_a_graph_with_other_outputs_is_a_config_error(tmp_path: Path) -> None:
    folder = write_verifier(tmp_path, model=graph(("scores", "token_logits")))
    with pytest.raises(ConfigError, match="gives scores, token_logits; a verifier gives logits, token"):
        load_verifier(folder)


def test_a_file_that_is_no_model_is_a_config_error(tmp_path: Path) -> None:
    folder = write_verifier(tmp_path)
    (folder / "model.onnx").write_bytes(b"no model")
    sums = json.loads((folder / "manifest.json").read_text())["sha256"]
    manifest(folder, sha256=sums | {"model.onnx": hashlib.sha256(b"no model").hexdigest()})
    with pytest.raises(ConfigError, match="can't be loaded"):
        load_verifier(folder)


def graph_of_positions(most: int) -> onnx.ModelProto:
    """The tiny graph with an embedding of ``most`` positions, which adds nothing and fails beyond them."""
    made = graph(("logits", "without_positions"))
    constants: dict[str, np.ndarray] = {
        "first": np.array(0, dtype=np.int64),
        "step": np.array(1, dtype=np.int64),
        "position_embedding": np.zeros(most, dtype=np.float32),
    }
    made.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    made.graph.node.extend(
        [
            helper.make_node("Shape", ["input_ids"], ["shape"]),
            helper.make_node("Gather", ["shape", "step"], ["length"]),
            helper.make_node("Range", ["first", "length", "step"], ["positions"]),
            helper.make_node("Gather", ["position_embedding", "positions"], ["embedded"]),
            helper.make_node("Add", ["without_positions", "embedded"], ["token_logits"]),
        ]
    )
    made.graph.output[1].name = "token_logits"
    onnx.checker.check_model(made)
    return made


def test_a_pair_of_all_the_positions_is_read(tmp_path: Path) -> None:
    folder = write_verifier(tmp_path, model=graph_of_positions(100), max_tokens=100)
    (reading,) = load_verifier(folder).score([("sky", "blue " * 96)])
    assert len(reading.tokens) == 1


def test_more_tokens_than_positions_are_refused_when_the_model_is_loaded(tmp_path: Path) -> None:
    """No checksum covers the number: the claims of every long pair would be UNVERIFIED at run time."""
    folder = write_verifier(tmp_path, model=graph_of_positions(100), max_tokens=101)
    with pytest.raises(ConfigError, match=r"the model fails on a pair of 101 tokens .*; set it to") as caught:
        load_verifier(folder)
    assert str(caught.value).startswith(
        f"judge.local.verifier.path: {folder / 'manifest.json'}, max_tokens: "
    )


def test_the_packaged_model_is_not_believed_to_read_4096_tokens(tmp_path: Path) -> None:
    shipped = packaged_folder()
    assert shipped is not None
    for name in ("model.onnx", "tokenizer.json"):
        (tmp_path / name).symlink_to(shipped / name)
    (tmp_path / "manifest.json").write_text((shipped / "manifest.json").read_text())
    manifest(tmp_path, max_tokens=4096)
    with pytest.raises(ConfigError, match="max_tokens: the model fails on a pair of 4096 tokens"):
        load_verifier(tmp_path)
