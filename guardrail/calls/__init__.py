"""Calls to other machines: how many, when, how often, for how long, and what their failures teach.

``Caller`` makes calls to one server: they wait for fair turns, end by their deadline, are repeated after a
random wait, and are not made while the server is down. ``BackOff`` is the waits of those who only repeat.
``http`` sends what is JSON over plain HTTP; it is imported by itself, as it loads the client.
"""

from __future__ import annotations

from guardrail.calls.caller import (
    AdaptiveLimit,
    BreakerState,
    Call,
    Caller,
    CircuitBreaker,
    FairSlots,
    RecentTimes,
)
from guardrail.calls.failures import RETRIES, BackOff, Failure, cut_off, of_status, retry_after, server_of

__all__ = [
    "RETRIES",
    "AdaptiveLimit",
    "BackOff",
    "BreakerState",
    "Call",
    "Caller",
    "CircuitBreaker",
    "Failure",
    "FairSlots",
    "RecentTimes",
    "cut_off",
    "of_status",
    "retry_after",
    "server_of",
]
