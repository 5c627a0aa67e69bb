"""Settings that may hold a secret without being one: told in full to nobody but who fingerprints them."""

from __future__ import annotations

from typing import Any, Final

MASK: Final = "**********"
WHOLE: Final = {"hidden_settings": True}
"""The context of ``model_dump(mode="json")`` that leaves nothing out; what it gives is not to be shown."""


def wants_all(info: Any) -> bool:
    """Whether a serializer's ``info`` has the context ``WHOLE``."""
    return isinstance(info.context, dict) and bool(info.context.get("hidden_settings"))
