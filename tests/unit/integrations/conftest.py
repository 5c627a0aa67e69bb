"""A guard for the adapters of frameworks that call from any thread."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from guardrail.integrations.background import BackgroundGuard
from tests.support.judges import WordJudge


@pytest.fixture
def judge() -> WordJudge:
    return WordJudge()


@pytest.fixture
def guard(judge: WordJudge) -> Iterator[BackgroundGuard]:
    with BackgroundGuard(judge=judge) as guard:
        yield guard
