"""However the upstream's bytes are cut and written, nothing leaves the gateway without its verdict."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import AsyncIterable, AsyncIterator
from itertools import pairwise
from typing import Any

from chunk_invariance import assert_chunk_invariant_async
from hypothesis import given, settings
from hypothesis import strategies as st

from consumers.gateway import GuardedStream, Refused, ServeSettings, WholeCompletion, asked_by
from guardrail import Guard
from guardrail.testing import ScriptedJudge
from tests.support.chat_upstream import DONE, HEAD, choice, events

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
ASKED = asked_by(
    {
        "model": "any-model",
        "messages": [{"role": "user", "content": "Which?"}],
        "stream": True,
        "guardrail": {"contexts": ["The basic plan costs $49 a month."]},
    },
    ServeSettings(),
    lambda found: found,
)


class Judge(ScriptedJudge):
    """Withholds what has the secret, and is slower than the stream."""

    def __init__(self) -> None:
        super().__init__({SECRET: "CONTRADICTED"})

    async def judge(self, request: Any) -> Any:
        await asyncio.sleep(0)
        async for judgement in super().judge(request):
            yield judgement


async def guarded(pieces: AsyncIterable[bytes], guard: Guard) -> AsyncIterator[bytes]:
    """What leaves of it, without the answer's own id."""

    async def given() -> AsyncIterator[bytes]:
        async for piece in pieces:
            yield piece
            await asyncio.sleep(0)

    stream = GuardedStream(ASKED, guard, ServeSettings(), asyncio.get_running_loop().time() + 600)
    async for frame in stream.frames(given()):
        yield re.sub(rb'("(?:response|claim)_id":)"[0-9a-f]+"', rb'\1"an-id"', frame)


STREAM = b"".join(
    events("The basic plan costs ", "5 €. The list ", f"has 4 😀. It is {SECRET}", " 7.", " Fine.")
)


async def test_every_cut_gives_the_same_bytes() -> None:
    async with Guard(Judge()) as guard:

        async def at_once() -> AsyncIterator[bytes]:
            yield STREAM

        whole = b"".join([frame async for frame in guarded(at_once(), guard)])
        assert SECRET.encode() not in whole
        assert "5 €".encode() in whole
        tried = await assert_chunk_invariant_async(
            lambda pieces: guarded(pieces, guard), lambda _: whole, STREAM
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


@settings(max_examples=150, deadline=None)
@given(
    data=st.data(),
    sentences=st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=5),
    ending=st.sampled_from(["\n", "\r\n", "\r"]),
    mark=st.sampled_from(["", "\ufeff"]),
)
def test_only_text_with_a_verdict_leaves(
    data: st.DataObject, sentences: list[str], ending: str, mark: str
) -> None:
    text = "".join(sentences)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=12)) | {0, len(text)})
    deltas = [text[start:end] for start, end in pairwise(cuts)]
    forms = st.sampled_from(["plain", "lines", "comment", "named"])
    raw = mark + "".join(
        written(
            json.dumps({**HEAD, "choices": [choice(*each)]}, ensure_ascii=False), ending, data.draw(forms)
        )
        for each in [*(({"content": delta}, None) for delta in deltas), ({}, "stop")]
    )
    body = raw.encode() + DONE
    end = data.draw(st.sampled_from([len(body), data.draw(st.integers(0, len(body)))]))
    places = sorted(data.draw(st.sets(st.integers(0, end), max_size=20)) | {0, end})
    pieces = [body[start:stop] for start, stop in pairwise(places)]

    async def run() -> None:
        judge = Judge()

        async def given() -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece

        shown, sent, last = "", b"", b""
        async with Guard(judge) as guard:
            frames = [(frame, " ".join(judge.claims)) async for frame in guarded(given(), guard)]
        for frame, judged in frames:
            sent, last = sent + frame, frame
            if frame.startswith(b"data: {"):
                chunk = json.loads(frame.removeprefix(b"data: "))
                for part in chunk.get("choices", ()):
                    shown += part["delta"].get("content", "")
                told = shown.partition("\n\nThis answer was withheld")[0]
                for words in CLAIMS:
                    assert words not in told or words in judged
        assert SECRET.encode() not in sent
        kept = shown.partition("This answer was withheld")[0].removesuffix("\n\n")
        assert text.startswith(kept)
        assert (last == DONE) is (b'"error"' not in sent)
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

            sent = b"".join([frame async for frame in guarded(given(), guard)])
            try:
                body = json.dumps({**chunk, "choices": [whole]}).encode()
                reply, _ = await WholeCompletion(ASKED, guard, ServeSettings()).guarded(body)
            except Refused:
                reply = {}
            assert b'"code":"failed"' not in sent, (place, name, form)
            if SECRET in sent.decode() + json.dumps(reply):
                left.add((place, name))
    assert left == set()
