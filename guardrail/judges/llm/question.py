"""What is asked of a model, who reads the reply, and what asking has cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from guardrail.judges.llm.reply import Answer


class ReplyReader(Protocol):
    """Reads one reply while it comes. ``feed`` and ``finish`` together return every answer once."""

    def feed(self, text: str) -> list[Answer]:
        """The answers that ``text`` completes. Raises JudgeReplyError when nothing more can come of it."""

    def finish(self) -> list[Answer]:
        """The other answers, now that the reply has ended, be it in the middle.

        Raises JudgeReplyError when the whole reply has none that can be used.
        """


class Prices(Protocol):
    """What tokens cost, as ``guardrail.judges.spending.PriceTable`` knows it."""

    def cost_usd(
        self, model: str, input_tokens: int, cached_input_tokens: int, output_tokens: int
    ) -> float: ...


@dataclass(slots=True)
class Spent:
    """What the calls for one question took, failed and given-up ones included as far as the server told.

    ``calls`` are all calls sent. ``models`` are those that were to answer and did not, in order, each as
    "llm:MODEL: why"; ``answered_by`` is the one that did, as "llm:MODEL".
    """

    calls: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    models: list[str] = field(default_factory=list)
    answered_by: str = ""
    changed: Callable[[], None] | None = None
    """Called with each call that is sent, and when it is known what one took."""

    @property
    def attempts(self) -> int:
        """Calls sent, failed ones included."""
        return self.calls

    def sent(self) -> None:
        """Count a call, as it is sent."""
        self.calls += 1
        if self.changed is not None:
            self.changed()

    def add(self, model: str, usage: object, prices: Prices | None = None) -> None:
        """Count the usage as a server tells it. Where it tells none nothing is guessed."""
        if not isinstance(usage, Mapping):
            return
        details = usage.get("prompt_tokens_details")
        read, written = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
        cached = _count(details.get("cached_tokens")) if isinstance(details, Mapping) else 0
        self.input_tokens += read
        self.cached_input_tokens += cached
        self.output_tokens += written
        if prices is not None:
            self.cost_usd += prices.cost_usd(model, read, cached, written)
        if self.changed is not None:
            self.changed()


def _count(value: object) -> int:
    """A number of tokens as the server says, which nobody has checked."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


@dataclass(frozen=True)
class Question:
    """What to ask, and what becomes of the reply.

    ``reader`` makes a reader for each call's reply. ``heard`` is told, on the event loop, of answers ahead of
    the end of the reply; for one claim it hears one call's answers only. Calls of different ``response_id``
    take turns when they have to wait. ``admit`` is that of ``JudgeRequest``.
    """

    messages: Sequence[dict[str, str]]
    schema: dict[str, Any]
    reader: Callable[[], ReplyReader]
    heard: Callable[[Sequence[Answer]], None]
    spent: Spent
    response_id: str = ""
    admit: Callable[[], None] | None = None
