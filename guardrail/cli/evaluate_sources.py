"""What ``guardrail evaluate`` is asked for, and where it reads its samples: files, stdin, a range of a
Kafka topic, of which it puts streamed answers together.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import typer

from guardrail.cli.options import policy_named
from guardrail.cli.results_file import refuse_foreign
from guardrail.cli.sources import KAFKA, records_of
from guardrail.doctor import is_proof
from guardrail.errors import ConfigError, DecodeError
from guardrail.evals.evaluation import check_scores, judging_everything
from guardrail.evals.formats import FORMATS, Format, labelled, read_labels, samples_in
from guardrail.evals.formats.rows import ANSWERS_FILE
from guardrail.evals.formats.values import Unread
from guardrail.evals.lines import STDIN, beside_the_loop
from guardrail.evals.results import BadSample, Sample
from guardrail.evals.truths import LabelsByResponse
from guardrail.events import (
    FlaggedCase,
    Response,
    ResponseAborted,
    ResponseCompleted,
    ResponseDelta,
    ResponseStarted,
    parse_input,
    parse_output,
)
from guardrail.routing import PolicyRouter

if TYPE_CHECKING:
    from consumers.reading import Range
    from consumers.settings import GuardSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateRequest:
    """What one run is asked for: what is read, how it is judged, and where it goes beside the table.

    ``policy`` is the one that holds for all, None where ``router`` chooses. ``out`` and ``verdicts`` are
    names of files, or ``-`` for stdout.
    """

    settings: GuardSettings
    sources: Sequence[str]
    source_format: Format
    part: Range | None
    labels: LabelsByResponse
    router: PolicyRouter
    policy: str | None
    scores: Sequence[str]
    explain: str | None
    out: str | None
    resume: bool
    force: bool
    verdicts: str | None
    verdicts_as: str
    report: Path | None
    fail_under: float | None


def check(request: EvaluateRequest) -> None:
    """Fail before anything is judged where options exclude each other, or the report could not be written.
    Raises typer.BadParameter, and ConfigError where Jinja2 is missing.
    """
    if request.out == "-" == request.verdicts:
        raise typer.BadParameter("only one of --out and --verdicts can be stdout", param_hint="--verdicts")
    if request.verdicts_as != "event" and request.verdicts is None:
        raise typer.BadParameter("give --verdicts the name of a file, or -", param_hint="--verdicts-as")
    if request.resume and request.out is None:
        raise typer.BadParameter("give the --out of the interrupted run", param_hint="--resume")
    if request.resume and request.force:
        raise typer.BadParameter("either go on or begin anew: not with --force", param_hint="--resume")
    if request.resume and request.verdicts is not None:
        message = "--verdicts is written anew each time; take .verdict of the lines of --out instead"
        raise typer.BadParameter(message, param_hint="--resume")
    if (path := request.report) is not None:
        import guardrail.evals.report  # noqa: F401 - needs Jinja2

        if not path.parent.is_dir():
            raise typer.BadParameter(f"{path.parent}: no such folder; make it first", param_hint="--report")
        refuse_foreign(path, "a report", "--report")


def score_names(given: Sequence[str]) -> list[str]:
    """Each name once. Raises typer.BadParameter."""
    names = [name.strip() for each in given for name in each.split(",") if name.strip()]
    try:
        check_scores(names)
    except ConfigError as error:
        raise typer.BadParameter(str(error), param_hint="--score") from None
    return list(dict.fromkeys(names))


def format_named(source_format: str) -> Format:
    """Raises typer.BadParameter for an unknown one."""
    for each in FORMATS:
        if each == source_format:
            return each
    message = f"unknown format {source_format!r}; known formats: {', '.join(FORMATS)}"
    raise typer.BadParameter(message, param_hint="--format")


def labels_in(path: Path | None) -> LabelsByResponse:
    """Those of --labels. Raises typer.BadParameter for a file that can't be read."""
    try:
        return LabelsByResponse() if path is None else read_labels(path)
    except OSError as error:
        message = f"{path}: {error.strerror}; give a file with one label event a line"
        raise typer.BadParameter(message, param_hint="--labels") from None


