"""Judgements with probabilities as people's labels have them: one place where calibrations are applied.

A calibration belongs to a judge by the name that its judgements bear. Temperature scaling is that of Guo et
al., "On Calibration of Modern Neural Networks" (2017): sigmoid(logit(p) / temperature). Isotonic regression
is kept as points, and is linear in between.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

import yaml
from pydantic import Field, ValidationError, model_validator

from guardrail.errors import ConfigError, said_wrong
from guardrail.events import ClaimVerdict, Finding, Verdict
from guardrail.frozen import Frozen
from guardrail.judges.base import Around, Judge, JudgeRequest, PacedJudge
from guardrail.judges.streams import checked, closing
from guardrail.log_events import EventLog
from guardrail.verdicts import HALF_CHECKED, Judgement

Probability = Annotated[float, Field(ge=0.0, le=1.0)]
EDGE: Final = 1e-6
"""Probabilities are taken to be this far from 0 and 1, where their logit is infinite."""
MAX_BYTES: Final = 1024 * 1024
_MOST_TOLD: Final = 8
_log = EventLog(__name__)
_SETTING: Final = "judge.calibration"


class Temperature(Frozen):
    """Makes a judge less sure (above 1) or more sure (below 1) on both sides of 0.5."""

    method: Literal["temperature"] = "temperature"
    temperature: Annotated[float, Field(gt=0.0, le=100.0)]

    def apply(self, probability: float) -> float:
        """The calibrated probability."""
        p = min(1 - EDGE, max(EDGE, probability))
        return 0.5 + math.tanh(math.log(p / (1 - p)) / self.temperature / 2) / 2  # exp would overflow


class Isotonic(Frozen):
    """Points from what the judge says to what is right, ascending; linear in between, level outside."""

    method: Literal["isotonic"] = "isotonic"
    points: Annotated[tuple[tuple[Probability, Probability], ...], Field(min_length=1, max_length=10_000)]

    @model_validator(mode="after")
    def _ascending(self) -> Isotonic:
        for before, after in zip(self.points, self.points[1:], strict=False):
            if after[0] <= before[0] or after[1] < before[1]:
                raise ValueError(
                    f"points: after {before} comes {after}; first numbers must ascend, second ones never fall"
                )
        return self

    def apply(self, probability: float) -> float:
        """The calibrated probability."""
        at = bisect_right(self.points, probability, key=lambda point: point[0])
        if at == 0:
            return self.points[0][1]
        if at == len(self.points):
            return self.points[-1][1]
        (x0, y0), (x1, y1) = self.points[at - 1], self.points[at]
        return y0 + (y1 - y0) * (probability - x0) / (x1 - x0)


Calibration = Annotated[Temperature | Isotonic, Field(discriminator="method")]


_NOT_THE_MODEL_S: Final = 0.5
"""Probability of contradiction below which a model does not say so: the cell of a table does."""
_EXACT: Final = frozenset(
    {Finding.FIGURE_CONFLICT, Finding.FIGURE_ABSENT, Finding.FIGURE_AMBIGUOUS, Finding.OTHER_THING}
)


class VerdictLines(Frozen):
    """Where verdicts begin, of calibrated probabilities, for a judge whose verdicts follow from them."""

    supported: Probability
    contradicted: Probability = 0.5

    def verdict(self, said: Verdict, support: float, contradiction: float, *, exact: bool) -> Verdict:
        """The verdict in place of ``said``; ``exact``: figures were compared, and keep it from SUPPORTED."""
        if support >= self.supported and support > contradiction and not exact:
            return Verdict.SUPPORTED
        if contradiction >= self.contradicted or (exact and said is Verdict.CONTRADICTED):
            return Verdict.CONTRADICTED
        return {
            Verdict.SUPPORTED: Verdict.PARTIALLY_SUPPORTED,
            Verdict.CONTRADICTED: Verdict.UNSUPPORTED,
        }.get(said, said)


class Calibrated(NamedTuple):
    """A verdict and its probabilities."""

    verdict: Verdict
    support: float | None
    contradiction: float | None


class JudgeCalibration(Frozen):
    """The calibrations of one judge's probabilities; null leaves one as it is."""

    support: Calibration | None = None
    contradiction: Calibration | None = None
    lines: VerdictLines | None = None

    def apply(self, said: Judgement | ClaimVerdict) -> Calibrated:
        """What was said with both probabilities calibrated; what a judge doesn't give stays None. The verdict
        stands unless there are ``lines``.

        A claim that was checked in part never gets more support than such a claim may have.
        """
        support, contradiction = said.support, said.contradiction
        if said.verdict is Verdict.UNVERIFIED or support is None:
            return Calibrated(said.verdict, support, contradiction)
        if self.support is not None:
            support = self.support.apply(support)
        if contradiction is not None and self.contradiction is not None:
            contradiction = self.contradiction.apply(contradiction)
        if Finding.CHECKED_IN_PART in said.findings:
            support = min(support, HALF_CHECKED)
        if self.lines is None:
            return Calibrated(said.verdict, support, contradiction)
        # What comparisons say stands: by a finding, or a contradiction that is not the model's.
        exact = not _EXACT.isdisjoint(said.findings) or (
            said.verdict is Verdict.CONTRADICTED and (said.contradiction or 0.0) < _NOT_THE_MODEL_S
        )
        verdict = self.lines.verdict(said.verdict, support, contradiction or 0.0, exact=exact)
        return Calibrated(verdict, support, contradiction)


