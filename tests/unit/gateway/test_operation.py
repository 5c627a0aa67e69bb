"""The gateway in operation: its spans, its keys when they change, and what waits for Kafka."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path

import httpx2
import pytest
from websockets.asyncio.client import connect

from consumers.gateway import Gateway, ServeSettings, serving
from consumers.kafka import KafkaPublisher
from consumers.outputs import Outputs
from consumers.settings import KafkaSettings, Topics
from consumers.transport import OutRecord
from guardrail import Guard
from guardrail.errors import ConfigError
from guardrail.telemetry import REGISTRY
from guardrail.testing import ScriptedJudge
from tests.support.chat_upstream import ChatUpstream, events
from tests.unit.gateway.chats import COMPLETIONS, RIGHT, ask, with_keys
from tests.unit.gateway.conftest import Opens
from tests.unit.test_tracing import Exported

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"


async def test_spans_are_of_the_callers_trace_and_the_upstream_joins_it(
    upstream: ChatUpstream, judge: ScriptedJudge
) -> None:
    exported = Exported()
    outputs = Outputs(Topics(), "guards", 1_000_000, exported.traces)
    serve = ServeSettings(upstream=upstream.url, port=0)
    upstream.streams(events(RIGHT))
    async with AsyncExitStack() as stack:
        guard = await stack.enter_async_context(Guard(judge, on_outputs=outputs.note))
        gateway = await stack.enter_async_context(Gateway(serve, guard, exported.traces))
        port = await stack.enter_async_context(serving(gateway.app, serve, 1))
        client = await stack.enter_async_context(httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}"))
        headers = {"traceparent": PARENT, "tracestate": "a=b"}
        assert (await client.post(COMPLETIONS, json=ask(stream=True), headers=headers)).status_code == 200
        assert (await client.get("/v1/unknown")).status_code == 404
        async with connect(f"ws://127.0.0.1:{port}/v1/guard", additional_headers=headers):
            pass
    spans = {span.name: span for span in exported.spans.get_finished_spans()}
    request, response = spans[f"POST {COMPLETIONS}"], spans["guard response"]
    assert request.context is not None
    assert request.parent is not None
    assert response.parent is not None
    own = format(request.context.span_id, "016x")
    assert spans["GET /v1/guard"].parent == request.parent
    assert format(request.context.trace_id, "032x") == TRACE
    assert format(request.parent.span_id, "016x") == SPAN
    assert response.parent.span_id == request.context.span_id
    assert dict(spans["GET /v1/guard"].attributes or {})["guardrail.endpoint"] == "guard"
    attributes = dict(request.attributes or {})
    assert attributes["http.response.status_code"] == 200
    assert attributes["guardrail.endpoint"] == "chat.completions"
    ((_, _, sent, _),) = upstream.asked
    assert (sent["traceparent"], sent["tracestate"]) == (f"00-{TRACE}-{own}-01", "a=b")
    assert "basic plan" not in json.dumps([dict(span.attributes or {}) for span in spans.values()])


@pytest.mark.parametrize(
    ("given", "passed"), [(PARENT, PARENT), ("0" * 600, None), ("sp\u00e4t", None), ("", None)]
)
async def test_without_spans_the_callers_context_goes_on_as_it_is(
    gateway: Opens, upstream: ChatUpstream, given: str, passed: str | None
) -> None:
    client = await gateway()
    upstream.streams(events(RIGHT))
    reply = await client.post(
        COMPLETIONS, json=ask(stream=True), headers={b"traceparent": given.encode("latin-1")}
    )
    assert reply.status_code == 200
    assert upstream.asked[0][2].get("traceparent") == passed


async def test_keys_are_read_anew_and_the_limits_of_one_that_stays_count_on(
    upstream: ChatUpstream, judge: ScriptedJudge, tmp_path: Path
) -> None:
    twice = {"requests_per_minute": 2}
    serve = ServeSettings(upstream=upstream.url, port=0, **with_keys(tmp_path, old={}, stays=twice))
    async with Guard(judge) as guard, Gateway(serve, guard) as gateway:
        transport = httpx2.ASGITransport(app=gateway.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:

            async def status(key: str) -> int:
                return (await client.get("/openapi.json", headers={"x-guardrail-key": key})).status_code

            assert [await status(key) for key in ("old", "new", "stays")] == [200, 401, 200]
            with_keys(tmp_path, new={}, stays=twice)
            assert await gateway.reload_keys() == ("ok", "keys reloaded: new, old")
            assert await gateway.reload_keys() == ("unchanged", "keys unchanged")
            found = [await status(key) for key in ("old", "new", "stays", "stays")]
            assert found == [401, 200, 200, 429]
            (tmp_path / "keys.yaml").write_text("- name: broken")
            with pytest.raises(ConfigError, match="sha256"):
                await gateway.reload_keys()
            assert await status("new") == 200


def lost() -> float:
    return REGISTRY.get_sample_value("guardrail_published_events_total", {"outcome": "lost"}) or 0.0


async def test_what_kafka_does_not_take_waits_within_a_bound_and_what_has_no_room_is_told() -> None:
    before = lost()
    record = OutRecord("verdicts", b"k", b"x" * 10_000_000)
    settings = KafkaSettings(bootstrap_servers="127.0.0.1:1")
    async with KafkaPublisher(settings, ["verdicts"], within_s=0.0) as publisher:
        publisher.put([record] * 9)
        assert lost() - before == 3
        assert publisher.note() == (
            "verdicts are not published: Kafka is not connected yet; 6 events wait, 3 are lost"
        )
        await asyncio.sleep(0)
    assert lost() - before == 9


async def test_a_password_that_can_not_be_read_for_a_while_stops_no_verdicts(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("one")
    settings = KafkaSettings(
        bootstrap_servers="127.0.0.1:1",
        security_protocol="SASL_PLAINTEXT",
        sasl_username="guard",
        sasl_password={"file": str(password)},
    )
    publisher = KafkaPublisher(settings, ["verdicts"], within_s=0.0)
    password.unlink()  # while it is renewed
    async with publisher, asyncio.timeout(30):
        while "kafka.sasl_password" not in publisher.note():  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)
        password.write_text("another")
        while "kafka.sasl_password" in publisher.note():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert "127.0.0.1:1" in publisher.note()
