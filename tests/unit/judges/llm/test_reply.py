from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from guardrail.errors import JudgeReplyError
from guardrail.events import Verdict
from guardrail.judges.llm.reply import MAX_REPLY_CHARS, Quote, read_reply, reply_form, reply_schema
from guardrail.judges.llm.settings import Reasoning
from tests.support.llm_server import member, verdicts

ONE = verdicts(member("c1"))


@pytest.mark.parametrize(
    "text",
    [
        ONE,
        f"```json\n{ONE}\n```",
        f"```\n{ONE}\n```\nI hope this helps!",
        f"Sure, here are the {{verdicts}} [as asked]: {ONE} Let me know.",
        f"<think>Perhaps {verdicts(member('c1', 'CONTRADICTED'))}? No.</think>\n{ONE}",
        json.dumps([member("c1")]),
        json.dumps(member("c1")),
        f"\ufeff  {ONE}\n\n",
    ],
    ids=["bare", "fenced", "fenced-prose", "prose", "thoughts", "array", "single", "bom"],
)
def test_what_surrounds_the_verdicts_is_skipped(text: str) -> None:
    (answer,) = read_reply(text)
    assert (answer.label, answer.verdict, answer.problem) == ("c1", Verdict.SUPPORTED, "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SUPPORTED",
        "The claim c1 is SUPPORTED.",
        "{",
        "[" * 5_000,
        '{"a":' * 5_000,
        '{"verdicts": []}',
        '{"verdicts": {"c1": "SUPPORTED"}}',
        '{"verdicts": ["SUPPORTED"]}',
        '{"verdicts": [{"id": 1, "verdict": "SUPPORTED"}]}',
        '{"verdicts": [{"verdict": "SUPPORTED"}]}',
        "null",
        '{"verdicts": [{"id": "c1", "verdict": "SUPPORTED", "confidence": NaN}]}',
        "x" * (MAX_REPLY_CHARS + 1),
    ],
    ids=lambda text: text[:20],
)
def test_a_reply_without_verdicts_is_an_error_that_quotes_nothing(text: str) -> None:
    with pytest.raises(JudgeReplyError) as caught:
        read_reply(text)
    assert "SUPPORTED" not in str(caught.value)


def test_of_a_reply_that_was_cut_off_the_complete_answers_are_kept() -> None:
    text = verdicts(member("c1"), member("c2", "UNSUPPORTED"), member("c3"))
    cut = text[: text.index('"c3"') + 10]
    assert [(answer.label, answer.verdict) for answer in read_reply(cut)] == [
        ("c1", Verdict.SUPPORTED),
        ("c2", Verdict.UNSUPPORTED),
    ]


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        ("SUPPORTED", Verdict.SUPPORTED),
        ("supported", Verdict.SUPPORTED),
        (" Partially supported ", Verdict.PARTIALLY_SUPPORTED),
        ("PARTIALLY-SUPPORTED", Verdict.PARTIALLY_SUPPORTED),
        ("UNSUPPORTED", Verdict.UNSUPPORTED),
        ("CONTRADICTED", Verdict.CONTRADICTED),
    ],
)
def test_a_verdict_is_taken_by_its_whole_value(value: str, verdict: Verdict) -> None:
    (answer,) = read_reply(verdicts(member("c1", value)))
    assert answer.verdict is verdict


@pytest.mark.parametrize(
    "value",
    [
        "NOT SUPPORTED",
        "not supported (eyes only)",
        "SUPPORTED (not partial)",
        "SUPPORTED|UNSUPPORTED",
        "NO, yesterday's figure is absent",
        "yes",
        "UNVERIFIED",
        "",
        None,
        True,
        1,
        ["SUPPORTED"],
        {"verdict": "SUPPORTED"},
    ],
    ids=repr,
)
def test_anything_else_is_no_verdict_and_spoils_its_claim_only(value: Any) -> None:
    first, second = read_reply(verdicts(member("c1") | {"verdict": value}, member("c2")))
    assert first.verdict is Verdict.UNVERIFIED
    assert first.problem == "the judge's verdict is none of the four"
    assert second.verdict is Verdict.SUPPORTED


