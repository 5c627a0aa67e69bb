"""What a checkpoint's folder must hold, before any of it is made a model of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from training.examples import DataError

MODEL_FILES: Final = ("config.json", "tokenizer.json", "model.safetensors")
DESCRIPTION: Final = "training.json"


def require_model(folder: Path) -> None:
    """Raises DataError that names what is no folder, or the first of ``MODEL_FILES`` that it lacks."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no folder; name a checkpoint that training.train wrote, or a base model")
    for name in MODEL_FILES:
        if not (folder / name).is_file():
            raise DataError(
                f"{folder / name}: missing; name a folder that has {', '.join(MODEL_FILES)}, as "
                "training.train writes it"
            )


def described_in(checkpoint: Path) -> dict[str, Any]:
    """What the training of a checkpoint wrote of itself (``training.json``). Raises DataError."""
    file = checkpoint / DESCRIPTION
    if not checkpoint.is_dir():
        raise DataError(f"{checkpoint}: no folder; name a checkpoint that training.train wrote")
    if not file.exists():
        raise DataError(
            f"{file}: missing; training writes it at its end: name a checkpoint that was trained to its end, "
            "or go on with this one (training.train --resume)"
        )
    try:
        described = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: can't be read ({error}); name what training.train wrote") from error
    if not isinstance(described, dict):
        raise DataError(f"{file}: no object; name what training.train wrote")
    _check_course(described, file)
    return described


def _check_course(course: Mapping[str, Any], file: Path) -> None:
    """The model card counts the pairs and names the licences of every course."""
    datasets = course.get("datasets", {})
    if not isinstance(datasets, dict):
        raise DataError(f"{file}: datasets is not an object; name what training.train wrote")
    for name, entry in datasets.items():
        if not (
            isinstance(entry, dict)
            and isinstance(entry.get("pairs", 0), int)
            and isinstance(entry.get("licence", ""), str)
        ):
            raise DataError(
                f"{file}: datasets.{name} has no number of pairs and text of a licence; name what "
                "training.train wrote"
            )
    if isinstance(before := course.get("before"), dict):
        _check_course(before, file)
