"""A verifier made where it is needed: a graph that counts words, and the folder it is shipped in.

It supports a claim as far as the claim's words stand in the premise (two of them suffice), reads a
contradiction where the premise has ``not``, and calls each token unsupported that isn't in the premise.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from guardrail.judges.local.combiner import Combiner, Fit, Lines, Parameters
from guardrail.judges.model import FittedVerifier, Manifest
from tests.unit.judges.model.tiny import SPECIAL, VOCABULARY, write_tokenizer

WORDS_THAT_COUNT = ("alpha", "beta", "gamma", "delta", "sky", "blue", "red", "costs", "29", "49")


def graph(outputs: tuple[str, str] = ("logits", "token_logits")) -> onnx.ModelProto:
    """``logits [B, 2]`` and ``token_logits [B, T]`` under these names."""
    size = len(VOCABULARY)
    weights = np.zeros((size, 1), dtype=np.float32)
    weights[[VOCABULARY[word] for word in WORDS_THAT_COUNT]] = 4.0
    denial = np.zeros((size, 1), dtype=np.float32)
    denial[VOCABULARY["not"]] = 9.0
    constants: dict[str, Any] = {
        "size": np.array(size, dtype=np.int64),
        "off_on": np.array([0.0, 1.0], dtype=np.float32),
        "axis_tokens": np.array([1], dtype=np.int64),
        "axis_last": np.array([2], dtype=np.int64),
        "one": np.array(1.0, dtype=np.float32),
        "weights": weights,
        "denial": denial,
        "support_bias": np.array([-6.0], dtype=np.float32),
        "denial_bias": np.array([-4.0], dtype=np.float32),
        "six": np.array(6.0, dtype=np.float32),
        "twelve": np.array(12.0, dtype=np.float32),
    }
    make = helper.make_node
    nodes = [
        make("OneHot", ["input_ids", "size", "off_on"], ["words"], axis=-1),
        make("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        make("Cast", ["token_type_ids"], ["second"], to=TensorProto.FLOAT),
        make("Mul", ["mask", "second"], ["in_premise"]),
        make("Sub", ["mask", "in_premise"], ["in_claim"]),
        make("Unsqueeze", ["in_premise", "axis_last"], ["premise3"]),
        make("Unsqueeze", ["in_claim", "axis_last"], ["claim3"]),
        make("Mul", ["words", "premise3"], ["premise_words"]),
        make("Mul", ["words", "claim3"], ["claim_words"]),
        make("ReduceSum", ["premise_words", "axis_tokens"], ["premise_counts"], keepdims=0),
        make("ReduceSum", ["claim_words", "axis_tokens"], ["claim_counts"], keepdims=0),
        make("Min", ["premise_counts", "one"], ["premise_has"]),
        make("Min", ["claim_counts", "one"], ["claim_has"]),
        make("Mul", ["premise_has", "claim_has"], ["shared"]),
        make("MatMul", ["shared", "weights"], ["support_raw"]),
        make("Add", ["support_raw", "support_bias"], ["support"]),
        make("MatMul", ["premise_has", "denial"], ["denial_raw"]),
        make("Add", ["denial_raw", "denial_bias"], ["contradiction"]),
        make("Concat", ["support", "contradiction"], [outputs[0]], axis=1),
        make("Unsqueeze", ["premise_has", "axis_last"], ["premise_has3"]),
        make("MatMul", ["words", "premise_has3"], ["found3"]),
        make("Squeeze", ["found3", "axis_last"], ["found"]),
        make("Mul", ["found", "twelve"], ["found12"]),
        make("Sub", ["six", "found12"], [outputs[1]]),
    ]
    made = helper.make_graph(
        nodes,
        "tiny",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["B", "T"])
            for name in ("input_ids", "attention_mask", "token_type_ids")
        ],
        [
            helper.make_tensor_value_info(outputs[0], TensorProto.FLOAT, ["B", 2]),
            helper.make_tensor_value_info(outputs[1], TensorProto.FLOAT, ["B", "T"]),
        ],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.checker.check_model(model)
    return model


def write_verifier(folder: Path, *, model: onnx.ModelProto | None = None, **manifest: Any) -> Path:
    """The folder of a verifier, its manifest right but for what is given."""
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model or graph(), str(folder / "model.onnx"))
    write_tokenizer(folder)
    sums = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in ("model.onnx", "tokenizer.json")
    }
    written = {
        "version": 1,
        "name": "tiny",
        "max_tokens": 64,
        "sha256": sums,
        "made_by": "a test",
        **manifest,
    }
    (folder / "manifest.json").write_text(json.dumps(written), encoding="utf-8")
    return folder


def parameters_for(folder: Path, *, sha256: str | None = None, **lines: float) -> Parameters:
    """Parameters that go by the verifier of ``folder`` alone, and without it by the claim's words.

    Two words that count make a claim supported with 0.98, one with 0.02; ``not`` in what is read makes it
    contradicted with 0.87 where it isn't supported.
    """
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    drawn = Lines(
        **{"supported": 0.5, "partially": 0.2, "contradicted": 0.5, "sure": 0.9, "hopeless": 0.005} | lines
    )
    read = {"support": (2.0, 0.0, 0.0, 0.0), "contradiction": (0.0, 0.0, 0.0, 1.0)}
    return Parameters(
        version=2,
        provenance={},
        verifier=FittedVerifier(
            name=manifest["name"], sha256=sha256 or Manifest.model_validate(manifest).checksum
        ),
        read=Fit(combiner=Combiner(biases=(0.0, -2.0, 0.0, -3.0), weights=read), lines=drawn),
        words=Fit(
            combiner=Combiner(biases=(-3.0, -2.0, 0.0, -6.0), weights={"share": (6.0, 3.0, 0.0, 0.0)}),
            lines=drawn,
        ),
    )


def write_parameters(folder: Path, parameters: Parameters) -> None:
    """The parameters as the file of a verifier's folder."""
    (folder / "parameters.json").write_text(parameters.model_dump_json(), encoding="utf-8")


__all__ = ["SPECIAL", "VOCABULARY", "graph", "parameters_for", "write_parameters", "write_verifier"]
