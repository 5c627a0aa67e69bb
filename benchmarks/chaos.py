"""Kills guards, brokers and connections for half an hour and checks that no reader noticed.

    python -m benchmarks.chaos --seed 1 --out chaos.md

Runs several guards over a real Kafka of its own, streams responses whose right outcome is known, lets faults
happen along the way (tests/chaos/nemesis.py names them), reads everything back and checks it
(tests/chaos/checker.py). The workload and the schedule of faults follow from the seed. Exits with 1 when an
anomaly is found; the logs of the guards and of the broker, and all that was read, are then kept in
``--evidence``.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median

import uvloop

from benchmarks.frame import command_line, machine, markdown
from tests.chaos.harness import Plan, Result, run
from tests.chaos.history import Anomaly


def report(result: Result, command: str) -> str:
    """For people, in Markdown."""
    plan, findings = result.plan, result.findings
    verdict = "ANOMALIES WERE FOUND." if findings.counts else "No anomaly."
    records = ", ".join(f"{count:,} {role}" for role, count in sorted(findings.records.items()))
    kinds = Counter(one.fault.kind for one in result.happened)
    silences = [
        (kind, kinds[kind], round(median(longest), 2), round(max(longest), 2))
        for kind, longest in sorted(result.recovery().items())
    ]
    lines = [
        f"# A chaos run\n\n    {command}\n",
        f"{time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}, {machine()}. Seed {plan.seed}. {verdict}\n",
        f"- {plan.responses:,} responses over {plan.partitions} partitions, {plan.guards} guards, "
        f"{plan.brokers} brokers, {kinds.total()} faults in {result.seconds:,.0f} s",
        f"- committed records: {records}",
        f"- output records that were written and aborted, and that no reader saw: {findings.aborted:,}",
        f"- guards that ended, by exit status: {dict(result.guard_ends)}",
        "- faults that were to hit a step of a guard and met none in time: "
        f"{sum(bool(one.note) for one in result.happened)}",
        f"- everything came to its end: {'yes' if result.finished else 'NO'}; responses whose input was not "
        f"as planned: {findings.unplanned}\n",
        markdown(["anomaly", "found"], [(anomaly, findings.counts[anomaly]) for anomaly in Anomaly]),
        "\nThe longest silence of deliveries on any partition during a fault and the 15 s after it. Faults "
        "overlap: a kind is charged with what others did at the same time.\n",
        markdown(["fault", "times", "median, s", "longest, s"], silences),
        *(f"\n- {example}" for example in findings.examples),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Command line. The exit status."""
    parser = command_line(__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--responses", type=int, default=100_000)
    parser.add_argument("--faults", type=int, default=500)
    parser.add_argument("--guards", type=int, default=3, help="a further one comes and goes")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument(
        "--brokers", type=int, choices=(1, 3), default=1, help="3: replicated, with faults of their own"
    )
    parser.add_argument("--rate", type=float, default=60.0, help="responses a second; 0: as fast as it goes")
    parser.add_argument("--at-once", type=int, default=200, help="responses that stream side by side")
    parser.add_argument("--bug", default="", help="a deliberate bug of the guards: see tests/chaos/producers")
    parser.add_argument(
        "--broker-kill-anytime",
        action="store_true",
        dest="broker_anytime",
        help="end the broker also while it completes transactions, which Kafka 4.3.0 does not survive whole",
    )
    parser.add_argument("--out", type=Path, help="write the report there, in Markdown")
    parser.add_argument("--evidence", type=Path, help="keep logs and records there in any case")
    given = vars(parser.parse_args())
    out, evidence = given.pop("out"), given.pop("evidence")
    folder = evidence or Path(tempfile.mkdtemp(prefix="guardrail-chaos-"))
    folder.mkdir(parents=True, exist_ok=True)
    result = uvloop.run(run(Plan(**given), folder, lambda line: print(line, flush=True)))
    told = report(result, f"python -m benchmarks.chaos {' '.join(sys.argv[1:])}")
    print(told)
    if out is not None:
        out.write_text(told)
    if result.ok and evidence is None:
        shutil.rmtree(folder)
    else:
        print(result)
    return 0 if result.ok else 1


if __name__ == "__main__":
    sys.exit(main())
