"""The guard in agent-hooks 0.1: as an interceptor of any host, and as a host that mediates incrementally."""

from __future__ import annotations

import asyncio
import gc
import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from types import FrameType, TracebackType
from typing import Any, Self

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
from tests.unit.integrations.agent_hooks_kit import ran

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

    def __init__(self, interceptor: Any, name: str = "s1", tenant: str | None = None, **emitter: Any) -> None:
        self.emitter = InterceptionEmitter(**emitter).register(interceptor, "guard")
        self.build = AgentContextBuilder(agent_id="help", framework="any", session_id=name)
        self.build.with_l2(tenant=tenant and {"id": tenant})

    async def asks(self, question: str = ASKED, **extensions: Any) -> None:
        await self.emitter.emit({**self.build.input(content=question), "extensions": extensions})

    async def finds(self, value: Any, tool: str = "search", *, is_error: bool = False) -> None:
        number = f"c{len(self.emitter.results)}"
        told = self.build.post_tool_call(call_id=number, name=tool, args={}, value=value, is_error=is_error)
        await self.emitter.emit(told)

    async def says(self, content: Any) -> Any:
        """What the host may give its caller."""
        context = self.build.output(content=content)
        await self.emitter.emit(context)
        return context["output"]["content"]

    async def is_denied(self, content: Any, reason: str = "guardrail:") -> Verdict:
        with pytest.raises(InterceptionBlocked, match=reason):
            await self.says(content)
        return self.last

    @property
    def last(self) -> Verdict:
        return self.emitter.results[-1].verdict


GIVEN: dict[str, Any] = {"guardrail": {"contexts": DOCUMENTS}}
REDACTS = Policy(rules=(BLOCKS, "verdict UNSUPPORTED: redact"))
FLAGS = Policy(rules=(BLOCKS, "verdict UNSUPPORTED: flag"))
SEARCHES = GuardBinding(tools=frozenset({"search"}))


@pytest.fixture
async def guard() -> AsyncGenerator[Guard, None]:
    async with Guard(WordJudge(), REDACTS) as guard:
        yield guard


@asynccontextmanager
async def session(judge: Any = None, policy: Policy = REDACTS, **emitter: Any) -> AsyncIterator[Session]:
    """One that has documents for its question."""
    async with Guard(judge or WordJudge(), policy) as guard:
        session = Session(GuardInterceptor(guard), **emitter)
        await session.asks(**GIVEN)
        yield session


async def test_the_judge_gets_question_and_results_and_nothing_that_users_say() -> None:
    judge = WordJudge()
    async with Guard(judge) as guard:
        session = Session(GuardInterceptor(guard, SEARCHES))
        await session.asks()
        await session.finds("of another tool", "weather")
        await session.finds("failed", is_error=True)
        await session.finds({"title": "Plans", "text": DOCUMENTS[0]})
        assert await session.says(RIGHT) == RIGHT
        assert (session.last.decision.value, session.last.warnings) == ("allow", ())
    (request,) = judge.requests
    assert request.question == ASKED
    assert sources_of(request) == [json.dumps({"title": "Plans", "text": DOCUMENTS[0]})]


@pytest.mark.parametrize("apart", [{"name": "s2"}, {"tenant": "other"}])
async def test_sessions_know_nothing_of_each_other_and_end(guard: Guard, apart: dict[str, str]) -> None:
    interceptor = GuardInterceptor(guard, SEARCHES)
    one, other = Session(interceptor, tenant="one"), Session(interceptor, **{"tenant": "one", **apart})
    await one.asks()
    await other.asks()
    await one.finds(DOCUMENTS[0])
    await other.is_denied(RIGHT)
    assert await one.says(RIGHT) == RIGHT
    await one.emitter.emit(one.build.agent_shutdown(reason="completed"))
    await one.is_denied(RIGHT)  # the session's documents went with it


