"""Writes the table of metrics in docs/telemetry.md from guardrail/telemetry.py.

python scripts/metrics_table.py
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from guardrail import telemetry

PAGE: Final = Path(__file__).parent.parent / "docs" / "telemetry.md"
_EMPTY: Final = telemetry.GuardState(0, 0, 0, 0, 0, saturated=False, oldest_held_s=0.0, partitions=())
_TABLE: Final = re.compile(r"(?:METRICS|\| metric \|.*?)(?=\n\n)", re.DOTALL)


def table() -> str:
    """A row for each metric: name as it is queried, labels, meaning."""
    telemetry.serve_state(lambda: _EMPTY)
    rows = ["| metric | labels | what |", "| --- | --- | --- |"]
    try:
        for family in sorted(telemetry.REGISTRY.collect(), key=lambda each: each.name):
            if not family.name.startswith("guardrail_"):
                continue  # the process's own, which depend on the platform
            name = f"{family.name}_total" if family.type == "counter" else family.name
            rows.append(f"| `{name}` ({family.type}) | {_labels(family.name)} | {family.documentation} |")
    finally:
        telemetry.serve_state(None)
    return "\n".join(rows)


def _labels(name: str) -> str:
    for value in vars(telemetry).values():
        if getattr(value, "_name", None) == name:
            return ", ".join(f"`{label}`" for label in value._labelnames)
    return {"guardrail_partitions": "`state`", "guardrail_partition_lag_records": "`topic`, `partition`"}.get(
        name, ""
    )


def written(page: str) -> str:
    """The page with the table as it is now."""
    return _TABLE.sub(lambda _: table(), page, count=1)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
