"""The loop that trains a verifier: pairs -> batches -> loss -> steps, with checkpoints on the way.

What the loss is made of, and what is written: ``training.train``.
"""

from __future__ import annotations

import argparse
import json
import math
import pickle
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from guardrail.judges.model import SpecialTokens
from training.checkpoint import DESCRIPTION
from training.encoding import encode
from training.examples import DataError
from training.pairs import TrainingPair
from training.verifier import Verifier, claim_mask

_WARM_UP: Final = 0.05
_CONTRADICTION: Final = 0.5
_TOKENS: Final = 0.33
_APART: Final = 0.5
_REMEMBERED: Final = 0.5
_UNKNOWN: Final = -1.0
_SORTED_WITHIN: Final = 4096  # pairs; batches of like length are made of that many neighbours
_PROGRESS: Final = "progress.pt"  # weights, optimizer, place: one file, so that they fit each other
_SAME: Final = (
    "base", "before", "seed", "rate", "batch_tokens", "max_tokens", "frozen_layers", "precision", "pairs",
    "datasets", "remembers",
)  # fmt: skip
"""What a run that goes on must have in common with the one that was cut short: which pairs are read in which
batches, and how. Where it is trained may differ."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Inputs ``[B, T]``, targets ``[B, 2]`` (support, contradiction) and ``[B, T]`` (unsupported); a target
    that nobody knows is -1."""

    inputs: dict[str, Tensor]
    targets: Tensor
    tokens: Tensor
    twins: Tensor

    def to(self, device: str) -> Batch:
        """The same on a device."""
        moved = {name: tensor.to(device) for name, tensor in self.inputs.items()}
        return Batch(moved, self.targets.to(device), self.tokens.to(device), self.twins.to(device))


