"""How decision models are asked: documents once, then questions, and probabilities back, in three forms.

A transport makes the body of a call and reads its reply. It does no I/O, and believes no reply: a question
without a usable answer has a ``Unanswered`` that says why. Of what a server says nothing is repeated but the
name of its model.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, TypeGuard

from guardrail.errors import JudgeReplyError

_SUM_WITHIN: Final = 0.02  # of 1: servers round
LEAST_MASS: Final = 0.5
"""Of the next token's probability, on the labels: with less the model was about to say something else."""
_LEAST_LOGPROB: Final = 100.0
_MODEL: Final = re.compile(r"[\w./:@+-]{1,120}")
LABELS: Final = "ABCDEFGH"
_NO_ANSWERS: Final = "the reply has no answers; check judge.decisions.transport and base_url"


@dataclass(frozen=True, slots=True)
class Choice:
    """A question: which option fits. ``options`` maps their names to what they mean, in the order in which
    the model reads them; ``id`` is a short name of ours, which it may read, too. ``brief`` are instructions
    without what the state's ``rules`` say."""

    id: str
    instructions: str
    options: Mapping[str, str]
    brief: str


@dataclass(frozen=True, slots=True)
class QuestionState:
    """What all questions of a response are about, the same in each of its calls: first what to do, then the
    documents. ``key`` tells it from other responses' states; ``rules`` say once, before the documents, what
    the questions of a call have in common."""

    instructions: str
    documents: str
    key: str
    rules: str


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Why a question has no answer; ``refused``: because the model declined."""

    why: str
    refused: bool = False


Answer = Mapping[str, float] | Unanswered
"""The probability of each option by its value, which sum to 1; or why there are none."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answers of a call by the ids of its questions; ``model`` is empty where the server names none, and
    ``usage`` is what the server says of it."""

    answers: dict[str, Answer]
    model: str = ""
    usage: object = None


class Wire(Protocol):
    """A form of asking."""

    path: ClassVar[str]
    """Behind the base URL."""
    most_questions: ClassVar[int]
    """Of one call."""

    def body(self, state: QuestionState, questions: Sequence[Choice]) -> dict[str, Any]:
        """What a call sends, but for the model's name."""
        ...

    def read(self, body: bytes, questions: Sequence[Choice]) -> Reply:
        """What the server answered, for each question. Raises JudgeReplyError if that is no such reply."""
        ...


class OpenAiDecisions:
    """``POST /decisions`` of OpenAI, and of Fireworks: what the options mean is said once a call."""

    path: ClassVar[str] = "/decisions"
    most_questions: ClassVar[int] = 400

    def body(self, state: QuestionState, questions: Sequence[Choice]) -> dict[str, Any]:
        documents = {
            "type": "input_text",
            "text": state.documents,
            "prompt_cache_breakpoint": {"mode": "explicit"},
        }
        return {
            "input": [
                {"type": "message", "role": "developer", "content": f"{state.instructions}\n{state.rules}"},
                {"type": "message", "role": "user", "content": [documents]},
            ],
            "questions": [
                {
                    "type": "choice",
                    "name": question.id,
                    "instructions": question.brief,
                    "choices": [{"value": name} for name in question.options],
                }
                for question in questions
            ],
            "prompt_cache_key": state.key,
            "prompt_cache_options": {"mode": "explicit", "ttl": "30m"},
        }

    def read(self, body: bytes, questions: Sequence[Choice]) -> Reply:
        reply = _object(body)
        offered = reply.get("answers")
        if not isinstance(offered, list):
            raise JudgeReplyError(_NO_ANSWERS)
        if len(offered) != len(questions) and not any(_named(answer) for answer in offered):
            why = Unanswered(f"{len(questions)} answers were asked for, {len(offered)} came")
            return _reply(reply, {each.id: why for each in questions})
        named: dict[str, list[Any]] = {}
        for number, answer in enumerate(offered):
            name = _named(answer)
            if name is None and len(offered) == len(questions):  # they come in the order of the questions
                name = questions[number].id
            named.setdefault(name or "", []).append(answer)
        return _reply(reply, {each.id: _chosen(each, named.get(each.id, [])) for each in questions})


