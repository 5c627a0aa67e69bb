from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from guardrail.errors import ConfigError
from guardrail.judges.llm import LlmJudgeSettings
from guardrail.judges.llm import settings as settings_module

LOCAL = "http://localhost:8000/v1"
PARTS = [
    part
    for part in vars(settings_module).values()
    if isinstance(part, type) and issubclass(part, BaseModel) and not part.__name__.startswith("Example")
]


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


@pytest.mark.parametrize(
    "key", [{"env": "A", "file": "b"}, {"path": "b"}, {"file": ""}, {"env": 1}, ["a"], 7]
)
def test_a_key_in_no_place_or_two_is_refused(key: object) -> None:
    with pytest.raises(ValidationError, match=r"secret itself, \{file: PATH\} or \{env: VARIABLE\}"):
        make(api_key=key)


def test_secrets_are_not_shown() -> None:
    shown = repr(make(api_key="sk-secret", extra_headers={"x-route": "hidden"}))
    assert "sk-secret" not in shown
    assert "hidden" not in shown


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host/v1", "https://", "file:///v1"])
def test_a_base_url_that_is_none_is_refused_with_the_remedy(url: str) -> None:
    with pytest.raises(ValidationError, match="write it as https"):
        make(base_url=url)


def test_a_password_in_the_base_url_is_refused_and_kept_out_of_the_message() -> None:
    with pytest.raises(ValidationError, match="give the key as api_key") as caught:
        make(base_url="https://me:hunter2@host/v1")
    assert "hunter2" not in caught.value.errors()[0]["msg"]


def test_the_settings_do_not_load_the_client() -> None:
    """A guard on the local judge is not to pay for the LLM client's memory."""
    code = "import sys, guardrail.judges.settings; sys.exit('openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_every_field_is_described(part: type[BaseModel]) -> None:
    assert [name for name, field in part.model_fields.items() if not field.description] == []


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


@pytest.mark.parametrize(
    ("fallback", "message"),
    [
        ({"model": ""}, "at least 1 character"),
        ({}, "Field required"),
        ({"model": "m", "base_url": "host:8000"}, "write it as https://HOST"),
        ({"model": "m", "base_url": "https://me:hunter2@host/v1"}, "give the key as api_key"),
        ({"model": "m", "api_key": {"env": "A", "file": "b"}}, "write the secret itself"),
        ({"model": "m", "max_retries": 3}, "Extra inputs are not permitted"),
    ],
)
def test_a_fallback_that_makes_no_sense_is_refused(fallback: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message) as caught:
        with_fallbacks(fallback)
    (error,) = caught.value.errors()
    assert error["loc"][:2] == ("fallbacks", 0)
    assert "hunter2" not in error["msg"]


@pytest.mark.parametrize("url", ["ftp://me:hunter2@host/v1", "//me:hunter2@host"])
def test_a_password_in_what_is_no_url_is_not_repeated(url: str) -> None:
    with pytest.raises(ValidationError) as caught:
        with_fallbacks(base_url=url)
    assert "hunter2" not in caught.value.errors()[0]["msg"]


@pytest.mark.parametrize(
    "values",
    [
        {"max_retries": 21},
        {"max_concurrency": 0},
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
        with_fallbacks(**values)
    with pytest.raises(ValidationError, match=message):
        with_fallbacks({"model": "second"} | values)
    assert with_fallbacks(extra_headers={"x-route": "a b\t~"}, base_url="http://h:65535/v1")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("model", "set model"),
        ("messages", "set prompts"),
        ("stream", "leave it to the judge"),
        ("response_format", "leave it to the judge"),
        ("max_completion_tokens", "set max_output_tokens"),
    ],
)
def test_a_body_that_would_override_what_the_judge_sends_is_refused(name: str, remedy: str) -> None:
    told = f"'{name}' would override what the judge sends itself; .*{remedy}"
    with pytest.raises(ValidationError, match=told):
        with_fallbacks(extra_body={"top_k": 1, name: "other"})
    with pytest.raises(ValidationError, match=told):
        with_fallbacks({"model": "second", "extra_body": {name: "other"}})
