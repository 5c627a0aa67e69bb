"""However the upstream's bytes are cut and written, nothing leaves the gateway without its verdict."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from chunk_invariance import assert_chunk_invariant_async
from hypothesis import given, settings
from hypothesis import strategies as st

from consumers.gateway import (
    GuardedCompletion,
    GuardedResponse,
    Refused,
    ServeSettings,
    asked_by,
    response_asked_by,
)
from guardrail import Guard, Policy
from guardrail.testing import ScriptedJudge
from tests.support.chat_upstream import DONE, HEAD, choice, events
from tests.support.response_events import call, event, events_of, message, search, stream, text_of

SECRET = "sesame"
SENTENCES = [
    "The basic plan costs $49 a month. ",
    "Zwölf Plätze kosten 5 € im Jahr – für alle. ",
    "無料プランは月額0円です。",
    "Emoji 😀 plans have 3 seats. ",
    "- The list has 4 items.\n",
    f"The wrong word is {SECRET} 9. ",
]
CLAIMS = [
    "costs $49 a month.",
    "kosten 5 € im Jahr",
    "無料プランは月額0円です。",
    "plans have 3 seats.",
    "has 4 items.",
]
"""What of each sentence a judge is asked; it reads no emoji."""
ASKING: dict[str, Any] = {
    "model": "any-model",
    "stream": True,
    "guardrail": {"contexts": ["The basic plan costs $49 a month."]},
}
COMPLETED = {**ASKING, "messages": [{"role": "user", "content": "Which?"}]}
SETTINGS = ServeSettings(contexts_from=("extension", "file_search"))
INCLUDE = ["file_search_call.results"]


@dataclass(frozen=True)
class Api:
    """One of the two that the gateway guards."""

    asked: Any
    streamed: Any
    stream: bytes
    """A short one, of which a sentence is wrong."""
    end: bytes

    def chunks(self, deltas: list[str]) -> list[dict[str, Any]]:
        """A whole answer in these pieces."""
        if self.streamed is GuardedCompletion:
            parts = [*(({"content": delta}, None) for delta in deltas), ({}, "stop")]
            return [{**HEAD, "choices": [choice(*each)]} for each in parts]
        chunks = [
            json.loads(each.partition(b"data: ")[2]) for each in stream(message("".join(deltas)), call())
        ]
        at = next(n for n, each in enumerate(chunks) if each["type"] == "response.output_text.delta")
        chunks[at : at + 1] = [{**chunks[at], "delta": delta} for delta in deltas]
        return chunks

    def shown(self, chunk: dict[str, Any]) -> str:
        """The text that a chunk adds."""
        if chunk.get("type") == "response.output_text.delta":
            return str(chunk["delta"])
        return "".join(part["delta"].get("content", "") for part in chunk.get("choices", ()))

    def ended(self, sent: bytes) -> bool:
        """Whether it has ended in order."""
        return self.end in sent


TEXTS = ("The basic plan costs ", "5 €. The list ", f"has 4 😀. It is {SECRET}", " 7.", " Fine.")
COMPLETIONS = Api(
    asked_by(COMPLETED, SETTINGS, lambda found: found),
    GuardedCompletion,
    b"".join(events(*TEXTS)),
    DONE,
)
RESPONSES = Api(
    response_asked_by({**ASKING, "input": "Which?", "include": INCLUDE}, SETTINGS, lambda found: found),
    GuardedResponse,
    b"".join(
        [
            event("response.output_item.added", item={"type": "message"}),
            *(event("response.output_text.delta", delta=each) for each in TEXTS),
            event("response.output_text.done"),
            event("response.output_item.done", output_index=1, item=call("{}")),
            event("response.completed"),
        ]
    ),
    b"event: response.completed",
)
both = pytest.mark.parametrize("api", [COMPLETIONS, RESPONSES], ids=["completions", "responses"])


class Judge(ScriptedJudge):
    """Withholds what has the secret, and is slower than the stream."""

    def __init__(self) -> None:
        super().__init__({SECRET: "CONTRADICTED"})

    async def judge(self, request: Any) -> Any:
        await asyncio.sleep(0)
        async for judgement in super().judge(request):
            yield judgement


async def guarded(api: Api, pieces: AsyncIterable[bytes], guard: Guard) -> AsyncIterator[bytes]:
    """What leaves of it, without the answer's own id."""

    async def given() -> AsyncIterator[bytes]:
        async for piece in pieces:
            yield piece
            await asyncio.sleep(0)

    stream = api.streamed(api.asked, guard, SETTINGS, asyncio.get_running_loop().time() + 600)
    async for frame in stream.frames(given()):
        frame = re.sub(rb'("(?:response|claim)_id":)"[0-9a-f]+"', rb'\1"an-id"', frame)
        frame = re.sub(rb'"created_at":\d+', b'"created_at":7', frame)
        yield re.sub(rb'"(?:resp|message|function_call)_[0-9a-f]{32}"', b'"an-id"', frame)


