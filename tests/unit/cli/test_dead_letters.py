"""``guardrail dead-letters``: options, what is printed and what is asked; the topic is a double here."""

from __future__ import annotations

import ast
import io
import json
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

import guardrail
from consumers.dead_letter_replay import (
    DeadLetter,
    DeadLetterFilter,
    ReplayReport,
    ReplayRequest,
    read_letter,
)
from consumers.dead_letters import REASONS, REPLAYED, dead_letter
from consumers.settings import KafkaSettings
from consumers.transport import Headers, Partition, Record
from guardrail.cli import app
from guardrail.cli.dead_letters import print_letters
from guardrail.cli.sources import since_time_ms
from guardrail.engine.engine import WRONG_LANE
from guardrail.errors import DecodeError
from tests.support.terminal import OnTerminal

HOSTILE = "\x1b[31mred\x1b[0m\n\u202eevil [bold]x[/]"
SECRET = b"nobody may see this"


def letter(
    offset: int,
    reason: str = "invalid_json",
    *,
    key: bytes | None = b"response-1",
    value: bytes | None = SECRET,
    headers: Headers = (),
    partition: int = 0,
) -> DeadLetter:
    record = Record(Partition("rag.responses", 3), 100 + offset, key, value, headers, 1_000)
    out = dead_letter("rag.dead-letters", record, DecodeError(reason, f"refused: {HOSTILE}"), 1_000_000)
    at_ms = 1_772_366_400_000 + offset * 1_000
    return read_letter(
        Record(Partition("rag.dead-letters", partition), offset, out.key, out.value, out.headers, at_ms)
    )


class Topic:
    """Dead letters in place of a Kafka topic."""

    def __init__(self, letters: list[DeadLetter]) -> None:
        self._letters = letters

    async def until_end(self) -> AsyncGenerator[Record, None]:
        for one in self._letters:
            yield one.record


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> list[DeadLetter]:
    """What stands in the topic: to be filled by the test."""
    found: list[DeadLetter] = []

    @asynccontextmanager
    async def open_topic(_settings: KafkaSettings, _topic: str) -> AsyncIterator[Topic]:
        yield Topic(found)

    monkeypatch.setattr("consumers.reading.open_topic", open_topic)
    return found


def test_a_table_with_the_summary_and_without_values(runner: CliRunner, letters: list[DeadLetter]) -> None:
    letters += [letter(2, partition=1), letter(0), letter(1, "sequence_gap", key=None)]
    result = runner.invoke(app, ["dead-letters", "list"])
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "at   refused               reason        from                  key         bytes  message",
        *(
            f"{at}  2026-03-01T12:00:0{second}Z  {reason}  rag.responses[3]:10{second}  {key}  19     "
            "refused: \\x1b[31mred\\x1b[0m\\n\\u202eevil [bold]x[/]"
            for second, (at, reason, key) in enumerate(
                (
                    ("0:0", "invalid_json", "response-1"),
                    ("0:1", "sequence_gap", "-         "),
                    ("1:2", "invalid_json", "response-1"),
                )
            )
        ),
        "3 dead letters: 2 invalid_json, 1 sequence_gap",
    ]


def test_nothing_there(runner: CliRunner, letters: list[DeadLetter]) -> None:
    result = runner.invoke(app, ["dead-letters", "list"])
    assert (result.exit_code, result.stdout) == (0, "0 dead letters\n")


def test_the_newest_are_shown_and_all_are_counted(runner: CliRunner, letters: list[DeadLetter]) -> None:
    letters += [letter(offset, partition=offset % 3) for offset in range(250)]
    lines = runner.invoke(app, ["dead-letters", "list", "-n", "2"]).stdout.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["2:248", "0:249"]
    assert lines[3:] == [
        "the newest 2 are shown; 248 more are left out",
        "250 dead letters: 250 invalid_json",
    ]
    assert len(runner.invoke(app, ["dead-letters", "list"]).stdout.splitlines()) == 103
    assert len(runner.invoke(app, ["dead-letters", "list", "--json"]).stdout.splitlines()) == 250
    few = runner.invoke(app, ["dead-letters", "list", "--json", "-n", "3"]).stdout.splitlines()
    assert [json.loads(line)["offset"] for line in few] == [247, 248, 249]


def test_a_code_that_no_dead_letter_bears_is_an_error_with_the_list(
    runner: CliRunner, letters: list[DeadLetter]
) -> None:
    letters += [letter(0)]
    for command in (["list"], ["replay", "--dry-run"]):
        result = runner.invoke(app, ["dead-letters", *command, "--reason", "invalid_jason"])
        assert (result.exit_code, result.stdout) == (2, "")
        assert "unknown reason 'invalid_jason'" in " ".join(result.stderr.split())
        assert "wrong_partition" in result.stderr


