"""The four-verdict prompt's output, its binary and batch variants, and their schemas."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail.evals.explanation import explain
from guardrail.evals.four_verdicts import (
    BinaryVerdicts,
    FourVerdicts,
    VerdictsBatch,
    binary_verdicts,
    binary_verdicts_batch,
    four_verdicts,
    four_verdicts_batch,
)
from guardrail.evals.results import EvaluationResult
from guardrail.events import ClaimPart, Evidence, Response, Severity, Verdict
from tests.unit.evals.verdicts import claim_verdict, of, response_verdict

S, P, U, C, X = Verdict


def test_the_prompts_output() -> None:
    quotes = tuple(
        Evidence(context_id="d", quote=quote, span=(0, len(quote))) for quote in ("14 days.", "Not 30.")
    )
    verdict = response_verdict(
        [
            claim_verdict(0, S),
            claim_verdict(1, C, evidence=quotes, reasoning="14, not 30."),
            claim_verdict(2, X),
            claim_verdict(3, P),
        ]
    )
    output = four_verdicts(verdict)
    assert [(claim.claim, claim.verdict, claim.evidence, claim.reasoning) for claim in output.claims] == [
        (verdict.claims[0].text, "SUPPORTED", None, ""),
        (verdict.claims[1].text, "CONTRADICTED", "14 days.\nNot 30.", "14, not 30."),
        (verdict.claims[3].text, "PARTIALLY_SUPPORTED", None, ""),
    ]
    assert output.faithfulness_score == pytest.approx(1 / 3)
    assert output.hallucinated_claims == (verdict.claims[1].text,)
    assert output.unverified_claims == (verdict.claims[2].text,)
    assert "the score is 0.33" in output.overall_assessment
    assert four_verdicts(verdict, explain(verdict)) == output
    assert four_verdicts(verdict, "In other words.").overall_assessment == "In other words."
    assert json.loads(output.model_dump_json())["claims"][0]["evidence"] is None


def test_the_parts_of_a_claim_are_claims_of_the_prompt() -> None:
    parts = (ClaimPart(text="It opened in 1931.", verdict=S), ClaimPart(text="It seats 900.", verdict=C))
    quote = Evidence(context_id="d", quote="It seats 400.", span=(0, 13))
    wrong = claim_verdict(0, C, parts=parts, evidence=(quote,), reasoning="400, not 900.")
    output = four_verdicts(response_verdict([wrong, claim_verdict(1, S)]))
    assert [(claim.claim, claim.verdict, claim.evidence, claim.reasoning) for claim in output.claims[:2]] == [
        ("It opened in 1931.", "SUPPORTED", "It seats 400.", ""),
        ("It seats 900.", "CONTRADICTED", "It seats 400.", "400, not 900."),
    ]
    assert output.faithfulness_score == pytest.approx(2 / 3)
    assert output.hallucinated_claims == ("It seats 900.",)


def test_what_the_severity_variant_asks_for_stands_beside_the_rest() -> None:
    claims = [claim_verdict(0, S, Severity.CRITICAL), claim_verdict(1, U, Severity.MINOR)]
    verdict = response_verdict([*claims, claim_verdict(2, X, Severity.MAJOR)])
    for output in (four_verdicts(verdict), binary_verdicts(verdict)):
        assert [claim.severity for claim in output.claims] == [Severity.CRITICAL, Severity.MINOR]
        assert output.severity_weighted_score == verdict.score
        assert (verdict.score or 0) > (output.faithfulness_score or 0) == 0.5


def test_the_binary_variant_calls_everything_else_unsupported() -> None:
    verdict = of(S, P, U, C, X)
    output = binary_verdicts(verdict)
    assert [claim.verdict for claim in output.claims] == ["SUPPORTED", *["UNSUPPORTED"] * 3]
    assert output.faithfulness_score == 0.25
    assert output.hallucinated_claims == tuple(claim.text for claim in verdict.claims[1:4])


def test_the_batch_variant_keeps_the_order_and_counts_no_error_as_a_score() -> None:
    def result(number: int, **changes: Any) -> EvaluationResult:
        response = Response(response_id=f"r{number}", question=f"Q{number}?", answer="…")
        return EvaluationResult(response=response, **changes)

    results = [
        result(1, verdict=of(S, S)),
        result(2, error="the judge could not be asked"),
        result(3, verdict=of(S, U), explanation="Half of it."),
        result(4, verdict=of()),
        EvaluationResult(place="line 5", error="not valid JSON"),
    ]
    output = four_verdicts_batch(results)
    assert [entry.id for entry in output.evaluations] == ["r1", "r2", "r3", "r4", "line 5"]
    assert (output.mean_faithfulness_score, output.evaluated, output.failed) == (0.75, 2, 2)
    assert output.evaluations[1].error == "the judge could not be asked"
    assert output.evaluations[1].evaluation is None
    third = output.evaluations[2].evaluation
    assert third is not None
    assert (third.faithfulness_score, third.overall_assessment) == (0.5, "Half of it.")
    assert binary_verdicts_batch(results).mean_faithfulness_score == 0.75
    assert four_verdicts_batch([]).mean_faithfulness_score is None


def test_a_verdict_without_its_claims_is_refused() -> None:
    stored = of(S).model_copy(update={"claims": (), "omitted": ("claims.evidence", "claims")})
    with pytest.raises(ValueError, match="'r1': it was stored without its claims; evaluate"):
        four_verdicts(stored)


@given(st.lists(st.sampled_from(Verdict), max_size=12))
@settings(max_examples=25)
def test_outputs_fit_their_schemas_and_can_be_read_again(verdicts: list[Verdict]) -> None:
    verdict = of(*verdicts)
    results = [EvaluationResult(verdict=verdict), EvaluationResult(error="why")]
    for output in (
        four_verdicts(verdict),
        binary_verdicts(verdict),
        four_verdicts_batch(results),
        binary_verdicts_batch(results),
    ):
        jsonschema.validate(json.loads(output.model_dump_json()), type(output).model_json_schema())
        assert type(output).model_validate_json(output.model_dump_json()) == output


def test_the_schema_knows_four_verdicts_and_two() -> None:
    four = FourVerdicts.model_json_schema()["$defs"]["FourVerdictClaim"]["properties"]["verdict"]["enum"]
    assert four == ["SUPPORTED", "PARTIALLY_SUPPORTED", "UNSUPPORTED", "CONTRADICTED"]
    two = BinaryVerdicts.model_json_schema()["$defs"]["BinaryClaim"]["properties"]["verdict"]["enum"]
    assert two == ["SUPPORTED", "UNSUPPORTED"]
    assert "evaluations" in VerdictsBatch[FourVerdicts].model_json_schema()["properties"]
