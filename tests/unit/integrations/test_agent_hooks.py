"""The guard in agent-hooks 0.1: as an interceptor of any host, and as a host that mediates incrementally."""

from __future__ import annotations

import asyncio
import gc
import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from itertools import pairwise
from types import FrameType, TracebackType
from typing import Any

import pytest
from agent_hooks import (
    AgentContextBuilder,
    ApprovalOutcome,
    ApprovalRequest,
    ApprovalResolution,
    DeclarationError,
    HostRegistry,
    InterceptionBlocked,
    InterceptionEmitter,
    InterceptionRecord,
    Verdict,
)
from agent_hooks.ctk import load_vectors
from hypothesis import given
from hypothesis import strategies as st

from guardrail import Decision, Guard, GuardrailError, Judgement, JudgeRequest
from guardrail import Verdict as Verdicts
from guardrail.integrations.agent_hooks import GuardBinding, GuardInterceptor, guard_kind
from guardrail.integrations.agent_hooks_host import (
    DECLARATION,
    EXPOSURE_BOUND,
    KIND,
    SURFACE,
    IncrementalHost,
    ModelEnd,
)
from guardrail.policy import Policy, Rule
from tests.support.docs import blocks
from tests.support.judges import FaultyJudge, GatedJudge, WordJudge
from tests.unit.integrations.agent_hooks_kit import KitHarness, ran

RIGHT = "The basic plan costs $49 a month. "
WRONG = "The wrong plan costs $79 a month. "
ODD = "The unbacked plan has 3 seats. "
LATER = "The team plan has 9 seats. "
DOCUMENTS = ["The basic plan costs $49 a month."]
ASKED = "What does it cost?"
BLOCKS = Rule(name="contradicted", verdict=(Verdicts.CONTRADICTED,), action=Decision.BLOCK)
MARK = "[removed: not backed by the sources] "


# ------------------------------------------------------------------------------------------- the interceptor


def sources_of(request: JudgeRequest) -> list[str]:
    return [context.text for context in request.evidence.contexts]


class Session:
    """A session of some host that has the guard as its interceptor."""

    def __init__(self, interceptor: Any, name: str = "s1", **of_emitter: Any) -> None:
        self.emitter = InterceptionEmitter(**of_emitter).register(interceptor, "guard")
        self.build = AgentContextBuilder(agent_id="help", framework="any", session_id=name)

    async def asks(self, question: str = ASKED, **extensions: Any) -> None:
        context = self.build.input(content=question)
        await self.emitter.emit({**context, "extensions": extensions})

    async def finds(self, value: Any, tool: str = "search", *, is_error: bool = False) -> None:
        call_id = f"c{len(self.emitter.results)}"
        await self.emitter.emit(
            self.build.post_tool_call(call_id=call_id, name=tool, args={}, value=value, is_error=is_error)
        )

    async def says(self, content: Any) -> Any:
        """What the host may give its caller."""
        context = self.build.output(content=content)
        await self.emitter.emit(context)
        return context["output"]["content"]

    @property
    def last(self) -> Verdict:
        return self.emitter.results[-1].verdict


@pytest.fixture
async def guard() -> AsyncGenerator[Guard, None]:
    async with Guard(WordJudge(), Policy(rules=(BLOCKS, "verdict UNSUPPORTED: redact"))) as guard:
        yield guard


SEARCHES = GuardBinding(tools=frozenset({"search"}))


async def test_what_is_backed_by_a_named_tools_result_is_allowed(guard: Guard) -> None:
    session = Session(GuardInterceptor(guard, SEARCHES))
    await session.asks()
    await session.finds(DOCUMENTS[0])
    assert await session.says(RIGHT) == RIGHT
    assert (session.last.decision.value, session.last.warnings) == ("allow", ())


async def test_the_judge_gets_question_and_results_and_nothing_that_users_say(guard: Guard) -> None:
    judge = WordJudge()
    async with Guard(judge) as guard:
        session = Session(GuardInterceptor(guard, SEARCHES))
        await session.asks()
        await session.finds("of another tool", "weather")
        await session.finds("failed", is_error=True)
        await session.finds({"title": "Plans", "text": DOCUMENTS[0]})
        await session.says(RIGHT)
    (request,) = judge.requests
    assert request.question == ASKED
    assert sources_of(request) == [json.dumps({"title": "Plans", "text": DOCUMENTS[0]})]


async def test_sessions_of_two_tenants_with_one_id_share_no_documents(guard: Guard) -> None:
    interceptor = GuardInterceptor(guard, SEARCHES)
    one, other = Session(interceptor), Session(interceptor)
    one.build.with_l2(tenant={"id": "one"})
    other.build.with_l2(tenant={"id": "other"})
    await one.asks()
    await other.asks()
    await one.finds(DOCUMENTS[0])
    with pytest.raises(InterceptionBlocked):
        await other.says(RIGHT)
    assert await one.says(RIGHT) == RIGHT


