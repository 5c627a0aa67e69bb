"""Calls to other machines: how many, when, how often, for how long, and what their failures teach.

``Caller`` makes calls to one server: they wait for fair turns, end by their deadline, are repeated after a
random wait, and are not made while the server is down. ``BackOff`` is the waits of those who only repeat.
"""

from __future__ import annotations

from guardrail.calls.caller import Call, Caller
from guardrail.calls.failures import RETRIES, BackOff, Failure, cut_off, retry_after, server_of
from guardrail.calls.limits import AdaptiveLimit, BreakerState, CircuitBreaker, RecentTimes
from guardrail.calls.slots import FairSlots

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
    "retry_after",
    "server_of",
]
