"""The examples that the frameworks document, and what docs/frameworks.md says that each gives here."""

from __future__ import annotations

import re
from typing import Any

from guardrail.evals import aevaluate
from guardrail.evals.scores import statements
from guardrail.judges import Judge
from guardrail.judges.llm import LlmJudge
from tests.support.docs import page
from tests.support.llm_server import LlmServer, Reply, member, verdicts
from tests.support.tables import table
from tests.unit.judges.llm.asking import settings

EXAMPLES: list[dict[str, Any]] = table(__file__, "documented.yaml")
SAID = {"s": "SUPPORTED", "u": "UNSUPPORTED", "c": "CONTRADICTED"}
ROW = re.compile(r"^\| (.+?) \| ([0-9.]+) \| ([0-9.]+) \| ([0-9.]+) \|(?:.*\|)?$", re.MULTILINE)


def told() -> dict[str, tuple[float, float, float]]:
    """The page's table: what is documented, and given by the local judge and by an LLM."""
    (section,) = re.findall(r"^## Their examples\n(.*?)^## ", page("frameworks.md"), re.DOTALL | re.MULTILINE)
    return {name: (float(one), float(two), float(three)) for name, one, two, three in ROW.findall(section)}


async def scores(judge: Judge | None) -> list[tuple[float | None, int]]:
    """The score of each example, and how many statements it has."""
    rows = [{name: each[name] for name in ("question", "contexts", "answer")} for each in EXAMPLES]
    run = await aevaluate(rows, judge=judge, scores=("mastra",), concurrency=1)
    return [
        (result.scores["mastra"].value, len(statements(result.verdict)))
        for result in run.results
        if result.verdict is not None
    ]


def reply(example: dict[str, Any]) -> Reply:
    """What an LLM says that names the statements of the documentation."""
    said = []
    for number, claim in enumerate(example["llm"], 1):
        whole = (
            "CONTRADICTED" if "c" in claim else "SUPPORTED" if set(claim) == {"s"} else "PARTIALLY_SUPPORTED"
        )
        parts = zip("abcd", claim, strict=False) if len(claim) > 1 else ()
        said += [
            member(f"c{number}{letter}", SAID[each], evidence=[1], reasoning="So.") for letter, each in parts
        ]
        said.append(member(f"c{number}", SAID[claim] if len(claim) == 1 else whole, evidence=[1]))
    return Reply(verdicts(*said))


def test_the_page_tells_of_every_example() -> None:
    assert {name: documented for name, (documented, _, _) in told().items()} == {
        each["name"]: each["documented"] for each in EXAMPLES
    }


async def test_the_local_judge_gives_what_the_page_says() -> None:
    given = {each["name"]: score for each, (score, _) in zip(EXAMPLES, await scores(None), strict=True)}
    assert given == {name: local for name, (_, local, _) in told().items()}


async def test_an_llm_that_names_the_documented_statements_gives_the_documented_scores() -> None:
    async with LlmServer(*map(reply, EXAMPLES)) as server:
        judge = LlmJudge(settings(server))
        found = await scores(judge)
        await judge.aclose()
    assert len(server.calls) == len(EXAMPLES)
    counts = [len("".join(each["llm"])) for each in EXAMPLES]
    assert found == [(each["documented"], count) for each, count in zip(EXAMPLES, counts, strict=True)]
    assert [llm for _, _, llm in told().values()] == [each["documented"] for each in EXAMPLES]
