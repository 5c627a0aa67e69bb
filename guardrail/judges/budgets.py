"""How much judging may cost: per response, per minute, per minute and tenant.

A call is admitted by what it is expected to take, and booked by what it took. Where that is never told (the
call was cancelled, or failed without saying), the expectation stays booked: a provider bills such calls too.
All counts are of this process.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from guardrail.errors import JudgeUnavailable
from guardrail.events import Usage
from guardrail.judges.base import JudgeRequest

_WINDOW_S: Final = 60
_MOST_TENANTS: Final = 10_000
_MOST_RESPONSES: Final = 20_000
_RESPONSE_KEPT_S: Final = 300


class BudgetExhausted(JudgeUnavailable):
    """A call was not made because a budget has no room for it. The message names the budget.

    ``usage`` is what the calls before it took that were made for the same request.
    """

    usage = Usage()


Tokens = Annotated[int, Field(gt=0)]
Usd = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ResponseBudget(BaseModel):
    """What the judging of one response may consume."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tokens: Tokens | None = Field(default=None, description="Input (cached ones too) and output tokens.")
    usd: Usd | None = Field(default=None, description="US dollars, by judge.prices.")


class MinuteBudget(ResponseBudget):
    """What may be consumed within any 60 seconds."""

    calls: Annotated[int, Field(gt=0)] | None = Field(default=None, description="Calls, failed ones too.")


class BudgetSettings(BaseModel):
    """Bounds on what the LLM judge consumes, per process; null is no bound."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    per_response: ResponseBudget = Field(
        default_factory=ResponseBudget, description="Bounds for each response."
    )
    per_minute: MinuteBudget = Field(
        default_factory=MinuteBudget, description="Bounds for all responses together."
    )
    per_tenant_minute: MinuteBudget = Field(
        default_factory=MinuteBudget, description="Bounds for the responses of each tenant."
    )
    on_budget: Literal["local", "unverified"] = Field(
        default="local",
        description="With kind llm, what claims get when a budget is used up: the local judge's verdict, or "
        "UNVERIFIED. With kind cascade, cascade.on_unavailable says it.",
    )

    @property
    def bounded(self) -> bool:
        """Whether there is any bound."""
        return any(
            value is not None
            for part in (self.per_response, self.per_minute, self.per_tenant_minute)
            for value in part.model_dump().values()
        )

    @property
    def needs_prices(self) -> bool:
        """Whether any bound is in US dollars."""
        return any(
            part.usd is not None for part in (self.per_response, self.per_minute, self.per_tenant_minute)
        )


@dataclass(frozen=True, slots=True)
class _Amount:
    calls: int
    tokens: int
    usd: float

    @staticmethod
    def of(usage: Usage) -> _Amount:
        return _Amount(
            max(0, usage.judge_calls),
            max(0, usage.input_tokens) + max(0, usage.output_tokens),
            max(0.0, usage.cost_usd),
        )

    def plus(self, other: _Amount) -> _Amount:
        return _Amount(self.calls + other.calls, self.tokens + other.tokens, self.usd + other.usd)

    def minus(self, other: _Amount) -> _Amount:
        return _Amount(self.calls - other.calls, self.tokens - other.tokens, self.usd - other.usd)

    def most(self, other: _Amount) -> _Amount:
        return _Amount(max(self.calls, other.calls), max(self.tokens, other.tokens), max(self.usd, other.usd))


_NOTHING: Final = _Amount(0, 0, 0.0)


@dataclass(slots=True)
class _Response:
    """What one response had spent when it was first seen here, with all that was booked for it since."""

    booked: _Amount
    second: int


@dataclass(slots=True)
class Reservation:
    """Room that a call has in the budgets, from before it is made until what it took is known."""

    response: _Response
    tenant: str | None
    expected: _Amount
    second: int


class Budget:
    """Counts against all bounds. Not thread-safe: for one event loop, without awaits inside."""

    def __init__(self, settings: BudgetSettings, *, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` gives seconds and never goes back."""
        self._settings = settings
        self._clock = clock
        self._all = _Window()
        self._tenants: OrderedDict[str | None, _Window] = OrderedDict()
        # ``JudgeRequest.spent`` lacks calls in flight, what nobody told, and what was told since it was read.
        self._responses: OrderedDict[str, _Response] = OrderedDict()

    def reserve(self, request: JudgeRequest, expected: Usage) -> Reservation:
        """Room for one call for ``request``; raises BudgetExhausted when a bound leaves none."""
        amount = _Amount.of(expected)
        second = int(self._clock())
        spent = _Amount.of(request.spent)
        response = self._response(request.response_id, spent, second)
        _check(self._settings.per_response, response.booked.most(spent), amount, "per response")
        _check(self._settings.per_minute, self._all.sum(second), amount, "per minute")
        tenant = self._tenant(request.tenant)
        _check(self._settings.per_tenant_minute, tenant.sum(second), amount, "of the tenant per minute")
        self._all.add(second, amount)
        tenant.add(second, amount)
        response.booked = response.booked.plus(amount)
        return Reservation(response, request.tenant, amount, second)

    def settle(self, reservation: Reservation, usage: Usage) -> None:
        """Book what the call took in place of what was expected."""
        difference = _Amount.of(usage).minus(reservation.expected)
        self._all.add(reservation.second, difference)
        self._tenant(reservation.tenant).add(reservation.second, difference)
        reservation.response.booked = reservation.response.booked.plus(difference)

    def _response(self, response_id: str, spent: _Amount, second: int) -> _Response:
        """The tally of a response; those that nobody has asked for in a while are forgotten."""
        while self._responses:
            oldest = next(iter(self._responses.values()))
            if oldest.second > second - _RESPONSE_KEPT_S and len(self._responses) <= _MOST_RESPONSES:
                break
            self._responses.popitem(last=False)
        response = self._responses.get(response_id)
        if response is None:
            response = self._responses[response_id] = _Response(spent, second)
        response.second = second
        self._responses.move_to_end(response_id)
        return response

    def _tenant(self, tenant: str | None) -> _Window:
        window = self._tenants.get(tenant)
        if window is None:
            window = self._tenants[tenant] = _Window()
            if len(self._tenants) > _MOST_TENANTS:
                self._tenants.popitem(last=False)
        self._tenants.move_to_end(tenant)
        return window


