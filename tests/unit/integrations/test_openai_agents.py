"""The guard as an output guardrail in runs of OpenAI's Agents SDK, with its own scripted model."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from agents import (
    Agent,
    OutputGuardrailTripwireTriggered,
    RunConfig,
    RunContextWrapper,
    Runner,
    function_tool,
)
from agents.testing import ScriptedModel, assistant_message, function_call
from pydantic import BaseModel

from guardrail import ConfigError, Context, InputError
from guardrail.integrations.background import BackgroundGuard
from guardrail.integrations.openai_agents import (
    CollectToolOutputs,
    Outcome,
    RunSources,
    answer_guardrail,
)
from guardrail.policy import NO_CONTEXTS
from tests.support.judges import WordJudge

QUIET = RunConfig(tracing_disabled=True)
RIGHT = "Paris is in France."
WRONG = "It costs wrong $79."
ASKED = "Where is Paris?"


@function_tool
def atlas(city: str) -> str:
    """Look a city up."""
    return f"{city} is in France."


@function_tool
def echo(text: str) -> str:
    """Say it again."""
    return text


@function_tool
def prices(context: RunContextWrapper[Any], plan: str) -> str:
    """Look a price up, and keep the page that it stands on."""
    context.context.sources.documents.append({"id": "prices.html", "text": f"The {plan} plan costs $49."})
    return "$49"


def agent(guardrail: Any, *says: Any, tools: Any = (), output_type: Any = None) -> Agent[Any]:
    return Agent(
        name="help",
        model=ScriptedModel(list(says)),
        tools=list(tools),
        output_guardrails=[guardrail],
        output_type=output_type,
    )


def outcome_of(tripped: pytest.ExceptionInfo[OutputGuardrailTripwireTriggered]) -> Outcome:
    outcome = tripped.value.guardrail_result.output.output_info
    assert isinstance(outcome, Outcome)
    return outcome


async def test_an_answer_that_its_documents_back_passes(guard: BackgroundGuard, judge: WordJudge) -> None:
    helper = agent(answer_guardrail(guard), [assistant_message(RIGHT)])
    result = await Runner.run(helper, ASKED, context=RunSources(["Paris is in France."]), run_config=QUIET)
    assert result.final_output == RIGHT
    (told,) = result.output_guardrail_results
    assert told.guardrail.get_name() == "streaming-guardrail"
    assert told.output.output_info.decision == "release"
    assert told.output.output_info.text == RIGHT
    assert judge.requests[0].question == ASKED


async def test_an_answer_that_is_blocked_trips_it_and_tells_what_to_show(guard: BackgroundGuard) -> None:
    helper = agent(answer_guardrail(guard), [assistant_message(WRONG)])
    with pytest.raises(OutputGuardrailTripwireTriggered) as tripped:
        await Runner.run(helper, ASKED, context=RunSources(["It costs $49."]), run_config=QUIET)
    outcome = outcome_of(tripped)
    assert outcome.decision == "block"
    assert outcome.text
    assert "$79" not in outcome.text
    assert outcome.verdict is not None
    assert outcome.verdict.hallucinated_claims == (WRONG,)


async def test_a_streamed_run_trips_too(guard: BackgroundGuard) -> None:
    helper = agent(answer_guardrail(guard), [assistant_message(WRONG)])
    result = Runner.run_streamed(helper, ASKED, context=RunSources(["It costs $49."]), run_config=QUIET)
    with pytest.raises(OutputGuardrailTripwireTriggered):
        async for _ in result.stream_events():
            pass


async def test_the_outputs_of_tools_are_the_documents(guard: BackgroundGuard, judge: WordJudge) -> None:
    helper = agent(
        answer_guardrail(guard),
        [
            function_call("atlas", {"city": "Paris"}, call_id="1"),
            function_call("echo", {"text": "It costs $1."}, call_id="2"),
        ],
        [assistant_message(RIGHT)],
        tools=[atlas, echo],
    )
    sources = RunSources()
    hooks = CollectToolOutputs(tools=["atlas"])
    await Runner.run(helper, ASKED, context=sources, hooks=hooks, run_config=QUIET)
    assert sources.documents == [Context(id="atlas-1", text="Paris is in France.", source="atlas")]
    assert judge.requests[0].evidence.contexts == tuple(sources.documents)


@dataclass
class Session:
    """A context of the application's own."""

    user: str
    sources: RunSources = field(default_factory=RunSources)


