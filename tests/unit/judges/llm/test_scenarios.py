"""What the LLM judge makes of what a server does, row by row, against a server on a real socket."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pytest

from guardrail.errors import JudgeError, JudgeRefused, JudgeReplyError, JudgeUnavailable
from guardrail.judges import Judgement, Verdict
from guardrail.judges.llm.chat import NotAnApi, Stalled
from tests.support.judges import joined
from tests.support.llm_server import (
    Act,
    Behaviour,
    Cut,
    Drip,
    Hang,
    LlmServer,
    Reply,
    Status,
    StreamError,
    Wire,
    event,
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
    early: int | None = None
    """How many judgements came while the reply was written."""


def said(*members: str, **changes: Any) -> Reply:
    return Reply(verdicts(*members), **changes)


C1, C2 = member("c1"), member("c2")
CLOSES: Final = verdicts(C1, C2).index(', "c2')
AT_ONCE: Final = {"ask_again": False}


def pair(**wire: Any) -> Reply:
    """Verdicts on c1 and c2. Chunk 0 has the role, 1 all of c1, 2 the rest."""
    return said(C1, C2, wire=Wire(chunk_chars=CLOSES, **wire))


NO_USAGE: Final[list[Any]] = [
    None,
    "many",
    [],
    {"prompt_tokens": "5"},
    {"prompt_tokens": -5},
    {"prompt_tokens": 10**400},
    {"prompt_tokens_details": 3},
]

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
        early=0,
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
        early=0,
    ),
    Row(
        "cut by its length",
        Reply(verdicts(member("c1", "CONTRADICTED"), C2)[:-5], finish_reason="length"),
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
    Row("unusable, then good", (Reply("no"), GOOD), "S", 2, tokens=(200, 40)),
    *(Row(f"usage {usage!r}"[:40], Reply(obliging, usage=usage), "S", tokens=(0, 0)) for usage in NO_USAGE),
    *(
        Row(f"a stream with {wire}", pair(**wire), "SS", 1, ONCE, tokens=(100, 20), early=2)
        for wire in (
            {"split_bytes": 1},
            {"split_bytes": 7, "newline": "\r\n"},
            {"newline": "\r"},
            {"ping_every": 1},
            {"events_per_write": None},
            {"pause_s": 0.001},
            {"done": False},
            {"usage_with_finish": True},
            {"close_framed": True},
            {"insert": {1: "event: note\nid: 5\nretry: 3\n\n", 2: event({"choices": []})}},
        )
    ),
    Row("a whole reply", pair(ignore_stream=True), "SS", 1, ONCE, tokens=(100, 20), early=0),
    # All of it takes longer than the bound, each token less.
    Row("slow", said(C1, wire=Wire(chunk_chars=2, pause_s=0.05)), "S", 1, {"stall_s": 1.5} | ONCE),
    Row("silent at the deadline", Hang(2, pair()), "S?", seconds=1.0, left=True, early=1),
    Row(
        "a filter that strikes late",
        Reply(verdicts(C1, C2)[:-5], finish_reason="content_filter", wire=pair().wire),
        "S?",
        settings=AT_ONCE,
    ),
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
    *(
        Row(f"silent {name}", (trouble, GOOD), "S", 2, {"stall_s": 0.3}, left=True)
        for name, trouble in (
            ("before the head", Hang()),
            ("after it", Hang(0)),
            ("but for comments", Drip()),
        )
    ),
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


WAS_CUT: Final = r"the connection to 127\.0\.0\.1:\d+ was cut"
BROKEN: Final[list[tuple[str, Callable[[int], Act], type[JudgeError], str]]] = [
    # after so many chunks
    ("cut", lambda after: Cut(chunks=after, reply=pair()), JudgeUnavailable, WAS_CUT),
    (
        "cut inside an event",
        lambda after: Cut(chunks=after, inside=True, reply=pair()),
        JudgeUnavailable,
        WAS_CUT,
    ),
    ("ended in order", lambda after: pair(end_after=after), JudgeUnavailable, WAS_CUT),
    ("closed", lambda after: pair(end_after=after, close_framed=True), JudgeUnavailable, WAS_CUT),
    (
        "error",
        lambda after: StreamError(after, reply=pair()),
        JudgeUnavailable,
        "reported an error within the reply",
    ),
    (
        "error and done",
        lambda after: StreamError(after, done=True, reply=pair()),
        JudgeUnavailable,
        "reported an error within the reply",
    ),
    ("not JSON", lambda after: pair(insert={after: event("{]")}), JudgeReplyError, "event .* is not JSON"),
    (
        "no object",
        lambda after: pair(insert={after: event([1])}),
        JudgeReplyError,
        "event .* is not an object",
    ),
    ("stalled", lambda after: Hang(after, pair()), Stalled, "the reply stalled for 1000 ms"),
]
STALLS: Final = {"stall_s": 1.0}

# Of a reply that breaks off what was complete is kept, else it is asked for again.
BREAKS_OFF: Final = [
    row
    for name, after, error, match in BROKEN
    for row in (
        Row(f"{name}, one complete", after(2), "S?", 1, STALLS | AT_ONCE, early=1),
        Row(f"{name}, none complete", (after(1), pair()), "SS", 2, STALLS),
        failing(f"{name}, none complete, for ever", after(1), error, match, 1, STALLS | ONCE),
    )
]

REFUSED_FOR_GOOD: Final = [
    failing("401", Status(401), JudgeError, "answered 401; check judge.llm.api_key"),
    failing("403", Status(403), JudgeError, "answered 403; check what the API key may do"),
    failing("404", Status(404), JudgeError, "answered 404; check judge.llm.base_url and judge.llm.model"),
    failing("400", Status(400), JudgeError, "answered 400"),
    failing("413", Status(413), JudgeError, "answered 413"),
]

FAILURES: Final = [
    failing("429 for ever", Status(429, headers=NOW), JudgeUnavailable, "answered 429", 3),
    failing("500 for ever", Status(500), JudgeUnavailable, "answered 500", 3),
    failing("cut for ever", Cut(), JudgeUnavailable, WAS_CUT, 3),
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
        LATE,
        seconds=1.0,
        left=True,
    ),
    failing(
        "comments",
        Drip(),
        JudgeUnavailable,
        LATE,
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
    *(
        failing(
            f"{name}, {'whole' if wire.ignore_stream else 'streamed'}",
            replace(reply, wire=wire),
            JudgeReplyError,
            match,
            2,
            {"max_retries": 1},
        )
        for wire in (Wire(), Wire(ignore_stream=True))
        for name, reply, match in (
            ("no choice", Reply(None, choices=[]), "no choices"),
            ("choices that are none", Reply(None, choices=["?"]), "no choices"),
            ("empty", Reply(""), "is empty"),
            ("all thought", Reply(None, finish_reason="length"), "raise judge.llm.max_output_tokens"),
            ("no label", Reply("no label at all"), "no verdicts in JSON"),
        )
    ),
    *(
        failing(raw[:30], Status(200, headers=headers, raw=raw), error, match, 2, {"max_retries": 1})
        for raw, headers, error, match in (
            ("<html>", {}, NotAnApi, "not JSON"),
            ("<HTML>", {"Content-Type": "text/html"}, NotAnApi, "check judge.llm.base_url"),
            ('{"choices": ' + "[" * 100_000, {}, NotAnApi, "not JSON"),
            ('{"choices": [{"message": 5}]}', {}, JudgeReplyError, "no choices"),
        )
    ),
    failing(
        "an endless event",
        Reply("x", wire=Wire(insert={1: "data: " + "x" * 2_000_000})),
        JudgeReplyError,
        "more than 1000000 characters",
        settings=ONCE,
    ),
    failing(
        "an error in the stream that repeats the key",
        StreamError(1, dict.fromkeys(("message", "code", "type"), f"{SECRET}: It costs $50."), reply=pair()),
        JudgeUnavailable,
        "reported an error within the reply",
        settings=ONCE,
    ),
    failing(
        "a bad request that names an argument",
        Status(400, {"message": "maximum context length is 8192 tokens, and max_completion_tokens is 4096"}),
        JudgeError,
        "answered 400",
    ),
    failing("another API", Status(200, raw='{"id": "x"}'), NotAnApi, "no choices", 3),
    failing("a list", Status(200, raw="[]"), NotAnApi, "no choices|not a chat completion", 3),
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
    "row", [*VERDICTS, *MAY_PASS, *BREAKS_OFF, *REFUSED_FOR_GOOD, *FAILURES], ids=lambda row: row.name
)
async def test_what_the_judge_makes_of_it(row: Row) -> None:
    claims = [f"Claim {number}." for number in range(len(row.verdicts) or 1)]
    asked = request(*claims, contexts=row.contexts, seconds=row.seconds)
    server = (row.server,) if not isinstance(row.server, Sequence) else row.server
    came: list[Judgement] = []
    async with LlmServer(*server) as listening:
        if row.error is not None:
            with pytest.raises(row.error, match=row.match) as caught:
                await judge(listening, asked, came.append, **row.settings)
            error = caught.value
            assert type(error) is row.error  # what may pass, and what may not
            assert SECRET not in repr(error)
            assert "$50" not in repr(error)
            assert error.__suppress_context__ or error.__context__ is None
            assert came == []
        else:
            found = joined(asked, await judge(listening, asked, came.append, **row.settings), "llm:test")
            assert [each.verdict for each in found.values()] == [LETTERS[letter] for letter in row.verdicts]
            told = next((each for each in found.values() if each.verdict is Verdict.UNVERIFIED), found["k0"])
            assert told.reasoning.startswith(row.reasoning)
            assert {name: getattr(found["k0"], name) for name in row.first} == row.first
            assert all(each.support is None for each in found.values() if each.verdict is Verdict.UNVERIFIED)
            assert row.early in {None, sum(each.usage is None and each.support is not None for each in came)}
        if row.left:
            await listening.given_up.wait()
    assert len(listening.calls) == asked.meter.usage.judge_calls == row.calls
    if row.tokens is not None:
        assert (asked.meter.usage.input_tokens, asked.meter.usage.output_tokens) == row.tokens
