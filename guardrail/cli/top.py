"""``guardrail top``: guards live in a terminal, from their metrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.text import Text

from guardrail.cli.options import argument, option
from guardrail.cli.terminal import out, safe
from guardrail.printable import escape_controls
from guardrail.render import duration, percent

if TYPE_CHECKING:
    import httpx2
    from rich.console import RenderableType

EPILOG = """[bold]Examples[/]

guardrail top

guardrail top http://guard-0:8080 http://guard-1:8080

guardrail top --once http://localhost:8080"""

_TIMEOUT_S: Final = 2.0
_WHOLE_S: Final = 5.0
_MOST_BYTES: Final = 4 * 1024 * 1024
Labels = frozenset[tuple[str, str]]


def top_command(
    urls: Annotated[
        list[str] | None, argument("[URL]...", "Where guards serve their metrics (ops.host and ops.port).")
    ] = None,
    interval_s: Annotated[
        float, option("--interval -n SECONDS", "Between readings.", min=0.2, max=3600)
    ] = 2.0,
    once: Annotated[
        bool, option("--once", "Print one table, of the rates between two readings, and end.")
    ] = False,
) -> None:
    """Show guards live: answers, decisions, delays, queues, what fails. Ctrl-C ends it.

    Rates are of the time between two readings. With --once the status is 1 where a guard does not answer.
    """
    with suppress(KeyboardInterrupt):
        raise typer.Exit(asyncio.run(_watch(urls or ["http://localhost:8080"], interval_s, once=once)))


@dataclass(slots=True)
class Scrape:
    """The samples of one guard at one moment, or why there are none."""

    at: float
    samples: Mapping[str, Mapping[Labels, float]] = field(default_factory=dict)
    ready: bool = False
    problem: str = ""

    def total(self, name: str, **labels: str) -> float:
        """The sum of a metric over all its labels but those given."""
        wanted = set(labels.items())
        return sum(value for found, value in self.samples.get(name, {}).items() if wanted <= found)

    def known(self, name: str) -> float | None:
        """The greatest value of a gauge; None where it is absent."""
        return max(self.samples.get(name, {}).values(), default=None)


async def _watch(urls: Sequence[str], interval_s: float, *, once: bool) -> int:
    import httpx2
    from rich.live import Live

    console = out()
    async with httpx2.AsyncClient(timeout=_TIMEOUT_S) as client:
        before = await _read_all(client, urls)
        if once:
            await asyncio.sleep(interval_s)
            now = await _read_all(client, urls)
            console.print(view(urls, before, now))
            return 1 if any(reading.problem for reading in now) else 0
        with Live(view(urls, before, before), console=console, auto_refresh=False) as live:
            while True:
                await asyncio.sleep(interval_s)
                now = await _read_all(client, urls)
                live.update(view(urls, before, now), refresh=True)
                before = now


async def _read_all(client: httpx2.AsyncClient, urls: Sequence[str]) -> list[Scrape]:
    roots = [url.rstrip("/").removesuffix("/metrics") for url in urls]
    return list(await asyncio.gather(*(_read(client, root) for root in roots)))


async def _read(client: httpx2.AsyncClient, url: str) -> Scrape:
    import httpx2
    from prometheus_client.parser import text_string_to_metric_families

    at = time.monotonic()
    try:
        async with asyncio.timeout(_WHOLE_S):
            status, text = await _get(client, f"{url}/metrics")
        if status != 200:
            return Scrape(at, problem=f"HTTP {status} from {url}/metrics")
        samples: dict[str, dict[Labels, float]] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                samples.setdefault(sample.name, {})[frozenset(sample.labels.items())] = sample.value
        if "guardrail_build_info" not in samples:
            return Scrape(at, problem="no guard: its metrics have no guardrail_build_info")
        async with asyncio.timeout(_WHOLE_S):
            ready = (await _get(client, f"{url}/readyz"))[0] == 200
    except TimeoutError:
        return Scrape(at, problem=f"the answer did not end within {_WHOLE_S:g} s")
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        return Scrape(at, problem=str(error) or type(error).__name__)
    return Scrape(at, samples, ready)


async def _get(client: httpx2.AsyncClient, url: str) -> tuple[int, str]:
    """Status and text. Raises ValueError for more text than a guard's metrics ever are."""
    body = bytearray()
    async with client.stream("GET", url) as reply:
        async for part in reply.aiter_bytes():
            body += part
            if len(body) > _MOST_BYTES:
                raise ValueError(f"no guard: its answer is longer than {_MOST_BYTES // 1024**2} MiB")
    return reply.status_code, body.decode("utf-8", "replace")


def quantile(share: float, before: Scrape, now: Scrape, name: str) -> float | None:
    """The seconds within which ``share`` of what a histogram took between two readings lies.

    Interpolated linearly within its bucket, as Prometheus does; None where it took nothing.
    """
    counts: dict[float, float] = {}
    for labels, value in now.samples.get(f"{name}_bucket", {}).items():
        edge = float(dict(labels)["le"])
        counts[edge] = (
            counts.get(edge, 0.0) + value - before.samples.get(f"{name}_bucket", {}).get(labels, 0.0)
        )
    edges = sorted(counts)
    if not edges or counts[edges[-1]] <= 0:
        return None
    wanted = share * counts[edges[-1]]
    low, below = 0.0, 0.0
    for edge in edges:
        if counts[edge] >= wanted:
            if edge == float("inf"):
                return low
            inside = counts[edge] - below
            return low + (edge - low) * ((wanted - below) / inside if inside else 1.0)
        low, below = edge, counts[edge]
    return low


