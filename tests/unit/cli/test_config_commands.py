"""``guardrail config``: check (also of what a start of the local judge would refuse), schema, show."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from typer.testing import CliRunner

from consumers.settings import GuardSettings, load_settings
from guardrail.cli import app
from guardrail.errors import ConfigError
from guardrail.judges.factory import build_judge
from guardrail.judges.settings import JudgeSettings
from tests.support.config_files import write
from tests.unit.cli.conftest import Check
from tests.unit.judges.model.tiny_verifier import parameters_for, write_parameters, write_verifier

EXAMPLE = Path(__file__).parents[3] / "guardrail.example.yaml"


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    return write(tmp_path, "policies:\n  default:\n    flag_below: 1.5\n")


def test_check_says_what_holds(runner: CliRunner) -> None:
    result = runner.invoke(app, ["config", "check", str(EXAMPLE)])
    assert result.exit_code == 0
    assert "medical (hold)" in result.stdout
    assert "localhost:9092" in result.stdout


def test_check_says_what_a_gateway_stands_in_front_of(runner: CliRunner, tmp_path: Path) -> None:
    path = tmp_path / "serve.yaml"
    path.write_text("serve: {upstream: 'http://vllm:8000/v1'}\n", encoding="utf-8")
    result = runner.invoke(app, ["config", "check", str(path)])
    assert "127.0.0.1:8800, in front of http://vllm:8000/v1" in result.stdout
    assert "in front of" not in runner.invoke(app, ["config", "check", str(EXAMPLE)]).stdout


def test_check_says_what_producers_may_name(runner: CliRunner, tmp_path: Path) -> None:
    path = write(tmp_path, "kafka: {producers: {tenant: acme, routes: [faq, shop]}}\n")
    told = runner.invoke(app, ["config", "check", str(path)]).stdout
    assert "producers tenant acme, routes faq, shop" in told
    assert "producers" not in runner.invoke(app, ["config", "check", str(EXAMPLE)]).stdout


def test_check_names_path_value_and_remedy_of_a_wrong_setting(runner: CliRunner, wrong: Path) -> None:
    result = runner.invoke(app, ["config", "check", str(wrong)])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert f"{wrong}:3: policies.default.flag_below = 1.5" in result.stderr
    assert "remedy: give 1.0 or less" in result.stderr


def test_check_notes_secret_files_that_can_not_be_read_here(checked: Check, tmp_path: Path) -> None:
    """They may be mounted elsewhere only: no error."""
    (tmp_path / "password").write_text("hidden-one")
    kafka = {
        "security_protocol": "SASL_SSL",
        "sasl_username": "me",
        "ssl_cafile": f"{tmp_path}/gone.pem",
        "sasl_password": {"file": f"{tmp_path}/password"},
    }
    judge = {"kind": "llm", "llm": {"api_key": {"file": f"{tmp_path}/no-key"}}}
    status, notes, _ = checked(kafka=kafka, judge=judge)
    assert status == 0
    assert [note.split(" can't be read here")[0] for note in notes] == [
        f"kafka.ssl_cafile {tmp_path}/gone.pem",
        f"judge.llm.api_key.file {tmp_path}/no-key",
    ]


SECRET = "whsec_" + "QUJD" * 8


@pytest.mark.parametrize(
    ("flagged", "says"),
    [
        ({"store": "sqlite:////no/such/dir/z.db"}, "flagged.store: /no/such/dir/z.db can't be written"),
        ({"store": "mysql://me:hidden-one@host/db"}, "flagged.store: unknown store 'mysql'"),
        ({"store": {"env": "NO_STORE"}}, "flagged.store: the environment variable NO_STORE is not set"),
        (
            {"webhook_url": "ftp://hidden-one", "webhook_secret": SECRET},
            "flagged.webhook_url: this is not an http",
        ),
        ({"webhook_url": "http://hidden-one/", "webhook_secret": SECRET}, "another host unencrypted"),
        (
            {"webhook_url": "https://host/", "webhook_secret": "hidden-one"},
            "flagged.webhook_secret: this is not",
        ),
        ({"webhook_url": "http://127.0.0.1:1/", "webhook_secret": SECRET, "store": "sqlite:///z.db"}, ""),
    ],
)
def test_check_notes_what_flagged_would_refuse_or_warn_of(
    checked: Check, flagged: dict[str, Any], says: str
) -> None:
    status, notes, _ = checked(flagged=flagged)
    assert (status, len(notes)) == (0, bool(says))
    assert says in "".join(notes)
    assert "hidden-one" not in "".join(notes)


NOT_SET = "the environment variable {} is not set"
NEAR = {"base_url": "http://near/v1"}


@pytest.mark.parametrize(
    ("judge", "notes"),
    [
        ({"kind": "llm"}, ["judge.llm.api_key: " + NOT_SET.format("OPENAI_API_KEY")]),
        ({"kind": "llm", "llm": NEAR}, []),
        (
            {"kind": "cascade", "llm": NEAR | {"api_key": {"env": "NOT_SET"}}},
            ["judge.llm.api_key: " + NOT_SET.format("NOT_SET")],
        ),
        (
            {"kind": "llm", "llm": NEAR | {"fallbacks": [{"model": "b", "api_key": {"env": "NOT_SET"}}]}},
            ["judge.llm.fallbacks.0.api_key: " + NOT_SET.format("NOT_SET")],
        ),
        (
            {"kind": "llm", "llm": NEAR | {"model": "a", "fallbacks": [{"model": "b"}, {"model": "a"}]}},
            ["judge.llm.fallbacks.1: the same model on the same server"],
        ),
        (
            {"kind": "custom", "factory": "not_there.judges:make"},
            ["judge.factory: not_there.judges:make can't be imported (ModuleNotFoundError"],
        ),
        ({"kind": "custom", "factory": "tests.support.judges:WordJudge"}, []),
        (
            {"kind": "classifier", "classifier": {"model": "/nope"}},
            ["judge.classifier.model: the folder /nope does not exist"],
        ),
        (
            {"kind": "classifier", "classifier": {"model": "a/b", "revision": "main"}},
            ["judge.classifier.revision: a/b comes from the hub without a pinned commit"],
        ),
        ({"kind": "classifier", "classifier": {"model": "a/b", "revision": "0" * 40}}, []),
        (
            {"kind": "llm", "llm": NEAR, "cache": {"redis_url": "redis://c", "signing_key": "short"}},
            ["judge.cache.signing_key: 5 characters are too few"],
        ),
        ({"kind": "local", "factory": "nope:x", "classifier": {"model": "/nope"}}, []),
    ],
)
def test_check_notes_what_a_start_here_would_miss(
    checked: Check, monkeypatch: pytest.MonkeyPatch, judge: object, notes: list[str]
) -> None:
    """It may be there where the guard runs: no error."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    status, found, errors = checked(judge=judge)
    assert status == 0, errors
    assert len(found) == len(notes)
    assert all(said.startswith(expected) for said, expected in zip(found, notes, strict=True))


