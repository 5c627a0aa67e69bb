"""Cases in PostgreSQL. Any number of processes may write and send at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Self

import asyncpg

from consumers.cases import SCHEMA, SCHEMA_VERSION, Values, nothing_there, too_new
from guardrail.errors import CaseStoreError, ConfigError

_AWAY: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # of a connection that was ended between two statements
    OSError,
    TimeoutError,
)
_TIMEOUT_S: Final = 30.0
_CLOSE_S: Final = 5.0
_CONNECTIONS: Final = 4
_LOCK: Final = 0x67_75_61_72_64  # any number, the same in every version


class PostgresDriver:
    """``Driver`` of a database. Made by ``open``."""

    skip_locked: Final = "FOR UPDATE SKIP LOCKED"

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    @classmethod
    async def open(cls, url: str, setting: str, *, create: bool) -> Self:
        """Raises ConfigError, CaseStoreError."""
        try:
            pool = await asyncpg.create_pool(
                url, min_size=1, max_size=_CONNECTIONS, command_timeout=_TIMEOUT_S, timeout=_TIMEOUT_S
            )
        except (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError) as error:
            raise ConfigError(f"{setting}: PostgreSQL refuses the login ({_named(error)})") from None
        except _AWAY as error:
            raise CaseStoreError(f"{setting}: PostgreSQL can't be reached ({_named(error)})") from None
        except ValueError:
            # Its message may quote the URL, and with it a password.
            raise ConfigError(
                f"{setting}: this is not a URL of a database; write postgresql://USER@HOST/DATABASE"
            ) from None
        store = cls(pool)
        try:
            await store._prepare(setting, create)
        except BaseException:
            await store.aclose()
            raise
        return store

    async def _prepare(self, setting: str, create: bool) -> None:
        async with self._connection() as connection, connection.transaction():
            encoding = await connection.fetchval("SHOW server_encoding")
            if encoding != "UTF8":
                raise ConfigError(
                    f"{setting}: the database has the encoding {encoding}; texts need UTF8: name another one"
                )
            # Two processes that start at once don't both make the table.
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
            comment = await connection.fetchrow(
                "SELECT obj_description(to_regclass('guardrail_cases'), 'pg_class') AS told "
                "WHERE to_regclass('guardrail_cases') IS NOT NULL"
            )
            if comment is None and not create:
                raise nothing_there(setting, "the database")
            if comment is None:
                await connection.execute(SCHEMA.format(bytes="bytea", options=""))
                await connection.execute(f"COMMENT ON TABLE guardrail_cases IS 'version {SCHEMA_VERSION}'")
                return
            version = str(comment["told"] or "").removeprefix("version ")
            if version.isdecimal() and int(version) > SCHEMA_VERSION:
                raise too_new(setting, int(version))

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Any]:
        try:
            async with self._pool.acquire(timeout=_TIMEOUT_S) as connection:
                yield connection
        except _AWAY as error:
            raise CaseStoreError(f"PostgreSQL: {_named(error)}") from error

    async def run(self, statement: str, *values: Any) -> Sequence[Values]:
        async with self._connection() as connection:
            return [tuple(row) for row in await connection.fetch(statement, *values)]

    async def run_all(self, statement: str, values: Iterable[Values]) -> Sequence[Values]:
        async with self._connection() as connection, connection.transaction():
            return [tuple(row) for each in values for row in await connection.fetch(statement, *each)]

    async def aclose(self) -> None:
        try:
            await asyncio.wait_for(self._pool.close(), _CLOSE_S)
        except _AWAY:
            self._pool.terminate()


def _named(error: BaseException) -> str:
    """The kind of error and its first line: details, which may quote a row, are left out."""
    first = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
