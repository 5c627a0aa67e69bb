"""What ``benchmarks.peers`` measured: the table, the aims, and the plot."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from benchmarks.peers_environment import ROOT
from benchmarks.peers_systems import OURS, Outcome
from benchmarks.peers_tokens import Usage

AIM_DELAY: Final = 0.33
"""Of Haystack's, to the full verdict."""
AIM_TOKENS: Final = {"guardrail-cascade": 1.5, "guardrail-llm": 4.0}
"""Of Haystack's prompt tokens, all counted: what a server without a prefix cache reads."""
AIM_BILLED: Final = {"guardrail-cascade": 0.8, "guardrail-llm": 1.5}
"""Of Haystack's, with cached ones at a quarter, as OpenAI bills them."""
CACHED_PRICE: Final = 0.25
_HEAD: Final = (
    "| at once | system | answers | delay p50 (ms) | delay p95 (ms) | first error known p50 (ms) "
    "| before the end | calls | tokens in | of them cached | billed | tokens out | right | processor (ms) |\n"
    "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
)


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest-rank percentile; nan of nothing."""
    if not values:
        return math.nan
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


@dataclass(frozen=True, slots=True)
class Result:
    """One system at one concurrency. Figures per answer are of all that were asked, failed ones too."""

    system: str
    at_once: int
    outcomes: tuple[Outcome, ...]
    spent: Usage
    processor_s: float = math.nan
    """Of the system's process, over all answers; for ours with the writers of the answers, which share it."""

    def delays_ms(self) -> list[float]:
        """Of the answers that were judged."""
        return [outcome.delay_s * 1000 for outcome in self.outcomes if not outcome.error]

    def first_bad_ms(self) -> list[float]:
        """When the first planted error was known, of the answers where one was."""
        return [o.first_bad_s * 1000 for o in self.outcomes if o.first_bad_s is not None]

    def known_before_the_end(self) -> float:
        """The share of all answers in which an error was known before the last token."""
        return sum(first < 0 for first in self.first_bad_ms()) / len(self.outcomes)

    def right(self) -> float:
        """The share of answers that were judged as they are."""
        return sum(outcome.right for outcome in self.outcomes) / len(self.outcomes)

    def errors(self) -> set[str]:
        """What went wrong, each once."""
        unknown = (
            {f"{self.spent.unknown} claims or prompts unknown to the model"} if self.spent.unknown else set()
        )
        return unknown | {outcome.error for outcome in self.outcomes if outcome.error}

    def tokens(self) -> float:
        """Prompt tokens an answer, cached or not."""
        return self.spent.prompt_tokens / len(self.outcomes)

    def uncached(self) -> float:
        """Prompt tokens an answer that no cache served."""
        return (self.spent.prompt_tokens - self.spent.cached_tokens) / len(self.outcomes)

    def billed(self) -> float:
        """Prompt tokens an answer, cached ones counted at ``CACHED_PRICE``."""
        return self.uncached() + CACHED_PRICE * self.spent.cached_tokens / len(self.outcomes)

    def processor_ms(self) -> float:
        """Processor time an answer."""
        return 1000 * self.processor_s / len(self.outcomes)

    def line(self) -> str:
        """The row of the table."""
        count = len(self.outcomes)
        spent, delays = self.spent, self.delays_ms()
        cells = (
            f"{self.at_once}",
            self.system,
            f"{count}",
            f"{percentile(delays, 0.5):,.0f}",
            f"{percentile(delays, 0.95):,.0f}",
            f"{percentile(self.first_bad_ms(), 0.5):+,.0f}",
            f"{self.known_before_the_end():.0%}",
            f"{spent.calls / count:.1f}",
            f"{spent.prompt_tokens / count:,.0f}",
            f"{spent.cached_tokens / count:,.0f}",
            f"{self.billed():,.0f}",
            f"{spent.output_tokens / count:,.0f}",
            f"{self.right():.0%}",
            "" if math.isnan(self.processor_s) else f"{self.processor_ms():,.0f}",
        )
        return f"| {' | '.join(cells)} |"


@dataclass(frozen=True, slots=True)
class Run:
    """All results, and the model that they were measured with."""

    results: tuple[Result, ...]
    ttft_ms: float
    token_ms: float
    cache_minimum: int
    cache_step: int
    tokenizer: str
    machine: str = ""
    """On what, and how busy it was with other work."""

    def of(self, system: str, at_once: int) -> Result | None:
        return next((r for r in self.results if (r.system, r.at_once) == (system, at_once)), None)

    def concurrencies(self) -> list[int]:
        return list(dict.fromkeys(result.at_once for result in self.results))

    def systems(self) -> list[str]:
        return list(dict.fromkeys(result.system for result in self.results))


