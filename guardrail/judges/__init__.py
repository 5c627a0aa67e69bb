"""Judges: the protocol, for one of your own, is here; ``guardrail.build_judge`` makes those that are shipped.

The names are imported when they are first asked for: settings are read without the index of evidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.events import Evidence as Evidence
    from guardrail.events import Usage as Usage
    from guardrail.events import Verdict as Verdict
    from guardrail.judges.base import Gathering as Gathering
    from guardrail.judges.base import GatheringJudge as GatheringJudge
    from guardrail.judges.base import Judge as Judge
    from guardrail.judges.base import JudgeRequest as JudgeRequest
    from guardrail.judges.base import Meter as Meter
    from guardrail.judges.cache import CachedJudge as CachedJudge
    from guardrail.judges.streams import checked as checked
    from guardrail.judges.streams import closing as closing
    from guardrail.judges.streams import merged as merged
    from guardrail.verdicts import Judgement as Judgement

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__, __all__ = face(__name__)
