"""The store of cases: the same behaviour in SQLite and in a real PostgreSQL."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import sqlite3
import stat
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from consumers.cases import CaseFilter, CaseRow, CaseStore, NewCase, open_store, row_of
from guardrail.errors import CaseStoreError, ConfigError
from guardrail.events import Decision, parse_output
from tests.support.cases import new_case
from tests.support.kafka_broker import free_ports


class PostgresMissing(Exception):
    """There is none on this machine."""


def _programs() -> Path:
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not installed:
        raise PostgresMissing("PostgreSQL is missing: apt-get install postgresql")
    return installed[-1].parent


@contextmanager
def postgres_server() -> Iterator[str]:
    """The URL of a running server's database, whose user may do everything. Raises PostgresMissing."""
    programs = _programs()
    # It refuses to run as root; Debian's package has made a user for it.
    user = None
    if os.getuid() == 0:
        try:
            user = pwd.getpwnam("postgres").pw_name
        except KeyError:
            raise PostgresMissing("PostgreSQL won't run as root, and there is no user postgres") from None
    (port,) = free_ports(1)
    folder = Path(tempfile.mkdtemp(prefix="guardrail-postgres-"))
    try:
        if user is not None:
            shutil.chown(folder, user)
        data = folder / "data"

        def run(program: str, *options: str) -> None:
            subprocess.run(
                [programs / program, "-D", data, *options],
                user=user,
                cwd=folder,
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=90,
            )

        run("initdb", "--username", "guardrail", "--auth", "trust", "--encoding", "UTF8", "--no-sync")
        options = f"-c listen_addresses=127.0.0.1 -p {port} -k {folder} -c fsync=off"
        run("pg_ctl", "start", "-w", "-l", str(folder / "log"), "-o", options)
        try:
            yield f"postgresql://guardrail@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "stop", "-w", "-m", "immediate")
    finally:
        shutil.rmtree(folder)


EVERYTHING = CaseFilter()


@pytest.fixture(scope="module")
def postgres_url() -> Iterator[str]:
    try:
        with postgres_server() as url:
            yield url
    except PostgresMissing as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


