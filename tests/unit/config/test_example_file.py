"""What is shown of a configuration, and the example file."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
import yaml
from pydantic import BaseModel

from consumers.settings import Settings, load_settings
from guardrail.judges.classifier.settings import HhemSettings
from guardrail.judges.settings import JudgeSettings
from guardrail.policy import Policy
from tests.support.config_files import models_in, write

EXAMPLE = Path(__file__).parents[3] / "guardrail.example.yaml"


def _absent(model: type[BaseModel], given: list[Any], prefix: str = "") -> list[str]:
    """The settings of ``model`` that none of the mappings ``given`` names; every mapping is of that model."""
    absent = []
    for name, field in model.model_fields.items():
        # A rule is written as one line, and a policy's name is its key.
        if prefix.startswith("policies.") and name in {"rules", "rules_before", "rules_after", "name"}:
            continue
        values = [each[name] for each in given if isinstance(each, Mapping) and name in each]
        if not values:
            absent.append(prefix + name)
            continue
        for inner in models_in(field.annotation):
            in_mapping = get_origin(field.annotation) is dict
            below = [v for value in values for v in (value.values() if in_mapping else _items(value))]
            absent += _absent(inner, below, f"{prefix}{name}.")
    return absent


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


class TestShow:
    def test_secrets_are_masked(self, tmp_path: Path) -> None:
        path = write(
            tmp_path,
            "kafka: {security_protocol: SASL_SSL, sasl_username: me, sasl_password: sk-hidden}\n"
            "judge: {llm: {api_key: sk-hidden, extra_headers: {x: sk-hidden}}}\n",
        )
        shown = yaml.safe_dump(load_settings(path).masked())
        assert "sk-hidden" not in shown
        assert "**********" in shown

    @pytest.mark.parametrize(
        ("url", "shown"),
        [
            ("https://host/v1?key=sk-hidden&b=c", "https://host/v1?key=**********&b=**********"),
            ("https://host/v1?sk-hidden", "https://host/v1?**********"),
            ("https://host:1/v1", "https://host:1/v1"),
        ],
    )
    def test_what_stands_in_the_query_of_a_url_is_masked(self, tmp_path: Path, url: str, shown: str) -> None:
        path = write(tmp_path, f"judge: {{llm: {{base_url: '{url}'}}}}")
        assert load_settings(path).masked()["judge"]["llm"]["base_url"] == shown

    def test_what_is_shown_can_be_loaded_again(self, tmp_path: Path) -> None:
        settings = load_settings(EXAMPLE)
        assert load_settings(write(tmp_path, yaml.safe_dump(settings.masked(), sort_keys=False))) == settings


class TestExample:
    def test_it_covers_every_section_and_every_setting_of_kafka_and_limits(self) -> None:
        given = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
        assert set(given) == set(Settings.model_fields)
        assert set(given["limits"]) == set(Settings().masked()["limits"])
        secrets = {"sasl_password", "ssl_key_password", "sasl_oauth_client_secret"}
        assert set(given["kafka"]) | secrets == set(Settings().masked()["kafka"])
        assert set(given["policies"]["default"]) | {"name", "severity"} == set(Policy.model_fields)

    def test_it_holds_every_setting(self) -> None:
        """Those commented out among them, and those of lists, mappings and sections that may be missing."""
        text = EXAMPLE.read_text(encoding="utf-8")
        whole = yaml.safe_load(re.sub(r"^( {2,4})# ([a-z_]+: )", r"\1\2", text, flags=re.MULTILINE))
        example = re.findall(r"^# {3}(judge:\n(?:#.*\n)+)", text, re.MULTILINE)
        [shown] = [yaml.safe_load(re.sub(r"^# {3}", "", each, flags=re.MULTILINE)) for each in example]
        assert _absent(Settings, [whole, shown]) == []
        Settings.model_validate(shown)
        assert JudgeSettings.model_validate(whole["judge"]).hhem == HhemSettings()

    def test_what_is_not_an_example_is_the_default(self) -> None:
        settings = load_settings(EXAMPLE)
        assert set(settings.policies) == {"default", "medical", "medical-strict", "shadow"}
        assert settings.routes
        assert settings.challengers
        defaults = {"policies": {"default": settings.policies["default"]}, "routes": (), "challengers": ()}
        assert settings.model_copy(update=defaults) == Settings()

    def test_its_routes_lead_to_its_policies(self) -> None:
        router = load_settings(EXAMPLE).router()
        assert router.choose("leaflets", None).name == "medical"
        assert router.choose("support-beta", "acme").name == "shadow"
        assert router.choose("support-beta", None).name == "default"
        assert router.choose("any", "one", "experimental-7").name == "shadow"

    def test_every_field_is_described(self) -> None:
        def undescribed(model: type[BaseModel], prefix: str = "") -> list[str]:
            found = []
            for name, field in model.model_fields.items():
                found += [] if field.description else [prefix + name]
                for inner in (field.annotation, *get_args(field.annotation)):
                    if isinstance(inner, type) and issubclass(inner, BaseModel):
                        found += undescribed(inner, f"{prefix}{name}.")
            return found

        assert undescribed(Settings) == []


def test_settings_need_no_extra() -> None:
    """A plain install has none of these, and reads its configuration all the same."""
    absent = ("redis", "torch", "transformers", "aiohttp", "httpx_sse")
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({absent!r})); "
        "import guardrail.cli, consumers.guard; from consumers.settings import Settings; Settings()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