async def test_a_block_is_a_deny_with_the_policys_message() -> None:
    async with session() as asked:
        verdict = await asked.is_denied(RIGHT + WRONG)
    assert verdict.reason == "guardrail:contradicted"
    assert (verdict.message or "").startswith("This answer was withheld")
    assert verdict.evidence is not None
    assert len(verdict.evidence.artefact or "") == 32
    assert "wrong" not in json.dumps([each.to_wire() for each in asked.emitter.results])


@pytest.mark.parametrize(
    ("policy", "text", "shown", "reasons", "message"),
    [
        (REDACTS, RIGHT + ODD + RIGHT, RIGHT + MARK + RIGHT, [], ""),
        (FLAGS, ODD, ODD, ["guardrail:verdict_UNSUPPORTED.flag"], "flagged: "),
        (Policy(mode="observe"), WRONG, WRONG, ["guardrail:not_checked"], "The policy observes."),
    ],
)
async def test_a_redaction_is_a_transform_and_what_is_flagged_or_observed_a_warning(
    policy: Policy, text: str, shown: str, reasons: list[str], message: str
) -> None:
    async with session(policy=policy) as asked:
        assert await asked.says(text) == shown
        assert [each.reason for each in asked.last.warnings] == reasons
        assert all((each.message or "").startswith(message) for each in asked.last.warnings)


@pytest.mark.parametrize(("missing", "decision"), [("refuse", "deny"), ("flag", "allow"), ("judge", "allow")])
async def test_an_answer_without_documents(guard: Guard, missing: Any, decision: str) -> None:
    session = Session(GuardInterceptor(guard, GuardBinding(missing_contexts=missing)))
    await session.asks()
    record = await session.emitter.emit_unchecked(session.build.output(content=RIGHT))
    assert record.verdict.decision.value == decision
    warned = ["guardrail:no_contexts"] if missing == "flag" else []
    assert [each.reason for each in record.verdict.warnings] == warned
    assert await session.says("Hello! How can I help?") == "Hello! How can I help?"


async def test_a_text_is_judged_anew_when_the_documents_are_others(guard: Guard) -> None:
    session = Session(GuardInterceptor(guard, SEARCHES))
    await session.asks()
    await session.is_denied(RIGHT, "no_contexts")
    await session.finds(DOCUMENTS[0])
    assert await session.says(RIGHT) == RIGHT
    other = Session(GuardInterceptor(guard))
    await other.asks(**GIVEN)
    assert await other.says(RIGHT) == RIGHT
    await other.asks("And again?")  # which brings documents of its own, or none
    await other.is_denied(RIGHT, "no_contexts")


async def test_a_wrong_extension_is_said_and_denied(guard: Guard) -> None:
    session = Session(GuardInterceptor(guard))
    await session.asks(guardrail={"context": DOCUMENTS})
    verdict = await session.is_denied(RIGHT, "guardrail:invalid_extension")
    assert "context" in (verdict.message or "")


async def test_the_oldest_sessions_are_forgotten(guard: Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GuardInterceptor, "most_sessions", 2)
    interceptor = GuardInterceptor(guard, SEARCHES)
    sessions = [Session(interceptor, f"s{number}") for number in range(3)]
    for session in sessions:
        await session.asks()
        await session.finds(DOCUMENTS[0])
    assert await sessions[2].says(RIGHT) == RIGHT
    await sessions[0].is_denied(RIGHT)


async def test_of_messages_the_assistants_texts_are_judged() -> None:
    call = {"type": "function_call", "name": "search", "arguments": "wrong"}
    told = {"role": "tool", "content": [{"type": "function_result", "result": "wrong"}]}
    said = [
        {"role": "assistant", "content": [call]},
        told,
        {"role": "assistant", "content": [{"type": "text_reasoning", "text": "wrong"}]},
        {"role": "model", "content": WRONG},
        {"role": "assistant", "content": [{"type": "text", "text": RIGHT + ODD}]},
    ]
    async with session() as asked:
        assert await asked.says(said) == [
            {"role": "assistant", "content": [call]},
            told,
            {"role": "assistant", "content": []},
            {"role": "assistant", "content": [{"type": "text", "text": RIGHT + MARK}]},
        ]
        await asked.is_denied({"price": WRONG}, "no_text")


