"""How other gateways ask ours about an answer: one table of dialects, and what answers them all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from consumers.gateway.dialects.desk import DIALECTS as DIALECTS
    from consumers.gateway.dialects.desk import GROUNDING as GROUNDING
    from consumers.gateway.dialects.desk import DialectDesk as DialectDesk
    from consumers.gateway.dialects.dialect import GatewayDialect as GatewayDialect

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__, __all__ = face(__name__)
