"""What is refused as a checkpoint before any of it is loaded; no torch."""

from __future__ import annotations

from pathlib import Path

import pytest

from training.checkpoint import MODEL_FILES, described_in, require_model
from training.examples import DataError


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "missing; training writes it at its end"),
        (b"{", "can't be read"),
        (b"\xff", "can't be read"),
        (b"[]", "no object"),
        (b'{"datasets": []}', "datasets is not an object"),
        (b'{"datasets": {"help": 5}}', r"datasets\.help has no number"),
        (b'{"before": {"datasets": {"help": {"pairs": "5"}}}}', r"datasets\.help has no number"),
    ],
)
def test_a_description_that_cannot_be_is_refused_by_its_file(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "training.json").write_bytes(content)
    with pytest.raises(DataError, match=rf"training\.json: {said}"):
        described_in(tmp_path)


def test_a_file_is_no_checkpoint(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    file.touch()
    for check in (require_model, described_in):
        with pytest.raises(DataError, match="checkpoint: no folder"):
            check(file)


@pytest.mark.parametrize("missing", MODEL_FILES)
def test_the_first_file_that_is_missing_is_named(tmp_path: Path, missing: str) -> None:
    for name in MODEL_FILES:
        (tmp_path / name).touch()
    require_model(tmp_path)
    (tmp_path / missing).unlink()
    with pytest.raises(DataError, match=f"{missing}: missing"):
        require_model(tmp_path)
