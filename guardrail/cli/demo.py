"""``guardrail demo``: example answers through the production consumer, on a broker in this process."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

from guardrail.cli.terminal import EXIT_PIPE_CLOSED, discard, replace_unencodable

if TYPE_CHECKING:
    from rich.console import Console

    from guardrail.demo.summary import DemoAnswer
    from guardrail.demo.views import Symbols, View

EPILOG = """[bold]Examples[/]

guardrail demo

guardrail demo --only medication

guardrail demo --speed 50 > demo.txt"""

_PIPED_SPEED: Final = 8.0


def demo_command(
    speed: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            max=1000.0,
            metavar="X",
            show_default="1 on a terminal, 8 into a file or pipe",
            help="How much faster than a language model the answers are written.",
        ),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="KIND", help="Only answers of this kind: medication, pricing, contract, table, …"
        ),
    ] = None,
    no_color: Annotated[
        bool, typer.Option("--no-color", help="No colours; NO_COLOR in the environment says the same.")
    ] = False,
) -> None:
    """Watch answers being checked while they are written: no broker, no API key, no key press.

    A dozen answers stream, token by token, through the consumer of production.
    Some are faithful to their documents, some are wrong in one detail.
    On a terminal it is shown live; into a file or pipe it is written in lines.
    """
    from guardrail.demo.summary import load_examples
    from guardrail.errors import InputError

    try:
        examples = load_examples(only)
    except InputError as error:
        raise typer.BadParameter(str(error), param_hint="--only") from None
    replace_unencodable()
    try:
        shown = asyncio.run(_demo(examples, speed, no_color))
    except KeyboardInterrupt:
        raise typer.Exit(128 + signal.SIGINT) from None
    except asyncio.CancelledError:
        raise typer.Exit(128 + signal.SIGTERM) from None
    except BrokenPipeError:
        discard(sys.stdout)  # whoever read has enough, as `| head` does
        raise typer.Exit(EXIT_PIPE_CLOSED) from None
    if not shown:
        from guardrail.cli.terminal import print_error

        print_error("not every answer was decided in time; please report this")
        raise typer.Exit(1)


async def _demo(examples: tuple[DemoAnswer, ...], speed: float | None, no_color: bool) -> bool:
    """Play everything; was every answer decided?"""
    from rich.console import Console

    from guardrail.cli.demo_stage import play_all
    from guardrail.config import LoggingSettings
    from guardrail.demo.board import Board
    from guardrail.demo.summary import load_demo_settings, summary
    from guardrail.demo.views import symbols_for
    from guardrail.logs import configure_logging

    configure_logging(LoggingSettings(level="error"))
    _cancel_on_sigterm()
    symbols = symbols_for(sys.stdout.encoding or "ascii")
    # FORCE_COLOR makes rich take a file for a terminal; moving the cursor there would be wrong all the same.
    plain = no_color or None  # None: as NO_COLOR says
    console = Console(highlight=False, no_color=plain)
    live = sys.stdout.isatty() and not console.is_dumb_terminal
    board = Board()
    view = _view(console, symbols, live=live)
    pace = speed or (1.0 if live else _PIPED_SPEED)
    await play_all([example.response for example in examples], load_demo_settings(), board, view, pace)
    if not sys.stdout.isatty():
        # A file has no width; 100 columns are what editors and mails take.
        console = Console(highlight=False, no_color=plain, width=100)
    ascii_only = not console.encoding.startswith("utf")
    console.print(summary(board, examples, symbols, console.width, ascii_only=ascii_only))
    return len(board.finished) == len(examples)


def _view(console: Console, symbols: Symbols, *, live: bool) -> View:
    if live:
        from guardrail.demo.views import LiveView

        return LiveView(console, symbols)
    from guardrail.demo.views import PlainView

    return PlainView(sys.stdout, symbols)


def _cancel_on_sigterm() -> None:
    """SIGTERM ends the demo as Ctrl-C does, so that the terminal is put in order."""
    task = asyncio.current_task()
    if task is None or sys.platform == "win32":
        return
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
