"""How a Kafka client authenticates itself and verifies the broker: TLS and SASL from settings.

OAUTHBEARER tokens come from a file that somebody else renews or from a token endpoint (client credentials).
The client library asks for a token whenever it opens a connection. A KafkaError is the only error after which
it goes on, so the errors here are KafkaErrors, and the connection is tried again later, as if a broker were
away. No message contains a token or a secret.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import re
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote_plus
from weakref import WeakKeyDictionary

import httpx2
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import (
    AuthenticationFailedError,
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)

from consumers.kafka.workarounds import NotLoggedIn
from consumers.settings import KafkaSettings, without_query
from guardrail.calls import BackOff
from guardrail.calls.http import read_body
from guardrail.errors import ConfigError, JudgeReplyError, TransportUnavailable
from guardrail.printable import escape_controls, shorten
from guardrail.secrets import Secret

_REFUSED: Final = (
    AuthenticationFailedError,
    IllegalSaslStateError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
_NAME_DIFFERS: Final = frozenset({62, 64})
"""OpenSSL's codes for a certificate of another host name and of another address."""


def security_options(settings: KafkaSettings) -> dict[str, Any]:
    """The arguments by which a client authenticates itself and verifies the broker. Raises ConfigError.

    Reads files; with a token endpoint it needs a running event loop.
    """
    return {
        "security_protocol": settings.security_protocol,
        "ssl_context": ssl_context(settings),
        "sasl_mechanism": settings.sasl_mechanism,
        "sasl_plain_username": settings.sasl_username,
        "sasl_plain_password": _read("sasl_password", settings.sasl_password),
        "sasl_oauth_token_provider": token_provider(settings),
    }


def ssl_context(settings: KafkaSettings) -> ssl.SSLContext | None:
    """The TLS context for the SSL protocols, else None. Raises ConfigError for an unusable file."""
    if not settings.security_protocol.endswith("SSL"):
        return None
    with _usable(settings.ssl_cafile):
        context = ssl.create_default_context(cafile=settings.ssl_cafile)
    if settings.ssl_certfile is not None:
        password = _read("ssl_key_password", settings.ssl_key_password)
        try:
            # Always given: otherwise OpenSSL would ask for an encrypted key's password on the terminal.
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


def _read(name: str, secret: Secret | None) -> str | None:
    return None if secret is None else secret.read(f"kafka.{name}", "password")


def refusal(settings: KafkaSettings, address: str, error: BaseException) -> TransportUnavailable | None:
    """The error that ends the attempt to connect to ``address``; None if trying again may help."""
    match error:
        case TokenRefused():
            return TransportUnavailable(f"no token to log in to Kafka with: {error.args[0]}")
        case NotLoggedIn():
            return TransportUnavailable(
                f"Kafka at {address} refused the login (the token was not accepted); check that it has not "
                "expired, and that issuer, audience and scope are those that the broker wants"
            )
        case ssl.SSLCertVerificationError():
            if error.verify_code in _NAME_DIFFERS:
                remedy = "connect by a name that stands in it"
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
        case ValueError():  # SCRAM verifies the broker too, and the library reports that in this way
            return TransportUnavailable(
                f"Kafka at {address} answered the login wrongly; check bootstrap_servers"
            )
    return None


def hint(settings: KafkaSettings, error: BaseException) -> str:
    """What else may be wrong when every attempt to connect failed with ``error``, ready to append."""
    cut = isinstance(error, KafkaConnectionError | ConnectionError)
    if not cut or not settings.security_protocol.endswith("SSL"):
        return ""
    if settings.ssl_certfile is None:
        return "; if the broker asks clients for a certificate, give ssl_certfile and ssl_keyfile"
    return f"; check also that the broker trusts the certificate in ssl_certfile {settings.ssl_certfile}"


FETCH_TIMEOUT_S: Final = 10.0
_RENEW_BEFORE_S: Final = 60.0
_RENEW_SHARE: Final = 0.2
_UNSAID_LIFE_S: Final = 60.0
"""How long a token is kept that does not say when it ends."""
_WAITS: Final = BackOff(first_s=0.2, longest_s=5.0)
_MAX_REPLY_BYTES: Final = 256 * 1024
_MAX_DETAIL_CHARS: Final = 200
_OK, _TOO_MANY, _CLIENT_ERROR, _SERVER_ERROR = 200, 429, 400, 500
_B64_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
_ERROR_CODE: Final = re.compile(r"[A-Za-z0-9_.\-]{1,80}")


