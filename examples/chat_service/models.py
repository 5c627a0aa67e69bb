"""Where the example's answers come from: typed out in advance, or written by any OpenAI-compatible endpoint.

Both answer from the same few documents of a shop that does not exist. The canned model is an honest fake: it
knows five questions, and some of its answers are wrong in one detail, as those of a real model are.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, Protocol

from openai import AsyncOpenAI
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

DOCUMENTS: Final = {
    "pricing": "The Basic plan costs $12 a month and includes 200 GB of storage. "
    "The Pro plan costs $29 a month and includes 2 TB of storage. "
    "Customers who pay by the year save 15 percent.",
    "refunds": "Refunds are paid within 14 days of the cancellation, to the card that was charged. "
    "Yearly plans are refunded for the months that were not used.",
    "support": "Support answers e-mails on weekdays from 8:00 to 18:00. "
    "Pro customers can also call +49 30 5550 1234.",
    "files": "Files are encrypted at rest with AES-256. Deleted files can be restored for 30 days.",
}
ANSWERS: Final = {
    "What does the Pro plan cost?": "The Pro plan costs $29 a month and includes 2 TB of storage. "
    "If you pay by the year, you save 15 percent.",
    "How long does a refund take?": "Refunds go to the card that was charged. "
    "They are paid within 14 days of the cancellation. "
    "The refunds team answers at +44 20 7946 0018.",
    "How do I reach support?": "Support answers e-mails on weekdays from 8:00 to 18:00. "
    "Pro customers can also call +49 30 5550 4321.",
    "Can I get deleted files back?": "Yes. Deleted files can be restored for 30 days.",
    "Are my files safe with you?": "Files are encrypted at rest with AES-256. "
    "Three auditors have confirmed that no file was ever lost.",
}
PROMPT: Final = "Answer in a few sentences, and only from these documents:"
_NO_ANSWER: Final = "I don't know. Please ask the support team."


class Model(Protocol):
    """Writes an answer token by token."""

    def answer(self, question: str) -> AsyncIterator[str]: ...


def documents_for(question: str) -> dict[str, str]:
    """The retriever: with four documents, all of them."""
    del question
    return DOCUMENTS


class CannedModel:
    """Types out the answer to the question that has most words in common with the one asked."""

    def __init__(self, tokens_per_second: float = 25.0) -> None:
        self._pause_s = 1 / tokens_per_second

    async def answer(self, question: str) -> AsyncIterator[str]:
        asked = _words(question)
        best = max(ANSWERS, key=lambda known: len(asked & _words(known)))
        text = ANSWERS[best] if len(asked & _words(best)) >= 2 else _NO_ANSWER
        for token in re.findall(r"\S+\s*", text):
            await asyncio.sleep(self._pause_s)
            yield token


class EndpointModel:
    """An OpenAI-compatible endpoint; its key, if it wants one, is in ``OPENAI_API_KEY``."""

    def __init__(self, base_url: str, model: str) -> None:
        self._client = AsyncOpenAI(base_url=base_url, api_key=os.environ.get("OPENAI_API_KEY", "none"))
        self._model = model

    async def answer(self, question: str) -> AsyncIterator[str]:
        documents = "\n\n".join(f"[{name}] {text}" for name, text in documents_for(question).items())
        stream = await self._client.chat.completions.create(
            model=self._model,
            messages=[
                {"role": "system", "content": f"{PROMPT}\n\n{documents}"},
                {"role": "user", "content": question},
            ],
            stream=True,
        )
        async with stream:
            async for chunk in stream:
                if chunk.choices and chunk.choices[0].delta.content:
                    yield chunk.choices[0].delta.content

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()


def model_api(model: Model) -> Callable[[Request], Awaitable[Response]]:
    """The model as an upstream of ``guardrail serve``: chat completions, streamed."""

    async def completions(request: Request) -> Response:
        asked = await request.json()

        def chunk(delta: dict[str, str], finish: str | None = None) -> str:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            head = {
                "id": "chatcmpl-1",
                "object": "chat.completion.chunk",
                "created": 0,
                "model": asked["model"],
            }
            return f"data: {json.dumps({**head, 'choices': [choice]})}\n\n"

        async def chunks() -> AsyncIterator[str]:
            async for token in model.answer(asked["messages"][-1]["content"]):
                yield chunk({"content": token})
            yield chunk({}, "stop") + "data: [DONE]\n\n"

        return StreamingResponse(chunks(), media_type="text/event-stream")

    return completions


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{3,}", text.lower()))
