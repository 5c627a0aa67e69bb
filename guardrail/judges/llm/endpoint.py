"""One model on one server: the request, the arguments that its server accepts, and every call to it."""

from __future__ import annotations

import asyncio
import re
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any, Final, Protocol, TypeAlias

import openai

from guardrail.awake import awake
from guardrail.calls import Call, Caller, Failure, server_of
from guardrail.errors import ConfigError, JudgeRefused, JudgeReplyError, JudgeUnavailable
from guardrail.events import Usage
from guardrail.judges.llm.exchange import (
    Exchange,
    NotAnApi,
    ReplyProgress,
    StallBounds,
    Stalled,
    describe,
    httpx,
)
from guardrail.judges.llm.reply import Answer
from guardrail.judges.llm.settings import NO_KEY, LlmJudgeSettings, split_base_url
from guardrail.judges.recorder import recorder
from guardrail.judges.spending import BudgetExhausted

_MOST_TOKENS: Final = 1_000_000_000  # of one call

_CONNECT_TIMEOUT_S: Final = 5.0
# Of each client: calls under way, and idle connections kept.
_CONNECTIONS: Final = 16

_ERROR_BYTES: Final = 65_536
_PACKED_ERROR_BYTES: Final = 8_192  # at most a thousand times as much when unpacked

Outcome: TypeAlias = list[Answer] | Failure
"""The result of a call: answers, even if the reply broke off, or the reason why there are none."""


# ---------------------------------------------------------------------------------------------- what is asked


class AnswerReader(Protocol):
    """Reads one reply as it arrives. ``feed`` and ``finish`` together return every answer once."""

    def feed(self, text: str) -> list[Answer]:
        """The answers that ``text`` completes. Raises JudgeReplyError if no more can come."""

    def finish(self, *, cut: bool = False) -> list[Answer]:
        """The remaining answers, once the reply has ended; ``cut``: in the middle, or maybe.

        Raises JudgeReplyError if the whole reply has no usable answer.
        """


class Prices(Protocol):
    """What tokens cost in US dollars; ``guardrail.judges.prices.PriceTable`` is one."""

    def cost_usd(
        self, model: str, input_tokens: int, cached_input_tokens: int, output_tokens: int
    ) -> float: ...


@dataclass(slots=True)
class Spent:
    """What the calls for one question used, including failed and abandoned ones as far as the server reported
    it.

    ``calls`` counts all calls sent. ``models`` lists the models that failed, in order, each as "llm:MODEL:
    why"; ``answered_by`` is the model that answered, as "llm:MODEL".
    """

    calls: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    models: list[str] = field(default_factory=list)
    answered_by: str = ""
    changed: Callable[[], None] | None = None
    """Called when a call is sent, and when its usage is known."""

    def sent(self) -> None:
        """Count a call that is being sent."""
        self.calls += 1
        if self.changed is not None:
            self.changed()

    def add(self, model: str, usage: object, prices: Prices | None = None) -> None:
        """Add the usage that a server reports. If it reports none, nothing is guessed."""
        if not isinstance(usage, Mapping):
            return
        details = usage.get("prompt_tokens_details")
        read, written = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
        cached = _count(details.get("cached_tokens")) if isinstance(details, Mapping) else 0
        self.input_tokens += read
        self.cached_input_tokens += cached
        self.output_tokens += written
        if prices is not None:
            self.cost_usd += prices.cost_usd(model, read, cached, written)
        if self.changed is not None:
            self.changed()


def usage_of(spent: Spent) -> Usage:
    """What all calls for one question took so far, as far as the servers have reported it."""
    return Usage(
        judge_calls=spent.calls,
        input_tokens=spent.input_tokens,
        cached_input_tokens=spent.cached_input_tokens,
        output_tokens=spent.output_tokens,
        cost_usd=spent.cost_usd,
    )


def _count(value: object) -> int:
    """A number of tokens from a server's report, or 0 if it can't be one."""
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 < value <= _MOST_TOKENS else 0


@dataclass(frozen=True)
class Question:
    """What to ask, and who reads the reply.

    ``reader`` makes a reader for each call's reply. ``heard`` gets answers, on the event loop, before the
    reply ends; if that call fails after all, another call may say otherwise. Calls of different
    ``response_id`` take turns when they have to wait. ``admit`` is ``JudgeRequest``'s.
    """

    messages: Sequence[dict[str, str]]
    schema: dict[str, Any]
    """That of the reply."""
    reader: Callable[[], AnswerReader]
    heard: Callable[[Sequence[Answer]], None]
    spent: Spent
    response_id: str = ""
    admit: Callable[[], None] | None = None
    claim_ids: tuple[str, ...] = ()
    """Those that it is about, for records."""


