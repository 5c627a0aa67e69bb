"""``guardrail tail``: verdicts or flagged cases in a terminal, as they come from Kafka."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Annotated, Final

from rich.text import Text

from guardrail.cli.options import BootstrapOption, ConfigOption, option, settings_from, since_option
from guardrail.cli.sources import since_time_ms
from guardrail.cli.terminal import err, out, replace_unencodable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from consumers.settings import KafkaSettings
    from consumers.transport import Record
    from guardrail.events import ResponseVerdict
    from guardrail.render import Symbols

EPILOG = """[bold]Examples[/]

guardrail tail --bootstrap-servers localhost:9092

guardrail tail --flagged --since 1h"""

MAX_WIDTH: Final = 110
_MOST_CHARS: Final = 2_000


def tail_command(
    config: ConfigOption = None,
    bootstrap_servers: BootstrapOption = None,
    flagged: Annotated[
        bool, option("--flagged", "The cases of flagged, redacted and blocked answers, wrong claims marked.")
    ] = False,
    since: Annotated[str | None, since_option("Begin with those", default="now")] = None,
    number: Annotated[
        int | None, option("--number -n", "End after so many.", default="no end", min=1)
    ] = None,
) -> None:
    """Show decisions as they come, a line for each answer, or with --flagged a card for each case.

    Cases show questions and answers of users. Ctrl-C ends it; nothing is changed by it.
    """
    since_ms = None if since is None else since_time_ms(since, time.time())
    settings = settings_from(config, {"kafka": {"bootstrap_servers": bootstrap_servers}})
    replace_unencodable()
    with suppress(KeyboardInterrupt):
        asyncio.run(_tail(settings.kafka, since_ms, number, flagged=flagged))


async def _tail(settings: KafkaSettings, since_ms: int | None, number: int | None, *, flagged: bool) -> None:
    from consumers.reading import Range, open_topic
    from guardrail.render import symbols_for

    topics = settings.topics
    console = out()
    symbols = symbols_for(console.encoding)
    shown = 0
    async with open_topic(
        settings, topics.flagged if flagged else topics.verdicts, part=Range(since_ms), at_end=True
    ) as reader:
        err().print(Text("waiting for what comes; Ctrl-C ends it", "dim"))
        async with aclosing(reader.follow()) as records:
            async for record in records:
                picture = picture_of(record, symbols, min(console.width, MAX_WIDTH), flagged=flagged)
                if picture is not None:
                    console.print(picture, soft_wrap=isinstance(picture, Text))
                    shown += 1
                if number is not None and shown >= number:
                    return


def picture_of(record: Record, symbols: Symbols, width: int, *, flagged: bool) -> RenderableType | None:
    """What is shown of a record: a case's card, a verdict's line, or nothing, as of a proof of the doctor."""
    from guardrail.doctor import is_proof
    from guardrail.errors import DecodeError
    from guardrail.events import FlaggedCase, ResponseVerdict, parse_output
    from guardrail.render import case_card

    try:
        event = parse_output(record.value or b"")
    except DecodeError as error:
        where = f"{record.partition.index}:{record.offset}"
        return Text(f"record {where} can't be read ({error.reason})", "yellow")
    if flagged and isinstance(event, FlaggedCase) and not is_proof(event):
        return case_card(
            event,
            symbols,
            width,
            at_ms=record.timestamp_ms,
            most_chars=_MOST_CHARS,
            remedy="; guardrail cases show ID --full",
        )
    if not flagged and isinstance(event, ResponseVerdict):
        return verdict_line(event, record.timestamp_ms, symbols)
    return None


def verdict_line(verdict: ResponseVerdict, at_ms: int, symbols: Symbols) -> Text:
    """Time, decision, id, rule, policy, score and number of claims; no text of the answer."""
    from guardrail.render import counted, decided, one_line, score, when

    dot = f" {symbols.dot} "
    words, style = decided(verdict.decision, verdict.mode)
    line = Text.assemble(
        (f"{when(at_ms)} ", "dim"),
        (f"{symbols.decisions[verdict.decision]} {words:<8} ", style),
        (one_line(verdict.response_id, 64, symbols.ellipsis), "bold"),
    )
    policy = f"{verdict.policy.name} policy, {verdict.mode}"
    for fact in (
        verdict.rule,
        policy,
        f"score {score(verdict.score)}",
        counted(len(verdict.claims), "claim"),
    ):
        line.append(dot + one_line(fact, 80, symbols.ellipsis))
    return line
