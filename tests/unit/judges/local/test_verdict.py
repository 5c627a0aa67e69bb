"""Probabilities and figures -> verdicts, reasons, quotes and marks."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from guardrail.events import Finding, Verdict
from guardrail.judges.local.check import ClaimChecker
from guardrail.judges.local.combiner import Combiner, Fit, Lines, Probabilities, Read, load_parameters
from guardrail.judges.local.search import WindowText
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.judges.local.verdict import Ruling
from guardrail.judges.model import Reading
from guardrail.verdicts import Judgement
from tests.unit.judges.local.contexts import PRICING, claim_of, index_of

SURE = (0.9, 0.05, 0.04, 0.01)
PARTLY = (0.4, 0.3, 0.2, 0.1)
NOT = (0.1, 0.2, 0.6, 0.1)
OTHERWISE = (0.1, 0.1, 0.1, 0.7)
"""Probabilities, in the order of ``Probabilities``."""
ON_PAPER = "Enterprise pricing is available on paper."
WRONG = "Pro costs $79 per month and includes 20 users."


def judged(
    claim: str,
    told: tuple[float, float, float, float],
    *contexts: str,
    lines: tuple[float, float, float] = (0.6, 0.3, 0.5),
) -> Judgement:
    """The judgement where the combiner tells these probabilities, whatever it sees."""
    high, low, contradicted = lines
    fit = Fit(
        combiner=Combiner(biases=tuple(math.log(p) for p in told), weights={}),
        lines=Lines(supported=high, partially=low, contradicted=contradicted, sure=1.0, hopeless=0.0),
    )
    parameters = load_parameters().model_copy(update={"words": fit})
    checker = ClaimChecker(LocalJudgeSettings(), parameters)
    return checker.check("c", claim_of(claim), "", index_of(*(contexts or (PRICING,))))


@pytest.mark.parametrize(
    ("told", "verdict", "confidence"),
    [
        ((0.61, 0.2, 0.1, 0.09), Verdict.SUPPORTED, 0.61),
        ((0.59, 0.2, 0.2, 0.01), Verdict.PARTIALLY_SUPPORTED, 0.41),
        ((0.31, 0.1, 0.5, 0.09), Verdict.PARTIALLY_SUPPORTED, 0.69),
        ((0.29, 0.5, 0.2, 0.01), Verdict.UNSUPPORTED, 0.71),
        ((0.20, 0.1, 0.1, 0.6), Verdict.CONTRADICTED, 0.6),
        ((0.31, 0.2, 0.04, 0.45), Verdict.PARTIALLY_SUPPORTED, 0.69),  # below the line of CONTRADICTED
        ((0.01, 0.01, 0.53, 0.45), Verdict.UNSUPPORTED, 0.99),
    ],
)
def test_the_verdict_follows_from_the_probabilities(
    told: tuple[float, float, float, float], verdict: Verdict, confidence: float
) -> None:
    found = judged("The plan for many customers is popular.", told)
    assert found.verdict is verdict
    assert found.confidence == pytest.approx(confidence, abs=0.01)
    assert found.support == pytest.approx(told[0] / sum(told))
    assert found.contradiction == pytest.approx(told[3] / sum(told))
    assert found.findings == ()


@pytest.mark.parametrize("told", [SURE, NOT, OTHERWISE])
def test_a_calculation_that_no_claim_spells_out_is_left_open(told: tuple[float, float, float, float]) -> None:
    found = judged("Pro is $20 dearer than Basic with Enterprise, so both plans come to $78.", told)
    assert (found.verdict, found.support, found.contradiction) == (Verdict.UNVERIFIED, None, None)
    assert found.findings == (Finding.CALCULATION_UNCHECKED,)
    assert "was not checked" in found.reasoning
    absent = judged("Both plans come to $78 for 300 rooms of Enterprise.", told)
    assert Finding.CALCULATION_UNCHECKED in absent.findings


def test_what_two_figures_decide_is_a_conflict_that_names_both() -> None:
    found = judged("Pro is cheaper than Basic.", SURE)
    assert (found.verdict, found.findings) == (Verdict.CONTRADICTED, (Finding.FIGURE_CONFLICT,))
    assert "'$49 per month' against '$29 per month'" in found.reasoning


@pytest.mark.parametrize(
    ("claim", "told", "verdict"),
    [
        ("Penguins swim.", PARTLY, Verdict.UNSUPPORTED),
        ("Пингвины плавают.", PARTLY, Verdict.UNVERIFIED),  # nor is the language read
        ("Penguins buy the Pro plan.", PARTLY, Verdict.PARTIALLY_SUPPORTED),
        ("Penguins swim.", SURE, Verdict.SUPPORTED),
        ("Penguins swim.", OTHERWISE, Verdict.CONTRADICTED),
    ],
)
def test_a_claim_without_a_word_of_the_sources_is_not_partly_supported(
    claim: str, told: tuple[float, float, float, float], verdict: Verdict
) -> None:
    assert judged(claim, told).verdict is verdict


def test_most_probable_contradiction_above_its_line_needs_to_be_the_most_probable() -> None:
    told = (0.05, 0.01, 0.48, 0.46)
    assert judged("The plan is popular.", told, lines=(0.6, 0.3, 0.4)).verdict is Verdict.UNSUPPORTED


def test_another_figure_of_the_same_thing_contradicts_whatever_the_combiner_tells() -> None:
    found = judged(WRONG, SURE)
    assert found.verdict is Verdict.CONTRADICTED
    assert found.findings == (Finding.FIGURE_CONFLICT,)
    assert found.reasoning == "The claim says '$79 per month', the document says '$49 per month'."
    assert found.support is not None
    assert found.support < 0.6
    assert "Pro costs $49 per" in found.evidence[0].quote
    assert [WRONG[start:end] for start, end in found.unsupported_spans] == ["$79 per month"]


def test_a_figure_of_no_source_keeps_a_claim_from_being_supported() -> None:
    found = judged("Northwind Cloud sells a cluster of 750 TB to universities.", SURE)
    assert found.verdict is Verdict.PARTIALLY_SUPPORTED
    assert found.findings == (Finding.FIGURE_ABSENT,)
    assert found.reasoning == "'750 TB' does not appear in the documents."
    assert found.support is not None
    assert found.support < 0.6


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        ("It sells a cluster of 750 TB.", "'750 TB' does not appear in the documents."),
        ("It sells clusters of 750 TB and 800 GB.", "'750 TB' and '800 GB' do not appear in the documents."),
        ("It sells a cluster of 750 TB for another 750 TB.", "'750 TB' does not appear in the documents."),
    ],
)
def test_the_reason_agrees_in_number(claim: str, reason: str) -> None:
    assert judged(claim, NOT).reasoning == reason


@pytest.mark.parametrize("claim", ["Basic costs $29 per month.", "Basic costs $348 per year."])
def test_figures_that_are_right_or_reckoned_find_nothing(claim: str) -> None:
    found = judged(claim, SURE)
    assert (found.verdict, found.findings, found.unsupported_spans) == (Verdict.SUPPORTED, (), ())


@pytest.mark.parametrize(
    ("claim", "told", "reason"),
    [
        ("Basic: $29 per month, includes 5 users.", SURE, "A document says so in nearly the same words."),
        (
            "No bank card is demanded for trials.",
            SURE,
            "It was read as supported by this passage: "
            "'All plans have a 14-day free trial; no credit card is required.'",
        ),
        (ON_PAPER, PARTLY, "'paper' does not appear in the documents."),
        (ON_PAPER, NOT, "'paper' does not appear in the documents."),
        (  # "comes" tells nothing
            "Enterprise pricing comes on request.",
            NOT,
            "It may not say the same as this passage: 'Enterprise pricing is available on request.'",
        ),
        (
            ON_PAPER,
            OTHERWISE,
            "It was read as contradicting this passage: 'Enterprise pricing is available on request.'",
        ),
        ("Owls hunt mice.", NOT, "No passage was found that has any of its main words."),
    ],
)
def test_reasons(claim: str, told: tuple[float, float, float, float], reason: str) -> None:
    assert judged(claim, told).reasoning == reason


@pytest.mark.parametrize("told", [SURE, PARTLY, NOT, OTHERWISE])
@pytest.mark.parametrize(
    "claim", [WRONG, "Basic includes 5 users.", "Trials are free.", "Annual billing saves 25%."]
)
def test_evidence_is_verbatim_and_reasons_quote_claim_or_source(
    claim: str, told: tuple[float, float, float, float]
) -> None:
    found = judged(claim, told)
    for quote in found.evidence:
        start, end = quote.span
        assert PRICING[start:end] == quote.quote
    quoted = found.reasoning.split("'")[1::2]
    folded = " ".join(PRICING.split())
    assert all(text in folded or text in claim for text in quoted)


def test_a_source_without_spaces_is_not_quoted_whole() -> None:
    found = judged("The code is short.", OTHERWISE, f"The_code_is {'x' * 100_000}. Code.")
    assert len(found.reasoning) < 300


def test_a_claim_that_shares_no_word_quotes_and_marks_nothing() -> None:
    found = judged("Owls hunt mice.", NOT)
    assert (found.evidence, found.unsupported_spans) == ((), ())


@pytest.mark.parametrize("contexts", [("",), ("…",)])
def test_without_a_word_to_compare_with_nothing_is_supported(contexts: tuple[str, ...]) -> None:
    found = judged("Basic costs $29 per month.", SURE, *contexts)
    assert (found.verdict, found.evidence) == (Verdict.UNSUPPORTED, ())
    assert found.reasoning == "There is no document to compare it with."


FERRY = (
    "The ferry costs €18 and runs until dusk. A bike costs €4.50 on top. "
    "The harbour was opened by Karl Weng in 1911. The pier was planned by Ines Moll."
)


def read_as(
    claim: str, told: tuple[float, float, float, float], marked: str, support: float, contradiction: float
) -> Judgement:
    """The judgement on a claim beside ``FERRY`` where the verifier says this, and marks these pieces."""
    parameters = load_parameters()
    index = index_of(FERRY)
    examined = ClaimChecker(LocalJudgeSettings(), parameters).examine(claim_of(claim), "", index)
    assert examined is not None
    places = [(claim.index(piece), len(piece)) for piece in marked.split()]
    tokens = tuple((at, at + length, 0.9) for at, length in places)
    everything = tuple(range(len(index.layout.sentences)))
    read = Read(WindowText(FERRY, everything, 0), Reading(support, contradiction, tokens))
    lines = Lines(supported=0.6, partially=0.3, contradicted=0.5, sure=1.0, hopeless=0.0)
    return Ruling(replace(examined, read=[read]), Probabilities(*told), lines).judgement("c")


def test_what_contradicts_a_claim_is_the_sentence_on_its_matter() -> None:
    found = read_as("The pier was planned by Karl Weng.", OTHERWISE, "Karl Weng", 0.1, 0.8)
    assert (
        found.reasoning == "It was read as contradicting this passage: 'The pier was planned by Ines Moll.'"
    )
    assert found.evidence[0].quote == "The pier was planned by Ines Moll."


def test_no_sentence_is_said_to_contradict_where_the_verifier_finds_none_that_does() -> None:
    found = read_as("The pier was planned by Karl Weng.", OTHERWISE, "", 0.1, 0.3)
    assert (found.verdict, found.reasoning) == (
        Verdict.CONTRADICTED,
        "It was read as contradicting the documents.",
    )


@pytest.mark.parametrize(
    ("claim", "marked", "lacking", "words"),
    [
        ("The ferry costs €4.50, a bike €18.", "4 18", "", ["€4.50", "€18"]),
        ("The ferry docks at pier z81.", "", "'docks' and 'z81' do", []),
        ("The ferry docks at pier z81.", "z", "'z81' does", ["z81"]),
        ("The ferry costs eighteen euros in winter.", "", "'winter' does", []),
        (
            "According to the fare page, a bike is carried by kayak.",
            "fare kay",
            "'kayak' does",
            ["fare", "kayak"],
        ),
        ("Laut der Preisliste, a bike goes by kayak.", "", "'kayak' does", []),
    ],
)
def test_what_the_sources_do_not_say_is_quoted_in_whole_words(
    claim: str, marked: str, lacking: str, words: list[str]
) -> None:
    found = read_as(claim, NOT, marked, 0.1, 0.1)
    closest = "It may not say the same as this passage: 'The ferry costs €18 and runs until dusk.'"
    assert found.reasoning == (f"{lacking} not appear in the documents." if lacking else closest)
    assert [claim[start:end] for start, end in found.unsupported_spans] == words