async def test_a_judge_that_takes_longer_than_the_host_waits_denies() -> None:
    async with session(GatedJudge(), timeout=0.05) as asked:
        await asked.is_denied(RIGHT, "interceptor_timeout")


async def test_a_text_that_was_judged_is_not_judged_again() -> None:
    judge = WordJudge()
    async with session(judge) as asked:
        said: Any = {"model_id": "m", "content": RIGHT, "tool_calls": [], "finish_reason": "stop"}
        await asked.emitter.emit(asked.build.post_model_call(**said))
        await asked.says(RIGHT)
    assert len(judge.requests) == 1


@pytest.mark.parametrize(
    ("binding", "said"),
    [
        ({"config": {"missing_contexts": "secret-value"}}, "missing_contexts"),
        ({"at": ["input", "output"]}, "the guard needs agent_shutdown"),
        (
            {"config": {"tools": ["search"]}, "at": ["input", "output", "post_model_call", "agent_shutdown"]},
            "the guard needs post_tool_call",
        ),
    ],
)
def test_a_declaration_binds_the_guard_where_it_needs_to_be(binding: dict[str, Any], said: str) -> None:
    def emitter(**binding: Any) -> InterceptionEmitter:
        registry = HostRegistry(SURFACE).kind(KIND, guard_kind(Guard(WordJudge())))
        document = {**DECLARATION, "bindings": [{"id": "guard", "kind": KIND, **binding}]}
        return InterceptionEmitter.from_declaration_value(document, registry)

    emitter(config={"tools": ["search"], "missing_contexts": "flag"})
    with pytest.raises(DeclarationError, match=said) as refused:
        emitter(**binding)
    assert "secret-value" not in str(refused.value)


# ------------------------------------------------------------------------------------------- the host


class Model:
    """Writes what a test says, piece by piece, in one turn or more; waits where it says None."""

    def __init__(self, *turns: list[Any]) -> None:
        self.turns = list(turns)
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


class Heard:
    """A host whose model says ``pieces``, or what ``model`` does, and what its reader and its log get."""

    def __init__(
        self, guard: Guard | None, *pieces: Any, model: Model | None = None, others: Any = None, **host: Any
    ) -> None:
        self.model = model or Model([*pieces, ModelEnd()])
        self.records: list[InterceptionRecord] = []
        self.shown: list[str] = []
        self.error: Any = None
        if others is not None:
            known = HostRegistry(SURFACE).kind("test.other", lambda *_: others)
            host = {"declaration": bound("test.other"), "registry": known, **host}
        self.host = IncrementalHost(self.model, guard, records=self.records.append, **host)

    async def read(self, answer: AsyncIterator[str] | None = None, *, contexts: Any = DOCUMENTS) -> Self:
        """All of an answer; its error is kept."""
        try:
            async for piece in answer or self.host.answer(ASKED, contexts):
                self.shown.append(piece)
        except (InterceptionBlocked, GuardrailError, OSError) as error:
            self.error = error
        return self

    @property
    def reason(self) -> str | None:
        """Why the rest is withheld."""
        if self.error is None:
            return None
        assert isinstance(self.error, InterceptionBlocked), self.error
        return self.error.result.verdict.reason

    @property
    def told(self) -> list[str]:
        return [
            f"{each.interception_point.value}: {each.verdict.decision.value}"
            + (f" {each.verdict.reason}" if each.verdict.reason else "")
            for each in self.records
        ]

    @property
    def kept(self) -> str:
        return json.dumps([each.to_wire() for each in self.records])


async def heard(guard: Guard | None, *pieces: Any, **host: Any) -> Heard:
    """What is heard of an answer to a question with documents."""
    return await Heard(guard, *pieces, **host).read()


async def heard_by(policy: Policy, *pieces: Any, judge: Any = None, **host: Any) -> Heard:
    async with Guard(judge or WordJudge(), policy) as guard:
        return await heard(guard, *pieces, **host)


