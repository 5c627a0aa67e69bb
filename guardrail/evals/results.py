"""What an offline evaluation says of each answer: one result a line of its file.

Everything after the judging works on results alone, in memory or read back from a file: scores, agreement
with labels, the report, replay under another policy, tuning.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, Self, cast

from pydantic import AwareDatetime, BaseModel, Field, ValidationError

from guardrail.errors import ConfigError, DecodeError
from guardrail.evals.lines import open_unpacked
from guardrail.evals.truths import LabelsByResponse
from guardrail.events import Event, Label, Response, ResponseVerdict, WireModel, decode_error
from guardrail.printable import escape_controls, shorten
from guardrail.render import counted

if TYPE_CHECKING:
    from pandas import DataFrame

_ID_WIDTH: Final = 26
_MOST_ROWS: Final = 50
_OF_RESPONSES: Final = ("response_id", "question", "answer", "route", "tenant", "generator_model")
"""What a data frame has of them."""


@dataclass(frozen=True, slots=True)
class Sample:
    """An answer to evaluate, whatever format it came in. ``labels`` are what people said of it there."""

    response: Response
    labels: tuple[Label, ...] = ()
    place: str = ""
    """Where it stands, for messages: "line 7", "row 3", "partition 0, offset 12"."""
    unread: tuple[tuple[str, str], ...] = ()
    """Where a label should be and none could be read: the fields, and their values fit for a message."""


@dataclass(frozen=True, slots=True)
class BadSample:
    """What should have been a sample and can't be read. It becomes a result with ``error``."""

    place: str
    error: str
    """Every field that is wrong, why, and the remedy; quotes nothing of the values."""


class ScoreValue(WireModel):
    """One published score of one answer. Undefined is null with a reason, never NaN."""

    value: float | None = Field(description="On the scale of its definition; null if it is undefined.")
    passed: bool | None = Field(default=None, description="Of scores that pass or fail; null for others.")
    reason: str | None = Field(default=None, description="Why there is no value, or what it leaves out.")


class TraceStep(WireModel):
    """A step on the way to the verdicts: what was asked, and what came back, as it is."""

    step: str = Field(
        description="statements: the claims as judges read them, one a line. call: a prompt to a judge "
        "and its reply. reading: what a local judge read for a claim, and what it made of it. verdicts: "
        "what the guard took in."
    )
    claim_ids: tuple[str, ...] = Field(default=(), description="The claims that it was about.")
    prompt: str | None = Field(default=None, description="What was sent, every message of it.")
    reply: str | None = Field(default=None, description="What came back, unread.")
    latency_ms: float | None = None
    judge: str | None = Field(default=None, description="Who was asked.")
    error: str | None = Field(default=None, description="Why there is no reply, or not all of it.")


class EvaluationResult(Event):
    """What became of one sample. An error is a result without verdict and scores; it never counts as one."""

    type: Literal["evaluation.result"] = "evaluation.result"
    place: str = Field(default="", description="Where the sample stands in its source.")
    response: Response | None = Field(
        default=None, description="What was judged; null if it could not be read."
    )
    verdict: ResponseVerdict | None = Field(default=None, description="null if there was an error.")
    scores: Mapping[str, ScoreValue] = Field(default_factory=dict, description="By name of the score.")
    labels: tuple[Label, ...] = Field(default=(), description="People's verdicts on the answer.")
    explanation: str | None = Field(
        default=None, description="The reason of the result in words, if asked for."
    )
    trace: tuple[TraceStep, ...] = Field(default=(), description="The steps to the verdicts, if asked for.")
    error: str | None = Field(default=None, description="Why there is no verdict.")


class EvaluationStarted(Event):
    """The first line of a results file: what the run was asked to do."""

    type: Literal["evaluation.started"] = "evaluation.started"
    name: str = Field(default="", description="What people call the run.")
    settings: Mapping[str, str] = Field(
        default_factory=dict, description="Judge, policies, source, scores: what the results depend on."
    )
    time: AwareDatetime | None = Field(default=None, description="When it began.")


class EvaluationCompleted(Event):
    """The last line of a results file. Without it, the run was interrupted."""

    type: Literal["evaluation.completed"] = "evaluation.completed"
    results: int = Field(ge=0, description="Lines of results before it, those with an error included.")


