from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from guardrail.claims.model import read_prose
from guardrail.config import load_settings
from guardrail.errors import ConfigError
from guardrail.judges.llm import LlmJudgeSettings, ReplyForm, read_reply
from guardrail.judges.llm.prompt import Prompts, default_examples, fences, render
from guardrail.judges.llm.settings import MOST_EXAMPLES
from tests.unit.judges.llm.asking import request, settings

LOCAL = "http://localhost:8000/v1"


def make(**values: Any) -> LlmJudgeSettings:
    return LlmJudgeSettings.model_validate(values)


def with_fallbacks(*fallbacks: dict[str, Any], **values: Any) -> LlmJudgeSettings:
    return make(model="first", fallbacks=list(fallbacks), **values)


def test_the_key_comes_from_where_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "from-env")
    (tmp_path / "key").write_text("from-file\n", "utf-8")
    assert make(api_key="plain").resolve_api_key() == "plain"
    assert make(api_key={"env": "MY_KEY"}, base_url=LOCAL).resolve_api_key() == "from-env"
    assert make(api_key={"file": tmp_path / "key"}).resolve_api_key() == "from-file"


def test_openai_s_key_is_sent_to_openai_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that happens to be in the environment must not leak to whichever server is configured."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert make().resolve_api_key() == "sk-secret"
    assert make(base_url=LOCAL).resolve_api_key() == "not-needed"


def test_a_missing_key_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set; set it"):
        make().resolve_api_key()
    with pytest.raises(ConfigError, match="can't be read"):
        make(api_key={"file": tmp_path / "none"}).resolve_api_key()
    (tmp_path / "empty").write_text(" \n", "utf-8")
    with pytest.raises(ConfigError, match="is empty"):
        make(api_key={"file": tmp_path / "empty"}).resolve_api_key()
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8 text"):
        make(api_key={"file": tmp_path / "binary"}).resolve_api_key()


@pytest.mark.parametrize("text", ["sk-\u0430\u0431c-secret", "sk-one-secret\nsk-two-secret", "sk-\0secret"])
def test_a_key_that_no_header_can_carry_is_told_at_start_and_not_shown(tmp_path: Path, text: str) -> None:
    (tmp_path / "key").write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=r"api_key: .* holds characters no header can carry") as caught:
        make(api_key={"file": tmp_path / "key"}).resolve_api_key()
    assert "sk-" not in str(caught.value)


def test_secrets_are_not_shown() -> None:
    shown = repr(make(api_key="sk-secret", extra_headers={"x-route": "hidden"}))
    assert "sk-secret" not in shown
    assert "hidden" not in shown


def test_the_settings_do_not_load_the_client() -> None:
    """A guard on the local judge is not to pay for the LLM client's memory."""
    code = "import sys, guardrail.judges.settings; sys.exit('openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_fallbacks_there_is_one_model() -> None:
    settings = with_fallbacks()
    assert settings.models() == (settings,)


def test_what_a_fallback_leaves_out_is_as_for_the_first() -> None:
    settings = with_fallbacks({"model": "second"}, max_output_tokens=700, max_concurrency=3)
    _, second = settings.models()
    assert (second.model, second.base_url) == ("second", settings.base_url)
    assert (second.max_output_tokens, second.max_concurrency) == (700, 3)


def test_the_same_server_is_known_without_its_last_slash() -> None:
    fallback = {"model": "second", "base_url": "https://host/v1/"}
    _, second = with_fallbacks(fallback, base_url="https://host/v1", api_key="sk-first").models()
    assert second.resolve_api_key() == "sk-first"


def test_another_server_gets_openai_s_key_only_if_it_is_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    fallbacks = (
        {"model": "a", "base_url": "http://own/v1"},
        {"model": "b", "base_url": "https://api.openai.com/v1"},
    )
    models = with_fallbacks(*fallbacks, base_url="http://gateway/v1", api_key="sk-gateway").models()
    assert [model.resolve_api_key() for model in models] == ["sk-gateway", "not-needed", "sk-openai"]


KEY: Final = r"write the secret itself, \{file: PATH\} or \{env: VARIABLE\}"
NO_URL: Final = "write it as https"
LOGIN: Final = "give the key as api_key"
OF_ANY_MODEL: Final[list[tuple[dict[str, Any], str]]] = [
    ({"model": ""}, "at least 1 character"),
    *(
        ({"api_key": key}, KEY)
        for key in ({"env": "A", "file": "b"}, {"path": "b"}, {"file": ""}, {"env": 1}, ["a"], 7)
    ),
    *(({"base_url": url}, NO_URL) for url in ("localhost:8000", "ftp://host/v1", "https://", "file:///v1")),
    # The password is kept out of the message.
    ({"base_url": "https://me:hunter2@host/v1"}, LOGIN),
    ({"base_url": "ftp://me:hunter2@host/v1"}, LOGIN),
    ({"base_url": "//me:hunter2@host"}, LOGIN),
    # What no call can be made with is told when settings load.
    ({"base_url": "http://h:99999/v1"}, "no usable host and port"),
    ({"base_url": "http://h:abc/v1"}, "no usable host and port"),
    ({"base_url": "http://[::1/v1"}, "no usable host and port"),
    ({"base_url": "http://h:0/v1"}, r"not an http\(s\) URL"),
    ({"base_url": "http://h/v1?a=1&b=2&a=3"}, "a parameter of its query twice"),
    ({"extra_headers": {"x": "caf\u00e9"}}, "the value of x holds characters"),
    ({"extra_headers": {"x": "a\r\ny: b"}}, "the value of x holds characters"),
    ({"extra_headers": {"x:": "a"}}, "is not a name of a header"),
    # A body that would override what the judge sends.
    *(
        (
            {"extra_body": {"top_k": 1, name: "other"}},
            f"'{name}' would override what the judge sends itself; .*{remedy}",
        )
        for name, remedy in {
            "model": "set model",
            "messages": "set prompts",
            "stream": "leave it to the judge",
            "response_format": "leave it to the judge",
            "max_completion_tokens": "set max_output_tokens",
        }.items()
    ),
]
OF_THE_JUDGE: Final[list[tuple[dict[str, Any], str]]] = [
    ({"max_concurrency": 0}, "greater than"),
    ({"fallbacks": [{"model": "m"}] * 9}, "at most"),
    ({"fallbacks": [{}]}, "Field required"),
    ({"fallbacks": [{"model": "m", "max_retries": 3}]}, "Extra inputs are not permitted"),
]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        *OF_ANY_MODEL,
        *OF_THE_JUDGE,
        *(({"fallbacks": [{"model": "m"} | each]}, told) for each, told in OF_ANY_MODEL),
    ],
    ids=lambda each: str(each)[:60],
)
def test_what_makes_no_sense_is_refused_with_the_remedy_and_without_secrets(
    values: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message) as caught:
        make(**values)
    (error,) = caught.value.errors()
    [(name, value)] = values.items()
    assert error["loc"][: 1 + (name == "fallbacks" and len(value) == 1)] in {(name,), (name, 0)}
    assert "hunter2" not in error["msg"]


def test_odd_values_that_can_be_sent_are_taken() -> None:
    assert make(extra_headers={"x-route": "a b\t~"}, base_url="http://h:65535/v1")


# --------------------------------------------------------------------------------------------------- examples

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
