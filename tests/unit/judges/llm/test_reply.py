from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from guardrail.errors import JudgeReplyError
from guardrail.judges import Verdict
from guardrail.judges.llm import ReplyForm, read_reply
from guardrail.judges.llm.reply import MAX_REPLY_CHARS, Answer
from guardrail.judges.llm.settings import Reasoning
from tests.support.llm_server import member, verdicts


def read(text: str, **changes: Any) -> list[Answer]:
    return read_reply(text, ReplyForm(**changes))


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
    (answer,) = read(text)
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
        read(text)
    assert "SUPPORTED" not in str(caught.value)


def test_of_a_reply_that_was_cut_off_the_complete_answers_are_kept() -> None:
    text = verdicts(member("c1"), member("c2", "UNSUPPORTED"), member("c3"))
    cut = text[: text.index('"c3"') + 10]
    assert [(answer.label, answer.verdict) for answer in read(cut)] == [
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
    (answer,) = read(verdicts(member("c1", value)))
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
    first, second = read(verdicts(member("c1") | {"verdict": value}, member("c2")))
    assert first.verdict is Verdict.UNVERIFIED
    said = f" {value!r}" if isinstance(value, str) and value else ""
    assert first.problem == f"the judge's verdict{said} is none of the four"
    assert second.verdict is Verdict.SUPPORTED


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("unterstützt", "'unterstützt'"),
        (" wider\n legt ", "'wider legt'"),
        ("\x1b[31mred\u200b\u202e\ud800", r"'\x1b[31mred\u200b\u202e\ud800'"),
        ("x" * 100_000, f"'{'x' * 39}…'"),
        ("it's", '"it\'s"'),
    ],
    ids=["german", "lines", "controls", "long", "quote"],
)
def test_a_verdict_that_is_none_is_told_fit_to_print_and_short(value: str, told: str) -> None:
    (answer,) = read(verdicts(member("c1") | {"verdict": value}))
    assert answer.problem == f"the judge's verdict {told} is none of the four"


@pytest.mark.parametrize("value", [-0.1, 1.1, 95, 10**400, "0.9", "high", True, None, [0.9]], ids=repr)
def test_a_confidence_that_is_none_spoils_its_claim_only(value: Any) -> None:
    first, second = read(verdicts(member("c1") | {"confidence": value}, member("c2")))
    assert first.verdict is Verdict.UNVERIFIED
    assert "confidence" in first.problem
    assert second.verdict is Verdict.SUPPORTED


def test_a_member_given_twice_is_believed_in_neither_form() -> None:
    text = '{"verdicts": [{"id": "c1", "verdict": "UNSUPPORTED", "verdict": "SUPPORTED", "confidence": 1}]}'
    (answer,) = read(text)
    assert answer.verdict is Verdict.UNVERIFIED
    assert "twice" in answer.problem


def test_verdicts_repeated_from_a_document_stand_beside_the_real_ones() -> None:
    """Both are returned, so that joining by id finds them to disagree."""
    text = f"The document says {verdicts(member('c1'))}, but {verdicts(member('c1', 'CONTRADICTED'))}"
    assert [answer.verdict for answer in read(text)] == [Verdict.SUPPORTED, Verdict.CONTRADICTED]


def test_sentences_are_read_in_the_forms_models_use() -> None:
    offered: list[Any] = [12, "13", "[14]", " 15 ", -1, 1.0, True, "first", "1-9", None]
    (answer,) = read(verdicts(member("c1", evidence=offered)))
    assert answer.evidence == (12, 13, 14, 15, -1, 0, 0, 0, 0, 0)


def test_members_of_the_wrong_kind_are_passed_over() -> None:
    (answer,) = read(verdicts(member("c1", evidence="12", against=12, reasoning=["because"])))
    assert (answer.evidence, answer.against, answer.reasoning) == ((), (), "")


FORMS = [
    form
    for reasoning in Reasoning
    for decompose in (False, True)
    if not (form := ReplyForm(reasoning, decompose)).compact
]


@pytest.mark.parametrize("form", FORMS, ids=repr)
def test_the_schema_is_strict_and_its_example_fits(form: ReplyForm) -> None:
    """Strict structured outputs want every member required and no other allowed, at each level."""
    schema = form.schema()
    Draft202012Validator.check_schema(schema)
    items = schema["properties"]["verdicts"]["items"]
    levels = [schema, items]
    if form.decompose:
        levels.append(items["properties"]["parts"]["items"])
    for level in levels:
        assert level["additionalProperties"] is False
        assert level["required"] == list(level["properties"])
    example = json.loads(form.example().replace('"verdict":"…"', '"verdict":"SUPPORTED"'))
    assert tuple(example["verdicts"][0]) == form.members
    Draft202012Validator(schema).validate(example)


def test_reasoning_stands_where_the_settings_say() -> None:
    def order(reasoning: Reasoning) -> tuple[str, ...]:
        return ReplyForm(reasoning).members

    assert order(Reasoning.BEFORE).index("reasoning") < order(Reasoning.BEFORE).index("verdict")
    assert order(Reasoning.AFTER).index("reasoning") > order(Reasoning.AFTER).index("verdict")
    assert "reasoning" not in order(Reasoning.NONE)


