"""Short answers about exact values: of tables, of similar things told in prose, what is calculated, formulas;
``places``: what stands in the wrong place (who did what to whom, when, why, before what); and ``support``:
what a company's assistant says of its help pages, in one to five sentences of its own.

Each set has ``development.jsonl``, for those who mend the judge to look at, and ``measured.jsonl``, which is
not to be read while mending, only measured with, by ``python -m benchmarks.chat_answers --set``. All
were written by language models for this repository, in sight of their own documents and not of its code,
tests and documentation.

A line is either documents (``documents`` is their name, ``form`` how they are written, ``contexts``) or an
answer to them (``id``, ``of`` the name of its documents, ``kind`` what is right or wrong about it,
``label``: right, wrong, or conflict where the documents contradict each other, ``question``, ``answer``,
and in a ``note`` what is true).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from guardrail.events import Context

Set = Literal["tables", "things", "places", "reckoning", "formulas", "support"]
Part = Literal["development", "measured"]
FOLDER: Final = Path(__file__).parent


class ExactCase(NamedTuple):
    """An answer with its documents; ``label`` is right, wrong or conflict."""

    id: str
    form: str
    kind: str
    label: str
    question: str
    contexts: tuple[Context, ...]
    answer: str
    note: str


def load_exact(name: Set, part: Part) -> list[ExactCase]:
    """The cases of a set, in the order of the file."""
    text = (FOLDER / name / f"{part}.jsonl").read_text(encoding="utf-8")
    documents: dict[str, tuple[str, tuple[Context, ...]]] = {}
    cases: list[ExactCase] = []
    for line in text.splitlines():
        row: dict[str, Any] = json.loads(line)
        if "documents" in row:
            contexts = tuple(Context.model_validate(context) for context in row["contexts"])
            documents[row["documents"]] = row["form"], contexts
            continue
        form, contexts = documents[row["of"]]
        told = (row["kind"], row["label"], row["question"], contexts, row["answer"], row.get("note", ""))
        cases.append(ExactCase(row["id"], form, *told))
    return cases
