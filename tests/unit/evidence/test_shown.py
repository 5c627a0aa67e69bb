"""Contexts as their readers are shown them, and the way back to what stands in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.claims.model import Claim
from guardrail.events import Context, Severity, Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.evidence.shown import ShownText
from guardrail.judges.local.check import build_checker
from guardrail.judges.local.settings import LocalJudgeSettings
from tests.support.tables import table


@pytest.mark.parametrize(("raw", "shown"), table(__file__, "shown.yaml")["shown"])
def test_only_what_a_reader_is_shown_counts(raw: str, shown: str) -> None:
    assert ShownText(raw).text == shown


_PIECES = st.sampled_from(
    r"<s> </s> ~~ ** _ ` &amp; &shy; <!-- --> <b> </b> <p|hidden> </p> 4 ９ a . [1] \* <sup>2</sup>".split()  # noqa: SIM905
).map(lambda piece: piece.replace("|", " "))
_SPACES = st.sampled_from([" ", "\n", "\u00a0", "\u200b", "word "])


@given(st.lists(_PIECES | _SPACES, max_size=40).map("".join))
def test_every_span_leads_back_to_the_text(raw: str) -> None:
    shown = ShownText(raw)
    spans = [shown.raw_span(at, at + 1) for at in range(len(shown.text))]
    assert all(0 <= start < end <= len(raw) for start, end in spans)
    assert spans == sorted(spans)
    index = EvidenceIndex([Context(id="c", text=raw)])
    sentences = index.layout.sentences
    for start, end in zip(sentences.start, sentences.end, strict=True):
        quote = index.quote(0, start, end)
        assert raw[slice(*quote.span)] == quote.quote
        first, last = spans[start], spans[end - 1]
        assert quote.span[0] <= first[0]
        assert quote.span[1] >= last[1]


@pytest.mark.parametrize("raw", ["A **big** lamp costs 4 euros.", "A big lamp costs 4 euros."])
def test_a_quote_has_the_markup_that_it_has_in_its_context(raw: str) -> None:
    index = EvidenceIndex([Context(id="c", text=raw)])
    sentences = index.layout.sentences
    assert index.quote(0, sentences.start[0], sentences.end[0]).quote == raw
    assert index.search("big lamp")[0].text == raw


def test_an_emphasis_around_a_quote_goes_with_it() -> None:
    shown = ShownText("x **Lamps** y")
    assert shown.raw_span(2, 7) == (2, 11)


def test_texts_without_signs_are_kept_as_they_are() -> None:
    raw = "Plain text, 4 > 3; a list:\n- one\n- two"
    assert ShownText(raw).text is raw


@pytest.mark.parametrize(
    ("context", "claim", "supported"),
    [
        ("The lift carries **1**2 people, ~~15 people~~.", "The lift carries 15 people.", False),
        ("The lift carries <b>1</b>2 people.", "The lift carries 12 people.", True),
        ("A tram leaves every &#49;&#53; minutes.", "A tram leaves every 15 minutes.", True),
        ("<!-- A tram leaves every 5 minutes. --> A bus leaves.", "A tram leaves every 5 minutes.", False),
    ],
)
def test_a_claim_is_held_against_what_is_shown(context: str, claim: str, supported: bool) -> None:
    checker = build_checker(LocalJudgeSettings())
    given_ = Claim(0, 0, claim, 0, len(claim), Severity.NORMAL)
    found = checker.check("c", given_, "", EvidenceIndex([Context(id="c", text=context)]))
    assert (found.verdict is Verdict.SUPPORTED) is supported
    for evidence in found.evidence:
        assert context[slice(*evidence.span)] == evidence.quote


TABLE = "| Ship | Fare |\n|---|---|\n| Ula | 7 |\n| Ner | 9 |\n"


@pytest.mark.parametrize(
    "text",
    [
        f"<!--\n{TABLE}-->",
        f"<div hidden>\n{TABLE}</div>",
        "<p style='display:none'><table><tr><th>Ship<th>Fare<tr><td>Ula<td>7<tr><td>Ner<td>9</table></p>",
        "<table hidden><tr><th>Ship<th>Fare<tr><td>Ula<td>7<tr><td>Ner<td>9</table>",
        '<script>\n[{"name": "Ula", "fare": 7}, {"name": "Ner", "fare": 9}]\n</script>',
        f"~~\n{TABLE}~~".replace("~~\n", "~~").replace("\n~~", "~~"),
    ],
)
def test_a_hidden_table_is_not_told(text: str) -> None:
    shown = ShownText(f"The quay.\n\n{text}\n\nThe end.")
    assert shown.tables == ()
    assert "Ula" not in shown.text


def test_a_value_that_shows_nothing_is_no_field_and_no_quote() -> None:
    for empty in ("\u200b", "<!-- 8 -->", ""):
        shown = ShownText(f"| Ship | Fare | Deck |\n|---|---|---|\n| Ula | {empty} | A |\n| Ner | 9 | B |\n")
        assert [len(record.fields) for record in shown.tables[0].records] == [1, 2]


@pytest.mark.parametrize(
    "text",
    [
        "a|b\n---|---\n" + "a|" * 5000 + "\n" + "a|b\n" * 5000,
        "<table><tr>" + "<td colspan=100>a" * 90 + "<tr><td>a" * 9000 + "</table>",
        "a  " * 3000 + "a\n" + ("b" + "  c" * 2999 + "\n") * 3,
        f"| a | {'h' * 20000} | b |\n|---|---|---|\n" + "".join(f"| r{n} | 2x | z |\n" for n in range(1500)),
        "\n".join(f"k{n}: v" for n in range(20_000)),
        '{"a":"x","b":2}\n' * 20_000,
        "<table><tr><td colspan=" + "9" * 5000 + ">a<td>b<tr><td>c<td>5</table>",
        "".join(f"| r{n} | 2 | z |\n" for n in range(9000)) + "x" * 380_000,
    ],
    ids=["ragged", "spans", "aligned", "header", "fields", "lines", "colspan", "fences"],
)
def test_hostile_tables_are_told_in_proportion(text: str) -> None:
    shown = ShownText(text)  # the limit of a test would end anything slow
    assert len(shown.text) < 20 * len(text)


@pytest.mark.parametrize("table", ["", TABLE])
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("It was <s>8</s> and is 9. <s>The rest", "It was  and is 9."),
        ("Write `<s>` for it. It was <s>8</s> and is 9.", "Write `` for it. It was  and is 9."),
        ("It is <!-- 8 -->9. <!-- The rest", "It is 9."),
        ("<s>a <s>b</s> c</s> d", "d"),
    ],
)
def test_what_nothing_closes_hides_nothing_before_it(text: str, shown: str, table: str) -> None:
    told = ShownText(f"{table}\n{text}").text
    assert told.endswith(shown) or told.strip().endswith(shown)