# -------------------------------------------------------------------------------------- what the server takes


class OutputMode(StrEnum):
    """How to make the server enforce the form of the reply, from strictest to loosest."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    TEXT = "text"


_LADDER: Final = tuple(OutputMode)

# With 500 and 501, because llama-cpp-python answers an unknown response_format with a 500 that names it.
_REFUSALS: Final = frozenset({400, 404, 415, 422, 500, 501})
_FORMAT_WORDS: Final = ("response_format", "json_schema", "json_object", "structured output")
_OTHER_FIELD: Final = {"max_completion_tokens": "max_tokens", "max_tokens": "max_completion_tokens"}
_UNKNOWN_WORDS: Final = ("support", "unknown", "unrecognized", "unexpected", "not permitted", "not allowed")
# Chat templates' own words (Gemma, Mistral), OpenAI's of older reasoning models, and Google's.
_NO_SYSTEM_ROLE: Final = re.compile(
    r"system (role|message|prompt)s? (is |are )?not|does not support 'system'|roles must alternate"
    r"|developer instruction is not enabled"
)
_MESSAGE_CHARS: Final = 500
_STREAM_FIELDS: Final = ("stream", "stream_options")


class Dialect:
    """The arguments of a call beyond model and messages that the server hasn't refused.

    Concurrent calls share it, and may all be refused for the same reason. ``adapt`` therefore compares with
    what the refused call had sent, so that they adapt only once.
    """

    def __init__(self, settings: LlmJudgeSettings) -> None:
        self.mode = _LADDER[0]
        self._options: dict[str, Any] = {}
        if "max_tokens" not in settings.extra_body:
            self._options["max_completion_tokens"] = settings.max_output_tokens
        if "temperature" not in settings.extra_body:
            self._options["temperature"] = settings.temperature
        self._options |= {"stream": True, "stream_options": {"include_usage": True}}
        self._swapped = False
        self._patterns = True
        self._system_role = True

    def messages(self, messages: Sequence[dict[str, str]], *, joined: bool) -> list[dict[str, str]]:
        """``messages``; as one of the user if ``joined``, or where the model knows no system role."""
        if self._system_role and not joined:
            return list(messages)
        return [{"role": "user", "content": "\n\n".join(each["content"] for each in messages)}]

    def arguments(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call. In text mode only the prompt describes the form of the reply."""
        shown = schema if self._patterns else _without_patterns(schema)
        formats: dict[OutputMode, dict[str, Any]] = {
            OutputMode.JSON_SCHEMA: {
                "type": "json_schema",
                "json_schema": {"name": "verdicts", "strict": True, "schema": shown},
            },
            OutputMode.JSON_OBJECT: {"type": "json_object"},
        }
        arguments = dict(self._options)
        if self.mode in formats:
            arguments["response_format"] = formats[self.mode]
        return arguments

    def leave_system_role(self) -> None:
        """Send all messages as one of the user from now on."""
        self._system_role = False

    def take_whole_replies(self) -> None:
        """Request no streams from now on."""
        for name in _STREAM_FIELDS:
            self._options.pop(name, None)

    def adapt(self, error: openai.APIStatusError, sent: dict[str, Any]) -> bool:
        """Omit what the refusal names, from now on. True if there was something to omit: then ask again."""
        if error.status_code not in _REFUSALS:
            return False
        # The message may echo data, so it is searched for our own argument names only, and never reported.
        words = _words(error)
        if "pattern" in words and _has_patterns(sent.get("response_format")):
            # Azure takes schemas, but no pattern in them. The reader is as strict without.
            self._patterns = False
            return True
        if "response_format" in sent and any(word in words for word in _FORMAT_WORDS):
            tried = OutputMode(sent["response_format"]["type"])
            if self.mode is tried:
                self.mode = _LADDER[_LADDER.index(tried) + 1]
            return True
        if not any(word in words for word in _UNKNOWN_WORDS):
            return False
        if error.status_code not in {400, 422}:
            # An internal error may name anything. Only streams are believed to be a cause of one.
            sent = {name: value for name, value in sent.items() if name in _STREAM_FIELDS}
        refused = [name for name in sent if name != "response_format" and _names(name, words)]
        for name in refused:
            if name == "stream":
                self.take_whole_replies()
            value = self._options.pop(name, None)
            other = _OTHER_FIELD.get(name)
            # Only the first refusal swaps the name. If the other is refused too, no bound is sent at all.
            if other and value is not None and not self._swapped:
                self._options[other] = value
                self._swapped = True
        return bool(refused)