def test_every_code_that_is_raised_can_be_asked_for() -> None:
    """Those that readers of the topic's events raise, by their source."""
    package = Path(guardrail.__file__).parent
    files = [
        package / "events.py",
        package / "routing.py",
        *sorted((package / "engine").rglob("*.py")),
        *sorted((package / "session").rglob("*.py")),
        package.parent / "consumers" / "guard.py",
    ]
    found: set[str] = set()
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                first = node.args[0]
                if node.func.id in {"DecodeError", "ProtocolError", "InputError", "NotAllowed"}:
                    found.add(str(first.value) if isinstance(first, ast.Constant) else WRONG_LANE)
    assert found == set(REASONS)


def test_filters(runner: CliRunner, letters: list[DeadLetter]) -> None:
    letters += [letter(0), letter(1, "sequence_gap"), letter(2, key="ü".encode()), letter(3, key=b"\xff")]

    def offsets(*options: str) -> list[int]:
        result = runner.invoke(app, ["dead-letters", "list", "--json", *options])
        assert result.exit_code == 0
        return [json.loads(line)["offset"] for line in result.stdout.splitlines()]

    assert offsets("--reason", "sequence_gap") == [1]
    assert offsets("--key", "ü") == [2]
    assert offsets("--key", "\udcff") == [3]  # what a shell hands on of a byte that is no UTF-8
    assert offsets("--since", "2026-03-01T12:00:02") == [2, 3]
    assert offsets("--since", "2026-03-01T13:00:02+01:00", "--reason", "invalid_json") == [2, 3]
    assert offsets("--since", "1s") == []


def test_hostile_bytes_reach_no_terminal(runner: CliRunner, letters: list[DeadLetter]) -> None:
    text = HOSTILE.encode()
    letters.append(letter(0, HOSTILE, key=text, value=text, headers=((HOSTILE, text),)))
    letters.append(letter(1, "x" * 10_000, key=b"\xff" * 10_000))
    for options in ([], ["--json"], ["--json", "--show-values"]):
        result = runner.invoke(app, ["dead-letters", "list", *options])
        assert result.exit_code == 0
        shown = result.stdout + result.stderr
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert "[bold]x[/]" in shown
        if not options:
            assert max(len(line) for line in shown.splitlines()) < 400
            assert len(shown.splitlines()) == 4


@pytest.mark.parametrize("width", [80, 140])
def test_on_a_terminal_the_table_folds_and_shows_nothing_hostile(width: int) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=width)
    print_letters(console, [letter(0), letter(12_345, HOSTILE, key=HOSTILE.encode())])
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert max(len(line) for line in shown.splitlines()) <= width
    assert "0:12345" in shown
    assert "\\x1b[31m" in shown
    assert "\x1b[31m" not in shown
    assert "\u202e" not in shown


def test_json_has_all_headers_and_values_when_asked(runner: CliRunner, letters: list[DeadLetter]) -> None:
    own = (("traceparent", b"00-ab"), ("raw", b"\xff"), (REPLAYED, b"2"))
    letters.append(letter(7, value=b"\xfe", headers=own))
    result = runner.invoke(app, ["dead-letters", "list", "--json"])
    found = json.loads(result.stdout)
    assert {name: found[name] for name in ("topic", "partition", "offset", "time", "bytes", "replays")} == {
        "topic": "rag.dead-letters",
        "partition": 0,
        "offset": 7,
        "time": "2026-03-01T12:00:07Z",
        "bytes": 1,
        "replays": 2,
    }
    assert found["origin"] == {"topic": "rag.responses", "partition": 3, "offset": 107, "timestamp_ms": 1_000}
    assert found["headers"][:3] == [
        ["traceparent", "00-ab"],
        ["raw", {"base64": "/w=="}],
        ["guardrail-replayed", "2"],
    ]
    assert ["guardrail-dead-letter-reason", "invalid_json"] in found["headers"]
    assert not {"key", "value"} & found.keys()
    assert result.stderr == "1 dead letter: 1 invalid_json\n"
    shown = json.loads(runner.invoke(app, ["dead-letters", "list", "--json", "--show-values"]).stdout)
    assert (shown["key"], shown["value"]) == ("response-1", {"base64": "/g=="})


def test_values_are_shown_as_json_only(runner: CliRunner, letters: list[DeadLetter]) -> None:
    assert runner.invoke(app, ["dead-letters", "list", "--show-values"]).exit_code == 2


@pytest.mark.parametrize(
    ("text", "expected_s"),
    [
        ("90s", 999_910),
        ("2h", 992_800),
        ("7d", 395_200),
        ("1970-01-02", 86_400),
        ("1970-01-01T01:00+01:00", 0),
        ("1970-01-01T00:00:01Z", 1),
    ],
)
def test_since_is_an_age_or_a_time(text: str, expected_s: int) -> None:
    assert since_time_ms(text, now_s=1_000_000) == expected_s * 1_000


