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


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("Lockers are ~~free~~ **2 euros**.", "Lockers are  2 euros."),
        ("A <del>red</del> <s class='x'>blue</s> green door", "A   green door"),
        ("Open<!-- not on Sundays --> daily", "Open daily"),
        ("x <script>if (a < 9) { b() }</script>y", "x y"),
        ("<p>Seats: <span style='display: none'>90</span>70</p>", " Seats: 70 "),
        ("<ul hidden><ul><li>90</ul></ul>70", "70"),
        ("1<i>2</i> rooms, 3<wbr>0 beds", "12 rooms, 30 beds"),
        ("5\u200b6 kg of sug\u00adar", "56 kg of sugar"),
        ("7\u00a0000&nbsp;km &amp; &#51;&#x35; bends", "7 000 km & 35 bends"),
        ("＃７５ costs ￥９０", "#75 costs ¥90"),
        (r"\$15 for 2 \* 3", "$15 for 2 * 3"),
        ("an __old__ `lamp`, _lit_", "an old `lamp`, lit"),
        ("8[2] hours, 9[3, 4] days", "8 hours, 9 days"),
        ("12 m<sup>2</sup>, built in<sup>[4]</sup> 1910", "12 m², built in 1910"),
        ("a <!-- b\nc", "a "),
        ("an <s>endless line\nand more", "an "),
        ("70<section style='OPACITY: 0'>90</section>", "70"),
        ("70 <p class='note visually-hidden'>90</p>", "70 "),
        ("70 <b style='font-size:0px'>90</b>", "70 "),
        ("70 <i style='color:#FFF'>90</i>", "70 "),
        ("70 <i style='position:absolute; left:-5000px'>90</i>", "70 "),
        ("<title>90</title>70<noscript>80</noscript>", "70"),
        ("70<?note 90 ?>", "70"),
        ("<div hidden>90 <!-- </div> --> 80</div>70", "70"),
        ("<note-box hidden>90</note-box>70", "70"),
        ("<i title='a>b' hidden>90</i>70", "70"),
        ("<p hidden>90<p>70", " 70"),
        ("<ul><li hidden>90<ul><li>80</li></ul></li><li>70</li></ul>", "  70  "),
        ("80 <!-- 90 --!>70", "80 70"),
        ('70\n[x]: # (90)\n[//]: <> "80"', "70\n\n"),
        # what isn't hidden, and the form of a text
        ("snake_case 2*3*4 ~5 and a[3] [7] x", "snake_case 2*3*4 ~5 and a[3] [7] x"),
        ("* one\n* two\n\n| a | b |\n|---|---|\n", "* one\n* two\n\n| a | b |\n|---|---|\n"),
        ("`<div hidden>` and `<!--` hide", "` ` and `<!--` hide"),
        ("a\n```\n<template>\n```\nb", "a\n```\n \n```\nb"),
        ("~~ no line ~~ x<y, y>z and List<Item>", "~~ no line ~~ x<y, y>z and List<Item>"),
        ("<p style='overflow:hidden;min-width:0'>70</p>", " 70 "),
        ("<b style='background:navy;color:white'>70</b>", "70"),
        ("<b style='color:#fff;padding:2px;background-color:#fff'>70</b>", ""),
        ("<b style='background: navy; color: navy'>70</b>", ""),
        ("<b style='color:#ff0;background-color:#ff0f'>70</b>", "70"),
        ("<a title='the hidden bay'>70</a> <p class='md:hidden'>80", "70  80"),
        ("<p><br hidden>70 <?php f() ?>", "  70 <?php f() ?>"),
        ("[1]: http://a.example/b 70", "[1]: http://a.example/b 70"),
        ("می\u200cخواهم", "می\u200cخواهم"),
    ],
)
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
