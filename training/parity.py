"""Whether two forms of the verifier say the same, and how long each takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from guardrail.evals.statistics import auroc
from training.encoding import encode

Arrays: TypeAlias = Mapping[str, Any]
Form: TypeAlias = Callable[[Arrays], tuple[Any, Any]]
"""Encoded pairs -> ``(logits [B, 2], token_logits [B, T])``."""

_BATCH: Final = 8
_TIMED_TOKENS: Final = 128


@dataclass(frozen=True, slots=True)
class Pair:
    """A claim, one premise, and whether the premise supports it (None: nobody said)."""

    claim: str
    premise: str
    supported: bool | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """How far the second form is from the first: of logits, and of the probabilities made of them."""

    logits_max: float
    probability_mean: float
    probability_p99: float
    tokens_mean: float
    auroc_lost: float | None
    """Points of AUROC of support, in percent; None where the pairs have no labels of both classes."""


def onnx_form(path: Path, threads: int = 2) -> Form:
    """A graph as onnxruntime runs it."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def run(arrays: Arrays) -> tuple[Any, Any]:
        logits, tokens = session.run(["logits", "token_logits"], dict(arrays))
        return logits, tokens

    return run


def compare(first: Form, second: Form, tokenizer: Any, pairs: Sequence[Pair], max_tokens: int) -> Difference:
    """The difference over all pairs, in batches of unequal lengths so that padding takes part."""
    logits: tuple[list[Any], list[Any]] = ([], [])
    tokens: tuple[list[Any], list[Any]] = ([], [])
    for start in range(0, len(pairs), _BATCH):
        batch = [(pair.claim, pair.premise) for pair in pairs[start : start + _BATCH]]
        arrays = encode(tokenizer, batch, max_tokens)
        claims = (arrays["attention_mask"] == 1) & (arrays["token_type_ids"] == 0)
        for n, form in enumerate((first, second)):
            pooled, each = form(arrays)
            logits[n].append(pooled)
            tokens[n].append(each[claims])
    a, b = (np.concatenate(side) for side in logits)
    apart = np.abs(_sigmoid(a) - _sigmoid(b))
    both = [np.concatenate(side) for side in tokens]
    return Difference(
        logits_max=float(np.abs(a - b).max()),
        probability_mean=float(apart.mean()),
        probability_p99=float(np.quantile(apart, 0.99)),
        tokens_mean=float(np.abs(_sigmoid(both[0]) - _sigmoid(both[1])).mean()),
        auroc_lost=_lost(pairs, a[:, 0], b[:, 0]),
    )


def milliseconds(form: Form, *, tokens: int = _TIMED_TOKENS, rounds: int = 15) -> float:
    """The best time of one pair of so many tokens: the figure that other work on the machine moves least."""
    arrays = {
        "input_ids": np.full((1, tokens), 7, dtype=np.int64),
        "attention_mask": np.ones((1, tokens), dtype=np.int64),
        "token_type_ids": (np.arange(tokens) >= tokens // 4).astype(np.int64)[None],
    }
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        form(arrays)
        times.append(time.perf_counter() - begun)
    return 1000 * min(times)


def _lost(pairs: Sequence[Pair], a: Any, b: Any) -> float | None:
    known = [n for n, pair in enumerate(pairs) if pair.supported is not None]
    truths = [bool(pairs[n].supported) for n in known]
    if len(set(truths)) < 2:
        return None
    return 100 * (auroc(truths, a[known]) - auroc(truths, b[known]))


def _sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x.astype(np.float64)))
