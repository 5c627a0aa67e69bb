"""The guard as an output guardrail of OpenAI's Agents SDK: an answer that its documents don't back trips it.

::

    agent = Agent("help", tools=[search], output_guardrails=[answer_guardrail()])
    try:
        result = await Runner.run(agent, question, context=RunSources(), hooks=CollectToolOutputs())
    except OutputGuardrailTripwireTriggered as tripped:
        show(tripped.guardrail_result.output.output_info.text)

The documents come from the object that the application passes as the run's context, where its tools or
``CollectToolOutputs`` put them. Nothing is read out of prompts or of what the model says of its sources.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from inspect import isawaitable
from pathlib import Path
from typing import Any, Literal

from agents import Agent, GuardrailFunctionOutput, OutputGuardrail, RunContextWrapper, RunHooks, Tool

from guardrail.errors import ConfigError, InputError
from guardrail.events import Context, Decision, DeliveryBlocked, DeliverySegment, ResponseVerdict
from guardrail.inputs import ContextLike
from guardrail.integrations.background import BackgroundGuard
from guardrail.policy import MissingContexts

ContextsOf = Callable[[RunContextWrapper[Any]], Sequence[ContextLike] | Awaitable[Sequence[ContextLike]]]


@dataclass(slots=True)
class RunSources:
    """The documents of one run. Pass it as the run's context, or as ``sources`` of a context of your own."""

    documents: list[ContextLike] = field(default_factory=list)
    question: str | None = None
    """What was asked; if not given, the text of the user's last message."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the guard decided: the ``output_info`` of the guardrail's result."""

    decision: Decision
    rule: str
    text: str
    """What may be shown: the answer as the policy releases it, or the block's message."""
    verdict: ResponseVerdict


class CollectToolOutputs(RunHooks[Any]):
    """Puts what the tools of a run return into its ``RunSources``, each as a document named after its tool.

    ``tools`` are the names of the tools that retrieve; all, if not given. Leave out those whose output is no
    source, such as one that only echoes what the model wrote.
    """

    def __init__(self, tools: Collection[str] | None = None) -> None:
        self._tools = None if tools is None else frozenset(tools)

    async def on_tool_end(
        self, context: RunContextWrapper[Any], agent: Any, tool: Tool, result: object
    ) -> None:
        del agent
        if self._tools is not None and tool.name not in self._tools:
            return
        sources = sources_of(context)
        text = result if isinstance(result, str) else json.dumps(result, default=str, ensure_ascii=False)
        name = f"{tool.name[:480]}-{len(sources.documents) + 1}"
        sources.documents.append(Context(id=name, text=text, source=tool.name))


def sources_of(context: RunContextWrapper[Any]) -> RunSources:
    """The ``RunSources`` of a run. Raises ConfigError if its context has none."""
    found = _sources(context)
    if found is None:
        raise ConfigError(
            "context: the run has no RunSources; pass Runner.run(…, context=RunSources()), or an object "
            "whose attribute 'sources' is one, or give answer_guardrail(contexts=…)"
        )
    return found


def _sources(context: RunContextWrapper[Any]) -> RunSources | None:
    given = context.context
    found = given if isinstance(given, RunSources) else getattr(given, "sources", None)
    return found if isinstance(found, RunSources) else None


def answer_guardrail(
    guard: BackgroundGuard | None = None,
    *,
    settings: str | Path | None = None,
    contexts: ContextsOf | None = None,
    text_of: Callable[[Any], str] | None = None,
    trip_on: Collection[Decision | str] = (Decision.BLOCK, Decision.REDACT),
    missing_contexts: Literal["refuse", "flag"] = "refuse",
    missing_contexts_message: str = MissingContexts.message,
    name: str = "streaming-guardrail",
    **head: Any,
) -> OutputGuardrail[Any]:
    """An output guardrail that checks the final output against the run's documents.

    ``settings`` is the path of a file as ``guardrail run`` takes it; without it the local judge and the
    default policy hold. Give ``guard`` instead to share one, or to close it. ``contexts`` returns the
    documents of a run, at once or awaited; by default they are those of its ``RunSources``. ``text_of``
    returns the text of an output that is not a mere text. ``trip_on`` are the decisions that trip it: a
    redacted text must not be shown as it was written, which a guardrail can't change. ``missing_contexts``
    is what happens to the claims of an answer without documents: it is blocked, or flagged. ``head`` takes
    the other fields of a response: route, tenant, …. Raises ConfigError.
    """
    if guard is not None and settings is not None:
        raise ValueError("settings: the guard that you give has its own; give guard or settings")
    checks = _GuardrailChecks(
        guard or BackgroundGuard(settings),
        contexts or (lambda context: sources_of(context).documents),
        text_of or _plain_text,
        frozenset(Decision(each) for each in trip_on),
        {**head, "missing_contexts": MissingContexts(missing_contexts, missing_contexts_message)},
    )
    return OutputGuardrail(guardrail_function=checks.check, name=name)


@dataclass(frozen=True, slots=True)
class _GuardrailChecks:
    guard: BackgroundGuard
    contexts: ContextsOf
    text_of: Callable[[Any], str]
    trip_on: frozenset[Decision]
    head: dict[str, Any]

    async def check(
        self, context: RunContextWrapper[Any], agent: Agent[Any], output: Any
    ) -> GuardrailFunctionOutput:
        del agent
        answer = self.text_of(output)
        documents = self.contexts(context)
        if isawaitable(documents):
            documents = await documents
        outcome = await self._outcome(_question(context), documents, answer)
        return GuardrailFunctionOutput(outcome, tripwire_triggered=outcome.decision in self.trip_on)

    async def _outcome(self, question: str, documents: Sequence[ContextLike], answer: str) -> Outcome:
        shown: list[str] = []
        message: str | None = None
        verdict: ResponseVerdict | None = None
        stream = self.guard.astream(question, documents, _one(answer), **self.head)
        async with aclosing(stream) as events:
            async for event in events:
                match event:
                    case DeliverySegment():
                        shown.append(event.text)
                    case DeliveryBlocked():
                        message = event.message
                    case ResponseVerdict():
                        verdict = event
        assert verdict is not None  # noqa: S101 - every response ends with one
        text = "".join(shown) if message is None else message
        return Outcome(verdict.decision, verdict.rule, text, verdict)


async def _one(answer: str) -> AsyncGenerator[str, None]:
    yield answer


def _plain_text(output: Any) -> str:
    if isinstance(output, str):
        return output
    raise InputError(
        "invalid_event",
        f"output: a {type(output).__name__} is not text; give answer_guardrail(text_of=…), which returns the "
        "text of it that the reader sees",
    )


def _question(context: RunContextWrapper[Any]) -> str:
    found = _sources(context)
    if found is not None and found.question is not None:
        return found.question
    for item in reversed(context.turn_input):
        if isinstance(item, dict) and item.get("role") == "user":
            content: Any = item.get("content")
            if isinstance(content, str):
                return content
            parts = content if isinstance(content, list) else []
            return "\n".join(
                part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)
            )
    return ""
