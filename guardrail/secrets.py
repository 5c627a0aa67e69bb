"""Settings that must not be shown: passwords, keys, tokens, headers.

A secret may be in a file, as orchestrators mount it, or in an environment variable. Headers are checked when
settings load, not at the first call.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, SecretStr
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from guardrail.errors import ConfigError

MASK: Final = "**********"
WHOLE: Final = {"hidden_settings": True}
"""The context of ``model_dump(mode="json")`` that leaves nothing out; what it gives is not to be shown."""


def wants_all(info: Any) -> bool:
    """Whether a serializer's ``info`` has the context ``WHOLE``."""
    return isinstance(info.context, dict) and bool(info.context.get("hidden_settings"))


_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e]*")


def check_headers(headers: Mapping[str, SecretStr]) -> None:
    """Raises ValueError for headers that HTTP can't carry; it names the header and never shows its value."""
    for name, value in headers.items():
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a name of a header; write letters, digits and hyphens")
        if not is_value(value.get_secret_value()):
            raise ValueError(
                f"the value of {name} holds characters no header can carry; write it in ASCII, on one line"
            )


def is_value(text: str) -> bool:
    """Whether a header can carry ``text``."""
    return _VALUE.fullmatch(text) is not None


def _of_file(path: Path, setting: str, what: str, for_header: bool) -> str:
    """The text of the file without its final line end, or stripped ``for_header``."""
    try:
        text = path.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ConfigError(
            f"{setting}: {path} can't be read ({reason}); mount the secret there or correct the path"
        ) from None
    text = text.strip() if for_header else text
    if not text.strip():
        raise ConfigError(f"{setting}: {path} is empty; put the {what} into it")
    if for_header and not is_value(text):
        raise ConfigError(
            f"{setting}: {path} holds characters no header can carry, or more than one line; put the {what} "
            "into it and nothing else"
        )
    return text


_WAYS: Final = ("file", "env")
_HOW: Final = "write the secret itself, {file: PATH} or {env: VARIABLE}"


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A secret in the settings: its text, the file that contains it, or the environment variable that does.

    As a setting it is text, ``{file: PATH}`` or ``{env: VARIABLE}``. The text is masked wherever settings are
    shown; paths and names of variables are not.
    """

    text: SecretStr | None = None
    file: Path | None = None
    env: str | None = None

    def read(self, setting: str, what: str, *, for_header: bool = False) -> str:
        """The current value of the secret. Messages name the ``setting``, and ``what`` it should be, such as
        a key or a password.

        Raises ConfigError, which never contains the secret, if the file or the variable can't be read or is
        empty; with ``for_header``, also for a value that no HTTP header can carry, because every call would
        then fail with an error that names no file.
        """
        if self.file is not None:
            return _of_file(self.file, setting, what, for_header)
        variable = self.env or ""
        value = self.text.get_secret_value() if self.text else os.environ.get(variable, "").strip()
        if for_header and not is_value(value):
            raise ConfigError(f"{setting}: it holds characters no header can carry; give the {what} alone")
        if not value and self.text is None:
            raise ConfigError(
                f"{setting}: the environment variable {variable} is not set; set it to the {what}, or name a "
                f"file that holds the {what} as {setting}: {{file: PATH}}"
            )
        return value

    def shown(self) -> Any:
        """What settings show in its place."""
        if self.file is not None:
            return {"file": str(self.file)}
        return MASK if self.text is not None else {"env": self.env}

    def __repr__(self) -> str:
        return f"Secret({self.shown()!r})"

    @classmethod
    def of(cls, value: Any) -> Secret:
        if isinstance(value, Secret):
            return value
        if isinstance(value, str | SecretStr):
            return cls(value if isinstance(value, SecretStr) else SecretStr(value))
        if isinstance(value, Mapping) and len(value) == 1:
            (way, where), *_ = value.items()
            if way in _WAYS and isinstance(where, str | Path) and str(where):
                return cls(file=Path(where)) if way == "file" else cls(env=str(where))
        raise PydanticCustomError("secret", "expected a secret; {how}", {"how": _HOW})

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls.of,
            serialization=core_schema.plain_serializer_function_ser_schema(cls.shown, when_used="json"),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        ways = [
            {
                "type": "object",
                "properties": {way: {"type": "string", "minLength": 1}},
                "required": [way],
                "additionalProperties": False,
            }
            for way in _WAYS
        ]
        return {"anyOf": [{"type": "string", "writeOnly": True, "format": "password"}, *ways]}
