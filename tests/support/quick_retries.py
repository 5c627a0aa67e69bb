"""Waits between calls to a language model that are as good as none."""

from __future__ import annotations

import pytest

from guardrail.judges.llm import RetryWaits


def make_retries_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RetryWaits, "FIRST_S", 0.001)
    monkeypatch.setattr(RetryWaits, "LONGEST_S", 0.001)
