"""What the simulated model of ``benchmarks.peers`` replies: the truth, in the form that each prompt asks for.

It knows the answers and their errors, so what is compared is how long a system takes and what it spends to
get the same judgement out of the same model, not how good a model is.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.peers_answers import Case, Truth

# [MARKER claim c1], what stands up to the next marker line, and the ids that the last line asks for.
_FENCED: Final = re.compile(r"\[(m\d+) claim (\w+)\]\n(.*?)(?=\n\[\1 )", re.DOTALL)
_ASKED: Final = re.compile(r"[Gg]ive the verdicts? on ([\w, ]+?)(?=,? as\b|\.|$)", re.MULTILINE)
# What the decisions judge asks, and an option that a chat model is to name by its letter.
_QUESTION: Final = re.compile(r"\[(m\d+) claim\]\n(.*?)(?=\n\[\1 )", re.DOTALL)
_OPTION: Final = re.compile(r"^([A-H])\. ([^:\n]+): ", re.MULTILINE)
_OPTIONS: Final = {"SUPPORTED": "supported", "UNSUPPORTED": "not", "CONTRADICTED": "contradicted"}
"""What the option for a verdict begins with."""
_SURE: Final = 0.94
_LABEL: Final = re.compile(r"\[[a-z]*(\d+)\]", re.IGNORECASE)
_QUOTED_WORDS: Final = 12
_ENOUGH_CHARS: Final = 24


@dataclass(frozen=True, slots=True)
class Reply:
    """``text`` is the content, or with ``tool`` the arguments of a call of that tool; ``top`` are the
    likeliest first tokens, and ``answers`` those of decisions.

    ``unknown`` counts the claims that were asked for and stand in no known answer.
    """

    text: str
    tool: str | None = None
    unknown: int = 0
    top: list[dict[str, Any]] | None = None
    answers: list[dict[str, Any]] | None = None


class Replies:
    """Knows all cases, and tells from a request's form which system asks."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._cases = sorted(cases, key=lambda case: -len(case.answer))
        self._claims = {_plain(claim.text): claim for case in cases for claim in case.claims}

    def to(self, body: dict[str, Any]) -> Reply:
        """The reply to the body of a request. Raises ValueError for one of no known form."""
        if questions := body.get("questions"):
            state = "\n".join(text_of(message) for message in body["input"])
            return self._decisions(state, questions)
        messages = [text_of(message) for message in body["messages"]]
        prompt = "\n".join(messages)
        if body.get("top_logprobs"):
            labels = {option: label for label, option in _OPTION.findall(messages[-1])}
            likely, known = self._decide(prompt, messages[-1], list(labels))
            top = [{"token": labels[each], "logprob": math.log(p)} for each, p in likely.items()]
            return Reply(max(top, key=lambda each: each["logprob"])["token"], unknown=not known, top=top)
        tools = [tool["function"] for tool in body.get("tools") or ()]
        schema = (body.get("response_format") or {}).get("json_schema", {}).get("schema")
        if fenced := _FENCED.findall(messages[-1]):
            claims = {label: text for _, label, text in fenced}
            return self._verdicts(messages[-1], claims, schema)
        if "statement_scores" in prompt:  # Haystack: the statements and a 1 or 0 for each
            claims_ = self._case(prompt).claims
            scores = [int(not claim.bad) for claim in claims_]
            told = {"statements": [claim.text for claim in claims_], "statement_scores": scores}
            return Reply(json.dumps(told))
        if "answer with either YES or NO" in prompt or "existing YES/NO answer" in prompt:
            return Reply("NO" if any(claim.bad for claim in self._case(prompt).claims) else "YES")
        if "faithfulness of a series of statements" in prompt:
            return _as_asked(self._nli(prompt), tools)
        if "fully understandable statements" in prompt:
            statements = [claim.text for claim in self._case(prompt).claims]
            return _as_asked({"statements": statements}, tools)
        raise ValueError("a prompt of no known form: see benchmarks/peers_replies.py")

    def _case(self, prompt: str) -> Case:
        """The case whose answer the prompt holds."""
        unescaped = prompt.replace('\\"', '"').replace("\\'", "'")
        found = next((case for case in self._cases if case.answer in unescaped), None)
        if found is None:
            raise ValueError("a prompt without a known answer")
        return found

    def _nli(self, prompt: str) -> dict[str, Any]:
        """Ragas, second call: each statement again, with a reason and a 1 or 0."""
        tail = prompt.rpartition("Now perform the same with the following input")[2]
        asked = [claim for text, claim in self._claims.items() if text in _plain(tail)]
        return {
            "statements": [
                {"statement": claim.text, "reason": _reason(claim), "verdict": int(not claim.bad)}
                for claim in asked
            ]
        }

    def _decisions(self, state: str, questions: Sequence[dict[str, Any]]) -> Reply:
        """A probability for each option of each question."""
        answers, unknown = [], 0
        for question in questions:
            options = [each["value"] for each in question["choices"]]
            likely, known = self._decide(state, question["instructions"], options)
            unknown += not known
            answers.append(
                {
                    "type": "choice",
                    "name": question["name"],
                    "choice": max(likely, key=lambda each: likely[each]),
                    "confidence": _SURE,
                    "probabilities": [{"value": value, "probability": p} for value, p in likely.items()],
                }
            )
        return Reply("", unknown=unknown, answers=answers)

    def _decide(self, state: str, asked: str, options: Sequence[str]) -> tuple[dict[str, float], bool]:
        """How likely each option is, and whether the claim is known."""
        found = _QUESTION.search(asked)
        truth = self._claims.get(_plain(found[2])) if found else None
        there = truth is not None and truth.evidence[:_ENOUGH_CHARS] in state
        right = _OPTIONS[truth.verdict if truth is not None and there else "UNSUPPORTED"]
        rest = (1 - _SURE) / (len(options) - 1)
        likely = {each: _SURE if each.startswith(right) else rest for each in options}
        return likely, truth is not None

    def _verdicts(self, prompt: str, claims: dict[str, str], schema: dict[str, Any] | None) -> Reply:
        """Ours: a text for every id asked."""
        last = _ASKED.findall(prompt)
        asked = [label for label in re.split(r"[, ]+", last[-1]) if label in claims] if last else list(claims)
        [(name, verdicts)] = (schema or {})["properties"].items()
        known = [self._claims.get(_plain(claims[label])) for label in asked]
        texts = []
        for label, truth in zip(asked, known, strict=True):
            if truth is None or truth.evidence[:_ENOUGH_CHARS] not in prompt:
                # A model can't know what no document of the prompt says.
                truth = Truth(claims[label], "UNSUPPORTED", "")
            texts.append(_text_of(verdicts["items"]["pattern"], label, truth, prompt))
        return Reply(_compact({name: texts}), unknown=known.count(None))