@pytest.mark.parametrize("value", [-0.1, 1.1, 95, 10**400, "0.9", "high", True, None, [0.9]], ids=repr)
def test_a_confidence_that_is_none_spoils_its_claim_only(value: Any) -> None:
    first, second = read_reply(verdicts(member("c1") | {"confidence": value}, member("c2")))
    assert first.verdict is Verdict.UNVERIFIED
    assert "confidence" in first.problem
    assert second.verdict is Verdict.SUPPORTED


def test_a_member_given_twice_is_believed_in_neither_form() -> None:
    text = '{"verdicts": [{"id": "c1", "verdict": "UNSUPPORTED", "verdict": "SUPPORTED", "confidence": 1}]}'
    (answer,) = read_reply(text)
    assert answer.verdict is Verdict.UNVERIFIED
    assert "twice" in answer.problem


def test_verdicts_repeated_from_a_document_stand_beside_the_real_ones() -> None:
    """Both are returned, so that joining by id finds them to disagree."""
    text = f"The document says {verdicts(member('c1'))}, but {verdicts(member('c1', 'CONTRADICTED'))}"
    assert [answer.verdict for answer in read_reply(text)] == [Verdict.SUPPORTED, Verdict.CONTRADICTED]


def test_quotes_are_read_in_the_forms_models_use() -> None:
    offered: list[Any] = [{"document": "D1 ", "quote": "a"}, "b", {"quote": "c"}, {"document": "d2"}, 7, None]
    (answer,) = read_reply(verdicts(member("c1", quotes=offered)))
    assert answer.quotes == (
        Quote("d1", "a"),
        Quote("", "b"),
        Quote("", "c"),
        Quote("d2", ""),
        Quote("", ""),
        Quote("", ""),
    )


def test_members_of_the_wrong_kind_are_passed_over() -> None:
    (answer,) = read_reply(
        verdicts(member("c1", quotes="a quote", contradicted_by="d1", reasoning=["because"]))
    )
    assert (answer.quotes, answer.contradicted_by, answer.reasoning) == ((), (), "")


@pytest.mark.parametrize("reasoning", Reasoning)
def test_the_schema_is_strict_and_its_example_fits(reasoning: Reasoning) -> None:
    """Strict structured outputs want every member required and no other allowed, at each level."""
    schema = reply_schema(reasoning)
    Draft202012Validator.check_schema(schema)
    items = schema["properties"]["verdicts"]["items"]
    for level in (schema, items, items["properties"]["quotes"]["items"]):
        assert level["additionalProperties"] is False
        assert level["required"] == list(level["properties"])
    example = json.loads(reply_form(reasoning))
    assert list(example["verdicts"][0]) == items["required"]
    example["verdicts"][0]["verdict"] = "SUPPORTED"
    Draft202012Validator(schema).validate(example)


def test_reasoning_stands_where_the_settings_say() -> None:
    def order(reasoning: Reasoning) -> list[str]:
        required: list[str] = reply_schema(reasoning)["properties"]["verdicts"]["items"]["required"]
        return required

    assert order(Reasoning.BEFORE).index("reasoning") < order(Reasoning.BEFORE).index("verdict")
    assert order(Reasoning.AFTER).index("reasoning") > order(Reasoning.AFTER).index("verdict")
    assert "reasoning" not in order(Reasoning.NONE)


def test_a_reply_can_order_only_so_many_quotes_to_be_found() -> None:
    quotes = [{"document": "d1", "quote": f"quote {n}"} for n in range(10_000)]
    member = {"id": "c1", "quotes": quotes, "verdict": "SUPPORTED", "confidence": 1.0}
    answers = read_reply(json.dumps({"verdicts": [member]}))
    assert [quote.text for quote in answers[0].quotes] == [f"quote {n}" for n in range(10)]
