"""The guard in chains of LangChain's own runnables, documents, retrievers and models."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from operator import itemgetter
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough
from pydantic import BaseModel

from guardrail import AnswerBlocked, ConfigError, InputError, ResponseVerdict
from guardrail.integrations.background import BackgroundGuard
from guardrail.integrations.langchain import VERDICT_EVENT, GuardCheck, GuardStream, contexts_of
from guardrail.judges import Judgement, JudgeRequest
from guardrail.policy import NO_CONTEXTS
from tests.support.judges import GatedJudge, WordJudge
from tests.unit.integrations.conformance.langchain_model import ChatOpenAI

DOCUMENTS = [
    Document("Paris is in France.", id="atlas", metadata={"source": "atlas.pdf"}),
    Document("It costs $49."),
]
RIGHT = "Paris is in France. "
WRONG = "It costs wrong $79. "
AFTER = "Nobody reads this sentence. "


class Shelf(BaseRetriever):
    """A retriever that finds everything."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        del query, run_manager
        return DOCUMENTS


class HeldJudge(GatedJudge):
    """Answers when the test lets it, from the test's thread."""

    def __init__(self) -> None:
        super().__init__()
        self.began = threading.Semaphore(0)
        self.loop: asyncio.AbstractEventLoop | None = None

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        self.loop = asyncio.get_running_loop()
        self.began.release()
        async for each in super().judge(request):
            yield each

    async def was_asked(self, times: int = 1) -> None:
        for _ in range(times):
            await asyncio.to_thread(self.began.acquire)

    def let_go(self) -> None:
        assert self.loop is not None
        self.loop.call_soon_threadsafe(self.gate.set)


class Writer:
    """A step that writes an answer word by word, and tells how far it came and whether it was closed."""

    def __init__(self, text: str) -> None:
        self.words = text.split(" ")
        self.written = 0
        self.closed = asyncio.Event()

    def plain(self, given: Iterator[Any]) -> Iterator[str]:
        for _ in given:
            pass
        try:
            for word in self.words:
                self.written += 1
                yield f"{word} "
        finally:
            self.closed.set()

    async def live(self, given: AsyncIterator[Any]) -> AsyncIterator[str]:
        async for _ in given:
            pass
        try:
            for word in self.words:
                self.written += 1
                yield f"{word} "
                await asyncio.sleep(0)
        finally:
            self.closed.set()