class Calibrations(Frozen):
    """The file that ``judge.calibration`` names, written by ``guardrail tune --calibration``."""

    version: Literal[1] = 1
    judges: dict[str, JudgeCalibration] = Field(
        default_factory=dict, description="By the judge's name, as verdicts bear it: local, llm:MODEL …"
    )

    def judgement(self, judgement: Judgement) -> Judgement:
        """The same judgement, calibrated if its judge is; its confidence stands."""
        own = self.judges.get(judgement.judge)
        return judgement if own is None else replace(judgement, **own.apply(judgement)._asdict())


def read_calibrations(path: Path) -> Calibrations:
    """The calibrations in a file. Raises ConfigError that names the file and the remedy."""
    remedy = "name a file that guardrail tune --calibration wrote, or leave the setting out"
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{_SETTING}: {path} can't be read ({error.strerror}); {remedy}") from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{_SETTING}: {path} is larger than 1 MiB; {remedy}")
    try:
        return Calibrations.model_validate(yaml.safe_load(data))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise ConfigError(f"{_SETTING}: {path}: {where}: {said_wrong(first)}; {remedy}") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
        raise ConfigError(f"{_SETTING}: {path} is not YAML; {remedy}") from None


class CalibratedJudge(Around):
    """A Judge around another, whose judgements get calibrated probabilities.

    It is the outermost of all wrappers: caches keep what the judge said, and a cascade's bands are on what
    its first judge said.
    """

    def __init__(self, judge: Judge, calibrations: Calibrations) -> None:
        """Takes over ``judge``, and closes it."""
        super().__init__(judge)
        self._calibrations = calibrations
        self._told: set[str] = set()

    def wait_s(self, more: int = 0) -> float:
        """That of the judge; 0 if it doesn't know its pace."""
        return self._judge.wait_s(more) if isinstance(self._judge, PacedJudge) else 0.0

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """The judge's valid judgements, calibrated. Raises what it raises."""
        async with closing(checked(self._judge, request)) as judgements:
            async for judgement in judgements:
                if judgement.judge not in self._calibrations.judges:
                    self._warn(judgement.judge)
                yield self._calibrations.judgement(judgement)

    def _warn(self, name: str) -> None:
        """Say once of a judge that the calibration of another model of its kind is not applied to it."""
        kind = name.partition(":")[0]
        others = [each for each in self._calibrations.judges if each.partition(":")[0] == kind]
        if others and name not in self._told and len(self._told) < _MOST_TOLD:
            self._told.add(name)
            _log.warning("judge.not_calibrated", judge=name, calibrated=others[:_MOST_TOLD])