@both
async def test_every_cut_gives_the_same_bytes(api: Api) -> None:
    async with Guard(Judge()) as guard:

        async def at_once() -> AsyncIterator[bytes]:
            yield api.stream

        whole = b"".join([frame async for frame in guarded(api, at_once(), guard)])
        assert SECRET.encode() not in whole
        assert "5 €".encode() in whole
        tried = await assert_chunk_invariant_async(
            lambda pieces: guarded(api, pieces, guard), lambda _: whole, api.stream
        )
    assert tried > 600


def written(data: str, ending: str, form: str) -> str:
    """An event in one of the forms that the format has."""
    if form == "lines":
        data = json.dumps(json.loads(data), indent=1, ensure_ascii=False)
    if form == "comment":
        return f": {SECRET} is no data{ending}data:{data}{ending}{ending}"
    if form == "named":
        return f"id: 7{ending}event: {SECRET}{ending}data: {data}{ending}retry: 3{ending}{ending}"
    return "".join(f"data: {line}{ending}" for line in data.split("\n")) + ending


@both
@settings(max_examples=150, deadline=None)
@given(
    data=st.data(),
    sentences=st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=5),
    ending=st.sampled_from(["\n", "\r\n", "\r"]),
    mark=st.sampled_from(["", "\ufeff"]),
)
def test_only_text_with_a_verdict_leaves(
    api: Api, data: st.DataObject, sentences: list[str], ending: str, mark: str
) -> None:
    text = "".join(sentences)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=12)) | {0, len(text)})
    deltas = [text[start:end] for start, end in pairwise(cuts)]
    forms = st.sampled_from(["plain", "lines", "comment", "named"])
    raw = mark + "".join(
        written(json.dumps(each, ensure_ascii=False), ending, data.draw(forms)) for each in api.chunks(deltas)
    )
    body = raw.encode() + (DONE if api is COMPLETIONS else b"")
    end = data.draw(st.sampled_from([len(body), data.draw(st.integers(0, len(body)))]))
    places = sorted(data.draw(st.sets(st.integers(0, end), max_size=20)) | {0, end})
    pieces = [body[start:stop] for start, stop in pairwise(places)]

    async def run() -> None:
        judge = Judge()

        async def given() -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece

        shown, sent = "", b""
        async with Guard(judge) as guard:
            frames = [(frame, " ".join(judge.claims)) async for frame in guarded(api, given(), guard)]
        for frame, judged in frames:
            sent += frame
            for line in frame.split(b"\n"):
                if line.startswith(b"data: {"):
                    shown += api.shown(json.loads(line.removeprefix(b"data: ")))
            told = shown.partition("\n\nThis answer was withheld")[0]
            for words in CLAIMS:
                assert words not in told or words in judged
        assert SECRET.encode() not in sent
        kept = shown.partition("This answer was withheld")[0].removesuffix("\n\n")
        assert text.startswith(kept)
        assert api.ended(sent.replace(b"response.incomplete", b"response.completed")) is (
            b'"code":"upstream_failed"' not in sent
        )
        if end == len(body) and SECRET not in text:
            assert shown == text

    asyncio.run(run())


PROSE = f"The wrong word is {SECRET} 9."
FIELDS = [
    *("id", "object", "created", "model", "system_fingerprint", "service_tier", "usage", "error", "index"),
    *("finish_reason", "logprobs", "text", "role", "content", "refusal", "reasoning_content", "audio"),
    *("tool_calls", "function_call", "annotations", "message", "citations", "x_of_a_provider"),
]
FORMS: list[Any] = [
    PROSE,
    [PROSE],
    {"a": PROSE, PROSE: 1},
    {"a": {"b": [PROSE, {PROSE: 2}]}},
    [{"type": "text", "text": PROSE}],
    [{"id": PROSE, "type": PROSE, "function": {"name": PROSE, "said": PROSE}, "custom": {"name": PROSE}}],
    {"name": PROSE, "said": PROSE, "content": PROSE, "role": "assistant"},
]
PLACES = ["chunk", "choice", "delta"]


