"""Membership of the group, where the client library gets it wrong.

- A second member with the same ``group_instance_id`` replaces the first, which the broker then does not know
  any more. The library would join again, replace the second, and so on for ever; and the code with which the
  broker says what is wrong is not in its tables.
- Told to close while a rebalance is under way, it joins first: everybody else waits for one that leaves.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from aiokafka.errors import (
    CoordinatorLoadInProgressError,
    NoError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from aiokafka.protocol.group import HeartbeatRequest, JoinGroupRequest

from guardrail.errors import TransportUnavailable
from guardrail.kafka_settings import KafkaSettings

_FENCED_INSTANCE_ID: Final = 82


class Membership:
    """Sees all that a consumer's coordinator sends, from its start on."""

    def __init__(
        self, coordinator: Any, settings: KafkaSettings, failed: Callable[[TransportUnavailable], None]
    ) -> None:
        """``failed`` is told when another member has taken over the instance id."""
        self._settings = settings
        self._failed = failed
        self._send = coordinator._send_req
        self._heard_at = float("-inf")
        self._leaving = False
        coordinator._send_req = self._send_req

    def joined(self) -> None:
        """The broker has just assigned partitions to us."""
        self._heard_at = time.monotonic()

    def leave(self) -> None:
        """Do not join any more."""
        self._leaving = True

    async def _send_req(self, request: Any) -> Any:
        if self._leaving and isinstance(request, JoinGroupRequest):
            raise CoordinatorLoadInProgressError  # the library tries later, and sees that it is to close
        sent_at = time.monotonic()
        response = await self._send(request)
        if self._settings.group_instance_id is not None:
            self._look_at(request, getattr(response, "error_code", NoError.errno), sent_at)
        return response

    def _look_at(self, request: Any, code: int, sent_at: float) -> None:
        heartbeat = isinstance(request, HeartbeatRequest)
        if heartbeat and code in {NoError.errno, RebalanceInProgressError.errno}:
            self._heard_at = sent_at
        # After a long silence not to be known is nothing but that: the session has expired.
        silence_s = time.monotonic() - self._heard_at
        lately = silence_s < self._settings.session_timeout_ms / 2000
        replaced = heartbeat and code == UnknownMemberIdError.errno and lately
        if (replaced or code == _FENCED_INSTANCE_ID) and not self._leaving:
            self._leaving = True
            self._failed(
                TransportUnavailable(
                    f"another member of group {self._settings.group_id} has joined with the same "
                    f"group_instance_id {self._settings.group_instance_id} and taken this one's place; "
                    "give every guard an id of its own"
                )
            )
