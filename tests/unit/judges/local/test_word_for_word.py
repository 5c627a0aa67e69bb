"""A claim that is a sentence of a context: what counts as one, and what stands against it."""

from __future__ import annotations

import pytest

from guardrail.claims import BuiltinSeverityRater, ClaimCutter
from guardrail.events import Verdict
from guardrail.judges.local.check import ClaimChecker
from guardrail.judges.local.combiner import load_parameters
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.verdicts import Judgement
from tests.unit.judges.local.contexts import claim_of, index_of

SAID = "A document says so word for word."
CHECKER = ClaimChecker(LocalJudgeSettings(), load_parameters())
"""Without the verifier: what stands word for word needs none."""


def last_of(answer: str, *contexts: str) -> Judgement:
    """The judgement of the last claim of an answer."""
    cutter = ClaimCutter(BuiltinSeverityRater())
    claims = [claim for cut in (*cutter.feed(answer), *cutter.finish()) for claim in cut.claims]
    return CHECKER.check("c", claims[-1], "", index_of(*contexts))


RAFT = "The raft holds 14 people and costs $14 an hour."


@pytest.mark.parametrize(
    ("answer", "context"),
    [
        ("Locker 8 costs $8.", "Locker 7 costs $7. Locker 8 costs $8. Locker 9 costs $8."),
        (RAFT, f"# Boats\n\n{RAFT} Life vests are free."),
        ("The boathouse is open from 9 to 5.", "The boathouse\nis open from 9 to 5.\nFerries run."),
        ("Yes, the raft holds 14 people and costs $14 an hour", f"Boats.\n{RAFT}"),
        (RAFT, f"## What does the raft cost?\n\n{RAFT}\n\n## And the canoe?\n\nNothing."),
        (f"**{RAFT}** [1]", f"Boats for hire\n\n1. {RAFT}[2]\n2. Canoes are cheaper."),
        (f"Here are the details:\n- {RAFT}", f"For hire:\n- Oars.\n\n{RAFT}"),
        ("The captain said “no night trips”.", 'The captain said "no night trips".'),
        ("Kinder zahlen 3–4 Euro.", "Erwachsene zahlen 8 Euro. Kinder zahlen 3-4\u00a0Euro."),
        ("乗船料は大人1,200円です。", "営業は9時からです。乗船料は大人1,200円です。駐車場は無料です。"),
        ("नाव का किराया ₹150 प्रति घंटा है।", "नाव का किराया ₹150 प्रति घंटा है।दुकान बंद है।"),
        ("ค่าเช่าเรือชั่วโมงละ 200 บาท", "ร้านเปิดทุกวัน\nค่าเช่าเรือชั่วโมงละ 200 บาท\nที่จอดรถฟรี"),
        (
            "The pier (see Map D. It was drawn in 2021.) is open.",
            "The pier (see Map D. It was drawn in 2021.) is open.",
        ),
    ],
)
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
    [
        # only a part of a sentence
        ("The raft costs $4.", "The raft costs $49."),
        ("The raft costs $4.", "The raft costs $4 after six."),
        ("The raft costs $4.", "We doubt that the raft costs $4."),
        ("the raft costs $4.", "We doubt that\nthe raft costs $4."),
        ("The raft costs $4.", "Raft prices\nThe raft costs $4\nif it is booked early."),
        # taken back, dated, labelled, asked or reported
        (RAFT, f"{RAFT} That is a myth."),
        (RAFT, f"A common misconception follows. {RAFT}"),
        (RAFT, f"## What is not true\n\n{RAFT}"),
        (RAFT, f"## Prices until 2022\n\n{RAFT}\n\n## Prices now\n\nAll boats are free."),
        (RAFT, f"Guest: Good morning. {RAFT}\nClerk: No."),
        (RAFT, f"A leaflet said: “Boats are cheap. {RAFT}” The owner denies it."),
        (RAFT, f"| Leaflet | True? |\n|---|---|\n| So it says. {RAFT} | no |"),
        ("Le bateau coûte 12 € par heure.", "Le bateau coûte 12 € par heure. C'est faux."),
        ("游船每小时收费30元。", "有人说“游船每小时收费30元。”这是错误的。"),
        # under a condition, or a denial
        (RAFT, f"For members of the club:\n- {RAFT}\n- Canoes are free."),
        (f"None of this is right:\n- {RAFT}", RAFT),
        # of another thing, or of one that it doesn't name
        ("It holds 14 people and costs $14 an hour.", "It holds 14 people and costs $14 an hour."),
        ("Cuesta 14 euros por hora.", "Cuesta 14 euros por hora."),
        ("月額1,200円です。", "月額1,200円です。"),
        ("Canoe:\n- Adults pay $14 an hour.", "## Raft\n- Adults pay $14 an hour.\n## Canoe\n- Free."),
        ("Every hour costs $14.", "Raft. Every hour costs $14. Canoe. Every hour costs $9."),
        # case that matters
        ("The lamp of the pier draws 40 mW.", "The lamp of the pier draws 40 MW."),
    ],
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


@pytest.mark.parametrize(
    "contexts",
    [
        ("Dogs may ride on the raft.", "Dogs may not ride on the raft."),
        ("None of this is so.\n- Oars are free.\n- Dogs may ride on the raft.",),
        ("Which of these is right?\nA) Oars are free.\nB) Dogs may ride on the raft.",),
        ("Oars are free. ✅\nDogs may ride on the raft. ❌",),
    ],
)
def test_what_other_words_take_back_does_not_stand(contexts: tuple[str, ...]) -> None:
    assert last_of("Dogs may ride on the raft.", *contexts).reasoning != SAID


def test_what_is_another_thing_s_does_not_stand() -> None:
    context = "# Skiff hire\nThe daily price is €12.\n\n# Dinghy hire\nGuests pay €29 a day."
    found = CHECKER.check(
        "c", claim_of("The daily price is €12."), "What does Dinghy hire cost?", index_of(context)
    )
    assert found.reasoning != SAID