PACKAGES = "torch transformers numpy onnxruntime tokenizers huggingface_hub redis"


@pytest.mark.parametrize(
    ("judge", "module", "remedy"),
    [
        ({"kind": "hhem"}, "torch", "[classifier-torch]"),
        (
            {"kind": "classifier", "classifier": {"model": "a/b", "revision": "0" * 40}},
            "huggingface_hub",
            "[classifier]",
        ),
        ({"kind": "local"}, "tokenizers", "enabled to false"),
        ({"kind": "local"}, "onnxruntime", "enabled to false"),
        ({"kind": "local"}, "numpy", "numpy is not installed"),
        (
            {"kind": "http", "http": {"url": "http://x/"}, "cache": {"redis_url": "redis://c"}},
            "redis",
            "[redis]",
        ),
    ],
)
def test_check_notes_packages_that_are_missing_here(
    checked: Check, monkeypatch: pytest.MonkeyPatch, judge: object, module: str, remedy: str
) -> None:
    found = importlib.util.find_spec
    there = importlib.machinery.ModuleSpec("there", None)

    def find(name: str, package: str | None = None) -> importlib.machinery.ModuleSpec | None:
        if name in PACKAGES.split():
            return None if name == module else there
        return found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    status, [note], _ = checked(judge=judge)
    assert status == 0
    assert "not installed" in note
    assert remedy in note


