"""The file that ``guardrail evaluate --out`` writes, and how a run that was interrupted goes on in it; which
files are replaced.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, Final

import typer

from guardrail.errors import DecodeError
from guardrail.evals.results import (
    BadSample,
    EvaluationCompleted,
    EvaluationResult,
    EvaluationStarted,
    Sample,
    StoredRun,
    read_run,
    write_line,
)
from guardrail.events import Response

_HINT: Final = "--out"
STDOUT: Final = "-"
_BEGINNINGS: Final[Mapping[str, re.Pattern[bytes]]] = {
    "a report": re.compile(
        rb'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        rb'<meta http-equiv="Content-Security-Policy" content="default-src .none.; style-src .sha256-'
    ),
    "verdicts": re.compile(
        rb'\{"schema":\d+,"id":"[^"]*","response_id":.*"type":"verdict\.response",'
        rb'|\{"(?:claims|evaluations|id)":.*"(?:unverified_claims|mean_faithfulness_score|evaluation":null,"error)":'
    ),
    "changes": re.compile(rb'\{"response_id": "[^"]*", "place": "'),
    "what tune writes": re.compile(rb"# Written by guardrail \S+ on "),
}
"""How what the commands write begins, by its kind: such files they replace."""


class ResultsFile:
    """Results as lines, in the order in which they are done."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self._written = 0
        self._done: dict[tuple[str, str], bytes] = {}
        self.changed: list[str] = []
        """Places of samples that are no longer what was judged before."""

    def write(self, result: EvaluationResult) -> None:
        """One more result."""
        write_line(self.stream, result)
        self._written += 1

    def complete(self) -> None:
        """The run is done."""
        write_line(self.stream, EvaluationCompleted(results=self._written))

    def note(self, result: EvaluationResult) -> None:
        """A result that the file has from before."""
        self._written += 1
        key, digest = _key_and_digest(result.place, result.response)
        self._done[key] = digest

    def is_new(self, sample: Sample | BadSample) -> bool:
        """Is there no result of this sample yet? One that has changed since is noted as such."""
        response = sample.response if isinstance(sample, Sample) else None
        key, digest = _key_and_digest(sample.place, response)
        known = self._done.pop(key, None)
        if known is not None and response is not None and known != digest:
            self.changed.append(sample.place)
        return known is None

    @property
    def vanished(self) -> int:
        """Results of samples that the source no longer has."""
        return len(self._done)


def _key_and_digest(place: str, response: Response | None) -> tuple[tuple[str, str], bytes]:
    if response is None:
        return (place, ""), b""
    return (place, response.response_id), blake2b(response.to_json(), digest_size=16).digest()


def open_results(
    name: str,
    settings: Mapping[str, str],
    sources: Sequence[BinaryIO],
    stack: ExitStack,
    take: Callable[[EvaluationResult], None],
    *,
    resume: bool,
    force: bool,
) -> ResultsFile:
    """The file for this run. With ``resume``, what it has of the same run is handed to ``take`` and kept;
    all else is replaced only with ``force``. Raises typer.BadParameter.
    """
    if name == STDOUT:
        if resume:
            raise typer.BadParameter("stdout can't be resumed; give --out a file", param_hint="--resume")
        return _begun(stdout(), settings)
    path = Path(name)
    refuse_source(path, sources, _HINT)
    if force or not path.is_file() or not path.stat().st_size:
        return _begun(stack.enter_context(opened_for_writing(path, _HINT)), settings)
    run = _stored(path)
    if not resume:
        held, remedy = "the results of a finished run", "give another name"
        if not run.completed:
            held, remedy = "a run that was interrupted", "give --resume to go on with it"
        raise typer.BadParameter(f"{path} holds {held}; {remedy}, or --force", param_hint=_HINT)
    if run.started is None:  # interrupted before its first line was whole
        return _begun(stack.enter_context(opened_for_writing(path, _HINT)), settings)
    differing = [name for name, value in settings.items() if run.started.settings.get(name) != value]
    if differing:
        raise typer.BadParameter(
            f"{path} is of a run with another {', '.join(differing)}; give what it was begun with, another "
            "--out, or --force",
            param_hint="--resume",
        )
    results = ResultsFile(stack.enter_context(opened_for_writing(path, _HINT, end=run.end)))

    def both(result: EvaluationResult) -> None:
        results.note(result)
        take(result)

    read_run(path, both)
    return results


def _begun(stream: BinaryIO, settings: Mapping[str, str]) -> ResultsFile:
    write_line(stream, EvaluationStarted(settings=settings, time=datetime.now(UTC)))
    return ResultsFile(stream)


def _stored(path: Path) -> StoredRun:
    remedy = "give another name, or --force"
    try:
        run = read_run(path, lambda _: None)
    except DecodeError as error:
        raise typer.BadParameter(f"{error}; {remedy}", param_hint=_HINT) from None
    if run.started is None and run.end:
        message = f"{path} is a file of something else than results; {remedy}"
        raise typer.BadParameter(message, param_hint=_HINT)
    return run


def refuse_one_for_two(places: Mapping[str, Path | str | None]) -> None:
    """Raises typer.BadParameter where two options name one file, which the second would write over."""
    named: dict[Path, str] = {}
    for option, path in places.items():
        if path is None or str(path) in {STDOUT, os.devnull}:
            continue
        other = named.setdefault(Path(path).resolve(), option)
        if other != option:
            raise typer.BadParameter(f"{path} is the file of {other}; give another one", param_hint=option)


def is_stdout(name: str | None) -> bool:
    """Whether this is stdout by any name, such as /dev/stdout."""
    with suppress(OSError):
        return name is not None and os.path.samestat(Path(name).stat(), os.fstat(1))
    return False


def stdout() -> BinaryIO:
    """Not sys.stdout, and never closed: the table may go there too."""
    return open(1, "wb", closefd=False)


def opened_for_writing(path: Path, hint: str, kind: str | None = None, end: int = 0) -> BinaryIO:
    """What the file has up to ``end`` is kept. With a ``kind``, a file of anything else is not replaced.
    Raises typer.BadParameter, also while another run writes it.
    """
    if kind is not None:
        refuse_foreign(path, kind, hint)
    try:
        stream = path.open("ab")
    except OSError as error:
        message = f"{path}: {error.strerror}; give a file that can be written, or - for stdout"
        raise typer.BadParameter(message, param_hint=hint) from None
    if path.is_file():
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.close()
            message = f"{path} is being written by another run; wait for its end, or give another name"
            raise typer.BadParameter(message, param_hint=hint) from None
        except OSError:  # a file system that knows no locks
            pass
        stream.truncate(end)
    return stream


def refuse_foreign(path: Path | None, kind: str, hint: str) -> None:
    """Raises typer.BadParameter if ``path`` is a file of something else than ours of that ``kind``."""
    if path is not None and path.is_dir():
        raise typer.BadParameter(f"{path} is a folder; give the name of a file", param_hint=hint)
    if path is None or not path.is_file():
        return
    with suppress(OSError), path.open("rb") as file:  # writing will say what is wrong
        if (begin := file.read(1 << 20)) and not _BEGINNINGS[kind].match(begin):
            message = f"{path} is a file of something else than {kind}; give another name, or remove it"
            raise typer.BadParameter(message, param_hint=hint)


def refuse_source(path: Path, sources: Sequence[BinaryIO], hint: str) -> None:
    """Raises typer.BadParameter if ``path`` is a file that is read."""
    if path.exists() and any(os.path.samestat(path.stat(), os.fstat(each.fileno())) for each in sources):
        raise typer.BadParameter(f"{path} is the file that is read; give another one", param_hint=hint)
