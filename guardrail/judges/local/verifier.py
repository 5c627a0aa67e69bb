"""The embedded verifier: a small cross-encoder that reads a claim beside a premise."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from guardrail.errors import ConfigError, JudgeReplyError, JudgeUnavailable
from guardrail.judges.local.fitted import FittedVerifier
from guardrail.judges.local.processors import default_threads
from guardrail.judges.local.verifier_files import (
    MANIFEST,
    MODEL,
    RUNTIME,
    TOKENIZER,
    Manifest,
    missing_runtime,
    read_folder,
)
from guardrail.judges.special_tokens import SpecialTokens

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

_FIELD: Final = "judge.local.verifier.path"
_INPUTS: Final = ("input_ids", "attention_mask", "token_type_ids")
_OUTPUTS: Final = ("logits", "token_logits")
_SLOWER: Final = ["SkipLayerNormFusion"]  # a tenth of the run: its kernel for processors is scalar
_LOADED: Final = 2  # verifiers kept in memory for judges to come
_LOADING: Final = threading.Lock()
_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Reading:
    """What the verifier says of a claim beside one premise; all numbers are probabilities, 0..1.

    ``tokens`` are ``(start, end, unsupported)`` of the claim's tokens, in code points of the claim.
    """

    support: float
    contradiction: float
    tokens: tuple[tuple[int, int, float], ...]


class Verifier:
    """A loaded verifier. Thread-safe: judges and their threads share one.

    A run takes the threads it may as long as it is the only one, and one beside others: several runs that
    share processors take less time with a thread each.
    """

    def __init__(
        self, manifest: Manifest, session: Any, tokenizer: Tokenizer, beside: Any | None = None
    ) -> None:
        """Pairs are given to the model one by one: on processors a batch takes as long as its pairs one
        after the other, and a graph in int8 rounds by all that is in the batch, so that a claim's score would
        depend on its neighbours. ``session`` runs a pair while no other runs, ``beside`` (the same model)
        one beside others; without it ``session`` runs all.
        """
        import numpy as np

        self._np: Any = np
        self._alone, self._beside = session, beside or session
        self._running = 0
        self._counting = threading.Lock()
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self._special = SpecialTokens(tokenizer)
        self._marks_of_pair = self._special.count(tokenizer.encode("a", "a").ids)
        self.name = manifest.name
        self.sha256 = manifest.checksum
        self.max_tokens = manifest.max_tokens
        self.overhead = tokenizer.num_special_tokens_to_add(is_pair=True)

    def fitted(self) -> FittedVerifier:
        """What parameters that are fitted with this verifier say of it."""
        return FittedVerifier(name=self.name, sha256=self.sha256)

    def encode(self, text: str) -> Encoding:
        """The tokens of a claim or premise, free of special ones; offsets are code points of ``text``.

        Halves of surrogate pairs, which no tokenizer takes, are read as U+FFFD.
        """
        return self._special.encode(_HALF_PAIR.sub("\ufffd", text))

    def forged(self, text: Encoding) -> bool:
        """Whether special tokens are left in what ``encode`` gave: such a text must not be read."""
        return self._special.count(text.ids) > 0

    def unknown(self, text: Encoding) -> list[tuple[int, int]]:
        """The spans of words that the vocabulary lacks: they read alike, whatever they say."""
        return self._special.unknown(text)

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Reading]:
        """The readings of ``(claim, premise)`` pairs, in their order. Blocks. Raises as ``read`` does."""
        return [self.read(self.encode(claim), self.encode(premise)) for claim, premise in pairs]

    def read(self, claim: Encoding, premise: Encoding) -> Reading:
        """What the model says of a claim beside a premise.

        Raises ValueError for a pair of more than ``max_tokens``, which the caller must have cut;
        JudgeUnavailable where the model fails, and JudgeReplyError where the pair forges special tokens or
        the model's output is not a number.
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
        """Have the model read a pair of ``max_tokens``, to see that it has as many positions.

        Raises JudgeUnavailable where it fails, and JudgeReplyError as ``read`` does.
        """
        claim = self.encode("a")
        joined = self._tokenizer.post_process(claim, claim)
        # Lengthened by a token of a text: a model may count no position for the one that pads.
        joined.pad(self.max_tokens, pad_id=claim.ids[0], pad_type_id=joined.type_ids[-1])
        self._run(joined)

    def _run(self, pair: Encoding) -> tuple[list[float], list[float]]:
        np = self._np
        columns = (pair.ids, pair.attention_mask, pair.type_ids)
        feeds = {name: np.array([values], np.int64) for name, values in zip(_INPUTS, columns, strict=True)}
        with self._counting:
            session = self._beside if self._running else self._alone
            self._running += 1
        try:
            logits, tokens = session.run(list(_OUTPUTS), feeds)
        except Exception as error:  # noqa: BLE001 (the runtime's errors have no common root, and texts in them)
            raise JudgeUnavailable(f"the verifier failed ({type(error).__name__})") from None
        finally:
            with self._counting:
                self._running -= 1
        if logits.shape != (1, 2) or tokens.shape != (1, len(pair.ids)):
            raise JudgeReplyError(
                f"the verifier gave outputs of shapes {logits.shape} and {tokens.shape} for a pair of "
                f"{len(pair.ids)} tokens"
            )
        if not (np.isfinite(logits).all() and np.isfinite(tokens).all()):
            raise JudgeReplyError("the verifier's output is not a number")
        return logits[0].tolist(), tokens[0].tolist()