@dataclass(frozen=True, slots=True)
class ScoreSummary:
    """One score over all answers. ``mean`` is over the ``defined`` values; None without any."""

    mean: float | None
    defined: int
    undefined: int
    """Answers that were judged and have no value, such as those that state nothing."""
    errors: int
    """Samples without a verdict. They never count as a score."""

    @classmethod
    def of(cls, values: Sequence[float | None], errors: int) -> Self:
        """The summary of the values of the answers that were judged."""
        known = [value for value in values if value is not None]
        mean = math.fsum(known) / len(known) if known else None
        return cls(mean, len(known), len(values) - len(known), errors)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The results of one run, in the order of its source, and what made them."""

    results: tuple[EvaluationResult, ...]
    name: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    """What a reader of the report wants to know of the run: judge, model, policy, source, time."""

    @property
    def errors(self) -> tuple[EvaluationResult, ...]:
        """The results without a verdict."""
        return tuple(each for each in self.results if each.verdict is None)

    def summary(self) -> dict[str, ScoreSummary]:
        """Each score over all answers, by name, in the order in which they first appear."""
        found: dict[str, list[float | None]] = {}
        for result in self.results:
            for name, score in result.scores.items():
                found.setdefault(name, []).append(score.value)
        errors = len(self.errors)
        return {name: ScoreSummary.of(values, errors) for name, values in found.items()}

    def table(self, rows: int = _MOST_ROWS) -> str:
        """The first ``rows`` results as text for a terminal, one a line, and the mean of each score."""
        names = list(self.summary())

        def cells(values: Iterable[str]) -> str:
            pairs = zip(values, names, strict=True)
            return "".join(f"  {value:>{max(5, len(name))}}" for value, name in pairs)

        lines = [f"{'response':<{_ID_WIDTH}} {'decision':<8} {'claims':>6}{cells(names)}"]
        for result in self.results[:rows]:
            verdict = result.verdict
            if verdict is None:
                lines.append(f"{_cell(result.place):<{_ID_WIDTH}} error: {_cell(result.error or '', 200)}")
                continue
            values = [_figure(result.scores[name].value if name in result.scores else None) for name in names]
            told = f"{_cell(verdict.response_id):<{_ID_WIDTH}} {verdict.decision:<8} {len(verdict.claims):>6}"
            lines.append(told + cells(values))
        if len(self.results) > rows:
            lines.append(f"{len(self.results) - rows:,} more are left out")
        return "\n".join([*lines, *summary_lines(self.summary())])

    def to_pandas(self) -> DataFrame:
        """A row for each result. Raises ConfigError if pandas is not installed."""
        try:
            from pandas import DataFrame
        except ImportError:
            raise ConfigError(
                "to_pandas() needs pandas, which is not installed; run: pip install pandas"
            ) from None
        return DataFrame([_flat(each) for each in self.results])

    def write(self, path: str | Path) -> None:
        """A results file, gzipped if its name ends in ``.gz``. ``read_results`` gives the same back."""
        path = Path(path)
        with gzip.open(path, "wb") if path.suffix == ".gz" else path.open("wb") as file:
            stream = cast("BinaryIO", file)
            write_line(stream, EvaluationStarted(name=self.name, settings=self.settings))
            for result in self.results:
                write_line(stream, result)
            write_line(stream, EvaluationCompleted(results=len(self.results)))


def summary_lines(summary: Mapping[str, ScoreSummary]) -> list[str]:
    """A line for each score: its mean, and what it is the mean of."""
    lines = []
    for name, each in summary.items():
        told = f"{name}: mean {_figure(each.mean)} over {counted(each.defined, 'answer')}"
        told += f", {each.undefined:,} undefined" if each.undefined else ""
        lines.append(told + (f", {each.errors:,} without a verdict" if each.errors else ""))
    return lines


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _cell(text: str, width: int = _ID_WIDTH) -> str:
    return shorten(" ".join(escape_controls(text).split()), width)


def _flat(result: EvaluationResult) -> dict[str, Any]:
    response, verdict = result.response, result.verdict
    worst = {each.verdict for each in result.labels if each.claim_id is None and each.span is None}
    return {
        "place": result.place,
        **{name: getattr(response, name, None) for name in _OF_RESPONSES},
        "decision": str(verdict.decision) if verdict else None,
        "rule": verdict.rule if verdict else None,
        "policy": verdict.policy.name if verdict else None,
        "claims": len(verdict.claims) if verdict else None,
        **(verdict.counts.model_dump() if verdict else {}),
        **{name: score.value for name, score in result.scores.items()},
        "hallucinated_claims": list(verdict.hallucinated_claims) if verdict else None,
        "label": str(worst.pop()) if len(worst) == 1 else None,
        "cost_usd": verdict.usage.cost_usd if verdict else None,
        "latency_ms": verdict.timings.total_ms if verdict else None,
        "explanation": result.explanation,
        "error": result.error,
    }


# ------------------------------------------------------------------------------------ results files


def write_line(stream: BinaryIO, model: BaseModel) -> None:
    """An event or another model as a line, out of this process when this returns."""
    stream.write(model.__pydantic_serializer__.to_json(model, by_alias=True) + b"\n")
    stream.flush()


@dataclass(frozen=True, slots=True)
class StoredRun:
    """What a results file holds beside results, whose last whole line ends at ``end``, in bytes."""

    started: EvaluationStarted | None
    completed: bool
    end: int


def read_results(path: str | Path) -> Evaluation:
    """The evaluation in a results file, gzipped or not; of an interrupted run, what was done.

    Lines of other types are passed over. Raises DecodeError naming the line that can't be read.
    """
    found = [event for _, event in _events(path)]
    started = next((each for each in found if isinstance(each, EvaluationStarted)), EvaluationStarted())
    results = tuple(each for each in found if isinstance(each, EvaluationResult))
    return Evaluation(results, started.name, _settings(started))


class StoredResults:
    """A results file as a run to go through, as often as needed, with ``labels`` added to the results' own.

    Going through it raises OSError, and DecodeError naming the line that can't be read.
    """

    def __init__(self, path: str | Path, *, labels: LabelsByResponse | None = None) -> None:
        """Reads the head of the file. Raises as going through it does."""
        self._path = Path(path)
        self._labels = LabelsByResponse() if labels is None else labels
        first = next((event for _, event in _events(path)), None)
        started = first if isinstance(first, EvaluationStarted) else EvaluationStarted()
        self.name = started.name or self._path.name
        self.settings: Mapping[str, str] = _settings(started)

    @property
    def results(self) -> Iterable[EvaluationResult]:
        """In the order of the file."""
        return self

    def __iter__(self) -> Iterator[EvaluationResult]:
        for _, event in _events(self._path):
            if isinstance(event, EvaluationResult):
                if event.response is not None and len(self._labels):
                    labels = self._labels.of(event.response.response_id, event.labels)
                    event = event.model_copy(update={"labels": labels})
                yield event


def read_run(path: str | Path, take: Callable[[EvaluationResult], None]) -> StoredRun:
    """Hand each result of a results file to ``take``, holding one at a time. Raises DecodeError."""
    started: EvaluationStarted | None = None
    completed, end = False, 0
    for size, event in _events(path, to_go_on=True):
        if isinstance(event, EvaluationStarted):
            started = event
        elif isinstance(event, EvaluationResult):
            take(event)
        completed = isinstance(event, EvaluationCompleted)
        if not completed:
            end += size
    return StoredRun(started, completed, end)


def _settings(started: EvaluationStarted) -> dict[str, str]:
    settings = dict(started.settings)
    if started.time is not None:
        settings.setdefault("time", started.time.isoformat(timespec="seconds"))
    return settings


def _events(path: str | Path, *, to_go_on: bool = False) -> Iterator[tuple[int, Event | None]]:
    """The bytes of each whole line, and its event; None for blank lines and other types.

    A last line that was cut off is passed over; ``to_go_on``: also one that only lacks its line end, so that
    what is written next begins a line.
    """
    with open_unpacked(path) as stream, suppress(EOFError):  # a gzipped file that was cut off
        for number, line in enumerate(stream, start=1):
            if line.endswith(b"\n"):
                yield len(line), _event(line, number, path)
            elif not to_go_on:
                with suppress(DecodeError):
                    yield len(line), _event(line, number, path)


def _event(line: bytes, number: int, path: str | Path) -> Event | None:
    """The event of one line; None for blank lines and other types."""
    if not line.strip():
        return None
    try:
        if line.startswith(_RESULT_START):  # as they are written; reading a head costs as much as the whole
            return EvaluationResult.model_validate_json(line)
        head = _Head.model_validate_json(line)
        kind = _KINDS.get(head.type)
        return kind.model_validate_json(line) if kind else None
    except ValidationError as error:
        found = decode_error(error)
        raise DecodeError(
            found.reason, f"{path} line {number}: {found}; give a file that guardrail evaluate --out wrote"
        ) from None


class _Head(WireModel):
    type: str


_RESULT_START: Final = b'{"schema":1,"type":"evaluation.result",'
_KINDS: Final[Mapping[str, type[Event]]] = {
    "evaluation.started": EvaluationStarted,
    "evaluation.result": EvaluationResult,
    "evaluation.completed": EvaluationCompleted,
}
