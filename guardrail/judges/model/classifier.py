"""A sentence-pair classifier: loads a model from settings, runs it once, and interprets its outputs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import structlog

from guardrail.errors import ConfigError, JudgeError, JudgeReplyError
from guardrail.judges.model.runtime import (
    CONFIG,
    TOKENIZER,
    Model,
    ModelFiles,
    OnnxModel,
    TorchModel,
    installed,
    label_names,
    logistic,
    missing_extra,
    read_json,
)
from guardrail.judges.model.settings import PRESETS, SECTION, Architecture, ClassifierSettings, LabelMeaning
from guardrail.judges.model.tokens import Pair, PairForm, Tokens

BATCH_SIZE: Final = 16
"""Most pairs that go through the model together."""
_MOST_TOKENS: Final = 512  # per pair, unless a preset says otherwise; fewer if the model's files say so
_TORCH: Final = ("torch", "transformers")
_ONNX_FILES: Final = ("onnx/model.onnx", "model.onnx")
_TOKENIZER_CONFIG: Final = "tokenizer_config.json"
_WEIGHTS: Final = ("*.safetensors", "*.safetensors.index.json")
_PICKLED: Final = ("pytorch_model*.bin", "pytorch_model.bin.index.json")
_PAD_TOKENS: Final = ("<pad>", "[PAD]", "<|pad|>", "<|endoftext|>")
_PROBE: Final = "The sky is blue."
_LEAST_SPAN: Final = 8  # windows with at least this many characters are still halved

_MEANING: Final = {
    "entailment": LabelMeaning.SUPPORTED,
    "entailed": LabelMeaning.SUPPORTED,
    "supported": LabelMeaning.SUPPORTED,
    "supports": LabelMeaning.SUPPORTED,
    "consistent": LabelMeaning.SUPPORTED,
    "neutral": LabelMeaning.NEUTRAL,
    "not_entailment": LabelMeaning.UNSUPPORTED,
    "unsupported": LabelMeaning.UNSUPPORTED,
    "not_supported": LabelMeaning.UNSUPPORTED,
    "hallucinated": LabelMeaning.UNSUPPORTED,
    "inconsistent": LabelMeaning.UNSUPPORTED,
    "contradiction": LabelMeaning.CONTRADICTED,
    "contradicted": LabelMeaning.CONTRADICTED,
    "refutes": LabelMeaning.CONTRADICTED,
}

_log = structlog.stdlib.get_logger("guardrail.judges.model")


@dataclass(frozen=True, slots=True)
class Scores:
    """Probabilities, 0 to 1. ``contradiction`` is 0 for a model without such a label."""

    support: float
    contradiction: float


Part: TypeAlias = tuple[Pair, Tokens]
"""What a model reads at once: a pair, or a half of one, and its tokens."""


@dataclass(frozen=True, slots=True)
class PairReader:
    """The form of a model's pairs and the meaning of its outputs, wherever the model runs."""

    form: PairForm
    labels: LabelMap

    def parts(self, pairs: Sequence[Pair], max_tokens: int) -> list[list[Part] | JudgeError]:
        """What the model reads for each pair: the pair itself or its parts, none longer than ``max_tokens``,
        or why the pair can't be read.

        A window is measured before it is put into its pair, where it may have a few more tokens. A window
        that then doesn't fit is read in two halves.
        """
        return [
            self._parts(pair, tokens, max_tokens)
            for pair, tokens in zip(pairs, self.form.encode(pairs), strict=True)
        ]

    def joined(
        self, parts: Sequence[list[Part] | JudgeError], rows: Sequence[Sequence[float]]
    ) -> list[Scores | JudgeError]:
        """The scores of each pair from the rows of all ``parts``: the highest support and contradiction of
        its own count.
        """
        left = iter(rows)
        return [
            part if isinstance(part, JudgeError) else self._highest([next(left) for _ in part])
            for part in parts
        ]

    def _parts(self, pair: Pair, tokens: Tokens, max_tokens: int) -> list[Part] | JudgeError:
        parts = [(pair, tokens)] if len(tokens) <= max_tokens else self._halves(pair, max_tokens)
        if not parts:
            return JudgeReplyError("the claim leaves no room for the contexts in the model's window")
        if any(self.form.forged(part) for _, part in parts):
            return JudgeReplyError("a text forges special tokens of the model")
        return parts

    def _highest(self, rows: Sequence[Sequence[float]]) -> Scores | JudgeError:
        try:
            scores = [self.labels.scores(row) for row in rows]
        except JudgeReplyError as error:
            return error
        return Scores(max(s.support for s in scores), max(s.contradiction for s in scores))

    def _halves(self, pair: Pair, max_tokens: int) -> list[Part]:
        """The parts of a window that is too long; none if parts of any size are."""
        span = pair.end - pair.start
        if span < _LEAST_SPAN:
            return []
        middle, shared = pair.start + span // 2, span // 8
        halves = [
            Pair(pair.text, pair.start, middle + shared, pair.hypothesis),
            Pair(pair.text, middle - shared, pair.end, pair.hypothesis),
        ]
        found: list[Part] = []
        for half, tokens in zip(halves, self.form.encode(halves), strict=True):
            part = [(half, tokens)] if len(tokens) <= max_tokens else self._halves(half, max_tokens)
            if not part:
                return []
            found += part
        return found


