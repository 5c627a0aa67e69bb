"""A BERT published as ONNX in float32 -> the folder of a base model, which ``training.train --base`` takes.

    python -m training.base_from_onnx --onnx MODEL.onnx --tokenizer TOKENIZER.json --out FOLDER [--heads N]

For where no model hub can be reached: packages carry the same weights in this form (docs/training.md, The
base). The folder is written only where torch says of it, within 1e-4, what onnxruntime says of the file.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from training.examples import DataError
from training.steps import running

TOLERANCE: Final = 1e-4  # of hidden states, which lie within about ten of nought
_NAMED: Final = re.compile(r"(?:bert\.)?((?:embeddings|encoder)\..+)")
_PRODUCT: Final = re.compile(r"(?:/bert)?/encoder/layer\.(\d+)/(.+)/MatMul")
_POSITIONS: Final = "embeddings.position_ids"
_IDS: Final = ((5, 9, 7, 3, 11, 8), (12, 4, 6, 10, 0, 0))
_ATTENDED: Final = ((1, 1, 1, 1, 1, 1), (1, 1, 1, 1, 0, 0))


def base_from_onnx(model: Path, tokenizer: Path, out: Path, *, heads: int) -> None:
    """Write the folder. Raises DataError that says what of the graph is not of a BERT."""
    import onnx
    import torch
    from onnx import numpy_helper
    from transformers import BertConfig, BertModel

    for path in (model, tokenizer):
        if not path.is_file():
            raise DataError(f"{path}: missing; name the file")
    try:
        graph = onnx.load(model).graph
        stored = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
        for node in graph.node:  # tensors that are alike are stored once
            if node.op_type == "Identity" and node.input[0] in stored:
                stored[node.output[0]] = stored[node.input[0]]
        tensors = dict(_tensors(graph, stored))
        config = BertConfig(**_shape(tensors), num_attention_heads=heads, hidden_act="gelu", pad_token_id=0)
        bert = BertModel(config, add_pooling_layer=False).eval()
        bert.load_state_dict({name: torch.from_numpy(values.copy()) for name, values in tensors.items()})
        apart = _difference(bert, model)
    except Exception as error:  # protobuf's, torch's and onnxruntime's have no base in common
        what = " ".join(str(error).split())[:200]
        raise DataError(
            f"{model}: no BERT in float32 ({type(error).__name__}: {what}); name a file that was exported "
            "from transformers' BertModel and not quantised, and its --heads"
        ) from error
    if not apart <= TOLERANCE:
        raise DataError(
            f"{model}: read as a BERT of {heads} heads it says something else (hidden states {apart:.2g} "
            f"apart, at most {TOLERANCE:g}); give the --heads of its config.json"
        )
    out.mkdir(parents=True, exist_ok=True)
    bert.save_pretrained(out)
    shutil.copyfile(tokenizer, out / "tokenizer.json")


def _tensors(graph: Any, stored: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names and values of BertModel's state. Exporters keep the names of all but the factors of products."""
    for name, values in stored.items():
        if (found := _NAMED.fullmatch(name)) and found[1] != _POSITIONS:
            yield found[1], values
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in stored and (found := _PRODUCT.fullmatch(node.name)):
            yield f"encoder.layer.{found[1]}.{found[2].replace('/', '.')}.weight", stored[node.input[1]].T


def _shape(tensors: Mapping[str, Any]) -> dict[str, Any]:
    words = tensors["embeddings.word_embeddings.weight"]
    layers = {name.split(".")[2] for name in tensors if name.startswith("encoder.layer.")}
    return {
        "vocab_size": words.shape[0],
        "hidden_size": words.shape[1],
        "num_hidden_layers": len(layers),
        "intermediate_size": tensors["encoder.layer.0.intermediate.dense.bias"].shape[0],
        "max_position_embeddings": tensors["embeddings.position_embeddings.weight"].shape[0],
        "type_vocab_size": tensors["embeddings.token_type_embeddings.weight"].shape[0],
    }


def _difference(bert: Any, model: Path) -> float:
    """The most that a hidden state of an attended token differs by."""
    import numpy as np
    import onnxruntime
    import torch

    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    inputs = {"input_ids": np.array(_IDS), "attention_mask": np.array(_ATTENDED)}
    inputs["token_type_ids"] = np.array([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 0, 0]])
    taken = {each.name for each in session.get_inputs()}
    (theirs, *_) = session.run(None, {name: ids for name, ids in inputs.items() if name in taken})
    with torch.inference_mode():
        ours = bert(**{name: torch.from_numpy(ids) for name, ids in inputs.items()}).last_hidden_state
    attended = inputs["attention_mask"].astype(bool)
    return float(np.abs(ours.numpy() - theirs)[attended].max())


def main() -> None:
    """Run the step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--onnx", type=Path, required=True, help="the model in float32")
    parser.add_argument("--tokenizer", type=Path, required=True, help="its tokenizer.json")
    parser.add_argument("--heads", type=int, default=12, help="of its config.json; default: 12")
    parser.add_argument("--out", type=Path, required=True, help="folder of the base, written over")
    options = parser.parse_args()
    with running(parser, "base_from_onnx"):
        base_from_onnx(options.onnx, options.tokenizer, options.out, heads=options.heads)
        shown = json.loads((options.out / "config.json").read_text(encoding="utf-8"))
        print(f"{options.out}: {shown['num_hidden_layers']} layers of width {shown['hidden_size']}")


if __name__ == "__main__":
    main()
