"""Keeps a model from judging its own answers: models tend to agree with themselves.

Providers, gateways and servers spell a model's name in their own ways: ``openai/gpt-4o-2024-08-06`` and
``gpt-4o`` are the same, and so are ``qwen3:8b`` and ``Qwen/Qwen3-8B-AWQ``. This module makes two forms of a
name: ``plain`` drops who serves the model, ``canonical`` also drops the snapshot and the precision. Sizes and
variants (``-mini``, ``:14b``, ``-instruct``) are different models, so both forms keep them.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    field_serializer,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from guardrail.errors import JudgeError, JudgeUnavailable
from guardrail.events import Usage
from guardrail.judges.base import GatheringJudge, Judge, JudgeRequest, Meter
from guardrail.judges.llm.settings import shown_body
from guardrail.judges.streams import closing
from guardrail.log_events import EventLog
from guardrail.printable import escape_controls, shorten
from guardrail.secrets import Secret, wants_all
from guardrail.verdicts import Judgement, unverified

_MAX_CHARS: Final = 200
_REGION: Final = re.compile(r"(?:us|eu|apac|ap|ca|jp|au|global|us-gov)\.")
_VENDOR: Final = re.compile(
    r"(?:ai21|amazon|anthropic|cohere|deepseek|google|meta|mistral|openai|qwen|writer)\.(?=[a-z])"
)
# What gateways put beside the model: OpenRouter's routes, Ollama's default tag.
_ROUTE: Final = re.compile(r":(?:latest|free|nitro|floor|extended|beta|exacto|online|thinking)")
_FILE: Final = re.compile(r"[.-](?:gguf|safetensors)")
_SNAPSHOT: Final = re.compile(
    r"[-@:](?:"
    r"20\d\d-[01]\d-[0-3]\d"  # gpt-4o-2024-08-06
    r"|20\d\d[01]\d[0-3]\d"  # claude-3-5-sonnet-20241022, …@20241022
    r"|[01]\d[0-3]\d"  # gpt-4-0613
    r"|2[0-9][01]\d"  # mistral-large-2411
    r"|(?:preview-)?[01]\d-[0-3]\d"  # gemini-2.5-pro-preview-05-06
    r"|(?:preview-)?[01]\d-20\d\d"  # gemini-2.5-flash-preview-09-2025
    r"|00\d"  # gemini-2.0-flash-001
    r"|v\d:\d"  # anthropic.claude-3-5-sonnet-20241022-v2:0
    r"|latest|default"
    r")"
)
_PRECISION: Final = re.compile(
    r"[-_.:](?:i?q[2-8](?:_[0-9a-z]{1,2}){0,3}|awq|gptq|exl[23]|mlx|bnb|nf4|[48]-?bit|fp4|fp8|fp16|bf16|f16|f32"
    r"|int[48]|w[48]a(?:8|16)|gguf|fp8-dynamic|quantized)"
)
_HALF_SIZE: Final = re.compile(r"(?<=\d)\.(?=\d{1,2}b(?:$|\W))")  # 1.5b is not 15b
_LAST_PART: Final = 40  # longest of the endings above, with room


@lru_cache(maxsize=4096)
def plain(name: str) -> str:
    """The name in lower case without provider, organisation, folder, region or route."""
    text = name[:_MAX_CHARS].strip().lower().replace("\\", "/").rstrip("/")
    text = text.rsplit("/", 1)[-1]
    for prefix in (_REGION, _VENDOR):
        found = prefix.match(text)
        if found:
            text = text[found.end() :]
    return _without_ending(text, _ROUTE)


@lru_cache(maxsize=4096)
def canonical(name: str) -> str:
    """The common form of all names of a model: letters and digits only, for comparing, not for showing."""
    text = plain(name)
    while True:
        shorter = text
        for ending in (_FILE, _PRECISION, _SNAPSHOT):
            shorter = _without_ending(shorter, ending)
        if shorter == text or not re.search(r"[a-z]", shorter):
            break
        text = shorter
    return re.sub(r"[\W_]+", "", _HALF_SIZE.sub("p", text))


def _without_ending(text: str, ending: re.Pattern[str]) -> str:
    """``text`` without the longest ending of that form. Linear: tries only the last few characters."""
    for start in range(max(1, len(text) - _LAST_PART), len(text)):
        if ending.fullmatch(text, start):
            return text[:start]
    return text


_log = EventLog(__name__)
_MOST_PAIRS: Final = 1_000
_MOST_STEPS: Final = 5
_NAME_CHARS: Final = 120
_NOT_ASKED: Final = "not asked: its model wrote the answer"

# Names under which a provider sells the same model.
_ALIASES: Final = {
    "chatgpt-4o-latest": "gpt-4o",
    "chatgpt-4o": "gpt-4o",
    "gpt-4-turbo-preview": "gpt-4-turbo",
    "gpt-4-1106-preview": "gpt-4-turbo",
    "gpt-4-0125-preview": "gpt-4-turbo",
    "gpt-35-turbo": "gpt-3.5-turbo",
}


class SelfJudged(JudgeUnavailable):
    """The judge was not asked, or not believed, because its model wrote the answer."""


class SelfJudgingSettings(BaseModel):
    """What happens if the judge's model also wrote the answer (``generator_model``)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    policy: Literal["warn", "alternative", "refuse"] = Field(
        default="warn",
        description="warn: judge anyway, and log a warning once for each pair of names. alternative: "
        "ask another model. refuse: don't ask; with kind cascade the first judge's "
        "verdict stands, with kind llm the claims are UNVERIFIED.",
    )
    alternative: dict[str, Any] | None = Field(
        default=None,
        repr=False,
        description="Settings of the alternative judge that differ from judge.llm, at least its "
        "model. If it has its own base_url, it needs its own api_key too.",
    )
    aliases: dict[str, str] = Field(
        default_factory=dict,
        description="Other names of models, as {NAME: MODEL}: an Azure deployment, a gateway's route, "
        "the --alias of a server.",
    )

    @field_serializer("alternative", when_used="json")
    def _as_json(self, value: dict[str, Any] | None, info: Any) -> dict[str, Any] | None:
        return value if value is None else _shown(value, bodies=wants_all(info))

    @field_validator("alternative")
    @classmethod
    def _names_a_model(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        if value is not None and not isinstance(value.get("model"), str):
            raise ValueError("alternative names no model; add model: NAME")
        return None if value is None else _with_secrets(value)

    @model_validator(mode="after")
    def _has_one(self) -> SelfJudgingSettings:
        if self.policy == "alternative" and self.alternative is None:
            raise ValueError("policy alternative needs the settings of one; add alternative: {model: NAME}")
        return self


def _with_secrets(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes with keys and headers as secrets, including those of fallbacks, so that no settings output
    shows them.
    """
    kept = dict(changes)
    if "api_key" in kept:
        kept["api_key"] = _key(kept["api_key"])
    if isinstance(headers := kept.get("extra_headers"), Mapping):
        kept["extra_headers"] = {name: _secret(value) for name, value in headers.items()}
    if isinstance(fallbacks := kept.get("fallbacks"), list | tuple):
        kept["fallbacks"] = [_with_secrets(each) if isinstance(each, Mapping) else each for each in fallbacks]
    return kept


def _shown(changes: Mapping[str, Any], *, bodies: bool) -> dict[str, Any]:
    """As plain values, including fallbacks: without keys, and without texts in ``extra_body`` unless
    ``bodies``.
    """
    shown = dict(changes)
    if isinstance(shown.get("api_key"), Secret):
        shown["api_key"] = shown["api_key"].shown()
    if "extra_body" in shown and not bodies:
        shown["extra_body"] = shown_body(shown["extra_body"])
    if isinstance(fallbacks := shown.get("fallbacks"), list | tuple):
        shown["fallbacks"] = [
            _shown(each, bodies=bodies) if isinstance(each, Mapping) else each for each in fallbacks
        ]
    return shown


def _key(value: Any) -> Any:
    try:
        return Secret.of(value)
    except PydanticCustomError:
        return value  # which the alternative's settings reject, in their place


def _secret(value: Any) -> Any:
    return SecretStr(value) if isinstance(value, str) else value


class ModelIdentity:
    """Compares model names, ignoring provider, date, precision and aliases."""

    def __init__(self, aliases: Mapping[str, str] | None = None) -> None:
        """``aliases`` take precedence over the built-in ones and are compared like all names."""
        named = {**_ALIASES, **(aliases or {})}
        self._exact = {plain(name): model for name, model in named.items()}
        self._loose = {canonical(name): model for name, model in (aliases or {}).items()}

    def same(self, one: str | None, other: str | None) -> bool:
        """False if either name is missing or has no letters and digits: then nothing is known."""
        if not one or not other:
            return False
        key = self._key(one)
        return bool(key) and key == self._key(other)

    def _key(self, name: str) -> str:
        for _ in range(_MOST_STEPS):  # aliases may point to others, and in a circle
            target = self._exact.get(plain(name)) or self._loose.get(canonical(name))
            if target is None or target == name:
                break
            name = target
        return canonical(name)


class SelfJudgingGuard:
    """A Judge around the LLM judge that applies the self-judging policy."""

    def __init__(
        self,
        judge: Judge,
        model: str,
        settings: SelfJudgingSettings,
        *,
        alternative: tuple[Judge, str] | None = None,
    ) -> None:
        """``alternative`` is the other judge and its model's name, for the policy of that name.

        Judgements by other models than ``model`` (fallbacks) are recognised by their judge's name.
        """
        self._judge = judge
        self._model = model
        self._policy = settings.policy
        self._alternative = alternative
        self._identity = ModelIdentity(settings.aliases)
        self._warned: set[tuple[str, str]] = set()
        self.max_wait_s = judge.max_wait_s if isinstance(judge, GatheringJudge) else 0.0
        """How long the judge lets claims wait for others; 0: not at all."""

    @property
    def name(self) -> str:
        return self._judge.name

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """Yields the judgements of whichever judge may answer. Raises SelfJudged if none may."""
        async with closing(self._choose(request)) as judgements:
            async for judgement in judgements:
                yield judgement

    def _choose(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        generator = request.generator_model
        if self._identity.same(generator, self._model):
            self._warn(str(generator), self._model)
            if self._policy == "alternative" and self._alternative is not None:
                other, model = self._alternative
                if not self._identity.same(generator, model):
                    return self._instead(other, request)
                self._warn(str(generator), model)
            if self._policy != "warn":
                request.meter.add(Usage())  # known: no call was made
                raise SelfJudged(_NOT_ASKED)
        return self._checked(self._judge, request)

    async def aclose(self) -> None:
        """Close both judges."""
        try:
            await self._judge.aclose()
        finally:
            if self._alternative is not None:
                await self._alternative[0].aclose()

    async def _instead(self, other: Judge, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """The alternative's judgements; if it fails, judgements that name it as the judge that should have
        answered.

        The caller knows this judge by the first judge's name, and would otherwise report that the first one
        failed.
        """
        meter = Meter(request.meter)
        left = dict(request.claims)
        try:
            async with closing(self._checked(other, replace(request, meter=meter))) as judgements:
                async for judgement in judgements:
                    left.pop(judgement.claim_id, None)
                    yield judgement
                return
        except JudgeError as error:
            reason = f"{type(error).__name__}: {error}"
            _log.warning("judge.failed", judge=other.name, error=reason)
        path = (f"{self._judge.name}: {_NOT_ASKED}",)
        for claim_id in left:
            yield unverified(claim_id, other.name, reason, attempts=meter.attempts, degraded_from=path)

    async def _checked(self, judge: Judge, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """Ask, and unless the policy only warns, reject judgements of a fallback that wrote the answer."""
        kept = refused = False
        async with closing(judge.judge(request)) as judgements:
            async for judgement in judgements:
                if request.generator_model and not self._acceptable(request.generator_model, judgement):
                    refused = True
                    continue
                kept = True
                yield judgement
        if refused and not kept:
            raise SelfJudged("the only model that answered wrote the answer")

    def _acceptable(self, generator: str, judgement: Judgement) -> bool:
        _, _, model = judgement.judge.partition(":")
        if not self._identity.same(generator, model):
            return True
        self._warn(generator, model)
        return self._policy == "warn"

    def _warn(self, generator: str, model: str) -> None:
        pair = (generator[:_NAME_CHARS], model)
        if pair in self._warned or len(self._warned) >= _MOST_PAIRS:
            return
        self._warned.add(pair)
        _log.warning(
            "judge.self_judging",
            generator_model=shorten(escape_controls(generator), _NAME_CHARS),
            model=model,
            self_judging=self._policy,
        )
