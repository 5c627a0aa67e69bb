"""Whatever two judges say or fail to say: one verdict a claim, and none better than what was checked."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail.errors import JudgeUnavailable
from guardrail.events import Severity
from guardrail.judges import Judgement, Usage, Verdict
from guardrail.judges.cascade import Band, CascadeJudge, CascadeSettings
from tests.support.constants import made
from tests.support.judges import reply_of
from tests.unit.judges.doubles import ScriptedJudge, judgement, request

TEXTS = ("a", "b", "c")
PROBABILITY = st.floats(0, 1)


@st.composite
def lines(draw: st.DrawFn, judge: str) -> dict[str, Judgement]:
    """What a judge says of some of the claims, sense or nonsense."""
    said = {}
    for text in draw(st.sets(st.sampled_from(TEXTS))):
        verdict = draw(st.sampled_from(Verdict))
        support = draw(st.one_of(st.none(), PROBABILITY, st.just(9.0), st.just(float("nan"))))
        said[text] = judgement("", verdict, support, judge=judge, confidence=draw(PROBABILITY))
    return said


@st.composite
def judges(draw: st.DrawFn, name: str) -> ScriptedJudge:
    error = draw(st.sampled_from([None, JudgeUnavailable("down"), RuntimeError("bug")]))
    early = draw(st.lists(st.sampled_from(TEXTS), unique=True))
    return ScriptedJudge(draw(lines(name)), name=name, error=error, early=early, usage=Usage())


@st.composite
def cascades(draw: st.DrawFn) -> CascadeSettings:
    bands = {}
    for severity in Severity:
        low, high = sorted([draw(PROBABILITY), draw(PROBABILITY)])
        bands[severity] = made(Band, accept_support=high, reject_support=low)
    return made(
        CascadeSettings,
        bands=bands,
        on_unavailable=draw(
            st.dictionaries(st.sampled_from(Severity), st.sampled_from(["local", "unverified"]))
        ),
        least_call_ms=draw(st.sampled_from([0, 10_000_000])),
    )


@settings(max_examples=200)
@given(
    judges("local"), judges("llm:m"), cascades(), st.lists(st.sampled_from(Severity), min_size=3, max_size=3)
)
def test_one_verdict_a_claim_given_by_a_tier_or_unverified(
    first: ScriptedJudge, second: ScriptedJudge, bounds: CascadeSettings, severities: list[Severity]
) -> None:
    asked = request(*TEXTS, severities=severities)
    reply = asyncio.run(reply_of(CascadeJudge(first, second, bounds), asked))

    assert [found.claim_id for found in reply.judgements] == list(asked.claims)
    for found in reply.judgements:
        text = asked.claims[found.claim_id].text
        said = {"local": first.script.get(text), "llm:m": second.script.get(text)}
        if found.verdict is Verdict.UNVERIFIED:
            assert found.support is None
            continue
        own = said[found.judge]
        assert isinstance(own, Judgement)
        assert (found.verdict, found.support, found.confidence) == (own.verdict, own.support, own.confidence)
