"""Whatever the text: passages and quotes are slices of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from guardrail.events import Context
from guardrail.evidence import EvidenceIndex, find_quote, sentence_spans

TEXTS = st.text(st.sampled_from("aB1 .\n\t,'“”—\u00ad\u200b€日本।éİß[]()%"), max_size=400) | st.text(
    max_size=120
)


class SmallIndex(EvidenceIndex):
    """Short texts have several of its passages."""

    passage_words = 7
    overlap_words = 3


@given(TEXTS, st.data())
def test_every_slice_of_a_text_is_located_in_it(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    quote = text[start : data.draw(st.integers(start, len(text)))]
    span = find_quote(text, quote)
    assert (span is None) == (not quote.strip())
    if span is not None:
        assert text[span[0] : span[1]] == quote.strip()


@given(TEXTS, st.data())
def test_a_quote_in_other_white_space_and_case_is_located_where_it_folds_to_the_same(
    text: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text)))
    quote = "  ".join(text[start : data.draw(st.integers(start, len(text)))].split()).upper().lower()
    span = find_quote(text, quote)
    if span is not None:
        found = text[span[0] : span[1]]
        assert found
        assert found == found.strip("\u200b\u00ad") or found == quote.strip()


@given(st.lists(TEXTS, max_size=4), TEXTS)
def test_passages_and_sentences_are_slices_and_search_returns_passages(texts: list[str], query: str) -> None:
    index = SmallIndex([Context(id=f"c{n}", text=text) for n, text in enumerate(texts)])
    by_id = {context.id: context.text for context in index.contexts}
    known = set()
    for passage in index.passages:
        assert by_id[passage.context_id][passage.start : passage.end] == passage.text
        known.add((passage.context_id, passage.start, passage.end))
    results = index.search(query, 5)
    assert {(p.context_id, p.start, p.end) for p in results} <= known
    assert results == index.search(query, 50)[:5], "the best come first, however many are asked for"
    layout = index.layout
    for windows in (layout.sentences, layout.passages):
        assert list(windows.first) == sorted(windows.first)
        assert list(windows.last) == sorted(windows.last)
        for n, context in enumerate(windows.context):
            assert 0 <= windows.start[n] < windows.end[n] <= len(texts[context])


@given(st.lists(TEXTS, max_size=4))
def test_every_word_stands_in_a_passage_and_in_a_sentence(texts: list[str]) -> None:
    index = SmallIndex([Context(id=f"c{n}", text=text) for n, text in enumerate(texts)])
    layout = index.layout
    for position in range(len(layout.terms)):
        assert layout.passages.holding(position)
        assert layout.sentences.holding(position)


@given(TEXTS)
def test_sentences_hold_all_that_is_not_white_space(text: str) -> None:
    starts, ends = sentence_spans(text)
    covered = [False] * len(text)
    for start, end in zip(starts, ends, strict=True):
        covered[start:end] = [True] * (end - start)
    assert all(covered[at] or text[at].isspace() for at in range(len(text)))
