"""What holds of segments and claims for every text and every way of cutting its stream."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st

from guardrail.claims import MAX_LEAD_IN_CHARS, ClaimCutter, CutSegment, Segmenter
from guardrail.events import SegmentKind, Severity

# Pieces that rules look for, so that arbitrary texts meet the rules.
PIECES = st.sampled_from(
    [
        *".!?…。！？।؟\"“”„«»「」()[]{}【】*_`~#>|-–—+=:;,/\\'’",
        *" \n\t\r\x00\x0b\x1c\x85\xa0\u2028\u3000\u200b\u200d\ufeff\u0301\u0489\ufe0f",
        *"aZ0é中の한नμ👩🏽🇩🇪",
        *(
            "\n\n",
            "\r\n",
            "\r\n\r\n",
            "...",
            "?!",
            " .",
            ". ",
            "! ",
            "```",
            "~~~",
            "```py\n",
            "\n```\n",
            "---\n",
            "***\n",
        ),
        *(
            "- ",
            "\n- ",
            "* ",
            "• ",
            "1. ",
            "\n2. ",
            "50. ",
            "a) ",
            "(a) ",
            "[1] ",
            "- [ ] ",
            "# ",
            "\n## ",
            "> ",
            "\n> ",
        ),
        *(
            "| a | b |\n",
            "|---|---|\n",
            "|",
            "[3]",
            " [3]",
            "[1, 2]",
            "[3](https://a.b/c)",
            "[[1]](x)",
            "【3†s】",
            "[kb-1]",
            "(kb-12)",
            "(Source: x",
            "[see doc 2",
            "<sup>",
            "</sup>",
            "[a](b)\n",
            "¹",
        ),
        *(
            "Dr. ",
            "e.g. ",
            "U.S. ",
            "No. 5",
            "p. 12",
            "a.m. ",
            "J. R. ",
            "3. März ",
            "z. B. ",
            "etc. ",
            "p.m. ",
            "Monday",
            "No. ",
            "IV",
            "plan B. ",
            "30. 6. 2024",
            "iPads ",
            "３．５",
            " »",
            "他说",
            "问题",
            "라고",
            "मि.ग्रा. ",
            "$3.50",
            "v2.",
            "The ",
        ),
        *(
            "https://x.y/z?a=b.",
            "a@b.co",
            "**bold**",
            "**H:**\n",
            "Hello! ",
            "I don't know",
            "Here is:",
            "It is so",
            " but ",
            "```text\n",
            "# You can take it",
            "The dose is 5 mg a day.",
            "Feel free to ",
        ),
    ]
)
TEXTS = st.one_of(
    st.lists(PIECES, max_size=40).map("".join),
    st.lists(st.one_of(PIECES, st.text(max_size=6)), max_size=25).map("".join),
    st.text(st.characters(codec="utf-8"), max_size=120),
)
BOUNDS = st.sampled_from([16, 17, 24, 40, 100, 600])


class NoRater:
    """The same severity for every claim."""

    def rate(self, text: str, kind: SegmentKind) -> tuple[Severity, tuple[str, ...]]:
        return Severity.NORMAL, ()


def cut(deltas: Iterable[str], bound: int) -> list[CutSegment]:
    cutter = ClaimCutter(NoRater(), max_segment_chars=bound)
    found = [segment for delta in deltas for segment in cutter.feed(delta)]
    return found + cutter.finish()


@st.composite
def chunked(draw: st.DrawFn) -> tuple[str, list[str]]:
    text = draw(TEXTS)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    edges = [0, *cuts, len(text)]
    return text, [text[a:b] for a, b in pairwise(edges)]


@given(chunked(), BOUNDS)
@settings(max_examples=400)
def test_any_cut_of_the_stream_gives_the_same_segments_and_claims(
    case: tuple[str, list[str]], bound: int
) -> None:
    text, deltas = case
    assert cut(deltas, bound) == cut([text], bound)


@given(TEXTS, BOUNDS, st.integers(1, 3))
@settings(max_examples=300)
@example("a.[3](x) b", 600, 1)
@example("\u201c走。\u201d问题", 600, 1)
@example("«I.\xa0»\u201cB", 600, 1)
@example("(a.[3]) B. C", 600, 1)
@example("```\n" + "x" * 40, 16, 1)
@example("[1] \n- [x] a\n", 600, 1)
def test_small_deltas_give_the_same_as_the_whole(text: str, bound: int, size: int) -> None:
    deltas = [text[i : i + size] for i in range(0, len(text), size)]
    assert cut(deltas, bound) == cut([text], bound)


@given(TEXTS, BOUNDS)
@settings(max_examples=300)
def test_segments_tile_the_text_within_the_bound(text: str, bound: int) -> None:
    found = cut([text], bound)
    assert "".join(s.text for s, _ in found) == text
    at = 0
    for index, (segment, _) in enumerate(found):
        assert (segment.index, segment.start) == (index, at)
        assert 0 < len(segment.text) <= bound
        low, high = segment.body
        assert 0 <= low <= high <= len(segment.text)
        assert segment.body_text == segment.body_text.strip()
        at = segment.end


@given(TEXTS, BOUNDS)
@settings(max_examples=300)
def test_claims_are_slices_of_the_text_in_order(text: str, bound: int) -> None:
    found = cut([text], bound)
    claims = [c for _, cs in found for c in cs]
    assert [c.index for c in claims] == list(range(len(claims)))
    for segment, of_segment in found:
        for claim in of_segment:
            assert claim.segment == segment.index
            assert segment.start <= claim.start < claim.end <= segment.end
            assert text[claim.start : claim.end] == claim.text
            assert len(claim.lead_in) <= MAX_LEAD_IN_CHARS
            assert segment.kind is not SegmentKind.BLANK


@given(TEXTS, TEXTS)
@settings(max_examples=200)
def test_what_is_final_stays_whatever_follows(text: str, tail: str) -> None:
    segmenter = Segmenter()
    early = segmenter.feed(text)
    whole = Segmenter()
    assert (whole.feed(text + tail) + whole.finish())[: len(early)] == early


@given(TEXTS)
@settings(max_examples=100)
def test_empty_deltas_change_nothing(text: str) -> None:
    assert cut([d for c in text for d in ("", c, "")], 600) == cut([text], 600)
