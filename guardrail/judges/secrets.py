"""What settings hold that is shown to nobody: keys, files of keys, headers.

Secrets may stand in files, as orchestrators mount them. Headers are checked when settings load, not at the
first call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr

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
    """Raises ValueError for what HTTP can't carry; it names the header and never tells its value."""
    for name, value in headers.items():
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a header; write letters, digits and hyphens")
        if not is_value(value.get_secret_value()):
            raise ValueError(
                f"the value of {name} holds characters no header can carry; write it in ASCII, on one line"
            )


def is_value(text: str) -> bool:
    """Whether a header can carry ``text``."""
    return _VALUE.fullmatch(text) is not None


def read_secret(path: Path, setting: str, what: str, *, for_header: bool = False) -> str:
    """The text of the file, stripped. ``what`` it should be is said in the message: key, token, password.

    Raises ConfigError, which names ``setting`` and the path and holds nothing of the file. ``for_header``:
    also for what no HTTP header can carry, as every call would fail of it, for reasons that name no file.
    """
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ConfigError(
            f"{setting}: {path} can't be read ({reason}); mount the secret there or correct the path"
        ) from None
    if not text:
        raise ConfigError(f"{setting}: {path} is empty; put the {what} into it")
    if for_header and not is_value(text):
        raise ConfigError(
            f"{setting}: {path} holds characters no header can carry, or more than one line; put the {what} "
            "into it and nothing else"
        )
    return text
