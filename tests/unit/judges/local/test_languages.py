"""Text in a language that the verifier does not read."""

import pytest
from pydantic import ValidationError

from guardrail.events import Finding, Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.local.check import ClaimChecker, build_checker
from guardrail.judges.local.languages import Languages
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.verdicts import Judgement
from tests.unit.judges.local.contexts import claim_of, index_of

ENGLISH = index_of(
    "Annual membership of the rowing club costs 90 euros. Guests may row twice a season. "
    "The boathouse closes at dusk."
)
DUTCH = index_of(
    "Het lidmaatschap van de roeiclub kost 90 euro per jaar. Gasten mogen twee keer per seizoen roeien. "
    "Het botenhuis sluit bij zonsondergang."
)
BOTH = index_of("The boathouse closes at dusk.", "Gasten mogen twee keer per seizoen roeien.")


@pytest.fixture(scope="module")
def checker() -> ClaimChecker:
    return build_checker(LocalJudgeSettings())


def judged(checker: ClaimChecker, text: str, evidence: EvidenceIndex) -> Judgement:
    return checker.check("c", claim_of(text), "", evidence)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("The boathouse closes at dusk.", False),
        ("Pro plan, price per month", False),
        ("Ibuprofen reduces inflammation.", False),
        ("Anna Kowalska", False),
        ("040 123456", False),
        ("Ja.", False),  # too little to tell
        ("Ein Fahrschein kostet 8 Euro.", True),
        ("The lost-property office is open on Mondays.", False),
        ("De toegang is gratis voor kinderen", True),
        ("Il circolo chiude ogni lunedì.", True),
        ("A barragem foi construída em 1962.", True),
        ("Łodzie wypożycza się tylko członkom.", True),
        ("ボートは会員だけが借りられます。", True),
        ("Лодки выдаются только членам клуба.", True),
    ],
)
def test_which_texts_are_in_another_language(text: str, other: bool) -> None:
    assert Languages(["en"]).other(text) is other
    assert not Languages(None).other(text)


@pytest.mark.parametrize("evidence", [ENGLISH, DUTCH])
@pytest.mark.parametrize("text", ["Roeien mag hier iedere gast.", "De club heeft een eigen restaurant."])
def test_a_claim_in_another_language_is_left_open(
    checker: ClaimChecker, text: str, evidence: EvidenceIndex
) -> None:
    found = judged(checker, text, evidence)
    assert (found.verdict, found.support) == (Verdict.UNVERIFIED, None)
    assert found.findings == (Finding.LANGUAGE_UNCOVERED,)
    assert found.reasoning.startswith("The claim is in a language that the judge does not read")
    assert not found.unanswered


def test_so_is_one_for_which_a_passage_in_another_language_decides(checker: ClaimChecker) -> None:
    found = judged(checker, "Guests may row with the members of the club.", DUTCH)
    assert found.findings == (Finding.LANGUAGE_UNCOVERED,)
    assert found.reasoning.startswith("A document is in a language that the judge does not read")
    assert judged(checker, "At dusk the boathouse closes.", BOTH).verdict is Verdict.SUPPORTED


def test_a_line_of_names_is_in_the_language_of_its_document(checker: ClaimChecker) -> None:
    hours = "Polish Beginners: Mondays 18:00–19:30, 12 weeks, £175, tutor Paweł Górski."
    assert Languages(["en"]).other(hours)
    evidence = index_of(f"All courses start in the old mill, and end there before ten.\n\n{hours}")
    assert judged(checker, "Polish for beginners costs £175.", evidence).findings == ()


def test_a_document_in_another_language_leaves_nothing_open_that_another_one_decides(
    checker: ClaimChecker,
) -> None:
    found = judged(checker, "The boathouse closes at noon, when the members have lunch.", BOTH)
    assert found.verdict in (Verdict.UNSUPPORTED, Verdict.CONTRADICTED)
    assert Finding.LANGUAGE_UNCOVERED not in found.findings


def test_figures_still_speak_against_a_claim(checker: ClaimChecker) -> None:
    other = judged(checker, "Het lidmaatschap van de roeiclub kost 95 euro per jaar.", DUTCH)
    assert (other.verdict, other.findings) == (Verdict.CONTRADICTED, (Finding.FIGURE_CONFLICT,))
    absent = judged(checker, "De boot weegt 340 kg.", DUTCH)
    assert absent.verdict is Verdict.UNSUPPORTED
    assert absent.findings == (Finding.FIGURE_ABSENT, Finding.LANGUAGE_UNCOVERED)
    assert absent.contradiction == 0.0


def test_a_sentence_of_the_document_is_supported_in_any_language(checker: ClaimChecker) -> None:
    assert judged(checker, "Het botenhuis sluit bij zonsondergang.", DUTCH).verdict is Verdict.SUPPORTED


def test_languages_are_told_apart_unless_all_are_read() -> None:
    reads = build_checker(LocalJudgeSettings(languages=None))
    assert judged(reads, "De club heeft een eigen restaurant.", DUTCH).findings == ()
    with pytest.raises(ValidationError, match=r"'klingon' is none of the languages .* write some of ar, bg"):
        LocalJudgeSettings(languages=("klingon",))
    with pytest.raises(ValidationError, match="none is named"):
        LocalJudgeSettings(languages=())
    with pytest.raises(ValidationError, match="the packaged verifier reads en alone"):
        LocalJudgeSettings(languages=("en", "nl"))
