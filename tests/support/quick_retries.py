"""Waits between calls to a language model that are as good as none."""

from __future__ import annotations

import pytest

from guardrail.judges.llm import failures


def make_retries_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(failures, "LONGEST_WAIT_S", 0.001)
