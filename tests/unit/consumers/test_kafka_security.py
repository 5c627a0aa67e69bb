"""Security settings: what goes together, what is refused, and what the documentation shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from consumers.kafka.security import refusal, sasl_password, ssl_context
from consumers.settings import KafkaSettings, load_settings
from guardrail.errors import ConfigError

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "kafka-security.md").read_text("utf-8")
BLOCKS = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)

TOKENS = {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}
FILE = TOKENS | {"sasl_oauth_token_file": "/token"}
CLIENT = TOKENS | {
    "sasl_oauth_token_url": "https://idp.test/token",
    "sasl_oauth_client_id": "me",
    "sasl_oauth_client_secret": "hidden-one",
}
PASSWORD = {"security_protocol": "SASL_SSL", "sasl_username": "me", "sasl_password": "hidden-one"}


@pytest.mark.parametrize("block", BLOCKS)
def test_a_documented_configuration_loads(block: str, tmp_path: Path) -> None:
    path = tmp_path / "guardrail.yaml"
    path.write_text(block, encoding="utf-8")
    assert load_settings(path).kafka.security_protocol != "PLAINTEXT"


def test_every_mechanism_is_documented() -> None:
    loaded = [KafkaSettings.model_validate(yaml.safe_load(block)["kafka"]) for block in BLOCKS]
    assert {one.sasl_mechanism for one in loaded} == {"PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"}
    assert "SCRAM-SHA-256" in TEXT
    named = set(re.findall(r"`(s(?:asl|sl)_[a-z_]+[a-z])", TEXT))
    assert named <= set(KafkaSettings.model_fields)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ssl_cafile": "/ca"}, "ssl_cafile has no effect with security_protocol PLAINTEXT; set .* to SSL,"),
        (
            {"security_protocol": "SASL_PLAINTEXT", "sasl_username": "a", "ssl_cafile": "/ca"},
            "set security_protocol to SASL_SSL",
        ),
        ({"sasl_username": "a"}, "sasl_username has no effect with security_protocol PLAINTEXT; set"),
        (PASSWORD | {"security_protocol": "SSL"}, "sasl_username and sasl_password have no effect"),
        ({"sasl_mechanism": "SCRAM-SHA-256"}, "sasl_mechanism SCRAM-SHA-256 has no effect"),
        (PASSWORD | {"ssl_key_password": "x"}, "ssl_key_password has no effect without ssl_keyfile"),
        (PASSWORD | {"sasl_oauth_scope": "a"}, "sasl_oauth_scope has no effect with sasl_mechanism PLAIN"),
        (TOKENS, "needs sasl_oauth_token_file or sasl_oauth_token_url"),
        (FILE | {"sasl_password": "hidden-one"}, "sasl_password has no effect with sasl_mechanism OAUTH"),
        (FILE | CLIENT, "sasl_oauth_token_file and sasl_oauth_token_url are both given"),
        (FILE | {"sasl_oauth_client_id": "a"}, "sasl_oauth_client_id has no effect with sasl_oauth_token_f"),
        (CLIENT | {"sasl_oauth_client_id": None}, "needs sasl_oauth_client_id"),
        (CLIENT | {"sasl_oauth_client_secret": None}, "needs sasl_oauth_client_secret; give it"),
        (CLIENT | {"sasl_oauth_token_url": "idp.test"}, "'idp.test' is no https URL; write https://"),
        (CLIENT | {"sasl_oauth_token_url": "https://[::1"}, "is no https URL"),
        (CLIENT | {"sasl_oauth_token_url": "http://idp.test/t?hidden-one"}, "'http://idp.test/t' would send"),
        (CLIENT | {"sasl_oauth_token_url": "https://me:hidden-one@idp.test"}, "holds a user name or pass"),
        (CLIENT | {"sasl_oauth_token_url": "https://idp.test/t#a"}, "has a fragment"),
    ],
)
def test_what_does_not_go_together_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message) as caught:
        KafkaSettings.model_validate(changes)
    assert "hidden-one" not in str([details["msg"] for details in caught.value.errors()])


@pytest.mark.parametrize("host", ["localhost:8080", "127.0.0.1", "[::1]:80"])
def test_http_is_for_this_machine(host: str) -> None:
    url = f"http://{host}/token"
    assert KafkaSettings.model_validate(CLIENT | {"sasl_oauth_token_url": url}).sasl_oauth_token_url == url


def test_secrets_are_not_shown() -> None:
    keys = {"ssl_certfile": "/c", "ssl_keyfile": "/k", "ssl_key_password": "hidden-two"}
    settings = KafkaSettings.model_validate(CLIENT | keys)
    assert "hidden" not in repr(settings) + settings.model_dump_json()


def test_an_empty_password_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("\n")
    settings = KafkaSettings.model_validate(PASSWORD | {"sasl_password": {"file": tmp_path / "password"}})
    with pytest.raises(ConfigError, match="is empty; put the password into it"):
        sasl_password(settings)


def test_a_certificate_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    files = {"ssl_certfile": tmp_path / "gone", "ssl_keyfile": tmp_path / "gone"}
    with pytest.raises(ConfigError, match=r"ssl_certfile .*gone.*No such file"):
        ssl_context(KafkaSettings.model_validate({"security_protocol": "SSL", **files}))


def test_a_broker_that_can_not_prove_itself_is_refused() -> None:
    found = refusal(KafkaSettings(), "a:1", ValueError("Server sent wrong signature!"))
    assert "a:1 answered the login wrongly" in str(found)
    assert refusal(KafkaSettings(), "a:1", ConnectionRefusedError()) is None
