"""This machine's clock beside another one's."""

from __future__ import annotations

import pytest

from guardrail.doctor import check_clock


@pytest.mark.parametrize(
    ("told_s", "state", "words"),
    [
        (1_000.5, "ok", "within 5 s of the broker"),
        (996.0, "ok", "within 5 s of the broker"),
        (990.0, "warn", "10 s ahead of the broker"),
        (1_062.0, "warn", "60 s behind the broker"),
        (9_002.0, "fail", "8,000 s behind the broker"),
        (None, "skip", "no LogAppendTime"),
    ],
)
def test_a_difference_is_told_by_its_size(told_s: float | None, state: str, words: str) -> None:
    check = check_clock(told_s, 1_000.0, 1_002.0, "the broker")
    assert check.state == state
    assert words in check.detail


def test_whole_seconds_of_an_http_date_are_no_difference() -> None:
    assert check_clock(994.6, 1_000.0, 1_000.1, "it", exact_to_s=1.0).state == "ok"
    assert check_clock(994.6, 1_000.0, 1_000.1, "it").state == "warn"
