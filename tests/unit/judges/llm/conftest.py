from __future__ import annotations

import pytest

from tests.support.constants import make_retries_quick


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    make_retries_quick(monkeypatch)
