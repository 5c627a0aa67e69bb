"""What the pages of the documentation say is so: programs print it, figures follow, links lead somewhere."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import os
import re
import subprocess
import sys
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import ANY
from xml.etree import ElementTree as ET

import pytest
import yaml
from jsonschema import Draft202012Validator
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from consumers.settings import GuardSettings, KafkaSettings, OpsSettings, Topics
from consumers.topics import plan_topics
from guardrail import Guard, __version__, build_judge
from guardrail.cli import app
from guardrail.client import GuardClient
from guardrail.config.settings import LoggingSettings
from guardrail.demo import load_examples
from guardrail.evals.formats import FORMATS
from guardrail.evals.records import read_labelled
from guardrail.events import (
    INPUT_EVENTS,
    AnyOutputEvent,
    Event,
    ResponseVerdict,
    parse_input,
    parse_label,
    parse_output,
)
from guardrail.judges import Verdict
from guardrail.judges.cache import CacheSettings
from guardrail.judges.cascade import CascadeSettings
from guardrail.judges.llm import LlmJudgeSettings
from guardrail.judges.model import ClassifierSettings
from guardrail.judges.spending import BudgetSettings
from guardrail.limits import Limits
from guardrail.logs import TEXT_KEYS
from guardrail.policy import DEFAULT_RULES, Policy, Rule, parse_rule
from guardrail.schema import event_type, json_schemas
from guardrail.scoring import Formula
from tests.support import tutorial
from tests.support.decisions_server import DecisionsServer
from tests.support.docs import DOCS, ROOT, blocks, code_blocks, page, printed_by, printed_with, shell_lines
from tests.support.llm_server import LlmServer

PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
MODEL_CARD = ROOT / "guardrail" / "judges" / "local" / "verifier_model" / "MODEL_CARD.md"
README = page("../README.md")
BENCHMARKS = page("benchmarks.md")


def quoted(name: str, pattern: str) -> str:
    """What a page says, between what stands around it."""
    found = re.search(pattern, page(name))
    assert found is not None
    return found[1]


# ------------------------------------------------------------------------------------- README.md


def figures(text: str) -> list[list[str]]:
    """The rows of the table of the default policy's decisions, without intervals."""
    table = text.partition("| the default policy |")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in row.strip("| ").split("|")] for row in table.splitlines()[2:]]
    return [[re.sub(r" \[.*\]", "", cell) for cell in row] for row in rows]


def test_the_readmes_example_shows_the_right_sentence_and_not_the_wrong_one() -> None:
    printed = printed_by(blocks("../README.md", "python")[0])
    removed = quoted("../README.md", r"in place of the second, `(.*?)`")
    assert [line.strip() for line in printed.splitlines()] == ["The basic plan costs $49 a month.", removed]


def test_the_readmes_configuration_does_what_it_says() -> None:
    [text] = blocks("../README.md", "yaml")
    router = GuardSettings.model_validate(yaml.safe_load(text)).router()
    assert router.choose("leaflets", None).mode == "hold"
    assert router.choose(None, None).mode == "observe"


def test_the_topics_are_the_default_ones() -> None:
    named = re.findall(r"`(rag\.[a-z-]+)`", README)
    assert {*named, Topics().sessions} == set(Topics().names())
    assert all(f"`{name}`" in page("events.md") for name in (*Topics().names(), Topics().labels))


def test_the_readmes_figures_are_those_of_the_benchmarks() -> None:
    measured = figures(BENCHMARKS)
    assert len(measured) > 3
    assert figures(README) == measured


def test_the_picture_shows_answers_of_the_demo_and_loads_nothing_from_elsewhere() -> None:
    """``scripts/demo_picture.py`` draws it; a page may show it without running or fetching anything."""
    svg = (DOCS / "demo.svg").read_text(encoding="utf-8")
    picture = ET.fromstring(svg)  # noqa: S314 - our own file
    shown = "".join(picture.itertext()).replace("\N{NO-BREAK SPACE}", " ")
    assert sum(example.response.response_id in shown for example in load_examples()) == 2
    assert shown.count("THE DOCUMENTS") == shown.count("THE USER READS") == 2
    tags = {element.tag.rpartition("}")[2] for element in picture.iter()}
    assert tags.isdisjoint({"script", "image", "foreignObject", "a"})
    assert re.findall(r"https?://[^\"' )]+", svg) == ["http://www.w3.org/2000/svg"]


