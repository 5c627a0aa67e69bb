"""How decision models are asked: documents once, then questions, and probabilities back, in three forms.

A transport makes the body of a call and reads its reply. It believes no reply: a question without a usable
answer has a ``Unanswered`` that says why. Of what a server says nothing is repeated but the
name of its model.
"""

from __future__ import annotations

import json
import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeGuard

import openai

from guardrail.calls import Call, Caller, Failure, server_of
from guardrail.calls.http import named_once, read_body
from guardrail.errors import ConfigError, JudgeReplyError
from guardrail.events import Finding, Usage
from guardrail.judges.base import Meter
from guardrail.judges.decisions.settings import DecisionsSettings
from guardrail.judges.llm.chat import first_object
from guardrail.judges.openai_client import OwnClients, describe, httpx
from guardrail.judges.recorder import recorder
from guardrail.judges.spending import PriceTable, reported_usage

_SUM_WITHIN: Final = 0.02  # of 1: servers round
_LEAST_MASS: Final = 0.5
"""Of the next token's probability, on the labels: with less the model was about to say something else."""
_LEAST_LOGPROB: Final = 100.0
_MODEL: Final = re.compile(r"[\w./:@+-]{1,120}")
_LABELS: Final = "ABCDEFGH"
_CHECK: Final = "check judge.decisions.transport and base_url"
_NO_ANSWERS: Final = f"the reply has no answers; {_CHECK}"
_OTHERWISE: Final = "name another model, or another judge.decisions.transport"


@dataclass(frozen=True, slots=True)
class Choice:
    """A question: which option fits. ``options`` maps their names to what they mean, in the order in which
    the model reads them; ``id`` is a short name of ours, which it may read, too. ``brief`` are instructions
    without what the sheet's ``rules`` say."""

    id: str
    instructions: str
    options: Mapping[str, str]
    brief: str


@dataclass(frozen=True, slots=True)
class QuestionSheet:
    """What is asked about a response, the same in each of its calls but for the questions: first what to do,
    then the documents. ``key`` tells it from other responses' sheets; ``rules`` say once, before the
    documents, what the questions have in common; ``labels`` stands behind a question to a chat model, with
    ``{options}``. ``questions`` are by the ids of their claims; ``partial``: not all of the documents are
    shown, and there is no question on a claim for which nothing is."""

    instructions: str
    documents: str
    key: str
    rules: str
    labels: str
    questions: Mapping[str, Choice]
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Why a question has no answer."""

    why: str
    finding: Finding = Finding.JUDGE_UNCLEAR


_REFUSED: Final = Unanswered("the model refused to judge", Finding.JUDGE_REFUSED)
Answer = Mapping[str, float] | Unanswered
"""The probability of each option by its value, which sum to 1; or why there are none."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answers of a call by the ids of its questions; ``model`` is empty where the server names none, and
    ``usage`` is what the server says of it."""

    answers: dict[str, Answer]
    model: str = ""
    usage: object = None


class Wire(ABC):
    """A form of asking."""

    path: ClassVar[str]
    """Behind the base URL."""
    most_questions: ClassVar[int]
    """Of one call."""

    @abstractmethod
    def body(self, sheet: QuestionSheet, questions: Sequence[Choice]) -> dict[str, Any]:
        """What a call sends, but for the model's name."""

    @abstractmethod
    def answers(self, reply: Mapping[str, Any], questions: Sequence[Choice]) -> dict[str, Answer]:
        """Those of a reply, by the ids of the questions. Raises JudgeReplyError if it is of another form."""

    def read(self, body: bytes, questions: Sequence[Choice]) -> Reply:
        """What the server answered, for each question. Raises JudgeReplyError if that is no such reply."""
        try:
            reply = json.loads(body, object_pairs_hook=named_once)
        except (ValueError, RecursionError):
            raise JudgeReplyError(f"the server's answer is not JSON; {_CHECK}") from None
        if not isinstance(reply, dict):
            raise JudgeReplyError(f"the server's answer is not an object; {_CHECK}")
        model = reply.get("model")
        if not isinstance(model, str) or not _MODEL.fullmatch(model):
            model = ""
        return Reply(self.answers(reply, questions), model, reply.get("usage"))


