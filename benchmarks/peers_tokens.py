"""Counting tokens as a provider does: prompt tokens, those of them that its prefix cache held, and output.

Part of the simulated endpoint of ``benchmarks.peers``; needs the standard library only.
"""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from benchmarks.peers_answers import pieces

Tokenize = Callable[[str], list[str]]

CACHE_MINIMUM: Final = 1024
"""OpenAI caches prefixes of 1,024 tokens and more, …"""
CACHE_STEP: Final = 128
"""… in steps of 128."""
_BLOCKS_KEPT: Final = 200_000


@dataclass(slots=True)
class Usage:
    """What the calls for one label cost. ``unknown``: claims asked for that are in no answer known here."""

    calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    unknown: int = 0


class PrefixCache:
    """Which part of a prompt a provider has seen before, as the first so many tokens of an earlier prompt."""

    def __init__(self, minimum: int = CACHE_MINIMUM, step: int = CACHE_STEP) -> None:
        """A prefix counts from ``minimum`` tokens on, in steps of ``step``; least recently used go first."""
        self._minimum = minimum
        self._step = step
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def cached(self, tokens: Sequence[str]) -> int:
        """How many of the first tokens are held."""
        found = 0
        for length, key in self._prefixes(tokens):
            if key not in self._known:
                break
            self._known.move_to_end(key)
            found = length
        return found

    def add(self, tokens: Sequence[str]) -> None:
        """Hold this prompt's prefixes: it has been read."""
        for _, key in self._prefixes(tokens):
            self._known[key] = None
            self._known.move_to_end(key)
        while len(self._known) > _BLOCKS_KEPT:
            self._known.popitem(last=False)

    def _prefixes(self, tokens: Sequence[str]) -> list[tuple[int, bytes]]:
        """The lengths that count, and a key for each that stands for all the tokens up to there."""
        running = hashlib.blake2b(digest_size=16)
        done, found = 0, []
        for length in range(self._minimum, len(tokens) + 1, self._step):
            running.update("\0".join([*tokens[done:length], ""]).encode("utf-8", "surrogatepass"))
            found.append((length, running.digest()))
            done = length
        return found


def tokenizer() -> tuple[str, Tokenize]:
    """Its name, and what cuts a text into tokens: o200k_base where it is at hand, otherwise an estimate.

    The vocabulary is not loaded from the network: llama-index-core, one of the peers, ships it.
    """
    spec = find_spec("llama_index.core") if find_spec("llama_index") else None
    if spec is None or spec.origin is None or find_spec("tiktoken") is None:
        return "an estimate", pieces
    os.environ["TIKTOKEN_CACHE_DIR"] = str(Path(spec.origin).parent / "_static" / "tiktoken_cache")
    encoding = import_module("tiktoken").get_encoding("o200k_base")

    def tokenize(text: str) -> list[str]:
        # The bytes of a token need not be text by themselves; as Latin-1 they can be told apart and joined.
        numbers = encoding.encode(text, disallowed_special=())
        return [encoding.decode_single_token_bytes(number).decode("latin-1") for number in numbers]

    return "o200k_base", tokenize


def joined(tokens: Sequence[str], tokenize: Tokenize) -> bytes:
    """The UTF-8 text of tokens that ``tokenize`` made."""
    return "".join(tokens).encode("utf-8" if tokenize is pieces else "latin-1")
