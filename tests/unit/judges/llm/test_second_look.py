"""Contexts that are not sent whole: which are, who gets a second look, and what becomes of it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from guardrail.events import Verdict
from tests.support.llm_server import Hang, LlmServer, Recorded, Reply, Status, member, verdicts
from tests.unit.judges.llm.asking import judge, request

FILLER = " ".join(f"Item {number} of the minutes was read and nothing came of it." for number in range(400))
FACT = "The premium tariff costs 73 euros."
DECOYS = [f"The tariff for clubs of {number} members costs euros too." for number in range(8)]
ELSEWHERE = "Ninety a head is what associations owe from May on, in euros."
BETWEEN = ". ".join(FILLER.split(". ")[:20]) + "."
LONG = " ".join([f"{FILLER} {FACT}", *(f"{BETWEEN} {decoy}" for decoy in DECOYS), BETWEEN, ELSEWHERE, FILLER])
CLAIM = "Premium is 73 euros."
OTHER_WORDS = "The tariff for clubs costs 90 euros."
"""What ``ELSEWHERE`` says; the decoys have more of its words."""


def by_what_is_shown(call: Recorded) -> str:
    """SUPPORTED with the sentence's number if what backs the claim is shown, else UNSUPPORTED."""
    found = {
        words: int(shown[1])
        for words in (FACT, ELSEWHERE)
        if (shown := re.search(rf"\[(\d+)\] {re.escape(words)}", call.user))
    }
    said = []
    for label in call.asked:
        asked = call.user.split(f"claim {label}]\n")[1].split("\n")[0]
        number = found.get(FACT if asked == CLAIM else ELSEWHERE)
        said.append(member(label, "UNSUPPORTED") if number is None else member(label, evidence=[number]))
    return verdicts(*said)


def chars(call: Recorded) -> int:
    return len(call.user)


async def test_contexts_that_are_not_long_are_sent_whole() -> None:
    async with LlmServer(Reply(by_what_is_shown)) as server:
        reply = await judge(server, request(CLAIM, contexts=[LONG[:20_000]]))
    assert len(server.calls) == 1
    assert chars(server.calls[0]) > 20_000
    assert "excerpts" not in reply.judgements[0].reasoning


async def test_a_claim_that_its_passages_support_is_judged_by_them() -> None:
    async with LlmServer(Reply(by_what_is_shown)) as server:
        reply = await judge(server, request(CLAIM, contexts=[LONG]), whole_context_chars=0)
    assert [judgement.verdict for judgement in reply.judgements] == [Verdict.SUPPORTED]
    assert len(server.calls) == 1
    assert chars(server.calls[0]) < 8_000
    assert "excerpts" in reply.judgements[0].reasoning


async def test_a_claim_that_its_passages_lack_is_judged_again_by_more() -> None:
    early: list[tuple[str, Verdict, int]] = []
    asked = request(CLAIM, OTHER_WORDS, contexts=[LONG])
    async with LlmServer(Reply(by_what_is_shown)) as server:
        reply = await judge(
            server,
            asked,
            lambda told: early.append((told.claim_id, told.verdict, len(server.calls))),
            whole_context_chars=0,
        )
    assert {told.claim_id: told.verdict for told in reply.judgements} == {
        "k0": Verdict.SUPPORTED,
        "k1": Verdict.SUPPORTED,
    }
    first, second = server.calls
    assert first.asked == ["c1", "c2"]
    assert second.asked == ["c2"]
    assert ELSEWHERE not in first.user
    assert ELSEWHERE in second.user
    assert chars(second) < len(LONG) / 2
    assert early[0] == ("k0", Verdict.SUPPORTED, 1)  # not held back by the other's second look
    assert asked.meter.usage.judge_calls == 2


async def test_what_is_in_no_context_is_unsupported_after_the_second_look() -> None:
    async with LlmServer(
        Reply(lambda call: verdicts(*(member(c, "UNSUPPORTED") for c in call.asked)))
    ) as server:
        reply = await judge(server, request(CLAIM, contexts=[LONG]), whole_context_chars=0)
    assert [judgement.verdict for judgement in reply.judgements] == [Verdict.UNSUPPORTED]
    assert len(server.calls) == 2


async def test_what_was_taken_for_a_contradiction_is_looked_up_again() -> None:
    said = iter(["CONTRADICTED", "SUPPORTED"])
    async with LlmServer(Reply(lambda call: verdicts(member("c1", next(said), evidence=[1])))) as server:
        reply = await judge(server, request(CLAIM, contexts=[LONG]), whole_context_chars=0)
    assert [judgement.verdict for judgement in reply.judgements] == [Verdict.SUPPORTED]


@pytest.mark.parametrize(
    "second",
    [Status(500), Reply("no verdicts here"), Reply(verdicts()), Hang()],
    ids=["error", "prose", "nothing", "silence"],
)
async def test_the_first_look_stands_if_the_second_fails(second: Any) -> None:
    async with LlmServer(Reply(lambda call: verdicts(member("c1", "UNSUPPORTED"))), second) as server:
        reply = await judge(
            server, request(CLAIM, contexts=[LONG], seconds=3.0), whole_context_chars=0, max_retries=0
        )
    (judgement,) = reply.judgements
    assert judgement.verdict is Verdict.UNSUPPORTED
    assert "excerpts" in judgement.reasoning


async def test_claims_left_out_are_asked_for_with_those_that_need_a_second_look() -> None:
    async with LlmServer(
        Reply(lambda call: verdicts(member("c1", "UNSUPPORTED"))), Reply(by_what_is_shown)
    ) as server:
        reply = await judge(server, request(CLAIM, OTHER_WORDS, contexts=[LONG]), whole_context_chars=0)
    assert server.calls[1].asked == ["c1", "c2"]
    assert [judgement.verdict for judgement in reply.judgements] == [Verdict.SUPPORTED] * 2


async def test_short_contexts_are_seen_whole_also_as_passages() -> None:
    async with LlmServer(Reply(lambda call: verdicts(member("c1", "UNSUPPORTED")))) as server:
        reply = await judge(server, request(CLAIM, contexts=[FACT]), whole_context_chars=0)
    assert len(server.calls) == 1
    assert reply.judgements[0].reasoning == ""


async def test_contexts_beyond_the_bound_get_a_second_look_at_more_of_them() -> None:
    async with LlmServer(Reply(lambda call: verdicts(member("c1", "UNSUPPORTED")))) as server:
        asked = request("The minutes of the item were read.", contexts=[LONG])
        await judge(server, asked, whole_context_chars=1_000_000, max_context_chars=20_000)
    first, second = server.calls
    assert chars(first) < chars(second) < 25_000