UNEVALUATED = "host_error:streaming_unsupported"


def bound(*before: str, **configuration: Any) -> dict[str, Any]:
    """A declaration with interceptors before the guard."""
    others = [{"id": f"i{n}", "kind": kind} for n, kind in enumerate(before)]
    guard = {"id": "guard", "kind": KIND}
    return {**DECLARATION, "bindings": [*others, guard], "configuration": configuration}


class Other:
    """Another interceptor: what a test says of the texts of models, or of another point."""

    def __init__(self, decide: Callable[[str], dict[str, Any]], point: str = "post_model_call") -> None:
        self.decide = decide
        self.point = point

    def intercept(self, context: dict[str, Any]) -> dict[str, Any]:
        if context["interception_point"] != self.point:
            return {"decision": "allow"}
        return self.decide(context["target"]["content"] or "")


def replaces(old: str, new: str, where: str = "") -> Callable[[str], dict[str, Any]]:
    def decide(text: str) -> dict[str, Any]:
        if old not in text or where not in text:
            return {"decision": "allow"}
        change = {"path": "$target.content", "value": text.replace(old, new)}
        return {"decision": "transform", "transform": change}

    return decide


async def test_each_claim_leaves_on_its_verdict_while_the_model_writes(guard: Guard) -> None:
    found = Heard(guard, RIGHT, LATER[:9], None, LATER[9:])
    answer = found.host.answer(ASKED, DOCUMENTS)
    assert await anext(answer) == RIGHT
    found.model.go_on.set()
    assert (await found.read(answer)).shown == [LATER]
    assert found.told == [
        "agent_startup: allow",
        "input: allow",
        "pre_model_call: allow",
        "post_model_call: allow",
        "post_model_call: allow",
        "output: allow",
        "agent_shutdown: allow",
    ]
    assert {each.declaration for each in found.records} == {"agent-hooks-declaration/1.0"}


async def test_nothing_leaves_before_its_verdict() -> None:
    judge = GatedJudge()
    async with Guard(judge) as guard:
        found = Heard(guard, RIGHT, LATER)
        reading = asyncio.create_task(found.read())
        await judge.asked.wait()
        for _ in range(50):
            await asyncio.sleep(0)
        assert found.shown == []
        judge.gate.set()
        await reading
    assert "".join(found.shown) == RIGHT + LATER


async def test_a_block_withholds_the_rest_and_leaves_the_model(guard: Guard) -> None:
    found = await heard(guard, RIGHT, WRONG, LATER, None)
    assert (found.shown, found.reason) == ([RIGHT], "guardrail:contradicted")
    assert found.error.result.verdict.message.startswith("This answer was withheld")
    assert found.told[3:] == [
        "post_model_call: allow",
        "post_model_call: deny guardrail:contradicted",
        "agent_shutdown: allow",
    ]
    assert found.model.closed == 1


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
    async with Guard(ForgetfulJudge()) as guard:
        found = await heard(guard, RIGHT, secret + ". ", "And Zebulon again. ")
        assert "Zebulon" not in found.kept + str(found.error) + repr(found.error.result)
        # With what the exception leads to, such as the local variables of frames, which some programs log.
        held = texts_in([found.host.__dict__, found.records, found.shown, found.error], {id(found.model)})
    assert RIGHT in held
    assert "Zebulon" not in held


CUTS = st.lists(st.integers(0, len(RIGHT + ODD + LATER + WRONG + RIGHT)), max_size=6).map(sorted)


