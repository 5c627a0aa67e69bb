"""Decision models in miniature: the three wires, around answers that stand in the claim.

Calls of OpenAI's form are checked against the ``openai`` package's own types, so that a wrong field fails.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from tests.support.json_server import Answer, JsonServer

_CLAIM: Final = re.compile(r"^\[m\d{15} claim\]\n(.*?)\n\[m\d{15} end\]", re.MULTILINE | re.DOTALL)
_OPTION: Final = re.compile(r"^([A-H])\. ([^:\n]+): ", re.MULTILINE)


@cache
def _check() -> TypeAdapter[Any]:
    from openai.types.decision_create_params import DecisionCreateParams  # none in older releases

    return TypeAdapter(DecisionCreateParams)


MODEL: Final = "gpt-6-luna-2026-10-06"

Mind = Callable[[str, Sequence[str]], Mapping[str, float] | None]
"""From a claim and the options in their order to the probability of each; None: it declines."""


def by_word(claim: str, options: Sequence[str]) -> dict[str, float]:
    """Most of the probability on the option that the claim names, or on the first."""
    named = max((option for option in options if option in claim), key=len, default=options[0])
    rest = 0.1 / (len(options) - 1)
    return {option: 0.9 if option == named else rest for option in options}


class DecisionsServer(JsonServer):
    """Answers what ``mind`` says, as ``model``. ``mass`` of a chat model's next token is on the labels."""

    def __init__(self, mind: Mind = by_word) -> None:
        super().__init__()
        self.mind = mind
        self.model = MODEL
        self.mass = 0.97
        self.claims: list[str] = []
        """Of all questions, in the order asked."""

    def answer(self, method: str, path: str, body: Any) -> Answer:
        wires = {
            "/v1/decisions": self._openai,
            "/v1/systemone": self._systemone,
            "/v1/chat/completions": self._chat,
        }
        return wires[path](body) if path in wires else (404, {"error": {"message": "no such path"}})

    def _say(self, instructions: str, options: Sequence[str]) -> Mapping[str, float] | None:
        found = _CLAIM.search(instructions)
        assert found is not None, instructions
        self.claims.append(found[1])
        return self.mind(found[1], options)

    def _openai(self, body: Any) -> Answer:
        try:
            asked: Any = _check().validate_python(body, extra="forbid")
        except ValidationError as error:
            return 400, {"error": {"message": str(error.errors()[0]["loc"])}}
        answers: list[dict[str, Any]] = []
        for question in map(dict, asked["questions"]):
            options = [each["value"] for each in question["choices"]]
            said = self._say(question["instructions"], options)
            if said is None:
                answers.append({"type": "refusal", "name": question["name"]})
                continue
            answers.append(
                {
                    "type": "choice",
                    "name": question["name"],
                    "choice": max(said, key=lambda each: said[each]),
                    "confidence": 0.5,
                    "probabilities": [{"value": value, "probability": p} for value, p in said.items()],
                }
            )
        details = {"cached_tokens": 40, "cache_write_tokens": 0}
        usage = {
            "input_tokens": 100,
            "input_tokens_details": details,
            "output_tokens": 0,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 100,
        }
        return 200, {"model": self.model, "answers": answers, "usage": usage}

    def _systemone(self, body: Any) -> Answer:
        answers = {}
        for name, question in body["questions"].items():
            said = self._say(question["instructions"], list(question["criteria"]))
            if said is not None:
                answers[name] = {"type": "choice", "probabilities": said, "confidence": 0.5}
        return 200, {"model": self.model, "answers": answers, "usage": {"input_tokens": 100}}

    def _chat(self, body: Any) -> Answer:
        text = body["messages"][-1]["content"]
        labels = {option: label for label, option in _OPTION.findall(text)}
        said = self._say(text, list(labels)) or {}
        message = {"content": "A"} if said else {"content": None, "refusal": "No."}
        top = [
            {"token": labels[option], "logprob": math.log(p * self.mass)} for option, p in said.items() if p
        ]
        told = {"content": [{"token": "A", "logprob": -0.1, "top_logprobs": top}]}
        choice = {"message": message, "logprobs": told, "finish_reason": "length"}
        return 200, {"model": self.model, "choices": [choice], "usage": {"prompt_tokens": 100}}
