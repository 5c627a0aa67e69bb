"""Reads the bytes of a settings file once, so that everything that looks at them sees the same ones.

A pipe (``--config <(sops -d guardrail.yaml)``) gives its content only to the first reader.
"""

from __future__ import annotations

import os
import select
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from guardrail.config.problems import Problem, SettingsError

MAX_FILE_BYTES: Final = 4 * 1024 * 1024
PIPE_S: Final = 60.0
"""How long the program at the other end of a pipe may take to write all of it."""

_BEGIN: Final = "check the path, or begin with 'guardrail config show > guardrail.yaml'; no file is needed"


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """The content of a settings file at one moment. ``regular``: reading its path again gives its content
    then; a pipe has no other.
    """

    path: Path
    data: bytes
    regular: bool = True

    @classmethod
    def read(cls, path: Path, *, pipe_s: float = PIPE_S) -> Self:
        """Read a file, or a pipe until its end. Raises SettingsError, also if it is neither, is larger than
        4 MiB, or if nobody has written all of a pipe within ``pipe_s``. At 0 a pipe is refused.
        """
        try:
            # A pipe that nobody writes to would keep the process in open().
            with open(path, "rb", opener=_without_waiting) as stream:
                mode = os.fstat(stream.fileno()).st_mode
                if stat.S_ISREG(mode):
                    return cls(path, _bounded(path, stream.read(MAX_FILE_BYTES + 1)))
                if not stat.S_ISFIFO(mode) or not pipe_s or not hasattr(select, "poll"):
                    raise _problem(path, "is no regular file", "name a file")
                return cls(path, _bounded(path, _read_pipe(path, stream.fileno(), pipe_s)), regular=False)
        except FileNotFoundError:
            raise _problem(path, "does not exist", _BEGIN) from None
        except OSError as error:
            raise _problem(path, f"can't be read: {error.strerror}", "make it readable") from None


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _bounded(path: Path, data: bytes) -> bytes:
    if len(data) > MAX_FILE_BYTES:
        raise _problem(path, "is larger than 4 MiB", "is it a configuration file?")
    return data


def _read_pipe(path: Path, descriptor: int, limit_s: float) -> bytes:
    until = time.monotonic() + limit_s
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    data = b""
    while len(data) <= MAX_FILE_BYTES:
        left_s = until - time.monotonic()
        if left_s <= 0 or not poll.poll(left_s * 1000):
            wrong = f"is a pipe, and what is written to it did not end within {limit_s:g} s"
            raise _problem(path, wrong, "look at the program that writes it, or name a file")
        part = os.read(descriptor, 65_536)
        if not part:
            break
        data += part
    return data


def _problem(path: Path, wrong: str, remedy: str) -> SettingsError:
    return SettingsError([Problem("", f"the file {wrong}", remedy, where=str(path))])
