"""The table of ``guardrail score``, row by row, so that it needs no memory of what was scored."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from rich.text import Text

from guardrail.events import Decision, ResponseVerdict, Usage, Verdict
from guardrail.printable import escape_controls, shorten
from guardrail.verdicts import total

ID_WIDTH: Final = 26
_TOLD_WIDTH: Final = 72
_TOLD_SHOWN: Final = 5
_MOST_TOLD: Final = 200
_OTHER: Final = "for other reasons"
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


class Tally:
    """How often what was told, in bounded memory: what comes after many others is counted as one."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, told: str) -> None:
        told = shorten(" ".join(escape_controls(told).split()), _TOLD_WIDTH)
        if told:
            self._counts[told if told in self._counts or len(self._counts) < _MOST_TOLD else _OTHER] += 1

    def lines(self) -> list[Text]:
        """The most frequent, a line each; how many more there are on the last."""
        shown = [(told, count) for told, count in self._counts.most_common() if told != _OTHER][:_TOLD_SHOWN]
        rest = self._counts.total() - sum(count for _, count in shown)
        return [Text(f"{count:>7,} {told}") for told, count in [*shown, *([(_OTHER, rest)] if rest else [])]]


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
    usage: Usage = field(default_factory=Usage)
    degraded: int = 0
    unverified: Tally = field(default_factory=Tally)
    missed: Tally = field(default_factory=Tally)

    def add(self, verdict: ResponseVerdict) -> None:
        self.responses += 1
        self.claims += len(verdict.claims)
        self.decisions[verdict.decision] += 1
        for name, count in verdict.counts.model_dump().items():
            self.verdicts[Verdict(name.upper())] += count
        if verdict.score is not None:
            self.scored += 1
            self.score_sum += verdict.score
        self.usage = total(self.usage, verdict.usage)
        for claim in verdict.claims:
            if claim.verdict is Verdict.UNVERIFIED:
                self.unverified.add(claim.reasoning)
            if claim.degraded_from:
                self.degraded += 1
                for missed in claim.degraded_from:
                    self.missed.add(missed)

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
            lines += self.unverified.lines()
        if self.degraded:
            share = f"{self.degraded:,} of {self.claims:,} claims were degraded: who was to judge did not"
            lines.append(Text(share, "bold yellow"))
            lines += self.missed.lines()
        if self.usage.judge_calls:
            lines.append(Text(self._consumed()))
        if self.unreadable:
            lines.append(
                Text(f"{self.unreadable:,} line{'' if self.unreadable == 1 else 's'} could not be read")
            )
        return lines

    def _consumed(self) -> str:
        usage = self.usage
        calls = f"{usage.judge_calls:,} call{'' if usage.judge_calls == 1 else 's'} of the judge"
        cost = f", {usage.cost_usd:.4f} USD" if usage.cost_usd else ""
        tokens = (
            f"{usage.input_tokens:,} tokens in ({usage.cached_input_tokens:,} cached), "
            f"{usage.output_tokens:,} out"
        )
        return f"{calls}: {tokens}{cost}"
