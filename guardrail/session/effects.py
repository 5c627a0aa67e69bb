"""What a session asks its surroundings to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from guardrail.claims.model import Claim
from guardrail.events import OutputEvent


class Channel(StrEnum):
    """Where an output event goes."""

    DELIVERIES = "deliveries"
    VERDICTS = "verdicts"
    FLAGGED = "flagged"


class AskJudge(NamedTuple):
    """Effect: put these claims, by id, to the judge."""

    claims: tuple[tuple[str, Claim], ...]


@dataclass(frozen=True, slots=True)
class Cancel:
    """Effect: no verdict is wanted any more."""


@dataclass(frozen=True, slots=True)
class CutOn:
    """Effect: more of the text is to be cut: have the session do so once others had their turn."""


class Emit(NamedTuple):
    """Effect: publish this event. ``since`` is when the text was cut that it releases, if it does."""

    channel: Channel
    event: OutputEvent
    since: float | None = None


Effect = AskJudge | Cancel | CutOn | Emit
