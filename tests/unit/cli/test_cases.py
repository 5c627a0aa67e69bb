"""``guardrail cases`` on a store, and the lines of ``guardrail tail``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Group
from typer.testing import CliRunner

from consumers.cases import NewCase, open_store
from consumers.transport import Partition, Record
from guardrail import Guard
from guardrail.cli import app
from guardrail.cli.cases import picture_of
from guardrail.doctor.checks import CONTEXT, PROOF_ROUTE, QUESTION, WRONG
from guardrail.events import Context, Decision, Verdict, parse_label
from guardrail.policy import Policy
from guardrail.render import symbols_for
from guardrail.testing import ScriptedJudge
from tests.support.cases import new_case
from tests.unit.render.shown import shown

UNICODE = symbols_for("utf-8")


def stored(path: Path, cases: Sequence[NewCase]) -> str:
    url = f"sqlite:///{path}/cases.db"

    async def store() -> None:
        async with open_store(url, "store", create=True) as made:
            await made.add(cases, notify=False)

    asyncio.run(store())
    return url


@pytest.fixture
def url(tmp_path: Path) -> str:
    return stored(
        tmp_path,
        [
            new_case(1),
            new_case(2, route="sales", decision=Decision.FLAG, delivered="x"),
            new_case(3, claims=(), rule="\x1b[2Jrule [red]"),
        ],
    )


def test_the_list_is_a_table_newest_first(runner: CliRunner, url: str) -> None:
    result = runner.invoke(app, ["cases", "list", "--store", url])
    assert result.exit_code == 0
    head, *rows = result.stdout.splitlines()
    assert " ".join(head.split()) == "at response decision rule route policy score deciding claim"
    assert [row.split()[2] for row in rows] == ["r-3", "r-2", "r-1"]
    assert rows[2].split()[:2] == ["2023-11-14", "22:13:21Z"]
    told = "block verdict CONTRADICTED: block support default 0.40 Returns take 30 days."
    assert rows[2].split()[3:] == told.split()
    assert "\\x1b[2Jrule [red]" in rows[0]
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--decision", "flag"], ["r-2"]),
        (["--route", "support"], ["r-3", "r-1"]),
        (["--since", "2023-11-14T22:13:22Z"], ["r-3", "r-2"]),
        (["--since", "1h"], []),
        (["--limit", "1"], ["r-3"]),
    ],
)
def test_filters(runner: CliRunner, url: str, options: list[str], expected: list[str]) -> None:
    result = runner.invoke(app, ["cases", "list", "--store", url, "--json", *options])
    assert result.exit_code == 0
    assert [json.loads(line)["response_id"] for line in result.stdout.splitlines()] == expected


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--decision", "release"], "'release' is not one of"),
        (["--route", "suport"], "there are sales, support"),
        (["--since", "yesterday"], "neither an age"),
        (["-b", "localhost:1"], "give one of --store and"),
        (["--rule", "x"], "No such option"),
    ],
)
def test_unknown_values_are_errors(runner: CliRunner, url: str, options: list[str], says: str) -> None:
    result = runner.invoke(app, ["cases", "list", "--store", url, *options])
    assert result.exit_code == 2
    assert says in " ".join(result.stderr.replace("│", " ").split())


def test_show_prints_the_card_by_either_id(runner: CliRunner, url: str) -> None:
    for id_ in ("r-1", "case-1"):
        result = runner.invoke(app, ["cases", "show", id_, "--store", url])
        assert result.exit_code == 0
        assert "14, not 30" in result.stdout
        assert "terms.pdf" not in result.stdout
    result = runner.invoke(app, ["cases", "show", "r-1", "--store", url, "--documents"])
    assert result.stdout.index("14, not 30") < result.stdout.index("terms.pdf")
    raw = runner.invoke(app, ["cases", "show", "r-1", "--store", url, "--json"])
    assert json.loads(raw.stdout) == json.loads(new_case(1).body)


def test_long_texts_are_cut_and_shown_in_full_when_asked_for(runner: CliRunner, tmp_path: Path) -> None:
    answer = "Returns take 30 days. " + "w" * 100_000
    url = stored(tmp_path, [new_case(1, answer=answer, question="Q" * 50_000)])
    result = runner.invoke(app, ["cases", "show", "r-1", "--store", url])
    assert len(result.stdout) < 20_000
    assert "96,022 more characters; --full" in " ".join(result.stdout.replace("│", " ").split())
    assert "Returns take 30 days. ✘" in result.stdout
    full = runner.invoke(app, ["cases", "show", "r-1", "--store", url, "--full"])
    assert full.stdout.count("w") > 100_000
    assert "more characters" not in full.stdout
    card = shown(picture_of(record(new_case(1, answer=answer).body), UNICODE, 80, flagged=True))
    assert len(card) < 10_000
    assert "guardrail cases show ID --full" in " ".join(card.replace("│", " ").split())


def test_tail_shows_no_proof_of_the_doctor() -> None:
    proof = new_case(
        1, route=PROOF_ROUTE, question=QUESTION, answer=WRONG, contexts=(Context(id="c1", text=CONTEXT),)
    )
    assert picture_of(record(proof.body), UNICODE, 80, flagged=True) is None
    posing = new_case(1, route=PROOF_ROUTE)
    assert picture_of(record(posing.body), UNICODE, 80, flagged=True) is not None


def test_json_of_a_case_steers_no_terminal(runner: CliRunner, tmp_path: Path) -> None:
    case = new_case(1, answer="a\x9b31m\x85\u2028\u202e$5.")
    result = runner.invoke(app, ["cases", "show", "r-1", "--store", stored(tmp_path, [case]), "--json"])
    assert result.stdout.rstrip("\n").isprintable()
    assert json.loads(result.stdout) == json.loads(case.body)


def test_show_of_what_is_not_there_and_a_store_that_is_none(runner: CliRunner, url: str) -> None:
    result = runner.invoke(app, ["cases", "show", "r-9", "--store", url])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "there is no case of 'r-9'" in result.stderr
    result = runner.invoke(app, ["cases", "list", "--store", url.replace("cases", "other")])
    assert result.exit_code == 1
    assert "holds no cases yet" in result.stderr


def test_a_store_of_the_settings_is_read(
    runner: CliRunner, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORE_OF_CASES", url)
    monkeypatch.setenv("GUARDRAIL_FLAGGED__STORE__ENV", "STORE_OF_CASES")
    result = runner.invoke(app, ["cases", "list", "--json"])
    assert len(result.stdout.splitlines()) == 3


def test_flagged_needs_a_store_and_a_secret(runner: CliRunner) -> None:
    result = runner.invoke(app, ["flagged"])
    assert result.exit_code == 2
    assert "give --store sqlite:///FILE" in result.stderr
    result = runner.invoke(app, ["flagged", "--store", "sqlite:///x", "--webhook-url", "https://host"])
    assert result.exit_code == 2
    assert "webhook_secret" in result.stderr


# ----------------------------------------------------------------------------------------- tail


def record(value: bytes | None) -> Record:
    return Record(Partition("t", 1), 7, b"k", value, (), 1_700_000_000_000)


async def test_a_line_for_each_verdict_without_texts() -> None:
    async with Guard(ScriptedJudge({"30 days": "CONTRADICTED"})) as guard:
        verdict = await guard.check(
            "How long?", ["Within 14 days."], "It takes 30 days.", response_id="r\x1b[2J"
        )
    picture = picture_of(record(verdict.to_json()), UNICODE, 80, flagged=False)
    line = shown(Group(picture) if picture is not None else "", width=200).strip()
    assert line.startswith("2023-11-14 22:13:20Z ✘ BLOCKED  r\\x1b[2J · ")
    assert line.endswith("· 1 claim")
    assert "30" not in line
    assert picture_of(record(verdict.claims[0].to_json()), UNICODE, 80, flagged=False) is None
    assert picture_of(record(verdict.to_json()), UNICODE, 80, flagged=True) is None


async def test_a_line_of_an_observed_answer_says_what_would_have_become_of_it() -> None:
    observing = Policy(mode="observe", rules=["verdict CONTRADICTED: block"])
    async with Guard(ScriptedJudge({"30 days": "CONTRADICTED"}), policy=observing) as guard:
        wrong = await guard.check("How long?", ["Within 14 days."], "It takes 30 days.")
        right = await guard.check("How long?", ["Within 14 days."], "It takes 14 days.")
    lines = [
        shown(picture_of(record(verdict.to_json()), UNICODE, 80, flagged=False), width=200)
        for verdict in (wrong, right)
    ]
    assert "✘ would be BLOCKED " in lines[0]
    assert "✔ RELEASED " in lines[1]


def test_a_card_for_each_case_and_a_note_of_what_is_none() -> None:
    card = picture_of(record(new_case(1).body), UNICODE, 80, flagged=True)
    assert "Returns take 30 days. ✘" in shown(card)
    assert picture_of(record(new_case(1).body), UNICODE, 80, flagged=False) is None
    note = picture_of(record(b"\x1b[2J"), UNICODE, 80, flagged=True)
    assert shown(note).strip() == "record 1:7 can't be read (invalid_json)"


def test_a_label_names_the_claim_the_policy_and_who_says_so(runner: CliRunner, url: str) -> None:
    arguments = ["cases", "label", "r-1", "UNSUPPORTED", "--store", url, "--reviewer", "ada"]
    result = runner.invoke(app, [*arguments, "--claim", "1", "--correction", "Returns take 14 days."])
    assert result.exit_code == 0, result.stderr
    label = parse_label(result.stdout)
    assert (label.response_id, label.claim_id, label.span) == ("r-1", "claim-0", (0, 21))
    assert (label.verdict, label.reviewer) == (Verdict.UNSUPPORTED, "ada")
    assert label.correction == "Returns take 14 days."
    assert label.policy is not None
    assert label.policy.name == "default"
    again = parse_label(runner.invoke(app, [*arguments, "--claim", "claim-0"]).stdout)
    assert again.id == label.id, "a later one replaces it"
    whole = parse_label(runner.invoke(app, arguments).stdout)
    assert (whole.claim_id, whole.span) == (None, None)
    assert whole.id != label.id


def test_a_label_for_what_there_is_not_is_refused(runner: CliRunner, url: str) -> None:
    result = runner.invoke(app, ["cases", "label", "r-1", "SUPPORTED", "--store", url, "--claim", "9"])
    assert result.exit_code == 2
    assert "is not a claim of the case" in " ".join(result.stderr.split())
    result = runner.invoke(app, ["cases", "label", "nobody", "SUPPORTED", "--store", url])
    assert result.exit_code == 1
    assert "there is no case" in result.stderr
