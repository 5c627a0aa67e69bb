"""Draws the panels of the dashboard from a running Prometheus: docs/dashboard.png. Grafana can't be had here.

python -m scripts.dashboard_picture --prometheus http://localhost:9090 --minutes 10
"""

from __future__ import annotations

import argparse
import json
import math
import time
import urllib.parse
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import dates
from matplotlib import pyplot as plt

from scripts.dashboard import dashboard

TARGET: Final = Path(__file__).parent.parent / "docs" / "dashboard.png"
_COLUMNS: Final = 3
_STEPS: Final = 120


def series(prometheus: str, query: str, seconds: float) -> list[dict[str, Any]]:
    """What Prometheus has for a query, over the last ``seconds``."""
    end = time.time()
    expr = query.replace("$namespace", ".*").replace("$job", ".*").replace("$__rate_interval", "30s")
    asked = {"query": expr, "start": end - seconds, "end": end, "step": max(1.0, seconds / _STEPS)}
    url = f"{prometheus}/api/v1/query_range?{urllib.parse.urlencode(asked)}"
    with urllib.request.urlopen(url, timeout=10) as reply:  # noqa: S310 - the address is the caller's
        found: list[dict[str, Any]] = json.load(reply)["data"]["result"]
    return found


def legend(form: str, labels: dict[str, str]) -> str:
    """Grafana's form with the labels put in."""
    for name, value in labels.items():
        form = form.replace(f"{{{{{name}}}}}", value)
    return form if len(form) <= 40 else f"{form[:39]}…"


def draw(prometheus: str, seconds: float, target: Path) -> int:
    """Draw all panels; gives how many have data."""
    panels = [panel for panel in dashboard()["panels"] if panel["type"] != "row"]
    rows = math.ceil(len(panels) / _COLUMNS)
    figure, axes = plt.subplots(rows, _COLUMNS, figsize=(18, 2.9 * rows), layout="constrained")
    drawn = 0
    time_of_day: Any = dates.DateFormatter  # has no types where matplotlib is installed
    for axis, panel in zip(axes.flat, panels, strict=False):
        axis.set_title(panel["title"], fontsize=10, loc="left")
        lines = 0
        for target_ in panel["targets"]:
            for one in series(prometheus, target_["expr"], seconds):
                points = [(float(at), float(value)) for at, value in one["values"]]
                times = [datetime.fromtimestamp(at, UTC) for at, _ in points]
                label = legend(target_["legendFormat"], one["metric"])
                axis.plot(times, [value for _, value in points], linewidth=1.3, label=label)
                lines += 1
        if lines:
            axis.legend(fontsize=7, loc="upper left", framealpha=0.6)
            axis.set_ylim(bottom=0)
            drawn += 1
        else:
            axis.text(0.5, 0.5, "no data", ha="center", va="center", color="grey", transform=axis.transAxes)
        axis.xaxis.set_major_formatter(time_of_day("%H:%M"))
        unit = panel["fieldConfig"]["defaults"]["unit"]
        if unit == "percentunit":
            axis.yaxis.set_major_formatter(mpl.ticker.PercentFormatter(1.0))
        elif unit == "s":
            axis.yaxis.set_major_formatter(mpl.ticker.EngFormatter("s"))
        axis.tick_params(labelsize=8)
        axis.grid(alpha=0.25)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    for axis in list(axes.flat)[len(panels) :]:
        axis.remove()
    figure.savefig(target, dpi=70)
    return drawn


def main() -> None:
    """Parse the arguments and draw."""
    parser = argparse.ArgumentParser(description="Draw the dashboard's panels from a running Prometheus.")
    parser.add_argument("--prometheus", default="http://localhost:9090")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--out", type=Path, default=TARGET)
    arguments = parser.parse_args()
    print(f"{draw(arguments.prometheus, arguments.minutes * 60, arguments.out)} panels with data")  # noqa: T201


if __name__ == "__main__":
    main()