def table(run: Run) -> str:
    """All results in Markdown; calls and tokens are per answer."""
    return "\n".join([_HEAD, *(result.line() for result in run.results)])


def aims(run: Run) -> str:
    """What was aimed at and what was reached, a line each, in Markdown."""
    lines = ["| at once | system | aim | reached | |", "| ---: | --- | --- | ---: | --- |"]
    for at_once in run.concurrencies():
        base = run.of("haystack", at_once)
        for system in OURS:
            ours = run.of(system, at_once)
            if ours is None:
                continue
            first = percentile(ours.first_bad_ms(), 0.5)
            checks = [("first error known before the end (p50, ms)", first, 0.0)]
            if base is not None and base.delays_ms():
                delay = statistics.median(ours.delays_ms() or [math.nan]) / statistics.median(
                    base.delays_ms()
                )
                tokens, billed = AIM_TOKENS[system], AIM_BILLED[system]
                checks = [
                    (f"delay p50 at most {AIM_DELAY:.2f} of Haystack's", delay, AIM_DELAY),
                    (f"tokens in at most {tokens:.1f} of Haystack's", ours.tokens() / base.tokens(), tokens),
                    (f"billed at most {billed:.1f} of Haystack's", ours.billed() / base.billed(), billed),
                    *checks,
                ]
            for words, value, most in checks:
                verdict = "met" if value <= most else "missed"
                lines.append(f"| {at_once} | {system} | {words} | {value:,.2f} | {verdict} |")
    return "\n".join(lines)


def commit() -> str:
    """The commit that was measured, and whether files of the guard differ from it."""
    git = ["git", "-C", str(ROOT)]
    found = subprocess.run(
        [*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "guardrail"], check=False)
    return (found.stdout.strip() or "unknown") + (" with changes" if changed.returncode else "")


def machine() -> str:
    """Cores, and how many processes wanted one of them on average in the last 15 minutes."""
    load = f", load average {os.getloadavg()[2]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{os.cpu_count()} cores{load}"


def write(out: Path, run: Run, command: str) -> None:
    """``peers``.md, .png and .json in ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    made = (
        f"Made by `{command}` at commit {commit()}. Simulated model: {run.ttft_ms:g} ms to the first token, "
        f"{run.token_ms:g} ms a token; prefixes cached from {run.cache_minimum} tokens on in steps of "
        f"{run.cache_step}; tokens counted by {run.tokenizer}. {run.machine}. Calls and tokens are per "
        "answer."
    )
    (out / "peers.md").write_text(f"{made}\n\n{table(run)}\n\n{aims(run)}\n\n![](peers.png)\n")
    (out / "peers.json").write_text(
        json.dumps({"command": command, "commit": commit(), **asdict(run)}) + "\n"
    )
    _plot(out / "peers.png", run)


def _plot(path: Path, run: Run) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    levels = run.concurrencies()
    figure, axes = plt.subplots(
        3, len(levels), figsize=(max(6.0, 4.6 * len(levels)), 9), layout="constrained", squeeze=False
    )
    figure.suptitle("Answers of eight claims, written at 50 tokens a second")
    for column, at_once in enumerate(levels):
        results = [result for result in run.results if result.at_once == at_once]
        names = [result.system for result in results]
        colors = ["tab:green" if name in OURS else "tab:gray" for name in names]
        delay, first, tokens = axes[:, column]
        delay.set_title(f"{at_once} at once")
        medians = [percentile(result.delays_ms(), 0.5) for result in results]
        tails = [percentile(r.delays_ms(), 0.95) - m for r, m in zip(results, medians, strict=True)]
        bars = delay.barh(names, medians, color=colors, xerr=[[0.0] * len(tails), tails])
        delay.bar_label(bars, fmt="{:,.0f}", padding=4, fontsize=8)
        delay.set_xlabel("last token to full verdict, ms (p50; whisker p95)")
        bars = first.barh(names, [percentile(r.first_bad_ms(), 0.5) for r in results], color=colors)
        first.bar_label(bars, fmt="{:+,.0f}", padding=4, fontsize=8)
        first.axvline(0, color="black", lw=1)
        first.set_xlabel("last token to first error known, ms (p50)")
        uncached = [result.uncached() for result in results]
        cached = [result.spent.cached_tokens / len(result.outcomes) for result in results]
        tokens.barh(names, uncached, color=colors, label="uncached")
        tokens.barh(names, cached, left=uncached, color=colors, alpha=0.35, label="cached")
        tokens.set_xlabel("prompt tokens an answer, cached ones pale")
        for axis in (delay, first, tokens):
            axis.invert_yaxis()
            axis.grid(alpha=0.3, axis="x")
            axis.margins(x=0.15)
    figure.savefig(path, dpi=110)
    plt.close(figure)
