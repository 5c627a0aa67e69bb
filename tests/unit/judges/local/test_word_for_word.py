"""A claim that is a sentence of a context: what counts as one, and what stands against it."""

from __future__ import annotations

import pytest

from guardrail.claims import BuiltinSeverityRater, ClaimCutter
from guardrail.events import Verdict
from guardrail.judges.local.check import ClaimChecker
from guardrail.judges.local.combiner import load_parameters
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.verdicts import Judgement
from tests.support.tables import table
from tests.unit.judges.local.contexts import claim_of, index_of

CASES = table(__file__, "word_for_word.yaml")
SAID = "A document says so word for word."
CHECKER = ClaimChecker(LocalJudgeSettings(), load_parameters())
"""Without the verifier: what stands word for word needs none."""


def last_of(answer: str, *contexts: str) -> Judgement:
    """The judgement of the last claim of an answer."""
    cutter = ClaimCutter(BuiltinSeverityRater())
    claims = [claim for cut in (*cutter.feed(answer), *cutter.finish()) for claim in cut.claims]
    return CHECKER.check("c", claims[-1], "", index_of(*contexts))


RAFT = "The raft holds 14 people and costs $14 an hour."


@pytest.mark.parametrize(("answer", "context"), CASES["supported"])
def test_a_sentence_of_a_context_is_supported(answer: str, context: str) -> None:
    found = last_of(answer, "Nothing of it.", context)
    assert (found.verdict, found.reasoning, found.contradiction) == (Verdict.SUPPORTED, SAID, 0.0)
    assert found.support is not None
    assert found.support > 0.9
    (said,) = found.evidence
    assert said.context_id == "d1"
    assert said.span is not None
    assert context[slice(*said.span)] == said.quote


@pytest.mark.parametrize(
    ("answer", "context"),
    CASES["as any claim"],
)  # fmt: skip
def test_what_need_not_say_the_same_there_is_judged_as_any_claim(answer: str, context: str) -> None:
    assert last_of(answer, context).reasoning != SAID


def test_another_context_with_another_value_stands_against_it() -> None:
    texts = (RAFT, "The raft holds 14 people and costs $19 an hour.")
    assert last_of(RAFT, *texts).reasoning != SAID


def test_a_sentence_that_is_said_to_be_false_is_not_supported() -> None:
    assert last_of(f"Myth: {RAFT}", RAFT).verdict is Verdict.UNSUPPORTED


def test_a_long_sentence_counts_whole_and_not_by_its_pieces() -> None:
    words = " ".join(f"word{n}" for n in range(70))
    sentence = f"The list of the pier has {words} and no more."
    index = index_of(f"Open daily. {sentence} Closed in May.")
    assert CHECKER.check("c", claim_of(sentence), "", index).reasoning == SAID
    piece = f"The list of the pier has {' '.join(words.split()[:55])}."
    assert CHECKER.check("c", claim_of(piece), "", index).reasoning != SAID


@pytest.mark.parametrize("contexts", CASES["taken back"])
def test_what_other_words_take_back_does_not_stand(contexts: tuple[str, ...]) -> None:
    assert last_of("Dogs may ride on the raft.", *contexts).reasoning != SAID


def test_what_is_another_thing_s_does_not_stand() -> None:
    context = "# Skiff hire\nThe daily price is €12.\n\n# Dinghy hire\nGuests pay €29 a day."
    found = CHECKER.check(
        "c", claim_of("The daily price is €12."), "What does Dinghy hire cost?", index_of(context)
    )
    assert found.reasoning != SAID
