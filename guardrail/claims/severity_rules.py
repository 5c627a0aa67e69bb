"""The operator's own severity rules, as they stand in a policy."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, field_validator

from guardrail.claims.patterns import compile_quietly
from guardrail.events import Severity


class SeverityPattern(BaseModel):
    """A regular expression or a list of keywords that sets at least this severity."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reason: str = Field(min_length=1, description="Reported with the claim, e.g. 'recall_notice'.")
    severity: Severity = Field(description="The claim has this severity or a higher one.")
    pattern: str | None = Field(
        default=None, description="Python regular expression, searched ignoring case."
    )
    keywords: tuple[str, ...] = Field(
        default=(), description="Whole words or phrases, compared ignoring case."
    )

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        if value is not None:
            compile_quietly(value)
        return value


class SeverityRules(BaseModel):
    """Added to the built-in severity rules."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    patterns: tuple[SeverityPattern, ...] = Field(
        default=(), description="Every one that matches a claim raises its severity and is reported."
    )
    disabled_reasons: frozenset[str] = Field(
        default=frozenset(), description="Built-in reasons that are not to raise severity here."
    )