class _Window:
    """Amounts of the last 60 seconds, kept by the second: at most 61 entries."""

    __slots__ = ("_seconds", "_sum")

    def __init__(self) -> None:
        self._seconds: deque[tuple[int, _Amount]] = deque()
        self._sum = _NOTHING

    def sum(self, now: int) -> _Amount:
        while self._seconds and self._seconds[0][0] <= now - _WINDOW_S:
            self._sum = self._sum.minus(self._seconds.popleft()[1])
        if not self._seconds:
            self._sum = _NOTHING  # sums of floats do not come back to zero by themselves
        return self._sum

    def add(self, second: int, amount: _Amount) -> None:
        """Add to a second that is the latest or still in the window; to one that has left it, nothing."""
        if not self._seconds or self._seconds[-1][0] < second:
            self._seconds.append((second, amount))
            self._sum = self._sum.plus(amount)
            return
        for place in range(len(self._seconds) - 1, -1, -1):
            if self._seconds[place][0] == second:
                self._seconds[place] = (second, self._seconds[place][1].plus(amount))
                self._sum = self._sum.plus(amount)
                return


def _check(bounds: ResponseBudget, spent: _Amount, expected: _Amount, whose: str) -> None:
    for unit in ("calls", "tokens", "usd"):
        bound = getattr(bounds, unit, None)
        if bound is None:
            continue
        used, more = getattr(spent, unit), getattr(expected, unit)
        if used + more > bound:
            raise BudgetExhausted(
                f"budget {whose} used up: {_shown(used)} of {_shown(bound)} {unit}, "
                f"about {_shown(more)} more needed"
            )


def _shown(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:.4f}"