async def test_a_block_is_a_deny_with_the_policys_message(guard: Guard) -> None:
    session = Session(GuardInterceptor(guard))
    await session.asks(guardrail={"contexts": DOCUMENTS})
    with pytest.raises(InterceptionBlocked) as blocked:
        await session.says(RIGHT + WRONG)
    verdict = blocked.value.result.verdict
    assert verdict.reason == "guardrail:contradicted"
    assert (verdict.message or "").startswith("This answer was withheld")
    assert verdict.evidence is not None
    assert len(verdict.evidence.artefact or "") == 32
    assert "wrong" not in json.dumps([each.to_wire() for each in session.emitter.results])


async def test_a_redaction_is_a_transform(guard: Guard) -> None:
    session = Session(GuardInterceptor(guard))
    await session.asks(guardrail={"contexts": DOCUMENTS})
    assert await session.says(RIGHT + ODD + RIGHT) == RIGHT + MARK + RIGHT


async def test_what_is_flagged_is_allowed_with_a_warning() -> None:
    async with Guard(WordJudge(), Policy(rules=(BLOCKS, "verdict UNSUPPORTED: flag"))) as guard:
        session = Session(GuardInterceptor(guard))
        await session.asks(guardrail={"contexts": DOCUMENTS})
        assert await session.says(ODD) == ODD
        (warning,) = session.last.warnings
    assert warning.reason is not None
    assert warning.reason.startswith("guardrail:")
    assert (warning.message or "").startswith("flagged: ")


async def test_a_policy_that_observes_says_that_nothing_is_checked() -> None:
    async with Guard(WordJudge(), Policy(mode="observe")) as guard:
        session = Session(GuardInterceptor(guard))
        await session.asks(guardrail={"contexts": DOCUMENTS})
        assert await session.says(WRONG) == WRONG
        assert [each.reason for each in session.last.warnings] == ["guardrail:not_checked"]


@pytest.mark.parametrize(("missing", "decision"), [("refuse", "deny"), ("flag", "allow"), ("judge", "allow")])
async def test_an_answer_without_documents(guard: Guard, missing: Any, decision: str) -> None:
    session = Session(GuardInterceptor(guard, GuardBinding(missing_contexts=missing)))
    await session.asks()
    record = await session.emitter.emit_unchecked(session.build.output(content=RIGHT))
    assert record.verdict.decision.value == decision
    assert [each.reason for each in record.verdict.warnings] == ["guardrail:no_contexts"] * (
        missing == "flag"
    )
    assert await session.says("Hello! How can I help?") == "Hello! How can I help?"


async def test_the_next_question_has_documents_of_its_own(guard: Guard) -> None:
    session = Session(GuardInterceptor(guard))
    await session.asks(guardrail={"contexts": DOCUMENTS})
    assert await session.says(RIGHT) == RIGHT
    await session.asks("And the team plan?")
    with pytest.raises(InterceptionBlocked, match="no_contexts"):
        await session.says(LATER)


async def test_a_text_is_judged_again_when_there_are_more_documents(guard: Guard) -> None:
    session = Session(GuardInterceptor(guard, SEARCHES))
    await session.asks()
    with pytest.raises(InterceptionBlocked, match="no_contexts"):
        await session.says(RIGHT)
    await session.finds(DOCUMENTS[0])
    assert await session.says(RIGHT) == RIGHT


async def test_a_wrong_extension_is_said_and_denied(guard: Guard) -> None:
    session = Session(GuardInterceptor(guard))
    await session.asks(guardrail={"context": DOCUMENTS})
    record = await session.emitter.emit_unchecked(session.build.output(content=RIGHT))
    assert record.verdict.reason == "guardrail:invalid_extension"
    assert "context" in (record.verdict.message or "")


async def test_sessions_know_nothing_of_each_other_and_end(guard: Guard) -> None:
    interceptor = GuardInterceptor(guard, SEARCHES)
    one, other = Session(interceptor, "s1"), Session(interceptor, "s2")
    await one.asks()
    await one.finds(DOCUMENTS[0])
    await other.asks()
    assert await one.says(RIGHT) == RIGHT
    with pytest.raises(InterceptionBlocked):
        await other.says(RIGHT)
    await one.emitter.emit(one.build.agent_shutdown(reason="completed"))
    with pytest.raises(InterceptionBlocked):
        await one.says(RIGHT)  # the session's documents went with it


async def test_the_oldest_sessions_are_forgotten(guard: Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GuardInterceptor, "most_sessions", 2)
    interceptor = GuardInterceptor(guard, SEARCHES)
    sessions = [Session(interceptor, f"s{number}") for number in range(3)]
    for session in sessions:
        await session.asks()
        await session.finds(DOCUMENTS[0])
    assert await sessions[2].says(RIGHT) == RIGHT
    with pytest.raises(InterceptionBlocked):
        await sessions[0].says(RIGHT)


