"""Claims: their spans, texts, lead-ins and severities."""

from __future__ import annotations

from typing import Any

import pytest

from guardrail.claims import MAX_LEAD_IN_CHARS, Claim, ClaimCutter
from guardrail.claims.assent import answers, stated_by
from guardrail.claims.cutter import MOST_CLAIMS
from guardrail.events import SegmentKind, Severity
from tests.support.tables import table

ASSENT = table(__file__, "assent.yaml")
LEAD_INS: dict[str, dict[str, Any]] = table(__file__, "lead_ins.yaml")


class LengthRater:
    """Critical when there is a digit; the reason names the kind."""

    def rate(self, text: str, kind: SegmentKind) -> tuple[Severity, tuple[str, ...]]:
        critical = any(c.isdigit() for c in text)
        return (Severity.CRITICAL if critical else Severity.NORMAL), (kind.value,)


def claims(text: str, *, question: str = "", bound: int = 600) -> list[Claim]:
    cutter = ClaimCutter(LengthRater(), question=question, max_segment_chars=bound)
    found = [c for i in range(0, len(text), 3) for cut in cutter.feed(text[i : i + 3]) for c in cut.claims]
    found += [c for cut in cutter.finish() for c in cut.claims]
    for claim in found:
        assert text[claim.start : claim.end] == claim.text
    assert [c.index for c in found] == list(range(len(found)))
    return found


def lead_ins(text: str) -> dict[str, str]:
    return {c.text: c.lead_in for c in claims(text)}


def test_a_claim_knows_its_place_and_severity() -> None:
    text = "Hello! The dose is 5 mg.\n\n- *Never* more.\n"
    dose, never = claims(text)
    assert (dose.text, dose.segment, dose.severity, dose.severity_reasons) == (
        "The dose is 5 mg.",
        1,
        Severity.CRITICAL,
        ("sentence",),
    )
    assert (never.text, never.segment, never.severity_reasons) == ("*Never* more.", 2, ("list_item",))


@pytest.mark.parametrize("case", LEAD_INS.values(), ids=LEAD_INS)
def test_what_leads_in_to_a_claim(case: dict[str, Any]) -> None:
    assert lead_ins(case["text"]) == case["led"]


def test_what_goes_on_behind_the_bound_is_led_in_by_what_was_cut() -> None:
    first, second = claims("aspirin " * 8 + "is safe for most people", bound=64)
    assert second.lead_in == first.text


def test_lead_ins_are_bounded() -> None:
    text = "Aspirin " + "is very, very " * 35 + "safe. It is cheap. It is old. It is sold here."
    for claim in claims(text):
        assert len(claim.lead_in) <= MAX_LEAD_IN_CHARS


def test_a_honest_i_dont_know_holds_no_claim() -> None:
    assert (
        claims("I'm sorry, but I can't find this in the documents. Let me know if you need anything else!")
        == []
    )


def test_code_and_headings_hold_no_claims_unless_they_hold_data() -> None:
    assert claims("# Dosage\n```python\ndose = 5\n```\n") == []
    assert [c.text for c in claims("# Dosage\n```\ndose = 5\n```\n")] == ["dose = 5"]


def test_lists_of_sources_hold_no_claims_but_what_they_state() -> None:
    assert [c.text for c in claims("## Sources\n- kb-2214\n- The fee is $5.\n")] == ["The fee is $5."]
    assert len(claims("We sell:\n- pricing.pdf\n")) == 1


@pytest.mark.parametrize(
    "text",
    [
        "References\n1. https://ex.org/rooms\n2. [Price list](https://ex.org/prices)\n",
        "## Sources\n\n1. https://ex.org/visit\n2. https://ex.org/terms\n",
        "**References:**\n1. Smith, *Price list*, 2021\n2. pricing.pdf\n",
        "**Quellen:**\n- museum.example/visit\n- Hausordnung\n",
    ],
)
def test_a_list_of_sources_states_nothing(text: str) -> None:
    assert claims(text) == []
    assert len(claims(text + "3. The fee is $9.\n")) == 1


def test_table_header_row_holds_no_claim_and_data_rows_do() -> None:
    assert [c.text for c in claims("| Plan | Price |\n|---|---|\n| Basic | $10 |")] == ["Basic | $10"]
    assert [c.text for c in claims("| Dose | 500 mg |\n| Limit | 4 g |")] == ["Dose | 500 mg", "Limit | 4 g"]


def test_a_short_total_is_led_in_by_the_lines_above_it_and_no_long_sentence_is() -> None:
    found = lead_ins(
        "* Two beds: $80\n* One desk: $35\n\n**Total: $115**\n\n"
        "The term is two years. The total liability of either party is limited to what was paid in a year."
    )
    assert found["**Total: $115**"] == "Two beds: $80\nOne desk: $35"
    assert not any(lead_in for text, lead_in in found.items() if text.startswith("The total liability"))


