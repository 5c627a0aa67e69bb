"""The answers of ``guardrail demo``, how they are fed, and how what comes back is shown.

Nothing in here knows how the guard runs: ``guardrail.cli.demo`` puts the feed, the guard and a view together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.demo.board import Board
    from guardrail.demo.summary import DemoAnswer, load_demo_settings, load_examples

__all__ = [
    "Board",
    "DemoAnswer",
    "load_demo_settings",
    "load_examples",
]

if not TYPE_CHECKING:  # a type checker knows the names above, and no others
    __getattr__, __dir__ = face(
        __name__,
        {
            "guardrail.demo.board": ("Board",),
            "guardrail.demo.summary": ("DemoAnswer", "load_demo_settings", "load_examples"),
        },
    )
