"""Models in PyTorch form, run by transformers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from guardrail.errors import ConfigError, JudgeReplyError
from guardrail.judges.classifier.files import missing_extra
from guardrail.judges.classifier.onnx_model import label_names, read_config
from guardrail.judges.classifier.pairs import Tokens
from guardrail.judges.classifier.settings import ClassifierSettings

EXTRA: Final = "classifier-torch"


class TorchModel:
    """A sequence classifier, an encoder-decoder, or HHEM."""

    def __init__(
        self, folder: Path, base: Path, settings: ClassifierSettings, pad_id: int, section: str
    ) -> None:
        """``folder`` holds the weights; ``base`` the configuration of HHEM's encoder. Raises ConfigError."""
        try:
            import torch
            import transformers
        except ImportError as error:
            raise missing_extra(error.name or "torch", EXTRA, section) from None
        self._torch: Any = torch
        self._pad_id = pad_id
        self.vocabulary_out = settings.architecture == "seq2seq"
        self._device = _device(self._torch, settings.device, section)
        if settings.threads is not None:
            self._torch.set_num_threads(settings.threads)
        try:
            model = _load(transformers, folder, base, settings, section)
            self._model: Any = model.to(self._device).eval()
        except ConfigError:
            raise
        except Exception as error:  # noqa: BLE001 (what loading raises has no common root)
            raise ConfigError(
                f"{section}.model: {settings.model} can't be loaded as {settings.architecture} "
                f"({type(error).__name__}); check architecture and the model's files, and whether it needs "
                "allow_remote_code or another version of transformers"
            ) from None
        config = read_config(folder)
        # Of a hub model that doesn't say, transformers would make up LABEL_0, LABEL_1.
        self.label_names: Sequence[str] = [] if self.vocabulary_out else label_names(config)
        self._takes_types = int(getattr(self._model.config, "type_vocab_size", 0) or 0) > 1
        self._decoder_start = int(getattr(self._model.config, "decoder_start_token_id", None) or 0)

    def logits(self, batch: Sequence[Tokens]) -> list[list[float]]:
        """A row for each pair; of a model with an output per token, that of the first token."""
        torch = self._torch
        longest = max(len(tokens) for tokens in batch)

        def padded(rows: list[list[int]], filler: int) -> Any:
            filled = [row + [filler] * (longest - len(row)) for row in rows]
            return torch.tensor(filled, dtype=torch.long, device=self._device)

        inputs = {
            "input_ids": padded([tokens.ids.tolist() for tokens in batch], self._pad_id),
            "attention_mask": padded([[1] * len(tokens) for tokens in batch], 0),
        }
        if self._takes_types:
            inputs["token_type_ids"] = padded([tokens.type_ids.tolist() for tokens in batch], 0)
        if self.vocabulary_out:
            start = [[self._decoder_start]] * len(batch)
            inputs["decoder_input_ids"] = torch.tensor(start, dtype=torch.long, device=self._device)
        with torch.inference_mode():
            output = self._model(**inputs).logits
        if output.dim() == 3:
            output = output[:, 0, :]
        if output.dim() != 2:
            raise JudgeReplyError(f"the model's output has {output.dim()} dimensions, not 2 or 3")
        rows: list[list[float]] = output.double().cpu().tolist()
        return rows


def _load(transformers: Any, folder: Path, base: Path, settings: ClassifierSettings, section: str) -> Any:
    if settings.architecture == "hhem" and not settings.allow_remote_code:
        return _load_hhem(transformers, folder, base, section)
    kind = (
        transformers.AutoModelForSeq2SeqLM
        if settings.architecture == "seq2seq"
        else transformers.AutoModelForSequenceClassification
    )
    return kind.from_pretrained(
        str(folder), trust_remote_code=settings.allow_remote_code, local_files_only=True
    )


def _load_hhem(transformers: Any, folder: Path, base: Path, section: str) -> Any:
    """HHEM-2.1-Open without the code that comes with it.

    It is a ``T5ForTokenClassification`` with two labels, its weights under ``t5.``, whose first token's
    logits say whether the hypothesis follows. The embedding is stored once, as ``transformer.shared``, and
    used by the encoder too. Every other weight must be there, and nothing else: anything missing would be
    left random. The code that comes with the model doesn't run on transformers 5.
    """
    from safetensors.torch import load_file

    prefix = "t5."
    path = folder / "model.safetensors"
    if not path.is_file():
        raise ConfigError(
            f"{section}.model: no model.safetensors in {folder}; HHEM's weights are in that file"
        )
    weights = {
        name.removeprefix(prefix): value
        for name, value in load_file(str(path)).items()
        if name.startswith(prefix)
    }
    shared, copy = "transformer.shared.weight", "transformer.encoder.embed_tokens.weight"
    if shared not in weights and copy in weights:
        weights[shared] = weights[copy]
    elif shared in weights:
        weights.setdefault(copy, weights[shared])
    config = transformers.T5Config.from_pretrained(str(base), local_files_only=True)
    config.num_labels = 2
    model = transformers.T5ForTokenClassification(config)
    model.load_state_dict(weights, strict=True)
    return model


def _device(torch: Any, wanted: str, section: str) -> str:
    cuda = bool(torch.cuda.is_available())
    if wanted == "auto":
        return "cuda" if cuda else "cpu"
    if wanted.startswith("cuda") and not cuda:
        raise ConfigError(f"{section}.device: {wanted} is not available to torch here; set cpu, or auto")
    if wanted == "mps" and not torch.backends.mps.is_available():
        raise ConfigError(f"{section}.device: mps is not available here; set cpu, or auto")
    return wanted
