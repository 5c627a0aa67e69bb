"""What judging consumes: prices, usage, budgets, and which judge answers when a budget is used up.

A call is admitted by its expected usage and booked by its actual usage. If the actual usage is never reported
(the call was cancelled, or failed without reporting it), the expected usage stays booked, because providers
bill such calls too. Budgets limit a response, a minute, and a tenant's minute; all counts are per process.
The ledger records tokens and cost by tenant, model and UTC day.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from operator import add, sub
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import Field

from guardrail import telemetry
from guardrail.errors import JudgeError, JudgeUnavailable
from guardrail.events import Usage
from guardrail.frozen import Frozen
from guardrail.judges.base import Around, Judge, JudgeRequest, Meter
from guardrail.judges.streams import closing
from guardrail.limits import ResponseBudget
from guardrail.log_events import EventLog
from guardrail.printable import escape_controls, shorten
from guardrail.verdicts import Judgement, total

_log = EventLog(__name__)

# ---------------------------------------- what models cost, by the names that servers and providers give them

_PER: Final = 1_000_000
_MOST_WARNINGS: Final = 100
# What gateways put behind a model: OpenRouter's routes, Ollama's default tag.
_ROUTE: Final = re.compile(r":(?:latest|free|nitro|floor|extended|beta|exacto|online|thinking)$")
# gpt-4o-2024-08-06, claude-3-5-sonnet-20241022, …@20241022, gpt-4-0613, gemini-2.0-flash-001, …-latest
_DATE: Final = re.compile(r"[-@](?:20\d\d-?[01]\d-?[0-3]\d|\d{4}|00\d|latest)(?:-v\d:\d)?$")

UsdPerMillion = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class ModelPrice(Frozen):
    """Prices of one model, in US dollars per million tokens."""

    input: UsdPerMillion = Field(description="USD per million input tokens.")
    cached_input: UsdPerMillion | None = Field(
        default=None,
        description="USD per million input tokens from the provider's cache; null: same as input.",
    )
    output: UsdPerMillion = Field(description="USD per million output tokens.")

    def usd(self, input_tokens: int, cached_input_tokens: int, output_tokens: int) -> float:
        """The cost in US dollars; ``input_tokens`` include the cached ones."""
        cached = min(max(0, cached_input_tokens), max(0, input_tokens))
        cached_price = self.input if self.cached_input is None else self.cached_input
        fresh = max(0, input_tokens) - cached
        total = fresh * self.input + cached * cached_price + max(0, output_tokens) * self.output
        return total / _PER


def _plain(name: str) -> str:
    """The name in lower case without provider, organisation and route."""
    return _ROUTE.sub("", name.strip().lower().rsplit("/", 1)[-1])


def _undated(name: str) -> str:
    return _DATE.sub("", _plain(name))


class PriceTable:
    """Prices by model. A name is looked up as it is, then without its provider, then without its date.

    If a model only has prices under dated names and none has the date asked for, the highest of them applies:
    it is safer for a budget to end early than late.
    """

    def __init__(self, prices: Mapping[str, ModelPrice] | None = None) -> None:
        self._exact = dict(prices or {})
        self._plain = _dearest(self._exact, _plain)
        priced_undated = {
            name: price for name, price in self._exact.items() if _undated(name) == _plain(name)
        }
        self._undated = _dearest(self._exact, _undated) | _dearest(priced_undated, _undated)
        self._warned: set[str] = set()

    def price(self, model: str) -> ModelPrice | None:
        """The price of a model; None if unknown."""
        return self._exact.get(model) or self._plain.get(_plain(model)) or self._undated.get(_undated(model))

    def cost_usd(self, model: str, input_tokens: int, cached_input_tokens: int, output_tokens: int) -> float:
        """What the tokens cost in US dollars; ``input_tokens`` include ``cached_input_tokens``.

        0.0 for a model without a price, with a warning the first time.
        """
        price = self.price(model)
        if price is not None:
            return price.usd(input_tokens, cached_input_tokens, output_tokens)
        if model not in self._warned and len(self._warned) < _MOST_WARNINGS:
            self._warned.add(model)
            _log.warning(
                "judge.price_unknown",
                model=model,
                effect="its calls count as free of cost",
                remedy="add judge.prices",
            )
        return 0.0


def _dearest(prices: Mapping[str, ModelPrice], key: Callable[[str], str]) -> dict[str, ModelPrice]:
    """The prices by ``key`` of their names; where several names have one key, the highest."""
    rising = sorted(prices.items(), key=lambda item: item[1].input + item[1].output)
    return {key(name): price for name, price in rising}


_MOST_TOKENS: Final = 1_000_000_000  # of one call


def reported_usage(model: str, told: object, prices: PriceTable | None) -> Usage | None:
    """The usage that a server reports by OpenAI's names, of chats or of decisions; None if it reports none:
    nothing is guessed.
    """
    if not isinstance(told, Mapping):
        return None
    details = told.get("prompt_tokens_details") or told.get("input_tokens_details")
    read = _count(told.get("prompt_tokens", told.get("input_tokens")))
    written = _count(told.get("completion_tokens", told.get("output_tokens")))
    cached = min(read, _count(details.get("cached_tokens"))) if isinstance(details, Mapping) else 0
    cost = 0.0 if prices is None else prices.cost_usd(model, read, cached, written)
    return Usage(input_tokens=read, cached_input_tokens=cached, output_tokens=written, cost_usd=cost)


def _count(value: object) -> int:
    """A number of tokens from a server's report, or 0 if it can't be one."""
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 < value <= _MOST_TOKENS else 0


# ------------------------------------------------------------------------------------------------- the ledger

OTHERS: Final = "(others)"
"""The tenant under which usage is counted once there are more rows than the ledger keeps."""
_DAYS_KEPT: Final = 31
_NAME_CHARS: Final = 120


@dataclass(frozen=True, slots=True, order=True)
class LedgerKey:
    """One row of the ledger. ``tenant`` is empty if the responses name none."""

    day: date
    tenant: str
    model: str


class UsageLedger:
    """Sums in memory, bounded: rows by day, tenant and model; days older than a month are dropped.

    The increase since the last time is logged as ``judge.usage``, one line per row, when the interval has
    passed and by ``flush``. The lines of a day add up to its usage, across restarts too. They contain names
    of tenants and models, and numbers; no texts.
    """

    def __init__(
        self,
        *,
        log_interval_s: float = 300.0,
        max_rows: int = 10_000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``clock`` is seconds since 1970 UTC."""
        self._interval = log_interval_s
        self._max_rows = max_rows
        self._clock = clock
        self._rows: dict[LedgerKey, Usage] = {}
        self._unlogged: dict[LedgerKey, Usage] = {}
        self._logged_at = clock()

    def add(self, tenant: str | None, model: str, usage: Usage) -> None:
        """Count ``usage``, as of now."""
        if usage == Usage():
            return
        telemetry.count_usage(model, usage)
        now = self._clock()
        day = datetime.fromtimestamp(now, UTC).date()
        key = LedgerKey(day, tenant or "", model)
        if key not in self._rows and len(self._rows) >= self._max_rows:
            self._forget(day)
            if len(self._rows) >= self._max_rows:
                key = LedgerKey(day, OTHERS, OTHERS)
        self._rows[key] = total(self._rows.get(key, Usage()), usage)
        self._unlogged[key] = total(self._unlogged.get(key, Usage()), usage)
        if now - self._logged_at >= self._interval:
            self.flush()

    def rows(self) -> dict[LedgerKey, Usage]:
        """All rows, ordered by day, tenant and model."""
        return dict(sorted(self._rows.items()))

    def total(self, *, day: date | None = None, tenant: str | None = None, model: str | None = None) -> Usage:
        """The sum of the matching rows; an omitted criterion matches all."""
        return total(
            *(
                usage
                for key, usage in self._rows.items()
                if day in (None, key.day) and tenant in (None, key.tenant) and model in (None, key.model)
            )
        )

    def flush(self) -> None:
        """Log the increase since the last time."""
        now = self._clock()
        self._logged_at = now
        unlogged, self._unlogged = self._unlogged, {}
        for key, usage in sorted(unlogged.items()):
            _log.info(
                "judge.usage",
                day=key.day.isoformat(),
                tenant=_listed(key.tenant),
                model=_listed(key.model),
                calls=usage.judge_calls,
                input_tokens=usage.input_tokens,
                cached_input_tokens=usage.cached_input_tokens,
                output_tokens=usage.output_tokens,
                cost_usd=round(usage.cost_usd, 6),
            )
        self._forget(datetime.fromtimestamp(now, UTC).date())

    def _forget(self, today: date) -> None:
        oldest = today - timedelta(days=_DAYS_KEPT)
        for key in [key for key in self._rows if key.day < oldest]:
            del self._rows[key]


