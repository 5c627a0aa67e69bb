"""One peer of ``benchmarks.peers``, run by the Python of the peers' environment: answers in, verdicts out.

    PYTHON -m benchmarks.peers_worker haystack --base-url http://127.0.0.1:8080/haystack/v1

Reads a JSON object a line (``id``, ``question``, ``contexts``, ``answer``) and writes one a line for each as
soon as it is judged: ``id``, ``score`` or ``error``, ``at`` (seconds on the monotonic clock that all
processes share) and ``processor_s`` (what this process has used so far). Answers are judged side by side,
each by a call of its own of what the framework's documentation shows for one answer, on its asynchronous
interface. Needs no guardrail.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import warnings
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import Any, Final, TextIO

from benchmarks.frame import command_line

Evaluate = Callable[[Mapping[str, Any]], Awaitable[float]]
"""From an answer to its score in 0..1."""

MODEL: Final = "gpt-4.1-mini"
_KEY: Final = "not-needed"
_TIMEOUT_S: Final = 600.0
"""Of a call: Haystack would begin anew after 30 s, and a small machine takes longer to read a prompt."""
_MOST_AT_ONCE: Final = 1_000


def haystack(base_url: str) -> Evaluate:
    """``FaithfulnessEvaluator.run_async``; one call with one answer, since it takes several one by one."""
    generators = import_module("haystack.components.generators.chat")
    evaluators = import_module("haystack.components.evaluators")
    secret = import_module("haystack.utils").Secret.from_token(_KEY)
    generator = generators.OpenAIChatGenerator(
        api_key=secret,
        model=MODEL,
        api_base_url=base_url,
        timeout=_TIMEOUT_S,
        generation_kwargs={"response_format": {"type": "json_object"}, "seed": 42},  # its own default
    )
    evaluator = evaluators.FaithfulnessEvaluator(chat_generator=generator, progress_bar=False)

    async def evaluate(item: Mapping[str, Any]) -> float:
        result = await evaluator.run_async(
            questions=[item["question"]],
            contexts=[list(item["contexts"])],
            predicted_answers=[item["answer"]],
        )
        return float(result["score"])

    return evaluate


def llama_index(base_url: str) -> Evaluate:
    """``FaithfulnessEvaluator.aevaluate``: one yes or no for the whole answer."""
    llm = import_module("llama_index.llms.openai").OpenAI(
        model=MODEL, api_base=base_url, api_key=_KEY, temperature=0.0, timeout=_TIMEOUT_S
    )
    evaluator = import_module("llama_index.core.evaluation").FaithfulnessEvaluator(llm=llm)

    async def evaluate(item: Mapping[str, Any]) -> float:
        result = await evaluator.aevaluate(
            query=item["question"], response=item["answer"], contexts=list(item["contexts"])
        )
        return float(result.score)

    return evaluate


def ragas(base_url: str) -> Evaluate:
    """``Faithfulness.ascore`` of the collections API: statements, then verdicts on them."""
    client = import_module("openai").AsyncOpenAI(base_url=base_url, api_key=_KEY)
    # Its default of 1,024 tokens is short of the verdicts on a longer answer.
    llm = import_module("ragas.llms").llm_factory(MODEL, client=client, max_tokens=4096)
    metric = import_module("ragas.metrics.collections").Faithfulness(llm=llm)

    async def evaluate(item: Mapping[str, Any]) -> float:
        result = await metric.ascore(
            user_input=item["question"], response=item["answer"], retrieved_contexts=list(item["contexts"])
        )
        return float(result.value)

    return evaluate


PEERS: Final[dict[str, Callable[[str], Evaluate]]] = {
    "haystack": haystack,
    "llama_index": llama_index,
    "ragas": ragas,
}


async def serve(evaluate: Evaluate, source: TextIO, sink: TextIO) -> None:
    """Judge what comes until ``source`` ends, and wait for what is under way."""
    slots = asyncio.Semaphore(_MOST_AT_ONCE)

    async def one(item: Mapping[str, Any]) -> None:
        try:
            told: dict[str, Any] = {"score": await evaluate(item)}
        except Exception as error:  # noqa: BLE001 - whatever a peer raises is a result of the measurement
            told = {"error": f"{type(error).__name__}: {error}"[:500]}
        finally:
            slots.release()
        print(
            json.dumps(
                {"id": item["id"], **told, "at": time.monotonic(), "processor_s": time.process_time()}
            ),
            file=sink,
            flush=True,
        )

    async with asyncio.TaskGroup() as group:
        while line := await asyncio.to_thread(source.readline):
            await slots.acquire()
            group.create_task(one(json.loads(line)))


def main() -> None:
    """Command line."""
    parser = command_line(__doc__)
    parser.add_argument("peer", choices=sorted(PEERS))
    parser.add_argument("--base-url", required=True, help="root of the API, with its /v1")
    args = parser.parse_args()
    # None of the frameworks is to report to its makers from a benchmark.
    os.environ |= {
        "HAYSTACK_TELEMETRY_ENABLED": "False",
        "RAGAS_DO_NOT_TRACK": "true",
        "ANONYMIZED_TELEMETRY": "False",
    }
    warnings.simplefilter("ignore")
    sink, sys.stdout = sys.stdout, sys.stderr  # whatever they print is not a line of ours
    evaluate = PEERS[args.peer](args.base_url)
    print(json.dumps({"ready": args.peer}), file=sink, flush=True)
    asyncio.run(serve(evaluate, sys.stdin, sink))


if __name__ == "__main__":
    main()