def _rate(name: str, **labels: str) -> Callable[[Scrape, Scrape], str]:
    def show(before: Scrape, now: Scrape) -> str:
        seconds = now.at - before.at
        count = max(0.0, now.total(name, **labels) - before.total(name, **labels))
        return f"{count / seconds:.1f}" if seconds > 0 else "–"

    return show


def _share(name: str, whole: str, **labels: str) -> Callable[[Scrape, Scrape], str]:
    def show(before: Scrape, now: Scrape) -> str:
        all_ = now.total(whole) - before.total(whole)
        part = now.total(name, **labels) - before.total(name, **labels)
        return percent(part, all_, 0) if all_ > 0 else "–"  # less than before: a guard has restarted

    return show


def _seconds(share: float, name: str) -> Callable[[Scrape, Scrape], str]:
    return lambda before, now: _duration(quantile(share, before, now, name))


def _duration(seconds: float | None) -> str:
    return "–" if seconds is None else duration(1000 * seconds)


def _gauge(name: str) -> Callable[[Scrape, Scrape], str]:
    return lambda _, now: "–" if name not in now.samples else f"{now.total(name):,.0f}"


_COLUMNS: Final[tuple[tuple[str, Callable[[Scrape, Scrape], str]], ...]] = (
    ("partitions", lambda _, now: f"{now.total('guardrail_partitions'):.0f}"),
    ("answers/s", _rate("guardrail_responses_total")),
    ("block", _share("guardrail_responses_total", "guardrail_responses_total", decision="block")),
    ("redact", _share("guardrail_responses_total", "guardrail_responses_total", decision="redact")),
    ("flag", _share("guardrail_responses_total", "guardrail_responses_total", decision="flag")),
    ("claims/s", _rate("guardrail_claims_total")),
    ("not checked", _share("guardrail_unverified_total", "guardrail_claims_total")),
    ("degraded", _share("guardrail_degraded_total", "guardrail_claims_total")),
    ("verdict p50", _seconds(0.5, "guardrail_verdict_seconds")),
    ("p99", _seconds(0.99, "guardrail_verdict_seconds")),
    ("release p99", _seconds(0.99, "guardrail_release_seconds")),
    ("commit p99", _seconds(0.99, "guardrail_commit_seconds")),
    ("in flight", _gauge("guardrail_sessions")),
    ("waiting", _gauge("guardrail_pending_claims")),
    ("oldest", lambda _, now: _duration(now.known("guardrail_oldest_unreleased_seconds"))),
    ("unread", _gauge("guardrail_partition_lag_records")),
    ("dead letters", lambda _, now: f"{now.total('guardrail_dead_letters_total'):,.0f}"),
)


def table(urls: Sequence[str], before: Sequence[Scrape], now: Sequence[Scrape]) -> RenderableType:
    """A column for each guard, so that many figures fit a narrow terminal; those of all together last."""
    from guardrail.render import table as table_of

    shown = table_of("")
    pairs = list(zip(before, now, strict=True))
    for url in urls:
        shown.add_column(safe(url.removeprefix("http://").removeprefix("https://")), justify="right")
    together = [pair for pair in pairs if not pair[1].problem]
    if len(pairs) > 1:
        shown.add_column("all", justify="right")
        pairs.append((_sum([one for one, _ in together]), _sum([one for _, one in together])))
    shown.add_row("state", *(_state(reading) for _, reading in pairs))
    for title, show in _COLUMNS:
        shown.add_row(title, *("" if two.problem else show(one, two) for one, two in pairs))
    return shown


def view(urls: Sequence[str], before: Sequence[Scrape], now: Sequence[Scrape]) -> RenderableType:
    """The table, and below it why a guard has no figures."""
    from rich.console import Group

    problems = [
        Text(f"{escape_controls(url)}: {escape_controls(reading.problem)}", style="red")
        for url, reading in zip(urls, now, strict=True)
        if reading.problem
    ]
    return Group(table(urls, before, now), *problems)


def _state(reading: Scrape) -> str:
    if reading.problem:
        return "[red]away[/]"
    if reading.total("guardrail_saturated"):
        return "[yellow]full[/]"
    if reading.total("guardrail_judge_behind"):
        return "[yellow]behind[/]"
    return "[green]ready[/]" if reading.ready else "[yellow]waits[/]"


def _sum(readings: Sequence[Scrape]) -> Scrape:
    samples: dict[str, dict[Labels, float]] = {}
    for number, reading in enumerate(readings):
        for name, found in reading.samples.items():
            for labels, value in found.items():
                # The number keeps guards apart; edges of buckets are read from the other labels.
                samples.setdefault(name, {})[labels | {("guard", str(number))}] = value
    at = max((reading.at for reading in readings), default=0.0)
    return Scrape(at, samples, all(reading.ready for reading in readings), "" if readings else "none")
