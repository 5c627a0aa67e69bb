"""What needs checking and what does not. A missed claim is the dangerous error: see ``statements.yaml``."""

from __future__ import annotations

from typing import Any

import pytest

from guardrail.claims import BuiltinSeverityRater, ClaimCutter
from guardrail.claims.detector import Statement, classify
from guardrail.claims.model import read_prose
from guardrail.events import SegmentKind
from tests.support.tables import table

CORPUS: dict[str, Any] = table(__file__, "statements.yaml")
FRAMED = [*CORPUS["framed"], *([text, text] for text in CORPUS["whole"])]
SILENT = [(text, kind) for kind, texts in CORPUS["silent"].items() for text in texts]


def found(text: str, step: int) -> list[tuple[str, SegmentKind]]:
    cutter = ClaimCutter(BuiltinSeverityRater())
    cuts = [cut for i in range(0, len(text), step) for cut in cutter.feed(text[i : i + step])]
    pairs = [(claim, cut.segment) for cut in cuts + cutter.finish() for claim in cut.claims]
    for claim, segment in pairs:
        assert text[claim.start : claim.end] == claim.text
        assert segment.start <= claim.start < claim.end <= segment.end
        assert claim.prose.text == read_prose(claim.text, begins_line=False).text
    return [(claim.text, segment.kind) for claim, segment in pairs]


@pytest.mark.parametrize(("text", "claim"), FRAMED)
def test_what_is_stated_is_a_claim_without_what_frames_it(text: str, claim: str) -> None:
    assert found(text, len(text)) == [(claim, SegmentKind.SENTENCE)]


@pytest.mark.parametrize(("text", "kind"), SILENT)
def test_needs_no_check(text: str, kind: str) -> None:
    assert found(text, len(text)) == []
    prose = read_prose(text)
    spans = [link.span for link in prose.links]
    linked = [(0, len(prose.text))] if spans and kind == "citation" else []
    if kind != "nothing":
        assert classify(prose.text, SegmentKind.SENTENCE, linked=linked).statement is Statement(kind)


@pytest.mark.parametrize("text", CORPUS["stated"])
def test_what_states_is_a_claim_wherever_it_stands(text: str) -> None:
    assert len(found(text, len(text))) == 1
    assert found(text, 1) == found(text, len(text))


@pytest.mark.parametrize("text", CORPUS["unstated"])
def test_what_states_nothing_is_let_off(text: str) -> None:
    assert found(text, len(text)) == []


def test_prose_in_a_fence_is_a_claim_without_the_fence() -> None:
    text = "```md\n\nThe dose is 5 mg a day.\nNever take more than that.\n```\nfoo"
    assert found(text, 3) == [
        ("The dose is 5 mg a day.\nNever take more than that.", SegmentKind.CODE),
        ("foo", SegmentKind.SENTENCE),
    ]


def test_a_fence_longer_than_a_segment_keeps_its_label() -> None:
    line = "The maximum dose is 5000 mg a day.\n"
    assert len(found("```text\n" + line * 40 + "```\n", 7)) > 1
    code = "    total = compute(value, 5000)  # The maximum dose is never enough.\n"
    assert found("```python\n" + code * 40 + "```\n", 7) == []
    assert found("```python\n" + code.replace("never enough", "5000 mg a day") * 40 + "```\n", 7)


def test_a_fence_behind_a_fence_has_its_own_label() -> None:
    line = "The dose is low for children."
    assert found(f"```python\nx = 1\n```\n```text\n{line}\n```\n", 5) == [(line, SegmentKind.CODE)]
