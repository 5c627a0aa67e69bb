"""A host of agent-hooks 0.1 that mediates incrementally (§12.1): an answer leaves piece by piece, each piece
on the verdict that covers it.

Each piece is a ``post_model_call`` for all interceptors, over what the caller will have read with it. Where
the declaration binds the guard, ``Guard.stream`` cuts and judges the pieces; else they are those of the
model's stream. Of text that it withholds the host keeps nothing, and hands nothing on.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, cast
from uuid import uuid4

import agent_hooks as hooks

from guardrail import __version__
from guardrail.chat import EXTENSION, UpstreamFailed
from guardrail.errors import GuardrailError
from guardrail.events import AnyOutputEvent, Context, DeliveryBlocked, DeliverySegment
from guardrail.guard import Guard
from guardrail.inputs import ContextLike, named_contexts
from guardrail.integrations.agent_hooks import GuardInterceptor, JudgedText, guard_kind
from guardrail.integrations.background import END, Stepped

KIND: Final = "guardrail.guard"
EXPOSURE_BOUND: Final = "none: a piece of an answer leaves on the verdict that covers it, and nothing before"
_CAPABILITIES: Final = (
    "bigint_json host_declaration incremental_output int64_json model_calls streaming tool_calls"
)
SURFACE: Final = hooks.HostSurface.from_capabilities(_CAPABILITIES.split()).with_exposure_bound(
    EXPOSURE_BOUND
)
DECLARATION: Final[Mapping[str, Any]] = {
    "declaration": hooks.DECLARATION_VERSION,
    "spec": hooks.SPEC_VERSION,
    "host": {"name": "streaming-guardrail", "version": __version__},
    "surface": {
        "interception_points": [point.value for point in hooks.InterceptionPoint],
        "capabilities": _CAPABILITIES.split(),
        "buffered_output": False,
        "exposure_bound": EXPOSURE_BOUND,
    },
    "bindings": [{"id": "guard", "kind": KIND}],
}
"""What a host declares that is given nothing else."""
_Cut = tuple[str, JudgedText | None]
"""A piece of a model's text, and what the guard makes of it."""
_LEAVES: Final = hooks.InterceptionPoint.POST_MODEL_CALL


@dataclass(frozen=True, slots=True)
class ModelEnd:
    """What a model's stream ends with; one that ends without it has broken off. A call of a tool has ``id``,
    ``name`` and ``args``.
    """

    finish_reason: str = "stop"
    tool_calls: Sequence[Mapping[str, Any]] = ()


Model = Callable[[list[dict[str, Any]]], AsyncIterator[str | ModelEnd]]
"""Gets messages, of a ``role`` and a ``content``, and answers in pieces of text."""
Tool = Callable[[Any], Awaitable[Any]]
"""Gets its arguments. Of what it raises the model is told the type."""


@dataclass
class IncrementalHost:
    """An agent: a model, its tools, and interceptors as a declaration binds them.

    ``guard`` is open; the declaration binds it as ``guardrail.guard``. ``registry``, over ``SURFACE`` and for
    this host alone, knows what else is bound. ``records`` gets each record. Raises DeclarationError if the
    declaration names what this host can't honour.
    """

    most_turns: ClassVar[int] = 32
    """Calls of the model for one answer."""

    model: Model
    guard: Guard | None = None
    tools: Mapping[str, Tool] = field(default_factory=dict)
    declaration: Mapping[str, Any] = field(default_factory=lambda: DECLARATION)
    registry: hooks.HostRegistry = field(default_factory=lambda: hooks.HostRegistry(SURFACE))
    records: Callable[[hooks.InterceptionRecord], None] = lambda _: None
    agent_id: str = "agent"
    model_id: str = "model"

    def __post_init__(self) -> None:
        self._bound: list[GuardInterceptor] = []
        if self.guard is not None:
            self.registry.kind(KIND, guard_kind(self.guard, self._bound))
        emitter, _ = self.emitter()
        declared = cast("hooks.ResolvedDeclaration", emitter.declaration)
        surface, bindings, guarded = declared.surface, declared.bindings, self.guard is not None
        first = next((each for each in bindings if each.kind == KIND), None)
        last = first is not None and first is bindings[-1] and _LEAVES in first.at
        first_deny = declared.composition.profile is hooks.CompositionProfile.SEQUENTIAL_FIRST_DENY
        toolless = "pre_tool_call" not in surface["interception_points"]
        bound = surface.get("exposure_bound", EXPOSURE_BOUND)
        wrong = {
            "/surface/exposure_bound": (bound != EXPOSURE_BOUND, EXPOSURE_BOUND),
            "/surface/interception_points": (self.tools and toolless, "there are tools"),
            "/bindings": (guarded and not last, f"bind {KIND} once, last, and at post_model_call"),
            "/configuration/mode": (guarded and declared.mode.value != "enforce", "the guard withholds"),
            "/configuration/composition/profile": (guarded and not first_deny, "sequential/first_deny only"),
        }
        if found := [hooks.Finding(place, told) for place, (is_so, told) in wrong.items() if is_so]:
            raise hooks.DeclarationError(hooks.DeclarationErrorClass.SURFACE_UNSUPPORTED, found)

    async def answer(
        self,
        question: str,
        contexts: Sequence[ContextLike] = (),
        *,
        role: str = "user",
        session_id: str | None = None,
        route: str | None = None,
        tenant: str | None = None,
    ) -> AsyncGenerator[str, None]:
        """The answer's text as it is released.

        Raises InterceptionBlocked where the rest is withheld, with the message in its record's verdict, and
        what the model raises, without what was not released yet.
        """
        named = named_contexts(contexts)
        documents = [each.model_dump(mode="json") if isinstance(each, Context) else each for each in named]
        extension = {"contexts": documents, "route": route, "tenant": tenant}
        session = _GuardedRun(self, session_id or str(uuid4()))
        reason, blocked = "cancelled", None
        try:
            async with aclosing(session.pieces(question, role, extension)) as pieces:
                async for piece in pieces:
                    yield piece
            reason = "completed"
        except hooks.InterceptionBlocked as error:
            # Without the frames of this one, which hold what is withheld, and which others may write down.
            reason, blocked = "error", hooks.InterceptionBlocked(error.result)
        except Exception:
            reason = "error"
            raise
        finally:
            await session.emitter.emit_unchecked(session.build.agent_shutdown(reason=reason))
        if blocked is not None:
            raise blocked

    def emitter(self, **instead: Any) -> tuple[hooks.InterceptionEmitter, GuardInterceptor | None]:
        """An emitter by the declaration, and the guard as it is bound there."""
        document = hooks.HostDeclaration.from_value({**self.declaration, **instead})
        self._bound.clear()
        emitter = hooks.InterceptionEmitter.from_declaration(document, self.registry)
        return emitter.set_record_sink(self.records), self._bound[0] if self._bound else None


