"""Cases of flagged answers, kept for reviewers: by the store's URL in a file of SQLite, or in PostgreSQL."""

from __future__ import annotations

import errno
import importlib.util
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from consumers.cases.sqlite import SqliteDriver, not_written
from consumers.cases.store import (
    CaseFilter,
    CaseRow,
    CaseStore,
    Driver,
    DueCase,
    NewCase,
    WebhookState,
    row_of,
)
from guardrail.errors import ConfigError, install_hint

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

_SQLITE: Final = "sqlite:///"
_POSTGRES: Final = ("postgresql://", "postgres://")


@asynccontextmanager
async def open_store(url: str, setting: str, *, create: bool) -> AsyncIterator[CaseStore]:
    """The store at ``url``; made there with ``create``, else it has to be there.

    Raises ConfigError, which names ``setting`` and holds no password, and CaseStoreError.
    """
    driver: Driver
    if path := _sqlite_path(url):
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
