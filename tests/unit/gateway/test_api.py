"""What of the API passes, what is refused, who may ask, and what hostile bytes come to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from consumers.gateway import Gateway, ServeSettings, openapi, serving
from consumers.gateway.admission import ApiCaller, ApiKey
from consumers.gateway.endpoints import answers_in
from guardrail import Guard
from guardrail.errors import ConfigError, InputError
from guardrail.testing import ScriptedJudge
from tests.support.chat_upstream import ChatUpstream, completion, event, events
from tests.unit.gateway.chats import COMPLETIONS, RIGHT, WRONG, ask, chunks_of, streamed, text_of, with_keys
from tests.unit.gateway.conftest import Opens

# -------------------------------------------------------------------------------------------- paths


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/models"),
        ("GET", "/v1/models/meta-llama/Llama-3.1:8b"),
        ("POST", "/v1/embeddings"),
        ("POST", "/v1/moderations"),
        ("GET", "/v1/files?purpose=batch&limit=2"),
        ("DELETE", "/v1/files/file-1"),
    ],
)
async def test_what_answers_without_prose_passes(
    gateway: Opens, upstream: ChatUpstream, method: str, path: str
) -> None:
    client = await gateway()
    upstream.answers({"data": []})
    reply = await client.request(method, path, json={"input": "x"} if method == "POST" else None)
    assert (reply.status_code, reply.json()) == (200, {"data": []})
    assert [each[:2] for each in upstream.asked] == [(method, path)]


@pytest.mark.parametrize(
    ("method", "path", "status", "why"),
    [
        ("GET", "/v1/responses", 405, "takes POST"),
        ("GET", "/v1/responses/resp_1", 403, "stored response"),
        ("DELETE", "/v1/responses/resp_1", 403, "stored response"),
        ("POST", "/v1/responses/resp_1/cancel", 403, "stored response"),
        ("GET", "/v1/responses/resp_1/input_items", 403, "stored response"),
        ("POST", "/v1/responses/compact", 403, "stored response"),
        ("POST", "/v1/conversations", 403, "stored answers"),
        ("POST", "/v1/completions", 403, "not guarded"),
        ("POST", "/v1/messages", 403, "not guarded"),
        ("GET", "/v1/chat/completions/chatcmpl-1", 403, "stored completion"),
        ("GET", "/v1/files/file-1/content", 403, "answers of a batch"),
        ("POST", "/v1/batches", 403, "batch"),
        ("GET", "/v1/realtime", 403, "speech"),
        ("GET", "/v1/guard", 405, "takes POST"),
        ("POST", "/v1/of_a_later_release", 404, "nothing is known"),
        ("GET", "/", 404, "nothing is known"),
        ("POST", "/chat/completions", 404, "base URL end in one /v1?"),
        ("POST", "/v1/v1/chat/completions", 404, "base URL end in one /v1?"),
        ("POST", "/v1//chat/completions", 404, "nothing is known"),
        ("POST", "/v1/chat/completions/", 403, "stored completion"),
        ("GET", "/v1/models/../responses/resp_1", 404, "nothing is known"),
        ("GET", "/v1/models/%2e%2e/responses/resp_1", 404, "nothing is known"),
        ("GET", "/v1/models/a%2F..%2F..%2Fresponses%2Fresp_1", 404, "nothing is known"),
        ("GET", "/v1/models/a%3Fx=y", 404, "nothing is known"),
        ("GET", "/v1/models/a\\..\\b", 404, "nothing is known"),
        ("GET", "/v1/chat/completions", 405, "takes POST"),
        ("HEAD", "/v1/chat/completions", 405, None),
        ("OPTIONS", "/v1/chat/completions", 405, "takes POST"),
        ("PUT", "/v1/files", 405, "takes GET, HEAD, POST"),
        ("BREW", "/v1/chat/completions", 405, "takes POST"),
        ("GET", "http://localhost/v1/models", 404, "nothing is known"),
        ("GET", "*", 404, "nothing is known"),
    ],
)
async def test_every_other_way_to_an_answer_is_refused(
    gateway: Opens, upstream: ChatUpstream, method: str, path: str, status: int, why: str | None
) -> None:
    client = await gateway()
    port = client.base_url.port
    said = await raw(
        port, f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    )
    head, _, body = said.partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode())
    assert b"access-control" not in head.lower()
    if why is None:
        assert body == b""
    else:
        assert why in json.loads(body)["error"]["message"]
    assert upstream.asked == []


@pytest.mark.parametrize(
    ("more", "status", "why"),
    [
        ({"store": True}, 400, "store: a stored answer"),
        ({"logprobs": True}, 400, "logprobs: log probabilities"),
        ({"modalities": ["text", "audio"]}, 400, "only text"),
        ({"audio": {"voice": "x"}}, 400, "speech"),
        ({"stream": "yes"}, 400, "stream: give true or false"),
        ({"n": 99}, 400, "n: give a number from 1 to 8"),
        ({"n": True}, 400, "n: give"),
        ({"model": ""}, 400, "model: give"),
        ({"messages": "x"}, 400, "messages: give"),
        ({"guardrail": {"contextes": []}}, 400, "guardrail.contextes"),
        ({"guardrail": "x"}, 400, "guardrail: give an object"),
    ],
)
async def test_a_request_that_can_not_be_guarded(
    gateway: Opens, upstream: ChatUpstream, more: dict[str, Any], status: int, why: str
) -> None:
    client = await gateway()
    reply = await client.post(COMPLETIONS, json=ask(**more))
    assert (reply.status_code, why in reply.json()["error"]["message"]) == (status, True), reply.text
    assert upstream.asked == []


# ---------------------------------------------------------------------------------------- documents

SHOWN = "The basic plan costs $49 a month."
MISSING = "the documents that it should rest on were not given"


async def test_documents_come_from_where_the_settings_say(
    gateway: Opens, upstream: ChatUpstream, judge: ScriptedJudge
) -> None:
    places: dict[str, dict[str, Any]] = {
        "extension": {"guardrail": {"contexts": [SHOWN]}},
        "blocks": {
            "messages": [
                {"role": "system", "content": [{"type": "grounding_source", "text": SHOWN}]},
                {"role": "user", "content": "?"},
            ]
        },
        "documents": {"documents": [{"title": "Plans", "text": SHOWN}]},
        "tools": {"messages": [*tool_messages("another"), *tool_messages("search")]},
    }
    for allowed in (*places, "none"):
        sources = [] if allowed in {"tools", "none"} else [allowed]
        client = await gateway(contexts_from=sources, tools=["search"] if allowed == "tools" else [])
        for place, request in places.items():
            upstream.streams(events(RIGHT))
            text = text_of(await streamed(client, **{"guardrail": {}, **request}))
            assert (text == RIGHT) is (place == allowed), (allowed, place)
            assert (MISSING in text) is (place != allowed)


def tool_messages(*names: str) -> list[dict[str, Any]]:
    functions = [{"name": name, "arguments": "{}"} for name in names]
    calls = [{"id": "call_1", "type": "function", "function": each} for each in functions]
    return [
        {"role": "user", "content": "What does it cost?"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "call_1", "content": SHOWN},
    ]


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": [{"type": "grounding_source", "text": SHOWN}]}],
        [{"role": ["system"], "content": [{"type": ["grounding_source"], "text": SHOWN}]}],
        [{"role": "user", "content": SHOWN}, {"role": "assistant", "content": SHOWN}],
        [{"role": "assistant", "content": [{"type": "grounding_source", "text": SHOWN}]}],
        tool_messages("another"),
        [{**each, "role": each["role"].replace("assistant", "user")} for each in tool_messages("search")],
        tool_messages("another", "search"),
        tool_messages("search", "another"),
        [{"role": "System", "content": [{"type": "grounding_source", "text": SHOWN}]}],
        [{"role": "tool", "tool_call_id": "never called", "content": SHOWN}],
    ],
)
async def test_what_users_and_models_said_is_no_evidence(
    gateway: Opens, upstream: ChatUpstream, messages: list[dict[str, Any]]
) -> None:
    client = await gateway(tools=["search"])
    upstream.streams(events(RIGHT))
    assert MISSING in text_of(await streamed(client, messages=messages, guardrail={}))


async def test_metadata_are_no_extension(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    request = ask(stream=True)
    inside = {"guardrail": request.pop("guardrail")}
    upstream.streams(events(RIGHT))
    for name in ("metadata", "litellm_metadata"):
        reply = await client.post(COMPLETIONS, json={**request, name: inside})
        assert MISSING in text_of(chunks_of(reply.text))


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"guardrail": {"contexts": ["x" * 2_000_001]}}, "contexts_too_large"),
        ({"messages": [{"role": "user", "content": "half: \ud83d"}]}, "invalid_text"),
    ],
)
async def test_what_no_check_would_take_is_refused_before_a_model_is_asked(
    gateway: Opens, upstream: ChatUpstream, more: dict[str, Any], code: str
) -> None:
    client = await gateway()
    body = json.dumps(ask(**more))
    reply = await client.post(COMPLETIONS, content=body, headers={"Content-Type": "application/json"})
    assert (reply.status_code, reply.json()["error"]["code"], upstream.asked) == (400, code, [])


async def test_missing_documents_by_policy(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway(missing_contexts="pass")
    upstream.answers(completion(RIGHT))
    reply = await client.post(COMPLETIONS, json=ask(guardrail={}))
    assert reply.json()["choices"][0]["message"]["content"] == RIGHT
    assert reply.json()["guardrail"]["decision"] == reply.headers["x-guardrail-decision"] == "not-checked"
    client = await gateway(missing_contexts="judge")
    upstream.answers(completion(WRONG))
    reply = await client.post(COMPLETIONS, json=ask(guardrail={}))
    assert reply.json()["guardrail"]["rule"] == "contradicted"
    upstream.answers(completion("Hello! How can I help you?"))
    client = await gateway()
    reply = await client.post(COMPLETIONS, json=ask(guardrail={}))
    assert reply.headers["x-guardrail-decision"] == "release"


# ------------------------------------------------------------------------------------------- checks


def test_an_answer_to_check_is_never_called_as_one_of_another_key() -> None:
    caller = ApiCaller(ApiKey(name="shop/two", sha256="0" * 64))
    ((event, _),) = answers_in({"answer": RIGHT, "response_id": "other/1"}, caller)
    assert event.response_id.startswith("shop%2Ftwo/other/1-")
    caller = ApiCaller(ApiKey(name="s" * 99, sha256="0" * 64))
    with pytest.raises(InputError, match="longer than"):
        answers_in({"answer": RIGHT, "response_id": "r" * 200}, caller)


async def test_one_answer_and_many_are_checked(gateway: Opens) -> None:
    client = await gateway()
    right = {"question": "?", "contexts": [SHOWN], "answer": RIGHT}
    wrong = {"contexts": [{"id": "a", "text": SHOWN}], "answer": WRONG, "response_id": "mine"}
    one = (await client.post("/v1/check", json=right)).json()
    assert (one["decision"], [each["verdict"] for each in one["claims"]]) == ("release", ["SUPPORTED"])
    many = (await client.post("/v1/check", json={"checks": [wrong, right]})).json()["results"]
    assert [each["decision"] for each in many] == ["block", "release"]
    assert many[0]["response_id"] == many[0]["claims"][0]["response_id"] == "mine"
    again = await client.post("/v1/check", json={"checks": [wrong, wrong]})
    assert [each["response_id"] for each in again.json()["results"]] == ["mine", "mine"]
    document = openapi()
    for model, told in (("ResponseVerdict", one), ("CheckResults", {"results": many})):
        schema = {"$ref": f"#/components/schemas/{model}", "components": document["components"]}
        assert list(Draft202012Validator(schema).iter_errors(told)) == []
    assert (await client.get("/openapi.json")).json() == document
    assert document["openapi"] == "3.1.0"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"contexts": [SHOWN]}, "answer"),
        ({"answer": RIGHT, "context": [SHOWN]}, "context"),
        ({"answer": RIGHT, "contexts": SHOWN}, "contexts"),
        ({"checks": []}, "checks"),
        ({"answer": "\ud83d", "contexts": [SHOWN]}, "surrogate"),
        ([], "give one object"),
    ],
)
async def test_a_wrong_check_is_told_by_its_field(gateway: Opens, body: Any, why: str) -> None:
    client = await gateway()
    reply = await client.post(
        "/v1/check", content=json.dumps(body), headers={"Content-Type": "application/json"}
    )
    assert reply.status_code == 400
    assert why in reply.json()["error"]["message"]


# --------------------------------------------------------------------------------------------- keys


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, Any]:
    return with_keys(
        tmp_path,
        one={"name": "shop", "tenant": "acme", "routes": ["chat", "mail"]},
        two={"name": "busy", "requests_per_minute": 2},
        three={"name": "narrow", "concurrent": 1, "routes": []},
    )


async def test_only_who_has_a_key_may_ask(
    gateway: Opens, upstream: ChatUpstream, keys: dict[str, Any]
) -> None:
    client = await gateway(**keys)
    upstream.answers(completion(RIGHT))
    for headers in (
        {},
        {"x-guardrail-key": "four"},
        {"Authorization": "Bearer one"},
        {"x-guardrail-key": "\xfc"},
    ):
        sent = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        reply = await client.post(COMPLETIONS, json=ask(), headers=sent)
        assert (reply.status_code, reply.json()["error"]["code"]) == (401, "invalid_api_key")
        assert (await client.get("/v1/models", headers=sent)).status_code == 401
        assert (await client.get("/v1/nothing", headers=sent)).status_code == 401
    mine = {"x-guardrail-key": "one", "Authorization": "Bearer of-the-upstream"}
    assert (await client.post(COMPLETIONS, json=ask(), headers=mine)).status_code == 200
    (asked,) = upstream.asked
    assert asked[2]["authorization"] == "Bearer of-the-upstream"
    assert "x-guardrail-key" not in asked[2]


async def test_with_a_key_of_its_own_for_the_upstream_the_bearer_is_the_gateways(
    gateway: Opens, upstream: ChatUpstream, keys: dict[str, Any]
) -> None:
    client = await gateway(**keys, upstream_key="sk-secret")
    upstream.answers(completion(RIGHT))
    reply = await client.post(COMPLETIONS, json=ask(), headers={"Authorization": "Bearer one"})
    assert reply.status_code == 200
    assert upstream.asked[0][2]["authorization"] == "Bearer sk-secret"


async def test_a_key_chooses_no_policy_but_its_own(
    gateway: Opens, upstream: ChatUpstream, keys: dict[str, Any]
) -> None:
    client = await gateway(**keys)
    mine = {"x-guardrail-key": "one"}
    item = {"answer": RIGHT, "contexts": [SHOWN]}
    for named, status in (({}, 200), ({"route": "mail"}, 200), ({"tenant": "acme"}, 200)):
        reply = await client.post("/v1/check", json={**item, **named}, headers=mine)
        assert reply.status_code == status
        assert (reply.json()["tenant"], reply.json()["route"]) == ("acme", named.get("route", "chat"))
    for wrong in ({"route": "lax"}, {"tenant": "other"}):
        assert (await client.post("/v1/check", json={**item, **wrong}, headers=mine)).status_code == 403
        for path in (COMPLETIONS, "/v1/responses"):
            reply = await client.post(path, json=ask(input="?", guardrail=wrong), headers=mine)
            assert reply.status_code == 403
    without = {"x-guardrail-key": "two"}
    reply = await client.post("/v1/check", json={**item, "route": "chat"}, headers=without)
    assert reply.json()["error"]["message"] == "route: the key may name none, so leave it out"
    assert (await client.post("/v1/check", json=item, headers=without)).json()["route"] is None
    assert upstream.asked == []


async def test_a_key_has_its_limits(gateway: Opens, upstream: ChatUpstream, keys: dict[str, Any]) -> None:
    client = await gateway(**keys)
    upstream.streams(events(RIGHT))
    statuses = [
        (
            await client.post(COMPLETIONS, json=ask(stream=True), headers={"x-guardrail-key": "two"})
        ).status_code
        for _ in range(3)
    ]
    assert statuses == [200, 200, 429]
    upstream.holds_before = 1
    narrow = {"x-guardrail-key": "three"}
    async with client.stream("POST", COMPLETIONS, json=ask(stream=True), headers=narrow):
        reply = await client.get("/openapi.json", headers=narrow)
        assert (reply.status_code, reply.headers["retry-after"]) == (429, "1")
        upstream.going_on.set()
    while (await client.get("/openapi.json", headers=narrow)).status_code == 429:
        pass  # until the stream's end has been noticed


@pytest.mark.parametrize("url", ["http://h/v1/chat/completions", "h/v1", "http://h:99999/v1", "http://h:0"])
def test_a_base_url_that_is_none_is_told(url: str) -> None:
    with pytest.raises(ValidationError, match=r"no base URL|out of range"):
        ServeSettings(upstream=url)


async def test_an_upstream_s_key_of_two_lines_is_told(gateway: Opens) -> None:
    with pytest.raises(ConfigError, match=r"upstream_key: it holds characters no header can carry"):
        await gateway(upstream_key="sk-a\nb")


def test_other_machines_need_keys() -> None:
    with pytest.raises(ValidationError, match="there are no keys"):
        ServeSettings(host="192.0.2.1")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not YAML"),
        ("- {name: x, sha256: short}", "0.sha256.*sha256sum"),
        ("name: x", "holds no list; write {file: PATH}"),
        (f"- {{name: x, sha256: {'a' * 64}}}\n- {{name: y, sha256: {'a' * 64}}}", "same sha256"),
    ],
)
async def test_wrong_keys_are_told_without_their_text(
    gateway: Opens, monkeypatch: pytest.MonkeyPatch, text: str, why: str
) -> None:
    monkeypatch.setenv("KEYS", text)
    with pytest.raises(ConfigError, match=why) as error:
        await gateway(keys={"env": "KEYS"})
    assert "short" not in str(error.value)


# ---------------------------------------------------------------------------------------- raw bytes


async def raw(port: int | None, sent: bytes) -> bytes:
    """All that is answered to these bytes, until the gateway hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    try:
        return await reader.read()
    finally:
        writer.close()