async def test_whatever_field_text_is_in_it_does_not_leave_unchecked() -> None:
    """All but the arguments of tools, which pass by rule. The rest of each answer is in order."""
    left: set[tuple[str, str]] = set()
    async with Guard(Judge()) as guard:
        for place, name, form in itertools.product(PLACES, FIELDS, FORMS):
            chunk: dict[str, Any] = {**HEAD, "choices": [choice({"content": SENTENCES[0]})]}
            inside = {"chunk": chunk, "choice": chunk["choices"][0], "delta": chunk["choices"][0]["delta"]}
            inside[place][name] = form
            whole = chunk["choices"][0] | {"message": chunk["choices"][0]["delta"]}

            async def given(first: Any = chunk) -> AsyncIterator[bytes]:
                for each in (first, {**HEAD, "choices": [choice({}, "stop")]}):
                    yield b"data: " + json.dumps(each).encode() + b"\n\n"
                yield DONE

            sent = b"".join([frame async for frame in guarded(COMPLETIONS, given(), guard)])
            try:
                body = json.dumps({**chunk, "choices": [whole]}).encode()
                reply, _ = await GuardedCompletion(COMPLETIONS.asked, guard, SETTINGS).whole(body)
            except Refused:
                reply = {}
            assert b'"code":"failed"' not in sent, (place, name, form)
            if SECRET in sent.decode() + json.dumps(reply):
                left.add((place, name))
    assert left == set()


ADDED = [
    *("name", "phase", "delta", "text", "refusal", "input", "content", "annotations", "logprobs", "summary"),
    *("encrypted_content", "queries", "results", "filename", "code", "message", "output_text", "metadata"),
    *("instructions", "tools", "obfuscation", "service_tier", "x_of_a_provider"),
]
PROGRAMS: list[tuple[str, str]] = [
    ("response.function_call_arguments.delta", "delta"),
    ("response.function_call_arguments.done", "arguments"),
    *(("response.output_item.added", name) for name in ("arguments", "results")),
    ("response.output_item.done", "arguments"),
    *(("response.output_item.done", name) for name in ("results", "filename", "text")),
]
"""Where words pass unchecked, by rule: what programs read, and documents that were asked for."""


def objects_in(value: Any) -> list[dict[str, Any]]:
    """All objects of a piece of JSON, in a fixed order."""
    if isinstance(value, list):
        return [found for each in value for found in objects_in(each)]
    return [value, *objects_in(list(value.values()))] if isinstance(value, dict) else []


async def test_whatever_field_of_a_response_text_is_in_it_does_not_leave_unchecked() -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA=="}
    items = [reasoning, search("It has 3 seats."), message(SENTENCES[0]), call("{}")]
    begun, _, *frames = [json.loads(each.partition(b"data: ")[2]) for each in stream(*items)]
    frames = [begun, *frames]
    left: set[tuple[str, str]] = set()

    async with Guard(Judge()) as guard:

        async def left_of(chunks: list[Any]) -> str:
            async def given() -> AsyncIterator[bytes]:
                for each in chunks:
                    yield b"data: " + json.dumps(each).encode() + b"\n\n"

            sent = b"".join([frame async for frame in guarded(RESPONSES, given(), guard)]).decode()
            assert '"code":"failed"' not in sent
            last = chunks[-1].get("response")
            items = [each.get("item") for each in chunks]
            body = {**(last if isinstance(last, dict) else {}), "output": items}
            try:
                whole = GuardedResponse(RESPONSES.asked, guard, SETTINGS)
                reply, _ = await whole.whole(json.dumps(body).encode())
            except Refused:
                return sent
            return sent + json.dumps(reply)

        for at, frame in enumerate(frames):
            for number, node in enumerate(objects_in(frame)):
                names: list[list[str]] = [[name] for name in node]
                for change, form in itertools.product(
                    ([*names, [n for n in ADDED if n not in node]]), FORMS[::2]
                ):
                    changed = json.loads(json.dumps(frames))
                    objects_in(changed[at])[number] |= dict.fromkeys(change, form)
                    if SECRET in await left_of(changed):
                        left |= {(frame["type"], name) for name in change}
    assert left <= set(PROGRAMS)


