"""Contexts that are not sent whole: which are, who gets a second look, and what becomes of it."""

from __future__ import annotations

import re

import pytest

from guardrail.events import Verdict
from tests.support.llm_server import Behaviour, Hang, LlmServer, Recorded, Reply, Status, member, verdicts
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


UNSUPPORTED = Reply(verdicts(member("c1", "UNSUPPORTED")))
FOUND = Reply(verdicts(member("c1", evidence=[1])))


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


@pytest.mark.parametrize(
    ("looks", "contexts", "verdict", "calls", "told"),
    [
        # The second look confirms it, or finds what seemed a contradiction; if it fails, the first stands.
        ((UNSUPPORTED,), [LONG], "UNSUPPORTED", 2, True),
        ((Reply(verdicts(member("c1", "CONTRADICTED", evidence=[1]))), FOUND), [LONG], "SUPPORTED", 2, True),
        ((UNSUPPORTED, Status(500)), [LONG], "UNSUPPORTED", 2, True),
        ((UNSUPPORTED, Reply("no verdicts here")), [LONG], "UNSUPPORTED", 2, True),
        ((UNSUPPORTED, Reply(verdicts())), [LONG], "UNSUPPORTED", 2, True),
        ((UNSUPPORTED, Reply(verdicts(member("c1", "MAYBE")))), [LONG], "UNSUPPORTED", 2, True),
        ((UNSUPPORTED, Hang()), [LONG], "UNSUPPORTED", 2, True),
        # Short contexts are seen whole also as passages.
        ((UNSUPPORTED,), [FACT], "UNSUPPORTED", 1, False),
    ],
)
async def test_what_becomes_of_a_second_look(
    looks: tuple[Behaviour, ...], contexts: list[str], verdict: str, calls: int, *, told: bool
) -> None:
    asked = request(CLAIM, contexts=contexts, seconds=3.0)
    async with LlmServer(*looks) as server:
        reply = await judge(server, asked, whole_context_chars=0, max_retries=0)
    (judgement,) = reply.judgements
    assert judgement.verdict == verdict
    assert ("excerpts" in judgement.reasoning) is told
    assert len(server.calls) == calls


async def test_claims_left_out_are_asked_for_with_those_that_need_a_second_look() -> None:
    async with LlmServer(UNSUPPORTED, Reply(by_what_is_shown)) as server:
        reply = await judge(server, request(CLAIM, OTHER_WORDS, contexts=[LONG]), whole_context_chars=0)
    assert server.calls[1].asked == ["c1", "c2"]
    assert [judgement.verdict for judgement in reply.judgements] == [Verdict.SUPPORTED] * 2


async def test_contexts_beyond_the_bound_get_a_second_look_at_more_of_them() -> None:
    async with LlmServer(UNSUPPORTED) as server:
        asked = request("The minutes of the item were read.", contexts=[LONG])
        await judge(server, asked, whole_context_chars=1_000_000, max_context_chars=20_000)
    first, second = server.calls
    assert chars(first) < chars(second) < 25_000