# -------------------------------------------------------------------------------------- python.md


@pytest.mark.parametrize(
    ("name", "number", "says"),
    [
        ("python.md", 0, r"prints `(.*?)`"),
        ("python.md", 3, r"prints `(\[.*?)`"),
        ("client.md", 1, r"of its own:\n`(.*?)`\n"),
    ],
)
def test_an_example_prints_what_its_page_says(name: str, number: int, says: str) -> None:
    assert printed_by(blocks(name, "python")[number]).strip() == quoted(name, says)


def test_the_example_with_a_policy_observes() -> None:
    assert printed_by(blocks("python.md", "python")[1]).split() == ["release", "observe"]


async def test_the_example_with_the_llm_judge_asks_the_model(tmp_path: Path) -> None:
    settings = quoted("python.md", r"from `(judge: .*?)` in a")
    (tmp_path / "guardrail.yaml").write_text(settings, encoding="utf-8")
    async with LlmServer() as server:
        printed = await printed_with(server, blocks("python.md", "python")[2], tmp_path)
    assert printed.split() == ["release", "llm:gpt-4.1-mini", "1"]
    assert len(server.calls) == 1


async def test_the_example_of_a_web_service_replaces_what_it_showed() -> None:
    httpx2 = pytest.importorskip("httpx2")
    names: dict[str, Any] = {"__name__": "shown"}
    exec(compile(blocks("python.md", "python")[4], "python.md", "exec"), names)  # noqa: S102 - our own page
    app = names["app"]
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://test") as client,
    ):
        reply = await client.get("/answer", params={"question": "What does it cost?"})
    events = [
        dict(line.split(": ", 1) for line in each.splitlines()) for each in reply.text.split("\n\n")[:-1]
    ]
    assert [event["event"] for event in events] == ["text", "replace"]
    assert json.loads(events[0]["data"]).startswith("Refunds are paid within 14 days.")
    assert "$79" not in reply.text


# ----------------------------------------------------------------------------------- decisions.md


@pytest.mark.parametrize(("number", "path"), [(0, "decisions"), (1, "systemone"), (2, "chat/completions")])
async def test_an_example_of_the_decisions_judge_judges(number: int, path: str) -> None:
    given = yaml.safe_load(blocks("decisions.md", "yaml")[number])
    async with DecisionsServer() as server:
        given["judge"]["decisions"] |= {"base_url": server.url, "api_key": "k"}
        judge = build_judge(GuardSettings.model_validate(given).judge)
        async with Guard(judge) as guard:
            verdict = await guard.check("", ["The office is in Lisbon."], "It is contradicted by a sign.")
        await judge.aclose()
    assert [claim.verdict for claim in verdict.claims] == [Verdict.CONTRADICTED]
    assert {asked for asked, _ in server.asked} == {f"/v1/{path}"}
    assert (verdict.usage.cost_usd > 0) == ("prices" in given["judge"])


# -------------------------------------------------------------------------------------- client.md


def test_the_example_of_the_client_shows_what_the_page_says() -> None:
    lines = [line.strip() for line in printed_by(blocks("client.md", "python")[0]).splitlines()]
    assert lines == [
        "show: The basic plan costs $49 a month.",
        "show: Refunds are paid within 14 days.",
        f"show instead of all that: {Policy().fallback_message}",
        "release The basic plan costs $49 a month.",
    ]


@pytest.mark.parametrize("name", ["timeout_s", "drain_timeout_s", "reply_partitions", "coalesce_ms"])
def test_the_clients_defaults_are_those_that_the_page_tells(name: str) -> None:
    default = inspect.signature(GuardClient).parameters[name].default
    assert re.search(rf"`{name}` \({default:g}[ )]", page("client.md"))


# --------------------------------------------------------------------- quickstart.md and evaluate.md