def test_a_bare_answer_is_as_grave_as_what_was_asked() -> None:
    text = "## Is the lift open?\n\nYes, it is.\n\n**Are there 5 floors?** No. Is it safe? It depends."
    assert [c.severity for c in claims(text)] == [Severity.NORMAL, Severity.CRITICAL]
    assert claims("How much is it? Right.") == claims("Yes.") == []


@pytest.mark.parametrize(("question", "answer", "asked"), ASSENT["states"])
def test_an_answer_of_no_more_than_yes_or_no_states_what_the_user_asks(
    question: str, answer: str, asked: str
) -> None:
    assert [claim.lead_in for claim in claims(answer, question=question)] == [asked or question]


@pytest.mark.parametrize(("question", "said", "denied"), ASSENT["said and denied"])
def test_yes_and_no_say_what_a_question_asks_and_its_denial(question: str, said: str, denied: str) -> None:
    assert (stated_by(question), stated_by(question, denied=True)) == (said, denied)


@pytest.mark.parametrize(("answer", "yes"), ASSENT["reassuring"])
def test_a_reassurance_is_no_denial(answer: str, yes: bool | None) -> None:
    assert answers("Are drones allowed?", answer) is yes


@pytest.mark.parametrize(("question", "answer", "yes"), ASSENT["yes or no"])
def test_yes_and_no_are_told_apart_in_other_words_too(question: str, answer: str, yes: bool) -> None:
    assert answers(question, answer) is yes
    assert len(claims(answer, question=question)) == 1


@pytest.mark.parametrize(("answer", "said"), ASSENT["with a wish"])
def test_a_wish_behind_a_yes_or_no_hides_neither(answer: str, said: list[str]) -> None:
    assert [claim.text for claim in claims(answer, question="Is the lake too cold to swim?")] == said


@pytest.mark.parametrize(("question", "answer"), ASSENT["to a request"])
def test_an_answer_to_a_request_or_another_question_states_nothing(question: str, answer: str) -> None:
    assert claims(answer, question=question) == []


def test_a_heading_with_a_main_clause_is_a_claim() -> None:
    text = "# Opening hours\n\n## The lift is closed\n\n## How it works\n\n### Anna Berg is the curator\n"
    assert [c.text for c in claims(text)] == ["The lift is closed", "Anna Berg is the curator"]


def test_a_question_that_takes_an_amount_for_granted_is_a_claim() -> None:
    text = "Why spend 12 euros on a ticket? Fancy a tour for $8? Want more details?"
    assert [c.text for c in claims(text)] == ["Why spend 12 euros on a ticket?", "Fancy a tour for $8?"]
    assert claims(text)[0].mentions


def test_prose_in_a_fence_is_a_statement_and_data_a_mention() -> None:
    """What the user asks is no excuse for a statement, and a bare yes is none of what it looks like."""
    asked = "Is the dose 40 mg a day? May I drive?"
    for text, mentions in [
        ("```text\nThe dose is 40 mg a day.\n```\n", False),
        ('```json\n{"told": "The dose is 40 mg a day."}\n```\n', False),
        ("```yaml\ndose: 30 mg\n```\n", True),
        ("Feel free!", False),
        ("Why may children drive it?", False),
    ]:
        assert [claim.mentions for claim in claims(text, question=asked)] == [mentions], text
    assert claims("```yaml\ndose: 40 mg\n```\n", question=asked) == []


def test_a_question_with_the_users_own_figures_states_nothing() -> None:
    assert claims("Is that 12 euros a day?", question="Which ticket do I get for 12 euros?") == []


@pytest.mark.parametrize("step", [1, 7, 100_000])
def test_behind_so_many_claims_a_text_is_cut_coarsely(step: int) -> None:
    """However it comes, it is cut alike, and no character is lost."""
    text = "".join(f"- Item {n}.\n" for n in range(MOST_CLAIMS + 1_500)) + "\n\nThe end.\n"
    cutter = ClaimCutter(LengthRater())
    cut = [piece for at in range(0, len(text), step) for piece in cutter.feed(text[at : at + step])]
    reached = cutter.position
    assert reached == (cut[-1].segment.end, len(cut), sum(len(piece.claims) for piece in cut))
    cut += cutter.finish()
    assert "".join(piece.segment.text for piece in cut) == text
    assert [piece.segment.index for piece in cut] == list(range(len(cut)))
    found = [claim for piece in cut for claim in piece.claims]
    assert [claim.index for claim in found] == list(range(len(found)))
    assert all(text[claim.start : claim.end] == claim.text for claim in found)
    rest = found[MOST_CLAIMS:]
    assert [len(piece.claims) for piece in cut[-len(rest) :]] == [1] * len(rest)
    assert all(2_000 <= len(claim.text) < 2_100 for claim in rest[:-1])
    assert rest[-1].text.endswith("The end.")
    assert {claim.severity for claim in rest} == {Severity.CRITICAL}
