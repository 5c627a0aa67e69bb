"""The decisions judge: a model that answers each claim with probabilities, without writing anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.judges.decisions.judge import DecisionsJudge as DecisionsJudge
    from guardrail.judges.decisions.settings import DecisionsSettings as DecisionsSettings
else:
    __getattr__, __dir__, __all__ = face(__name__)
