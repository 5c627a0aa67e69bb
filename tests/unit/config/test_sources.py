"""Where settings come from, and in which order; what policies inherit; what is shown; the example file."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from consumers.settings import GuardSettings, load_settings
from guardrail.errors import ConfigError
from guardrail.events import Severity
from guardrail.leaves import Place, kinds, places
from guardrail.policy import DEFAULT_RULES, Policy
from guardrail.secrets import Secret
from tests.support.config_files import problems_of, write


class TestSources:
    def test_without_any_source_all_is_default(self) -> None:
        assert load_settings() == GuardSettings()
        assert GuardSettings().policies == {"default": Policy()}

    @pytest.mark.parametrize("text", ["{}", "limits: {}\npolicies: {}\n"])
    def test_a_file_without_values_is_all_defaults(self, tmp_path: Path, text: str) -> None:
        assert load_settings(write(tmp_path, text)) == GuardSettings()

    @pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n", "null\n"])
    def test_an_empty_file_is_refused(self, tmp_path: Path, text: str) -> None:
        """A full disk leaves one, and the defaults are other policies than the strict ones meant."""
        with pytest.raises(ConfigError, match=r"guardrail\.yaml: the file holds no settings\n  remedy: "):
            load_settings(write(tmp_path, text))

    @pytest.mark.parametrize("section", ["policies", "routes", "challengers", "default_policy"])
    def test_a_file_cut_off_in_what_decides_is_refused(self, tmp_path: Path, section: str) -> None:
        wrong = problems_of(write(tmp_path, f"kafka: {{group_id: a}}\n{section}:\n"))
        assert "guardrail.yaml:2" in wrong[section]
        assert "nothing stands below it" in wrong[section]

    def test_the_file_may_be_named_by_text(self, tmp_path: Path) -> None:
        assert load_settings(str(write(tmp_path, "kafka: {group_id: a}"))).kafka.group_id == "a"

    def test_environment_beats_file_and_overrides_beat_both(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = write(
            tmp_path, "kafka: {group_id: file, client: {client_id: file}, bootstrap_servers: 'file:1'}"
        )
        monkeypatch.setenv("GUARDRAIL_KAFKA__GROUP_ID", "environment")
        monkeypatch.setenv("GUARDRAIL_KAFKA__CLIENT__CLIENT_ID", "environment")
        kafka = load_settings(path, {"kafka": {"client": {"client_id": "override"}}}).kafka
        assert (kafka.bootstrap_servers, kafka.group_id, kafka.client["client_id"]) == (
            "file:1",
            "environment",
            "override",
        )

    def test_environment_reaches_one_field_of_a_policy_of_the_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The names of policies keep the file's spelling, which variable names can't carry."""
        path = write(tmp_path, "policies: {Strict-EU: {mode: hold, flag_below: 0.9}}")
        monkeypatch.setenv("GUARDRAIL_POLICIES__STRICT_EU__FLAG_BELOW", "0.95")
        monkeypatch.setenv("GUARDRAIL_POLICIES__STRICT_EU__WEIGHTS__CRITICAL", "9")
        policies = load_settings(path).policies
        assert set(policies) == {"default", "Strict-EU"}
        policy = policies["Strict-EU"]
        assert (policy.name, policy.mode, policy.flag_below) == ("Strict-EU", "hold", 0.95)
        assert policy.weights[Severity.CRITICAL] == 9

    def test_lists_and_mappings_in_the_environment_are_json(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GUARDRAIL_ROUTES", '[{"tenant": "acme", "policy": "default"}]')
        monkeypatch.setenv("GUARDRAIL_KAFKA__TOPICS", '{"responses": "answers"}')
        settings = load_settings()
        assert settings.routes[0].tenant == "acme"
        assert settings.kafka.topics.responses == "answers"

    def test_text_that_looks_like_a_number_stays_text(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GUARDRAIL_KAFKA__GROUP_ID", "0042")
        assert load_settings().kafka.group_id == "0042"

    def test_embedded_settings_do_not_read_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GUARDRAIL_KAFKA__GROUP_ID", "other")
        assert GuardSettings().kafka.group_id == "guardrail"

    def test_names_that_only_begin_alike_are_left_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Kubernetes sets such variables for a service called guardrail."""
        for name in ("GUARDRAIL_SERVICE_HOST", "GUARDRAIL_PORT_8080_TCP", "GUARDRAIL_KAFKA_SERVICE_PORT"):
            monkeypatch.setenv(name, "tcp://10.0.0.1:8080")
        assert load_settings() == GuardSettings()

    def test_a_date_as_version_is_text(self, tmp_path: Path) -> None:
        path = write(tmp_path, "policies: {default: {version: 2026-01-15}}")
        assert load_settings(path).policies["default"].version == "2026-01-15"

    def test_settings_can_not_be_changed(self) -> None:
        with pytest.raises(ValueError, match="frozen"):
            GuardSettings().default_policy = "other"  # type: ignore[misc]


class TestPaths:
    """Relative paths in a file are relative to it; of other sources, to the current folder."""

    def test_those_of_every_section(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = tmp_path / "etc"
        folder.mkdir()
        (folder / "user.md").write_text("$documents $claims $asked $notice", encoding="utf-8")
        (folder / "examples.yaml").write_text("[]", encoding="utf-8")
        path = write(
            folder,
            """\
kafka:
  security_protocol: SASL_SSL
  ssl_cafile: ca.pem
  sasl_username: me
  sasl_password: {file: /run/secret}
judge:
  local: {verifier: {path: ../verifier}}
  llm:
    api_key: {file: key}
    prompts: {user: user.md, examples: examples.yaml}
    fallbacks: [{model: b, api_key: {file: other-key}}]
  classifier: {model: ../models/nli}
  http: {headers: {Authorization: {file: header}}}
  cache: {redis_url: {file: redis-url}, signing_key: {env: file}}
""",
        )
        monkeypatch.chdir("/")
        settings = load_settings(path)
        judge, kafka = settings.judge, settings.kafka
        assert (kafka.ssl_cafile, kafka.sasl_password) == (
            folder / "ca.pem",
            Secret(file=Path("/run/secret")),
        )
        assert judge.local.verifier.path == folder / "../verifier"
        assert judge.llm.api_key == Secret(file=folder / "key")
        assert judge.llm.prompts.user == folder / "user.md"
        assert judge.llm.prompts.examples == folder / "examples.yaml"
        assert judge.llm.fallbacks[0].api_key == Secret(file=folder / "other-key")
        assert judge.classifier.model == str(folder / "../models/nli")
        assert judge.http.headers["Authorization"] == Secret(file=folder / "header")
        assert judge.cache.redis_url == Secret(file=folder / "redis-url")
        assert judge.cache.signing_key == Secret(env="file")

    def test_of_a_file_named_from_the_current_folder_and_of_a_link(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "data").mkdir()
        write(tmp_path / "data", "judge: {llm: {api_key: {file: key}}}")
        (tmp_path / "guardrail.yaml").symlink_to(tmp_path / "data" / "guardrail.yaml")
        monkeypatch.chdir(tmp_path)
        settings = load_settings(Path("guardrail.yaml"))
        monkeypatch.chdir("/")
        assert settings.judge.llm.api_key == Secret(file=tmp_path / "key")

    def test_those_of_the_environment(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GUARDRAIL_JUDGE__LLM__API_KEY__FILE", "key")
        assert load_settings(write(tmp_path, "{}")).judge.llm.api_key == Secret(file=Path("key"))

    def test_every_path_there_is_is_known(self) -> None:
        """A setting whose type hides a path from the walk would stay relative to the current folder."""
        schema = GuardSettings.model_json_schema()
        named = {
            name
            for model in (schema, *schema["$defs"].values())
            for name, field in model.get("properties", {}).items()
            if '"format": "path"' in json.dumps(field)
        }
        walked = {each.path[-1] for each in places(Place((), GuardSettings)) if Path in kinds(each.kind)}
        assert named - walked == set()

    @pytest.mark.parametrize(
        "text", ["judge: {llm: {api_key: {file: [a]}}}", "judge: {llm: 7}", "judge: [x]"]
    )
    def test_what_is_wrong_is_still_refused(self, tmp_path: Path, text: str) -> None:
        assert problems_of(write(tmp_path, text))


class TestPolicies:
    def test_the_key_is_the_name_and_the_default_is_always_there(self, tmp_path: Path) -> None:
        settings = load_settings(write(tmp_path, "policies: {strict: {mode: hold}, plain: }"))
        assert {key: policy.name for key, policy in settings.policies.items()} == {
            "default": "default",
            "strict": "strict",
            "plain": "plain",
        }

    def test_a_policy_object_gets_the_name_of_its_key(self) -> None:
        assert GuardSettings(policies={"a": Policy(mode="hold")}).policies["a"].name == "a"

    def test_unknown_policies_are_told_with_all_other_problems(self, tmp_path: Path) -> None:
        """Also while settings elsewhere, and the policy of the right name itself, are wrong."""
        path = write(
            tmp_path,
            "kafka: {client: {max_poll_records: 0}}\n"
            "policies: {strict: {mode: later}}\n"
            "default_policy: nowhere\n"
            "routes: [{tenant: a, policy: strict}, {tenant: b, policy: gone}, 7,\n"
            "  {tenant: c, policy: strikt}]\n",
        )
        found = problems_of(path)
        assert set(found) == {
            "kafka.client.max_poll_records",
            "policies.strict.mode",
            "routes.2",
            "routes.1.policy",
            "routes.3.policy",
            "default_policy",
        }
        assert f"{path}:3: default_policy = 'nowhere'" in found["default_policy"]
        assert "did you mean strict?" in found["routes.3.policy"]

    def test_a_name_that_differs_from_the_key_is_an_error(self, tmp_path: Path) -> None:
        assert "policies.a.name" in problems_of(write(tmp_path, "policies: {a: {name: b}}"))


# ----------------------------------------------------------------------------- what is shown, and the example

EXAMPLE = Path(__file__).parents[3] / "guardrail.example.yaml"


class TestShow:
    @pytest.mark.parametrize(
        ("url", "shown"),
        [
            ("https://host/v1?key=sk-hidden&b=c", "https://host/v1?key=**********&b=**********"),
            ("https://host/v1?sk-hidden", "https://host/v1?**********"),
            ("https://host:1/v1", "https://host:1/v1"),
        ],
    )
    def test_what_stands_in_the_query_of_a_url_is_masked(self, tmp_path: Path, url: str, shown: str) -> None:
        path = write(tmp_path, f"judge: {{llm: {{base_url: '{url}'}}}}")
        assert load_settings(path).masked()["judge"]["llm"]["base_url"] == shown

    def test_what_is_shown_can_be_loaded_again(self, tmp_path: Path) -> None:
        settings = load_settings(EXAMPLE)
        assert load_settings(write(tmp_path, yaml.safe_dump(settings.masked(), sort_keys=False))) == settings


class TestExample:
    def test_it_fits_on_two_screens(self) -> None:
        lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 120
        assert max(map(len, lines)) <= 120

    def test_what_is_commented_out_can_be_used(self, tmp_path: Path) -> None:
        """Together with what it needs: SASL needs a protocol that has it."""
        text = EXAMPLE.read_text(encoding="utf-8").replace("PLAINTEXT ", "SASL_SSL ")
        whole, found = re.subn(r"^( {0,4})# ([a-z_]+: )", r"\1\2", text, flags=re.MULTILINE)
        settings = load_settings(write(tmp_path, whole))
        assert found == 9
        assert settings.judge.cache.signing_key is not None
        assert settings.kafka.sasl_mechanism == "SCRAM-SHA-512"

    def test_what_is_not_an_example_is_the_default(self) -> None:
        settings = load_settings(EXAMPLE)
        assert set(settings.policies) == {"default", "medical", "medical-strict", "shadow"}
        assert settings.routes
        assert settings.challengers
        defaults = {"policies": {"default": settings.policies["default"]}, "routes": (), "challengers": ()}
        assert settings.model_copy(update=defaults) == GuardSettings()

    def test_its_routes_lead_to_its_policies(self) -> None:
        router = load_settings(EXAMPLE).router()
        assert router.choose("leaflets", None).name == "medical"
        assert router.choose("support-beta", "acme").name == "shadow"
        assert router.choose("support-beta", None).name == "default"
        assert router.choose("any", "one", "experimental-7").name == "shadow"

    def test_every_field_is_described(self) -> None:
        every = list(places(Place((), GuardSettings)))
        assert [each.dotted for each in every if each.field and not each.field.description] == []


def test_settings_need_no_extra() -> None:
    """A plain install has none of these, and reads its configuration all the same."""
    absent = ("redis", "torch", "transformers", "aiohttp", "httpx_sse")
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({absent!r})); "
        "import guardrail.cli, consumers.guard; from consumers.settings import GuardSettings; GuardSettings()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# -------------------------------------------------------------------------------- policies that extend others


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
