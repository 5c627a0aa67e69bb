"""Notices when it is no longer single records that can't be read, but most of them."""

from __future__ import annotations

from collections import deque

from guardrail.errors import TooManyBadRecords
from guardrail.limits import Limits


class BadRecords:
    """The share of undecodable records among the last ones taken."""

    def __init__(self, limits: Limits, topic: str) -> None:
        self._share = limits.bad_record_share
        self._least = limits.bad_record_min
        self._topic = topic
        self._last: deque[bool] = deque(maxlen=limits.bad_record_window)
        self._bad = 0

    def good(self) -> None:
        """A record was decoded, whatever became of it then."""
        self._note(bad=False)

    def bad(self) -> None:
        """A record could not be decoded. Raises TooManyBadRecords when that makes them too many."""
        self._note(bad=True)
        taken = len(self._last)
        if taken >= self._least and self._bad > self._share * taken:
            raise TooManyBadRecords(
                f"{self._bad:,} of the last {taken:,} records of {self._topic} could not be read; that is "
                f"more than limits.bad_record_share ({self._share:g}) allows, and the guard stops before all "
                "of them are dead letters. See who writes to the topic, and in which format: 'guardrail "
                "dead-letters list' shows those read so far. Started again, the guard goes on after them, up "
                "to the next limits.bad_record_min. If all are to be passed over, raise "
                "limits.bad_record_share; 1 switches this limit off"
            )

    def _note(self, *, bad: bool) -> None:
        last = self._last
        if len(last) == last.maxlen and last[0]:
            self._bad -= 1
        last.append(bad)
        self._bad += bad
