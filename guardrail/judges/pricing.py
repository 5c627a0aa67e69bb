"""What calls to a model cost, by the prices in the configuration."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from guardrail.judges.model_names import canonical, plain

_log = logging.getLogger(__name__)
_PER: Final = 1_000_000
_MOST_WARNINGS: Final = 100

UsdPerMillion = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class ModelPrice(BaseModel):
    """Prices of one model, in US dollars per million tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: UsdPerMillion = Field(description="USD per million input tokens.")
    cached_input: UsdPerMillion | None = Field(
        default=None,
        description="USD per million input tokens that the provider's cache held; null: as input.",
    )
    output: UsdPerMillion = Field(description="USD per million output tokens.")

    def usd(self, input_tokens: int, cached_input_tokens: int, output_tokens: int) -> float:
        """The cost in US dollars; the cached tokens are among ``input_tokens``."""
        cached = min(max(0, cached_input_tokens), max(0, input_tokens))
        cached_price = self.input if self.cached_input is None else self.cached_input
        fresh = max(0, input_tokens) - cached
        total = fresh * self.input + cached * cached_price + max(0, output_tokens) * self.output
        return total / _PER


class PriceTable:
    """Prices by model. A name is looked up as it stands, then without its provider, then without its date.

    Where only dated names of a model are priced and another date is asked for, the dearest of them holds:
    a budget had better end early than late.
    """

    def __init__(self, prices: Mapping[str, ModelPrice] | None = None) -> None:
        self._exact = dict(prices or {})
        self._plain: dict[str, ModelPrice] = {}
        self._canonical: dict[str, ModelPrice] = {}
        for name, price in self._exact.items():
            self._plain[plain(name)] = _dearer(price, self._plain.get(plain(name)))
        undated = {canonical(name): name for name in self._exact if _bare(plain(name)) == canonical(name)}
        for name, price in self._exact.items():
            key = canonical(name)
            if undated.get(key, name) == name:
                self._canonical[key] = _dearer(price, self._canonical.get(key))
        self._warned: set[str] = set()

    def price(self, model: str) -> ModelPrice | None:
        """The price of a model, None where none is known."""
        return (
            self._exact.get(model) or self._plain.get(plain(model)) or self._canonical.get(canonical(model))
        )

    def cost_usd(self, model: str, input_tokens: int, cached_input_tokens: int, output_tokens: int) -> float:
        """What the tokens cost in US dollars; ``cached_input_tokens`` are among ``input_tokens``.

        0.0 for a model without a price, and a warning the first time.
        """
        price = self.price(model)
        if price is not None:
            return price.usd(input_tokens, cached_input_tokens, output_tokens)
        if model not in self._warned and len(self._warned) < _MOST_WARNINGS:
            self._warned.add(model)
            _log.warning(
                "no price is known for the model %r: its calls count as free of cost; add judge.prices", model
            )
        return 0.0


def _bare(name: str) -> str:
    return "".join(char for char in name if char.isalnum())


def _dearer(price: ModelPrice, other: ModelPrice | None) -> ModelPrice:
    return price if other is None or price.input + price.output >= other.input + other.output else other
