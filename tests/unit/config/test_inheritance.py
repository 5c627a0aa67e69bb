"""``policies.NAME.extends``: what is inherited, and what is told of names that lead nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from consumers.settings import GuardSettings, load_settings
from guardrail.events import Severity
from guardrail.policy import DEFAULT_RULES, Policy
from tests.support.config_files import problems_of, write


def policies(**given: Any) -> dict[str, Policy]:
    return GuardSettings.model_validate({"policies": given}).policies


def rules(policy: Policy) -> list[str]:
    return [rule.line for rule in policy.rules]


def test_what_is_left_out_comes_from_the_other_policy_and_its_own_chain() -> None:
    found = policies(
        c={"extends": "b", "flag_below": 0.9},
        b={"extends": "a", "on_incomplete": "flag"},
        a={"mode": "hold", "flag_below": 0.6, "version": "7"},
    )
    assert found["c"] == Policy(name="c", mode="hold", flag_below=0.9, on_incomplete="flag", version="7")
    assert found["b"].flag_below == 0.6


def test_without_extends_a_policy_begins_from_the_built_in_defaults() -> None:
    found = policies(default={"mode": "hold"}, other={"flag_below": 0.6}, child={"extends": "default"})
    assert found["other"].mode == "stream"
    assert found["child"].mode == "hold"


def test_extending_the_default_needs_no_default_in_the_file() -> None:
    assert policies(child={"extends": "default"})["child"] == Policy(name="child")


def test_mappings_merge_and_lists_replace() -> None:
    pattern = {"reason": "recall", "severity": "critical", "keywords": ["recall"]}
    found = policies(
        a={
            "weights": {"critical": 8},
            "segment_kinds": {"code": "flag"},
            "severity": {"patterns": [pattern], "disabled_reasons": ["price"]},
            "fallback_message": {"default": "No.", "de": "Nein."},
        },
        b={
            "extends": "a",
            "weights": {"minor": 0},
            "segment_kinds": {"heading": "flag"},
            "severity": {"disabled_reasons": []},
            "fallback_message": {"fr": "Non."},
        },
    )["b"]
    assert (found.weights[Severity.CRITICAL], found.weights[Severity.MINOR]) == (8, 0)
    assert found.segment_kinds.keys() == {"code", "heading"}
    assert [each.reason for each in found.severity.patterns] == ["recall"]
    assert not found.severity.disabled_reasons
    assert found.fallback_message == {"default": "No.", "de": "Nein.", "fr": "Non."}


def test_a_text_in_place_of_texts_replaces_them() -> None:
    found = policies(
        a={"fallback_message": {"default": "No."}}, b={"extends": "a", "fallback_message": "Never."}
    )
    assert found["b"].fallback_message == "Never."


class TestRules:
    def test_rules_before_and_after_keep_the_default_ones(self) -> None:
        found = policies(a={"rules_before": ["reason price: block"], "rules_after": ["always: flag"]})["a"]
        assert rules(found) == ["reason price: block", *DEFAULT_RULES, "always: flag"]

    def test_they_go_around_all_that_is_inherited(self) -> None:
        found = policies(
            a={"rules_before": ["reason price: block"]},
            b={
                "extends": "a",
                "rules_before": ["reason dosage: block"],
                "rules_after": ["reason date: flag"],
            },
            c={"extends": "b", "rules_after": ["always: redact"]},
        )
        inherited = ["reason dosage: block", "reason price: block", *DEFAULT_RULES, "reason date: flag"]
        assert rules(found["b"]) == inherited
        assert rules(found["c"]) == [*inherited, "always: redact"]

    def test_rules_replace_all_of_them(self) -> None:
        found = policies(
            a={"rules_before": ["reason price: block"]},
            b={"extends": "a", "rules": ["always: flag"], "rules_before": ["reason dosage: block"]},
        )
        assert rules(found["b"]) == ["reason dosage: block", "always: flag"]

    def test_nothing_said_of_rules_leaves_the_default_ones(self) -> None:
        assert rules(policies(a={"mode": "hold"}, b={"extends": "a"})["b"]) == list(DEFAULT_RULES)


def test_what_is_shown_of_policies_is_written_out_and_can_be_loaded_again(tmp_path: Path) -> None:
    text = (
        "policies: {a: {mode: hold, rules_before: ['reason date: flag']}, b: {extends: a, flag_below: 0.9}}"
    )
    settings = load_settings(write(tmp_path, text))
    shown = settings.masked()
    assert shown["policies"]["b"]["extends"] is None
    assert load_settings(write(tmp_path, yaml.safe_dump(shown))) == settings


def test_an_environment_variable_is_inherited_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARDRAIL_POLICIES__A__FLAG_BELOW", "0.9")
    path = write(tmp_path, "policies: {a: {mode: hold}, b: {extends: a}}")
    assert load_settings(path).policies["b"].flag_below == 0.9


class TestProblems:
    def test_a_name_that_is_not_there_has_its_line_and_the_nearest_one(self, tmp_path: Path) -> None:
        path = write(tmp_path, "policies:\n  strict: {}\n  a:\n    extends: strikt\n")
        [(place, told)] = problems_of(path).items()
        assert place == "policies.a.extends"
        assert f"{path}:4: policies.a.extends = 'strikt'" in told
        assert "did you mean strict?" in told

    def test_every_policy_of_a_cycle_has_its_line(self, tmp_path: Path) -> None:
        path = write(tmp_path, "policies:\n  a:\n    extends: b\n  b:\n    extends: a\n  c: {extends: c}\n")
        found = problems_of(path)
        assert found.keys() == {"policies.a.extends", "policies.b.extends", "policies.c.extends"}
        assert f"{path}:3:" in found["policies.a.extends"]
        assert "a -> b -> a" in found["policies.a.extends"]
        assert "it extends itself" in found["policies.c.extends"]

    def test_a_policy_that_extends_one_of_a_cycle_is_not_told_itself(self, tmp_path: Path) -> None:
        path = write(tmp_path, "policies: {a: {extends: b}, b: {extends: a}, c: {extends: a}}")
        assert problems_of(path).keys() == {"policies.a.extends", "policies.b.extends"}

    def test_they_are_told_together_with_other_names_that_lead_nowhere(self, tmp_path: Path) -> None:
        path = write(
            tmp_path,
            "policies: {a: {extends: x}}\nroutes: [{route: r, policy: y}]\n"
            "challengers: [{policy: z, against: a}]\n",
        )
        assert problems_of(path).keys() == {
            "policies.a.extends",
            "routes.0.policy",
            "challengers.0.policy",
        }

    def test_a_fault_that_is_inherited_is_told_once_where_it_stands(self, tmp_path: Path) -> None:
        text = "policies:\n  a:\n    flag_below: 7\n    weights: {minor: -1}\n    rules: ['nonsense']\n"
        path = write(tmp_path, text + "  b:\n    extends: a\n    weights: {major: -2}\n")
        found = problems_of(path)
        assert found.keys() == {
            "policies.a.flag_below",
            "policies.a.weights.minor",
            "policies.a.rules.0",
            "policies.b.weights.major",
        }
        assert f"{path}:5:" in found["policies.a.rules.0"]

    def test_a_wrong_rule_of_rules_before_has_its_line(self, tmp_path: Path) -> None:
        text = "policies:\n  a:\n    rules: ['always: flag']\n    rules_before:\n      - 'severity x: flag'\n"
        found = problems_of(write(tmp_path, text))
        assert found.keys() == {
            "policies.a.rules_before.0.min_severity",
            "policies.a.rules_before.0.max_severity",
        }
        assert all(":5:" in told for told in found.values())

    @pytest.mark.parametrize("wrong", ["[]", "''", "5", "text"])
    def test_what_is_no_name_is_told_and_breaks_nothing(self, tmp_path: Path, wrong: str) -> None:
        assert "policies.a.extends" in problems_of(write(tmp_path, f"policies: {{a: {{extends: {wrong}}}}}"))

    def test_lists_of_rules_that_are_none_are_told_where_they_stand(self, tmp_path: Path) -> None:
        path = write(
            tmp_path, "policies: {a: {rules_before: 5}, b: {extends: a, rules_after: ['always: flag']}}"
        )
        assert problems_of(path).keys() == {"policies.a.rules_before"}

    def test_in_python_a_policy_extends_nothing(self) -> None:
        with pytest.raises(ValidationError, match="model_copy"):
            Policy(extends="default")


def test_challengers_of_one_policy_share_its_responses(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "policies: {a: {}, b: {}}\nchallengers:\n  - {policy: a, against: default, share: 0.6}\n"
        "  - {policy: b, against: default, share: 0.6}\n",
    )
    [(place, told)] = problems_of(path).items()
    assert place == "challengers.1.share"
    assert f"{path}:4:" in told
    assert "1.2 of its responses" in told


def test_a_policy_does_not_challenge_itself(tmp_path: Path) -> None:
    path = write(tmp_path, "challengers: [{policy: default, against: default}]")
    assert problems_of(path).keys() == {"challengers.0.policy"}
