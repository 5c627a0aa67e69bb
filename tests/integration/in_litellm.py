"""The guardrail in LiteLLM's real proxy, streamed and not, by the real client of OpenAI.

The model behind the proxy is a stand-in server; the judge is the local one. ``scripts/extras.py`` runs this
where the proxy is installed; pytest collects it only by name.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import openai
import pytest
import pytest_asyncio
import yaml

from tests.support import tutorial
from tests.support.environments import ROOT
from tests.support.kafka_broker import free_ports
from tests.support.llm_server import Act, Cut, Hang, LlmServer, Recorded, Reply, StreamError

_STARTED: Final = b"Application startup complete"


@asynccontextmanager
async def litellm_proxy(
    folder: Path, upstream: str, guardrail: Mapping[str, Any]
) -> AsyncIterator[tuple[str, str]]:
    """The root of the API of a proxy before ``upstream``, and its key; any model is one of that, and so is
    what it passes through to OpenAI.
    """
    model = {"model": "openai/*", "api_base": upstream, "api_key": "none", "num_retries": 0}
    config = {
        "model_list": [{"model_name": "*", "litellm_params": model}],
        "guardrails": [{"guardrail_name": "streaming-guardrail", "litellm_params": dict(guardrail)}],
    }
    key = f"sk-{secrets.token_hex(32)}"
    keys = {"LITELLM_MASTER_KEY": key, "OPENAI_API_KEY": "none", "OPENAI_API_BASE": upstream}
    async with configured_proxy(folder, yaml.safe_dump(config), **keys) as url:
        yield url, key


@asynccontextmanager
async def configured_proxy(folder: Path, config: str, **environment: str) -> AsyncIterator[str]:
    """The root of the API of a proxy with this configuration, started in ``folder``."""
    (port,) = free_ports(1)
    (folder / "config.yaml").write_text(config)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GUARDRAIL_")}
    process = await asyncio.create_subprocess_exec(
        *(Path(sys.executable).with_name("litellm"), "--config", folder / "config.yaml"),
        *("--host", "127.0.0.1", "--port", str(port)),
        cwd=folder,
        env=kept | {"PYTHONPATH": str(ROOT), "LITELLM_LOCAL_MODEL_COST_MAP": "True", **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    said = b""
    try:
        async with asyncio.timeout(300):  # a quarter of a minute where nothing else runs
            while _STARTED not in said:
                line = await process.stdout.readline()
                if not line:
                    raise AssertionError(re.sub(rb"\s+\n", b"\n", said)[-3_000:].decode("utf-8", "replace"))
                said += line
        log = asyncio.create_task(process.stdout.read())
        yield f"http://127.0.0.1:{port}"
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
    (folder / "proxy.log").write_bytes(said + await log)


pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(900)]

TERMS = "Returns are accepted within 14 days of delivery. Shipping to the EU costs 5 euros."
RIGHT = "Returns are accepted within 14 days of delivery."
WRONG = " Shipping to the EU costs 9 euros."
GREETING = "Hello, how can I help you?"
QUESTION = "How long can I return, and what does shipping cost?"
WITHHELD = "Withheld by the test's policy."
REFUSED = "the documents that it should rest on were not given"


def delta(**changes: Any) -> dict[str, Any]:
    return {"index": 0, "delta": changes, "finish_reason": None}


TOOL = {"index": 0, "id": "call-1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}


def answer(call: Recorded) -> Act:
    """What the model does, by the name that it is asked under."""
    match call.body["model"]:
        case "right" | "wrong" | "greets" as text:
            return Reply({"right": RIGHT, "wrong": f"{RIGHT}{WRONG} Thank you.", "greets": GREETING}[text])
        case "refuses":
            said = {"role": "assistant", "content": None, "refusal": RIGHT + WRONG}
            end = {"index": 0, "finish_reason": "stop"}
            if call.streamed:
                return Reply(None, choices=[delta(**said), {**end, "delta": {}}])
            return Reply(None, choices=[{**end, "message": said}])
        case "broken":
            return StreamError(after=5, reply=Reply(RIGHT + WRONG))
        case "cut":
            return Cut(chunks=5, reply=Reply(RIGHT + WRONG))
        case "hangs":
            return Hang(after=8, reply=Reply(f"{RIGHT} {RIGHT} {RIGHT}"))
        case "reasoning":
            if call.streamed:
                return Reply(
                    None,
                    choices=[
                        delta(role="assistant", reasoning_content="Perhaps 99 days."),
                        delta(content=RIGHT),
                        {"index": 0, "delta": {}, "finish_reason": "stop"},
                    ],
                )
            message: dict[str, Any] = {
                "role": "assistant",
                "content": RIGHT,
                "reasoning_content": "Perhaps 99 days.",
            }
            return Reply(None, choices=[{"index": 0, "finish_reason": "stop", "message": message}])
        case "tools":
            if call.streamed:
                last = {"index": 0, "delta": {}, "finish_reason": "tool_calls"}
                return Reply(None, choices=[delta(role="assistant", tool_calls=[TOOL]), last])
            message = {"role": "assistant", "content": None, "tool_calls": [TOOL]}
            return Reply(None, choices=[{"index": 0, "finish_reason": "tool_calls", "message": message}])
        case "two":
            texts = {0: RIGHT + WRONG, 1: RIGHT}
            if call.streamed:
                parts = [
                    {"index": n, "delta": {"content": text}, "finish_reason": None}
                    for n, text in texts.items()
                ]
                return Reply(
                    None,
                    choices=[*parts, *({"index": n, "delta": {}, "finish_reason": "stop"} for n in texts)],
                )
            return Reply(
                None,
                choices=[
                    {"index": n, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
                    for n, text in texts.items()
                ],
            )
        case other:
            raise AssertionError(other)


class Place:
    """A model, two proxies before it, and clients of both."""

    def __init__(self, model: LlmServer, *proxies: tuple[str, str]) -> None:
        self.model = model
        self.refusing, self.flagging = (
            openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, timeout=60)
            for url, key in proxies
        )


def of_the_page() -> dict[str, Any]:
    """What docs/litellm.md has people write into the proxy's configuration."""
    page = (Path(__file__).parents[2] / "docs/litellm.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(guardrails:.*?)```", page, re.DOTALL)
    (entry,) = yaml.safe_load(block)["guardrails"]
    params: dict[str, Any] = entry["litellm_params"]
    return params


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    one, two = tmp_path_factory.mktemp("refusing"), tmp_path_factory.mktemp("flagging")
    settings = one / "guardrail.yaml"
    settings.write_text(
        yaml.safe_dump({"policies": {"default": {"mode": "stream", "fallback_message": WITHHELD}}})
    )
    options = {**of_the_page(), "settings": str(settings)}
    async with (
        LlmServer(answer) as model,
        litellm_proxy(one, model.url, options) as refusing,
        litellm_proxy(two, model.url, {**options, "missing_contexts": "flag"}) as flagging,
    ):
        made = Place(model, refusing, flagging)
        yield made
        await made.refusing.close()
        await made.flagging.close()