@dataclass(frozen=True, slots=True)
class Classifier:
    """A model in this process, with the reader of its pairs and outputs."""

    model: Model
    reader: PairReader
    max_tokens: int
    """Longest pair that the model reads."""

    def score(self, pairs: Sequence[Pair]) -> list[Scores | JudgeError]:
        """Scores of pairs, in order; an error for a pair without any."""
        parts = self.reader.parts(pairs, self.max_tokens)
        flat = [tokens for part in parts if not isinstance(part, JudgeError) for _, tokens in part]
        rows: list[list[float]] = []
        for at in range(0, len(flat), BATCH_SIZE):
            batch = flat[at : at + BATCH_SIZE]
            found = self.model.logits(batch)
            if len(found) != len(batch):
                raise JudgeReplyError("the model gave another number of rows than it was given")
            rows += found
        return self.reader.joined(parts, rows)


# ----------------------------------------------------------------------------------------------------- labels


class LabelMap:
    """The meanings of the model's outputs."""

    def __init__(self, meanings: Mapping[int, LabelMeaning]) -> None:
        """``meanings`` by position in the model's output; other positions are ignored."""
        self._meanings = dict(sorted(meanings.items()))

    @property
    def has_contradiction(self) -> bool:
        return LabelMeaning.CONTRADICTED in self._meanings.values()

    def scores(self, logits: Sequence[float]) -> Scores:
        """Softmax over the mapped outputs; the logistic function if a model has only one output.

        Raises JudgeReplyError for values that are not numbers (NaN from a half-precision overflow, say).
        """
        chosen = [logits[position] for position in self._meanings]
        if not all(math.isfinite(value) for value in chosen):
            raise JudgeReplyError("the model's output is not a number")
        if len(chosen) == 1:
            # One output is the logit of support, whatever its label is called.
            return Scores(logistic(chosen[0]), 0.0)
        top = max(chosen)
        weights = [math.exp(value - top) for value in chosen]
        total = sum(weights)
        shares = dict.fromkeys(LabelMeaning, 0.0)
        for meaning, weight in zip(self._meanings.values(), weights, strict=True):
            shares[meaning] += weight / total
        return Scores(min(1.0, shares[LabelMeaning.SUPPORTED]), min(1.0, shares[LabelMeaning.CONTRADICTED]))


def resolve_labels(
    configured: Mapping[str, LabelMeaning], names: Sequence[str], outputs: int, *, subset: bool
) -> LabelMap:
    """The label map for a model with ``outputs`` outputs, called ``names`` as far as it says.

    ``subset``: unnamed outputs are not labels (a vocabulary). Otherwise every output needs a meaning, since
    leaving a label out would move its share to the others. Raises ConfigError.
    """
    by_name = {_fold(name): position for position, name in enumerate(names[:outputs])}
    if not configured and not subset:
        if outputs == 1:
            return LabelMap({0: LabelMeaning.SUPPORTED})
        found = {position: _MEANING[name] for name, position in by_name.items() if name in _MEANING}
        if len(found) != outputs or LabelMeaning.SUPPORTED not in found.values():
            known = ", ".join(list(names)[:outputs][:20]) or f"0 to {outputs - 1}"
            raise ConfigError(
                f"{SECTION}.labels: the model's labels are {known}, which doesn't tell what they mean; map "
                "each to supported, unsupported, contradicted or neutral"
            )
        return LabelMap(found)
    meanings: dict[int, LabelMeaning] = {}
    for label, meaning in configured.items():
        position = by_name.get(_fold(label), int(label) if label.strip().isdecimal() else -1)
        if not 0 <= position < outputs:
            raise ConfigError(
                f"{SECTION}.labels: the model has no label {label!r}; it has "
                f"{', '.join(list(names)[:20]) or 'no names'} and numbers from 0 to {outputs - 1}"
            )
        if meanings.setdefault(position, meaning) is not meaning:
            raise ConfigError(f"{SECTION}.labels: label {position} is given two meanings; keep one")
    if not subset and len(meanings) != outputs:
        missing = ", ".join(
            str(position) for position in range(min(outputs, 100)) if position not in meanings
        )
        raise ConfigError(
            f"{SECTION}.labels: the model has {outputs} labels; say what label {missing} means too"
        )
    if subset and len(set(meanings.values())) < 2:
        raise ConfigError(f"{SECTION}.labels: name the token ids that mean supported and unsupported")
    if outputs == 1 and meanings.get(0) is not LabelMeaning.SUPPORTED:
        raise ConfigError(f"{SECTION}.labels: the model's only output must mean supported")
    return LabelMap(meanings)


