"""What ``guardrail doctor`` finds of ``guardrail serve``: its keys, its upstream, and whether what a model
writes wrong is withheld on every surface.

The proof runs a gateway of these settings here, in front of a model that costs nothing.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from consumers.gateway.app import Gateway
from consumers.gateway.dialects import DIALECTS, GROUNDING
from consumers.gateway.duplex import NDJSON
from consumers.gateway.keys import read_keys
from consumers.gateway.paths import CHECK, COMPLETIONS, GUARD, RESPONSES
from consumers.gateway.refusals import Refused
from consumers.gateway.server import serving
from consumers.gateway.settings import DialectName, ServeSettings
from consumers.gateway.upstream import Upstream
from consumers.settings import GuardSettings
from guardrail.calls.event_stream import EventStream
from guardrail.chat import EXTENSION
from guardrail.doctor import (
    CONTEXT,
    PROOF_ROUTE,
    QUESTION,
    RIGHT,
    WRONG,
    Area,
    Check,
    Proof,
    told_of,
    withholds,
)
from guardrail.errors import GuardrailError
from guardrail.events import (
    Context,
    Decision,
    DeliverySegment,
    ResponseCompleted,
    ResponseDelta,
    ResponseStarted,
    ResponseVerdict,
    parse_output,
)
from guardrail.integrations.background import guard_of_settings

_GATEWAY: Final = Area("gateway")
_TEXTS: Final = {"right": RIGHT, "wrong": WRONG}
_Shown = tuple[str, Mapping[str, Any]]
"""The text that a client would show, and the decision as the reply tells it."""
_Surface = Callable[[httpx2.AsyncClient, str], Awaitable[_Shown]]


async def _asked(
    client: httpx2.AsyncClient, path: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> httpx2.Response:
    reply = await client.post(path, json=body, headers=headers)
    if reply.status_code != 200:
        raise GuardrailError(f"{path} answered {reply.status_code}: {reply.text[:200]}")
    return reply


_EXTENSION: Final = {"contexts": [CONTEXT], "route": PROOF_ROUTE}


def _request(which: str, *, stream: bool) -> dict[str, Any]:
    """``user`` tells the model what to write."""
    asked = {"messages": [{"role": "user", "content": QUESTION}], "input": QUESTION, EXTENSION: _EXTENSION}
    return {"model": PROOF_ROUTE, "stream": stream, "user": which, **asked}


async def _completed(client: httpx2.AsyncClient, which: str, *, stream: bool) -> _Shown:
    reply = await _asked(client, COMPLETIONS, _request(which, stream=stream))
    chunks = _events(reply) if stream else [reply.json()]
    said = [each["choices"][0]["delta" if stream else "message"] for each in chunks]
    return "".join(each.get("content") or "" for each in said), chunks[-1][EXTENSION]


async def _responded(client: httpx2.AsyncClient, which: str, *, stream: bool) -> _Shown:
    reply = await _asked(client, RESPONSES, _request(which, stream=stream))
    if stream:
        chunks = _events(reply)
        return "".join(each.get("delta", "") for each in chunks), chunks[-1]["response"][EXTENSION]
    told = reply.json()
    return "".join(part["text"] for item in told["output"] for part in item["content"]), told[EXTENSION]


def _events(reply: httpx2.Response) -> list[Any]:
    return [json.loads(each) for each in EventStream().feed(reply.content) if each != "[DONE]"]


async def _checked(client: httpx2.AsyncClient, which: str) -> _Shown:
    asked = {"question": QUESTION, "contexts": [CONTEXT], "answer": _TEXTS[which], "route": PROOF_ROUTE}
    told = (await _asked(client, CHECK, asked)).json()
    observed = told["mode"] == "observe"
    withheld = not observed and told["decision"] in ("block", "redact")
    return "" if withheld else _TEXTS[which], {**told, "decision": "release"} if observed else told


async def _duplex(client: httpx2.AsyncClient, which: str) -> _Shown:
    """Over HTTP; a WebSocket carries the same events."""
    text, named = _TEXTS[which], {"response_id": f"doctor-{which}"}
    context = Context(id="1", text=CONTEXT)
    events = (
        ResponseStarted(**named, question=QUESTION, contexts=(context,), route=PROOF_ROUTE),
        *(ResponseDelta(**named, seq=seq, text=each) for seq, each in enumerate(text)),
        ResponseCompleted(**named, seq=len(text)),
    )
    lines = b"".join(event.to_json() + b"\n" for event in events)
    reply = await client.post(GUARD, content=lines, headers={"content-type": NDJSON})
    said = [parse_output(line) for line in reply.content.splitlines()]
    shown = "".join(event.text for event in said if isinstance(event, DeliverySegment))
    told = [event for event in said if isinstance(event, ResponseVerdict)]
    return shown, {"decision": told[-1].decision, "rule": told[-1].rule} if told else {}


_ANSWERED: Final[Mapping[DialectName, Callable[[dict[str, str]], dict[str, Any]]]] = {
    "litellm": lambda said: {"input_type": "response", "texts": [said["content"]]},
    "kong": lambda said: {"source": "OUTPUT", "content": said["content"]},
    "portkey": lambda said: {
        "eventType": "afterRequestHook",
        "requestType": "chatComplete",
        "request": {"json": _request("", stream=False)},
        "response": {"json": {"choices": [{"message": said}]}},
    },
    "agentgateway": lambda said: {"body": {"choices": [{"message": said}]}},
    "nemo": lambda said: {"messages": [{"role": "user", "content": QUESTION}, said]},
}
"""An answer as each dialect asks about it; what it rests on is said by a header."""


def _dialect(name: DialectName) -> _Surface:
    async def asked(client: httpx2.AsyncClient, which: str) -> _Shown:
        said = json.dumps(_EXTENSION).encode()
        body = _ANSWERED[name]({"role": "assistant", "content": _TEXTS[which]})
        reply = await _asked(
            client, DIALECTS[name].paths[-1], body, {GROUNDING: base64.b64encode(said).decode()}
        )
        told = reply.json()[EXTENSION]
        return "" if told["decision"] in ("block", "redact") else _TEXTS[which], told

    return asked


SURFACES: Final[Mapping[str, _Surface]] = {
    "chat completions, whole": partial(_completed, stream=False),
    "chat completions, streamed": partial(_completed, stream=True),
    "responses, whole": partial(_responded, stream=False),
    "responses, streamed": partial(_responded, stream=True),
    "/v1/check": _checked,
    "/v1/guard": _duplex,
}
"""Every way to a verdict but dialects, by its name in the report: asks for the right or the wrong answer."""


async def examine_gateway(settings: GuardSettings, within_s: float | None) -> AsyncIterator[Check]:
    """Every check of ``serve``. ``within_s`` is how long a reply may take; None: no proof."""
    serve = settings.serve
    for check in (*_of_documents(serve), *_of_keys(settings)):
        yield check
    yield await _of_upstream(serve)
    for each in serve.dialects:
        yield _GATEWAY.warn(f"dialect {each}", DIALECTS[each].cannot)
    if within_s is None:
        yield _GATEWAY.skip("surfaces", "not proven: --no-prove was given")
        return
    policy = settings.router().choose(PROOF_ROUTE, None)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(httpx2.AsyncClient(timeout=within_s))
        try:
            client.base_url = await _opened(settings, stack)
        except GuardrailError as error:
            yield _GATEWAY.error("surfaces", error)
            return
        dialects = {f"dialect {each}": _dialect(each) for each in serve.dialects}
        for name, ask in {**SURFACES, **dialects}.items():
            for which in _TEXTS:
                about, begun = f"{name}, {which} answer", time.monotonic()
                try:
                    shown, told = await ask(client, which)
                    checked = told["decision"] != "not-checked"
                    decision = Decision(told["decision"]) if checked else Decision.RELEASE
                except (GuardrailError, httpx2.HTTPError, KeyError, ValueError) as error:
                    yield _GATEWAY.error(about, error)
                    continue
                proof = Proof(about, shown, None, decision, told.get("rule"), time.monotonic() - begun)
                yield told_of(proof, policy, _GATEWAY, right=which == "right")


async def _opened(settings: GuardSettings, stack: AsyncExitStack) -> str:
    """The address of a gateway of these settings, for this process alone."""
    model = Starlette(routes=[Route(path, _model, methods=["POST"]) for path in (COMPLETIONS, RESPONSES)])
    port = await stack.enter_async_context(serving(model, ServeSettings(port=0), 1))
    own = ServeSettings(
        port=0,
        upstream=f"http://127.0.0.1:{port}/v1",
        missing_contexts=settings.serve.missing_contexts,
        dialects=settings.serve.dialects,
    )
    guard = await guard_of_settings(settings, stack)
    gateway = await stack.enter_async_context(Gateway(own, guard))
    return f"http://127.0.0.1:{await stack.enter_async_context(serving(gateway.app, own, 1))}"


async def _model(request: Request) -> Response:
    """Writes what it is told to, letter by letter."""
    asked = await request.json()
    text = _TEXTS[asked["user"]]
    if request.url.path == RESPONSES:
        part = {"type": "output_text", "text": text}
        whole = {"status": "completed", "output": [{"type": "message", "content": [part]}]}
        deltas = [{"type": "response.output_text.delta", "delta": each} for each in text]
        chunks = [*deltas, {"type": "response.completed", "response": whole}]
    else:
        whole = {"choices": [{"message": {"role": "assistant", "content": text}}]}
        chunks = [{"choices": [{"delta": {"content": each}}]} for each in text]
    if not asked["stream"]:
        return JSONResponse(whole)
    body = "".join(f"data: {each}\n\n" for each in (*map(json.dumps, chunks), "[DONE]"))
    return Response(body, media_type="text/event-stream")


async def _of_upstream(serve: ServeSettings) -> Check:
    """Whether the model's API answers, and takes the key. Costs nothing."""
    about = f"upstream {serve.upstream}"
    try:
        upstream = Upstream(serve)
        try:
            async with upstream.asked("GET", "/v1/models", {}) as reply:
                status = reply.status_code
        finally:
            await upstream.aclose()
    except (GuardrailError, Refused) as error:
        return _GATEWAY.error(about, error)
    if status in (401, 403):
        if serve.upstream_key is None:
            return _GATEWAY.ok(about, "answers, and asks for a key, which callers send")
        return _GATEWAY.fail(about, f"refuses the key: {status}", "put a valid one into serve.upstream_key")
    if status >= 400:
        return _GATEWAY.warn(about, f"answers {status} to GET /models", "does serve.upstream end in /v1?")
    return _GATEWAY.ok(about, "answers" + (", and takes the key" if serve.upstream_key else ""))


