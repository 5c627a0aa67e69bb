"""Traces as samples: spans of OpenInference (Phoenix, Arize) and observations of Langfuse.

An answer and its documents stand in different spans, which may be anywhere in the export. So it is read
whole, of each span only what is needed, and the samples come at its end, in the order of their first span.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from guardrail.errors import InputError
from guardrail.evals.formats.rows import built
from guardrail.evals.formats.values import (
    Fields,
    Row,
    Unread,
    as_text,
    context_of,
    contexts_of,
    distinct,
    first_of,
    list_in,
    missing,
    named,
    unpacked,
    wrong,
)
from guardrail.evals.results import BadSample, Sample
from guardrail.events import Label, verdict_said

_QUESTIONS: Final = ("question", "query", "user_input", "input", "prompt", "user_query", "message", "text")
_ANSWERS: Final = ("answer", "output", "response", "result", "completion", "content", "text", "output_text")
_CONTEXTS: Final = ("contexts", "context", "documents", "retrieved_contexts", "retrieval_context", "chunks")
_MESSAGES: Final = ("messages", "prompts")
_LISTS: Final = ("retrieval.documents", "reranker.output_documents", "put_messages")
"""How attributes that are lists end, which stand as texts in the cells of a table."""
# Scores with such names speak of faithfulness; other annotations (helpful, polite) do not.
_SUPPORT_WORDS: Final = ("faithful", "grounded", "support", "factual")
_ERROR_WORDS: Final = ("hallucinat", "unfaithful", "ungrounded", "unsupported")


@dataclass(slots=True)
class _Trace:
    """What was found of one trace so far."""

    trace_id: str
    place: str
    question: str = ""
    answer: str = ""
    retriever_question: str = ""
    model_answer: str = ""
    model_question: str = ""
    model: str | None = None
    model_rank: tuple[bool, str] = (False, "")
    """Of the model's span that the answer is of: whether it has messages, and when it ended."""
    torn: bool = False
    """Whether a span of it can't be read, which may have had its documents."""
    has_root: bool = False
    root_span: str | None = None
    """Which the results of the evaluation belong to, once they are exported."""
    documents: list[Any] = field(default_factory=list)
    reranked: list[Any] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    session: str | None = None
    labels: list[Label] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)

    def sample(self, whence: str) -> Sample:
        """Raises DecodeError for a trace without documents or without an answer."""
        answer = self.answer or self.model_answer
        if self.torn:
            raise missing("documents", "a span of the trace can't be read; mend it or leave out the trace")
        if not answer:
            raise missing("answer", f"no span of the trace has an output; {whence}")
        documents = self.reranked or self.documents or self.prompts
        if not documents:
            raise missing("contexts", f"no span of the trace has documents; {whence}")
        contexts = distinct(
            context_of(each, None, f"c{at}", f"documents.{at - 1}") for at, each in enumerate(documents, 1)
        )
        made = built(
            Row(self.place),
            response_id=self.trace_id,
            question=self.question or self.retriever_question or self.model_question,
            contexts=contexts,
            answer=answer,
            labels=tuple(self.labels),
            generator_model=self.model,
            metadata={"trace_id": self.trace_id, "session_id": self.session, "span_id": self.root_span},
        )
        return replace(made, unread=tuple(self.unread))


def _samples(rows: Iterable[Row], read: Any, whence: str) -> Iterator[Sample | BadSample]:
    """The traces of all rows. ``read`` adds a row to the traces; rows that it can't read come at once."""
    traces: dict[str, _Trace] = {}
    for row in rows:
        if row.problem:
            yield BadSample(row.place, row.problem)
            continue
        try:
            read(traces, row)
        except InputError as error:
            yield BadSample(row.place, str(error))
    for trace in traces.values():
        try:
            yield trace.sample(whence)
        except InputError as error:
            yield BadSample(trace.place, str(error))


def _trace_of(traces: dict[str, _Trace], trace_id: Any, row: Row) -> _Trace:
    if not isinstance(trace_id, str) or not trace_id:
        raise missing("trace id", "give spans with the trace that they belong to")
    return traces.setdefault(trace_id, _Trace(trace_id, row.place))