@given(CUTS, st.sampled_from(["stream", "hold"]), st.booleans(), st.integers(0, 3))
async def test_however_a_stream_is_cut_the_same_leaves(
    cuts: list[int], mode: Any, ends: bool, turns: int
) -> None:
    text = RIGHT + ODD + LATER + WRONG + RIGHT
    pieces: list[Any] = [text[start:end] for start, end in pairwise([0, *cuts, len(text)])]

    class Late(WordJudge):
        async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
            async for each in super().judge(request):
                for _ in range(turns):
                    await asyncio.sleep(0)
                yield each

    model = Model(pieces + [ModelEnd()] * ends)
    found = await heard_by(REDACTS.model_copy(update={"mode": mode}), judge=Late(), model=model)
    said = "".join(found.shown)
    assert found.reason is not None
    assert (RIGHT + MARK + LATER).startswith(said)
    assert said == RIGHT + MARK + LATER or mode == "hold" or not ends
    assert said == "" or mode == "stream"
    assert [each.sequence for each in found.records] == list(range(len(found.records)))


async def test_a_redaction_stands_in_the_place_of_the_text(guard: Guard) -> None:
    found = await heard(guard, RIGHT, ODD, LATER)
    assert ("".join(found.shown), found.reason) == (RIGHT + MARK + LATER, None)
    assert found.told[3:7] == [
        "post_model_call: allow",
        "post_model_call: transform",
        "post_model_call: allow",
        "output: allow",
    ]
    assert "unbacked" not in found.kept


async def test_what_is_flagged_leaves_with_a_warning() -> None:
    found = await heard_by(FLAGS, ODD)
    assert found.shown == [ODD]
    (warning,) = found.records[3].verdict.warnings
    assert (warning.message or "").startswith("flagged: ")


NO = {"decision": "deny", "reason": "test:no"}


@pytest.mark.parametrize(
    ("decide", "shown", "reason"),
    [
        (replaces("SECRET", "fine"), RIGHT + "The fine plan has 3 seats. " + LATER, None),
        (replaces("SECRET", "wrong"), RIGHT, "guardrail:contradicted"),
        # What is out can't be changed.
        (replaces("basic", "BASIC", where="SECRET"), RIGHT, UNEVALUATED),
        (lambda text: NO if "SECRET" in text else {"decision": "allow"}, RIGHT, "test:no"),
    ],
)
async def test_what_an_earlier_interceptor_makes_of_a_piece(
    guard: Guard, decide: Any, shown: str, reason: str | None
) -> None:
    found = await heard(guard, RIGHT, "The SECRET plan has 3 seats. ", LATER, others=Other(decide))
    assert ("".join(found.shown), found.reason) == (shown, reason)


async def test_an_approval_does_not_take_the_guards_turn(guard: Guard) -> None:
    """It ends an emission before the guard, which comes last."""

    class Approves:
        def resolve(self, request: ApprovalRequest) -> ApprovalResolution:
            verdict = Verdict.from_wire(replaces("The team", "The wrong")(LATER))
            return ApprovalResolution(ApprovalOutcome.APPROVE, request.context_identity, verdict)

    def decide(text: str) -> dict[str, Any]:
        return {"decision": "deny", "approval": {}} if "team" in text else {"decision": "allow"}

    known = HostRegistry(SURFACE).kind("test.other", lambda *_: Other(decide))
    known.approval_resolver("boss", Approves())
    declared = bound("test.other", approval={"resolver": "boss"})
    found = await heard(guard, LATER, declaration=declared, registry=known)
    assert (found.shown, found.reason) == ([], UNEVALUATED)


async def test_what_is_out_can_not_be_changed_by_output(guard: Guard) -> None:
    found = await heard(guard, RIGHT, others=Other(replaces("basic", "BASIC"), "output"))
    assert (found.shown, found.reason) == ([RIGHT], UNEVALUATED)


async def test_without_documents_claims_are_withheld(guard: Guard) -> None:
    found = await Heard(guard, RIGHT).read(contexts=())
    assert (found.shown, found.reason) == ([], "guardrail:no_contexts")