def _listed(name: str) -> str:
    """A name that can't forge a log line."""
    return shorten(escape_controls(name), _NAME_CHARS)


# ---------------------------------------------------------------------------------------------------- budgets

_MINUTE_S: Final = 60
_MOST_TALLIES: Final = 20_000
_TALLY_KEPT_S: Final = 300


class BudgetExhausted(JudgeUnavailable):
    """A call was not made because a budget has no room for it. The message names the budget."""


class MinuteBudget(ResponseBudget):
    """Limits for any 60 seconds."""

    calls: Annotated[int, Field(gt=0)] | None = Field(
        default=None, description="Calls, including failed ones."
    )


class BudgetSettings(Frozen):
    """Limits on what the LLM judge consumes, per process; null means no limit. A policy's ``budget`` limits
    each response.
    """

    per_minute: MinuteBudget = Field(
        default_factory=MinuteBudget, description="Bounds for all responses together."
    )
    per_tenant_minute: MinuteBudget = Field(
        default_factory=MinuteBudget, description="Bounds for the responses of each tenant."
    )
    on_budget: Literal["local", "unverified"] = Field(
        default="local",
        description="With kind llm, what claims get when a budget is used up: the local judge's "
        "verdict, or UNVERIFIED. With kind cascade, cascade.on_unavailable decides.",
    )

    @property
    def bounded(self) -> bool:
        """Whether there is any limit."""
        return any(
            value is not None
            for part in (self.per_minute, self.per_tenant_minute)
            for value in part.model_dump().values()
        )

    @property
    def needs_prices(self) -> bool:
        """Whether any limit is in US dollars."""
        return any(part.usd is not None for part in (self.per_minute, self.per_tenant_minute))


