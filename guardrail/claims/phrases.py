"""The wordings of ``data/phrases.yaml``: what states something, and what states nothing."""

from __future__ import annotations

import re
from typing import Any, Final

from guardrail.shipped import shipped_yaml

_data: Final[dict[str, Any]] = shipped_yaml("guardrail.claims", "data", "phrases.yaml")
_MACRO: Final = re.compile("«([a-z_]+)»")


def _expanded(pattern: str) -> str:
    return _MACRO.sub(lambda macro: _expanded(_data["macros"][macro[1]]), pattern)


def expression(*names: str) -> str:
    """Any of the patterns of these lists."""
    return "|".join(f"(?:{_expanded(pattern)})" for name in names for pattern in _data[name])


def pattern(*names: str) -> re.Pattern[str]:
    """As ``expression``, compiled."""
    return re.compile(expression(*names))


def patterns(name: str) -> tuple[re.Pattern[str], ...]:
    """The patterns of this list, each compiled by itself."""
    return tuple(re.compile(_expanded(each)) for each in _data[name])


def words(name: str) -> frozenset[str]:
    """The words of this list."""
    listed = _data[name]
    return frozenset(listed.split() if isinstance(listed, str) else listed)


def one_of(name: str) -> str:
    """A pattern for any word of this list, the longest first."""
    ordered = sorted(_data[name], key=len, reverse=True)
    return "(?:" + "|".join(r"\s+".join(map(re.escape, word.split())) for word in ordered) + ")"
