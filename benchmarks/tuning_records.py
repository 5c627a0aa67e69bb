"""Saved verdicts on real answers as results with labels, as ``guardrail tune`` reads them.

    python -m benchmarks.real_answers DATA/lfqa-val.jsonl.gz DATA/expertqa-val.jsonl --save VERDICTS.jsonl
    python -m benchmarks.tuning_records VERDICTS.jsonl --out RESULTS.jsonl [--set lfqa|expertqa]

The label of a claim is what people said of the sentence that holds most of it, as ``--save`` kept it. Texts
are left out, so that the file holds numbers alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.frame import command_line
from guardrail.evals.results import EvaluationResult
from guardrail.events import Label, LabelSource, ResponseVerdict, Verdict

VERDICTS: Final[Mapping[str, Verdict]] = {
    "supported": Verdict.SUPPORTED,
    "Complete": Verdict.SUPPORTED,
    "partially_supported": Verdict.PARTIALLY_SUPPORTED,
    "Partial": Verdict.PARTIALLY_SUPPORTED,
    "not_supported": Verdict.UNSUPPORTED,
    "Incomplete": Verdict.UNSUPPORTED,
    "Missing": Verdict.UNSUPPORTED,
}
"""What both sets say of a sentence, in our words."""


def results(path: Path, only: str | None) -> Iterator[EvaluationResult]:
    """The saved verdicts of the sets whose ids begin with ``only``, without texts."""
    for line in path.read_bytes().splitlines():
        row: dict[str, Any] = json.loads(line)
        verdict = ResponseVerdict.model_validate(row["verdict"])
        if only is not None and not verdict.response_id.startswith(only):
            continue
        labels = tuple(
            Label(
                response_id=verdict.response_id,
                claim_id=claim.claim_id,
                verdict=VERDICTS[label],
                source=LabelSource.DATASET,
            )
            for claim, label in zip(verdict.claims, row["labels"], strict=True)
            if label is not None
        )
        bare = {"text": "", "evidence": (), "reasoning": "", "citations": (), "parts": ()}
        claims = tuple(claim.model_copy(update=bare) for claim in verdict.claims)
        update = {"claims": claims, "hallucinated_claims": (), "summary": ""}
        yield EvaluationResult(verdict=verdict.model_copy(update=update), labels=labels)


def main() -> None:
    """Command line."""
    parser = command_line(__doc__)
    parser.add_argument("verdicts", type=Path, help="what benchmarks.real_answers --save kept")
    parser.add_argument("--out", type=Path, required=True, help="one evaluation.result a line")
    parser.add_argument("--set", dest="only", help="only answers whose id begins so")
    options = parser.parse_args()
    with options.out.open("wb") as out:
        for result in results(options.verdicts, options.only):
            out.write(result.to_json() + b"\n")


if __name__ == "__main__":
    main()
