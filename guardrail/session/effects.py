"""Effects: what a session asks its surroundings to do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
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
    """Effect: ask the judge about these claims, by id."""

    claims: tuple[tuple[str, Claim], ...]


@dataclass(frozen=True, slots=True)
class Cancel:
    """Effect: no more verdicts are wanted."""


@dataclass(frozen=True, slots=True)
class CutOn:
    """Effect: call the session's ``cut_on`` to cut more of the text, after other tasks have had their
    turn.
    """


class Explain(NamedTuple):
    """Effect: have the reason for the verdict on this claim put into words, and tell ``explained``."""

    claim_id: str
    explain: Callable[[], Awaitable[str]]


class Emit(NamedTuple):
    """Effect: publish this event. ``since`` is when the text that it releases was cut, if it releases any."""

    channel: Channel
    event: OutputEvent
    since: float | None = None


Effect = AskJudge | Cancel | CutOn | Explain | Emit
