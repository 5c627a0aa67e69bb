"""What the gateway refuses, in the form of the API that it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse


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