@pytest.mark.parametrize("end", [(), (OSError("reset, after The wr"),)])
@pytest.mark.parametrize("policy", [REDACTS, Policy(on_incomplete="release")])
async def test_the_rest_of_a_stream_that_breaks_off_fails_closed(policy: Policy, end: Any) -> None:
    found = await heard_by(policy, model=Model([RIGHT, "The team plan has", *end]))
    assert found.error in end or found.reason == UNEVALUATED
    assert "team" not in "".join(found.shown)
    assert found.told[-2:] == [f"post_model_call: deny {UNEVALUATED}", "agent_shutdown: allow"]
    assert found.records[-2].input_identity is not None
    assert found.records[-2].interceptors_registered == 1


async def test_what_a_judge_can_not_answer_is_withheld() -> None:
    def fails(_: Any) -> Any:
        raise ValueError("Zebulon")

    found = await heard_by(Policy(on_unverified="fail_closed"), RIGHT, judge=FaultyJudge(fails))
    assert (found.shown, found.reason) == ([], "guardrail:on_unverified.fail_closed")
    assert "Zebulon" not in json.dumps(found.error.result.to_wire())


async def test_a_guard_that_is_gone_withholds(guard: Guard) -> None:
    async with Guard(WordJudge()) as guard:
        pass
    found = await heard(guard, RIGHT)
    assert ("not open" in str(found.error), found.shown) == (True, [])
    assert found.told[-2] == f"post_model_call: deny {UNEVALUATED}"


async def test_half_a_character_is_none(guard: Guard) -> None:
    assert (await heard(guard, "Hello \ud83d!")).shown == ["Hello ?!"]


async def test_a_policy_that_holds_releases_all_at_the_end() -> None:
    found = await heard_by(Policy(mode="hold"), RIGHT, WRONG, LATER)
    assert (found.shown, "contradicted" in str(found.reason)) == ([], True)


async def test_the_question_is_what_the_interceptors_left_of_it() -> None:
    judge = WordJudge()
    anonymous = Other(replaces(ASKED, "Who is it?"), "input")
    found = await heard_by(REDACTS, RIGHT, judge=judge, others=anonymous)
    assert judge.requests[0].question == found.model.messages[0][0]["content"] == "Who is it?"


async def test_a_policy_that_observes_is_refused_at_once() -> None:
    found = await heard_by(Policy(mode="observe"), WRONG)
    assert (found.shown, "observes" in str(found.error)) == ([], True)


async def test_a_reader_who_leaves_ends_the_model_and_the_session(guard: Guard) -> None:
    found = Heard(guard, RIGHT, LATER[:9], None)
    answer = found.host.answer(ASKED, DOCUMENTS)
    assert await anext(answer) == RIGHT
    await answer.aclose()
    assert (found.model.closed, found.told[-1]) == (1, "agent_shutdown: allow")


async def test_a_task_that_is_cancelled_ends_the_model_and_the_session() -> None:
    judge = GatedJudge()
    async with Guard(judge) as guard:
        found = Heard(guard, RIGHT, LATER[:9], None)
        reading = asyncio.create_task(found.read())
        await judge.asked.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
    assert (found.model.closed, found.told[-1]) == (1, "agent_shutdown: allow")


async def test_two_answers_at_once_are_apart() -> None:
    judge, shown = GatedJudge(), (list[str](), list[str]())
    async with Guard(judge) as guard:
        found = Heard(guard, model=Model([RIGHT, ModelEnd()], [LATER, WRONG, ModelEnd()]))

        async def read(name: str, into: list[str]) -> None:
            async for piece in found.host.answer(ASKED, DOCUMENTS, session_id=name):
                into.append(piece)  # noqa: PERF401 - what came before an error counts

        reading = [asyncio.create_task(read(*each)) for each in zip(("one", "two"), shown, strict=True)]
        await judge.asked.wait()
        judge.gate.set()
        done = await asyncio.gather(*reading, return_exceptions=True)
    assert done[0] is None
    assert isinstance(done[1], InterceptionBlocked)
    assert shown == ([RIGHT], [LATER])
    for name in ("one", "two"):
        numbers = [each.sequence for each in found.records if each.session_id == name]
        assert numbers == list(range(len(numbers)))


