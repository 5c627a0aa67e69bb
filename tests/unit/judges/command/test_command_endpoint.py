"""The command judge over HTTP: the wire, failures, and replies that are not to be believed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from guardrail.errors import ConfigError, JudgeError, JudgeReplyError, JudgeUnavailable
from guardrail.judges import Judgement, JudgeRequest, Verdict
from guardrail.judges.command.judge import CommandJudge
from guardrail.judges.command.protocol import CommandReply, CommandRequest
from guardrail.judges.command.settings import CommandJudgeSettings
from tests.support.constants import made
from tests.support.judges import Reply, joined, reply_of
from tests.unit.judges.command.endpoint_server import Answer, EndpointServer, http, replying, serving
from tests.unit.judges.model.asking import claim, request

CONTEXT = "The sky is blue. Grass is green."


@asynccontextmanager
async def asking(
    answer: Answer, *, cut: bool = False, **settings: Any
) -> AsyncIterator[tuple[CommandJudge, EndpointServer]]:
    async with serving(answer, cut=cut) as server:
        judge = CommandJudge(made(CommandJudgeSettings, url=server.url, **settings))
        try:
            yield judge, server
        finally:
            await judge.aclose()


def asked(claims: int) -> JudgeRequest:
    return request([f"claim {n}" for n in range(claims)], [CONTEXT])


async def replied(answer: Answer, claims: int = 1, **settings: Any) -> Reply:
    async with asking(answer, **settings) as (judge, _):
        return await reply_of(judge, asked(claims))


async def found_in(answer: Answer, claims: int = 1, **settings: Any) -> list[Judgement]:
    """What the engine makes of the reply: one judgement for each claim."""
    reply = await replied(answer, claims, **settings)
    return list(joined(asked(claims), reply, "command").values())


def verdict(**changes: Any) -> dict[str, Any]:
    return {"id": "c0", "verdict": "SUPPORTED", "confidence": 0.9, **changes}


async def test_what_is_sent(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret\n", encoding="utf-8")
    async with asking(replying(), headers={"X-Team": "a"}, token_file=str(token)) as (judge, server):
        await reply_of(
            judge, request([claim("It is blue.", lead_in="Sky:")], ["one\u2028\n", "two"], seconds=5)
        )
        (sent,) = server.requests
        jsonschema.validate(sent, CommandRequest.model_json_schema())
        assert sent["protocol"] == 1
        assert sent["contexts"] == [{"id": "d0", "text": "one\u2028\n"}, {"id": "d1", "text": "two"}]
        assert sent["claims"] == [
            {"id": "c0", "text": "It is blue.", "lead_in": "Sky:", "severity": "normal"}
        ]
        assert 0 < sent["deadline_ms"] <= 5_000
        head = server.heads[0].lower()
        assert head.startswith("post /judge ")
        assert "authorization: bearer s3cret" in head
        assert "x-team: a" in head
        assert judge.name == "command:127.0.0.1"
    async with asking(replying(), name="checker-7b") as (judge, _):
        assert judge.name == "command:checker-7b"


async def test_a_reply_in_its_full_form_is_by_the_schema() -> None:
    full = verdict(
        support=0.7,
        contradiction=0.1,
        evidence=[{"context_id": "d0", "quote": "sky is blue"}],
        reasoning="Says so.",
    )
    reply = {"protocol": 1, "request_id": "x", "verdicts": [full]}
    jsonschema.validate(reply, CommandReply.model_json_schema())
    (judgement,) = await found_in(replying(full))
    assert (judgement.verdict, judgement.confidence, judgement.support) == (Verdict.SUPPORTED, 0.9, 0.7)
    assert judgement.contradiction == 0.1
    assert [e.span for e in judgement.evidence] == [(4, 15)]


async def test_words_without_support_are_handed_on() -> None:
    said = verdict(verdict="UNSUPPORTED", unsupported_spans=[[6, 7], [0, 5], [3, 99]])
    jsonschema.validate(
        {"protocol": 1, "request_id": "x", "verdicts": [said]}, CommandReply.model_json_schema()
    )
    (judgement,) = await found_in(replying(said))  # of "claim 0"
    assert (judgement.verdict, judgement.unsupported_spans) == (Verdict.UNSUPPORTED, ((0, 5), (6, 7)))


async def test_quotes_are_looked_for_and_inventions_are_counted() -> None:
    quotes = [
        {"context_id": "nowhere", "quote": "Grass  is GREEN"},
        {"quote": "sky is blue"},
        {"context_id": "d0", "quote": "sky is red"},
        {"context_id": "d0", "quote": ""},
    ]
    reply = await replied(replying(verdict(evidence=quotes)))
    assert [e.quote for e in reply.judgements[0].evidence] == ["Grass is green", "sky is blue"]
    assert reply.usage.dropped_quotes == 2


@pytest.mark.parametrize(("given", "left"), [({}, 0.75), ({"support": 0.9}, 0.7), ({"support": 0.3}, 0.3)])
async def test_invented_quotes_lower_support_as_they_do_for_the_llm_judge(
    given: dict[str, float], left: float
) -> None:
    invented = [{"quote": "sky is red"}, {"quote": "sky is green"}]
    (judgement,) = await found_in(replying(verdict(confidence=1.0, evidence=invented, **given)))
    assert (judgement.verdict, judgement.confidence) == (Verdict.SUPPORTED, 0.5)
    assert judgement.support == pytest.approx(left)
    assert "No quote that was given for it stands" in judgement.reasoning


async def test_one_quote_that_stands_is_enough_and_none_at_all_lowers_nothing() -> None:
    for quotes in ([{"quote": "sky is red"}, {"quote": "sky is blue"}], []):
        (judgement,) = await found_in(replying(verdict(support=0.9, evidence=quotes)))
        assert (judgement.confidence, judgement.support, judgement.reasoning) == (0.9, 0.9, "")


async def test_support_without_a_quote_can_be_refused() -> None:
    invented = verdict(evidence=[{"quote": "sky is red"}])
    assert (await found_in(replying(invented)))[0].verdict is Verdict.SUPPORTED
    assert (await found_in(replying(invented), require_quotes=True))[0].verdict is Verdict.UNVERIFIED
    quoted = verdict(evidence=[{"quote": "sky is blue"}])
    assert (await found_in(replying(quoted), require_quotes=True))[0].verdict is Verdict.SUPPORTED


@pytest.mark.parametrize(
    "changes",
    [
        {"verdict": "supported"},
        {"verdict": "YES"},
        {"verdict": True},
        {"verdict": None},
        {"confidence": "0.9"},
        {"confidence": True},
        {"confidence": 1.5},
        {"confidence": -0.1},
        {"confidence": None},
        {"confidence": 10**400},
        {"support": 2},
        {"support": "high"},
        {"contradiction": 1.5},
        {"unsupported_spans": [[1, 2, 3]]},
        {"unsupported_spans": [[0.5, 2]]},
        {"unsupported_spans": [[0, 1]] * 1_001},
        {"unsupported_spans": None},
        {"evidence": "sky is blue"},
        {"evidence": [{"quote": 7}]},
        {"evidence": [{"quote": "sky"}] * 11},
        {"reasoning": ["because"]},
    ],
)
async def test_a_value_that_makes_no_sense_costs_its_claim_only(changes: dict[str, Any]) -> None:
    wrong, right = await found_in(replying(verdict(**changes), verdict(id="c1")), claims=2)
    assert wrong.verdict is Verdict.UNVERIFIED
    assert wrong.confidence == 0.0
    assert right.verdict is Verdict.SUPPORTED


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], [Verdict.UNVERIFIED, Verdict.UNVERIFIED]),
        ([verdict(id="c9"), verdict(id="")], [Verdict.UNVERIFIED, Verdict.UNVERIFIED]),
        ([verdict(id="c1"), verdict(id=["c0"]), 7, None], [Verdict.UNVERIFIED, Verdict.SUPPORTED]),
        ([verdict(), verdict(verdict="CONTRADICTED")], [Verdict.UNVERIFIED, Verdict.UNVERIFIED]),
        ([verdict(), verdict(verdict="maybe"), verdict(id="c1")], [Verdict.UNVERIFIED, Verdict.SUPPORTED]),
        ([verdict(verdict="UNVERIFIED"), verdict(id="c1")], [Verdict.UNVERIFIED, Verdict.SUPPORTED]),
    ],
)
async def test_ids_that_are_missing_extra_or_twice(verdicts: list[Any], expected: list[Verdict]) -> None:
    assert [j.verdict for j in await found_in(replying(*verdicts), claims=2)] == expected


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"SUPPORTED",
        b"```json\n{}\n```",
        b"[]",
        b'{"protocol": 1}',
        b"[" * 100_000,
        b"\xff\xfe\x00",
        b'{"protocol": 1, "verdicts": NaN}',
    ],
)
async def test_a_body_that_is_no_reply(body: bytes) -> None:
    with pytest.raises(JudgeReplyError):
        await replied(lambda _: http(body))


@pytest.mark.parametrize(
    "changes",
    [
        {"protocol": 2},
        {"protocol": True},
        {"protocol": "1"},
        {"verdicts": {"c0": 1}},
        {"request_id": "other"},
    ],
)
async def test_a_reply_of_another_kind(changes: dict[str, Any]) -> None:
    with pytest.raises(JudgeReplyError):
        await replied(replying(verdict(), **changes))


async def test_a_member_that_stands_twice_makes_the_reply_unusable() -> None:
    def answer(sent: dict[str, Any]) -> bytes:
        twice = json.dumps(verdict())[:-1] + ', "verdict": "CONTRADICTED"}'
        request_id = sent["request_id"]
        return http(f'{{"protocol": 1, "request_id": "{request_id}", "verdicts": [{twice}]}}'.encode())

    with pytest.raises(JudgeReplyError, match="twice"):
        await replied(answer)


@pytest.mark.parametrize(
    ("status", "error", "message"),
    [
        ("429 Slow", JudgeUnavailable, "answered 429"),
        ("503 No", JudgeUnavailable, "answered 503"),
        ("401 No", JudgeError, "check headers or token_file"),
        ("404 No", JudgeError, "check url"),
        ("302 Found", JudgeError, "answered 302"),
        ("204 Nothing", JudgeError, "answered 204"),
    ],
)
async def test_a_status_that_is_not_200(status: str, error: type[JudgeError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        await replied(lambda _: http(b"", status, "Location: http://127.0.0.1:1/\r\n"))
    assert isinstance(caught.value, JudgeUnavailable) == (error is JudgeUnavailable)


async def test_a_reply_longer_than_its_bound_is_not_read_to_its_end() -> None:
    with pytest.raises(JudgeReplyError, match="longer than 2,048 bytes"):
        await replied(replying(verdict(reasoning="x" * 5_000)), max_reply_bytes=2_048)


async def test_a_compressed_reply_is_refused() -> None:
    with pytest.raises(JudgeReplyError, match="compressed"):
        await replied(lambda _: http(b"\x1f\x8b", headers="Content-Encoding: gzip\r\n"))


async def test_an_endpoint_that_hangs_or_cuts_the_connection_is_unavailable() -> None:
    async with asking(lambda _: None) as (judge, _):
        with pytest.raises(JudgeUnavailable, match="within the deadline"):
            await reply_of(judge, request(["x"], [CONTEXT], seconds=0.3))
    with pytest.raises(JudgeUnavailable, match="can't be reached"):
        await replied(lambda _: b"HTTP/1.1 200 OK\r\nContent-Le", cut=True)
    with pytest.raises(JudgeUnavailable, match="can't be reached"):
        await replied(lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", cut=True)
    with pytest.raises(JudgeUnavailable, match="can't be reached"):
        await replied(lambda _: b"no http at all\r\n\r\n")


async def test_nobody_listening_is_unavailable() -> None:
    async with asking(replying()) as (judge, server):
        url = server.url
    judge = CommandJudge(CommandJudgeSettings(url=url))
    try:
        with pytest.raises(JudgeUnavailable, match="can't be reached"):
            await reply_of(judge, request(["x"], [CONTEXT]))
    finally:
        await judge.aclose()


async def test_requests_in_flight_are_bounded() -> None:
    async with asking(replying(verdict()), max_concurrency=2) as (judge, server):
        await asyncio.gather(*(reply_of(judge, request(["x"], [CONTEXT])) for _ in range(12)))
        assert len(server.requests) == 12
        assert server.most_at_once <= 2


async def test_a_request_can_be_cancelled() -> None:
    async with asking(lambda _: None) as (judge, server):
        running = asyncio.ensure_future(reply_of(judge, request(["x"], [CONTEXT])))
        await server.arrived.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_long_reasoning_is_cut_and_lone_surrogates_are_no_crash() -> None:
    (judgement,) = await found_in(replying(verdict(reasoning="a\ud800" * 5_000)))
    assert len(judgement.reasoning) == 2_000
    judgement.reasoning.encode()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"token_file": "/nowhere/token"}, r"judge\.command\.token_file: /nowhere/token can't be read"),
        ({"cafile": "/nowhere/ca.pem"}, r"judge\.command\.cafile: /nowhere/ca\.pem can't be used"),
    ],
)
def test_files_that_are_not_there(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        CommandJudge(CommandJudgeSettings.model_validate({"url": "https://judge.test/", **settings}))


def test_a_token_that_no_header_can_carry_is_told_at_start_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret-\u0430\n", "utf-8")
    settings = CommandJudgeSettings(url="https://judge.test/", token_file=tmp_path / "token")
    with pytest.raises(ConfigError, match=r"token_file: .* put the token into it and nothing else") as caught:
        CommandJudge(settings)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"url": "ftp://judge"}, "must be a URL with http"),
        ({"url": "http://"}, "must be a URL with http"),
        ({"url": "http://me:s3cret@judge/"}, "must hold no user or password"),
        ({"headers": {"x": "caf\u00e9"}}, "the value of x holds characters"),
        ({"headers": {"x y": "a"}}, "is no name of a header"),
        ({"url": "http://judge/", "argv": ["judge"]}, "argv and url are both set"),
        ({"argv": "judge --fast"}, "argv"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        CommandJudgeSettings.model_validate(settings)
    assert message in str(caught.value)
