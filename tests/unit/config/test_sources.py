"""Where settings come from, and in which order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from consumers.settings import GuardSettings, load_settings
from guardrail.errors import ConfigError
from guardrail.events import Severity
from guardrail.leaves import Place, kinds, places
from guardrail.policy import Policy
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
