"""What claims say of the documents' silence."""

from __future__ import annotations

import pytest

from guardrail.claims.silence import silence_of
from guardrail.events import Verdict
from guardrail.judges.local.check import ClaimChecker, build_checker
from guardrail.judges.local.combiner import load_parameters
from guardrail.judges.local.search import Rarity, mentioned
from guardrail.judges.local.settings import LocalJudgeSettings
from tests.support.tables import table
from tests.unit.judges.local.contexts import claim_of, index_of

CASES = table(__file__, "silence.yaml")
SOURCE = "The Basic plan costs $29 per month. A refund is paid within 14 days."
BY_WORDS = ClaimChecker(LocalJudgeSettings(), load_parameters())


@pytest.mark.parametrize(("claim", "rest"), CASES["silent, and the rest"])
def test_silence_is_told_from_what_else_is_said(claim: str, rest: str | None) -> None:
    silence = silence_of(claim.lower())
    assert silence is not None
    assert (None if silence.rest is None else claim[slice(*silence.rest)].lstrip()) == rest


@pytest.mark.parametrize("claim", CASES["no silence"])
def test_what_says_nothing_of_the_documents_or_denies_another_thing_is_no_silence(claim: str) -> None:
    assert silence_of(claim.lower()) is None


@pytest.mark.parametrize(("claim", "topics"), CASES["by words, with the topics"])
def test_silence_is_told_by_its_words_where_no_pattern_is(claim: str, topics: list[str]) -> None:
    silence = silence_of(claim.lower())
    assert silence is not None
    assert [" ".join(w for w in t.split() if w not in ("a", "the", "s")) for t in silence.topics] == [
        " ".join(w for w in t.split() if w != "a") for t in topics
    ]
    assert silence.rest is None


@pytest.mark.parametrize(("claim", "number"), [("a refund", 1), ("a trial", None), ("a refund in Ulm", None)])
def test_a_sentence_breaks_the_silence_that_has_most_of_what_it_is_on(claim: str, number: int | None) -> None:
    silence = silence_of(f"the documents don't mention {claim}.")
    assert silence is not None
    assert mentioned(silence, index_of(SOURCE), Rarity()) == number


@pytest.mark.parametrize(
    ("claim", "verdict", "reason"),
    [
        (
            "The documents don't mention a trial.",
            Verdict.SUPPORTED,
            "No passage was found that speaks of it.",
        ),
        ("The documents don't mention a refund.", Verdict.UNSUPPORTED, "The documents may speak of it."),
        # what else is said is judged by itself, wherever it stands
        (
            "The documents don't mention a trial, but the Basic plan costs $79 per month.",
            Verdict.CONTRADICTED,
            "The claim says '$79 per month', the document says '$29 per month'.",
        ),
    ],
)
def test_verdicts_on_silence(claim: str, verdict: Verdict, reason: str) -> None:
    found = BY_WORDS.check("c", claim_of(claim), "", index_of(SOURCE))
    assert (found.verdict, found.reasoning) == (verdict, reason)
    for start, end in found.unsupported_spans:
        assert claim[start:end] == "$79 per month"
    assert found.unsupported_spans or verdict is not Verdict.CONTRADICTED


@pytest.mark.parametrize(
    "piece",
    [
        " ",
        "\n",
        ", ",
        "; ",
        " but ",
        "documents ",
        "the provided ",
        "is not ",
        "wasn't been ",
        "a'",
        "not mention ",
    ],
)
def test_hostile_texts_are_read_in_linear_time(piece: str) -> None:
    """This many took hours where they were not."""
    silence_of("the documents do not mention a" + piece * 200_000)
    silence_of(piece * 200_000)


