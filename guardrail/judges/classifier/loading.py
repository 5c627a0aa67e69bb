"""Settings -> a classifier that has answered once."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, Final

from guardrail.errors import ConfigError
from guardrail.judges.classifier.files import ModelFiles, missing_extra
from guardrail.judges.classifier.labels import resolve_labels
from guardrail.judges.classifier.model import Classifier, Model
from guardrail.judges.classifier.onnx_model import OnnxModel, read_config
from guardrail.judges.classifier.pairs import Pair, PairForm, Tokens
from guardrail.judges.classifier.presets import PRESETS
from guardrail.judges.classifier.settings import ClassifierSettings

_TOKENIZER: Final = "tokenizer.json"
_CONFIG: Final = "config.json"
_ONNX_FILES: Final = ("onnx/model.onnx", "model.onnx")
_WEIGHTS: Final = ("*.safetensors", "*.safetensors.index.json")
_PICKLED: Final = ("pytorch_model*.bin", "pytorch_model.bin.index.json")
_PAD_TOKENS: Final = ("<pad>", "[PAD]", "<|pad|>", "<|endoftext|>")
_PROBE: Final = "The sky is blue."
# Longer ones would hold up the start, and models that can read so much have no table of positions.
_LONGEST_PROBE: Final = 4_096


def load_classifier(settings: ClassifierSettings, section: str) -> Classifier:
    """The model that ``settings`` name, tried on one pair. Blocks, for as long as a download takes.

    ``section`` is where the settings stand, ``judge.hhem`` say. Raises ConfigError, which names the setting.
    """
    model_files = ModelFiles(settings, "model", section)
    if needs_torch(settings):
        _require_torch(section)  # ahead of any download
    base_files = ModelFiles(settings, "tokenizer", section) if settings.tokenizer else model_files
    tokenizer = _tokenizer(base_files, section)
    form = PairForm(tokenizer, settings)
    pad_id = _pad_id(tokenizer, base_files)
    model = _model(settings, model_files, base_files, pad_id, section)
    return _tried(settings, form, model, section)


def needs_torch(settings: ClassifierSettings) -> bool:
    """Whether it is known without a look at the model's files that only torch can run it."""
    if settings.backend == "onnx":
        return False
    published = PRESETS["hhem"]["model"]  # which has no ONNX file
    return settings.backend == "torch" or settings.allow_remote_code or settings.model == published


def _require_torch(section: str) -> None:
    from guardrail.judges.classifier.torch_model import EXTRA

    for module in ("torch", "transformers"):
        if importlib.util.find_spec(module) is None:
            raise missing_extra(module, EXTRA, section)


def _tokenizer(files: ModelFiles, section: str) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise missing_extra("tokenizers", "classifier", section) from None
    path = files.file(_TOKENIZER, _CONFIG)
    if path is None or path.name != _TOKENIZER:
        raise ConfigError(
            f"{section}.tokenizer: {files.name} has no {_TOKENIZER}; name a repository or folder that has one"
        )
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # noqa: BLE001 (the library raises bare Exception)
        raise ConfigError(
            f"{section}.tokenizer: {path} can't be read ({type(error).__name__}); download it again"
        ) from None


def _pad_id(tokenizer: Any, files: ModelFiles) -> int:
    """What fills rows up. Masked, so that it matters only that the model knows it."""
    configured = read_config(files.folder([_CONFIG])).get("pad_token_id")
    if isinstance(configured, int):
        return configured
    ids = (tokenizer.token_to_id(token) for token in _PAD_TOKENS)
    return next((number for number in ids if number is not None), 0)


def _model(
    settings: ClassifierSettings, files: ModelFiles, base: ModelFiles, pad_id: int, section: str
) -> Model:
    if settings.backend != "torch" and not settings.allow_remote_code:
        path = _onnx_path(settings, files)
        installed = importlib.util.find_spec("onnxruntime") is not None
        if path is not None and (installed or settings.backend == "onnx"):
            return OnnxModel(path, settings, pad_id, section)
        if settings.backend == "onnx":
            names = settings.onnx_file or " or ".join(_ONNX_FILES)
            raise ConfigError(
                f"{section}.onnx_file: {files.name} has no {names}; export the model "
                "('optimum-cli export onnx'), name its file, or set backend to torch"
            )
    _require_torch(section)
    from guardrail.judges.classifier.torch_model import TorchModel

    weights = files.folder([_CONFIG, *_WEIGHTS, *(["*.py"] if settings.allow_remote_code else [])])
    if not any(weights.glob("*.safetensors")):
        weights = files.folder([_CONFIG, *_PICKLED])  # which transformers reads as weights only
    return TorchModel(weights, base.folder([_CONFIG]), settings, pad_id, section)


def _onnx_path(settings: ClassifierSettings, files: ModelFiles) -> Path | None:
    names = (settings.onnx_file,) if settings.onnx_file else _ONNX_FILES
    path = files.file(*names)
    if path is None:
        return None
    # Large models keep their weights beside the graph; the labels are in the configuration.
    files.folder([_CONFIG, *names, *(f"{name}[._]data*" for name in names)])
    return path


def _tried(settings: ClassifierSettings, form: PairForm, model: Model, section: str) -> Classifier:
    """The classifier, after one pair has gone through: what doesn't fit together fails at start."""
    (tokens,) = form.encode([Pair(_PROBE, 0, len(_PROBE), _PROBE)])
    if not len(tokens):
        raise ConfigError(f"{section}.tokenizer: makes no tokens of a sentence; check the file")
    try:
        (row,) = model.logits([tokens])
    except Exception as error:  # noqa: BLE001 (runtimes' errors have no common root)
        raise ConfigError(
            f"{section}.model: {settings.model} fails on a pair of sentences ({type(error).__name__}); check "
            "that tokenizer, template, device and model go together"
        ) from None
    _long_enough(settings, model, tokens, section)
    labels = resolve_labels(
        settings.labels, model.label_names, len(row), subset=model.vocabulary_out, section=section
    )
    return Classifier(model, form, labels, settings.max_length, settings.batch_size)


def _long_enough(settings: ClassifierSettings, model: Model, tokens: Tokens, section: str) -> None:
    """Try a row of ``max_length`` tokens: many models fail on more than they have positions for."""
    length = min(settings.max_length, _LONGEST_PROBE)
    times = length // len(tokens) + 1
    row = Tokens((tokens.ids * times)[:length], (tokens.type_ids * times)[:length])
    try:
        model.logits([row])
    except Exception as error:  # noqa: BLE001 (runtimes' errors have no common root)
        raise ConfigError(
            f"{section}.max_length: the model fails on {length} tokens ({type(error).__name__}); lower it to "
            "what the model can read"
        ) from None
