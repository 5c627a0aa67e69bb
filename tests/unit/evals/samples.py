"""What files hold, as samples."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from guardrail.evals import BadSample, Sample
from guardrail.evals.formats import samples_in


def samples(data: bytes | str, name: str = "", source_format: Any = "auto") -> list[Sample | BadSample]:
    raw = data.encode() if isinstance(data, str) else data
    return list(samples_in(io.BytesIO(raw), Path(name) if name else None, source_format))


def only(data: bytes | str, name: str = "", source_format: Any = "auto") -> Sample:
    (found,) = samples(data, name, source_format)
    assert isinstance(found, Sample), found.error
    return found


def lines(*rows: Mapping[str, Any]) -> str:
    return "\n".join(json.dumps(row) for row in rows)