LIBRARY = """Readers' guide of the town library.
The lending period is four weeks for books and one week for films. A reader may borrow twelve items at once.
Whoever brings something back late pays 20 cents a day. Cards are free for anybody under 16; adults pay 10
euros a year. The reading room has 40 desks with sockets, and laptops may be used there. Coffee is sold in the
foyer; food must not be taken to the shelves. Lost cards are replaced for 3 euros at the desk on the ground
floor. The lift is out of order until spring."""
SPOKEN_OF = [
    "late fees", "how many books one can take home", "a membership fee", "how long films can be kept",
    "what happens if a card is lost", "where to get a hot drink", "power outlets", "eating among the shelves",
]  # fmt: skip
NOT_SPOKEN_OF = [
    "parking", "storytelling for children", "a printer", "e-books", "opening hours", "a bicycle rack",
    "meeting rooms", "the name of the librarian",
]  # fmt: skip


def test_a_false_silence_is_mostly_found_in_other_words_and_a_true_one_let_pass() -> None:
    checker = build_checker(LocalJudgeSettings())
    evidence = index_of(LIBRARY)

    def silent(topic: str) -> bool:
        claim = claim_of(f"The guide doesn't mention {topic}.")
        return checker.check("c1", claim, "?", evidence).verdict is Verdict.SUPPORTED

    assert sum(map(silent, SPOKEN_OF)) <= 4
    assert sum(map(silent, NOT_SPOKEN_OF)) >= 7


@pytest.mark.parametrize(("source", "claim", "otherwise"), CASES["denials in other languages"])
def test_a_denial_that_the_verifier_can_not_read_keeps_a_claim_from_being_supported(
    source: str, claim: str, otherwise: bool
) -> None:
    judgement = build_checker(LocalJudgeSettings()).check("c1", claim_of(claim), "?", index_of(source))
    assert (judgement.verdict is not Verdict.SUPPORTED) is otherwise


TRAMS = index_of("Trams run until midnight. A day ticket costs 6 euros. Bicycles travel free of charge.")


@pytest.mark.parametrize(
    ("claim", "question", "verdict"),
    [
        ("Trams run until midnight.", "", Verdict.SUPPORTED),
        ("Wrong: Trams run until midnight.", "", Verdict.UNSUPPORTED),
        ("Common myth: Bicycles travel free of charge.", "What is free?", Verdict.UNSUPPORTED),
        ("Not true – A day ticket costs 6 euros.", "", Verdict.UNSUPPORTED),
        ("Myth: A day ticket costs 9 euros.", "", Verdict.PARTIALLY_SUPPORTED),
        ("Wrong: Trams run until midnight.", "Do trams run until 10 pm?", Verdict.SUPPORTED),
    ],
)
def test_a_label_that_denies_takes_back_what_follows(claim: str, question: str, verdict: Verdict) -> None:
    found = build_checker(LocalJudgeSettings()).check("c", claim_of(claim), question, TRAMS)
    assert found.verdict is verdict
    if claim != "Trams run until midnight." and not question.startswith("Do"):
        assert not found.findings


@pytest.mark.parametrize(
    ("asked", "said", "verdict"),
    [
        ("Do bicycles travel free of charge?", "Yes, they do.", Verdict.SUPPORTED),
        ("Do bicycles travel free of charge?", "No.", Verdict.UNSUPPORTED),
        ("Does a day ticket cost 9 euros?", "Correct!", Verdict.CONTRADICTED),
        ("Does a day ticket cost 9 euros?", "No, it doesn't.", Verdict.SUPPORTED),
        ("Does a day ticket cost 6 euros?", "Absolutely.", Verdict.SUPPORTED),
        ("Is the canteen closed on Sundays?", "Yes.", Verdict.UNSUPPORTED),
    ],
)
def test_a_bare_answer_is_judged_by_what_was_asked(asked: str, said: str, verdict: Verdict) -> None:
    found = build_checker(LocalJudgeSettings()).check("c", claim_of(said, asked), "", TRAMS)
    assert (found.verdict, found.unsupported_spans) == (verdict, ())