class _Amounts(NamedTuple):
    """What limits are in. Negative ones take back what was booked."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0

    @staticmethod
    def of(usage: Usage) -> _Amounts:
        tokens = max(0, usage.input_tokens) + max(0, usage.output_tokens)
        return _Amounts(max(0, usage.judge_calls), tokens, max(0.0, usage.cost_usd))

    def plus(self, other: _Amounts) -> _Amounts:
        return _Amounts(*map(add, self, other))

    def less(self, other: _Amounts) -> _Amounts:
        return _Amounts(*map(sub, self, other))

    def most(self, other: _Amounts) -> _Amounts:
        return _Amounts(
            max(self.calls, other.calls), max(self.tokens, other.tokens), max(self.usd, other.usd)
        )


class _Tally:
    """What was booked for a response since its begin, or for all or a tenant in the last minute."""

    __slots__ = ("_seconds", "_sum", "_window_s", "used_at")

    def __init__(self, second: int, window_s: float, booked: _Amounts | None = None) -> None:
        """``booked``: before this process first saw it."""
        self.used_at = second
        self._window_s = window_s
        # Ascending; at most 61 within a minute, and one in a window without end.
        self._seconds = {second: booked or _Amounts()}
        self._sum = booked or _Amounts()

    def total(self, now: int) -> _Amounts:
        while self._seconds and (oldest := next(iter(self._seconds))) <= now - self._window_s:
            self._sum = self._sum.less(self._seconds.pop(oldest))
        if not self._seconds:
            self._sum = _Amounts()  # sums of floats don't return to zero by themselves
        return self._sum

    def add(self, second: int, amount: _Amounts) -> None:
        """Add to the latest second or one that is still in the window; ignore one that has left it."""
        latest = next(reversed(self._seconds), -1)
        if math.isinf(self._window_s):
            second = latest  # nothing leaves such a window: it need not be known when it came
        if second in self._seconds or second > latest:
            self._seconds[second] = self._seconds.get(second, _Amounts()).plus(amount)
            self._sum = self._sum.plus(amount)


@dataclass(frozen=True, slots=True)
class Reservation:
    """A call's share of the budgets, from before it is made until its usage is known."""

    tallies: tuple[_Tally, ...]
    expected: _Amounts
    second: int

    def settle(self, usage: Usage) -> None:
        """Book the call's actual usage in place of the expected one."""
        for tally in self.tallies:
            tally.add(self.second, _Amounts.of(usage).less(self.expected))


