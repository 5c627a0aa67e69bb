from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from openai.types.decision import Decision
from openai.types.decision_create_params import DecisionCreateParams
from pydantic import TypeAdapter

from guardrail.errors import JudgeReplyError
from guardrail.events import Finding, Usage
from guardrail.judges.decisions.judge import verdicts_of, wording
from guardrail.judges.decisions.transports import (
    Choice,
    NextToken,
    OpenAiDecisions,
    QuestionSheet,
    Reply,
    SystemOne,
    Unanswered,
    Wire,
)
from guardrail.judges.spending import reported_usage

OPTIONS = {name: wording()["options"][name] for name in verdicts_of("four")}
VALUES = list(OPTIONS)
FIRST, SECOND = (Choice(f"c{n}", f"Is claim {n} right?", OPTIONS, f"Claim {n}?") for n in (1, 2))
SHEET = QuestionSheet("Compare.", "the documents", "key", "One rule.", wording()["labels"], {})
SURE = dict(zip(VALUES, (0.1, 0.05, 0.05, 0.8), strict=True))
CHAT = NextToken()


def openai_answer(name: str | None = "c1", given: dict[str, Any] | None = None) -> dict[str, Any]:
    listed = [{"value": value, "probability": p} for value, p in (given or SURE).items()]
    return {"type": "choice", "name": name, "choice": VALUES[3], "confidence": 0.7, "probabilities": listed}


def openai_reply(*answers: object) -> dict[str, Any]:
    usage = {
        "input_tokens": 120,
        "input_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 0},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 122,
    }
    return {"model": "gpt-6-luna-2026-10-06", "answers": list(answers), "usage": usage}


def systemone_reply(**answers: object) -> dict[str, Any]:
    return {"model": "jev-1.13", "answers": answers, "usage": {"input_tokens": 120}}


def chosen(given: dict[str, Any], **more: object) -> dict[str, Any]:
    return {"type": "choice", "choice": VALUES[3], "confidence": 0.7, "probabilities": given, **more}


def token_reply(top: list[tuple[str, float]], **choice: object) -> dict[str, Any]:
    listed = [{"token": token, "logprob": math.log(p)} for token, p in top]
    first = {"token": "D", "logprob": -0.1, "top_logprobs": listed}
    told = {"message": {"content": "D"}, "finish_reason": "length", "logprobs": {"content": [first]}}
    return {"model": "qwen", "choices": [told | choice], "usage": {"prompt_tokens": 120}}


def logprobs(*top: tuple[str, object]) -> dict[str, Any]:
    listed = [{"token": token, "logprob": logprob} for token, logprob in top]
    return {"choices": [{"logprobs": {"content": [{"token": "A", "top_logprobs": listed}]}}]}


def read(transport: Wire, reply: object, *questions: Choice) -> Reply:
    body = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
    return transport.read(body, questions or (FIRST,))


def test_a_call_of_openais_is_one_that_its_own_types_know() -> None:
    body = {"model": "gpt-6-luna", **OpenAiDecisions().body(SHEET, [FIRST, SECOND])}
    asked = TypeAdapter(DecisionCreateParams).validate_python(body, strict=False, extra="forbid")
    assert [each["name"] for each in asked["questions"]] == ["c1", "c2"]
    Decision.model_validate(openai_reply(openai_answer()), strict=True)  # what the tests answer, too


@pytest.mark.parametrize(
    ("transport", "reply"),
    [
        (OpenAiDecisions(), openai_reply(openai_answer())),
        (OpenAiDecisions(), openai_reply(openai_answer(None))),
        (SystemOne(), systemone_reply(c1=chosen(SURE))),
        (CHAT, token_reply([("A", 0.09), (" A", 0.01), ("B", 0.05), ("C", 0.05), ("D", 0.8)])),
    ],
    ids=["openai", "openai, in order", "systemone", "logprobs"],
)
def test_each_transport_reads_one_probability_for_each_option(transport: Wire, reply: object) -> None:
    found = read(transport, reply)
    assert found.answers["c1"] == pytest.approx(SURE)
    used = reported_usage("m", found.usage, None)
    assert used is not None
    assert (used.input_tokens, bool(found.model)) == (120, True)


