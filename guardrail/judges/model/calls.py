"""Calls to a model server, on an event loop of their own: judges of any loop, and threads, share them.

Errors repeat nothing that a server says, since it may repeat texts.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Final, TypeVar

import httpx2

from guardrail.calls import Call, Caller, Failure, cut_off, retry_after, server_of
from guardrail.errors import JudgeError, JudgeReplyError, JudgeUnavailable
from guardrail.judges.http import read_body, request_headers
from guardrail.judges.model.settings import ServerSettings

_T = TypeVar("_T")

MOST_RETRIES: Final = 2
_CLOSED: Final = "the judge is closed"
_LATE: Final = "the model server gave no answer within the deadline"
_MOST_REPLY_BYTES: Final = 8_000_000
_MOST_ERROR_BYTES: Final = 65_536
_MOST_SEARCHED: Final = 2_000  # characters of an error
_CONNECT_TIMEOUT_S: Final = 5.0
_OVERLOADS: Final = frozenset({408, 429, 503, 504})
_FAULTS: Final = frozenset({401, 403, 404, 424})  # no pair would fare better
_TOKENS: Final = re.compile(
    r"tokens|context length|input length|max_model_len|sequence length", re.IGNORECASE
)


class ServerRefused(JudgeError):
    """The server can't or won't answer such a request, with this HTTP status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class ServerCalls:
    """One model on one server."""

    def __init__(self, settings: ServerSettings, section: str, name: str) -> None:
        """``section`` is where the settings stand, for errors; ``name`` the judge's, for the log.

        Asks nothing yet: a server that is restarted doesn't keep guards from starting. Raises ConfigError
        for a file that can't be used.
        """
        self.section = section
        self._url = settings.url
        self._server = server_of(settings.url)
        self._timeout_s = settings.timeout_ms / 1000
        self._caller = Caller(name, settings.model or name, settings.max_concurrency)
        headers = request_headers(settings.headers, section)
        connections = httpx2.Limits(
            max_connections=settings.max_concurrency, max_keepalive_connections=settings.max_concurrency
        )
        self._client = httpx2.AsyncClient(
            headers=headers,
            timeout=httpx2.Timeout(None, connect=_CONNECT_TIMEOUT_S),
            limits=connections,
        )
        self._closed = False
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="model-server", daemon=True)
        self._thread.start()

    def start(self, work: Callable[[], Coroutine[Any, Any, _T]], deadline: float) -> Future[_T]:
        """Runs ``work`` on the calls' own loop, until ``deadline`` (``time.monotonic()``). Cancelling the
        future cancels it, and its calls. Raises JudgeUnavailable once closed.
        """
        if self._closed:
            raise JudgeUnavailable(_CLOSED)
        return asyncio.run_coroutine_threadsafe(self._bounded(work, deadline), self.loop)

    async def _bounded(self, work: Callable[[], Coroutine[Any, Any, _T]], deadline: float) -> _T:
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())) as scope:
                return await work()
        except TimeoutError:
            if not scope.expired():
                raise
            raise JudgeUnavailable(_LATE) from None
        except asyncio.CancelledError:
            if self._closed:  # who waits must not take itself for cancelled
                raise JudgeUnavailable(_CLOSED) from None
            raise

    async def ask(self, path: str, body: bytes | None, deadline: float, response_id: str = "") -> Any:
        """The JSON that the server answers to a POST of ``body``, or to a GET if it is None; None for an
        empty answer. On that loop only.

        ``deadline`` is a reading of ``time.monotonic()``. Calls of different ``response_id`` take turns when
        they have to wait. Raises JudgeError.
        """
        until = self.loop.time() + deadline - time.monotonic()
        outcome = await self._caller.run(
            _JsonCall(self, path, body), until, response_id, retries=MOST_RETRIES
        )
        if isinstance(outcome, Failure):
            raise outcome.error
        return outcome[0]

    async def aclose(self) -> None:
        """Cancel what runs, close the connections and end the thread."""
        if self._closed:
            return
        self._closed = True
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._end(), self.loop))
        self.loop.call_soon_threadsafe(self.loop.stop)
        await asyncio.to_thread(self._thread.join)

    def close(self) -> None:
        """``aclose`` for callers without a loop. Blocks."""
        asyncio.run(self.aclose())

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._client.aclose()
        await self.loop.shutdown_default_executor()

    async def send(self, path: str, body: bytes | None) -> tuple[Any] | Failure:
        """One HTTP call."""
        try:
            async with asyncio.timeout(self._timeout_s) as scope:
                return await self._exchange(path, body)
        except TimeoutError:
            if not scope.expired():
                raise
            slow = f"{self._server} gave no answer within {self._timeout_s:g} s"
            return Failure(JudgeUnavailable(slow), retry=True, fault=True, overload=True)
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            told = cut_off(self._server, error, f"{self.section}.url")
            return Failure(JudgeUnavailable(told), retry=True, fault=True)
        except JudgeReplyError as error:
            return Failure(error, retry=False, fault=True)

    async def _exchange(self, path: str, body: bytes | None) -> tuple[Any] | Failure:
        method = "GET" if body is None else "POST"
        async with self._client.stream(method, self._url + path, content=body) as response:
            status = response.status_code
            if status != 200:
                said = await read_body(response, _MOST_ERROR_BYTES)
                return self._refused(status, said, retry_after(response.headers))
            found = await read_body(response, _MOST_REPLY_BYTES)
        if not found.strip():
            return (None,)
        try:
            return (json.loads(found),)
        except (ValueError, RecursionError):
            raise JudgeReplyError(
                f"what {self._server} answers is not JSON; {self.section}: check kind and url"
            ) from None

    def _refused(self, status: int, said: bytes, asked: float | None) -> Failure:
        answered = f"{self._server} answered {status}"
        overload = status in _OVERLOADS
        if overload or status >= 500:
            return Failure(
                JudgeUnavailable(answered), retry=True, retry_after=asked, fault=True, overload=overload
            )
        remedy = {
            401: "check headers",
            403: "check headers",
            404: "check kind, url and model",
            424: "its model failed, or is no classifier: see the server's log",
        }.get(status, "see what it expects in its log")
        # The message may repeat a text: it is searched, and never reported.
        if status in {400, 413, 422} and _TOKENS.search(said[:_MOST_SEARCHED].decode("utf-8", "replace")):
            remedy = (
                "the pair has more tokens than it takes: give the tokenizer of the model that it serves, and "
                "write how many it reads as max_position_embeddings into config.json"
            )
        return Failure(
            ServerRefused(f"{answered}; {self.section}: {remedy}", status),
            retry=False,
            fault=status in _FAULTS,
        )


class _JsonCall(Call[tuple[Any]]):
    """The JSON of one answer, in a tuple: None is an empty one."""

    timed = False  # the time of a call depends on its pairs

    def __init__(self, calls: ServerCalls, path: str, body: bytes | None) -> None:
        self._calls = calls
        self._path = path
        self._body = body

    async def run(self) -> tuple[Any] | Failure:
        outcome = await self._calls.send(self._path, self._body)
        return self.broke_off(outcome) if isinstance(outcome, Failure) else outcome

    def out_of_time(self) -> str:
        return _LATE
