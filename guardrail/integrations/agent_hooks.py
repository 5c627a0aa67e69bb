"""The guard as an interceptor of agent-hooks 0.1, for any host of its SDK.

It judges what models say (``post_model_call``) and agents answer (``output``) against the results of named
tools and the contexts that the host puts into ``extensions.guardrail``. A redaction is a transform, a block a
deny with the policy's message; the rest is allowed, with a warning where the policy flags it. No verdict
quotes what it withholds.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self

from pydantic import Field, ValidationError

from guardrail.chat import BLOCK, EXTENSION, Grounding, WholeAnswer, decide, grounding_of
from guardrail.errors import InputError
from guardrail.events import AnyOutputEvent, Decision, DeliverySegment, decode_error
from guardrail.frozen import Frozen
from guardrail.guard import Guard
from guardrail.policy import MissingContexts

if TYPE_CHECKING:
    from agent_hooks import BindingContext, KindResolver

_CALLS: Final = frozenset({"function_call", "function_result"})
"""Parts of a message that programs read, and no reader does."""
_OTHERS: Final = frozenset({"user", "tool", "system", "developer"})
"""Whose messages no model has written. What a host calls its models otherwise is not known."""


class GuardBinding(Frozen):
    """How the guard judges: the ``config`` of its binding in a declaration."""

    tools: frozenset[str] = Field(default=frozenset(), description="Tools whose results are documents.")
    missing_contexts: Literal["refuse", "flag", "judge"] = Field(
        default="refuse",
        description="What happens to the claims of an answer without documents; judge: the policy's rules.",
    )

    @property
    def missing(self) -> MissingContexts | None:
        return None if self.missing_contexts == "judge" else MissingContexts(self.missing_contexts)


@dataclass(frozen=True, slots=True)
class JudgedText:
    """What may be shown of a text, or None; why it is withheld or flagged, as verdicts say it."""

    shown: str | None
    response_id: str | None = None
    why: Mapping[str, str] | None = None

    @classmethod
    def of(cls, text: str, segments: Sequence[DeliverySegment], response_id: str | None) -> Self:
        """A text that may be shown, with a warning where it is flagged, or was not checked."""
        flagged = [each for each in segments if each.decision is Decision.FLAG]
        why = None
        if any(each.segment is None for each in segments):
            why = _why("not_checked", "The policy observes.")
        elif flagged:
            claims = ", ".join(claim for each in flagged for claim in each.claim_ids)
            why = _why(flagged[0].rule, f"flagged: {claims}")
        return cls(text, response_id, why)

    @classmethod
    def withheld(cls, rule: str | None, message: str, response_id: str | None = None) -> Self:
        return cls(None, response_id, _why(rule, message))


@dataclass(slots=True)
class _HookSession:
    """What is known of a session. Of texts that were withheld there are digests only."""

    messages: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=1_000))
    extension: Any = None
    model: str = ""
    judged: dict[bytes, JudgedText] = field(default_factory=dict)


class GuardInterceptor:
    """Register it last, under ``sequential/first_deny``: then nobody changes a text after it, and no result
    that another interceptor refuses counts as a document. It knows the latest ``most_sessions`` sessions,
    each until its ``agent_shutdown``.
    """

    most_sessions: ClassVar[int] = 1_000
    most_texts: ClassVar[int] = 16
    """Of one session, that are not judged again when they come again."""

    def __init__(self, guard: Guard, binding: GuardBinding = GuardBinding()) -> None:  # noqa: B008 - frozen
        """``guard`` is open, on the host's event loop."""
        self.guard = guard
        self.binding = binding
        self._sessions: dict[tuple[str | None, str, str], _HookSession] = {}

    def intercept(self, context: Mapping[str, Any], /) -> Any:
        """The verdict, to be awaited, which the SDK's protocol has no type for."""
        return self._intercept(context)

    async def _intercept(self, context: Mapping[str, Any]) -> dict[str, Any]:
        session, point = self._session(context), context["interception_point"]
        before = None if point == "input" else session.extension  # a new request brings its own
        extension = (context.get("extensions") or {}).get(EXTENSION, before)
        if point in {"input", "post_tool_call"} or extension != session.extension:
            session.judged.clear()  # with other documents it may come out otherwise
        session.extension = extension
        session.model = (context.get("model") or {}).get("id", session.model)
        if point == "input" and context["input"]["role"] == "user":
            session.messages += _asked(context["input"]["content"])
        elif point == "post_tool_call" and not context["tool_result"]["is_error"]:
            session.messages += _result(context["tool_call"], context["tool_result"]["value"])
        elif point == "agent_shutdown":
            del self._sessions[_key(context)]
        elif point in {"post_model_call", "output"}:
            return await self._verdict(context, session)
        return {"decision": "allow"}

    def grounding(self, context: Mapping[str, Any]) -> Grounding:
        """What the session's texts are judged against. Raises InputError for a wrong extension."""
        session = self._session(context)
        request: dict[str, Any] = {"messages": session.messages}
        if session.extension is not None:
            request[EXTENSION] = session.extension
        found = grounding_of(request, ["extension"], self.binding.tools)
        return replace(found, tenant=found.tenant or _tenant(context))

    def keep(self, context: Mapping[str, Any], text: str, judged: JudgedText) -> None:
        """Judge ``text`` so, where it comes again in the session."""
        known = self._session(context).judged
        if judged.shown is not None:
            known[_digest(judged.shown)] = JudgedText(judged.shown, judged.response_id)
        known[_digest(text)] = judged
        while len(known) > self.most_texts:
            del known[next(iter(known))]

    def passes(self, context: Mapping[str, Any], text: str) -> bool:
        """Whether the text may be shown as it is, by a verdict that there is."""
        judged = self._session(context).judged.get(_digest(text))
        return judged is not None and judged.shown == text

    def _session(self, context: Mapping[str, Any]) -> _HookSession:
        key = _key(context)
        session = self._sessions[key] = self._sessions.pop(key, _HookSession())
        if len(self._sessions) > self.most_sessions:
            del self._sessions[next(iter(self._sessions))]
        return session

    async def _verdict(self, context: Mapping[str, Any], session: _HookSession) -> dict[str, Any]:
        found, judged = context["target"]["content"], list[JudgedText]()

        async def shown_of(text: str) -> str | None:
            one = session.judged.get(_digest(text)) or await self._judged(text, grounding, session.model)
            self.keep(context, text, one)
            judged.append(one)
            return one.shown

        try:
            grounding = self.grounding(context)
            shown = await _texts_of(found, shown_of)
            if shown is None and found is not None:
                judged.append(JudgedText.withheld("no_text", "This is no text that can be checked."))
        except InputError as error:
            judged.append(JudgedText.withheld(error.reason, str(error)))
        verdict: dict[str, Any] = {"decision": "allow", "warnings": [each.why for each in judged if each.why]}
        if denied := next((each for each in judged if each.shown is None), None):
            judged, verdict = [denied], {"decision": "deny", **(denied.why or {})}
        elif shown != found:
            change = {"path": "$target.content", "value": shown}
            verdict |= {"decision": "transform", "transform": change}
        ids = [each.response_id for each in judged if each.response_id][:100]
        return verdict | ({"evidence": {"artefact": " ".join(ids)}} if ids else {})

    async def _judged(self, text: str, grounding: Grounding, model: str) -> JudgedText:
        answer, events = WholeAnswer(), list[AnyOutputEvent]()
        missing = self.binding.missing
        await decide(
            self.guard, grounding, [text], answer, missing=missing, generator_model=model, seen=events.append
        )
        response_id = answer.told.get("response_id")
        if answer.finish == BLOCK:
            return JudgedText.withheld(answer.told.get("rule"), answer.text, response_id)
        segments = [each for each in events if isinstance(each, DeliverySegment)]
        return JudgedText.of(answer.text, segments, response_id)


