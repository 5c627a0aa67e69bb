"""Wrong configuration: every problem is told, with its place and a remedy."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import yaml

import guardrail.config
from consumers.settings import KafkaSettings, load_settings
from guardrail.errors import ConfigError
from tests.support.config_files import problems_of, write


class TestProblems:
    def test_all_are_told_at_once_with_line_value_and_remedy(self, tmp_path: Path) -> None:
        path = write(
            tmp_path,
            """\
kafka:
  bootstrap_servrs: a:1
  client: {max_poll_records: 0}
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
            "kafka.client.max_poll_records",
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
            (
                "judge: {llm: {fallbacks: {model: x}}}",
                "judge.llm.fallbacks",
                "expected a list, found a mapping",
            ),
            (
                "judge: {local: {languages: 'en'}}",
                "judge.local.languages",
                "expected a list, found a single value",
            ),
        ],
    )
    def test_where_a_list_is_meant_that_is_said(
        self, tmp_path: Path, text: str, path: str, told: str
    ) -> None:
        found = problems_of(write(tmp_path, text))
        assert list(found) == [path]
        assert told in found[path]
        assert "write a list" in found[path]
        assert "tuple" not in found[path]

    def test_counts_of_tokens_are_no_secrets(self, tmp_path: Path) -> None:
        path = write(
            tmp_path,
            "judge: {llm: {max_output_tokens: 10}, http: {headers: {a: [x]}}}",
        )
        found = problems_of(path)
        assert "judge.llm.max_output_tokens = 10:" in found["judge.llm.max_output_tokens"]
        assert "(hidden)" in found["judge.http.headers.a"]

    @pytest.mark.parametrize(
        ("text", "path", "remedy"),
        [
            ("kafka: 5", "kafka", "names: bootstrap_servers, group_id, topics, …"),
            ("policies: {a: {rules: ['always: explode']}}", "action", "write one of release, flag, redact,"),
            (
                "policies: {a: {severity: {patterns: [{reason: recall, pattern: recall}]}}}",
                "severity",
                "add it, one of minor, normal, major,",
            ),
            (
                "policies: {a: {rules: ['always: flag', {action: flag}]}}",
                "policies.a.rules.1",
                "write it as 'verdict CONTRADICTED and severity >= major: block'",
            ),
            ("policies: {a: {rules: ['always: relase']}}", "action", "did you mean release? Or write one of"),
            # As near to "release" as some slips are, and the opposite.
            ("policies: {a: {rules: ['always: delete']}}", "action", "write one of release, flag, redact,"),
            (
                "judge: {llm: {model: x, base: 'http://h'}}",
                "judge.llm.base",
                "did you mean judge.llm.base_url?",
            ),
            ("limits: {max_bytes: many}", "limits.max_bytes", "write a whole number:"),
            ("group_id: a", "group_id", "did you mean kafka.group_id?"),
            # Of what such a section lacks nothing is said.
            (
                "judge: {cascade: {bands: {criticl: {accept_support: 0.9}}}}",
                "judge.cascade.bands.criticl",
                "did you mean critical?",
            ),
            ("logging: {log_texts: perhaps}", "logging.log_texts", "write true or false:"),
        ],
    )
    def test_the_remedy_says_what_to_write(self, tmp_path: Path, text: str, path: str, remedy: str) -> None:
        [(where, message)] = problems_of(write(tmp_path, text)).items()
        assert where.endswith(path)
        told = message.partition("remedy: ")[2]
        assert remedy in told
        assert ("did you mean" in told) is ("did you mean" in remedy)

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

    @pytest.mark.parametrize(
        ("rule", "wrong", "remedy"),
        [
            ("finding figure_clash: block", "input should be 'figure_conflict'", "figure_conflict"),
            ("support < 0.1 or verdict UNSUPPORTED: flag", "has an 'or'", "write two rules"),
            ("verdict UNSUPPORTED OR CONTRADICTED: flag", "has an 'or'", "verdict A|B"),
            (
                "reason dosis|price: block",
                "no claim ever has the reason 'dosis'",
                "write one of dosage, safety",
            ),
            ("reason dosages: block", "no claim ever has the reason 'dosages'", "did you mean dosage?"),
            ("contradiction > 0.8: block", "can't be read", "contradiction >= 0.8"),
            ("support >= 0.6 and support < 0.4: flag", "never 0.6 or more and under 0.4", "lower the first"),
            ("severity >= critical and severity <= minor: flag", "never critical or more and minor", "swap"),
        ],
    )
    def test_a_rule_that_says_nothing_sensible(
        self, tmp_path: Path, rule: str, wrong: str, remedy: str
    ) -> None:
        [message] = problems_of(write(tmp_path, f"policies: {{a: {{rules: ['{rule}']}}}}")).values()
        assert wrong in message.partition("remedy: ")[0]
        assert remedy in message.partition("remedy: ")[2]

    def test_reasons_are_those_that_the_policy_gives(self, tmp_path: Path) -> None:
        own = "patterns: [{reason: recall, severity: major, keywords: [recalled]}]"
        rule = "rules: ['reason recall|price: block']"
        fine = write(tmp_path, f"policies: {{a: {{severity: {{{own}}}, {rule}}}}}")
        assert load_settings(fine).policies["a"].rules[0].reason == ("recall", "price")
        without = write(
            tmp_path, f"policies: {{a: {{severity: {{{own}, disabled_reasons: [price]}}, {rule}}}}}"
        )
        assert "no claim ever has the reason 'price'" in problems_of(without)["policies.a"]
        unknown = write(tmp_path, "policies: {a: {severity: {disabled_reasons: [permissions]}}}")
        assert "did you mean permission?" in problems_of(unknown)["policies.a"]

    @pytest.mark.parametrize(
        ("pattern", "why", "remedy"),
        [
            ("[[", "missing ]", "write it in RE2's syntax"),
            (r"price(?= list)", "(?=", "no look-around"),
            (r"(\w)\1", r"\1", "back-references"),
            (r"\w++", "++", "possessive quantifiers"),
            ("a{,3}b", "RE2 takes {,n} for text", "write {0,n}"),
            (r"\bC\+\+\b", "needs a letter or digit beside it", "leave it out there"),
            (r"€\b", "needs a letter or digit beside it", "leave it out there"),
            (r"\b|a", "needs a letter or digit beside it", "leave it out there"),
            (r"price\b.*list", r"\b may only stand at the beginning or end", r"inside write \W"),
        ],
    )
    def test_an_expression_that_linear_time_forbids_is_told_of_in_one_place(
        self, tmp_path: Path, pattern: str, why: str, remedy: str, capfd: pytest.CaptureFixture[str]
    ) -> None:
        severity = f"{{patterns: [{{reason: r, severity: major, pattern: '{pattern}'}}]}}"
        path = write(tmp_path, f"policies: {{a: {{severity: {severity}}}}}")
        [(setting, message)] = problems_of(path).items()
        assert setting == "policies.a.severity.patterns.0.pattern"
        assert repr(pattern) in message
        assert why in message.partition("\n  remedy: ")[0]
        assert remedy in message.partition("\n  remedy: ")[2]
        assert capfd.readouterr() == ("", "")

    @pytest.mark.parametrize(
        ("policy", "wrong", "remedy"),
        [
            (
                "rules: ['always: release', 'reason price: block']",
                "'reason price: block' behind it none",
                "move",
            ),
            ("rules: ['always: block', 'verdict UNVERIFIED: flag']", "behind it none", "move"),
            ("rules_before: ['severity >= minor: release']", "'always: release' decides every claim", "move"),
            (
                "rules_before: ['always: release'], rules: ['finding link_absent: flag']",
                "behind it none",
                "move",
            ),
            ("rules: ['verdict UNVERIFIED: block'], on_unverified: flag", "never sees", "fail_closed"),
            (
                "rules: ['verdict UNSUPPORTED|UNVERIFIED: flag'], on_unverified: fail_open",
                "milder",
                "finding",
            ),
            ("weights: {minor: 0, normal: 0, major: 0, critical: 0}", "no claim counts", "a weight"),
            (
                "severity: {patterns: [{reason: r, severity: major}]}",
                "neither pattern nor keywords",
                "give one",
            ),
            (
                "severity: {patterns: [{reason: r, severity: major, pattern: ''}]}",
                "finds nothing",
                "give one",
            ),
            (
                "severity: {patterns: [{reason: r, severity: major, keywords: [recall, ' ']}]}",
                "' ' has no letter or digit and finds nothing",
                "take it out",
            ),
            (
                "severity: {patterns: [{reason: r, severity: major, keywords: ['!!!']}]}",
                "finds nothing",
                "take it out",
            ),
            (
                "severity: {patterns: [{reason: r, severity: critical, pattern: 'a*'}]}",
                "it matches the empty text, and thereby every claim",
                "let it ask for one character at least",
            ),
        ],
    )
    def test_what_would_silently_do_nothing_is_refused(
        self, tmp_path: Path, policy: str, wrong: str, remedy: str
    ) -> None:
        [message] = problems_of(write(tmp_path, f"policies: {{a: {{{policy}}}}}")).values()
        assert wrong in message
        assert remedy in message.partition("remedy: ")[2]

    @pytest.mark.parametrize(
        "policy",
        [
            "rules: ['reason price: block', 'always: release']",
            "rules: ['always: release', 'verdict UNVERIFIED: block']",
            "rules: ['always: release', 'finding judge_refused: flag'], on_unverified: fail_open",
            "rules: ['verdict UNVERIFIED: block']",
            "rules: ['verdict UNVERIFIED: flag'], on_unverified: flag",
            "weights: {minor: 0, normal: 0, major: 0}",
        ],
    )
    def test_what_does_something_is_not(self, tmp_path: Path, policy: str) -> None:
        assert load_settings(write(tmp_path, f"policies: {{a: {{{policy}}}}}")).policies["a"]

    def test_the_source_of_a_wrong_value_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GUARDRAIL_LIMITS__MAX_BYTES", "many")
        found = problems_of(None, {"kafka": {"client": {"max_poll_records": -1}}})
        assert "environment variable GUARDRAIL_LIMITS__MAX_BYTES" in found["limits.max_bytes"]
        assert "command line" in found["kafka.client.max_poll_records"]

    @pytest.mark.parametrize(
        ("name", "remedy"),
        [
            ("GUARDRAIL_KAFKA_GROUP_ID", "GUARDRAIL_KAFKA__GROUP_ID"),
            ("GUARDRAIL_JUDGE_LLM__MODEL", "GUARDRAIL_JUDGE__LLM__MODEL"),
            ("GUARDRAIL_KAFAK__GROUP_ID", "GUARDRAIL_KAFKA__"),
            ("GUARDRAIL_DEFAULT_POLCY", "GUARDRAIL_DEFAULT_POLICY"),
            ("GUARDRAIL_NONSENSE__A", "the sections are kafka, ops, flagged, serve, limits"),
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
            "judge: {cache: {redis_url: 'me:sk-hidden@host:6379/0'}}",
            "judge: {cache: {redis_url: ':sk-hidden@host:6379/0'}}",
            "judge: {llm: {base_url: 'https://me:sk-hidden/a b@host/v1'}}",
            "judge: {llm: {extra_headers: {x: 'sk-hidden ü'}}}",
            "judge: {http: {headers: {x: 'sk-hidden ü'}}}",
            "judge: {http: {url: 'me:sk-hidden@host/judge'}}",
            "judge: {cache: {redis_url: 'redis://:sk-hidden@host:abc/0'}}",
            "judge: {cache: {redis_url: 'http://host/0?a=b&password=sk-hidden'}}",
            "judge: {http: {headers: {x: [sk-hidden]}}}",
            "kafka: {bootstrap_servers: 'me:sk-hidden@host'}",
        ],
    )
    def test_secrets_are_in_no_message(self, tmp_path: Path, text: str) -> None:
        assert all("sk-hidden" not in message for message in problems_of(write(tmp_path, text)).values())

    def test_a_url_with_an_at_is_not_repeated_and_still_told_how_to_write(self, tmp_path: Path) -> None:
        message = problems_of(write(tmp_path, "judge: {llm: {base_url: 'me:sk-hidden@host/v1'}}"))
        assert (
            "base_url (a value with '@' is not shown) is not an http(s) URL" in message["judge.llm.base_url"]
        )
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


