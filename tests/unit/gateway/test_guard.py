"""``/v1/guard``: many answers at once over one connection, both ways at the same time."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator, validate
from structlog.testing import capture_logs
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from consumers.gateway import Gateway, ServeSettings, asyncapi, openapi, serving
from guardrail import Guard
from guardrail.events import parse_output
from guardrail.judges import Judgement, JudgeRequest
from tests.support.judges import GatedJudge
from tests.unit.gateway.chats import RIGHT, WRONG, with_keys
from tests.unit.gateway.conftest import Opens

DOCUMENT = {"id": "plans", "text": "The basic plan costs $49 a month."}


def started(response_id: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "response.started",
        "response_id": response_id,
        "question": "What does it cost?",
        "contexts": [DOCUMENT],
        **more,
    }


def delta(response_id: str, seq: Any, text: str) -> dict[str, Any]:
    return {"type": "response.delta", "response_id": response_id, "seq": seq, "text": text}


def completed(response_id: str, seq: int) -> dict[str, Any]:
    return {"type": "response.completed", "response_id": response_id, "seq": seq}


def whole(response_id: str, text: str = RIGHT, **more: Any) -> dict[str, Any]:
    return {**started(response_id, **more), "type": "response", "answer": text}


def as_bytes(event: Any) -> bytes:
    """A mapping as JSON; texts and bytes as they are."""
    told = event if isinstance(event, str | bytes) else json.dumps(event)
    return told.encode() if isinstance(told, str) else told


class Socket:
    """A client of the WebSocket."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def send(self, *events: Any) -> None:
        for each in events:
            await self.socket.send(each if isinstance(each, bytes) else as_bytes(each).decode())

    async def next(self) -> Any:
        """The next event; None at the end."""
        try:
            return json.loads(await asyncio.wait_for(self.socket.recv(), 10))
        except ConnectionClosed:
            return None

    def vanish(self) -> None:
        self.socket.transport.abort()


