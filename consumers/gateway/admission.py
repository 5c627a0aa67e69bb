"""What is admitted: what of the API goes where, guarded, passed on because no model answers there in words,
or refused, and how a refusal is told, in the form of the API; and who may call, for whom, and how much.

Whatever stands in no row is refused as well: an API adds ways to fetch an answer with most of its releases. A
key is random and long, so that its SHA-256 can be kept where the key itself must not be.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Annotated, Any, Final
from urllib.parse import quote

import yaml
from pydantic import Field, TypeAdapter, ValidationError
from starlette.responses import JSONResponse

from guardrail.chat import Grounding
from guardrail.errors import ConfigError, InputError, said_wrong
from guardrail.routing import Scope
from guardrail.secrets import Secret

COMPLETIONS: Final = "/v1/chat/completions"
RESPONSES: Final = "/v1/responses"
CHECK: Final = "/v1/check"
GUARD: Final = "/v1/guard"
PASSED: Final[Mapping[str, tuple[str, ...]]] = {
    "/v1/models": ("GET",),
    "/v1/models/{model:path}": ("GET",),
    "/v1/embeddings": ("POST",),
    "/v1/moderations": ("POST",),
    "/v1/files": ("GET", "POST"),
    "/v1/files/{id}": ("GET", "DELETE"),
}
"""Paths that are passed on as they are, and by which methods."""
REFUSED: Final = {
    "/v1/chat/completions": "a stored completion would be fetched without the guard",
    "/v1/responses": "a stored response would be fetched without the guard, which stores none",
    "/v1/conversations": "stored answers would be fetched without the guard",
    "/v1/completions": "it is not guarded; ask /v1/chat/completions",
    "/v1/messages": "it is not guarded; ask /v1/chat/completions",
    "/v1/batches": "answers of a batch would be fetched without the guard",
    "/v1/files": "contents of files may be the answers of a batch",
    "/v1/realtime": "speech can't be guarded",
    "/v1/audio": "speech and transcripts can't be guarded",
    "/v1/images": "pictures can't be guarded",
    "/v1/videos": "pictures can't be guarded",
    "/v1/assistants": "answers of assistants are not guarded; ask /v1/chat/completions",
    "/v1/threads": "answers of assistants are not guarded; ask /v1/chat/completions",
    "/v1/evals": "answers of an evaluation would be fetched without the guard",
    "/v1/fine_tuning": "it is not the gateway's to pass on",
}
"""Paths that no row serves, with all below them, and why."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+-]{0,200}(?:/[A-Za-z0-9][A-Za-z0-9._:@+-]{0,200}){0,4}")


def is_name(text: str) -> bool:
    """Whether it names one thing, wherever it stands in a path: it has no part that an upstream could read as
    a way to another path.
    """
    return _NAME.fullmatch(text) is not None


def why_refused(path: str) -> str | None:
    """The reason, or None for a path that nobody has heard of."""
    return next((why for known, why in REFUSED.items() if f"{path}/".startswith(f"{known}/")), None)


def error_body(message: str, code: str, kind: str = "invalid_request_error") -> dict[str, Any]:
    """An error as clients of the API read it."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


class Refused(Exception):
    """A request that is answered with an error of the gateway's own. The message repeats nothing of it."""

    def __init__(
        self,
        status: int,
        message: str,
        code: str,
        headers: Mapping[str, str] | None = None,
        kind: str = "invalid_request_error",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = code
        self._body = error_body(message, code, kind)
        self._headers = dict(headers or {})

    @property
    def response(self) -> JSONResponse:
        # What is left of a body that was not read must not be taken for the next request.
        close = {} if self.status in {401, 403, 404, 405, 429} else {"Connection": "close"}
        return JSONResponse(self._body, self.status, {**self._headers, **close})


def upstream_refused(message: str, status: int = 502) -> Refused:
    """The upstream can't be reached, or says what can't be guarded."""
    return Refused(status, message, "upstream_failed", kind="upstream_error")


# ------------------------------------------------------------------------------------------- keys

HEADER: Final = "x-guardrail-key"
_OTHER_HEADER: Final = "x-api-key"
"""What other gateways send."""
_SETTING: Final = "serve.keys"
_MINUTE_S: Final = 60.0


class ApiKey(Scope):
    """One entry of the file of keys."""

    name: Annotated[str, Field(min_length=1, max_length=256, description="What logs call the caller.")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="Of the key, in hex.")]
    requests_per_minute: Annotated[int | None, Field(gt=0)] = None
    concurrent: Annotated[int | None, Field(gt=0, description="Requests at a time.")] = None


