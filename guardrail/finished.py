"""Remembers finished responses, so that a late event is told from an unknown one."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from typing import NamedTuple

from guardrail.errors import ProtocolError
from guardrail.events import ResponseAborted, ResponseCompleted, ResponseDelta, ResponseHead


def digest(head: ResponseHead) -> bytes:
    """Tells two starts with one id apart: 8 bytes over the whole event."""
    return blake2b(head.to_json(), digest_size=8).digest()


class _Finished(NamedTuple):
    forget_at: float
    digest: bytes
    next_seq: int


class FinishedResponses:
    """Bounded in number and time; the oldest go first."""

    def __init__(self, max_entries: int, ttl_s: float) -> None:
        self._max_entries = max_entries
        self._ttl_s = ttl_s
        self._entries: OrderedDict[str, _Finished] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, response_id: str, fingerprint: bytes, next_seq: int, now: float) -> None:
        """Remember a response that has just finished, with the number of deltas read."""
        self._entries.pop(response_id, None)
        self._entries[response_id] = _Finished(now + self._ttl_s, fingerprint, next_seq)
        while len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)

    def get(self, response_id: str, now: float) -> bytes | None:
        """The digest of its start; None when it is not remembered."""
        while self._entries and next(iter(self._entries.values())).forget_at <= now:
            self._entries.popitem(last=False)
        entry = self._entries.get(response_id)
        return None if entry is None else entry.digest

    def require_repeated(
        self, event: ResponseDelta | ResponseCompleted | ResponseAborted, now: float
    ) -> None:
        """Raises ProtocolError unless this event had been read before its response finished."""
        if self.get(event.response_id, now) is None:
            raise ProtocolError("unknown_response", "no response with this id was started")
        if isinstance(event, ResponseDelta) and event.seq >= self._entries[event.response_id].next_seq:
            raise ProtocolError("response_finished", f"delta {event.seq} came after the end of the response")