def refuses_system_role(error: openai.APIStatusError) -> bool:
    """Whether that may be the reason. The message may also echo a user's text that says so: believe it only
    if the same question, asked next without the role, is answered.
    """
    return error.status_code in _REFUSALS and _NO_SYSTEM_ROLE.search(_words(error)) is not None


def _words(error: openai.APIStatusError) -> str:
    return f"{error.param or ''} {error.code or ''} {error.message[:_MESSAGE_CHARS]}".lower()


def _has_patterns(value: object) -> bool:
    if isinstance(value, dict):
        return "pattern" in value or any(_has_patterns(part) for part in value.values())
    return isinstance(value, list) and any(_has_patterns(part) for part in value)


def _without_patterns(schema: dict[str, Any]) -> dict[str, Any]:
    """``schema`` without its patterns. None of our members is called pattern."""
    return {
        name: _without_patterns(value) if isinstance(value, dict) else value
        for name, value in schema.items()
        if name != "pattern"
    }


def _names(name: str, words: str) -> bool:
    """Whether the message names the argument. Servers mention streams in words rather than by the argument's
    name.
    """
    return re.search(r"\bstream(ing|ed)?\b" if name == "stream" else rf"\b{name}\b", words) is not None


# -------------------------------------------------------------------------------------------------- the calls


class ModelEndpoint:
    """Calls to one model. Concurrent questions share all its state."""

    def __init__(
        self,
        client: openai.AsyncOpenAI | OwnClients,
        settings: LlmJudgeSettings,
        prices: Prices | None = None,
        clock: Callable[[], float] = awake,
    ) -> None:
        """``client`` must not retry by itself. ``clock`` gives seconds to the breaker and to recent times."""
        self.name = f"llm:{settings.model}"
        self.settings = settings
        self.prices = prices
        self.caller = Caller(self.name, settings.model, settings.max_concurrency, clock)
        self.dialect = Dialect(settings)
        self._client = client
        self._headers = {name: value.get_secret_value() for name, value in settings.extra_headers.items()}

    async def ask(self, question: Question, until: float) -> Outcome:
        """One call, and others if it fails. ``until`` is in the event loop's time."""
        call = _QuestionCall(self, question)
        return await self.caller.run(call, until, question.response_id, retries=self.settings.max_retries)

    async def send(self, call: _QuestionCall, arguments: dict[str, Any]) -> Outcome | None:
        """One HTTP call; None if the server refused an argument, which is omitted from now on, or the system
        role, which ``call`` then does without.
        """
        messages = self.dialect.messages(call.question.messages, joined=call.joined)
        given = self._client
        with given.client() if isinstance(given, OwnClients) else nullcontext(given) as client:
            silence = StallBounds(
                max(self.settings.stall_s, call.left_s * self.settings.first_token_share),
                self.settings.stall_s,
            )
            exchange = Exchange(client, call.progress, call.read, silence)
            try:
                await exchange.run(
                    {
                        "model": self.settings.model,
                        "messages": messages,
                        "extra_headers": self._headers,
                        "extra_body": self.settings.extra_body or None,
                    }
                    | arguments
                )
                answers = call.finish()
            except openai.APIStatusError as error:
                # What this call sent counts: by now another one may have found that there is no such role.
                call.joined = len(messages) > 1 and refuses_system_role(error)
                if call.joined or self.dialect.adapt(error, arguments):
                    return None
                return call.broke_off(describe(error))
            except openai.APIError as error:
                return call.broke_off(describe(error, server_of(str(client.base_url))))
            except NotAnApi as error:
                return call.broke_off(Failure(error, retry=True, fault=True))
            except JudgeReplyError as error:
                return call.broke_off(Failure(error, retry=not isinstance(error, JudgeRefused)))
            except JudgeUnavailable as error:
                call.stalled = isinstance(error, Stalled)
                return call.broke_off(Failure(error, retry=True, fault=True, overload=call.stalled))
        if call.joined:
            self.dialect.leave_system_role()
        if arguments.get("stream") and not call.progress.streamed:
            self.dialect.take_whole_replies()
        return answers