def test_tokens_are_counted_by_their_other_name_and_never_guessed() -> None:
    found = read(OpenAiDecisions(), openai_reply(openai_answer()))
    told = Usage(input_tokens=120, cached_input_tokens=100, output_tokens=2)
    assert reported_usage("m", found.usage, None) == told
    assert found.model == "gpt-6-luna-2026-10-06"
    rubbish = openai_reply(openai_answer()) | {"usage": {"input_tokens": True}, "model": "a\nb"}
    assert reported_usage("m", read(OpenAiDecisions(), rubbish).usage, None) == Usage()
    assert read(OpenAiDecisions(), rubbish).model == ""


def changed(**probabilities: Any) -> dict[str, Any]:
    return SURE | {VALUES[0]: probabilities["supported"]}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (changed(supported=0.4), "sum to 1.30"),
        (changed(supported=float("nan")), "not a number"),
        (changed(supported="0.1"), "not a number"),
        (changed(supported=True), "not a number"),
        ({**changed(supported=-0.5), VALUES[3]: 1.4}, "not a number from 0 to 1"),
        ({value: SURE[value] for value in VALUES[1:]}, "lacks the probability of 'supported'"),
        (SURE | {"maybe": 0.0}, "were not asked for"),
        ({}, "lacks"),
    ],
    ids=["sum", "nan", "text", "bool", "range", "missing", "unknown", "none"],
)
def test_probabilities_that_are_none_are_a_problem(given: dict[str, Any], why: str) -> None:
    listed = [{"value": value, "probability": p} for value, p in given.items()]
    openai = openai_reply({**openai_answer(), "probabilities": listed})
    for transport, reply in (
        (OpenAiDecisions(), openai),
        (SystemOne(), systemone_reply(c1=chosen(given))),
    ):
        problem = read(transport, reply).answers["c1"]
        assert isinstance(problem, Unanswered)
        assert why in problem.why
        assert problem.finding is Finding.JUDGE_UNCLEAR


@pytest.mark.parametrize(
    ("transport", "reply", "why"),
    [
        (OpenAiDecisions(), openai_reply(openai_answer("c1"), openai_answer("c1")), "2 came"),
        (OpenAiDecisions(), openai_reply(openai_answer("c2")), "no answer"),
        (OpenAiDecisions(), openai_reply(3), "no answer"),
        (OpenAiDecisions(), openai_reply(), "0 came"),
        (
            OpenAiDecisions(),
            openai_reply(
                {**openai_answer(), "probabilities": [{"value": VALUES[0], "probability": 0.5}] * 2}
            ),
            "two probabilities",
        ),
        (OpenAiDecisions(), openai_reply({**openai_answer(), "probabilities": None}), "lacks"),
        (SystemOne(), systemone_reply(), "no answer"),
        (SystemOne(), systemone_reply(c1=chosen(SURE, option_mass=0.2)), "only 0.20"),
        (SystemOne(), systemone_reply(c1=chosen([0.1, 0.9])), "or none"),  # type: ignore[arg-type]
        (OpenAiDecisions(), openai_reply({**openai_answer(), "choice": VALUES[0]}), "not its likeliest"),
        (OpenAiDecisions(), openai_reply({**openai_answer(), "type": "score"}), "another kind"),
        (OpenAiDecisions(), openai_reply({**openai_answer(), "name": ["c1"]}), "no answer"),
        (SystemOne(), systemone_reply(c1=chosen(SURE, option_mass="0.9")), "what its options have"),
        (SystemOne(), systemone_reply(c1=chosen(SURE, option_mass=10**400)), "what its options have"),
        (SystemOne(), systemone_reply(c1=chosen(SURE | {VALUES[0]: 10**400})), "not a number"),
        (CHAT, token_reply([("I", 0.7), ("D", 0.2), ("A", 0.05)]), "only 0.25"),
        (CHAT, logprobs(("A", -0.6), ("D", None)), "not a number"),
        (CHAT, logprobs(("A", -0.6), ("D", float("nan"))), "not a number"),
        (CHAT, logprobs(("A", -0.6), ("D", 0.5)), "not a number"),
        (CHAT, logprobs(("A", -0.1), ("A", -0.1)), "what its options have"),
        (CHAT, logprobs(("A", 0.0), ("B", 0.0), ("C", 0.0)), "what its options have"),
    ],
)
def test_a_question_without_one_usable_answer_is_a_problem(transport: Wire, reply: object, why: str) -> None:
    problem = read(transport, reply).answers["c1"]
    assert isinstance(problem, Unanswered)
    assert why in problem.why


