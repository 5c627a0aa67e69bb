"""When two names mean the same model: ``openai/gpt-4o-2024-08-06`` and ``gpt-4o``, ``qwen3:8b`` and
``Qwen/Qwen3-8B-AWQ``.

Providers, gateways and servers spell a model in their own ways. Two forms of a name are made here: ``plain``
drops who serves it, ``canonical`` also drops which snapshot or precision it is. Sizes and variants
(``-mini``, ``:14b``, ``-instruct``) tell models apart and stay.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_MAX_CHARS: Final = 200
_REGION: Final = re.compile(r"(?:us|eu|apac|ap|ca|jp|au|global|us-gov)\.")
_VENDOR: Final = re.compile(
    r"(?:ai21|amazon|anthropic|cohere|deepseek|google|meta|mistral|openai|qwen|writer)\.(?=[a-z])"
)
# What a gateway is told beside the model: OpenRouter's routes, Ollama's default tag.
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
    """What two names of one model have in common: letters and digits only, for comparing, not for showing."""
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
    """``text`` without the longest ending of that form. Linear: only the last few characters are tried."""
    for start in range(max(1, len(text) - _LAST_PART), len(text)):
        if ending.fullmatch(text, start):
            return text[:start]
    return text
