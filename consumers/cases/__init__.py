"""The store of cases of flagged answers, for reviewers: what is kept of a case, and by which SQL.

A store is a file of SQLite or a database of PostgreSQL; what differs between them is a Driver. A case's row
has what lists show and filter by; beside it stands the event as the guard wrote it, byte for byte. Its key is
the event's deterministic id, so that a case that is read again is not stored again.
"""

from __future__ import annotations

import errno
import importlib.util
import os
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import astuple, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from guardrail.errors import CaseStoreError, ConfigError, install_hint
from guardrail.events import Decision, FlaggedCase, claim_that_decided
from guardrail.printable import shorten

_MAX_CLAIM: Final = 500


class WebhookState(StrEnum):
    """The state of a case's webhook delivery."""

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


SCHEMA_VERSION: Final = 1
SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS guardrail_cases (
  id text PRIMARY KEY,
  response_id text NOT NULL,
  at_ms bigint NOT NULL,
  decision text NOT NULL,
  rule text NOT NULL,
  route text,
  tenant text,
  policy text NOT NULL,
  score double precision,
  wrong_claim text,
  webhook text NOT NULL,
  attempts integer NOT NULL,
  webhook_error text,
  next_at_ms bigint NOT NULL,
  event {bytes} NOT NULL
) {options};
CREATE INDEX IF NOT EXISTS guardrail_cases_at ON guardrail_cases (at_ms);
CREATE INDEX IF NOT EXISTS guardrail_cases_response ON guardrail_cases (response_id);
CREATE INDEX IF NOT EXISTS guardrail_cases_due ON guardrail_cases (next_at_ms) WHERE webhook = 'pending';
"""
"""``bytes`` is the type of bytes, ``options`` are those of a table."""
_COLUMNS: Final = (
    "id, response_id, at_ms, decision, rule, route, tenant, policy, score, wrong_claim, webhook, attempts, "
    "webhook_error"
)
"""Those of ``CaseRow``, in its order. ``wrong_claim`` holds the text of the deciding claim: it has this name
in stores that are in use.
"""
_ADD: Final = (
    f"INSERT INTO guardrail_cases ({_COLUMNS}, next_at_ms, event) "  # noqa: S608
    f"VALUES ({', '.join(f'${number}' for number in range(1, 16))}) ON CONFLICT DO NOTHING RETURNING 1"
)
_CLAIM_DUE: Final = (
    "UPDATE guardrail_cases SET attempts = attempts + 1, next_at_ms = $2 WHERE id IN ("
    "SELECT id FROM guardrail_cases WHERE webhook = 'pending' AND next_at_ms <= $1 "
    "ORDER BY next_at_ms, at_ms LIMIT $3 {skip_locked}) RETURNING id, event, attempts, at_ms"
)
_SENT: Final = "UPDATE guardrail_cases SET webhook = 'sent', webhook_error = NULL WHERE id = $1"
_NOT_SENT: Final = (
    "UPDATE guardrail_cases SET webhook = $2, webhook_error = $3, next_at_ms = $4 WHERE id = $1"
)
_ROUTES: Final = "SELECT DISTINCT route FROM guardrail_cases WHERE route IS NOT NULL"
_GET: Final = (
    f"SELECT {_COLUMNS}, event FROM guardrail_cases WHERE id = $1 OR response_id = $1 "  # noqa: S608
    "ORDER BY id = $1 DESC, at_ms DESC LIMIT 1"
)

Values = Sequence[Any]


class Driver(Protocol):
    """Runs statements, whose places for values are $1, $2 … Its calls raise CaseStoreError."""

    @property
    def skip_locked(self) -> str:
        """What leaves out, in a SELECT of an UPDATE, the rows that others are updating."""

    async def run(self, statement: str, *values: Any) -> Sequence[Values]:
        """One statement by itself; the rows that it returns."""

    async def run_all(self, statement: str, values: Iterable[Values]) -> Sequence[Values]:
        """A statement for each of the values, in one durable transaction; all rows that they return."""

    async def aclose(self) -> None: ...


class CaseStore:
    """Keeps cases by a driver, whose tables are there.

    Every call raises CaseStoreError when the store can't be used, and may be tried again.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    async def add(self, cases: Sequence[NewCase], *, notify: bool) -> int:
        """Store those that are new, all or none, durably; how many. ``notify``: their webhook is pending."""
        state = WebhookState.PENDING if notify else WebhookState.NONE

        def rows() -> Iterator[Values]:
            # In one order everywhere, so that processes with the same cases never wait in a ring.
            for case in sorted(cases, key=lambda case: case.case.id):
                *values, _, attempts, error = astuple(row_of(case))
                yield (*values, state.value, attempts, error, 0, case.body)

        return len(await self._driver.run_all(_ADD, rows()))

    async def claim_due(self, now_ms: int, lease_ms: int, limit: int) -> Sequence[DueCase]:
        """Pending cases that are due, oldest first, each counted as one more attempt.

        Nobody else gets them for ``lease_ms``; a process that dies leaves them to the next one after that.
        """
        statement = _CLAIM_DUE.format(skip_locked=self._driver.skip_locked)
        found = await self._driver.run_all(statement, [(now_ms, now_ms + lease_ms, limit)])
        return [DueCase(*one[:3]) for one in sorted(found, key=lambda one: one[3])]

    async def sent(self, case_id: str) -> None:
        """The webhook took the case."""
        await self._driver.run(_SENT, case_id)

    async def not_sent(self, case_id: str, why: str, next_at_ms: int | None) -> None:
        """It didn't: to be tried again at that time, or, with None, given up."""
        state = WebhookState.FAILED if next_at_ms is None else WebhookState.PENDING
        await self._driver.run(_NOT_SENT, case_id, state.value, why, next_at_ms or 0)

    async def newest(self, wanted: CaseFilter, limit: int) -> Sequence[CaseRow]:
        """The newest first."""
        where, values = _where(wanted)
        statement = f"SELECT {_COLUMNS} FROM guardrail_cases{where} ORDER BY at_ms DESC, id "  # noqa: S608
        found = await self._driver.run(f"{statement} LIMIT ${len(values) + 1}", *values, limit)
        return [CaseRow(*one) for one in found]

    async def count(self, wanted: CaseFilter) -> int:
        where, values = _where(wanted)
        ((found,),) = await self._driver.run(f"SELECT count(*) FROM guardrail_cases{where}", *values)  # noqa: S608
        return int(found)

    async def routes(self) -> Collection[str]:
        """All routes that cases have."""
        return {route for (route,) in await self._driver.run(_ROUTES)}

    async def get(self, id_: str) -> tuple[CaseRow, bytes] | None:
        """The case of this id, or the newest of the response of this id, with the event's bytes."""
        found = await self._driver.run(_GET, id_.replace("\x00", "\ufffd"))
        return (CaseRow(*found[0][:-1]), found[0][-1]) if found else None

    async def aclose(self) -> None:
        await self._driver.aclose()


