"""JSON mode and plain text, where nothing holds the model to the form, and a server that has no schemas."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Collection
from typing import Final

import pytest

from guardrail.errors import JudgeReplyError
from guardrail.judges.llm import OutputMode
from tests.real_llm.asking import GIVEN, check, judging, request
from tests.support.judges import reply_of
from tests.support.llama_server import LlamaServer
from tests.support.tcp_server import TcpServer

_PIECE: Final = 64 * 1024
_LENGTH: Final = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
_MESSAGE: Final = (
    "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be 'text' "
    "or 'json_object'\", 'input': 'json_schema', 'ctx': {'expected': \"'text' or 'json_object'\"}}]"
)
_BODY: Final = json.dumps(
    {"error": {"message": _MESSAGE, "type": "internal_server_error", "param": None, "code": None}}
).encode()
_REFUSAL: Final = (
    b"HTTP/1.1 500 Internal Server Error\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n%b" % (len(_BODY), _BODY)
)


class ChoosyProxy(TcpServer):
    """Passes calls on to ``target`` (host, port), save those whose form it refuses.

    An async context manager. ``formats`` are the types of ``response_format`` that arrived, in order, "none"
    where there was none.
    """

    def __init__(self, target: tuple[str, int], refuse: Collection[str]) -> None:
        super().__init__()
        self.formats: list[str] = []
        self._target = target
        self._refuse = refuse

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, sender = await asyncio.open_connection(*self._target)
        back = asyncio.create_task(_pass_back(upstream, writer))
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await self._pass_on(reader, sender, writer)
        finally:
            # The server must see that its caller has left.
            sender.close()
            back.cancel()
            await asyncio.gather(back, return_exceptions=True)
            writer.close()

    async def _pass_on(
        self, reader: asyncio.StreamReader, sender: asyncio.StreamWriter, writer: asyncio.StreamWriter
    ) -> None:
        """Calls, one after the other, until the caller has left."""
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = _LENGTH.search(head)
            assert length is not None, "a call without a body"
            body = await reader.readexactly(int(length[1]))
            form = (json.loads(body).get("response_format") or {}).get("type", "none")
            self.formats.append(form)
            if form in self._refuse:
                writer.write(_REFUSAL)
            else:
                sender.write(head + body)
                await sender.drain()


async def _pass_back(upstream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """What the server says, until it closes, which closes the caller's connection too."""
    with contextlib.suppress(ConnectionError):
        while piece := await upstream.read(_PIECE):
            writer.write(piece)
            await writer.drain()
    writer.close()


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
