"""What judges were asked and what they said, as it went out and came in, for whoever wants to see the steps.

Nothing is recorded unless ``recording()`` is open around the judging; then everything is that happens in its
context (``contextvars``): the tasks that were started within it, and no others. A judge asks ``recorder()``
once a request, which is all that it costs otherwise.

Records hold texts: prompts, replies, contexts. They never hold keys or headers: a judge records messages,
never an HTTP request.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, Literal

StepKind = Literal["statements", "call", "reading"]
"""``statements``: claims as judges read them; ``call``: a prompt and its reply; ``reading``: the passages
that a local model read for a claim."""


@dataclass(frozen=True, slots=True)
class JudgeStep:
    """One step. ``begun_at`` is a reading of ``time.monotonic()``; ``judge`` is empty if none was asked."""

    kind: StepKind
    claim_ids: tuple[str, ...]
    begun_at: float
    judge: str = ""
    prompt: str | None = None
    reply: str | None = None
    latency_ms: float | None = None
    error: str | None = None


@dataclass(slots=True)
class Recorder:
    """The steps so far. Threads may add to it."""

    steps: list[JudgeStep] = field(default_factory=list)

    def add(
        self,
        kind: StepKind,
        claim_ids: Sequence[str],
        begun_at: float,
        *,
        judge: str = "",
        prompt: str | None = None,
        reply: str | None = None,
        error: str | None = None,
        timed: bool = True,
    ) -> None:
        """A step that ends now. ``timed``: it took time worth telling."""
        latency_ms = round((time.monotonic() - begun_at) * 1000, 3) if timed else None
        self.steps.append(
            JudgeStep(
                kind, tuple(claim_ids), begun_at, judge, _utf_8(prompt), _utf_8(reply), latency_ms, error
            )
        )


def _utf_8(text: str | None) -> str | None:
    """``text`` as it can be stored: JSON replies may escape lone surrogates, which no encoder takes."""
    return None if text is None else text.encode("utf-8", "replace").decode()


_current: Final[ContextVar[Recorder | None]] = ContextVar("guardrail_recorder", default=None)


def recorder() -> Recorder | None:
    """Where to record, or None: nobody wants to see it."""
    return _current.get()


@contextmanager
def recording() -> Iterator[Recorder]:
    """Record all judging that is started within; recordings may be nested, and the innermost gets it all."""
    token = _current.set(found := Recorder())
    try:
        yield found
    finally:
        _current.reset(token)