def batches(
    pairs: Sequence[TrainingPair], tokenizer: Any, *, batch_tokens: int, max_tokens: int, seed: int
) -> Iterator[Batch]:
    """The pairs in batches of at most ``batch_tokens`` (padding included), in an order that the seed sets."""
    random_ = random.Random(seed)
    for start in range(0, len(pairs), _SORTED_WITHIN):
        units: list[list[TrainingPair]] = []
        for pair in pairs[start : start + _SORTED_WITHIN]:
            if units and pair.twin is not None and units[-1][-1].twin == pair.twin:
                units[-1].append(pair)
            else:
                units.append([pair])
        units.sort(key=_length)
        groups: list[list[TrainingPair]] = [[]]
        for unit in units:
            longest = min(max_tokens, _length(unit) // 4 + 4)
            if groups[-1] and longest * (len(groups[-1]) + len(unit)) > batch_tokens:
                groups.append([])
            groups[-1].extend(unit)
        random_.shuffle(groups)
        for group in groups:
            yield _batch(group, tokenizer, max_tokens)


def _length(unit: Sequence[TrainingPair]) -> int:
    return max(len(pair.claim) + len(pair.premise) for pair in unit)


def _twins(group: Sequence[TrainingPair]) -> Tensor:
    """``[N, 2]``: the places of a supported claim and of its wrong twin in the batch."""
    at: dict[int, dict[bool, int]] = {}
    for number, pair in enumerate(group):
        if pair.twin is not None:
            at.setdefault(pair.twin, {})[pair.supported] = number
    both = [(sides[True], sides[False]) for sides in at.values() if len(sides) == 2]
    return torch.tensor(both, dtype=torch.long).reshape(-1, 2)


def _batch(group: Sequence[TrainingPair], tokenizer: Any, max_tokens: int) -> Batch:
    arrays = encode(tokenizer, [(pair.claim, pair.premise) for pair in group], max_tokens)
    inputs = {name: torch.from_numpy(array) for name, array in arrays.items()}
    targets = torch.tensor(
        [
            [float(pair.supported), _UNKNOWN if pair.contradicted is None else float(pair.contradicted)]
            for pair in group
        ]
    )
    marks = torch.full(inputs["input_ids"].shape, _UNKNOWN)
    special = SpecialTokens(tokenizer)
    for row, pair in enumerate(group):
        if pair.spans is None:
            continue
        offsets = special.encode(pair.claim).offsets
        for at, (start, end) in enumerate(offsets[: marks.shape[1] - 1], 1):
            marks[row, at] = float(any(start < last and first < end for first, last in pair.spans))
    claim = claim_mask(inputs["attention_mask"], inputs["token_type_ids"])
    return Batch(inputs, targets, torch.where(claim.bool(), marks, torch.tensor(_UNKNOWN)), _twins(group))


def loss_of(logits: Tensor, token_logits: Tensor, batch: Batch) -> Tensor:
    """The mean over what is known of each target, weighted as the module says."""
    support = functional.binary_cross_entropy_with_logits(logits[:, 0], batch.targets[:, 0])
    contradiction = _known(logits[:, 1], batch.targets[:, 1])
    tokens = _known(token_logits, batch.tokens)
    loss = support + _CONTRADICTION * contradiction + _TOKENS * tokens
    if len(batch.twins):
        apart = logits[batch.twins[:, 0], 0] - logits[batch.twins[:, 1], 0]
        loss = loss + _APART * functional.softplus(-apart).mean()
    return loss


def remembered(batch: Batch, memory: Verifier) -> Batch:
    """The batch with targets halfway between the labels and what ``memory`` says of its pairs, but for twins,
    which are there to be learned; where nobody knows the label, what ``memory`` says. (Learning without
    forgetting, Li and Hoiem 2016, with the labels kept.)"""
    rows = torch.ones(len(batch.targets), dtype=torch.bool, device=batch.targets.device)
    rows[batch.twins.flatten()] = False
    if not rows.any():
        return batch
    with torch.inference_mode():
        said = torch.sigmoid(memory(**{name: each[rows] for name, each in batch.inputs.items()})[0].float())
    targets = batch.targets.clone()
    labels = targets[rows]
    halfway = _REMEMBERED * said + (1.0 - _REMEMBERED) * labels
    targets[rows] = torch.where(labels == _UNKNOWN, said, halfway)
    return replace(batch, targets=targets)


def _known(logits: Tensor, targets: Tensor) -> Tensor:
    known = (targets != _UNKNOWN).to(logits.dtype)
    each = functional.binary_cross_entropy_with_logits(logits, targets.clamp(min=0.0), reduction="none")
    return (each * known).sum() / known.sum().clamp(min=1.0)


def rate(done: float) -> float:
    """The learning rate's share of its highest when ``done`` (0..1) of the pairs are read."""
    return min(1.0, done / _WARM_UP) * min(1.0, (1.0 - done) / (1.0 - _WARM_UP))


def train(
    model: Verifier,
    pairs: Sequence[TrainingPair],
    out: Path,
    *,
    options: argparse.Namespace,
    described: dict[str, Any],
    memory: Verifier | None = None,
) -> dict[str, Any]:
    """Train ``model`` in place and save it; returns what ``training.json`` says. ``memory``: what it was
    before it forgot (``remembered``)."""
    device = options.device
    tokenizer = Tokenizer.from_str(model.tokenizer_json)
    if options.freeze_layers:  # what lies below a layer that stays as it is stays too
        model.encoder.embeddings.requires_grad_(False)
    for layer in model.encoder.encoder.layer[: options.freeze_layers]:
        layer.requires_grad_(False)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=options.rate, weight_decay=0.01, fused=True)
    model.to(device).train()
    if memory is not None:
        memory.to(device).eval()
    done, losses, began, saved = 0, [], time.monotonic(), time.monotonic()
    read, last = 0, min(len(pairs), options.stop_at or len(pairs))
    told = {name: described.get(name) for name in _SAME} | {"pairs": last}
    if options.resume and (out / _PROGRESS).exists():
        done = _resumed(model, optimizer, out / _PROGRESS, told)
    for number, batch in enumerate(
        batches(
            pairs,
            tokenizer,
            batch_tokens=options.batch_tokens,
            max_tokens=options.max_tokens,
            seed=options.seed,
        )
    ):
        read += len(batch.targets)
        if read <= done:
            continue
        if read > last:
            break
        for group in optimizer.param_groups:
            group["lr"] = options.rate * rate(read / last)
        here = batch.to(device)
        with torch.autocast(device, torch.bfloat16, enabled=options.precision == "bfloat16"):
            if memory is not None:
                here = remembered(here, memory)
            logits, token_logits = model(**here.inputs)
        loss = loss_of(logits.float(), token_logits.float(), here)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        if number % 20 == 0:
            recent = losses[-100:]
            mean, pace = sum(recent) / len(recent), (read - done) / (time.monotonic() - began)
            print(f"{read:8,} of {last:,} pairs  loss {mean:.4f}  {pace:.1f}/s", flush=True)
        if time.monotonic() - saved > options.save_minutes * 60:
            model.save(out)
            _keep(model, optimizer, out / _PROGRESS, read, told)
            saved = time.monotonic()
        if math.isnan(losses[-1]):
            raise DataError("the loss is not a number; lower --rate")
    model.save(out)
    described |= {
        "pairs": min(read, last),
        "final_loss": round(sum(losses[-100:]) / max(1, len(losses[-100:])), 4),
        "seconds": round(time.monotonic() - began),
    }
    (out / DESCRIPTION).write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")
    return described


def _keep(
    model: Verifier, optimizer: torch.optim.Optimizer, file: Path, done: int, told: dict[str, Any]
) -> None:
    """Write what ``_resumed`` takes up, whole or not at all; for dropout the state of random numbers."""
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "done": done,
        "run": told,
        "random": torch.get_rng_state(),
        "random_cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }
    begun = file.with_suffix(".part")
    torch.save(state, begun)
    begun.replace(file)


def _resumed(model: Verifier, optimizer: torch.optim.Optimizer, file: Path, told: dict[str, Any]) -> int:
    """Put model and optimizer where the training stopped; returns how many pairs it had read.

    Raises DataError, also where what ``told`` says of this run is not what that one said.
    """
    try:
        state = torch.load(file, map_location="cpu", weights_only=True)
        before = {name: state["run"][name] for name in told}
        if before == told:
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
            torch.set_rng_state(state["random"])
            if torch.cuda.is_available() and state["random_cuda"]:
                torch.cuda.set_rng_state_all(state["random_cuda"])
            return int(state["done"])
    except (EOFError, KeyError, RuntimeError, TypeError, ValueError, pickle.UnpicklingError) as error:
        raise DataError(
            f"{file}: can't be gone on with ({type(error).__name__}); give the options of the run that was "
            "cut short, or remove the file: the pairs are then read from the first one on"
        ) from error
    other = next(name for name in told if before[name] != told[name])
    raise DataError(
        f"{file}: {other} was {before[other]!r:.60} in the run that was cut short and is {told[other]!r:.60} "
        "now; give its options and work folder, or remove the file: the pairs are then read from the first "
        "one on"
    )
