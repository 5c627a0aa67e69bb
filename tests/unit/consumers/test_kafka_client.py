"""Options, security and error messages of the Kafka clients; what needs a broker is in tests/integration."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
import yaml
from aiokafka.errors import (
    CommitFailedError,
    GroupAuthorizationFailedError,
    GroupCoordinatorNotAvailableError,
    KafkaError,
    MessageSizeTooLargeError,
    UnknownTopicOrPartitionError,
)
from pydantic import ValidationError

from consumers.kafka import client_options
from consumers.kafka.client import quiet_client_log, quiet_while, translated
from consumers.kafka.security import refusal, security_options, ssl_context
from consumers.settings import KafkaSettings, Topics, load_settings
from guardrail.errors import ConfigError, PartitionLost, TransportError, TransportUnavailable

LOGIN = {"security_protocol": "SASL_SSL", "sasl_username": "guard"}


def test_defaults_are_plain() -> None:
    options = client_options(KafkaSettings())
    assert options["bootstrap_servers"] == "localhost:9092"
    assert options["ssl_context"] is None
    assert options["sasl_plain_password"] is None


def test_password_from_its_file_loses_only_the_line_end(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(" pass word \n")
    settings = KafkaSettings.model_validate({**LOGIN, "sasl_password": {"file": file}})
    assert security_options(settings)["sasl_plain_password"] == " pass word "


def test_a_password_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    settings = KafkaSettings.model_validate({**LOGIN, "sasl_password": {"file": tmp_path / "gone"}})
    with pytest.raises(ConfigError, match="gone"):
        security_options(settings)


def test_certificates_that_can_not_be_used_are_named(tmp_path: Path) -> None:
    bad = tmp_path / "ca.pem"
    bad.write_text("not a certificate")
    with pytest.raises(ConfigError, match=r"ca\.pem"):
        ssl_context(KafkaSettings(security_protocol="SSL", ssl_cafile=bad))
    with pytest.raises(ConfigError, match="absent"):
        ssl_context(KafkaSettings(security_protocol="SSL", ssl_cafile=tmp_path / "absent"))


def test_host_names_are_checked() -> None:
    context = ssl_context(KafkaSettings(security_protocol="SSL"))
    assert context is not None
    assert context.check_hostname


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"client": {"heartbeat_interval_ms": 20_000}}, "third of client.session_timeout_ms"),
        ({"security_protocol": "SASL_PLAINTEXT"}, "needs sasl_username"),
        (LOGIN, "needs sasl_password; give it"),
        ({**LOGIN, "sasl_password": {"file": "/b", "env": "A"}}, "write the secret itself"),
        ({"security_protocol": "SSL", "ssl_certfile": "/a"}, "go together"),
        ({"client": {"compression_type": "zip"}}, "compression_type"),
        ({"topics": {"verdicts": "no spaces"}}, "pattern"),
        ({"topics": {"verdicts": "same", "flagged": "same"}}, "two topics have the name same"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_settings_that_can_not_work_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        KafkaSettings.model_validate(changes)


def test_every_setting_is_described() -> None:
    for model in (KafkaSettings, Topics):
        assert all(field.description for field in model.model_fields.values())


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (TimeoutError(), TransportError, "whether it was done is unknown"),
        (CommitFailedError("rebalanced"), PartitionLost, "another member"),
        (GroupAuthorizationFailedError("g"), TransportUnavailable, "grant"),
        (UnknownTopicOrPartitionError(), TransportUnavailable, "topics create"),
        (MessageSizeTooLargeError(), TransportError, "max.message.bytes"),
        (KafkaError("odd"), TransportError, "odd"),
        (TransportUnavailable("as it was"), TransportUnavailable, "as it was"),
    ],
)
def test_errors_say_who_has_to_act(error: Exception, kind: type[TransportError], says: str) -> None:
    ours = translated(error, "writing")
    assert type(ours) is kind
    assert says in str(ours)


def test_a_missing_topic_is_logged_once_and_each_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    quiet_client_log()
    log = logging.getLogger("aiokafka.cluster")
    for _ in range(10):
        for topic in ("gone-a", "gone-b"):
            log.error("Topic %s not found in cluster metadata", topic)
    assert [record.getMessage() for record in caplog.records] == [
        "Topic gone-a not found in cluster metadata",
        "Topic gone-b not found in cluster metadata",
    ]


def test_a_new_cluster_looking_for_its_coordinator_is_not_logged_as_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    quiet_client_log()
    log = logging.getLogger("aiokafka.consumer.group_coordinator")
    log.error("Group Coordinator Request failed: %s", GroupCoordinatorNotAvailableError())
    log.error("Group Coordinator Request failed: %s", KafkaError("worth knowing"))
    assert [record.getMessage() for record in caplog.records] == [
        "Group Coordinator Request failed: KafkaError: worth knowing",
    ]


def test_while_something_is_away_the_library_is_for_debugging(caplog: pytest.LogCaptureFixture) -> None:
    quiet_client_log()
    log = logging.getLogger("aiokafka.conn")
    one, other = object(), object()
    quiet_while(one, away=True)
    quiet_while(other, away=True)
    log.error("first: %s", "a")
    quiet_while(one, away=False)
    log.error("second: %s", "a")
    with caplog.at_level(logging.DEBUG, "aiokafka.conn"):
        log.error("for debugging: %s", "a")
    quiet_while(other, away=False)
    log.error("back: %s", "a")
    told = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert told == [("DEBUG", "for debugging: a"), ("ERROR", "back: a")]


def test_the_remedy_repeats_the_file_that_was_given(tmp_path: Path) -> None:
    path = tmp_path / "my settings.yaml"
    path.write_text("kafka: {bootstrap_servers: 'kafka:9092'}\n")
    assert load_settings(path).kafka.create_command == (
        f"guardrail topics create -c '{path}' --bootstrap-servers kafka:9092"
    )
    assert load_settings().kafka.create_command == (
        "guardrail topics create --bootstrap-servers localhost:9092"
    )


# ---------------------------------------------------------------------------------------------- security

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
        (CLIENT | {"sasl_oauth_token_url": "idp.test"}, "'idp.test' is not an https URL; write https://"),
        (CLIENT | {"sasl_oauth_token_url": "https://[::1"}, "is not an https URL"),
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
        security_options(settings)


def test_a_certificate_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    files = {"ssl_certfile": tmp_path / "gone", "ssl_keyfile": tmp_path / "gone"}
    with pytest.raises(ConfigError, match=r"ssl_certfile .*gone.*No such file"):
        ssl_context(KafkaSettings.model_validate({"security_protocol": "SSL", **files}))


def test_a_broker_that_can_not_prove_itself_is_refused() -> None:
    found = refusal(KafkaSettings(), "a:1", ValueError("Server sent wrong signature!"))
    assert "a:1 answered the login wrongly" in str(found)
    assert refusal(KafkaSettings(), "a:1", ConnectionRefusedError()) is None
