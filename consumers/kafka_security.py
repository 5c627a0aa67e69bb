"""How a Kafka client proves who it is, and makes sure who the broker is: TLS and SASL from settings."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any, Final

from aiokafka.conn import AIOKafkaConnection
from aiokafka.errors import (
    AuthenticationFailedError,
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
from aiokafka.protocol.admin import ApiVersionRequest
from pydantic import SecretStr

from consumers.kafka_oauth import TokenRefused, token_provider
from guardrail.errors import ConfigError, TransportUnavailable
from guardrail.kafka_settings import KafkaSettings

_REFUSED: Final = (
    AuthenticationFailedError,
    IllegalSaslStateError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
_NAME_DIFFERS: Final = frozenset({62, 64})
"""OpenSSL's codes for a certificate of another host name and of another address."""


class _NotLoggedIn(KafkaError):
    """The library sees a login where the broker does not."""


def security_options(settings: KafkaSettings) -> dict[str, Any]:
    """The arguments that say how a client proves who it is and who the broker is. Raises ConfigError.

    Reads files; with a token endpoint it wants a running event loop.
    """
    return {
        "security_protocol": settings.security_protocol,
        "ssl_context": ssl_context(settings),
        "sasl_mechanism": settings.sasl_mechanism,
        "sasl_plain_username": settings.sasl_username,
        "sasl_plain_password": sasl_password(settings),
        "sasl_oauth_token_provider": token_provider(settings),
    }


def ssl_context(settings: KafkaSettings) -> ssl.SSLContext | None:
    """TLS context of the SSL protocols, else None. Raises ConfigError for a file that can't be used."""
    if not settings.security_protocol.endswith("SSL"):
        return None
    try:
        context = ssl.create_default_context(cafile=settings.ssl_cafile)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"kafka.ssl_cafile {settings.ssl_cafile} can't be used ({error}); name a PEM file of certificates"
        ) from error
    context.check_hostname = settings.ssl_check_hostname
    if settings.ssl_certfile is not None:
        password = _secret("ssl_key_password", settings.ssl_key_password, settings.ssl_key_password_file)
        try:
            # Always given: without it OpenSSL would ask for the password of an encrypted key on the terminal.
            context.load_cert_chain(settings.ssl_certfile, settings.ssl_keyfile, lambda: password or "")
        except (OSError, ssl.SSLError, ValueError) as error:
            remedy = "check both files and that they belong together"
            if not isinstance(error, OSError) or isinstance(error, ssl.SSLError):
                remedy += ", and ssl_key_password if the key is encrypted"
            raise ConfigError(
                f"kafka.ssl_certfile {settings.ssl_certfile} with ssl_keyfile {settings.ssl_keyfile} "
                f"can't be used ({error}); {remedy}"
            ) from error
    return context


def sasl_password(settings: KafkaSettings) -> str | None:
    """The password, from its file where one is named. Raises ConfigError when it can't be read."""
    return _secret("sasl_password", settings.sasl_password, settings.sasl_password_file)


def _secret(name: str, value: SecretStr | None, path: Path | None) -> str | None:
    if value is not None:
        return value.get_secret_value()
    if path is None:
        return None
    try:
        secret = path.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ConfigError(f"kafka.{name}_file {path} can't be read ({why}); make it readable") from error
    if not secret:
        raise ConfigError(f"kafka.{name}_file {path} is empty; put the password into it")
    return secret


async def confirm_login(connection: AIOKafkaConnection, settings: KafkaSettings) -> None:
    """Make sure that a token was accepted: the client library takes the broker's refusal for a welcome.

    A refused token is answered with the reason in the place of the usual empty answer (RFC 7628); what is
    asked next is refused or meets a closed connection. Raises an error that ``refusal`` knows.
    """
    if settings.security_protocol.startswith("SASL_") and settings.sasl_mechanism == "OAUTHBEARER":
        try:
            answer = await connection.send(ApiVersionRequest())
        except KafkaConnectionError as error:
            raise _NotLoggedIn("the broker hung up after the login") from error
        if answer.error_code == IllegalSaslStateError.errno:
            raise _NotLoggedIn("the broker still waits for a login")


def refusal(settings: KafkaSettings, address: str, error: BaseException) -> TransportUnavailable | None:
    """The error that ends the attempt to connect to ``address``; None where trying again may help."""
    match error:
        case TokenRefused():
            return TransportUnavailable(f"no token to log in to Kafka with: {error.args[0]}")
        case _NotLoggedIn():
            return TransportUnavailable(
                f"Kafka at {address} refused the login (the token was not accepted); check that it has not "
                "expired, and that issuer, audience and scope are those that the broker wants"
            )
        case ssl.SSLCertVerificationError():
            if error.verify_code in _NAME_DIFFERS:
                remedy = "connect by a name that stands in it, or set ssl_check_hostname to false"
            else:
                remedy = f"name the authority that issued it in ssl_cafile (now {settings.ssl_cafile})"
            return TransportUnavailable(
                f"the certificate of Kafka at {address} is not trusted ({error.verify_message}); {remedy}"
            )
        case ssl.SSLError():
            return TransportUnavailable(
                f"no TLS connection to Kafka at {address} ({error}); check security_protocol "
                f"{settings.security_protocol}, ssl_certfile and what the broker's listener wants"
            )
        case _ if isinstance(error, _REFUSED):
            login = f"sasl_mechanism {settings.sasl_mechanism}"
            if settings.sasl_mechanism != "OAUTHBEARER":
                login += f", sasl_username {settings.sasl_username!r} and the password"
            why = error.args[0] if isinstance(error, SaslAuthenticationFailed) and error.args else None
            if isinstance(error, UnsupportedSaslMechanismError):
                why = "it does not offer this mechanism"
            return TransportUnavailable(
                f"Kafka at {address} refused the login ({why or type(error).__name__}); check {login}"
            )
        case ValueError():  # SCRAM proves the broker too, and the library says so in this way
            return TransportUnavailable(
                f"Kafka at {address} answered the login wrongly; check bootstrap_servers"
            )
    return None


def hint(settings: KafkaSettings, error: BaseException) -> str:
    """What else may be wrong when every attempt to connect failed with ``error``, ready to be appended."""
    cut = isinstance(error, KafkaConnectionError | ConnectionError)
    if not cut or not settings.security_protocol.endswith("SSL"):
        return ""
    if settings.ssl_certfile is None:
        return "; if the broker asks clients for a certificate, give ssl_certfile and ssl_keyfile"
    return f"; check also that the broker trusts the certificate in ssl_certfile {settings.ssl_certfile}"
