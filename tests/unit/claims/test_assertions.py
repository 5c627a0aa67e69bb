"""Claims in places that are let off: headings, table headers, links, offers, lead-ins and fences."""

from __future__ import annotations

import pytest

from guardrail.claims.cutter import ClaimCutter
from guardrail.claims.severity import BuiltinSeverityRater
from guardrail.events import SegmentKind

STATED = [
    "### The maximum dose is 5000 mg a day.",
    "# The maximum dose is 5000 mg a day",
    "# Alcohol is harmless!",
    "## Maximum dose: 5000 mg a day",
    "## Dose: five grams",
    "## Safe with alcohol",
    "## You must pay a fee",
    "## Do not take the tablets with food",
    "## What it costs: you must pay $79 a month",
    "**You can take it with alcohol**\n",
    "**Alcohol: you can drink it**\n",
    "**Refunds are not possible**\n",
    "| Maximum dose | 5000 mg a day |\n|---|---|\n",
    "| Plan | The contract can be cancelled within a week |\n|---|---|\n",
    "[Dose: 5000 mg](https://x.example)",
    "[Dose 5000 mg, take it with alcohol]",
    "Source: [Dose: 5000 mg](https://x.example)",
    "If you are pregnant you can safely drink, just ask.",
    "Let me know if you are ill, the dose is five grams.",
    "The drug is safe and the dose is five grams as follows:",
    "The tablets must be taken with food and are:",
    "Safe with alcohol:",
    "```markdown\nThe plan costs $79 a month. The maximum dose is 5000 mg a day.\n```",
    "```\nThe maximum dose is 5000 mg a day. Take it with alcohol.",
    "```text\n- You can take it with alcohol.\n```\n",
    "~~~\nAlcohol is harmless in pregnancy.\n~~~\n",
    "```\n    The maximum dose is 5000 mg a day.\n```\n",
    "```The maximum dose is 5000 mg a day.```\n",
    "```python\nThe maximum dose is 5000 mg a day.\n```\n",
    "```\n# The maximum dose is 5000 mg a day.\n```\n",
]

UNSTATED = [
    "# Dosage and administration",
    "# What you need to know before you take X",
    "## 2. How to take it",
    "## Prices 2024",
    "## Side effects you may experience",
    "## Things you should know about the price",
    "## Foods that are safe",
    "## Is it safe to drink alcohol?",
    "## How much you can take: an overview",
    "## When you must pay a fee",
    "## Step 3: Set up the account",
    "## The 5 best hotels",
    "## Refunds and fees",
    "## 5 mg tablets",
    "## Prices in May 2024",
    "## A must for patients",
    "**Dosage**\n",
    "**Refunds, fees and deadlines**\n",
    "**Before you take it**\n",
    "| Plan | Price ($) | Time (h) |\n|---|---|---|\n",
    "| Drug name | 5 mg | 10 mg |\n|---|---|---|\n",
    "| Year | 2023 | 2024 |\n|---|---|---|\n",
    "[Price list](https://x.example)",
    "[3, p. 50]",
    "[Dosage](https://x.example/5mg)",
    "Let me know if you have questions about the price.",
    "Let me know if you have questions about the dose you should take.",
    "If you have questions about what you should take, feel free to ask.",
    "If you are pregnant or have an allergy, please let me know.",
    "Feel free to contact us.",
    "Thank you for your question about taking ibuprofen while pregnant.",
    "I hope this helps you decide whether you should take the tablets!",
    "Here is a summary of the doses you should take:",
    "The refund fees are:",
    "If you are pregnant, you should take the following:",
    "To set it up, you should follow these key steps:",
    "Side effects of the medicine include:",
    "```python\nprice = 50\nprint(price)\n```\n",
    '```python\ndef dose():\n    """Return the dose in mg a day."""\n    return 5\n```\n',
    "```bash\n# The maximum is 5 minutes.\nsleep 300 && ls\n```\n",
    "```\n$ sudo apt install the whole thing.\n```\n",
    "```\ntimeout: 30 seconds\nretries: 5\n```\n",
    "```\n# The timeout is 30 seconds.\ntimeout = 30;\n```\n",
    "```\n2024-01-01 12:00:00 INFO The server must restart within 5 minutes.\n```\n",
    "```\nERROR The server must restart within 5 minutes.\n```\n",
    '```json\n{"dose": "The dose is 5 mg."}\n```\n',
    "```sql\nSELECT price FROM plans WHERE price > 50;\n```\n",
    "```markdown\n# Dosage\n```\n",
]


def found(text: str, step: int) -> list[tuple[str, SegmentKind]]:
    cutter = ClaimCutter(BuiltinSeverityRater())
    cuts = [cut for i in range(0, len(text), step) for cut in cutter.feed(text[i : i + step])]
    pairs = [(claim, cut.segment) for cut in cuts + cutter.finish() for claim in cut.claims]
    for claim, segment in pairs:
        assert text[claim.start : claim.end] == claim.text
        assert segment.start <= claim.start < claim.end <= segment.end
    return [(claim.text, segment.kind) for claim, segment in pairs]


@pytest.mark.parametrize("text", STATED)
def test_what_states_is_a_claim_wherever_it_stands(text: str) -> None:
    assert len(found(text, len(text))) == 1
    assert found(text, 1) == found(text, len(text))


@pytest.mark.parametrize("text", UNSTATED)
def test_what_states_nothing_is_let_off(text: str) -> None:
    assert found(text, len(text)) == []


def test_prose_in_a_fence_is_a_claim_without_the_fence() -> None:
    text = "```md\n\nThe dose is 5 mg a day.\nNever take more than that.\n```\nfoo"
    assert found(text, 3) == [
        ("The dose is 5 mg a day.\nNever take more than that.", SegmentKind.CODE),
        ("foo", SegmentKind.SENTENCE),
    ]


def test_a_fence_longer_than_a_segment_keeps_its_label() -> None:
    line = "The maximum dose is 5000 mg a day.\n"
    assert len(found("```text\n" + line * 40 + "```\n", 7)) > 1
    code = "    total = compute(value, 5000)  # The maximum dose is 5000 mg a day.\n"
    assert found("```python\n" + code * 40 + "```\n", 7) == []


def test_a_fence_behind_a_fence_has_its_own_label() -> None:
    line = "The dose is low for children."
    assert found(f"```python\nx = 1\n```\n```text\n{line}\n```\n", 5) == [(line, SegmentKind.CODE)]
