"""What a start on this machine would refuse or warn of, told ahead of it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from guardrail.errors import ConfigError

if TYPE_CHECKING:
    from guardrail.judges.cache import RedisSettings
    from guardrail.judges.classifier.settings import ClassifierSettings
    from guardrail.judges.llm.settings import LlmJudgeSettings
    from guardrail.judges.local.settings import VerifierSettings
    from guardrail.judges.settings import JudgeSettings

_TORCH: Final = ("torch", "transformers")


def start_notes(judge: JudgeSettings) -> list[str]:
    """A line for each thing that ``build_judge`` would find missing here, without building anything.

    Notes and no errors: keys, programs, models and packages may be where the guard runs and not where its
    settings are checked. Files that settings name are ``unreadable_files``'.
    """
    from guardrail.judges.factory import uses_local

    kinds = judge.kinds()
    notes: list[str] = []
    if uses_local(judge):
        notes += _of_verifier(judge.local.verifier)
    if "llm" in kinds:
        notes += _of_llm(judge.llm, "judge.llm")
        alternative = judge.alternative_llm()
        if alternative is not None:
            notes += _of_llm(alternative, "judge.self_judging.alternative")
    for kind, settings in (("classifier", judge.classifier), ("hhem", judge.hhem)):
        if kind in kinds:
            notes += _of_classifier(settings, f"judge.{kind}")
    if "command" in kinds and judge.command.argv:
        from guardrail.judges.command.processes import Processes

        notes += _refused(partial(Processes, judge.command, "judge.command"))  # which starts none yet
    if judge.cache.enabled and judge.cache.redis is not None and kinds != {"local"}:
        notes += _of_redis(judge.cache.redis)
    return list(dict.fromkeys(notes))


def _refused(attempt: Callable[[], object]) -> list[str]:
    try:
        attempt()
    except ConfigError as error:
        return [str(error)]
    return []


def _of_llm(llm: LlmJudgeSettings, section: str) -> Iterator[str]:
    models = llm.models()
    for number, each in enumerate(models):
        place = f"{section}.fallbacks.{number - 1}" if number else section
        if each.api_key_file is None or _opens(each.api_key_file):
            yield from _refused(partial(each.resolve_api_key, place))
        same = next((other for other in models[:number] if _one_server_model(other, each)), None)
        if same is not None:
            yield f"{place}: the same model on the same server as before it; when that fails, so will this"


def _of_verifier(verifier: VerifierSettings) -> Iterator[str]:
    from guardrail.judges.local.verifier_files import RUNTIME, missing_runtime

    if not verifier.enabled:
        yield "judge.local.verifier.enabled is false: claims are judged by words and figures alone"
        return
    for module in RUNTIME:
        if not _installed(module):
            yield str(missing_runtime(module))


def _one_server_model(one: LlmJudgeSettings, other: LlmJudgeSettings) -> bool:
    return (one.model, one.base_url) == (other.model, other.base_url)


def _of_classifier(settings: ClassifierSettings, section: str) -> Iterator[str]:
    from guardrail.judges.classifier.files import ModelFiles, missing_extra
    from guardrail.judges.classifier.loading import needs_torch
    from guardrail.judges.classifier.torch_model import EXTRA

    # A start would only log what is not pinned; refusing it makes it the same words.
    strict = settings.model_copy(update={"unpinned": "refuse"} if settings.unpinned == "warn" else {})
    fields = ("model", "tokenizer") if settings.tokenizer else ("model",)
    for field in fields:
        yield from _refused(partial(ModelFiles, strict, field, section))
    if needs_torch(settings):
        for module in ("tokenizers", *_TORCH):
            if not _installed(module):
                yield str(missing_extra(module, EXTRA, section))
    else:
        runs = _installed("onnxruntime") or (settings.backend == "auto" and all(map(_installed, _TORCH)))
        for module, there in (("tokenizers", _installed("tokenizers")), ("onnxruntime", runs)):
            if not there:
                yield str(missing_extra(module, "classifier", section))
    names = [name for field in fields if (name := getattr(settings, field)) is not None]
    if not all(Path(name).is_dir() for name in names) and not _installed("huggingface_hub"):
        yield str(missing_extra("huggingface-hub", "classifier", section))


def _of_redis(redis: RedisSettings) -> Iterator[str]:
    if not _installed("redis"):
        yield (
            "judge.cache.redis: the Redis client is not installed; run: "
            "pip install 'streaming-guardrail[redis]'"
        )
    if redis.password_file is None or _opens(redis.password_file):
        yield from _refused(redis.resolve_password)
    if redis.signing_key_file is None or _opens(redis.signing_key_file):
        yield from _refused(redis.resolve_signing_key)


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _opens(path: Path) -> bool:
    try:
        path.open("rb").close()
    except OSError:
        return False
    return True
