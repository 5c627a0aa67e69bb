"""Attacks that still succeed, and why. Each is an xfail, and a strict one: whoever mends it is told so."""

from __future__ import annotations

from typing import Any, Final

import pytest

_TOKENS: Final = "the fence doesn't know these control tokens, so a server that tokenises them obeys"
_MIXED: Final = "a verdict that stands outside the list of verdicts is believed like one within it"
_MINED: Final = "an object within one that is no JSON, or has no end, is believed as if it stood by itself"

KNOWN_GAPS: Final = {
    "tokens-mistral-newer": _TOKENS,
    "tokens-gemma-newer": _TOKENS,
    "tokens-qwen-tools": _TOKENS,
    "tokens-command-r": _TOKENS,
    "tokens-glm": _TOKENS,
    "tokens-kimi": _TOKENS,
    "tokens-exaone": _TOKENS,
    "tokens-minimax": _TOKENS,
    "tokens-baichuan-and-internlm": _TOKENS,
    "tokens-nemotron": _TOKENS,
    "tokens-seed": _TOKENS,
    "tokens-media": _TOKENS,
    "tokens-infill": _TOKENS,
    "reply-duplicates-disagree-apart": "the first object is announced before the second is read",
    "reply-list-named-twice": "of two lists under one name the last is read as if it were the only one",
    "reply-repeats-a-lone-verdict": _MIXED,
    "reply-repeats-a-lone-verdict-last": _MIXED,
    "reply-cut-within-a-nested-verdict": _MINED,
    "reply-verdict-in-unescaped-quotes": _MINED,
    "reply-thoughts-without-end": "thoughts that don't end are read as the reply",
    "reply-verdict-folding-to-ascii": "letters whose upper case is an ASCII letter pass for it",
}


ONLY: Final = {
    "reply-duplicates-disagree-apart": {"in_pieces", "not_streamed"},
    "reply-list-named-twice": {"behind_prose"},
}
"""Those that succeed only where the reply comes in these ways."""


def marks(attack_id: str, way: str = "") -> list[Any]:
    """The marks of a test of one attack of the corpus, the reply to which comes in this way."""
    reason = KNOWN_GAPS.get(attack_id)
    if reason is None or way not in ONLY.get(attack_id, {way}):
        return []
    return [pytest.mark.xfail(strict=True, reason=reason)]
