"""The files of a model: in a folder, or from the Hugging Face hub at a pinned commit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import structlog

from guardrail.errors import ConfigError
from guardrail.judges.classifier.settings import ClassifierSettings

_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_HUB_ID: Final = re.compile(r"[\w.-]{1,96}(/[\w.-]{1,96})?")
PACKAGE: Final = "streaming-guardrail"

_log = structlog.stdlib.get_logger("guardrail.judges.classifier")


def missing_extra(module: str, extra: str, section: str) -> ConfigError:
    """The error for a runtime that is not installed."""
    return ConfigError(f"{section}: {module} is not installed; run: pip install '{PACKAGE}[{extra}]'")


class ModelFiles:
    """Where one repository's files are: ``model`` and ``tokenizer`` of the settings are one each."""

    def __init__(self, settings: ClassifierSettings, field: str, section: str) -> None:
        """``field`` is ``model`` or ``tokenizer``. Raises ConfigError, also for what must not be loaded."""
        self._settings = settings
        self._where = f"{section}.{field}"
        self._section = section
        name: str | None = getattr(settings, field)
        if name is None:
            raise ConfigError(f"{self._where} is not set; give an id on the Hugging Face hub or a folder")
        self.name = name
        revision_field = "revision" if field == "model" else "tokenizer_revision"
        self.revision: str | None = getattr(settings, revision_field)
        self.local = Path(name).is_dir()
        if self.local:
            return
        if not _HUB_ID.fullmatch(name) or name.startswith((".", "/", "~")):
            raise ConfigError(f"{self._where}: the folder {name} does not exist; correct the path")
        if self.revision is not None and _COMMIT.fullmatch(self.revision):
            return
        given = f"{self.revision!r} can be moved" if self.revision else "none is set"
        problem = f"{section}.{revision_field}: {name} comes from the hub without a pinned commit ({given})"
        remedy = "set it to the 40 hexadecimal digits of a commit"
        if settings.allow_remote_code and field == "model":
            raise ConfigError(f"{problem}, and allow_remote_code would run whatever is there; {remedy}")
        if settings.unpinned == "refuse":
            raise ConfigError(f"{problem}; {remedy}")
        if settings.unpinned == "warn":
            _log.warning("classifier.unpinned", setting=f"{section}.{revision_field}", model=name)

    def folder(self, patterns: Sequence[str]) -> Path:
        """A folder that holds the repository's files of these patterns. Raises ConfigError."""
        if self.local:
            return Path(self.name)
        try:
            from huggingface_hub import snapshot_download
        except ImportError:
            raise missing_extra("huggingface-hub", "classifier", self._section) from None
        download: Any = snapshot_download
        try:
            return Path(
                download(
                    self.name,
                    revision=self.revision,
                    allow_patterns=list(patterns),
                    cache_dir=self._settings.cache_dir,
                    local_files_only=self._settings.offline,
                )
            )
        except Exception as error:  # noqa: BLE001 (the client's errors have no common root)
            what = "is not in the cache (offline is set)" if self._settings.offline else "can't be had"
            at = f" at {self.revision}" if self.revision else ""
            raise ConfigError(
                f"{self._where}: {self.name}{at} {what} ({type(error).__name__}); check the id, the revision "
                "and the connection to the hub, or download the files and give their folder"
            ) from None

    def file(self, *candidates: str) -> Path | None:
        """The first of these files that the repository has."""
        folder = self.folder(candidates)
        return next((folder / name for name in candidates if (folder / name).is_file()), None)
