"""Whatever the text and whatever the contexts are called: citations lie in the text, in order and apart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from guardrail.claims import CitationReader
from guardrail.events import Context

_SIGNS = r"[](){}<>【】［^†:,;-–./\|`!¹²⁻$ " + "\n\0\ud800٣ﬁ"
_WORDS = (
    "```",
    "<sup>",
    "</sup>",
    "[1]",
    "(2)",
    "[^1]:",
    "](http://a/b",
    "document 1",
    "Source: ",
    "see ",
    "10",
)
_PIECES = st.sampled_from((*_SIGNS, *_WORDS, "according to ", " and ", "kb-1", "x.pdf", "m"))
_TEXTS = st.lists(_PIECES | st.text(max_size=4), max_size=40).map("".join)
_NAMES = st.text(min_size=1, max_size=20) | st.lists(_PIECES, min_size=1, max_size=6).map("".join)
_CONTEXTS = st.lists(st.tuples(_NAMES.filter(bool), st.none() | _NAMES), max_size=6)


@given(_TEXTS, _CONTEXTS)
def test_citations_are_in_the_text_ascending_and_apart(
    text: str, named: list[tuple[str, str | None]]
) -> None:
    contexts = [Context.model_construct(id=name, text="", source=source) for name, source in named]
    found = CitationReader(contexts).find(text)
    at = 0
    for citation in found:
        start, end = citation.span
        assert at <= start < end <= len(text)
        assert citation.text == text[start:end]
        assert set(citation.context_ids) <= {name for name, _ in named}
        assert len(set(citation.context_ids)) == len(citation.context_ids)
        at = end


@given(
    st.from_regex(r"[A-Za-zÄ-ü][\w.+*?$^|()\\ -]{0,40}[\w)*+]", fullmatch=True),
    st.sampled_from(["[]", "【】"]),
)
def test_the_id_of_a_context_in_square_brackets_names_it(name: str, brackets: str) -> None:
    contexts = [Context(id=name, text="")]
    mark = brackets[0] + name + brackets[1]
    found = CitationReader(contexts).find(f"So it is, {mark}.")
    assert [(citation.text, citation.context_ids) for citation in found] == [(mark, (name,))]
