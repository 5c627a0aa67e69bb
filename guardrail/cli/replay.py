"""``guardrail replay``: stored verdicts, decided again under another policy."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import ExitStack, aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from guardrail.cli.options import (
    BootstrapOption,
    ConfigOption,
    PartitionOption,
    SinceOption,
    UntilOption,
    argument,
    naming_places,
    option,
    policy_named,
    settings_from,
)
from guardrail.cli.sources import KAFKA, range_of, read_labels, values_of
from guardrail.cli.terminal import EXIT_FAILURE, out, print_error, replace_unencodable
from guardrail.errors import DecodeError

if TYPE_CHECKING:
    from consumers.reading import Range
    from consumers.settings import KafkaSettings
    from guardrail.config import Settings
    from guardrail.evals.records import RecordReader
    from guardrail.evals.replay import Replay, Side

EPILOG = """[bold]Examples[/]

guardrail replay kafka:rag.verdicts --since 24h --config new.yaml

guardrail replay verdicts.jsonl.gz -c guardrail.yaml --policy strict --against default

guardrail replay results.jsonl -c new.yaml --against old.yaml --labels labels.jsonl --json

[bold]Status[/]: 0 done; 1 nothing could be compared, or a record could not be read (named on stderr; \
the others count); 2 wrong usage or settings."""


def replay_command(
    sources: Annotated[
        list[str],
        argument(
            "RECORDS…",
            "Files of 'verdict.response' events or of results, one a line, plain or gzip's; - for stdin; or "
            "kafka:TOPIC, kafka: for kafka.topics.verdicts.",
        ),
    ],
    config: ConfigOption = None,
    policy: Annotated[
        str | None,
        option("--policy NAME", "Decide by this policy alone.", default="by route, tenant and model"),
    ] = None,
    against: Annotated[
        str | None,
        option(
            "--against FILE|NAME",
            "Compare with the policies of another file of settings, or with a policy of this one.",
            default="what was decided, as recorded",
        ),
    ] = None,
    labels: Annotated[
        list[str] | None,
        option(
            "--labels FILE|kafka:TOPIC",
            "People's verdicts on the answers: 'label' events, one a line, or kafka: for "
            "kafka.topics.labels. Wrongful blocks and misses are told then.",
            default="those in results",
        ),
    ] = None,
    changed: Annotated[
        Path | None,
        option(
            "--changed FILE",
            "Where each response that would be decided differently goes, one a line, without texts.",
        ),
    ] = None,
    examples: Annotated[
        int, option("--examples -n", "Examples of each kind of change.", min=0, max=1000)
    ] = 3,
    as_json: Annotated[bool, option("--json", "Print the figures as JSON.")] = False,
    since: SinceOption = None,
    until: UntilOption = None,
    partition: PartitionOption = None,
    bootstrap_servers: BootstrapOption = None,
) -> None:
    """Say what another policy would have decided about stored verdicts. No judge is asked.

    The examples show texts of answers; all else doesn't.
    """
    from guardrail.cli.results_file import opened_for_writing
    from guardrail.evals.records import RecordReader
    from guardrail.evals.replay import Replay

    options = {"kafka": {"bootstrap_servers": bootstrap_servers}}
    settings = settings_from(config, options)
    part = range_of(since, until, partition)
    topics = [each for each in (*sources, *(labels or ())) if each.startswith(KAFKA)]
    if not topics and part is not None:
        raise typer.BadParameter(
            "--since, --until and --partition choose from a topic; read kafka:TOPIC", param_hint="RECORDS"
        )
    after, before = _side(settings, policy, "--policy"), _against(settings, against)
    replace_unencodable()
    reader, replay = RecordReader(), Replay(after, before, examples=examples)
    with naming_places(config, options), ExitStack() as stack:
        to = stack.enter_context(opened_for_writing(changed, "--changed", "changes")) if changed else None
        for each in labels or ():
            told, problems = asyncio.run(read_labels(each, settings.kafka))
            if problems:
                raise DecodeError(
                    "invalid_event", f"{': '.join(problems[0])}; guardrail cases check names all"
                )
            replay.labels.add(told)
        asyncio.run(_replay(sources, settings.kafka, part, reader, replay, to))
    _print(replay, reader, as_json=as_json)
    for place, problem in reader.passed.problems:
        print_error(f"{place}: {problem}")
    if reader.passed.unreadable > len(reader.passed.problems):
        print_error(f"and {reader.passed.unreadable - len(reader.passed.problems)} more can't be read")
    if not replay.compared:
        print_error(_nothing(replay))
    if reader.passed.unreadable or not replay.compared:
        raise typer.Exit(EXIT_FAILURE)


def _side(settings: Settings, policy: str | None, hint: str, name: str = "") -> Side:
    """The policies of these settings, or the one that is named. Raises typer.BadParameter."""
    from guardrail.evals.replay import Side
    from guardrail.routing import PolicyRouter

    if policy is None:
        router = PolicyRouter(settings.policies, settings.routes, settings.default_policy)
        by_head = any(not route.unconditional for route in settings.routes)
        own = "policies by route" if settings.routes else settings.default_policy
        return Side(name or own, router, by_head)
    return Side(policy, PolicyRouter.single(policy_named(policy, settings, hint)))


def _against(settings: Settings, against: str | None) -> Side | None:
    """The side to compare with, None for what was recorded."""
    from consumers.settings import load_settings

    if against is None:
        return None
    path = Path(against)
    if against in settings.policies or (path.suffix not in {".yaml", ".yml"} and not path.exists()):
        return _side(settings, against, "--against")
    return _side(load_settings(path, {}), None, "--against", path.name)


async def _replay(
    sources: list[str],
    kafka: KafkaSettings,
    part: Range | None,
    reader: RecordReader,
    replay: Replay,
    changed: BinaryIO | None,
) -> None:
    for source in sources:
        async with aclosing(values_of(source, kafka, kafka.topics.verdicts, part, reader)) as values:
            async for value, place in values:
                verdict = reader.read(value, place)
                if reader.labels:
                    replay.labels.add(reader.labels)
                    reader.labels.clear()
                change = None if verdict is None else replay.add(verdict, place)
                if change is not None and changed is not None:
                    changed.write(f"{json.dumps(change.as_json(), ensure_ascii=True)}\n".encode())


def _nothing(replay: Replay) -> str:
    if not replay.responses:
        return "there is no record of a response; are these 'verdict.response' events or results?"
    reason, _ = replay.unknown.most_common(1)[0]
    return f"nothing can be compared: of all {replay.responses:,} responses it is not known ({reason})"


def _print(replay: Replay, reader: RecordReader, *, as_json: bool) -> None:
    if as_json:
        passed = reader.passed
        told = replay.as_json() | {
            "passed_over": {
                "other_events": passed.others,
                "proofs_of_doctor": passed.proofs,
                "repeated": passed.repeated,
                "results_without_verdict": passed.failed,
                "unreadable": passed.unreadable,
            }
        }
        sys.stdout.write(f"{json.dumps(told, indent=2, ensure_ascii=True)}\n")
        return
    from guardrail.evals.replay import print_replay

    print_replay(out(), replay, reader.passed)
