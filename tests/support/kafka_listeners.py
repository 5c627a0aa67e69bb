"""Listeners that a test broker has beside its plain one: how each is encrypted, and how one logs in there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `make kafka` runs without what the tests need
    from tests.support.certificates import Issued

_MODULES = "org.apache.kafka.common.security"


@dataclass(frozen=True, slots=True)
class Listener:
    """One more listener. ``options`` are broker properties, without the prefix that names the listener."""

    name: str
    protocol: str
    options: Mapping[str, str] = field(default_factory=dict)

    def properties(self) -> list[str]:
        """The options as lines of a properties file."""
        prefix = f"listener.name.{self.name.lower()}."
        return [f"{prefix}{name}={value}" for name, value in self.options.items()]


def tls(server: Issued, client_ca: Path | None = None) -> dict[str, str]:
    """Options of TLS; with ``client_ca`` the clients need a certificate of that authority."""
    options = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(server.keystore)}
    if client_ca is None:
        return options
    return options | {
        "ssl.client.auth": "required",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(client_ca),
    }


def plain_login(users: Mapping[str, str]) -> dict[str, str]:
    """Options of SASL PLAIN for ``users``, name to password."""
    entries = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    return {
        "sasl.enabled.mechanisms": "PLAIN",
        "plain.sasl.jaas.config": f"{_MODULES}.plain.PlainLoginModule required {entries};",
    }


def scram_login() -> dict[str, str]:
    """Options of both SCRAM mechanisms; their users are made when the storage is formatted."""
    module = f"{_MODULES}.scram.ScramLoginModule required;"
    return {
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "scram-sha-256.sasl.jaas.config": module,
        "scram-sha-512.sasl.jaas.config": module,
    }


def oauth_login(scope: str) -> dict[str, str]:
    """Options of OAUTHBEARER with unsigned tokens, which must have ``scope`` and not be expired."""
    handler = f"{_MODULES}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
    module = f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required"
    claims = f'unsecuredLoginStringClaim_sub="broker" unsecuredValidatorRequiredScope="{scope}"'
    return {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "oauthbearer.sasl.server.callback.handler.class": handler,
        "oauthbearer.sasl.jaas.config": f"{module} {claims};",
    }
