"""What a command does when something fails: one clear message, a meaningful status, no traceback."""

from __future__ import annotations

from typing import Any, Final

import typer
from typer.core import TyperGroup

from guardrail.errors import ConfigError, GuardrailError

EXIT_FAILURE: Final = 1
EXIT_USAGE: Final = 2


class GuardrailGroup(TyperGroup):
    """The root of the commands. Errors raised on purpose, and those of the system, become one message.

    Anything else is a bug and keeps its traceback, as does everything with ``--debug``.
    """

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (GuardrailError, OSError) as error:
            if ctx.params.get("debug") or isinstance(error, BrokenPipeError):
                raise
            from guardrail.cli.terminal import print_error

            print_error(_message(error))
            raise typer.Exit(EXIT_USAGE if isinstance(error, ConfigError) else EXIT_FAILURE) from None


def _message(error: GuardrailError | OSError) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    return str(error) or type(error).__name__
