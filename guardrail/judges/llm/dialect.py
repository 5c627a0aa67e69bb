"""What a server takes and what it refuses, learnt from its refusals."""

from __future__ import annotations

import re
from typing import Any, Final

import openai

from guardrail.judges.llm.settings import LlmJudgeSettings, OutputMode

_LADDER: Final = (OutputMode.JSON_SCHEMA, OutputMode.JSON_OBJECT, OutputMode.TEXT)

# 500 and 501 belong here: llama-cpp-python answers an unknown response_format with a 500 that names it.
_REFUSALS: Final = frozenset({400, 404, 415, 422, 500, 501})
_FORMAT_WORDS: Final = ("response_format", "json_schema", "json_object", "structured output")
_OTHER_FIELD: Final = {"max_completion_tokens": "max_tokens", "max_tokens": "max_completion_tokens"}
_UNKNOWN_WORDS: Final = ("support", "unknown", "unrecognized", "unexpected", "not permitted", "not allowed")
_MESSAGE_CHARS: Final = 500
_STREAM_FIELDS: Final = ("stream", "stream_options")


class Dialect:
    """The arguments that one model on one server takes beyond model and messages.

    Shared by concurrent calls, which may all be refused for the same reason: ``adapt`` compares with what the
    refused call had sent, so that one refusal is one step.
    """

    def __init__(self, settings: LlmJudgeSettings) -> None:
        self._auto = settings.structured_output == "auto"
        self.mode = _LADDER[0] if self._auto else OutputMode(settings.structured_output)
        self._options: dict[str, Any] = {settings.output_tokens_field: settings.max_output_tokens}
        if settings.temperature is not None:
            self._options["temperature"] = settings.temperature
        if settings.seed is not None:
            self._options["seed"] = settings.seed
        if settings.stream.mode == "auto":
            self._options |= {"stream": True, "stream_options": {"include_usage": True}}
        self._swapped = False
        self._patterns = True

    def arguments(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Arguments of the call. In text mode the prompt alone describes the form."""
        shown = schema if self._patterns else _without_patterns(schema)
        formats: dict[OutputMode, dict[str, Any]] = {
            OutputMode.JSON_SCHEMA: {
                "type": "json_schema",
                "json_schema": {"name": "verdicts", "strict": True, "schema": shown},
            },
            OutputMode.JSON_OBJECT: {"type": "json_object"},
        }
        arguments = dict(self._options)
        if self.mode in formats:
            arguments["response_format"] = formats[self.mode]
        return arguments

    @property
    def streams(self) -> bool:
        return "stream" in self._options

    def take_whole_replies(self) -> None:
        """The server doesn't stream: ask for no stream from now on."""
        for name in _STREAM_FIELDS:
            self._options.pop(name, None)

    def adapt(self, error: openai.APIStatusError, sent: dict[str, Any]) -> bool:
        """Does the refusal name something that can be left out? If so it is from now on: ask again."""
        if error.status_code not in _REFUSALS:
            return False
        words = _words(error)
        if "pattern" in words and _has_patterns(sent.get("response_format")):
            # Azure takes schemas, but no pattern in them. The reader is as strict without.
            self._patterns = False
            return True
        if self._auto and _refuses_form(words, sent):
            tried = OutputMode(sent["response_format"]["type"])
            if self.mode is tried:
                self.mode = _LADDER[_LADDER.index(tried) + 1]
            return True
        if not any(word in words for word in _UNKNOWN_WORDS):
            return False
        if error.status_code not in {400, 422}:
            # An error of the server's own may name anything; of it only a stream is believed to be the cause.
            sent = {name: value for name, value in sent.items() if name in _STREAM_FIELDS}
        refused = [name for name in sent if name != "response_format" and _names(name, words)]
        for name in refused:
            if name == "stream":
                self.take_whole_replies()
            value = self._options.pop(name, None)
            other = _OTHER_FIELD.get(name)
            # Only the first refusal swaps the name: when the other is refused too, no bound is sent at all.
            if other and value is not None and not self._swapped:
                self._options[other] = value
                self._swapped = True
        return bool(refused)

    def remedy(self, error: openai.APIStatusError, sent: dict[str, Any]) -> str | None:
        """What to set where the server refuses what the settings insist on; None for any other refusal."""
        if self._auto or error.status_code not in _REFUSALS or not _refuses_form(_words(error), sent):
            return None
        return f"it does not take judge.llm.structured_output: {self.mode.value}; set it to auto"


def _words(error: openai.APIStatusError) -> str:
    """The message may echo data, so it is read for our own argument names only, and never reported."""
    return f"{error.param or ''} {error.code or ''} {error.message[:_MESSAGE_CHARS]}".lower()


def _refuses_form(words: str, sent: dict[str, Any]) -> bool:
    return "response_format" in sent and any(word in words for word in _FORMAT_WORDS)


def _has_patterns(value: object) -> bool:
    if isinstance(value, dict):
        return "pattern" in value or any(_has_patterns(part) for part in value.values())
    return isinstance(value, list) and any(_has_patterns(part) for part in value)


def _without_patterns(schema: dict[str, Any]) -> dict[str, Any]:
    """``schema`` with all texts free. No member of ours is called pattern."""
    return {
        name: _without_patterns(value) if isinstance(value, dict) else value
        for name, value in schema.items()
        if name != "pattern"
    }


def _names(name: str, words: str) -> bool:
    """Is the argument named? Of streams servers speak in words rather than by the argument's name."""
    return re.search(r"\bstream(ing|ed)?\b" if name == "stream" else rf"\b{name}\b", words) is not None
