"""JSON mode and plain text, where nothing holds the model to the form, and a server that has no schemas."""

from __future__ import annotations

import contextlib

import pytest

from guardrail.errors import JudgeReplyError
from guardrail.judges.llm import OutputMode
from tests.real_llm.asking import GIVEN, check, judging, request
from tests.support.choosy_proxy import ChoosyProxy
from tests.support.judges import reply_of
from tests.support.llama_server import LlamaServer

pytestmark = pytest.mark.real_llm


@pytest.mark.parametrize("mode", [OutputMode.JSON_OBJECT, OutputMode.TEXT])
async def test_without_a_schema_there_are_verdicts_or_an_error_that_says_why(
    llama: LlamaServer, mode: OutputMode
) -> None:
    asked = request()
    async with ChoosyProxy(llama.address, refuse=()) as proxy, judging(proxy.url) as judge:
        judge._chat.endpoints[0].dialect.mode = mode
        # A small model may write anything.
        with contextlib.suppress(JudgeReplyError):
            reply = await reply_of(judge, asked)
            check(asked, reply)
            assert {judgement.verdict for judgement in reply.judgements} <= GIVEN
    assert proxy.formats == ["none" if mode is OutputMode.TEXT else mode.value]


async def test_a_server_that_refuses_json_schema_is_asked_in_json_mode_from_then_on(
    llama: LlamaServer,
) -> None:
    async with ChoosyProxy(llama.address, refuse=("json_schema",)) as proxy, judging(proxy.url) as judge:
        for number, calls in enumerate((2, 1)):
            asked = request(response_id=f"r{number}")
            with contextlib.suppress(JudgeReplyError):  # in JSON mode a small model may write anything
                check(asked, await reply_of(judge, asked), calls=calls)
    assert proxy.formats == ["json_schema", "json_object", "json_object"]


async def test_a_server_that_knows_no_response_format_is_asked_in_plain_text(llama: LlamaServer) -> None:
    refused = ("json_schema", "json_object")
    async with ChoosyProxy(llama.address, refuse=refused) as proxy, judging(proxy.url) as judge:
        for number in range(2):
            with contextlib.suppress(JudgeReplyError):
                await reply_of(judge, request(response_id=f"r{number}"))
    assert proxy.formats == ["json_schema", "json_object", "none", "none"]
