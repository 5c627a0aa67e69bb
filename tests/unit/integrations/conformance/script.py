"""A chat model that knows what answers state and which words of a context back it, whoever asks.

It replies to the prompts of the frameworks and of our LLM judge, to each in the form that it asks for.
"""

from __future__ import annotations

import json
import re
from typing import Any

PRICES = "Price list: basic $49 a month, pro $99 a month."
RIGHT, WRONG = "The basic plan costs $49 a month.", "The basic plan costs $79 a month."
HALF = "The basic plan costs $49 a month and includes a free phone."
UNKNOWN = "I don't know."
PYTHON = "Python, created by Guido van Rossum, is a high-level general-purpose programming language."
LUCAS = "Python is a high-level general-purpose programming language that was created by George Lucas."
EINSTEIN = (
    "Albert Einstein (born 14 March 1879) was a German-born theoretical physicist, one of the greatest."
)
BORN, BORN_LATER = (f"Einstein was born in Germany on {day}th March 1879." for day in (14, 20))
SUPER_BOWL = "The First AFL–NFL World Championship Game was played on January 15, 1967, in Los Angeles."
GAME = "The first superbowl was held on Jan 15, 1967"
PLANTS = (
    "Photosynthesis is the process by which plants convert sunlight into energy.",
    "During photosynthesis, plants produce oxygen as a byproduct.",
)
PLANT = "Photosynthesis is how plants make energy and produce oxygen."

SAID: dict[str, dict[str, str | None]] = {
    RIGHT: {RIGHT: "$49 a month"},
    WRONG: {WRONG: None},
    HALF: {"The basic plan costs $49 a month.": "$49 a month", "It includes a free phone.": None},
    LUCAS: {
        "Python is a high-level general-purpose programming language.": "is a high-level general-purpose",
        "Python was created by George Lucas.": None,
    },
    BORN: {"Einstein was born in Germany.": "German-born", "He was born on 14th March.": "born 14 March"},
    BORN_LATER: {"Einstein was born in Germany.": "German-born", "He was born on 20th March.": None},
    GAME: {GAME: "played on January 15, 1967"},
    PLANT: {
        "It is how plants make energy.": "into energy",
        "It is how they make oxygen.": "produce oxygen as",
    },
    "The capital of France is Paris.": {"The capital of France is Paris.": "Paris is the capital"},
    "The capital of France is London.": {"The capital of France is London.": None},
}
"""Sentences of answers, with their statements and the words of a context that back each."""

_CLAIM = re.compile(r"^\[(m\d+) claim (c\d+)\]\n(.*?)\n(?=\[\1 )", re.MULTILINE | re.DOTALL)
_RAGAS = re.compile(r"input: (\{[^}]*\})\s*Output: \Z")
_REFINE = re.compile(r"context information: (.*)\n.*YES/NO answer: (.*)\n([\s\S]*)")


class Script:
    """Fails for a prompt with the text ``away_for``, and replies without form to one with ``mumbles_for``."""

    def __init__(self, away_for: str | None = None, mumbles_for: str | None = None) -> None:
        self.away_for, self.mumbles_for = away_for, mumbles_for
        self.asked: list[str] = []

    def reply(self, prompt: str) -> str:
        self.asked.append(prompt)
        if _in(prompt, self.away_for):
            raise RuntimeError("no connection")
        if _in(prompt, self.mumbles_for):
            return "Well, well."
        if claims := _CLAIM.findall(prompt):
            documents = prompt.rpartition(" document d1]")[2]
            return json.dumps(
                {"v": [text for _, label, claim in claims for text in _judged(label, claim, documents)]}
            )
        if "\nInputs:\n" in prompt:
            return json.dumps(_haystack(prompt.rpartition("\nInputs:\n")[2]))
        if found := _RAGAS.search(prompt):
            return json.dumps({"statements": _ragas(json.loads(found[1]))})
        return _llama_index(prompt)


def _stated(answer: str) -> dict[str, str | None]:
    found = sorted((answer.find(sentence), sentence) for sentence in SAID if sentence in answer)
    return {text: by for _, sentence in found for text, by in SAID[sentence].items()}


def _in(text: str, words: str | None) -> bool:
    return words is not None and words in text


def _haystack(inputs: str) -> dict[str, Any]:
    contexts, _, answer = inputs.rpartition('"predicted_answers": ')
    told = _stated(answer)
    scores = [int(_in(contexts, by)) for by in told.values()]
    return {"statements": list(told), "statement_scores": scores}


def _ragas(given: dict[str, Any]) -> list[Any]:
    if "answer" in given:
        return list(_stated(given["answer"]))
    backing = {text: by for told in SAID.values() for text, by in told.items()}
    return [
        {"statement": text, "reason": "", "verdict": int(_in(given["context"], backing[text]))}
        for text in given["statements"]
    ]


def _llama_index(prompt: str) -> str:
    if found := _REFINE.search(prompt):
        information, before, contexts = found.groups()
    else:
        information, contexts = prompt.rpartition("Information: ")[2].split("\nContext: ")
        before = "NO"
    told = _stated(information)
    return "YES" if "YES" in before or (told and all(_in(contexts, by) for by in told.values())) else "NO"


def _judged(label: str, claim: str, documents: str) -> list[str]:
    """What our judge's form has for a claim: its statements if they are several, and the whole.

    One that is not in the list is backed where it stands in a document, word for word.
    """
    lines = [line for line in documents.splitlines() if line.startswith("[") and line[1].isdigit()]
    said, numbers = [], []
    for letter, (text, by) in zip("abcdefgh", (_stated(claim) or {claim: claim}).items(), strict=False):
        found = [line[1:].partition("]")[0] for line in lines if _in(line, by)][:1]
        verdict = "supported" if found else "unsupported"
        said.append((verdict, " ".join([label + letter, *found, verdict]) + f": {text}"))
        numbers += found
    verdicts = {verdict for verdict, _ in said}
    whole = "partial" if len(verdicts) > 1 else next(iter(verdicts), "unsupported")
    apart = [text for _, text in said] if len(said) > 1 else []
    return [*apart, " ".join([label, *dict.fromkeys(numbers), whole])]
