"""The local judge's verifier: a small cross-encoder that reads a claim beside a premise. Its folder has a
manifest with checksums.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from guardrail.errors import ConfigError, JudgeError, JudgeReplyError, JudgeUnavailable
from guardrail.frozen import Frozen
from guardrail.judges.model.runtime import TOKENIZER, OnnxGraph, default_threads, logistic, onnx_session
from guardrail.judges.model.settings import ServerSettings
from guardrail.judges.model.tokens import IDS, MASK, TYPES, SpecialTokens, Tokens

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

    from guardrail.judges.model.servers import RemoteGraph


# ----------------------------------------------------------------------------------- the folder of a verifier

MODEL: Final = "model.onnx"
MANIFEST: Final = "manifest.json"
MOST_BYTES: Final = 35_000_000
VERIFIER: Final = "judge.local.verifier.path"
RUNTIME: Final = ("numpy", "onnxruntime", "tokenizers")
"""What a verifier runs on. numpy first: onnxruntime's own error does not name it."""
_MOST_MANIFEST_BYTES: Final = 65_536
_CHECKED: Final = (MODEL, TOKENIZER)

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""64 hexadecimal digits, lower case."""


class Manifest(BaseModel):
    """``manifest.json``: describes the folder. Fields that are not listed here say how it was made."""

    model_config = ConfigDict(extra="allow", frozen=True)

    version: Literal[1]
    name: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    max_tokens: int = Field(ge=64, le=4096, description="Longest pair that the model reads.")
    sha256: dict[str, Sha256] = Field(description="Checksum of each file, in hexadecimal.")

    @property
    def checksum(self) -> str:
        """Of model and tokenizer together: the same model means something else with other tokens."""
        sums = "\n".join(f"{name} {self.sha256.get(name)}" for name in _CHECKED)
        return hashlib.sha256(sums.encode()).hexdigest()


class FittedVerifier(Frozen):
    """The verifier that parameters were fitted with: another one's scores mean something else."""

    name: str
    sha256: Sha256 = Field(description="Of its model and tokenizer together (Manifest.checksum).")


def missing_runtime(module: str) -> ConfigError:
    """The error for a missing library that the verifier runs on."""
    return ConfigError(
        f"judge.local.verifier: {module} is not installed, though the package requires it; install the "
        "package again with its requirements, or set judge.local.verifier.enabled to false"
    )


def read_folder(folder: Path) -> tuple[Manifest, bytes, bytes]:
    """``(manifest, model, tokenizer)``, with both checksums verified. Raises ConfigError.

    Exactly the verified bytes are loaded, so a file that is replaced meanwhile changes nothing.
    """
    manifest = _manifest(folder)
    total = sum(_size(folder / name) for name in _CHECKED)
    if total > MOST_BYTES:
        raise ConfigError(
            f"{VERIFIER}: {MODEL} and {TOKENIZER} in {folder} have {total:,} bytes, more than "
            f"{MOST_BYTES:,}; export a smaller model (int8)"
        )
    model, tokenizer = (_checked(folder / name, manifest) for name in _CHECKED)
    return manifest, model, tokenizer


def _manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    if _size(path) > _MOST_MANIFEST_BYTES:
        raise ConfigError(f"{VERIFIER}: {path} is not a manifest: it is too large; export the verifier again")
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{VERIFIER}: {path} can't be read ({type(error).__name__}); export again"
        ) from None
    version = raw.get("version") if isinstance(raw, dict) else None
    if version != 1:
        raise ConfigError(
            f"{VERIFIER}: {path} has version {version!r}, this release reads version 1; export the verifier "
            "again with training.export, or install the release it was made for"
        )
    try:
        return Manifest.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{VERIFIER}: {path}, {field}: {first['msg']}; export the verifier again") from None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise ConfigError(
            f"{VERIFIER}: {path} can't be read ({error.strerror}); give a folder that training.export wrote"
        ) from None


def _checked(path: Path, manifest: Manifest) -> bytes:
    expected = manifest.sha256.get(path.name)
    if expected is None:
        raise ConfigError(f"{VERIFIER}: the manifest has no sha256 of {path.name}; export the verifier again")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{VERIFIER}: {path} can't be read ({error.strerror})") from None
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise ConfigError(
            f"{VERIFIER}: {path} is damaged or not the file of this verifier: its sha256 is {found}, the "
            f"manifest says {expected}; copy the folder again, or reinstall the package"
        )
    return content


