"""What ``guardrail replay`` found, for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from guardrail.cli.terminal import out
from guardrail.evals.records import Passed
from guardrail.evals.replay import RIGHT, WRONG, ChangedResponse, DecisionTally, Replay
from guardrail.evals.statistics import Rate, percent
from guardrail.events import Decision
from guardrail.printable import escape_controls, shorten
from guardrail.render import DECISION_STYLES, DECISION_WORDS

_MOST_RULES: Final = 8
_MOST_ROUTES: Final = 12
_MOST_CHARS: Final = 200
_WITHHELD: Final = "withheld"


def print_replay(replay: Replay, passed: Passed) -> None:
    """Tables and examples on stdout."""
    console = out()
    before = "as recorded" if replay.before is None else replay.before.name
    _line(
        console,
        f"{replay.responses:,} responses, {replay.claims:,} claims; {replay.after.name} against {before}",
        "bold",
    )
    for what, count in (
        ("events of other types passed over", passed.others),
        ("records of guardrail doctor's proofs left out", passed.proofs),
        ("records repeated, counted once", passed.repeated),
        ("results without a verdict left out", passed.failed),
        ("that can't be read left out", passed.unreadable),
    ):
        if count:
            _line(console, f"{count:,} {what}", "dim")
    for reason, count in replay.unknown.most_common():
        _line(console, f"{count:,} responses are not known and left out: {reason}", "yellow")
    if not replay.compared:
        return
    console.print()
    console.print(_decisions(replay.total))
    changed = Rate(replay.total.changed, replay.compared)
    _line(
        console,
        f"changed {_count(changed)}: {replay.stricter:,} more strictly, {replay.milder:,} more mildly. In "
        "brackets: 95 % intervals.",
    )
    if replay.total.changed:
        for table in (_moves(replay), _rules(replay)):
            console.print()
            console.print(table)
    if len(replay.routes) > 1:
        console.print()
        console.print(_routes(replay))
    if len(replay.labels):
        console.print()
        _print_labels(console, replay)
    for (was, now), kept in sorted(replay.examples.items(), key=lambda each: each[0][1].rank, reverse=True):
        for change in kept:
            _print_example(console, was, now, change)


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(escape_controls(text), style), soft_wrap=True)


def _words(decision: Decision) -> Text:
    return Text(DECISION_WORDS[decision], DECISION_STYLES[decision])


def _count(rate: Rate) -> str:
    return f"{rate.count:,} of {rate.total:,}, {percent(rate)} %"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", no_wrap=True)
    return table


def _decisions(tally: DecisionTally) -> Table:
    table = _table("decision", "before", "% [95 %]", "after", "% [95 %]")
    for decision in Decision:
        row = []
        for counts in (tally.before, tally.after):
            rate = Rate(counts[decision.rank], tally.total)
            row += [f"{rate.count:,}", percent(rate)]
        table.add_row(_words(decision), *row)
    return table


def _moves(replay: Replay) -> Table:
    table = _table("from \\ to", *(DECISION_WORDS[decision] for decision in Decision))
    for was in Decision:
        row = [replay.moves[was, now] for now in Decision]
        if any(row):
            table.add_row(
                _words(was),
                *(
                    Text(f"{count:,}", "" if was is now or not count else "bold")
                    for now, count in zip(Decision, row, strict=True)
                ),
            )
    return table


def _rules(replay: Replay) -> Table:
    table = _table("change", "responses", "rule that decides now")
    table.columns[2].justify, table.columns[2].no_wrap = "left", False
    for (was, now, rule), count in replay.rules.most_common(_MOST_RULES):
        change = Text.assemble(_words(was), " to ", _words(now))
        table.add_row(change, f"{count:,}", Text(escape_controls(rule)))
    return table


def _routes(replay: Replay) -> Table:
    table = _table("route", "responses", "changed", "withheld", "after", "flagged", "after")
    flag = Decision.FLAG.rank
    routes = sorted(replay.routes.items(), key=lambda each: -each[1].total)
    for route, tally in routes[:_MOST_ROUTES]:
        shares = [
            Rate(tally.changed, tally.total),
            tally.withheld(tally.before),
            tally.withheld(tally.after),
            Rate(tally.before[flag], tally.total),
            Rate(tally.after[flag], tally.total),
        ]
        name = Text("none", "dim") if route is None else Text(escape_controls(shorten(route, 40)))
        table.add_row(name, f"{tally.total:,}", *(_share(rate) for rate in shares))
    if len(routes) > _MOST_ROUTES:
        table.add_row(Text(f"and {len(routes) - _MOST_ROUTES} more; --json has all", "dim"))
    return table


def _share(rate: Rate) -> str:
    return f"{100 * rate.count / rate.total:.1f} %"


def _print_labels(console: Console, replay: Replay) -> None:
    for count, what in (
        (replay.stray, "labels belong to no answer of the records"),
        (replay.unknown_claims, "labels name claims that the records don't have, and no words; left out"),
        (
            replay.ambiguous,
            "labels are of ids that several answers have; each of these answers counts by them",
        ),
    ):
        if count:
            _line(console, f"{count:,} {what}", "yellow")
    right, wrong = replay.labelled[RIGHT], replay.labelled[WRONG]
    if not right.total and not wrong.total:
        _line(console, "labels: none of the responses has labels that say whether it is right", "yellow")
        return
    _line(console, f"{right.total:,} answers are right by their labels, {wrong.total:,} wrong")
    table = _table("", "before", "after")

    def row(name: str, tally: DecisionTally, rate: Callable[[DecisionTally, Sequence[int]], Rate]) -> None:
        cells = [rate(tally, counts) for counts in (tally.before, tally.after)]
        table.add_row(name, *(f"{cell.count:,}  {percent(cell)} %" for cell in cells))

    if right.total:
        row("wrongful blocks: right, withheld", right, DecisionTally.withheld)
        row("right, flagged or withheld", right, _touched)
    if wrong.total:
        row("misses: wrong, not even flagged", wrong, DecisionTally.untouched)
        row("wrong, not withheld", wrong, _shown)
    console.print(table)


def _touched(tally: DecisionTally, counts: Sequence[int]) -> Rate:
    return Rate(tally.total - counts[Decision.RELEASE.rank], tally.total)


def _shown(tally: DecisionTally, counts: Sequence[int]) -> Rate:
    return Rate(tally.total - tally.withheld(counts).count, tally.total)


def _print_example(console: Console, was: Decision, now: Decision, change: ChangedResponse) -> None:
    console.print()
    console.print(
        Text.assemble(
            (escape_controls(shorten(change.response_id, 64)), "bold"),
            "  ",
            _words(was),
            " to ",
            _words(now),
            (f"  {escape_controls(change.place)}", "dim"),
        ),
        soft_wrap=True,
    )
    for name, part in (("before", change.before), ("after ", change.after)):
        score = "none" if part.score is None else f"{part.score:.2f}"
        _line(console, f"  {name}  {part.rule or 'no rule'} · score {score} · {part.policy}")
    for claim in change.claims:
        text = shorten(claim.text, _MOST_CHARS)
        _line(console, f'  {claim.verdict.value}, {claim.severity.value}: "{text}"')
