from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, ValidationError

from guardrail.config import load_settings
from guardrail.config.problems import SettingsError
from guardrail.judges.llm import settings as settings_module
from guardrail.judges.llm.settings import LlmJudgeSettings
from guardrail.judges.settings import JudgeSettings

PARTS = [
    part
    for part in vars(settings_module).values()
    if isinstance(part, type) and issubclass(part, BaseModel) and not part.__name__.startswith("Example")
]


def make(*fallbacks: dict[str, Any], **values: Any) -> LlmJudgeSettings:
    return LlmJudgeSettings.model_validate({"model": "first", "fallbacks": list(fallbacks)} | values)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_every_field_is_described(part: type[BaseModel]) -> None:
    assert [name for name, field in part.model_fields.items() if not field.description] == []


def test_without_fallbacks_there_is_one_model() -> None:
    settings = make()
    assert settings.models() == (settings,)


def test_what_a_fallback_leaves_out_is_as_for_the_first() -> None:
    settings = make({"model": "second"}, timeout_ms=5_000, stall_timeout_ms=700, max_concurrency=3)
    _, second = settings.models()
    assert (second.model, second.base_url) == ("second", settings.base_url)
    assert (second.timeout_ms, second.stall_timeout_ms, second.max_concurrency) == (5_000, 700, 3)


def test_the_same_server_is_known_without_its_last_slash() -> None:
    fallback = {"model": "second", "base_url": "https://host/v1/"}
    _, second = make(fallback, base_url="https://host/v1", api_key="sk-first").models()
    assert second.resolve_api_key() == "sk-first"


def test_another_server_gets_openai_s_key_only_if_it_is_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    fallbacks = (
        {"model": "a", "base_url": "http://own/v1"},
        {"model": "b", "base_url": "https://api.openai.com/v1"},
    )
    models = make(*fallbacks, base_url="http://gateway/v1", api_key="sk-gateway").models()
    assert [model.resolve_api_key() for model in models] == ["sk-gateway", "not-needed", "sk-openai"]


@pytest.mark.parametrize(
    ("fallback", "message"),
    [
        ({"model": ""}, "at least 1 character"),
        ({}, "Field required"),
        ({"model": "m", "base_url": "host:8000"}, "write it as https://HOST"),
        ({"model": "m", "base_url": "https://me:hunter2@host/v1"}, "give the key as api_key_file"),
        ({"model": "m", "api_key": "a", "api_key_env": "B"}, "name the key in one place only"),
        ({"model": "m", "max_retries": 3}, "Extra inputs are not permitted"),
    ],
)
def test_a_fallback_that_makes_no_sense_is_refused(fallback: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message) as caught:
        make(fallback)
    (error,) = caught.value.errors()
    assert error["loc"][:2] == ("fallbacks", 0)
    assert "hunter2" not in error["msg"]


@pytest.mark.parametrize("url", ["ftp://me:hunter2@host/v1", "//me:hunter2@host"])
def test_a_password_in_what_is_no_url_is_not_repeated(url: str) -> None:
    with pytest.raises(ValidationError) as caught:
        make(base_url=url)
    assert "hunter2" not in caught.value.errors()[0]["msg"]


@pytest.mark.parametrize(
    "values",
    [
        {"stall_timeout_ms": 0},
        {"max_retries": 21},
        {"max_concurrency": 0},
        {"temperature": 3},
        {"fallbacks": [{"model": "m"}] * 9},
    ],
    ids=str,
)
def test_values_out_of_bounds_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        LlmJudgeSettings.model_validate(values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"base_url": "http://h:99999/v1"}, "no usable host and port"),
        ({"base_url": "http://h:abc/v1"}, "no usable host and port"),
        ({"base_url": "http://[::1/v1"}, "no usable host and port"),
        ({"base_url": "http://h:0/v1"}, r"no http\(s\) URL"),
        ({"base_url": "http://h/v1?a=1&b=2&a=3"}, "a parameter of its query twice"),
        ({"extra_headers": {"x": "caf\u00e9"}}, "the value of x holds characters"),
        ({"extra_headers": {"x": "a\r\ny: b"}}, "the value of x holds characters"),
        ({"extra_headers": {"x:": "a"}}, "is no name of a header"),
    ],
)
def test_what_no_call_can_be_made_with_is_told_when_settings_load(
    values: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        make(**values)
    with pytest.raises(ValidationError, match=message):
        make({"model": "second"} | values)
    assert make(extra_headers={"x-route": "a b\t~"}, base_url="http://h:65535/v1")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("model", "set model"),
        ("messages", "set prompts"),
        ("stream", "leave it to the judge"),
        ("response_format", "leave it to the judge"),
        ("temperature", "set temperature"),
        ("max_completion_tokens", "set max_output_tokens"),
    ],
)
def test_a_body_that_would_override_what_the_judge_sends_is_refused(name: str, remedy: str) -> None:
    told = f"'{name}' would override what the judge sends itself; .*{remedy}"
    with pytest.raises(ValidationError, match=told):
        make(extra_body={"top_k": 1, name: "other"})
    with pytest.raises(ValidationError, match=told):
        make({"model": "second", "extra_body": {name: "other"}})
    alternative = {"model": "second", "extra_body": {name: "other"}}
    with pytest.raises(ValidationError, match=told):
        JudgeSettings.model_validate({"self_judging": {"alternative": alternative}})


REMOVED = [
    *((name, "judge.llm", {name: 1}) for name in LlmJudgeSettings.removed),
    ("attempt_timeout_ms", "judge.llm.fallbacks.0", {"fallbacks": [{"model": "m", "attempt_timeout_ms": 1}]}),
]


@pytest.mark.parametrize(("name", "section", "llm"), REMOVED, ids=lambda each: str(each))
def test_a_setting_that_went_is_told_with_what_became_of_it(
    tmp_path: Path, name: str, section: str, llm: dict[str, Any]
) -> None:
    path = tmp_path / "guardrail.yaml"
    path.write_text(yaml.safe_dump({"judge": {"llm": {"temperature": 9} | llm}}), "utf-8")
    with pytest.raises(SettingsError) as caught:
        load_settings(path)
    problem = next(each for each in caught.value.problems if each.path == f"{section}.{name}")
    assert problem.wrong == "no setting any more"
    assert problem.remedy
    assert problem.where is not None
    with pytest.raises(ValidationError, match="no setting any more"):
        LlmJudgeSettings.model_validate(llm)


def test_the_settings_of_hedging_went_and_it_did_not() -> None:
    with pytest.raises(ValidationError, match="no settings of its own any more; write true or false"):
        make(hedging={"enabled": True})
    assert make(hedging=True).hedging
