"""Configuration: sources and their order, and errors that say what to do."""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
import yaml
from pydantic import BaseModel

from guardrail.config import Settings, SettingsError, load_settings
from guardrail.config.paths import anchored
from guardrail.errors import ConfigError
from guardrail.events import Severity, Verdict
from guardrail.judges.classifier.settings import HhemSettings
from guardrail.judges.settings import JudgeSettings
from guardrail.policy import Policy

EXAMPLE = Path(__file__).parents[2] / "guardrail.example.yaml"


@pytest.fixture(autouse=True)
def _no_settings_in_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.upper().startswith("GUARDRAIL_"):
            monkeypatch.delenv(name)


def write(folder: Path, text: str) -> Path:
    path = folder / "guardrail.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def _paths_in(model: type[BaseModel], prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The settings below ``model`` that are moved when a file's folder is."""
    for name, field in model.model_fields.items():
        if anchored({name: "x"}, model, Path("/f")) != {name: "x"}:
            yield (*prefix, name)
        for inner in _models(field.annotation):
            yield from _paths_in(inner, (*prefix, name))


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in get_args(annotation):
        yield from _models(each)


def _absent(model: type[BaseModel], given: list[Any], prefix: str = "") -> list[str]:
    """The settings of ``model`` that none of the mappings ``given`` names; every mapping is of that model."""
    absent = []
    for name, field in model.model_fields.items():
        # A rule is written as one line, and a policy's name is its key.
        if prefix.startswith("policies.") and name in {"rules", "name"}:
            continue
        values = [each[name] for each in given if isinstance(each, Mapping) and name in each]
        if not values:
            absent.append(prefix + name)
            continue
        for inner in _models(field.annotation):
            in_mapping = get_origin(field.annotation) is dict
            below = [v for value in values for v in (value.values() if in_mapping else _items(value))]
            absent += _absent(inner, below, f"{prefix}{name}.")
    return absent


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def problems_of(path: Path | None, overrides: Mapping[str, Any] | None = None) -> dict[str, str]:
    """The message of every problem, by path."""
    with pytest.raises(SettingsError) as caught:
        load_settings(path, overrides)
    return {problem.path: str(problem) for problem in caught.value.problems}