@pytest.mark.parametrize("event", blocks("quickstart.md", "json"))
def test_the_events_of_the_quickstart_are_events(event: str) -> None:
    assert parse_input(event).response_id == "r-1"
    assert json.loads(event)["schema"] == 1


def test_the_quickstart_prints_what_the_page_says() -> None:
    [code] = blocks("quickstart.md", "python")
    assert f"prints `{printed_by(code).strip()}`" in page("quickstart.md")


def test_the_line_to_evaluate_can_be_evaluated(tmp_path: Path) -> None:
    [line] = blocks("evaluate.md", "json")
    assert line.count("\n") == 1
    (tmp_path / "answers.jsonl").write_text(line, encoding="utf-8")
    out = tmp_path / "verdicts.jsonl"
    done = CliRunner().invoke(app, ["evaluate", str(tmp_path / "answers.jsonl"), "--verdicts", str(out)])
    assert done.exit_code == 0, done.output
    verdict = parse_output(out.read_text(encoding="utf-8"))
    assert isinstance(verdict, ResponseVerdict)
    assert (verdict.response_id, verdict.decision) == ("line-1", "block")


def test_the_example_of_an_evaluation_prints_what_the_page_says() -> None:
    [code], [said] = blocks("evaluate.md", "python"), blocks("evaluate.md", "text")
    printed = [line.rstrip() for line in printed_by(code).splitlines()]
    assert printed == said.strip().splitlines()


def test_the_page_of_evaluation_names_every_format() -> None:
    named = re.findall(r"^\| `(\w+)` \|", page("evaluate.md"), flags=re.MULTILINE)
    assert named == [each for each in FORMATS if each != "auto"]


# -------------------------------------------------------------------------------------- events.md

EXAMPLES: list[dict[str, Any]] = [json.loads(block) for block in blocks("events.md", "json")]
SCHEMAS = json_schemas()
INPUTS = {event_type(model) for model in INPUT_EVENTS}


def test_every_event_has_an_example_under_its_own_heading() -> None:
    assert sorted(example["type"] for example in EXAMPLES) == sorted(SCHEMAS)
    headings = re.findall(r"^### (\S+)$", page("events.md"), re.MULTILINE)
    assert headings == [example["type"] for example in EXAMPLES]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["type"])
def test_an_example_is_valid_and_can_be_read(example: dict[str, Any]) -> None:
    Draft202012Validator(SCHEMAS[example["type"]]).validate(example)
    text = json.dumps(example)
    event: Event
    if example["type"] == "label":
        event = parse_label(text)
    else:
        event = parse_input(text) if example["type"] in INPUTS else parse_output(text)
    assert event.model_dump()["type"] == example["type"]


def test_the_examples_are_what_the_guard_says() -> None:
    by_type = {example["type"]: example for example in EXAMPLES}
    head = {name: value for name, value in by_type["response.started"].items() if name != "type"}
    asked = (head.pop("question"), head.pop("contexts"))
    answer = by_type["case.flagged"]["answer"]
    first = by_type["response.delta"]["text"]
    assert answer.startswith(first)

    async def said() -> list[AnyOutputEvent]:
        async with Guard() as guard:
            blocked = [e async for e in guard.stream(*asked, [first, answer.removeprefix(first)], **head)]
            released = by_type["delivery.segment"]
            right = guard.stream(*asked, [released["text"]], response_id=released["response_id"])
            return blocked + [e async for e in right if e.type.startswith("delivery.")]

    events = [json.loads(event.model_dump_json()) for event in asyncio.run(said())]
    outputs = {example["type"] for example in EXAMPLES} - INPUTS - {"label"}
    assert {event["type"] for event in events} == outputs
    for event in events:
        assert event == _as_run(by_type[event["type"]])