def text_of(message: dict[str, Any]) -> str:
    """Of a chat message, or of one in the input of decisions."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def _plain(text: str) -> str:
    return " ".join(text.split()).strip()


def _reason(claim: Truth) -> str:
    if claim.verdict == "UNSUPPORTED":
        return "Nothing of this is stated in the context."
    words = _short(claim.evidence)
    return f"The context states that {words[:1].lower()}{words[1:]}."


def _short(evidence: str) -> str:
    """As much of a sentence as a model that is told to be brief repeats of it."""
    return " ".join(evidence.split()[:_QUOTED_WORDS])


def _short_reason(claim: Truth) -> str:
    """One sentence, as our prompt asks for where a claim is not supported."""
    if claim.verdict == "UNSUPPORTED":
        return "No document says so."
    return f"The document says: {_short(claim.evidence)}."


def _as_asked(value: dict[str, Any], tools: Sequence[dict[str, Any]]) -> Reply:
    """As content, or as the arguments of the only tool."""
    if not tools:
        return Reply(json.dumps(value))
    return Reply(_compact(value), tool=tools[0]["name"])


def _compact(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _text_of(pattern: str, label: str, truth: Truth, prompt: str) -> str:
    """The shortest text with the truth that the pattern allows, with a reason where it must have one."""
    verdict = {"PARTIALLY_SUPPORTED": "partial"}.get(truth.verdict, truth.verdict.lower())
    short = " ".join([label, *map(str, _evidence(truth, prompt)), verdict])
    for text in (short, f"{short}: {_short_reason(truth)}".replace('"', "'")):
        if re.fullmatch(pattern, text):
            return text
    raise ValueError("a form of verdict that benchmarks/peers_replies.py doesn't know")


def _evidence(truth: Truth, prompt: str) -> list[int]:
    """The number that the sentence has in the prompt."""
    if not truth.evidence:
        return []
    at = prompt.find(truth.evidence)
    if at < 0:
        at = prompt.find(truth.evidence[:_ENOUGH_CHARS])  # cut into sentences elsewhere than here
    labelled = _LABEL.match(prompt[prompt.rfind("\n", 0, at) + 1 : at])
    return [int(labelled[1]) if labelled else 1]
