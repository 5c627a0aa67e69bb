"""However long and odd a text is, the scan looks at each token a bounded number of times."""

from __future__ import annotations

import pytest

from guardrail.figures import find_figures, reading
from guardrail.figures.tables import Token, tokenize
from tests.property.test_figures_properties import HOSTILE


@pytest.mark.parametrize("piece", HOSTILE)
def test_the_work_is_linear(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens looked at, per token: the same for a text ten times as long."""
    looked = 0

    class Counting(list[Token]):
        def __getitem__(self, key):  # type: ignore[no-untyped-def]
            nonlocal looked
            looked += 1
            return super().__getitem__(key)

    monkeypatch.setattr(reading, "tokenize", lambda text: Counting(tokenize(text)))
    costs = []
    for times in (200, 2000):
        looked = 0
        find_figures(piece * times)
        costs.append(looked / times)
    assert costs[1] <= costs[0] * 1.2 + 1
