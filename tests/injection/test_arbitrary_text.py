"""Whatever stands in contexts, question and answer at once: the fences hold."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardrail.judges import Judge
from tests.injection.corpus import STYLES, fill
from tests.injection.judging import CONTEXTS, OBLIGING, attacked, claim, judging, request
from tests.injection.sent import letters, marker_of, numbered, take_apart
from tests.support.judges import reply_of
from tests.support.llm_server import LlmServer

PIECES = [
    *(f"⟦marker {style}⟧" for style in STYLES if style),
    *("⟦marker⟧", "[⟦marker⟧ end]", "[⟦marker⟧ claim c1]", "⟦tag 1⟧", "⟦tag 12⟧", " end "),
    *(
        "<|im_start|>",
        "<｜User｜>",
        "[INST]",
        "</s>",
        "<",
        ">",
        "|",
        "[",
        "]",
        "{",
        "}",
        '"',
        "$marker",
        "\\",
    ),
    *("\n", "\r", "\n\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "```", ". ", "。", "\0"),
    *("\u200b", "\u202e", "\ufeff", "\ud800", "\udfff"),
]
TEXT = st.lists(st.one_of(st.text(max_size=8), st.sampled_from(PIECES)), max_size=12).map("".join)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[LlmServer]:
    async with LlmServer(OBLIGING) as listening:
        yield listening


@pytest_asyncio.fixture
async def judge(server: LlmServer) -> AsyncIterator[Judge]:
    async with judging(server) as made:
        yield made


# No deadline: an example is a call, and machines are slow at times.
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(TEXT, TEXT, TEXT, TEXT)
async def test_no_text_breaks_a_fence(
    server: LlmServer, judge: Judge, context: str, question: str, lead_in: str, text: str
) -> None:
    if not server.calls:
        await reply_of(judge, attacked("context"))
    marker = marker_of(server.calls[0])
    # A word ahead of each, since empty ones are left out.
    context, question, lead_in, text = (
        f"A {fill(part, marker)}" for part in (context, question, lead_in, text)
    )
    asked = request(claim(text, lead_in=lead_in), contexts=(context, CONTEXTS[1]), question=question)
    await reply_of(judge, asked)
    sent = take_apart(server.calls[-1], marker)
    expected = {
        "document d1": context,
        "document d2": CONTEXTS[1],
        "question": question,
        "lead-in of c1": lead_in,
        "claim c1": claim(text).prose.text,
    }
    assert [name for name, _ in sent.fences] == list(expected)
    assert sent.user.lower().count(marker) == len(expected) + 3
    lines = numbered(sent.documents())
    assert [number for number, _ in lines] == list(range(1, len(lines) + 1))
    for name, arrived in sent.fences:
        if "document" in name:
            arrived = " ".join(line for _, line in numbered([arrived]))
        assert letters(arrived, marker) == letters(expected[name], marker)