@pytest.mark.parametrize(
    ("transport", "reply"),
    [
        (OpenAiDecisions(), openai_reply({"type": "refusal", "name": "c1"}, openai_answer("c2"))),
        (SystemOne(), systemone_reply(c1={"type": "refusal"}, c2=chosen(SURE))),
    ],
    ids=["openai", "systemone"],
)
def test_one_question_may_be_refused_and_another_answered(transport: Wire, reply: object) -> None:
    answers = read(transport, reply, FIRST, SECOND).answers
    assert answers["c1"] == Unanswered("the model refused to judge", Finding.JUDGE_REFUSED)
    assert answers["c2"] == pytest.approx(SURE)


def test_a_label_that_is_out_of_the_question_has_no_probability() -> None:
    answer = read(CHAT, logprobs(("A", -0.01), ("B", -9999.0), ("C", float("-inf")))).answers["c1"]
    assert answer == pytest.approx(dict(zip(VALUES, (1.0, 0.0, 0.0, 0.0), strict=True)))


@pytest.mark.parametrize("choice", [{"finish_reason": "content_filter"}, {"message": {"refusal": "No."}}])
def test_a_chat_model_refuses_by_its_filter_or_in_words(choice: dict[str, object]) -> None:
    problem = read(CHAT, token_reply([("D", 0.9)], **choice)).answers["c1"]
    assert isinstance(problem, Unanswered)
    assert problem.finding is Finding.JUDGE_REFUSED


def cut(reply: dict[str, Any]) -> bytes:
    return json.dumps(reply).encode()[:-5]


def twice(reply: dict[str, Any]) -> bytes:
    return json.dumps(reply).encode().replace(b'"c1":', b'"c1": {}, "c1":')


@pytest.mark.parametrize(
    ("transport", "body", "why"),
    [
        (OpenAiDecisions(), cut(openai_reply(openai_answer())), "not JSON"),
        (OpenAiDecisions(), b"[1]", "not an object"),
        (OpenAiDecisions(), b'{"choices": []}', "no answers"),
        (SystemOne(), b'{"answers": []}', "no answers"),
        (SystemOne(), twice(systemone_reply(c1=chosen(SURE))), "twice"),
        (CHAT, b'{"choices": []}', "no choices"),
        (CHAT, b'{"choices": [{"message": {"content": "D"}}]}', "no logprobs"),
        (CHAT, b'{"choices": [{"logprobs": {"content": [{"top_logprobs": []}]}}]}', "no logprobs"),
        (CHAT, b"[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_reply_of_its_kind_is_an_error_that_says_where_to_look(
    transport: Wire, body: bytes, why: str
) -> None:
    with pytest.raises(JudgeReplyError, match=why):
        read(transport, body)


def test_a_chat_model_gets_one_line_for_each_option_behind_the_documents() -> None:
    sent = CHAT.body(SHEET, [FIRST])
    system, user = (each["content"] for each in sent["messages"])
    assert system == "Compare."
    assert user.startswith("the documents\n\nIs claim 1 right?\nA. supported: ")
    assert [line[:3] for line in user.splitlines()[3:7]] == ["A. ", "B. ", "C. ", "D. "]
    assert (sent["max_tokens"], sent["logprobs"], sent["top_logprobs"]) == (1, True, 20)


@pytest.mark.parametrize("make", [OpenAiDecisions, SystemOne, lambda: CHAT])
def test_what_comes_before_the_claim_is_the_same_in_every_call(
    make: Callable[[], Wire],
) -> None:
    first, second = (json.dumps(make().body(SHEET, [each])) for each in (FIRST, SECOND))
    assert first.index("the documents") < first.index("laim 1")
    same = first.index("laim 1") - 44
    assert first[:same] == second[:same]