class TokenUnavailable(KafkaError):
    """There is no token now; asking again later may help."""

    retriable = True


class TokenRefused(KafkaError):
    """There is no token until somebody changes a setting, a file or the client's registration."""


class FileTokens(AbstractTokenProvider):
    """The token in a file, read for every connection, so that renewals take effect."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def token(self) -> str:
        """The token. Raises TokenRefused if there is none, or if it has expired."""
        return await asyncio.to_thread(self._read)

    def _read(self) -> str:
        where = f"kafka.sasl_oauth_token_file {self._path}"
        try:
            token = self._path.read_text(encoding="ascii").strip()
        except OSError as error:
            raise TokenRefused(f"{where} can't be read ({error.strerror}); fix it") from None
        except UnicodeDecodeError:
            raise TokenRefused(f"{where} holds no token (not ASCII); put the bare token into it") from None
        if not _B64_TOKEN.fullmatch(token):
            wrong = "holds characters that no token has" if token else "is empty"
            raise TokenRefused(f"{where} {wrong}; put the bare token into it, without 'Bearer'")
        expires = expiry(token)
        if expires is not None and expires <= time.time():
            ago = time.time() - expires
            raise TokenRefused(f"the token in {where} expired {ago:.0f} s ago; see to whatever renews it")
        return token


@dataclass(frozen=True, slots=True)
class _Cached:
    """A token, when to request the next one, and when this one expires (seconds of the monotonic clock)."""

    token: str
    renew_at: float
    ends_at: float


class ClientCredentials(AbstractTokenProvider):
    """Tokens from a token endpoint (RFC 6749, section 4.4), reused until shortly before they expire.

    Makes one request at a time, however many connections are opened. After a failure the next request comes
    0.2 seconds later, then less and less often, at most every 5 seconds; in between the failure stands.
    """

    def __init__(self, settings: KafkaSettings, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises ConfigError if the CA file can't be used."""
        assert settings.sasl_oauth_token_url is not None  # noqa: S101 - checked by the settings
        self._settings = settings
        self._url = settings.sasl_oauth_token_url
        self._shown = without_query(self._url)
        self._clock = clock
        self._tls = _trusted(settings) if self._url.startswith("https:") else None
        self._asking = asyncio.Lock()
        self._cached: _Cached | None = None
        self._failure: KafkaError | None = None
        self._ask_again_at = 0.0
        self._failures = 0

    async def token(self) -> str:
        """A token that has not expired. Raises TokenUnavailable and TokenRefused."""
        if (cached := self._fresh()) is not None:
            return cached
        async with self._asking:
            if (cached := self._fresh()) is not None:
                return cached
            if self._failure is None or self._clock() >= self._ask_again_at:
                await self._renew()
            if self._cached is not None and self._clock() < self._cached.ends_at:
                return self._cached.token
            assert self._failure is not None  # noqa: S101 - a renewal gives a token or a failure
            # A new error: raising a stored one again would add its traceback each time.
            raise type(self._failure)(*self._failure.args)

    def _fresh(self) -> str | None:
        cached = self._cached
        return cached.token if cached is not None and self._clock() < cached.renew_at else None

    async def _renew(self) -> None:
        try:
            async with asyncio.timeout(FETCH_TIMEOUT_S):
                self._cached = await self._fetch()
        except TimeoutError:
            self._failed(TokenUnavailable(f"{self._shown} gave no token within {FETCH_TIMEOUT_S:.0f} s"))
        except httpx2.HTTPError as error:
            why = shorten(escape_controls(str(error) or type(error).__name__), _MAX_DETAIL_CHARS)
            self._failed(
                TokenUnavailable(
                    f"the token endpoint {self._shown} can't be reached ({why}); check sasl_oauth_token_url "
                    "and, for its certificate, ssl_cafile"
                )
            )
        except (TokenUnavailable, TokenRefused) as error:
            self._failed(error)
        else:
            self._failure, self._failures = None, 0

    def _failed(self, error: KafkaError) -> None:
        self._failure = error
        self._ask_again_at = self._clock() + _WAITS.bound(self._failures)
        self._failures += 1

    async def _fetch(self) -> _Cached:
        settings = self._settings
        asked_at = self._clock()
        secret = await asyncio.to_thread(_client_secret, settings)
        form = {"grant_type": "client_credentials"}
        if settings.sasl_oauth_scope is not None:
            form["scope"] = settings.sasl_oauth_scope
        # Both are form-encoded before they are joined (RFC 6749, section 2.3.1).
        login = f"{quote_plus(settings.sasl_oauth_client_id or '')}:{quote_plus(secret)}"
        headers = {
            "accept": "application/json",
            "authorization": "Basic " + base64.b64encode(login.encode()).decode(),
        }
        # Don't follow redirects: the secret goes only where the operator said.
        async with (
            httpx2.AsyncClient(verify=self._tls or True, timeout=FETCH_TIMEOUT_S) as client,
            client.stream("POST", self._url, data=form, headers=headers) as answer,
        ):
            try:
                body = await read_body(answer.aiter_bytes(), _MAX_REPLY_BYTES)
            except JudgeReplyError:
                told = f"{self._shown} answered too much; check sasl_oauth_token_url"
                raise TokenRefused(told) from None
        return self._accept(answer.status_code, _json_object(body), asked_at)

    def _accept(self, status: int, reply: dict[str, Any], asked_at: float) -> _Cached:
        if status == _TOO_MANY or status >= _SERVER_ERROR:
            raise TokenUnavailable(f"{self._shown} is busy or out of order (HTTP {status})")
        if status >= _CLIENT_ERROR:
            code = reply.get("error")
            told = f"{code}, " if isinstance(code, str) and _ERROR_CODE.fullmatch(code) else ""
            raise TokenRefused(
                f"{self._shown} refused a token ({told}HTTP {status}); check sasl_oauth_client_id "
                f"{self._settings.sasl_oauth_client_id!r}, the client's secret and sasl_oauth_scope "
                f"{self._settings.sasl_oauth_scope!r}"
            )
        token = reply.get("access_token")
        if status != _OK or not isinstance(token, str) or not _B64_TOKEN.fullmatch(token):
            raise TokenRefused(
                f"{self._shown} answered HTTP {status} without an access_token; check sasl_oauth_token_url"
            )
        life = _seconds(reply.get("expires_in"))
        if life is None:
            expires = expiry(token)
            life = _UNSAID_LIFE_S if expires is None else expires - time.time()
        if life <= 0:
            raise TokenUnavailable(
                f"{self._shown} gave a token that has expired already; compare the clocks of both machines"
            )
        early = min(_RENEW_BEFORE_S, life * _RENEW_SHARE)
        return _Cached(token, asked_at + life - early, asked_at + life)