CHANGED: st.SearchStrategy[Any] = st.tuples(
    st.sampled_from(["lost", "doubled", "exchanged", "output_index", "content_index", "type"]),
    st.integers(0, 99),
    st.integers(0, 99),
)


@settings(max_examples=150, deadline=None)
@given(
    items=st.lists(
        st.one_of(
            st.builds(
                lambda texts: message(*texts), st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=3)
            ),
            st.just(call()),
            st.just(search("It has 3 seats.")),
        ),
        min_size=1,
        max_size=4,
    ),
    cut=st.sampled_from([3, 9, 50]),
    changes=st.lists(CHANGED, max_size=4),
)
def test_events_out_of_order_end_well_formed_or_as_an_error(
    items: list[dict[str, Any]], cut: int, changes: list[tuple[str, int, int]]
) -> None:
    named = [{**each, "id": f"item_{at}"} for at, each in enumerate(items)]
    chunks = [json.loads(each.partition(b"data: ")[2]) for each in stream(*named, cut=cut)]
    for kind, one, other in changes:
        at, there = one % len(chunks), other % len(chunks)
        match kind:
            case "lost":
                chunks[at] = {"type": "keepalive"}
            case "doubled":
                chunks.insert(there, dict(chunks[at]))
            case "exchanged":
                chunks[at], chunks[there] = chunks[there], chunks[at]
            case "type":
                chunks[at] = {**chunks[at], "type": chunks[there]["type"]}
            case _:
                chunks[at] = {**chunks[at], kind: other % 4}

    async def given_() -> AsyncIterator[bytes]:
        for each in chunks:
            yield b"data: " + json.dumps(each).encode() + b"\n\n"

    async def run() -> None:
        async with Guard(Judge(), Policy(rules=("verdict CONTRADICTED: block",))) as guard:
            sent = b"".join([frame async for frame in guarded(RESPONSES, given_(), guard)])
        assert SECRET.encode() not in sent
        assert b'"code":"failed"' not in sent
        events = events_of(sent.decode())
        if events[-1]["type"] != "error":
            text_of(events)

    asyncio.run(run())


MANY = asked_by({**COMPLETED, "n": 3}, SETTINGS, lambda found: found)
FINISHES = ["stop", "length", "tool_calls"]


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_of_each_choice_leaves_what_came_of_it(data: st.DataObject) -> None:
    """Whatever comes between: other choices, calls of tools, and an end that is none yet."""
    came, waiting = [], {}
    for index in range(3):
        text = "".join(data.draw(st.lists(st.sampled_from(SENTENCES[:-1]), max_size=4)))
        cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)) | {0, len(text)})
        deltas: list[dict[str, Any]] = [{"content": text[start:end]} for start, end in pairwise(cuts)]
        for number in range(data.draw(st.integers(0, 2))):
            call = {"index": number, "id": f"c{number}", "function": {"name": "f", "arguments": "{"}}
            deltas.insert(data.draw(st.integers(0, len(deltas))), {"tool_calls": [call]})
        finish, always = data.draw(st.sampled_from(FINISHES)), data.draw(st.booleans())
        waiting[index] = [*((each, finish if always else None) for each in deltas), ({}, finish)]
        calls = [each["tool_calls"] for each in deltas if "tool_calls" in each]
        came.append((text, calls, finish))
    body = b""
    while any(waiting.values()):
        index = data.draw(st.sampled_from([index for index, each in waiting.items() if each]))
        chunk = {**HEAD, "choices": [choice(*waiting[index].pop(0), index)]}
        body += b"data: " + json.dumps(chunk).encode() + b"\n\n"

    async def run() -> None:
        async def given() -> AsyncIterator[bytes]:
            yield body + DONE

        async with Guard(Judge()) as guard:
            stream = GuardedCompletion(MANY, guard, SETTINGS, asyncio.get_running_loop().time() + 600)
            frames = [frame async for frame in stream.frames(given())]
        assert frames.pop() == DONE
        parts = [each for frame in frames for each in json.loads(frame[6:])["choices"]]
        for index, (text, calls, finish) in enumerate(came):
            own = [each for each in parts if each["index"] == index]
            assert "".join(each["delta"].get("content", "") for each in own) == text
            assert [each["delta"]["tool_calls"] for each in own if "tool_calls" in each["delta"]] == calls
            assert [each["finish_reason"] for each in own][-1] == finish
            assert [each["finish_reason"] for each in own[:-1]] == [None] * (len(own) - 1)

    asyncio.run(run())
