"""What the documentation's pages show is so: programs print it, files load, commands and links exist."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from guardrail import __version__
from guardrail.cli import app
from guardrail.client import GuardClient
from guardrail.evals.formats import FORMATS
from guardrail.events import ResponseVerdict, parse_input, parse_output
from guardrail.policy import Policy
from tests.support.examples import run_example
from tests.support.llm_server import LlmServer

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
MODEL_CARD = ROOT / "guardrail" / "judges" / "local" / "verifier_model" / "MODEL_CARD.md"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page(name), re.DOTALL)


def printed_by(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


# -------------------------------------------------------------------------------------- python.md


def test_the_first_example_in_python_prints_what_the_page_says() -> None:
    said = re.search(r"prints `(.*?)`", page("python.md"))
    assert said is not None
    assert printed_by(blocks("python.md", "python")[0]).strip() == said[1]


def test_the_example_with_a_policy_observes() -> None:
    assert printed_by(blocks("python.md", "python")[1]).split() == ["release", "observe"]


async def test_the_example_with_the_llm_judge_asks_the_model(tmp_path: Path) -> None:
    judge = re.search(r"from `(judge: .*?)` in a", page("python.md"))
    assert judge is not None
    (tmp_path / "guardrail.yaml").write_text(judge[1], encoding="utf-8")
    async with LlmServer() as server:
        printed = await run_example(blocks("python.md", "python")[2], tmp_path, server)
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


def test_the_example_of_a_judge_judges() -> None:
    said = re.search(r"prints `(\[.*?)`", page("python.md"))
    assert said is not None
    assert printed_by(blocks("python.md", "python")[3]).strip() == said[1]


# -------------------------------------------------------------------------------------- client.md


def test_the_example_of_the_client_shows_what_the_page_says() -> None:
    lines = [line.strip() for line in printed_by(blocks("client.md", "python")[0]).splitlines()]
    assert lines == [
        "show: The basic plan costs $49 a month.",
        "show: Refunds are paid within 14 days.",
        f"show instead of all that: {Policy().fallback_message}",
        "release The basic plan costs $49 a month.",
    ]


def test_the_example_of_a_test_passes_and_prints_what_the_page_says() -> None:
    said = re.search(r"of its own:\n`(.*?)`\n", page("client.md"))
    assert said is not None
    assert printed_by(blocks("client.md", "python")[1]).strip() == said[1]


@pytest.mark.parametrize("name", ["timeout_s", "drain_timeout_s", "reply_partitions", "coalesce_ms"])
def test_the_clients_defaults_are_those_that_the_page_tells(name: str) -> None:
    default = inspect.signature(GuardClient).parameters[name].default
    assert re.search(rf"`{name}` \({default:g}[ )]", page("client.md"))


# --------------------------------------------------------------------- quickstart.md and evaluate.md


@pytest.mark.parametrize("event", blocks("quickstart.md", "json"))
def test_the_events_of_the_quickstart_are_events(event: str) -> None:
    assert parse_input(event).response_id == "r-1"
    assert json.loads(event)["schema"] == 1


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


# -------------------------------------------------------------------------------------- commands


def commands(command: object, path: str = "guardrail") -> Iterator[tuple[str, TyperCommand]]:
    if isinstance(command, TyperGroup):
        for name, below in command.commands.items():
            if below.hidden:  # of a former name, which says the new one
                continue
            yield from commands(below, f"{path} {name}")
    else:
        assert isinstance(command, TyperCommand)
        yield path, command


COMMANDS = dict(commands(get_command(app)))


def test_the_page_on_the_command_line_names_every_command() -> None:
    named = re.findall(r"^\| `(guardrail [a-z -]+)` \|", page("command-line.md"), re.MULTILINE)
    assert sorted(named) == sorted(COMMANDS)


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