async def empty(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("DROP TABLE IF EXISTS guardrail_cases")
    await connection.close()


@pytest.fixture
async def postgres(postgres_url: str) -> str:
    """An empty database."""
    await empty(postgres_url)
    return postgres_url


@pytest.fixture(params=["sqlite", "postgres"])
async def url(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    """An empty store."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/cases.db"
        return
    url: str = request.getfixturevalue("postgres_url")
    await empty(url)
    yield url


def opened(url: str, *, create: bool = True) -> AbstractAsyncContextManager[CaseStore]:
    return open_store(url, "flagged.store", create=create)


async def test_a_case_that_is_stored_again_is_known_also_by_another_process(url: str) -> None:
    async with opened(url) as store:
        assert await store.add([new_case(1), new_case(2)], notify=False) == 2
        assert await store.add([new_case(2), new_case(3)], notify=True) == 1
    async with opened(url) as store:
        assert await store.add([new_case(1), new_case(2), new_case(3)], notify=True) == 0
        assert [row.id for row in await store.newest(EVERYTHING, 10)] == ["case-3", "case-2", "case-1"]


async def test_two_processes_that_start_at_once_store_each_case_once(url: str) -> None:
    async def one() -> int:
        async with opened(url) as store:
            return await store.add([new_case(number) for number in range(20)], notify=False)

    assert sum(await asyncio.gather(one(), one(), one())) == 20


async def test_a_file_that_another_process_is_making_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "cases.db"
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    async def make() -> int:
        async with opened(f"sqlite:///{file}") as store:
            return await store.add([new_case(1)], notify=False)

    making = asyncio.ensure_future(make())
    done, _ = await asyncio.wait([making], timeout=0.2)
    other.execute("COMMIT")
    other.close()
    assert not done
    assert await making == 1


async def test_the_event_comes_back_byte_for_byte_by_either_id(url: str) -> None:
    case = new_case(1)
    odd = case._replace(body=case.body.replace(b'"schema":1', b'"schema":1,"of_a_later_version":"\xc3\xa9"'))
    async with opened(url) as store:
        await store.add([odd], notify=False)
    async with opened(url, create=False) as store:
        for id_ in ("case-1", "r-1"):
            found = await store.get(id_)
            assert found is not None
            assert found[1] == odd.body
            assert parse_output(found[1]) == case.case
        assert await store.get("case-2") is None
        assert await store.get("case-2\x00") is None


async def test_texts_that_databases_stumble_over_are_stored(url: str) -> None:
    text = "a\x00b '; DROP TABLE guardrail_cases; -- \u202e 💥"
    case = new_case(1, response_id=text, route=text, rule=text, question=text, answer=text, claims=())
    async with opened(url) as store:
        assert await store.add([case], notify=False) == 1
        (row,) = await store.newest(EVERYTHING, 10)
        assert row.response_id == row.route == row.rule == text.replace("\x00", "\ufffd")
        found = await store.get("case-1")
        assert found is not None
        assert parse_output(found[1]) == case.case


async def test_filters_count_and_routes(url: str) -> None:
    async with opened(url) as store:
        await store.add(
            [
                new_case(1, decision=Decision.FLAG, route=None),
                new_case(2, route="sales"),
                new_case(3),
                new_case(4, claims=(), score=None),
            ],
            notify=False,
        )
        since = CaseFilter(since_ms=new_case(3).at_ms)
        assert [row.id for row in await store.newest(since, 10)] == ["case-4", "case-3"]
        assert [row.id for row in await store.newest(CaseFilter(Decision.FLAG), 10)] == ["case-1"]
        both = CaseFilter(Decision.BLOCK, "support")
        assert [row.id for row in await store.newest(both, 1)] == ["case-4"]
        assert await store.count(both) == 2
        assert await store.count(EVERYTHING) == 4
        assert set(await store.routes()) == {"sales", "support"}
        newest = await store.newest(EVERYTHING, 10)
        assert [row.deciding_claim for row in newest] == [None, *["Returns take 30 days."] * 3]
        assert [row.score for row in newest] == [None, 0.4, 0.4, 0.4]


async def test_what_is_due_is_leased_to_one_and_comes_back_when_nobody_reports(url: str) -> None:
    async with opened(url) as one, opened(url) as two:
        await one.add([new_case(number) for number in range(3)], notify=True)
        assert [case.id for case in await one.claim_due(1_000, 500, 2)] == ["case-0", "case-1"]
        assert [case.id for case in await two.claim_due(1_000, 500, 2)] == ["case-2"]
        assert await two.claim_due(1_499, 500, 2) == []
        again = await two.claim_due(1_500, 500, 9)
        assert [(case.id, case.attempt) for case in again] == [("case-0", 2), ("case-1", 2), ("case-2", 2)]
        assert again[0].body == new_case(0).body


async def test_what_came_of_a_webhook_is_kept(url: str) -> None:
    async with opened(url) as store:
        await store.add([new_case(number) for number in range(4)], notify=True)
        await store.claim_due(0, 500, 9)
        await store.sent("case-0")
        await store.not_sent("case-1", "HTTP 500", 700)
        await store.not_sent("case-2", "HTTP 500", None)
    async with opened(url) as store:
        rows = {
            row.id: (row.webhook, row.attempts, row.webhook_error)
            for row in await store.newest(EVERYTHING, 9)
        }
        assert rows == {
            "case-0": ("sent", 1, None),
            "case-1": ("pending", 1, "HTTP 500"),
            "case-2": ("failed", 1, "HTTP 500"),
            "case-3": ("pending", 1, None),
        }
        assert [case.id for case in await store.claim_due(600, 500, 9)] == ["case-3"]


async def test_a_store_that_is_only_read_is_not_made(url: str) -> None:
    with pytest.raises(CaseStoreError, match="no cases yet"):
        async with opened(url, create=False):
            raise AssertionError
    async with opened(url):
        pass
    async with opened(url, create=False) as store:
        assert await store.newest(EVERYTHING, 1) == []


async def test_a_store_of_a_later_version_is_refused(url: str) -> None:
    async with opened(url):
        pass
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as file:
            file.execute("PRAGMA user_version = 2")
        file.close()
    else:
        connection = await asyncpg.connect(url)
        await connection.execute("COMMENT ON TABLE guardrail_cases IS 'version 2'")
        await connection.close()
    with pytest.raises(ConfigError, match="version 2"):
        async with opened(url):
            raise AssertionError


# --------------------------------------------------------------------------------------- SQLite


async def test_the_file_is_the_owners_alone_and_has_a_log(tmp_path: Path) -> None:
    path = tmp_path / "cases.db"
    async with opened(f"sqlite:///{path}") as store:
        await store.add([new_case(1)], notify=False)
        for name in ("cases.db", "cases.db-wal"):
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


@pytest.mark.parametrize("how", ["removed", "removed with its log", "moved", "replaced"])
async def test_a_file_that_is_taken_away_is_made_anew(
    tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """SQLite itself goes on writing to a file that has no name any more."""
    path, moved = tmp_path / "cases.db", tmp_path / "moved.db"
    url = f"sqlite:///{path}"
    async with opened(url) as store:
        await store.add([new_case(1)], notify=True)
        take_away(path, moved, how)
        assert await store.add([new_case(2), new_case(3)], notify=True) == 2
        assert await store.add([new_case(3), new_case(4)], notify=True) == 1
        assert [told.message.split()[0] for told in caplog.records if told.levelname == "WARNING"] == [
            "flagged.store_gone"
        ]
        assert stat.S_IMODE(mode_of(path)) == 0o600
        async with open_store(url, "store", create=False) as read:
            assert {row.id for row in await read.newest(EVERYTHING, 9)} == {"case-2", "case-3", "case-4"}
        take_away(path, moved, how)
        assert await store.claim_due(1, 1, 9) == []
    if how == "moved":
        async with open_store(f"sqlite:///{moved}", "store", create=False) as read:
            assert await read.count(EVERYTHING) == 3


async def test_cases_for_a_file_that_goes_while_they_are_written_are_not_taken_for_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cases.db"
    async with opened(f"sqlite:///{path}") as store:

        def row_of_and_remove(case: NewCase) -> CaseRow:
            path.unlink(missing_ok=True)
            return row_of(case)

        monkeypatch.setattr("consumers.cases.row_of", row_of_and_remove)
        with pytest.raises(CaseStoreError, match="was removed"):
            await store.add([new_case(1)], notify=False)
        monkeypatch.undo()
        assert await store.add([new_case(1)], notify=False) == 1


def take_away(path: Path, moved: Path, how: str) -> None:
    if how == "moved":
        path.rename(moved)
        return
    path.unlink()
    if how == "removed with its log":
        for name in ("-wal", "-shm"):
            Path(f"{path}{name}").unlink()
    elif how == "replaced":
        path.touch(0o600)


def mode_of(path: Path) -> int:
    return path.stat().st_mode


class _OnReadOnlyMount(sqlite3.Connection):
    """Says what SQLite says there of a file with a log, whether anything is in that or not."""

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if statement == "PRAGMA user_version":
            error = sqlite3.OperationalError("unable to open database file")
            error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
            raise error
        return super().execute(statement, *values)


async def test_a_file_whose_log_can_not_be_made_is_read_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a read-only mount: here a folder stands where the log's index would be made."""
    path = tmp_path / "cases.db"
    url = f"sqlite:///{path}"
    async with opened(url) as store:
        await store.add([new_case(1)], notify=False)
    (tmp_path / "cases.db-shm").mkdir()
    async with open_store(url, "store", create=False) as read:
        assert await read.count(EVERYTHING) == 1
    (tmp_path / "cases.db-shm").rmdir()
    (tmp_path / "cases.db-wal").write_bytes(b"what a process that was killed has left")
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=_OnReadOnlyMount))
    with pytest.raises(CaseStoreError, match=r"newest cases are in .*cases\.db-wal.*; copy cases\.db and"):
        async with open_store(url, "store", create=False):
            pass


