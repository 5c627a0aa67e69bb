"""The ids of events about one response under one policy: a session makes them, and labels are joined by them.

Each is, or begins with, a 96-bit blake2b digest of response id, policy name and version, and the event's
subject, so the same input under the same policy gives the same ids in every run and on every machine.
"""

from __future__ import annotations

from hashlib import blake2b

from guardrail.events import Span


class EventIds:
    """Makes the ids for one response under the policy of this name and version."""

    __slots__ = ("_hash",)

    def __init__(self, response_id: str, policy: str, version: str) -> None:
        self._hash = blake2b(
            f"{response_id}\0{policy}\0{version}\0".encode("utf-8", "surrogatepass"), digest_size=12
        )

    def make(self, about: str) -> str:
        """24 hex digits, the same for the same response, policy and ``about``."""
        digest = self._hash.copy()
        digest.update(about.encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def claim(self, index: int, span: Span, text: str) -> str:
        """That of a claim: its number in the response, where it stands (code points), and its raw text."""
        return self.make(f"claim\0{index}\0{span[0]}\0{span[1]}\0{text}")
