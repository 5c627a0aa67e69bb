"""The guard over HTTP, in front of any OpenAI-compatible API: ``guardrail serve``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from consumers.gateway.admission import Refused as Refused
    from consumers.gateway.app import Gateway as Gateway
    from consumers.gateway.completions import GuardedCompletion as GuardedCompletion
    from consumers.gateway.completions import asked_by as asked_by
    from consumers.gateway.doctor import SURFACES as SURFACES
    from consumers.gateway.doctor import examine_gateway as examine_gateway
    from consumers.gateway.endpoints import asyncapi as asyncapi
    from consumers.gateway.endpoints import openapi as openapi
    from consumers.gateway.responses import GuardedResponse as GuardedResponse
    from consumers.gateway.responses import response_asked_by as response_asked_by
    from consumers.gateway.server import serving as serving
    from consumers.gateway.settings import ServeSettings as ServeSettings

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__, __all__ = face(__name__)
