"""Streaming guardrail for RAG: every claim of an answer checked against its sources while it is written."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
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
    "GuardrailError",
    "InputError",
    "Judge",
    "JudgeError",
    "JudgeRequest",
    "JudgeSettings",
    "Judgement",
    "Limits",
    "Meter",
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

# Imported at first use (PEP 562): the command line and the contracts start without the engine.
_HOME: Final = {
    "ClaimVerdict": "guardrail.events",
    "ConfigError": "guardrail.errors",
    "Context": "guardrail.events",
    "Decision": "guardrail.events",
    "DecodeError": "guardrail.errors",
    "DeliveryBlocked": "guardrail.events",
    "DeliveryCompleted": "guardrail.events",
    "DeliverySegment": "guardrail.events",
    "Evidence": "guardrail.events",
    "Finding": "guardrail.events",
    "FlaggedCase": "guardrail.events",
    "Guard": "guardrail.guard",
    "GuardrailError": "guardrail.errors",
    "InputError": "guardrail.errors",
    "Judge": "guardrail.judges.base",
    "JudgeError": "guardrail.errors",
    "JudgeRequest": "guardrail.judges.base",
    "JudgeSettings": "guardrail.judges.settings",
    "Judgement": "guardrail.verdicts",
    "Limits": "guardrail.limits",
    "Meter": "guardrail.judges.base",
    "Policy": "guardrail.policy",
    "PolicyRouter": "guardrail.routing",
    "Challenger": "guardrail.routing",
    "ProtocolError": "guardrail.errors",
    "Response": "guardrail.events",
    "ResponseVerdict": "guardrail.events",
    "Route": "guardrail.routing",
    "Rule": "guardrail.policy",
    "Settings": "guardrail.config",
    "Severity": "guardrail.events",
    "TransportError": "guardrail.errors",
    "UsageLedger": "guardrail.judges.spending",
    "Verdict": "guardrail.events",
    "build_judge": "guardrail.judges.factory",
    "load_settings": "guardrail.config",
}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