class Budget:
    """Counts against all limits. Not thread-safe: for one event loop, without awaits inside."""

    def __init__(self, settings: BudgetSettings, *, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` gives seconds and never goes back."""
        self._settings = settings
        self._clock = clock
        self._all = _Tally(int(clock()), _MINUTE_S)
        self._tenants: OrderedDict[str | None, _Tally] = OrderedDict()
        # ``JudgeRequest.spent`` lacks calls in flight, usage that nobody reported, and later reports.
        self._responses: OrderedDict[str | None, _Tally] = OrderedDict()

    def reserve(self, request: JudgeRequest, expected: Usage) -> Reservation:
        """Reserve room for one call for ``request``. Raises BudgetExhausted if a limit leaves none."""
        amount, spent = _Amounts.of(expected), _Amounts.of(request.spent)
        second = int(self._clock())
        response = _used(self._responses, request.response_id, second) or _Tally(second, math.inf, spent)
        tenant = _used(self._tenants, request.tenant, second) or _Tally(second, _MINUTE_S)
        limits = (
            (request.budget or ResponseBudget(), response.total(second).most(spent), "per response"),
            (self._settings.per_minute, self._all.total(second), "per minute"),
            (self._settings.per_tenant_minute, tenant.total(second), "of the tenant per minute"),
        )
        for bounds, used, whose in limits:
            _check(bounds, used, amount, whose)
        self._responses[request.response_id] = response
        self._tenants[request.tenant] = tenant
        tallies = (response, self._all, tenant)
        for tally in tallies:
            tally.add(second, amount)
        return Reservation(tallies, amount, second)


def _used(tallies: OrderedDict[str | None, _Tally], name: str | None, second: int) -> _Tally | None:
    """The tally of that name, if there is one, as the latest used; those unused for long are dropped."""
    while tallies:
        oldest = next(iter(tallies.values()))
        if oldest.used_at > second - _TALLY_KEPT_S and len(tallies) < _MOST_TALLIES:
            break
        tallies.popitem(last=False)
    tally = tallies.get(name)
    if tally is not None:
        tally.used_at = second
        tallies.move_to_end(name)
    return tally


def _check(bounds: ResponseBudget, spent: _Amounts, expected: _Amounts, whose: str) -> None:
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


# --------------------------------------------------------------------------------------- judges that are paid

_CHARS_PER_TOKEN = 4
_PROMPT_TOKENS = 600
_OUTPUT_TOKENS_PER_CLAIM = 60


class MeteredJudge(Around):
    """A Judge around one that is paid per token.

    ``judge`` raises BudgetExhausted without asking if a budget has no room for the call. Further calls for
    the same request need room likewise (``Meter.admit``).
    """

    def __init__(
        self,
        judge: Judge,
        model: str,
        *,
        budget: Budget,
        ledger: UsageLedger,
        prices: PriceTable,
        max_context_chars: int,
    ) -> None:
        """Takes over ``judge``, and closes it; ``max_context_chars`` is the most context that it sends.

        ``prices`` give the expected cost of a call of ``model``. The judge reports the actual cost: only it
        knows which model answered, and 0 may be that model's price.
        """
        super().__init__(judge)
        self._model = model
        self._budget = budget
        self._ledger = ledger
        self._prices = prices
        self._max_context_chars = max_context_chars

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """Yields the judge's judgements. Raises what the judge raises, and BudgetExhausted."""
        if not request.claims:
            return
        calls = BookedCalls(request, self._budget, self._expected(request), self._ledger, self._model)
        try:
            async with closing(self._judge.judge(replace(request, meter=calls))) as judgements:
                async for judgement in judgements:
                    yield judgement
        except (asyncio.CancelledError, GeneratorExit):
            if not calls.counts:
                # An early verdict or the deadline ends calls under way, and those are billed too.
                calls.add(Usage(judge_calls=1))
            calls.settle()
            raise
        except JudgeError:
            if calls.counts:
                calls.settle()
            raise
        calls.settle()

    async def aclose(self) -> None:
        """Log what is not logged yet, and close the judge."""
        self._ledger.flush()
        await super().aclose()

    def _expected(self, request: JudgeRequest) -> Usage:
        """Roughly what a call takes: English has about four characters per token."""
        contexts = sum(len(context.text) for context in request.evidence.contexts)
        chars = min(contexts, self._max_context_chars) + len(request.question)
        chars += sum(len(claim.prose.text) + len(claim.lead_in) for claim in request.claims.values())
        read = _PROMPT_TOKENS + chars // _CHARS_PER_TOKEN
        written = _OUTPUT_TOKENS_PER_CLAIM * len(request.claims)
        cost = self._prices.cost_usd(self._model, read, 0, written)
        return Usage(judge_calls=1, input_tokens=read, output_tokens=written, cost_usd=cost)


class BookedCalls(Meter):
    """The calls made for one request: their reservations, and their rows in the ledger."""

    def __init__(
        self, request: JudgeRequest, budget: Budget, expected: Usage, ledger: UsageLedger, model: str
    ) -> None:
        """Reserves room for the first call. Raises BudgetExhausted."""
        super().__init__(request.meter)
        self._request = request
        self._budget = budget
        self._expected = expected
        self._ledger = ledger
        self._model = model
        self._reserved: list[Reservation] = []
        self._admitted = 0
        self._reserve()

    def admit(self) -> None:
        """Reserve room for one more call. Raises BudgetExhausted."""
        super().admit()
        if self._admitted == len(self._reserved):
            self._reserve()
        self._admitted += 1

    def add(self, usage: Usage, model: str = "") -> None:
        """Book usage under the model that caused it."""
        super().add(usage, model)
        self._ledger.add(self._request.tenant, model or self._model, usage)

    def settle(self) -> None:
        """Book what all calls took, as of the last one, so that none expires before the request ends."""
        *others, last = self._reserved
        for reservation in others:
            reservation.settle(Usage())
        last.settle(_assumed(self.usage, self._expected))

    def _reserve(self) -> None:
        try:
            self._reserved.append(self._budget.reserve(self._request, self._expected))
        except BudgetExhausted:
            self.add(Usage())  # known: no call was made
            raise


def _assumed(told: Usage, expected: Usage) -> Usage:
    """What budgets count: if a server reports no tokens for its calls, they count as expected."""
    calls = told.judge_calls
    if calls <= 0 or told.input_tokens:
        return told
    return told.model_copy(
        update={
            "input_tokens": expected.input_tokens * calls,
            "output_tokens": max(told.output_tokens, expected.output_tokens * calls),
            "cost_usd": max(told.cost_usd, expected.cost_usd * calls),
        }
    )