async def test_of_messages_the_assistants_texts_are_judged(guard: Guard) -> None:
    session = Session(GuardInterceptor(guard))
    await session.asks(guardrail={"contexts": DOCUMENTS})
    call = {"type": "function_call", "name": "search", "arguments": "wrong"}
    told = {"role": "tool", "content": [{"type": "function_result", "result": "wrong"}]}
    shown = await session.says(
        [
            {"role": "assistant", "content": [call]},
            told,
            {"role": "assistant", "content": [{"type": "text_reasoning", "text": "wrong"}]},
            {"role": "model", "content": WRONG},
            {"role": "assistant", "content": [{"type": "text", "text": RIGHT + ODD}]},
        ]
    )
    assert shown == [
        {"role": "assistant", "content": [call]},
        told,
        {"role": "assistant", "content": []},
        {"role": "assistant", "content": [{"type": "text", "text": RIGHT + MARK}]},
    ]


async def test_what_is_no_text_is_denied(guard: Guard) -> None:
    session = Session(GuardInterceptor(guard))
    await session.asks(guardrail={"contexts": DOCUMENTS})
    with pytest.raises(InterceptionBlocked, match="no_text"):
        await session.says({"price": WRONG})


async def test_a_judge_that_takes_longer_than_the_host_waits_denies() -> None:
    judge = GatedJudge()
    async with Guard(judge) as guard:
        session = Session(GuardInterceptor(guard), timeout=0.05)
        await session.asks(guardrail={"contexts": DOCUMENTS})
        with pytest.raises(InterceptionBlocked, match="interceptor_timeout"):
            await session.says(RIGHT)


async def test_a_text_that_was_judged_is_not_judged_again() -> None:
    judge = WordJudge()
    async with Guard(judge) as guard:
        session = Session(GuardInterceptor(guard))
        await session.asks(guardrail={"contexts": DOCUMENTS})
        reply = session.build.post_model_call(
            model_id="m", content=RIGHT, tool_calls=[], finish_reason="stop"
        )
        await session.emitter.emit(reply)
        await session.says(RIGHT)
    assert len(judge.requests) == 1


async def test_a_declaration_binds_the_guard_where_it_needs_to_be(guard: Guard) -> None:
    def emitter(**binding: Any) -> InterceptionEmitter:
        registry = HostRegistry(SURFACE).kind(KIND, guard_kind(guard))
        document = {**DECLARATION, "bindings": [{"id": "guard", "kind": KIND, **binding}]}
        return InterceptionEmitter.from_declaration_value(document, registry)

    emitter(config={"tools": ["search"], "missing_contexts": "flag"})
    with pytest.raises(DeclarationError, match="missing_contexts") as refused:
        emitter(config={"missing_contexts": "secret-value"})
    assert "secret-value" not in str(refused.value)
    with pytest.raises(DeclarationError, match="the guard needs agent_shutdown"):
        emitter(at=["input", "output"])
    with pytest.raises(DeclarationError, match="the guard needs post_tool_call"):
        emitter(config={"tools": ["search"]}, at=["input", "output", "post_model_call", "agent_shutdown"])


# ------------------------------------------------------------------------------------------- the host


class Model:
    """Writes what a test says, piece by piece; waits where it says None."""

    def __init__(self, *pieces: Any) -> None:
        self.turns = [list(pieces)]
        self.go_on = asyncio.Event()
        self.messages: list[Any] = []
        self.closed = 0

    async def __call__(self, messages: list[dict[str, Any]]) -> AsyncIterator[str | ModelEnd]:
        self.messages.append(messages)
        try:
            for piece in self.turns.pop(0):
                if isinstance(piece, Exception):
                    raise piece
                if piece is None:
                    await self.go_on.wait()
                else:
                    yield piece
                    await asyncio.sleep(0)
        finally:
            self.closed += 1


class Kept:
    """The records of a host."""

    def __init__(self) -> None:
        self.records: list[InterceptionRecord] = []

    def __call__(self, record: InterceptionRecord) -> None:
        self.records.append(record)

    @property
    def told(self) -> list[str]:
        return [
            f"{each.interception_point.value}: {each.verdict.decision.value}"
            + (f" {each.verdict.reason}" if each.verdict.reason else "")
            for each in self.records
        ]


async def read(answer: AsyncIterator[str], into: list[str]) -> None:
    async for piece in answer:
        into += [piece]


def bound(*before: str, **configuration: Any) -> dict[str, Any]:
    """A declaration with interceptors before the guard."""
    others = [{"id": f"i{n}", "kind": kind} for n, kind in enumerate(before)]
    guard = {"id": "guard", "kind": KIND}
    return {**DECLARATION, "bindings": [*others, guard], "configuration": configuration}


