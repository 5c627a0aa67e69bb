"""Who had what judged at what price: tokens and cost by tenant, model and UTC day."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from guardrail.events import Usage
from guardrail.judges.usage import total
from guardrail.printable import escape_controls, shorten

_log = logging.getLogger(__name__)
OTHERS: Final = "(others)"
"""The tenant under which usage is counted once there are more rows than the ledger keeps."""
_DAYS_KEPT: Final = 31
_NAME_CHARS: Final = 120


@dataclass(frozen=True, slots=True, order=True)
class LedgerKey:
    """One row of the ledger. ``tenant`` is empty where the responses name none."""

    day: date
    tenant: str
    model: str


class UsageLedger:
    """Sums in memory, bounded: rows by day, tenant and model; days older than a month are forgotten.

    What was added since the last time is logged as ``judge.usage``, a line a row, when the interval has
    passed, and by ``flush``. The lines of a day add up to its usage, over restarts too. Names of tenants and
    models are in them, and numbers; no texts.
    """

    def __init__(
        self,
        *,
        log_interval_s: float = 300.0,
        max_rows: int = 10_000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``clock`` is seconds since 1970 UTC."""
        self._interval = log_interval_s
        self._max_rows = max_rows
        self._clock = clock
        self._rows: dict[LedgerKey, Usage] = {}
        self._unlogged: dict[LedgerKey, Usage] = {}
        self._logged_at = clock()

    def add(self, tenant: str | None, model: str, usage: Usage) -> None:
        """Count ``usage``, at this moment."""
        if usage == Usage():
            return
        now = self._clock()
        day = datetime.fromtimestamp(now, UTC).date()
        key = LedgerKey(day, tenant or "", model)
        if key not in self._rows and len(self._rows) >= self._max_rows:
            self._forget(day)
            if len(self._rows) >= self._max_rows:
                key = LedgerKey(day, OTHERS, OTHERS)
        self._rows[key] = total(self._rows.get(key, Usage()), usage)
        self._unlogged[key] = total(self._unlogged.get(key, Usage()), usage)
        if now - self._logged_at >= self._interval:
            self.flush()

    def rows(self) -> dict[LedgerKey, Usage]:
        """All that is kept, ordered by day, tenant and model."""
        return dict(sorted(self._rows.items()))

    def total(self, *, day: date | None = None, tenant: str | None = None, model: str | None = None) -> Usage:
        """The sum of the rows that fit; what is left out fits any."""
        return total(
            *(
                usage
                for key, usage in self._rows.items()
                if day in (None, key.day) and tenant in (None, key.tenant) and model in (None, key.model)
            )
        )

    def flush(self) -> None:
        """Log what was added since the last time."""
        now = self._clock()
        self._logged_at = now
        unlogged, self._unlogged = self._unlogged, {}
        for key, usage in sorted(unlogged.items()):
            _log.info(
                "judge.usage day=%s tenant=%s model=%s calls=%d input_tokens=%d cached_input_tokens=%d "
                "output_tokens=%d cost_usd=%.6f",
                key.day.isoformat(),
                _shown(key.tenant),
                _shown(key.model),
                usage.judge_calls,
                usage.input_tokens,
                usage.cached_input_tokens,
                usage.output_tokens,
                usage.cost_usd,
            )
        self._forget(datetime.fromtimestamp(now, UTC).date())

    def _forget(self, today: date) -> None:
        oldest = today - timedelta(days=_DAYS_KEPT)
        for key in [key for key in self._rows if key.day < oldest]:
            del self._rows[key]


def _shown(name: str) -> str:
    """A name that can neither forge a log line nor be taken for the next field."""
    return repr(shorten(escape_controls(name), _NAME_CHARS))
