"""Cases in a SQLite file: one connection, in a thread of its own, with a write-ahead log.

Readers, such as ``guardrail cases``, read beside the one that writes.
"""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from consumers.cases.store import (
    COLUMNS,
    SCHEMA_VERSION,
    CaseFilter,
    CaseRow,
    DueCase,
    NewCase,
    WebhookState,
    not_written,
    nothing_there,
    row_of,
    too_new,
)
from guardrail.errors import CaseStoreError, ConfigError
from guardrail.log_events import EventLog

_T = TypeVar("_T")
_BUSY_S: Final = 10.0
_log = EventLog(__name__)
_OWNER_ONLY: Final = 0o600
"""Questions and answers are personal data; SQLite gives its other files the same mode."""
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS guardrail_cases (
  id TEXT PRIMARY KEY,
  response_id TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  decision TEXT NOT NULL,
  rule TEXT NOT NULL,
  route TEXT,
  tenant TEXT,
  policy TEXT NOT NULL,
  score REAL,
  wrong_claim TEXT,
  webhook TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  webhook_error TEXT,
  next_at_ms INTEGER NOT NULL,
  event BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS guardrail_cases_at ON guardrail_cases (at_ms);
CREATE INDEX IF NOT EXISTS guardrail_cases_response ON guardrail_cases (response_id);
CREATE INDEX IF NOT EXISTS guardrail_cases_due ON guardrail_cases (next_at_ms) WHERE webhook = 'pending';
"""


def _keep_a_log(connection: sqlite3.Connection) -> None:
    """Set the file to WAL. SQLite refuses at once, whatever its timeout, while another process does the same:
    either would wait for the other's shared lock. Raises sqlite3.Error.
    """
    until = time.monotonic() + _BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(random.uniform(0.005, 0.02))
        else:
            return


class SqliteCases:
    """``CaseStore`` in a file. Made by ``open``."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cases")
        self._connection: sqlite3.Connection | None = None
        self._setting = ""
        self._file: tuple[int, int] | None = None

    @classmethod
    async def open(cls, path: Path, setting: str, *, create: bool) -> Self:
        """Raises ConfigError, CaseStoreError."""
        store = cls(path)
        try:
            await store._do(lambda: store._connect(setting, create))
        except BaseException:
            await store.aclose()
            raise
        return store

    def _connect(self, setting: str, create: bool) -> None:
        self._setting = setting
        if create:
            try:
                os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, _OWNER_ONLY))
            except OSError as error:
                raise not_written(setting, self._path, error.strerror or type(error).__name__) from None
        elif not self._path.is_file():
            raise nothing_there(setting, str(self._path))
        # autocommit: transactions are begun and ended by what is written below, never unasked.
        connection = sqlite3.connect(self._path, timeout=_BUSY_S, isolation_level=None)
        self._connection = connection
        try:
            try:
                (version,) = connection.execute("PRAGMA user_version").fetchone()
            except sqlite3.OperationalError as error:
                if create or error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CANTOPEN:
                    raise
                connection = self._connect_read_only(setting)
                (version,) = connection.execute("PRAGMA user_version").fetchone()
            self._file = _identity(self._path)
            if version > SCHEMA_VERSION:
                raise too_new(setting, version)
            if create:
                _keep_a_log(connection)
                # Kafka's position is committed after the case: it has to be on the disk by then.
                connection.execute("PRAGMA synchronous = FULL")
                connection.executescript(_SCHEMA)
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            elif version == 0:
                raise nothing_there(setting, str(self._path))
            else:
                connection.execute("PRAGMA query_only = ON")
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_NOTADB:
                raise
            raise ConfigError(
                f"{setting}: {self._path} is no SQLite file; name another one, which will be made"
            ) from None

    def _connect_read_only(self, setting: str) -> sqlite3.Connection:
        """For a file in a folder where SQLite can't make the files of its log. Raises CaseStoreError."""
        log = Path(f"{self._path}-wal")
        if log.is_file() and log.stat().st_size:
            raise CaseStoreError(
                f"{setting}: the newest cases are in {log}, which can't be read in a folder that can't be "
                f"written to; copy {self._path.name} and {log.name} to one that can, and name that"
            )
        assert self._connection is not None  # noqa: S101 - _connect made it
        self._connection.close()
        address = f"{self._path.absolute().as_uri()}?immutable=1"
        self._connection = sqlite3.connect(address, isolation_level=None, uri=True)
        return self._connection

    def _follow(self) -> None:
        """If somebody has removed or moved the file, go on in a new one; SQLite would write where nobody
        looks.
        """
        if self._file == _identity(self._path):
            return
        _log.warning("flagged.store_gone", path=str(self._path), effect="a new file is made; cases go there")
        former, self._connection = self._connection, None
        if former is not None:
            with suppress(sqlite3.Error):
                # Else a file that was moved would lack what is only in the log under its former name.
                former.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            former.close()
        self._connect(self._setting, create=True)

    def _check_there(self) -> None:
        """Before a commit. Raises CaseStoreError: what is committed to a file without a name is lost."""
        if self._file != _identity(self._path):
            raise CaseStoreError(f"SQLite file {self._path}: it was removed or moved")

    async def _do(self, work: Callable[[], _T]) -> _T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except sqlite3.Error as error:
            raise CaseStoreError(f"SQLite file {self._path}: {error}") from error

    def _execute(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        assert self._connection is not None  # noqa: S101 - open made it
        return self._connection.execute(statement, values).fetchall()

    def _at_once(self, work: Callable[[], _T]) -> _T:
        """``work`` in one transaction that nobody else writes in."""
        self._follow()
        self._execute("BEGIN IMMEDIATE")
        try:
            result = work()
            self._check_there()
            self._execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # the first error says more
                self._execute("ROLLBACK")
            raise
        return result

    async def add(self, cases: Sequence[NewCase], *, notify: bool) -> int:
        """Part of CaseStore."""
        state = WebhookState.PENDING if notify else WebhookState.NONE
        marks = ", ".join("?" * 15)

        def add() -> int:
            new = 0
            for case in cases:
                *values, _, attempts, error = astuple(row_of(case))
                new += len(
                    self._execute(
                        f"INSERT INTO guardrail_cases ({COLUMNS}, next_at_ms, event) VALUES ({marks}) "  # noqa: S608
                        "ON CONFLICT DO NOTHING RETURNING 1",
                        [*values, state.value, attempts, error, 0, case.body],
                    )
                )
            return new

        return await self._do(lambda: self._at_once(add))

    async def claim_due(self, now_ms: int, lease_ms: int, limit: int) -> Sequence[DueCase]:
        """Part of CaseStore."""

        def claim() -> list[DueCase]:
            found = self._execute(
                "SELECT id, event, attempts + 1 FROM guardrail_cases WHERE webhook = 'pending' AND "
                "next_at_ms <= ? ORDER BY next_at_ms, at_ms LIMIT ?",
                (now_ms, limit),
            )
            for id_, _, attempt in found:
                self._execute(
                    "UPDATE guardrail_cases SET attempts = ?, next_at_ms = ? WHERE id = ?",
                    (attempt, now_ms + lease_ms, id_),
                )
            return [DueCase(*one) for one in found]

        return await self._do(lambda: self._at_once(claim))

    async def sent(self, case_id: str) -> None:
        """Part of CaseStore."""
        await self._do(
            lambda: self._execute(
                "UPDATE guardrail_cases SET webhook = 'sent', webhook_error = NULL WHERE id = ?", (case_id,)
            )
        )

    async def not_sent(self, case_id: str, why: str, next_at_ms: int | None) -> None:
        """Part of CaseStore."""
        state = WebhookState.FAILED if next_at_ms is None else WebhookState.PENDING
        await self._do(
            lambda: self._execute(
                "UPDATE guardrail_cases SET webhook = ?, webhook_error = ?, next_at_ms = ? WHERE id = ?",
                (state.value, why, next_at_ms or 0, case_id),
            )
        )

    async def newest(self, wanted: CaseFilter, limit: int) -> Sequence[CaseRow]:
        """Part of CaseStore."""
        where, values = _where(wanted)
        found = await self._do(
            lambda: self._execute(
                f"SELECT {COLUMNS} FROM guardrail_cases{where} ORDER BY at_ms DESC, id LIMIT ?",  # noqa: S608
                (*values, limit),
            )
        )
        return [CaseRow(*one) for one in found]

    async def count(self, wanted: CaseFilter) -> int:
        """Part of CaseStore."""
        where, values = _where(wanted)
        ((found,),) = await self._do(
            lambda: self._execute(f"SELECT count(*) FROM guardrail_cases{where}", values)  # noqa: S608
        )
        return int(found)

    async def routes(self) -> Collection[str]:
        """Part of CaseStore."""
        found = await self._do(
            lambda: self._execute("SELECT DISTINCT route FROM guardrail_cases WHERE route IS NOT NULL")
        )
        return {route for (route,) in found}

    async def get(self, id_: str) -> tuple[CaseRow, bytes] | None:
        """Part of CaseStore."""
        found = await self._do(
            lambda: self._execute(
                f"SELECT {COLUMNS}, event FROM guardrail_cases WHERE id = ? OR response_id = ? "  # noqa: S608
                "ORDER BY id = ? DESC, at_ms DESC LIMIT 1",
                (id_, id_, id_),
            )
        )
        return (CaseRow(*found[0][:-1]), found[0][-1]) if found else None

    async def aclose(self) -> None:
        """Part of CaseStore."""
        connection, self._connection = self._connection, None
        try:
            if connection is not None:
                await self._do(connection.close)
        finally:
            self._thread.shutdown()


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file has the name now; None: no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _where(wanted: CaseFilter) -> tuple[str, tuple[Any, ...]]:
    given = {
        "decision = ?": wanted.decision,
        "route = ?": wanted.route,
        "at_ms >= ?": wanted.since_ms,
    }
    terms = {term: value for term, value in given.items() if value is not None}
    return (" WHERE " + " AND ".join(terms) if terms else "", tuple(terms.values()))
