"""Members that an operator adds to the body of every call: none of the judge's own, and shown to nobody."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import AfterValidator, PlainSerializer

from guardrail.judges.hidden_settings import MASK, wants_all

# What the judge sends by itself, and the setting that says what. A member of the same name would silently
# take its place: another model would judge, or other texts, or a reply come that nothing holds to its form.
_OWN: Final = {
    "model": "set model",
    "messages": "write prompts of your own and set prompts",
    "stream": "set stream.mode",
    "stream_options": "set stream.mode",
    "response_format": "set structured_output",
    "temperature": "set temperature",
    "seed": "set seed",
    "max_tokens": "set max_output_tokens",
    "max_completion_tokens": "set max_output_tokens",
}


def _check(body: dict[str, Any]) -> dict[str, Any]:
    for name, remedy in _OWN.items():
        if name in body:
            raise ValueError(f"{name!r} would override what the judge sends itself; take it out and {remedy}")
    return body


def shown_body(value: Any) -> Any:
    """The members by name; of their values numbers and true or false, for any text may be a key."""
    if isinstance(value, dict):
        return {name: shown_body(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [shown_body(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float) else MASK


def _serialize(value: dict[str, Any], info: Any) -> Any:
    return value if wants_all(info) else shown_body(value)


ExtraBody = Annotated[
    dict[str, Any],
    AfterValidator(_check),
    PlainSerializer(_serialize, return_type=dict[str, Any], when_used="json"),
]
"""Extra members of the body. As JSON their texts are masked."""
