"""What docs/scores.md shows is so: the example, the meanings, and the worked answer."""

from __future__ import annotations

import subprocess
import sys

import pytest

from guardrail.evals.scores import MEANING, SCORES, score_value
from guardrail.events import Severity, Verdict
from tests.support.docs import blocks, page
from tests.unit.evals.verdicts import claim_verdict, response_verdict

ROWS = [line.strip("|").split("|") for line in page("scores.md").splitlines() if "|" in line]
CELLS = [[cell.strip(" `") for cell in row] for row in ROWS]


def rows(first: set[str], width: int) -> list[list[str]]:
    """The rows of a table by their first cells, and the number of its columns."""
    return [row for row in CELLS if row[0] in first and len(row) == width]


def test_the_example_prints_what_the_page_says() -> None:
    [code], [said] = blocks("scores.md", "python"), blocks("scores.md", "text")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == said


def test_every_score_is_on_the_page() -> None:
    assert [row[0] for row in rows(set(SCORES), 4)] == list(SCORES)


def test_the_page_translates_verdicts_as_the_code_does() -> None:
    found = {row[0]: row[1:] for row in rows(set(Verdict), 4)}
    words = {True: "passes", False: "fails", None: "open"}
    assert found == {
        verdict: [
            "left out" if meaning.binary is None else str(meaning.binary),
            meaning.mastra or "left out",
            words[meaning.passes],
        ]
        for verdict, meaning in MEANING.items()
    }


@pytest.mark.parametrize("name", SCORES)
def test_the_worked_answer_has_these_scores(name: str) -> None:
    claims = [row for row in CELLS if len(row) == 4 and row[2] in set(Verdict)]
    verdict = response_verdict(
        [
            claim_verdict(
                number,
                Verdict(said),
                Severity(severity),
                text=text,
                support=float(support) if support else None,
            )
            for number, (text, severity, said, support) in enumerate(claims)
        ]
    )
    assert len(claims) == 6
    ((_, value, failing),) = rows({name}, 3)
    assert f"{score_value(name, verdict).value:.3f}" == value.rsplit(" ", 1)[-1]
    assert f"{score_value(name, verdict, unverified='fail').value:.3f}" == failing
