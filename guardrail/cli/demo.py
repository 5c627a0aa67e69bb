"""``guardrail demo``: example answers through the production consumer, on a broker in this process."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from guardrail.cli.options import ConfigOption, JudgeOption, naming_places, once, option, settings_from
from guardrail.cli.terminal import EXIT_FAILURE, EXIT_PIPE_CLOSED, discard, print_error, replace_unencodable
from guardrail.errors import InputError, only_cause

if TYPE_CHECKING:
    from consumers.memory import MemoryBroker
    from consumers.settings import Topics
    from guardrail.config import Settings
    from guardrail.demo import Board, BoardEvent, DemoAnswer, StreamEvent, View
    from guardrail.events import Response
    from guardrail.judges.factory import JudgeSet

EPILOG = """[bold]Examples[/]

guardrail demo

guardrail demo --only medication

OPENAI_API_KEY=… guardrail demo --judge decisions

guardrail demo --speed 50 > demo.txt"""

_PIPED_SPEED: Final = 8.0
PARTITIONS: Final = 3
_GROUP_ID: Final = "guardrail"
_TICK_S: Final = 0.1
_LAST_WORD_S: Final = 30.0
"""How long the last verdicts may take after the last answer is written; milliseconds are the rule."""


def demo_command(
    speed: Annotated[
        float | None,
        option(
            "--speed X",
            "How much faster than a language model the answers are written.",
            default="1 on a terminal, 8 into a file or pipe",
            min=0.1,
            max=1000.0,
        ),
    ] = None,
    only: Annotated[
        str | None,
        option("--only KIND", "Only answers of this kind: medication, pricing, contract, table, …"),
    ] = None,
    judge: JudgeOption = None,
    config: ConfigOption = None,
) -> None:
    """Watch answers being checked while they are written: no broker, no API key, no key press.

    Fourteen answers stream, token by token, through the consumer of production.
    Some are faithful to their documents, some are wrong in one detail.
    On a terminal it is shown live; into a file or pipe it is written in lines.
    With --judge or --config the judge is that of your settings, which may need a key or a server.
    """
    from guardrail.demo import load_demo_settings, load_examples

    try:
        examples = load_examples(only)
    except InputError as error:
        raise typer.BadParameter(str(error), param_hint="--only") from None
    replace_unencodable()
    settings, file, options = load_demo_settings(), once(config), {"judge": {"kind": judge}}
    if judge is not None or file is not None:
        settings = settings.model_copy(update={"judge": settings_from(file, options).judge})
    try:
        with naming_places(file, options):
            shown = asyncio.run(_demo(examples, settings, speed))
    except asyncio.CancelledError:
        raise typer.Exit(128 + signal.SIGTERM) from None
    except BrokenPipeError:
        discard(sys.stdout)  # whoever read has enough, as `| head` does
        raise typer.Exit(EXIT_PIPE_CLOSED) from None
    if not shown:
        print_error("not every answer was decided in time; please report this")
        raise typer.Exit(EXIT_FAILURE)


async def _demo(examples: tuple[DemoAnswer, ...], settings: Settings, speed: float | None) -> bool:
    """Play everything; was every answer decided?"""
    from rich.console import Console

    from guardrail.config import LoggingSettings
    from guardrail.demo import Board, LiveView, PlainView, introduction, summary
    from guardrail.judges.factory import JudgeSet
    from guardrail.logs import configure_logging
    from guardrail.render import symbols_for

    configure_logging(LoggingSettings(level="error"))
    _cancel_on_sigterm()
    symbols = symbols_for(sys.stdout.encoding or "ascii")
    # A file has no width; 100 columns are what editors and mails take.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 100)
    # FORCE_COLOR makes rich take a file for a terminal; moving the cursor there would be wrong all the same.
    live = sys.stdout.isatty() and not console.is_dumb_terminal
    board = Board()
    view = LiveView(console, symbols) if live else PlainView(sys.stdout, symbols)
    pace = speed or (1.0 if live else _PIPED_SPEED)
    judges = JudgeSet(settings.judge, settings.policies.values())  # without a key it says so, and no more
    console.print(introduction(examples, settings, judges.default.name, symbols))
    await play_all([example.response for example in examples], settings, judges, board, view, pace)
    console.print(summary(board, examples, symbols, console.width))
    return len(board.finished) == len(examples)


def _cancel_on_sigterm() -> None:
    """SIGTERM ends the demo as Ctrl-C does, so that the terminal is put in order."""
    task = asyncio.current_task()
    if task is None or sys.platform == "win32":
        return
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


# ------------------------------------------------------------------------------------ the stage


async def play_all(
    responses: Sequence[Response],
    settings: Settings,
    judges: JudgeSet,
    board: Board,
    view: View,
    speed: float,
) -> None:
    """Feed, guard and view, until the last answer is decided, which ``board`` knows. Closes the judges."""
    from consumers.guarantee import GuardOptions
    from consumers.guard import GuardConsumer
    from consumers.memory import MemoryBroker, MemoryTransport
    from consumers.settings import Topics
    from guardrail.demo import play, schedule

    topics = Topics()
    broker = MemoryBroker(dict.fromkeys(topics.names(), PARTITIONS), compacted=[topics.sessions])
    transport = MemoryTransport(broker, _GROUP_ID, topics.responses, sessions_topic=topics.sessions)
    router = settings.router()
    guard = GuardConsumer(
        transport,
        judges.default,
        router,
        GuardOptions(limits=settings.limits, topics=topics),
        judges=judges.by_kind,
    )
    steps = schedule(responses)
    stop, done = asyncio.Event(), asyncio.Event()

    def send(event: StreamEvent) -> None:
        broker.append(topics.responses, event.response_id.encode(), event.to_json())

    async def feed() -> None:
        await play(steps, send, speed)
        try:
            async with asyncio.timeout(_LAST_WORD_S):
                await done.wait()
        except TimeoutError:
            done.set()

    view.open(responses)
    try:
        async with asyncio.TaskGroup() as group:
            guarding = group.create_task(guard.run(stop))
            watching = [
                group.create_task(_follow(broker, topics, board, view, len(responses), done)),
                group.create_task(_draw(board, view)),
            ]
            await feed()
            stop.set()
            await guarding
            for task in watching:
                task.cancel()
        view.tick(board)
    except BaseExceptionGroup as errors:
        raise only_cause(errors) from None
    finally:
        view.close()
        await judges.aclose()


async def _follow(
    broker: MemoryBroker, topics: Topics, board: Board, view: View, answers: int, done: asyncio.Event
) -> None:
    """Read the topics as any consumer could, and show what is in them; ``done`` when all is said."""
    from guardrail.events import Response, parse_input, parse_output

    arrived: asyncio.Queue[tuple[int, BoardEvent]] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    async def subscribe(topic: str) -> None:
        parse = parse_input if topic == topics.responses else parse_output
        async for record in broker.subscribe(topic):
            event = parse(record.value or b"")
            if not isinstance(event, Response):  # the feed sends streams only
                arrived.put_nowait((_rank(event), event))

    async with asyncio.TaskGroup() as group:
        for topic in (topics.responses, topics.verdicts, topics.deliveries, topics.flagged):
            group.create_task(subscribe(topic))
        while True:
            batch = [await arrived.get()]
            while not arrived.empty():
                batch.append(arrived.get_nowait())
            # Topics have no order among each other; what came at once is told as it happened.
            for _, event in sorted(batch, key=lambda item: item[0]):
                card = board.apply(event, loop.time())
                if card is not None:
                    view.show(event, card)
            if len(board.finished) == answers:
                done.set()


def _rank(event: BoardEvent) -> int:
    """Text, its verdicts, its release, the final verdict, the case."""
    first = event.type.split(".")
    return {"response": 0, "verdict": 3 if first[-1] == "response" else 1, "delivery": 2, "case": 4}[first[0]]


async def _draw(board: Board, view: View) -> None:
    while True:
        view.tick(board)
        await asyncio.sleep(_TICK_S)