class _QuestionCall(Call[list[Answer]]):
    """A question to one model, and the reply to the call under way as far as it has arrived."""

    def __init__(self, endpoint: ModelEndpoint, question: Question) -> None:
        self.question = question
        self.joined = False
        """Whether to send one message, because the server has just refused the system role."""
        self._endpoint = endpoint
        self._recorder = recorder()
        self._begin()

    def _begin(self) -> None:
        self.progress = ReplyProgress()
        self._reader = self.question.reader()
        self._answers: list[Answer] = []
        self._raw: list[str] = []
        self._begun_at = time.monotonic()

    @property
    def left_s(self) -> float:
        return self.until - asyncio.get_running_loop().time()

    def admit(self) -> None:
        try:
            if self.question.admit is not None:
                self.question.admit()
        except BudgetExhausted as error:
            if self.failure is None:
                raise
            raise BudgetExhausted(f"{self.failure.error}; not tried again: {error}") from None

    async def run(self) -> Outcome:
        while True:
            self._begin()
            self.question.spent.sent()
            outcome = await self._endpoint.send(self, self._endpoint.dialect.arguments(self.question.schema))
            if outcome is not None:
                if self.progress.streamed:
                    self.first_token_at = self.progress.first_token_at
                return outcome
            try:
                self.admit()
            except JudgeUnavailable as error:
                return self.broke_off(Failure(error, retry=False))
            self.ended()

    def read(self, text: str) -> None:
        if self._recorder is not None:
            self._raw.append(text)
        answers = self._reader.feed(text)
        if answers:
            self.first_answer_at = self.first_answer_at or asyncio.get_running_loop().time()
            self._answers += answers
            if self.progress.streamed:  # else all of it is here, and what follows may say otherwise
                self.question.heard(answers)

    def finish(self, *, cut: bool = False) -> list[Answer]:
        return [*self._answers, *self._reader.finish(cut=cut or not self.progress.ended_by_itself)]

    def broke_off(self, failure: Failure) -> Outcome:
        """The answers that were complete when the call failed, or the failure if there are none."""
        self.failure = failure
        if self.progress.empty:
            return failure
        try:
            return self.finish(cut=True)
        except JudgeReplyError:
            return failure

    def ended(self) -> None:
        """Count what it took, and record the messages and the text that came if anybody wants to see them."""
        settings = self._endpoint.settings
        self.question.spent.add(settings.model, self.progress.usage, self._endpoint.prices)
        if self._recorder is None:
            return
        self._recorder.add(
            "call",
            self.question.claim_ids,
            self._begun_at,
            judge=self._endpoint.name,
            prompt="\n\n".join(f"{each['role']}:\n{each['content']}" for each in self.question.messages),
            reply="".join(self._raw),
            error=None if self.failure is None else str(self.failure.error),
        )

    def out_of_time(self) -> str:
        made = self.question.spent.calls
        return f"no verdict within the deadline, {'1 call' if made == 1 else f'{made} calls'} made"


# ------------------------------------------------------------------------------------------------- its client