class SystemOne:
    """``POST /systemone`` of TypeSafe Jev, OpenRouter, Upstage, Cloudflare Clef and open servers."""

    path: ClassVar[str] = "/systemone"
    most_questions: ClassVar[int] = 200

    def body(self, state: QuestionState, questions: Sequence[Choice]) -> dict[str, Any]:
        return {
            "state": f"{state.instructions}\n\n{state.documents}",
            "questions": {
                question.id: {
                    "type": "choice",
                    "instructions": question.instructions,
                    "criteria": dict(question.options),
                }
                for question in questions
            },
        }

    def read(self, body: bytes, questions: Sequence[Choice]) -> Reply:
        reply = _object(body)
        answers = reply.get("answers")
        if not isinstance(answers, dict):
            raise JudgeReplyError(_NO_ANSWERS)
        given = {each.id: [answers[each.id]] if each.id in answers else [] for each in questions}
        return _reply(reply, {each.id: _chosen(each, given[each.id]) for each in questions})


class NextToken:
    """``POST /chat/completions`` with one token: the probabilities of the options' labels as the next one."""

    path: ClassVar[str] = "/chat/completions"
    most_questions: ClassVar[int] = 1

    def __init__(self, labels: str) -> None:
        """``labels`` is the text behind the question, with ``{options}``."""
        self._labels = labels

    def body(self, state: QuestionState, questions: Sequence[Choice]) -> dict[str, Any]:
        (question,) = questions
        options = "\n".join(
            f"{label}. {name}: {text}"
            for label, (name, text) in zip(LABELS, question.options.items(), strict=False)
        )
        asked = f"{question.instructions}\n{self._labels.format(options=options)}"
        return {
            "messages": [
                {"role": "system", "content": state.instructions},
                {"role": "user", "content": f"{state.documents}\n\n{asked}"},
            ],
            "max_tokens": 1,
            "temperature": 0,
            "logprobs": True,
            "top_logprobs": 20,
        }

    def read(self, body: bytes, questions: Sequence[Choice]) -> Reply:
        (question,) = questions
        reply = _object(body)
        choice = _first(reply.get("choices"))
        if choice is None:
            raise JudgeReplyError("the reply has no choices; check judge.decisions.transport and base_url")
        message = choice.get("message")
        if choice.get("finish_reason") == "content_filter" or (
            isinstance(message, dict) and message.get("refusal")
        ):
            return _reply(reply, {question.id: Unanswered("the model refused to judge", refused=True)})
        told = choice.get("logprobs")
        token = _first(told.get("content")) if isinstance(told, dict) else None
        top = token.get("top_logprobs") if token is not None else None
        if not isinstance(top, list) or not top:
            raise JudgeReplyError(
                "the reply has no logprobs: the server or the model gives none (models that reason do not); "
                "name another model, or another judge.decisions.transport"
            )
        return _reply(reply, {question.id: self._answer(question, top)})

    def _answer(self, question: Choice, top: Iterable[Any]) -> Answer:
        by_label = dict(zip(LABELS, question.options, strict=False))
        found = dict.fromkeys(question.options, 0.0)
        seen = set()
        for each in top:
            token = each.get("token") if isinstance(each, dict) else None
            option = by_label.get(token.strip()) if isinstance(token, str) else None
            if option is None:
                continue
            logprob = each.get("logprob")  # -9999 or -Infinity of one that is out of the question
            if type(logprob) not in (int, float) or not logprob <= _SUM_WITHIN or token in seen:
                return Unanswered("a label has two probabilities, or one that is not a number")
            seen.add(token)
            found[option] += math.exp(min(0.0, max(-_LEAST_LOGPROB, logprob)))
        mass = sum(found.values())
        if mass > 1 + _SUM_WITHIN:
            return Unanswered("the labels have more than all of the probability")
        if mass < LEAST_MASS:
            return _low(mass)
        return probabilities(question, {value: each / mass for value, each in found.items()})


