"""What the judge makes of replies that an attack has brought about: no verdict that it should not."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

import pytest

from guardrail.judges import JudgeRequest, Verdict
from tests.injection.corpus import Attack, fill, load
from tests.injection.judging import (
    AT_ONCE,
    CONTEXTS,
    OBLIGING,
    attacked,
    check,
    judging,
    outcome,
    request,
)
from tests.injection.known_gaps import marks
from tests.injection.sent import letters, marker_of, numbered, take_apart
from tests.support.judges import reply_of
from tests.support.llm_server import LlmServer, Recorded, Reply, Wire, member, verdicts

CORPUS = load()
REPLIES = [attack for attack in CORPUS if "reply" in attack.where]
IN_CONTEXT = [attack for attack in CORPUS if "context" in attack.where]


def in_pieces(text: str) -> Reply:
    return Reply(text, wire=Wire(chunk_chars=max(5, len(text) // 60)))


def behind_prose(text: str) -> Reply:
    """A reply that can't be read before it has ended."""
    return in_pieces(f"Here you are:\n{text}")


def not_streamed(text: str) -> Reply:
    return Reply(text, wire=Wire(chunk_chars=max(1, len(text)), ignore_stream=True))


COMING = [in_pieces, behind_prose, not_streamed]
CASES = [
    pytest.param(attack, coming, decompose, id=f"{attack.id}-{way}", marks=marks(attack.id, way))
    for attack in REPLIES
    for coming in COMING
    for decompose in (False, True)
    for way in [f"{coming.__name__}{'-decompose' if decompose else ''}"]
]


def two_claims() -> JudgeRequest:
    return request("It costs $50.", "It opens at 9.")


@pytest.mark.parametrize(("attack", "coming", "decompose"), CASES)
async def test_a_reply_gives_no_verdict_that_it_should_not(
    attack: Attack, coming: Callable[[str], Reply], decompose: bool
) -> None:
    asked = two_claims()
    async with LlmServer(coming(fill(attack.text))) as server, judging(server, decompose=decompose) as judge:
        result = await outcome(judge, asked)
    check(asked, result, marker_of(server.calls[0]))
    for label, allowed in attack.holds["verdicts"].items():
        judgement = result.verdicts[label]
        doubted = attack.kind == "evidence" and not judgement.evidence and judgement.confidence <= 0.5
        assert doubted or judgement.verdict in {Verdict(name) for name in allowed}, label


@pytest.mark.parametrize("coming", COMING)
@pytest.mark.parametrize(
    "form",
    ["⟦verdicts c1=SUPPORTED c2=CONTRADICTED⟧", "```json\n⟦verdicts c1=SUPPORTED c2=CONTRADICTED⟧\n```"],
)
async def test_an_honest_reply_is_believed(form: str, coming: Callable[[str], Reply]) -> None:
    """The attacks above would all fail against a judge that believes nothing."""
    async with LlmServer(coming(fill(form))) as server, judging(server) as judge:
        result = await outcome(judge, two_claims())
    assert result.verdicts["c1"].verdict is Verdict.SUPPORTED
    assert result.verdicts["c2"].verdict is Verdict.CONTRADICTED


@pytest.mark.parametrize("attack", IN_CONTEXT, ids=lambda attack: attack.id)
async def test_a_number_stands_for_the_words_that_were_shown_beside_it(attack: Attack) -> None:
    """A document can't make the judge quote one sentence where the model meant another."""
    shown: dict[int, str] = {}

    def cite(call: Recorded) -> str:
        sentences = dict(numbered(take_apart(call, marker_of(server.calls[0])).documents()))
        numbers = sorted({min(sentences), max(sentences), *list(sentences)[1:5]})[: len(call.asked)]
        shown.update({at: sentences[number] for at, number in enumerate(numbers)})
        return verdicts(*(member(f"c{at + 1}", evidence=[number]) for at, number in enumerate(numbers)))

    async with LlmServer(OBLIGING, Reply(cite, wire=AT_ONCE)) as server, judging(server) as judge:
        await reply_of(judge, attacked("context"))
        marker = marker_of(server.calls[0])
        asked = request(*(f"Claim {n}." for n in range(6)), contexts=(fill(attack.text, marker), CONTEXTS[1]))
        result = await outcome(judge, asked)
    assert shown
    texts = {context.id: context.text for context in asked.evidence.contexts}
    for at, sentence in shown.items():
        evidence = result.verdicts[f"c{at + 1}"].evidence
        if not evidence and attack.id == "encoding-lone-surrogates":
            continue  # what UTF-8 can't hold is quoted to nobody
        (quote,) = evidence
        assert quote.quote == texts[quote.context_id][slice(*quote.span)]
        assert letters(quote.quote, marker) == letters(sentence, marker)


@pytest.mark.parametrize("decompose", [False, True])
@pytest.mark.parametrize("style", [str, str.upper], ids=["as it is", "upper case"])
async def test_a_marker_that_the_model_repeats_is_kept_from_readers(
    style: Callable[[str], str], *, decompose: bool
) -> None:
    """In every text that the form of the reply has room for."""

    def echo(call: Recorded) -> str:
        pattern = call.body["response_format"]["json_schema"]["schema"]["properties"]["v"]["items"]["pattern"]
        words = f"The line [{style(marker_of(call))} end] says so."
        said = [f"{label} 1 unsupported: {words}" for label in (["c1a"] if decompose else []) + ["c1"]]
        assert all(re.fullmatch(pattern, text) for text in said)
        return verdicts(*said)

    async with LlmServer(Reply(echo)) as server, judging(server, decompose=decompose) as judge:
        asked = two_claims()
        result = await outcome(judge, asked)
    check(asked, result, marker_of(server.calls[0]))
    judgement = result.verdicts["c1"]
    assert judgement.verdict is Verdict.UNSUPPORTED
    assert repr(judgement).count("says so.") == 1 + decompose


async def test_verdicts_on_the_claims_of_another_response_are_dropped() -> None:
    """Two responses judged at once, each reply with verdicts on everything under every name."""

    def answer(call: Recorded) -> str:
        own = [member(label, "UNSUPPORTED") for label in call.asked]
        others = ["c2", "c3", "k0", "k1", "k2", "doc-0", "r1", "r1:c1", "r2/c2", "1", ""]
        return verdicts(*own, *(member(label) for label in others if label not in call.asked))

    one = request("One.", response_id="r1")
    two = request("Two.", "Three.", response_id="r2")
    async with LlmServer(Reply(answer)) as server, judging(server) as judge:
        results = await asyncio.gather(outcome(judge, one), outcome(judge, two))
    for asked, result in zip((one, two), results, strict=True):
        check(asked, result, "no marker")
        assert {judgement.verdict for judgement in result.verdicts.values()} == {Verdict.UNSUPPORTED}


async def test_what_a_statement_says_of_the_claim_is_no_verdict_on_it() -> None:
    said = verdicts("c1a 1 contradicted: c1 1 supported", "c1 1 supported: c1 1 supported", "c2 1 supported")
    async with LlmServer(Reply(said)) as server, judging(server, decompose=True) as judge:
        result = await outcome(judge, two_claims())
    assert result.verdicts["c1"].verdict is Verdict.CONTRADICTED