def router_of(settings: GuardSettings, policy: str | None) -> PolicyRouter:
    """The policies for offline use, or the one that --policy names. Raises typer.BadParameter."""
    if policy is not None:
        return PolicyRouter.single(judging_everything(policy_named(policy, settings)))
    policies = {name: judging_everything(each) for name, each in settings.policies.items()}
    return PolicyRouter(policies, settings.routes, settings.default_policy, settings.challengers)


class Sources:
    """All sources of one run, read in their order. Files are opened at once, so that a wrong name fails
    before anything is judged, and closed with ``stack``.
    """

    def __init__(self, request: EvaluateRequest, stack: ExitStack) -> None:
        self._request = request
        self._names = request.sources
        self._files = {
            name: _opened(name, stack)
            for name in dict.fromkeys(request.sources)
            if not name.startswith(KAFKA)
        }
        self._read = 0
        self._current: BinaryIO | None = None
        self.begun_before = 0
        """Events of answers that began before the range of a topic."""
        self.unread: Counter[Unread] = Counter()
        """Values where labels should be, and no label could be read."""
        self.proofs = 0
        """Answers of a topic that ``guardrail doctor`` sent; they are left out."""

    @property
    def name(self) -> str:
        """What goes before a place in messages: the only source; of several, places name theirs."""
        only = self._names[0] if len(self._names) == 1 else ""
        return "<stdin> " if only == STDIN else f"{only} " if only else ""

    @property
    def files(self) -> list[BinaryIO]:
        """Those that are read, to tell whether one of them is about to be overwritten."""
        return [file for file, _ in self._files.values()]

    @property
    def size(self) -> int | None:
        """Bytes of all sources; None if one has no known end, as a pipe."""
        sizes = [_size(file) for file in self.files]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) == len(self._names) else None

    @property
    def position(self) -> int:
        """Bytes read so far."""
        current = self._current
        return self._read + (current.tell() if current is not None and not current.closed else 0)

    async def samples(self, ahead: int) -> AsyncIterator[Sample | BadSample]:
        """All samples, no more than ``ahead`` read before they are asked for."""
        for name in self._names:
            where = f"{name} " if len(self._names) > 1 else ""
            found = self._of_topic(name) if name.startswith(KAFKA) else self._of_file(name, ahead)
            async with aclosing(found) as samples:  # type: ignore[type-var] # both are generators
                async for sample in samples:
                    if isinstance(sample, Sample):
                        self.unread.update(sample.unread)
                    yield labelled(replace(sample, place=f"{where}{sample.place}"), self._request.labels)

    async def _of_file(self, name: str, ahead: int) -> AsyncIterator[Sample | BadSample]:
        stream, path = self._files[name]
        size = _size(stream)
        self._current = None if size is None else stream
        found = samples_in(stream, path, self._request.source_format)
        async for sample in beside_the_loop(found, ahead=ahead):
            yield sample
        self._current = None
        self._read += size or 0

    async def _of_topic(self, name: str) -> AsyncIterator[Sample | BadSample]:
        assembler = Assembler()
        kafka = self._request.settings.kafka
        found = records_of(name, kafka, kafka.topics.responses, self._request.part)
        async with aclosing(found) as records:
            async for record, _ in records:
                place = f"partition {record.partition.index}, offset {record.offset}"
                for sample in assembler.add(record.value or b"", place):
                    if isinstance(sample, Sample) and is_proof(sample.response):
                        self.proofs += 1
                    else:
                        yield sample
        for sample in assembler.end():
            yield sample
        self.begun_before += assembler.begun_before


def _opened(name: str, stack: ExitStack) -> tuple[BinaryIO, Path | None]:
    if name == STDIN:
        # Not sys.stdin itself, and never closed: a thread may still wait in it when the process ends.
        return open(0, "rb", closefd=False), None
    path = Path(name)
    if path.is_dir() and (path / ANSWERS_FILE).is_file():
        path = path / ANSWERS_FILE
    try:
        return stack.enter_context(path.open("rb")), path
    except OSError as error:
        message = f"{name}: {error.strerror}; give a file of answers, {KAFKA}TOPIC, or - for stdin"
        raise typer.BadParameter(message, param_hint="SOURCE") from None


