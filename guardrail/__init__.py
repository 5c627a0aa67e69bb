"""Streaming guardrail for RAG: every claim of an answer checked against its sources while it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.client import GuardClient as GuardClient
    from guardrail.client import Piece as Piece
    from guardrail.config import Settings as Settings
    from guardrail.config import load_settings as load_settings
    from guardrail.errors import AnswerBlocked as AnswerBlocked
    from guardrail.errors import ConfigError as ConfigError
    from guardrail.errors import DecodeError as DecodeError
    from guardrail.errors import GuardrailError as GuardrailError
    from guardrail.errors import GuardTimeout as GuardTimeout
    from guardrail.errors import InputError as InputError
    from guardrail.errors import JudgeError as JudgeError
    from guardrail.errors import ProtocolError as ProtocolError
    from guardrail.errors import TransportError as TransportError
    from guardrail.events import ClaimVerdict as ClaimVerdict
    from guardrail.events import Context as Context
    from guardrail.events import Decision as Decision
    from guardrail.events import DeliveryBlocked as DeliveryBlocked
    from guardrail.events import DeliveryCompleted as DeliveryCompleted
    from guardrail.events import DeliverySegment as DeliverySegment
    from guardrail.events import Evidence as Evidence
    from guardrail.events import Finding as Finding
    from guardrail.events import FlaggedCase as FlaggedCase
    from guardrail.events import Response as Response
    from guardrail.events import ResponseVerdict as ResponseVerdict
    from guardrail.events import Severity as Severity
    from guardrail.events import Verdict as Verdict
    from guardrail.guard import Guard as Guard
    from guardrail.judges.base import Judge as Judge
    from guardrail.judges.base import JudgeRequest as JudgeRequest
    from guardrail.judges.base import Meter as Meter
    from guardrail.judges.factory import build_judge as build_judge
    from guardrail.judges.settings import JudgeSettings as JudgeSettings
    from guardrail.judges.spending import UsageLedger as UsageLedger
    from guardrail.limits import Limits as Limits
    from guardrail.policy import Policy as Policy
    from guardrail.policy import Rule as Rule
    from guardrail.routing import Challenger as Challenger
    from guardrail.routing import PolicyRouter as PolicyRouter
    from guardrail.routing import Route as Route
    from guardrail.verdicts import Judgement as Judgement

__version__ = "0.1.0"

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__, __all__ = face(__name__)
    __all__ += ["__version__"]
