"""This machine's clock beside another one's."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import Final

from guardrail.doctor.checks import Area, Check

_CLOCK: Final = Area("clock")
_WARN_S: Final = 5.0
_FAIL_S: Final = 3_600.0
"""From here on brokers refuse records as too far in the future (message.timestamp.after.max.ms)."""
_TIMEOUT_S: Final = 10.0


async def endpoint_time_s(url: str) -> float | None:
    """What the server at ``url`` says is the time, in seconds since 1970; None where it doesn't answer, or
    doesn't say. Nothing secret is sent: no key, no query."""
    import httpx2

    from guardrail.judges.http import split_base_url

    base_url, _query = split_base_url(url)
    try:
        async with httpx2.AsyncClient(timeout=_TIMEOUT_S) as client:
            answer = await client.get(base_url)
        return parsedate_to_datetime(answer.headers["date"]).timestamp()
    except (httpx2.HTTPError, httpx2.InvalidURL, KeyError, ValueError):
        return None


def check_clock(
    told_s: float | None, begun_s: float, now_s: float, against: str, exact_to_s: float = 0.0
) -> Check:
    """``told_s`` is the time of ``against`` at a moment between ``begun_s`` and ``now_s`` here, all in
    seconds since 1970, and rounded down to ``exact_to_s``; None is unknown."""
    if told_s is None:
        why = "the responses topic keeps its producers' time (no LogAppendTime), and no endpoint tells it"
        return _CLOCK.skip("this machine", why)
    ahead = max(0.0, begun_s - told_s - exact_to_s) or min(0.0, now_s - told_s)
    if abs(ahead) < _WARN_S:
        return _CLOCK.ok("this machine", f"within {_WARN_S:g} s of {against}")
    bad = _CLOCK.warn if abs(ahead) < _FAIL_S else _CLOCK.fail
    where = "ahead of" if ahead > 0 else "behind"
    return bad("this machine", f"{abs(ahead):,.0f} s {where} {against}", "set both clocks by NTP")