class TestSources:
    def test_without_any_source_all_is_default(self) -> None:
        assert load_settings() == Settings()
        assert Settings().policies == {"default": Policy()}

    @pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "policies:\nroutes:\n"])
    def test_an_empty_file_is_all_defaults(self, tmp_path: Path, text: str) -> None:
        assert load_settings(write(tmp_path, text)) == Settings()

    def test_the_file_may_be_named_by_text(self, tmp_path: Path) -> None:
        assert load_settings(str(write(tmp_path, "kafka: {group_id: a}"))).kafka.group_id == "a"

    def test_environment_beats_file_and_overrides_beat_both(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = write(tmp_path, "kafka: {group_id: file, client_id: file, bootstrap_servers: 'file:1'}")
        monkeypatch.setenv("GUARDRAIL_KAFKA__GROUP_ID", "environment")
        monkeypatch.setenv("GUARDRAIL_KAFKA__CLIENT_ID", "environment")
        kafka = load_settings(path, {"kafka": {"client_id": "override"}}).kafka
        assert (kafka.bootstrap_servers, kafka.group_id, kafka.client_id) == (
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
        monkeypatch.setenv("GUARDRAIL_POLICIES__STRICT_EU__CREDITS__PARTIALLY_SUPPORTED", "0.25")
        monkeypatch.setenv("GUARDRAIL_POLICIES__STRICT_EU__WEIGHTS__CRITICAL", "9")
        policies = load_settings(path).policies
        assert set(policies) == {"default", "Strict-EU"}
        policy = policies["Strict-EU"]
        assert (policy.name, policy.mode, policy.flag_below) == ("Strict-EU", "hold", 0.95)
        assert policy.credits[Verdict.PARTIALLY_SUPPORTED] == 0.25
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
        assert Settings().kafka.group_id == "guardrail"

    def test_names_that_only_begin_alike_are_left_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Kubernetes sets such variables for a service called guardrail."""
        for name in ("GUARDRAIL_SERVICE_HOST", "GUARDRAIL_PORT_8080_TCP", "GUARDRAIL_KAFKA_SERVICE_PORT"):
            monkeypatch.setenv(name, "tcp://10.0.0.1:8080")
        assert load_settings() == Settings()

    def test_a_date_as_version_is_text(self, tmp_path: Path) -> None:
        path = write(tmp_path, "policies: {default: {version: 2026-01-15}}")
        assert load_settings(path).policies["default"].version == "2026-01-15"

    def test_settings_can_not_be_changed(self) -> None:
        with pytest.raises(ValueError, match="frozen"):
            Settings().default_policy = "other"  # type: ignore[misc]


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
kafka: {security_protocol: SASL_SSL, ssl_cafile: ca.pem, sasl_username: me, sasl_password_file: /run/secret}
judge:
  local: {verifier: {path: verifier}, parameters_path: ../parameters.json}
  llm:
    api_key_file: key
    prompts: {user: user.md}
    examples: examples.yaml
    fallbacks: [{model: b, api_key_file: other-key}]
  hhem: {model: acme/hhem, tokenizer: ./flan}
  classifier: {model: ../models/nli, tokenizer: acme/tokens, cache_dir: cache}
  command: {argv: [./check, ./a], cwd: work}
  cache: {redis: {password_file: redis-password}}
  self_judging: {alternative: {model: c, base_url: 'https://c/v1', api_key_file: c-key}}
""",
        )
        monkeypatch.chdir("/")
        settings = load_settings(path)
        judge, kafka = settings.judge, settings.kafka
        assert (kafka.ssl_cafile, kafka.sasl_password_file) == (folder / "ca.pem", Path("/run/secret"))
        assert judge.local.verifier.path == folder / "verifier"
        assert judge.local.parameters_path == folder / "../parameters.json"
        assert judge.llm.api_key_file == folder / "key"
        assert judge.llm.prompts.user == folder / "user.md"
        assert judge.llm.examples == ()
        assert judge.llm.fallbacks[0].api_key_file == folder / "other-key"
        assert (judge.hhem.model, judge.hhem.tokenizer) == ("acme/hhem", str(folder / "flan"))
        assert judge.classifier.model == str(folder / "../models/nli")
        assert (judge.classifier.tokenizer, judge.classifier.cache_dir) == ("acme/tokens", folder / "cache")
        assert judge.command.argv == (str(folder / "check"), "./a")
        assert judge.command.cwd == folder / "work"
        assert judge.cache.redis is not None
        assert judge.cache.redis.password_file == folder / "redis-password"
        alternative = judge.alternative_llm()
        assert alternative is not None
        assert alternative.api_key_file == folder / "c-key"

    def test_of_a_file_named_from_the_current_folder_and_of_a_link(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "data").mkdir()
        write(tmp_path / "data", "judge: {llm: {api_key_file: key}}")
        (tmp_path / "guardrail.yaml").symlink_to(tmp_path / "data" / "guardrail.yaml")
        monkeypatch.chdir(tmp_path)
        settings = load_settings(Path("guardrail.yaml"))
        monkeypatch.chdir("/")
        assert settings.judge.llm.api_key_file == tmp_path / "key"

    def test_those_of_the_environment(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GUARDRAIL_JUDGE__LLM__API_KEY_FILE", "key")
        assert load_settings(write(tmp_path, "")).judge.llm.api_key_file == Path("key")

    def test_every_path_there_is_is_known(self) -> None:
        """A setting whose type hides a path from the walk would stay relative to the current folder."""
        schema = Settings.model_json_schema()
        named = {
            name
            for model in (schema, *schema["$defs"].values())
            for name, field in model.get("properties", {}).items()
            if '"format": "path"' in json.dumps(field)
        }
        walked = {path[-1] for path in _paths_in(Settings)}
        assert named - walked == set()

    @pytest.mark.parametrize("text", ["judge: {llm: {api_key_file: [a]}}", "judge: {llm: 7}", "judge: [x]"])
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

    def test_routes_choose(self, tmp_path: Path) -> None:
        path = write(tmp_path, "policies: {strict: {}}\nroutes: [{tenant: acme, policy: strict}]")
        router = load_settings(path).router()
        assert router.choose(None, "acme").name == "strict"
        assert router.choose("any", None).name == "default"

    def test_a_policy_object_gets_the_name_of_its_key(self) -> None:
        assert Settings(policies={"a": Policy(mode="hold")}).policies["a"].name == "a"

    def test_unknown_policies_are_named_with_their_place(self, tmp_path: Path) -> None:
        path = write(tmp_path, "policies: {strict: {}}\nroutes:\n  - {tenant: a, policy: strikt}\n")
        message = problems_of(path)["routes.0.policy"]
        assert f"{path}:3" in message
        assert "'strikt'" in message
        assert "did you mean strict?" in message
        assert "default_policy" in problems_of(None, {"default_policy": "nowhere"})

    def test_unknown_policies_are_told_with_all_other_problems(self, tmp_path: Path) -> None:
        """Also while settings elsewhere, and the policy of the right name itself, are wrong."""
        path = write(
            tmp_path,
            "kafka: {max_poll_records: 0}\n"
            "policies: {strict: {mode: later}}\n"
            "default_policy: nowhere\n"
            "routes: [{tenant: a, policy: strict}, {tenant: b, policy: gone}, 7,\n"
            "  {tenant: c, policy: strikt}]\n",
        )
        found = problems_of(path)
        assert set(found) == {
            "kafka.max_poll_records",
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


class TestProblems:
    def test_all_are_told_at_once_with_line_value_and_remedy(self, tmp_path: Path) -> None:
        path = write(
            tmp_path,
            """\
kafka:
  bootstrap_servrs: a:1
  max_poll_records: 0
judge:
  kind: locl
policies:
  strict:
    version: 2
    flag_below: 1.5
    rules:
      - "verdict CONTRADICTED: block"
      - "verdict CONTRADICTED and severity >= majr: block"
""",
        )
        found = problems_of(path)
        assert list(found) == [
            "kafka.max_poll_records",
            "kafka.bootstrap_servrs",
            "judge.kind",
            "policies.strict.version",
            "policies.strict.rules.1.min_severity",
            "policies.strict.flag_below",
        ]
        assert f"{path}:9: policies.strict.flag_below = 1.5" in found["policies.strict.flag_below"]
        assert "give 1.0 or less" in found["policies.strict.flag_below"]
        assert f"{path}:2" in found["kafka.bootstrap_servrs"]
        assert "did you mean kafka.bootstrap_servers?" in found["kafka.bootstrap_servrs"]
        assert "did you mean local?" in found["judge.kind"]
        assert 'put it in quotes: "2"' in found["policies.strict.version"]
        assert f"{path}:12" in found["policies.strict.rules.1.min_severity"]
        assert "did you mean major?" in found["policies.strict.rules.1.min_severity"]

    @pytest.mark.parametrize(
        ("text", "path", "told"),
        [
            ("judge: {llm: {fallbacks: {model: x}}}", "judge.llm.fallbacks", "settings by name stand here"),
            ("judge: {command: {argv: 'x'}}", "judge.command.argv", "here stands a single value"),
        ],
    )
    def test_where_a_list_is_meant_that_is_said(
        self, tmp_path: Path, text: str, path: str, told: str
    ) -> None:
        found = problems_of(write(tmp_path, text))
        assert list(found) == [path]
        assert f"{told}, where a list is meant" in found[path]
        assert "write a list" in found[path]
        assert "tuple" not in found[path]

    def test_a_misspelt_key_is_one_problem_and_what_its_section_lacks_none(self, tmp_path: Path) -> None:
        path = write(tmp_path, "judge: {cascade: {bands: {criticl: {accept_support: 0.9}}}}")
        found = problems_of(path)
        assert list(found) == ["judge.cascade.bands.criticl"]
        assert "did you mean critical?" in found["judge.cascade.bands.criticl"]

    def test_counts_of_tokens_are_no_secrets(self, tmp_path: Path) -> None:
        path = write(
            tmp_path,
            "judge: {llm: {max_output_tokens: 10}, command: {token_file: [x]},"
            " classifier: {tokenizer_revision: 12}}",
        )
        found = problems_of(path)
        assert "judge.llm.max_output_tokens = 10:" in found["judge.llm.max_output_tokens"]
        assert "tokenizer_revision = 12:" in found["judge.classifier.tokenizer_revision"]
        assert "(hidden)" in found["judge.command.token_file"]

    def test_a_setting_in_the_wrong_section_is_sent_to_its_own(self, tmp_path: Path) -> None:
        message = problems_of(write(tmp_path, "group_id: a"))["group_id"]
        assert "did you mean kafka.group_id?" in message

    @pytest.mark.parametrize(
        ("text", "path", "remedy"),
        [
            ("kafka: 5", "kafka", "names: bootstrap_servers, group_id, client_id, …"),
            ("policies: {a: {rules: ['always: explode']}}", "action", "write one of release, flag, redact,"),
            (
                "policies: {a: {rules: [{reason: [price]}]}}",
                "action",
                "add it, one of release, flag, redact,",
            ),
            ("limits: {max_sessions: many}", "limits.max_sessions", "write a whole number:"),
            ("logging: {log_texts: perhaps}", "logging.log_texts", "write true or false:"),
            ("kafka: {bootstrap_servers: kafka}", "kafka.bootstrap_servers", "write HOST:PORT"),
        ],
    )
    def test_the_remedy_says_what_to_write(self, tmp_path: Path, text: str, path: str, remedy: str) -> None:
        (message,) = (
            message for where, message in problems_of(write(tmp_path, text)).items() if where.endswith(path)
        )
        assert remedy in message.partition("remedy: ")[2]

    @pytest.mark.parametrize(
        "servers", ["kafka", "kafka:", "a:1,b", "a:1,", "::1", "[::1]", "a:0", "a:70000"]
    )
    def test_every_server_has_a_port(self, servers: str) -> None:
        assert (
            "write HOST:PORT"
            in problems_of(None, {"kafka": {"bootstrap_servers": servers}})["kafka.bootstrap_servers"]
        )

    def test_servers_with_ports_are_taken_as_they_are(self) -> None:
        servers = "kafka-1:9092, 10.0.0.1:1,[::1]:65535"
        assert (
            load_settings(None, {"kafka": {"bootstrap_servers": servers}}).kafka.bootstrap_servers == servers
        )

    def test_bounds_between_settings(self, tmp_path: Path) -> None:
        message = problems_of(write(tmp_path, "policies: {a: {block_below: 0.9}}"))["policies.a"]
        assert "block_below (0.9) is above flag_below (0.8)" in message
        assert "remedy: " in message
        assert "lower block_below" in message

    def test_the_source_of_a_wrong_value_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GUARDRAIL_LIMITS__MAX_SESSIONS", "many")
        found = problems_of(None, {"kafka": {"max_poll_records": -1}})
        assert "environment variable GUARDRAIL_LIMITS__MAX_SESSIONS" in found["limits.max_sessions"]
        assert "command line" in found["kafka.max_poll_records"]

    @pytest.mark.parametrize(
        ("name", "remedy"),
        [
            ("GUARDRAIL_KAFKA_GROUP_ID", "GUARDRAIL_KAFKA__GROUP_ID"),
            ("GUARDRAIL_JUDGE_LLM__MODEL", "GUARDRAIL_JUDGE__LLM__MODEL"),
            ("GUARDRAIL_KAFAK__GROUP_ID", "GUARDRAIL_KAFKA__"),
            ("GUARDRAIL_DEFAULT_POLCY", "GUARDRAIL_DEFAULT_POLICY"),
            ("GUARDRAIL_NONSENSE__A", "the sections are kafka, limits"),
        ],
    )
    def test_misspelt_variables(self, monkeypatch: pytest.MonkeyPatch, name: str, remedy: str) -> None:
        monkeypatch.setenv(name, "a")
        assert remedy in problems_of(None)[name]

    def test_a_misspelt_field_in_a_variable_names_the_variable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GUARDRAIL_KAFKA__GROUP_IDD", "a")
        message = problems_of(None)["kafka.group_idd"]
        assert "GUARDRAIL_KAFKA__GROUP_IDD" in message
        assert "did you mean kafka.group_id?" in message

    def test_a_variable_that_is_no_json(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GUARDRAIL_ROUTES", "acme=strict")
        assert "JSON" in problems_of(None)["GUARDRAIL_ROUTES"]

    @pytest.mark.parametrize(
        "text",
        [
            "judge: {llm: {api_key: [sk-hidden]}}",
            "judge: {llm: {api_kee: sk-hidden}}",
            "kafka: {sasl_password: {a: sk-hidden}}",
            "judge: {llm: {extra_headers: {x: [sk-hidden]}}}",
            "judge: {llm: {base_url: 'https://me:sk-hidden@host/v1'}}",
            "judge: {llm: {base_url: 'me:sk-hidden@host/v1'}}",
            "judge: {llm: {base_url: 'me:a; sk-hidden b@host/v1'}}",
            "judge: {cache: {redis: {url: 'me:sk-hidden@host:6379/0'}}}",
            "judge: {cache: {redis: {url: ':sk-hidden@host:6379/0'}}}",
            "judge: {llm: {base_url: 'https://me:sk-hidden/a b@host/v1'}}",
            "judge: {llm: {extra_headers: {x: 'sk-hidden ü'}}}",
            "judge: {command: {headers: {x: 'sk-hidden ü'}}}",
            "judge: {command: {url: 'me:sk-hidden@host/judge'}}",
            "judge: {cache: {redis: {url: 'redis://host/0?password=sk-hidden'}}}",
            "judge: {cache: {redis: {url: 'http://host/0?a=b&password=sk-hidden'}}}",
            "judge: {self_judging: {alternative: {model: a, base_url: 'me:sk-hidden@host/v1'}}}",
            "kafka: {bootstrap_servers: 'me:sk-hidden@host'}",
        ],
    )
    def test_secrets_are_in_no_message(self, tmp_path: Path, text: str) -> None:
        assert all("sk-hidden" not in message for message in problems_of(write(tmp_path, text)).values())

    def test_a_url_with_an_at_is_not_repeated_and_still_told_how_to_write(self, tmp_path: Path) -> None:
        message = problems_of(write(tmp_path, "judge: {llm: {base_url: 'me:sk-hidden@host/v1'}}"))
        assert "base_url (a value with '@' is not shown) is no http(s) URL" in message["judge.llm.base_url"]
        assert "https://HOST[:PORT]/v1" in message["judge.llm.base_url"]

    def test_hostile_values_are_escaped_and_short(self, tmp_path: Path) -> None:
        text = yaml.safe_dump({"judge": {"kind": "\x1b[31m" + "a" * 10_000}, "\x1b]0;x\x07": 1})
        for message in problems_of(write(tmp_path, text)).values():
            assert "\x1b" not in message
            assert "\x07" not in message
            assert len(message) < 1_000


class TestFiles:
    def test_a_missing_file_is_told_with_a_remedy(self, tmp_path: Path) -> None:
        with pytest.raises(
            ConfigError, match=r"nothere\.yaml: the file does not exist\n  remedy: check the path"
        ):
            load_settings(tmp_path / "nothere.yaml")

    def test_a_folder_is_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="can't be read"):
            load_settings(tmp_path)

    def test_a_key_given_twice_names_both_lines(self, tmp_path: Path) -> None:
        path = write(tmp_path, "kafka:\n  group_id: a\n  client_id: b\n  group_id: c\n")
        message = problems_of(path)["kafka.group_id"]
        assert f"{path}:4" in message
        assert "first on line 2" in message

    @pytest.mark.parametrize(
        "text",
        [
            "kafka: [",
            "a: b: c",
            "\t- x",
            "kafka: !!python/name:os.system",
            "1: a",
            "on: {}",
            "?",
            "a: \x01",
            "&a [*a]",
        ],
    )
    def test_what_is_no_yaml_mapping(self, tmp_path: Path, text: str) -> None:
        assert problems_of(write(tmp_path, text))

    def test_bytes_that_are_no_text(self, tmp_path: Path) -> None:
        path = tmp_path / "guardrail.yaml"
        path.write_bytes(b"kafka: \xff\xfe\xff")
        assert "not valid YAML" in problems_of(path)[""]

    def test_aliases_that_stand_for_billions_of_values_are_refused_at_once(self, tmp_path: Path) -> None:
        lines = ["a0: &a0 [" + ", ".join(["x"] * 10) + "]"]
        lines += [f"a{i}: &a{i} [" + ", ".join([f"*a{i - 1}"] * 10) + "]" for i in range(1, 12)]
        assert "more than 100000 values" in problems_of(write(tmp_path, "\n".join(lines)))[""]

    def test_a_few_aliases_are_fine(self, tmp_path: Path) -> None:
        text = """
            routes: &routes
              - &one {route: a, policy: default}
              - {<<: *one, route: b}
            """
        assert len(load_settings(write(tmp_path, textwrap.dedent(text))).routes) == 2

    def test_deep_nesting_is_an_error_not_a_crash(self, tmp_path: Path) -> None:
        assert problems_of(write(tmp_path, "kafka: " + "[" * 5_000 + "]" * 5_000))


class TestShow:
    def test_secrets_are_masked(self, tmp_path: Path) -> None:
        path = write(
            tmp_path,
            "kafka: {security_protocol: SASL_SSL, sasl_username: me, sasl_password: sk-hidden}\n"
            "judge: {llm: {api_key: sk-hidden, extra_headers: {x: sk-hidden}}}\n",
        )
        shown = yaml.safe_dump(load_settings(path).masked())
        assert "sk-hidden" not in shown
        assert "**********" in shown

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
    def test_it_covers_every_section_and_every_setting_of_kafka_and_limits(self) -> None:
        given = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
        assert set(given) == set(Settings.model_fields)
        assert set(given["limits"]) == set(Settings().masked()["limits"])
        secrets = {"sasl_password", "ssl_key_password", "sasl_oauth_client_secret"}
        assert set(given["kafka"]) | secrets == set(Settings().masked()["kafka"])
        assert set(given["policies"]["default"]) | {"name", "severity"} == set(Policy.model_fields)

    def test_it_holds_every_setting(self) -> None:
        """Those commented out among them, and those of lists, mappings and sections that may be missing."""
        text = EXAMPLE.read_text(encoding="utf-8")
        whole = yaml.safe_load(re.sub(r"^( {2,4})# ([a-z_]+: )", r"\1\2", text, flags=re.MULTILINE))
        example = re.findall(r"^# {3}(judge:\n(?:#.*\n)+)", text, re.MULTILINE)
        [shown] = [yaml.safe_load(re.sub(r"^# {3}", "", each, flags=re.MULTILINE)) for each in example]
        assert _absent(Settings, [whole, shown]) == []
        Settings.model_validate(shown)
        assert JudgeSettings.model_validate(whole["judge"]).hhem == HhemSettings()

    def test_what_is_not_an_example_is_the_default(self) -> None:
        settings = load_settings(EXAMPLE)
        assert set(settings.policies) == {"default", "medical", "shadow"}
        assert settings.routes
        assert (
            settings.model_copy(update={"policies": {"default": settings.policies["default"]}, "routes": ()})
            == Settings()
        )

    def test_its_routes_lead_to_its_policies(self) -> None:
        router = load_settings(EXAMPLE).router()
        assert router.choose("leaflets", None).name == "medical"
        assert router.choose("support-beta", "acme").name == "shadow"
        assert router.choose("support-beta", None).name == "default"

    def test_every_field_is_described(self) -> None:
        def undescribed(model: type[BaseModel], prefix: str = "") -> list[str]:
            found = []
            for name, field in model.model_fields.items():
                found += [] if field.description else [prefix + name]
                for inner in (field.annotation, *get_args(field.annotation)):
                    if isinstance(inner, type) and issubclass(inner, BaseModel):
                        found += undescribed(inner, f"{prefix}{name}.")
            return found

        assert undescribed(Settings) == []
