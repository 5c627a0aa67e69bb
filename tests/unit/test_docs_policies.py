"""What docs/policies.md says holds: its configurations load, and the default is the default."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from consumers.settings import GuardSettings
from guardrail.policy import Policy, Rule, parse_rule
from guardrail.scoring import Formula

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "policies.md").read_text("utf-8")
BLOCKS = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: next(iter(block["policies"])))
def test_a_configuration_loads(block: dict[str, Any]) -> None:
    assert GuardSettings.model_validate(block).policies.keys() >= block["policies"].keys()


def test_the_default_is_shown_as_it_is() -> None:
    [shown] = [block["policies"]["default"] for block in BLOCKS if "default" in block["policies"]]
    assert Policy.model_validate(shown) == Policy()
    assert tuple(shown["rules"]) == tuple(rule.line for rule in Policy().rules)


def test_every_condition_and_formula_is_told() -> None:
    """The lines in the table are rules, and all fields of a rule are in it."""
    table, _, _ = TEXT.partition("| condition | holds for")[2].partition("\n\n")
    told: set[str] = set()
    for lines in re.findall(r"^\| (`[^|]*(?:\\\|[^|]*)*`) \| ", table, re.MULTILINE):
        for line in re.findall(r"`(.*?)`", lines.replace("\\|", "|")):
            told |= parse_rule(f"{line}: flag").keys()
    assert told == Rule.model_fields.keys() - {"name"}
    assert all(f"| `{formula}` |" in TEXT for formula in Formula)