@dataclass(slots=True)
class ApiCaller:
    """Who asks, and what they have under way in this process."""

    key: ApiKey | None = None
    _now: int = 0
    _asked: deque[float] = field(default_factory=deque)

    @property
    def name(self) -> str | None:
        return None if self.key is None else self.key.name

    @contextmanager
    def asking(self) -> Iterator[None]:
        """One request. Raises Refused past the key's limits."""
        key, now = self.key, time.monotonic()
        if key is not None and key.concurrent is not None and self._now >= key.concurrent:
            raise _too_many(f"the key has {key.concurrent} requests under way, which is its limit", 1)
        if key is not None and key.requests_per_minute is not None:
            while self._asked and self._asked[0] <= now - _MINUTE_S:
                self._asked.popleft()
            if len(self._asked) >= key.requests_per_minute:
                wait_s = self._asked[0] + _MINUTE_S - now
                raise _too_many(f"the key may ask {key.requests_per_minute} times a minute", int(wait_s) + 1)
            self._asked.append(now)
        self._now += 1
        try:
            yield
        finally:
            self._now -= 1

    def scoped(self, route: str | None, tenant: str | None) -> tuple[str | None, str | None]:
        """The route and tenant that choose the policy. Raises NotAllowed."""
        return (route, tenant) if self.key is None else self.key.chosen(route, tenant)

    def named(self, response_id: str) -> str:
        """What guard, log and topics call the answer: those of two keys never meet. Raises InputError."""
        owner = self.name
        name = response_id if owner is None else f"{quote(owner, safe='')}/{response_id}"
        if len(name) > 256:
            most = 256 - len(name) + len(response_id)
            raise InputError("invalid_event", f"response_id: it is longer than {most}")
        return name

    def grounding(self, found: Grounding) -> Grounding:
        """It, with the route and tenant that hold. Raises NotAllowed."""
        route, tenant = self.scoped(found.route, found.tenant)
        return Grounding(found.contexts, found.question, route, tenant)


def _too_many(message: str, wait_s: int) -> Refused:
    return Refused(429, message, "rate_limit_exceeded", {"Retry-After": str(wait_s)})


class ApiKeys:
    """All callers that are known; without keys anybody is."""

    def __init__(self, keys: Sequence[ApiKey] | None, *, bearer: bool) -> None:
        """With ``bearer`` a key may stand in Authorization, too."""
        self._anybody = ApiCaller() if keys is None else None
        self._callers: dict[str, ApiCaller] = {}
        self._bearer = bearer
        self.use(keys or ())

    def use(self, keys: Sequence[ApiKey]) -> list[str]:
        """Know only these; what is under way counts on. The names of those that came, went, or changed."""
        former, self._callers = self._callers, {key.sha256: ApiCaller(key) for key in keys}
        changed = {each.key for each in former.values()} ^ {each.key for each in self._callers.values()}
        for digest, caller in self._callers.items():
            if digest in former:
                former[digest].key, self._callers[digest] = caller.key, former[digest]
        return sorted({key.name for key in changed if key is not None})

    def caller(self, headers: Mapping[str, str], *, ours: bool = False) -> ApiCaller:
        """Who sends these; with ``ours`` no header is the upstream's. Raises Refused."""
        if self._anybody is not None:
            return self._anybody
        bearer = self._bearer or ours
        key = headers.get(HEADER) or (headers.get(_OTHER_HEADER) if ours else None)
        if key is None and bearer:
            scheme, _, key = headers.get("authorization", "").partition(" ")
            key = key.strip() if scheme.lower() == "bearer" else None
        if not key:
            where = f"as {HEADER}" + (", or as bearer token" if bearer else "")
            raise Refused(401, f"give the gateway's key {where}", "invalid_api_key")
        found = self._callers.get(sha256(key.encode("utf-8", "surrogatepass")).hexdigest())
        if found is None:
            raise Refused(401, "the gateway doesn't know this key", "invalid_api_key")
        return found


def read_keys(secret: Secret | None) -> list[ApiKey] | None:
    """The entries of the file or variable. Raises ConfigError, which repeats nothing of it."""
    if secret is None:
        return None
    text = secret.read(_SETTING, "list of keys")
    try:
        keys = TypeAdapter(list[ApiKey]).validate_python(yaml.safe_load(text))
    except yaml.YAMLError:
        raise ConfigError(f"{_SETTING}: it is not YAML; write a list of keys (docs/serve.md)") from None
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        if not first["loc"]:
            raise ConfigError(
                f"{_SETTING}: it holds no list; write {{file: PATH}} of a YAML list of keys (docs/serve.md)"
            ) from None
        place = ".".join(map(str, first["loc"]))
        hash_ = (
            "; give the 64 digits that 'printf %s KEY | sha256sum' prints, without the dash"
            if first["loc"][-1] == "sha256"
            else ""
        )
        raise ConfigError(f"{_SETTING}: {place}: {said_wrong(first)}{hash_}") from None
    for name in ("name", "sha256"):
        values = [getattr(key, name) for key in keys]
        if len(set(values)) < len(values):
            raise ConfigError(f"{_SETTING}: two keys have the same {name}; each needs its own")
    return keys
