"""The README's examples run, and what it says they print is what they print."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from guardrail.config import Settings
from guardrail.events import parse_input
from guardrail.policy import Policy
from tests.support.examples import run_example
from tests.support.llm_server import LlmServer

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def test_the_first_example_prints_what_the_readme_says() -> None:
    said = re.search(r"prints `(.*?)`", README)
    assert said is not None
    assert run(blocks("python")[0]).strip() == said[1]


def test_the_streaming_example_shows_the_right_sentence_and_not_the_wrong_one() -> None:
    lines = [line.strip() for line in run(blocks("python")[1]).splitlines()]
    assert lines == ["The basic plan costs $49 a month.", "[removed: not backed by the sources]"]


def test_the_policy_that_is_called_the_default_is_it() -> None:
    [text] = [block for block in blocks("yaml") if "default:" in block]
    assert Policy.model_validate(yaml.safe_load(text)["policies"]["default"]) == Policy()


async def test_the_example_with_the_llm_judge_asks_the_model(tmp_path: Path) -> None:
    judge = re.search(r"from `(judge: .*?)` in a", README)
    assert judge is not None
    (tmp_path / "guardrail.yaml").write_text(judge[1], encoding="utf-8")
    async with LlmServer() as server:
        printed = await run_example(blocks("python")[2], tmp_path, server)
    assert printed.split() == ["release", "llm:gpt-4.1-mini", "1"]
    assert len(server.calls) == 1


@pytest.mark.parametrize("event", blocks("json"))
def test_the_events_are_events(event: str) -> None:
    assert parse_input(event).response_id == "r-1"
    assert json.loads(event)["schema"] == 1


def test_the_configuration_is_one() -> None:
    [text] = blocks("yaml")
    assert Settings.model_validate(yaml.safe_load(text)).router().choose("leaflets", None).name == "medical"


def test_every_file_it_links_to_is_there() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert [link for link in links if not link.startswith("http") and not (ROOT / link).exists()] == []
