"""A guard for the adapters of frameworks that call from any thread."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from guardrail.integrations.background import BackgroundGuard
from tests.support.judges import WordJudge


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What frameworks warn of, such as files and loops that they leave open, is theirs to mend."""
    for item in items:
        if item.path.name.startswith("in_"):
            item.add_marker(pytest.mark.filterwarnings("default"))


@pytest.fixture
def judge() -> WordJudge:
    return WordJudge()


@pytest.fixture
def guard(judge: WordJudge) -> Iterator[BackgroundGuard]:
    with BackgroundGuard(judge=judge) as guard:
        yield guard
