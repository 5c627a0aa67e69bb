"""Numbers, findings and spans that judges offer: what is believed and kept of them, whatever they are."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.claims import Claim
from guardrail.engine.judging import claims_with_absent_links, take_in
from guardrail.events import Context, Finding, Severity
from guardrail.evidence import EvidenceIndex
from guardrail.judges import Judgement, Verdict
from guardrail.verdicts import sound, spans_within
from tests.unit.judges.doubles import judgement

CONFLICT, ABSENT = Finding.FIGURE_CONFLICT, Finding.FIGURE_ABSENT


def offering(**changes: Any) -> Judgement | None:
    return sound(replace(judgement(verdict=Verdict.CONTRADICTED), **changes), "It costs $50.")


@pytest.mark.parametrize("name", ["confidence", "support", "contradiction"])
@pytest.mark.parametrize(("offered", "kept"), [(0.0, 0.0), (0.7, 0.7), (1.01, 1.0), (-0.01, 0.0)])
def test_a_probability_that_is_off_by_rounding_is_put_right(name: str, offered: float, kept: float) -> None:
    assert getattr(offering(**{name: offered}), name) == kept


@pytest.mark.parametrize("name", ["confidence", "support", "contradiction"])
@pytest.mark.parametrize("offered", [1.5, -0.2, float("nan"), float("inf"), "0.5", ()])
def test_what_is_no_probability_makes_the_verdict_unusable(name: str, offered: Any) -> None:
    assert offering(**{name: offered}) is None


@pytest.mark.parametrize(
    ("offered", "kept"), [((), ()), ((CONFLICT, ABSENT, CONFLICT), (CONFLICT, ABSENT)), ([ABSENT], (ABSENT,))]
)
def test_each_finding_is_kept_once(offered: Any, kept: tuple[Finding, ...]) -> None:
    said = offering(findings=offered)
    assert said is not None
    assert said.findings == kept


@pytest.mark.parametrize("offered", [("figure_conflict",), (CONFLICT, None), None, 7])
def test_an_unknown_finding_makes_the_verdict_unusable(offered: Any) -> None:
    assert offering(findings=offered) is None


TEXT = "It costs $50."
CLAIM = Claim(0, 0, TEXT, 100, 100 + len(TEXT), Severity.NORMAL)
numbers = st.integers(-3, len(TEXT) + 3)


class Endless:
    """An object that would be iterated for ever."""

    def __iter__(self) -> Any:
        while True:
            yield (0, 1)


@pytest.mark.parametrize(
    ("offered", "kept"),
    [
        ((), ()),
        (((0, 2), (9, 12)), ((0, 2), (9, 12))),
        (((9, 12), (0, 2)), ((0, 2), (9, 12))),  # in the order of the text
        (((0, 4), (3, 8), (8, 9)), ((0, 9),)),  # overlapping, or touching
        (((0, 12), (3, 8)), ((0, 12),)),
        (((0, 13),), ((0, 13),)),
        (((0, 14), (3, 8)), ((3, 8),)),  # out of the claim: dropped before it could swallow another
        (((-2, 4), (100, 113), (5, 5), (8, 3)), ()),
        ([[3, 8]], ((3, 8),)),
        (((3, 8, 9), (3,), 7, None, "38", ("3", "8"), (3.0, 8.0), (False, True), (0, 10**30)), ()),
        (None, ()),
        ("0123", ()),
        (7, ()),
        (Endless(), ()),
    ],
)
def test_only_what_lies_in_the_claim_is_kept_and_never_is_the_verdict_lost(offered: Any, kept: Any) -> None:
    said = replace(judgement(verdict=Verdict.CONTRADICTED), unsupported_spans=offered)
    found = sound(said, TEXT)
    assert found == replace(said, unsupported_spans=kept)


@given(st.lists(st.tuples(numbers, numbers), max_size=8))
def test_they_are_ascending_apart_and_cover_what_the_sound_ones_cover(offered: list[tuple[int, int]]) -> None:
    kept = spans_within(TEXT, offered)
    assert all(a[1] < b[0] for a, b in pairwise(kept))
    assert all(0 <= start < end <= len(TEXT) for start, end in kept)
    within = [(start, end) for start, end in offered if 0 <= start < end <= len(TEXT)]
    assert {at for span in kept for at in range(*span)} == {at for span in within for at in range(*span)}
    assert spans_within(TEXT, kept) == kept


@pytest.mark.parametrize("verdict", Verdict)
def test_a_claim_that_is_supported_or_was_not_checked_has_none(verdict: Verdict) -> None:
    said = replace(judgement(verdict=verdict), unsupported_spans=((0, 2),))
    found = sound(said, TEXT)
    assert found is not None
    assert found.verdict is verdict
    assert bool(found.unsupported_spans) == (verdict not in (Verdict.SUPPORTED, Verdict.UNVERIFIED))


# ---------------------------------------------------------------------------- what every verdict goes through

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