class Other:
    """Another interceptor: what a test says of the texts of models."""

    def __init__(self, decide: Callable[[str], dict[str, Any]]) -> None:
        self.decide = decide

    def intercept(self, context: dict[str, Any]) -> dict[str, Any]:
        if context["interception_point"] != "post_model_call":
            return {"decision": "allow"}
        return self.decide(context["response"]["content"] or "")


def registry(decide: Callable[[str], dict[str, Any]]) -> HostRegistry:
    return HostRegistry(SURFACE).kind("test.other", lambda *_: Other(decide))


def replaces(old: str, new: str) -> Callable[[str], dict[str, Any]]:
    def decide(text: str) -> dict[str, Any]:
        if old not in text:
            return {"decision": "allow"}
        change = {"path": "$target.content", "value": text.replace(old, new)}
        return {"decision": "transform", "transform": change}

    return decide


async def test_each_claim_leaves_on_its_verdict_while_the_model_writes(guard: Guard) -> None:
    model, kept, shown = Model(RIGHT, LATER[:9], None, LATER[9:], ModelEnd()), Kept(), list[str]()
    host = IncrementalHost(model, guard, records=kept)
    answer = host.answer(ASKED, DOCUMENTS)
    shown.append(await anext(answer))
    assert shown == [RIGHT]
    model.go_on.set()
    await read(answer, shown)
    assert "".join(shown) == RIGHT + LATER
    assert kept.told == [
        "agent_startup: allow",
        "input: allow",
        "pre_model_call: allow",
        "post_model_call: allow",
        "post_model_call: allow",
        "output: allow",
        "agent_shutdown: allow",
    ]
    assert {each.declaration for each in kept.records} == {"agent-hooks-declaration/1.0"}


async def test_nothing_leaves_before_its_verdict() -> None:
    judge, model, shown = GatedJudge(), Model(RIGHT, LATER, ModelEnd()), list[str]()
    async with Guard(judge) as guard:
        reading = asyncio.create_task(read(IncrementalHost(model, guard).answer(ASKED, DOCUMENTS), shown))
        await judge.asked.wait()
        for _ in range(50):
            await asyncio.sleep(0)
        assert shown == []
        judge.gate.set()
        await reading
    assert "".join(shown) == RIGHT + LATER


async def test_a_block_withholds_the_rest_and_leaves_the_model(guard: Guard) -> None:
    model, kept, shown = Model(RIGHT, WRONG, LATER, None, ModelEnd()), Kept(), list[str]()
    with pytest.raises(InterceptionBlocked) as blocked:
        await read(IncrementalHost(model, guard, records=kept).answer(ASKED, DOCUMENTS), shown)
    assert shown == [RIGHT]
    assert blocked.value.result.verdict.reason == "guardrail:contradicted"
    assert (blocked.value.result.verdict.message or "").startswith("This answer was withheld")
    assert kept.told[3:] == [
        "post_model_call: allow",
        "post_model_call: deny guardrail:contradicted",
        "agent_shutdown: allow",
    ]
    assert model.closed == 1


CONTAINERS = (dict, list, tuple, set, frozenset, deque, TracebackType, FrameType, BaseException)
OURS = ("guardrail", "agent_hooks", "tests")


def texts_in(found: Any, seen: set[int]) -> str:
    """All texts that can be reached from an object, but not through the code of modules."""
    todo, texts = [found], []
    while todo:
        each = todo.pop()
        if isinstance(each, str | bytes):
            texts.append(each if isinstance(each, str) else each.decode("utf-8", "replace"))
        elif id(each) not in seen and not isinstance(each, type):
            seen.add(id(each))
            if isinstance(each, FrameType):
                todo.append(each.f_locals if __file__ != each.f_code.co_filename else {})  # the test's own
                todo.append(each.f_back)
            elif isinstance(each, CONTAINERS) or type(each).__module__.startswith(
                ("guardrail", "agent_hooks")
            ):
                todo += gc.get_referents(each)
    return "\n".join(texts)


class ForgetfulJudge(WordJudge):
    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        async for each in super().judge(request):
            yield each
        self.requests.clear()


async def test_of_what_is_withheld_nothing_is_kept() -> None:
    secret = "The wrong plan costs $79, said Zebulon"
    kept, shown = Kept(), list[str]()
    model = Model(RIGHT, secret + ". ", "And Zebulon again. ", ModelEnd())
    async with Guard(ForgetfulJudge()) as guard:
        host = IncrementalHost(model, guard, records=kept)
        with pytest.raises(InterceptionBlocked) as blocked:
            await read(host.answer(ASKED, DOCUMENTS), shown)
        told = json.dumps([each.to_wire() for each in kept.records])
        assert "Zebulon" not in told + str(blocked.value) + repr(blocked.value.result)
        # With what the exception leads to, such as the local variables of frames, which some programs log.
        held = texts_in([host.__dict__, kept.records, shown, blocked.value], {id(model)})
    assert RIGHT in held
    assert "Zebulon" not in held