# ------------------------------------------------------------------------------------- OpenInference


def openinference_samples(rows: Iterable[Row]) -> Iterator[Sample | BadSample]:
    """Spans as Phoenix's client and its data frames write them, or as OTLP in JSON.

    Documents are those of the retrievers, or of a reranker where there is one; question and answer are input
    and output of the span without a parent, else of the last model's.
    """
    whence = "give retriever spans with retrieval.documents, and a root or LLM span with output.value"
    return _samples(rows, _add_spans, whence)


def _add_spans(traces: dict[str, _Trace], row: Row) -> None:
    fields = row.fields
    resources = fields.get("resourceSpans")
    if not isinstance(resources, list):
        try:
            span = _flat(fields)
        except InputError:
            _trace_of(traces, fields.get("context.trace_id"), row).torn = True
            raise
        _add_span(traces, row, span)
        return
    for resource in resources:
        for scope in resource.get("scopeSpans", ()) if isinstance(resource, Mapping) else ():
            for span in scope.get("spans", ()) if isinstance(scope, Mapping) else ():
                if isinstance(span, Mapping):
                    _add_span(traces, row, _flat({**span, "attributes": _otlp(span.get("attributes"))}))


def _otlp(attributes: Any) -> dict[str, Any]:
    """Attributes of OTLP in JSON: a list of key and typed value."""
    found = {}
    for each in attributes if isinstance(attributes, list) else ():
        value = each.get("value") if isinstance(each, Mapping) else None
        if isinstance(value, Mapping) and value:
            found[str(each.get("key"))] = next(iter(value.values()))
    return found


def _flat(fields: Any, prefix: str = "", depth: int = 0) -> dict[str, Any]:
    """Nested objects and lists as one level of dotted names; the name of the attributes is left out."""
    found: dict[str, Any] = {}
    pairs = fields.items() if isinstance(fields, Mapping) else enumerate(fields)
    for key, value in pairs:
        name = f"{prefix}{key}"
        if isinstance(value, str) and name.endswith(_LISTS):
            value = list_in(value)
            if value is None:
                raise wrong(name, "", "give a list as JSON or as Python prints it")
        if isinstance(value, (Mapping, list, tuple)) and depth < 12:
            found |= _flat(value, "" if name == "attributes" else f"{name}.", depth + 1)
        elif value is not None:
            found[name.removeprefix("attributes.")] = value
    return found


def _add_span(traces: dict[str, _Trace], row: Row, span: dict[str, Any]) -> None:
    trace_id = first_of(span, ("context.trace_id", "trace_id", "traceId"))[1]
    trace = _trace_of(traces, trace_id, row)
    kind = str(first_of(span, ("openinference.span.kind", "span_kind"))[1] or "").upper()
    parent = first_of(span, ("parent_id", "parentSpanId", "parent_span_id"))[1]
    question, answer = span.get("input.value"), span.get("output.value")
    trace.documents += _documents(span, "retrieval.documents.")
    trace.reranked += _documents(span, "reranker.output_documents.")
    trace.session = trace.session or as_text(span.get("session.id"))
    _add_annotations(trace, span)
    if kind == "LLM":
        message = as_text(span.get("llm.output_messages.0.message.content"))
        found = message or _text_in(answer, _ANSWERS)
        rank = (bool(message), str(first_of(span, ("end_time", "endTimeUnixNano"))[1] or ""))
        # A frame of Phoenix begins with the newest span; and builders of prompts call themselves LLM, too.
        if found and rank >= trace.model_rank:
            trace.model_rank, trace.model_answer = rank, found
            trace.model = as_text(span.get("llm.model_name")) or trace.model
            trace.model_question = _last_user_message(span) or trace.model_question
    elif kind == "RETRIEVER":
        trace.retriever_question = _text_in(question, _QUESTIONS) or trace.retriever_question
    if not parent and not trace.has_root and kind != "RETRIEVER":
        trace.has_root = True
        trace.root_span = as_text(first_of(span, ("context.span_id", "span_id", "spanId"))[1])
        trace.question = _text_in(question, _QUESTIONS)
        trace.answer = "" if kind == "LLM" else _text_in(answer, _ANSWERS)


