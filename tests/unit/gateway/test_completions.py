"""Chat completions through the gateway, over a socket: what leaves, in which form, and what doesn't."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import openai
import pytest
from pydantic import BaseModel
from structlog.testing import capture_logs

from consumers.gateway.answers import Flagged
from guardrail import Policy
from guardrail.chat import BLOCK
from guardrail.events import ClaimVerdict, Decision, DeliveryCompleted, Verdict
from guardrail.testing import ScriptedJudge
from tests.support.chat_upstream import DONE, HEAD, ChatUpstream, choice, completion, event, events
from tests.unit.gateway.chats import (
    COMPLETIONS,
    ODD,
    RIGHT,
    WRONG,
    ask,
    finish_of,
    streamed,
    text_of,
)
from tests.unit.gateway.conftest import Opens

WITHHELD = "This answer was withheld because it could not be verified against the source documents."


async def test_a_right_answer_leaves_as_it_came(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    upstream.answers(completion(RIGHT, usage={"total_tokens": 9, "details": {"cached": 1}}))
    reply = await client.post(COMPLETIONS, json=ask())
    told = reply.json()
    assert told["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": RIGHT, "refusal": None},
            "finish_reason": "stop",
        }
    ]
    assert (told["id"], told["model"], told["object"]) == ("chatcmpl-1", "any-model", "chat.completion")
    assert told["usage"] == {"total_tokens": 9, "details": {"cached": 1}}
    assert told["guardrail"]["decision"] == reply.headers["x-guardrail-decision"] == "release"
    assert float(reply.headers["x-guardrail-score"]) == pytest.approx(told["guardrail"]["score"], abs=1e-4)


async def test_a_wrong_answer_is_replaced(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    upstream.answers(completion(RIGHT + WRONG))
    reply = await client.post(COMPLETIONS, json=ask())
    (only,) = reply.json()["choices"]
    assert (only["message"]["content"], only["finish_reason"]) == (WITHHELD, "content_filter")
    assert reply.headers["x-guardrail-decision"] == "block"
    assert "wrong plan" not in reply.text
    assert [each["verdict"] for each in reply.json()["guardrail"]["flagged"]] == ["CONTRADICTED"]


async def test_a_stream_ends_where_it_turns_wrong(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    upstream.streams(events(RIGHT, WRONG, RIGHT))
    chunks = await streamed(client)
    assert text_of(chunks) == f"{RIGHT}\n\n{WITHHELD}"
    assert finish_of(chunks) == "content_filter"
    assert {(each["id"], each["model"], each["object"]) for each in chunks} == {
        ("chatcmpl-1", "any-model", "chat.completion.chunk")
    }
    told = chunks[-1]["guardrail"]
    assert (told["decision"], told["replace_all"]) == ("block", True)


async def test_a_flagged_claim_is_shown_and_told(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    upstream.streams(events(RIGHT, ODD))
    chunks = await streamed(client)
    assert text_of(chunks) == RIGHT + ODD
    told = chunks[-1]["guardrail"]
    assert told["decision"] == "flag"
    assert [(each["text"], each["verdict"]) for each in told["flagged"]] == [(ODD.strip(), "UNSUPPORTED")]


@pytest.mark.parametrize("whole", [False, True])
async def test_a_flag_by_the_score_names_the_claim_that_weighs_most(
    gateway: Opens, upstream: ChatUpstream, *, whole: bool
) -> None:
    client = await gateway(Policy(rules=("always: release",), flag_below=0.99))
    if whole:
        upstream.answers(completion(RIGHT + ODD))
        told = (await client.post(COMPLETIONS, json=ask())).json()["guardrail"]
    else:
        upstream.streams(events(RIGHT, ODD))
        told = (await streamed(client))[-1]["guardrail"]
    assert (told["decision"], told["rule"]) == ("flag", "score < flag_below 0.99")
    assert [(each["text"], each["decision"]) for each in told["flagged"]] == [(ODD.strip(), "flag")]


@pytest.mark.parametrize("rule", ["incomplete", "score and rules passed"])
def test_a_decision_that_no_claim_made_names_none(rule: str) -> None:
    flagged = Flagged()
    claim: dict[str, Any] = {"claim_id": "a", "verdict": Verdict.SUPPORTED, "index": 0}
    ends: dict[str, Any] = {"decision": Decision.FLAG, "rule": rule}
    flagged.seen(ClaimVerdict.model_construct(**claim))
    flagged.seen(DeliveryCompleted.model_construct(**ends))
    assert flagged.told(shown=True) == []


async def test_where_the_policy_observes_the_reply_says_that_nothing_was_checked(
    gateway: Opens, upstream: ChatUpstream
) -> None:
    client = await gateway(Policy(mode="observe"))
    upstream.streams(events(RIGHT, WRONG))
    chunks = await streamed(client)
    assert (text_of(chunks), chunks[-1]["guardrail"]["decision"]) == (RIGHT + WRONG, "not-checked")
    upstream.answers(completion(WRONG))
    reply = await client.post(COMPLETIONS, json=ask())
    assert reply.headers["x-guardrail-decision"] == "not-checked"


async def test_a_redaction_stands_in_the_place_of_the_text(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway(Policy(rules=("verdict UNSUPPORTED: redact",)))
    upstream.streams(events(RIGHT, ODD, RIGHT))
    chunks = await streamed(client)
    assert text_of(chunks) == f"{RIGHT}[removed: not backed by the sources] {RIGHT}"
    (flagged,) = chunks[-1]["guardrail"]["flagged"]
    assert (flagged["decision"], "text" in flagged) == ("redact", False)
    assert "odd" not in json.dumps(chunks)


async def test_the_usage_comes_last_and_only_to_who_asked(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    *before, done = events(RIGHT, WRONG)
    upstream.streams([*before, event(usage={"total_tokens": 5, "note": WRONG}), done])
    chunks = await streamed(client, stream_options={"include_usage": True})
    assert chunks[-1] == {**HEAD, "choices": [], "usage": {"total_tokens": 5}}
    assert all("usage" not in each for each in await streamed(client))


async def test_choices_are_guarded_each_for_itself(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    upstream.streams(
        [
            event({"content": RIGHT}, index=1),
            event({"content": WRONG}, index=0),
            event({}, "length", index=1),
            event({}, "stop", index=0),
            DONE,
        ]
    )
    chunks = await streamed(client, n=2)
    assert (text_of(chunks, 0), finish_of(chunks, 0)) == (WITHHELD, "content_filter")
    assert (text_of(chunks, 1), finish_of(chunks, 1)) == (RIGHT, "length")
    upstream.answers(completion(RIGHT, WRONG))
    reply = await client.post(COMPLETIONS, json=ask(n=2))
    assert [each["message"]["content"] for each in reply.json()["choices"]] == [RIGHT, WITHHELD]
    assert reply.headers["x-guardrail-decision"] == "block"


CALL = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": '{"q": "plans"}'}}


async def test_calls_of_tools_pass_and_need_no_documents(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    upstream.streams(
        [event({"tool_calls": [{"index": 0, **CALL, "note": WRONG}]}), event({}, "tool_calls"), DONE]
    )
    first, last = await streamed(client, guardrail={})
    assert first["choices"][0]["delta"] == {"tool_calls": [{"index": 0, **CALL}]}
    assert last["choices"] == [choice({}, "tool_calls")]
    upstream.answers(completion({"role": "assistant", "content": None, "tool_calls": [CALL]}))
    (only,) = (await client.post(COMPLETIONS, json=ask(guardrail={}))).json()["choices"]
    assert only["message"]["tool_calls"] == [CALL]


@pytest.mark.parametrize(
    ("asked", "told"), [({"tool_choice": "required"}, "not-checked"), ({"tool_choice": "auto"}, None)]
)
async def test_an_answer_that_is_asked_for_as_a_call_is_said_to_be_unchecked(
    gateway: Opens, upstream: ChatUpstream, asked: dict[str, Any], told: str | None
) -> None:
    client = await gateway()
    upstream.streams([event({"tool_calls": [{"index": 0, **CALL}]}), event({}, "stop"), DONE])
    assert (await streamed(client, **asked))[-1].get("guardrail", {}).get("decision") == told
    upstream.answers(completion({"role": "assistant", "content": None, "tool_calls": [CALL]}))
    reply = await client.post(COMPLETIONS, json=ask(**asked))
    assert reply.json().get("guardrail", {}).get("decision") == told
    assert reply.headers.get("x-guardrail-decision") == told
    upstream.answers(completion(RIGHT))
    assert (await client.post(COMPLETIONS, json=ask(**asked))).headers["x-guardrail-decision"] == "release"


BESIDE = {
    "reasoning": WRONG,
    "reasoning_content": WRONG,
    "annotations": [{"title": WRONG}],
    "audio": {"transcript": WRONG},
    "images": [WRONG],
    "provider_specific_fields": {"said": WRONG},
}


async def test_what_nobody_has_checked_is_dropped(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    upstream.streams(
        [
            event({"content": RIGHT, **BESIDE}, id="one", model=WRONG, service_tier=WRONG, citations=[WRONG]),
            event(BESIDE, id=WRONG),
            b"data: " + json.dumps({**HEAD, "choices": [{**choice({}, WRONG), "logprobs": WRONG}]}).encode(),
            b"\n\n",
            DONE,
        ]
    )
    chunks = await streamed(client)
    assert "wrong" not in json.dumps(chunks)
    assert {each["id"] for each in chunks} == {"one"}
    assert {each["model"] for each in chunks} == {"any-model"}
    assert (text_of(chunks), finish_of(chunks)) == (RIGHT, "stop")
    whole = completion({"role": "assistant", "content": RIGHT, **BESIDE}, citations=[WRONG], id=WRONG)
    whole["choices"][0]["logprobs"] = {"content": [{"token": WRONG}]}
    upstream.answers(whole)
    assert "wrong" not in (await client.post(COMPLETIONS, json=ask())).text


async def test_a_refusal_is_checked_like_the_answer(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    upstream.streams([event({"refusal": WRONG}), event({}, "stop"), DONE])
    assert text_of(await streamed(client)) == WITHHELD
    upstream.answers(completion({"role": "assistant", "content": None, "refusal": WRONG}))
    assert "wrong" not in (await client.post(COMPLETIONS, json=ask())).text


async def test_text_in_parts_is_checked(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    parts = [{"type": "text", "text": RIGHT}, {"type": "thinking", "text": WRONG}]
    upstream.answers(completion({"role": "assistant", "content": parts}))
    (only,) = (await client.post(COMPLETIONS, json=ask())).json()["choices"]
    assert only["message"]["content"] == RIGHT


async def test_an_error_of_the_upstream_keeps_its_status_and_body(
    gateway: Opens, upstream: ChatUpstream
) -> None:
    client = await gateway()
    told = {"error": {"message": "slow down", "code": "rate_limit"}}
    for stream in (False, True):
        upstream.answers(told, "429 Too Many Requests")
        upstream.headers |= {"Retry-After": "7", "Set-Cookie": "a=b", "x-guardrail-decision": "release"}
        reply = await client.post(COMPLETIONS, json=ask(stream=stream))
        assert (reply.status_code, reply.json()) == (429, told)
        assert reply.headers["retry-after"] == "7"
        assert not {"set-cookie", "x-guardrail-decision"} & set(reply.headers)


@pytest.mark.parametrize(
    ("headers", "body", "stream"),
    [
        ({"Content-Type": "application/json"}, b'{"object": "response"}', False),
        ({"Content-Type": "application/json"}, b"[]", False),
        ({"Content-Type": "application/json"}, b"{", False),
        ({"Content-Type": "text/event-stream"}, b"".join(events(RIGHT)), False),
        ({"Content-Type": "application/json"}, json.dumps(completion(RIGHT)).encode(), True),
        ({"Content-Type": "application/json", "Content-Encoding": "gzip"}, b"\x1f\x8b", False),
        ({"Content-Type": "text/event-stream", "Content-Encoding": "gzip"}, b"\x1f\x8b", True),
        ({"Content-Type": "application/json", "Content-Length": "900"}, b'{"choices": [', False),
        ({"Content-Type": "application/json"}, b'{"a": "' + b"x" * 20_000_000 + b'"}', False),
        ({}, b"anything", True),
        ({"Content-Type": "application/json"}, json.dumps(completion(RIGHT, RIGHT)).encode(), False),
        ({"Content-Type": "application/json"}, json.dumps(completion()).encode(), False),
        ({"Content-Type": "application/json"}, b'{"choices": [{}, {"message": {"content": "A."}}]}', False),
        ({"Content-Type": "application/json"}, b'{"choices": [null, {"message": {"content": "A."}}]}', False),
    ],
)
async def test_an_answer_of_no_known_form_is_withheld(
    gateway: Opens, upstream: ChatUpstream, headers: dict[str, str], body: bytes, stream: bool
) -> None:
    client = await gateway()
    upstream.headers, upstream.body = headers, [body]
    reply = await client.post(COMPLETIONS, json=ask(stream=stream))
    assert (reply.status_code, reply.json()["error"]["code"]) == (502, "upstream_failed")


async def test_a_stream_that_takes_too_long_ends_as_an_error(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway(answer_timeout_ms=1_000)
    upstream.streams(events(RIGHT, "Never said."))
    upstream.holds_before = 2
    reply = await client.post(COMPLETIONS, json=ask(stream=True))
    *_, last, rest = reply.text.split("\n\n")
    told = json.loads(last.removeprefix("data: "))["error"]
    assert (told["code"], "serve.answer_timeout_ms" in told["message"]) == ("upstream_failed", True)
    assert rest == ""
    await upstream.left.wait()


@pytest.mark.parametrize(
    "broken",
    [
        [event({"content": RIGHT}), event({"content": WRONG})],  # no end
        [event({"content": RIGHT}), b'data: {"choices": [{"index": 0, "delta": {"content": "The'],
        [event({"content": RIGHT}), b"data: {broken\n\n", DONE],
        [event({"content": RIGHT}), b"data: [1]\n\n", DONE],
        [event({"content": RIGHT}), b'data: {"choices": ["is not"]}\n\n', DONE],
        [event({"content": RIGHT}), b'data: {"error": {"message": "wrong"}}\n\n', DONE],
        [event({"content": RIGHT}), event({"content": "x"}, index=4), DONE],
        [event({"content": RIGHT}), b"data: " + b"x" * 2_000_000 + b"\n\n", DONE],
        [event({"content": RIGHT}), event({"content": "x"}, "error"), DONE],
        [DONE],
    ],
    ids=[
        "no end",
        "cut",
        "no JSON",
        "no object",
        "no choice",
        "error",
        "one too many",
        "too long",
        "called so",
        "nothing",
    ],
)
async def test_a_stream_that_breaks_off_ends_as_an_error(
    gateway: Opens, upstream: ChatUpstream, broken: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    client = await gateway()
    upstream.streams(broken)
    reply = await client.post(COMPLETIONS, json=ask(stream=True))
    assert "serve.broke_off" in caplog.text
    assert reply.text.endswith("\n\n")
    *_, last = reply.text.strip().split("\n\n")
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == "upstream_failed"
    assert "wrong" not in reply.text
    assert "[DONE]" not in reply.text


TOOL = {"tool_calls": [{"index": 0, **CALL}]}


@pytest.mark.parametrize(
    ("came", "text", "finish"),
    [
        ([({"content": RIGHT[:9]}, "stop"), ({"content": RIGHT[9:]}, "STOP")], RIGHT, "stop"),
        ([({"content": RIGHT[:9]}, "null"), ({"content": RIGHT[9:]}, "MAX_TOKENS")], RIGHT, "length"),
        ([({"reasoning": WRONG}, "stop"), ({"content": RIGHT}, None)], RIGHT, "stop"),
        ([(TOOL, "tool_calls"), ({"content": ""}, "stop")], "", "tool_calls"),
        ([({"content": RIGHT}, "stop"), ({"content": WRONG}, None)], f"{RIGHT}\n\n{WITHHELD}", BLOCK),
    ],
    ids=["with every piece", "in other words", "with the reasoning", "of the call, then of all", "and more"],
)
async def test_an_answer_goes_on_until_the_completion_ends(
    gateway: Opens, upstream: ChatUpstream, came: list[tuple[dict[str, Any], Any]], text: str, finish: str
) -> None:
    """What servers behind other APIs say as finish_reason is no end of the text."""
    client = await gateway()
    azures = event(id="", model="", created=0, prompt_filter_results=[{"prompt_index": 0}])
    upstream.streams([azures, *(event(delta, reason) for delta, reason in came), DONE])
    chunks = await streamed(client)
    assert (text_of(chunks), finish_of(chunks)) == (text, finish)
    assert {(each["id"], each["created"]) for each in chunks} == {("chatcmpl-1", 7)}


async def test_an_answer_that_its_server_calls_broken_is_none(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    whole = completion(RIGHT)
    whole["choices"][0]["finish_reason"] = "error"
    upstream.answers(whole)
    reply = await client.post(COMPLETIONS, json=ask())
    assert (reply.status_code, reply.json()["error"]["code"]) == (502, "upstream_failed")


async def test_an_empty_answer_stays_one(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    upstream.answers(completion("", usage={"total_tokens": 10**400, "prompt_tokens": 3}))
    reply = (await client.post(COMPLETIONS, json=ask())).json()
    assert (reply["choices"][0]["message"]["content"], reply["usage"]) == ("", {"prompt_tokens": 3})


@pytest.mark.parametrize(("bad", "said"), [(ODD, "[removed: not backed"), (WRONG, WITHHELD)])
async def test_what_a_program_reads_is_whole_or_refused(
    gateway: Opens, upstream: ChatUpstream, bad: str, said: str
) -> None:
    client = await gateway(Policy(rules=("verdict UNSUPPORTED: redact", "verdict CONTRADICTED: block")))
    form = {"response_format": {"type": "json_object"}}
    upstream.streams(events(RIGHT, bad))
    chunks = await streamed(client, **form)
    refused = "".join(each["choices"][0]["delta"].get("refusal", "") for each in chunks)
    assert (text_of(chunks), finish_of(chunks)) == (RIGHT, BLOCK)
    assert refused.startswith(said)
    upstream.answers(completion(RIGHT + bad))
    (only,) = (await client.post(COMPLETIONS, json=ask(**form))).json()["choices"]
    assert (only["message"]["content"], only["finish_reason"]) == (None, BLOCK)
    assert said in only["message"]["refusal"]
    guarded = openai.AsyncOpenAI(base_url=f"{client.base_url}/v1", api_key="any", max_retries=0)
    older = not hasattr(guarded.chat.completions, "stream")
    completions: Any = guarded.beta.chat.completions if older else guarded.chat.completions
    asked: dict[str, Any] = ask()
    extra = {"guardrail": asked.pop("guardrail")}
    upstream.streams(events('{"text": "', RIGHT, bad))
    with pytest.raises(openai.ContentFilterFinishReasonError):
        async with completions.stream(**asked, response_format=Written, extra_body=extra) as stream:
            await stream.until_done()
    await guarded.close()


class Written(BaseModel):
    text: str


async def test_a_whole_answer_that_is_blocked_is_not_quoted(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    upstream.answers(completion(ODD + WRONG))
    reply = await client.post(COMPLETIONS, json=ask())
    assert [each["decision"] for each in reply.json()["guardrail"]["flagged"]] == ["flag", "block"]
    assert "odd plan" not in reply.text


async def test_an_error_quotes_no_answer(gateway: Opens, upstream: ChatUpstream) -> None:
    """Some servers say in an error what the model wrote, and clients show it."""
    client = await gateway()
    error = {"message": "no tool was called", "code": "tool_use_failed", "param": None, "status": 400}
    for stream in (False, True):
        upstream.answers({"error": {**error, "failed_generation": WRONG}, WRONG: 1}, "400 Bad Request")
        assert (await client.post(COMPLETIONS, json=ask(stream=stream))).json() == {"error": error}
        upstream.streams(events(WRONG))
        upstream.status = "500 Internal Server Error"
        reply = await client.post(COMPLETIONS, json=ask(stream=stream))
        assert (reply.status_code, "not in JSON; check serve.upstream" in reply.text) == (500, True)


@pytest.mark.parametrize("status", ["302 Found", "999 Odd"])
async def test_an_answer_that_is_none_is_not_followed(
    gateway: Opens, upstream: ChatUpstream, status: str
) -> None:
    client = await gateway()
    upstream.answers({}, status)
    upstream.headers["Location"] = "http://example.com"
    reply = await client.post(COMPLETIONS, json=ask())
    assert (reply.status_code, "location" in reply.headers) == (502, False)


async def test_an_upstream_that_is_not_there(gateway: Opens) -> None:
    client = await gateway(upstream="http://127.0.0.1:1/v1")
    with capture_logs() as logs:
        reply = await client.post(COMPLETIONS, json=ask(stream=True))
    assert reply.status_code == 502
    assert "nothing listens there; check serve.upstream" in reply.json()["error"]["message"]
    (line,) = logs
    assert (line["event"], line["log_level"], line["reason"]) == (
        "serve.request",
        "warning",
        "upstream_failed",
    )
    assert "nothing listens there" in line["error"]


async def test_the_log_says_of_a_faulty_request_what_it_was_and_nothing_it_held(gateway: Opens) -> None:
    client = await gateway()
    asked = ask(n="a secret")
    with capture_logs() as logs:
        reply = await client.post(COMPLETIONS, json=asked)
    assert (reply.status_code, logs[0]["reason"], logs[0]["log_level"]) == (400, "invalid_request", "info")
    assert "a secret" not in str(logs)


async def test_held_text_keeps_the_connection_alive(
    gateway: Opens, upstream: ChatUpstream, judge: ScriptedJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consumers.gateway.settings.ServeSettings.silence_s", 0.01)
    client = await gateway()
    judge.gate.clear()
    upstream.streams(events(RIGHT))
    async with client.stream("POST", COMPLETIONS, json=ask(stream=True)) as reply:
        text = ""
        async for piece in reply.aiter_text():
            text += piece
            if text.count(": held\n\n") >= 3 and not judge.gate.is_set():
                assert "basic" not in text
                judge.gate.set()
    assert RIGHT in text
    assert text.endswith("data: [DONE]\n\n")


async def test_a_client_that_goes_ends_the_upstreams_answer(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    for stream in (True, False):
        upstream.left.clear()
        if stream:
            upstream.streams(events(RIGHT, RIGHT))
            upstream.holds_before = 2
        else:
            upstream.answers(completion(RIGHT))
            upstream.holds_before = 0
        with pytest.raises((httpx2.ReadTimeout, httpx2.ReadError)):
            await client.post(COMPLETIONS, json=ask(stream=stream), timeout=0.3)
        await upstream.left.wait()


async def test_an_answer_that_is_blocked_is_not_written_on(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    upstream.streams([event({"content": WRONG + RIGHT}), *[event({"content": RIGHT})] * 3, event({}, "stop")])
    upstream.holds_before = 3
    request = asyncio.ensure_future(streamed(client))
    await upstream.held.wait()
    upstream.going_on.set()
    assert finish_of(await request) == "content_filter"


async def test_nobody_reads_so_nothing_is_read(gateway: Opens, upstream: ChatUpstream) -> None:
    """A client that stops reading stops the upstream: what lies between is bounded."""
    client = await gateway()
    call = {"index": 0, "function": {"arguments": "x" * 4_000}}
    upstream.streams([*[event({"tool_calls": [call]})] * 20_000, event({}, "tool_calls"), DONE])
    async with client.stream("POST", COMPLETIONS, json=ask(stream=True)) as reply:
        sent = -1
        while upstream.sent != sent:
            sent = upstream.sent
            await asyncio.sleep(0.5)
        assert sent < 10_000
        size = 0
        async for piece in reply.aiter_bytes():
            size += len(piece)
    assert size > 80_000_000
    assert upstream.sent == 20_002


async def test_characters_may_come_in_halves(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    upstream.streams(
        [
            event({"content": "Fine \ud83d"}),
            event({"content": "\ude00. Alone: \ud83d"}),
            event({}, "stop"),
            DONE,
        ]
    )
    assert text_of(await streamed(client)).startswith("Fine \U0001f600. Alone:")


async def test_arguments_of_tools_keep_their_halves(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    halves = [{"index": 0, "function": {"arguments": each}} for each in ('"\ud83d', '\ude00é"')]
    upstream.streams([*(event({"tool_calls": [each]}) for each in halves), event({}, "tool_calls"), DONE])
    first, second, _ = await streamed(client)
    assert [each["choices"][0]["delta"]["tool_calls"] for each in (first, second)] == [
        [each] for each in halves
    ]
    upstream.answers(completion({"role": "assistant", "tool_calls": halves[:1]}))
    (only,) = json.loads((await client.post(COMPLETIONS, json=ask())).content)["choices"]
    assert only["message"]["tool_calls"] == halves[:1]


async def test_headers_of_the_upstream_are_of_one_word(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    upstream.answers(completion(RIGHT))
    upstream.headers |= {"x-request-id": WRONG, "x-ratelimit-reset": "6m0s", "retry-after": "\u00fc"}
    reply = await client.post(COMPLETIONS, json=ask())
    assert reply.status_code == 200
    assert reply.headers["x-ratelimit-reset"] == "6m0s"
    assert not {"x-request-id", "retry-after"} & set(reply.headers)


async def test_openais_client_reads_it(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    guarded = openai.AsyncOpenAI(base_url=f"{client.base_url}/v1", api_key="of-the-caller", max_retries=0)
    asked: dict[str, Any] = ask()
    extra = {"guardrail": asked.pop("guardrail")}
    async with guarded:
        upstream.streams(events(RIGHT, WRONG))
        text, finish, told = "", None, None
        stream = await guarded.chat.completions.create(**asked, stream=True, extra_body=extra)
        async for chunk in stream:
            text += chunk.choices[0].delta.content or ""
            finish = chunk.choices[0].finish_reason or finish
            told = (chunk.model_extra or {}).get("guardrail") or told
        assert (text, finish) == (f"{RIGHT}\n\n{WITHHELD}", "content_filter")
        assert told is not None
        assert told["decision"] == "block"
        upstream.answers(completion(RIGHT))
        whole = await guarded.chat.completions.with_raw_response.create(**asked, extra_body=extra)
        assert whole.headers["x-guardrail-decision"] == "release"
        assert whole.parse().choices[0].message.content == RIGHT
        upstream.streams([event({"content": RIGHT})])
        with pytest.raises(openai.APIError, match="broke off"):
            async for _ in await guarded.chat.completions.create(**asked, stream=True, extra_body=extra):
                pass
    _, path, headers, body = upstream.asked[0]
    assert path == COMPLETIONS
    assert headers["authorization"] == "Bearer of-the-caller"
    assert "guardrail" not in body
