"""Raw texts and what judges read of them. The table is ``prose.yaml``."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.claims import markup
from guardrail.claims.model import read_prose
from tests.support.tables import table

ROWS: list[dict[str, Any]] = table(__file__, "prose.yaml")

_PIECES = r"""
* ** _ __ ~~ ` \ \* [ ] ( ) ]( [a](b) ![ https://x.yz <b> </b> <br> <sup>2</sup> < > <!-- --> & &amp; &lt; ;
\frac{1}{2} # | amp; |--| - 1. 2. (1) (2) a) b) > word and 5 , . : ✅ ❌ 1️⃣ ① ５ ， Ａ 𝟓 🅃 а ٢ י م é ́
""".split()  # noqa: SIM905
_PIECES += "\u200b\u200c\u202e\u00ad\u3000\u00a0"
texts = st.lists(st.one_of(st.sampled_from([*_PIECES, " ", "\n"]), st.text(max_size=3)), max_size=24).map(
    "".join
)


def spans(raw: str, parts: list[str]) -> list[tuple[int, int]]:
    found, at = [], 0
    for part in parts:
        at = raw.index(part, at)
        found.append((at, at := at + len(part)))
    return found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["raw"][:40])
def test_what_judges_read(row: dict[str, Any]) -> None:
    raw = row["raw"]
    prose = read_prose(raw, spans(raw, row.get("cited", [])))
    assert prose.text == row["reads"]
    assert [link.target for link in prose.links] == row.get("links", [])
    assert all(0 <= link.span[0] < link.span[1] <= len(raw) for link in prose.links)
    assert [raw[start:end] for start, end in prose.deceptive] == row.get("deceptive", [])


def test_spans_lead_back() -> None:
    raw = "The **basic** plan costs &euro;49 [1] a month."
    prose = read_prose(raw, spans(raw, ["[1]"]))
    for said, stands in {"basic plan": "basic** plan", "€49": "&euro;49", "€49 a": "&euro;49 [1] a"}.items():
        start = prose.text.index(said)
        assert raw[slice(*prose.raw_span(start, start + len(said)))] == stands


@pytest.mark.parametrize("piece", ["①a ", "1-", "．1", "1/", "0 1", "😀 ", "(1) a "])
def test_a_reading_searches_the_text_a_bounded_number_of_times(
    piece: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = piece * 1000 + "*"
    searched = 0

    class Counting:
        @staticmethod
        def search(text: str, at: int) -> re.Match[str] | None:
            nonlocal searched
            found = signs.search(text, at)
            searched += (found.end() if found else len(text)) - at
            return found

    signs = markup._SIGNS
    monkeypatch.setattr(markup, "_SIGNS", Counting)
    read_prose(text)
    assert searched <= 3 * len(text)


@given(texts, st.booleans(), st.data())
def test_offsets_lead_back_and_a_second_reading_changes_nothing(
    raw: str, begins_line: bool, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(raw)))
    cited = [(at, data.draw(st.integers(at + 1, len(raw))))] if at < len(raw) else []
    prose = read_prose(raw, cited, begins_line=begins_line)
    assert len(prose.offsets) == len(prose.text) + 1
    assert prose.offsets[-1] == len(raw)
    assert all(a <= b for a, b in pairwise(prose.offsets))
    for i, char in enumerate(prose.text):
        start, end = prose.raw_span(i, i + 1)
        assert 0 <= start < end <= len(raw)
        if char.isascii() and char.isalpha() and end - start == 1 and raw[start].isascii():
            assert raw[start] == char
    again = read_prose(prose.text, begins_line=begins_line)
    assert again.text == prose.text
    ascending = [place for span in prose.deceptive for place in span]
    assert ascending == sorted(ascending)


@given(st.lists(st.from_regex(r"[A-Za-zäé]{1,8}|[1-9][0-9]{0,3}", fullmatch=True), min_size=1).map(" ".join))
def test_text_without_markup_is_unchanged(raw: str) -> None:
    prose = read_prose(raw)
    assert (prose.text, prose.links, prose.deceptive) == (raw, (), ())
    assert tuple(prose.offsets) == tuple(range(len(raw) + 1))
