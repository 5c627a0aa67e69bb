"""Makes untrusted text safe for a terminal or a log line.

Answers, contexts, ids and settings may contain anything: escape sequences that recolour or rewrite a
terminal, line breaks that forge a log line, marks that change the reading direction, lone surrogates that no
encoder accepts. Each becomes a visible escape; everything else, in any script, stays as it is.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Final


def _escape(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}"


# C0 and C1 controls, DEL, line and paragraph separators, marks and overrides of direction, byte order mark.
_CODES: Final = (*range(0x20), *range(0x7F, 0xA0), 0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F))
_MORE: Final = (*range(0x2066, 0x206A), 0xFEFF, *range(0xD800, 0xE000))
_TABLE: Final = {code: _escape(code) for code in (*_CODES, *_MORE)} | {9: "\\t", 10: "\\n", 13: "\\r"}
_KEEP_LINES: Final = {code: text for code, text in _TABLE.items() if code not in {9, 10}}


def escape_controls(text: str, *, keep_lines: bool = False) -> str:
    """``text`` with control characters written as escapes; with ``keep_lines``, tabs and line feeds stay.

    Linear in the text. The backslash itself is not doubled: the result is for reading, not for decoding.
    """
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_KEEP_LINES if keep_lines else _TABLE)


# Python takes 300 times as long to compile the range from \x7f up.
_BEYOND_ASCII: Final = re.compile("[^\x00-\x7e]")


def escape_in_json(text: str) -> str:
    """A JSON document with control and format characters and line separators written as JSON's own escapes.

    It stands for the same value. Lone surrogates are escaped too.
    """
    return text if text.isascii() and "\x7f" not in text else _BEYOND_ASCII.sub(_in_json, text)


def _in_json(found: re.Match[str]) -> str:
    char = found[0]
    if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
        return json.dumps(char)[1:-1]
    return char


def shorten(text: str, limit: int) -> str:
    """At most ``limit`` characters of ``text``, truncated with an ellipsis; ``limit`` is at least 1."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
