"""How answers are cut into statements, beside the statements that a reader names, and how these are judged.

    python -m benchmarks.statements [FILE]

FILE has answers as benchmarks/statements.yaml has them: question, contexts, answer, kind, and the statements
with whether the contexts support each. An answer is cut right if there are as many of ours, and each can be
paired with another one of the reader's that it shares seven of ten content words with (Dice). The local judge
judges; scores are compared over all answers, verdicts over the statements of those that are cut right. The
hundred sentences of benchmarks/statements_unseen.yaml, which nobody judges, are cut beside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks.frame import command_line, markdown
from guardrail.evals import aevaluate
from guardrail.evals.scores import ScoredStatement, statements
from guardrail.evidence.tokens import STOP_WORDS, terms_of
from guardrail.judges import Verdict
from guardrail.judges.clauses import statements_in

FILE: Final = Path(__file__).with_suffix(".yaml")
UNSEEN: Final = FILE.with_stem("statements_unseen")
LEAST_SHARED: Final = 0.7


def content(text: str) -> frozenset[int]:
    """The words of a statement that say something, in their common form."""
    return terms_of(" ".join(word for word in text.split() if word.lower().strip(".,") not in STOP_WORDS))


def shared(one: str, other: str) -> float:
    """Which part of the content words of two statements both have, from 0 to 1 (Dice)."""
    ours, theirs = content(one), content(other)
    return 2 * len(ours & theirs) / max(1, len(ours) + len(theirs))


def pairing(ours: Sequence[str], theirs: Sequence[str]) -> tuple[int, ...] | None:
    """The place of each of our statements among the reader's; None if they can't be paired one to one."""
    if len(ours) != len(theirs):
        return None
    alike = [[shared(one, other) >= LEAST_SHARED for other in theirs] for one in ours]
    places = permutations(range(len(theirs)))
    return next((each for each in places if all(row[n] for row, n in zip(alike, each, strict=True))), None)


def cut(sentences: Mapping[str, Sequence[str]]) -> dict[str, list[bool]]:
    """Whether each sentence of a kind is cut right. Misses are printed."""
    found: dict[str, list[bool]] = {}
    for kind, each in sentences.items():
        for sentence, *theirs in (one.split(" | ") for one in each):
            ours = statements_in(sentence)
            found.setdefault(kind, []).append(pairing(ours, theirs or [sentence]) is not None)
            if not found[kind][-1]:
                tell(kind, sentence, ours, theirs or [sentence])
    return found


def tell(kind: str, answer: str, ours: Sequence[str], theirs: Sequence[str]) -> None:
    """Print a miss."""
    print(f"{kind}: {answer}")
    print(*(f"  ours:   {each}" for each in ours), sep="\n")
    print(*(f"  reader: {each}" for each in theirs), sep="\n")


def kinds_table(kinds: Mapping[str, Sequence[bool]]) -> str:
    """How many of each kind are cut right."""
    whole = [each for kind in kinds.values() for each in kind]
    rows = [(kind, f"{sum(each)} of {len(each)}") for kind, each in sorted(kinds.items())]
    return markdown(("kind", "cut right"), [*rows, ("all", f"{sum(whole)} of {len(whole)} ({share(whole)})")])


async def judged(answers: Sequence[Mapping[str, Any]]) -> list[list[ScoredStatement]]:
    """The statements of each answer with their verdicts, by the local judge."""
    rows = [{name: each.get(name, "") for name in ("question", "answer")} for each in answers]
    rows = [{**row, "contexts": each.get("contexts", [])} for row, each in zip(rows, answers, strict=True)]
    run = await aevaluate(rows, scores=("strict",), raise_on_failure=True)
    return [statements(result.verdict) for result in run.results if result.verdict is not None]


def main() -> None:
    """Print the misses and the tables."""
    parser = command_line(__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=FILE)
    answers = yaml.safe_load(parser.parse_args().file.read_text(encoding="utf-8"))
    found = asyncio.run(judged(answers))
    kinds: dict[str, list[bool]] = {}
    agreed: list[bool] = []
    scores: list[bool] = []
    for answer, ours in zip(answers, found, strict=True):
        theirs = answer["statements"]
        places = pairing([each.text for each in ours], [each["text"] for each in theirs])
        kinds.setdefault(answer["kind"], []).append(places is not None)
        right = [each.verdict is Verdict.SUPPORTED for each in ours]
        backed = [each["supported"] for each in theirs]
        agreed += [one == backed[n] for one, n in zip(right, places or (), strict=bool(places))]
        scores.append(sum(right) * len(backed) == sum(backed) * len(right))
        if places is None:
            names = [each["text"] for each in theirs]
            tell(answer["kind"], answer["answer"], [each.text for each in ours], names)
    unseen = cut(yaml.safe_load(UNSEEN.read_text(encoding="utf-8")))
    print(kinds_table(kinds), "\nUnseen:\n", kinds_table(unseen), sep="\n")
    print(f"statements with the reader's verdict: {sum(agreed)} of {len(agreed)} ({share(agreed)})")
    print(f"answers with the reader's score: {sum(scores)} of {len(scores)} ({share(scores)})")


def share(found: Sequence[bool]) -> str:
    """As a percentage."""
    return f"{sum(found) / len(found):.0%}" if found else "–"


if __name__ == "__main__":
    main()