def guard_kind(guard: Guard, made: list[GuardInterceptor] | None = None) -> KindResolver:
    """The guard as a kind for ``HostRegistry.kind``; ``made`` gets each interceptor. A binding that leaves
    out a point that it needs is refused.
    """

    def build(config: Any, bound: BindingContext) -> GuardInterceptor:
        try:
            binding = GuardBinding.model_validate(config)
        except ValidationError as error:
            raise ValueError(f"config: {decode_error(error)}") from None
        needed = {"input", "output", "agent_shutdown", *(["post_tool_call"] if binding.tools else [])}
        if lacking := sorted(needed - {point.value for point in bound.at}):
            raise ValueError(f"at: the guard needs {', '.join(lacking)}, too")
        interceptor = GuardInterceptor(guard, binding)
        if made is not None:
            made.append(interceptor)
        return interceptor

    return build


async def _texts_of(found: Any, shown_of: Callable[[str], Any]) -> Any:
    """What may be shown of a text, of messages, or of parts of one: texts by ``shown_of``, and what only
    programs read. The rest is dropped, since nobody has checked it.
    """
    match found:
        case str():
            return found and await shown_of(found)
        case list():
            parts = [await _texts_of(each, shown_of) for each in found]
            return [each for each in parts if each is not None]
        case {"role": "assistant", "content": inner}:
            return {"role": "assistant", "content": await _texts_of(inner, shown_of)}
        case {"type": "text", "text": str(text)}:
            return {"type": "text", "text": await _texts_of(text, shown_of)}
        case {"role": str(role), "content": _} if role in _OTHERS:
            return found
        case {"type": str(kind)} if kind in _CALLS:
            return found
    return None


def _key(context: Mapping[str, Any]) -> tuple[str | None, str, str]:
    """Sessions of two tenants may bear one id."""
    return _tenant(context), context["agent"]["id"], context["session"]["id"]


def _tenant(context: Mapping[str, Any]) -> str | None:
    return (context.get("tenant") or {}).get("id")


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def _why(rule: str | None, message: str) -> dict[str, str]:
    return {"reason": f"guardrail:{rule}".replace(": ", ".").replace(" ", "_"), "message": message}


def _asked(content: Any) -> list[dict[str, Any]]:
    """The user's messages in an input: a text, parts of one, or messages."""
    if isinstance(content, list) and all(isinstance(each, Mapping) and "role" in each for each in content):
        return [dict(each) for each in content if each["role"] == "user"]
    return [{"role": "user", "content": content}]


def _result(call: Mapping[str, Any], value: Any) -> list[dict[str, Any]]:
    """A tool's result, as a chat has it; what is no text as JSON."""
    content = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    asked = {"role": "assistant", "tool_calls": [{"id": call["id"], "function": {"name": call["name"]}}]}
    return [asked, {"role": "tool", "tool_call_id": call["id"], "content": content}]
