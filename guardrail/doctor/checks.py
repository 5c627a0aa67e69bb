"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warn", "fail", "skip"]
"""skip: it could not be known, or was not to be checked."""
Area = Literal[
    "settings", "policies", "machine", "judge", "broker", "topics", "access", "clock", "enforcement"
]


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report. ``about`` names what was looked at; ``remedy`` is empty where there is none."""

    area: Area
    about: str
    state: State
    detail: str
    remedy: str = ""


def failed(area: Area, about: str, error: Exception) -> Check:
    """A failure told by an error, whose last part after a semicolon is the remedy, as in all of ours."""
    text = str(error) or type(error).__name__
    detail, separator, remedy = text.rpartition("; ")
    return Check(area, about, "fail", detail if separator else text, remedy if separator else "")
