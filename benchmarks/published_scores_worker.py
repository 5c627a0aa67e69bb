"""Asks Haystack, Ragas and LlamaIndex for their scores, in the peers' environment; writes JSON to stdout.

Their own code reckons, and no model is asked: LlamaIndex's is its own ``MockLLM``, which repeats the prompt,
with its "YES", or says "text".
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
from importlib import import_module
from typing import Any


def haystack(binary: list[int]) -> float:
    kind: Any = import_module("haystack.components.evaluators").FaithfulnessEvaluator
    evaluator = kind.__new__(kind)  # its constructor wants a model's key
    statements = [f"statement {number}" for number in range(len(binary))]
    result = {"results": [{"statements": statements, "statement_scores": binary}]}
    return float(evaluator._postprocess_results(result)["results"][0]["score"])


def ragas(binary: list[int]) -> float | None:
    kind: Any = import_module("ragas.metrics.collections").Faithfulness
    replies: Any = import_module("ragas.metrics.collections.faithfulness.util")
    said = [replies.StatementFaithfulnessAnswer(statement="", reason="", verdict=each) for each in binary]
    score = float(kind.__new__(kind)._compute_score(replies.NLIStatementOutput(statements=said)))
    return None if math.isnan(score) else score


async def llama_index(*, passing: bool) -> tuple[bool, float]:
    kind: Any = import_module("llama_index.core.evaluation").FaithfulnessEvaluator
    model: Any = import_module("llama_index.core.llms").MockLLM
    evaluator = kind(llm=model() if passing else model(max_tokens=1))
    result = await evaluator.aevaluate(query="q", response="r", contexts=["c"])
    return result.passing, result.score


def main() -> None:
    totals = range(int(sys.argv[1]) + 1)
    lists = [[1] * ones + [0] * (total - ones) for total in totals for ones in range(total + 1)]
    found = {
        "haystack": [[sum(each), len(each), haystack(each)] for each in lists],
        "ragas": [[sum(each), len(each), ragas(each)] for each in lists],
        "llama_index": [asyncio.run(llama_index(passing=each)) for each in (True, False)],
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
