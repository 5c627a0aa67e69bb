"""The measure of how answers are cut into statements."""

from __future__ import annotations

import yaml

from benchmarks.statements import FILE, pairing


def test_statements_are_paired_one_to_one_in_any_order() -> None:
    theirs = ["The lamp costs 20 euros.", "The lamp has a battery."]
    assert pairing(["The lamp has a battery.", "It costs 20 euros, the lamp."], theirs) == (1, 0)
    assert pairing(["The lamp costs 20 euros.", "The lamp costs 20 euros."], theirs) is None
    assert pairing(["The lamp costs 20 euros and has a battery."], theirs) is None


def test_each_sentence_stands_there_once_with_its_statements() -> None:
    answers = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    assert len({each["answer"] for each in answers}) == len(answers) >= 60
    assert all(each["statements"] for each in answers)
