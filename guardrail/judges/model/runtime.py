"""What runs models: their files, in a folder or on the Hugging Face hub at a commit, and the runtimes,
onnxruntime or torch, on the processors that this process may use.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from guardrail.errors import ConfigError, JudgeReplyError, install_hint
from guardrail.judges.model.settings import SECTION, Architecture, ClassifierSettings
from guardrail.judges.model.tokens import IDS, MASK, TYPES, Tokens, padded

# -------------------------------------------------------------------------------------------- a model's files

TOKENIZER: Final = "tokenizer.json"
CONFIG: Final = "config.json"
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_HUB_ID: Final = re.compile(r"[\w.-]{1,96}(/[\w.-]{1,96})?")


def missing_extra(module: str, extra: str) -> ConfigError:
    """The error for a missing library that a classifier needs."""
    return ConfigError(f"{SECTION}: {module} is not installed; {install_hint(extra)}")


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty if it is missing or unreadable."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


class ModelFiles:
    """The files of one repository, or of a folder."""

    def __init__(self, name: str | None, revision: str | None, settings: ClassifierSettings) -> None:
        """Raises ConfigError for a missing name or folder, or for code that would run unpinned."""
        if name is None:
            raise ConfigError(f"{SECTION}.model is not set; give an id on the Hugging Face hub or a folder")
        self.name = name
        self.local = Path(name).is_dir()
        self._revision = revision
        self.unpinned: str | None = None
        """What is wrong with the revision, if anything but that one commit may come; with the remedy."""
        if self.local:
            return
        if not _HUB_ID.fullmatch(name) or name.startswith((".", "/", "~")):
            raise ConfigError(f"{SECTION}.model: the folder {name} does not exist; correct the path")
        if revision is not None and _COMMIT.fullmatch(revision):
            return
        given = f"{revision!r} can be moved" if revision else "none is set"
        problem = f"{SECTION}.revision: {name} comes from the hub without a pinned commit ({given})"
        remedy = "set it to the 40 hexadecimal digits of a commit"
        if settings.allow_remote_code:
            raise ConfigError(f"{problem}, and allow_remote_code would run whatever is there; {remedy}")
        self.unpinned = f"{problem}; {remedy}"

    def folder(self, patterns: Sequence[str]) -> Path:
        """A folder with the files that match these patterns; may download. Raises ConfigError."""
        if self.local:
            return Path(self.name)
        try:
            from huggingface_hub import snapshot_download
        except ImportError:
            raise missing_extra("huggingface-hub", "classifier") from None
        download: Any = snapshot_download
        try:
            return Path(download(self.name, revision=self._revision, allow_patterns=list(patterns)))
        except Exception as error:  # noqa: BLE001 (the client's errors have no common root)
            at = f" at {self._revision}" if self._revision else ""
            raise ConfigError(
                f"{SECTION}.model: {self.name}{at} can't be had ({type(error).__name__}); check the id, the "
                "revision and the connection to the hub, or download the files and give their folder"
            ) from None

    def file(self, *candidates: str, beside: Sequence[str] = ()) -> Path | None:
        """The first of these files that exists; ``beside`` are patterns of files to fetch with it."""
        folder = self.folder([*candidates, *beside])
        return next((folder / name for name in candidates if (folder / name).is_file()), None)


# ----------------------------------------------------------------------------------------------- the runtimes

_PROCESSOR: Final = "CPUExecutionProvider"
_SLOWER: Final = ["SkipLayerNormFusion"]  # a tenth of the run: its kernel for processors is scalar
_INPUTS: Final = frozenset({IDS, MASK, TYPES, "decoder_input_ids"})


def logistic(value: float) -> float:
    """The probability for a logit of any size."""
    if value >= 0.0:
        return 1.0 / (1.0 + math.exp(-value))
    grown = math.exp(value)
    return grown / (1.0 + grown)


def installed(*modules: str) -> bool:
    """Whether all of them can be imported, without importing them."""
    return all(importlib.util.find_spec(module) is not None for module in modules)


# ------------------------------------------------------------------------------------------------ onnxruntime


class OnnxGraph:
    """A graph that takes rows of tokens. Thread-safe."""

    def __init__(self, session: Any, beside: Any | None = None) -> None:
        """``session`` runs alone, ``beside`` (the same graph with one thread) while others run: several runs
        that share processors take less time with one thread each. Without it ``session`` runs everything.
        """
        import numpy as np

        self._np: Any = np
        self._alone, self._beside = session, beside or session
        self._running = 0
        self._counting = threading.Lock()
        self.inputs = [value.name for value in session.get_inputs()]
        self.outputs = [value.name for value in session.get_outputs()]

    def run(
        self, outputs: Sequence[str], batch: Sequence[Tokens], pad_id: int = 0, start: int = 0
    ) -> list[Any]:
        """These outputs for a batch, as arrays. Rows are padded with ``pad_id``; ``start`` is the first token
        of a decoder. Raises whatever the runtime raises.
        """
        np = self._np
        rows = padded(batch, pad_id)
        feeds = {name: np.array(rows[name], dtype=np.int64) for name in self.inputs if name in rows}
        if "decoder_input_ids" in self.inputs:
            feeds["decoder_input_ids"] = np.full((len(batch), 1), start, dtype=np.int64)
        with self._counting:
            session = self._beside if self._running else self._alone
            self._running += 1
        try:
            found: list[Any] = session.run(list(outputs), feeds)
        finally:
            with self._counting:
                self._running -= 1
        return found


def onnx_session(model: Path | bytes, threads: int | None, providers: Sequence[Any] = (_PROCESSOR,)) -> Any:
    """A session of onnxruntime. ``threads``: None is the runtime's choice. Raises what the runtime raises."""
    import onnxruntime

    runtime: Any = onnxruntime
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads or 0
    options.inter_op_num_threads = 1
    # Threads that wait for the next run must not take the processor from the event loop.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return runtime.InferenceSession(
        model if isinstance(model, bytes) else str(model),
        options,
        providers=list(providers),
        disabled_optimizers=_SLOWER if list(providers) == [_PROCESSOR] else [],
    )


