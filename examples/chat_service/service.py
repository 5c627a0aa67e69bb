"""The service: one page, and every answer as a stream of server-sent events.

``events`` uses the guard on Kafka, ``completion`` the one in ``guardrail serve``.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from examples.chat_service.models import ANSWERS, DOCUMENTS, PROMPT, Model, documents_for, model_api
from guardrail.client import AnswerBlocked, GuardClient
from guardrail.errors import GuardrailError

MAX_QUESTION_CHARS: Final = 2_000
_PAGE: Final = Path(__file__).with_name("page.html")
_HEADERS: Final = {
    # All texts are untrusted: the page puts them in as text, and no script but its own may run.
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
}


async def events(
    client: GuardClient, model: Model, question: str
) -> AsyncIterator[tuple[str, dict[str, object]]]:
    """What the page is told about one answer, as it becomes known."""
    contexts = [{"id": name, "text": text} for name, text in documents_for(question).items()]
    try:
        async with client.guard(question, contexts, model.answer(question), route="chat") as answer:
            async for piece in answer:
                yield "piece", {"text": piece.text, "decision": piece.decision, "rule": piece.rule}
            yield "end", {"decision": answer.decision, "rule": answer.rule, "score": answer.score}
    except AnswerBlocked as blocked:
        yield "block", {"message": blocked.message, "rule": blocked.rule}
    except GuardrailError:
        yield "failed", {"message": "The answer could not be verified. Please try again later."}
    except Exception as error:  # noqa: BLE001 - whatever the model raises; its text is not for users
        yield "failed", {"message": f"The model failed ({type(error).__name__}). Please try again later."}


async def told(client: GuardClient, model: Model, question: str) -> AsyncIterator[str]:
    """``events`` as the page reads them."""
    async for name, data in events(client, model, question):
        yield f"event: {name}\ndata: {json.dumps(data)}\n\n"


async def completion(gateway: httpx2.AsyncClient, model: str, question: str) -> AsyncIterator[bytes]:
    """The stream of ``guardrail serve`` as it comes, which the page reads: chunks of a chat completion.

    The documents are the service's to give, not the page's.
    """
    documents = [{"type": "grounding_source", "text": text} for text in documents_for(question).values()]
    asked = {
        "model": model,
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": PROMPT}, *documents]},
            {"role": "user", "content": question},
        ],
        "stream": True,
        "guardrail": {"route": "chat"},
    }
    try:
        async with gateway.stream("POST", "chat/completions", json=asked) as reply:
            reply.raise_for_status()
            async for piece in reply.aiter_bytes():
                yield piece
    except httpx2.HTTPError:
        failed = {"error": {"message": "The gateway gave no answer. Please try again later."}}
        yield f"data: {json.dumps(failed)}\n\n".encode()


def service(answers: Callable[[str], AsyncIterator[str | bytes]], upstream: Model | None = None) -> Starlette:
    """The ASGI application. ``answers`` streams the answer to a question; ``upstream`` is a model that a
    gateway finds here below ``/model/v1``.
    """

    async def page(_: Request) -> Response:
        return FileResponse(_PAGE, media_type="text/html; charset=utf-8", headers=_HEADERS)

    async def known(_: Request) -> Response:
        return JSONResponse({"documents": DOCUMENTS, "questions": list(ANSWERS)})

    async def answer(request: Request) -> Response:
        question = request.query_params.get("question", "").strip()
        if not 0 < len(question) <= MAX_QUESTION_CHARS:
            return JSONResponse({"error": f"question: give 1 to {MAX_QUESTION_CHARS} characters"}, 400)

        return StreamingResponse(
            answers(question),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    routes = [Route("/", page), Route("/known", known), Route("/answer", answer)]
    if upstream is not None:
        routes.append(Route("/model/v1/chat/completions", model_api(upstream), methods=["POST"]))
    return Starlette(routes=routes)
