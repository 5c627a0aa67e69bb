"""The demo's answers and configuration, which are files of the package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

import yaml
from pydantic import BaseModel

from guardrail.config import Settings
from guardrail.errors import InputError
from guardrail.events import Decision, Response


@dataclass(frozen=True, slots=True)
class Example:
    """An answer, and what a guard should make of it.

    ``bad_claim`` is the text of the one wrong detail, None in a faithful answer. ``kind`` is the sort of
    product the answer could come from (medication, pricing, …).
    """

    response: Response
    kind: str
    decision: Decision
    bad_claim: str | None


class _Expected(BaseModel):
    decision: Decision
    bad_claim: str | None


class _Metadata(BaseModel):
    kind: str
    expected: _Expected


def load_examples(kind: str | None = None) -> tuple[Example, ...]:
    """All examples, or those of one kind, in the order of the file.

    Raises InputError, whose message names the kinds there are, when none is of this kind.
    """
    lines = (files(__package__) / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    examples = tuple(_example(line) for line in lines)
    chosen = tuple(example for example in examples if kind in {None, example.kind})
    if not chosen:
        known = ", ".join(kinds(examples))
        raise InputError("unknown_kind", f"no answer is of the kind {kind!r}; choose from: {known}")
    return chosen


def kinds(examples: Sequence[Example]) -> tuple[str, ...]:
    """The kinds of the examples, each once, in their order."""
    return tuple(dict.fromkeys(example.kind for example in examples))


def load_demo_settings() -> Settings:
    """The demo's configuration. The environment of the host has no say in it."""
    text = (files(__package__) / "guardrail.yaml").read_text(encoding="utf-8")
    return Settings.model_validate(yaml.safe_load(text))


def _example(line: str) -> Example:
    response = Response.model_validate_json(line)
    metadata = _Metadata.model_validate(response.metadata)
    # What the example expects is for its readers; the guard is not to see it, nor are its reviewers.
    bare = response.model_copy(update={"metadata": {"kind": metadata.kind}})
    return Example(bare, metadata.kind, metadata.expected.decision, metadata.expected.bad_claim)
