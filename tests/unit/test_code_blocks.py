"""Every code block of the README and of docs/ is run, or checked by what would read it.

Python runs. YAML is taken as settings, or as values of the chart. JSON is read. Commands of ``guardrail`` are
parsed by the command line itself, those of modules, make and pip are looked up. What can't be run here is in
``ELSEWHERE`` with the reason and the test that runs it, or in ``NO_CODE`` and ``OTHERS``.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
import yaml
from jsonschema import Draft202012Validator

from consumers.settings import GuardSettings
from guardrail.integrations.background import end_all
from tests.support.docs import ROOT, Block, code_blocks, parse, shell_lines

ELSEWHERE: Final = {
    "docs/litellm.md:yaml:0": ("is LiteLLM's configuration", "tests/integration/in_litellm.py"),
    "docs/serve.md:python:0": ("needs the gateway", "tests/unit/gateway/test_docs.py"),
    "docs/serve.md:python:1": ("needs the gateway", "tests/unit/gateway/test_docs.py"),
    **{
        f"docs/clients.md:{name}": (
            "needs the gateway",
            "tests/unit/gateway/test_clients.py",
        )
        for name in ("python:0", "go:0", "go:1", *(f"javascript:{number}" for number in range(4)))
    },
    "docs/python.md:python:2": ("asks a model, whose place a server takes", "tests/unit/test_docs.py"),
    "docs/cascade.md:python:0": (
        "asks a model, whose place a server takes",
        "tests/unit/judges/test_docs.py",
    ),
    "docs/other-judges.md:python:0": (
        "a program that a judge starts and asks",
        "tests/unit/judges/test_docs.py",
    ),
    **{
        f"docs/mastra.md:typescript:{number}": ("needs Node", "integrations/mastra/test/docs.test.ts")
        for number in range(3)
    },
    "docs/tutorial-kafka-chat.md:python:0": ("needs a Kafka", "tests/integration/test_tutorial.py"),
    "docs/tutorial-kafka-chat.md:python:1": (
        "a test of the file before, run by pytest",
        "tests/unit/test_docs.py",
    ),
    "docs/tutorial-kafka-chat.md:python:2": ("needs a Kafka", "tests/integration/test_tutorial.py"),
    "docs/tutorial-review.md:yaml:0": ("goes into a whole file", "tests/integration/test_tutorial.py"),
    "docs/tutorial-review.md:python:0": ("serves until it is ended", "tests/integration/test_tutorial.py"),
    "docs/tutorial-litellm.md:yaml:0": ("is LiteLLM's configuration", "tests/integration/in_litellm.py"),
    "docs/tutorial-litellm.md:python:0": ("needs the proxy", "tests/integration/in_litellm.py"),
    "docs/frameworks.md:python:0": ("needs Haystack", "tests/unit/integrations/in_haystack.py"),
    "docs/frameworks.md:python:1": ("needs Haystack", "tests/unit/integrations/in_haystack.py"),
    "docs/frameworks.md:python:2": ("needs LlamaIndex", "tests/unit/integrations/in_llama_index.py"),
    "docs/frameworks.md:python:3": ("needs LlamaIndex", "tests/unit/integrations/in_llama_index.py"),
    "docs/frameworks.md:python:4": ("needs Ragas", "tests/unit/integrations/in_ragas.py"),
    "docs/frameworks.md:python:5": ("needs Ragas", "tests/unit/integrations/in_ragas.py"),
    "docs/deploy.md:yaml:0": ("a policy of Kyverno, not ours", "tests/unit/helm/test_deploy_page.py"),
    "docs/gateways.md:yaml:1": ("LiteLLM's proxy", "tests/integration/in_litellm_gateway.py"),
    "docs/gateways.md:yaml:2": ("a plug-in of Kong's", "tests/unit/gateway/test_dialects.py"),
    "docs/gateways.md:yaml:3": ("a policy of agentgateway's", "tests/unit/gateway/test_dialects.py"),
    "docs/llm-judge.md:yaml:6": (
        "examples for the prompt, not settings",
        "tests/unit/judges/test_docs.py",
    ),
}
"""Blocks that are not run here: why, and which test runs them."""

NO_CODE: Final = {
    "CONTRIBUTING.md": "consumers ──►",
    "docs/cascade.md": "judge.usage day=",
    "docs/policies.md": "score = sum(",
    "docs/review.md": "UPDATE guardrail_cases",
}
"""By page, how a block begins that is a line of a log, a formula or a drawing. So are all of sizing.md's."""

OTHERS: Final = {
    "built": "a variable",
    "cosign": "needs a registry and an identity",
    "curl": "fetches what is public",
    "digest": "a variable",
    "docker": "no engine here; make image-root builds the Dockerfile",
    "echo": "another program",
    "export": "the shell's own",
    "git": "another program",
    "helm": "tests/unit/helm runs it on the chart",
    "identity": "a variable",
    "image": "a variable",
    "issuer": "a variable",
    "jq": "another program",
    "kafka-consumer-groups": "Kafka's own",
    "kubectl": "no cluster here",
    "litellm": "tests/integration/in_litellm.py runs it",
    "npm": "integrations/mastra/package.json has what it runs",
    "printf": "another program",
    "unzip": "another program",
    "uv": "another program",
    "zcat": "another program",
}
"""Commands of others, which are neither run nor checked beyond the shell's grammar, and why."""

BLOCKS: Final = list(code_blocks())
CHART_SCHEMA: Final = json.loads((ROOT / "helm" / "guardrail" / "values.schema.json").read_text("utf-8"))
MADE: Final = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
EXTRAS: Final = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]


