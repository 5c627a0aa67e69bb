"""Sentences about who does what to whom, made by rule: training/grammar/ -> examples.

The same words with the roles exchanged say another thing, and so does a sentence behind "it is a myth that":
word overlap never tells. A claim here has the words of its source either way. ``relations`` are clauses that
mean the same in several ways, ``frames`` put a clause under something that leaves it open, denies it or
confirms it, ``names`` fill both.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from training.examples import DataError, Example, Label
from training.written import LICENCE, WRITTEN

FOLDER: Final = Path(__file__).with_name("grammar")
DATASET: Final = f"{WRITTEN}relations"
_A: Final = "{a}"
_B: Final = "{b}"
_CLAUSE: Final = "{s}"
_OTHERS: Final = (0, 4)  # sentences about others beside the source
_FRAMED: Final = 0.4  # of sources
_ABOUT_FRAME: Final = 0.3  # of claims about a framed source say that it is framed so
_TAILED: Final = 0.4  # of sources that are in their first form
_HELD_OUT: Final = 5  # one relation in so many

Clause = Annotated[str, Field(min_length=5, max_length=300)]


class Relation(BaseModel):
    """Clauses in ``forms`` mean the same. ``reverse`` is what the claim with both names exchanged is;
    ``more`` are ends that the first form may have in a source."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    relation: str
    kinds: tuple[str, str]
    reverse: Literal["contradicted", "unsupported"]
    forms: Annotated[list[Clause], Field(min_length=3)]
    more: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _of_two(self) -> Relation:
        for form in self.forms:
            if form.count(_A) != 1 or form.count(_B) != 1:
                raise ValueError(f"{form!r} must name {_A} and {_B} once each")
        return self

    @property
    def held_out(self) -> bool:
        """Whether no verifier is trained on it."""
        return zlib.crc32(self.relation.encode()) % _HELD_OUT == 0


class Frame(BaseModel):
    """A sentence about a clause ``{s}``. ``label`` is what the clause then is; ``says`` are sentences about
    the clause that this one supports."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    frame: Clause
    label: Literal["supported", "unsupported", "contradicted"]
    says: list[Clause] = Field(default_factory=list)

    @model_validator(mode="after")
    def _of_a_clause(self) -> Frame:
        for text in (self.frame, *self.says):
            if text.count(_CLAUSE) != 1:
                raise ValueError(f"{text!r} must have {_CLAUSE} once")
        return self


class Part(BaseModel):
    """A file: names by their kind, frames, relations, or some of these."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    names: dict[str, Annotated[list[str], Field(min_length=8)]] = Field(default_factory=dict)
    frames: list[Frame] = Field(default_factory=list)
    relations: list[Relation] = Field(default_factory=list)


class Grammar(Part):
    """What the files of a folder hold together."""

    frames: Annotated[list[Frame], Field(min_length=1)]
    relations: Annotated[list[Relation], Field(min_length=2)]

    @model_validator(mode="after")
    def _known(self) -> Grammar:
        for relation in self.relations:
            if unknown := sorted(set(relation.kinds) - self.names.keys()):
                raise ValueError(f"{relation.relation}: {', '.join(unknown)} is none of the names' kinds")
        return self


def read_grammar(folder: Path = FOLDER) -> Grammar:
    """What its YAML files hold together. Raises DataError that names the file, or the folder, and what is
    wrong."""
    parts = [_part(path) for path in sorted(folder.glob("*.yaml"))]
    try:
        return Grammar(
            names={kind: names for part in parts for kind, names in part.names.items()},
            frames=[frame for part in parts for frame in part.frames],
            relations=[relation for part in parts for relation in part.relations],
        )
    except ValidationError as error:
        raise DataError(f"{folder}: {error}") from error


def _part(path: Path) -> Part:
    try:
        return Part.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise DataError(f"{path}: can't be read as YAML ({error})") from error
    except ValidationError as error:
        raise DataError(f"{path}: {error}") from error