def _of_documents(serve: ServeSettings) -> Iterator[Check]:
    if not serve.contexts_from and not serve.tools:
        told = "no request can give documents: every answer counts as one without"
        yield _GATEWAY.fail("documents", told, "name places in serve.contexts_from, or tools in serve.tools")
    if serve.missing_contexts == "pass":
        told = "answers without documents are shown unchecked (serve.missing_contexts: pass)"
        yield _GATEWAY.warn("documents", told, "refuse, or judge, unless that is meant")


def _of_keys(settings: GuardSettings) -> Iterator[Check]:
    """The policies that callers can have, by their keys."""
    try:
        keys = read_keys(settings.serve.keys)
    except GuardrailError as error:
        yield _GATEWAY.error("keys", error)
        return
    if keys is None:
        yield _GATEWAY.ok("keys", "none: only this machine may ask, and may name any route")
        return
    router = settings.router()
    may = [(key, route, router.choose(route, key.tenant)) for key in keys for route in key.routes or (None,)]
    weak = [each for each in may if not withholds(each[2])]
    for key, route, policy in weak:
        told = f"with route '{route}'" if route else "without a route"
        yield _GATEWAY.warn(
            f"key {key.name}",
            f"{told} has policy '{policy.name}', which withholds nothing",
            "give it a rule that blocks and mode hold or stream, or take the route from the key",
        )
    if not weak:
        yield _GATEWAY.ok("keys", f"{len(keys)}, each of a policy that withholds")
