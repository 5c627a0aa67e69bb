"""What settings and other data that people write have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """Values that don't change, and of which every name must be known: a misspelt one is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)
