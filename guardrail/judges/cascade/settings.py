"""Settings of the cascade: who judges first, who second, and how sure is sure enough."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from guardrail.events import Severity

Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Fallback = Literal["local", "unverified"]


class Band(BaseModel):
    """How sure the first judge must be for its verdict to stand.

    ``accept_support`` and ``reject_support`` bound the probability of support, 0 to 1, from above and from
    below: a claim with less than the one and more than the other goes on to the second judge.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    accept_support: Probability = Field(description="SUPPORTED stands from this probability of support on.")
    reject_support: Probability = Field(
        description="Any other verdict stands up to this probability of support."
    )

    @model_validator(mode="after")
    def _ordered(self) -> Band:
        if self.reject_support > self.accept_support:
            raise ValueError(
                f"reject_support {self.reject_support} is above accept_support {self.accept_support}; "
                "give the lower probability as reject_support"
            )
        return self


# Of claims of real answers that people rated (benchmarks.cascade_share --lfqa), what these settle is right in
# 99 of 100 or more. No low probability of support is so sure that another verdict than SUPPORTED may stand.
DEFAULT_BANDS: Final[Mapping[Severity, Band]] = {
    Severity.MINOR: Band(accept_support=0.8, reject_support=0.0),
    Severity.NORMAL: Band(accept_support=0.92, reject_support=0.0),
    Severity.MAJOR: Band(accept_support=0.92, reject_support=0.0),
    Severity.CRITICAL: Band(accept_support=0.93, reject_support=0.0),
}


class CascadeSettings(BaseModel):
    """Which claims the second judge sees, and what happens to them when it can't answer."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    first: Literal["local", "hhem", "classifier"] = Field(
        default="local", description="Judges every claim; set up in its own section of judge."
    )
    second: Literal["llm", "hhem", "classifier", "command"] = Field(
        default="llm", description="Judges the claims that the first can't settle; set up likewise."
    )
    bands: dict[Severity, Band] = Field(
        default_factory=lambda: dict(DEFAULT_BANDS),
        description="By severity, from which probability of support on the first judge's verdict stands "
        "(accept_support), and up to which (reject_support). Severities left out keep their default.",
    )
    critical_contradictions: Literal["block", "confirm"] = Field(
        default="confirm",
        description="What becomes of a critical claim that the first judge finds contradicted. block: that "
        "stands at once. confirm: the second judge confirms or lifts it; while it can't, it stands.",
    )
    contradiction_confidence: Probability = Field(
        default=0.9, description="Least confidence of such a contradiction for block; below it is confirmed."
    )
    on_unavailable: dict[Severity, Fallback] = Field(
        default_factory=dict,
        description="What a claim gets that the second judge should have seen and did not (late, failed, "
        "over budget, left out), by severity. local: the first judge's verdict with its own support, the "
        "default. unverified: UNVERIFIED, so that the policy's on_unverified decides. One word instead of a "
        "mapping holds for all severities.",
    )
    max_wait_ms: Annotated[int, Field(ge=0)] = Field(
        default=1500,
        description="How long a claim that the first judge can't settle waits, while the answer is being "
        "written, for others to go to the second with, so that fewer calls are made. Never longer than a "
        "quarter of claim_timeout_ms; claims that look wrong don't wait, and at the end of the answer none "
        "does. 0: each goes at once.",
    )
    reserve_ms: Annotated[int, Field(ge=0)] = Field(
        default=100,
        description="Time before the claims' deadline at which the second judge is given up, so that the "
        "first one's verdicts are still in time.",
    )
    least_call_ms: Annotated[int, Field(ge=0)] = Field(
        default=300, description="With less time than this left the second judge is not asked at all."
    )

    @field_validator("bands", mode="before")
    @classmethod
    def _merged(cls, value: Any) -> Any:
        """Given severities over the default ones, and a band's given limit over the default one."""
        if not isinstance(value, Mapping):
            return value
        merged: dict[Any, Any] = {
            severity.value: band.model_dump() for severity, band in DEFAULT_BANDS.items()
        }
        for severity, band in value.items():
            name = severity.value if isinstance(severity, Severity) else severity
            given = band.model_dump() if isinstance(band, Band) else band
            merged[name] = {**merged.get(name, {}), **given} if isinstance(given, Mapping) else given
        return merged

    @field_validator("on_unavailable", mode="before")
    @classmethod
    def _for_all(cls, value: Any) -> Any:
        return {severity.value: value for severity in Severity} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _two(self) -> CascadeSettings:
        if self.first == self.second:
            raise ValueError(f"first and second are both {self.first}; name two different judges")
        return self

    def fallback(self, severity: Severity) -> Fallback:
        """What stands in for the second judge's verdict on a claim of that severity."""
        return self.on_unavailable.get(severity, "local")
