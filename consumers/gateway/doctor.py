"""What ``guardrail doctor`` finds of ``guardrail serve``: its keys, its upstream, and whether what a model
writes wrong is withheld on every surface.

The proof runs a gateway of these settings here, in front of a model that costs nothing.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing
from functools import partial
from typing import Any, Final

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from consumers.gateway.admission import CHECK, COMPLETIONS, GUARD, RESPONSES, Refused, read_keys
from consumers.gateway.app import Gateway, Upstream
from consumers.gateway.dialects import DIALECTS, GROUNDING
from consumers.gateway.endpoints import NDJSON
from consumers.gateway.server import serving
from consumers.gateway.settings import DialectName, ServeSettings
from consumers.settings import GuardSettings
from guardrail.calls.http import EventStream
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
from guardrail.events import Context, Decision, ResponseCompleted, ResponseDelta, ResponseStarted
from guardrail.integrations.background import guard_of_settings

_GATEWAY: Final = Area("gateway")
_TEXTS: Final = {"right": RIGHT, "wrong": WRONG}
_Shown = tuple[str, Mapping[str, Any]]
"""The text that a client would show, and the decision as the reply tells it."""
_Surfaces = dict[str, Callable[[httpx2.AsyncClient, str], Awaitable[_Shown]]]


async def _asked(client: httpx2.AsyncClient, path: str, body: Any, **headers: str) -> list[Any]:
    """The objects of the reply to an object, or to lines of them: one, or all of a stream."""
    lines = isinstance(body, bytes)
    kind = NDJSON if lines else "application/json"
    sent = body if lines else json.dumps(body)
    reply = await client.post(path, content=sent, headers={"content-type": kind, **headers})
    if reply.status_code != 200:
        raise GuardrailError(f"{path} answered {reply.status_code}: {reply.text[:200]}")
    if reply.headers["content-type"].startswith("text/event-stream"):
        return [json.loads(data) for data in EventStream().feed(reply.content) if data != "[DONE]"]
    return [json.loads(line) for line in reply.content.splitlines()]


def _completion(which: str, *, stream: bool = False) -> dict[str, Any]:
    """``user`` tells the model what to write."""
    told = {"contexts": [CONTEXT], "route": PROOF_ROUTE}
    messages = [{"role": "user", "content": QUESTION}]
    return {"model": PROOF_ROUTE, "messages": messages, "stream": stream, "user": which, EXTENSION: told}


async def _whole(client: httpx2.AsyncClient, which: str) -> _Shown:
    (told,) = await _asked(client, COMPLETIONS, _completion(which))
    return told["choices"][0]["message"]["content"], told[EXTENSION]


async def _streamed(client: httpx2.AsyncClient, which: str) -> _Shown:
    chunks = await _asked(client, COMPLETIONS, _completion(which, stream=True))
    return "".join(each["choices"][0]["delta"].get("content", "") for each in chunks), chunks[-1][EXTENSION]


async def _responded(client: httpx2.AsyncClient, which: str, *, stream: bool) -> _Shown:
    chunks = await _asked(client, RESPONSES, {**_completion(which, stream=stream), "input": QUESTION})
    told = chunks[-1]["response"] if stream else chunks[-1]
    whole = "".join(part["text"] for item in told["output"] for part in item["content"])
    return "".join(each.get("delta", "") for each in chunks) if stream else whole, told[EXTENSION]


def _as_decided(which: str, told: Mapping[str, Any]) -> _Shown:
    """Of an answer that the client has already, and shows unless it is told not to."""
    return "" if told["decision"] in ("block", "redact") else _TEXTS[which], told


async def _checked(client: httpx2.AsyncClient, which: str) -> _Shown:
    asked = {"question": QUESTION, "contexts": [CONTEXT], "answer": _TEXTS[which], "route": PROOF_ROUTE}
    (told,) = await _asked(client, CHECK, asked)
    return _as_decided(which, {**told, "decision": "release"} if told["mode"] == "observe" else told)


async def _duplex(client: httpx2.AsyncClient, which: str) -> _Shown:
    """Over HTTP; a WebSocket carries the same events."""
    text, named = _TEXTS[which], {"response_id": f"doctor-{which}"}
    context = Context(id="1", text=CONTEXT)
    events = (
        ResponseStarted(**named, question=QUESTION, contexts=(context,), route=PROOF_ROUTE),
        *(ResponseDelta(**named, seq=seq, text=each) for seq, each in enumerate(text)),
        ResponseCompleted(**named, seq=len(text)),
    )
    told = await _asked(client, GUARD, b"".join(event.to_json() + b"\n" for event in events))
    shown = "".join(each["text"] for each in told if each["type"] == "delivery.segment")
    return shown, [each for each in told if each["type"] == "verdict.response"][-1]


_ANSWERED: Final[Mapping[DialectName, Callable[[dict[str, str]], dict[str, Any]]]] = {
    "litellm": lambda said: {"input_type": "response", "texts": [said["content"]]},
    "kong": lambda said: {"source": "OUTPUT", "content": said["content"]},
    "portkey": lambda said: {
        "eventType": "afterRequestHook",
        "requestType": "chatComplete",
        "request": {"json": _completion("")},
        "response": {"json": {"choices": [{"message": said}]}},
    },
    "agentgateway": lambda said: {"body": {"choices": [{"message": said}]}},
    "nemo": lambda said: {"messages": [{"role": "user", "content": QUESTION}, said]},
}
"""An answer as each dialect asks about it; what it rests on is said by a header."""


async def _of_dialect(name: DialectName, client: httpx2.AsyncClient, which: str) -> _Shown:
    grounding = base64.b64encode(json.dumps(_completion("")[EXTENSION]).encode()).decode()
    body = _ANSWERED[name]({"role": "assistant", "content": _TEXTS[which]})
    (told,) = await _asked(client, DIALECTS[name].paths[-1], body, **{GROUNDING: grounding})
    return _as_decided(which, told[EXTENSION])


SURFACES: Final[_Surfaces] = {
    "chat completions, whole": _whole,
    "chat completions, streamed": _streamed,
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
        dialects: _Surfaces = {f"dialect {each}": partial(_of_dialect, each) for each in serve.dialects}
        for name, ask in (SURFACES | dialects).items():
            for which in _TEXTS:
                about, begun = f"{name}, {which} answer", time.monotonic()
                try:
                    shown, told = await ask(client, which)
                    said = told["decision"]
                    decision = Decision.RELEASE if said == "not-checked" else Decision(said)
                except (GuardrailError, httpx2.HTTPError, LookupError, ValueError) as error:
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
    """Writes what it is told to."""
    asked = await request.json()
    text = _TEXTS[asked["user"]]
    whole: dict[str, Any] = {"choices": [{"message": {"content": text}}]}
    chunks: list[Any] = [{"choices": [{"delta": {"content": each}}]} for each in text]
    chunks.append({"choices": [{"finish_reason": "stop"}]})
    if request.url.path == RESPONSES:
        item = {"type": "message", "content": [{"type": "output_text", "text": text}]}
        whole = {"id": "resp_doctor", "status": "completed", "output": [item]}
        chunks = [{"type": "response.output_text.delta", "delta": each} for each in text]
        chunks.append({"type": "response.completed", "response": whole})
    if not asked["stream"]:
        return JSONResponse(whole)
    body = b"".join(b"data: " + JSONResponse(each).body + b"\n\n" for each in chunks)
    return Response(body, media_type="text/event-stream")


async def _of_upstream(serve: ServeSettings) -> Check:
    """Whether the model's API answers, and takes the key. Costs nothing."""
    about = f"upstream {serve.upstream}"
    try:
        async with aclosing(Upstream(serve)) as upstream, upstream.asked("GET", "/v1/models", {}) as reply:
            status = reply.status_code
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
