"""What a judge's verdicts depend on besides the claim and its contexts, as one short text."""

from __future__ import annotations

import hashlib
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from guardrail import __version__
from guardrail.judges.hidden_settings import WHOLE

# Files and folders that say nothing of how a claim is judged, and some of which are secret.
_NOT_READ: Final = re.compile(r"key|token|secret|password|ca_?file|cert|cwd|cache_dir|^model$")
_PROMPTS: Final = "prompts"


def fingerprint(kind: str, settings: BaseModel, version: str = "") -> str:
    """Hexadecimal, 64 characters; equal for equal settings, files that they name, prompts and releases.

    Secrets go in masked; arguments and bodies, which only may hold one, whole. More goes in than needs to
    (time limits, say): a verdict asked for once more is no harm, one taken for another's is.
    """
    digest = hashlib.sha256()
    told = json.dumps(settings.model_dump(mode="json", context=WHOLE), sort_keys=True, ensure_ascii=True)
    for part in (kind, __version__, version, told, *_contents(settings)):
        digest.update(hashlib.sha256(part.encode("utf-8", "surrogatepass")).digest())
    if kind == "llm":
        for entry in sorted(files("guardrail.judges.llm").joinpath(_PROMPTS).iterdir(), key=lambda e: e.name):
            if entry.is_file():
                digest.update(hashlib.sha256(entry.read_bytes()).digest())
    return digest.hexdigest()


def _contents(value: Any, name: str = "") -> list[str]:
    """The texts of the files that the settings name, as prompts of one's own."""
    if isinstance(value, BaseModel):
        return [
            text for field in type(value).model_fields for text in _contents(getattr(value, field), field)
        ]
    if isinstance(value, dict):
        return [text for key, item in value.items() for text in _contents(item, str(key))]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _contents(item, name)]
    if isinstance(value, Path) and not _NOT_READ.search(name):
        try:
            return [f"{name} {hashlib.sha256(value.read_bytes()).hexdigest()}"]
        except OSError:
            return []  # whoever needs the file says so when it is loaded
    return []