def _fold(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")


# ---------------------------------------------------------------------------------------------------- loading


@dataclass(frozen=True, slots=True)
class _Described:
    """What a model's files say of it, besides its weights."""

    form: PairForm
    config: dict[str, Any]
    architecture: Architecture
    max_tokens: int
    pad_id: int


def load_classifier(settings: ClassifierSettings) -> Classifier:
    """The model that ``settings`` name, tested on two pairs. Blocks, for as long as a download takes.

    Raises ConfigError, which names the setting.
    """
    files = _files(settings)
    if _needs_torch(settings):
        _require_torch()  # before any download
    told = _described(settings, files)
    return _tried(settings, told, _model(settings, files, told))


@dataclass(frozen=True, slots=True)
class ServedModel:
    """What the guard knows of a model that a server runs."""

    reader: PairReader
    label_names: Sequence[str]
    """By position; as the model's config.json has them, else LABEL_0, LABEL_1 and so on."""
    max_tokens: int
    pad_id: int
    takes_types: bool
    """Whether it reads which of the two texts a token is of."""


def served_model(settings: ClassifierSettings) -> ServedModel:
    """The model that a server runs, by its tokenizer and config.json; no weights are read.

    Raises ConfigError, which names the setting.
    """
    if settings.allow_remote_code:
        raise ConfigError(
            f"{SECTION}.allow_remote_code is on, but a server runs the model; turn it off here, and on there"
        )
    told = _described(settings, _files(settings))
    if told.architecture == "seq2seq":
        raise ConfigError(
            f"{SECTION}.server: {settings.model} writes its label, which no server of this kind serves; name "
            "an encoder, or take server out"
        )
    names = label_names(told.config)
    outputs = len(names) or len(settings.labels)
    if not outputs:
        raise ConfigError(
            f"{SECTION}.labels: {settings.model}'s {CONFIG} names none; map each label, by its index, to "
            "supported, unsupported, contradicted or neutral"
        )
    labels = resolve_labels(settings.labels, names, outputs, subset=False)
    return ServedModel(
        PairReader(told.form, labels),
        names or [f"LABEL_{number}" for number in range(outputs)],
        told.max_tokens,
        told.pad_id,
        takes_types=_count(told.config.get("type_vocab_size")) > 1,
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _files(settings: ClassifierSettings) -> ModelFiles:
    files = ModelFiles(settings.model, settings.revision, settings)
    if files.unpinned is not None:
        _log.warning("classifier.unpinned", problem=files.unpinned)
    return files


def _described(settings: ClassifierSettings, files: ModelFiles) -> _Described:
    tokenizer, tokenizer_config = _tokenizer(files, settings)
    form = PairForm(tokenizer, settings)
    config = read_json(files.folder([CONFIG]) / CONFIG)
    known = settings.known()
    # Padding is masked: it only matters that the model knows the token.
    pad_id = config.get("pad_token_id")
    if not isinstance(pad_id, int):
        numbers = (tokenizer.token_to_id(token) for token in _PAD_TOKENS)
        pad_id = next((number for number in numbers if number is not None), 0)
    return _Described(
        form,
        config,
        known.architecture if known else _architecture(config),
        known.max_tokens if known else _max_tokens(config, tokenizer_config),
        pad_id,
    )


def start_notes(settings: ClassifierSettings) -> Iterator[str]:
    """What is missing on this machine or not pinned, without opening a model."""
    try:
        files = ModelFiles(settings.model, settings.revision, settings)
    except ConfigError as error:
        yield str(error)
        return
    if files.unpinned is not None:
        yield files.unpinned
    needed = [("tokenizers", "classifier")]
    if settings.server is not None:
        pass  # which has the runtime
    elif _needs_torch(settings):
        needed = [(module, "classifier-torch") for module in ("tokenizers", *_TORCH)]
    elif not installed(*_TORCH):  # which runs what onnxruntime doesn't
        needed.append(("onnxruntime", "classifier"))
    known = settings.known()
    lacks_tokenizer = known and known.tokenizer and not Path(files.name, TOKENIZER).is_file()
    if not files.local or lacks_tokenizer:
        needed.append(("huggingface_hub", "classifier"))
    for module, extra in needed:
        if not installed(module):
            yield str(missing_extra(module.replace("_", "-"), extra))


def _needs_torch(settings: ClassifierSettings) -> bool:
    """Whether it is known, without looking at the model's files, that only torch can run it."""
    # HHEM is published without an ONNX file.
    return settings.allow_remote_code or settings.model == PRESETS["hhem"].model


def _require_torch() -> None:
    for module in _TORCH:
        if not installed(module):
            raise missing_extra(module, "classifier-torch")


def _tokenizer(files: ModelFiles, settings: ClassifierSettings) -> tuple[Any, dict[str, Any]]:
    """The tokenizer, and what ``tokenizer_config.json`` says about it."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise missing_extra("tokenizers", "classifier") from None
    path = files.file(TOKENIZER, beside=[CONFIG, _TOKENIZER_CONFIG])
    known = settings.known()
    if path is None and known is not None and known.tokenizer is not None:
        path = ModelFiles(*known.tokenizer, settings).file(TOKENIZER)
    if path is None:
        raise ConfigError(
            f"{SECTION}.model: {files.name} has no {TOKENIZER}; put it into a folder with the model's files "
            "and name that as model"
        )
    try:
        return Tokenizer.from_file(str(path)), read_json(path.with_name(_TOKENIZER_CONFIG))
    except Exception as error:  # noqa: BLE001 (the library raises bare Exception)
        raise ConfigError(
            f"{SECTION}.model: {path} can't be read ({type(error).__name__}); download it again"
        ) from None


def _architecture(config: Mapping[str, Any]) -> Architecture:
    classes = config.get("architectures")
    writes = isinstance(classes, list) and any("ConditionalGeneration" in str(name) for name in classes)
    return "seq2seq" if writes else "sequence"


def _max_tokens(config: Mapping[str, Any], tokenizer_config: Mapping[str, Any]) -> int:
    said = (tokenizer_config.get("model_max_length"), config.get("max_position_embeddings"))
    return min([_MOST_TOKENS, *(number for number in said if isinstance(number, int) and number > 0)])


def _model(settings: ClassifierSettings, files: ModelFiles, told: _Described) -> Model:
    """onnxruntime if it is installed and the model has a file for it; else torch."""
    graph = None
    if not settings.allow_remote_code:
        # Large models keep their weights beside the graph.
        graph = files.file(*_ONNX_FILES, beside=[f"{name}[._]data*" for name in _ONNX_FILES])
    if graph is not None and installed("onnxruntime"):
        return OnnxModel(graph, told.config, told.pad_id)
    if graph is not None and not installed(*_TORCH):
        raise missing_extra("onnxruntime", "classifier")
    _require_torch()
    weights = files.folder([CONFIG, *_WEIGHTS, *(["*.py"] if settings.allow_remote_code else [])])
    if not any(weights.glob("*.safetensors")):
        weights = files.folder([CONFIG, *_PICKLED])  # which transformers reads only as weights
        if graph is not None and not any(weights.glob(_PICKLED[0])):
            raise missing_extra("onnxruntime", "classifier")
    return TorchModel(weights, told.architecture, settings, told.pad_id)


def _tried(settings: ClassifierSettings, told: _Described, model: Model) -> Classifier:
    """The classifier, after running a short pair and the longest one, so that incompatible parts and missing
    positions fail at start.
    """
    max_tokens = told.max_tokens
    (tokens,) = told.form.encode([Pair(_PROBE, 0, len(_PROBE), _PROBE)])
    if not len(tokens):
        raise ConfigError(f"{SECTION}.model: the tokenizer makes no tokens of a sentence; check its file")
    try:
        (row,) = model.logits([tokens])
    except Exception as error:  # noqa: BLE001 (runtimes' errors have no common root)
        raise ConfigError(
            f"{SECTION}.model: {settings.model} fails on a pair of sentences ({type(error).__name__}); check "
            "that tokenizer, template, device and model go together"
        ) from None
    times = max_tokens // len(tokens) + 1
    try:
        model.logits([Tokens((tokens.ids * times)[:max_tokens], (tokens.type_ids * times)[:max_tokens])])
    except Exception as error:  # noqa: BLE001 (runtimes' errors have no common root)
        raise ConfigError(
            f"{SECTION}.model: {settings.model} fails on {max_tokens} tokens ({type(error).__name__}); write "
            f"how many it can read as max_position_embeddings into its {CONFIG}, in a folder of your own"
        ) from None
    writes = told.architecture == "seq2seq"
    labels = resolve_labels(settings.labels, model.label_names, len(row), subset=writes)
    return Classifier(model, PairReader(told.form, labels), max_tokens)
