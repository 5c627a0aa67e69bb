from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from guardrail.errors import ConfigError
from guardrail.judges.llm.settings import LlmJudgeSettings

LOCAL = "http://localhost:8000/v1"


def make(**values: Any) -> LlmJudgeSettings:
    return LlmJudgeSettings.model_validate(values)


def test_every_field_is_described() -> None:
    assert [name for name, field in LlmJudgeSettings.model_fields.items() if not field.description] == []


def test_the_key_comes_from_where_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "from-env")
    (tmp_path / "key").write_text("from-file\n", "utf-8")
    assert make(api_key="plain").resolve_api_key() == "plain"
    assert make(api_key_env="MY_KEY", base_url=LOCAL).resolve_api_key() == "from-env"
    assert make(api_key_file=tmp_path / "key").resolve_api_key() == "from-file"


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
        make(api_key_file=tmp_path / "none").resolve_api_key()
    (tmp_path / "empty").write_text(" \n", "utf-8")
    with pytest.raises(ConfigError, match="is empty"):
        make(api_key_file=tmp_path / "empty").resolve_api_key()
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8 text"):
        make(api_key_file=tmp_path / "binary").resolve_api_key()


@pytest.mark.parametrize("text", ["sk-\u0430\u0431c-secret", "sk-one-secret\nsk-two-secret", "sk-\0secret"])
def test_a_key_that_no_header_can_carry_is_told_at_start_and_not_shown(tmp_path: Path, text: str) -> None:
    (tmp_path / "key").write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=r"api_key_file: .* holds characters no header can carry") as caught:
        make(api_key_file=tmp_path / "key").resolve_api_key()
    assert "sk-" not in str(caught.value)


def test_two_places_for_the_key_are_refused() -> None:
    with pytest.raises(ValidationError, match="api_key and api_key_env are both given"):
        make(api_key="a", api_key_env="B")


def test_secrets_are_not_shown() -> None:
    shown = repr(make(api_key="sk-secret", extra_headers={"x-route": "hidden"}))
    assert "sk-secret" not in shown
    assert "hidden" not in shown


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host/v1", "https://", "file:///v1"])
def test_a_base_url_that_is_none_is_refused_with_the_remedy(url: str) -> None:
    with pytest.raises(ValidationError, match="write it as https"):
        make(base_url=url)


def test_a_password_in_the_base_url_is_refused_and_kept_out_of_the_message() -> None:
    with pytest.raises(ValidationError, match="give the key as api_key_file") as caught:
        make(base_url="https://me:hunter2@host/v1")
    assert "hunter2" not in caught.value.errors()[0]["msg"]


def test_the_settings_do_not_load_the_client() -> None:
    """A guard on the local judge is not to pay for the LLM client's memory."""
    code = "import sys, guardrail.judges.settings; sys.exit('openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