class Lines:
    """A client of the request that is answered while it comes, in chunks that are none of lines."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._begun = False
        self._rest = b""

    async def send(self, *events: Any) -> None:
        told = b"".join(as_bytes(each) + b"\n" for each in events)
        for piece in filter(None, (told[:7], told[7:])):
            self.writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await self.writer.drain()

    async def no_more(self) -> None:
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    async def next(self) -> Any:
        async with asyncio.timeout(10):
            if not self._begun:
                head = await self.reader.readuntil(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200 "), head
                assert b"application/x-ndjson" in head
                self._begun = True
            while b"\n" not in self._rest:
                size = int(await self.reader.readuntil(b"\r\n"), 16)
                self._rest += (await self.reader.readexactly(size + 2))[:-2]
                if size == 0:
                    return None
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def vanish(self) -> None:
        self.writer.transport.abort()


Way = Callable[..., Awaitable[Any]]


class LeftJudge(GatedJudge):
    """Tells that it was called off."""

    def __init__(self) -> None:
        super().__init__()
        self.left = asyncio.Event()

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        try:
            async for each in super().judge(request):
                yield each
        except asyncio.CancelledError:
            self.left.set()
            raise


@pytest.fixture
def judge() -> LeftJudge:
    judge = LeftJudge()
    judge.gate.set()
    return judge


@pytest.fixture
async def socket() -> AsyncIterator[Way]:
    async with AsyncExitStack() as stack:

        async def opened(port: int, **headers: str) -> Socket:
            made = connect(f"ws://127.0.0.1:{port}/v1/guard", additional_headers=headers, max_size=None)
            return Socket(await stack.enter_async_context(made))

        yield opened


@pytest.fixture
async def lines() -> AsyncIterator[Way]:
    async with AsyncExitStack() as stack:

        async def opened(port: int, **headers: str) -> Lines:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**26)
            stack.callback(writer.close)
            told = {"Content-Type": "application/x-ndjson", "Transfer-Encoding": "chunked", **headers}
            head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
            writer.write(f"POST /v1/guard HTTP/1.1\r\nHost: localhost\r\n{head}\r\n".encode())
            return Lines(reader, writer)

        yield opened


@pytest.fixture(params=["socket", "lines"])
def way(request: pytest.FixtureRequest) -> Way:
    found: Way = request.getfixturevalue(request.param)
    return found


async def until(client: Any, response_id: str, kind: str = "verdict.response") -> list[dict[str, Any]]:
    """What comes until there is this of the answer."""
    found: list[dict[str, Any]] = []
    while not found or (found[-1]["response_id"], found[-1]["type"]) != (response_id, kind):
        found.append(await client.next())
        assert found[-1] is not None, found
    return found


def shown(events: list[dict[str, Any]], response_id: str) -> str:
    """As a chat service shows it, in the order that it comes."""
    mine = [each for each in events if each["response_id"] == response_id and "delivery" in each["type"]]
    assert [each["seq"] for each in mine] == list(range(len(mine)))
    return "".join(each.get("text") or each.get("message") or "" for each in mine)


async def test_text_comes_back_while_more_is_sent(gateway: Opens, way: Way) -> None:
    client = await way((await gateway()).base_url.port)
    await client.send(started("r"), delta("r", 0, RIGHT[:9]), delta("r", 1, RIGHT[9:] + "And m"))
    first = await until(client, "r", "delivery.segment")
    assert shown(first, "r") == RIGHT
    await client.send(delta("r", 2, "ore. "), delta("r", 3, WRONG), completed("r", 4))
    rest = await until(client, "r", "case.flagged")
    assert shown(first + rest, "r").startswith(RIGHT + "And more. This answer was withheld")
    assert [each["type"] for each in rest][-2:] == ["verdict.response", "case.flagged"]


async def test_the_events_are_those_that_python_gives(gateway: Opens, judge: LeftJudge, way: Way) -> None:
    client = await way((await gateway()).base_url.port)
    await client.send(started("r", route="chat"), delta("r", 0, RIGHT + WRONG), completed("r", 1))
    told = await until(client, "r", "case.flagged")
    async with Guard(judge) as guard:
        stream = guard.stream(
            "What does it cost?", [DOCUMENT], [RIGHT + WRONG], response_id="r", route="chat"
        )
        wanted = [event async for event in stream]
    assert [each["id"] for each in told] == [each.id for each in wanted]
    assert {parse_output(json.dumps(each)).type for each in told} == {each.type for each in wanted}


async def test_answers_do_not_wait_for_each_other(gateway: Opens, judge: LeftJudge, way: Way) -> None:
    client = await way((await gateway()).base_url.port)
    names = [f"r-{number}" for number in range(20)]
    await client.send(*(started(name) for name in names))
    for seq, text in enumerate((RIGHT[:5], RIGHT[5:], "It is good. ", WRONG)):
        await client.send(*(delta(name, seq, text) for name in names if name != "r-7"))
    await client.send(*(completed(name, 4) for name in names if name != "r-7"), whole("w"))
    found: list[dict[str, Any]] = []
    while sum(each["type"] == "verdict.response" for each in found) < 20:
        found.append(await client.next())
    for name in names:
        text = "" if name == "r-7" else RIGHT + "It is good. This answer was withheld"
        assert shown(found, name).startswith(text)
    assert shown(found, "w") == RIGHT
    await client.send(delta("r-7", 0, RIGHT), completed("r-7", 1))
    assert shown(await until(client, "r-7"), "r-7") == RIGHT


@pytest.mark.parametrize(
    ("line", "reason", "told"),
    [
        ("{", "invalid_json", "not valid JSON"),
        (b"\xff\xfe{}", "invalid_json", "not valid JSON"),
        ("[" * 100_000, "invalid_json", "not valid JSON"),
        ("[]", "invalid_event", "event"),
        ({"response_id": "b", "type": "delivery.segment"}, "unknown_type", "'type' is missing or unknown"),
        ({**started("b"), "schema": 2}, "unknown_schema", "version 1 only"),
        (delta("b", "x", "y"), "invalid_event", "seq: Input should be"),
        (started("b", contexts="x"), "invalid_event", "contexts: Input should be a valid list"),
        (delta("never begun", 0, RIGHT), "unknown_response", "no response with this id"),
        (whole("b" * 300), "invalid_event", "response_id"),
        ('{"type": "response", "response_id": "b", "answer": "\\ud83d"}', "invalid_json", "not valid JSON"),
        (whole("b", contexts=[{"id": "c", "text": "x" * 2_000_001}]), "contexts_too_large", "2,000,"),
    ],
)
async def test_what_can_not_be_used_is_told_and_harms_no_other(
    gateway: Opens, way: Way, line: Any, reason: str, told: str
) -> None:
    client = await way((await gateway()).base_url.port)
    await client.send(started("r"), delta("r", 0, RIGHT + "Fine. "))
    await until(client, "r", "verdict.claim")
    await client.send(line)
    while (error := await client.next())["type"] != "error":
        assert error["response_id"] in {"r", "b"}
    assert (error["reason"], error["number"]) == (reason, 3)
    assert told in error["message"]
    await client.send(completed("r", 1))
    rest = await until(client, "r")
    assert rest[-1]["decision"] == "release"
    if error["response_id"] == "b":  # nobody waits for it in vain
        blocked = [each for each in rest if each["type"] == "delivery.blocked"]
        assert reason == "contexts_too_large" or [each["response_id"] for each in blocked] == ["b"]


async def test_an_event_that_can_not_be_read_ends_its_answer(gateway: Opens, way: Way) -> None:
    client = await way((await gateway()).base_url.port)
    await client.send(started("r"), delta("r", 0, RIGHT), delta("r", None, "More."))
    assert (await until(client, "r"))[-1]["rule"] == "invalid_event"
    await client.send(started("s"), delta("s", 1, RIGHT))
    found = await until(client, "s", "error")
    assert (found[-1]["reason"], "verdict.response" in {each["type"] for each in found}) == (
        "sequence_gap",
        True,
    )


async def test_the_same_answer_again(gateway: Opens, way: Way) -> None:
    client = await way((await gateway()).base_url.port)
    await client.send(
        started("r"), started("r"), delta("r", 0, RIGHT), delta("r", 0, RIGHT), completed("r", 1)
    )
    assert (await until(client, "r"))[-1]["decision"] == "release"
    await client.send(started("r"), {**started("r"), "question": "Another?"})
    assert (await client.next())["reason"] == "response_finished"
    await client.send(started("s"), started("s", question="Another?"))
    assert (await until(client, "s", "error"))[-1]["reason"] == "duplicate_start"


async def test_two_connections_with_one_answer(gateway: Opens, judge: LeftJudge, way: Way) -> None:
    opened = await gateway()
    one, two = await way(opened.base_url.port), await way(opened.base_url.port)
    await one.send(started("r"), delta("r", 0, RIGHT + "Fine. "))
    await until(one, "r", "verdict.claim")
    for event in (started("r"), delta("r", 1, WRONG), completed("r", 1), {**delta("r", 1, ""), "seq": "x"}):
        await two.send(event)
        assert (await two.next())["reason"] in {"duplicate_start", "invalid_event"}
    reply = await opened.post("/v1/check", json={"answer": WRONG, "response_id": "r"})
    assert reply.json()["response_id"] == "r"
    await one.send(completed("r", 1))
    assert (await until(one, "r"))[-1]["decision"] == "release"
    await two.send(whole("r"))  # over, so that it may be asked again
    assert (await until(two, "r"))[-1]["decision"] == "release"


OTHERS: dict[str, Any] = {"name": "other/one", "tenant": "umbrella", "concurrent": 2}


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, Any]:
    one = {"name": "shop", "tenant": "acme", "routes": ["chat", "mail"]}
    return with_keys(tmp_path, one=one, two=OTHERS)


async def test_a_key_chooses_no_policy_but_its_own(gateway: Opens, keys: dict[str, Any], way: Way) -> None:
    port = (await gateway(**keys)).base_url.port
    client = await way(port, **{"x-guardrail-key": "one"})
    await client.send(whole("r", generator_model="lax"))
    verdict = (await until(client, "r"))[-1]
    assert (verdict["tenant"], verdict["route"], verdict["generator_model"]) == ("acme", "chat", None)
    assert {claim["response_id"] for claim in verdict["claims"]} == {"r"}
    await client.send(whole("r" * 252))
    error = await client.next()
    assert (error["reason"], error["message"]) == ("invalid_event", "response_id: it is longer than 251")
    await client.send(whole("s", route="lax"), whole("t", tenant="umbrella"), whole("u", route="mail"))
    reasons = [
        (error["response_id"], error["reason"]) for error in [await client.next(), await client.next()]
    ]
    assert reasons == [("s", "route_not_allowed"), ("t", "tenant_not_allowed")]
    assert (await until(client, "u"))[-1]["route"] == "mail"


async def test_answers_of_two_keys_never_meet(
    gateway: Opens, judge: LeftJudge, keys: dict[str, Any], way: Way
) -> None:
    port = (await gateway(**keys)).base_url.port
    clients = [await way(port, **{"x-guardrail-key": key}) for key in ("one", "two")]
    for client in clients:
        await client.send(started("r"), delta("r", 0, RIGHT))
    for client, tenant in zip(clients, ("acme", "umbrella"), strict=True):
        await client.send(completed("r", 1))
        verdict = (await until(client, "r"))[-1]
        assert (verdict["tenant"], verdict["decision"]) == (tenant, "release")


async def test_a_key_has_its_limits(gateway: Opens, judge: LeftJudge, keys: dict[str, Any], way: Way) -> None:
    judge.gate.clear()
    port = (await gateway(**keys)).base_url.port
    client = await way(port, **{"x-guardrail-key": "two"})
    await client.send(whole("a"), whole("b"), whole("c"))
    error = await client.next()
    assert (error["response_id"], error["reason"]) == ("c", "rate_limit_exceeded")
    judge.gate.set()
    await until(client, "a")
    await until(client, "b")
    await client.send(whole("c"))
    await until(client, "c")


async def test_only_who_has_a_key_may_connect(gateway: Opens, keys: dict[str, Any]) -> None:
    opened = await gateway(**keys)
    for headers in ({}, {"x-guardrail-key": "three"}, {"Authorization": "Bearer one"}):
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"ws://127.0.0.1:{opened.base_url.port}/v1/guard", additional_headers=headers)
        assert refused.value.response.status_code == 401
        assert json.loads(refused.value.response.body)["error"]["code"] == "invalid_api_key"
        kind = {"Content-Type": "application/x-ndjson"}
        reply = await opened.post("/v1/guard", content=b"", headers={**headers, **kind})
        assert reply.status_code == 401


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/v1/guard", {"Origin": "https://evil.example"}, 403),
        ("/v1/guard", {"Origin": "null"}, 403),
        ("/v1/guard", {"Origin": "http://localhost.evil.example:80"}, 403),
        ("/v1/guard", {"Origin": "http://localhost:3000"}, None),
        ("/v1/guard", {"Origin": "http://[::1]"}, None),
        ("//evil.example/v1/guard", {}, 403),
        ("/v1/guard/", {}, 404),
        ("/v1/realtime", {}, 403),
        ("/v1/chat/completions", {}, 403),
        ("/", {}, 404),
    ],
)
async def test_which_pages_may_connect_and_where(
    gateway: Opens, path: str, headers: dict[str, str], status: int | None
) -> None:
    port = (await gateway()).base_url.port
    host = "" if path.startswith("//") else "//127.0.0.1"
    connecting = connect(f"ws:{host}{path}", host="127.0.0.1", port=port, additional_headers=headers)
    if status is None:
        async with connecting:
            return
    with pytest.raises(InvalidStatus) as refused:
        await connecting
    assert refused.value.response.status_code == status
    assert json.loads(refused.value.response.body)["error"]["message"]


async def test_a_page_can_not_send_lines(gateway: Opens) -> None:
    opened = await gateway()
    for kind in ("text/plain", "application/json", "application/x-www-form-urlencoded"):
        reply = await opened.post("/v1/guard", content=b"", headers={"Content-Type": kind})
        assert reply.status_code == 415
    headers = {"Content-Type": "application/x-ndjson", "Origin": "https://evil.example"}
    assert (await opened.post("/v1/guard", content=b"", headers=headers)).status_code == 403


async def test_who_goes_takes_what_is_under_way_along(gateway: Opens, judge: LeftJudge, way: Way) -> None:
    judge.gate.clear()
    opened = await gateway()
    client = await way(opened.base_url.port)
    await client.send(started("r"), delta("r", 0, RIGHT + "More."))
    await judge.asked.wait()
    client.vanish()
    await judge.left.wait()
    judge.gate.set()
    again = await way(opened.base_url.port)
    await again.send(whole("r"))
    assert (await until(again, "r"))[-1]["decision"] == "release"


async def test_who_goes_after_the_last_line_is_no_failure(
    gateway: Opens, judge: LeftJudge, lines: Way
) -> None:
    judge.gate.clear()
    client = await lines((await gateway()).base_url.port)
    with capture_logs() as logs:
        await client.send(whole("r"))
        await client.no_more()
        await judge.asked.wait()
        client.vanish()
        await judge.left.wait()
        while not logs:  # noqa: ASYNC110 - a log tells nobody
            await asyncio.sleep(0)
    assert {each["event"] for each in logs} == {"serve.request"}


async def test_the_response_ends_once_all_that_came_is_answered(gateway: Opens, lines: Way) -> None:
    client = await lines((await gateway()).base_url.port)
    await client.send("", "  ", whole("a"), started("b"), delta("b", 0, RIGHT), '{"type": "resp')
    await client.no_more()
    found = []
    while (event := await client.next()) is not None:
        found.append(event)
    verdicts = {each["response_id"]: each["rule"] for each in found if each["type"] == "verdict.response"}
    assert verdicts == {"a": "score and rules passed", "b": "aborted"}
    assert [(each["number"], each["reason"]) for each in found if each["type"] == "error"] == [
        (4, "invalid_json")
    ]


async def test_a_line_that_is_too_long_is_told(gateway: Opens, lines: Way) -> None:
    client = await lines((await gateway(max_body_bytes=1_000)).base_url.port)
    await client.send("x" * 1_000_000, whole("r", "x " * 1_000), whole("s"))
    found = await until(client, "s")
    errors = [(each["number"], each["reason"]) for each in found if each["type"] == "error"]
    assert errors == [(1, "too_large"), (2, "too_large")]
    assert found[-1]["decision"] == "release"
    assert shown(found, "r").startswith("This answer was withheld")  # nobody waits for it in vain


async def test_a_message_that_is_too_long_ends_the_connection(gateway: Opens, socket: Way) -> None:
    client = await socket((await gateway(max_body_bytes=1_000)).base_url.port)
    await client.send("x" * 10_000)
    assert await client.next() is None
    assert client.socket.close_code == 1009


async def test_only_so_many_answers_at_a_time(
    gateway: Opens, judge: LeftJudge, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consumers.gateway.settings.ServeSettings.most_answers", 2)
    monkeypatch.setattr("guardrail.limits.Limits.overload_grace_ms", 50)
    client = await way((await gateway()).base_url.port)
    await client.send(*(whole(f"w-{number}") for number in range(10)))  # they end by themselves
    assert "error" not in {each["type"] for each in await until(client, "w-9")}
    await client.send(started("a"), started("b"), started("c"))
    assert (await client.next())["reason"] == "too_many_answers"


async def test_where_nothing_comes_it_ends(gateway: Opens, way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consumers.gateway.settings.ServeSettings.idle_s", 0.2)
    client = await way((await gateway()).base_url.port)
    await client.send(whole("r"))
    await until(client, "r")
    assert [(await client.next())["reason"], await client.next()] == ["idle", None]
    if isinstance(client, Socket):
        assert (client.socket.close_code, client.socket.close_reason) == (1001, "idle")


async def test_who_takes_nothing_is_cut_off(
    gateway: Opens, judge: LeftJudge, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consumers.gateway.settings.ServeSettings.slow_s", 0.3)
    client = await way((await gateway()).base_url.port)
    transport = client.socket.transport if isinstance(client, Socket) else client.writer.transport
    transport.pause_reading()
    text = "x" * 100_000
    with suppress(ConnectionError, ConnectionClosed):
        async with asyncio.timeout(10):
            for number in range(100_000):
                await client.send(whole(f"r-{number}", WRONG, contexts=[{"id": "a", "text": text}]))
    assert len(judge.requests) < 1_000


async def test_the_documents_describe_what_goes_over_the_wire(gateway: Opens, way: Way) -> None:
    opened = await gateway()
    client = await way(opened.base_url.port)
    sent = [started("r"), delta("r", 0, RIGHT + WRONG), completed("r", 1), whole("w")]
    await client.send(*sent, "{")
    told = await until(client, "r", "case.flagged") + await until(client, "w")
    document = (await opened.get("/asyncapi.json")).json()
    assert document == asyncapi()
    for events, operation in ((sent, "receiveEvents"), (told, "sendEvents")):
        names = [each["$ref"].rpartition("/")[2] for each in document["operations"][operation]["messages"]]
        assert {each["type"] for each in events} <= set(names)
        for event in events:
            payload = document["components"]["messages"][event["type"]]["payload"]
            Draft202012Validator({**payload, "components": document["components"]}).validate(event)
    also = (await opened.get("/openapi.json")).json()
    body = also["paths"]["/v1/guard"]["post"]["responses"]["200"]["content"]["application/x-ndjson"]
    for event in told:
        Draft202012Validator({**body["schema"], "components": also["components"]}).validate(event)


def test_every_reference_of_the_documents_resolves() -> None:
    validate(openapi(), cls=OpenAPIV31SpecValidator)
    document = asyncapi()
    refs = set(re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(document)))
    for ref in refs:
        assert reduce(lambda found, part: found[part], ref.split("/"), document)
    used = {ref.rpartition("/")[2] for ref in refs if "schemas" in ref}
    assert used == set(document["components"]["schemas"])


@asynccontextmanager
async def closing(
    judge: LeftJudge, way: Way, drain_s: float, work: Callable[[Any], Awaitable[None]]
) -> AsyncIterator[Any]:
    """A client of a gateway that is being stopped after ``work``."""
    settings = ServeSettings(upstream="http://127.0.0.1:1/v1", port=0)
    async with Guard(judge) as guard, Gateway(settings, guard) as made, AsyncExitStack() as stack:
        port = await stack.enter_async_context(serving(made.app, settings, drain_s))
        client = await way(port)
        await work(client)
        closes = asyncio.ensure_future(stack.aclose())
        yield client
        await closes


async def test_what_is_under_way_goes_on_while_it_is_stopped(judge: LeftJudge, way: Way) -> None:
    async def begin(client: Any) -> None:
        await client.send(started("r"), delta("r", 0, RIGHT + "Fine. "))
        await until(client, "r", "verdict.claim")

    async with closing(judge, way, 30, begin) as client:
        assert (await until(client, None, "error"))[-1]["reason"] == "stopping"  # type: ignore[arg-type]
        await client.send(started("s"), delta("r", 1, "More."), completed("r", 2))
        found = await until(client, "r")
        assert found[-1]["decision"] == "release"
        assert ("s", "stopping") in {(each["response_id"], each.get("reason")) for each in found}
        assert await client.next() is None
        if isinstance(client, Socket):
            assert (client.socket.close_code, client.socket.close_reason) == (1012, "stopping")


async def test_who_loses_a_key_ends(judge: LeftJudge, way: Way, keys: dict[str, Any], tmp_path: Path) -> None:
    settings = ServeSettings(upstream="http://127.0.0.1:1/v1", port=0, **keys)
    async with (
        Guard(judge) as guard,
        Gateway(settings, guard) as made,
        serving(made.app, settings, 1) as port,
    ):
        gone, stays = [await way(port, **{"x-guardrail-key": key}) for key in ("one", "two")]
        for client in (gone, stays):
            await client.send(whole("r"))
            await until(client, "r")
        with_keys(tmp_path, two=OTHERS)
        assert (await made.reload_keys())[0] == "ok"
        assert [(await gone.next())["reason"], await gone.next()] == ["stopping", None]
        await stays.send(whole("s"))
        await until(stays, "s")


async def test_a_failure_ends_the_connection_and_quotes_nothing(
    gateway: Opens, way: Way, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError(RIGHT)

    opened = await gateway()
    client = await way(opened.base_url.port)
    await client.send(started("r"))
    monkeypatch.setattr("consumers.gateway.endpoints.GuardConnection._handle", fails)
    await client.send(delta("r", 0, RIGHT))
    with suppress(asyncio.IncompleteReadError):
        assert await client.next() is None
    if isinstance(client, Socket):
        assert client.socket.close_code == 1011
    assert "basic plan" not in caplog.text


async def test_what_takes_longer_than_there_is_time_to_stop(judge: LeftJudge, way: Way) -> None:
    judge.gate.clear()

    async def begin(client: Any) -> None:
        await client.send(whole("r"))
        await judge.asked.wait()

    async with closing(judge, way, 0.1, begin) as client:
        assert [(await client.next())["reason"], await client.next()] == ["stopping", None]
        if isinstance(client, Socket):
            assert client.socket.close_code == 1012
    assert judge.cancelled == 1
