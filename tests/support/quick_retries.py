"""Waits between calls to a language model that are as good as none."""

from __future__ import annotations

import pytest

from guardrail.judges.llm import exchange


def make_retries_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(exchange, "LONGEST_WAIT_S", 0.001)
