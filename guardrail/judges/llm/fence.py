"""Fences: what is not ours to trust goes to the model between lines that it can't have written itself.

The marker of a response is an HMAC of its id under a secret that this process drew at start. It is the same
in all calls of one response, so that a provider's prefix cache survives, and nobody outside can know it: not
the writer of a context, nor of a question, nor the model that wrote the answer.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from typing import Final

# Common tokenizers make one token of three digits, but of hexadecimal ones two characters: a marker stands in
# every call some twenty times. 18 digits are 60 bits, and whoever guesses has one try.
_MARKER_DIGITS: Final = 18

# What chat templates use to tell roles apart: servers that tokenise the filled-in template (vLLM, llama.cpp,
# TGI) read these as control tokens even where they stand in a message. Covered are <|im_start|> and all of
# its shape (also DeepSeek's with the full-width bar, EXAONE's with square brackets), the words that models of
# Llama, Mistral, Gemma, Qwen, Command R, GLM, Kimi, MiniMax, Baichuan, InternLM, Nemotron, Seed and of code
# and pictures have for it and, for those to come, names with _ or : in angle brackets. Every branch begins
# with a literal, so that the scan passes over all other characters quickly.
_ANGLED: Final = (
    r"s|bos|eos|pad|unk|cls|sep|mask|sop|eop|eoh|eoa|eod|eot"
    r"|start_of_turn|end_of_turn|start_of_image|end_of_image|unused\d{1,4}|reserved_\d{1,4}"
    r"|think|thinking|tool_call|tool_calls|tool_response|tools|function|functions"
    r"|[be]os_token|pad_token|unk_token|extra_id_\d{1,4}|special_\d{1,4}|seed:\w{1,20}"
    r"|__media__|image|video|audio|img|img_context|fim_\w{1,20}|file_sep|repo_name|reponame|filename"
)
_SQUARE: Final = (
    r"INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|THINK|ARGS|CALL_ID"
    r"|IMG|IMG_BREAK|IMG_END|gMASK|sMASK|MASK|BOS|EOS|EOT|PAD|UNK|CLS|SEP"
)
_CONTROL: Final = re.compile(
    r"<(?=[|｜])"
    r"|>(?<=[|｜]>)"
    rf"|<(?=/?(?i:{_ANGLED})>)"
    r"|<(?=</?(?i:SYS)>>)"
    rf"|\[(?=/?(?i:{_SQUARE})\])"
    r"|<(?=/?[A-Za-z][A-Za-z0-9]{0,20}[_:][A-Za-z0-9_:]{1,40}>)"
    r"|\[(?=\|)|\](?<=\|\])"
    r"|\[(?=e~\[)|\](?=~!?b[\[\]])"
)
_STAND_IN: Final = {"<": "‹", ">": "›", "[": "［", "]": "］"}


class Fence:
    """Wraps data of one response in marker lines that the data can't close."""

    __slots__ = ("_forbidden", "marker")

    def __init__(self, marker: str) -> None:
        self.marker = marker
        self._forbidden = re.compile(re.escape(marker), re.IGNORECASE)

    def wrap(self, name: str, data: str) -> str:
        """``data`` between two marker lines. ``name`` must be one of ours, never taken from data."""
        return f"[{self.marker} begin {name}]\n{self.defuse(data)}\n[{self.marker} end {name}]"

    def defuse(self, data: str) -> str:
        """``data`` without the marker (which it could hold only if that had leaked) and control tokens.

        Lone surrogates, which no JSON body can carry, become question marks. Linear in the length.
        """
        data = data.encode("utf-8", "replace").decode("utf-8")
        if self._forbidden.search(data):
            data = self._forbidden.sub("…", data)
        return _CONTROL.sub(lambda match: _STAND_IN[match[0]], data)

    def scrub(self, reply: str) -> str:
        """Text of the model that others get to read, without the marker."""
        return self._forbidden.sub("…", reply)


def fences(secret: bytes | None = None) -> Callable[[str], Fence]:
    """What makes the fence of a response from its id; a secret of its own is drawn when none is given."""
    key = secret or secrets.token_bytes(32)

    def fence(response_id: str) -> Fence:
        digest = hmac.new(key, response_id.encode("utf-8", "surrogatepass"), hashlib.sha256)
        number = int.from_bytes(digest.digest()) % 10**_MARKER_DIGITS
        return Fence(f"m{number:0{_MARKER_DIGITS}}")

    return fence
