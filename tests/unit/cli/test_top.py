"""``guardrail top``: what it makes of the metrics of guards."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from guardrail.cli import app
from guardrail.cli.top import Scrape, quantile, table

BUCKETS = "guardrail_verdict_seconds_bucket"


def labels(**values: str) -> frozenset[tuple[str, str]]:
    return frozenset(values.items())


def histogram(at: float, counts: dict[str, float]) -> Scrape:
    return Scrape(at, {BUCKETS: {labels(judge="local", le=edge): value for edge, value in counts.items()}})


class TestQuantile:
    BEFORE = histogram(0, {"0.1": 5, "0.5": 5, "+Inf": 5})

    def test_it_counts_what_came_between_the_readings_only(self) -> None:
        now = histogram(1, {"0.1": 5, "0.5": 15, "+Inf": 15})
        found = quantile(0.5, self.BEFORE, now, "guardrail_verdict_seconds")
        assert found is not None
        assert math.isclose(found, 0.3)

    def test_beyond_the_last_edge_it_is_that_edge(self) -> None:
        now = histogram(1, {"0.1": 5, "0.5": 5, "+Inf": 15})
        assert quantile(0.5, self.BEFORE, now, "guardrail_verdict_seconds") == 0.5

    def test_it_is_not_known_where_nothing_came(self) -> None:
        assert quantile(0.5, self.BEFORE, self.BEFORE, "guardrail_verdict_seconds") is None
        assert quantile(0.5, self.BEFORE, self.BEFORE, "guardrail_nothing") is None


def shown(before: list[Scrape], now: list[Scrape], width: int = 80) -> dict[str, list[str]]:
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        console.print(table([f"http://guard-{number}:8080" for number in range(len(now))], before, now))
    lines = [line for line in capture.get().splitlines() if line.strip()]
    first = dict.fromkeys(("answers/s", "not checked", "release p99", "dead letters", "block", "state"), 0)
    return {name: line[len(name) :].split() for name in first for line in lines if line.startswith(name)}


def counts(at: float, blocked: float, released: float) -> Scrape:
    return Scrape(
        at,
        {
            "guardrail_responses_total": {
                labels(policy="default", decision="block"): blocked,
                labels(policy="default", decision="release"): released,
            }
        },
        ready=True,
    )


def test_rates_and_shares_are_of_the_time_between_two_readings() -> None:
    rows = shown([counts(10, 100, 100)], [counts(12, 101, 103)])
    assert rows["answers/s"] == ["2.0"]
    assert rows["block"] == ["25", "%"]
    assert rows["state"] == ["ready"]
    assert rows["release p99"] == ["–"]


def test_after_a_restart_there_is_no_share() -> None:
    rows = shown([counts(10, 100, 100)], [counts(12, 10, 30)])
    assert (rows["answers/s"], rows["block"]) == (["0.0"], ["–"])


def test_several_guards_are_added_up_and_one_that_is_away_is_left_out() -> None:
    away = Scrape(12, problem="no answer")
    rows = shown([counts(10, 0, 0), counts(10, 0, 0), away], [counts(12, 2, 2), counts(12, 0, 4), away], 120)
    assert rows["answers/s"] == ["2.0", "2.0", "4.0"]
    assert rows["block"] == ["50", "%", "0", "%", "25", "%"]
    assert rows["state"] == ["ready", "ready", "away", "ready"]


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = self.server.reply  # type: ignore[attr-defined]
        self.send_response(200 if self.path in {"/metrics", "/readyz"} else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


class _Endless(BaseHTTPRequestHandler):
    """Answers without end, quickly or a little at a time, until the reader goes or the test is over."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        with suppress(OSError):
            while not self.server.over.wait(self.server.pause_s):  # type: ignore[attr-defined]
                self.wfile.write(b"x" * self.server.part)  # type: ignore[attr-defined]

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], **given: object) -> Iterator[str]:
    """The address of a server that has what is given."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        vars(server).update(given)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def once(url: str) -> Result:
    return CliRunner().invoke(app, ["top", "--once", "--interval", "0.2", url])


@pytest.mark.parametrize(
    ("part", "pause_s", "told"), [(65_536, 0.0, "longer than 4 MiB"), (1, 0.01, "did not end within 0.3 s")]
)
def test_an_answer_without_end_is_given_up(
    monkeypatch: pytest.MonkeyPatch, part: int, pause_s: float, told: str
) -> None:
    monkeypatch.setattr("guardrail.cli.top._WHOLE_S", 60.0 if part > 1 else 0.3)
    over = threading.Event()
    with serving(_Endless, part=part, pause_s=pause_s, over=over) as url:
        try:
            result = once(url)
        finally:
            over.set()
    assert result.exit_code == 1
    assert told in " ".join(result.stdout.split())


INFO = b'# TYPE guardrail_build_info gauge\nguardrail_build_info{version="1",judge="local"} 1\n'


@pytest.mark.parametrize(
    ("reply", "path", "status", "told"),
    [
        (INFO, "", 0, "ready"),
        (INFO, "/metrics", 0, "ready"),  # the address of the metrics will do
        (b"# TYPE go_info gauge\ngo_info 1\n", "", 1, "no guardrail_build_info"),
        (b"\x1b[2J<html>", "", 1, "away"),
    ],
)
def test_once_prints_a_table_and_says_by_its_status_if_a_guard_answered(
    reply: bytes, path: str, status: int, told: str
) -> None:
    with serving(_Handler, reply=reply) as url:
        result = once(url + path)
    assert result.exit_code == status
    assert told in result.stdout
    assert "\x1b[2J" not in result.stdout