def relation_examples(grammar: Grammar, *, count: int, seed: int) -> Iterator[Example]:
    """At most ``count`` examples, two of each passage, one of them supported."""
    random_ = random.Random(seed)
    for _ in range(count // 2):
        yield from _Passage.made(grammar, random_).examples(random_)


@dataclass(frozen=True, slots=True)
class _Passage:
    """``relation`` holds between ``a`` and ``b``, if it is not said within ``frame``; ``other`` is a name of
    b's kind that the passage has elsewhere, or not at all."""

    relation: Relation
    frame: Frame | None
    form: str
    a: str
    b: str
    other: str
    text: str

    @classmethod
    def made(cls, grammar: Grammar, random_: random.Random) -> _Passage:
        relation = random_.choice(grammar.relations)
        first, second = relation.kinds
        a = random_.choice(grammar.names[first])
        b, other = random_.sample([name for name in grammar.names[second] if name != a], 2)
        form = random_.choice(relation.forms)
        clause = _filled(form, a, b)
        frame = random_.choice(grammar.frames) if random_.random() < _FRAMED else None
        if frame is not None:
            said = _sentence(frame.frame, clause)
        else:
            tailed = form == relation.forms[0] and relation.more and random_.random() < _TAILED
            said = _sentence(f"{_CLAUSE} {random_.choice(relation.more)}" if tailed else _CLAUSE, clause)
        sentences = [said, *_about_others(grammar, relation, (a, b, other), random_)]
        random_.shuffle(sentences)
        return cls(relation, frame, form, a, b, other, " ".join(sentences))

    def examples(self, random_: random.Random) -> Iterator[Example]:
        """A supported claim, and one that isn't."""
        frame = self.frame
        right = self._clause(self.a, self.b, random_)
        exchanged = self._clause(self.b, self.a, random_) if self._exchangeable else None
        stranger = self._clause(self.a, self.other, random_)
        if frame is None or frame.label == "supported":
            if exchanged is not None and random_.random() < 0.85:
                wrong, label, kind = exchanged, self.relation.reverse, "swap"
            else:
                wrong, label, kind = stranger, "unsupported", "name"
        elif random_.random() < 0.8:
            wrong, label, kind = right, frame.label, "qualifier"
        else:
            wrong, label, kind = exchanged or stranger, "unsupported", "swap"
        said = _CLAUSE
        if frame is not None and (frame.label != "supported" or random_.random() < _ABOUT_FRAME):
            if not frame.says:
                return
            said = random_.choice(frame.says)
        yield self._example(_sentence(said, right), "supported", None)
        yield self._example(_sentence(_CLAUSE, wrong), label, kind)

    @property
    def _exchangeable(self) -> bool:
        return self.relation.kinds[0] == self.relation.kinds[1]

    def _clause(self, a: str, b: str, random_: random.Random) -> str:
        """In any form, the passage's own too: else a claim that shares all its words would be a wrong one."""
        return _filled(random_.choice(self.relation.forms), a, b)

    def _example(self, claim: str, label: Label, kind: str | None) -> Example:
        return Example(
            DATASET, LICENCE, claim, (self.text,), label, kind,
            () if label == "supported" else None, self.relation.held_out, made="relations",
        )  # fmt: skip


def _about_others(
    grammar: Grammar, relation: Relation, named: Sequence[str], random_: random.Random
) -> Iterator[str]:
    """Sentences that say nothing of both names together, nor anything of the relation."""
    for _ in range(random_.randint(*_OTHERS)):
        other = random_.choice([one for one in grammar.relations if one.relation != relation.relation])
        near = [name for name in named if name in grammar.names[other.kinds[0]]]
        strangers = [name for name in grammar.names[other.kinds[1]] if name not in named]
        first = random_.choice(near) if near and random_.random() < 0.7 else None
        first = first or random_.choice([n for n in grammar.names[other.kinds[0]] if n not in named])
        second = random_.choice([name for name in strangers if name != first])
        yield _sentence(_CLAUSE, _filled(random_.choice(other.forms), first, second))


def _filled(form: str, a: str, b: str) -> str:
    return form.replace(_A, a).replace(_B, b)


def _sentence(frame: str, clause: str) -> str:
    text = frame.replace(_CLAUSE, clause)
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