def _documents(span: Fields, prefix: str) -> list[Any]:
    found: dict[int, dict[str, Any]] = {}
    for name, value in span.items():
        if name.startswith(prefix):
            number, _, rest = name.removeprefix(prefix).partition(".")
            if number.isdecimal():
                found.setdefault(int(number), {})[rest.removeprefix("document.")] = value
    return [found[number] for number in sorted(found) if "content" in found[number]]


def _last_user_message(span: Fields) -> str:
    found = ""
    for number in range(1000):
        prefix = f"llm.input_messages.{number}.message."
        if f"{prefix}role" not in span:
            break
        if span[f"{prefix}role"] == "user":
            found = as_text(span.get(f"{prefix}content")) or found
    return found


def _add_annotations(trace: _Trace, span: Fields) -> None:
    """What people annotated on a span, in the names of OpenInference's annotations."""
    numbers = {name.split(".")[1] for name in span if name.startswith("annotations.") and name.count(".") > 1}
    for number in sorted(numbers):
        prefix = f"annotations.{number}."
        each = {
            name.removeprefix(prefix).removeprefix("annotation.").removeprefix("result."): value
            for name, value in span.items()
            if name.startswith(prefix)
        }
        if each.get("annotator_kind") == "HUMAN":
            _add_label(
                trace, each.get("name"), first_of(each, ("label", "score"))[1], each.get("explanation")
            )


def _add_label(trace: _Trace, name: Any, value: Any, category: Any, reviewer: Any = None) -> None:
    """A person's judgement, if its name says that it is about faithfulness and its value is a verdict."""
    name = name.lower() if isinstance(name, str) else ""
    is_error = any(word in name for word in _ERROR_WORDS)
    if not is_error and not any(word in name for word in _SUPPORT_WORDS):
        return
    verdict = verdict_said(value, of_error=is_error)
    if verdict is None:
        trace.unread.append((name, named(as_text(value))))
        return
    texts = {"category": category, "reviewer": reviewer}
    said = {key: text[:256] for key, text in texts.items() if isinstance(text, str) and text}
    label = Label(response_id=trace.trace_id, verdict=verdict, id=f"{trace.trace_id}:{name}", **said)
    trace.labels.append(label)


def _text_in(value: Any, names: tuple[str, ...], depth: int = 0) -> str:
    """The text that an input or output is, or holds under one of ``names``, or in its last message."""
    value = unpacked(value)
    if isinstance(value, str):
        return value
    if depth > 4:
        return ""
    if isinstance(value, Mapping):
        for inner in (*names, *_MESSAGES, "choices", "message", "content", "kwargs"):
            if value.get(inner) is not None and (found := _text_in(value[inner], names, depth + 1)):
                return found
    if isinstance(value, list):
        wanted = "user" if names is _QUESTIONS else "assistant"
        roles = [each for each in value if isinstance(each, Mapping) and _role(each) == wanted]
        for each in reversed(roles or value):
            if found := _text_in(each, names, depth + 1):
                return found
    return ""


def _role(message: Mapping[str, Any]) -> str:
    role = first_of(message, ("role", "type"))[1]
    return {"human": "user", "ai": "assistant"}.get(str(role), str(role))


# ------------------------------------------------------------------------------------------ Langfuse

_TYPES: Final = frozenset(
    (
        "SPAN",
        "GENERATION",
        "EVENT",
        "AGENT",
        "TOOL",
        "CHAIN",
        "RETRIEVER",
        "EVALUATOR",
        "EMBEDDING",
        "GUARDRAIL",
    )
)


def is_observation(fields: Fields) -> bool:
    """Is this a trace or an observation as Langfuse exports it?"""
    if isinstance(fields.get("observations"), list):
        return True
    has_trace = any(name in fields for name in ("traceId", "trace_id"))
    known = str(fields.get("type", "")).upper() in _TYPES
    return has_trace and known and ("input" in fields or "output" in fields)


