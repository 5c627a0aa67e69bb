"""How a value is kept in the sessions topic: as JSON under a key, in parts where one record can't hold it.

A value in parts is ``{"v": 1, "parts": n}`` under its key and n slices of its JSON under ``part/<i>/<key>``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from consumers.transport import StateRecord
from guardrail.errors import StateError

VERSION: Final = 1
"""Of every value: ``{"v": 1, …}``. Raised when an older version could misread what is written."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def key_prefix(group_id: str) -> bytes:
    """What all keys of a group begin with in the sessions topic, which several groups may share."""
    return quote(group_id, safe="").encode() + b"/"


class UnreadableState(Exception):
    """A stored value is not what this version or an older one has written."""


def encoded(key: str, value: Mapping[str, Any], max_bytes: int) -> list[StateRecord]:
    """The records that keep ``value``, the first under ``key``; none has a value of over ``max_bytes``."""
    # As json.loads reads bytes: half a pair of surrogates in a text is kept as it came.
    data = _encode({"v": VERSION, **value}).encode("utf-8", "surrogatepass")
    if len(data) <= max_bytes:
        return [StateRecord(key.encode(), data)]
    slices = [data[start : start + max_bytes] for start in range(0, len(data), max_bytes)]
    about = _encode({"v": VERSION, "parts": len(slices)}).encode()
    return [StateRecord(key.encode(), about)] + [
        StateRecord(part_key(key, index), piece) for index, piece in enumerate(slices)
    ]


def part_key(key: str, index: int) -> bytes:
    """Where slice ``index`` of the value of ``key`` is."""
    return f"part/{index}/{key}".encode()


def decoded(state: Mapping[bytes, bytes], key: str) -> tuple[dict[str, Any], int]:
    """The value kept under ``key``, and in how many parts (0: in one record).

    Raises StateError when a newer version wrote it, UnreadableState when it makes no sense.
    """
    value = _parsed(state[key.encode()], key)
    parts = value.get("parts")
    if parts is None:
        return value, 0
    try:
        data = b"".join(state[part_key(key, index)] for index in range(parts))
    except (KeyError, TypeError) as error:
        raise UnreadableState(f"a part of {key} is missing") from error
    return _parsed(data, key), parts


def _parsed(data: bytes, key: str) -> dict[str, Any]:
    try:
        value = json.loads(data)
        version = value["v"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UnreadableState(f"{key} is no value with a version") from error
    if not isinstance(version, int):
        raise UnreadableState(f"{key} has the version {type(version).__name__}")
    if version > VERSION:
        raise StateError(
            f"the stored session record {key} has version {version}, and this guard reads up to {VERSION}: "
            "run a guard at least as new as the one that wrote it, until no response is in flight"
        )
    return dict(value)
