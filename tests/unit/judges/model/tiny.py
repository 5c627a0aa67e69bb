"""Tiny models, made where they are needed: a tokenizer of whole words, and a graph that counts them.

The model supports a claim as far as the words of its hypothesis stand in the premise: every known word that
comes twice in a pair adds to the logit of support. It contradicts where ``not`` stands in the pair.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

_TEXT = "alpha beta gamma delta sky is blue red filler not . premise : hypothesis costs 29 49"
WORDS = _TEXT.split()
SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "</s>")
VOCABULARY = {word: number for number, word in enumerate((*SPECIAL, *WORDS))}


def write_tokenizer(folder: Path) -> None:
    """``tokenizer.json``: words and punctuation, ``[CLS] a [SEP] b [SEP]`` for pairs, cut off at 8 tokens.

    The cut and the padding are what published tokenizers come with; a judge must not obey them.
    """
    tokenizer = Tokenizer(models.WordLevel(VOCABULARY, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", VOCABULARY["[CLS]"]), ("[SEP]", VOCABULARY["[SEP]"])],
    )
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    tokenizer.save(str(folder / "tokenizer.json"))


def write_config(folder: Path, labels: Sequence[str] = (), **more: Any) -> None:
    config: dict[str, Any] = {"pad_token_id": 0, **more}
    if labels:
        config["id2label"] = {str(number): label for number, label in enumerate(labels)}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")


def _counting_graph(rows: np.ndarray, bias: np.ndarray, per_token: bool) -> onnx.ModelProto:
    """``logits = sum over words of max(0, count(word) - 1) * rows[word] + min(1, count) * rows2 + bias``."""
    size = len(VOCABULARY)
    twice, once = rows[0], rows[1]
    constants = [
        numpy_helper.from_array(np.array(size, dtype=np.int64), "size"),
        numpy_helper.from_array(np.array([0.0, 1.0], dtype=np.float32), "off_on"),
        numpy_helper.from_array(np.array([1], dtype=np.int64), "axis_tokens"),
        numpy_helper.from_array(np.array([2], dtype=np.int64), "axis_last"),
        numpy_helper.from_array(np.array(1.0, dtype=np.float32), "one"),
        numpy_helper.from_array(twice.astype(np.float32), "twice"),
        numpy_helper.from_array(once.astype(np.float32), "once"),
        numpy_helper.from_array(bias.astype(np.float32), "bias"),
    ]
    nodes = [
        helper.make_node("OneHot", ["input_ids", "size", "off_on"], ["words"], axis=-1),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "axis_last"], ["mask3"]),
        helper.make_node("Mul", ["words", "mask3"], ["seen"]),
        helper.make_node("ReduceSum", ["seen", "axis_tokens"], ["counts"], keepdims=0),
        helper.make_node("Sub", ["counts", "one"], ["extra"]),
        helper.make_node("Relu", ["extra"], ["repeated"]),
        helper.make_node("Min", ["counts", "one"], ["present"]),
        helper.make_node("MatMul", ["repeated", "twice"], ["by_twice"]),
        helper.make_node("MatMul", ["present", "once"], ["by_once"]),
        helper.make_node("Add", ["by_twice", "by_once"], ["unbiased"]),
        helper.make_node("Add", ["unbiased", "bias"], ["rows" if per_token else "logits"]),
    ]
    shape: list[str | int] = ["batch", twice.shape[1]]
    if per_token:
        nodes.append(helper.make_node("Unsqueeze", ["rows", "axis_tokens"], ["logits"]))
        shape.insert(1, 1)
    graph = helper.make_graph(
        nodes,
        "tiny",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, shape)],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.checker.check_model(model)
    return model


def write_model(
    folder: Path,
    labels: Sequence[str] = ("contradiction", "neutral", "entailment"),
    *,
    per_token: bool = False,
    file: str = "onnx/model.onnx",
    name_labels: bool = True,
    max_tokens: int | None = None,
) -> Path:
    """A whole model in ``folder``. Two words in common make support likely, ``not`` a contradiction."""
    folder.mkdir(parents=True, exist_ok=True)
    twice = np.zeros((len(VOCABULARY), len(labels)))
    once = np.zeros_like(twice)
    bias = np.zeros(len(labels))
    support = len(labels) - 1
    for word in ("alpha", "beta", "gamma", "delta", "sky", "blue", "red", "costs", "29", "49"):
        twice[VOCABULARY[word], support] = 4.0
    bias[support] = -6.0
    if len(labels) == 3:
        once[VOCABULARY["not"], 0] = 9.0
        bias[0] = -4.0
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(_counting_graph(np.stack([twice, once]), bias, per_token), str(path))
    write_tokenizer(folder)
    more = {} if max_tokens is None else {"max_position_embeddings": max_tokens}
    write_config(folder, labels if name_labels else (), **more)
    return folder