def langfuse_samples(rows: Iterable[Row]) -> Iterator[Sample | BadSample]:
    """Observations, of the export to a blob store, the API or a table, and traces, with theirs or without.

    Documents are, by the first rule that finds any: the output of observations of type RETRIEVER; contexts
    or documents in the input or metadata of the trace or a generation; else every message of the last
    generation's input that no assistant wrote.
    """
    whence = (
        "give RETRIEVER observations, contexts in input or metadata, or generations whose input has the "
        "messages"
    )
    return _samples(rows, _add_observations, whence)


def _add_observations(traces: dict[str, _Trace], row: Row) -> None:
    fields = row.fields
    inner = unpacked(fields.get("observations"))
    trace_id = first_of(fields, ("traceId", "trace_id"))[1]
    if trace_id is None:  # a trace; its observations may be with it
        trace = _trace_of(traces, fields.get("id"), row)
        _add_root(trace, fields)
        for each in inner if isinstance(inner, list) else ():
            if isinstance(each, Mapping):
                _add_observation(trace, each, has_root=True)
        return
    _add_observation(_trace_of(traces, trace_id, row), fields, has_root=False)


def _add_root(trace: _Trace, fields: Fields) -> None:
    trace.question = _text_in(fields.get("input"), _QUESTIONS) or trace.question
    trace.answer = _text_in(fields.get("output"), _ANSWERS) or trace.answer
    trace.session = as_text(first_of(fields, ("sessionId", "session_id"))[1]) or trace.session
    _add_given_contexts(trace, fields)
    scores = unpacked(fields.get("scores"))
    for score in scores if isinstance(scores, list) else ():
        if isinstance(score, Mapping) and score.get("source") == "ANNOTATION":
            value = first_of(score, ("stringValue", "string_value", "value"))[1]
            author = first_of(score, ("authorUserId", "author_user_id"))[1]
            _add_label(trace, score.get("name"), value, score.get("comment"), author)


def _add_observation(trace: _Trace, fields: Fields, *, has_root: bool) -> None:
    kind = str(fields.get("type", "")).upper()
    if kind == "RETRIEVER":
        found = unpacked(fields.get("output"))
        if isinstance(found, Mapping):
            found = next((found[name] for name in _CONTEXTS if isinstance(found.get(name), list)), [found])
        trace.documents += found if isinstance(found, list) else [found] if isinstance(found, str) else []
        trace.retriever_question = _text_in(fields.get("input"), _QUESTIONS) or trace.retriever_question
        return
    _add_given_contexts(trace, fields)
    if kind == "GENERATION":
        trace.model_answer = _text_in(fields.get("output"), _ANSWERS) or trace.model_answer
        trace.model_question = _text_in(fields.get("input"), _QUESTIONS) or trace.model_question
        model = first_of(fields, ("model", "providedModelName", "provided_model_name"))[1]
        trace.model = as_text(model) or trace.model
        trace.prompts = _prompts(fields.get("input")) or trace.prompts
    parent = first_of(fields, ("parentObservationId", "parent_observation_id"))[1]
    if not has_root and not parent:
        _add_root(trace, fields)


def _add_given_contexts(trace: _Trace, fields: Fields) -> None:
    """Contexts that stand in the input or the metadata under their name."""
    for place in (unpacked(fields.get("input")), unpacked(fields.get("metadata"))):
        if isinstance(place, Mapping) and not trace.reranked:
            name, value = first_of(place, _CONTEXTS)
            if value is not None:
                # Kept where a reranker's documents are: what was handed over goes before what was found.
                trace.reranked = [each.model_dump() for each in contexts_of({name: value}, (name,))]


def _prompts(value: Any) -> list[str]:
    """The messages of a generation's input that no assistant wrote."""
    value = unpacked(value)
    if isinstance(value, Mapping):
        value = next((value[name] for name in _MESSAGES if isinstance(value.get(name), list)), None)
    if not isinstance(value, list):
        return []
    found = [
        _text_in(each.get("content"), _ANSWERS)
        for each in value
        if isinstance(each, Mapping) and _role(each) != "assistant"
    ]
    return [each for each in found if each]