def _where(wanted: CaseFilter) -> tuple[str, Values]:
    given = {"decision =": wanted.decision, "route =": wanted.route, "at_ms >=": wanted.since_ms}
    terms = {term: value for term, value in given.items() if value is not None}
    told = " AND ".join(f"{term} ${number}" for number, term in enumerate(terms, 1))
    return (f" WHERE {told}" if told else "", tuple(terms.values()))


def nothing_there(setting: str, what: str) -> CaseStoreError:
    """For a store that is to be read, and was never written."""
    return CaseStoreError(f"{setting}: {what} holds no cases yet; 'guardrail flagged' writes them there")


def too_new(setting: str, version: int) -> ConfigError:
    """For a store that a later version wrote."""
    return ConfigError(
        f"{setting}: the store has version {version}, and this program knows {SCHEMA_VERSION}; upgrade it"
    )


def not_written(setting: str, path: Path, why: str) -> ConfigError:
    """For a file that can't be made or written."""
    return ConfigError(
        f"{setting}: {path} can't be written ({why}); name a file in a folder that is there and that this "
        "user may write to"
    )


_SQLITE: Final = "sqlite:///"
_POSTGRES: Final = ("postgresql://", "postgres://")


@asynccontextmanager
async def open_store(url: str, setting: str, *, create: bool) -> AsyncIterator[CaseStore]:
    """The store at ``url``; made there with ``create``, else it has to be there.

    Raises ConfigError, which names ``setting`` and holds no password, and CaseStoreError.
    """
    driver: Driver
    if path := _sqlite_path(url):
        from consumers.cases.sqlite import SqliteDriver

        driver = await SqliteDriver.open(path, setting, create=create)
    elif url.startswith(_POSTGRES):
        try:
            from consumers.cases.postgres import PostgresDriver
        except ModuleNotFoundError as error:
            if error.name != "asyncpg":
                raise
            raise _no_asyncpg(setting) from None
        driver = await PostgresDriver.open(url, setting, create=create)
    else:
        raise _no_store(setting, url)
    store = CaseStore(driver)
    try:
        yield store
    finally:
        await store.aclose()


def check_store(url: str, setting: str) -> None:
    """Raise the ConfigError that ``open_store`` would raise here, as far as that is known without opening."""
    if path := _sqlite_path(url):
        written = path if path.exists() else path.parent
        if not written.exists():
            raise not_written(setting, path, os.strerror(errno.ENOENT))
        if path.is_dir() or not os.access(written, os.W_OK):
            raise not_written(setting, path, os.strerror(errno.EISDIR if path.is_dir() else errno.EACCES))
    elif url.startswith(_POSTGRES):
        if importlib.util.find_spec("asyncpg") is None:
            raise _no_asyncpg(setting)
    else:
        raise _no_store(setting, url)


def _sqlite_path(url: str) -> Path | None:
    path = url.removeprefix(_SQLITE)
    return Path(path) if path and path != url else None


def _no_asyncpg(setting: str) -> ConfigError:
    return ConfigError(f"{setting}: PostgreSQL needs asyncpg; {install_hint('postgres')}")


def _no_store(setting: str, url: str) -> ConfigError:
    scheme = url.partition(":")[0] if "://" in url else "no scheme"
    return ConfigError(
        f"{setting}: unknown store {scheme[:40]!r}; write sqlite:///FILE or postgresql://USER@HOST/DATABASE"
    )
