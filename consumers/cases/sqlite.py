"""A SQLite file of cases: one connection, in a thread of its own, with a write-ahead log.

Readers, such as ``guardrail cases``, read beside the one that writes.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from consumers.cases import SCHEMA, SCHEMA_VERSION, Values, not_written, nothing_there, too_new
from guardrail.errors import CaseStoreError, ConfigError
from guardrail.log_events import EventLog

_T = TypeVar("_T")
_BUSY_S: Final = 10.0
_log = EventLog(__name__)
_OWNER_ONLY: Final = 0o600
"""Questions and answers are personal data; SQLite gives its other files the same mode."""
_NUMBERED: Final = re.compile(r"\$(\d+)")


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


class SqliteDriver:
    """``Driver`` of a file. Made by ``open``."""

    skip_locked: Final = ""  # nobody else writes in a transaction that has begun at once

    def __init__(self, path: Path, setting: str) -> None:
        self._path = path
        self._setting = setting
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cases")
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None

    @classmethod
    async def open(cls, path: Path, setting: str, *, create: bool) -> Self:
        """Raises ConfigError, CaseStoreError."""
        store = cls(path, setting)
        try:
            await store._do(lambda: store._connect(create=create))
        except BaseException:
            await store.aclose()
            raise
        return store

    def _connect(self, *, create: bool) -> None:
        setting = self._setting
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
                connection = self._connect_read_only()
                (version,) = connection.execute("PRAGMA user_version").fetchone()
            self._file = _identity(self._path)
            if version > SCHEMA_VERSION:
                raise too_new(setting, version)
            if create:
                _keep_a_log(connection)
                # Kafka's position is committed after the case: it has to be on the disk by then.
                connection.execute("PRAGMA synchronous = FULL")
                connection.executescript(SCHEMA.format(bytes="blob", options="WITHOUT ROWID"))
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            elif version == 0:
                raise nothing_there(setting, str(self._path))
            else:
                connection.execute("PRAGMA query_only = ON")
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_NOTADB:
                raise
            raise ConfigError(
                f"{setting}: {self._path} is not an SQLite file; name another one, which will be made"
            ) from None

    def _connect_read_only(self) -> sqlite3.Connection:
        """For a file in a folder where SQLite can't make the files of its log. Raises CaseStoreError."""
        log = Path(f"{self._path}-wal")
        if log.is_file() and log.stat().st_size:
            raise CaseStoreError(
                f"{self._setting}: the newest cases are in {log}, which can't be read in a folder that can't "
                f"be written to; copy {self._path.name} and {log.name} to one that can, and name that"
            )
        assert self._connection is not None  # noqa: S101 - _connect made it
        self._connection.close()
        address = f"{self._path.absolute().as_uri()}?immutable=1"
        self._connection = sqlite3.connect(address, isolation_level=None, uri=True)
        return self._connection

    def _follow(self) -> None:
        """If somebody has removed or moved the file, go on in a new one: nobody would look in the old one."""
        if self._file == _identity(self._path):
            return
        _log.warning("flagged.store_gone", path=str(self._path), effect="a new file is made; cases go there")
        former, self._connection = self._connection, None
        if former is not None:
            with suppress(sqlite3.Error):
                # Else a file that was moved would lack what is only in the log under its former name.
                former.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            former.close()
        self._connect(create=True)

    def _check_there(self) -> None:
        """Before a commit. Raises CaseStoreError: what is committed to a file without a name is lost."""
        if self._file != _identity(self._path):
            raise CaseStoreError(f"SQLite file {self._path}: it was removed or moved")

    async def _do(self, work: Callable[[], _T]) -> _T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except sqlite3.Error as error:
            raise CaseStoreError(f"SQLite file {self._path}: {error}") from error

    def _execute(self, statement: str, values: Values = ()) -> list[Any]:
        assert self._connection is not None  # noqa: S101 - open made it
        return self._connection.execute(_NUMBERED.sub(r"?\1", statement), values).fetchall()

    async def run(self, statement: str, *values: Any) -> Sequence[Values]:
        return await self._do(lambda: self._execute(statement, values))

    async def run_all(self, statement: str, values: Iterable[Values]) -> Sequence[Values]:
        def work() -> list[Any]:
            self._follow()
            self._execute("BEGIN IMMEDIATE")
            try:
                found = [row for each in values for row in self._execute(statement, each)]
                self._check_there()
                self._execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # the first error says more
                    self._execute("ROLLBACK")
                raise
            return found

        return await self._do(work)

    async def aclose(self) -> None:
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
