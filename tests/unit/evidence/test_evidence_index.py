"""Search finds what stands in the contexts, wherever it stands; quotes are real or nothing."""

from __future__ import annotations

import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.events import Context
from guardrail.evidence import EvidenceIndex
from guardrail.evidence.index import Layout
from guardrail.evidence.shown import ShownText

FILLER = "The committee met again and talked about many other matters of little weight to anyone outside. "


def index_of(*texts: str) -> EvidenceIndex:
    return EvidenceIndex([Context(id=f"c{n}", text=text) for n, text in enumerate(texts, 1)])


def test_finds_a_fact_at_the_end_of_a_very_long_context() -> None:
    text = FILLER * 1300 + "The reactor at Kvelde was shut down for good in the spring."
    assert len(text.split()) > 20_000
    best = index_of("Something else entirely.", text).search("When was the reactor at Kvelde shut down?")[0]
    assert "The reactor at Kvelde was shut down for good in the spring." in best.text


def test_a_fact_at_the_border_of_two_passages_stands_whole_in_one() -> None:
    """Wherever the fact is put, some passage holds all of it."""
    fact = "Only the deputy warden of Ulverstone may open the eastern sluice gates between dusk and dawn."
    for before in range(60, 180, 7):
        words = ("filler " * before).strip()
        passages = index_of(f"{words}. {fact} {words}.").passages
        assert any(fact in passage.text for passage in passages), before


def test_passages_are_slices_of_their_context_and_cover_it() -> None:
    text = FILLER * 40
    passages = index_of(text).passages
    covered: set[int] = set()
    for passage in passages:
        assert text[passage.start : passage.end] == passage.text
        covered.update(range(passage.start, passage.end))
    assert all(at in covered or text[at].isspace() for at in range(len(text)))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("返金の期限は何日ですか", "返金は購入から30日以内に限ります。"),
        ("दवा कब लें", "दवा दिन में दो बार लें।"),
        ("ยกเลิกการจอง", "ยกเลิกการจองได้ฟรีก่อนเข้าพัก"),
    ],
)
def test_searches_scripts_without_spaces_and_with_vowel_signs(query: str, expected: str) -> None:
    index = index_of(
        "配送は無料です。",
        "返金は購入から30日以内に限ります。",
        "दवा दिन में दो बार लें।",
        "ยกเลิกการจองได้ฟรีก่อนเข้าพัก",
    )
    assert index.search(query, 1)[0].text == expected


def test_what_is_to_come_first_does_so_and_leaves_room_for_what_fits_better() -> None:
    index = index_of(
        "Tours last an hour and cost 4 euros.", "Tours are popular.", f"{FILLER * 30} Tours. " * 9
    )
    assert [p.context_id for p in index.search("Tours last an hour", 2, first=frozenset({"c2"}))] == [
        "c2",
        "c1",
    ]
    found = index.search("Tours last an hour", 4, first=frozenset({"c3", "unknown"}))
    assert [passage.context_id for passage in found] == ["c3", "c3", "c1", "c2"]


def test_inflections_are_found() -> None:
    index = index_of("Nothing here.", "Customers cancelled their subscriptions.", "We sell shoes.")
    assert index.search("Can a customer cancel a subscription?", 1)[0].context_id == "c2"


def test_without_contexts_or_shared_words_nothing_is_found() -> None:
    assert EvidenceIndex([]).search("anything") == []
    assert index_of("", "   ").search("anything") == []
    assert index_of("cats purr").search("dogs bark") == []


def test_a_query_of_common_words_only_still_finds() -> None:
    assert index_of("It is what it is.").search("what is it")[0].context_id == "c1"


def test_is_built_once_by_whichever_thread_comes_first() -> None:
    index = index_of(FILLER * 50)
    gate = threading.Barrier(4)
    layouts = []

    def search() -> None:
        gate.wait()
        layouts.append(index.layout)

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(layout) for layout in layouts}) == 1


def test_release_drops_the_built_form_and_the_next_search_builds_it_again() -> None:
    index = index_of("Basic costs $29.")
    first = index.layout
    index.release()
    assert index.search("Basic")[0].text == "Basic costs $29."
    assert index.layout is not first


def test_the_built_form_of_8_kb_takes_less_than_30_kb() -> None:
    index = index_of(*[FILLER * 17] * 5)
    assert sum(len(context.text) for context in index.contexts) >= 8000
    layout = index.layout
    arrays = [layout.terms, layout.starts, layout.order, layout.context_first]
    for windows in (layout.sentences, layout.passages):
        arrays += [windows.context, windows.first, windows.last, windows.start, windows.end]
    assert sum(sys.getsizeof(array) for array in arrays) < 30_000


