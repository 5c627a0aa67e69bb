"""docs/tune.md: its first commands run, in order, on the answers of examples/tuning, and end as it says."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from guardrail.cli import app
from guardrail.evals.records import read_labelled
from guardrail.events import Verdict
from guardrail.policy import DEFAULT_RULES
from tests.support.code_blocks import ROOT, code_blocks, shell_lines

BLOCKS = [block for block in code_blocks() if block.page == "docs/tune.md"]
SHOWN = [block.text for block in BLOCKS if block.language == "text"]
TEXT = (ROOT / "docs" / "tune.md").read_text("utf-8")


def words_of(text: str) -> set[str]:
    """The first cells of a table, and the sentences around it, without figures."""
    return {re.split(r"  +|\d", line.strip())[0].strip() for line in text.splitlines() if line.strip()}


def test_the_tutorial_ends_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    tutorial = [block for block in BLOCKS if not block.language and block.line < heading("What it reads")]
    told = []
    for words in (line for block in tutorial for line in shell_lines(block.text)):
        assert words[0] == "guardrail"
        result = CliRunner().invoke(app, list(words[1:]))
        assert result.exit_code == 0, f"{' '.join(words)}: {result.output}"
        if words[1] == "tune":
            told.append(result.stdout)
            assert (tmp_path / "tuned.yaml").exists() == ("keep that" not in last(told[-1]))
    assert len(told) == len(SHOWN) == 2
    for shown, printed in zip(SHOWN, told, strict=True):
        assert last(shown) == last(printed)
        assert words_of(shown) <= words_of(printed)


def last(text: str) -> str:
    return text.strip().splitlines()[-1].strip()


def heading(title: str) -> int:
    """The line of a heading, from 0."""
    return TEXT.splitlines().index(f"## {title}")


def test_the_example_is_what_the_page_says_it_is() -> None:
    folder = ROOT / "examples" / "tuning"
    answers = (folder / "answers.jsonl").read_text("utf-8").splitlines()
    labels = (folder / "labels.jsonl").read_text("utf-8").splitlines()
    assert len(answers) == 72
    assert len(labels) > len(answers)
    found = read_labelled([folder / "labels.jsonl"])
    assert found.stray == len(labels)
    assert "has 72 short answers on twelve documents" in TEXT
    wrong = Counter('"SUPPORTED"' not in line for line in labels)
    assert wrong[True] == 36  # one error in each of half the answers


def test_the_rules_that_the_page_numbers_are_those_of_the_default() -> None:
    assert "support < 0.15" in DEFAULT_RULES[2]
    assert "support < 0.5" in DEFAULT_RULES[7]


def test_a_label_of_the_page_is_of_the_example() -> None:
    shown = next(block.text for block in BLOCKS if block.language == "json")
    assert '"span": [55, 96]' in shown
    lines = (ROOT / "examples" / "tuning" / "labels.jsonl").read_text("utf-8").splitlines()
    assert any('"library-4", "span": [55, 96]' in line and Verdict.CONTRADICTED in line for line in lines)
