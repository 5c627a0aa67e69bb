"""Real answers of real models, with what people said of their sentences, through judge and policy.

    python -m benchmarks.real_answers DATA/lfqa-val.jsonl.gz DATA/expertqa-val.jsonl [--config FILE]
        [--save RESULTS.jsonl] [--json OUT.json] [--limit N]
    python -m benchmarks.real_answers FILE... --decide-only RESULTS.jsonl --config OTHER.yaml
    python -m benchmarks.real_answers FILE... --streamed [--at-once 20] [--tokens-per-second 100]

Each file has one ``response`` event a line, with labels in ``metadata.labels``
(``benchmarks.labelled_answers``). Answers are judged whole, one after the other, without limits of time, and
then decided by the policy as it is live. Reported with 95 % intervals: what becomes of the answers whose
sentences are all supported, and of those less than half supported; how well score and support tell these
apart; how the verdicts on claims agree with the labels of the sentences they stand in; and what a claim
costs. ``--save`` keeps results with labels, as ``guardrail tune`` reads them; ``--decide-only`` decides by
another policy what it has kept, in seconds.

``--streamed`` streams the answers through the whole guard instead, in process, each at the pace of a
generator. It tells how many claims the judge read less for than it would have (``degraded_from``), or had no
verdict on in time: more than one in a hundred are too many answers at once.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import uvloop

from benchmarks.answer_figures import Case, figures, printed
from benchmarks.frame import command_line, p50_p99, took
from benchmarks.labelled_answers import LabelledAnswer, read_answers
from benchmarks.streams import Seen, streamed
from guardrail.config import LoggingSettings, Settings, load_settings
from guardrail.errors import GuardrailError
from guardrail.evals import statistics
from guardrail.evals.evaluation import checker, judging_everything
from guardrail.evals.results import EvaluationResult
from guardrail.events import Label, LabelSource, Response, ResponseVerdict
from guardrail.judges import Judge, Verdict
from guardrail.judges.factory import build_judge
from guardrail.logs import configure_logging
from guardrail.routing import PolicyRouter

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
Verdicts = Mapping[str, ResponseVerdict]
"""On all claims of each answer, by response id."""


async def judged(answers: Sequence[LabelledAnswer], judge: Judge, settings: Settings) -> Verdicts:
    """Every answer judged to its end, one after the other."""
    whole = {name: judging_everything(policy) for name, policy in settings.policies.items()}
    check = checker(judge, PolicyRouter(whole, settings.routes, settings.default_policy), settings.limits)
    found = {}
    for number, answer in enumerate(answers, 1):
        found[answer.response.response_id] = await check(answer.response)
        if number % 50 == 0:
            print(f"  {number} of {len(answers)} answers judged", flush=True)
    return found


def decided(answers: Iterable[LabelledAnswer], known: Verdicts, settings: Settings) -> list[Case]:
    """The answers under the policies of ``settings``, from verdicts that are known."""
    router = settings.router()
    found = []
    for answer in answers:
        verdict = known[answer.response.response_id]
        model = verdict.generator_model
        policy = router.choose(verdict.route, verdict.tenant, model, response_id=verdict.response_id)
        found.append(Case.of(answer, verdict, policy))
    return found


async def _judged_now(name: str, answers: Sequence[LabelledAnswer], settings: Settings) -> Verdicts:
    judge, found = build_judge(settings.judge), dict[str, ResponseVerdict]()

    async def run() -> None:
        found.update(await judged(answers, judge, settings))

    try:
        await judged(answers[:2], judge, settings)  # what is loaded lazily
        seconds, busy = await took(run())
    finally:
        await judge.aclose()
    claims = [claim for verdict in found.values() for claim in verdict.claims]
    print(
        f"{name}: {len(claims)} claims, {1000 * seconds / len(claims):.1f} ms a claim, "
        f"{1000 * busy / len(claims):.1f} ms of processor time; "
        f"{sum(claim.verdict is Verdict.UNVERIFIED for claim in claims)} UNVERIFIED, "
        f"{sum(bool(claim.degraded_from) for claim in claims)} degraded",
        flush=True,
    )
    return found


def _results(answers: Iterable[LabelledAnswer], known: Verdicts) -> Iterator[EvaluationResult]:
    for answer in answers:
        verdict = known[answer.response.response_id]
        told = ((claim.claim_id, answer.label_of(claim.span)) for claim in verdict.claims)
        labels = tuple(
            Label(
                response_id=verdict.response_id,
                claim_id=claim_id,
                verdict=VERDICTS[label],
                source=LabelSource.DATASET,
            )
            for claim_id, label in told
            if label is not None
        )
        yield EvaluationResult(verdict=verdict, labels=labels)


def _saved(path: Path) -> Verdicts:
    """What ``--save`` kept. Raises OSError, or ValueError where it is something else."""
    results = [EvaluationResult.model_validate_json(line) for line in path.read_bytes().splitlines()]
    return {each.verdict.response_id: each.verdict for each in results if each.verdict is not None}


# ------------------------------------------------------------------------------------------------ streaming


async def stream(responses: Sequence[Response], settings: Settings, at_once: int, rate: float) -> None:
    """Through a guard in process; decisions, verdicts and latencies are printed."""
    judge, seen = build_judge(settings.judge), dict[str, Seen]()

    async def run() -> None:
        seen.update(
            await streamed(responses, judge, settings.router(), at_once=at_once, tokens_per_second=rate)
        )

    try:
        seconds, busy = await took(run())
    finally:
        await judge.aclose()
    verdicts = [each.verdict for each in seen.values() if each.verdict is not None]
    claims = [claim for verdict in verdicts for claim in verdict.claims]
    less = sum(bool(claim.degraded_from) or claim.verdict is Verdict.UNVERIFIED for claim in claims)
    print(f"{len(verdicts)} answers, {len(claims)} claims judged, {len(claims) / seconds:.1f} a second")
    print(
        f"  judged by less than the full judge, or not: {less}; {100 * busy / seconds:.0f} % of a processor"
    )
    print("  decisions", dict(Counter(verdict.decision.value for verdict in verdicts).most_common()))
    print("  verdicts ", dict(Counter(claim.verdict.value for claim in claims).most_common()))
    print("  claim to verdict, ms", p50_p99([claim.latency_ms / 1000 for claim in claims]))
    delays = [delay for each in seen.values() for delay in each.delays_s]
    print("  last token of a segment sent to its delivery read, ms", p50_p99(delays))


def _options() -> argparse.Namespace:
    parser = command_line(__doc__)
    parser.add_argument("files", type=Path, nargs="+", help="response events with labels, one a line")
    parser.add_argument("--config", type=Path, help="configuration of judge and policies; default: none")
    parser.add_argument("--limit", type=int, help="most answers of each file (sampled)")
    parser.add_argument("--save", type=Path, help="keep results, one a line, in this file")
    parser.add_argument(
        "--decide-only", type=Path, metavar="RESULTS", help="what --save has kept: no judging"
    )
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--streamed", action="store_true", help="stream at a generator's pace instead")
    parser.add_argument("--at-once", type=int, default=20, help="responses streaming at a time")
    parser.add_argument("--tokens-per-second", type=float, default=100.0, help="of each response")
    options = parser.parse_args()
    try:
        options.sets = {path.name: read_answers(path, options.limit) for path in options.files}
        options.settings = load_settings(options.config)
        options.known = _saved(options.decide_only) if options.decide_only else None
    except (OSError, ValueError, KeyError, GuardrailError) as error:
        parser.error(f"{type(error).__name__}: {error}")
    return options


def main() -> None:
    """Command line."""
    options = _options()
    configure_logging(LoggingSettings(level="warning"))
    everything = [answer for answers in options.sets.values() for answer in answers]
    responses, settings = [answer.response for answer in everything], options.settings
    if options.streamed:
        uvloop.run(stream(responses, settings, options.at_once, options.tokens_per_second))
        return
    known = options.known
    if known is None:
        known = {}
        for name, answers in options.sets.items():
            known |= uvloop.run(_judged_now(name, answers, settings))
    if lacking := sum(response.response_id not in known for response in responses):
        raise SystemExit(f"{options.decide_only} lacks {lacking} of the answers: save them, too")
    if options.save is not None:
        lines = (result.to_json() + b"\n" for result in _results(everything, known))
        options.save.write_bytes(b"".join(lines))
    found = {name: figures(decided(answers, known, settings)) for name, answers in options.sets.items()}
    for name, told in found.items():
        print(printed(name, told))
    if options.json is not None:
        options.json.write_text(json.dumps(statistics.as_json(found), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
