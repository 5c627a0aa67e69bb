"""A folder of data in the published forms, and a work folder: animals, their cities and weights."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from training.examples import Example, write_examples

ANIMALS = ("horse", "donkey", "camel", "otter", "badger", "heron", "falcon", "beaver")
CITIES = ("Vienna", "Lisbon", "Oslo", "Turin", "Gdansk", "Porto", "Bergen", "Malmo")
PLACES = ("stable", "barn", "tower", "garden", "cellar", "courtyard")
_PLAIN = "the of weighs kilograms and sleeps in a was not born is old keeper feeds it every day near with"
WORDS = (
    *(word.lower() for word in (*ANIMALS, *CITIES, *PLACES)), *_PLAIN.split(), ".", ",",
    *(str(number) for number in range(100, 1000)),
)  # fmt: skip


def fact(random_: random.Random) -> tuple[str, dict[str, str]]:
    """A sentence, and claims about it by label."""
    animal, city, place = random_.choice(ANIMALS), random_.choice(CITIES), random_.choice(PLACES)
    weight = random_.randint(100, 999)
    other = random_.choice([c for c in CITIES if c != city])
    sentence = f"The {animal} of {city} weighs {weight} kilograms and sleeps in the {place}."
    return sentence, {
        "supported": f"The {animal} of {city} weighs {weight} kilograms.",
        "contradicted": f"The {animal} of {city} weighs {(weight + 377) % 900 + 100} kilograms.",
        "unsupported": f"The keeper of {other} feeds a {animal} every day.",
    }


def document(random_: random.Random, sentences: int) -> str:
    """A text of so many facts."""
    return " ".join(fact(random_)[0] for _ in range(sentences))


def rows(dataset: str, count: int, *, seed: int, sentences: int = 1) -> Iterator[dict[str, Any]]:
    """Rows of a pool, labels in turn; with more sentences the fact stands in a document."""
    random_ = random.Random(seed)
    labels = ("supported", "contradicted", "supported", "unsupported")
    for number in range(count):
        sentence, claims = fact(random_)
        text = sentence
        if sentences > 1:
            text = f"{sentence} {document(random_, sentences - 1)}"
        label = labels[number % len(labels)]
        yield {"dataset": dataset, "contexts": [text], "claim": claims[label], "label": label}


def write_data(folder: Path) -> Path:
    """``pool-train.jsonl.gz``, ``pool-val.jsonl.gz`` and ``expertqa-val.jsonl``."""
    folder.mkdir(parents=True)
    _write(
        folder / "pool-train.jsonl.gz",
        [*rows("conjnli", 400, seed=1), *rows("wice-claim", 120, seed=2, sentences=9)],
    )
    _write(
        folder / "pool-val.jsonl.gz",
        [*rows("fool-me-twice", 40, seed=3), *rows("wice-claim", 16, seed=4, sentences=60)],
    )
    random_ = random.Random(5)
    with (folder / "expertqa-val.jsonl").open("w", encoding="utf-8") as file:
        for _ in range(10):
            sentence, claims = fact(random_)
            labels = [
                {"text": claims["supported"], "support": "Complete"},
                {"text": claims["contradicted"], "support": "Missing"},
            ]
            answer = {
                "question": "How heavy?",
                "contexts": [{"text": sentence}],
                "metadata": {"labels": labels},
            }
            file.write(json.dumps(answer) + "\n")
    return folder


def write_work(folder: Path) -> Path:
    """``prepared.jsonl.gz`` and ``synthetic.jsonl.gz``: half of the rows are held out."""
    for name, dataset, seed in (("prepared", "conjnli", 6), ("synthetic", "synthetic-number", 7)):
        write_examples(
            folder / f"{name}.jsonl.gz",
            (
                Example(
                    dataset,
                    "MIT",
                    row["claim"],
                    tuple(row["contexts"]),
                    row["label"],
                    held_out=number % 2 == 0,
                )
                for number, row in enumerate(_paired(dataset, seed))
            ),
        )
    return folder


def _paired(dataset: str, seed: int) -> Iterator[dict[str, Any]]:
    """Each row twice, so that both sides of the split have all labels."""
    for one, other in zip(rows(dataset, 240, seed=seed), rows(dataset, 240, seed=seed + 50), strict=True):
        yield from (one, other)


def _write(path: Path, found: list[dict[str, Any]]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in found)