def _reading(claim: Encoding, joined: Encoding, logits: list[float], tokens: list[float]) -> Reading:
    # The claim's tokens are the first of those that aren't special, in the order they had alone.
    places = [at for at, special in enumerate(joined.special_tokens_mask) if not special]
    marked = tuple(
        (start, end, _logistic(tokens[at])) for at, (start, end) in zip(places, claim.offsets, strict=False)
    )
    return Reading(_logistic(logits[0]), _logistic(logits[1]), marked)


def _logistic(value: float) -> float:
    if value >= 0.0:
        return 1.0 / (1.0 + math.exp(-value))
    grown = math.exp(value)
    return grown / (1.0 + grown)


def load_verifier(folder: Path, threads: int | None = None) -> Verifier:
    """The verifier of a folder, tried on a short pair and the longest. Blocks for some tenths of a second.

    ``threads`` are those of one run of the model; None: ``default_threads``. Whoever asks for as many shares
    one model. Raises ConfigError: a file that is missing, damaged or too large, a graph with other inputs or
    outputs or fewer positions than the manifest's ``max_tokens``, a runtime that is not installed.
    """
    with _LOADING:  # who asks meanwhile waits for the same model, rather than load it again
        return _load(folder, threads or default_threads())


@lru_cache(maxsize=_LOADED)
def _load(folder: Path, threads: int) -> Verifier:
    manifest, model, tokens = read_folder(folder)
    try:
        _, onnxruntime, tokenizers = (import_module(name) for name in RUNTIME)
    except ImportError as error:
        raise missing_runtime(error.name or "onnxruntime") from None
    try:
        tokenizer = tokenizers.Tokenizer.from_buffer(tokens)
    except Exception as error:  # noqa: BLE001 (the library raises bare Exception)
        raise ConfigError(
            f"{_FIELD}: {folder / TOKENIZER} is no tokenizer ({type(error).__name__}); export again"
        ) from None
    session = _session(onnxruntime, folder, model, threads)
    _fitting(session, folder)
    try:
        beside = _session(onnxruntime, folder, model, 1) if threads > 1 else None
        verifier = Verifier(manifest, session, tokenizer, beside)
        verifier.score([("The sky is blue.", "The sky is blue today.")])
    except Exception as error:  # noqa: BLE001 (the runtimes' errors have no common root)
        raise ConfigError(
            f"{_FIELD}: the verifier in {folder} fails on a pair of sentences ({error}); check that "
            "model and tokenizer go together, and export again"
        ) from None
    try:
        verifier.read_longest()  # the manifest's own numbers are under no checksum
    except Exception as error:  # noqa: BLE001 (as above)
        raise ConfigError(
            f"{_FIELD}: {folder / MANIFEST}, max_tokens: the model fails on a pair of {manifest.max_tokens} "
            f"tokens ({error}); set it to what the model was exported with, no more than its positions, or "
            "copy the folder again"
        ) from None
    return verifier


def _session(runtime: Any, folder: Path, model: bytes, threads: int) -> Any:
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Threads that wait for the next run must not take the processor from the event loop.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return runtime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"], disabled_optimizers=_SLOWER
        )
    except Exception as error:  # noqa: BLE001 (the runtime's errors have no common root)
        raise ConfigError(
            f"{_FIELD}: {folder / MODEL} can't be loaded ({type(error).__name__}); export it again"
        ) from None


def _fitting(session: Any, folder: Path) -> None:
    for kind, wanted, values in (
        ("takes", _INPUTS, session.get_inputs()),
        ("gives", _OUTPUTS, session.get_outputs()),
    ):
        found = {value.name for value in values}
        if found != set(wanted):
            raise ConfigError(
                f"{_FIELD}: {folder / MODEL} {kind} {', '.join(sorted(found))}; a verifier {kind} "
                f"{', '.join(wanted)}: export it with training.export"
            )