def onnx_providers() -> list[str]:
    """The GPU, if there is one, and the processor. Raises ConfigError without onnxruntime."""
    try:
        import onnxruntime
    except ImportError:
        raise missing_extra("onnxruntime", "classifier") from None
    runtime: Any = onnxruntime
    return [
        each for each in ("CUDAExecutionProvider", _PROCESSOR) if each in runtime.get_available_providers()
    ]


class OnnxModel:
    """An exported encoder with a head, or a whole encoder-decoder in one graph."""

    def __init__(self, path: Path, config: dict[str, Any], pad_id: int) -> None:
        """Raises ConfigError for a file that is not such a model."""
        providers = onnx_providers()
        try:
            self._graph = OnnxGraph(onnx_session(path, None, providers))
        except Exception as error:  # noqa: BLE001 (the runtime's errors have no common root)
            raise ConfigError(
                f"{SECTION}.model: {path} can't be loaded ({type(error).__name__}); export it again"
            ) from None
        taken = set(self._graph.inputs)
        if "input_ids" not in taken or taken - _INPUTS:
            raise ConfigError(
                f"{SECTION}.model: {path} takes {', '.join(sorted(taken))}; a classifier of pairs "
                f"takes input_ids and at most {', '.join(sorted(_INPUTS - {'input_ids'}))}"
            )
        outputs = self._graph.outputs
        self._output = "logits" if "logits" in outputs else outputs[0]
        self._pad_id, self._start = pad_id, int(config.get("decoder_start_token_id") or 0)
        self.label_names: Sequence[str] = label_names(config)

    def logits(self, batch: Sequence[Tokens]) -> list[list[float]]:
        (output,) = self._graph.run([self._output], batch, self._pad_id, self._start)
        return _rows(output, output.ndim)


# ------------------------------------------------------------------------------------------------------ torch


class TorchModel:
    """A sequence classifier, an encoder-decoder, or HHEM, run by transformers."""

    def __init__(
        self, folder: Path, architecture: Architecture, settings: ClassifierSettings, pad_id: int
    ) -> None:
        """``folder`` contains the weights. Raises ConfigError."""
        try:
            import torch
            import transformers
        except ImportError as error:
            raise missing_extra(error.name or "torch", "classifier-torch") from None
        self._torch: Any = torch
        self._pad_id = pad_id
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            if architecture == "hhem" and not settings.allow_remote_code:
                model = _hhem(transformers, folder)
            else:
                kind = (
                    transformers.AutoModelForSeq2SeqLM
                    if architecture == "seq2seq"
                    else transformers.AutoModelForSequenceClassification
                )
                model = kind.from_pretrained(
                    str(folder), trust_remote_code=settings.allow_remote_code, local_files_only=True
                )
            self._model: Any = model.to(self._device).eval()
        except ConfigError:
            raise
        except Exception as error:  # noqa: BLE001 (what loading raises has no common root)
            raise ConfigError(
                f"{SECTION}.model: {settings.model} can't be loaded as {architecture} "
                f"({type(error).__name__}); check the model's files, and whether it needs a preset, "
                "allow_remote_code or another version of transformers"
            ) from None
        # For a hub model without names, transformers would make up LABEL_0, LABEL_1.
        self.label_names: Sequence[str] = label_names(read_json(folder / CONFIG))
        self._writes = architecture == "seq2seq"
        self._takes_types = int(getattr(self._model.config, "type_vocab_size", 0) or 0) > 1
        self._start = int(getattr(self._model.config, "decoder_start_token_id", None) or 0)

    def logits(self, batch: Sequence[Tokens]) -> list[list[float]]:
        torch = self._torch
        rows = {name: [row.tolist() for row in given] for name, given in padded(batch, self._pad_id).items()}
        if not self._takes_types:
            del rows[TYPES]
        if self._writes:
            rows["decoder_input_ids"] = [[self._start]] * len(batch)
        inputs = {
            name: torch.tensor(given, dtype=torch.long, device=self._device) for name, given in rows.items()
        }
        with torch.inference_mode():
            output = self._model(**inputs).logits
        return _rows(output.cpu(), output.dim())


