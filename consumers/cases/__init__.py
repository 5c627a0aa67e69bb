"""Cases of flagged answers, kept for reviewers: in SQLite, or in PostgreSQL."""

from __future__ import annotations

from consumers.cases.opening import check_store, open_store
from consumers.cases.store import (
    CaseFilter,
    CaseRow,
    CaseStore,
    DueCase,
    NewCase,
    WebhookState,
    row_of,
)

__all__ = [
    "CaseFilter",
    "CaseRow",
    "CaseStore",
    "DueCase",
    "NewCase",
    "WebhookState",
    "check_store",
    "open_store",
    "row_of",
]
