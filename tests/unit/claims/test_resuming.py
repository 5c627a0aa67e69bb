from __future__ import annotations

from guardrail.claims import ClaimCutter, CutSegment
from guardrail.claims.cutter import CutPosition, ResumingCutter
from tests.support.sessions import PlainRater

TEXT = (
    "# Prices\n\nThe small one costs $5. It comes in red. Paris is in France. \n"
    "- Take 5 mg.\n- Rest well.\nThe e"
)
REST = "nd is near. That is all."


def new_cutter() -> ClaimCutter:
    return ClaimCutter(PlainRater())


def cut_whole() -> list[CutSegment]:
    cutter = new_cutter()
    return [*cutter.feed(TEXT + REST), *cutter.finish()]


def test_goes_on_with_what_an_uninterrupted_cutter_would_say() -> None:
    first = new_cutter()
    known = first.feed(TEXT)
    assert first.position.chars == known[-1].segment.end
    resumed = ResumingCutter(new_cutter, TEXT, first.position)
    assert resumed.position == first.position
    rest = [*resumed.feed(REST), *resumed.finish()]
    assert [*known, *rest] == cut_whole()
    first.feed(REST)
    first.finish()
    assert resumed.position == first.position


def test_finishes_without_more_text() -> None:
    first = new_cutter()
    first.feed(TEXT)
    resumed = ResumingCutter(new_cutter, TEXT, first.position)
    assert resumed.finish() == first.finish()


def test_cuts_nothing_before_it_is_asked() -> None:
    def never() -> ClaimCutter:
        raise AssertionError("it was asked for nothing")

    assert ResumingCutter(never, TEXT, CutPosition(12, 2, 1)).position == CutPosition(12, 2, 1)


def test_segments_tile_the_text_where_another_version_had_cut_elsewhere() -> None:
    position = CutPosition(TEXT.index("small"), 7, 3)  # in the middle of what is a sentence now
    resumed = ResumingCutter(new_cutter, TEXT, position)
    rest = [*resumed.feed(REST), *resumed.finish()]
    assert "".join(cut.segment.text for cut in rest) == (TEXT + REST)[position.chars :]
    assert rest[0].segment.start == position.chars
    assert [cut.segment.index for cut in rest] == list(range(7, 7 + len(rest)))
    claims = [claim for cut in rest for claim in cut.claims]
    assert [claim.index for claim in claims] == list(range(3, 3 + len(claims)))
    for cut in rest:
        assert (TEXT + REST)[cut.segment.start : cut.segment.end] == cut.segment.text
        for claim in cut.claims:
            assert claim.segment == cut.segment.index
            assert (TEXT + REST)[claim.start : claim.end] == claim.text
    assert resumed.position == CutPosition(len(TEXT + REST), 7 + len(rest), 3 + len(claims))


def test_indexes_count_on_where_another_version_had_cut_into_fewer() -> None:
    whole = cut_whole()
    at = whole[3].segment.end
    resumed = ResumingCutter(new_cutter, TEXT, CutPosition(at, 2, 1))
    rest = [*resumed.feed(REST), *resumed.finish()]
    assert [cut.segment.text for cut in rest] == [cut.segment.text for cut in whole[4:]]
    assert [cut.segment.index for cut in rest] == list(range(2, 2 + len(rest)))
    assert rest[0].claims[0].index == 1
    assert rest[0].claims[0].lead_in == whole[4].claims[0].lead_in, "what stood before is known still"
