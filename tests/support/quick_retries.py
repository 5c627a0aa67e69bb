"""Waits between calls to a language model that are as good as none."""

from __future__ import annotations

import pytest

from guardrail.calls import RETRIES


def make_retries_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RETRIES, "first_s", 0.001)
    monkeypatch.setattr(RETRIES, "longest_s", 0.001)
