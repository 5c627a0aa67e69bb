"""Tests of the configuration see no settings of whoever runs them."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def _no_settings_in_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.upper().startswith("GUARDRAIL_"):
            monkeypatch.delenv(name)
