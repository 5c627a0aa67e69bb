"""Answers as chat models write them: right ones, each with a twin that is wrong in one fact.

``development/*.yaml`` (about a quarter) is for those who mend the judge to look at; ``measured/*.yaml`` is
not to be read while mending, only measured with, by ``python -m benchmarks.chat_answers``.
``reckoning/*.yaml`` are derived statements: sums, shares, durations, comparisons. Everything was
written by a language model for this repository; it had read the README and the Python API, but neither the
judge's rules nor their tests, and had seen figures by kind, never what was made of a single answer.

A file is a list of sets. A set has ``id``, ``domain``, ``question``, ``contexts`` (fields of
``guardrail.Context``) and ``answers``. An answer has

- ``kind``: what is special about its formatting or wording, of ``Kind``;
- ``question``, where it answers another one than that of the set;
- ``right``: the text, wholly supported by the contexts, courtesies aside;
- ``wrong``: the twin; either its whole text, or a mapping from a passage that stands once in ``right`` to
  what stands there instead;
- ``wrong_kind``: which kind of fact is wrong in the twin, of ``WrongKind``;
- ``severity_hint``: what that error would cost a reader, by the judgement of the author.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from guardrail.events import Context

Part = Literal["development", "measured", "reckoning"]
Kind = Literal[
    "approximation",
    "arithmetic",
    "bold",
    "both_and",
    "bracket_citation",
    "bullets",
    "code",
    "coordinated",
    "courtesy",
    "date_notation",
    "emoji",
    "european_format",
    "footnote",
    "heading",
    "html",
    "id_citation",
    "inline_list",
    "link",
    "math",
    "named_attribution",
    "nested_list",
    "not_mentioned",
    "numbered_attribution",
    "numbered_list",
    "only",
    "openai_citation",
    "paraphrase",
    "plain",
    "price_notation",
    "pronouns",
    "quotation",
    "range",
    "rhetorical_question",
    "short",
    "source_note",
    "table",
    "time_notation",
    "typography",
    "units",
    "voice",
]
WrongKind = Literal[
    "addition",
    "arithmetic",
    "cause",
    "comparison",
    "condition",
    "date",
    "day",
    "dose",
    "duration",
    "exchange",
    "invention",
    "limit",
    "link",
    "mention",
    "name",
    "negation",
    "number",
    "place",
    "price",
    "scope",
    "sequence",
    "time",
    "unit",
]
Severity = Literal["critical", "major", "minor"]
Text = Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]

FOLDER: Final = Path(__file__).parent


class Document(Context):
    """A context as the corpus gives it: no field but those of a context."""

    model_config = ConfigDict(extra="forbid")
    text: Text


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Answer(_Strict):
    """A right answer and its wrong twin, which ``wrong`` holds whole once this is read."""

    kind: Kind
    question: Text | None = None
    right: Text
    wrong: Text
    wrong_kind: WrongKind
    severity_hint: Severity

    @model_validator(mode="before")
    @classmethod
    def _with_edits_made(cls, value: object) -> object:
        if isinstance(value, dict) and isinstance(edits := value.get("wrong"), dict):
            return {**value, "wrong": _edited(str(value.get("right", "")), edits)}
        return value

    @model_validator(mode="after")
    def _twins_differ(self) -> Answer:
        if " ".join(self.right.split()) == " ".join(self.wrong.split()):
            raise ValueError("wrong: says the same as right; change a fact")
        return self


class AnswerSet(_Strict):
    """Contexts, and answers written from them."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    domain: Text
    question: Text
    contexts: Annotated[tuple[Document, ...], Field(min_length=1)]
    answers: Annotated[tuple[Answer, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _context_ids_unique(self) -> AnswerSet:
        if len({context.id for context in self.contexts}) < len(self.contexts):
            raise ValueError("contexts: two have the same id")
        return self


class ChatCase(NamedTuple):
    """One pair of answers with all that is needed to judge it."""

    id: str
    question: str
    contexts: tuple[Document, ...]
    answer: Answer


def load(part: Part) -> tuple[ChatCase, ...]:
    """The pairs of one part, in the order of files and sets; ids are those of the sets and a number.

    Raises ValueError (pydantic's names the field, a note the file) and yaml.YAMLError.
    """
    sets = [one for path in sorted((FOLDER / part).glob("*.yaml")) for one in _sets(path)]
    twice = [name for name, count in Counter(one.id for one in sets).items() if count > 1]
    if twice:
        raise ValueError(f"{part}: more than one set has the id {', '.join(twice)}")
    return tuple(
        ChatCase(f"{one.id}-{number}", answer.question or one.question, one.contexts, answer)
        for one in sets
        for number, answer in enumerate(one.answers, start=1)
    )


class _File(_Strict):
    sets: tuple[AnswerSet, ...]


def _sets(path: Path) -> tuple[AnswerSet, ...]:
    try:
        return _File.model_validate({"sets": yaml.safe_load(path.read_bytes())}).sets
    except (ValueError, yaml.YAMLError) as error:
        error.add_note(f"in {path.relative_to(FOLDER)}")
        raise


def _edited(right: str, edits: dict[object, object]) -> str:
    """``right`` with every passage replaced. Raises ValueError unless each stands exactly once in it."""
    text = right
    for old, new in edits.items():
        if text.count(str(old)) != 1:
            raise ValueError(f"wrong: {old!r} stands {text.count(str(old))} times in right; once is needed")
        text = text.replace(str(old), str(new))
    return text
