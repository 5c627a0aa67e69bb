"""Cases in PostgreSQL. Any number of processes may write and send at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import astuple
from typing import Any, Final, Self

import asyncpg

from consumers.cases.store import (
    COLUMNS,
    SCHEMA_VERSION,
    CaseFilter,
    CaseRow,
    DueCase,
    NewCase,
    WebhookState,
    nothing_there,
    row_of,
    too_new,
)
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
_SCHEMA: Final = f"""
CREATE TABLE guardrail_cases (
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
  event bytea NOT NULL
);
CREATE INDEX guardrail_cases_at ON guardrail_cases (at_ms);
CREATE INDEX guardrail_cases_response ON guardrail_cases (response_id);
CREATE INDEX guardrail_cases_due ON guardrail_cases (next_at_ms) WHERE webhook = 'pending';
COMMENT ON TABLE guardrail_cases IS 'version {SCHEMA_VERSION}';
"""


class PostgresCases:
    """``CaseStore`` in PostgreSQL. Made by ``open``."""

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
                f"{setting}: this is no URL of a database; write postgresql://USER@HOST/DATABASE"
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
                await connection.execute(_SCHEMA)
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

    async def add(self, cases: Sequence[NewCase], *, notify: bool) -> int:
        """Part of CaseStore."""
        state = WebhookState.PENDING if notify else WebhookState.NONE
        marks = ", ".join(f"${number}" for number in range(1, 16))
        new = 0
        async with self._connection() as connection, connection.transaction():
            # In one order everywhere, so that processes with the same cases never wait in a ring.
            for case in sorted(cases, key=lambda case: case.case.id):
                *values, _, attempts, error = astuple(row_of(case))
                status = await connection.execute(
                    f"INSERT INTO guardrail_cases ({COLUMNS}, next_at_ms, event) VALUES ({marks}) "  # noqa: S608
                    "ON CONFLICT DO NOTHING",
                    *values,
                    state.value,
                    attempts,
                    error,
                    0,
                    case.body,
                )
                new += int(status.rpartition(" ")[2])
        return new

    async def claim_due(self, now_ms: int, lease_ms: int, limit: int) -> Sequence[DueCase]:
        """Part of CaseStore."""
        async with self._connection() as connection:
            found = await connection.fetch(
                "UPDATE guardrail_cases SET attempts = attempts + 1, next_at_ms = $2 WHERE id IN ("
                "SELECT id FROM guardrail_cases WHERE webhook = 'pending' AND next_at_ms <= $1 "
                "ORDER BY next_at_ms, at_ms LIMIT $3 FOR UPDATE SKIP LOCKED) "
                "RETURNING id, event, attempts, at_ms",
                now_ms,
                now_ms + lease_ms,
                limit,
            )
        return [DueCase(*one[:3]) for one in sorted(map(tuple, found), key=lambda one: one[3])]

    async def sent(self, case_id: str) -> None:
        """Part of CaseStore."""
        async with self._connection() as connection:
            await connection.execute(
                "UPDATE guardrail_cases SET webhook = 'sent', webhook_error = NULL WHERE id = $1", case_id
            )

    async def not_sent(self, case_id: str, why: str, next_at_ms: int | None) -> None:
        """Part of CaseStore."""
        state = WebhookState.FAILED if next_at_ms is None else WebhookState.PENDING
        async with self._connection() as connection:
            await connection.execute(
                "UPDATE guardrail_cases SET webhook = $2, webhook_error = $3, next_at_ms = $4 WHERE id = $1",
                case_id,
                state.value,
                why,
                next_at_ms or 0,
            )

    async def newest(self, wanted: CaseFilter, limit: int) -> Sequence[CaseRow]:
        """Part of CaseStore."""
        async with self._connection() as connection:
            found = await connection.fetch(
                f"SELECT {COLUMNS} FROM guardrail_cases{_WHERE} ORDER BY at_ms DESC, id LIMIT $4",  # noqa: S608
                *_values(wanted),
                limit,
            )
        return [CaseRow(*one) for one in found]

    async def count(self, wanted: CaseFilter) -> int:
        """Part of CaseStore."""
        async with self._connection() as connection:
            return int(
                await connection.fetchval(
                    f"SELECT count(*) FROM guardrail_cases{_WHERE}",  # noqa: S608
                    *_values(wanted),
                )
            )

    async def routes(self) -> Collection[str]:
        """Part of CaseStore."""
        async with self._connection() as connection:
            found = await connection.fetch(
                "SELECT DISTINCT route FROM guardrail_cases WHERE route IS NOT NULL"
            )
        return {one["route"] for one in found}

    async def get(self, id_: str) -> tuple[CaseRow, bytes] | None:
        """Part of CaseStore."""
        async with self._connection() as connection:
            found = await connection.fetchrow(
                f"SELECT {COLUMNS}, event FROM guardrail_cases WHERE id = $1 OR response_id = $1 "  # noqa: S608
                "ORDER BY id = $1 DESC, at_ms DESC LIMIT 1",
                id_.replace("\x00", "\ufffd"),
            )
        return None if found is None else (CaseRow(*found[:-1]), found[-1])

    async def aclose(self) -> None:
        """Part of CaseStore."""
        try:
            await asyncio.wait_for(self._pool.close(), _CLOSE_S)
        except _AWAY:
            self._pool.terminate()


_WHERE: Final = (
    " WHERE ($1::text IS NULL OR decision = $1) AND ($2::text IS NULL OR route = $2) "
    "AND ($3::bigint IS NULL OR at_ms >= $3)"
)


def _values(wanted: CaseFilter) -> tuple[str | None, str | None, int | None]:
    decision = None if wanted.decision is None else wanted.decision.value
    return decision, wanted.route, wanted.since_ms


def _named(error: BaseException) -> str:
    """The kind of error and its first line: details, which may quote a row, are left out."""
    first = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