def expiry(token: str) -> float | None:
    """When a JWT expires, in Unix seconds; None if it doesn't say or isn't a JWT. Checks nothing else."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    claims = parts[1]
    try:
        data = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return None
    return _seconds(data.get("exp")) if isinstance(data, dict) else None


_PROVIDERS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[KafkaSettings, AbstractTokenProvider]] = (
    WeakKeyDictionary()
)


def token_provider(settings: KafkaSettings) -> AbstractTokenProvider | None:
    """Where the clients of this event loop get their tokens, shared by all with the same settings.

    None if the settings log in otherwise. Raises ConfigError for an unusable file.
    """
    if not settings.security_protocol.startswith("SASL_") or settings.sasl_mechanism != "OAUTHBEARER":
        return None
    if settings.sasl_oauth_token_file is not None:
        return FileTokens(settings.sasl_oauth_token_file)
    known = _PROVIDERS.setdefault(asyncio.get_running_loop(), {})
    if settings not in known:
        known[settings] = ClientCredentials(settings)
    return known[settings]


def _trusted(settings: KafkaSettings) -> ssl.SSLContext:
    """The system's authorities, and those of the brokers if they have some of their own."""
    context = ssl.create_default_context()
    if settings.ssl_cafile is not None:
        with _usable(settings.ssl_cafile):
            context.load_verify_locations(settings.ssl_cafile)
    return context


@contextmanager
def _usable(cafile: Path | None) -> Iterator[None]:
    try:
        yield
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"kafka.ssl_cafile {cafile} can't be used ({error}); name a PEM file of certificates"
        ) from error


def _client_secret(settings: KafkaSettings) -> str:
    """The client's secret; its file is read again for every token, so that a changed secret takes effect."""
    secret = settings.sasl_oauth_client_secret
    assert secret is not None  # noqa: S101 - checked by the settings
    try:
        return secret.read("kafka.sasl_oauth_client_secret", "client's secret")
    except ConfigError as error:
        raise TokenRefused(str(error)) from None


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _seconds(value: object) -> float | None:
    """A number of seconds; some endpoints write it as text."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:12])
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e12:
        return None
    return float(value)