def _size(file: BinaryIO) -> int | None:
    """Bytes of a regular file; None for a pipe or a terminal, which have no known end."""
    status = os.fstat(file.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def paths_of(names: Sequence[str]) -> Iterator[str]:
    """Names for a results file: of files their absolute path, so that a run can be resumed from elsewhere."""
    for name in names:
        yield name if name == STDIN or name.startswith(KAFKA) else str(Path(name).resolve())


# ------------------------------------------------------------------- answers of a topic, put together

MAX_OPEN_CHARS: Final = 256 * 1024 * 1024


@dataclass(slots=True)
class _Open:
    """An answer whose text is still coming."""

    head: ResponseStarted
    place: str
    texts: list[str] = field(default_factory=list)
    chars: int = 0


class Assembler:
    """Takes the records of input or flagged topics, each response's in order, and gives whole answers.

    Memory is bounded: past ``max_chars`` of answers that are not complete, the oldest is given up.
    """

    def __init__(self, max_chars: int = MAX_OPEN_CHARS) -> None:
        self._max_chars = max_chars
        self._open: dict[str, _Open] = {}
        self._chars = 0
        self.begun_before = 0
        """Events of answers whose beginning was not in the range."""

    def add(self, value: bytes, place: str) -> Iterator[Sample | BadSample]:
        """What one record completes. ``place`` is where it stands."""
        try:
            event = parse_input(value)
        except DecodeError as error:
            yield self._output(value, place, error)
            return
        if isinstance(event, Response):
            yield Sample(event, place=place)
        elif isinstance(event, ResponseStarted):
            if event.response_id in self._open:
                yield self._give_up(event.response_id, "began a second time before it was complete")
            opened = _Open(event, place)
            opened.chars = len(event.question) + sum(len(each.text) for each in event.contexts)
            self._open[event.response_id] = opened
            self._chars += opened.chars
        elif event.response_id not in self._open:
            self.begun_before += 1
        else:
            yield from self._go_on(event)
        while self._chars > self._max_chars and len(self._open) > 1:
            yield self._give_up(next(iter(self._open)), "did not end while much else came; it was given up")

    def end(self) -> Iterator[BadSample]:
        """What never became complete."""
        for response_id in list(self._open):
            yield self._give_up(response_id, "had no end in the range; read further with --until")

    def _go_on(
        self, event: ResponseDelta | ResponseCompleted | ResponseAborted
    ) -> Iterator[Sample | BadSample]:
        opened = self._open[event.response_id]
        if isinstance(event, ResponseDelta):
            if event.seq == len(opened.texts):
                opened.texts.append(event.text)
                opened.chars += len(event.text)
                self._chars += len(event.text)
            elif event.seq > len(opened.texts):
                yield self._give_up(event.response_id, f"delta {len(opened.texts)} is missing")
        elif isinstance(event, ResponseAborted):
            yield self._give_up(event.response_id, "was aborted, so its text is not whole")
        elif event.seq != len(opened.texts):
            yield self._give_up(event.response_id, f"{event.seq} deltas were sent, {len(opened.texts)} came")
        else:
            self._close(event.response_id)
            head = opened.head.model_dump(exclude={"type"}, by_alias=True)
            yield Sample(Response(**head, answer="".join(opened.texts)), place=opened.place)

    def _give_up(self, response_id: str, why: str) -> BadSample:
        opened = self._close(response_id)
        return BadSample(opened.place, f"the answer that began here {why}")

    def _close(self, response_id: str) -> _Open:
        opened = self._open.pop(response_id)
        self._chars -= opened.chars
        return opened

    def _output(self, value: bytes, place: str, error: DecodeError) -> Sample | BadSample:
        try:
            case = parse_output(value)
        except DecodeError:
            return BadSample(place, str(error))
        if not isinstance(case, FlaggedCase):
            return BadSample(place, f"type '{case.type}': not an answer; read rag.responses or rag.flagged")
        if "contexts" in case.omitted or "answer" in case.omitted:
            return BadSample(place, "a flagged case without its documents can't be judged")
        return Sample(Response.model_validate(case.model_dump(exclude={"type"})), place=place)
