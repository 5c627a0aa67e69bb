"""What servers refuse, and what they are sent from then on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final

import openai
import pytest

from guardrail.errors import JudgeError
from guardrail.judges import Verdict
from guardrail.judges.llm import LlmJudge, OutputMode
from guardrail.judges.llm.chat import Dialect
from guardrail.judges.openai_client import httpx
from tests.support.judges import reply_of
from tests.support.llm_server import (
    Act,
    Behaviour,
    LlmServer,
    Recorded,
    Reply,
    Status,
    Wire,
    obliging,
    refusing,
    refusing_field,
)
from tests.unit.judges.llm.asking import judging, request, settings


def unless(fits: Callable[[Recorded], bool], status: int, error: dict[str, Any]) -> Callable[[Recorded], Act]:
    """A server that answers what fits, and else with this error."""
    return lambda call: Reply(obliging) if fits(call) else Status(status, error)


def form_of(call: Recorded) -> str | None:
    return call.response_format


def stream_of(call: Recorded) -> tuple[bool, bool]:
    return "stream" in call.body, "stream_options" in call.body


def bounds_of(call: Recorded) -> list[Any]:
    return [call.body.get(name) for name in ("temperature", "max_completion_tokens", "max_tokens")]


def roles_of(call: Recorded) -> list[str]:
    messages = call.body["messages"]
    return [messages[0]["content"][:9], *(each["role"] for each in messages)]


def schema_of(call: Recorded) -> tuple[str | None, bool]:
    return call.response_format, "pattern" in json.dumps(call.body["response_format"])


REFUSALS: Final[list[tuple[Behaviour, Callable[[Recorded], Any], list[Any]]]] = [
    *(
        (refusing("json_schema", status=status), form_of, ["json_schema", "json_object", "json_object"])
        for status in (400, 422, 500)
    ),
    (refusing("json_schema", "json_object"), form_of, ["json_schema", "json_object", None, None]),
    *(
        (refusing_field("stream", status), stream_of, [(True, True), (False, False), (False, False)])
        for status in (400, 404, 422, 500, 501)
    ),
    (refusing_field("stream_options"), stream_of, [(True, True), (True, False), (True, False)]),
    # Its silence while it writes would be taken for a stall.
    (Reply(obliging, wire=Wire(ignore_stream=True)), stream_of, [(True, True), (False, False)]),
    *(
        (
            unless(lambda call: "temperature" not in call.body, 400, error),
            bounds_of,
            [[0, 4096, None], [None, 4096, None], [None, 4096, None]],
        )
        for error in (
            {"message": "Unsupported value: 'temperature' does not support 0"},
            {"message": "x is not supported", "param": "temperature"},
        )
    ),
    (
        unless(
            lambda call: "max_completion_tokens" not in call.body,
            400,
            {"message": "Unrecognized request argument supplied: max_completion_tokens"},
        ),
        bounds_of,
        [[0, 4096, None], [0, None, 4096], [0, None, 4096]],
    ),
    *(
        (
            unless(lambda call: len(call.body["messages"]) == 1, status, {"message": message}),
            roles_of,
            [["You check", "system", "user"], ["You check", "user"], ["You check", "user"]],
        )
        for status, message in (
            (400, "System role not supported"),  # Gemma's chat template
            (400, "Unsupported value: 'messages[0].role' does not support 'system' with this model."),
            (500, "Conversation roles must alternate user/assistant/user/assistant/..."),
            (400, "Developer instruction is not enabled for models/gemma"),
        )
    ),
    (
        unless(
            lambda call: "pattern" not in json.dumps(call.body["response_format"]),
            400,
            {"message": "Invalid schema for response_format: 'pattern' is not permitted."},
        ),
        schema_of,
        [("json_schema", True), ("json_schema", False), ("json_schema", False)],
    ),
]


@pytest.mark.parametrize(("server", "look", "seen"), REFUSALS)
async def test_what_is_refused_is_left_out_from_then_on(
    server: Behaviour, look: Callable[[Recorded], Any], seen: list[Any]
) -> None:
    """Two questions. A refusal is no retry, and costs the second nothing."""
    async with judging(server, max_retries=0) as (made, listening):
        for _ in range(2):
            (judgement,) = (await reply_of(made, request())).judgements
            assert judgement.verdict is not Verdict.UNVERIFIED
    assert [look(call) for call in listening.calls] == seen


async def test_requests_refused_together_leave_the_form_once() -> None:
    """All were refused json_schema; only one of them takes the step to json_object."""
    async with judging(refusing("json_schema"), max_retries=0) as (made, server):
        await asyncio.gather(*(reply_of(made, request(response_id=str(n))) for n in range(8)))
    forms = [form_of(call) for call in server.calls]
    assert None not in forms
    assert forms.count("json_object") == 8


async def test_requests_refused_the_system_role_together_are_all_asked_again_without() -> None:
    """The server answers none before it has got all of them with the role."""
    arrived, all_here = 0, asyncio.Event()

    def with_role(call: Recorded) -> Act:
        if len(call.body["messages"]) == 1:
            return Reply(obliging)
        return Status(400, {"message": "System role not supported"})

    class Together(LlmServer):
        async def _begin(self, call: Recorded) -> None:
            nonlocal arrived
            await super()._begin(call)
            arrived += 1
            if arrived == 8:
                all_here.set()
            await all_here.wait()

    async with Together(with_role) as server:
        judging = LlmJudge(settings(server, max_retries=0))
        replies = await asyncio.gather(*(reply_of(judging, request(response_id=str(n))) for n in range(8)))
        await judging.aclose()
    assert {each.verdict for reply in replies for each in reply.judgements} == {Verdict.SUPPORTED}
    assert [len(call.body["messages"]) for call in server.calls] == [2] * 8 + [1] * 8


async def test_an_echo_of_the_users_words_does_not_cost_later_calls_the_system_role() -> None:
    """The server refuses one text whatever the form is, and repeats it."""
    told = "The system prompt is not a secret."

    def echoing(call: Recorded) -> Act:
        return Status(400, {"message": f"Not here: {told}"}) if told in call.user else Reply(obliging)

    async with judging(echoing, max_retries=0) as (made, server):
        with pytest.raises(JudgeError, match="400"):
            await reply_of(made, request(told))
        await reply_of(made, request())
    assert [len(call.body["messages"]) for call in server.calls] == [2, 1, 2]


SCHEMA: Final = {"type": "object"}


def refusal(message: str, status: int = 400) -> openai.APIStatusError:
    answer = httpx.Response(status, request=httpx.Request("POST", "http://localhost/v1"))
    return openai.APIStatusError(message, response=answer, body={"message": message})


def test_a_refusal_that_comes_late_does_not_undo_later_steps() -> None:
    """Of two calls under way with json_schema one is answered after json_object has been refused too."""
    dialect = Dialect(settings())
    late = dialect.arguments(SCHEMA)
    assert dialect.adapt(refusal("no json_schema here"), dialect.arguments(SCHEMA))
    assert dialect.adapt(refusal("no json_object here"), dialect.arguments(SCHEMA))
    assert dialect.mode is OutputMode.TEXT
    assert dialect.adapt(refusal("no json_schema here"), late)
    assert dialect.mode is OutputMode.TEXT


def test_when_nothing_is_left_to_leave_out_the_refusal_stands() -> None:
    dialect = Dialect(settings(extra_body={"temperature": 1}))
    for form in ("json_schema", "json_object"):
        assert dialect.adapt(refusal(f"no {form} here"), dialect.arguments(SCHEMA))
    assert "response_format" not in dialect.arguments(SCHEMA)
    assert not dialect.adapt(refusal("response_format is not supported"), dialect.arguments(SCHEMA))
    assert not dialect.adapt(refusal("temperature is not supported"), dialect.arguments(SCHEMA))


def test_a_refusal_of_streams_is_known_by_its_words() -> None:
    dialect = Dialect(settings())
    sent = dialect.arguments(SCHEMA)
    assert dialect.adapt(refusal("Streaming is not supported with this model."), sent)
    assert "stream" not in dialect.arguments(SCHEMA)
    assert "stream_options" not in dialect.arguments(SCHEMA)
    assert dialect.arguments(SCHEMA)["response_format"] == sent["response_format"]


WITH_PATTERN = {"type": "array", "items": {"type": "string", "pattern": "^c1$"}}


def test_a_server_that_takes_no_pattern_is_sent_the_schema_without() -> None:
    """Azure's words. A second call refused at the same time costs no step more."""
    dialect = Dialect(settings())
    sent = dialect.arguments(WITH_PATTERN)
    told = "Invalid schema for response_format 'verdicts': In context=('items',), 'pattern' is not permitted."
    assert dialect.adapt(refusal(told), sent)
    assert dialect.adapt(refusal(told), sent)
    plain = dialect.arguments(WITH_PATTERN)
    assert plain["response_format"]["type"] == "json_schema"
    schema = plain["response_format"]["json_schema"]["schema"]
    assert schema == {"type": "array", "items": {"type": "string"}}
    assert dialect.adapt(refusal(told), plain), "refused all the same"
    assert dialect.mode is OutputMode.JSON_OBJECT


def test_an_error_of_the_server_s_own_costs_no_option_but_the_stream() -> None:
    dialect = Dialect(settings())
    sent = dialect.arguments(SCHEMA)
    failed = refusal("unexpected state, temperature of the GPU", status=500)
    assert not dialect.adapt(failed, sent)
    assert dialect.arguments(SCHEMA) == sent


def test_a_bound_of_tokens_in_the_body_is_the_only_one() -> None:
    assert "max_completion_tokens" not in Dialect(settings(extra_body={"max_tokens": 9})).arguments(SCHEMA)