async def test_tools_put_documents_into_a_context_of_the_applications_own(
    guard: BackgroundGuard, judge: WordJudge
) -> None:
    helper = agent(
        answer_guardrail(guard),
        [function_call("prices", {"plan": "basic"}, call_id="1")],
        [assistant_message("It costs $49.")],
        tools=[prices],
    )
    session = Session("ann", RunSources(question="What does the basic plan cost?"))
    result = await Runner.run(helper, "And the basic one?", context=session, run_config=QUIET)
    assert result.output_guardrail_results[0].output.output_info.decision == "release"
    assert judge.requests[0].question == "What does the basic plan cost?"
    assert [each.id for each in judge.requests[0].evidence.contexts] == ["prices.html"]


async def looked_up(context: RunContextWrapper[Any]) -> list[str]:
    await asyncio.sleep(0)
    return list(context.context["found"])


@pytest.mark.parametrize("contexts", [lambda context: context.context["found"], looked_up])
async def test_documents_may_come_from_a_function(
    guard: BackgroundGuard, judge: WordJudge, contexts: Any
) -> None:
    guardrail = answer_guardrail(guard, contexts=contexts)
    await Runner.run(
        agent(guardrail, [assistant_message(RIGHT)]), ASKED, context={"found": ["a"]}, run_config=QUIET
    )
    assert [each.text for each in judge.requests[0].evidence.contexts] == ["a"]


@pytest.mark.parametrize("said", ["Hello, how can I help you?", "I don't know."])
async def test_what_states_nothing_needs_no_documents(guard: BackgroundGuard, said: str) -> None:
    helper = agent(answer_guardrail(guard), [assistant_message(said)])
    result = await Runner.run(helper, ASKED, context=RunSources(), run_config=QUIET)
    assert result.output_guardrail_results[0].output.output_info.decision == "release"


async def test_an_answer_without_documents_trips_it_unless_flagging_is_asked_for(
    guard: BackgroundGuard,
) -> None:
    helper = agent(answer_guardrail(guard), [assistant_message(RIGHT)])
    with pytest.raises(OutputGuardrailTripwireTriggered) as tripped:
        await Runner.run(helper, ASKED, context=RunSources(), run_config=QUIET)
    assert outcome_of(tripped).rule == NO_CONTEXTS
    assert RIGHT not in outcome_of(tripped).text
    helper = agent(answer_guardrail(guard, missing_contexts="flag"), [assistant_message(RIGHT)])
    result = await Runner.run(helper, ASKED, context=RunSources(), run_config=QUIET)
    told = result.output_guardrail_results[0].output.output_info
    assert (told.decision, told.rule, told.text) == ("flag", NO_CONTEXTS, RIGHT)


async def test_the_decisions_that_trip_can_be_chosen(guard: BackgroundGuard) -> None:
    unbacked = f"{RIGHT} It is unbacked."
    sources = RunSources(["Paris is in France."])
    lenient = agent(answer_guardrail(guard), [assistant_message(unbacked)])
    result = await Runner.run(lenient, ASKED, context=sources, run_config=QUIET)
    decision = result.output_guardrail_results[0].output.output_info.decision
    assert decision == "flag"
    strict = agent(
        answer_guardrail(guard, trip_on=["flag", "redact", "block"]), [assistant_message(unbacked)]
    )
    with pytest.raises(OutputGuardrailTripwireTriggered):
        await Runner.run(strict, ASKED, context=sources, run_config=QUIET)


class Reply(BaseModel):
    """An output with a form."""

    text: str
    mood: str


async def test_an_output_with_a_form_needs_a_function_that_finds_its_text(guard: BackgroundGuard) -> None:
    said = [assistant_message('{"text": "It costs wrong $79.", "mood": "sure"}')]
    sources = RunSources(["It costs $49."])
    with pytest.raises(InputError, match=r"output: a Reply is not text.*text_of"):
        await Runner.run(
            agent(answer_guardrail(guard), said, output_type=Reply), ASKED, context=sources, run_config=QUIET
        )
    guardrail = answer_guardrail(guard, text_of=lambda reply: str(reply.text))
    with pytest.raises(OutputGuardrailTripwireTriggered):
        await Runner.run(agent(guardrail, said, output_type=Reply), ASKED, context=sources, run_config=QUIET)


async def test_a_run_without_sources_fails_with_the_remedy(guard: BackgroundGuard) -> None:
    helper = agent(answer_guardrail(guard), [assistant_message(RIGHT)])
    with pytest.raises(ConfigError, match=r"context: the run has no RunSources; pass Runner.run"):
        await Runner.run(helper, ASKED, run_config=QUIET)


def test_wrong_options_are_named(guard: BackgroundGuard) -> None:
    with pytest.raises(ConfigError, match="missing_contexts: 'pass' is unknown"):
        answer_guardrail(guard, missing_contexts="pass")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'stop' is not a valid Decision"):
        answer_guardrail(guard, trip_on=["stop"])
    with pytest.raises(ValueError, match="give guard or settings"):
        answer_guardrail(guard, settings="guardrail.yaml")
