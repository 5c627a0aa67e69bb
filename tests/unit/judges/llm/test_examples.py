"""Few-shot examples: checked when settings load, and shown in the very form that replies are asked for in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from guardrail.claims.model import read_prose
from guardrail.config import load_settings
from guardrail.errors import ConfigError
from guardrail.judges.llm import ReplyForm, read_reply
from guardrail.judges.llm.prompt import Prompts, default_examples, fences, render
from guardrail.judges.llm.settings import MOST_EXAMPLES
from tests.unit.judges.llm.asking import request, settings

CLAIM = {"text": "Es kostet 5 €.", "verdict": "SUPPORTED", "evidence": [1]}
EXAMPLE = {"sentences": ["Der Preis beträgt 5 €."], "claims": [CLAIM]}

FORMS = [ReplyForm(reasons, decompose) for reasons in (True, False) for decompose in (False, True)]


@pytest.mark.parametrize("form", FORMS, ids=repr)
def test_the_replies_of_the_package_s_examples_keep_to_the_schema_and_are_read_as_meant(
    form: ReplyForm,
) -> None:
    replies = [line for line in render(default_examples(), form).split("\n") if line.startswith("{")]
    assert len(replies) == len(default_examples())
    for reply, example in zip(replies, default_examples(), strict=True):
        Draft202012Validator(form.schema()).validate(json.loads(reply))
        answers = read_reply(reply, form)
        assert not any(answer.problem for answer in answers)
        for answer, claim in zip(answers, example.claims, strict=True):
            assert answer.verdict == claim.verdict
            assert answer.evidence == claim.evidence
            assert len(answer.parts) == (len(claim.parts) if form.decompose else 0)


def test_the_package_s_examples_show_every_verdict() -> None:
    shown = {claim.verdict for example in default_examples() for claim in example.claims}
    assert shown == {"SUPPORTED", "PARTIALLY_SUPPORTED", "UNSUPPORTED", "CONTRADICTED"}
    assert any(claim.parts for example in default_examples() for claim in example.claims)


def in_file(folder: Path, examples: object) -> dict[str, Any]:
    """The settings that name a file with these examples."""
    path = folder / "examples.yaml"
    path.write_text(yaml.safe_dump(examples, allow_unicode=True), "utf-8")
    return {"prompts": {"examples": str(path)}}


def _system(**changes: Any) -> str:
    prompts = Prompts(settings(**changes))
    return prompts.build(request(), fences(b"secret")("r")).messages[0]["content"]


def test_examples_of_ones_own_stand_in_the_prompt_ahead_of_what_changes(tmp_path: Path) -> None:
    system = _system(**in_file(tmp_path, [EXAMPLE]))
    assert "[1] Der Preis beträgt 5 €." in system
    assert "c1: Es kostet 5 €." in system
    assert "Das Museum" not in system
    assert system.index("Der Preis") < system.index("The marker is")


def test_there_may_be_none(tmp_path: Path) -> None:
    assert "# Examples" not in _system(**in_file(tmp_path, []))
    assert "Das Museum" in _system()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"sentences": []}, "sentences"),
        ({"claims": []}, "claims"),
        ({"claims": [CLAIM | {"verdict": "TRUE"}]}, "verdict"),
        ({"claims": [CLAIM | {"verdict": "UNVERIFIED"}]}, "verdict"),
        ({"claims": [CLAIM | {"evidence": [2]}]}, "claim 1 names sentence 2 of 1"),
        ({"claims": [CLAIM | {"evidence": [0]}]}, "evidence"),
        ({"claims": [CLAIM | {"evidence": []}]}, "SUPPORTED has no evidence"),
        ({"claims": [CLAIM | {"verdict": "UNSUPPORTED"}]}, "UNSUPPORTED has evidence"),
        ({"claims": [CLAIM | {"verdict": "CONTRADICTED", "against": [1]}]}, "has against"),
        ({"claims": [CLAIM | {"parts": [{"text": "x", "verdict": "UNSUPPORTED"}]}]}, "don't add up"),
        ({"claims": [CLAIM | {"confidence": 1.5}]}, "confidence"),
        ({"claims": [{"verdict": "SUPPORTED", "evidence": [1]}]}, "text"),
        ({"answer": "x"}, "answer"),
    ],
)
def test_an_example_that_makes_no_sense_is_refused(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        settings(**in_file(tmp_path, [EXAMPLE | change]))


def test_too_many_examples_are_refused(tmp_path: Path) -> None:
    assert settings(**in_file(tmp_path, [EXAMPLE] * MOST_EXAMPLES))
    with pytest.raises(ValidationError, match=f"at most {MOST_EXAMPLES} items"):
        settings(**in_file(tmp_path, [EXAMPLE] * (MOST_EXAMPLES + 1)))


@pytest.mark.parametrize(
    ("content", "told"), [(None, "can't be read"), ("a: [", "not YAML"), ("a: 1", "valid tuple")]
)
def test_a_file_that_holds_no_examples_is_named(tmp_path: Path, content: str | None, told: str) -> None:
    path = tmp_path / "examples.yaml"
    if content is not None:
        path.write_text(content, "utf-8")
    config = tmp_path / "guardrail.yaml"
    config.write_text(f"judge: {{llm: {{prompts: {{examples: '{path}'}}}}}}", "utf-8")
    with pytest.raises(ConfigError, match=told) as caught:
        load_settings(config)
    assert "judge.llm.prompts.examples" in str(caught.value)


SCRIPTS = (
    "تبلغ تكلفة الخطة 50 دولارًا شهريًا.",
    "该计划每月费用为50美元。",
    "แผนพื้นฐานมีราคา 50 ดอลลาร์ต่อเดือน",
    "Stück für Stück 👩‍👩‍👧 kostet é = é 50 €.",
)


@pytest.mark.parametrize("text", SCRIPTS)
def test_a_text_of_any_script_stands_in_the_prompt_as_it_is(tmp_path: Path, text: str) -> None:
    example = {"sentences": [text], "claims": [CLAIM | {"text": text}]}
    prompts = Prompts(settings(**in_file(tmp_path, [example])))
    system, user = prompts.build(
        request(text, contexts=[text], question=text), fences(b"secret")("r")
    ).messages
    assert system["content"].count(text) == 2
    assert user["content"].count(text) >= 2
    assert user["content"].count(read_prose(text).text) >= 1
    assert "in the language of the claim" in system["content"]
