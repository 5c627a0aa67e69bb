"""The verifier's graph: torch -> ONNX in float32 -> fused -> int8.

What is quantised: the weights of the encoder's matrix products, 8 or 7 bits, one scale for each output
channel, activations as they come (dynamic); and the word embeddings, one scale for each word, which keeps
rare words as exact as common ones. The heads are small and stay in float32. Seven bits are for processors
whose 8-bit products saturate (AVX2 and AVX-512 without VNNI): see ``reduce_range``.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from training.verifier import Verifier

INPUTS: Final = ("input_ids", "attention_mask", "token_type_ids")
OUTPUTS: Final = ("logits", "token_logits")
_OPSET: Final = 17
_FUSED: Final = "com.microsoft"  # onnxruntime's own operators
_LARGE: Final = 500_000  # values; tables above are worth int8


def write_float(verifier: Verifier, path: Path) -> None:
    """The graph in float32, attention and normalisations fused; batch and length are free.

    ``verifier`` must have been loaded with ``attention="eager"``: only that form is found by the fusions,
    and a graph without them takes half as long again.
    """
    tokens = torch.tensor([[101, 7, 8, 102, 9, 10, 102, 0], [101, 7, 102, 8, 9, 10, 11, 102]]) % (
        verifier.config.vocab_size
    )
    attended = torch.tensor([[1, 1, 1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1, 1, 1]])
    types = torch.tensor([[0, 0, 0, 0, 1, 1, 1, 0], [0, 0, 0, 1, 1, 1, 1, 1]])
    axes = {name: {0: "batch", 1: "length"} for name in (*INPUTS, OUTPUTS[1])} | {OUTPUTS[0]: {0: "batch"}}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tracing exporter is deprecated; what it writes is compared
        plain = Path(folder) / "plain.onnx"
        torch.onnx.export(
            verifier.eval(), (tokens, attended, types), plain, input_names=list(INPUTS),
            output_names=list(OUTPUTS), dynamic_axes=axes, opset_version=_OPSET, dynamo=False,
        )  # fmt: skip
        fused = _fuse(plain, verifier)
    onnx.save(fused, path)


def write_int8(float_path: Path, path: Path, *, reduce_range: bool) -> None:
    """The graph of ``write_float`` in int8. ``reduce_range``: seven bits for the weights."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = onnx.load(float_path)
    tables = {initializer.name: initializer.dims for initializer in model.graph.initializer}
    heads = [
        node.name
        for node in model.graph.node
        if node.op_type == "MatMul" and any(list(tables.get(i, ()))[-1:] == [1] for i in node.input)
    ]
    level = logging.getLogger().level
    logging.getLogger().setLevel(logging.ERROR)  # it recommends a preparation that the fusions are
    try:
        quantize_dynamic(
            model, path, op_types_to_quantize=["MatMul", "Attention"], per_channel=True,
            reduce_range=reduce_range, weight_type=QuantType.QInt8, nodes_to_exclude=heads,
            extra_options={"MatMulConstBOnly": True, "DefaultTensorType": TensorProto.FLOAT},
        )  # fmt: skip
    finally:
        logging.getLogger().setLevel(level)
    model = onnx.load(path)
    _embeddings_to_int8(model.graph)
    _of_one_build(model)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def _fuse(path: Path, verifier: Verifier) -> Any:
    from onnxruntime.transformers.fusion_options import FusionOptions
    from onnxruntime.transformers.optimizer import optimize_model

    fusions = FusionOptions("bert")
    fusions.enable_embed_layer_norm = False  # its int8 form has one scale for all words
    fusions.enable_skip_layer_norm = False  # its kernel for processors is the slower one
    config = verifier.config
    optimised = optimize_model(
        str(path), model_type="bert", num_heads=config.num_attention_heads,
        hidden_size=config.hidden_size, optimization_options=fusions, opt_level=0, use_gpu=False,
    )  # fmt: skip
    found = sum(node.op_type == "Attention" for node in optimised.model.graph.node)
    if found != config.num_hidden_layers:
        print(f"only {found} of {config.num_hidden_layers} attentions could be fused: it will be slow")
    optimised.topological_sort()
    model = optimised.model
    if not any(entry.domain == _FUSED for entry in model.opset_import):
        model.opset_import.append(helper.make_opsetid(_FUSED, 1))
    _of_one_build(model)
    return model


def _embeddings_to_int8(graph: Any) -> None:
    """Each large table that is only looked up: rows in int8, multiplied by a scale of their own."""
    for table in [t for t in graph.initializer if len(t.dims) == 2 and t.data_type == TensorProto.FLOAT]:
        readers = [node for node in graph.node if table.name in node.input]
        values = numpy_helper.to_array(table)
        if values.size < _LARGE or any(node.op_type != "Gather" for node in readers):
            continue
        scales = np.maximum(np.abs(values).max(axis=1, keepdims=True), 1e-12) / 127.0
        rows = np.rint(values / scales).astype(np.int8)
        name = table.name
        graph.initializer.remove(table)
        graph.initializer.extend(
            [
                numpy_helper.from_array(rows, f"{name}_int8"),
                numpy_helper.from_array(scales.astype(np.float32), f"{name}_scale"),
            ]
        )
        for node in readers:
            at = list(graph.node).index(node)
            looked_up, ids = node.output[0], node.input[1]
            graph.node.remove(node)
            made = [
                helper.make_node("Gather", [f"{name}_int8", ids], [f"{looked_up}_int8"]),
                helper.make_node("Cast", [f"{looked_up}_int8"], [f"{looked_up}_float"], to=TensorProto.FLOAT),
                helper.make_node("Gather", [f"{name}_scale", ids], [f"{looked_up}_scale"]),
                helper.make_node("Mul", [f"{looked_up}_float", f"{looked_up}_scale"], [looked_up]),
            ]
            for offset, new in enumerate(made):
                graph.node.insert(at + offset, new)


def _of_one_build(model: Any) -> None:
    """Nothing in the file but the graph: no paths, names of tools or times of this machine."""
    model.producer_name, model.producer_version, model.doc_string = "streaming-guardrail", "", ""
    del model.metadata_props[:]
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
