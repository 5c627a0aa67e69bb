"""What other gateways ask and get, in exchanges as their documentation has them, and what attackers try."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any, get_args

import httpx2
import pytest
import yaml

from consumers.gateway import dialects
from consumers.gateway.dialects import DIALECTS
from consumers.gateway.settings import DialectName
from guardrail import Policy
from guardrail.chat import Grounding
from guardrail.events import Context
from tests.support.docs import blocks
from tests.unit.gateway.chats import ODD, RIGHT, WRONG, with_keys
from tests.unit.gateway.conftest import Opens

SHOWN = "The basic plan costs $49 a month."
EXTENSION = {"contexts": [SHOWN], "question": "What does it cost?"}
HEADER = base64.b64encode(json.dumps(EXTENSION).encode()).decode()
QUESTION = {"role": "user", "content": "What does it cost?"}
BLOCK = str(Policy().fallback_message)
REDACT = Policy(
    rules=("verdict UNSUPPORTED: redact", "contradicted: verdict CONTRADICTED: block"),
    redaction_text="[left out]",
)
MISSING = "the documents that it should rest on were not given"

LITELLM = "/beta/litellm_basic_guardrail_api"
KONG, PORTKEY, CHECKS = "/webhooks/kong", "/webhooks/portkey", "/v1/checks"
PATHS = [path for dialect in DIALECTS.values() for path in dialect.paths]


def litellm(stage: str, texts: list[str], **more: Any) -> dict[str, Any]:
    """As LiteLLM 1.110 sends it."""
    return {
        "input_type": stage,
        "litellm_call_id": "5d2f",
        "litellm_trace_id": "77aa",
        "structured_messages": None,
        "images": None,
        "tools": None,
        "texts": texts,
        "request_data": {"user_api_key_hash": "88f0", "user_api_key_team_id": "shop"},
        "request_headers": {"host": "litellm.example", "authorization": "[present]"},
        "litellm_version": "1.110.2",
        "additional_provider_specific_params": {},
        "tool_calls": None,
        "model": "any-model",
        **more,
    }


SYSTEM = {
    "role": "system",
    "content": [{"type": "text", "text": "Be brief."}, {"type": "grounding_source", "text": SHOWN}],
}
GROWS = {"additional_provider_specific_params": {"streaming_transform_mode": "incremental_diff"}}


def portkey(event: str, text: str | None = None, **request: Any) -> dict[str, Any]:
    """As Portkey's gateway sends it."""
    completion = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "any-model",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, "reasoning_content": "It may be $99."},
                "finish_reason": "stop",
            }
        ],
        "usage": {"total_tokens": 3},
    }
    return {
        "request": {
            "json": {"model": "any-model", "messages": [QUESTION], "guardrail": EXTENSION, **request},
            "text": QUESTION["content"],
            "isStreamingRequest": request.get("stream", False),
            "isTransformed": False,
        },
        "response": {"json": {}, "text": "", "statusCode": None, "isTransformed": False}
        if text is None
        else {"json": completion, "text": text, "statusCode": 200, "isTransformed": False},
        "provider": "openai",
        "requestType": "chatComplete",
        "metadata": {},
        "eventType": event,
    }


def choices(*texts: str) -> dict[str, Any]:
    return {"body": {"choices": [{"message": {"role": "assistant", "content": text}} for text in texts]}}


def checks(text: str | None, chunks: Any = SHOWN, **guardrails: Any) -> dict[str, Any]:
    said = [] if text is None else [{"role": "assistant", "content": text}]
    context = {} if chunks is None else {"context": {"relevant_chunks": chunks}}
    return {
        "model": "any-model",
        "messages": [QUESTION, *said],
        "guardrails": {"config_id": "any", **context, **guardrails},
    }


async def told(client: httpx2.AsyncClient, path: str, body: Any, **headers: str) -> dict[str, Any]:
    reply = await client.post(
        path, json=body, headers={key.replace("_", "-"): each for key, each in headers.items()}
    )
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return {name: each for name, each in found.items() if name != "guardrail"}


# -------------------------------------------------------------------------------------------- the table


def test_the_table_has_what_the_setting_takes() -> None:
    assert set(DIALECTS) == set(get_args(DialectName))
    assert len(set(PATHS)) == len(PATHS)
    assert all(each.cannot for each in DIALECTS.values())


