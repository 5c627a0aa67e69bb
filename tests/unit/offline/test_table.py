"""The table of scored responses: aligned, narrow, harmless."""

from __future__ import annotations

from guardrail.events import Decision, Verdict
from guardrail.offline.table import Totals, header, row
from tests.unit.demo.events import claim, verdict

CLAIMS = (
    claim("a", (0, 1)),
    claim("b", (1, 2), Verdict.CONTRADICTED, index=1),
    claim("c", (2, 3), Verdict.UNVERIFIED, index=2),
)


def test_rows_are_as_wide_as_the_header_and_fit_80_columns() -> None:
    rows = [
        header().plain,
        row(verdict()).plain,
        row(verdict(Decision.BLOCK, CLAIMS, response_id="x" * 200, score=None)).plain,
    ]
    assert len({len(each) for each in rows}) == 1
    assert len(rows[0]) <= 80


def test_a_row_counts_the_claims_by_verdict() -> None:
    assert row(verdict(Decision.BLOCK, CLAIMS, score=0.25)).plain.split() == [
        "r",
        "0.250",
        "block",
        "3",
        "1",
        ".",
        ".",
        "1",
        "1",
    ]


def test_an_id_cannot_break_the_table() -> None:
    assert "\x1b" not in row(verdict(response_id="a\x1b[2J\nb")).plain
    assert "\n" not in row(verdict(response_id="a\x1b[2J\nb")).plain


def test_totals_leave_out_of_the_mean_what_has_no_score() -> None:
    totals = Totals()
    totals.add(verdict(Decision.BLOCK, CLAIMS, score=0.25))
    totals.add(verdict(score=0.75))
    totals.add(verdict(score=None))
    totals.unreadable = 1
    assert [line.plain for line in totals.lines()] == [
        "3 responses: 2 release, 1 block, mean score 0.500",
        "3 claims: 1 supported, 1 contradicted, 1 unverified",
        "1 of 3 claims were not judged, and count in no score: the events say why",
        "1 line could not be read",
    ]


def test_totals_of_nothing() -> None:
    assert [line.plain for line in Totals().lines()] == ["0 responses: none judged", "0 claims: none"]
