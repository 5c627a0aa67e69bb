"""NeMo's own server, with a rail that knows the words of our judge, answers ``/v1/checks`` as ours does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from nemoguardrails.server.api import app
from nemoguardrails.server.schemas.openai import GuardrailCheckResponse
from starlette.testclient import TestClient

from consumers.gateway import Gateway, ServeSettings, serving
from guardrail import Guard, Policy
from guardrail.testing import ScriptedJudge
from tests.support.docs import blocks

RAILS = {
    "config.yml": "{models: [], rails: {input: {flows: [asked]}, output: {flows: [judged]}}}",
    "rails.co": """
define bot refuse to respond
  "withheld"
define subflow asked
  $known = True
define subflow judged
  $bot_message = execute judge
  if not $bot_message
    bot refuse to respond
    stop
""",
    "actions.py": """
from nemoguardrails.actions import action
@action()
async def judge(context):
    said, mark = context["bot_message"], "[removed: not backed by the sources]"
    known = context.get("relevant_chunks") and "wrong" not in said
    return said.replace("The odd plan costs $9.", mark) if known else ""
""",
}
POLICY = Policy(rules=("verdict UNSUPPORTED: redact", "verdict CONTRADICTED: block"))


@pytest.mark.parametrize(
    ("answer", "options", "status"),
    [
        ("Returns are accepted within 14 days.", {}, "passed"),
        ("It is so. The odd plan costs $9. It is so.", {}, "modified"),
        ("Returns are accepted in the wrong way.", {}, "blocked"),
        ("Returns are accepted in the wrong way.", {"rail_types": ["output"]}, "blocked"),
        ("Returns are accepted in the wrong way.", {"rail_types": ["input"]}, "passed"),
        ("Returns are accepted within 14 days.", {"context": {}}, "blocked"),
        (None, {}, "passed"),
    ],
)
async def test_nemos_server_and_ours_answer_alike(
    tmp_path: Path, answer: str | None, options: dict[str, Any], status: str
) -> None:
    asked = json.loads(blocks("gateways.md", "json")[-1])
    asked["guardrails"] |= options
    asked["messages"][1:] = [{"role": "assistant", "content": answer}] if answer else []
    for name, text in RAILS.items():
        (tmp_path / name).write_text(text, "utf-8")
    app.rails_config_path = str(tmp_path.parent)
    asked["guardrails"]["config_id"] = tmp_path.name
    theirs = TestClient(app).post("/v1/checks", json=asked)
    async with (
        Guard(ScriptedJudge({"wrong": "CONTRADICTED", "odd": "UNSUPPORTED"}), POLICY) as guard,
        Gateway(ServeSettings(dialects=("nemo",)), guard) as made,
        serving(made.app, ServeSettings(port=0), 1) as port,
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client,
    ):
        reply = await client.post("/v1/checks", json=asked)
    told, expected = (GuardrailCheckResponse.model_validate(each.json()) for each in (reply, theirs))
    assert (told.status, told.status, told.rail is None) == (status, expected.status, expected.rail is None)
    assert told.content == expected.content or status == "blocked"  # each in words of its own
