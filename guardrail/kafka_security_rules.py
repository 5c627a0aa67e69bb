"""Which of the security settings go together. Every message names the field, what is wrong and the remedy.

What has no effect is refused as well: somebody who sets a password and forgets the protocol would otherwise
talk to the broker in the clear and never know.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from guardrail.kafka_settings import KafkaSettings

_TLS_ONLY: Final = ("ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_key_password", "ssl_key_password_file")
_PASSWORD_ONLY: Final = ("sasl_username", "sasl_password", "sasl_password_file")
_CLIENT_ONLY: Final = (
    "sasl_oauth_client_id",
    "sasl_oauth_client_secret",
    "sasl_oauth_client_secret_file",
    "sasl_oauth_scope",
    "sasl_oauth_cafile",
)
_OAUTH_ONLY: Final = ("sasl_oauth_token_file", "sasl_oauth_token_url", *_CLIENT_ONLY)


def check_security(settings: KafkaSettings) -> None:
    """Raise ValueError for security settings that can't work or have no effect."""
    protocol = settings.security_protocol
    if protocol.endswith("SSL"):
        _check_certificate(settings)
    else:
        _refuse(
            settings,
            _TLS_ONLY,
            f"with security_protocol {protocol}",
            f"set security_protocol to {'SASL_SSL' if protocol.startswith('SASL_') else 'SSL'}",
        )
    if protocol.startswith("SASL_"):
        _check_login(settings)
        return
    encrypted = "SASL_SSL" if protocol == "SSL" else "SASL_SSL (or SASL_PLAINTEXT)"
    remedy = f"set security_protocol to {encrypted}"
    _refuse(settings, (*_PASSWORD_ONLY, *_OAUTH_ONLY), f"with security_protocol {protocol}", remedy)
    if settings.sasl_mechanism != "PLAIN":
        raise ValueError(
            f"sasl_mechanism {settings.sasl_mechanism} has no effect with security_protocol {protocol}; "
            f"{remedy}, or leave sasl_mechanism out"
        )


def _check_certificate(settings: KafkaSettings) -> None:
    if (settings.ssl_certfile is None) != (settings.ssl_keyfile is None):
        raise ValueError("ssl_certfile and ssl_keyfile go together; give both or neither")
    if settings.ssl_keyfile is None:
        _refuse(settings, _TLS_ONLY[3:], "without ssl_keyfile", "give ssl_certfile and ssl_keyfile")
    _at_most_one(settings, "ssl_key_password", "ssl_key_password_file")


def _check_login(settings: KafkaSettings) -> None:
    mechanism = settings.sasl_mechanism
    needs = f"security_protocol {settings.security_protocol} with sasl_mechanism {mechanism} needs"
    if mechanism != "OAUTHBEARER":
        _refuse(
            settings, _OAUTH_ONLY, f"with sasl_mechanism {mechanism}", "set sasl_mechanism to OAUTHBEARER"
        )
        if not settings.sasl_username:
            raise ValueError(f"{needs} sasl_username; give the user's name")
        _exactly_one(settings, needs, "sasl_password", "sasl_password_file")
        return
    _refuse(settings, _PASSWORD_ONLY, "with sasl_mechanism OAUTHBEARER", "give the client's id and secret")
    _exactly_one(settings, needs, "sasl_oauth_token_file", "sasl_oauth_token_url")
    if settings.sasl_oauth_token_url is None:
        _refuse(
            settings, _CLIENT_ONLY, "with sasl_oauth_token_file", "give sasl_oauth_token_url instead of it"
        )
        return
    _check_url(settings.sasl_oauth_token_url)
    if settings.sasl_oauth_client_id is None:
        raise ValueError("sasl_oauth_token_url needs sasl_oauth_client_id; give the client's id there")
    _exactly_one(
        settings, "sasl_oauth_token_url needs", "sasl_oauth_client_secret", "sasl_oauth_client_secret_file"
    )


def _check_url(url: str) -> None:
    """The client's secret goes there: nobody may read it on the way, and nothing in the URL is secret."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    form = "write https://HOST[:PORT]/PATH"
    if not host or parts.scheme not in {"http", "https"}:
        raise ValueError(f"sasl_oauth_token_url {without_query(url)!r} is no https URL; {form}")
    if parts.username or parts.password:
        raise ValueError(
            "sasl_oauth_token_url holds a user name or password; give them as sasl_oauth_client_id and "
            "sasl_oauth_client_secret_file"
        )
    if parts.fragment:
        raise ValueError(f"sasl_oauth_token_url {without_query(url)!r} has a fragment; {form}")
    if parts.scheme == "http" and not _is_loopback(host):
        raise ValueError(
            f"sasl_oauth_token_url {without_query(url)!r} would send the client's secret in the clear; "
            "write it with https, http is for this machine only (localhost)"
        )


def without_query(url: str) -> str:
    """A URL for messages: a query can hold a key."""
    return url.split("?", 1)[0].split("#", 1)[0]


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _given(settings: KafkaSettings, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if getattr(settings, name) is not None]


def _refuse(settings: KafkaSettings, names: tuple[str, ...], where: str, instead: str) -> None:
    given = _given(settings, names)
    if given:
        have = "has" if len(given) == 1 else "have"
        them = "it" if len(given) == 1 else "them"
        raise ValueError(f"{' and '.join(given)} {have} no effect {where}; {instead}, or take {them} out")


def _exactly_one(settings: KafkaSettings, needs: str, one: str, other: str) -> None:
    if not _given(settings, (one, other)):
        raise ValueError(f"{needs} {one} or {other}; give one of them")
    _at_most_one(settings, one, other)


def _at_most_one(settings: KafkaSettings, one: str, other: str) -> None:
    if len(_given(settings, (one, other))) > 1:
        raise ValueError(f"{one} and {other} are both given, and not both may be; take one out")
