"""Where commands read from: a file, stdin, or a range of a Kafka topic."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncGenerator
from contextlib import ExitStack, aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from guardrail.errors import DecodeError

if TYPE_CHECKING:
    from consumers.reading import Range
    from consumers.settings import KafkaSettings
    from consumers.transport import Record
    from guardrail.evals.records import RecordReader
    from guardrail.events import Label

KAFKA: Final = "kafka:"
"""What stands before a topic's name, where a file's could stand."""
_AGE: Final = re.compile(r"(\d{1,9})([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_PART: Final = re.compile(r"(?P<index>\d{1,6})(?::(?P<first>\d{1,18})(?:-(?P<last>\d{1,18}))?)?")


def range_of(since: str | None, until: str | None, partitions: list[str] | None = None) -> Range | None:
    """The part of a topic that options ask for, None if all of it. Raises typer.BadParameter."""
    from consumers.reading import Range

    if since is None and until is None and not partitions:
        return None
    bounds: dict[int, tuple[int | None, int | None]] = {}
    for text in partitions or ():
        found = _PART.fullmatch(text)
        if found is None:
            raise typer.BadParameter(
                f"{text!r} names no partition; write 0, 0:100 or 0:100-200", param_hint="--partition"
            )
        first, last = (None if at is None else int(at) for at in (found["first"], found["last"]))
        bounds[int(found["index"])] = first, last
    now = time.time()
    return Range(
        None if since is None else since_time_ms(since, now),
        None if until is None else since_time_ms(until, now, "--until"),
        bounds,
    )


def since_time_ms(text: str, now_s: float, option: str = "--since") -> int:
    """``2h`` before now, or an ISO time, as milliseconds since 1970. Raises typer.BadParameter."""
    age = _AGE.fullmatch(text)
    if age is not None:
        return int((now_s - int(age[1]) * _SECONDS[age[2]]) * 1000)
    try:
        when = datetime.fromisoformat(text)
        return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{text!r} is neither an age like 30m, 2h or 7d nor a time like 2026-03-01T12:00",
            param_hint=option,
        ) from None


async def records_of(
    source: str, kafka: KafkaSettings, topic: str, part: Range | None
) -> AsyncGenerator[tuple[Record, str], None]:
    """The records in a part of the topic that ``source`` names, by default ``topic``, each with its place."""
    from consumers.reading import open_topic

    name = source.removeprefix(KAFKA) or topic
    async with open_topic(kafka, name, part=part) as reader, aclosing(reader.until_end()) as records:
        async for record in records:
            yield record, f"{name} {record.partition.index}:{record.offset}"


async def values_of(
    source: str,
    kafka: KafkaSettings,
    topic: str,
    part: Range | None,
    reader: RecordReader,
    argument: str = "RECORDS",
) -> AsyncGenerator[tuple[bytes, str], None]:
    """The lines of a file, or the values of a topic, each with its place. Too long lines go to ``reader``."""
    if source.startswith(KAFKA):
        async with aclosing(records_of(source, kafka, topic, part)) as records:
            async for record, place in records:
                if record.value is not None:
                    yield record.value, place
        return
    from guardrail.evals import records as reading
    from guardrail.evals.lines import name_of, open_unpacked

    name = name_of(Path(source).name)
    with ExitStack() as stack:
        try:
            stream = stack.enter_context(open_unpacked(source))
        except OSError as error:
            raise typer.BadParameter(
                f"{source}: {error.strerror}; give a file, - for stdin, or kafka:TOPIC", param_hint=argument
            ) from None
        for line in reading.values_of(stream, name, reader):
            yield line


async def read_labels(source: str, kafka: KafkaSettings) -> tuple[list[Label], list[tuple[str, str]]]:
    """The labels of a file or a topic, those in results too, and what can't be read, by its place."""
    from guardrail.evals.formats import labels_in
    from guardrail.evals.records import RecordReader

    found: list[Label] = []
    problems: list[tuple[str, str]] = []
    refused = RecordReader()
    async with aclosing(values_of(source, kafka, kafka.topics.labels, None, refused, "LABELS")) as values:
        async for value, place in values:
            try:
                found += labels_in(value)
            except DecodeError as error:
                problems.append((place, str(error)))
    return found, [*problems, *refused.passed.problems]
