"""Kills guards, brokers and connections for half an hour and checks that no reader noticed.

    python -m benchmarks.chaos --seed 1 --out docs/chaos.md

Runs several guards over a real Kafka of its own, streams responses whose right outcome is known, lets faults
happen along the way (tests/chaos/nemesis.py names them), reads everything back and checks it
(tests/chaos/checker.py). The workload and the schedule of faults follow from the seed. Writes a report as
Markdown or JSON, by the name of ``--out``. Exits with 1 when an anomaly is found; the logs of the guards and
of the broker, and all that was read, are then kept in ``--evidence``.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import uvloop

from benchmarks.frame import command_line
from tests.chaos.harness import Plan, Result, machine, run
from tests.chaos.history import Anomaly


def figures(result: Result, command: str) -> dict[str, Any]:
    """The report as data."""
    findings = result.findings
    plan = result.plan
    faults = Counter(one.fault.kind for one in result.happened)
    return {
        "command": command,
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "machine": machine(),
        "seed": plan.seed,
        "guards": plan.guards,
        "partitions": plan.partitions,
        "brokers": plan.brokers,
        "responses": plan.responses,
        "records": dict(findings.records),
        "aborted_output_records": findings.aborted,
        "faults": sum(faults.values()),
        "faults_by_kind": dict(sorted(faults.items())),
        "not_met": sum(bool(one.note) for one in result.happened),
        "guards_ended": dict(result.guard_ends),
        "seconds": round(result.seconds),
        "everything_finished": result.finished,
        "input_not_as_planned": findings.unplanned,
        "anomalies": {str(anomaly): findings.counts[anomaly] for anomaly in Anomaly},
        "examples": [str(found) for found in findings.examples],
        "silence_s": {
            kind: {"p50": round(median(longest), 2), "max": round(max(longest), 2)}
            for kind, longest in sorted(result.recovery().items())
        },
    }


def markdown(told: dict[str, Any]) -> str:
    """The report for people."""
    verdict = "No anomaly." if not any(told["anomalies"].values()) else "ANOMALIES WERE FOUND."
    records = ", ".join(f"{count:,} {role}" for role, count in sorted(told["records"].items()))
    lines = [
        "# A chaos run",
        "",
        f"    {told['command']}",
        "",
        f"{told['date']}, {told['machine']}. Seed {told['seed']}. {verdict}",
        "",
        f"- {told['responses']:,} responses over {told['partitions']} partitions, {told['guards']} guards, "
        f"{told['brokers']} brokers, "
        f"{told['faults']} faults in {told['seconds']:,} s",
        f"- committed records: {records}",
        f"- output records that were written and aborted, and that no reader saw: "
        f"{told['aborted_output_records']:,}",
        f"- guards that ended, by exit status: {told['guards_ended']}",
        f"- faults that were to hit a step of a guard and met none in time: {told['not_met']}",
        f"- everything came to its end: {'yes' if told['everything_finished'] else 'NO'}; "
        f"responses whose input was not as planned: {told['input_not_as_planned']}",
        "",
        "| anomaly | found |",
        "| --- | ---: |",
        *(f"| {name} | {count} |" for name, count in told["anomalies"].items()),
        "",
        "The longest silence of deliveries on any partition during a fault and the 15 s after it. Faults "
        "overlap: a kind is charged with what others did at the same time.",
        "",
        "| fault | times | median, s | longest, s |",
        "| --- | ---: | ---: | ---: |",
        *(
            f"| {kind} | {told['faults_by_kind'][kind]} | {silence['p50']} | {silence['max']} |"
            for kind, silence in told["silence_s"].items()
        ),
        "",
    ]
    if told["examples"]:
        lines += ["Examples:", "", *(f"- {example}" for example in told["examples"]), ""]
    return "\n".join(lines)


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
        help="end the broker also while it completes transactions, which Kafka 4.3.0 does not survive whole",
    )
    parser.add_argument("--out", type=Path, help="write the report there (.md or .json)")
    parser.add_argument("--evidence", type=Path, help="keep logs and records there in any case")
    given = parser.parse_args()
    plan = Plan(
        seed=given.seed,
        responses=given.responses,
        faults=given.faults,
        guards=given.guards,
        partitions=given.partitions,
        brokers=given.brokers,
        rate=given.rate,
        at_once=given.at_once,
        bug=given.bug,
        broker_anytime=given.broker_kill_anytime,
    )
    folder = given.evidence or Path(tempfile.mkdtemp(prefix="guardrail-chaos-"))
    folder.mkdir(parents=True, exist_ok=True)
    result = uvloop.run(run(plan, folder, lambda line: print(line, flush=True)))
    told = figures(result, f"python -m benchmarks.chaos {' '.join(sys.argv[1:])}")
    if given.out is not None:
        text = json.dumps(told, indent=2) if given.out.suffix == ".json" else markdown(told)
        given.out.write_text(text + "\n" * (given.out.suffix == ".json"))
    print(markdown(told))
    if result.ok and given.evidence is None:
        shutil.rmtree(folder)
    else:
        print(result)
    return 0 if result.ok else 1


if __name__ == "__main__":
    sys.exit(main())
