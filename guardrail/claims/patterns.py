"""Regular expressions that an operator wrote."""

from __future__ import annotations

import re
import warnings


def compile_quietly(pattern: str) -> re.Pattern[str]:
    """The pattern, ignoring case. Raises ValueError for one that is no regular expression.

    Python's warnings ("Possible nested set") would stand on the console beside the message, without saying
    which setting they mean.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(pattern, re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
