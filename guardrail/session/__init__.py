"""One response: a state machine, its effects, its outputs, and its stored form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.session.machine import Session as Session
    from guardrail.session.outputs import AskJudge as AskJudge
    from guardrail.session.outputs import Cancel as Cancel
    from guardrail.session.outputs import Channel as Channel
    from guardrail.session.outputs import CutOn as CutOn
    from guardrail.session.outputs import Effect as Effect
    from guardrail.session.outputs import Emit as Emit
    from guardrail.session.outputs import Explain as Explain
    from guardrail.session.stored import StoredSession as StoredSession

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__, __all__ = face(__name__)
