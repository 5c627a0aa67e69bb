"""What of the API goes where: guarded, passed on because no model answers there in words, or refused; and how
a refusal is told, in the form of the API.

Whatever stands in no row is refused as well: an API adds ways to fetch an answer with most of its releases.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import JSONResponse

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
