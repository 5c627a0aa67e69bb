"""TeX's formulas as readers see them, with places in the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.claims.model import read_prose
from guardrail.evidence.shown import ShownText
from guardrail.structure.tex import formula_changes

SHOWN = [
    (r"Opens at $p \geq 3.5$ bar.", "Opens at p ≥ 3.5 bar."),
    (r"a loss of $-0.4\%$ per kelvin", "a loss of -0.4% per kelvin"),
    (r"\(\frac{3}{4}\) of it", "3/4 of it"),
    (r"$n = \frac{a+b}{2c}$", "n = (a+b)/(2c)"),
    (r"$$\frac{\pi r}{\frac{c}{2}}$$", "(πr)/(c/2)"),
    (r"at $-38.8^\circ$C", "at -38.8°C"),
    (r"$1.5 \times 10^{-3}\,\mathrm{g}$", "1.5 × 10⁻³ g"),
    ("E = mc^2 and a^{12}", "E = mc² and a¹²"),
    (r"\[x_{max} = \sqrt{y+1}\]", "xmax = √(y+1)"),
    (r"$\text{max dose} \le 5$ mg", "max dose ≤ 5 mg"),
    ("where $n$ is $20$", "where n is 20"),
    ("$p < 0.05$", "p < 0.05"),
    (r"$2\frac{1}{2}$ and $\frac12$ mg", "2 1/2 and 1/2 mg"),
    (r"$y = \sin x$", "y = sin x"),
    (r"$\binom{5}{2} = c$", "binom{5}{2} = c"),
    ("2^1000 and 2^{2n}", "2¹⁰⁰⁰ and 2^{2n}"),
]
AS_WRITTEN = [
    "Basic is $5 and Pro is $7.",
    "from $5 to $10, and $5 < $10",
    "set $HOME and $PATH = $HOME/bin",
    "costs US$5 = A$7",
    "see note^3 and ^4",
    "for $20 a month, or $200 a year$",
]


@pytest.mark.parametrize(("text", "shown"), SHOWN)
def test_answers_and_documents_are_read_alike(text: str, shown: str) -> None:
    assert ShownText(text).text == shown
    assert read_prose(text).text == shown


@pytest.mark.parametrize("text", AS_WRITTEN)
def test_dollars_and_notes_are_no_formulas(text: str) -> None:
    assert formula_changes(text) == []


PIECES = [*r"\$^{}()[]_=<ab12 .%,+-", r"\frac{", r"\times", r"\text{", "}{"]


@given(st.lists(st.sampled_from(PIECES), max_size=60))
def test_changes_ascend_within_the_text(pieces: list[str]) -> None:
    text, at = "".join(pieces), 0
    for start, end, _ in formula_changes(text):
        assert at <= start < end <= len(text)
        at = end


def test_quotes_keep_the_text_of_a_formula() -> None:
    text = r"It opens at $p \geq 3.5$ bar."
    shown = ShownText(text)
    start = shown.text.index("≥")
    assert text[slice(*shown.raw_span(start, start + 1))] == r"\geq"
