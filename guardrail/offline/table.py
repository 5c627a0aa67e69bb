"""The table of ``guardrail score``, row by row, so that it needs no memory of what was scored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rich.text import Text

from guardrail.events import Decision, ResponseVerdict, Verdict
from guardrail.printable import escape_controls, shorten

ID_WIDTH: Final = 26
_DECISION_STYLES: Final = {
    Decision.RELEASE: "green",
    Decision.FLAG: "yellow",
    Decision.REDACT: "dark_orange",
    Decision.BLOCK: "red",
}
_COLUMNS: Final = (
    ("supp", Verdict.SUPPORTED),
    ("part", Verdict.PARTIALLY_SUPPORTED),
    ("unsup", Verdict.UNSUPPORTED),
    ("contr", Verdict.CONTRADICTED),
    ("unver", Verdict.UNVERIFIED),
)


def header() -> Text:
    """Names of the columns; the last five count claims by verdict. 79 characters wide, as every row."""
    names = "".join(f" {name:>5}" for name, _ in _COLUMNS)
    return Text(f"{'response':<{ID_WIDTH}} {'score':>5}  {'decision':<8} {'claims':>6}{names}", "bold")


def row(verdict: ResponseVerdict) -> Text:
    """One response. Its id is made harmless and cut to the column."""
    counts = verdict.counts.model_dump()
    score = "-" if verdict.score is None else f"{verdict.score:.3f}"
    text = Text(f"{shorten(escape_controls(verdict.response_id), ID_WIDTH):<{ID_WIDTH}} {score:>5}  ")
    text.append(f"{verdict.decision:<8}", _DECISION_STYLES[verdict.decision])
    text.append(f" {len(verdict.claims):>6}")
    for _, each in _COLUMNS:
        text.append(f" {counts[each.lower()] or '.':>5}")
    return text


@dataclass(slots=True)
class Totals:
    """Sums over all lines."""

    responses: int = 0
    unreadable: int = 0
    claims: int = 0
    scored: int = 0
    score_sum: float = 0.0
    decisions: dict[Decision, int] = field(default_factory=lambda: dict.fromkeys(Decision, 0))
    verdicts: dict[Verdict, int] = field(default_factory=lambda: dict.fromkeys(Verdict, 0))

    def add(self, verdict: ResponseVerdict) -> None:
        self.responses += 1
        self.claims += len(verdict.claims)
        self.decisions[verdict.decision] += 1
        for name, count in verdict.counts.model_dump().items():
            self.verdicts[Verdict(name.upper())] += count
        if verdict.score is not None:
            self.scored += 1
            self.score_sum += verdict.score

    def lines(self) -> list[Text]:
        """What stands under the table."""
        decisions = ", ".join(f"{count} {decision}" for decision, count in self.decisions.items() if count)
        verdicts = ", ".join(
            f"{count} {verdict.lower().replace('_', ' ')}"
            for verdict, count in self.verdicts.items()
            if count
        )
        mean = f", mean score {self.score_sum / self.scored:.3f}" if self.scored else ""
        answers = f"{self.responses:,} response{'' if self.responses == 1 else 's'}"
        lines = [
            Text(f"{answers}: {decisions or 'none judged'}{mean}", "bold"),
            Text(f"{self.claims:,} claim{'' if self.claims == 1 else 's'}: {verdicts or 'none'}"),
        ]
        unverified = self.verdicts[Verdict.UNVERIFIED]
        if unverified:
            share = f"{unverified:,} of {self.claims:,} claims were not judged"
            lines.append(Text(f"{share}, and count in no score: the events say why", "bold yellow"))
        if self.unreadable:
            lines.append(
                Text(f"{self.unreadable:,} line{'' if self.unreadable == 1 else 's'} could not be read")
            )
        return lines