def _as_run(value: Any) -> Any:
    """An example as a run may say it: any times, probabilities within 0.05."""
    if isinstance(value, dict):
        return {
            name: ANY if name in ("latency_ms", "timings") else _as_run(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_as_run(inner) for inner in value]
    return pytest.approx(value, abs=0.05) if isinstance(value, float) else value


# ------------------------------------------------------------------------------------ policies.md


def test_the_default_policy_is_shown_as_it_is() -> None:
    policies = [yaml.safe_load(block)["policies"] for block in blocks("policies.md", "yaml")]
    [shown] = [each["default"] for each in policies if "default" in each]
    assert Policy.model_validate(shown) == Policy()
    assert tuple(shown["rules"]) == tuple(rule.line for rule in Policy().rules)


def test_every_condition_and_formula_is_told() -> None:
    """The lines in the table are rules, and all fields of a rule are in it."""
    table, _, _ = page("policies.md").partition("| condition | holds for")[2].partition("\n\n")
    told: set[str] = set()
    for lines in re.findall(r"^\| (`[^|]*(?:\\\|[^|]*)*`) \| ", table, re.MULTILINE):
        for line in re.findall(r"`(.*?)`", lines.replace("\\|", "|")):
            told |= parse_rule(f"{line}: flag").keys()
    assert told == Rule.model_fields.keys() - {"name"}
    assert all(f"| `{formula}` |" in page("policies.md") for formula in Formula)


# ------------------------------------------------------------------------------------ security.md

_DAY_MS = 86_400_000
_WATCHED = """
import asyncio, os, sys
from guardrail import Guard

seen = []

def watch(event, arguments):
    if event == "socket.connect":
        seen.append((event, arguments[1]))
    elif event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR):
        seen.append((event, arguments[0]))

async def main():
    async with Guard() as guard:
        verdict = await guard.check("What does it cost?", ["It costs $49 a month."], "It costs $79 a month.")
    print(len(verdict.claims))

sys.addaudithook(watch)
sys.dont_write_bytecode = True
asyncio.run(main())
print(seen)
"""


def test_topics_are_kept_as_long_as_the_page_says() -> None:
    told = dict(re.findall(r"^\| `([a-z.-]+)` \| .* \| ([^|]+) \|$", page("security.md"), re.MULTILINE))
    plans = {plan.name: plan.configs for plan in plan_topics(KafkaSettings(), 6, 3)}
    assert told.keys() == plans.keys()
    for name, kept in told.items():
        if plans[name]["cleanup.policy"] == "delete":
            assert kept == f"{int(plans[name]['retention.ms']) // _DAY_MS} days"
        else:
            assert f"within {int(plans[name]['max.compaction.lag.ms']) // 60_000} minutes" in kept


def test_it_fails_remembers_and_withholds_as_the_page_says() -> None:
    words = " ".join(page("security.md").split())
    policy = Policy()
    assert (policy.mode, policy.on_unverified, policy.on_incomplete) == ("stream", "fail_closed", "block")
    client = inspect.signature(GuardClient).parameters
    assert client["on_timeout"].default == "raise"
    assert f"`timeout_s` ({client['timeout_s'].default:g} s)" in words
    assert CascadeSettings().on_unavailable == {}
    assert BudgetSettings().on_budget == "local"
    assert not LoggingSettings().log_texts
    assert {"question", "context", "answer", "claim", "quote"} <= TEXT_KEYS
    assert (OpsSettings().host, OpsSettings().traces) == ("127.0.0.1", False)
    assert not ClassifierSettings(preset="hhem").allow_remote_code
    assert (CacheSettings().redis_url, CacheSettings().ttl_seconds) == (None, 3600)
    assert f"the last {Limits.finished_responses_remembered:,} finished" in words
    assert f"for {Limits.finished_response_ttl_ms // 60_000} minutes, and" in words


def test_a_guard_with_the_local_judge_asks_nobody_and_writes_no_file() -> None:
    assert printed_by(_WATCHED).split("\n")[:2] == ["1", "[]"]


# -------------------------------------------------------------------------------------- sizing.md

SIZING = page("sizing.md")


@pytest.mark.parametrize("column", range(3))
def test_the_examples_of_sizing_follow_from_the_formulas(column: int) -> None:
    rows = re.findall(r"^\| ([^|]+) \| ([0-9.]+ \| [0-9.]+ \| [0-9.]+) \|$", SIZING, re.MULTILINE)
    example = {label.strip(): float(cells.split("|")[column]) for label, cells in rows}
    a, d, c, p = (next(v for label, v in example.items() if label.endswith(f"`{sign}`")) for sign in "Adcp")
    cores = a * c * p / 0.6
    guards = max(2, math.ceil(cores / 2)) + 1
    assert example["answers in flight, `S`"] == a * d
    assert example["cores"] == round(cores, 1)
    assert example["guards"] == guards
    assert example["partitions"] == 2 * guards


def test_the_example_with_an_llm_judge_follows_too() -> None:
    calls = 50 * (12 + 1.5)
    assert f"= {calls:.0f} calls at once, for {math.ceil(calls / 64)} guards and a spare" in SIZING
    an_answer = round(12 / (LlmJudgeSettings().max_wait_ms / 1000 + 1.5) + 2)
    assert f"= {an_answer} calls an answer" in SIZING
    assert f"= {round(50 * an_answer * (1730 + 26), -3):,} tokens a second" in SIZING
    assert round(12 / (2.5 + 1.5) + 2) == 5
    assert "`max_wait_ms: 2500`, a quarter of a claim's time: 5 calls" in SIZING


def test_the_limits_of_sizing_are_the_defaults() -> None:
    assert Limits().max_concurrent_judgements == LlmJudgeSettings().max_concurrency == 64
    assert Limits.max_sessions == 10_000
    assert round(Limits().max_bytes / 1e6) == 268


@pytest.mark.parametrize(
    "figure",
    [
        "41 · 56 ms of processor time",
        "their text plus 74 KB",
        "21,900 against",
        "p50 +26 ms, p99 +101 ms",
        "53 ms (182 ms) at 32, where 1.2 processors are busy",
        "some 2,000 answers",
    ],
)
def test_the_figures_of_sizing_are_measured_ones(figure: str) -> None:
    assert figure in " ".join(BENCHMARKS.split())


def test_the_metrics_of_sizing_exist() -> None:
    known = set(re.findall(r"^\| `(guardrail_[a-z_]+)`", page("telemetry.md"), re.MULTILINE))
    named = set(re.findall(r"`(?:rate\()?(guardrail_[a-z_]+)", SIZING))
    assert len(named) > 8
    assert named <= known


# ---------------------------------------------------------------------------------------- tune.md


def words_of(text: str) -> set[str]:
    """The first cells of a table, and the sentences around it, without figures."""
    return {re.split(r"  +|\d", line.strip())[0].strip() for line in text.splitlines() if line.strip()}


def last(text: str) -> str:
    return text.strip().splitlines()[-1].strip()


def test_the_tutorial_of_tune_ends_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first commands run, in order, on the answers of examples/tuning."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    ends = page("tune.md").splitlines().index("## What it reads")
    commands = [b.text for b in code_blocks([DOCS / "tune.md"]) if not b.language and b.line < ends]
    told = []
    for words in (line for text in commands for line in shell_lines(text)):
        assert words[0] == "guardrail"
        result = CliRunner().invoke(app, list(words[1:]))
        assert result.exit_code == 0, f"{' '.join(words)}: {result.output}"
        if words[1] == "tune":
            told.append(result.stdout)
            assert (tmp_path / "tuned.yaml").exists() == ("keep that" not in last(told[-1]))
    shown = blocks("tune.md", "text")
    assert len(told) == len(shown) == 2
    for meant, printed in zip(shown, told, strict=True):
        assert last(meant) == last(printed)
        assert words_of(meant) <= words_of(printed)


def test_the_example_of_tune_is_what_the_page_says_it_is() -> None:
    folder = ROOT / "examples" / "tuning"
    answers = (folder / "answers.jsonl").read_text("utf-8").splitlines()
    labels = (folder / "labels.jsonl").read_text("utf-8").splitlines()
    assert len(answers) == 72
    assert len(labels) > len(answers)
    assert read_labelled([folder / "labels.jsonl"]).stray == len(labels)
    assert "has 72 short answers on twelve documents" in page("tune.md")
    wrong = Counter('"SUPPORTED"' not in line for line in labels)
    assert wrong[True] == 36  # one error in each of half the answers
    assert '"span": [55, 96]' in blocks("tune.md", "json")[0]
    assert any('"library-4", "span": [55, 96]' in line and Verdict.CONTRADICTED in line for line in labels)
    assert "support < 0.15" in DEFAULT_RULES[2]
    assert "support < 0.5" in DEFAULT_RULES[7]


# ------------------------------------------------------------------------- tutorial-kafka-chat.md


def test_the_tutorials_settings_watch_at_first_and_enforce_then() -> None:
    first, then = (
        GuardSettings.model_validate(yaml.safe_load(text)).router()
        for text in (tutorial.OBSERVING, tutorial.ENFORCING)
    )
    assert first.choose("shop", None).mode == "observe"
    assert then.choose("shop", None).mode == "stream"
    assert then.choose("chat", None).mode == "observe"


@pytest.mark.parametrize(("spoil", "outcome"), [("", "2 passed"), ("shown = blocked.message", "1 failed")])
def test_the_tutorials_test_passes_and_fails_where_a_block_is_not_heeded(
    tmp_path: Path, spoil: str, outcome: str
) -> None:
    (tmp_path / "chat.py").write_text(tutorial.CHAT.replace(spoil, "pass") if spoil else tutorial.CHAT)
    (tmp_path / "test_chat.py").write_text(tutorial.TEST_CHAT)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_chat.py"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        capture_output=True,
        text=True,
    )
    assert re.search(rf"\b{outcome}\b", done.stdout), done.stdout + done.stderr