def post(body: bytes, *headers: str, host: str = "localhost") -> bytes:
    lines = [
        f"POST {COMPLETIONS} HTTP/1.1",
        f"Host: {host}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def test_the_host_is_no_part_of_the_path(
    gateway: Opens, upstream: ChatUpstream, keys: dict[str, Any]
) -> None:
    client = await gateway(**keys)
    upstream.answers({"data": []})
    host = "localhost/v1/responses/resp_1?x="
    sent = f"GET /v1/models HTTP/1.1\r\nHost: {host}\r\nx-guardrail-key: one\r\nConnection: close\r\n\r\n"
    assert (await raw(client.base_url.port, sent.encode())).startswith(b"HTTP/1.1 200 ")
    assert [each[1] for each in upstream.asked] == ["/v1/models"]


async def test_the_upstream_s_cookies_are_nobodys(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    upstream.answers(completion(RIGHT))
    upstream.headers["Set-Cookie"] = "session=of-one-caller; Path=/"
    for _ in range(2):
        assert (await client.post(COMPLETIONS, json=ask())).status_code == 200
    assert all("cookie" not in headers for _, _, headers, _ in upstream.asked)


async def test_of_a_query_only_azures_version_goes_on(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    upstream.answers(completion(RIGHT))
    for query, sent in (("?api-version=2024-10-21&stream=true", "?api-version=2024-10-21"), ("?n=9", "")):
        assert (await client.post(COMPLETIONS + query, json=ask())).status_code == 200
        assert upstream.asked.pop()[1] == COMPLETIONS + sent


async def test_what_is_passed_on_has_an_end_too(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway(answer_timeout_ms=300)
    upstream.answers({"data": []})
    upstream.holds_before = 0
    reply = await client.get("/v1/models")
    assert (reply.status_code, "serve.answer_timeout_ms" in reply.text) == (504, True)
    await upstream.left.wait()


async def test_headers_that_can_not_be_passed_on_are_left_out(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    upstream.answers(completion(RIGHT))
    sent = post(json.dumps(ask()).encode(), "User-Agent: m\u00fcller", "Cookie: a=b", "Connection: close")
    assert (await raw(client.base_url.port, sent)).startswith(b"HTTP/1.1 200 ")
    assert "cookie" not in upstream.asked[0][2]


async def test_two_requests_on_one_connection_have_each_their_answer(
    gateway: Opens, upstream: ChatUpstream
) -> None:
    client = await gateway()
    upstream.answers(completion(RIGHT))
    body = json.dumps(ask()).encode()
    said = await raw(client.base_url.port, post(body) + post(body, "Connection: close"))
    assert said.count(b"HTTP/1.1 200 ") == 2
    assert said.count(RIGHT.strip().encode()) == 2


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (post(b"{"), 400),
        (post(b'{"model": NaN}'), 400),
        (post(b"[" * 100_000), 400),
        (post(b"\xff\xfe"), 400),
        (post(b'{"messages": [], "model": "m", "n": ' + b"9" * 5_000 + b"}"), 400),
        (post(b"{}").replace(b"application/json", b"text/plain"), 415),
        (post(b"{}", host="evil.example"), 403),
        (post(b"{}", host="evil.example/localhost"), 403),
        (post(b"{}", "Origin: https://evil.example"), 403),
        (post(b"--b", "Origin: null").replace(b"chat/completions", b"files"), 403),
        (post(b"x" * 3_000_000), 413),
        (post(b"{}").replace(b"Content-Length: 2", b"Content-Length: 2\r\nContent-Length: 3"), 400),
        (post(b"{}").replace(b"Content-Length: 2", b"Content-Length: 2\r\nTransfer-Encoding: chunked"), 400),
        (post(b"{}").replace(b"Host: localhost\r\n", b""), 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000, 400),
        (b"\x16\x03\x01\x02\x00\x01\x00", 400),
    ],
)
async def test_hostile_bytes_are_refused(
    gateway: Opens, upstream: ChatUpstream, sent: bytes, status: int
) -> None:
    client = await gateway(max_body_bytes=1_000_000)
    asking = raw(client.base_url.port, sent.replace(b"Host: ", b"Connection: close\r\nHost: "))
    try:
        said = await asking
    except ConnectionResetError:  # it hung up while more was being sent
        said = b""
    assert said.startswith(f"HTTP/1.1 {status} ".encode()) or (not said and status == 413)
    assert upstream.asked == []


async def test_a_chunked_body_with_trailers_is_one_body(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    upstream.answers(completion(RIGHT))
    body = json.dumps(ask()).encode()
    head = (
        post(body)
        .partition(b"\r\n\r\n")[0]
        .replace(f"Content-Length: {len(body)}".encode(), b"Transfer-Encoding: chunked\r\nConnection: close")
    )
    chunked = b"%x\r\n%s\r\n%x;note=x\r\n%s\r\n0\r\nx-guardrail-key: late\r\n\r\n" % (
        *(5, body[:5]),
        *(len(body) - 5, body[5:]),
    )
    said = await raw(client.base_url.port, head + b"\r\n\r\n" + chunked)
    assert said.startswith(b"HTTP/1.1 200 ")
    assert "x-guardrail-key" not in upstream.asked[0][2]


async def test_names_can_not_write_headers_or_events(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    told = completion(RIGHT, id="x\r\nSet-Cookie: a=b", model="m\n\ndata: wrong", system_fingerprint="a b")
    upstream.answers(told)
    reply = await client.post(COMPLETIONS, json=ask())
    assert reply.json()["id"].startswith("chatcmpl-")
    assert (reply.json()["model"], "system_fingerprint" in reply.json()) == ("any-model", False)
    upstream.streams(events("Fine.\n\ndata: [DONE]\n\n", "\u2028More\r\n"))
    chunks = await streamed(client)
    assert text_of(chunks) == "Fine.\n\ndata: [DONE]\n\n\u2028More\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: local",
        post(b"{}").replace(b"Content-Length: 2", b"Content-Length: 200"),
    ],
)
async def test_who_sends_nothing_whole_is_cut_off(
    gateway: Opens, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr("consumers.gateway.settings.ServeSettings.slow_s", 0.1)
    client = await gateway()
    try:
        said = await raw(client.base_url.port, sent)
    except ConnectionResetError:
        said = b""
    assert said == b"" or said.startswith(b"HTTP/1.1 408 ")


async def test_who_takes_nothing_is_cut_off(
    gateway: Opens, upstream: ChatUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consumers.gateway.settings.ServeSettings.slow_s", 0.3)
    client = await gateway()
    call = {"tool_calls": [{"index": 0, "function": {"arguments": "x" * 100_000}}]}
    upstream.streams([event(call)] * 2_000)
    reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port, limit=1)
    writer.write(post(json.dumps(ask(stream=True)).encode()))
    await upstream.left.wait()
    writer.close()
    del reader


async def test_a_port_that_is_taken_is_told(gateway: Opens) -> None:
    client = await gateway()
    with pytest.raises(
        ConfigError, match=f"127.0.0.1:{client.base_url.port} can't be listened on .address already in use"
    ):
        await gateway(port=client.base_url.port)
    with pytest.raises(ConfigError, match="No such file"):
        await gateway(certificate="none.pem", private_key="none.pem")


@asynccontextmanager
async def under_way(
    upstream: ChatUpstream, judge: ScriptedJudge, drain_s: float, *, stream: bool = True
) -> AsyncIterator[asyncio.Future[httpx2.Response]]:
    """An answer that the upstream holds back, of a gateway that is stopped as the block ends."""
    upstream.streams(events(RIGHT, RIGHT))
    if not stream:
        upstream.answers(completion(RIGHT))
    upstream.holds_before = 2 if stream else 0
    settings = ServeSettings(upstream=upstream.url, port=0)
    async with (
        Guard(judge) as guard,
        Gateway(settings, guard) as made,
        httpx2.AsyncClient(timeout=60) as client,
    ):
        async with serving(made.app, settings, drain_s) as port:
            url = f"http://127.0.0.1:{port}{COMPLETIONS}"
            request = asyncio.ensure_future(client.post(url, json=ask(stream=stream)))
            await upstream.held.wait()
            yield request
        await request
        with pytest.raises(httpx2.ConnectError):
            await client.post(url, json=ask())


@pytest.mark.parametrize("stream", [True, False])
async def test_what_does_not_end_in_time_ends_as_an_error(
    upstream: ChatUpstream, judge: ScriptedJudge, stream: bool
) -> None:
    async with under_way(upstream, judge, 1, stream=stream) as request:
        pass
    reply = request.result()
    assert reply.status_code == (200 if stream else 503)
    told = json.loads(reply.text.strip().rpartition("\n")[2].removeprefix("data: "))
    assert told["error"]["code"] == "stopping"


async def test_a_drained_gateway_ends_what_it_has_begun(upstream: ChatUpstream, judge: ScriptedJudge) -> None:
    async with under_way(upstream, judge, 30) as request:
        asyncio.get_running_loop().call_later(0.3, upstream.going_on.set)
    assert text_of(chunks_of(request.result().text)) == RIGHT + RIGHT
