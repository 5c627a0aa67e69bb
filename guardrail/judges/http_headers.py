"""Headers that the operator adds to calls, checked when settings load and not at the first call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pydantic import SecretStr

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
