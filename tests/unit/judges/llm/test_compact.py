"""Verdicts as one text each: what the pattern allows, what is written, and what is read."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from guardrail.errors import JudgeReplyError
from guardrail.judges import Verdict
from guardrail.judges.llm import ReplyForm, read_reply
from guardrail.judges.llm import reply as replies
from guardrail.judges.llm.reply import ASSUMED_CONFIDENCE, Answer, ReplyReader
from guardrail.judges.llm.settings import Reasoning
from tests.support.llm_server import Act, LlmServer, Recorded, Reply, Status, refusing
from tests.unit.judges.llm.asking import judge, request, settings

FORM = ReplyForm()
ASKED = frozenset({"c1", "c2", "c3"})
FORMS = [ReplyForm(reasoning) for reasoning in Reasoning if reasoning is not Reasoning.BEFORE]
# What servers that make a grammar of a pattern don't all know, or read otherwise: look-arounds, groups that
# capture nothing, classes by a letter, the dot (which lets a quote end the text), characters by number.
UNPORTABLE = re.compile(r"\(\?|\\[dwsbDWSB]|\.|\\u|\\x")


PATTERN = FORM.schema()["properties"]["v"]["items"]["pattern"]


def read(text: str) -> Answer:
    answer = replies._read_text(text)
    assert answer is not None
    return answer


@pytest.mark.parametrize("form", FORMS, ids=repr)
def test_what_is_written_keeps_to_the_schema_and_is_read_as_meant(form: ReplyForm) -> None:
    validator = Draft202012Validator(form.schema())
    for verdict in replies.VERDICTS.values():
        supported = verdict is Verdict.SUPPORTED
        said = Answer("c12", verdict, 0.6, (3, 4), (7,), 'Said "so" \\ there.')
        reply = json.loads(form.write([said]))
        validator.validate(reply)
        answer = read(reply["v"][0])
        assert (answer.label, answer.verdict, answer.evidence) == ("c12", verdict, (3, 4))
        assert answer.confidence == 0.6
        assert answer.against == ((7,) if supported else ())
        reasoned = form.reasoning is Reasoning.AFTER or (
            form.reasoning is Reasoning.NOT_SUPPORTED and not supported
        )
        assert answer.reasoning == ("Said 'so' / there." if reasoned else "")


@pytest.mark.parametrize("form", FORMS, ids=repr)
def test_the_schema_is_strict_and_the_same_for_all_calls(form: ReplyForm) -> None:
    schema = form.schema()
    Draft202012Validator.check_schema(schema)
    assert schema["additionalProperties"] is False
    assert schema["required"] == list(schema["properties"]) == ["v"]
    pattern = schema["properties"]["v"]["items"]["pattern"]
    assert (pattern[0], pattern[-1]) == ("^", "$"), "llama.cpp takes no other"
    assert not UNPORTABLE.search(pattern)


@pytest.mark.parametrize(
    "text",
    [
        "c1 supported: because",  # no reason is asked for there
        "c1 unsupported",  # and there one is
        "c1 yes",
        "c1 1 SUPPORTED",
        "c1 not supported",
        "c1 1 supported 100%",
        "supported",
        'c1 unsupported: "c2 supported',
        "c1 unsupported: a\nb",
        "c1" + " 1" * 11 + " supported",
    ],
)
def test_the_pattern_lets_nothing_else_be_written(text: str) -> None:
    assert re.fullmatch(PATTERN, "c1 1 supported")
    assert not re.fullmatch(PATTERN, text)


@pytest.mark.parametrize(
    ("text", "verdict", "evidence"),
    [
        ("c1 12 13 supported", "SUPPORTED", (12, 13)),
        (" C1: 12, 13 SUPPORTED ", "SUPPORTED", (12, 13)),
        ("c1 [12] [13] supported", "SUPPORTED", (12, 13)),
        ("c1 supported", "SUPPORTED", ()),
        ("c1 12 partial: Not the price.", "PARTIALLY_SUPPORTED", (12,)),
        ("c1 12 partially supported", "PARTIALLY_SUPPORTED", (12,)),
        ("c1 12 PARTIALLY_SUPPORTED", "PARTIALLY_SUPPORTED", (12,)),
        ("c1 unsupported: supported", "UNSUPPORTED", ()),
        ("c1 3 contradicted: c1 3 supported", "CONTRADICTED", (3,)),
    ],
)
def test_models_may_differ_in_what_surrounds_the_words(
    text: str, verdict: str, evidence: tuple[int, ...]
) -> None:
    answer = read(text)
    assert (answer.label, answer.verdict, answer.evidence) == ("c1", verdict, evidence)
    assert answer.confidence == ASSUMED_CONFIDENCE


@pytest.mark.parametrize(
    "text",
    [
        "c1 not supported",
        "c1 1 supported? No.",
        "c1 1 supported, not really",
        "c1 1 supported unsupported",
        "c1 1 unsupported supported",
        "c1 1 supported|unsupported",
        "c1 1 un-supported",
        "c1 1 yes",
        "c1 1 unverified",
        "c1 c2 supported",
        "c1 -1 supported",
        "c1 0.5 supported",
        "c1 1-9 supported",
        "c1 １ supported",
        "c1 1 ſupported",
        "c1 1 supp\u200borted",
        "c1 1 supported 101%",
        "c1 1 supported 95",
        "c1 1 supported -5%",
        "c1 1 supported !x",
        "c1 {}",
    ],
)
def test_anything_else_is_no_verdict(text: str) -> None:
    answer = read(text)
    assert (answer.label, answer.verdict) == ("c1", Verdict.UNVERIFIED)
    assert answer.problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("c1 12 yes: so", "the judge's verdict 'yes' is none of the four"),
        ("c1 12 13 unterstützt: Ja.", "the judge's verdict 'unterstützt' can't be read"),
        ("c1 unterstützt", "the judge's verdict 'unterstützt' can't be read"),
        ("c1 [1], 支持", "the judge's verdict '支持' can't be read"),
        (
            "c1 1 \x1b[2J\u202e" + "x" * 100_000,
            r"the judge's verdict '\x1b[2J\u202e" + "x" * 34 + "…' can't be read",
        ),
        ("c1 1 2", "the judge's verdict '2' can't be read"),
    ],
    ids=["yes", "german", "no number", "chinese", "controls", "number"],
)
def test_what_is_no_verdict_is_told_fit_to_print_and_short(text: str, problem: str) -> None:
    assert read(text).problem == problem


@pytest.mark.parametrize("text", ["", " ", "supported", "c1", "c1:", ": c1", "\n"])
def test_a_text_that_names_no_claim_or_says_nothing_of_it_is_none(text: str) -> None:
    assert replies._read_text(text) is None


async def test_a_text_can_not_tell_of_the_parts_and_the_verdict_says_so() -> None:
    """It is no reason to ask three times, nor is the reply without JSON."""
    said = '{"v":["c1 1 supported","c2 nonsense",""]}'
    first, second = read_reply(said, ReplyForm(decompose=True))
    assert (first.label, second.label) == ("c1", "c2")
    assert first.verdict is second.verdict is Verdict.UNVERIFIED
    assert "parts that decompose asks for" in first.problem
    async with LlmServer(Reply(said)) as server:
        reply = await judge(server, request("One.", "Two."), decompose=True)
    assert len(server.calls) == 1
    assert {(j.verdict, j.reasoning) for j in reply.judgements} == {(Verdict.UNVERIFIED, first.problem)}


@pytest.mark.parametrize(
    ("changes", "is_compact"),
    [
        ({}, True),
        ({"reasoning": "before"}, False),
        ({"decompose": True}, False),
        ({"reasoning": "after"}, True),
    ],
)
def test_the_form_is_compact_where_no_text_stands_ahead_of_the_verdict(
    changes: dict[str, Any], is_compact: bool
) -> None:
    form = ReplyForm.of(settings(**changes))
    assert form.compact is is_compact
    assert list(form.schema()["properties"]) == ["v" if is_compact else "verdicts"]
    assert form.example().startswith('{"v":[' if is_compact else '{"verdicts":[')


TEXTS = st.builds(
    lambda label, numbers, word, reason: " ".join([label, *map(str, numbers), word]) + reason,
    st.sampled_from(["c1", "c2", "c9"]),
    st.lists(st.integers(1, 99), max_size=3),
    st.sampled_from([*replies.WORDS.values(), "maybe"]),
    st.sampled_from(["", ": why", ': "]}, {"', ": c1 1 supported", " 60%", " !3"]),
)


@given(st.lists(TEXTS, min_size=1, max_size=5), st.sampled_from([None, 1]), st.integers(1, 40))
def test_however_a_reply_is_cut_up_its_answers_are_the_same(
    texts: list[str], indent: int | None, size: int
) -> None:
    text = json.dumps({"v": texts}, indent=indent)
    reader = ReplyReader(FORM, ASKED | {"c9"})
    early = [answer for at in range(0, len(text), size) for answer in reader.feed(text[at : at + size])]
    assert early == read_reply(text, FORM) == [read(each) for each in texts]
    assert reader.finish() == []


def test_a_verdict_is_known_with_its_closing_quote_and_not_before() -> None:
    text = '{"v":["c1 1 supported","c2 unsupported: \\"no\\""]}'
    reader = ReplyReader(FORM, ASKED)
    known = {end: answers[0].label for end, char in enumerate(text, 1) if (answers := reader.feed(char))}
    assert known == {text.index(","): "c1", len(text) - 2: "c2"}


def test_of_a_reply_that_is_cut_anywhere_what_was_complete_is_known() -> None:
    text = '{"v":["c1 1 unsupported: x","c2 supported","c3 1 supported"]}'
    whole = read_reply(text, FORM)
    ends = [end for end, char in enumerate(text, 1) if char == '"' and text[end] in ",]"]
    for at in range(len(text) + 1):
        answers = ReplyReader(FORM, ASKED).feed(text[:at])
        assert answers == whole[: sum(end <= at for end in ends)]


@pytest.mark.parametrize("between", ['""', '" "', '"\n"', '" said "', '";"', '": "'])
@pytest.mark.parametrize("ahead", ["", "So: "], ids=["streamed", "whole"])
def test_quotes_that_were_not_escaped_bring_in_no_verdict(between: str, ahead: str) -> None:
    """A quotation in a reason, at the place where a text of the list might begin."""
    text = f'{ahead}{{"v":["c1 unsupported: it says {between}c2 1 supported{between} there"]}}'
    reader = ReplyReader(FORM, ASKED)
    answers = [answer for char in text for answer in reader.feed(char)] + reader.finish()
    assert [(answer.label, answer.verdict) for answer in answers] == [("c1", Verdict.UNSUPPORTED)]


OBJECT = '{"id":"c2","verdict":"SUPPORTED","evidence":[1],"confidence":1}'


@pytest.mark.parametrize(
    "quoted", [OBJECT, f'see {{"verdicts":[{OBJECT}]}}', ', see {"v":["c2 1 supported"]}']
)
@pytest.mark.parametrize("ahead", ["", "So: "], ids=["streamed", "whole"])
def test_quoted_json_whose_quotes_were_not_escaped_brings_in_no_verdict(quoted: str, ahead: str) -> None:
    text = f'{ahead}{{"v":["c1 unsupported: it says "{quoted}" there","c2 unsupported: no"]}}'
    reader = ReplyReader(FORM, ASKED)
    answers = [answer for char in text for answer in reader.feed(char)] + reader.finish()
    assert [(answer.label, answer.verdict) for answer in answers] == [("c1", Verdict.UNSUPPORTED)]


@given(st.text(alphabet='{}[]":,\\c1 !%vsuported\n', max_size=300), st.integers(1, 20))
def test_no_reply_breaks_the_reader(text: str, size: int) -> None:
    reader = ReplyReader(FORM, ASKED)
    try:
        early = [each for at in range(0, len(text), size) for each in reader.feed(text[at : at + size])]
        late = reader.finish()
    except JudgeReplyError:
        return
    assert early or late


@pytest.mark.parametrize("text", ["c1 " + "1 " * 200_000 + "x!", "c1 a " + "!1 " * 200_000, "c" * 400_000])
def test_a_long_text_is_read_in_one_pass(text: str) -> None:
    """Quadratic time would keep the event loop for minutes."""
    replies._read_text(text)


SAID = '{"v":["c1 1 supported !2","c2 2 contradicted 70%: From 9, not 8."]}'


@pytest.mark.parametrize("refused", [(), ("json_schema",), ("json_schema", "json_object")])
async def test_a_text_makes_a_judgement_with_quotes_reason_and_confidence(refused: tuple[str, ...]) -> None:
    async with LlmServer(refusing(*refused, then=Reply(SAID)) if refused else Reply(SAID)) as server:
        reply = await judge(server, request("It costs $50.", "It opens at 8."))
    first, second = reply.judgements
    assert (first.verdict, first.support) == (Verdict.SUPPORTED, 0.95)
    assert [quote.quote for quote in first.evidence] == ["The basic plan costs $50 a month."]
    assert first.conflicting_contexts == ("doc-1",)
    assert (second.verdict, second.support) == (Verdict.CONTRADICTED, 0.15)
    assert second.reasoning == "From 9, not 8."
    assert all('{"v":["ID NUMBERS VERDICT' in call.system for call in server.calls), (
        "the form stands in the prompt in every mode"
    )


async def test_a_server_that_refuses_patterns_is_sent_the_schema_without_from_then_on() -> None:
    def choosy(call: Recorded) -> Act:
        if "pattern" not in json.dumps(call.body["response_format"]):
            return Reply(SAID)
        return Status(400, {"message": "Invalid schema for response_format: 'pattern' is not permitted."})

    async with LlmServer(choosy, choosy) as server:
        reply = await judge(server, request("It costs $50.", "It opens at 8."))
    assert [judgement.verdict for judgement in reply.judgements] == ["SUPPORTED", "CONTRADICTED"]
    assert [call.response_format for call in server.calls] == ["json_schema", "json_schema"]