# -------------------------------------------------------------------------------------------------- the model

_INPUTS: Final = (IDS, MASK, TYPES)
_OUTPUTS: Final = ("logits", "token_logits")
_LOADED: Final = 2  # verifiers kept in memory for later judges
_LOADING: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class Reading:
    """The verifier's result for a claim beside one premise; all numbers are probabilities, 0..1.

    ``tokens`` are ``(start, end, unsupported)`` of the claim's tokens, in code points of the claim.
    """

    support: float
    contradiction: float
    tokens: tuple[tuple[int, int, float], ...]


class Verifier:
    """A loaded verifier. Thread-safe: judges and their threads share one."""

    def __init__(self, manifest: Manifest, graph: OnnxGraph | RemoteGraph, tokenizer: Tokenizer) -> None:
        """The model gets pairs one by one: on CPUs a batch takes as long as its pairs one after the other,
        and an int8 graph rounds by everything in the batch, so that a claim's score would depend on its
        neighbours.
        """
        self._graph = graph
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self._special = SpecialTokens(tokenizer)
        self._marks_of_pair = self._special.count(tokenizer.encode("a", "a").ids)
        self.name = manifest.name
        self.sha256 = manifest.checksum
        self.max_tokens = manifest.max_tokens
        self.overhead = tokenizer.num_special_tokens_to_add(is_pair=True)

    def close(self) -> None:
        """End the calls to a server, if one runs the model; a model of this process is shared, and stays."""
        if not isinstance(self._graph, OnnxGraph):
            self._graph.close()

    def fitted(self) -> FittedVerifier:
        """How parameters fitted with this verifier identify it."""
        return FittedVerifier(name=self.name, sha256=self.sha256)

    def encode(self, text: str) -> Encoding:
        """The tokens of a claim or premise, without special ones; offsets are code points of ``text``."""
        return self._special.encode(text)

    def forged(self, text: Encoding) -> bool:
        """Whether special tokens are left in the output of ``encode``: such a text must not be read."""
        return self._special.count(text.ids) > 0

    def unknown(self, text: Encoding) -> list[tuple[int, int]]:
        """The spans of words that the vocabulary lacks: they all read the same, whatever they say."""
        return self._special.unknown(text)

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Reading]:
        """The readings of ``(claim, premise)`` pairs, in order. Blocks. Raises like ``read``."""
        return [self.read(self.encode(claim), self.encode(premise)) for claim, premise in pairs]

    def read(self, claim: Encoding, premise: Encoding) -> Reading:
        """What the model says about a claim beside a premise.

        Raises ValueError for a pair of more than ``max_tokens``, which the caller must have cut;
        JudgeUnavailable if the model fails; and JudgeReplyError if the pair forges special tokens or the
        model's output is not a number.
        """
        joined = self._tokenizer.post_process(claim, premise)
        if len(joined.ids) > self.max_tokens:
            raise ValueError(
                f"a pair has {len(joined.ids)} tokens, more than the verifier's {self.max_tokens}; "
                "cut the premise"
            )
        if self._special.count(joined.ids) != self._marks_of_pair:
            raise JudgeReplyError("a text forges special tokens of the verifier")
        logits, tokens = self._run(joined)
        return _reading(claim, joined, logits, tokens)

    def read_longest(self) -> None:
        """Have the model read a pair of ``max_tokens``, to check that it has enough positions.

        Raises JudgeUnavailable if it fails, and JudgeReplyError like ``read``.
        """
        claim = self.encode("a")
        joined = self._tokenizer.post_process(claim, claim)
        # Lengthened by an ordinary token: a model may assign no position to padding.
        joined.pad(self.max_tokens, pad_id=claim.ids[0], pad_type_id=joined.type_ids[-1])
        self._run(joined)

    def _run(self, pair: Encoding) -> tuple[list[float], list[float]]:
        try:
            logits, tokens = self._graph.run(_OUTPUTS, [Tokens.of(pair)])
        except JudgeError:
            raise
        except Exception as error:  # noqa: BLE001 (the runtime's errors have no common root, and texts in them)
            raise JudgeUnavailable(f"the verifier failed ({type(error).__name__})") from None
        if logits.shape != (1, 2) or tokens.shape != (1, len(pair.ids)):
            raise JudgeReplyError(
                f"the verifier gave outputs of shapes {logits.shape} and {tokens.shape} for a pair of "
                f"{len(pair.ids)} tokens"
            )
        told: list[float] = logits[0].tolist()
        marks: list[float] = tokens[0].tolist()
        if not all(map(math.isfinite, (*told, *marks))):
            raise JudgeReplyError("the verifier's output is not a number")
        return told, marks


