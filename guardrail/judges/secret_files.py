"""Secrets that stand in files, as orchestrators mount them."""

from __future__ import annotations

from pathlib import Path

from guardrail.errors import ConfigError
from guardrail.judges.http_headers import is_value


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
