from __future__ import annotations

import httpx2
import openai

from guardrail.judges.llm.dialect import Dialect
from guardrail.judges.llm.settings import OutputMode
from tests.unit.judges.llm.asking import settings

SCHEMA = {"type": "object"}


def refusal(message: str) -> openai.APIStatusError:
    answer = httpx2.Response(400, request=httpx2.Request("POST", "http://localhost/v1"))
    return openai.BadRequestError(message, response=answer, body={"message": message})


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
    dialect = Dialect(settings(structured_output="text", temperature=None))
    assert "response_format" not in dialect.arguments(SCHEMA)
    assert not dialect.adapt(refusal("response_format is not supported"), dialect.arguments(SCHEMA))
    assert not dialect.adapt(refusal("temperature is not supported"), dialect.arguments(SCHEMA))
