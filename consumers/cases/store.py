"""What a store of cases does, and what is kept of a case.

A case's row has what lists show and filter by; beside it stands the event as the guard wrote it, byte for
byte. Its key is the event's deterministic id, so that a case that is read again is not stored again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from guardrail.events import Decision, FlaggedCase, claim_that_decided
from guardrail.printable import shorten

_MAX_CLAIM: Final = 500


class WebhookState(StrEnum):
    """What has come of telling the webhook of a case."""

    NONE = "none"
    """There was no webhook when the case was stored."""
    PENDING = "pending"
    SENT = "sent"
    FAILED = "failed"
    """It was tried as often as it is; nobody tries again."""


class NewCase(NamedTuple):
    """A case as it was read: the event, its bytes, and its time in milliseconds since 1970."""

    case: FlaggedCase
    body: bytes
    at_ms: int


class DueCase(NamedTuple):
    """A case whose webhook is due. ``attempt`` counts from 1, the one to be made now included."""

    id: str
    body: bytes
    attempt: int


@dataclass(frozen=True, slots=True)
class CaseRow:
    """What is listed of a case. Texts are the user's: hostile, and personal data."""

    id: str
    response_id: str
    at_ms: int
    decision: str
    rule: str
    route: str | None
    tenant: str | None
    policy: str
    score: float | None
    deciding_claim: str | None
    webhook: str = WebhookState.NONE
    attempts: int = 0
    webhook_error: str | None = None


@dataclass(frozen=True, slots=True)
class CaseFilter:
    """Which cases are wanted; with everything at None, all. ``since_ms`` counts from 1970."""

    decision: Decision | None = None
    route: str | None = None
    since_ms: int | None = None

    def wants(self, row: CaseRow) -> bool:
        """Is this case one of them?"""
        return (
            (self.decision is None or row.decision == self.decision)
            and (self.route is None or row.route == self.route)
            and (self.since_ms is None or row.at_ms >= self.since_ms)
        )


class CaseStore(Protocol):
    """Keeps cases. Every call raises CaseStoreError when the store can't be used, and may be tried again."""

    async def add(self, cases: Sequence[NewCase], *, notify: bool) -> int:
        """Store those that are not there yet, all or none, durably; how many were new.

        With ``notify`` their webhook is pending.
        """
        ...

    async def claim_due(self, now_ms: int, lease_ms: int, limit: int) -> Sequence[DueCase]:
        """Pending cases that are due, oldest first, each counted as one more attempt.

        Nobody else gets them for ``lease_ms``; a process that dies leaves them to the next one after that.
        """
        ...

    async def sent(self, case_id: str) -> None:
        """The webhook took the case."""
        ...

    async def not_sent(self, case_id: str, why: str, next_at_ms: int | None) -> None:
        """It didn't: to be tried again at that time, or, with None, given up."""
        ...

    async def newest(self, wanted: CaseFilter, limit: int) -> Sequence[CaseRow]:
        """The newest first."""
        ...

    async def count(self, wanted: CaseFilter) -> int: ...

    async def routes(self) -> Collection[str]:
        """All routes that cases have."""
        ...

    async def get(self, id_: str) -> tuple[CaseRow, bytes] | None:
        """The case of this id, or the newest of the response of this id, with the event's bytes."""
        ...

    async def aclose(self) -> None: ...


def row_of(new: NewCase) -> CaseRow:
    """What is listed of a case that was just read."""
    case, claim = new.case, claim_that_decided(new.case)
    return CaseRow(
        id=_text(case.id),
        response_id=_text(case.response_id),
        at_ms=new.at_ms,
        decision=case.decision.value,
        rule=_text(case.rule),
        route=_optional(case.route),
        tenant=_optional(case.tenant),
        policy=_text(case.policy.name),
        score=case.score,
        deciding_claim=None if claim is None else _text(shorten(claim.text, _MAX_CLAIM)),
    )


def _text(text: str) -> str:
    """As every database takes it: without NUL, which PostgreSQL refuses, and without lone surrogates."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()


def _optional(text: str | None) -> str | None:
    return None if text is None else _text(text)
