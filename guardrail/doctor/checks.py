"""What a check found; and the answers of the proof, by which others know them again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from guardrail.events import FlaggedCase, Response, ResponseVerdict

State = Literal["ok", "warn", "fail", "skip"]
"""skip: it could not be known, or was not to be checked."""

PROOF_ROUTE: Final = "guardrail-doctor"
QUESTION: Final = "What does the standard plan cost?"
CONTEXT: Final = "The standard plan costs $20 per month. It can be cancelled at any time."
RIGHT: Final = CONTEXT
WRONG: Final = "The standard plan costs $95 per month. It can be cancelled at any time."
WRONG_FIGURE: Final = "95"
_SENTENCES: Final = frozenset(f"{each}." for text in (RIGHT, WRONG) for each in text[:-1].split(". "))


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report. ``about`` names what was looked at; ``remedy`` is empty where there is none."""

    area: str
    about: str
    state: State
    detail: str
    remedy: str = ""


class Area(NamedTuple):
    """A part of the report, by its heading; it makes the checks of that part."""

    name: str

    def ok(self, about: str, detail: str) -> Check:
        """All is well."""
        return Check(self.name, about, "ok", detail)

    def warn(self, about: str, detail: str, remedy: str = "") -> Check:
        """It works, and should be otherwise."""
        return Check(self.name, about, "warn", detail, remedy)

    def fail(self, about: str, detail: str, remedy: str = "") -> Check:
        """It doesn't work, or doesn't protect."""
        return Check(self.name, about, "fail", detail, remedy)

    def skip(self, about: str, detail: str, remedy: str = "") -> Check:
        """It could not be known, or was not to be checked."""
        return Check(self.name, about, "skip", detail, remedy)

    def fits(self, fits: bool, about: str, detail: str, remedy: str) -> Check:
        """ok, or what fails with its remedy."""
        return self.ok(about, detail) if fits else self.fail(about, detail, remedy)

    def error(self, about: str, error: Exception) -> Check:
        """What an error tells, whose last part after a semicolon is the remedy, as in all of ours."""
        return self.fail(about, *detail_and_remedy(str(error) or type(error).__name__))


def detail_and_remedy(text: str) -> tuple[str, str]:
    """A message in two: its last part after a semicolon is the remedy, if it has one."""
    detail, _, remedy = text.rpartition("; ")
    return (detail, remedy) if detail else (text, "")


def is_proof(event: Response | FlaggedCase | ResponseVerdict) -> bool:
    """Is this about an answer that the doctor sent as its proof? Nobody has to review it.

    The route says so, and the texts, word for word: a mark alone, which any sender can put on an answer, must
    not take it past the reviewers. A verdict has no texts but its claims'; it is a proof's if it has some,
    and all are the proof's.
    """
    if event.route != PROOF_ROUTE:
        return False
    if isinstance(event, ResponseVerdict):
        return bool(event.claims) and all(claim.text in _SENTENCES for claim in event.claims)
    asked = event.question == QUESTION and [context.text for context in event.contexts] == [CONTEXT]
    # A block ends the reading of an answer, so that the case may have its beginning only.
    return asked and any(text.startswith(event.answer) for text in (RIGHT, WRONG))
