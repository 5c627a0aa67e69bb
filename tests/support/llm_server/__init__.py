"""A stand-in LLM server: the chat-completions wire format over a real socket, misbehaving on demand.

``server`` listens and records, ``behaviours`` are what it can do, ``content`` is what a model writes,
``wire`` makes bytes of both, and ``calls`` is what is recorded.
"""

from __future__ import annotations

from tests.support.llm_server.behaviours import (
    Act,
    Behaviour,
    Cut,
    Drip,
    Hang,
    Reply,
    Status,
    StreamError,
    Wire,
    busy,
    event,
    refusing,
    refusing_field,
)
from tests.support.llm_server.calls import Outcome, Recorded
from tests.support.llm_server.content import (
    member,
    missing,
    obliging,
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
