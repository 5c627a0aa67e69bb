"""Runs many responses against one judge: tasks, deadlines, bounds, and the state of each response to
store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.engine.engine import MAX_SEQ as MAX_SEQ
    from guardrail.engine.engine import OVERLOADED as OVERLOADED
    from guardrail.engine.engine import Engine as Engine
    from guardrail.engine.runs import Captured as Captured
    from guardrail.engine.runs import Change as Change
    from guardrail.engine.runs import ClosedResponse as ClosedResponse
    from guardrail.engine.runs import FinishedResponses as FinishedResponses
    from guardrail.engine.runs import Headers as Headers
    from guardrail.engine.runs import Output as Output
    from guardrail.engine.runs import digest as digest

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__, __all__ = face(__name__)
