"""What a start on this machine would miss of what the settings name, and what in them is hardly meant.

Notes and no errors: keys, programs, models, packages and files may be where the guard runs and not where its
settings are checked.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from guardrail.doctor.checks import Area, Check, detail_and_remedy
from guardrail.errors import ConfigError, install_hint
from guardrail.judges.factory import all_kinds, uses_local
from guardrail.leaves import leaves
from guardrail.secrets import Secret

if TYPE_CHECKING:
    from guardrail.config import Settings
    from guardrail.judges.cache import CacheSettings
    from guardrail.judges.llm.settings import LlmJudgeSettings
    from guardrail.judges.local.settings import VerifierSettings
    from guardrail.judges.settings import JudgeSettings

_SETTINGS: Final = Area("settings")


def check_settings(settings: Settings, notes: Iterable[str] = ()) -> list[Check]:
    """Files that can't be opened here, and what a start would miss; ``notes`` are those of other sections."""
    checks = [
        _SETTINGS.fail(path, f"can't be read here: {why}", "put it there, or correct the setting")
        for path, why in unreadable_files(settings)
    ]
    for note in dict.fromkeys((*start_notes(settings), *notes)):
        about, colon, rest = note.partition(": ")
        checks.append(
            _SETTINGS.warn(about if colon else "judge", *detail_and_remedy(rest if colon else note))
        )
    return checks or [_SETTINGS.ok("files and keys", "all that the settings name are here")]


def unreadable_files(settings: Settings) -> Iterator[tuple[str, str]]:
    """The settings in use that name a file which can't be opened, with their value, and why."""
    for setting, path in _named_files(settings):
        if path.is_dir():
            continue
        try:
            path.open("rb").close()
        except OSError as error:
            yield f"{setting} {path}", error.strerror or type(error).__name__


def _named_files(settings: Settings) -> Iterator[tuple[str, Path]]:
    every = all_kinds(settings.judge, settings.policies.values())
    used = frozenset().union(*(each.kinds() for each in every))
    idle = {"local", "llm", "decisions", "classifier", "http"} - used
    if any(map(uses_local, every)):
        idle -= {"local"}
    if not settings.judge.cache.enabled or used == {"local"}:
        idle |= {"cache"}
    for leaf in leaves(settings):
        # Those of flagged are read by what notes its settings.
        if leaf.path[0] == "flagged" or (leaf.path[0] == "judge" and leaf.path[1] in idle):
            continue
        if isinstance(leaf.value, Path):
            yield leaf.dotted, leaf.value
        elif isinstance(leaf.value, Secret) and leaf.value.file is not None:
            yield f"{leaf.dotted}.file", leaf.value.file


def start_notes(settings: Settings) -> list[str]:
    """A line for each thing that ``build_judge`` would find missing here, without building anything. Files
    that settings name are ``unreadable_files``'.
    """
    every = all_kinds(settings.judge, settings.policies.values())
    return list(dict.fromkeys(note for each in every for note in _of_judge(each)))


def _of_judge(judge: JudgeSettings) -> Iterator[str]:
    kinds = judge.kinds()
    if uses_local(judge):
        yield from _of_verifier(judge.local.verifier)
    if "llm" in kinds:
        yield from _of_llm(judge.llm)
    if "decisions" in kinds:
        yield from refused(judge.decisions.resolve_api_key)
    if "classifier" in kinds:
        from guardrail.judges.model import start_notes as of_classifier

        yield from of_classifier(judge.classifier)
    if "custom" in kinds and judge.factory is not None:
        from guardrail.judges.own import load_factory

        yield from refused(partial(load_factory, judge.factory))
    if judge.cache.enabled and judge.cache.redis_url is not None and kinds != {"local"}:
        yield from _of_redis(judge.cache)


def refused(attempt: Callable[[], object]) -> list[str]:
    """What ``attempt`` raises as ConfigError, as a note."""
    try:
        attempt()
    except ConfigError as error:
        return [str(error)]
    return []


def _of_llm(llm: LlmJudgeSettings) -> Iterator[str]:
    models = llm.models()
    for number, each in enumerate(models):
        place = f"judge.llm.fallbacks.{number - 1}" if number else "judge.llm"
        if _opens(each.api_key):
            yield from refused(partial(each.resolve_api_key, place))
        same = next((other for other in models[:number] if _one_server_model(other, each)), None)
        if same is not None:
            yield f"{place}: the same model on the same server as before it; when that fails, so will this"


def _of_verifier(verifier: VerifierSettings) -> Iterator[str]:
    from guardrail.judges.model import missing_runtime
    from guardrail.judges.model.verifier import RUNTIME

    if not verifier.enabled:
        yield "judge.local.verifier.enabled is false: claims are judged by words and figures alone"
        return
    for module in RUNTIME:
        if not _installed(module):
            yield str(missing_runtime(module))


def _one_server_model(one: LlmJudgeSettings, other: LlmJudgeSettings) -> bool:
    return (one.model, one.base_url) == (other.model, other.base_url)


def _of_redis(cache: CacheSettings) -> Iterator[str]:
    if not _installed("redis"):
        yield f"judge.cache.redis_url: the Redis client is not installed; {install_hint('redis')}"
    if _opens(cache.redis_url):
        yield from refused(cache.resolve_redis_url)
    if _opens(cache.signing_key):
        yield from refused(cache.resolve_signing_key)


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _opens(secret: Secret | None) -> bool:
    """Whether its file can be opened, if it stands in one: those that can't be are ``unreadable_files``'."""
    if secret is None or secret.file is None:
        return True
    try:
        secret.file.open("rb").close()
    except OSError:
        return False
    return True
