"""What a command line of ``guardrail`` means, without running it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer.main

from guardrail.cli import app


def parse(arguments: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Name and parameters of the command. Raises what the command line raises of wrong usage."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("guardrail", list(arguments))
    while hasattr(command, "resolve_command"):
        left = [*getattr(context, "_protected_args", []), *context.args]
        name, command, left = command.resolve_command(context, left)
        context = command.make_context(name, left, parent=context)
    return str(context.command_path), dict(context.params)