def blocks(role: str = "system") -> list[Any]:
    source = {"type": "grounding_source", "text": TERMS, "id": "terms"}
    told = {"type": "text", "text": "Answer from the documents."}
    return [
        {"role": role, "content": [told, source]},
        {"role": "user", "content": [{"type": "query", "text": QUESTION}]},
    ]


PLAIN: list[Any] = [{"role": "user", "content": QUESTION}]
EXTENSION = {"guardrail": {"contexts": [{"id": "terms", "text": TERMS}], "route": "shop"}}


class Got:
    """A completion as a client has it at its end, streamed or not."""

    def __init__(self) -> None:
        self.texts: dict[int, str] = {}
        self.finishes: dict[int, str] = {}
        self.tool_calls: list[Any] = []
        self.told: list[Any] = []
        self.usage: Any = None
        self.ids: set[str] = set()
        self.models: set[str] = set()
        self.pieces = 0
        self.after_finish = 0
        self.raw = ""

    def take(self, chunk: Any) -> None:
        self.ids.add(chunk.id)
        self.models.add(chunk.model)
        self.raw += chunk.model_dump_json()
        self.usage = chunk.usage or self.usage
        if getattr(chunk, "guardrail", None):
            self.told.append(chunk.guardrail)
        for choice in chunk.choices:
            part: Any = getattr(choice, "delta", None) or getattr(choice, "message", None)
            self.after_finish += choice.index in self.finishes
            if part.content:
                self.pieces += 1
                self.texts[choice.index] = self.texts.get(choice.index, "") + part.content
            self.tool_calls += part.tool_calls or []
            if choice.finish_reason:
                self.finishes[choice.index] = choice.finish_reason


async def ask(
    client: openai.AsyncOpenAI,
    model: str,
    messages: list[Any],
    *,
    stream: bool,
    got: Got | None = None,
    **more: Any,
) -> Got:
    got = got or Got()
    if not stream:
        got.take(await client.chat.completions.create(model=model, messages=messages, **more))
        return got
    options: Any = {"stream": True, "stream_options": {"include_usage": True}}
    async for chunk in await client.chat.completions.create(
        model=model, messages=messages, **options, **more
    ):
        got.take(chunk)
    return got


BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


@BOTH
@pytest.mark.parametrize("where", ["blocks", "developer", "body", "metadata"])
async def test_what_is_backed_is_released_unchanged(place: Place, stream: bool, where: str) -> None:
    messages = {"blocks": blocks(), "developer": blocks("developer")}.get(where, PLAIN)
    extra: Any = {"body": EXTENSION, "metadata": {"metadata": EXTENSION}}.get(where, {})
    got = await ask(place.refusing, "right", messages, stream=stream, extra_body=extra)
    assert got.texts == {0: RIGHT}
    assert got.finishes == {0: "stop"}
    assert got.told[0]["decision"] == "release"
    assert (got.usage.prompt_tokens, got.usage.completion_tokens) == (100, 20)
    assert len(got.ids) == len(got.models) == 1


@BOTH
async def test_what_is_wrong_is_blocked_with_the_message_and_the_usage(place: Place, stream: bool) -> None:
    got = await ask(place.refusing, "wrong", blocks(), stream=stream)
    assert WRONG.strip() not in got.raw
    assert "9 euros" not in got.raw
    assert got.texts[0].split() == (f"{RIGHT} {WITHHELD}" if stream else WITHHELD).split()
    assert got.finishes == {0: "content_filter"}
    assert got.after_finish == 0
    assert got.told[0]["decision"] == "block"
    assert got.told[0].get("replace_all", False) is stream
    assert got.usage.total_tokens == 120
    assert len(got.ids) == len(got.models) == 1


@BOTH
async def test_each_choice_is_guarded_for_itself(place: Place, stream: bool) -> None:
    got = await ask(place.refusing, "two", blocks(), stream=stream, n=2)
    assert got.finishes == {0: "content_filter", 1: "stop"}
    assert got.texts[1] == RIGHT
    assert got.texts[0].endswith(WITHHELD)
    assert "9 euros" not in got.raw


@BOTH
async def test_calls_of_tools_pass_untouched_and_need_no_documents(place: Place, stream: bool) -> None:
    got = await ask(place.refusing, "tools", PLAIN, stream=stream)
    (call,) = got.tool_calls
    assert (call.id, call.function.name, call.function.arguments) == ("call-1", "look_up", "{}")
    assert got.finishes == {0: "tool_calls"}
    assert got.texts == {}


@BOTH
async def test_prose_beside_the_answer_is_dropped(place: Place, stream: bool) -> None:
    got = await ask(place.refusing, "reasoning", blocks(), stream=stream)
    assert got.texts == {0: RIGHT}
    assert "99 days" not in got.raw


@BOTH
@pytest.mark.parametrize("role", ["user", "tool", None])
async def test_without_trusted_documents_the_answer_is_refused(
    place: Place, stream: bool, role: str | None
) -> None:
    """Whoever can write a message of a user or a tool could ground any claim in it."""
    messages = PLAIN
    if role == "user":
        messages = blocks("user")
    elif role == "tool":
        call = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{k: v for k, v in TOOL.items() if k != "index"}],
        }
        messages = [call, {**blocks("tool")[0], "tool_call_id": "call-1"}, *PLAIN]
    got = await ask(place.refusing, "right", messages, stream=stream)
    assert REFUSED in got.texts[0]
    assert RIGHT not in got.raw
    assert got.finishes == {0: "content_filter"}
    assert [(each["decision"], each["rule"]) for each in got.told] == [("block", "no contexts")]
    assert got.usage.total_tokens == 120


@BOTH
async def test_without_documents_it_may_be_flagged_and_is_never_clean(place: Place, stream: bool) -> None:
    got = await ask(place.flagging, "wrong", PLAIN, stream=stream)
    assert got.texts == {0: RIGHT + WRONG + " Thank you."}
    assert got.finishes == {0: "stop"}
    assert [(each["decision"], each["rule"]) for each in got.told] == [("flag", "no contexts")]


@BOTH
async def test_what_states_nothing_needs_no_documents(place: Place, stream: bool) -> None:
    got = await ask(place.refusing, "greets", PLAIN, stream=stream)
    assert got.texts == {0: GREETING}
    assert got.told[0]["decision"] == "release"


@BOTH
async def test_a_refusal_of_the_model_is_checked_like_the_answer(place: Place, stream: bool) -> None:
    got = await ask(place.refusing, "refuses", blocks(), stream=stream)
    assert "9 euros" not in got.raw
    assert got.finishes == {0: "content_filter"}