async def test_a_write_that_fails_is_an_error_of_the_store_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "cases.db"
    async with opened(f"sqlite:///{path}") as store:
        with sqlite3.connect(path) as file:
            file.execute(
                "CREATE TRIGGER full BEFORE INSERT ON guardrail_cases WHEN NEW.id = 'case-2' "
                "BEGIN SELECT RAISE(FAIL, 'disk full'); END"
            )
        file.close()
        with pytest.raises(CaseStoreError, match="disk full"):
            await store.add([new_case(1), new_case(2)], notify=False)
        assert await store.count(EVERYTHING) == 0


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("mysql://root:secret@host/db", "unknown store 'mysql'; write sqlite:///FILE"),
        ("cases.db", "unknown store 'no scheme'"),
        ("sqlite://", "unknown store 'sqlite'"),
        ("sqlite:////nowhere/at/all.db", "No such file or directory"),
        ("postgresql://u:secret@[/db", "not a URL of a database"),
        ("postgresql://u:secret@127.0.0.1:notaport/db", "not a URL of a database"),
    ],
)
async def test_what_is_no_store_is_said_without_a_password(url: str, says: str) -> None:
    with pytest.raises(ConfigError) as raised:
        async with opened(url):
            raise AssertionError
    assert str(raised.value).startswith("flagged.store: ")
    assert says in str(raised.value)
    assert "secret" not in str(raised.value)


async def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Not a database. " * 100)
    with pytest.raises(ConfigError, match="not an SQLite file"):
        async with opened(f"sqlite:///{path}"):
            raise AssertionError
    assert path.read_text() == "Not a database. " * 100


# ------------------------------------------------------------------------------------ PostgreSQL


async def test_postgres_away_is_an_error_of_the_store() -> None:
    (port,) = free_ports(1)
    with pytest.raises(CaseStoreError, match="can't be reached"):
        async with opened(f"postgresql://u:secret@127.0.0.1:{port}/db"):
            raise AssertionError


async def test_postgres_with_another_encoding_is_refused(postgres: str) -> None:
    connection = await asyncpg.connect(postgres)
    await connection.execute("DROP DATABASE IF EXISTS latin")
    await connection.execute(
        "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'"
    )
    await connection.close()
    with pytest.raises(ConfigError, match="encoding LATIN1"):
        async with opened(postgres.replace("/postgres", "/latin")):
            raise AssertionError


async def test_postgres_without_the_database_is_a_matter_of_settings(postgres: str) -> None:
    with pytest.raises(ConfigError, match="refuses the login"):
        async with opened(postgres.replace("/postgres", "/none")):
            raise AssertionError


async def test_postgres_that_closed_its_connections_is_used_again(postgres: str) -> None:
    async with opened(postgres) as store:
        killer = await asyncpg.connect(postgres)
        await killer.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        await killer.close()
        for _ in range(3):
            try:
                await store.add([new_case(1)], notify=False)
                break
            except CaseStoreError:
                continue
        assert await store.count(EVERYTHING) == 1
