"""Loads the cases of this folder: passages, claims about them, and the verdict each deserves.

All are invented for this project. A file holds one domain, or cases of one sort: ``taken_back`` (texts that
report something and take it back), ``pairs`` and ``details`` (claims and their like with one detail changed),
``values_of_several_things``, ``lookalikes`` (right claims that look wrong, and the reverse). A source has up
to three passages with the claims on them. Nothing may be fitted on them, and a case is never changed because
a judge gets it wrong.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, NamedTuple, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from guardrail.events import Severity

SUPPORTED_KINDS: Final = frozenset(
    {"paraphrase", "verbatim", "combination", "coreference", "chat", "reported", "own-value"}
)
"""Kinds of claims that are right: in other words, word for word, from two sentences, with a name for a
pronoun, as an assistant would put it in a chat, a hearsay or a myth told as such, one of several values of a
sentence. All other kinds name what is wrong."""

Kind = Literal[
    "paraphrase", "verbatim", "combination", "coreference", "chat", "reported", "own-value",
    "number", "date", "name", "unit", "negation", "swap", "addition", "short-addition", "qualifier",
    "overgeneralisation", "quoted-falsehood", "merged", "other-value",
]  # fmt: skip
"""Of those that are wrong, ``short-addition`` is a sentence of the source with one to four words more (others
at most reworded); ``quoted-falsehood`` takes for a fact what the source quotes, doubts or denies, or for a
myth what it states; ``merged`` joins sentences, and one detail is wrong or one half from nowhere;
``other-value`` gives a thing the value of another one beside it."""

Label = Literal["supported", "partially_supported", "unsupported", "contradicted"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class Case(_Strict):
    """A claim. ``severity`` is what it would cost if it were wrong: by ``guardrail.claims.severity`` (a
    quantity is critical, a name or a bare number major), or more where a person sees health, law or money at
    stake."""

    claim: str = Field(min_length=10)
    label: Label
    kind: Kind
    severity: Severity

    @model_validator(mode="after")
    def _kind_fits_label(self) -> Self:
        if (self.label == "supported") != (self.kind in SUPPORTED_KINDS):
            raise ValueError(f"kind {self.kind!r} does not go with label {self.label!r}: {self.claim!r}")
        return self


class Source(_Strict):
    """One to three passages, and the claims on them."""

    contexts: tuple[str, ...] = Field(min_length=1, max_length=3)
    cases: tuple[Case, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _passages_are_passages(self) -> Self:
        for text in self.contexts:
            if not 3 <= len(text.split()) <= 150:
                raise ValueError(f"a passage has 3 to 150 words, not {len(text.split())}: {text[:60]!r}")
        return self


class CaseFile(_Strict):
    """A file of the folder."""

    domain: str
    sources: tuple[Source, ...]


class Located(NamedTuple):
    """A case with its passages and its domain."""

    domain: str
    contexts: tuple[str, ...]
    case: Case


def load(folder: Path = Path(__file__).parent) -> list[Located]:
    """All cases of the folder's ``*.yaml``, in order. Raises pydantic.ValidationError."""
    found = []
    for path in sorted(folder.glob("*.yaml")):
        file = CaseFile.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
        found += [Located(file.domain, s.contexts, case) for s in file.sources for case in s.cases]
    return found
