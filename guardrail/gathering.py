"""When claims that a judge has put off go to it again, and whether it may put off those it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from guardrail.claims.model import Claim
from guardrail.engine_runs import Run
from guardrail.judges.base import Gathering, GatheringJudge, Judge, Judgement


class Gatherer:
    """The rules of an engine for claims that gather, of all its responses."""

    def __init__(
        self, judge: Judge, most: int, clock: Callable[[], float], others_may_begin: Callable[[Run], None]
    ) -> None:
        """``most`` claims fit into a call. ``others_may_begin`` is told when a call can't be joined any more,
        once the text of its response has ended."""
        self._max_wait_s = judge.max_wait_s if isinstance(judge, GatheringJudge) else 0.0
        self._most = most
        self._clock = clock
        self._others_may_begin = others_may_begin

    def due(self, run: Run) -> float:
        """When what was put off has to go to the judge; infinity while a call is under way, which looks."""
        if not run.put_off or run.calls:
            return float("inf")
        return run.session.can_wait_until(run.put_off, self._max_wait_s)

    def to_judge(self, run: Run) -> bool:
        """Is there anything that should be put to the judge now?"""
        if run.waiting or not run.put_off or not run.session.reading:
            return bool(run.waiting or run.put_off)
        return run.session.can_wait_until(run.put_off, self._max_wait_s) <= self._clock()

    def gathering(
        self, run: Run, batch: Mapping[str, Claim], known: Mapping[str, Judgement]
    ) -> Gathering | None:
        """What the judge needs to know to put claims of ``batch`` off; None for one that never does."""
        if not self._max_wait_s:
            return None
        session = run.session
        # A call that can take no more claims can't wait for any, nor can one at the end of the text.
        over = len(batch) >= self._most or not session.reading
        until = session.can_wait_until(batch, self._max_wait_s)

        def may_put_off(urgent: bool) -> bool:
            if over or self._clock() >= until:
                return False
            return bool(run.waiting) or (session.reading and not urgent)

        def going() -> None:
            run.sifting.discard(gathering)
            if not session.reading and not run.dropped:
                self._others_may_begin(run)

        gathering = Gathering(known, may_put_off, going)
        run.sifting.add(gathering)
        return gathering
