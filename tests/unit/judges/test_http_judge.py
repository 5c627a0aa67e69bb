"""The judge behind HTTP: what is sent, failures, and replies that are not to be believed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from guardrail import Guard, Policy
from guardrail.errors import ConfigError, JudgeError, JudgeReplyError, JudgeUnavailable
from guardrail.judges import Judge, Judgement, Verdict
from guardrail.judges.http import HttpJudgeSettings
from guardrail.judges.own import HttpJudge
from tests.support.constants import made
from tests.support.judges import Reply, joined, reply_of
from tests.unit.judges.endpoint_server import Answer, EndpointServer, http, replying
from tests.unit.judges.model.asking import claim, request

CONTEXT = "The sky is blue. Grass is green."


@asynccontextmanager
async def asking(
    answer: Answer, *, cut: bool = False, **settings: Any
) -> AsyncIterator[tuple[HttpJudge, EndpointServer]]:
    async with EndpointServer(answer, cut=cut) as server:
        judge = HttpJudge(made(HttpJudgeSettings, url=server.url, **settings))
        try:
            yield judge, server
        finally:
            await judge.aclose()


async def replied(answer: Answer, claims: int = 1, **settings: Any) -> Reply:
    async with asking(answer, **settings) as (judge, _):
        return await reply_of(judge, request([f"claim {n}" for n in range(claims)], [CONTEXT]))


async def found_in(answer: Answer, claims: int = 1) -> list[Judgement]:
    """What the engine makes of the reply: one judgement for each claim."""
    asked = request([f"claim {n}" for n in range(claims)], [CONTEXT])
    return list(joined(asked, await replied(answer, claims), "http").values())


def verdict(**changes: Any) -> dict[str, Any]:
    return {"id": "c0", "verdict": "SUPPORTED", "confidence": 0.9, **changes}


async def test_what_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("Bearer s3cret\n", encoding="utf-8")
    monkeypatch.setenv("TEAM", "a")
    headers = {"Authorization": {"file": tmp_path / "token"}, "X-Team": {"env": "TEAM"}, "X-Role": "b"}
    async with asking(replying(), headers=headers) as (judge, server):
        assert isinstance(judge, Judge)
        assert judge.name == "http:127.0.0.1"
        asked = [claim("It is blue.", lead_in="Sky:")]
        await reply_of(judge, request(asked, ["one\u2028\n", "\ud800"], seconds=5))
    (sent,) = server.requests
    assert 0 < sent.pop("deadline_ms") <= 5_000
    assert sent == {
        "response_id": "r",
        "question": "Which colour is the sky?",
        "contexts": [{"id": "d0", "text": "one\u2028\n"}, {"id": "d1", "text": "\ud800"}],
        "claims": [{"id": "c0", "text": "It is blue.", "lead_in": "Sky:", "severity": "normal"}],
    }
    head = server.heads[0].lower()
    assert head.startswith("post /judge ")
    assert {"authorization: bearer s3cret", "x-team: a", "x-role: b"} <= set(head.splitlines())


async def test_nothing_is_asked_without_contexts_or_claims_or_after_the_deadline() -> None:
    async with asking(replying()) as (judge, server):
        assert (await reply_of(judge, request([], [CONTEXT]))).judgements == ()
        (judgement,) = (await reply_of(judge, request(["x"], [" "]))).judgements
        assert (judgement.verdict, judgement.attempts) == (Verdict.UNSUPPORTED, 0)
        with pytest.raises(JudgeUnavailable, match="within the deadline"):
            await reply_of(judge, late := request(["x"], [CONTEXT], seconds=-1))
        assert (late.meter.attempts, server.requests) == (0, [])


async def test_a_verdict_in_full_and_in_short() -> None:
    full = verdict(
        verdict="UNSUPPORTED",
        support=0.3,
        contradiction=0.1,
        evidence=[{"context_id": "d0", "quote": "sky is blue"}],
        reasoning=" Says so. " + "x" * 5_000,
        unsupported_spans=[[6, 7], [0, 5], [3, 99]],
    )
    reply = await replied(replying(full, verdict(id="c1")), claims=2)
    first, second = await found_in(replying(full, verdict(id="c1")), claims=2)
    assert (first.verdict, first.confidence) == (Verdict.UNSUPPORTED, 0.9)
    assert (first.support, first.contradiction) == (0.3, 0.1)
    assert [e.span for e in first.evidence] == [(4, 15)]
    assert (first.reasoning[:9], len(first.reasoning)) == ("Says so. ", 2_000)
    assert first.unsupported_spans == ((0, 5), (6, 7))  # of "claim 0"
    assert second.support == pytest.approx(0.95)
    assert (second.contradiction, second.reasoning) == (None, "")
    assert (reply.usage.judge_calls, [j.attempts for j in reply.judgements]) == (1, [1, 1])


@pytest.mark.parametrize(
    ("quotes", "left", "expected"),
    [
        (["Grass  is GREEN", "sky is red", ""], ["Grass is green"], Verdict.SUPPORTED),
        (["sky is red", "sky is green"], [], Verdict.UNVERIFIED),
        ([], [], Verdict.SUPPORTED),  # which was not asked for any
    ],
)
async def test_quotes_are_looked_for(quotes: list[str], left: list[str], expected: Verdict) -> None:
    offered = [{"context_id": "nowhere", "quote": quote} for quote in quotes]
    reply = await replied(replying(verdict(evidence=offered)))
    (judgement,) = reply.judgements
    assert (judgement.verdict, [e.quote for e in judgement.evidence]) == (expected, left)
    assert reply.usage.dropped_quotes == len(quotes) - len(left)


@pytest.mark.parametrize(
    "changes",
    [
        {"id": None},
        {"verdict": "supported"},
        {"verdict": None},
        {"confidence": "0.9"},
        {"confidence": True},
        {"confidence": 1.5},
        {"confidence": float("nan")},
        {"confidence": 10**400},
        {"support": 2},
        {"contradiction": -0.5},
        {"unsupported_spans": [[1, 2, 3]]},
        {"unsupported_spans": [[0.5, 2]]},
        {"evidence": [{"quote": 7}]},
        {"evidence": [{"quote": "sky"}] * 11},
        {"reasoning": ["because"]},
        {"reasoning": "\ud800"},
    ],
)
async def test_a_value_that_makes_no_sense_makes_the_reply_unusable(changes: dict[str, Any]) -> None:
    with pytest.raises(JudgeReplyError, match="the reply is unusable: "):
        await replied(replying(verdict(), verdict(**changes)))


@pytest.mark.parametrize("body", [b"", b"SUPPORTED", b"[]", b"{}", b"[" * 100_000, b"\xff\xfe\x00"])
async def test_a_body_that_is_no_reply(body: bytes) -> None:
    with pytest.raises(JudgeReplyError, match="the reply is unusable: "):
        await replied(lambda _: http(body))


@pytest.mark.parametrize(
    "body",
    [
        b'{"verdicts": [{"id": "c0", "verdict": "CONTRADICTED", "verdict": "SUPPORTED", "confidence": 1}]}',
        b'{"verdicts": [{"id": "c0", "verdict": "CONTRADICTED", "confidence": 1}], "verdicts": []}',
    ],
)
async def test_of_a_member_given_twice_neither_is_believed(body: bytes) -> None:
    with pytest.raises(JudgeReplyError, match="it names a member twice"):
        await replied(lambda _: http(body))


async def test_an_unusable_reply_says_where_and_repeats_nothing() -> None:
    with pytest.raises(JudgeReplyError) as wrong:
        await replied(replying(verdict(verdict="s3cret")))
    assert "verdicts.0.verdict Input should be" in str(wrong.value)
    assert "s3cret" not in str(wrong.value)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], [Verdict.UNVERIFIED, Verdict.UNVERIFIED]),
        ([verdict(id="c9"), verdict(id="c1")], [Verdict.UNVERIFIED, Verdict.SUPPORTED]),
        ([verdict(), verdict(verdict="CONTRADICTED"), verdict()], [Verdict.UNVERIFIED, Verdict.UNVERIFIED]),
        ([verdict(confidence=0.1), verdict(), verdict(id="c1")], [Verdict.UNVERIFIED, Verdict.SUPPORTED]),
        ([verdict(), verdict(), verdict(id="c1")], [Verdict.SUPPORTED, Verdict.SUPPORTED]),
        ([verdict(verdict="UNVERIFIED"), verdict(id="c1")], [Verdict.UNVERIFIED, Verdict.SUPPORTED]),
    ],
)
async def test_ids_that_are_missing_extra_or_twice(verdicts: list[Any], expected: list[Verdict]) -> None:
    assert [j.verdict for j in await found_in(replying(*verdicts), claims=2)] == expected


@pytest.mark.parametrize(
    ("answer", "cut", "error", "message"),
    [
        (lambda _: http(b"", "429 Slow"), False, JudgeUnavailable, "answered 429"),
        (
            lambda _: http(b"", "401 No"),
            False,
            JudgeError,
            r"answered 401; check judge\.http",
        ),
        (
            lambda _: http(b"", "302 There", "Location: http://127.0.0.1:1/\r\n"),
            False,
            JudgeError,
            "302",
        ),
        (lambda _: http(b"\x1f", headers="Content-Encoding: gzip\r\n"), False, JudgeReplyError, "compressed"),
        (lambda _: http(b" " * 1_048_577), False, JudgeReplyError, "longer than 1,048,576 bytes"),
        (lambda _: None, False, JudgeUnavailable, "no verdict within the deadline"),
        (lambda _: b"HTTP/1.1 200 OK\r\nContent-Le", True, JudgeUnavailable, "connection to .* was cut"),
        (
            lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{",
            True,
            JudgeUnavailable,
            "connection to .* was cut",
        ),
    ],
)
async def test_an_endpoint_that_fails(
    answer: Answer, cut: bool, error: type[JudgeError], message: str
) -> None:
    async with asking(answer, cut=cut) as (judge, _):
        with pytest.raises(error, match=message):
            await reply_of(judge, request(["x"], [CONTEXT], seconds=0.5))


async def test_nobody_listening_is_unavailable() -> None:
    async with asking(replying()) as (_, server):
        url = server.url
    judge = HttpJudge(HttpJudgeSettings(url=url))
    with pytest.raises(JudgeUnavailable, match=r"nothing listens there; check judge\.http\.url"):
        await reply_of(judge, request(["x"], [CONTEXT]))
    await judge.aclose()


async def test_what_a_bad_reply_leaves_is_unverified_and_not_released() -> None:
    policy = Policy(on_unverified="fail_closed")
    async with asking(lambda _: http(b"no")) as (judge, _), Guard(judge, policy) as guard:
        found = await guard.check("Which colour is the sky?", [CONTEXT], "The sky is blue.")
    assert [each.verdict for each in found.claims] == [Verdict.UNVERIFIED]
    assert "JudgeReplyError: the reply is unusable: " in found.claims[0].reasoning
    assert found.decision == "block"


async def test_the_status_of_an_error_is_told_whatever_becomes_of_its_body() -> None:
    cut = b"HTTP/1.1 401 No\r\nContent-Length: 100\r\n\r\nhalf"
    async with asking(lambda _: cut) as (judge, _):
        with pytest.raises(JudgeError, match="the endpoint answered 401; check judge"):
            await reply_of(judge, request(["x"], [CONTEXT]))


async def test_requests_in_flight_are_bounded_and_can_be_cancelled() -> None:
    async with asking(replying(verdict()), max_concurrency=2) as (judge, server):
        await asyncio.gather(*(reply_of(judge, request(["x"], [CONTEXT])) for _ in range(12)))
        assert (len(server.requests), server.most_at_once) == (12, 2)
    async with asking(lambda _: None) as (judge, server):
        running = asyncio.ensure_future(reply_of(judge, request(["x"], [CONTEXT])))
        await server.arrived.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, r"judge\.http\.headers\.Authorization: .*token can't be read"),
        ("s3cret-\u0430\n", r"headers\.Authorization: .* put the header's value into it and nothing else"),
    ],
)
def test_a_header_that_can_not_be_sent_is_told_at_start_and_not_shown(
    tmp_path: Path, text: str | None, message: str
) -> None:
    if text is not None:
        (tmp_path / "token").write_text(text, "utf-8")
    settings = {"url": "https://judge.test/", "headers": {"Authorization": {"file": tmp_path / "token"}}}
    with pytest.raises(ConfigError, match=message) as caught:
        HttpJudge(HttpJudgeSettings.model_validate(settings))
    assert "s3cret" not in str(caught.value)


def test_the_variable_of_a_header_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "caf\u00e9")
    settings = HttpJudgeSettings.model_validate({"url": "http://j/", "headers": {"X": {"env": "TOKEN"}}})
    with pytest.raises(ConfigError, match=r"judge\.http\.headers\.X: it holds characters"):
        HttpJudge(settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"url": "ftp://judge"}, "must be a URL with http"),
        ({"url": "http://"}, "must be a URL with http"),
        ({"url": "http://me:s3cret@judge/"}, "must hold no user or password"),
        ({"headers": {"x": "caf\u00e9"}}, "the value of x holds characters"),
        ({"headers": {"x y": "a"}}, "is not a name of a header"),
        ({"headers": {"x y": {"env": "A"}}}, "is not a name of a header"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        HttpJudgeSettings.model_validate(settings)
    assert message in str(caught.value)
