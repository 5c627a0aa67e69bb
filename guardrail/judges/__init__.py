"""Judges: the protocol, for one of your own, is here; ``guardrail.build_judge`` makes those that are shipped.

The names are imported when they are first asked for: settings are read without the index of evidence.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from guardrail.events import Evidence, Usage, Verdict
    from guardrail.judges.base import Gathering, GatheringJudge, Judge, JudgeRequest, Meter
    from guardrail.verdicts import Judgement

__all__ = [
    "Evidence",
    "Gathering",
    "GatheringJudge",
    "Judge",
    "JudgeRequest",
    "Judgement",
    "Meter",
    "Usage",
    "Verdict",
]

_HOME: Final = {
    "Evidence": "guardrail.events",
    "Judgement": "guardrail.verdicts",
    "Usage": "guardrail.events",
    "Verdict": "guardrail.events",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME.get(name, "guardrail.judges.base")), name)