def of(*languages: str) -> list[Any]:
    return [
        pytest.param(block, id=block.name)
        for block in BLOCKS
        if block.language in languages and block.name not in ELSEWHERE and not is_no_code(block)
    ]


def is_no_code(block: Block) -> bool:
    if block.language:
        return False
    begins = NO_CODE.get(block.page)
    return block.page == "docs/sizing.md" or (begins is not None and block.text.startswith(begins))


def test_every_block_says_what_it_is() -> None:
    known = {"python", "typescript", "javascript", "go", "yaml", "json", "text", "bash", ""}
    assert [block.name for block in BLOCKS if block.language not in known] == []
    foreign = {block.name for block in BLOCKS if block.language in {"typescript", "javascript", "go"}}
    assert foreign <= ELSEWHERE.keys()
    assert len(BLOCKS) > 100


def test_the_tables_name_blocks_that_exist_and_tests_that_know_their_page() -> None:
    assert ELSEWHERE.keys() <= {block.name for block in BLOCKS}
    for name, (_, test) in ELSEWHERE.items():
        text = (ROOT / test).read_text("utf-8")
        page = Path(name.partition(":")[0]).name
        assert page in text or "support import tutorial" in text, f"{test} does not read {page}"
    for page, begins in NO_CODE.items():
        assert any(block.page == page and block.text.startswith(begins) for block in BLOCKS), page


# ----------------------------------------------------------------------------------------- python


@pytest.mark.parametrize("block", of("python"))
def test_python_runs(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the pages say that it prints, the tests of the pages compare."""
    monkeypatch.chdir(tmp_path)
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    try:
        exec(compile(block.text, block.name, "exec"), vars(main))  # noqa: S102 - the project's own
    finally:
        vars(main).clear()
        end_all()  # as where a program ends; else guards of a page go on beside later tests


# ------------------------------------------------------------------------------------ data


@pytest.mark.parametrize("block", of("json"))
def test_json_is_json(block: Block) -> None:
    assert json.loads(block.text)


@pytest.fixture
def files_that_settings_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the prompts of docs/llm-judge.md are read from."""
    monkeypatch.chdir(tmp_path)
    system = ROOT / "guardrail" / "judges" / "llm" / "prompts" / "system.md"
    Path("judge-system.md").write_text(system.read_text("utf-8"), "utf-8")
    [examples] = (block.text for block in BLOCKS if block.name == "docs/llm-judge.md:yaml:6")
    Path("judge-examples.yaml").write_text(examples, "utf-8")


@pytest.mark.usefixtures("files_that_settings_name")
@pytest.mark.parametrize("block", of("yaml"))
def test_yaml_is_settings_or_values_of_the_chart(block: Block) -> None:
    data = yaml.safe_load(block.text)
    if data.keys() <= GuardSettings.model_fields.keys():
        GuardSettings.model_validate(data)
    else:
        assert [error.message for error in Draft202012Validator(CHART_SCHEMA).iter_errors(data)] == []
        settings = data.get("config", {}).get("settings", {})
        settings = {name: value for name, value in settings.items() if value is not None}  # as helm has it
        if "existingSecret" in data and "kafka" in settings:
            settings["kafka"]["sasl_password"] = "of the Secret"
        GuardSettings.model_validate(settings)


# ----------------------------------------------------------------------------------------- shell


@pytest.mark.parametrize("block", of("", "bash"))
def test_commands_exist_with_their_options(block: Block) -> None:
    # A synopsis, with what may be left out in brackets, is no command.
    text = re.sub(r"\[(-[^\]]*)\]", r"\1", block.text)
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for words in shell_lines(text):
        check(words)


def check(words: Sequence[str]) -> None:
    program = words[0].removeprefix(".venv/bin/").partition("=")[0]
    arguments = words[1:]
    match program:
        case "guardrail":
            parse(arguments)
        case "python" if arguments[0] == "-m":
            check_module(arguments[1], arguments[2:])
        case "python":
            assert any(
                f"`{arguments[0]}`" in block.read_text("utf-8") for block in (ROOT / "docs").glob("*.md")
            )
        case "make":
            assert arguments[0] in MADE, words
        case "pip":
            assert arguments[0] == "install"
            for named in re.findall(r"(?:^|\s)(?:\.|streaming-guardrail)\[(.+?)\]", " ".join(arguments)):
                assert set(named.split(",")) <= EXTRAS.keys(), words
        case "pytest" | "ruff" | "mypy":
            assert importlib.util.find_spec(program)
        case _:
            assert program in OTHERS, f"{' '.join(words)}: neither checked nor in OTHERS"
            for file in re.findall(r"(?:docker|helm)/[\w./-]+", " ".join(arguments)):
                assert (ROOT / file).exists(), file


@cache
def options_of(module: str) -> set[str]:
    """As they stand in its source: to ask thirty programs for their help takes longer than all else here."""
    spec: Any = importlib.util.find_spec(module)
    folder = spec.submodule_search_locations
    path = Path(folder[0], "__main__.py") if folder else Path(spec.origin)
    return set(re.findall(r'"(--?[a-z][a-z-]*)"', path.read_text("utf-8")))


def check_module(module: str, arguments: Sequence[str]) -> None:
    assert importlib.util.find_spec(module), module
    if options := {word for word in arguments if re.match(r"--?[a-z]", word)}:
        assert options <= options_of(module), module


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("nothing", "No such command"),
        ("run --polcy x", "No such option"),
        ("topics create --partitions many", "valid integer"),
        ("dead-letters list --since", "requires an argument"),
        ("config check a b c", "unexpected extra argument"),
    ],
)
def test_a_wrong_command_is_noticed(line: str, told: str) -> None:
    with pytest.raises(Exception, match=told):
        parse(line.split())
