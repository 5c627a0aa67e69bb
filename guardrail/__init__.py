"""Streaming guardrail for RAG: every claim of an answer checked against its sources while it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.client import AnswerBlocked, GuardClient, GuardTimeout, Piece
    from guardrail.config import Settings, load_settings
    from guardrail.errors import (
        ConfigError,
        DecodeError,
        GuardrailError,
        InputError,
        JudgeError,
        ProtocolError,
        TransportError,
    )
    from guardrail.events import (
        ClaimVerdict,
        Context,
        Decision,
        DeliveryBlocked,
        DeliveryCompleted,
        DeliverySegment,
        Evidence,
        Finding,
        FlaggedCase,
        Response,
        ResponseVerdict,
        Severity,
        Verdict,
    )
    from guardrail.guard import Guard
    from guardrail.judges.base import Judge, JudgeRequest, Meter
    from guardrail.judges.factory import build_judge
    from guardrail.judges.settings import JudgeSettings
    from guardrail.judges.spending import UsageLedger
    from guardrail.limits import Limits
    from guardrail.policy import Policy, Rule
    from guardrail.routing import Challenger, PolicyRouter, Route
    from guardrail.verdicts import Judgement

__version__ = "0.1.0"

__all__ = [
    "AnswerBlocked",
    "Challenger",
    "ClaimVerdict",
    "ConfigError",
    "Context",
    "Decision",
    "DecodeError",
    "DeliveryBlocked",
    "DeliveryCompleted",
    "DeliverySegment",
    "Evidence",
    "Finding",
    "FlaggedCase",
    "Guard",
    "GuardClient",
    "GuardTimeout",
    "GuardrailError",
    "InputError",
    "Judge",
    "JudgeError",
    "JudgeRequest",
    "JudgeSettings",
    "Judgement",
    "Limits",
    "Meter",
    "Piece",
    "Policy",
    "PolicyRouter",
    "ProtocolError",
    "Response",
    "ResponseVerdict",
    "Route",
    "Rule",
    "Settings",
    "Severity",
    "TransportError",
    "UsageLedger",
    "Verdict",
    "__version__",
    "build_judge",
    "load_settings",
]

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    # Imported on first use: the command line and the contracts start without the engine.
    __getattr__, __dir__ = face(
        __name__,
        {
            "guardrail.client": ("GuardClient", "Piece"),
            "guardrail.config": (
                "Settings",
                "load_settings",
            ),
            "guardrail.errors": (
                "AnswerBlocked",
                "ConfigError",
                "DecodeError",
                "GuardTimeout",
                "GuardrailError",
                "InputError",
                "JudgeError",
                "ProtocolError",
                "TransportError",
            ),
            "guardrail.events": (
                "ClaimVerdict",
                "Context",
                "Decision",
                "DeliveryBlocked",
                "DeliveryCompleted",
                "DeliverySegment",
                "Evidence",
                "Finding",
                "FlaggedCase",
                "Response",
                "ResponseVerdict",
                "Severity",
                "Verdict",
            ),
            "guardrail.guard": ("Guard",),
            "guardrail.judges.base": (
                "Judge",
                "JudgeRequest",
                "Meter",
            ),
            "guardrail.judges.factory": ("build_judge",),
            "guardrail.judges.settings": ("JudgeSettings",),
            "guardrail.judges.spending": ("UsageLedger",),
            "guardrail.limits": ("Limits",),
            "guardrail.policy": (
                "Policy",
                "Rule",
            ),
            "guardrail.routing": (
                "Challenger",
                "PolicyRouter",
                "Route",
            ),
            "guardrail.verdicts": ("Judgement",),
        },
    )
