"""LiteLLM's real proxy asks the gateway, streamed and not, as docs/gateways.md has it.

The model behind the proxy is a stand-in server; the judge is the local one. ``scripts/extras.py`` runs this
where the proxy is installed; pytest collects it only by name.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import openai
import pytest
import pytest_asyncio
import yaml

from consumers.gateway import Gateway, ServeSettings, serving
from guardrail import Guard, Policy
from tests.integration.in_litellm import (
    BOTH,
    PLAIN,
    QUESTION,
    RIGHT,
    TERMS,
    WITHHELD,
    WRONG,
    Got,
    answer,
    ask,
    litellm_proxy,
)
from tests.support.docs import blocks
from tests.support.llm_server import LlmServer

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(900)]

MARKED: list[Any] = [
    {"role": "system", "content": [{"type": "grounding_source", "text": TERMS}]},
    {"role": "user", "content": QUESTION},
]
HEADER = {"x-guardrail-grounding": base64.b64encode(json.dumps({"contexts": [TERMS]}).encode()).decode()}
BUFFERED = {"streaming_buffer_until_moderated": True, "streaming_end_of_stream_only": True}
POLICIES = {
    "blocks": Policy(fallback_message=WITHHELD),
    "redacts": Policy(rules=("verdict CONTRADICTED: redact",), redaction_text="[left out]"),
}


def of_the_page() -> dict[str, Any]:
    (entry,) = yaml.safe_load(blocks("gateways.md", "yaml")[1])["guardrails"]
    params: dict[str, Any] = entry["litellm_params"]
    return params


class Place:
    """A model, and clients of proxies before it."""

    def __init__(self, model: LlmServer) -> None:
        self.model = model
        self.clients: dict[str, openai.AsyncOpenAI] = {}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    async with AsyncExitStack() as stack:
        made = Place(await stack.enter_async_context(LlmServer(answer)))
        serve = ServeSettings(port=0, dialects=("litellm",))
        page = {**of_the_page(), "api_key": "any", "streaming_sampling_rate": 1}
        modes = ("streaming_transform_mode", "streaming_sampling_rate", "additional_provider_specific_params")
        buffered = {name: each for name, each in page.items() if name not in modes} | BUFFERED
        for name, policy, options in (
            ("blocks", POLICIES["blocks"], page),
            ("redacts", POLICIES["redacts"], page),
            ("buffered", POLICIES["blocks"], buffered),
            ("buffered-redacts", POLICIES["redacts"], buffered),
        ):
            guard = await stack.enter_async_context(Guard(policy=policy))
            gateway = await stack.enter_async_context(Gateway(serve, guard))
            port = await stack.enter_async_context(serving(gateway.app, serve, 1))
            folder = tmp_path_factory.mktemp(name)
            proxy = litellm_proxy(folder, made.model.url, {**options, "api_base": f"http://127.0.0.1:{port}"})
            url, key = await stack.enter_async_context(proxy)
            client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, timeout=60)
            made.clients[name] = await stack.enter_async_context(client)
        yield made


async def got(
    place: Place, proxy: str, model: str, messages: Any, stream: bool, **more: Any
) -> tuple[Got, str]:
    """What the client has got, and the message of the error that it ended with."""
    found = Got()
    try:
        await ask(place.clients[proxy], model, messages, stream=stream, got=found, **more)
    except openai.APIError as error:
        return found, str(error)
    return found, ""


@BOTH
@pytest.mark.parametrize("proxy", ["blocks", "buffered"])
@pytest.mark.parametrize("where", ["blocks", "header"])
async def test_what_is_backed_is_shown(place: Place, proxy: str, where: str, stream: bool) -> None:
    messages, headers = (MARKED, None) if where == "blocks" else (PLAIN, HEADER)
    found, error = await got(place, proxy, "right", messages, stream, extra_headers=headers)
    assert (found.texts, error) == ({0: RIGHT}, "")
    assert found.finishes == {0: "stop"}
    sent = place.model.calls[-1].body["messages"]
    assert sent[-1] == {"role": "user", "content": QUESTION}
    assert "grounding_source" not in json.dumps(sent)


@BOTH
@pytest.mark.parametrize("proxy", ["blocks", "buffered"])
async def test_what_is_wrong_is_not(place: Place, proxy: str, stream: bool) -> None:
    found, error = await got(place, proxy, "wrong", MARKED, stream)
    assert WITHHELD in error
    assert "9 euros" not in found.raw
    assert found.texts.get(0, "").strip() == (RIGHT if stream and proxy == "blocks" else "")


@BOTH
async def test_of_a_last_sentence_that_is_wrong_the_message_stands_in_its_place(
    place: Place, stream: bool
) -> None:
    """LiteLLM doesn't say that it is the last, and shows what it was told to keep back."""
    found, error = await got(place, "blocks", "two", MARKED, stream, n=2)
    assert error == ""
    assert found.texts == {0: f"{RIGHT} \n\n{WITHHELD}", 1: RIGHT}
    assert "9 euros" not in found.raw


@BOTH
async def test_a_redaction_is_shown_or_a_block(place: Place, stream: bool) -> None:
    found, error = await got(place, "redacts", "wrong", MARKED, stream)
    assert (found.texts, error) == ({0: f"{RIGHT} [left out] Thank you."}, "")
    found, error = await got(place, "buffered-redacts", "wrong", MARKED, stream)
    assert (found.texts, "withheld" in error) == ({}, True)
    assert WRONG.strip() not in found.raw


@BOTH
async def test_calls_of_tools_pass(place: Place, stream: bool) -> None:
    found, error = await got(place, "blocks", "tools", PLAIN, stream)
    assert (found.texts, error) == ({}, "")
    assert [call.function.name for call in found.tool_calls] == ["look_up"]


@BOTH
async def test_without_documents_nothing_is_shown(place: Place, stream: bool) -> None:
    found, error = await got(place, "buffered", "right", PLAIN, stream)
    assert (found.texts, "were not given" in error) == ({}, True)
    found, error = await got(place, "blocks", "right", PLAIN, stream)
    assert RIGHT not in found.raw
    assert "were not given" in (error or found.texts[0])
