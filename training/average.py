"""Average the weights of a checkpoint and of an earlier one of the same training.

    python -m training.average --later CHECKPOINT --earlier CHECKPOINT --out FOLDER [--share 0.7]

A model that was trained on for one kind of text forgets some of what it knew of others; between the two lie
models that know nearly all of both (Wortsman et al., "Robust fine-tuning of zero-shot models", 2022).
``--earlier`` is a copy of the checkpoint from before its end, or what it was started from. ``--share`` is
that of the later one, whose ``training.json`` is kept, with the shares.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Final

from training.checkpoint import DESCRIPTION, described_in
from training.examples import DataError
from training.model_card import datasets_of
from training.steps import running

_SHARE: Final = 0.7


def average(later: Path, earlier: Path, out: Path, *, share: float) -> None:
    """Write ``share`` of the weights of ``later`` and the rest of those of ``earlier``.

    Raises DataError, also where ``earlier`` read data sets that ``later`` doesn't tell of: what is exported
    must name all that it was trained on.
    """
    from training.verifier import Verifier

    if not 0.0 <= share <= 1.0:
        raise DataError(f"--share {share}: must lie within 0 and 1")
    described, before = described_in(later), described_in(earlier)
    if foreign := sorted(datasets_of(before).keys() - datasets_of(described).keys()):
        raise DataError(
            f"--earlier {earlier}: was trained on {', '.join(foreign)}, and --later {later} was not; name a "
            "checkpoint of the same training"
        )
    model = Verifier.load(later)
    weights, others = model.state_dict(), Verifier.load(earlier).state_dict()
    for name, tensor in weights.items():
        if tensor.is_floating_point():
            if name not in others or tensor.shape != others[name].shape:
                raise DataError(
                    f"--earlier {earlier}: has no {name} of the shape that --later {later} has; name a "
                    "checkpoint of the same training"
                )
            weights[name] = share * tensor + (1.0 - share) * others[name]
    model.load_state_dict(weights)
    model.save(out)
    described["weights"] = (
        f"{share} of those at the end, the rest of those of an earlier checkpoint, at "
        f"{before.get('pairs', '?')} pairs of its course, averaged"
    )
    (out / DESCRIPTION).write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Run the step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--later", type=Path, required=True)
    parser.add_argument("--earlier", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--share", type=float, default=_SHARE)
    options = parser.parse_args()
    with running(parser, "average"):
        average(options.later, options.earlier, options.out, share=options.share)


if __name__ == "__main__":
    main()