CUTS = st.lists(st.integers(0, len(RIGHT + ODD + LATER + WRONG + RIGHT)), max_size=6).map(sorted)


@given(CUTS, st.sampled_from(["stream", "hold"]), st.booleans(), st.integers(0, 3))
async def test_however_a_stream_is_cut_the_same_leaves(
    cuts: list[int], mode: Any, ends: bool, turns: int
) -> None:
    text = RIGHT + ODD + LATER + WRONG + RIGHT
    pieces = [text[start:end] for start, end in pairwise([0, *cuts, len(text)])]
    policy = Policy(mode=mode, rules=(BLOCKS, "verdict UNSUPPORTED: redact"))
    kept, shown = Kept(), list[str]()

    class Late(WordJudge):
        async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
            async for each in super().judge(request):
                for _ in range(turns):
                    await asyncio.sleep(0)
                yield each

    async with Guard(Late(), policy) as guard:
        host = IncrementalHost(Model(*pieces, *([ModelEnd()] * ends)), guard, records=kept)
        with pytest.raises(InterceptionBlocked):
            await read(host.answer(ASKED, DOCUMENTS), shown)
    said = "".join(shown)
    assert (RIGHT + MARK + LATER).startswith(said)
    assert said == RIGHT + MARK + LATER or mode == "hold" or not ends
    assert said == "" or mode == "stream"
    assert [each.sequence for each in kept.records] == list(range(len(kept.records)))


async def test_a_redaction_stands_in_the_place_of_the_text(guard: Guard) -> None:
    model, kept, shown = Model(RIGHT, ODD, LATER, ModelEnd()), Kept(), list[str]()
    await read(IncrementalHost(model, guard, records=kept).answer(ASKED, DOCUMENTS), shown)
    assert "".join(shown) == RIGHT + MARK + LATER
    assert kept.told[3:7] == [
        "post_model_call: allow",
        "post_model_call: transform",
        "post_model_call: allow",
        "output: allow",
    ]
    assert "unbacked" not in json.dumps([each.to_wire() for each in kept.records])


async def test_what_is_flagged_leaves_with_a_warning() -> None:
    kept, shown = Kept(), list[str]()
    async with Guard(WordJudge(), Policy(rules=(BLOCKS, "verdict UNSUPPORTED: flag"))) as guard:
        await read(
            IncrementalHost(Model(ODD, ModelEnd()), guard, records=kept).answer(ASKED, DOCUMENTS), shown
        )
    assert "".join(shown) == ODD
    (warning,) = kept.records[3].verdict.warnings
    assert (warning.message or "").startswith("flagged: ")


@pytest.mark.parametrize("secret", ["wrong", "fine"])
async def test_what_an_earlier_interceptor_changes_is_judged_anew(guard: Guard, secret: str) -> None:
    kept, shown = Kept(), list[str]()
    model = Model(RIGHT, "The SECRET plan has 3 seats. ", LATER, ModelEnd())
    host = IncrementalHost(
        model,
        guard,
        declaration=bound("test.other"),
        registry=registry(replaces("SECRET", secret)),
        records=kept,
    )
    if secret == "fine":
        await read(host.answer(ASKED, DOCUMENTS), shown)
        assert "".join(shown) == RIGHT + "The fine plan has 3 seats. " + LATER
    else:
        with pytest.raises(InterceptionBlocked):
            await read(host.answer(ASKED, DOCUMENTS), shown)
        assert shown == [RIGHT]
    assert "SECRET" not in "".join(shown)


async def test_what_is_out_can_not_be_changed(guard: Guard) -> None:
    def decide(text: str) -> dict[str, Any]:
        return replaces("basic", "BASIC")(text) if "team" in text else {"decision": "allow"}

    kept, shown = Kept(), list[str]()
    host = IncrementalHost(
        Model(RIGHT, LATER, ModelEnd()),
        guard,
        declaration=bound("test.other"),
        registry=registry(decide),
        records=kept,
    )
    with pytest.raises(InterceptionBlocked, match="streaming_unsupported"):
        await read(host.answer(ASKED, DOCUMENTS), shown)
    assert shown == [RIGHT]


