"""The guard that frameworks evaluate with: any thread, any loop, bounded, and it leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from guardrail import JudgeRequest, Verdict
from guardrail.errors import ConfigError, GuardrailError, InputError, JudgeUnavailable
from guardrail.integrations.evaluating import EvaluatingGuard, with_own_ids
from tests.support.judges import FaultyJudge, WordJudge
from tests.unit.integrations.judges import MeetingJudge

ROOT = Path(__file__).parents[3]
PRICES = ["The basic plan costs $49 a month."]
RIGHT, WRONG = "The basic plan costs $49 a month.", "The basic plan costs $79 a month."


@pytest.fixture
def words() -> Iterator[EvaluatingGuard]:
    guard = EvaluatingGuard(WordJudge())
    yield guard
    guard.close()


def answers(count: int, text: str = RIGHT) -> list[tuple[str, list[str], str]]:
    return [("How much?", PRICES, text)] * count


def nothing() -> None:
    pass


def evaluating_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "evaluating-guard"]


def test_the_local_judge_is_the_default_and_every_claim_is_judged() -> None:
    guard = EvaluatingGuard()
    try:
        verdict = guard.run(lambda: guard.acheck("How much?", PRICES, f"{WRONG} {RIGHT}"))
    finally:
        guard.close()
    assert [claim.verdict for claim in verdict.claims] == [Verdict.CONTRADICTED, Verdict.SUPPORTED]
    assert verdict.complete
    assert verdict.mode == "stream", "the policy's own, though nothing was blocked"


def test_one_guard_serves_plain_code_and_one_event_loop_after_another(words: EvaluatingGuard) -> None:
    async def ask() -> int:
        within = words.run(lambda: words.acheck("", PRICES, RIGHT))  # plain code within a loop
        return within.counts.supported + (await words.acheck("", PRICES, RIGHT)).counts.supported

    assert words.run(lambda: words.acheck("", PRICES, RIGHT)).counts.supported == 1
    assert asyncio.run(ask()) == 2
    assert asyncio.run(ask()) == 2
    assert len(evaluating_threads()) == 1


@pytest.mark.parametrize("call", ["check_all", "acheck_all"])
def test_as_many_answers_are_judged_at_a_time_as_configured_and_no_more(call: str) -> None:
    judge = MeetingJudge(together=3)
    guard = EvaluatingGuard(judge, concurrency=3)
    done = []
    try:
        if call == "check_all":
            found = guard.run(lambda: guard.acheck_all(answers(9), lambda: done.append(1), fail_fast=True))
        else:
            found = asyncio.run(guard.acheck_all(answers(9), lambda: done.append(1), fail_fast=True))
    finally:
        guard.close()
    assert [isinstance(each, Exception) for each in found] == [False] * 9
    assert judge.most == 3
    assert len(done) == 9
    assert not judge.closed, "a judge that is handed in stays open"


def test_outcomes_have_the_order_of_the_answers_and_errors_stay_with_theirs(words: EvaluatingGuard) -> None:
    given = [
        ("", PRICES, "One is true. Two is a contradiction."),
        ("", ["\ud800"], "One is true."),
        ("", PRICES, "Three is true."),
    ]
    first, second, third = words.run(lambda: words.acheck_all(given, nothing, fail_fast=False))
    assert not isinstance(first, Exception)
    assert len(first.claims) == 2
    assert isinstance(second, InputError)
    assert not isinstance(third, Exception)
    assert third.claims[0].text == "Three is true."
    with pytest.raises(InputError, match="surrogate"):
        words.run(lambda: words.acheck_all(given, nothing, fail_fast=True))


def test_the_same_answer_has_the_same_ids_in_every_run_and_another_one_others(words: EvaluatingGuard) -> None:
    first, again = (words.run(lambda: words.acheck("How much?", PRICES, RIGHT)) for _ in range(2))
    assert first.id == again.id
    assert [claim.claim_id for claim in first.claims] == [claim.claim_id for claim in again.claims]
    assert words.run(lambda: words.acheck("How much is it?", PRICES, RIGHT)).id != first.id


@pytest.mark.parametrize("ids", [("a", "a"), ("a", "")])
def test_documents_have_their_own_ids_unless_one_has_none_or_two_are_alike(ids: tuple[str, str]) -> None:
    two = [{"id": "a", "text": "One."}, {"id": "b", "text": "Two."}]
    assert with_own_ids([("a", "One."), ("b", "Two.")]) == two
    assert with_own_ids(zip(ids, ("One.", "Two."), strict=True)) == ["One.", "Two."]


def test_what_is_no_answer_is_told_by_its_field(words: EvaluatingGuard) -> None:
    with pytest.raises(InputError, match=r"contexts\.0"):
        words.run(lambda: words.acheck("", [{"id": "a"}], RIGHT))
    with pytest.raises(TypeError, match="list of contexts"):
        words.run(lambda: words.acheck("", "one text", RIGHT))


def test_an_answer_of_which_nothing_could_be_judged_is_an_error_and_no_score() -> None:
    def fail(_: JudgeRequest) -> Any:
        raise JudgeUnavailable("no connection")

    guard = EvaluatingGuard(FaultyJudge(fail))
    try:
        with pytest.raises(
            JudgeUnavailable, match=r"no claim of the answer could be judged: .*no connection"
        ):
            guard.run(lambda: guard.acheck("", PRICES, RIGHT))
        assert guard.run(lambda: guard.acheck("", PRICES, "Thank you!")).claims == (), (
            "there was nothing to judge"
        )
    finally:
        guard.close()


def test_what_a_caller_cancels_reaches_the_judge() -> None:
    judge = MeetingJudge(together=2)
    guard = EvaluatingGuard(judge)

    async def leave() -> None:
        asking = asyncio.create_task(guard.acheck("", PRICES, RIGHT))
        await asyncio.to_thread(judge.came.wait)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    try:
        asyncio.run(leave())
        assert judge.cancelled.wait(60)
    finally:
        guard.close()


def test_closing_ends_what_is_under_way_with_an_error_that_says_so() -> None:
    judge = MeetingJudge(together=3)
    guard = EvaluatingGuard(judge)

    async def close_meanwhile() -> None:
        all_of_them = partial(guard.acheck_all, answers(1), nothing, fail_fast=True)
        plain = asyncio.create_task(asyncio.to_thread(guard.run, all_of_them))
        await asyncio.to_thread(judge.came.wait)
        judge.came.clear()
        asking = asyncio.create_task(guard.acheck("", PRICES, RIGHT))
        await asyncio.to_thread(judge.came.wait)
        await guard.aclose()
        for each in (asking, plain):
            with pytest.raises(GuardrailError, match="closed"):
                await each

    asyncio.run(close_meanwhile())


def test_work_that_a_closing_guard_has_begun_does_not_open_it_anew(words: EvaluatingGuard) -> None:
    closing = threading.Thread(target=words.close)

    async def ask_late() -> None:
        closing.start()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        with pytest.raises(GuardrailError, match="closed"):
            await words.acheck("", PRICES, RIGHT)

    words.run(ask_late)
    closing.join()
    assert evaluating_threads() == []


def test_a_closed_guard_opens_anew_when_it_is_asked(words: EvaluatingGuard) -> None:
    words.open()
    words.close()
    words.close()
    assert evaluating_threads() == []
    assert words.run(lambda: words.acheck("", PRICES, RIGHT)).counts.supported == 1


def test_a_guard_that_nobody_closes_ends_when_it_is_collected(words: EvaluatingGuard) -> None:
    words.open()
    kept = set(evaluating_threads())
    guard = EvaluatingGuard(WordJudge())
    guard.open()
    (thread,) = set(evaluating_threads()) - kept
    del guard
    gc.collect()
    thread.join(60)
    assert not thread.is_alive()


def test_wrong_settings_are_told_where_they_are_written() -> None:
    with pytest.raises(ConfigError, match=r"judge\.kind = 'lokal'"):
        EvaluatingGuard({"kind": "lokal"})
    with pytest.raises(ConfigError, match="concurrency"):
        EvaluatingGuard(concurrency=0)
    with pytest.raises(ConfigError, match="concurrency: '8' is no whole number"):
        EvaluatingGuard(concurrency="8")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"unknown score \['mastra'\]"):
        EvaluatingGuard(score=["mastra"])  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="unknown score 'mean'; known scores: severity_weighted"):
        EvaluatingGuard(score="mean")
    with pytest.raises(TypeError, match=r"judge: give a guardrail\.Judge"):
        EvaluatingGuard("local")  # type: ignore[arg-type]


def test_a_judge_that_cant_be_opened_is_told_to_who_asks(tmp_path: Path) -> None:
    key = {"file": str(tmp_path / "missing")}
    guard = EvaluatingGuard({"kind": "llm", "llm": {"base_url": "http://127.0.0.1:9/v1", "api_key": key}})
    for _ in range(2):
        with pytest.raises(ConfigError, match="can't be read"):
            guard.run(lambda: guard.acheck("", PRICES, RIGHT))
    with pytest.raises(ConfigError, match="can't be read"):
        asyncio.run(guard.acheck("", PRICES, RIGHT))


def test_settings_come_from_a_file_and_the_judge_over_it(tmp_path: Path) -> None:
    file = tmp_path / "guardrail.yaml"
    file.write_text("judge: {kind: lokal}\npolicies: {default: {version: '7', mode: hold}}\n")
    with pytest.raises(ConfigError, match="lokal"):
        EvaluatingGuard(settings=file)
    guard = EvaluatingGuard({"kind": "local"}, file)
    try:
        verdict = guard.run(lambda: guard.acheck("", PRICES, WRONG))
    finally:
        guard.close()
    assert (verdict.policy.version, verdict.mode) == ("7", "hold")
    assert guard.parameters() == {"judge": {"kind": "local"}, "settings": str(file), "concurrency": 8}


LLM = {"kind": "llm", "llm": {"base_url": "http://127.0.0.1:9/v1", "model": "m"}}


def test_an_equal_guard_is_made_of_its_parameters() -> None:
    guard = EvaluatingGuard({**LLM, "llm": {**LLM["llm"], "api_key": {"env": "KEY"}}}, concurrency=3)  # type: ignore[dict-item]
    assert EvaluatingGuard(**guard.parameters()).parameters() == guard.parameters()


@pytest.mark.parametrize(
    ("extra", "path"),
    [
        ({"api_key": "sk-1"}, "judge.llm.api_key"),
        ({"extra_headers": {"X-Key": "sk-1"}}, "judge.llm.extra_headers.X-Key"),
        ({"fallbacks": [{"model": "n", "api_key": "sk-1"}]}, "judge.llm.fallbacks.0.api_key"),
        ({"extra_body": {"user": "sk-1"}}, "judge.llm.extra_body.user"),
        ({"base_url": "https://gateway.example/v1?key=sk-1"}, "judge.llm.base_url"),
    ],
)
def test_secrets_are_not_written_down(extra: dict[str, Any], path: str) -> None:
    guard = EvaluatingGuard({**LLM, "llm": {**LLM["llm"], **extra}})  # type: ignore[dict-item]
    with pytest.raises(ConfigError) as told:
        guard.parameters()
    assert str(told.value).startswith(f"{path}: ")
    assert "sk-1" not in str(told.value)
    with pytest.raises(ConfigError, match="a WordJudge can't be written down"):
        EvaluatingGuard(WordJudge()).parameters()


SCRIPT = """
import os, sys
from guardrail.integrations.evaluating import EvaluatingGuard

guard = EvaluatingGuard()
def judged():
    return guard.run(lambda: guard.acheck("", ["It costs $5."], "It costs $5.")).counts.supported == 1
assert judged()
if sys.argv[1] == "fork":
    child = os.fork()
    if not child:
        os._exit(0 if judged() else 1)
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.parametrize("how", ["leave", "fork"])
def test_a_process_ends_quietly_with_a_guard_that_is_open_and_a_child_opens_its_own(how: str) -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SCRIPT, how]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


WITHOUT_OPENAI = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"openai", "httpx2"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
from guardrail.integrations.evaluating import EvaluatingGuard

guard = EvaluatingGuard()
assert guard.run(lambda: guard.acheck("", ["It costs $5."], "It costs $5.")).counts.supported == 1
guard.close()
"""


def test_the_local_judge_needs_no_openai_which_frameworks_may_have_in_another_version() -> None:
    command = [sys.executable, "-c", WITHOUT_OPENAI]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
