"""A PostgreSQL of the test's own: Debian's package, a new cluster on a free port, gone at the end."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