async def test_an_earlier_interceptors_deny_withholds_the_rest(guard: Guard) -> None:
    def decide(text: str) -> dict[str, Any]:
        return {"decision": "deny", "reason": "test:no"} if "team" in text else {"decision": "allow"}

    shown = list[str]()
    host = IncrementalHost(
        Model(RIGHT, LATER, RIGHT, ModelEnd()),
        guard,
        declaration=bound("test.other"),
        registry=registry(decide),
    )
    with pytest.raises(InterceptionBlocked, match="test:no"):
        await read(host.answer(ASKED, DOCUMENTS), shown)
    assert shown == [RIGHT]


async def test_an_approval_does_not_take_the_guards_turn(guard: Guard) -> None:
    """It ends an emission before the guard, which comes last."""

    class Approves:
        def resolve(self, request: ApprovalRequest) -> ApprovalResolution:
            return ApprovalResolution(ApprovalOutcome.APPROVE, request.context_identity, Verdict.allow())

    def decide(text: str) -> dict[str, Any]:
        return {"decision": "deny", "approval": {}} if text else {"decision": "allow"}

    known = registry(decide).approval_resolver("boss", Approves())
    shown = list[str]()
    declared = bound("test.other", approval={"resolver": "boss"})
    host = IncrementalHost(Model(RIGHT, WRONG, ModelEnd()), guard, declaration=declared, registry=known)
    with pytest.raises(InterceptionBlocked, match="streaming_unsupported"):
        await read(host.answer(ASKED, DOCUMENTS), shown)
    assert shown == [RIGHT]  # which the guard has let pass, by its own verdict


async def test_without_documents_claims_are_withheld(guard: Guard) -> None:
    shown = list[str]()
    host = IncrementalHost(Model(RIGHT, ModelEnd()), guard)
    with pytest.raises(InterceptionBlocked, match="no_contexts"):
        await read(host.answer(ASKED), shown)
    assert shown == []


@pytest.mark.parametrize("end", [(), (OSError("reset, after The wr"),)])
async def test_the_rest_of_a_stream_that_breaks_off_fails_closed(guard: Guard, end: Any) -> None:
    kept, shown = Kept(), list[str]()
    host = IncrementalHost(Model(RIGHT, "The team plan has", *end), guard, records=kept)
    with pytest.raises(OSError if end else InterceptionBlocked):
        await read(host.answer(ASKED, DOCUMENTS), shown)
    assert "team" not in "".join(shown)
    assert kept.told[-2:] == [
        "post_model_call: deny host_error:streaming_unsupported",
        "agent_shutdown: allow",
    ]
    assert kept.records[-2].input_identity is not None
    assert kept.records[-2].interceptors_registered == 1


async def test_what_a_judge_can_not_answer_is_withheld() -> None:
    def fails(_: Any) -> Any:
        raise ValueError("Zebulon")

    kept, shown = Kept(), list[str]()
    async with Guard(FaultyJudge(fails), Policy(on_unverified="fail_closed")) as guard:
        host = IncrementalHost(Model(RIGHT, ModelEnd()), guard, records=kept)
        with pytest.raises(InterceptionBlocked) as blocked:
            await read(host.answer(ASKED, DOCUMENTS), shown)
    assert shown == []
    assert "Zebulon" not in json.dumps(blocked.value.result.to_wire())


async def test_a_guard_that_is_gone_withholds() -> None:
    kept, shown = Kept(), list[str]()
    async with Guard(WordJudge()) as guard:
        host = IncrementalHost(Model(RIGHT, ModelEnd()), guard, records=kept)
    with pytest.raises(GuardrailError, match="not open"):
        await read(host.answer(ASKED, DOCUMENTS), shown)
    assert shown == []
    assert kept.told[-2] == "post_model_call: deny host_error:streaming_unsupported"


async def test_half_a_character_is_none(guard: Guard) -> None:
    shown = list[str]()
    await read(IncrementalHost(Model("Hello \ud83d!", ModelEnd()), guard).answer(ASKED, DOCUMENTS), shown)
    assert shown == ["Hello ?!"]


async def test_no_policy_releases_what_came_before_a_break() -> None:
    shown = list[str]()
    async with Guard(WordJudge(), Policy(on_incomplete="release")) as guard:
        host = IncrementalHost(Model(RIGHT, "The team plan has"), guard)
        with pytest.raises(InterceptionBlocked, match="streaming_unsupported"):
            await read(host.answer(ASKED, DOCUMENTS), shown)
    assert "team" not in "".join(shown)


async def test_a_policy_that_holds_releases_all_at_the_end() -> None:
    kept, shown = Kept(), list[str]()
    async with Guard(WordJudge(), Policy(mode="hold")) as guard:
        host = IncrementalHost(Model(RIGHT, WRONG, LATER, ModelEnd()), guard, records=kept)
        with pytest.raises(InterceptionBlocked, match="contradicted"):
            await read(host.answer(ASKED, DOCUMENTS), shown)
    assert shown == []


