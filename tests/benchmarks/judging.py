"""Labelled answers and claims for the benchmark of judges."""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

from benchmarks.judges import LFQA, PARTS
from benchmarks.labelled_sets import EXPERTQA, POOL

CONTEXT = "The Pro plan costs $49 per month. Support answers within a day."
PLAN, SUPPORT = "Customers pay for the Pro plan monthly.", "Requests are answered by e-mail."


def answer(name: str, *labels: str) -> dict[str, Any]:
    return {
        "type": "response",
        "response_id": name,
        "question": f"What does {name} offer?",
        "contexts": [{"id": "c1", "text": CONTEXT}],
        "answer": f"{PLAN} {SUPPORT}",
        "metadata": {
            "labels": [
                {"span": span, "label": each} for span, each in zip(([0, 39], [40, 72]), labels, strict=True)
            ]
        },
    }


def run_options(folder: Path, **changes: Any) -> argparse.Namespace:
    """Those of a run over one answer of each kind and two claims, which are written into ``folder``."""
    given = [answer("good", "supported", "supported"), answer("bad", "supported", "not_supported")]
    (folder / LFQA).write_bytes(gzip.compress(b"\n".join(json.dumps(each).encode() for each in given)))
    (folder / EXPERTQA).write_text("")
    rows = [
        {"dataset": "d", "contexts": [CONTEXT], "claim": claim, "label": label}
        for claim, label in ((PLAN, "supported"), (f"{SUPPORT} contradicted", "contradicted"))
    ]
    (folder / POOL).write_bytes(gzip.compress(b"\n".join(json.dumps(each).encode() for each in rows)))
    values: dict[str, Any] = {"data": folder, "out": folder / "run.jsonl", "model": "small", "part": PARTS}
    values |= {"answers": 1, "claims": 2, "most_chars": 1000, "limit_s": 60.0, "at_once": 2, "seed": 1}
    return argparse.Namespace(**values | changes)
