"""A stand-in LLM server: the chat-completions wire format over a real socket, misbehaving on demand.

``behaviours`` are what it can do with a call, ``server`` listens, makes bytes of them, and records.
"""

from __future__ import annotations

from tests.support.llm_server.behaviours import (
    Act,
    Behaviour,
    Cut,
    Drip,
    Hang,
    Outcome,
    Recorded,
    Reply,
    Status,
    StreamError,
    Wire,
    busy,
    event,
    member,
    missing,
    obliging,
    refusing,
    refusing_field,
    verdicts,
)
from tests.support.llm_server.server import LlmServer

__all__ = [
    "Act",
    "Behaviour",
    "Cut",
    "Drip",
    "Hang",
    "LlmServer",
    "Outcome",
    "Recorded",
    "Reply",
    "Status",
    "StreamError",
    "Wire",
    "busy",
    "event",
    "member",
    "missing",
    "obliging",
    "refusing",
    "refusing_field",
    "verdicts",
]
