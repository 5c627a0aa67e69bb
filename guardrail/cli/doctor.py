"""``guardrail doctor``: is everything there that a guard needs, and does the guard that runs enforce?"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from guardrail import __version__
from guardrail.cli.config import flagged_notes, start_notes, unreadable_files
from guardrail.cli.options import (
    KAFKA_PANEL,
    BootstrapOption,
    ConfigOption,
    naming_places,
    once,
    settings_from,
)
from guardrail.cli.terminal import EXIT_FAILURE

if TYPE_CHECKING:
    from rich.console import Console

    from consumers.doctor import ClusterSeen, Examiner
    from consumers.settings import GuardSettings
    from guardrail.doctor import Check

EPILOG = """[bold]Examples[/]

guardrail doctor --config guardrail.yaml

guardrail doctor -b kafka:9092 --no-prove --json

[bold]Status[/]: 0 all is well, or there are warnings only; 1 something failed; 2 wrong usage or settings.

The proof writes three answers to the input topic, with the route 'guardrail-doctor', and reads what the guard
delivers: its user needs to write to the one and to read the other, which the guard itself needn't. They are
no cases: guardrail flagged, cases list, tail --flagged and replay leave them out."""

_WORDS: Final = {"ok": "ok  ", "warn": "warn", "fail": "FAIL", "skip": "-   "}
_STYLES: Final = {"ok": "green", "warn": "yellow", "fail": "bold red", "skip": "dim"}
_INDENT: Final = 8
_NARROWEST: Final = 40


def doctor_command(
    config: ConfigOption = None,
    bootstrap_servers: BootstrapOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object at the end instead of lines.")
    ] = False,
    prove: Annotated[
        bool,
        typer.Option(
            "--prove/--no-prove",
            help="Send answers through the guard that runs, right and wrong ones, and see what comes back.",
        ),
    ] = True,
    timeout_ms: Annotated[
        int,
        typer.Option(
            "--timeout-ms",
            min=100,
            metavar="MS",
            rich_help_panel=KAFKA_PANEL,
            help="Longest time that the guard may say nothing in the proof.",
        ),
    ] = 30_000,
) -> None:
    """Check settings, policies, judges, this machine and Kafka, and prove that wrong answers are withheld.

    Each line is ok, warn or fail, with the remedy; - is what could not be known. Run it where the guard runs,
    with its settings: the judges are built and asked (a language model once), files and limits are looked at.
    """
    from guardrail.cli.terminal import out
    from guardrail.logs import configure_logging

    options = {"kafka": {"bootstrap_servers": bootstrap_servers}}
    file = once(config)
    settings = settings_from(file, options)
    configure_logging(settings.logging.model_copy(update={"level": "error"}))
    printing = None if as_json else _Printing(out())
    if printing is not None:
        printing.head(settings, config)
    with naming_places(file, options):
        checks = asyncio.run(_collect(settings, timeout_ms / 1000 if prove else None, printing))
    if as_json:
        sys.stdout.write(json.dumps(_as_json(checks), indent=2) + "\n")
    elif printing is not None:
        printing.end(checks)
    if any(check.state == "fail" for check in checks):
        raise typer.Exit(EXIT_FAILURE)


async def _collect(
    settings: GuardSettings, prove_within_s: float | None, printing: _Printing | None
) -> list[Check]:
    checks = []
    async for check in examine(settings, prove_within_s):
        checks.append(check)
        if printing is not None:
            printing.line(check)
    return checks


async def examine(settings: GuardSettings, prove_within_s: float | None) -> AsyncIterator[Check]:
    """Every check, as it becomes known. ``prove_within_s`` is how long the guard may say nothing; None: no
    proof."""
    from consumers.doctor import Examiner, check_access, check_broker, check_groups, check_topics
    from guardrail.doctor import (
        Check,
        Machine,
        check_clock,
        check_judges,
        check_machine,
        check_policies,
        failed,
    )
    from guardrail.errors import GuardrailError

    for check in (*_of_settings(settings), *check_policies(settings)):
        yield check
    async for check in check_judges(settings):
        yield check
    seen: ClusterSeen | None = None
    begun_s = time.time()
    try:
        async with Examiner(settings.kafka) as examiner:
            seen = await examiner.cluster()
            for check in (*check_broker(settings.kafka, seen), *check_topics(settings.kafka, seen)):
                yield check
            for check in check_access(settings.kafka, await examiner.rights(seen)):
                yield check
            shared = seen.topics.get(settings.kafka.topics.responses)
            for check in check_machine(
                settings,
                Machine.here(),
                partitions=None if shared is None else shared.partitions,
                brokers=seen.brokers,
            ):
                yield check
            for check in check_groups(settings.kafka, await examiner.other_groups()):
                yield check
            answered = False
            async for check in _prove(settings, seen, examiner, prove_within_s):
                answered |= check.state in {"ok", "warn"}
                yield check
            stamped_s = await _stamped_s(settings, seen, examiner) if answered else None
            if stamped_s is None:
                yield await _clock(settings)
            else:
                yield check_clock(stamped_s, begun_s, time.time(), "the broker")
    except GuardrailError as error:
        yield failed("broker", "reachable" if seen is None else "answers", error)
        if seen is None:
            for check in check_machine(settings, Machine.here()):
                yield check
            yield Check("enforcement", "the guard", "skip", "not proven: Kafka can't be reached")
            yield await _clock(settings)


def _of_settings(settings: GuardSettings) -> list[Check]:
    from guardrail.doctor import Check
    from guardrail.judges.factory import all_kinds

    checks = [
        Check("settings", path, "fail", f"can't be read here: {why}", "put it there, or correct the setting")
        for path, why in unreadable_files(settings)
    ]
    every = all_kinds(settings.judge, settings.policies.values())
    notes = (note for each in every for note in start_notes(each))
    for note in dict.fromkeys((*notes, *flagged_notes(settings))):
        about, colon, rest = note.partition(": ")
        detail, _, remedy = (rest if colon else note).rpartition("; ")
        checks.append(
            Check("settings", about if colon else "judge", "warn", detail or remedy, remedy if detail else "")
        )
    return checks or [Check("settings", "files and keys", "ok", "all that the settings name are here")]


async def _prove(
    settings: GuardSettings, seen: ClusterSeen, examiner: Examiner, within_s: float | None
) -> AsyncIterator[Check]:
    from aiokafka.admin import AIOKafkaAdminClient

    from consumers.doctor import check_access
    from consumers.kafka.client import client_options
    from guardrail.client import GuardClient
    from guardrail.doctor import PROOF_ROUTE, Check, failed, prove
    from guardrail.errors import GuardrailError

    topics = settings.kafka.topics
    about = "the guard"
    if within_s is None:
        yield Check("enforcement", about, "skip", "not proven: --no-prove was given")
        return
    rights = await examiner.rights_of_proof(seen)
    if rights.denied:
        for check in check_access(settings.kafka, rights):
            if check.state == "fail":
                yield check
        yield Check("enforcement", about, "skip", "not proven: this user lacks a right that the proof needs")
        return
    if rights.unknown:
        yield Check("enforcement", about, "skip", "not proven: topics are missing")
        return
    policy = settings.router().choose(PROOF_ROUTE, None)
    try:
        async with GuardClient(
            responses_topic=topics.responses,
            deliveries_topic=topics.deliveries,
            group=settings.kafka.group_id,
            connect_timeout_s=settings.kafka.connect_timeout_ms / 1000,
            drain_timeout_s=0.0,
            **client_options(settings.kafka, AIOKafkaAdminClient),
        ) as client:
            for check in await prove(client, policy, within_s=within_s):
                yield check
    except GuardrailError as error:
        yield failed("enforcement", about, error)


async def _stamped_s(settings: GuardSettings, seen: ClusterSeen, examiner: Examiner) -> float | None:
    """The time that the broker stamped on the answers of the proof, where it does that."""
    name = settings.kafka.topics.responses
    topic = seen.topics[name]
    if (topic.configs or {}).get("message.timestamp.type") != "LogAppendTime":
        return None
    return await examiner.newest_append_s(name, topic.partitions)


async def _clock(settings: GuardSettings) -> Check:
    """By the LLM judge's endpoint, where there is one."""
    from guardrail.doctor import check_clock, endpoint_time_s
    from guardrail.judges.factory import all_kinds

    begun_s, told_s = time.time(), None
    if any("llm" in each.kinds() for each in all_kinds(settings.judge, settings.policies.values())):
        told_s = await endpoint_time_s(settings.judge.llm.base_url)
    return check_clock(told_s, begun_s, time.time(), "the judge's endpoint", exact_to_s=1.0)


