"""Judges: the protocol, for one of your own, is here; ``guardrail.build_judge`` makes those that are shipped.

The names are imported when they are first asked for: settings are read without the index of evidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.events import Evidence, Usage, Verdict
    from guardrail.judges.base import Gathering, GatheringJudge, Judge, JudgeRequest, Meter
    from guardrail.judges.cache import CachedJudge
    from guardrail.judges.streams import checked, closing, merged
    from guardrail.verdicts import Judgement

__all__ = [
    "CachedJudge",
    "Evidence",
    "Gathering",
    "GatheringJudge",
    "Judge",
    "JudgeRequest",
    "Judgement",
    "Meter",
    "Usage",
    "Verdict",
    "checked",
    "closing",
    "merged",
]

if not TYPE_CHECKING:  # a type checker knows the names above, and no others
    __getattr__, __dir__ = face(
        __name__,
        {
            "guardrail.events": ("Evidence", "Usage", "Verdict"),
            "guardrail.judges.base": ("Gathering", "GatheringJudge", "Judge", "JudgeRequest", "Meter"),
            "guardrail.judges.cache": ("CachedJudge",),
            "guardrail.judges.streams": ("checked", "closing", "merged"),
            "guardrail.verdicts": ("Judgement",),
        },
    )
