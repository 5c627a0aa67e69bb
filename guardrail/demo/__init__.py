"""The answers of ``guardrail demo``, how they are fed, and how what comes back is shown.

Nothing in here knows how the guard runs: ``guardrail.cli.demo`` puts the feed, the guard and a view together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.demo.board import Board as Board
    from guardrail.demo.summary import DemoAnswer as DemoAnswer
    from guardrail.demo.summary import load_demo_settings as load_demo_settings
    from guardrail.demo.summary import load_examples as load_examples

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__, __all__ = face(__name__)