def test_check_notes_the_files_of_all_parts_in_use(checked: Check) -> None:
    """A cascade's tiers, fallbacks and the cache's server; and of no other part."""
    llm = {"api_key": {"file": "/no/a"}, "fallbacks": [{"model": "b", "api_key": {"file": "/no/b"}}]}
    judge = {
        "kind": "cascade",
        "llm": llm,
        "http": {"url": "http://own/judge", "headers": {"Authorization": {"file": "/no/x"}}},
        "cache": {"redis_url": {"file": "/no/c"}, "signing_key": {"file": "/no/d"}},
    }

    def noted(**changes: object) -> set[str]:
        status, notes, _ = checked(judge=judge | changes)
        assert status == 0
        return {note.split()[0] for note in notes if "can't be read here" in note}

    cache = {"judge.cache.redis_url.file", "judge.cache.signing_key.file"}
    assert noted() == cache | {"judge.llm.api_key.file", "judge.llm.fallbacks.0.api_key.file"}
    second = {"second": "http"}
    assert noted(cascade=second) == cache | {"judge.http.headers.Authorization.file"}
    assert noted(kind="local") == set()


@pytest.mark.parametrize(
    ("judge", "place", "told"),
    [
        ("{kind: custom}", "{file}:2", "judge.factory is not set"),
        ("{kind: http,\n  http: {headers: {}}}", "{file}:3", "judge.http.url is not set"),
        ("{kind: classifier}", "{file}:2", "judge.classifier.model is not set"),
        ("{kind: cascade, cascade: {second: http}}", "{file}:2", "judge.http.url is not set"),
        (
            "\n  kind: llm\n  budgets:\n    per_minute: {usd: 1}",
            "{file}:4",
            "judge.budgets: a budget in usd needs the price",
        ),
    ],
)
def test_what_shows_only_in_use_is_placed_too(
    runner: CliRunner, tmp_path: Path, judge: str, place: str, told: str
) -> None:
    file = write(tmp_path, f"logging: {{level: info}}\njudge: {judge}\n")
    source = tmp_path / "in.jsonl"
    source.write_text("", encoding="utf-8")
    for command in (
        ["config", "check", str(file)],
        ["run", "-c", str(file)],
        ["evaluate", str(source), "-o", str(tmp_path / "out.jsonl"), "-c", str(file)],
    ):
        result = runner.invoke(app, command)
        assert result.exit_code == 2
        assert f"error: {place.format(file=file)}: {told}" in result.stderr


