"""Contexts that are not sent whole: which are, who gets a second look, and what becomes of it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from guardrail.events import Verdict
from guardrail.judges.llm import LlmJudge
from guardrail.judges.llm.judge import ContextChoice
from tests.support.judges import reply_of
from tests.support.llm_server import Hang, LlmServer, Recorded, Reply, Status, member, verdicts
from tests.unit.judges.llm.asking import judge, request, settings

FILLER = " ".join(f"Item {number} of the minutes was read and nothing came of it." for number in range(400))
FACT = "The premium tariff costs 73 euros."
ELSEWHERE = "Quarantine lasts nine weeks for every kind of ferret."
LONG = f"{FILLER} {FACT} {FILLER} {ELSEWHERE}"
CLAIM = "Premium is 73 euros."
OTHER_WORDS = "Item 7 is a pet that stays away for 63 days."


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


async def test_contexts_that_fit_are_sent_whole_while_nothing_says_that_passages_are_cheaper() -> None:
    async with LlmServer(Reply(by_what_is_shown)) as server:
        reply = await judge(server, request(CLAIM, contexts=[LONG[:30_000]]))
    assert len(server.calls) == 1
    assert chars(server.calls[0]) > 30_000
    assert "excerpts" not in reply.judgements[0].reasoning


async def test_a_claim_that_its_passages_support_is_judged_by_them() -> None:
    async with LlmServer(Reply(by_what_is_shown)) as server:
        reply = await judge(server, request(CLAIM, contexts=[LONG]), contexts="passages")
    assert [judgement.verdict for judgement in reply.judgements] == [Verdict.SUPPORTED]
    assert len(server.calls) == 1
    assert chars(server.calls[0]) < 8_000
    assert "excerpts" in reply.judgements[0].reasoning


async def test_a_claim_that_its_passages_lack_is_judged_again_by_all() -> None:
    early: list[tuple[str, Verdict, int]] = []
    asked = request(CLAIM, OTHER_WORDS, contexts=[LONG])
    async with LlmServer(Reply(by_what_is_shown)) as server:
        reply = await judge(
            server,
            asked,
            lambda told: early.append((told.claim_id, told.verdict, len(server.calls))),
            contexts="passages",
        )
    assert {told.claim_id: told.verdict for told in reply.judgements} == {
        "k0": Verdict.SUPPORTED,
        "k1": Verdict.SUPPORTED,
    }
    first, second = server.calls
    assert first.asked == ["c1", "c2"]
    assert second.asked == ["c2"]
    assert ELSEWHERE not in first.user
    assert chars(second) > len(LONG)
    assert early[0] == ("k0", Verdict.SUPPORTED, 1)  # not held back by the other's second look
    assert "excerpts" not in reply.judgements[-1].reasoning
    assert asked.meter.usage.judge_calls == 2


async def test_what_is_in_no_context_is_unsupported_after_the_second_look() -> None:
    async with LlmServer(
        Reply(lambda call: verdicts(*(member(c, "UNSUPPORTED") for c in call.asked)))
    ) as server:
        reply = await judge(server, request(CLAIM, contexts=[LONG]), contexts="passages")
    assert [judgement.verdict for judgement in reply.judgements] == [Verdict.UNSUPPORTED]
    assert len(server.calls) == 2


async def test_what_was_taken_for_a_contradiction_is_looked_up_again() -> None:
    said = iter(["CONTRADICTED", "SUPPORTED"])
    async with LlmServer(Reply(lambda call: verdicts(member("c1", next(said), evidence=[1])))) as server:
        reply = await judge(server, request(CLAIM, contexts=[LONG]), contexts="passages")
    assert [judgement.verdict for judgement in reply.judgements] == [Verdict.SUPPORTED]


@pytest.mark.parametrize(
    "second",
    [Status(500), Reply("no verdicts here"), Reply(verdicts()), Hang()],
    ids=["error", "prose", "nothing", "silence"],
)
async def test_the_first_look_stands_if_the_second_fails(second: Any) -> None:
    async with LlmServer(Reply(lambda call: verdicts(member("c1", "UNSUPPORTED"))), second) as server:
        reply = await judge(
            server, request(CLAIM, contexts=[LONG], seconds=3.0), contexts="passages", max_retries=0
        )
    (judgement,) = reply.judgements
    assert judgement.verdict is Verdict.UNSUPPORTED
    assert "excerpts" in judgement.reasoning


async def test_claims_left_out_are_asked_for_with_those_that_need_a_second_look() -> None:
    async with LlmServer(
        Reply(lambda call: verdicts(member("c1", "UNSUPPORTED"))), Reply(by_what_is_shown)
    ) as server:
        reply = await judge(server, request(CLAIM, OTHER_WORDS, contexts=[LONG]), contexts="passages")
    assert server.calls[1].asked == ["c1", "c2"]
    assert [judgement.verdict for judgement in reply.judgements] == [Verdict.SUPPORTED] * 2


async def test_short_contexts_are_seen_whole_also_as_passages() -> None:
    async with LlmServer(Reply(lambda call: verdicts(member("c1", "UNSUPPORTED")))) as server:
        reply = await judge(server, request(CLAIM, contexts=[FACT]), contexts="passages")
    assert len(server.calls) == 1
    assert reply.judgements[0].reasoning == ""


async def test_contexts_beyond_the_bound_get_a_second_look_at_more_of_them() -> None:
    async with LlmServer(Reply(lambda call: verdicts(member("c1", "UNSUPPORTED")))) as server:
        asked = request("The minutes of the item were read.", contexts=[LONG])
        await judge(server, asked, contexts="whole", max_context_chars=20_000)
    first, second = server.calls
    assert chars(first) < chars(second) < 25_000


async def test_a_server_that_does_not_cache_gets_passages_in_time() -> None:
    """Fifteen responses of three calls each, with contexts of 23,000 characters."""

    async def sent(cached: int | None) -> list[int]:
        details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
        usage = {"prompt_tokens": 6_000, "completion_tokens": 20, "total_tokens": 6_020} | details
        async with LlmServer(Reply(by_what_is_shown, usage=usage)) as server:
            judging = LlmJudge(settings(server))
            for number in range(15):
                for _ in range(3):
                    asked = request(CLAIM, contexts=[f"{FILLER} {FACT}"], response_id=f"r{number}")
                    await reply_of(judging, asked)
            await judging.aclose()
        return [chars(call) for call in server.calls]

    assert min(await sent(5_800)) > 20_000
    assert min(await sent(None)) > 20_000
    uncached = await sent(0)
    assert uncached[0] > 20_000
    assert uncached[-1] < 8_000
    for number in range(15):  # a response's calls carry the same
        assert len({size > 20_000 for size in uncached[3 * number : 3 * number + 3]}) == 1


def test_very_long_contexts_are_not_worth_sending_whole_even_if_cached() -> None:
    choice = ContextChoice(settings())
    assert not choice.excerpts(request(CLAIM, contexts=["x " * 5_000], response_id="short"))
    assert choice.excerpts(request(CLAIM, contexts=["x " * 50_000], response_id="long"))


def test_a_price_list_says_what_caching_saves() -> None:
    class Free:
        def cost_usd(self, model: str, read: int, cached: int, written: int) -> float:
            return float(read - cached)

    class Full(Free):
        def cost_usd(self, model: str, read: int, cached: int, written: int) -> float:
            return float(read)

    asked = request(CLAIM, contexts=["x " * 10_000])
    assert not ContextChoice(settings(), Free()).excerpts(asked)
    assert ContextChoice(settings(), Full()).excerpts(asked)
