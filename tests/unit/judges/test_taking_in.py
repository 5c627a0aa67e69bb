"""What every verdict goes through, whoever gave it: spans led back, findings that no judge has to make."""

from __future__ import annotations

from dataclasses import replace

import pytest

from guardrail.claims import Claim
from guardrail.engine.judging import claims_with_absent_links, take_in
from guardrail.events import Context, Finding, Severity
from guardrail.evidence import EvidenceIndex
from guardrail.judges import Verdict
from guardrail.verdicts import sound
from tests.unit.judges.doubles import judgement

CONTEXTS = [
    Context(
        id="c1",
        text="See https://Shop.example/Prices/?a=1, write to info@shop.example.",
        source="www.a.example/x/",
    ),
    Context(id="guide.md", text="The shop is called docs.b.example.", source=None),
]


def claim(text: str) -> Claim:
    return Claim(0, 0, text, 100, 100 + len(text), Severity.NORMAL)


@pytest.mark.parametrize(
    ("text", "absent"),
    [
        ("It costs $5.", False),
        ("See [prices](http://www.shop.example/Prices).", False),
        ("See https://SHOP.example/Prices/#top.", False),
        ("Mail INFO@shop.example or <info@Shop.example>!", False),
        ("Mail other@shop.example or fo@shop.example.", True),
        ("Mail info@SHOP.example.", False),
        ("See https://shop.example.", False),
        ("See https://shop.example/prices.", True),
        ("See https://shop.example/Price.", True),
        ("See https://evil.example/Prices.", True),
        ("See https://b.example.", True),
        ("See https://example.", True),
        ("See [x](https://a.example/x).", False),
        ("See [the guide](guide.md), [the top](#top), [call](tel:+49123).", False),
        ("See [the guide](other.md).", True),
    ],
)
async def test_links_that_are_in_no_source_are_told_of(text: str, absent: bool) -> None:
    found = await claims_with_absent_links({"k0": claim(text)}, EvidenceIndex(CONTEXTS))
    assert found == ({"k0"} if absent else set())
    said = take_in(judgement(verdict=Verdict.SUPPORTED), claim(text), found)
    assert said.verdict is Verdict.SUPPORTED
    assert said.findings == ((Finding.LINK_ABSENT,) if absent else ())


@pytest.mark.parametrize(
    "text", ["It costs 1٢0.", "It is \u202eeerf\u202c.", "It is fr\u0435e.", "It is f\u3164ree."]
)
@pytest.mark.parametrize("verdict", Verdict)
def test_what_displays_otherwise_is_never_supported(text: str, verdict: Verdict) -> None:
    support = None if verdict is Verdict.UNVERIFIED else 0.9
    given = replace(judgement(verdict=verdict), support=support, findings=(Finding.FIGURE_ABSENT,))
    said = take_in(given, claim(text))
    assert said.findings == (Finding.FIGURE_ABSENT, Finding.DISPLAY_MISMATCH)
    if verdict is Verdict.SUPPORTED:
        assert (said.verdict, said.support) == (Verdict.UNSUPPORTED, 0.0)
        assert said.reasoning
    else:
        assert (said.verdict, said.support) == (verdict, support)


def test_what_has_no_width_displays_as_it_reads() -> None:
    said = take_in(judgement(verdict=Verdict.SUPPORTED), claim("It is f\u200bree."))
    assert (said.verdict, said.findings) == (Verdict.SUPPORTED, ())


def test_spans_are_led_back_to_the_raw_text() -> None:
    about = claim("The **pro** plan &amp; the *basic* one.")
    assert about.prose.text == "The pro plan & the basic one."
    offered = replace(judgement(verdict=Verdict.UNSUPPORTED), unsupported_spans=((4, 12), (13, 14), (19, 24)))
    checked = sound(offered, about.prose.text)
    assert checked is not None
    said = take_in(checked, about)
    marked = [about.text[start:end] for start, end in said.unsupported_spans]
    assert marked == ["pro** plan", "&amp;", "basic"]


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("See [the basic plan](https://shop.example/plan), it is $5.", ["See [the basic plan", "it is $5"]),
        ("It is <b>quite</b> old.", ["It is", "quite", "old"]),
        ("It is **quite** old.", ["It is **quite** old."]),
        ("It is [old](https://shop.example/plan).", ["It is [old"]),
    ],
)
def test_spans_cover_no_address_that_is_not_shown(text: str, marked: list[str]) -> None:
    about = claim(text)
    offered = replace(judgement(verdict=Verdict.UNSUPPORTED), unsupported_spans=((0, len(about.prose.text)),))
    assert [text[start:end] for start, end in take_in(offered, about).unsupported_spans] == marked