def test_what_a_variable_gave_is_placed_there(runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    told = "judge.http.url is not set"
    monkeypatch.setenv("GUARDRAIL_JUDGE__KIND", "http")
    result = runner.invoke(app, ["config", "check"])
    assert f"error: environment variable GUARDRAIL_JUDGE__KIND: {told}" in result.stderr
    monkeypatch.setenv("GUARDRAIL_JUDGE__HTTP__HEADERS", "{}")
    result = runner.invoke(app, ["run"])
    assert f"error: environment variable GUARDRAIL_JUDGE__HTTP__HEADERS: {told}" in result.stderr


def test_check_tells_of_policies_that_leave_the_second_judge_no_time(
    checked: Check, runner: CliRunner, tmp_path: Path
) -> None:
    judge, quick = {"kind": "cascade"}, {"claim_timeout_ms": 400}
    status, notes, _ = checked(judge=judge, policies={"default": {"claim_timeout_ms": 5_000}, "quick": quick})
    assert status == 0
    assert [note.split()[0] for note in notes if "never asked" in note] == ["policies.quick:"]
    policies = {"default": {"claim_timeout_ms": 300}, "quick": quick}
    assert checked(judge={"kind": "local"}, policies=policies).status == 0
    status, _, errors = checked(judge=judge, policies=policies)
    result = runner.invoke(app, ["run", "-c", str(tmp_path / "guardrail.yaml")])
    assert (status, result.exit_code) == (2, 2)
    for told in (errors, " ".join(result.stderr.split())):
        assert "policies.default: the second judge of the cascade is never asked, which needs more" in told


def test_check_takes_the_environment_alone(runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARDRAIL_KAFKA__GROUP_ID", "mine")
    right = runner.invoke(app, ["config", "check"])
    assert (right.exit_code, "mine" in right.stdout) == (0, True)
    monkeypatch.setenv("GUARDRAIL_KAFKA__BOOTSTRAP_SERVERS", "kafka")
    wrong = runner.invoke(app, ["config", "check"])
    assert wrong.exit_code == 2
    assert "'kafka' has no port" in wrong.stderr


def test_the_file_may_come_from_the_environment(
    runner: CliRunner, monkeypatch: pytest.MonkeyPatch, wrong: Path
) -> None:
    monkeypatch.setenv("GUARDRAIL_CONFIG", str(wrong))
    assert runner.invoke(app, ["config", "show"]).exit_code == 2


@pytest.mark.parametrize("arguments", [[], ["--config", str(EXAMPLE)]])
def test_show_fits_the_published_schema(runner: CliRunner, arguments: list[str]) -> None:
    shown = runner.invoke(app, ["config", "show", *arguments])
    schema = runner.invoke(app, ["config", "schema"])
    assert (shown.exit_code, schema.exit_code) == (0, 0)
    jsonschema.Draft202012Validator(json.loads(schema.stdout)).validate(yaml.safe_load(shown.stdout))


def test_the_example_fits_the_published_schema(runner: CliRunner) -> None:
    schema = json.loads(runner.invoke(app, ["config", "schema"]).stdout)
    given = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8").replace("2026-01-15", '"2026-01-15"'))
    jsonschema.Draft202012Validator(schema).validate(given)


def test_show_masks_secrets_and_escapes(runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARDRAIL_JUDGE__LLM__API_KEY", "sk-hidden")
    monkeypatch.setenv("GUARDRAIL_KAFKA__CLIENT__CLIENT_ID", "a\x1b[2J")
    for form in ("yaml", "json"):
        result = runner.invoke(app, ["config", "show", "--format", form])
        assert result.exit_code == 0
        assert "sk-hidden" not in result.stdout
        assert "**********" in result.stdout
        assert "\x1b" not in result.stdout


def test_bodies_are_shown_by_name_only(runner: CliRunner, checked: Check, tmp_path: Path) -> None:
    """Any text in them may be a key."""
    body = {"top_k": 4, "logprobs": False, "route": "hidden-one", "keys": ["hidden-two", {"own": "hidden-3"}]}
    llm = {"extra_body": body, "fallbacks": [{"model": "b", "extra_body": body}]}
    http = {"headers": {"x-key": "hidden-4"}}
    judge = {"llm": llm, "http": http}
    file = write(tmp_path, json.dumps({"judge": judge}))
    result = runner.invoke(app, ["config", "show", "-c", str(file), "-f", "json"])
    assert result.exit_code == 0, result.stderr
    assert "hidden-" not in result.stdout
    mask = "**********"
    shown = json.loads(result.stdout)["judge"]
    assert shown["http"]["headers"] == {"x-key": mask}
    assert shown["llm"]["extra_body"] == {
        "top_k": 4,
        "logprobs": False,
        "route": mask,
        "keys": [mask, {"own": mask}],
    }
    assert "hidden-" not in repr(load_settings(file))
    refused = checked(judge={"http": {"headers": {"a b": "hidden-8"}}})
    assert refused.status == 2
    assert "judge.http.headers: 'a b' is not a name of a header" in refused.errors
    assert "hidden-8" not in refused.errors


def test_show_as_json_is_the_settings(runner: CliRunner) -> None:
    result = runner.invoke(app, ["config", "show", "-f", "json"])
    assert json.loads(result.stdout) == GuardSettings().masked()


def test_check_notes_what_is_allowed_and_hardly_meant(checked: Check) -> None:
    status, notes, errors = checked(
        policies={
            "a": {"flag_below": True, "claim_timeout_ms": 999_999_999_999},
            "b": {"rules": ["support < 0: block"]},
        },
        routes=[
            {"route": " leaflet ", "policy": "a"},
            {"tenant": "a.*[", "policy": "b"},
            {"route": "a-*", "policy": "b"},
        ],
    )
    assert status == 0, errors
    assert [note.split(maxsplit=1)[0] for note in notes] == [
        "policies.a.flag_below:",
        "policies.a.claim_timeout_ms:",
        "policies.b.rules.0:",
        "routes.0.route:",
        "routes.1.tenant:",
    ]


# ------------------------------------------------------------------------ the files of the local judge


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a verifier, beside the parameters that were fitted with it."""
    verifier = write_verifier(tmp_path / "verifier")
    write_parameters(verifier, parameters_for(verifier))
    return tmp_path


def local(folder: Path, **verifier: Any) -> dict[str, Any]:
    return {"kind": "local", "local": {"verifier": {"path": str(folder / "verifier"), **verifier}}}


def test_what_goes_together_is_right(checked: Check, folder: Path) -> None:
    assert checked(judge=local(folder)) == (0, [], "")


def _unknown_features(verifier: Path) -> None:
    raw = json.loads((verifier / "parameters.json").read_text(encoding="utf-8"))
    raw["read"]["combiner"]["weights"] = {"of_another_release": [0, 0, 0, 0]}
    (verifier / "parameters.json").write_text(json.dumps(raw), encoding="utf-8")


def _foreign(verifier: Path) -> None:
    write_parameters(verifier, parameters_for(verifier, sha256="0" * 64))


def _without_its_parameters(verifier: Path) -> None:
    (verifier / "parameters.json").unlink()


def _damaged(verifier: Path) -> None:
    (verifier / "tokenizer.json").write_text("{}")


def _without_its_manifest(verifier: Path) -> None:
    (verifier / "manifest.json").unlink()


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (_unknown_features, "has weights of of_another_release, which this release does not find out"),
        (_foreign, "judge.local.verifier: the parameters were fitted with tiny (sha256 000"),
        (_without_its_parameters, "judge.local.verifier: {folder}/verifier/parameters.json can't be read"),
        (_damaged, "judge.local.verifier.path: {folder}/verifier/tokenizer.json is damaged"),
        (_without_its_manifest, "judge.local.verifier.path: {folder}/verifier/manifest.json can't be read"),
    ],
)
def test_what_a_start_would_refuse_is_refused_in_its_words(
    checked: Check, folder: Path, spoil: Callable[[Path], None], told: str
) -> None:
    spoil(folder / "verifier")
    judge = local(folder)
    status, _, errors = checked(judge=judge)
    assert status == 2
    assert f"{folder / 'guardrail.yaml'}:1: " in errors
    assert told.format(folder=folder) in errors
    with pytest.raises(ConfigError) as refused:
        build_judge(JudgeSettings.model_validate(judge))
    assert " ".join(str(refused.value).split()) in errors


def test_the_local_judge_that_answers_past_a_budget_is_checked_too(checked: Check, folder: Path) -> None:
    _foreign(folder / "verifier")
    judge = local(folder) | {
        "kind": "llm",
        "llm": {"base_url": "http://near/v1"},
        "budgets": {"per_minute": {"tokens": 1000}, "on_budget": "local"},
    }
    status, _, errors = checked(judge=judge)
    assert status == 2
    assert "judge.local.verifier: the parameters were fitted with tiny (sha256 000" in errors


def test_a_folder_that_is_not_here_is_noted_only(checked: Check, folder: Path) -> None:
    """It may be where the guard runs."""
    (folder / "verifier").rename(folder / "elsewhere")
    status, notes, _ = checked(judge=local(folder))
    assert status == 0
    assert f"{folder / 'verifier'} can't be read here" in " ".join(notes)


@pytest.mark.parametrize("path", [None, "verifier"])
def test_a_judge_without_its_verifier_is_noted(checked: Check, folder: Path, path: str | None) -> None:
    given = path and str(folder / path)
    status, notes, _ = checked(judge=local(folder, path=given, enabled=False))
    assert status == 0
    assert "judge.local.verifier.enabled is false: claims are judged by words and figures alone" in " ".join(
        notes
    )


def test_the_check_loads_no_model() -> None:
    code = (
        "import sys\n"
        "from guardrail.judges.factory import check_files\n"
        "from guardrail.judges.settings import JudgeSettings\n"
        "check_files(JudgeSettings(kind='local'))\n"
        "print({'numpy', 'onnxruntime', 'tokenizers'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


# ----------------------------------------------------------------------------------- schemas of events


EVENTS = ("config", "schema", "events")


def test_what_was_written_is_current_until_it_is_changed(runner: CliRunner, tmp_path: Path) -> None:
    written = runner.invoke(app, [*EVENTS, "--out", str(tmp_path)])
    assert written.exit_code == 0
    paths = [Path(line) for line in written.stdout.splitlines()]
    assert tmp_path / "asyncapi.yaml" in paths
    assert all(path.is_file() for path in paths)
    assert runner.invoke(app, [*EVENTS, "--out", str(tmp_path), "--check"]).exit_code == 0
    paths[0].write_text("{}", encoding="utf-8")
    stale = runner.invoke(app, [*EVENTS, "--out", str(tmp_path), "--check"])
    assert stale.exit_code == 1
    assert paths[0].name in stale.stderr
    assert "guardrail config schema events" in stale.stderr


def test_check_writes_nothing(runner: CliRunner, tmp_path: Path) -> None:
    assert runner.invoke(app, [*EVENTS, "--out", str(tmp_path), "--check"]).exit_code == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("what", [[], ["settings"], ["reference"]])
@pytest.mark.parametrize("option", [["--check"], ["--out", "docs"]])
def test_what_goes_with_events_is_refused_elsewhere(
    runner: CliRunner, what: list[str], option: list[str]
) -> None:
    done = runner.invoke(app, ["config", "schema", *what, *option])
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"Invalid value for {option[0]}: goes with events only" in done.stderr


# --------------------------------------------------------------------------------------------- prompts


def test_the_prompts_are_shown_filled_in(runner: CliRunner) -> None:
    result = runner.invoke(app, ["config", "show", "--prompt", "both"])
    assert result.exit_code == 0
    assert "You check whether the claims of an answer" in result.stdout
    assert "[1] The basic plan costs $49 a month." in result.stdout
    assert " claim c2]\nIt includes 5 users." in result.stdout
    assert "$reply_form" not in result.stdout
    assert result.stderr == ""


def test_of_two_prompts_each_begins_after_a_line_with_its_name(runner: CliRunner) -> None:
    both = runner.invoke(app, ["config", "show", "--template", "--prompt", "both"]).stdout
    system, user = (
        runner.invoke(app, ["config", "show", "--template", "--prompt", name]).stdout
        for name in ("system", "user")
    )
    assert both == f"--- system ---\n{system}--- user ---\n{user}"


def test_one_prompt_is_shown_alone(runner: CliRunner) -> None:
    result = runner.invoke(app, ["config", "show", "--prompt", "user"])
    assert "You check whether" not in result.stdout
    assert " document d1]" in result.stdout
    assert result.stderr == ""


def test_settings_show_in_the_prompt(runner: CliRunner, tmp_path: Path) -> None:
    (tmp_path / "none.yaml").write_text("[]", "utf-8")
    llm = "{decompose: true, reasoning: none, prompts: {examples: none.yaml}}"
    path = str(write(tmp_path, f"judge: {{llm: {llm}}}"))
    shown = runner.invoke(app, ["config", "show", "--config", path, "--prompt", "system"]).stdout
    assert "c1a and c1b" in shown
    assert "Give no reasons." in shown
    assert "# Examples" not in shown


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["judge", "--prompt", "both"], "--prompt: give a KEY or a prompt, not both"),
        (["judge", "--template"], "--template: goes with --prompt only"),
        (["--template"], "--template: goes with --prompt only"),
    ],
)
def test_what_does_not_go_together_is_refused(runner: CliRunner, options: list[str], told: str) -> None:
    done = runner.invoke(app, ["config", "show", *options])
    assert (done.exit_code, done.stdout) == (2, "")
    assert told in done.stderr


@pytest.mark.parametrize("name", ["system", "user"])
def test_a_template_that_was_printed_can_be_configured_and_changes_nothing(
    runner: CliRunner, tmp_path: Path, name: str
) -> None:
    printed = runner.invoke(app, ["config", "show", "--prompt", name, "--template"]).stdout
    own = tmp_path / "own.md"
    own.write_text(printed, "utf-8")
    path = str(write(tmp_path, f"judge: {{llm: {{prompts: {{{name}: '{own}'}}}}}}"))
    with_own = runner.invoke(app, ["config", "show", "--config", path, "--prompt", "both"])
    assert with_own.exit_code == 0
    assert with_own.stdout == runner.invoke(app, ["config", "show", "--prompt", "both"]).stdout


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("$reply_form", "missing variable $marker in the system prompt"),
        ("$reply_form $documents $x", "unknown variables $documents, $x and missing variable"),
        ("$reply_form $marker costs $5", "write $$ for the character itself"),
        (None, "can't be read"),
    ],
)
def test_a_prompt_of_ones_own_is_checked_when_settings_load(
    runner: CliRunner, tmp_path: Path, text: str | None, told: str
) -> None:
    own = tmp_path / "own.md"
    if text is not None:
        own.write_text(text, "utf-8")
    path = str(write(tmp_path, f"judge: {{llm: {{prompts: {{system: '{own}'}}}}}}"))
    result = runner.invoke(app, ["config", "check", path])
    assert result.exit_code == 2
    assert "judge.llm.prompts.system" in result.stderr
    assert told in result.stderr
