"""Links that no context has make claims, so that verdicts tell of them: see ``links.yaml``."""

from __future__ import annotations

from typing import Any

import pytest

from guardrail.engine.judging import claims_with_absent_links
from guardrail.engine.runs import Cutters
from guardrail.events import Context
from guardrail.evidence import EvidenceIndex
from guardrail.policy import Policy
from tests.support.tables import table

TABLE: dict[str, Any] = table(__file__, "links.yaml")
CONTEXTS = [
    *(Context(id=f"s{n}", text="", source=source) for n, source in enumerate(TABLE["sources"])),
    *(Context(id=f"t{n}", text=text) for n, text in enumerate(TABLE["texts"])),
]


@pytest.mark.parametrize("text", TABLE["claims"])
async def test_a_link_that_leads_elsewhere_makes_a_claim_of_its_segment(text: str) -> None:
    cutter = Cutters().new(Policy(), "", CONTEXTS)
    cuts = cutter.feed(text) + cutter.finish()
    claims = {str(n): claim for n, claim in enumerate(claim for cut in cuts for claim in cut.claims)}
    assert [claim.text for claim in claims.values()] == [text.removeprefix("## ").removeprefix("[1]: ")]
    assert await claims_with_absent_links(claims, EvidenceIndex(CONTEXTS)) == set(claims)


@pytest.mark.parametrize("text", TABLE["none"])
def test_a_link_that_a_context_has_makes_none(text: str) -> None:
    cutter = Cutters().new(Policy(), "", CONTEXTS)
    assert [cut.claims for cut in cutter.feed(text) + cutter.finish()] == [()]


def test_no_number_of_other_links_hides_one_that_leads_elsewhere() -> None:
    cutter = Cutters().new(Policy(), "", CONTEXTS)
    answer = "[a](b)" * 80 + "![](//evil.example/x)"
    assert sum(len(cut.claims) for cut in cutter.feed(answer) + cutter.finish()) == 1
