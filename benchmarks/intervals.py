"""How sure a measured share is."""

from __future__ import annotations

import math
from typing import Final

Z_95: Final = 1.959964  # two-sided 95 % of the normal distribution


def wilson(hits: int, of: int) -> tuple[float, float]:
    """The Wilson score interval (95 %) of the share ``hits / of``; (0, 1) when nothing was measured."""
    if not 0 <= hits <= of:
        raise ValueError(f"hits {hits} of {of}: hits must be from 0 to the number of trials")
    if of == 0:
        return 0.0, 1.0
    share = hits / of
    scale = 1 + Z_95**2 / of
    centre = share + Z_95**2 / (2 * of)
    reach = Z_95 * math.sqrt(share * (1 - share) / of + Z_95**2 / (4 * of**2))
    return max(0.0, (centre - reach) / scale), min(1.0, (centre + reach) / scale)