def rag(text: str, last: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """A chain as LangChain's tutorials build them."""
    prompt = ChatPromptTemplate.from_template("{question}\n\n{contexts}")
    model = GenericFakeChatModel(messages=iter([AIMessage(text)]))
    return (
        RunnablePassthrough.assign(contexts=itemgetter("question") | Shelf())
        | RunnablePassthrough.assign(answer=prompt | model | StrOutputParser())
        | last
    )


async def read(chain: Runnable[Any, str], given: Any, shown: list[str]) -> None:
    """Read a chain to its end; ``shown`` keeps what came if that is an error."""
    async for piece in chain.astream(given):
        shown.append(piece)  # noqa: PERF401 - one at a time, for the same reason


def written_by(writer: Writer, last: Runnable[Any, Any]) -> Runnable[Any, Any]:
    from langchain_core.runnables import RunnableGenerator

    write: Any = RunnableGenerator(writer.plain, writer.live)
    return (
        RunnablePassthrough.assign(contexts=itemgetter("question") | Shelf())
        | RunnablePassthrough.assign(answer=write)
        | last
    )


# --------------------------------------------------------------------------------------------- whole answers


async def test_a_chain_ends_in_a_verdict_on_the_answer_and_the_retrieved_documents(
    guard: BackgroundGuard, judge: WordJudge
) -> None:
    for verdict in (
        await rag(RIGHT + WRONG, GuardCheck(guard)).ainvoke({"question": "?"}),
        await asyncio.to_thread(rag(RIGHT + WRONG, GuardCheck(guard)).invoke, {"question": "?"}),
    ):
        assert isinstance(verdict, ResponseVerdict)
        assert verdict.decision == "block"
        assert verdict.hallucinated_claims == (WRONG.strip(),)
    first = judge.requests[0].evidence.contexts
    assert [(each.id, each.text, each.source) for each in first] == [
        ("atlas", "Paris is in France.", "atlas.pdf"),
        ("c2", "It costs $49.", None),
    ]


async def test_a_batch_is_judged_concurrently_and_keeps_its_order() -> None:
    held = HeldJudge()
    with BackgroundGuard(judge=held) as guard:
        answers: list[Any] = [
            {"question": "?", "contexts": DOCUMENTS, "answer": each} for each in (RIGHT, WRONG, RIGHT)
        ]
        batch = asyncio.create_task(GuardCheck(guard).abatch(answers))
        await held.was_asked(len(answers))
        held.let_go()
        assert [each.decision for each in await batch] == ["release", "block", "release"]


def test_a_batch_without_a_loop_is_judged_too(guard: BackgroundGuard) -> None:
    answers: list[Any] = [{"question": "?", "contexts": DOCUMENTS, "answer": each} for each in (RIGHT, WRONG)]
    assert [each.decision for each in GuardCheck(guard).batch(answers)] == ["release", "block"]


@pytest.mark.parametrize("missing", ["question", "contexts", "answer"])
def test_a_field_that_is_missing_is_named_with_its_remedy(guard: BackgroundGuard, missing: str) -> None:
    given = {"question": "?", "contexts": DOCUMENTS, "answer": RIGHT}
    del given[missing]
    for last in (GuardCheck(guard), GuardStream(guard)):
        with pytest.raises(InputError, match=f"{missing}: missing.*{missing}_key"):
            last.invoke(given)


class Form(BaseModel):
    """What a model gives that writes with a form."""

    text: str = WRONG


@pytest.mark.parametrize(
    "answer",
    [{"text": WRONG}, Form(), [{"type": "text", "text": WRONG}], [WRONG], 5, None, AIMessage([{"x": WRONG}])],
)
def test_an_answer_that_is_no_text_is_an_error(guard: BackgroundGuard, answer: Any) -> None:
    given = {"question": "?", "contexts": DOCUMENTS, "answer": answer}
    for last in (GuardCheck(guard), GuardStream(guard)):
        with pytest.raises(InputError, match=rf"answer: a {type(answer).__name__} without text came; give"):
            last.invoke(given)


def test_the_text_blocks_of_a_message_are_its_text(guard: BackgroundGuard) -> None:
    blocks: list[Any] = [{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": WRONG}]
    given = {"question": "?", "contexts": DOCUMENTS, "answer": AIMessage(blocks)}
    assert GuardCheck(guard).invoke(given).decision == "block"


@pytest.mark.parametrize("contexts", [[], [" "]])
def test_claims_without_documents_are_refused_unless_flagging_is_asked_for(
    guard: BackgroundGuard, contexts: Any
) -> None:
    given = {"question": "?", "contexts": contexts, "answer": RIGHT}
    assert GuardCheck(guard).invoke(given).decision == "block"
    assert "documents" in GuardStream(guard).invoke(given)
    assert GuardStream(guard, missing_contexts_message="No.").invoke(given) == "No."
    flagged = GuardCheck(guard, missing_contexts="flag").invoke(given)
    assert (flagged.decision, flagged.rule) == ("flag", NO_CONTEXTS)
    assert GuardStream(guard, missing_contexts="flag").invoke(given) == RIGHT
    for said in ("Hello, how can I help you?", "I don't know.", "Which plan do you mean?"):
        assert GuardStream(guard).invoke({**given, "answer": said}) == said


def test_documents_joined_to_a_text_are_refused(guard: BackgroundGuard) -> None:
    with pytest.raises(InputError, match="contexts: give the list of documents, not a str"):
        GuardCheck(guard).invoke({"question": "?", "contexts": "Paris", "answer": RIGHT})


def test_fields_may_have_the_names_of_langchains_tutorials(guard: BackgroundGuard) -> None:
    check = GuardCheck(guard, question_key="input", contexts_key="context", answer_key="output", route="r")
    given = {"input": "?", "context": DOCUMENTS, "output": AIMessage(WRONG)}
    assert check.invoke(given).decision == "block"


def test_documents_with_one_id_get_names_apart() -> None:
    same: list[Any] = [Document("a", id="x"), Document("b", id="x"), "c", Document("d", id="x")]
    found = contexts_of(same)
    assert [getattr(each, "id", each) for each in found] == ["x", "c2", "c", "c4"]


# --------------------------------------------------------------------------------------------------- streams


async def test_text_is_released_claim_by_claim_while_the_model_writes(guard: BackgroundGuard) -> None:
    chain = rag(RIGHT + "It costs $49. ", GuardStream(guard))
    pieces = [piece async for piece in chain.astream({"question": "?"})]
    assert "".join(pieces) == RIGHT + "It costs $49. "
    assert len(pieces) >= 2


def test_the_same_without_a_loop(guard: BackgroundGuard) -> None:
    pieces = list(rag(RIGHT + "It costs $49. ", GuardStream(guard)).stream({"question": "?"}))
    assert "".join(pieces) == RIGHT + "It costs $49. "
    assert len(pieces) >= 2


async def test_nothing_is_released_before_its_claims_have_verdicts() -> None:
    held = HeldJudge()
    with BackgroundGuard(judge=held) as guard:
        chain = rag(RIGHT, GuardStream(guard))
        pieces: list[str] = []

        async def read() -> None:
            pieces.extend([piece async for piece in chain.astream({"question": "?"})])

        reading = asyncio.create_task(read())
        await held.was_asked()
        assert pieces == []
        held.let_go()
        await reading
        assert "".join(pieces) == RIGHT


async def test_after_a_block_the_message_follows_and_the_model_is_read_no_further(
    guard: BackgroundGuard,
) -> None:
    writer = Writer(RIGHT + WRONG + AFTER * 2_000)
    pieces = [piece async for piece in written_by(writer, GuardStream(guard)).astream({"question": "?"})]
    assert "".join(pieces[:-1]).strip() == RIGHT.strip()
    assert pieces[-1].startswith("\n\n")
    assert WRONG.strip() not in "".join(pieces)
    await writer.closed.wait()  # LangChain leaves closing a chain's steps to the loop
    assert writer.written < len(writer.words)


def test_after_a_block_without_a_loop_the_model_is_read_no_further(guard: BackgroundGuard) -> None:
    writer = Writer(RIGHT + WRONG + AFTER * 2_000)
    pieces = list(written_by(writer, GuardStream(guard)).stream({"question": "?"}))
    assert pieces[-1].startswith("\n\n")
    assert WRONG.strip() not in "".join(pieces)
    assert writer.closed.is_set()
    assert writer.written < len(writer.words)


async def test_a_block_before_any_text_is_the_message_alone(guard: BackgroundGuard) -> None:
    text = await rag(WRONG, GuardStream(guard)).ainvoke({"question": "?"})
    assert text
    assert not text.startswith("\n")
    assert "$79" not in text


async def test_a_block_can_be_raised(guard: BackgroundGuard) -> None:
    shown: list[str] = []
    chain = rag(RIGHT + WRONG, GuardStream(guard, on_block="raise"))
    with pytest.raises(AnswerBlocked) as blocked:
        await read(chain, {"question": "?"}, shown)
    assert "".join(shown).strip() == RIGHT.strip()
    assert blocked.value.released_chars == len("".join(shown))
    with pytest.raises(AnswerBlocked):
        await asyncio.to_thread(rag(WRONG, GuardStream(guard, on_block="raise")).invoke, {"question": "?"})


async def test_the_verdict_is_an_event_of_the_chain(guard: BackgroundGuard) -> None:
    chain = rag(RIGHT + WRONG, GuardStream(guard))
    events = [each async for each in chain.astream_events({"question": "?"}, version="v2")]
    (told,) = [each["data"] for each in events if each["name"] == VERDICT_EVENT]
    assert ResponseVerdict.model_validate(told).decision == "block"
    streamed = [
        each["data"]["chunk"]
        for each in events
        if each["event"] == "on_chain_stream" and each["name"] == "GuardStream"
    ]
    assert "".join(streamed).startswith(RIGHT.strip())


async def test_what_breaks_the_models_stream_is_raised_after_what_was_verified(
    guard: BackgroundGuard,
) -> None:
    async def broken(given: Any) -> AsyncIterator[dict[str, Any]]:
        del given
        yield {"question": "?", "contexts": DOCUMENTS}
        yield {"answer": RIGHT + "And "}
        raise ConnectionError("the model went away")

    shown: list[str] = []
    with pytest.raises(ConnectionError, match="went away"):
        await read(RunnableLambda(broken) | GuardStream(guard), {}, shown)
    assert "".join(shown).strip() == RIGHT.strip()


async def test_a_reader_that_leaves_ends_the_answer_and_the_guard_goes_on(guard: BackgroundGuard) -> None:
    writer = Writer(RIGHT * 5_000)
    stream: Any = written_by(writer, GuardStream(guard)).astream({"question": "?"})
    async for _ in stream:
        break
    await stream.aclose()
    del stream
    await writer.closed.wait()  # LangChain leaves closing a chain's steps to the loop
    assert writer.written < len(writer.words)
    assert (await guard.acheck("?", ["Paris is in France."], RIGHT)).decision == "release"


async def test_a_cancelled_reader_leaves_nothing_behind() -> None:
    held = HeldJudge()
    with BackgroundGuard(judge=held) as guard:
        reading = asyncio.create_task(rag(RIGHT, GuardStream(guard)).ainvoke({"question": "?"}))
        await held.was_asked()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        held.let_go()
        assert (await guard.acheck("?", ["Paris is in France."], RIGHT)).decision == "release"


async def test_contexts_that_come_after_the_answer_began_are_waited_for(
    guard: BackgroundGuard, judge: WordJudge
) -> None:
    async def late(given: Any) -> AsyncIterator[dict[str, Any]]:
        del given
        yield {"answer": "Paris is "}
        yield {"question": "Where?", "contexts": DOCUMENTS[:1]}
        yield {"answer": "in France."}

    text = "".join([piece async for piece in (RunnableLambda(late) | GuardStream(guard)).astream({})])
    assert text == "Paris is in France."
    assert [each.id for each in judge.requests[0].evidence.contexts] == ["atlas"]


def test_a_step_that_gives_mere_text_is_told_what_it_needs(guard: BackgroundGuard) -> None:
    with pytest.raises(InputError, match=r"a str came, not a mapping .* RunnablePassthrough.assign"):
        GuardStream(guard).invoke("Paris is in France.")  # type: ignore[arg-type]


@pytest.mark.parametrize("bound", [False, True])
async def test_a_chat_model_judges_what_another_writes(bound: bool) -> None:
    model = ChatOpenAI()
    llm: Any = model.with_retry() if bound else model
    told = {"question": "Where?", "contexts": DOCUMENTS[:1], "answer": "Paris is in France."}
    with GuardCheck(llm=llm).guard as guard:
        verdict = GuardCheck(guard).invoke(told)
        assert [str(each.verdict) for each in verdict.claims] == ["SUPPORTED"]
        assert (verdict.usage.input_tokens, verdict.usage.output_tokens) == (50, 5)
        chain: Any = RunnableLambda(lambda answer: {**told, "answer": answer}) | GuardStream(guard)
        events = [each async for each in chain.astream_events("Paris is a port.", version="v2")]
    assert len(model.script.asked) == 2
    assert not [each for each in events if "chat_model" in each["event"]], "no reader sees what it was asked"


def test_wrong_options_are_named(guard: BackgroundGuard) -> None:
    with pytest.raises(ValueError, match="on_block: 'stop' is unknown"):
        GuardStream(guard, on_block="stop")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="missing_contexts: 'pass' is unknown"):
        GuardCheck(guard, missing_contexts="pass")  # type: ignore[arg-type]
    for given in ({"settings": "guardrail.yaml"}, {"llm": ChatOpenAI()}):
        with pytest.raises(ValueError, match="give one of them"):
            GuardCheck(guard, **given)
    with pytest.raises(TypeError, match="'temperature' is not a field of a response"):
        GuardStream(guard, temperature=0)
    with pytest.raises(TypeError, match="llm: give a chat model of LangChain, not a str"):
        GuardCheck(llm="gpt-4o")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="either settings, or judge and policy"):
        BackgroundGuard("guardrail.yaml", judge=WordJudge())