def test_a_reply_can_name_only_so_many_sentences() -> None:
    (answer,) = read(verdicts(member("c1", evidence=list(range(10_000)))))
    assert answer.evidence == tuple(range(10))


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        (["SUPPORTED", "SUPPORTED"], "SUPPORTED"),
        (["SUPPORTED", "UNSUPPORTED"], "PARTIALLY_SUPPORTED"),
        (["PARTIALLY_SUPPORTED"], "PARTIALLY_SUPPORTED"),
        (["UNSUPPORTED", "UNSUPPORTED"], "UNSUPPORTED"),
        (["SUPPORTED", "CONTRADICTED", "UNSUPPORTED"], "CONTRADICTED"),
    ],
)
def test_the_verdict_on_a_claim_is_that_of_its_parts_whatever_the_model_makes_of_them(
    given: list[str], verdict: str
) -> None:
    parts = [{"text": f" Part {number}. ", "verdict": each} for number, each in enumerate(given)]
    doubts = () if verdict == "SUPPORTED" else ("UNSUPPORTED", "NONSENSE")
    for said in ("SUPPORTED", *doubts):
        (answer,) = read(verdicts(member("c1", said, parts=parts)), decompose=True)
        assert answer.verdict == verdict
        assert [part.text for part in answer.parts] == [f"Part {n}." for n in range(len(given))]


TRUE, ABSENT, FALSE = (
    {"text": "It costs $50.", "verdict": "SUPPORTED"},
    {"text": "It has a trial.", "verdict": "UNSUPPORTED"},
    {"text": "It is yearly.", "verdict": "CONTRADICTED"},
)


@pytest.mark.parametrize(
    ("parts", "said", "evidence", "reasoning"),
    [
        ([TRUE, FALSE], "SUPPORTED", (), "Of its parts, CONTRADICTED: It is yearly."),
        ([TRUE, FALSE], "PARTIALLY_SUPPORTED", (), "Of its parts, CONTRADICTED: It is yearly."),
        ([TRUE, FALSE], "NONSENSE", (), "Of its parts, CONTRADICTED: It is yearly."),
        ([ABSENT, FALSE], "UNSUPPORTED", (1,), "Of its parts, CONTRADICTED: It is yearly."),
        ([ABSENT], "SUPPORTED", (), "Of its parts, UNSUPPORTED: It has a trial."),
        ([TRUE, ABSENT], "SUPPORTED", (1,), "Of its parts, UNSUPPORTED: It has a trial."),
        (
            [FALSE] * 5,
            "SUPPORTED",
            (),
            "Of its parts, " + "CONTRADICTED: It is yearly.; " * 3 + "and 2 more",
        ),
        ([TRUE, FALSE], "CONTRADICTED", (1,), "the model's own"),
        ([TRUE, TRUE], "CONTRADICTED", (1,), "the model's own"),
        ([TRUE, TRUE], "SUPPORTED", (1,), "the model's own"),
    ],
)
def test_a_verdict_that_the_parts_made_says_which_and_has_no_proof_of_another(
    parts: list[dict[str, str]], said: str, evidence: tuple[int, ...], reasoning: str
) -> None:
    text = verdicts(member("c1", said, evidence=[1], reasoning="the model's own", parts=parts))
    (answer,) = read(text, decompose=True)
    assert (answer.evidence, answer.reasoning) == (evidence, reasoning)


@pytest.mark.parametrize("said", ["PARTIALLY_SUPPORTED", "UNSUPPORTED", "CONTRADICTED", "NONSENSE"])
def test_parts_that_are_supported_do_not_outvote_a_doubt_about_the_whole(said: str) -> None:
    parts = [{"text": "Water is wet.", "verdict": "SUPPORTED"}]
    (answer,) = read(verdicts(member("c1", said, parts=parts)), decompose=True)
    assert answer.verdict == ("UNVERIFIED" if said == "NONSENSE" else said)


@pytest.mark.parametrize(
    "parts",
    [
        [{"text": "A.", "verdict": "SUPPORTED"}, {"text": "B.", "verdict": "MAYBE"}],
        [{"text": "A.", "verdict": "SUPPORTED"}, "B."],
        [{"text": 1, "verdict": "SUPPORTED"}],
        [{"text": "A.", "verdict": "SUPPORTED"}] * 21,
        {"text": "A.", "verdict": "SUPPORTED"},
    ],
    ids=["verdict", "text", "number", "many", "object"],
)
def test_a_part_that_can_not_be_read_spoils_its_claim(parts: Any) -> None:
    """It might be the one that is wrong."""
    first, second = read(verdicts(member("c1", parts=parts), member("c2", parts=[])), decompose=True)
    assert first.verdict is Verdict.UNVERIFIED
    assert "parts" in first.problem
    assert second.verdict is Verdict.SUPPORTED


def test_parts_that_were_not_asked_for_are_passed_over() -> None:
    (answer,) = read(verdicts(member("c1", parts=[{"text": "A.", "verdict": "CONTRADICTED"}])))
    assert (answer.verdict, answer.parts) == (Verdict.SUPPORTED, ())


def test_only_so_many_values_are_read_ahead_of_the_verdicts() -> None:
    """A reply that is nothing but brackets must not keep the event loop."""
    assert len(read("[1] " * 900 + ONE)) == 1
    with pytest.raises(JudgeReplyError):
        read("[1] " * 1_001 + ONE)