async def test_the_question_is_what_the_interceptors_left_of_it() -> None:
    judge = WordJudge()

    class Anonymous:
        def intercept(self, context: dict[str, Any]) -> dict[str, Any]:
            if context["interception_point"] != "input":
                return {"decision": "allow"}
            change = {"path": "$target.content", "value": "Who is it?"}
            return {"decision": "transform", "transform": change}

    known = HostRegistry(SURFACE).kind("test.other", lambda *_: Anonymous())
    async with Guard(judge) as guard:
        model = Model(RIGHT, ModelEnd())
        host = IncrementalHost(model, guard, declaration=bound("test.other"), registry=known)
        await read(host.answer("Who is Zebulon?", DOCUMENTS), [])
    assert judge.requests[0].question == model.messages[0][0]["content"] == "Who is it?"


async def test_a_policy_that_observes_is_refused_at_once() -> None:
    shown = list[str]()
    async with Guard(WordJudge(), Policy(mode="observe")) as guard:
        with pytest.raises(GuardrailError, match="observes"):
            await read(IncrementalHost(Model(WRONG, ModelEnd()), guard).answer(ASKED, DOCUMENTS), shown)
    assert shown == []


async def test_a_reader_who_leaves_ends_the_model_and_the_session(guard: Guard) -> None:
    model, kept = Model(RIGHT, LATER[:9], None, ModelEnd()), Kept()
    answer = IncrementalHost(model, guard, records=kept).answer(ASKED, DOCUMENTS)
    assert await anext(answer) == RIGHT
    await answer.aclose()
    assert model.closed == 1
    assert kept.told[-1] == "agent_shutdown: allow"


async def test_a_task_that_is_cancelled_ends_the_model_and_the_session() -> None:
    model, kept, judge = Model(RIGHT, LATER[:9], None, ModelEnd()), Kept(), GatedJudge()
    async with Guard(judge) as guard:
        host = IncrementalHost(model, guard, records=kept)
        reading = asyncio.create_task(read(host.answer(ASKED, DOCUMENTS), []))
        await judge.asked.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert model.closed == 1
    assert kept.told[-1] == "agent_shutdown: allow"


async def test_two_answers_at_once_are_apart() -> None:
    judge, shown = GatedJudge(), (list[str](), list[str]())
    async with Guard(judge) as guard:
        kept = Kept()
        model = Model()
        model.turns = [[RIGHT, ModelEnd()], [LATER, WRONG, ModelEnd()]]
        host = IncrementalHost(model, guard, records=kept)
        answers = [host.answer(ASKED, DOCUMENTS, session_id=name) for name in ("one", "two")]
        reading = [
            asyncio.create_task(read(answer, into)) for answer, into in zip(answers, shown, strict=True)
        ]
        await judge.asked.wait()
        judge.gate.set()
        done = await asyncio.gather(*reading, return_exceptions=True)
    assert done[0] is None
    assert isinstance(done[1], InterceptionBlocked)
    assert shown == ([RIGHT], [LATER])
    for name in ("one", "two"):
        numbers = [each.sequence for each in kept.records if each.session_id == name]
        assert numbers == list(range(len(numbers)))


async def test_results_of_named_tools_are_documents(guard: Guard) -> None:
    judge = WordJudge()
    async with Guard(judge) as guard:
        call = {"id": "c1", "name": "search", "args": {"query": "price"}}
        model = Model()
        model.turns = [
            ["I'll look that up. ", ModelEnd("tool_calls", [call, {**call, "id": "c2", "name": "nothing"}])],
            [RIGHT, ModelEnd()],
        ]

        async def search(args: dict[str, Any]) -> str:
            return f"{args['query']}: {DOCUMENTS[0]}"

        declared = {
            **DECLARATION,
            "bindings": [{"id": "guard", "kind": KIND, "config": {"tools": ["search"]}}],
        }
        shown = list[str]()
        host = IncrementalHost(model, guard, {"search": search}, declaration=declared)
        await read(host.answer(ASKED), shown)
    assert "".join(shown) == "I'll look that up. " + RIGHT
    assert sources_of(judge.requests[-1]) == [f"price: {DOCUMENTS[0]}"]
    assert [each["content"] for each in model.messages[1]] == [
        ASKED,
        "I'll look that up. ",
        f"price: {DOCUMENTS[0]}",
        "there is no such tool",
    ]


