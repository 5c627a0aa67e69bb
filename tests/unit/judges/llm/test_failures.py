from __future__ import annotations

import pytest

from guardrail.judges.llm.failures import Backoff, retry_after
from tests.unit.judges.llm.asking import settings


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-4"}, 0.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:02:00 GMT"}, 20.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, float("inf")),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Thu, 99 Foo 1970"}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=lambda: 100.0) == seconds


def test_the_bound_of_the_wait_doubles_up_to_the_maximum() -> None:
    backoff = Backoff(settings(backoff_initial_ms=100, backoff_max_ms=500), random_=lambda: 1.0)
    assert [backoff.seconds(retry, None) for retry in range(5)] == [0.1, 0.2, 0.4, 0.5, 0.5]


def test_the_wait_is_spread_over_all_of_the_bound() -> None:
    assert Backoff(settings(), random_=lambda: 0.0).seconds(3, None) == 0.0


def test_the_wait_is_never_shorter_than_what_the_server_asks() -> None:
    backoff = Backoff(settings(backoff_initial_ms=100, backoff_max_ms=500), random_=lambda: 0.5)
    assert backoff.seconds(0, 30.0) == 30.05
