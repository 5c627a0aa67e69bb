"""The demo as its users run it, and what it decides through the consumer of production."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from guardrail.cli import app
from guardrail.cli.demo import play_all
from guardrail.demo import (
    Board,
    BoardEvent,
    DemoAnswer,
    PlainView,
    View,
    as_expected,
    load_demo_settings,
    load_examples,
)
from guardrail.events import Context, Decision, DeliveryBlocked, Response
from guardrail.judges.factory import JudgeSet
from guardrail.render import Card, symbols_for
from tests.support.config_files import write
from tests.support.decisions_server import DecisionsServer
from tests.support.programs import call
from tests.unit.cli.conftest import Program

EXAMPLES = load_examples()
LINES = "started claim evidence reason released flagged redacted blocked decided"
FIRST_WORDS = set(LINES.split())


class Silent:
    """A view for nobody."""

    def open(self, responses: object) -> None: ...

    def show(self, event: BoardEvent, card: Card) -> None: ...

    def tick(self, board: Board) -> None: ...

    def close(self) -> None: ...


def play(responses: list[Response], board: Board, view: View) -> None:
    settings = load_demo_settings()
    asyncio.run(play_all(responses, settings, JudgeSet(settings.judge), board, view, speed=1000.0))


def played(responses: list[Response]) -> Board:
    board = Board()
    play(responses, board, Silent())
    return board


@pytest.fixture(scope="module")
def board() -> Board:
    return played([example.response for example in EXAMPLES])


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.response.response_id)
def test_every_answer_is_decided_as_it_was_written_for(board: Board, example: DemoAnswer) -> None:
    card = board.cards[example.response.response_id]
    assert card.verdict is not None
    assert as_expected(example, card), (
        card.verdict.decision,
        card.verdict.rule,
        [(claim.verdict, claim.text, claim.reasoning) for claim in card.verdict.claims],
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.response.response_id)
def test_what_the_user_reads_follows_from_the_decision(board: Board, example: DemoAnswer) -> None:
    card = board.cards[example.response.response_id]
    policy = load_demo_settings().router().choose(example.response.route, example.response.tenant)
    if example.decision is Decision.BLOCK:
        assert isinstance(card.end, DeliveryBlocked)
        assert example.response.answer.startswith(card.delivered)
        assert policy.mode != "hold" or card.delivered == ""
    elif example.decision is Decision.REDACT:
        assert example.bad_claim is not None
        assert example.bad_claim not in card.delivered
        assert policy.redaction() in card.delivered
    else:
        assert card.delivered == example.response.answer


def test_reviewers_get_every_case_but_those_released(board: Board) -> None:
    for example in EXAMPLES:
        case = board.cards[example.response.response_id].case
        assert (case is None) == (example.decision is Decision.RELEASE)
        if case is not None:
            assert case.question == example.response.question
            assert case.contexts == example.response.contexts


def test_into_a_pipe_it_writes_lines_and_a_summary_in_80_columns(program: Program) -> None:
    done = program("demo", "--speed", "500")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    introduction, lines, summary = done.stdout.split("\n\n", 2)
    assert introduction.startswith("14 prepared answers")
    assert all(len(line) <= 100 for line in introduction.splitlines())
    assert {line.split()[0] for line in lines.splitlines()} == FIRST_WORDS
    assert all(len(line) <= 100 for line in summary.splitlines())
    for example in EXAMPLES:
        assert re.search(rf"^decided +{example.response.response_id} ", lines, re.MULTILINE)
        assert re.search(rf"^{example.response.response_id} ", summary, re.MULTILINE)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.stdout)


def knowing(claim: str, options: Sequence[str]) -> dict[str, float]:
    """The mind of a model that knows which details are wrong."""
    wrong = any(each.bad_claim is not None and each.bad_claim in claim for each in EXAMPLES)
    return {option: float(option == ("contradicted" if wrong else "supported")) for option in options}


@pytest.mark.parametrize("transport", ["openai", "systemone", "logprobs"])
async def test_a_decision_model_of_ones_own_settings_can_judge_it(transport: str, tmp_path: Path) -> None:
    async with DecisionsServer(knowing) as server:
        decisions = {"transport": transport, "base_url": server.url, "model": "m", "api_key": "k"}
        file = write(tmp_path, json.dumps({"judge": {"kind": "decisions", "decisions": decisions}}))
        done = await asyncio.to_thread(call, "demo", "--speed", "500", "--config", str(file), COLUMNS="100")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^judge +decisions:m$", done.stdout, re.MULTILINE)
    assert "caught: 8 of 8 answers" in done.stdout
    assert "released untouched: 6 of 6 faithful answers" in done.stdout
    assert re.search(r"^the judge took \d+ calls: \d,\d00 tokens read, 0 written$", done.stdout, re.MULTILINE)


async def test_the_option_goes_over_the_file_and_a_dead_server_is_named(tmp_path: Path) -> None:
    async with DecisionsServer(knowing) as server:
        url = server.url
    judge = {"kind": "local", "llm": {"base_url": url, "model": "m"}}
    file = write(tmp_path, json.dumps({"judge": judge}))
    arguments = ("demo", "--speed", "500", "--only", "date", "--judge", "llm", "--config", str(file))
    done = await asyncio.to_thread(call, *arguments)
    assert done.returncode == 0
    assert re.search(
        r"^without a verdict: \d claims?; the first because .*127\.0\.0\.1", done.stdout, re.MULTILINE
    )


@pytest.mark.parametrize("judge", ["llm", "decisions"])
def test_without_a_key_it_says_where_one_is_looked_for_and_nothing_else(judge: str, called: Program) -> None:
    done = called("demo", "--judge", judge, env={"OPENAI_API_KEY": ""})
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"judge.{judge}.api_key" in done.stderr
    assert "OPENAI_API_KEY" in done.stderr


def test_forced_colour_does_not_move_a_cursor_that_is_not_there(program: Program) -> None:
    done = program("demo", "--speed", "500", "--only", "unknown", env={"FORCE_COLOR": "1"})
    assert done.returncode == 0
    assert re.findall(r"\x1b\[[0-9;?]*[^0-9;?m]", done.stdout) == []


def test_no_color_wins_over_forced_colour(program: Program) -> None:
    done = program("demo", "--speed", "500", "--only", "date", env={"FORCE_COLOR": "1", "NO_COLOR": "1"})
    assert not re.search(r"\x1b\[(?:[0-9;]*;)?(?:3[0-9]|9[0-7])[;m]", done.stdout)
    assert "contradicted fact" in done.stdout


def test_an_output_without_unicode_gets_ascii(program: Program) -> None:
    done = program("demo", "--speed", "500", "--only", "date", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "CONTRADICTED" in done.stdout


def test_an_unknown_kind_is_wrong_usage_and_the_kinds_are_named(runner: CliRunner) -> None:
    done = runner.invoke(app, ["demo", "--only", "cooking"])
    assert done.exit_code == 2
    assert "medication" in done.stderr
    assert done.stdout == ""


def test_what_an_answer_holds_cannot_steer_the_terminal() -> None:
    """End to end: an answer full of escape sequences and markup, as lines."""
    answer = "The \x1b[2Jprice is $5.\x1b]0;gotcha\x07 [red]It costs $6.[/red]\r\nNext line costs $7.\n"
    response = Response(
        response_id="evil\x1b[31m\nstarted", contexts=(Context(id="c\x1b[1m", text=answer),), answer=answer
    )
    out = io.StringIO()
    view = PlainView(out, symbols_for("utf-8"))
    play([response], Board(), view)
    text = out.getvalue()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
    assert "[red]" in text
    assert {line.split()[0] for line in text.splitlines()} >= {"started", "claim", "released", "decided"}
    assert all(line.split()[0] in FIRST_WORDS for line in text.splitlines())