@pytest.mark.parametrize("text", ["", "yesterday", "2", "2w", "-2h", "1e3s", "99999-01-01", "2026-13-01"])
def test_since_that_is_neither_is_wrong_usage(runner: CliRunner, text: str) -> None:
    with pytest.raises(typer.BadParameter):
        since_time_ms(text, now_s=1_000_000)
    assert runner.invoke(app, ["dead-letters", "list", f"--since={text}"]).exit_code == 2


class Replays:
    """A plan to give, and what was asked of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.requests: list[ReplayRequest] = []
        self.runs = 0
        self.written = Counter({"invalid_json": 3, "sequence_gap": 1})
        self.told: list[str] = []
        self.groups: list[str] = []
        monkeypatch.setattr("consumers.dead_letter_replay.plan_replay", self.plan)
        monkeypatch.setattr("consumers.dead_letter_replay.run_replay", self.run)

    async def plan(self, settings: KafkaSettings, request: ReplayRequest) -> ReplayReport:
        self.requests.append(request)
        self.groups.append(settings.group_id)
        return ReplayReport(
            request,
            "g-dead-letters-replay",
            {},
            self.written,
            Counter({"rag.responses": self.written.total()}),
            came_back=2,
            left=0 if request.selection.everything else 5,
            unusable=len(self.told),
            told=self.told,
        )

    async def run(self, settings: KafkaSettings, plan: ReplayReport) -> ReplayReport:
        self.runs += 1
        return plan


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> Replays:
    return Replays(monkeypatch)


def test_a_replay_tells_its_plan_and_what_it_did(runner: CliRunner, replays: Replays) -> None:
    options = "--yes --reason sequence_gap --key k -n 4 --to copy --all --group-id mine"
    result = runner.invoke(app, ["dead-letters", "replay", *options.split()])
    assert result.exit_code == 0
    assert replays.requests == [
        ReplayRequest(DeadLetterFilter("sequence_gap", b"k"), "copy", from_beginning=True, limit=4)
    ]
    assert replays.groups == ["mine"]
    assert replays.runs == 1
    assert result.stdout == "4 dead letters written back: 3 invalid_json, 1 sequence_gap\n"
    for words in (
        "4 dead letters to write back: 3 invalid_json, 1 sequence_gap",
        "4 to rag.responses",
        "5 are left out by the filters and stay to be replayed",
        "warning: 2 of them were replayed before and came back",
        "an event of a response that has ended comes back as a dead letter",
        "g-dead-letters-replay",
        "what was written back before is written again",
    ):
        assert words in result.stderr


def test_nobody_to_ask_is_wrong_usage(runner: CliRunner, replays: Replays) -> None:
    result = runner.invoke(app, ["dead-letters", "replay"])
    assert result.exit_code == 2
    assert "--yes" in result.stderr
    assert replays.requests == []


def test_a_dry_run_writes_nothing_and_asks_nothing(runner: CliRunner, replays: Replays) -> None:
    result = runner.invoke(app, ["dead-letters", "replay", "--dry-run"])
    assert (result.exit_code, result.stdout, replays.runs) == (0, "", 0)
    assert "4 dead letters to write back" in result.stderr


def test_with_nothing_to_write_nothing_is_asked(runner: CliRunner, replays: Replays) -> None:
    replays.written = Counter()
    result = runner.invoke(app, ["dead-letters", "replay", "--yes"])
    assert (result.exit_code, replays.runs) == (0, 0)
    assert "0 dead letters to write back" in result.stderr


def test_what_can_not_be_written_back_is_status_1(runner: CliRunner, replays: Replays) -> None:
    replays.told = [f"0:7: there is no topic {HOSTILE}"]
    result = runner.invoke(app, ["dead-letters", "replay", "--yes"])
    assert result.exit_code == 1
    assert "can't be written back: 0:7: there is no topic \\x1b[31mred" in result.stderr
    assert "4 dead letters written back" in result.stdout


PLANNED = """
import consumers.dead_letter_replay as library
from collections import Counter
async def plan(settings, request):
    return library.ReplayReport(request, "g", {}, Counter(r=2), Counter(t=2))
async def run(settings, plan):
    print("RUNNING")
    return plan
library.plan_replay, library.run_replay = plan, run
"""


@pytest.mark.parametrize(("answer", "status"), [(b"y\n", 0), (b"n\n", 1), (b"\n", 1)])
def test_on_a_terminal_it_asks(tmp_path: Path, answer: bytes, status: int) -> None:
    (tmp_path / "sitecustomize.py").write_text(PLANNED)
    terminal = OnTerminal(tmp_path, "dead-letters", "replay", PYTHONPATH=str(tmp_path))
    assert "Write 2 records? [y/N]" in terminal.read_until("[y/N]")
    terminal.write(answer)
    ended, shown = terminal.ended()
    assert ended == status
    assert ("RUNNING" in shown) == (status == 0)
    assert ("2 dead letters written back" in shown) == (status == 0)
