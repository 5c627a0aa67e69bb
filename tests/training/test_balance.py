"""Examples cut down until shared words tell nothing of the label."""

from __future__ import annotations

import pytest

from training.balance import balanced, shared_words
from training.examples import Example, Label

CONTEXT = "Lockers at the baths are emptied after five days."
COPIED = "Lockers at the baths are emptied after five days."
FREE = "Nothing stays locked away for a week."


def example(claim: str, label: Label, *, held_out: bool = False) -> Example:
    return Example(
        dataset="x", licence="MIT", claim=claim, contexts=(CONTEXT,), label=label, held_out=held_out
    )


@pytest.mark.parametrize(
    ("claim", "share"),
    [
        (COPIED, 1.0),
        ("Lockers are emptied nightly.", 2 / 3),
        ("Nothing rusts.", 0.0),
        ("", 0.0),
    ],
)
def test_stop_words_are_not_shared_words(claim: str, share: float) -> None:
    assert shared_words(claim, (CONTEXT,)) == pytest.approx(share)


def test_labels_are_as_many_among_claims_that_share_as_many_words() -> None:
    made = [
        *[example(COPIED, "contradicted")] * 6,
        *[example(COPIED, "supported")] * 2,
        *[example(FREE, "supported")] * 5,
        *[example(FREE, "unsupported")] * 3,
        *[example(FREE, "supported", held_out=True)] * 4,
    ]
    kept = list(balanced(made, seed=1))
    copied = [e.supported for e in kept if e.claim == COPIED]
    free = [e.supported for e in kept if e.claim == FREE]
    assert (sum(copied), len(copied)) == (2, 4)
    assert (sum(free), len(free)) == (3, 6)
    assert not any(e.held_out for e in kept), "the sides of the split are balanced each for itself"


def test_the_same_seed_keeps_the_same() -> None:
    made = [example(f"{COPIED} {n}", "supported" if n % 3 else "contradicted") for n in range(30)]
    one, again, other = (list(balanced(made, seed=seed)) for seed in (4, 4, 5))
    assert one == again
    assert one != other