def _low(mass: float) -> Unanswered:
    return Unanswered(
        f"the options have only {mass:.2f} of the model's probability, it was about to say something else; "
        "name another model, or another judge.decisions.transport"
    )


def _named(answer: object) -> str | None:
    """The question that an answer says it is to; None if it says nothing."""
    name = answer.get("name") if isinstance(answer, dict) else ""
    return name if isinstance(name, str) or name is None else ""


def _chosen(question: Choice, given: Sequence[Any]) -> Answer:
    """From the answers to one question, of which there should be one, with a probability for each option."""
    if len(given) != 1 or not isinstance(given[0], dict):
        return Unanswered("two answers to one question" if len(given) > 1 else "no answer to it")
    answer = given[0]
    if answer.get("type") == "refusal":
        return Unanswered("the model refused to judge", refused=True)
    if answer.get("type", "choice") != "choice":
        return Unanswered("the answer is of another kind than the question")
    mass, listed = answer.get("option_mass", 1.0), answer.get("probabilities")
    if not _is_probability(mass):
        return Unanswered("its option_mass is not a probability")
    if mass < LEAST_MASS:
        return _low(mass)
    if isinstance(listed, list):
        by_value = {
            str(each.get("value")): each.get("probability") for each in listed if isinstance(each, dict)
        }
        if len(by_value) < len(listed):
            return Unanswered("an option has two probabilities, or none")
        listed = by_value
    found = probabilities(question, listed if isinstance(listed, dict) else {})
    said = answer.get("choice")
    if isinstance(found, Unanswered) or not isinstance(said, str):
        return found
    if found.get(said, 0.0) < max(found.values()) - _SUM_WITHIN:
        return Unanswered("it chooses an option that is not its likeliest")
    return found


def probabilities(question: Choice, given: Mapping[str, Any]) -> Answer:
    """``given`` if it is one probability for each option, which sum to 1."""
    if unknown := given.keys() - question.options.keys():
        return Unanswered(f"{len(unknown)} of the answer's options were not asked for")
    if missing := [name for name in question.options if name not in given]:
        return Unanswered(f"the answer lacks the probability of '{missing[0]}'")
    found = {name: given[name] for name in question.options}
    if not all(map(_is_probability, found.values())):
        return Unanswered("a probability is not a number from 0 to 1")
    whole = sum(found.values())
    if abs(whole - 1) > _SUM_WITHIN:
        return Unanswered(f"the probabilities sum to {whole:.2f}")
    return {value: min(1.0, max(0.0, each / whole)) for value, each in found.items()}


def _is_probability(value: object) -> TypeGuard[float]:
    return type(value) in (int, float) and -_SUM_WITHIN <= value <= 1 + _SUM_WITHIN  # type: ignore[operator]


def _object(body: bytes) -> dict[str, Any]:
    try:
        reply = json.loads(body, object_pairs_hook=_named_once)
    except JudgeReplyError:
        raise
    except (ValueError, RecursionError):
        raise JudgeReplyError(
            "the server's answer is not JSON; check judge.decisions.transport and base_url"
        ) from None
    if not isinstance(reply, dict):
        raise JudgeReplyError("the server's answer is not an object; check judge.decisions.transport")
    return reply


def _named_once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object that gives a member twice, since either may be meant."""
    found = dict(members)
    if len(found) != len(members):
        raise JudgeReplyError("the reply names a member twice")
    return found


def _first(values: object) -> dict[str, Any] | None:
    first = values[0] if isinstance(values, list) and values else None
    return first if isinstance(first, dict) else None


def _reply(reply: Mapping[str, Any], answers: dict[str, Answer]) -> Reply:
    """With what the server says of its model and of tokens."""
    model = reply.get("model")
    if not isinstance(model, str) or not _MODEL.fullmatch(model):
        model = ""
    return Reply(answers, model, reply.get("usage"))
