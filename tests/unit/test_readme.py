"""The README's example runs, its configuration loads, and its figures are those of docs/benchmarks.md."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import yaml

from consumers.settings import GuardSettings, Topics
from guardrail.demo import load_examples

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PICTURE = ROOT / "docs" / "demo.svg"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def figures(text: str) -> list[list[str]]:
    """The rows of the table of the default policy's decisions, without intervals."""
    table = text.partition("| the default policy |")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in row.strip("| ").split("|")] for row in table.splitlines()[2:]]
    return [[re.sub(r" \[.*\]", "", cell) for cell in row] for row in rows]


def test_the_example_shows_the_right_sentence_and_not_the_wrong_one() -> None:
    code = blocks("python")[0]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    removed = re.search(r"in place of the second, `(.*?)`", README)
    assert removed is not None
    assert [line.strip() for line in done.stdout.splitlines()] == [
        "The basic plan costs $49 a month.",
        removed[1],
    ]


def test_the_configuration_does_what_it_says() -> None:
    [text] = blocks("yaml")
    router = GuardSettings.model_validate(yaml.safe_load(text)).router()
    assert router.choose("leaflets", None).mode == "hold"
    assert router.choose(None, None).mode == "observe"


def test_the_topics_are_the_default_ones() -> None:
    named = re.findall(r"`(rag\.[a-z-]+)`", README)
    assert {*named, Topics().sessions} == set(Topics().names())


def test_its_figures_are_those_of_the_benchmarks() -> None:
    measured = figures((ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8"))
    assert len(measured) > 3
    assert figures(README) == measured


def test_the_picture_shows_answers_of_the_demo_and_loads_nothing_from_elsewhere() -> None:
    """``scripts/demo_picture.py`` draws it; a page may show it without running or fetching anything."""
    svg = PICTURE.read_text(encoding="utf-8")
    picture = ET.fromstring(svg)  # noqa: S314 - our own file
    shown = "".join(picture.itertext()).replace("\N{NO-BREAK SPACE}", " ")
    assert sum(example.response.response_id in shown for example in load_examples()) == 2
    assert shown.count("THE DOCUMENTS") == shown.count("THE USER READS") == 2
    assert {"script", "image", "foreignObject", "a"}.isdisjoint(
        element.tag.rpartition("}")[2] for element in picture.iter()
    )
    assert re.findall(r"https?://[^\"' )]+", svg) == ["http://www.w3.org/2000/svg"]
