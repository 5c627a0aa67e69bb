"""Adding up what judges consume, failed calls included."""

from __future__ import annotations

from collections.abc import Callable

from guardrail.events import Usage


def total(*parts: Usage) -> Usage:
    """What all of them consumed together."""
    return Usage(**{name: sum(getattr(part, name) for part in parts) for name in Usage.model_fields})


def less(usage: Usage, other: Usage) -> Usage:
    """``usage`` without ``other``; no count falls below 0."""
    return Usage(**{name: max(0, getattr(usage, name) - getattr(other, name)) for name in Usage.model_fields})


class ToldUsage:
    """What a request is known to have consumed while it is under way: an ``on_usage`` that remembers.

    It passes on what it is told, with what had been consumed ``before``.
    """

    def __init__(self, on_usage: Callable[[Usage], None] | None, before: Usage | None = None) -> None:
        self._on_usage = on_usage
        self._before = before or Usage()
        self.last = Usage()

    def __call__(self, usage: Usage) -> None:
        self.last = usage
        if self._on_usage is not None:
            self._on_usage(total(self._before, usage))


def usage_of(error: BaseException) -> Usage:
    """What a failed request consumed, where its error tells (as ``usage``), else nothing."""
    return told_usage(error) or Usage()


def told_usage(error: BaseException) -> Usage | None:
    """What a failed request consumed: no calls where none was sent, None where its error doesn't tell."""
    usage = getattr(error, "usage", None)
    return usage if isinstance(usage, Usage) else None


def tell_usage(error: BaseException, usage: Usage) -> None:
    """Have ``error`` tell what the request consumed that it ends: for ``usage_of`` and ``attempts_of``."""
    error.usage = usage  # type: ignore[attr-defined]  # errors of any kind can end a request


def attempts_of(error: BaseException) -> int:
    """Calls made for a request that failed, where its error tells (``attempts`` or ``usage``), else 1."""
    attempts = getattr(error, "attempts", None)
    if isinstance(attempts, int) and attempts >= 0:
        return attempts
    told = told_usage(error)
    return 1 if told is None else told.judge_calls
