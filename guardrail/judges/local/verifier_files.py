"""The folder of a verifier: which files it has, and whether they are the ones it was shipped with."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from guardrail.errors import ConfigError

MOST_BYTES: Final = 35_000_000
MODEL: Final = "model.onnx"
TOKENIZER: Final = "tokenizer.json"
MANIFEST: Final = "manifest.json"
_MOST_MANIFEST_BYTES: Final = 65_536
_FIELD: Final = "judge.local.verifier.path"
_READ: Final = (MODEL, TOKENIZER)
RUNTIME: Final = ("numpy", "onnxruntime", "tokenizers")
"""What a verifier runs on. numpy first: onnxruntime's own error does not name it."""

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""64 hexadecimal digits, lower case."""


class Manifest(BaseModel):
    """``manifest.json``: what the folder holds. Fields that are not named here say how it was made."""

    model_config = ConfigDict(extra="allow", frozen=True)

    version: Literal[1]
    name: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    max_tokens: int = Field(ge=64, le=4096, description="Longest pair that the model reads.")
    sha256: dict[str, Sha256] = Field(description="Checksum of each file, in hexadecimal.")

    @property
    def checksum(self) -> str:
        """Of model and tokenizer together: with other tokens the same model says something else."""
        sums = "\n".join(f"{name} {self.sha256.get(name)}" for name in _READ)
        return hashlib.sha256(sums.encode()).hexdigest()


def missing_runtime(module: str) -> ConfigError:
    """The error for a library that the verifier runs on and that is not installed."""
    return ConfigError(
        f"judge.local.verifier: {module} is not installed, though the package requires it; install the "
        "package again with its requirements, or set judge.local.verifier.enabled to false"
    )


def packaged_folder() -> Path | None:
    """The verifier that this package ships, or None where it ships none."""
    folder = Path(str(files(__package__).joinpath("verifier_model")))
    return folder if (folder / MANIFEST).is_file() else None


def read_folder(folder: Path) -> tuple[Manifest, bytes, bytes]:
    """``(manifest, model, tokenizer)``, the checksums of both files right. Raises ConfigError.

    The bytes that were checked are the bytes that are loaded: a file that is replaced meanwhile changes
    nothing.
    """
    manifest = _manifest(folder)
    held = {name: _size(folder / name) for name in _READ}
    total = sum(held.values())
    if total > MOST_BYTES:
        raise ConfigError(
            f"{_FIELD}: {MODEL} and {TOKENIZER} in {folder} have {total:,} bytes, more than {MOST_BYTES:,}; "
            "export a smaller model (int8)"
        )
    contents = {name: _checked(folder / name, manifest) for name in _READ}
    return manifest, contents[MODEL], contents[TOKENIZER]


def _manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    if _size(path) > _MOST_MANIFEST_BYTES:
        raise ConfigError(f"{_FIELD}: {path} is no manifest: it is too large; export the verifier again")
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{_FIELD}: {path} can't be read ({type(error).__name__}); export again") from None
    version = raw.get("version") if isinstance(raw, dict) else None
    if version != 1:
        raise ConfigError(
            f"{_FIELD}: {path} has version {version!r}, this release reads version 1; export the verifier "
            "again with training.export, or install the release it was made for"
        )
    try:
        return Manifest.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{_FIELD}: {path}, {field}: {first['msg']}; export the verifier again") from None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise ConfigError(
            f"{_FIELD}: {path} can't be read ({error.strerror}); give a folder that training.export wrote"
        ) from None


def _checked(path: Path, manifest: Manifest) -> bytes:
    expected = manifest.sha256.get(path.name)
    if expected is None:
        raise ConfigError(f"{_FIELD}: the manifest has no sha256 of {path.name}; export the verifier again")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{_FIELD}: {path} can't be read ({error.strerror})") from None
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise ConfigError(
            f"{_FIELD}: {path} is damaged or not the file of this verifier: its sha256 is {found}, the "
            f"manifest says {expected}; copy the folder again, or reinstall the package"
        )
    return content
