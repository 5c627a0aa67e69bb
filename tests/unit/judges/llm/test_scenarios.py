"""What the LLM judge makes of what a server does, row by row, against a server on a real socket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from guardrail.errors import JudgeError, JudgeRefused, JudgeReplyError, JudgeUnavailable
from guardrail.judges import Verdict
from guardrail.judges.llm.exchange import NotAnApi, Stalled
from tests.support.judges import joined
from tests.support.llm_server import (
    Behaviour,
    Cut,
    Drip,
    Hang,
    LlmServer,
    Reply,
    Status,
    Wire,
    member,
    obliging,
    refusing,
    verdicts,
)
from tests.unit.judges.llm.asking import CONTEXTS, judge, request

LETTERS: Final = dict(zip("SPUC?", Verdict, strict=True))
SECRET: Final = "hunter2"
"""Servers repeat what they were sent; what we raise ends up in logs and verdicts."""
ONCE = {"max_retries": 0}
EXHAUSTED = Status(429, {"code": "insufficient_quota"})
IN_AN_HOUR = Status(429, headers={"retry-after": "3600"})
LATE = "no verdict within the deadline, 1 call made"
GOOD = Reply(obliging)
NOW = {"retry-after-ms": "0"}
UNQUOTED = "No sentence that was named for it stands in the contexts."
AGAIN = "left out of the first reply, and asked again: "


@dataclass(frozen=True)
class Row:
    """``server`` are its behaviours, one a call, the last for all that follow. ``verdicts`` has a letter for
    each claim: S, P, U, C, and ? for UNVERIFIED. ``reasoning`` begins that of the first claim with ?, or of
    the first; ``first`` are fields of the first judgement. ``error`` is raised with ``match``.
    """

    name: str
    server: Behaviour | Sequence[Behaviour]
    verdicts: str = ""
    calls: int = 1
    settings: dict[str, Any] = field(default_factory=dict)
    contexts: Sequence[str] = CONTEXTS
    seconds: float = 60.0
    reasoning: str = ""
    first: dict[str, Any] = field(default_factory=dict)
    error: type[JudgeError] | None = None
    match: str = ""
    tokens: tuple[int, int] | None = None
    left: bool = False
    """Whether the server sees that nobody waits any more."""


def said(*members: dict[str, Any], **changes: Any) -> Reply:
    return Reply(verdicts(*members), **changes)


C1, C2 = member("c1"), member("c2")

VERDICTS: Final = [
    Row("no contexts", (), "UU", 0, contexts=(), first={"support": 0.0}),
    Row("blank contexts", (), "UU", 0, contexts=("", " \n"), first={"support": 0.0}),
    Row("another order", said(member("c3", "CONTRADICTED"), C1, member("c2", "UNSUPPORTED")), "SUC"),
    Row("one left out for ever", said(C2), "?S", 4),
    Row(
        "one left out, then an error",
        (said(C2), Status(503)),
        "?S",
        2,
        ONCE,
        reasoning=f"{AGAIN}the server answered 503",
        first={"attempts": 2},
    ),
    Row("one left out, not asked again", said(C2), "?S", settings={"ask_again": False}),
    Row("more than was asked for again", (said(member("c2", "CONTRADICTED")), said(C1, C2)), "SC", 2),
    Row("ids not asked for", said(C1, C2, member("k0", "CONTRADICTED"), member("")), "S"),
    Row(
        "two verdicts, told at the end",
        Reply(f"So: {verdicts(C1, member('c1', 'CONTRADICTED'), C2, C2)}"),
        "?S",
    ),
    Row(
        "two verdicts, the first told",
        said(member("c1", "UNSUPPORTED"), C2, member("c1", evidence=[1])),
        "US",
    ),
    Row(
        "two verdicts in one piece",
        said(member("c1", "UNSUPPORTED"), member("c1", evidence=[1]), wire=Wire(chunk_chars=10_000)),
        "?",
    ),
    Row(
        "a word that is no verdict",
        said(member("c1", "MAYBE"), C2),
        "?S",
        reasoning="the judge's verdict 'MAYBE' is none of the four",
    ),
    Row(
        "cut by its length",
        Reply(verdicts(member("c1", "CONTRADICTED"), C2)[:-30], finish_reason="length"),
        "C?",
        4,
        reasoning=AGAIN,
    ),
    Row(
        "no real sentence",
        said(member("c1", evidence=[99], confidence=1.0)),
        "S",
        reasoning=UNQUOTED,
        first={"confidence": 0.5, "support": 0.75},
    ),
    Row(
        "no real sentence, refused",
        said(C1, member("c2", "UNSUPPORTED")),
        "?U",
        settings={"require_quotes": True},
        reasoning="SUPPORTED, but unfounded",
    ),
    Row("unusable, then good", (Reply("no"), GOOD), "S", 2, tokens=(200, 40)),
    Row("tokens that make no sense", Reply(obliging, usage={"prompt_tokens": "many"}), "S", tokens=(0, 0)),
    Row(
        "fenced, where no form is known",
        refusing(
            "json_schema", "json_object", then=Reply(lambda call: f"So:\n```json\n{obliging(call)}\n```")
        ),
        "S",
        3,
    ),
]

MAY_PASS: Final = [
    Row("429 and a time", (Status(429, headers=NOW), GOOD), "S", 2),
    Row("429", (Status(429), GOOD), "S", 2),
    Row("500", (Status(500), GOOD), "S", 2),
    Row("503 and a time", (Status(503, headers={"retry-after": "0"}), GOOD), "S", 2),
    Row("408", (Status(408), GOOD), "S", 2),
    Row("409", (Status(409), GOOD), "S", 2),
    Row("400, said to pass", (Status(400, headers={"x-should-retry": "true"}), GOOD), "S", 2),
    Row("cut", (Cut(), GOOD), "S", 2),
    Row("cut at once", (Cut(after=0), GOOD), "S", 2),
    Row("silent", (Hang(), GOOD), "S", 2, {"stall_s": 1.0}),
]


def failing(
    name: str,
    server: Behaviour | Sequence[Behaviour],
    error: type[JudgeError],
    match: str,
    calls: int = 1,
    settings: dict[str, Any] | None = None,
    **changes: Any,
) -> Row:
    return Row(name, server, "", calls, settings or {}, error=error, match=match, **changes)


REFUSED_FOR_GOOD: Final = [
    failing("401", Status(401), JudgeError, "answered 401; check the API key"),
    failing("403", Status(403), JudgeError, "answered 403; check what the API key may do"),
    failing("404", Status(404), JudgeError, "answered 404; check judge.llm.base_url and judge.llm.model"),
    failing("400", Status(400), JudgeError, "answered 400"),
    failing("413", Status(413), JudgeError, "answered 413"),
]

FAILURES: Final = [
    failing("429 for ever", Status(429, headers=NOW), JudgeUnavailable, "answered 429", 3),
    failing("500 for ever", Status(500), JudgeUnavailable, "answered 500", 3),
    failing("cut for ever", Cut(), JudgeUnavailable, r"the connection to 127\.0\.0\.1:\d+ was cut", 3),
    failing(
        "exhausted",
        Status(429, {"code": "insufficient_quota"}),
        JudgeUnavailable,
        r"429 \(insufficient_quota\)",
    ),
    # With an hour to wait and a minute left this ends at once.
    failing("an hour", IN_AN_HOUR, JudgeUnavailable, "no time is left to try"),
    failing(
        "silent",
        Hang(),
        JudgeUnavailable,
        "no verdict within the deadline, 1 call made",
        seconds=1.0,
        left=True,
    ),
    failing(
        "comments",
        Drip(),
        JudgeUnavailable,
        "no verdict within the deadline, 1 call made",
        seconds=1.0,
        left=True,
    ),
    failing(
        "silent for ever",
        Hang(),
        Stalled,
        "the reply stalled for 500 ms",
        2,
        {"stall_s": 0.5, "max_retries": 1},
    ),
    failing("too late", (), JudgeUnavailable, "before the first call", 0, seconds=-1.0),
    failing("prose", Reply("I think all is well."), JudgeReplyError, "no verdicts in JSON", 3),
    failing("another claim", said(member("c9")), JudgeReplyError, "no verdict for any claim", 3),
    failing("another API", Status(200, raw='{"id": "x"}'), NotAnApi, "no choices", 3),
    failing("a list", Status(200, raw="[]"), NotAnApi, "no choices|no chat completion", 3),
    failing("a refusal", Reply(None, refusal=f"No {SECRET}."), JudgeRefused, "the model refused to judge"),
    failing("a filter", Reply("", finish_reason="content_filter"), JudgeRefused, "content filter"),
    failing(
        "prose, then an error",
        (Reply("I can't say."), Status(503)),
        JudgeUnavailable,
        "503",
        2,
        {"max_retries": 1},
        tokens=(100, 20),
    ),
    *(
        failing(
            f"{status} that repeats the key",
            Status(status, dict.fromkeys(("message", "code", "type"), f"{SECRET}: It costs $50.")),
            kind,
            f"answered {status}",
            settings={"api_key": SECRET} | ONCE,
        )
        for status, kind in (
            (400, JudgeError),
            (401, JudgeError),
            (429, JudgeUnavailable),
            (500, JudgeUnavailable),
        )
    ),
]


@pytest.mark.parametrize(
    "row", [*VERDICTS, *MAY_PASS, *REFUSED_FOR_GOOD, *FAILURES], ids=lambda row: row.name
)
async def test_what_the_judge_makes_of_it(row: Row) -> None:
    claims = [f"Claim {number}." for number in range(len(row.verdicts) or 1)]
    asked = request(*claims, contexts=row.contexts, seconds=row.seconds)
    server = (row.server,) if not isinstance(row.server, Sequence) else row.server
    async with LlmServer(*server) as listening:
        if row.error is not None:
            with pytest.raises(row.error, match=row.match) as caught:
                await judge(listening, asked, **row.settings)
            error = caught.value
            assert type(error) is row.error  # what may pass, and what may not
            assert SECRET not in repr(error)
            assert "$50" not in repr(error)
            assert error.__suppress_context__ or error.__context__ is None
            if row.left:
                await listening.given_up.wait()
        else:
            found = joined(asked, await judge(listening, asked, **row.settings), "llm:test")
            assert [each.verdict for each in found.values()] == [LETTERS[letter] for letter in row.verdicts]
            told = next((each for each in found.values() if each.verdict is Verdict.UNVERIFIED), found["k0"])
            assert told.reasoning.startswith(row.reasoning)
            assert {name: getattr(found["k0"], name) for name in row.first} == row.first
            assert all(each.support is None for each in found.values() if each.verdict is Verdict.UNVERIFIED)
    assert len(listening.calls) == asked.meter.usage.judge_calls == row.calls
    if row.tokens is not None:
        assert (asked.meter.usage.input_tokens, asked.meter.usage.output_tokens) == row.tokens
