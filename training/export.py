"""A trained checkpoint -> the folder of a verifier: ONNX in int8, tokenizer, manifest, model card, the
text of its base's licence where that must go with the weights (``training/licences``), and the checkpoint's
``training.json``, for who trains it on (``training.restore``).

    python -m training.export --checkpoint WORK/checkpoint --out FOLDER

The graph in float32 must say what torch says (logits within 5e-4); the one in int8 must stay within 0.04
of its probabilities in the mean and lose no more than half a point of AUROC, both on pairs of
``WORK/prepared.jsonl.gz`` that were held out of training; otherwise nothing is written.
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import json
import random
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from training.checkpoint import DESCRIPTION, described_in
from training.examples import DataError, read_examples
from training.model_card import card, unshippable
from training.parity import Difference, Form, Pair, compare, milliseconds, onnx_form
from training.steps import running

SEED: Final = 20261121
MOST_BYTES: Final = 35_000_000
FLOAT_TOLERANCE: Final = 5e-4  # of logits: no probability moves by more than a quarter of it, int8 by 0.02
INT8_TOLERANCE: Final = 0.04
MOST_LOST: Final = 0.5
_PAIRS: Final = 800  # fewer tell half a point of AUROC from chance badly
_PREMISE_WORDS: Final = 150
_FILES: Final = ("model.onnx", "tokenizer.json")
_LICENCE: Final = "LICENSE."
LICENCES: Final = Path(__file__).with_name("licences")


def held_out_pairs(work: Path, *, count: int = _PAIRS, seed: int = SEED) -> list[Pair]:
    """A sample of the held-out rows whose contexts are one premise that is read whole. Raises DataError."""
    found = []
    for name in ("prepared.jsonl.gz", "synthetic.jsonl.gz"):
        if (work / name).exists():
            for row in read_examples(work / name):
                premise = " ".join(row.contexts)
                if row.held_out and 0 < premise.count(" ") < _PREMISE_WORDS:
                    found.append(Pair(row.claim, premise, row.supported))
    if not found:
        raise DataError(
            f"{work}: no held-out rows in prepared.jsonl.gz; make it with training.prepare (--work)"
        )
    return random.Random(seed).sample(found, min(count, len(found)))


def export(
    verifier: Any, out: Path, pairs: list[Pair], *, name: str, bits: int, training: Mapping[str, Any],
    most_lost: float = MOST_LOST,
) -> dict[str, Any]:  # fmt: skip
    """Write the folder; returns what was measured. Raises DataError where a check fails.

    ``verifier`` is a ``training.verifier.Verifier`` with eager attention; it loses the positions that no pair
    reaches. ``most_lost`` is how many points of AUROC int8 may lose.
    """
    from tokenizers import Tokenizer

    from training.onnx_graph import write_float, write_int8
    from training.verifier import MAX_TOKENS

    verifier.cut_positions()
    tokenizer = Tokenizer.from_str(verifier.tokenizer_json)
    with tempfile.TemporaryDirectory(prefix="export-") as temporary:
        made = Path(temporary)
        write_float(verifier, made / "float32.onnx")
        write_int8(made / "float32.onnx", made / "model.onnx", reduce_range=bits == 7)
        (made / "tokenizer.json").write_text(verifier.tokenizer_json, encoding="utf-8")
        whole, small = onnx_form(made / "float32.onnx"), onnx_form(made / "model.onnx")
        same = compare(_torch_form(verifier), whole, tokenizer, pairs, MAX_TOKENS)
        rounded = compare(whole, small, tokenizer, pairs, MAX_TOKENS)
        measured = {
            "bits": bits,
            "pairs": len(pairs),
            "differences": [
                {"name": "float32 graph against torch", "difference": asdict(same)},
                {"name": "int8 against float32", "difference": asdict(rounded)},
            ],
            "milliseconds": {"float32": milliseconds(whole), "int8": milliseconds(small)},
        }
        sizes = {file: (made / file).stat().st_size for file in _FILES}
        failures = list(_failures(same, rounded, sum(sizes.values()), most_lost=most_lost))
        if failures:
            raise DataError("nothing was written: " + "; ".join(failures))
        manifest = {
            "version": 1,
            "name": name,
            "max_tokens": MAX_TOKENS,
            "sha256": {file: hashlib.sha256((made / file).read_bytes()).hexdigest() for file in _FILES},
            "bytes": sum(sizes.values()),
            "made_by": "training/export.py",
            "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        }
        out.mkdir(parents=True, exist_ok=True)
        for file in _FILES:
            shutil.copyfile(made / file, out / file)
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    (out / DESCRIPTION).write_text(json.dumps(training, indent=1) + "\n", encoding="utf-8")
    for licence in licences_of(str(training.get("base", ""))):
        shutil.copyfile(licence, out / licence.name)
    _write_card(out, training=training, exported=measured)
    return measured


def licences_of(base: str) -> list[Path]:
    """The texts of licences that go with weights that were trained from ``base``."""
    return [path for path in sorted(LICENCES.iterdir()) if base.startswith(path.name.removeprefix(_LICENCE))]


def _write_card(out: Path, *, training: Mapping[str, Any], exported: Mapping[str, Any]) -> None:
    """MODEL_CARD.md of a folder that has its other files."""
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    text = card(
        name=manifest["name"],
        max_tokens=manifest["max_tokens"],
        sizes={file: (out / file).stat().st_size for file in _FILES},
        training=training,
        exported=exported,
    )
    (out / "MODEL_CARD.md").write_text(text, encoding="utf-8")


def _torch_form(verifier: Any) -> Form:
    import torch

    def run(arrays: Mapping[str, Any]) -> tuple[Any, Any]:
        with torch.inference_mode():
            logits, tokens = verifier(**{name: torch.from_numpy(array) for name, array in arrays.items()})
        return logits.numpy(), tokens.numpy()

    verifier.eval()
    return run


def _failures(
    same: Difference, rounded: Difference, size: int, *, most_lost: float = MOST_LOST
) -> Iterator[str]:
    if not same.logits_max <= FLOAT_TOLERANCE:
        yield f"the float32 graph is {same.logits_max:.2g} from torch, more than {FLOAT_TOLERANCE:g}"
    if not rounded.probability_mean <= INT8_TOLERANCE:
        yield f"int8 is {rounded.probability_mean:.3f} from float32 in the mean, more than {INT8_TOLERANCE:g}"
    lost = rounded.auroc_lost
    if lost is not None and lost > most_lost:
        yield f"int8 loses {lost:.2f} points of AUROC, more than {most_lost:g} (--bits 8 may lose less)"
    if size > MOST_BYTES:
        yield f"the files have {size:,} bytes, more than {MOST_BYTES:,}"


def main() -> None:
    """Run the step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkpoint", type=Path, required=True, help="what training.train wrote")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, help="folder of prepared.jsonl.gz; default: the checkpoint's")
    parser.add_argument("--name", help="default: the name of the folder --out")
    parser.add_argument("--bits", type=int, choices=(7, 8), default=7, help="of the encoder's weights")
    parser.add_argument("--most-lost", type=float, default=MOST_LOST, help="points of AUROC, by int8")
    parser.add_argument("--experimental", action="store_true", help="export what may not be shipped")
    options = parser.parse_args()
    with running(parser, "export"):
        _run(options)


def _run(options: argparse.Namespace) -> None:
    training = described_in(options.checkpoint)
    name = options.name or options.out.resolve().name
    if bad := unshippable(training):
        if not options.experimental:
            raise DataError(
                f"trained on {', '.join(bad)}, whose licence is not stated: may not be shipped. "
                "--experimental exports it to measure it"
            )
        name += "-experimental"
    from training.verifier import Verifier

    measured = export(
        Verifier.load(options.checkpoint, attention="eager"),
        options.out,
        held_out_pairs(options.work or options.checkpoint.parent),
        name=name,
        bits=options.bits,
        training=training,
        most_lost=options.most_lost,
    )
    print(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
