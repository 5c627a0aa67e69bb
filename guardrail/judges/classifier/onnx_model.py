"""Models in ONNX form, run by onnxruntime."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from guardrail.errors import ConfigError, JudgeReplyError
from guardrail.judges.classifier.files import missing_extra
from guardrail.judges.classifier.pairs import Tokens
from guardrail.judges.classifier.settings import ClassifierSettings

_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids", "decoder_input_ids"})


class OnnxModel:
    """An exported encoder with a head, or a whole encoder-decoder in one graph."""

    def __init__(self, path: Path, settings: ClassifierSettings, pad_id: int, section: str) -> None:
        """Raises ConfigError: no onnxruntime, no such device, or a file that is no such model."""
        try:
            import numpy as np
            import onnxruntime
        except ImportError:
            raise missing_extra("onnxruntime", "classifier", section) from None
        runtime: Any = onnxruntime
        self._np: Any = np
        self._pad_id = pad_id
        self.vocabulary_out = settings.architecture == "seq2seq"
        options = runtime.SessionOptions()
        options.log_severity_level = 3
        if settings.threads is not None:
            options.intra_op_num_threads = settings.threads
        providers = _providers(settings.device, runtime.get_available_providers(), section)
        try:
            self._session = runtime.InferenceSession(str(path), options, providers=providers)
        except Exception as error:  # noqa: BLE001 (the runtime's errors have no common root)
            raise ConfigError(
                f"{section}.onnx_file: {path} can't be loaded ({type(error).__name__}); export it again"
            ) from None
        self._inputs = {value.name for value in self._session.get_inputs()}
        unknown = self._inputs - _INPUTS
        if "input_ids" not in self._inputs or unknown:
            raise ConfigError(
                f"{section}.onnx_file: {path} takes {', '.join(sorted(self._inputs))}; a classifier of pairs "
                f"takes input_ids and at most {', '.join(sorted(_INPUTS - {'input_ids'}))}"
            )
        outputs = [value.name for value in self._session.get_outputs()]
        self._output = "logits" if "logits" in outputs else outputs[0]
        config = read_config(path.parent) or read_config(path.parent.parent)
        self.label_names: Sequence[str] = label_names(config)
        self._decoder_start = int(config.get("decoder_start_token_id") or 0)

    def logits(self, batch: Sequence[Tokens]) -> list[list[float]]:
        """A row for each pair; of a model with an output per token, that of the first token."""
        np = self._np
        longest = max(len(tokens) for tokens in batch)
        ids = np.full((len(batch), longest), self._pad_id, dtype=np.int64)
        mask = np.zeros_like(ids)
        types = np.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens.ids
            mask[row, : len(tokens)] = 1
            types[row, : len(tokens)] = tokens.type_ids
        feeds = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": types,
            "decoder_input_ids": np.full((len(batch), 1), self._decoder_start, dtype=np.int64),
        }
        (output,) = self._session.run(
            [self._output], {name: value for name, value in feeds.items() if name in self._inputs}
        )
        if output.ndim == 3:
            output = output[:, 0, :]
        if output.ndim != 2:
            raise JudgeReplyError(f"the model's output has {output.ndim} dimensions, not 2 or 3")
        rows: list[list[float]] = output.astype(np.float64).tolist()
        return rows


def read_config(folder: Path) -> dict[str, Any]:
    """The model's ``config.json``, empty where there is none that can be read."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}


def label_names(config: dict[str, Any]) -> list[str]:
    """The names of the labels by their index; empty where the configuration doesn't say."""
    names = config.get("id2label")
    if not isinstance(names, dict):
        return []
    try:
        by_index = {int(index): str(name) for index, name in names.items()}
    except ValueError:
        return []
    return (
        [by_index[index] for index in range(len(by_index))]
        if set(by_index) == set(range(len(by_index)))
        else []
    )


def _providers(device: str, available: Sequence[str], section: str) -> list[Any]:
    cuda = "CUDAExecutionProvider" in available
    if device == "cpu" or (device == "auto" and not cuda):
        return ["CPUExecutionProvider"]
    if device == "mps" or not cuda:
        raise ConfigError(
            f"{section}.device: this onnxruntime has no {device}; install onnxruntime-gpu, or set cpu"
        )
    number = int(device.partition(":")[2] or 0)
    return [("CUDAExecutionProvider", {"device_id": number}), "CPUExecutionProvider"]
