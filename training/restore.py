"""The folder of an exported verifier -> a checkpoint that training can go on from.

    python -m training.restore --verifier FOLDER --out WORK/restored     # FOLDER: default, the shipped one

What int8 rounded away does not come back: the checkpoint says what the exported verifier says, but for the
rounding of activations, and training on heals the rest. That is enough to train the shipped verifier on texts
of one's own (``training.train --start-from``). What it was trained on is taken from the ``training.json``
that ``export`` writes beside the model.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from guardrail.errors import ConfigError
from guardrail.judges.local.combiner import packaged_folder
from guardrail.judges.model import read_folder
from guardrail.judges.model.runtime import TOKENIZER
from guardrail.judges.model.verifier import MANIFEST, MODEL
from training.checkpoint import DESCRIPTION, described_in
from training.examples import DataError
from training.steps import running

_LAYER: Final = re.compile(r"/encoder/encoder/layer\.(\d+)/(attention/output|intermediate|output)/dense/")
_HEAD: Final = re.compile(r"/(dense|out|tokens)/")
_AS_IT_IS: Final = re.compile(r"encoder\.|(?:dense|out|tokens)\.bias$")
_SUFFIX: Final = "_quantized"


def restore(verifier: Path, out: Path) -> None:
    """Write the checkpoint. Raises DataError that names the file and what is missing in it."""
    import onnx
    import torch
    from transformers import BertConfig

    from training.verifier import Verifier

    for name in (MODEL, TOKENIZER, MANIFEST, DESCRIPTION):
        if not (verifier / name).is_file():
            raise DataError(f"{verifier / name}: missing; name a folder that training.export wrote")
    try:
        manifest, model, tokenizer = read_folder(verifier)
    except ConfigError as error:
        raise DataError(f"--verifier: {str(error).partition(': ')[2]}") from error
    described = described_in(verifier) | {"weights": f"restored from those of {manifest.name} in int8"}
    try:
        graph = onnx.load_from_string(model).graph
        tensors = dict(_tensors(graph))
        config = BertConfig(**_shape(graph, tensors), hidden_act="gelu", pad_token_id=0)
        config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
        made = Verifier(config, tokenizer.decode("utf-8"))
        made.load_state_dict({name: torch.from_numpy(values.copy()) for name, values in tensors.items()})
    except Exception as error:  # protobuf's and torch's have no base in common
        what = " ".join(str(error).split())[:200]
        raise DataError(
            f"{verifier / MODEL}: no graph of training.export ({type(error).__name__}: {what}); name a "
            "folder that it wrote"
        ) from error
    made.save(out)
    (out / DESCRIPTION).write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")


def _tensors(graph: Any) -> Iterator[tuple[str, Any]]:
    """Names and float32 values of the state of ``training.verifier.Verifier``."""
    import numpy as np
    from onnx import numpy_helper

    stored = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    for name, values in stored.items():
        if name.endswith("_int8"):
            yield name.removesuffix("_int8"), _float(values, stored[name.removesuffix("int8") + "scale"])
        elif _AS_IT_IS.match(name) and not name.endswith("_scale"):
            yield name, values
    attention = 0
    for node in graph.node:
        if node.op_type in {"QAttention", "Attention"}:
            weight = _weight(stored, node.input[1])
            for kind, part, bias in zip(
                ("query", "key", "value"),
                np.split(weight, 3, axis=1),
                np.split(stored[node.input[2]], 3),
                strict=True,
            ):
                prefix = f"encoder.encoder.layer.{attention}.attention.self.{kind}"
                yield f"{prefix}.weight", part.T
                yield f"{prefix}.bias", bias
            attention += 1
        elif node.op_type in {"MatMulInteger", "MatMul"} and (name := _linear(node.name)):
            yield f"{name}.weight", _weight(stored, node.input[1]).T


def _linear(node: str) -> str | None:
    if found := _LAYER.match(node):
        return f"encoder.encoder.layer.{found[1]}.{found[2].replace('/', '.')}.dense"
    return found[1] if (found := _HEAD.match(node)) else None


def _weight(stored: Mapping[str, Any], name: str) -> Any:
    if not name.endswith(_SUFFIX):
        return stored[name]
    plain = name.removesuffix(_SUFFIX)
    zero = stored[f"{plain}_zero_point"].astype("int32")
    return _float(stored[name].astype("int32") - zero, stored[f"{plain}_scale"])


def _float(values: Any, scales: Any) -> Any:
    return values.astype("float32") * scales


def _shape(graph: Any, tensors: Mapping[str, Any]) -> dict[str, Any]:
    """What BertConfig has to know."""
    words = tensors["encoder.embeddings.word_embeddings.weight"]
    attentions = [node for node in graph.node if node.op_type in {"QAttention", "Attention"}]
    norms = [node for node in graph.node if node.op_type == "LayerNormalization"]
    heads = next(each.i for each in attentions[0].attribute if each.name == "num_heads")
    return {
        "vocab_size": words.shape[0],
        "hidden_size": words.shape[1],
        "num_hidden_layers": len(attentions),
        "num_attention_heads": heads,
        "intermediate_size": tensors["encoder.encoder.layer.0.intermediate.dense.bias"].shape[0],
        "max_position_embeddings": tensors["encoder.embeddings.position_embeddings.weight"].shape[0],
        "type_vocab_size": tensors["encoder.embeddings.token_type_embeddings.weight"].shape[0],
        "layer_norm_eps": next(each.f for each in norms[0].attribute if each.name == "epsilon"),
    }


def main() -> None:
    """Run the step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--verifier", type=Path, default=packaged_folder(), help="default: the shipped one")
    parser.add_argument("--out", type=Path, required=True, help="folder of the checkpoint, written over")
    options = parser.parse_args()
    with running(parser, "restore"):
        restore(options.verifier, options.out)
        print(f"{options.out}: restored from {options.verifier}; go on with training.train --start-from")


if __name__ == "__main__":
    main()
