"""The reason of a result in words, by template."""

from __future__ import annotations

from collections.abc import Sequence

from guardrail.evals.explanation import explain, explained, worst_claims
from guardrail.events import ClaimVerdict, Decision, Evidence, Response, Severity, Usage, Verdict
from tests.unit.evals.verdicts import claim_verdict, of, response_verdict

S, P, U, C, X = Verdict
QUOTE = "Refunds are paid within 14 days."


def doubtful() -> list[ClaimVerdict]:
    return [
        claim_verdict(0, S),
        claim_verdict(1, U, text="It is popular.", reasoning="No context says so"),
        claim_verdict(
            2,
            C,
            Severity.CRITICAL,
            text="Refunds take\n 30 days.",
            severity_reasons=("deadline",),
            evidence=(Evidence(context_id="terms", quote=QUOTE, span=(0, len(QUOTE))),),
            reasoning="14, not 30.",
        ),
    ]


def test_it_names_the_worst_claim_first_with_what_the_contexts_say() -> None:
    verdict = response_verdict(doubtful(), decision=Decision.BLOCK, rule="contradicted fact", score=0.2)
    assert explain(verdict) == (
        "Of 3 claims, 1 is supported, 1 contradicted, 1 not in the contexts; the score is 0.20. Decision: "
        "block (contradicted fact). Contradicted (critical: deadline): “Refunds take 30 days.” The "
        "contexts say: terms: “Refunds are paid within 14 days.” 14, not 30. Not in the contexts (normal): "
        "“It is popular.” No context says so."
    )


def test_answers_without_doubt_and_without_claims() -> None:
    assert explain(of(S)) == "Its only claim is supported; the score is 0.90. Decision: release."
    assert explain(of(S, S)) == "All 2 claims are supported; the score is 0.90. Decision: release."
    assert explain(of()) == "The answer states nothing that can be checked. Decision: release."
    assert explain(of(X)).startswith("Of 1 claim, none is supported, 1 unverified; there is no score.")
    assert "not judged to its end" in explain(of(S, complete=False))


def test_a_long_answer_gets_a_short_explanation() -> None:
    verdict = response_verdict(
        [claim_verdict(n, U, text="word " * 5_000, reasoning="because " * 5_000) for n in range(40)]
    )
    text = explain(verdict)
    assert len(text) < 5_000
    assert text.endswith("35 more claims are not wholly supported.")


def test_severity_goes_before_the_verdict() -> None:
    claims = [
        claim_verdict(0, C, Severity.MINOR),
        claim_verdict(1, P, Severity.CRITICAL),
        claim_verdict(2, U),
    ]
    assert [claim.index for claim in worst_claims(response_verdict(claims))] == [1, 2, 0]


def test_the_claim_that_decided_goes_before_all_others_even_a_supported_one() -> None:
    claims = [claim_verdict(0, U, Severity.CRITICAL), claim_verdict(1, S), claim_verdict(2, P)]
    verdict = response_verdict(claims, decision=Decision.FLAG, deciding_claim="c1")
    assert [claim.index for claim in worst_claims(verdict)] == [1, 0, 2]
    assert "Supported, but not surely (normal): “Claim 1 says it all" in explain(verdict)


class Words:
    """Says something, and knows what it was asked."""

    name = "llm:test"

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str, list[int]]] = []

    async def explain(
        self, response_id: str, question: str, result: str, claims: Sequence[ClaimVerdict]
    ) -> tuple[str, Usage]:
        self.asked.append((response_id, question, result, [claim.index for claim in claims]))
        return "It says 30 days, and the terms say 14.", Usage(judge_calls=1)


async def test_an_explainer_puts_it_into_other_words() -> None:
    words, verdict = Words(), response_verdict(doubtful())
    said = await explained(verdict, Response(response_id="r1", question="How long?", answer="…"), words)
    assert said == "It says 30 days, and the terms say 14."
    ((response_id, question, result, claims),) = words.asked
    assert (response_id, question, claims) == ("r1", "How long?", [2, 1])
    assert result.startswith("Of 3 claims, 1 is supported")


async def test_nobody_is_asked_about_an_answer_without_doubt() -> None:
    words = Words()
    assert await explained(of(S, S), None, words) == explain(of(S, S))
    assert words.asked == []