Model: TypeAlias = OnnxModel | TorchModel
"""A loaded classifier. Its ``label_names`` are by position, and empty if the model has none; its ``logits``
block and are called from one thread at a time: a row of outputs for each encoded pair, for a model with an
output per token the first token's.
"""


def _hhem(transformers: Any, folder: Path) -> Any:
    """HHEM-2.1-Open without its own code, which doesn't run on transformers 5.

    It is a ``T5ForTokenClassification`` with two labels, its weights under ``t5.``, and its first token's
    logits say whether the hypothesis follows. The embedding is stored once, as ``transformer.shared``, and
    used by the encoder too. Every other weight must be present, and nothing else: missing weights would stay
    random. The weights determine the sizes of the encoder; the rest is as in every T5 with gated GELUs.
    """
    from safetensors.torch import load_file

    prefix = "t5."
    path = folder / "model.safetensors"
    if not path.is_file():
        raise ConfigError(
            f"{SECTION}.model: no model.safetensors in {folder}; HHEM's weights are in that file"
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
    block = "transformer.encoder.block.{}.layer.{}.{}.weight"
    buckets, heads = weights[block.format(0, 0, "SelfAttention.relative_attention_bias")].shape
    vocabulary, width = weights[shared].shape
    last_norms = [name for name in weights if name.endswith(".layer.1.layer_norm.weight")]
    config = transformers.T5Config(
        vocab_size=vocabulary,
        d_model=width,
        d_kv=weights[block.format(0, 0, "SelfAttention.q")].shape[0] // heads,
        d_ff=weights[block.format(0, 1, "DenseReluDense.wi_0")].shape[0],
        num_layers=len(last_norms),
        num_heads=heads,
        relative_attention_num_buckets=buckets,
        feed_forward_proj="gated-gelu",
        num_labels=2,
    )
    model = transformers.T5ForTokenClassification(config)
    model.load_state_dict(weights, strict=True)
    return model


def _rows(output: Any, dimensions: int) -> list[list[float]]:
    """An output as rows; if it has a row for each token, the first token's."""
    if dimensions == 3:
        output = output[:, 0, :]
    elif dimensions != 2:
        raise JudgeReplyError(f"the model's output has {dimensions} dimensions, not 2 or 3")
    rows: list[list[float]] = output.tolist()
    return rows


def label_names(config: dict[str, Any]) -> list[str]:
    """The names of the labels by index; empty if the configuration has none."""
    names = config.get("id2label")
    if not isinstance(names, dict):
        return []
    try:
        by_index = {int(index): str(name) for index, name in names.items()}
    except ValueError:
        return []
    numbers = range(len(by_index))
    return [by_index[number] for number in numbers] if set(by_index) == set(numbers) else []


# ------------------------------------------------------------------------------------------------- processors

_GROUPS: Final = Path("/sys/fs/cgroup")
_OWN: Final = Path("/proc/self/cgroup")
_MOST_THREADS: Final = 2


def default_threads() -> int:
    """Two, or one if affinity or a container's quota allows only one processor."""
    return min(_MOST_THREADS, usable_processors())


def usable_processors(groups: Path = _GROUPS, own: Path = _OWN) -> int:
    """By affinity and, in a container, its quota of processor time, rounded up; at least 1.

    Threads beyond a quota make all of them wait until the next period. ``groups`` is where control groups are
    mounted, ``own`` the file that names those of this process; both may be missing. Reads files.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([allowed, *(math.ceil(share) for share in _quotas(groups, own))]))


def _quotas(groups: Path, own: Path) -> Iterator[float]:
    """The quotas of the process's control groups and their parents, in processors."""
    for line in _text(own).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            mounted = groups  # version 2
        elif "cpu" in controllers.split(","):
            mounted = next(
                (groups / name for name in (controllers, "cpu") if (groups / name).is_dir()), groups
            )
        else:
            continue
        # A container may see itself by its host's path, which doesn't exist there: the mount is then its own
        # group.
        parts = [part for part in path.split("/") if part]
        for length in range(0 if ".." in parts else len(parts), -1, -1):
            yield from _quota(mounted.joinpath(*parts[:length]))


def _quota(folder: Path) -> Iterator[float]:
    quota, _, period = _text(folder / "cpu.max").strip().partition(" ")
    if not quota:
        quota, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
    try:
        found = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):
        return  # "max", or no such file
    if found > 0:  # version 1 has -1 for no quota
        yield found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