def _as_json(checks: Sequence[Check]) -> dict[str, Any]:
    from dataclasses import asdict

    counts = {state: sum(check.state == state for check in checks) for state in _WORDS}
    return {
        "version": __version__,
        "ok": not counts["fail"],
        "counts": counts,
        "checks": [asdict(check) for check in checks],
    }


class _Printing:
    """Lines as they come, under a heading for each area; wrapped to a terminal's width, and not at all
    elsewhere, so that grep finds whole lines."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._width = max(_NARROWEST, console.width) if console.is_terminal else None
        self._area = ""

    def head(self, settings: GuardSettings, config: Path | None) -> None:
        source = "defaults and environment" if config is None else str(config)
        self._print(f"guardrail {__version__}, {source}, {settings.kafka.bootstrap_servers}", "bold")

    def line(self, check: Check) -> None:
        from rich.text import Text

        from guardrail.printable import escape_controls

        if check.area != self._area:
            self._area = check.area
            self._print("")
            self._print(check.area, "bold")
        text = escape_controls(f"{check.about}: {check.detail}")
        for number, part in enumerate(self._wrapped(text, _INDENT)):
            begin = (f"  {_WORDS[check.state]}  ", _STYLES[check.state]) if not number else " " * _INDENT
            self._console.print(Text.assemble(begin, part), soft_wrap=True)
        if check.remedy:
            for number, part in enumerate(self._wrapped(escape_controls(check.remedy), _INDENT + 5)):
                begin = (" " * _INDENT + "fix: ", "cyan") if not number else " " * (_INDENT + 5)
                self._console.print(Text.assemble(begin, part), soft_wrap=True)

    def end(self, checks: Sequence[Check]) -> None:
        counts = {state: sum(check.state == state for check in checks) for state in _WORDS}
        parts = [
            f"{counts['fail']} failed",
            f"{counts['warn']} warning{'s' if counts['warn'] != 1 else ''}",
            f"{counts['ok']} ok",
        ]
        if counts["skip"]:
            parts.append(f"{counts['skip']} not checked")
        self._print("")
        self._print(
            ", ".join(parts), "bold red" if counts["fail"] else "yellow" if counts["warn"] else "green"
        )

    def _print(self, text: str, style: str = "") -> None:
        from rich.text import Text

        from guardrail.printable import escape_controls

        self._console.print(Text(escape_controls(text), style=style), soft_wrap=True)

    def _wrapped(self, text: str, indent: int) -> list[str]:
        import textwrap

        if self._width is None:
            return [text]
        # Words stay whole: paths and commands are to be copied.
        return textwrap.wrap(text, self._width - indent, break_long_words=False, break_on_hyphens=False) or [
            ""
        ]
