"""A results file as a run to go through, one result at a time, however many it holds."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final, cast

from pydantic import ValidationError
from pydantic_core import from_json

from guardrail.errors import DecodeError
from guardrail.events import decode_error
from guardrail.offline.results import EvaluationResult

_GZIP: Final = b"\x1f\x8b"
_STARTED: Final = "evaluation.started"
_RESULT: Final = "evaluation.result"


class ResultsFile:
    """What ``guardrail evaluate --out`` wrote, gzipped or not. Its results can be gone through repeatedly.

    Lines of other types are passed over, and so is a last line that was cut off. Going through it raises
    OSError, and DecodeError naming a line that can't be read.
    """

    def __init__(self, path: str | Path) -> None:
        """Reads the head of the file. Raises as going through it does."""
        self._path = Path(path)
        head = next((event for _, _, event in self._events()), {})
        started = head if head.get("type") == _STARTED else {}
        self.name = str(started.get("name") or self._path.name)
        settings = started.get("settings")
        self.settings: Mapping[str, str] = {
            **(
                {str(name): str(value) for name, value in settings.items()}
                if isinstance(settings, dict)
                else {}
            ),
            **({"time": str(started["time"])} if started.get("time") else {}),
        }

    @property
    def results(self) -> Iterable[EvaluationResult]:
        return self

    def __iter__(self) -> Iterator[EvaluationResult]:
        for number, line, event in self._events():
            if event.get("type") == _RESULT:
                try:
                    yield EvaluationResult.model_validate_json(line)
                except ValidationError as error:
                    raise self._unreadable(number, decode_error(error)) from None

    def _events(self) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
        with self._path.open("rb") as raw:
            zipped = raw.peek(2)[:2] == _GZIP
            stream: IO[bytes] = cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if zipped else raw
            try:
                for number, line in enumerate(stream, start=1):
                    if not line.endswith(b"\n"):
                        return  # the run was killed while it wrote this
                    if line.strip():
                        yield number, line, self._event(number, line)
            except EOFError:
                return  # a gzipped file that was cut off

    def _event(self, number: int, line: bytes) -> dict[str, Any]:
        # The parser names no text of the line; the whole event is read once, by its model.
        if line.startswith(b'{"schema":1,"type":"evaluation.result"'):
            return {"type": _RESULT}
        try:
            event = from_json(line)
        except ValueError:
            raise self._unreadable(number, DecodeError("invalid_json", "not valid JSON")) from None
        if not isinstance(event, dict):
            raise self._unreadable(number, DecodeError("invalid_event", "no JSON object"))
        return event

    def _unreadable(self, number: int, error: DecodeError) -> DecodeError:
        message = f"{self._path} line {number}: {error}; give a file that guardrail evaluate --out wrote"
        return DecodeError(error.reason, message)
