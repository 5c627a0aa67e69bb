"""What is made of a sentence by changing one detail: the claim, and where it is wrong."""

from __future__ import annotations

import random

import pytest

from training.changes import LABELS, Change
from training.perturb import NEGATIVE_KINDS, altered
from training.perturb_meaning import clauses_of, crossed, joined_with

SENTENCES = (
    "The tower has 315 steps and was built in 1871 by Paul Jones.",
    "Anna Smith succeeded Paul Jones as director of the museum in Leeds.",
    "Each tablet contains 20 mg of the drug and costs $4.50.",
    "Some people often develop a rash, but the new medicine may help them.",
    "Prices are higher than last year because the harvest was poor.",
    "The company was founded by two brothers and accepted the offer of 12 March 1995.",
    "The hall seats up to 300 people if the stage is not used.",
)
NAMES = ("London", "Leeds", "Mary Brown", "Paul Jones", "Berlin")


def first(kind: str, sentence: str, seed: int = 0) -> Change | None:
    return altered(kind, sentence, NAMES, random.Random(seed))


def marked(made: Change) -> list[str]:
    return [made.claim[a:b] for a, b in made.spans]


@pytest.mark.parametrize("kind", NEGATIVE_KINDS)
def test_every_kind_changes_a_sentence_and_points_at_the_change(kind: str) -> None:
    found = 0
    for sentence in SENTENCES:
        for seed in range(20):
            made = first(kind, sentence, seed)
            if made is None:
                continue
            found += 1
            assert made.claim != sentence
            assert made.kind == kind
            assert made.label == LABELS.get(kind, "contradicted")
            assert made.spans
            assert all(0 <= a < b <= len(made.claim) for a, b in made.spans)
            assert all(not words.startswith(" ") and not words.endswith(" ") for words in marked(made))
    assert found


@pytest.mark.parametrize("kind", ["number", "date", "name", "antonym", "comparison"])
def test_what_stands_outside_the_spans_is_the_sentence(kind: str) -> None:
    made = next(made for s in SENTENCES if (made := first(kind, s)) and made.old)
    sentence = next(s for s in SENTENCES if first(kind, s) == made)
    assert made.old is not None
    ((start, end),) = made.spans
    assert made.claim[:start] + sentence[slice(*made.old)] + made.claim[end:] == sentence


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("number", "More than 40 people came to the meeting."),  # 41 would be true as well
        ("number", "It has at least 12 rooms."),
        ("date", "The house was built before 1995."),
        ("negation", "He asked whether the shop was open."),
        ("negation", "The medicine may cause headaches."),  # "may not" is no contradiction
        ("comparison", "She no longer lives there."),
        ("comparison", "They need at least some help."),
        ("overgeneralisation", "They came home some years later."),
        ("overgeneralisation", "Not all birds can fly, and some people know it."),
        ("qualifier", "More than 300 people came."),
        ("swap", "They invited 5 and 7 people."),
        ("swap", "Anna Smith and Paul Jones met in Leeds."),
        ("name", "The weather was fine."),
        ("unit", "The boy was 5 years old."),
    ],
)
def test_what_might_stay_true_is_left_alone(kind: str, sentence: str) -> None:
    assert all(first(kind, sentence, seed) is None for seed in range(30))


@pytest.mark.parametrize(
    ("kind", "sentence", "claim", "wrong"),
    [
        ("swap", SENTENCES[1], "Paul Jones succeeded Anna Smith as director of the museum in Leeds.", None),
        ("negation", "The bridge did not open for years.", "The bridge opened for years.", "opened"),
        ("negation", "They don't sell shoes.", "They sell shoes.", "sell"),
        ("qualifier", "The hall seats up to 300 people.", "The hall seats 300 people.", "300"),
        ("qualifier", "It may cause headaches.", "It will cause headaches.", "will cause"),
        ("qualifier", "The plan may cause delays.", "The plan will cause delays.", "will cause"),
        ("qualifier", "It was probably a mistake.", "It was a mistake.", "a"),
        ("overgeneralisation", "Some people like it.", "All people like it.", "All"),
        ("overgeneralisation", "The shop is often closed.", "The shop is always closed.", "always"),
        ("comparison", "It costs more than 20 euros.", "It costs less than 20 euros.", "less"),
    ],
)
def test_examples(kind: str, sentence: str, claim: str, wrong: str | None) -> None:
    made = [m for seed in range(12) if (m := first(kind, sentence, seed))]
    assert {m.claim for m in made} == {claim}
    if wrong is not None:
        assert marked(made[0]) == [wrong]


def test_about_a_number_only_what_is_far_off_is_wrong() -> None:
    for seed in range(60):
        made = first("number", "The trip takes about 90 minutes.", seed)
        if made:
            number = float("".join(c for c in marked(made)[0] if c.isdigit() or c == "."))
            assert not 0.75 < number / 90 < 1.3


def test_claims_of_two_documents_mark_what_the_second_says() -> None:
    one, other = "Anna Smith was born in Leeds.", "Paul Jones was a painter of some renown."
    made = crossed(one, other)
    assert made
    assert made.claim == "Anna Smith was a painter of some renown."
    assert marked(made) == ["was a painter of some renown"]
    merged = joined_with(one, "The shop sells old clocks.", random.Random(0))
    assert merged
    assert marked(merged) == ["the shop sells old clocks"]
    assert merged.label == "partially_supported"


def test_endings_are_borrowed_where_they_name_nobody_of_their_sentence() -> None:
    found = clauses_of(
        [
            "The museum in the old harbour had to close for a year because of a fire in the roof.",
            "The museum in the old harbour had to close for a year because she had left the country.",
        ]
    )
    assert found == [" because of a fire in the roof"]
