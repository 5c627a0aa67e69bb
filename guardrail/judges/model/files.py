"""Model files: in a folder, on the Hugging Face hub at a commit, or with a manifest of checksums."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from guardrail.errors import ConfigError, install_hint
from guardrail.frozen import Frozen
from guardrail.judges.model.settings import SECTION, ClassifierSettings

TOKENIZER: Final = "tokenizer.json"
CONFIG: Final = "config.json"
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_HUB_ID: Final = re.compile(r"[\w.-]{1,96}(/[\w.-]{1,96})?")


def missing_extra(module: str, extra: str) -> ConfigError:
    """The error for a missing library that a classifier needs."""
    return ConfigError(f"{SECTION}: {module} is not installed; {install_hint(extra)}")


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty if it is missing or unreadable."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


class ModelFiles:
    """The files of one repository, or of a folder."""

    def __init__(self, name: str | None, revision: str | None, settings: ClassifierSettings) -> None:
        """Raises ConfigError for a missing name or folder, or for code that would run unpinned."""
        if name is None:
            raise ConfigError(f"{SECTION}.model is not set; give an id on the Hugging Face hub or a folder")
        self.name = name
        self.local = Path(name).is_dir()
        self._revision = revision
        self.unpinned: str | None = None
        """What is wrong with the revision, if anything but that one commit may come; with the remedy."""
        if self.local:
            return
        if not _HUB_ID.fullmatch(name) or name.startswith((".", "/", "~")):
            raise ConfigError(f"{SECTION}.model: the folder {name} does not exist; correct the path")
        if revision is not None and _COMMIT.fullmatch(revision):
            return
        given = f"{revision!r} can be moved" if revision else "none is set"
        problem = f"{SECTION}.revision: {name} comes from the hub without a pinned commit ({given})"
        remedy = "set it to the 40 hexadecimal digits of a commit"
        if settings.allow_remote_code:
            raise ConfigError(f"{problem}, and allow_remote_code would run whatever is there; {remedy}")
        self.unpinned = f"{problem}; {remedy}"

    def folder(self, patterns: Sequence[str]) -> Path:
        """A folder with the files that match these patterns; may download. Raises ConfigError."""
        if self.local:
            return Path(self.name)
        try:
            from huggingface_hub import snapshot_download
        except ImportError:
            raise missing_extra("huggingface-hub", "classifier") from None
        download: Any = snapshot_download
        try:
            return Path(download(self.name, revision=self._revision, allow_patterns=list(patterns)))
        except Exception as error:  # noqa: BLE001 (the client's errors have no common root)
            at = f" at {self._revision}" if self._revision else ""
            raise ConfigError(
                f"{SECTION}.model: {self.name}{at} can't be had ({type(error).__name__}); check the id, the "
                "revision and the connection to the hub, or download the files and give their folder"
            ) from None

    def file(self, *candidates: str, beside: Sequence[str] = ()) -> Path | None:
        """The first of these files that exists; ``beside`` are patterns of files to fetch with it."""
        folder = self.folder([*candidates, *beside])
        return next((folder / name for name in candidates if (folder / name).is_file()), None)


# ----------------------------------------------------------------------------------- the folder of a verifier

MODEL: Final = "model.onnx"
MANIFEST: Final = "manifest.json"
MOST_BYTES: Final = 35_000_000
VERIFIER: Final = "judge.local.verifier.path"
RUNTIME: Final = ("numpy", "onnxruntime", "tokenizers")
"""What a verifier runs on. numpy first: onnxruntime's own error does not name it."""
_MOST_MANIFEST_BYTES: Final = 65_536
_CHECKED: Final = (MODEL, TOKENIZER)

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""64 hexadecimal digits, lower case."""


class Manifest(BaseModel):
    """``manifest.json``: describes the folder. Fields that are not listed here say how it was made."""

    model_config = ConfigDict(extra="allow", frozen=True)

    version: Literal[1]
    name: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    max_tokens: int = Field(ge=64, le=4096, description="Longest pair that the model reads.")
    sha256: dict[str, Sha256] = Field(description="Checksum of each file, in hexadecimal.")

    @property
    def checksum(self) -> str:
        """Of model and tokenizer together: the same model means something else with other tokens."""
        sums = "\n".join(f"{name} {self.sha256.get(name)}" for name in _CHECKED)
        return hashlib.sha256(sums.encode()).hexdigest()


class FittedVerifier(Frozen):
    """The verifier that parameters were fitted with: another one's scores mean something else."""

    name: str
    sha256: Sha256 = Field(description="Of its model and tokenizer together (Manifest.checksum).")


def missing_runtime(module: str) -> ConfigError:
    """The error for a missing library that the verifier runs on."""
    return ConfigError(
        f"judge.local.verifier: {module} is not installed, though the package requires it; install the "
        "package again with its requirements, or set judge.local.verifier.enabled to false"
    )


def read_folder(folder: Path) -> tuple[Manifest, bytes, bytes]:
    """``(manifest, model, tokenizer)``, with both checksums verified. Raises ConfigError.

    Exactly the verified bytes are loaded, so a file that is replaced meanwhile changes nothing.
    """
    manifest = _manifest(folder)
    total = sum(_size(folder / name) for name in _CHECKED)
    if total > MOST_BYTES:
        raise ConfigError(
            f"{VERIFIER}: {MODEL} and {TOKENIZER} in {folder} have {total:,} bytes, more than "
            f"{MOST_BYTES:,}; export a smaller model (int8)"
        )
    model, tokenizer = (_checked(folder / name, manifest) for name in _CHECKED)
    return manifest, model, tokenizer


def _manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    if _size(path) > _MOST_MANIFEST_BYTES:
        raise ConfigError(f"{VERIFIER}: {path} is not a manifest: it is too large; export the verifier again")
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{VERIFIER}: {path} can't be read ({type(error).__name__}); export again"
        ) from None
    version = raw.get("version") if isinstance(raw, dict) else None
    if version != 1:
        raise ConfigError(
            f"{VERIFIER}: {path} has version {version!r}, this release reads version 1; export the verifier "
            "again with training.export, or install the release it was made for"
        )
    try:
        return Manifest.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{VERIFIER}: {path}, {field}: {first['msg']}; export the verifier again") from None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise ConfigError(
            f"{VERIFIER}: {path} can't be read ({error.strerror}); give a folder that training.export wrote"
        ) from None


def _checked(path: Path, manifest: Manifest) -> bytes:
    expected = manifest.sha256.get(path.name)
    if expected is None:
        raise ConfigError(f"{VERIFIER}: the manifest has no sha256 of {path.name}; export the verifier again")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{VERIFIER}: {path} can't be read ({error.strerror})") from None
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise ConfigError(
            f"{VERIFIER}: {path} is damaged or not the file of this verifier: its sha256 is {found}, the "
            f"manifest says {expected}; copy the folder again, or reinstall the package"
        )
    return content
