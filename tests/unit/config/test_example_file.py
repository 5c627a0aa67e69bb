"""What is shown of a configuration, and the example file."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from consumers.settings import GuardSettings, load_settings
from guardrail.leaves import Place, places
from tests.support.config_files import write

EXAMPLE = Path(__file__).parents[3] / "guardrail.example.yaml"


class TestShow:
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
    def test_it_fits_on_two_screens(self) -> None:
        lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 120
        assert max(map(len, lines)) <= 120

    def test_what_is_commented_out_can_be_used(self, tmp_path: Path) -> None:
        """Together with what it needs: SASL needs a protocol that has it."""
        text = EXAMPLE.read_text(encoding="utf-8").replace("PLAINTEXT ", "SASL_SSL ")
        whole, found = re.subn(r"^( {0,4})# ([a-z_]+: )", r"\1\2", text, flags=re.MULTILINE)
        settings = load_settings(write(tmp_path, whole))
        assert found == 9
        assert settings.judge.cache.signing_key is not None
        assert settings.kafka.sasl_mechanism == "SCRAM-SHA-512"

    def test_what_is_not_an_example_is_the_default(self) -> None:
        settings = load_settings(EXAMPLE)
        assert set(settings.policies) == {"default", "medical", "medical-strict", "shadow"}
        assert settings.routes
        assert settings.challengers
        defaults = {"policies": {"default": settings.policies["default"]}, "routes": (), "challengers": ()}
        assert settings.model_copy(update=defaults) == GuardSettings()

    def test_its_routes_lead_to_its_policies(self) -> None:
        router = load_settings(EXAMPLE).router()
        assert router.choose("leaflets", None).name == "medical"
        assert router.choose("support-beta", "acme").name == "shadow"
        assert router.choose("support-beta", None).name == "default"
        assert router.choose("any", "one", "experimental-7").name == "shadow"

    def test_every_field_is_described(self) -> None:
        every = list(places(Place((), GuardSettings)))
        assert [each.dotted for each in every if each.field and not each.field.description] == []


def test_settings_need_no_extra() -> None:
    """A plain install has none of these, and reads its configuration all the same."""
    absent = ("redis", "torch", "transformers", "aiohttp", "httpx_sse")
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({absent!r})); "
        "import guardrail.cli, consumers.guard; from consumers.settings import GuardSettings; GuardSettings()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
