"""Models of applications as the LLM judge's: what is asked of them, where, and what their failures do."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from guardrail import Judge
from guardrail.errors import ConfigError, JudgeUnavailable
from guardrail.integrations.background import BackgroundGuard, GuardClosed
from guardrail.integrations.chat_models import ChatModel, Messages
from guardrail.integrations.evaluating import EvaluatingGuard
from tests.support.judges import WordJudge
from tests.unit.integrations.conformance.script import Script

PRICES = "The basic plan costs $49 a month."
RIGHT, WRONG = PRICES, "The pro plan is free."
ASKED = ("How much?", [PRICES], f"{RIGHT} {WRONG}")


class Model:
    """Replies by a script, or what ``fail`` raises first; knows what it was asked, and in which threads."""

    model_name = "their-model"

    def __init__(self, fail: Callable[[Messages], None] = lambda _: None) -> None:
        self.asked: list[Messages] = []
        self.threads: list[int] = []
        self.fail = fail

    def ask(self, given: Messages) -> str:
        self.asked.append(given)
        self.threads.append(threading.get_ident())
        self.fail(given)
        return Script().reply("\n".join(text for _, text in given))

    async def aask(self, given: Messages) -> str:
        await asyncio.sleep(0)
        return self.ask(given)

    def chat(self, *, plain: bool = False, told: Any = None) -> ChatModel:
        return ChatModel(self, list, self.ask, None if plain else self.aask, lambda text: (text, told))


def guard(model: ChatModel, **judge: Any) -> EvaluatingGuard:
    return EvaluatingGuard(judge or None, llm=model)


def found(verdict: Any) -> list[str]:
    return [str(each.verdict) for each in verdict.claims]


def test_it_gets_the_judges_messages_and_its_verdicts_count() -> None:
    model = Model()
    judged = guard(model.chat(told={"prompt_tokens": 120, "completion_tokens": 8}))
    verdict = judged.run(lambda: judged.acheck(*ASKED))
    judged.close()
    assert found(verdict) == ["SUPPORTED", "UNSUPPORTED"]
    assert {claim.judge for claim in verdict.claims} == {"llm:their-model"}
    assert (verdict.usage.judge_calls, verdict.usage.input_tokens, verdict.usage.output_tokens) == (1, 120, 8)
    ((system, user),) = model.asked
    assert (system[0], user[0]) == ("system", "user")
    assert PRICES in user[1]


async def test_it_is_asked_where_somebody_waits() -> None:
    here = threading.get_ident()
    model = Model()
    judged = guard(model.chat())
    await judged.acheck(*ASKED)
    assert model.threads == [here], "its connections belong to this loop"
    await asyncio.to_thread(judged.run, lambda: judged.acheck("Again?", [PRICES], "The plan is new."))
    assert model.threads[1] != here
    await judged.aclose()
    plain = Model()
    judged = guard(plain.chat(plain=True))
    await judged.acheck(*ASKED)
    await judged.aclose()
    assert plain.threads[0] != here, "it would hold up this loop"


async def test_what_the_caller_cancels_is_cancelled_in_the_model() -> None:
    asked, cancelled = asyncio.Event(), asyncio.Event()

    async def hang(_: Messages) -> str:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    judged = guard(ChatModel(object(), list, lambda _: "", hang, lambda text: (text, None)))
    task = asyncio.create_task(judged.acheck(*ASKED))
    await asked.wait()
    task.cancel()
    await cancelled.wait()
    with pytest.raises(asyncio.CancelledError):
        await task
    await judged.aclose()


async def test_a_stream_is_guarded_by_it() -> None:
    async def written() -> Any:
        yield f"{RIGHT} {WRONG}"

    model = Model()
    async with BackgroundGuard(judge=model.chat().judge()) as guarded:
        events = [each async for each in guarded.astream("How much?", [PRICES], written())]
    (verdict,) = (each for each in events if each.type == "verdict.response")
    assert found(verdict) == ["SUPPORTED", "UNSUPPORTED"]
    assert set(model.threads) == {threading.get_ident()}


class Limited(Exception):
    status_code = 429


class NoKey(Exception):
    status_code = 401


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("secret"), r"their-model raised ValueError$"),
        (Limited(), r"their-model raised Limited \(429\)$"),
        (NoKey(), r"their-model raised NoKey \(401\)$"),
    ],
)
def test_its_failures_are_told_without_their_texts_and_not_repeated(error: Exception, said: str) -> None:
    def fail(_: Messages) -> None:
        raise error

    model = Model(fail)
    judged = guard(model.chat())
    with pytest.raises(JudgeUnavailable, match=said) as caught:
        judged.run(lambda: judged.acheck(*ASKED))
    judged.close()
    assert "secret" not in str(caught.value)
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    ("error", "plain"),
    [
        (StopIteration, True),
        (SystemExit, True),
        (asyncio.CancelledError, True),
        (asyncio.CancelledError, False),
        (ValueError("\ud800"), False),
    ],
)
async def test_whatever_it_raises_ends_the_answer_only(error: Any, plain: bool) -> None:
    failing = [error]

    def ask(given: Messages) -> str:
        if failing:
            raise failing.pop()
        return Script().reply("\n".join(text for _, text in given))

    async def aask(given: Messages) -> str:
        return ask(given)

    judged = guard(ChatModel(object(), list, ask, None if plain else aask, lambda text: (text, None)))
    with pytest.raises(JudgeUnavailable, match="object raised ") as caught:
        await judged.acheck(*ASKED)
    assert caught.value.__cause__ is not None, "the application sees what its model said"
    assert found(await judged.acheck(*ASKED)) == ["SUPPORTED", "UNSUPPORTED"]
    await judged.aclose()


def test_a_reply_that_is_no_text_in_utf_8_is_a_failure() -> None:
    judged = guard(ChatModel(object(), list, lambda _: '{"v": ["\ud800"]}', None, lambda text: (text, None)))
    with pytest.raises(JudgeUnavailable, match="UnicodeEncodeError"):
        judged.run(lambda: judged.acheck(*ASKED))
    judged.close()


async def test_a_call_that_never_ends_does_not_hold_up_closing() -> None:
    asked, end = threading.Event(), threading.Event()

    def ask(_: Messages) -> str:
        asked.set()
        end.wait()
        return ""

    judged = guard(ChatModel(object(), list, ask, None, lambda text: (text, None)))
    task = asyncio.create_task(judged.acheck(*ASKED))
    await asyncio.to_thread(asked.wait)
    await judged.aclose()  # or it raises TimeoutError
    with pytest.raises(GuardClosed):
        await task
    (thread,) = (each for each in threading.enumerate() if each.name == "chat-model")
    assert thread.daemon, "nor the end of the process"
    end.set()
    thread.join()


@pytest.mark.parametrize(
    ("before", "kept", "verdicts"),
    [("", False, None), ("Sure: ", False, None), ("", True, ["SUPPORTED", "UNSUPPORTED"])],
)
def test_a_prompt_that_comes_back_is_no_reply(before: str, kept: bool, verdicts: list[str] | None) -> None:
    def ask(given: Messages) -> str:
        prompt = "\n".join(f"{role}: {text}" for role, text in given)
        assert "supported" in prompt, "its examples look like a reply"
        return before + prompt + (Script().reply(prompt) if kept else "")

    judged = guard(ChatModel(object(), list, ask, None, lambda text: (text, None)))
    if verdicts is None:
        with pytest.raises(JudgeUnavailable, match="no claim of the answer could be judged"):
            judged.run(lambda: judged.acheck(*ASKED))
    else:
        assert found(judged.run(lambda: judged.acheck(*ASKED))) == verdicts
    judged.close()


def test_what_it_costs_is_asked_for_only_if_a_budget_counts_it(caplog: pytest.LogCaptureFixture) -> None:
    model = Model().chat(told={"prompt_tokens": 120, "completion_tokens": 8})
    judged = guard(model)
    judged.run(lambda: judged.acheck(*ASKED))
    judged.close()
    assert "judge.price_unknown" not in caplog.text
    with pytest.raises(ConfigError, match="needs the price of 'their-model'"):
        guard(model, budgets={"per_minute": {"usd": 1}}).open()


def test_a_copy_asks_the_same_model_by_its_own_means() -> None:
    model = Model()
    judged = guard(model.chat()).with_prompts({"system": "Be strict. $reply_form $marker"})
    judged.run(lambda: judged.acheck(*ASKED))
    copied = deepcopy(judged)
    judged.close()
    assert found(copied.run(lambda: copied.acheck(*ASKED))) == ["SUPPORTED", "UNSUPPORTED"]
    copied.close()
    assert [given[0][1][:10] for given in model.asked] == ["Be strict."] * 2


def test_an_evaluator_is_pickled() -> None:
    judged = EvaluatingGuard({"kind": "local"}, score="ragas")
    judged.open()
    copied = pickle.loads(pickle.dumps(judged))  # noqa: S301 - our own
    judged.close()
    assert found(copied.run(lambda: copied.acheck(*ASKED)))[0] == "SUPPORTED"
    assert copied.score == "ragas"
    copied.close()


def test_a_model_without_a_system_role_gets_one_message() -> None:
    def fail(given: Messages) -> None:
        if given[0][0] == "system":
            raise ValueError("System role not supported")

    model = Model(fail)
    judged = guard(model.chat())
    assert found(judged.run(lambda: judged.acheck(*ASKED))) == ["SUPPORTED", "UNSUPPORTED"]
    judged.close()
    assert [len(given) for given in model.asked] == [2, 1]


def test_a_broken_reply_is_asked_for_again() -> None:
    replies = iter(["YES", ""])

    def ask(given: Messages) -> str:
        return next(replies) or Script().reply("\n".join(text for _, text in given))

    judged = guard(ChatModel(object(), list, ask, None, lambda text: (text, None)))
    verdict = judged.run(lambda: judged.acheck(*ASKED))
    judged.close()
    assert found(verdict) == ["SUPPORTED", "UNSUPPORTED"]
    assert {claim.judge for claim in verdict.claims} == {"llm:object"}


def test_a_cascade_asks_it_for_what_its_first_judge_leaves() -> None:
    model = Model()
    judged = guard(model.chat(), kind="cascade", llm={"reasoning": "none"})
    verdict = judged.run(lambda: judged.acheck(*ASKED))
    judged.close()
    assert verdict.claims[0].judge == "local"
    assert verdict.claims[1].judge == "llm:their-model"


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        ({"llm": {"model": "m"}}, r"judge\.llm\.model: their-model, which you give, decides it"),
        ({"llm": {"api_key": {"env": "KEY"}}}, r"judge\.llm\.api_key: their-model"),
        ({"llm": 3}, r"judge\.llm = 3: expected a mapping"),
        ({"kind": "local"}, r"judge\.kind: local asks no LLM, and you give their-model"),
        (WordJudge(), "judge: give a WordJudge, or their-model, not both"),
    ],
)
def test_settings_that_say_otherwise_are_refused(judge: Judge | dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        EvaluatingGuard(judge, llm=Model().chat())
