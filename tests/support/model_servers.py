"""Model servers in miniature: the wire of each, by its documentation, around a real graph and tokenizer.

- Open Inference Protocol 2: KServe's docs/predict-api/v2/required_api.md, and Triton 2.51's own answers.
- text-embeddings-inference: docs/openapi.json of 1.7 (labels come by score; 413 for what is too long or too
  many, 424 for a model that is not a classifier).
- vLLM: the protocol classes in vllm/entrypoints/pooling (classify, scoring) and its /v1/models.

None of them truncates: a pair that is too long is an error, as on the real ones.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from tests.support.json_server import Answer, JsonServer


class ModelServer(JsonServer):
    """Serves the model of ``folder``."""

    def __init__(self, folder: Path, *, max_tokens: int = 512) -> None:
        super().__init__()
        files = [each for each in (folder / "onnx" / "model.onnx", folder / "model.onnx") if each.exists()]
        self._session: Any = onnxruntime.InferenceSession(str(files[0]), providers=["CPUExecutionProvider"])
        self.inputs = [each.name for each in self._session.get_inputs()]
        self.outputs = [each.name for each in self._session.get_outputs()]
        self.tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        config = folder / "config.json"
        names = json.loads(config.read_text("utf-8")).get("id2label", {}) if config.exists() else {}
        self.labels = [names[key] for key in sorted(names, key=int)]
        self.max_tokens = max_tokens

    def run(self, ids: Sequence[Sequence[int]], types: Sequence[Sequence[int]]) -> dict[str, np.ndarray]:
        """The graph's outputs for rows of any lengths."""
        longest = max(map(len, ids))
        feeds = {
            "input_ids": np.array([[*row, *[0] * (longest - len(row))] for row in ids], dtype=np.int64),
            "attention_mask": np.array(
                [[1] * len(row) + [0] * (longest - len(row)) for row in ids], dtype=np.int64
            ),
            "token_type_ids": np.array(
                [[*row, *[0] * (longest - len(row))] for row in types], dtype=np.int64
            ),
        }
        return self.infer(feeds)

    def infer(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        found = self._session.run(self.outputs, {name: feeds[name] for name in self.inputs})
        return dict(zip(self.outputs, found, strict=True))


class OipServer(ModelServer):
    """Serves it as ``m``."""

    tensors = True
    """Whether it says what the model takes and gives."""

    def answer(self, method: str, path: str, body: Any) -> Answer:
        if path == "/v2/models/m/ready":
            return 200, None
        if path == "/v2/models/m":
            told: dict[str, Any] = {"name": "m", "versions": ["1"], "platform": "onnx"}
            if self.tensors:
                told["inputs"] = [{"name": n, "datatype": "INT64", "shape": [-1, -1]} for n in self.inputs]
                told["outputs"] = [{"name": n, "datatype": "FP32", "shape": [-1, -1]} for n in self.outputs]
            return 200, told
        if path != "/v2/models/m/infer":
            return 404, {"error": "Request for unknown model: 'x' is not found"}
        feeds = {}
        for each in body["inputs"]:
            feeds[each["name"]] = np.array(each["data"], dtype=np.int64).reshape(each["shape"])
        wanted = [each["name"] for each in body.get("outputs", [])] or self.outputs
        found = self.infer(feeds)
        return 200, {
            "model_name": "m",
            "model_version": "1",
            "outputs": [
                {
                    "name": name,
                    "datatype": "FP32",
                    "shape": list(found[name].shape),
                    "data": found[name].ravel().tolist(),
                }
                for name in wanted
            ],
        }


class TeiServer(ModelServer):
    max_client_batch_size = 4

    def answer(self, method: str, path: str, body: Any) -> Answer:
        if path == "/info":
            labels = {str(number): label for number, label in enumerate(self.labels)}
            ids = {label: number for number, label in enumerate(self.labels)}
            return 200, {
                "model_id": "acme/nli",
                "model_sha": None,
                "model_dtype": "float32",
                "model_type": {"classifier": {"id2label": labels, "label2id": ids}},
                "max_concurrent_requests": 512,
                "max_input_length": self.max_tokens,
                "max_batch_tokens": 16384,
                "max_client_batch_size": self.max_client_batch_size,
                "tokenization_workers": 2,
                "version": "1.7.1",
            }
        if path != "/predict":
            return 404, None
        inputs = body["inputs"]
        if len(inputs) > self.max_client_batch_size:
            told = f"batch size {len(inputs)} > maximum allowed batch size {self.max_client_batch_size}"
            return 413, {"error": told, "error_type": "Validation"}
        encoded = [self.tokenizer.encode(*texts) for texts in inputs]
        for each in encoded:
            if len(each.ids) > self.max_tokens:
                told = f"`inputs` must have less than {self.max_tokens} tokens. Given: {len(each.ids)}"
                return 413, {"error": told, "error_type": "Validation"}
        rows = self.run([each.ids for each in encoded], [each.type_ids for each in encoded])["logits"]
        assert body["raw_scores"] is True
        return 200, [
            sorted(
                (
                    {"score": float(score), "label": label}
                    for score, label in zip(row, self.labels, strict=True)
                ),
                key=lambda each: -each["score"],
            )
            for row in rows
        ]


class VllmServer(ModelServer):
    """Serves it as ``m``."""

    def answer(self, method: str, path: str, body: Any) -> Answer:
        if path == "/v1/models":
            card = {"id": "m", "object": "model", "root": "acme/nli", "max_model_len": self.max_tokens}
            return 200, {"object": "list", "data": [card]}
        if path == "/classify" and len(self.labels) > 1:
            ids, types = body["input"], [[0] * len(row) for row in body["input"]]
        elif path == "/score" and len(self.labels) == 1:
            pairs = zip(body["queries"], body["documents"], strict=True)
            encoded = [self.tokenizer.encode(first, second) for first, second in pairs]
            ids, types = [each.ids for each in encoded], [each.type_ids for each in encoded]
        else:
            return 404, {"detail": "Not Found"}
        longest = max(map(len, ids))
        if longest > self.max_tokens:
            told = f"This model's maximum context length is {self.max_tokens} tokens, you have {longest}."
            return 400, {"error": {"message": told, "type": "BadRequestError", "param": None, "code": 400}}
        assert body["use_activation"] is True
        rows = self.run(ids, types)["logits"].astype(float)
        data: list[dict[str, Any]] = []
        for number, row in enumerate(rows):
            if path == "/score":
                data.append({"index": number, "object": "score", "score": 1 / (1 + math.exp(-row[0]))})
                continue
            weights = np.exp(row - row.max())
            shares = (weights / weights.sum()).tolist()
            label = self.labels[int(np.argmax(row))]
            data.append({"index": number, "label": label, "probs": shares, "num_classes": len(shares)})
        usage = {"prompt_tokens": sum(map(len, ids)), "total_tokens": sum(map(len, ids))}
        return 200, {"id": "x", "object": "list", "created": 1, "model": "m", "data": data, "usage": usage}
