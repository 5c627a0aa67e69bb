"""What models cost, by the names that servers and providers give them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from guardrail.log_events import EventLog

_log = EventLog(__name__)
_PER: Final = 1_000_000
_MOST_WARNINGS: Final = 100
# What gateways put behind a model: OpenRouter's routes, Ollama's default tag.
_ROUTE: Final = re.compile(r":(?:latest|free|nitro|floor|extended|beta|exacto|online|thinking)$")
# gpt-4o-2024-08-06, claude-3-5-sonnet-20241022, …@20241022, gpt-4-0613, gemini-2.0-flash-001, …-latest
_DATE: Final = re.compile(r"[-@](?:20\d\d-?[01]\d-?[0-3]\d|\d{4}|00\d|latest)(?:-v\d:\d)?$")

UsdPerMillion = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class ModelPrice(BaseModel):
    """Prices of one model, in US dollars per million tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

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
