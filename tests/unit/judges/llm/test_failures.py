from __future__ import annotations

from typing import Any

import openai
import pytest

from guardrail.calls import BackOff, Failure, retry_after
from guardrail.errors import JudgeError, JudgeUnavailable
from guardrail.judges.openai_client import describe, httpx
from tests.support.llm_server import LlmServer, Status
from tests.unit.judges.llm.asking import judge


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-4"}, 0.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:02:00 GMT"}, 20.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, float("inf")),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Thu, 99 Foo 1970"}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=lambda: 100.0) == seconds


WAITS = BackOff(first_s=0.1, longest_s=0.5)


def test_the_bound_of_the_wait_doubles_up_to_the_maximum() -> None:
    assert [WAITS.wait(retry, None, lambda: 1.0) for retry in range(5)] == [0.1, 0.2, 0.4, 0.5, 0.5]
    assert WAITS.bound(100_000) == 0.5


def test_the_wait_is_spread_over_all_of_the_bound() -> None:
    assert WAITS.wait(3, None, lambda: 0.0) == 0.0


def test_the_wait_is_never_shorter_than_what_the_server_asks() -> None:
    assert WAITS.wait(0, 30.0, lambda: 0.5) == 30.05


REQUEST = httpx.Request("POST", "http://localhost/v1")


def described(error: openai.APIError) -> Failure:
    return describe(error, "the server", "judge.llm")


def answered(status: int, code: Any = None, **headers: str) -> Failure:
    response = httpx.Response(status, headers=headers, request=REQUEST)
    return described(openai.APIStatusError("Text", response=response, body={"code": code}))


def test_an_exhausted_account_is_a_fault_and_no_overload() -> None:
    """Fewer calls at once would help nothing, another provider would."""
    failure = answered(429, "insufficient_quota", **{"retry-after": "1"})
    assert (failure.retry, failure.fault, failure.overload) == (False, True, False)
    assert failure.retry_after is None
    assert isinstance(failure.error, JudgeUnavailable)


def test_what_must_not_be_tried_again_asks_for_no_wait() -> None:
    assert answered(429, **{"retry-after": "7"}).retry_after == 7.0
    assert answered(429, **{"retry-after": "7", "x-should-retry": "false"}).retry_after is None


@pytest.mark.parametrize("code", [["x"], "a secret: $50", "x" * 65, {}])
def test_a_code_that_is_no_plain_word_is_not_repeated(code: object) -> None:
    assert str(answered(400, code).error) == "the server answered 400"


def test_a_connection_that_failed_is_the_server_s_fault() -> None:
    for error, late in (
        (openai.APIConnectionError(request=REQUEST), False),
        (openai.APITimeoutError(request=REQUEST), True),
    ):
        failure = described(error)
        assert (failure.retry, failure.fault, failure.overload) == (True, True, late)
        assert isinstance(failure.error, JudgeUnavailable)


@pytest.mark.parametrize(
    ("status", "code", "message", "named"),
    [
        (400, "context_length_exceeded", "This model's maximum context length is 8192 tokens.", True),
        (400, "BadRequestError", "This model's maximum context length is 4096 tokens. However, you", True),
        (400, None, "the request exceeds the available context size, try increasing it", True),
        (400, None, "input length exceeds the context window", True),
        (400, None, "Prompt is too long: 210000 tokens > 200000 maximum", True),
        (422, None, "`inputs` must have less than 4096 tokens: max_model_len", True),
        (413, None, "Payload", True),
        (400, None, "unknown role 'developer'", False),
        (404, None, "no context size is known of this model", False),
    ],
)
def test_a_prompt_that_is_too_long_is_told_with_the_setting_that_shortens_it(
    status: int, code: str | None, message: str, *, named: bool
) -> None:
    body = {"message": message, "code": code}
    response = httpx.Response(status, request=REQUEST, json={"error": body})
    told = str(described(openai.APIStatusError(message, response=response, body=body)).error)
    assert ("lower judge.llm.max_context_chars" in told) is named
    assert message not in told


async def test_the_client_hands_on_what_the_server_says_of_the_length() -> None:
    said = {"message": "the request exceeds the available context size", "type": "exceed_context_size_error"}
    async with LlmServer(Status(400, said)) as server:
        with pytest.raises(JudgeError, match=r"answered 400; the prompt is longer.*max_context_chars"):
            await judge(server)