async def test_a_dialect_is_off_unless_it_is_named(gateway: Opens) -> None:
    client = await gateway(dialects=["kong"])
    for path in PATHS:
        reply = await client.post(path, json={"source": "INPUT"})
        if path == KONG:
            assert reply.json() == {"block": False, "block_message": ""}
        else:
            assert (reply.status_code, "name it in serve.dialects" in reply.text) == (404, True)


# --------------------------------------------------------------------------------- recorded exchanges


async def test_litellm_whole(gateway: Opens) -> None:
    client = await gateway(REDACT, dialects=["litellm"])
    asked = litellm(
        "request", ["Be brief.", SHOWN, "What does it cost?"], structured_messages=[SYSTEM, QUESTION]
    )
    plain = {"role": "system", "content": [{"type": "text", "text": each} for each in ("Be brief.", SHOWN)]}
    assert await told(client, LITELLM, asked) == {"action": "NONE", "structured_messages": [plain, QUESTION]}
    assert await told(client, LITELLM, litellm("response", [RIGHT])) == {"action": "NONE", "texts": [RIGHT]}
    blocked = {"action": "BLOCKED", "blocked_reason": BLOCK}
    assert await told(client, LITELLM, litellm("response", [RIGHT, WRONG])) == blocked
    # LiteLLM shows the texts of a reply only where it says so.
    cut = await told(client, LITELLM, litellm("response", [RIGHT + ODD + RIGHT]))
    assert (cut["action"], "withheld" in cut["blocked_reason"]) == ("BLOCKED", True)
    assert await told(client, LITELLM, litellm("response", [RIGHT + ODD + RIGHT], **GROWS)) == {
        "action": "GUARDRAIL_INTERVENED",
        "texts": [f"{RIGHT}[left out] {RIGHT}"],
        "stream_holdback_chars": [len(RIGHT)],
    }
    calls = [{"id": "call-1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}]
    assert (await told(client, LITELLM, litellm("response", [], tool_calls=calls)))["action"] == "NONE"


async def test_messages_are_rewritten_for_litellm_only_where_none_can_have_lost_a_part(
    gateway: Opens,
) -> None:
    client = await gateway(dialects=["litellm"])
    others: list[Any] = [
        {"role": "user", "content": []},  # as LiteLLM 1.108 sends parts that it doesn't know
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "user", "content": "?", "name": "x"},
        "content",
        ["role", "content"],
    ]
    for other in others:
        asked = litellm("request", [], structured_messages=[SYSTEM, other])
        assert await told(client, LITELLM, asked) == {"action": "NONE"}


async def test_kong(gateway: Opens) -> None:
    client = await gateway(REDACT, dialects=["kong"])
    for content, blocked in ((RIGHT, False), (WRONG, True), (ODD, True)):
        body = {"source": "OUTPUT", "content": content, "guardrail": EXTENSION}
        reply = await client.post(KONG, json=body)
        assert reply.json()["block"] is blocked
        assert bool(reply.json()["block_message"]) is blocked
        # The plug-in's function finds this in the text of a reply, where it doesn't get an object.
        assert ('"block":false' in reply.text) is not blocked


async def test_portkey(gateway: Opens) -> None:
    client = await gateway(REDACT, dialects=["portkey"])
    assert await told(client, PORTKEY, portkey("beforeRequestHook")) == {"verdict": True}
    for text, verdict, shown in ((RIGHT, True, RIGHT), (WRONG, False, BLOCK), (ODD, True, "[left out] ")):
        reply = await told(client, PORTKEY, portkey("afterRequestHook", text))
        completion = reply["transformedData"]["response"]["json"]
        (choice,) = completion["choices"]
        assert (reply["verdict"], choice["message"]["content"]) == (verdict, shown)
        assert completion["usage"] == {"total_tokens": 3}
        assert "$99" not in json.dumps(reply)
        assert choice["finish_reason"] == ("stop" if verdict else "content_filter")
    form = {"response_format": {"type": "json_object"}}
    reply = await told(client, PORTKEY, portkey("afterRequestHook", WRONG, **form))
    assert (reply["verdict"], reply["data"]["explanation"]) == (False, BLOCK)


async def test_portkey_is_refused_what_it_would_not_enforce(gateway: Opens) -> None:
    client = await gateway(dialects=["portkey"])
    for body, why in (
        (portkey("beforeRequestHook", stream=True), "hands no stream"),
        ({**portkey("afterRequestHook", RIGHT), "response": {"json": None}}, "not what was asked for"),
        ({**portkey("afterRequestHook", RIGHT), "requestType": "messages"}, "only chat completions"),
        (portkey("afterRequestHook", RIGHT, n=2) | {"response": {"json": {"choices": [{}]}}}, "not what was"),
        (portkey("afterRequestHook", RIGHT, logprobs=True), "logprobs"),
    ):
        reply = await told(client, PORTKEY, body)
        assert (reply["verdict"], why in reply["data"]["explanation"]) == (False, True), reply
    embed = {**portkey("beforeRequestHook"), "requestType": "embed"}
    assert await told(client, PORTKEY, embed) == {"verdict": True}


async def test_agentgateway(gateway: Opens) -> None:
    client = await gateway(REDACT, dialects=["agentgateway"])
    asked = {"body": {"messages": [QUESTION]}}
    passed = {"action": {"reason": "passed"}}
    headers = {"x_guardrail_call": "one", "x_guardrail_grounding": HEADER}
    assert await told(client, "/request", asked, **headers) == passed
    assert await told(client, "/response", choices(RIGHT, RIGHT), x_guardrail_call="one") == passed
    assert await told(client, "/response", choices(RIGHT), x_guardrail_grounding=HEADER) == passed
    for texts in ((WRONG,), (RIGHT, WRONG), (ODD,)):
        rejected = (await told(client, "/response", choices(*texts), x_guardrail_call="one"))["action"]
        assert (rejected["status_code"], "withheld" in rejected["body"]) == (403, True)
    streamed = await told(client, "/request", asked, x_guardrail_streamed="true", **headers)
    assert "ask without stream" in streamed["action"]["body"]


async def test_nemo(gateway: Opens) -> None:
    client = await gateway(REDACT, dialects=["nemo"])
    asked = {"status": "passed", "content": "What does it cost?"}
    assert await told(client, CHECKS, checks(None)) == asked
    assert await told(client, CHECKS, checks(WRONG, rail_types=["input"])) == asked
    for chunks in (SHOWN, [SHOWN]):
        assert await told(client, CHECKS, checks(RIGHT, chunks)) == {"status": "passed", "content": RIGHT}
    assert await told(client, CHECKS, checks(ODD)) == {"status": "modified", "content": "[left out] "}
    blocked = {"status": "blocked", "content": BLOCK, "rail": "guardrail: contradicted"}
    assert await told(client, CHECKS, checks(WRONG)) == blocked
    last = {**checks(WRONG), "messages": [QUESTION, {"role": "assistant", "content": WRONG}, QUESTION]}
    assert await told(client, CHECKS, last) == blocked


async def test_what_docs_gateways_md_has_people_write(gateway: Opens) -> None:
    client = await gateway(dialects=list(get_args(DialectName)))
    _, proxy, plugins, policies = map(yaml.safe_load, blocks("gateways.md", "yaml"))
    (of_litellm,), (of_kong,) = proxy["guardrails"], plugins["plugins"]
    assert of_litellm["litellm_params"]["extra_headers"] == [dialects.GROUNDING]
    guards = policies["policies"]["ai"]["promptGuard"]
    for webhook in (guards["request"][0]["webhook"], guards["response"][0]["webhook"]):
        assert set(webhook["headers"]) == {"x-guardrail-key", dialects.STREAMED}
        assert [each["name"] for each in webhook["forwardHeaderMatches"]] == [dialects.GROUNDING]

    config = of_kong["config"]
    values = {"$(source)": "OUTPUT", "$(content)": "Returns are accepted within 14 days."}
    (searched,) = re.findall(r"tostring\(resp\), '(.*?)'", config["functions"]["found"])
    documents = config["params"]["guardrail"]
    for read in (documents, json.loads(documents)):  # nowhere is it said whether Kong does
        values["$(conf.params.guardrail)"] = read
        body = {name: values[each] for name, each in config["request"]["body"].items()}
        reply = await client.post(httpx2.URL(config["request"]["url"]).path, json=body)
        assert reply.json()["block"] is False
        assert searched in reply.text

    hooks, asked = map(json.loads, blocks("gateways.md", "json"))
    for hook in (*hooks["before_request_hooks"], *hooks["after_request_hooks"]):
        (check,) = hook["checks"]
        assert httpx2.URL(check["parameters"]["webhookURL"]).path == PORTKEY
        assert hook["deny"]
        assert check["parameters"]["failOnError"]
    assert (await told(client, CHECKS, asked))["status"] == "passed"


async def test_documents_of_48_kb_in_a_header(gateway: Opens) -> None:
    client = await gateway(dialects=["agentgateway"])
    contexts = [SHOWN, "Nothing of use. " * 2_200]
    header = base64.b64encode(json.dumps({"contexts": contexts}).encode()).decode()
    assert 46_000 < len(header) < 48_000
    reply = await told(client, "/response", choices(RIGHT), x_guardrail_grounding=header)
    assert reply == {"action": {"reason": "passed"}}
    for wrong in ("no base64", base64.b64encode(b"no JSON").decode(), base64.b64encode(b"[]").decode()):
        reply = await told(client, "/response", choices(RIGHT), x_guardrail_grounding=wrong)
        assert reply["action"]["status_code"] == 403


# ------------------------------------------------------------------------------------ LiteLLM's rounds


def shown_by(rounds: list[dict[str, Any]]) -> tuple[str, bool]:
    """What LiteLLM's client has read in the end, by LiteLLM's rules, and whether it was blocked."""
    shown = ""
    for number, reply in enumerate(rounds):
        if reply["action"] == "BLOCKED":
            return shown, True
        (text,), (held,) = reply["texts"], reply["stream_holdback_chars"]
        last = number == len(rounds) - 1
        assert text.startswith(shown), "stream_transform_underflow"
        shown = text[: max(len(shown), len(text) - (0 if last else held))]
    return shown, False


@pytest.mark.parametrize("step", [1, 7, 40])
@pytest.mark.parametrize("mode", ["stream", "hold"])
async def test_rounds_of_litellm_show_no_text_without_its_verdict(
    gateway: Opens, step: int, mode: str
) -> None:
    client = await gateway(REDACT.model_copy(update={"mode": mode}), dialects=["litellm"])
    asked = litellm("request", [], structured_messages=[SYSTEM, QUESTION])
    await told(client, LITELLM, asked)
    for answer, shows in (
        (RIGHT + RIGHT, RIGHT + RIGHT),
        (RIGHT + WRONG + RIGHT, None),
        (RIGHT + WRONG, None),
    ):
        whole = answer.strip()
        ends = [*range(step, len(whole), step), len(whole)]
        rounds = [await told(client, LITELLM, litellm("response", [whole[:end]], **GROWS)) for end in ends]
        for last in range(1, len(rounds) + 1):  # the stream may end after any of them
            shown, blocked = shown_by(rounds[:last])
            if "wrong" in whole[: ends[last - 1]]:
                assert blocked or shown.endswith(BLOCK)
            assert "wrong" not in shown.lower()
            if mode == "hold" and last < len(rounds) and not blocked:
                assert rounds[last - 1]["stream_holdback_chars"] == [len(rounds[last - 1]["texts"][0])]
        assert shows is None or (shown, blocked) == (shows.strip(), False)


@pytest.mark.parametrize(
    "answer",
    [
        "We ship No. 5 and 6. Dr. Smith said e.g. that the odd 3.5 kg cost $4.99. See sec. 4.2 of it.",
        "A list:\n\n1. The odd item.\n2. Another.\n   - odd inside\n\n| plan | price |\n| - | - |\n| b | 4 |",
        "The odd end... and more! Really? From 10 a.m. to 5 p.m. odd\n\n**Bold odd.** *it* (see 1.) End",
    ],
)
async def test_what_rounds_of_litellm_have_shown_is_never_taken_back(gateway: Opens, answer: str) -> None:
    """LiteLLM would end the stream with an error."""
    client = await gateway(REDACT, dialects=["litellm"], missing_contexts="judge")
    ends = range(1, len(answer) + 1)
    rounds = [await told(client, LITELLM, litellm("response", [answer[:end]], **GROWS)) for end in ends]
    shown, blocked = shown_by(rounds)
    assert (blocked, "[left out]" in shown, "odd" in shown) == (False, True, False)


async def test_a_stream_of_litellm_that_ends_within_a_number(gateway: Opens) -> None:
    client = await gateway(dialects=["litellm"])
    await told(client, LITELLM, litellm("request", [], structured_messages=[SYSTEM, QUESTION]))
    reply = await told(client, LITELLM, litellm("response", [f"{RIGHT}The wrong plan costs $4"], **GROWS))
    message = f"\n\n{BLOCK}"
    assert reply["texts"] == [RIGHT + message]
    assert reply["stream_holdback_chars"] == [len(message)]
    reply = await told(client, LITELLM, litellm("response", [f"{RIGHT}It costs $4"], **GROWS))
    assert (reply["texts"], reply["stream_holdback_chars"]) == ([f"{RIGHT}It costs $4"], [len("It costs $4")])


# ---------------------------------------------------------------------------------------- who may what


async def test_a_key_comes_in_the_header_that_the_product_can_send(gateway: Opens, tmp_path: Path) -> None:
    client = await gateway(dialects=["litellm", "portkey"], **with_keys(tmp_path, one={"tenant": "acme"}))
    asked = litellm("request", [])
    for headers in ({"x_guardrail_key": "one"}, {"x_api_key": "one"}, {"authorization": "Bearer one"}):
        assert (await told(client, LITELLM, asked, **headers))["action"] == "NONE"
    for headers in ({}, {"x_api_key": "two"}, {"authorization": "Basic one"}):
        assert (await told(client, LITELLM, asked, **headers))["action"] == "BLOCKED"
        assert (await told(client, PORTKEY, portkey("beforeRequestHook"), **headers))["verdict"] is False
    other = await client.post("/v1/check", json={"answer": RIGHT}, headers={"x-api-key": "one"})
    assert other.status_code == 401


async def test_an_answer_rests_on_the_request_of_its_own_caller_only(gateway: Opens, tmp_path: Path) -> None:
    keys = with_keys(tmp_path, one={"tenant": "acme"}, two={"tenant": "evil"})
    client = await gateway(dialects=["litellm"], **keys)
    asked = litellm("request", [], structured_messages=[SYSTEM, QUESTION])
    answer = litellm("response", [RIGHT])
    other = {"request_data": {"user_api_key_hash": "another"}}
    await told(client, LITELLM, asked, x_api_key="one")

    assert (await told(client, LITELLM, answer, x_api_key="one"))["action"] == "NONE"
    for body, key in (
        (answer, "two"),
        ({**answer, **other}, "one"),
        ({**answer, "litellm_call_id": None}, "one"),
    ):
        assert MISSING in (await told(client, LITELLM, body, x_api_key=key))["blocked_reason"]


async def test_requests_of_one_name_that_say_different_things_say_nothing(gateway: Opens) -> None:
    client = await gateway(dialects=["litellm"])
    asked = litellm("request", [], structured_messages=[SYSTEM, QUESTION])
    mine = {"role": "system", "content": [{"type": "grounding_source", "text": "All is free."}]}
    answer = litellm("response", [RIGHT])
    for _ in range(2):  # LiteLLM may ask again
        await told(client, LITELLM, asked)
        assert (await told(client, LITELLM, answer))["action"] == "NONE"
    await told(client, LITELLM, {**asked, "structured_messages": [mine, QUESTION]})
    await told(client, LITELLM, asked)
    assert MISSING in (await told(client, LITELLM, answer))["blocked_reason"]


def test_what_requests_said_is_bounded_and_forgotten() -> None:
    said = [Grounding((Context(id="c", text="x" * 99),), "?" if n else "!") for n in range(2)]
    keys = [(None, "litellm", str(n)) for n in range(4)]
    memory = dialects.GroundingMemory(60, most=3)
    for key in keys:
        memory.keep(key, said[0])
    assert [memory.get(key) for key in keys] == [None, *said[:1] * 3]
    memory = dialects.GroundingMemory(60, most_chars=250)
    for key in keys:
        memory.keep(key, said[0])
    assert [memory.get(key) for key in keys] == [None, None, *said[:1] * 2]
    memory.keep(keys[2], said[1])  # which takes no room
    memory.keep(keys[0], said[0])
    assert [memory.get(key) for key in keys] == [said[0], None, None, said[0]]
    memory = dialects.GroundingMemory(-1)
    memory.keep(keys[0], said[0])
    assert memory.get(keys[0]) is None


async def test_a_users_text_is_no_document(gateway: Opens) -> None:
    client = await gateway(dialects=list(get_args(DialectName)))
    users = {"role": "user", "content": SYSTEM["content"]}
    for role in ("user", "assistant", "tool", "context", None, ["system"]):
        said = {"messages": [{**users, "role": role}]}
        await told(client, LITELLM, litellm("request", [SHOWN], structured_messages=said["messages"]))
        assert (await told(client, LITELLM, litellm("response", [RIGHT])))["action"] == "BLOCKED"
        body = {
            **checks(RIGHT, None),
            "messages": [*said["messages"], {"role": "assistant", "content": RIGHT}],
        }
        assert (await told(client, CHECKS, body))["status"] == "blocked"
        await told(client, "/request", {"body": said}, x_guardrail_call="u")
        assert (await told(client, "/response", choices(RIGHT), x_guardrail_call="u"))["action"][
            "status_code"
        ]
        request = {"guardrail": {}, "messages": said["messages"]}
        assert not (await told(client, PORTKEY, portkey("afterRequestHook", RIGHT, **request)))["verdict"]
    body = {"source": "OUTPUT", "content": RIGHT, "messages": [SYSTEM]}
    assert (await told(client, KONG, body))["block"] is True


async def test_what_was_not_checked_is_said(gateway: Opens) -> None:
    client = await gateway(dialects=["litellm"], missing_contexts="pass")
    reply = await client.post(LITELLM, json=litellm("response", [RIGHT]))
    assert reply.json()["action"] == "NONE"
    assert reply.json()["guardrail"]["decision"] == "not-checked"
    assert reply.headers["x-guardrail-decision"] == "not-checked"


@pytest.mark.parametrize("wrong", [None, 0, "x", [], [[]], {"": {}}, [{"role": ["user"]}]])
async def test_wrong_types_anywhere_never_pass_an_answer(gateway: Opens, wrong: Any) -> None:
    client = await gateway(dialects=list(get_args(DialectName)))
    bodies = {
        LITELLM: litellm("response", [WRONG], structured_messages=[QUESTION]),
        KONG: {"source": "OUTPUT", "content": WRONG, "guardrail": EXTENSION},
        PORTKEY: portkey("afterRequestHook", WRONG),
        "/request": {"body": {"messages": [QUESTION]}},
        "/response": choices(WRONG),
        CHECKS: checks(WRONG),
    }
    for path, body in bodies.items():
        for place in places(body):
            reply = await client.post(path, json=replaced(body, place, wrong))
            assert reply.status_code == 200, (path, place)
            assert "wrong" not in reply.text, (path, place)
            assert "the gateway failed" not in reply.text, (path, place)
        reply = await client.post(path, json=wrong)
        assert reply.status_code == 200
        assert "wrong" not in reply.text


def places(found: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    own = [place] if place else []
    return own + [each for name, one in inner for each in places(one, (*place, name))]


def replaced(found: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    copy = found.copy()
    copy[place[0]] = replaced(found[place[0]], place[1:], value)
    return copy


async def test_what_is_too_large_or_too_much_is_a_block(gateway: Opens) -> None:
    client = await gateway(dialects=["litellm"], max_body_bytes=2_000)
    reply = await told(client, LITELLM, litellm("response", [RIGHT * 100]))
    assert (reply["action"], "larger than" in reply["blocked_reason"]) == ("BLOCKED", True)
    reply = await told(client, LITELLM, litellm("response", ["Hi."] * 9))
    assert (reply["action"], "more than 8 texts" in reply["blocked_reason"]) == ("BLOCKED", True)
    raw = await client.post(LITELLM, content=b"[" * 1_900, headers={"content-type": "application/json"})
    assert raw.json()["action"] == "BLOCKED"