class _Turn:
    """One call of the model."""

    def __init__(self, stream: AsyncIterator[str | ModelEnd]) -> None:
        self.steps = Stepped(stream)
        self.text = ""
        """All that came; emissions were about ``covered`` code points of it."""
        self.covered = 0
        self.released = ""
        self.end: ModelEnd | None = None
        self.broken = False
        self.calls: list[Mapping[str, Any]] | None = None
        """None until an emission was about the whole."""

    async def texts(self) -> AsyncGenerator[str, None]:
        """Raises what the model does, and UpstreamFailed where its stream ends without an end."""
        try:
            while (piece := await self.steps.step()) is not END:
                if isinstance(piece, ModelEnd):
                    self.end = piece
                    return
                piece = piece.encode(errors="replace").decode()  # halves of characters are none
                self.text += piece
                yield piece
        except Exception:
            self.broken = True
            raise
        self.broken = True
        raise UpstreamFailed


class _GuardedRun:
    """One answer under way."""

    def __init__(self, host: IncrementalHost, session_id: str) -> None:
        self._host = host
        self.emitter, self._guard = host.emitter()
        self.build = hooks.AgentContextBuilder(
            agent_id=host.agent_id, framework="streaming-guardrail", session_id=session_id
        )
        self._declared = cast("hooks.ResolvedDeclaration", self.emitter.declaration)
        self._buffered = self._declared.surface["buffered_output"]

    async def pieces(self, question: str, role: str, extension: Any) -> AsyncGenerator[str, None]:
        emit, build, host = self.emitter.emit, self.build, self._host
        await emit(build.agent_startup(tools_registered=sorted(host.tools)))
        context = {**build.input(content=question, role=role), "extensions": {EXTENSION: extension}}
        await emit(context)
        messages = [{"role": role, "content": context["input"]["content"]}]
        for _ in range(host.most_turns):
            context = build.pre_model_call(model_id=host.model_id, messages=messages)
            await emit(context)
            messages = context["messages"]
            turn = _Turn(host.model(list(messages)))
            async with aclosing(self._released(turn, context)) as released:
                async for piece in released:
                    if piece and not self._buffered:
                        yield piece
            if not turn.calls:
                break
            messages.append({"role": "assistant", "content": turn.released, "tool_calls": turn.calls})
            messages += [await self._called(call) for call in turn.calls]
        else:
            raise GuardrailError(f"the model called tools {host.most_turns} times, and gave no answer")
        context = build.output(content=turn.released)
        await emit(context)
        if self._buffered:
            yield context["output"]["content"]
        elif context["output"]["content"] != turn.released:
            raise await self._unevaluated(turn)  # it is out, and can't be changed

    async def _released(self, turn: _Turn, context: Mapping[str, Any]) -> AsyncGenerator[str, None]:
        try:
            cut = self._judged if self._guard and not self._buffered else self._as_it_comes
            async with aclosing(cut(turn, context)) as pieces:
                async for text, judged in pieces:
                    yield await self._emitted(turn, text, judged)
            if turn.calls is None:
                yield await self._emitted(turn, "", None)
        except hooks.InterceptionBlocked:
            raise
        except UpstreamFailed:
            raise (await self._unevaluated(turn)) from None
        except Exception:
            await self._unevaluated(turn)
            raise
        finally:
            await turn.steps.aclose()

    async def _as_it_comes(self, turn: _Turn, _: Any) -> AsyncGenerator[_Cut, None]:
        """The model's pieces, each once it is known whether it is the last; where they are held, in one."""
        held = ""
        async for text in turn.texts():
            if held and not self._buffered:
                yield held, None
                held = ""
            held += text
        yield held, None

    async def _judged(self, turn: _Turn, context: Mapping[str, Any]) -> AsyncGenerator[_Cut, None]:
        """The pieces that the guard cuts."""
        assert self._guard is not None  # noqa: S101
        asked = self._guard.grounding(context)
        stream = self._guard.guard.stream(
            asked.question,
            asked.contexts,
            turn.texts(),
            missing_contexts=self._guard.binding.missing,
            route=asked.route,
            tenant=asked.tenant,
            generator_model=self._host.model_id,
        )
        async with aclosing(cast("AsyncGenerator[AnyOutputEvent, None]", stream)) as events:  # which it is
            async for event in events:
                match event:
                    case _ if turn.broken:
                        pass
                    case DeliverySegment(segment=None):
                        raise GuardrailError(
                            "the policy observes, so that text would leave before its verdict"
                        )
                    case DeliverySegment(span=(start, end)):
                        yield turn.text[start:end], JudgedText.of(event.text, [event], event.response_id)
                    case DeliveryBlocked(rule=rule, message=message, response_id=id_):
                        yield turn.text[turn.covered :], JudgedText.withheld(rule, message, id_)

    async def _emitted(self, turn: _Turn, text: str, judged: JudgedText | None) -> str:
        """What the caller may read with this piece. Raises InterceptionBlocked."""
        turn.covered += len(text)
        end = turn.end if turn.covered == len(turn.text) else None
        context = self._about(turn.released + text, end or ModelEnd("incremental"))
        if self._guard and judged:
            whole = None if judged.shown is None else turn.released + judged.shown
            self._guard.keep(context, turn.released + text, replace(judged, shown=whole))
        await self.emitter.emit(context)
        said = context["response"]["content"] or ""
        # Another may have changed what is out, or an approval have taken the guard's turn.
        unjudged = self._guard and said and not self._guard.passes(context, said)
        withheld = judged is not None and judged.shown is None
        if unjudged or withheld or not (isinstance(said, str) and said.startswith(turn.released)):
            raise await self._unevaluated(turn)
        new, turn.released = said[len(turn.released) :], said
        if end is not None:
            turn.calls = context["response"]["tool_calls"]
        return new

    async def _unevaluated(self, turn: _Turn) -> hooks.InterceptionBlocked:
        """What is left of a text fails closed. No interceptor sees it: the record is of a host of none."""
        context = self._about(turn.released + turn.text[turn.covered :], ModelEnd("stream_incomplete"))
        emitter, _ = self._host.emitter(bindings=[])
        emitter.set_record_sink(lambda _: None)
        record = replace(
            await emitter.emit_unchecked(context),
            verdict=hooks.Verdict.host_error(hooks.HostError.STREAMING_UNSUPPORTED),
            interceptors_registered=sum(_LEAVES in each.at for each in self._declared.bindings),
        )
        with suppress(Exception):  # as emitters do
            self._host.records(record)
        return hooks.InterceptionBlocked(record)

    def _about(self, content: str, end: ModelEnd) -> dict[str, Any]:
        return self.build.post_model_call(
            model_id=self._host.model_id,
            content=content or None,
            tool_calls=[dict(call) for call in end.tool_calls],
            finish_reason=end.finish_reason,
        )

    async def _called(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """What the model is told of a call of a tool."""
        emit, build, tool = self.emitter.emit, self.build, self._host.tools.get(call["name"])
        told = {"role": "tool", "tool_call_id": call["id"], "content": "there is no such tool"}
        if tool is None:
            return told
        named = {"call_id": call["id"], "name": call["name"]}
        try:
            context = build.pre_tool_call(**named, args=dict(call["args"]))
            await emit(context)
            args = context["tool_call"]["args"]
            try:
                value, failed = await tool(args), False
            except Exception as error:  # noqa: BLE001 - a tool may raise anything; its words may be anybody's
                value, failed = type(error).__name__, True
            context = build.post_tool_call(**named, args=args, value=value, is_error=failed)
            await emit(context)
        except hooks.InterceptionBlocked as blocked:
            return {**told, "content": f"blocked: {blocked.result.verdict.reason}"}
        return {**told, "content": context["tool_result"]["value"]}
