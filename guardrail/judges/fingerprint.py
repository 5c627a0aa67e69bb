"""What a judge's verdicts depend on besides the claim and its contexts, as one short text.

Files and folders, which may have gigabytes, are identified by name, size and time, without reading them.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from guardrail import __version__
from guardrail.errors import ConfigError
from guardrail.judges.model import ClassifierSettings
from guardrail.leaves import leaves
from guardrail.secrets import WHOLE

# More than any model or program has; an argument may name a data folder, or the root.
_MOST_FILES: Final = 2_000


def stamps(path: Path) -> list[str]:
    """One line for each file at or below ``path``: its relative name, size and modification time.

    Empty if nothing can be inspected: whoever needs the file reports that. ``path`` may be any text.
    """
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except (OSError, ValueError):  # missing, not accessible, or not a valid name
        return []
    names = _names(path) if is_folder else [""]
    return [_stamp(path / name, name or path.name) for name in names]


def _names(folder: Path) -> Iterator[str]:
    left = _MOST_FILES
    for where, below, names in os.walk(folder, onerror=None):
        below.sort()
        for name in sorted(names)[:left]:
            yield os.path.relpath(Path(where, name), folder)
            left -= 1
        if left <= 0:
            return


def _stamp(path: Path, name: str) -> str:
    try:
        found = path.stat()
    except OSError:
        return f"{name} gone"
    return f"{name} {found.st_size} {found.st_mtime_ns}"


_PROMPTS: Final = "prompts"
_PACKAGED: Final = ("rarity.json", "verifier_model/manifest.json", "verifier_model/parameters.json")
"""What the local judge reads of the package; the manifest has the checksums of its model."""


def fingerprint(kind: str, settings: BaseModel | str) -> str:
    """64 hexadecimal digits; equal for equal settings, files named in them, prompts and releases.

    ``settings`` of a judge of kind custom are its factory. Models in folders, and the module or package of a
    factory, count by their current size and modification time: a replacement while the judge runs takes
    effect at its next start.

    Raises ConfigError for a factory whose files can't be found, as those of the program itself.

    Secrets go in masked; bodies, which only may contain one, go in whole. The fingerprint
    includes more than necessary (time limits, say): asking again for a verdict does no harm, but mistaking
    one for another does.
    """
    digest = hashlib.sha256()
    values = settings if isinstance(settings, str) else settings.model_dump(mode="json", context=WHOLE)
    told = json.dumps(values, sort_keys=True, ensure_ascii=True)
    for part in (kind, __version__, told, *_contents(settings), *_programs(settings)):
        digest.update(hashlib.sha256(part.encode("utf-8", "surrogatepass")).digest())
    if kind == "llm":
        for entry in sorted(files("guardrail.judges.llm").joinpath(_PROMPTS).iterdir(), key=lambda e: e.name):
            if entry.is_file():
                digest.update(hashlib.sha256(entry.read_bytes()).digest())
    if kind == "local":
        for name in _PACKAGED:
            digest.update(
                hashlib.sha256(files("guardrail.judges.local").joinpath(name).read_bytes()).digest()
            )
    return digest.hexdigest()


def _programs(settings: BaseModel | str) -> list[str]:
    """The state of the models and modules on this machine that a judge runs."""
    if isinstance(settings, ClassifierSettings):
        return stamps(Path(settings.model)) if settings.model is not None else []
    if isinstance(settings, str):
        name = settings.partition(":")[0].partition(".")[0]
        places = _places(name)
        if not places:
            raise ConfigError(
                f"judge.factory: the files of {name} can't be found, by which cached verdicts of {settings} "
                "are told from those of other releases; put it into a module of its own, or set "
                "judge.cache.ttl_seconds to 0"
            )
        return [stamp for place in places for stamp in stamps(place)]
    return []


def _places(name: str) -> list[Path]:
    """The file of a module, or the folder of a package, or those of one without __init__.py, which may be in
    several; empty if nothing tells.
    """
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # a program is the module __main__, which nobody has searched for
        return []
    if spec is None:
        return []
    found = spec.submodule_search_locations or [spec.origin or ""]
    return [Path(each) for each in found if each]


def _contents(settings: object) -> Iterator[str]:
    """The texts of the files that the settings name, such as custom prompts."""
    for leaf in leaves(settings):
        value, name = leaf.value, next((part for part in reversed(leaf.path) if isinstance(part, str)), "")
        if isinstance(value, Path):
            with suppress(OSError):  # whoever needs the file reports it when it is loaded
                yield f"{name} {hashlib.sha256(value.read_bytes()).hexdigest()}"
