"""``guardrail doctor``: is everything there that a guard needs, and does the guard that runs enforce?"""

from __future__ import annotations

import asyncio
import json
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.text import Text

from guardrail import __version__
from guardrail.cli.options import (
    BootstrapOption,
    ConfigOption,
    kafka_option,
    naming_places,
    once,
    option,
    settings_from,
)
from guardrail.cli.terminal import EXIT_FAILURE, out
from guardrail.printable import escape_controls
from guardrail.render import counted

if TYPE_CHECKING:
    from rich.console import Console

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
    as_json: Annotated[bool, option("--json", "Print one JSON object at the end instead of lines.")] = False,
    prove: Annotated[
        bool,
        option(
            "--prove/--no-prove",
            "Send answers through the guard that runs, right and wrong ones, and see what comes back.",
        ),
    ] = True,
    timeout_ms: Annotated[
        int,
        kafka_option("--timeout-ms MS", "Longest time that the guard may say nothing in the proof.", min=100),
    ] = 30_000,
) -> None:
    """Check settings, policies, judges, this machine and Kafka, and prove that wrong answers are withheld.

    Each line is ok, warn or fail, with the remedy; - is what could not be known. Run it where the guard runs,
    with its settings: the judges are built and asked (a language model once), files and limits are looked at.
    """
    from guardrail.logs import configure_logging

    options = {"kafka": {"bootstrap_servers": bootstrap_servers}}
    file = once(config)
    settings = settings_from(file, options)
    configure_logging(settings.logging.model_copy(update={"level": "error"}))
    console = out()
    console.quiet = as_json
    printing = _Printing(console)
    printing.head(settings, config)
    with naming_places(file, options):
        checks = asyncio.run(_collect(settings, timeout_ms / 1000 if prove else None, printing))
    printing.end(checks)
    if as_json:
        counts = _counts(checks)
        told = {"version": __version__, "ok": not counts["fail"], "counts": counts}
        sys.stdout.write(json.dumps(told | {"checks": list(map(asdict, checks))}, indent=2) + "\n")
    if any(check.state == "fail" for check in checks):
        raise typer.Exit(EXIT_FAILURE)


async def _collect(settings: GuardSettings, prove_within_s: float | None, printing: _Printing) -> list[Check]:
    from consumers.doctor import examine

    checks = []
    async for check in examine(settings, prove_within_s):
        checks.append(check)
        printing.line(check)
    return checks


def _counts(checks: Sequence[Check]) -> dict[str, int]:
    return {state: sum(check.state == state for check in checks) for state in _WORDS}


class _Printing:
    """Lines as they come, under a heading for each area; wrapped to a terminal's width, and not at all
    elsewhere, so that grep finds whole lines."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._width = max(_NARROWEST, console.width) if console.is_terminal else None
        self._area = ""

    def head(self, settings: GuardSettings, config: Path | None) -> None:
        from consumers.doctor import needs_kafka

        source = "defaults and environment" if config is None else str(config)
        brokers = f", {settings.kafka.bootstrap_servers}" if needs_kafka(settings) else ""
        self._print(f"guardrail {__version__}, {source}{brokers}", "bold")

    def line(self, check: Check) -> None:
        if check.area != self._area:
            self._area = check.area
            self._print("")
            self._print(check.area, "bold")
        self._below(f"  {_WORDS[check.state]}  ", _STYLES[check.state], f"{check.about}: {check.detail}")
        if check.remedy:
            self._below(" " * _INDENT + "fix: ", "cyan", check.remedy)

    def end(self, checks: Sequence[Check]) -> None:
        counts = _counts(checks)
        told = f"{counts['fail']} failed, {counted(counts['warn'], 'warning')}, {counts['ok']} ok"
        if counts["skip"]:
            told += f", {counts['skip']} not checked"
        self._print("")
        self._print(told, "bold red" if counts["fail"] else "yellow" if counts["warn"] else "green")

    def _print(self, text: str, style: str = "") -> None:
        self._console.print(Text(escape_controls(text), style=style), soft_wrap=True)

    def _below(self, begin: str, style: str, text: str) -> None:
        """Words after ``begin``, which further lines of them leave room for."""
        text, indent = escape_controls(text), len(begin)
        parts = [text]
        if self._width is not None:
            # Words stay whole: paths and commands are to be copied.
            parts = textwrap.wrap(
                text, self._width - indent, break_long_words=False, break_on_hyphens=False
            ) or [""]
        for number, part in enumerate(parts):
            shown = " " * indent if number else (begin, style)
            self._console.print(Text.assemble(shown, part), soft_wrap=True)