# -------------------------------------------------------------------------------------- commands


def commands(command: object, path: str = "guardrail") -> Iterator[str]:
    if isinstance(command, TyperGroup):
        for name, below in command.commands.items():
            if not below.hidden:  # of a former name, which says the new one
                yield from commands(below, f"{path} {name}")
    else:
        assert isinstance(command, TyperCommand)
        yield path


def test_the_page_on_the_command_line_names_every_command() -> None:
    named = re.findall(r"^\| `(guardrail [a-z -]+)` \|", page("command-line.md"), re.MULTILINE)
    assert sorted(named) == sorted(commands(get_command(app)))


# ----------------------------------------------------------------------------------------- links


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found: set[str] = set()
    prose = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for heading in re.findall(r"^#+ (.+)$", prose, re.MULTILINE):
        kept = (c for c in heading.lower() if c in " -_" or unicodedata.category(c)[0] in "LN")
        found.add("".join(kept).replace(" ", "-"))
    return found


def links(path: Path) -> list[str]:
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", prose) if not link.startswith("http")]


@pytest.mark.parametrize("path", [*PAGES, MODEL_CARD], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(path: Path) -> None:
    broken = []
    for link in links(path):
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_can_be_reached_from_the_readme_and_the_index() -> None:
    index = {(DOCS / link.partition("#")[0]).resolve() for link in links(DOCS / "README.md")}
    assert index >= {path for path in DOCS.rglob("*.md") if path != DOCS / "README.md"}
    assert "docs/README.md" in links(ROOT / "README.md")


def test_the_changelog_has_the_version_with_its_date() -> None:
    releases = re.findall(r"^## \[(\d[\w.]+)\] - \d{4}-\d\d-\d\d$", page("../CHANGELOG.md"), re.MULTILINE)
    assert releases[0] == __version__


def test_what_is_said_of_installing_works_in_a_checkout() -> None:
    """The package is not on PyPI: its name is no requirement that pip finds."""
    told = [*(ROOT / "guardrail").rglob("*.py"), *(ROOT / "consumers").rglob("*.py"), *DOCS.rglob("*.md")]
    told += [ROOT / "README.md", ROOT / "integrations/mastra/README.md"]
    from_pypi = re.compile(r"pip install(?: -\S+)*\s+['\"]?streaming-guardrail|streaming-guardrail\[")
    assert [each for each in told if from_pypi.search(each.read_text("utf-8"))] == []
    hints = [re.findall(r"install_hint\(['\"](.+?)['\"]\)", each.read_text("utf-8")) for each in told]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert {"report", "serve", "otel"} <= {extra for found in hints for extra in found} <= extras.keys()