async def test_results_of_named_tools_are_documents() -> None:
    judge = WordJudge()
    call = {"id": "c1", "name": "search", "args": {"query": "price"}}
    calls = ModelEnd("tool_calls", [call, {**call, "id": "c2", "name": "nothing"}])

    async def search(args: dict[str, Any]) -> str:
        return f"{args['query']}: {DOCUMENTS[0]}"

    guards = {"id": "guard", "kind": KIND, "config": {"tools": ["search"]}}
    async with Guard(judge) as guard:
        found = await Heard(
            guard,
            model=Model(["I'll look that up. ", calls], [RIGHT, ModelEnd()]),
            tools={"search": search},
            declaration={**DECLARATION, "bindings": [guards]},
        ).read(contexts=())
    assert "".join(found.shown) == "I'll look that up. " + RIGHT
    assert sources_of(judge.requests[-1]) == [f"price: {DOCUMENTS[0]}"]
    assert [each["content"] for each in found.model.messages[1]] == [
        ASKED,
        "I'll look that up. ",
        f"price: {DOCUMENTS[0]}",
        "there is no such tool",
    ]


async def test_a_model_that_calls_tools_for_ever_is_left(guard: Guard, monkeypatch: Any) -> None:
    monkeypatch.setattr(IncrementalHost, "most_turns", 3)
    calls = ModelEnd("tool_calls", [{"id": "c1", "name": "breaks", "args": {}}])

    async def breaks(_: Any) -> Any:
        raise OSError("Zebulon")

    found = await heard(guard, model=Model(*([calls] for _ in range(4))), tools={"breaks": breaks})
    assert "3 times" in str(found.error)
    assert found.model.messages[1][-1]["content"] == "OSError"


GUARDS, ANOTHER = {"id": "guard", "kind": KIND}, {"id": "other", "kind": "test.other"}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"surface": {**DECLARATION["surface"], "exposure_bound": "a chunk"}}, EXPOSURE_BOUND),
        ({"bindings": [ANOTHER]}, "bind guardrail.guard"),
        ({"bindings": [GUARDS, ANOTHER]}, "bind guardrail.guard"),
        ({"bindings": [{**GUARDS, "at": ["input", "output", "agent_shutdown"]}]}, "at post_model_call"),
        ({"bindings": [{**GUARDS, "id": "one"}, GUARDS]}, "bind guardrail.guard"),
        ({"configuration": {"mode": "evaluate_only"}}, "withholds"),
        ({"configuration": {"composition": {"profile": "parallel/strictest"}}}, "first_deny"),
        ({"surface": {**DECLARATION["surface"], "capabilities": ["multi_turn"]}}, "capabilities"),
    ],
)
async def test_a_declaration_that_can_not_be_honoured_is_refused(
    guard: Guard, changed: dict[str, Any], said: str
) -> None:
    with pytest.raises(DeclarationError, match=said):
        Heard(guard, others=Other(replaces("", "")), declaration={**DECLARATION, **changed})


async def test_tools_that_the_declaration_leaves_out_are_refused(guard: Guard) -> None:
    points = ["agent_startup", "input", "pre_model_call", "post_model_call", "output", "agent_shutdown"]
    able = {"interception_points": points, "capabilities": ["incremental_output", "model_calls"]}
    declared = {**DECLARATION, "surface": {**DECLARATION["surface"], **able}}

    async def search(_: Any) -> str:
        return ""

    Heard(guard, declaration=declared)
    with pytest.raises(DeclarationError, match="there are tools"):
        Heard(guard, tools={"search": search}, declaration=declared)


async def test_a_declaration_may_ask_for_whole_answers(guard: Guard) -> None:
    points = DECLARATION["surface"]["interception_points"]
    surface = {
        "buffered_output": True,
        "capabilities": ["model_calls", "tool_calls"],
        "interception_points": points,
    }
    found = await heard(guard, RIGHT, ODD, declaration={**DECLARATION, "surface": surface})
    assert found.shown == [RIGHT + MARK]
    assert found.told.count("post_model_call: transform") == 1


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
