"""How a Kafka client proves who it is, and makes sure who the broker is: TLS and SASL from settings."""

from __future__ import annotations

import ssl
from typing import Any

from guardrail.errors import ConfigError
from guardrail.kafka_settings import KafkaSettings


def ssl_context(settings: KafkaSettings) -> ssl.SSLContext | None:
    """TLS context of the SSL protocols, else None. Raises ConfigError for a file that can't be used."""
    if not settings.security_protocol.endswith("SSL"):
        return None
    try:
        context = ssl.create_default_context(cafile=settings.ssl_cafile)
        context.check_hostname = settings.ssl_check_hostname
        if settings.ssl_certfile is not None:
            context.load_cert_chain(settings.ssl_certfile, settings.ssl_keyfile)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"kafka TLS files can't be used: {error}; check ssl_cafile {settings.ssl_cafile}, "
            f"ssl_certfile {settings.ssl_certfile} and ssl_keyfile {settings.ssl_keyfile}"
        ) from error
    return context


def sasl_password(settings: KafkaSettings) -> str | None:
    """The password, from its file where one is named. Raises ConfigError when it can't be read."""
    if settings.sasl_password is not None:
        return settings.sasl_password.get_secret_value()
    if settings.sasl_password_file is None:
        return None
    try:
        return settings.sasl_password_file.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"kafka.sasl_password_file {settings.sasl_password_file} can't be read: {error}"
        ) from error


def security_options(settings: KafkaSettings) -> dict[str, Any]:
    """The arguments that say how a client proves who it is and who the broker is. Raises ConfigError."""
    return {
        "security_protocol": settings.security_protocol,
        "ssl_context": ssl_context(settings),
        "sasl_mechanism": settings.sasl_mechanism,
        "sasl_plain_username": settings.sasl_username,
        "sasl_plain_password": sasl_password(settings),
    }