class OpenAiDecisions(Wire):
    """``POST /decisions`` of OpenAI, and of Fireworks: what the options mean is said once a call."""

    path: ClassVar[str] = "/decisions"
    most_questions: ClassVar[int] = 400

    def body(self, sheet: QuestionSheet, questions: Sequence[Choice]) -> dict[str, Any]:
        documents = {
            "type": "input_text",
            "text": sheet.documents,
            "prompt_cache_breakpoint": {"mode": "explicit"},
        }
        return {
            "input": [
                {"type": "message", "role": "developer", "content": f"{sheet.instructions}\n{sheet.rules}"},
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
            "prompt_cache_key": sheet.key,
            "prompt_cache_options": {"mode": "explicit", "ttl": "30m"},
        }

    def answers(self, reply: Mapping[str, Any], questions: Sequence[Choice]) -> dict[str, Answer]:
        offered = reply.get("answers")
        if not isinstance(offered, list):
            raise JudgeReplyError(_NO_ANSWERS)
        if len(offered) != len(questions):
            why = Unanswered(f"{len(questions)} answers were asked for, {len(offered)} came")
            return {each.id: why for each in questions}
        found = {}
        for question, answer in zip(questions, offered, strict=True):  # they come in the order asked
            name = answer.get("name") if isinstance(answer, dict) else None
            found[question.id] = _chosen(question, answer if name in (None, question.id) else None)
        return found


class SystemOne(Wire):
    """``POST /systemone`` of TypeSafe Jev, OpenRouter, Upstage, Cloudflare Clef and open servers."""

    path: ClassVar[str] = "/systemone"
    most_questions: ClassVar[int] = 200

    def body(self, sheet: QuestionSheet, questions: Sequence[Choice]) -> dict[str, Any]:
        return {
            "state": f"{sheet.instructions}\n\n{sheet.documents}",
            "questions": {
                question.id: {
                    "type": "choice",
                    "instructions": question.instructions,
                    "criteria": dict(question.options),
                }
                for question in questions
            },
        }

    def answers(self, reply: Mapping[str, Any], questions: Sequence[Choice]) -> dict[str, Answer]:
        offered = reply.get("answers")
        if not isinstance(offered, dict):
            raise JudgeReplyError(_NO_ANSWERS)
        return {each.id: _chosen(each, offered.get(each.id)) for each in questions}


class NextToken(Wire):
    """``POST /chat/completions`` with one token: the probabilities of the options' labels as the next one."""

    path: ClassVar[str] = "/chat/completions"
    most_questions: ClassVar[int] = 1

    def body(self, sheet: QuestionSheet, questions: Sequence[Choice]) -> dict[str, Any]:
        (question,) = questions
        options = "\n".join(
            f"{label}. {name}: {text}"
            for label, (name, text) in zip(_LABELS, question.options.items(), strict=False)
        )
        asked = f"{question.instructions}\n{sheet.labels.format(options=options)}"
        return {
            "messages": [
                {"role": "system", "content": sheet.instructions},
                {"role": "user", "content": f"{sheet.documents}\n\n{asked}"},
            ],
            "max_tokens": 1,
            "temperature": 0,
            "logprobs": True,
            "top_logprobs": 20,
        }

    def answers(self, reply: Mapping[str, Any], questions: Sequence[Choice]) -> dict[str, Answer]:
        (question,) = questions
        choice = first_object(reply.get("choices"))
        if choice is None:
            raise JudgeReplyError(f"the reply has no choices; {_CHECK}")
        message = choice.get("message")
        declined = isinstance(message, dict) and message.get("refusal")
        if declined or choice.get("finish_reason") == "content_filter":
            return {question.id: _REFUSED}
        told = choice.get("logprobs")
        token = first_object(told.get("content")) if isinstance(told, dict) else None
        top = token.get("top_logprobs") if token is not None else None
        if not isinstance(top, list) or not top:
            raise JudgeReplyError(
                "the reply has no logprobs: the server or the model gives none (models that reason do not); "
                f"{_OTHERWISE}"
            )
        return {question.id: self._answer(question, top)}

    def _answer(self, question: Choice, top: Iterable[Any]) -> Answer:
        by_label = dict(zip(_LABELS, question.options, strict=False))
        found = dict.fromkeys(question.options, 0.0)
        for each in top:
            token = each.get("token") if isinstance(each, dict) else None
            option = by_label.get(token.strip()) if isinstance(token, str) else None
            if option is None:
                continue
            logprob = each.get("logprob")  # -9999 or -Infinity of one that is out of the question
            if type(logprob) not in (int, float) or not logprob <= _SUM_WITHIN:
                return Unanswered("a label has a probability that is not a number")
            found[option] += math.exp(min(0.0, max(-_LEAST_LOGPROB, logprob)))
        mass = sum(found.values())
        shares = {name: each / (mass or 1.0) for name, each in found.items()}
        return _chosen(question, {"option_mass": mass, "probabilities": shares})


WIRES: Final[Mapping[str, Wire]] = {
    "openai": OpenAiDecisions(),
    "systemone": SystemOne(),
    "logprobs": NextToken(),
}
"""By what ``judge.decisions.transport`` says."""


def _chosen(question: Choice, answer: object) -> Answer:
    """From what is said to one question: one probability for each option, which sum to 1."""
    if not isinstance(answer, dict):
        return Unanswered("no answer to it")
    if answer.get("type") == "refusal":
        return _REFUSED
    if answer.get("type", "choice") != "choice":
        return Unanswered("the answer is of another kind than the question")
    mass, listed = answer.get("option_mass", 1.0), answer.get("probabilities")
    if not _is_probability(mass):
        return Unanswered("what its options have of the model's probability is not a number from 0 to 1")
    if mass < _LEAST_MASS:
        return Unanswered(
            f"the options have only {mass:.2f} of the model's probability, it was about to say something "
            f"else; {_OTHERWISE}"
        )
    if isinstance(listed, list):
        by_value = {
            str(each.get("value")): each.get("probability") for each in listed if isinstance(each, dict)
        }
        if len(by_value) < len(listed):
            return Unanswered("an option has two probabilities, or none")
        listed = by_value
    given = listed if isinstance(listed, dict) else {}
    if unknown := given.keys() - question.options.keys():
        return Unanswered(f"{len(unknown)} of the answer's options were not asked for")
    if missing := [name for name in question.options if name not in given]:
        return Unanswered(f"the answer lacks the probability of '{missing[0]}'")
    found = {name: given[name] for name in question.options}
    if not all(map(_is_probability, found.values())):
        return Unanswered("a probability is not a number from 0 to 1")
    whole, said = sum(found.values()), answer.get("choice")
    if abs(whole - 1) > _SUM_WITHIN:
        return Unanswered(f"the probabilities sum to {whole:.2f}")
    if isinstance(said, str) and found.get(said, 0.0) < max(found.values()) - _SUM_WITHIN:
        return Unanswered("it chooses an option that is not its likeliest")
    return {name: min(1.0, max(0.0, each / whole)) for name, each in found.items()}


def _is_probability(value: object) -> TypeGuard[float]:
    return type(value) in (int, float) and -_SUM_WITHIN <= value <= 1 + _SUM_WITHIN  # type: ignore[operator]


# -------------------------------------------------------------------------------------------------- the calls

_MOST_BYTES: Final = 1_000_000
_HINTS: Final = {
    re.compile("(?i)logprob"): (
        "it gives no logprobs (models that reason don't): name another model, or another {section}.transport"
    ),
    re.compile(r"(?i)\b(options|choices|criteria)\b"): (
        "it may take fewer options: set {section}.options to three or two"
    ),
}
"""Remedies, by what a server says of questions that it does not answer."""


class DecisionsEndpoint:
    """Calls to one model. Concurrent questions share all its state."""

    def __init__(self, settings: DecisionsSettings, prices: PriceTable | None = None) -> None:
        """Raises ConfigError if there is no key, or openai is too old for what it is asked for."""
        if settings.transport == "openai" and not hasattr(openai.AsyncOpenAI, "decisions"):
            raise ConfigError(
                f"{settings.section}.transport: openai {openai.__version__} is installed, which knows no "
                "decisions; install 3.26 or newer, or name another transport"
            )
        self.name = f"decisions:{settings.model}"
        self.settings = settings
        self.prices = prices
        self.wire = WIRES[settings.transport]
        self.clients = OwnClients(settings.base_url, settings.resolve_api_key())
        self._caller = Caller(self.name, settings.model, settings.max_concurrency)
        self._headers = {name: value.get_secret_value() for name, value in settings.extra_headers.items()}

    async def ask(self, call: DecisionCall, until: float) -> Reply:
        """What a call brings; ``until`` is in the event loop's time. Raises JudgeError."""
        outcome = await self._caller.run(call, until, call.sheet.key, retries=self.settings.max_retries)
        if isinstance(outcome, Failure):
            raise outcome.error
        return outcome

    async def send(self, body: dict[str, Any]) -> bytes:
        """One HTTP call. Raises openai.APIError, httpx.HTTPError or JudgeReplyError."""
        async with self.clients.post(self.wire.path, body, self._headers) as reply:
            return await read_body(reply.iter_bytes(), _MOST_BYTES)


@dataclass(eq=False)
class DecisionCall(Call[Reply]):
    """Questions of a sheet in one call, which are about the claims ``claim_ids``."""

    endpoint: DecisionsEndpoint
    sheet: QuestionSheet
    meter: Meter
    claim_ids: Sequence[str]
    questions: Sequence[Choice]
    begun_at: float = 0.0
    said: bytes = b""

    def admit(self) -> None:
        self.meter.admit()

    async def run(self) -> Reply | Failure:
        settings, wire = self.endpoint.settings, self.endpoint.wire
        self.meter.add(Usage(judge_calls=1), settings.model)
        self.begun_at, self.said = time.monotonic(), b""
        try:
            body = {"model": settings.model, **wire.body(self.sheet, self.questions)}
            self.said = await self.endpoint.send(body)
            reply = wire.read(self.said, self.questions)
        except (openai.APIError, httpx.HTTPError) as error:
            return self.broke_off(describe(error, server_of(settings.base_url), settings.section, _HINTS))
        except JudgeReplyError as error:
            return self.broke_off(Failure(error, retry=False, fault=True))
        # A server may name a model that has no price, or a cheap one's name.
        used = reported_usage(settings.model, reply.usage, self.endpoint.prices)
        if used is not None:
            self.meter.add(used, reply.model or settings.model)
        return reply

    def ended(self) -> None:
        """Record what was asked and what came, if anybody wants to see it."""
        if (record := recorder()) is None:
            return
        asked = [self.sheet.instructions, self.sheet.documents]
        record.add(
            "call",
            self.claim_ids,
            self.begun_at,
            judge=self.endpoint.name,
            prompt="\n\n".join([*asked, *(each.instructions for each in self.questions)]),
            reply=self.said.decode("utf-8", "replace"),
            error=None if self.failure is None else str(self.failure.error),
        )
