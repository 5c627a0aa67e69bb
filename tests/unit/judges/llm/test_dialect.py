from __future__ import annotations

import openai

from guardrail.judges.llm import OutputMode
from guardrail.judges.llm.endpoint import Dialect
from guardrail.judges.llm.exchange import httpx
from tests.unit.judges.llm.asking import settings

SCHEMA = {"type": "object"}


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


def test_a_refusal_of_the_usage_leaves_the_stream() -> None:
    dialect = Dialect(settings())
    assert dialect.adapt(refusal("Unrecognized request argument: stream_options"), dialect.arguments(SCHEMA))
    assert dialect.arguments(SCHEMA)["stream"] is True
    assert "stream_options" not in dialect.arguments(SCHEMA)


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


def test_of_calls_refused_together_one_takes_the_step() -> None:
    dialect = Dialect(settings())
    sent = dialect.arguments(SCHEMA)
    refused = refusal("max_completion_tokens is not supported; use max_tokens")
    assert dialect.adapt(refused, sent)
    assert dialect.adapt(refused, sent)
    assert dialect.arguments(SCHEMA)["max_tokens"] == sent["max_completion_tokens"]


def test_a_bound_of_tokens_in_the_body_is_the_only_one() -> None:
    assert "max_completion_tokens" not in Dialect(settings(extra_body={"max_tokens": 9})).arguments(SCHEMA)