class TestLocate:
    TEXT = (
        "Terms:\n  The “late fee” is 1.5 %\u00a0a\u00a0month — no more.\u200b Soft\u00adhyphen and İstanbul."
    )

    @pytest.mark.parametrize(
        ("quote", "stands"),
        [
            ("The “late fee” is", "The “late fee” is"),
            (
                'the "late fee" is 1.5 % a month - no more',
                "The “late fee” is 1.5 %\u00a0a\u00a0month — no more",
            ),
            ("  Terms: The “late", "Terms:\n  The “late"),
            ("softhyphen and", "Soft\u00adhyphen and"),
            ("“no more.”", "no more."),
            ("...1.5 % a month...", "1.5 %\u00a0a\u00a0month"),
            ("istanbul", "İstanbul"),
        ],
    )
    def test_folds_what_copying_changes(self, quote: str, stands: str) -> None:
        found = index_of("Other text.", self.TEXT).locate(quote)
        assert found is not None
        assert (found.context_id, found.quote) == ("c2", stands)
        assert self.TEXT[found.span[0] : found.span[1]] == stands

    @pytest.mark.parametrize("quote", ["", "   ", "...", "“”", "1.6 % a month", "late fee is", "fee month"])
    def test_an_invented_quote_is_none(self, quote: str) -> None:
        assert index_of(self.TEXT).locate(quote) is None

    def test_looks_in_the_named_context_first_and_then_in_the_others(self) -> None:
        index = index_of("same words", "same words", "only here")
        second = index.locate("same words", "c2")
        elsewhere = index.locate("only here", "c1")
        assert second is not None
        assert second.context_id == "c2"
        assert elsewhere is not None
        assert elsewhere.context_id == "c3"


def test_a_sentence_is_of_so_many_characters_whatever_its_words_are() -> None:
    """A word may be as long as the text, and signs before a word too; each word is in a sentence."""
    for text in ("1/" * 100_000, "!" * 50_000 + " word", "a" * 9_000 + " b " + "c" * 9_000 + " d."):
        layout = Layout([ShownText(text)], 110, 40)
        sentences = layout.sentences
        lengths = [end - start for start, end in zip(sentences.start, sentences.end, strict=True)]
        assert max(lengths) <= 4_000
        assert all(sentences.holding(position) for position in range(len(layout.terms)))


@pytest.mark.parametrize(
    "contexts",
    [
        [Context(id=str(number), text="Refunds are paid within 14 days.") for number in range(2_000)],
        [Context(id="long", text="1. " * 20_000)],
        [Context(id="long", text="Refunds are paid. " * 20_000)],
    ],
    ids=["many", "numbers", "sentences"],
)
def test_building_asks_whether_it_is_still_wanted(contexts: list[Context]) -> None:
    asked = 0

    def stopped_at(number: int) -> bool:
        nonlocal asked
        asked += 1
        return asked >= number

    index = EvidenceIndex(contexts)
    assert not index.prepare(lambda: stopped_at(10))
    assert asked == 10
    asked = 0
    assert index.prepare(lambda: stopped_at(100_000)), "what was begun is begun anew"
    assert asked >= 40
    asked = 0
    assert index.prepare(lambda: stopped_at(0)), "it is built already"
    assert asked == 0


def test_who_waits_for_another_that_builds_asks_too() -> None:
    index = EvidenceIndex([Context(id="long", text="Refunds are paid. " * 2_000)])
    building, given_up = threading.Event(), threading.Event()

    def first() -> bool:
        building.set()
        given_up.wait(30)
        return False

    thread = threading.Thread(target=index.prepare, args=(first,))
    thread.start()
    building.wait(30)
    assert not index.prepare(lambda: True)
    given_up.set()
    thread.join(30)
    assert index.prepare(lambda: True)


COUNTED = "One two three four. Five six seven. " * 40


@given(st.lists(st.integers(0, 279), max_size=30), st.integers(5, 60), st.integers(0, 4))
def test_the_windows_of_several_tokens_are_those_of_each(found: list[int], size: int, overlap: int) -> None:
    layout = Layout([ShownText(COUNTED)], size, overlap * size // 5)
    positions = sorted(set(found))
    for windows in (layout.sentences, layout.passages):
        each = {number for position in positions for number in windows.holding(position)}
        together = windows.holding_any(positions)
        assert set(together) == each
        assert len(together) == len(each)