class TestClient:
    """``kafka.client``: what is handed to aiokafka."""

    def test_a_name_that_aiokafka_lacks_is_told_with_those_it_has(self, tmp_path: Path) -> None:
        path = write(tmp_path, "kafka:\n  client:\n    fetch_max_byte: 1\n")
        message = problems_of(path)["kafka.client.fetch_max_byte"]
        assert f"{path}:3: kafka.client.fetch_max_byte: aiokafka has no parameter of this name" in message
        assert "fetch_max_bytes" in message
        assert "sasl" not in message

    @pytest.mark.parametrize(
        ("name", "remedy"),
        [
            ("sasl_plain_password", "kafka.sasl_password"),
            ("ssl_context", "kafka.ssl_cafile"),
            ("bootstrap_servers", "set kafka.bootstrap_servers"),
            ("acks", "take it out"),
            ("enable_auto_commit", "take it out"),
        ],
    )
    def test_what_is_not_the_clients_is_refused_and_its_value_not_shown(
        self, tmp_path: Path, name: str, remedy: str
    ) -> None:
        message = problems_of(write(tmp_path, f"kafka: {{client: {{{name}: hidden-value}}}}"))[
            f"kafka.client.{name}"
        ]
        assert remedy in message
        assert "hidden-value" not in message

    def test_values_have_the_type_and_bounds_of_their_parameter(self, tmp_path: Path) -> None:
        wrong = "session_timeout_ms: 30s, max_poll_records: 0, compression_type: zip, check_crcs: 7"
        found = problems_of(write(tmp_path, f"kafka: {{client: {{{wrong}, retry_backoff_ms: -1}}}}"))
        assert "write a whole number" in found["kafka.client.session_timeout_ms"]
        assert "give 1 or more" in found["kafka.client.max_poll_records"]
        assert "gzip, snappy, lz4, zstd" in found["kafka.client.compression_type"]
        assert "write true or false" in found["kafka.client.check_crcs"]
        assert "give 0 or more" in found["kafka.client.retry_backoff_ms"]

    def test_what_is_given_stands_over_what_the_guard_sets(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("GUARDRAIL_KAFKA__CLIENT__LINGER_MS", "7")
        path = write(tmp_path, "kafka: {client: {metadata_max_age_ms: 60000}}")
        client = load_settings(path).kafka.client
        assert client == {**KafkaSettings().client, "linger_ms": 7, "metadata_max_age_ms": 60_000}


def test_the_schema_knows_the_parameters_of_the_client() -> None:
    client = KafkaSettings.model_json_schema()["properties"]["client"]
    assert client["properties"]["fetch_max_bytes"] == {
        "default": 50 * 1024 * 1024,
        "description": "A parameter of aiokafka; its documentation says more.",
        "minimum": 1_024,
        "type": "integer",
    }
    assert KafkaSettings().client.keys() < client["properties"].keys()
    assert not client["additionalProperties"]


def test_the_core_passes_over_the_section_of_kafka(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An application that judges without Kafka reads the same file and the same environment."""
    monkeypatch.setenv("GUARDRAIL_KAFKA__GROUP_ID", "a")
    path = write(tmp_path, "kafka: {nothing: known}\nlimits: {max_bytes: 7}\n")
    assert guardrail.config.load_settings(path).limits.max_bytes == 7
    assert "kafka.nothing" in problems_of(path)