class OwnClients:
    """Clients without retries: for each event loop that asks, since connections belong to the loop in which
    they were made, as many as are needed for the calls under way.

    A client looks at all of its connections whenever a call begins or ends. So each has a few, and the first
    that has one to spare is taken: idle connections are used again, and a call costs the same however many
    are under way.

    They use the proxies and certificates that the environment names (``HTTP_PROXY``, ``HTTPS_PROXY``,
    ``ALL_PROXY``, ``NO_PROXY``, ``SSL_CERT_FILE``, ``SSL_CERT_DIR``), and send nothing from the environment.
    """

    def __init__(self, settings: LlmJudgeSettings, place: str = "judge.llm") -> None:
        """Raises ConfigError if a key is missing, which names ``place``, or if the environment names a SOCKS
        proxy without the package that it takes.
        """
        self._settings = settings
        self._key = settings.resolve_api_key(place)
        self._by_loop: dict[asyncio.AbstractEventLoop, list[_Shared]] = {}
        self._lock = threading.Lock()
        try:
            # The first to be used. What is wrong is told at the start and not with the first claim.
            self._unused: openai.AsyncOpenAI | None = _make_client(settings, self._key)
        except ImportError as error:
            if "SOCKS" not in str(error):
                raise
            raise ConfigError(
                "the environment names a SOCKS proxy (ALL_PROXY, HTTPS_PROXY or HTTP_PROXY), which takes a "
                "package of its own: pip install 'httpx2[socks]', or start the guard without that variable"
            ) from None

    @contextmanager
    def client(self) -> Iterator[openai.AsyncOpenAI]:
        """A client of the running loop, for one call."""
        loop = asyncio.get_running_loop()
        clients = self._by_loop.get(loop)
        if clients is None:
            with self._lock:  # loops of other threads
                for ended in [each for each in self._by_loop if each.is_closed()]:
                    del self._by_loop[ended]
                clients = self._by_loop[loop] = []
        shared = next((each for each in clients if each.calls < _CONNECTIONS), None)
        if shared is None:
            with self._lock:
                unused, self._unused = self._unused, None
            shared = _Shared(unused or _make_client(self._settings, self._key))
            clients.append(shared)
        shared.calls += 1
        try:
            yield shared.client
        finally:
            shared.calls -= 1

    async def aclose(self) -> None:
        """Close the running loop's clients. Those of other loops end with their loops."""
        with self._lock:
            clients = [each.client for each in self._by_loop.pop(asyncio.get_running_loop(), ())]
            if self._unused is not None:
                clients.append(self._unused)
                self._unused = None
        for client in clients:
            await client.close()


@dataclass(slots=True)
class _Shared:
    """A client, and how many calls it has under way."""

    client: openai.AsyncOpenAI
    calls: int = 0


def _make_client(settings: LlmJudgeSettings, key: str) -> openai.AsyncOpenAI:
    # Every call ends by its deadline; the client's own timeout would only end replies that are still coming.
    timeout = openai.Timeout(None, connect=_CONNECT_TIMEOUT_S)
    base_url, query = split_base_url(settings.base_url)
    return _Client(
        api_key=key,
        base_url=base_url,
        max_retries=0,
        timeout=timeout,
        http_client=openai.DefaultAsyncHttpxClient(
            base_url=base_url,
            params=query,  # the client's own default_query loses parameters without a value before openai 3
            # A redirect leads where nobody has configured, and headers that hold keys would go there too.
            follow_redirects=False,
            timeout=timeout,
            event_hooks={"request": [_without_placeholder], "response": [_bound_error]},
            # The pool holds no call back: one that ended may keep its connection for a moment.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=_CONNECTIONS),
            verify=_tls(),
        ),
    )


class _Client(openai.AsyncOpenAI):
    """Sends only the configured headers.

    By itself the client would send any server the contents of OPENAI_CUSTOM_HEADERS, OPENAI_ORG_ID and
    OPENAI_PROJECT_ID, and would prefer an Authorization among them to the given key.
    """

    @property
    def default_headers(self) -> dict[str, str | openai.Omit]:
        return {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": f"guardrail openai/{openai.__version__}",
            "Authorization": f"Bearer {self.api_key}",  # elsewhere only newer releases of openai look
        }


async def _without_placeholder(request: httpx.Request) -> None:
    """Send no key if none is configured: a server that expects it in another header may read this one."""
    if request.headers.get("authorization") == f"Bearer {NO_KEY}":
        del request.headers["authorization"]


@cache
def _tls() -> ssl.SSLContext:
    """One context for all clients, because reading the certificates takes tens of milliseconds."""
    return httpx.create_ssl_context()


async def _bound_error(response: httpx.Response) -> None:
    """Let the client read only the beginning of an error's body, which it keeps whole in memory."""
    if response.is_error and isinstance(response.stream, httpx.AsyncByteStream):
        packed = "content-encoding" in response.headers
        response.stream = _Beginning(response.stream, _PACKED_ERROR_BYTES if packed else _ERROR_BYTES)


class _Beginning(httpx.AsyncByteStream):
    """The first ``size`` bytes of a stream."""

    def __init__(self, stream: httpx.AsyncByteStream, size: int) -> None:
        self._stream = stream
        self._left = size

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            yield piece[: self._left]
            self._left -= len(piece)
            if self._left <= 0:
                return

    async def aclose(self) -> None:
        await self._stream.aclose()