def _reading(claim: Encoding, joined: Encoding, logits: list[float], tokens: list[float]) -> Reading:
    # The claim's tokens are the first of those that aren't special, in the order they had alone.
    places = [at for at, special in enumerate(joined.special_tokens_mask) if not special]
    marked = tuple(
        (start, end, logistic(tokens[at])) for at, (start, end) in zip(places, claim.offsets, strict=False)
    )
    return Reading(logistic(logits[0]), logistic(logits[1]), marked)


def load_verifier(folder: Path) -> Verifier:
    """The verifier of a folder, tested on a short pair and the longest. Blocks for some tenths of a second.

    Callers share one model. Raises ConfigError for a missing, damaged or too large file, a graph with other
    inputs or outputs or fewer positions than the manifest's ``max_tokens``, or a missing runtime.
    """
    with _LOADING:  # concurrent callers wait for the same model rather than load it again
        return _load(folder, default_threads())


def served_verifier(folder: Path, server: ServerSettings) -> Verifier:
    """The verifier of a folder whose model a server runs: here it is cut into tokens. Asks nothing yet.

    Raises ConfigError like ``load_verifier``, but for what only the model shows.
    """
    from guardrail.judges.model.servers import RemoteGraph

    manifest, _, tokens = read_folder(folder)
    _, tokenizers = _imported("numpy", "tokenizers")
    return Verifier(manifest, RemoteGraph(server, _OUTPUTS), _tokenizer(tokenizers, folder, tokens))


def _imported(*names: str) -> list[Any]:
    try:
        return [import_module(name) for name in names]
    except ImportError as error:
        raise missing_runtime(error.name or names[-1]) from None


def _tokenizer(tokenizers: Any, folder: Path, content: bytes) -> Tokenizer:
    try:
        made: Tokenizer = tokenizers.Tokenizer.from_buffer(content)
    except Exception as error:  # noqa: BLE001 (the library raises bare Exception)
        raise ConfigError(
            f"{VERIFIER}: {folder / TOKENIZER} is not a tokenizer ({type(error).__name__}); export again"
        ) from None
    return made


@lru_cache(maxsize=_LOADED)
def _load(folder: Path, threads: int) -> Verifier:
    manifest, model, tokens = read_folder(folder)
    _, _, tokenizers = _imported(*RUNTIME)
    tokenizer = _tokenizer(tokenizers, folder, tokens)
    try:
        beside = onnx_session(model, 1) if threads > 1 else None
        graph = OnnxGraph(onnx_session(model, threads), beside)
    except Exception as error:  # noqa: BLE001 (the runtime's errors have no common root)
        raise ConfigError(
            f"{VERIFIER}: {folder / MODEL} can't be loaded ({type(error).__name__}); export it again"
        ) from None
    for kind, wanted, found in (("takes", _INPUTS, graph.inputs), ("gives", _OUTPUTS, graph.outputs)):
        if set(found) != set(wanted):
            raise ConfigError(
                f"{VERIFIER}: {folder / MODEL} {kind} {', '.join(sorted(found))}; a verifier {kind} "
                f"{', '.join(wanted)}: export it with training.export"
            )
    try:
        verifier = Verifier(manifest, graph, tokenizer)
        verifier.score([("The sky is blue.", "The sky is blue today.")])
    except Exception as error:  # noqa: BLE001 (the runtimes' errors have no common root)
        raise ConfigError(
            f"{VERIFIER}: the verifier in {folder} fails on a pair of sentences ({error}); check that "
            "model and tokenizer go together, and export again"
        ) from None
    try:
        verifier.read_longest()  # no checksum covers the manifest's own numbers
    except Exception as error:  # noqa: BLE001 (as above)
        raise ConfigError(
            f"{VERIFIER}: {folder / MANIFEST}, max_tokens: the model fails on a pair of "
            f"{manifest.max_tokens} tokens ({error}); set it to what the model was exported with, no "
            "more than its positions, or copy the folder again"
        ) from None
    return verifier