async def test_a_model_that_calls_tools_for_ever_is_left(guard: Guard, monkeypatch: Any) -> None:
    monkeypatch.setattr(IncrementalHost, "most_turns", 3)
    model = Model()
    call = {"id": "c1", "name": "breaks", "args": {}}
    model.turns = [[ModelEnd("tool_calls", [call])] for _ in range(4)]

    async def breaks(_: Any) -> Any:
        raise OSError("Zebulon")

    with pytest.raises(GuardrailError, match="3 times"):
        await read(IncrementalHost(model, guard, {"breaks": breaks}).answer(ASKED), [])
    assert model.messages[1][-1]["content"] == "OSError"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"surface": {**DECLARATION["surface"], "exposure_bound": "a chunk"}}, EXPOSURE_BOUND),
        ({"bindings": [{"id": "other", "kind": "test.other"}]}, "bind guardrail.guard"),
        (
            {"bindings": [{"id": "guard", "kind": KIND}, {"id": "other", "kind": "test.other"}]},
            "bind guardrail.guard",
        ),
        (
            {"bindings": [{"id": "guard", "kind": KIND, "at": ["input", "output", "agent_shutdown"]}]},
            "at post_model_call",
        ),
        ({"bindings": [{"id": "one", "kind": KIND}, {"id": "two", "kind": KIND}]}, "bind guardrail.guard"),
        ({"configuration": {"mode": "evaluate_only"}}, "withholds"),
        ({"configuration": {"composition": {"profile": "parallel/strictest"}}}, "first_deny"),
        ({"surface": {**DECLARATION["surface"], "capabilities": ["multi_turn"]}}, "capabilities"),
    ],
)
async def test_a_declaration_that_can_not_be_honoured_is_refused(
    guard: Guard, changed: dict[str, Any], said: str
) -> None:
    known = registry(lambda _: {"decision": "allow"})
    with pytest.raises(DeclarationError, match=said):
        IncrementalHost(Model(), guard, declaration={**DECLARATION, **changed}, registry=known)


async def test_tools_that_the_declaration_leaves_out_are_refused(guard: Guard) -> None:
    points = ["agent_startup", "input", "pre_model_call", "post_model_call", "output", "agent_shutdown"]
    surface = {
        "interception_points": points,
        "capabilities": ["incremental_output", "model_calls"],
        "buffered_output": False,
        "exposure_bound": EXPOSURE_BOUND,
    }

    async def search(_: Any) -> str:
        return ""

    IncrementalHost(Model(), guard, declaration={**DECLARATION, "surface": surface})
    with pytest.raises(DeclarationError, match="there are tools"):
        IncrementalHost(Model(), guard, {"search": search}, declaration={**DECLARATION, "surface": surface})


async def test_a_declaration_may_ask_for_whole_answers(guard: Guard) -> None:
    surface = {
        "buffered_output": True,
        "capabilities": ["model_calls", "tool_calls"],
        "interception_points": DECLARATION["surface"]["interception_points"],
    }
    kept, shown = Kept(), list[str]()
    host = IncrementalHost(
        Model(RIGHT, ODD, ModelEnd()), guard, declaration={**DECLARATION, "surface": surface}, records=kept
    )
    await read(host.answer(ASKED, DOCUMENTS), shown)
    assert shown == [RIGHT + MARK]
    assert kept.told.count("post_model_call: transform") == 1


def test_the_programs_of_the_page_print_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    for program in blocks("agent-hooks.md", "python"):
        exec(compile(program, "docs/agent-hooks.md", "exec"), {})  # noqa: S102 - our own page
    one, other = (part.splitlines() for part in capsys.readouterr().out.split("agent_startup allow"))
    message = "This answer was withheld because it could not be verified against the source documents."
    assert one == ["guardrail:contradicted", message]
    assert other[-4:] == [
        "> The basic plan costs $49 a month. ",
        "post_model_call deny",
        "agent_shutdown allow",
        f"> {message}",
    ]


# ------------------------------------------------------------------------------------------- the kit

VECTORS = load_vectors()
OF_BUFFERED_HOSTS = "AH-CTK-135"
"""Its document states a surface without ``buffered_output``, which then is true, and the host's capabilities
are filled in: for a host that mediates incrementally this is inconsistent, and refused as such before the
loader comes to what the vector is about.
"""


def test_the_kit_has_the_vectors_that_we_know() -> None:
    assert len(VECTORS) == 75


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_conformance(vector: dict[str, Any], request: pytest.FixtureRequest) -> None:
    if vector["id"] == OF_BUFFERED_HOSTS:
        request.applymarker(pytest.mark.xfail(strict=True, reason="no incremental host can pass it"))
    result, harness = ran(vector)
    assert (result.status, result.failures) == ("pass", [])
    expected = vector["expect"]
    if "released_output" in expected:  # the kit has no code for these yet
        assert harness.released == expected["released_output"]
        durable = texts_in([harness.host.__dict__, harness.records], {id(harness.host.model)})
        assert not [each for each in expected.get("persisted_must_not_contain", []) if each in durable]


def test_a_buffered_host_passes_the_other_one_too() -> None:
    (vector,) = [each for each in VECTORS if each["id"] == OF_BUFFERED_HOSTS]
    surface = KitHarness.buffered()
    result, _ = ran(vector, surface)
    assert result.status == "pass"