@BOTH
async def test_the_headers_name_the_guardrail(place: Place, stream: bool) -> None:
    raw = await place.refusing.chat.completions.with_raw_response.create(
        model="right", messages=blocks(), stream=stream
    )
    assert raw.headers["x-litellm-applied-guardrails"] == "streaming-guardrail"


async def test_text_is_released_in_pieces_before_the_model_has_ended(place: Place) -> None:
    got = await ask(place.refusing, "wrong", blocks(), stream=True)
    assert got.pieces >= 2


@pytest.mark.parametrize("model", ["broken", "cut"])
async def test_a_stream_that_breaks_is_told_and_shows_nothing_unverified(place: Place, model: str) -> None:
    got = Got()
    with pytest.raises(openai.APIError):
        await ask(place.refusing, model, blocks(), stream=True, got=got)
    assert "9 euros" not in got.raw
    assert "stop" not in got.finishes.values()


@BOTH
@pytest.mark.parametrize(
    "wrong", [{"contexts": "text"}, {"contexts": [{"id": "a"}]}, {"context": []}, {"route": 7}, []]
)
async def test_a_wrong_extension_is_the_callers_error(place: Place, stream: bool, wrong: Any) -> None:
    with pytest.raises(openai.BadRequestError, match="guardrail") as told:
        await ask(place.refusing, "right", PLAIN, stream=stream, extra_body={"guardrail": wrong})
    assert "tuple" not in str(told.value)


async def test_the_model_gets_plain_text_and_no_extension(place: Place) -> None:
    await ask(place.refusing, "right", blocks(), stream=False, extra_body=EXTENSION)
    body = place.model.calls[-1].body
    assert "guardrail" not in body
    assert "guardrail" not in (body.get("metadata") or {})
    kinds = {part["type"] for message in body["messages"] for part in message["content"]}
    assert kinds == {"text"}
    assert TERMS in str(body["messages"])


@BOTH
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", {"prompt": "x"}),
        ("/v1/messages", {"max_tokens": 9, "messages": PLAIN}),
        ("/v1/responses", {"input": "x"}),
        ("/interactions", {"model": "openai/right", "input": "x"}),
        ("/v1beta/interactions", {"model": "openai/right", "input": "x"}),
        ("/openai/v1/chat/completions", {"messages": PLAIN}),
        ("/openai_passthrough/v1/chat/completions", {"messages": PLAIN}),
    ],
)
async def test_other_protocols_are_refused_before_the_model_is_asked(
    place: Place, stream: bool, path: str, body: dict[str, Any]
) -> None:
    calls = len(place.model.calls)
    url = str(place.refusing.base_url.join(path))
    with pytest.raises(openai.BadRequestError, match="only chat completions can be guarded"):
        await place.refusing.post(url, body={"model": "right", "stream": stream, **body}, cast_to=object)
    assert len(place.model.calls) == calls


async def test_a_client_that_leaves_ends_the_models_stream_too(place: Place) -> None:
    before = len(place.model.calls)
    stream = await place.refusing.chat.completions.create(model="hangs", messages=blocks(), stream=True)
    await anext(aiter(stream))
    await stream.close()
    async with asyncio.timeout(60):
        await place.model.calls[before].ended.wait()
    assert place.model.calls[before].left
    got = await ask(place.refusing, "right", blocks(), stream=True)
    assert got.texts == {0: RIGHT}


async def test_the_tutorial(tmp_path: Path) -> None:
    """docs/tutorial-litellm.md, with a stand-in for its model."""

    def obey(call: Recorded) -> Act:
        wrong = "90 days" in str(call.body["messages"])
        return Reply(RIGHT.replace("14", "90") if wrong else RIGHT)

    (tmp_path / "guardrail.yaml").write_text(tutorial.PROXY_POLICY)
    async with LlmServer(obey) as model:
        config = yaml.safe_load(tutorial.PROXY)
        config["model_list"][0]["litellm_params"]["api_base"] = model.url
        keys = {"OPENAI_API_KEY": "none", "LITELLM_MASTER_KEY": "sk-tutorial"}
        async with configured_proxy(tmp_path, yaml.safe_dump(config), **keys) as url:
            asking = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", tutorial.ASK.replace("http://127.0.0.1:4000", url)),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            out, err = await asking.communicate()
    assert asking.returncode == 0, err.decode()
    first, second = out.decode().split("> ")[1:]
    assert first.splitlines()[1:] == [RIGHT, "[stop]"]
    assert second.splitlines()[1:] == [
        "I could not confirm that. Please ask our support team.",
        "[content_filter]",
    ]
