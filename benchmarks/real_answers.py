"""Real answers of real models, with what people said of their sentences, through judge and policy.

    python -m benchmarks.real_answers DATA/lfqa-val.jsonl.gz DATA/expertqa-val.jsonl [--config FILE]
        [--save VERDICTS.jsonl] [--json OUT.json] [--limit N]
    python -m benchmarks.real_answers FILE... --decide-only VERDICTS.jsonl --config OTHER.yaml

Each file has one ``response`` event a line, with labels in ``metadata.labels``
(``benchmarks.labelled_answers``). Answers are judged whole, one after the other, without limits of time, and
then decided by the policy as it is live. Reported with 95 % intervals: what becomes of the answers whose
sentences are all supported, and of those less than half supported; how well score and support tell these
apart; how the verdicts on claims agree with the labels of the sentences they stand in; and what a claim
costs. ``--decide-only`` decides by another policy what ``--save`` has kept, in seconds. ``--kafka`` streams
the answers over a real Kafka instead (``benchmarks.real_streams``).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import uvloop

from benchmarks.answer_figures import Case, figures, printed
from benchmarks.frame import command_line
from benchmarks.labelled_answers import LabelledAnswer, read_answers
from benchmarks.saved_verdicts import Judged, SavedJudge, load, save
from guardrail.config import LoggingSettings, Settings, load_settings
from guardrail.errors import GuardrailError
from guardrail.evals import statistics
from guardrail.evals.evaluation import checker, judging_everything
from guardrail.judges import Judge
from guardrail.judges.factory import build_judge
from guardrail.limits import Limits
from guardrail.logs import configure_logging
from guardrail.routing import PolicyRouter


def routers(settings: Settings) -> tuple[PolicyRouter, PolicyRouter]:
    """The policies as they are live, and the same that judge every answer to its end."""
    whole = {name: judging_everything(policy) for name, policy in settings.policies.items()}
    routes, default = settings.routes, settings.default_policy
    return PolicyRouter(settings.policies, routes, default), PolicyRouter(whole, routes, default)


async def judged(
    answers: Sequence[LabelledAnswer], judge: Judge, router: PolicyRouter, limits: Limits
) -> dict[str, Judged]:
    """Every answer judged to its end, one after the other, by response id."""
    check = checker(judge, router, limits)
    found: dict[str, Judged] = {}
    for number, answer in enumerate(answers, 1):
        begun, busy = time.perf_counter(), time.process_time()
        verdict = await check(answer.response)
        found[verdict.response_id] = Judged(verdict, time.perf_counter() - begun, time.process_time() - busy)
        if number % 50 == 0:
            print(f"  {number} of {len(answers)} answers judged", flush=True)
    return found


async def decided(
    answers: Sequence[LabelledAnswer], known: Mapping[str, Judged], settings: Settings
) -> list[Case]:
    """The answers under the policies of ``settings``, from verdicts that are known."""
    live, whole = routers(settings)
    judge = SavedJudge(known.values())
    as_live, to_the_end = checker(judge, live, settings.limits), checker(judge, whole, settings.limits)
    cases = [
        Case(
            answer,
            known[answer.response.response_id],
            await to_the_end(answer.response),
            await as_live(answer.response),
        )
        for answer in answers
    ]
    if judge.missing:
        print(f"{judge.missing} claims have no saved verdict: texts are cut otherwise now; judge again")
    return cases


def _judged_now(answers: Sequence[LabelledAnswer], settings: Settings) -> dict[str, Judged]:
    async def run() -> dict[str, Judged]:
        judge = build_judge(settings.judge)
        try:
            await judged(answers[:2], judge, routers(settings)[1], settings.limits)  # what is loaded lazily
            return await judged(answers, judge, routers(settings)[1], settings.limits)
        finally:
            await judge.aclose()

    return uvloop.run(run())


def _options() -> argparse.Namespace:
    parser = command_line(__doc__)
    parser.add_argument("files", type=Path, nargs="+", help="response events with labels, one a line")
    parser.add_argument("--config", type=Path, help="configuration of judge and policies; default: none")
    parser.add_argument("--limit", type=int, help="most answers of each file (sampled)")
    parser.add_argument("--save", type=Path, help="keep all verdicts in this file")
    parser.add_argument(
        "--decide-only", type=Path, metavar="VERDICTS", help="what --save has kept: no judging"
    )
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    streaming = parser.add_argument_group("streaming at a generator's pace, instead")
    streaming.add_argument("--streamed", action="store_true", help="in process")
    streaming.add_argument("--kafka", action="store_true", help="also over a real Kafka, and compare")
    streaming.add_argument("--bootstrap-servers", help="use this Kafka instead of starting one")
    streaming.add_argument("--at-once", type=int, default=20, help="responses streaming at a time")
    streaming.add_argument("--tokens-per-second", type=float, default=100.0, help="of each response")
    streaming.add_argument(
        "--find-most", type=float, metavar="SECONDS",
        help="how many may stream at once before the judge reads less; each try lasts so long",
    )  # fmt: skip
    options = parser.parse_args()
    try:
        options.sets = {path.name: read_answers(path, options.limit) for path in options.files}
        options.settings = load_settings(options.config)
        options.known = load(options.decide_only) if options.decide_only else None
    except (OSError, ValueError, KeyError, GuardrailError) as error:
        parser.error(f"{type(error).__name__}: {error}")
    return options


def main() -> None:
    """Command line."""
    options = _options()
    configure_logging(LoggingSettings(level="warning"))
    everything = [answer for answers in options.sets.values() for answer in answers]
    if options.find_most:
        from benchmarks.real_streams import find_most

        raise SystemExit(find_most([answer.response for answer in everything], options))
    if options.streamed or options.kafka or options.bootstrap_servers:
        from benchmarks.real_streams import compare

        responses = [answer.response for answer in everything]
        raise SystemExit(compare(responses, options))
    known = options.known
    if known is None:
        known = _judged_now(everything, options.settings)
    if options.save is not None:
        save(options.save, known, everything)
    lacking = [a for a in everything if a.response.response_id not in known]
    if lacking:
        raise SystemExit(f"{options.decide_only} lacks {len(lacking)} of the answers: save them, too")
    told = {}
    for name, answers in options.sets.items():
        told[name] = figures(asyncio.run(decided(answers, known, options.settings)))
        print(printed(name, told[name]))
    if options.json is not None:
        options.json.write_text(json.dumps(statistics.told(told), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
