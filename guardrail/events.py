"""The wire contracts: every event that is read from or written to a topic.

All events are JSON objects with a ``type`` and a ``schema`` version. Unknown fields are tolerated, unknown
types and versions are not. Spans are half-open ``[start, end)`` offsets in Unicode code points: of the
response's text for claims and segments, of the context's text for evidence. Ids of outputs are
deterministic (same input, same policy: same id), so that a reader may upsert on them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from guardrail.errors import DecodeError

SCHEMA_VERSION: Final = 1
MAX_CITED_CONTEXTS: Final = 20

Span = tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]]
Probability = Annotated[float, Field(ge=0.0, le=1.0)]
ResponseId = Annotated[
    str, Field(min_length=1, max_length=256, description="Identifies the response; also the Kafka key.")
]
Seq = Annotated[int, Field(ge=0, le=2**31 - 1)]
Name = Annotated[str, Field(max_length=256)]


class Verdict(StrEnum):
    """What the judge says of a claim. UNVERIFIED: it could not say (timeout, outage, budget)."""

    SUPPORTED = "SUPPORTED"
    PARTIALLY_SUPPORTED = "PARTIALLY_SUPPORTED"
    UNSUPPORTED = "UNSUPPORTED"
    CONTRADICTED = "CONTRADICTED"
    UNVERIFIED = "UNVERIFIED"


class Severity(StrEnum):
    """How much a wrong claim costs, from least to most."""

    MINOR = "minor"
    NORMAL = "normal"
    MAJOR = "major"
    CRITICAL = "critical"

    rank: int

    def __init__(self, *_: str) -> None:
        self.rank = len(type(self).__members__)  # members are made in the order they stand in


class Finding(StrEnum):
    """Something exact that was found out about a claim, beside the verdict."""

    FIGURE_CONFLICT = "figure_conflict"
    """A source gives another figure for the same thing."""
    FIGURE_ABSENT = "figure_absent"
    """A figure of the claim stands in no source, nor follows from theirs by plain arithmetic."""
    LINK_ABSENT = "link_absent"
    """A link or an address that is in no source."""
    CITATION_ABSENT = "citation_absent"
    """A citation that names none of the contexts."""
    DISPLAY_MISMATCH = "display_mismatch"
    """The text displays otherwise than it reads."""


class CitationBacking(StrEnum):
    """What the citations of a claim are worth, by what its verdict rests on."""

    CITED = "cited"
    """A context that the claim cites backs it."""
    OTHER = "other"
    """Only contexts that it does not cite back it."""
    NONE = "none"
    """No context backs it."""
    UNKNOWN = "unknown"
    """The judge did not say: UNVERIFIED, or supported without evidence."""


class Decision(StrEnum):
    """What happens to a text, from mildest to hardest."""

    RELEASE = "release"
    FLAG = "flag"
    REDACT = "redact"
    BLOCK = "block"

    rank: int

    def __init__(self, *_: str) -> None:
        self.rank = len(type(self).__members__)


class SegmentKind(StrEnum):
    """What a segment is. Only ``sentence``, ``list_item`` and ``table_row`` can hold claims."""

    SENTENCE = "sentence"
    LIST_ITEM = "list_item"
    TABLE_ROW = "table_row"
    HEADING = "heading"
    CODE = "code"
    BLANK = "blank"


class WireModel(BaseModel):
    """Base of everything on the wire: immutable, tolerant of unknown fields."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True, serialize_by_alias=True)


class Event(WireModel):
    """Base of every event."""

    schema_version: Literal[1] = Field(
        default=SCHEMA_VERSION, alias="schema", description="Version of the event's schema."
    )

    def to_json(self) -> bytes:
        """The event as UTF-8 JSON, every field written."""
        return self.__pydantic_serializer__.to_json(self, by_alias=True)


# ---------------------------------------------------------------------------------------------- input


class Context(WireModel):
    """One retrieved document handed to the generator."""

    id: Annotated[
        str,
        Field(min_length=1, max_length=512, description="Unique within the response; evidence refers to it."),
    ]
    text: str
    source: str | None = Field(default=None, description="Where it comes from: a URL, a file, a title.")
    score: float | None = Field(default=None, description="The retriever's score, as given.")


class ResponseHead(Event):
    """What is known of a response before its text."""

    response_id: ResponseId
    question: str = Field(default="", description="What the user asked.")
    contexts: tuple[Context, ...] = Field(
        default=(),
        description="The retrieved documents the answer is written from; without any, nothing is supported.",
    )
    route: Name | None = Field(
        default=None, description="Chooses the policy, with tenant and generator_model."
    )
    tenant: Name | None = Field(
        default=None, description="Chooses the policy, with route and generator_model."
    )
    generator_model: Name | None = Field(
        default=None,
        description="The model that writes the answer; chooses the policy, with route and tenant.",
    )
    language: Name | None = Field(
        default=None,
        description="BCP 47 tag of the reader's language, such as de or pt-BR; chooses among a policy's "
        "messages.",
    )
    deadline_ms: Annotated[int, Field(gt=0, le=86_400_000)] | None = Field(
        default=None,
        description="How long after this event the last verdict may come; claims not judged by then are "
        "UNVERIFIED.",
    )
    metadata: dict[str, Any] = Field(default_factory=dict, description="Passed through to the flagged case.")


class ResponseStarted(ResponseHead):
    """A response begins; its text follows as deltas."""

    type: Literal["response.started"] = "response.started"


class ResponseDelta(Event):
    """A piece of text. ``seq`` counts the deltas of a response from 0 without gaps."""

    type: Literal["response.delta"] = "response.delta"
    response_id: ResponseId
    seq: Seq = Field(description="Number of this delta, from 0 without gaps.")
    text: str = Field(description="Appended to the text so far, exactly as it is.")


class ResponseCompleted(Event):
    """The text is complete. ``seq`` is the number of deltas sent, so that a lost last one is noticed."""

    type: Literal["response.completed"] = "response.completed"
    response_id: ResponseId
    seq: Seq = Field(description="Number of deltas sent.")
    finish_reason: str | None = Field(default=None, description="Why the generator stopped, in its words.")


class ResponseAborted(Event):
    """The generator gave up; no more text comes."""

    type: Literal["response.aborted"] = "response.aborted"
    response_id: ResponseId
    seq: Seq | None = Field(default=None, description="Number of deltas sent, if known.")
    reason: str | None = Field(default=None, description="Why the generator gave up.")


class Response(ResponseHead):
    """A whole response in one event."""

    type: Literal["response"] = "response"
    answer: str = Field(description="The whole text.")


InputEvent = Annotated[
    ResponseStarted | ResponseDelta | ResponseCompleted | ResponseAborted | Response,
    Field(discriminator="type"),
]

# --------------------------------------------------------------------------------------------- output


class PolicyRef(WireModel):
    """The policy that was applied."""

    name: str
    version: str = Field(description="Changed by the operator with the policy.")
    digest: str = Field(
        default="",
        description="12 hex digits over the policy's content, its name aside; another content gives others.",
    )


class Evidence(WireModel):
    """A verbatim quote: ``contexts[context_id].text[span[0]:span[1]] == quote``."""

    context_id: str
    quote: str
    span: Span = Field(description="Code points of the context's text.")


class OutputEvent(Event):
    """Base of what the guardrail writes."""

    id: str = Field(description="Deterministic id of this event: same input and policy, same id.")
    response_id: ResponseId


class Usage(WireModel):
    """What judges consumed: for a response, or one claim's share of the calls that were made for it."""

    judge_calls: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = Field(default=0, description="Those of them that the provider's cache held.")
    output_tokens: int = 0
    cost_usd: float = Field(default=0.0, description="By the configured prices; 0 where none is known.")
    dropped_quotes: int = Field(default=0, description="Quotes offered as evidence that stand in no context.")


class ClaimPart(WireModel):
    """An atomic statement that a claim was taken apart into, with its own verdict."""

    text: str = Field(description="In the judge's words, pronouns resolved.")
    verdict: Verdict


class ClaimCitation(WireModel):
    """A mark in a claim that names where it comes from: [1], (Source: pricing.pdf), a link."""

    span: Span = Field(description="Code points of the response's text, within the claim's.")
    text: str = Field(description="The mark as it stands there.")
    contexts: tuple[str, ...] = Field(
        default=(),
        description=f"Ids of the contexts it names, the first {MAX_CITED_CONTEXTS} of them; empty: none of "
        "those given.",
    )


class ClaimVerdict(OutputEvent):
    """The verdict on one claim."""

    type: Literal["verdict.claim"] = "verdict.claim"
    claim_id: str = Field(description="Deterministic id of the claim; verdicts are joined by it.")
    index: Annotated[int, Field(ge=0, description="Position among the claims of the response.")]
    text: str = Field(description="The claim as it stands in the response.")
    span: Span = Field(description="Code points of the response's text.")
    segment: Annotated[int, Field(ge=0, description="Index of the segment the claim stands in.")]
    severity: Severity = Field(description="How much it costs if the claim is wrong.")
    severity_reasons: tuple[str, ...] = Field(
        default=(), description="What the severity comes from: price, dosage, …"
    )
    verdict: Verdict
    confidence: Probability = Field(description="How sure the judge is of this verdict.")
    support: Probability | None = Field(
        description="Calibrated probability that the claim is supported; null when UNVERIFIED."
    )
    contradiction: Probability | None = Field(
        default=None,
        description="Calibrated probability that the contexts say otherwise; null where the judge gives "
        "none.",
    )
    findings: tuple[Finding, ...] = Field(
        default=(),
        description="What was found out exactly, each once. figure_conflict: a source gives another figure "
        "for the same thing. figure_absent: a figure of the claim stands in no source, plain arithmetic "
        "aside. link_absent: a link or an address that is in no source. citation_absent: a citation that "
        "names none of the contexts. display_mismatch: text that displays otherwise than it reads.",
    )
    evidence: tuple[Evidence, ...] = Field(default=(), description="What the verdict rests on.")
    citations: tuple[ClaimCitation, ...] = Field(
        default=(), description="The citations in the claim, ascending and apart."
    )
    citation_backing: CitationBacking | None = Field(
        default=None,
        description="Whether they hold; null for a claim that cites nothing. cited: a context that it cites "
        "is among the evidence of a claim that is supported, at least in part, or has a quote of it too. "
        "other: only contexts that it does not cite are. none: it is not supported. unknown: the judge did "
        "not say.",
    )
    conflicting_contexts: tuple[str, ...] = Field(
        default=(), description="Ids of contexts that contradict a claim that another context supports."
    )
    reasoning: str = Field(default="", description="Why, in the judge's words.")
    unsupported_spans: tuple[Span, ...] = Field(
        default=(),
        description="Words of the claim that the judge finds no support for: code points of the response's "
        "text, within span, ascending and apart. Empty: not told, which never means that all have support.",
    )
    parts: tuple[ClaimPart, ...] = Field(
        default=(), description="The statements the claim was taken apart into, when it was."
    )
    judge: str = Field(description="Name of the judge that gave the verdict.")
    attempts: Annotated[int, Field(ge=0)] = Field(
        default=1, description="Calls made for this verdict, failed ones included; 0: none was needed."
    )
    degraded_from: tuple[str, ...] = Field(
        default=(),
        description="Judges that were to answer and did not, each with the reason, in their order.",
    )
    usage: Usage | None = Field(
        default=None,
        description="This claim's share of what the calls for it consumed; null: nothing, or not known yet "
        "when this was published.",
    )
    latency_ms: Annotated[float, Field(ge=0)] = Field(description="From the claim being cut to its verdict.")
    policy: PolicyRef
    omitted: tuple[str, ...] = Field(
        default=(), description="Fields left empty because the event would have been too large for a record."
    )


class VerdictCounts(WireModel):
    """How many claims got which verdict."""

    supported: int = 0
    partially_supported: int = 0
    unsupported: int = 0
    contradicted: int = 0
    unverified: int = 0


class Timings(WireModel):
    """Milliseconds."""

    total_ms: float = Field(description="From the start of the response to its last verdict.")
    first_claim_ms: float | None = Field(default=None, description="From the start to the first verdict.")
    after_completion_ms: float | None = Field(default=None, description="From the last text to the decision.")
    max_claim_ms: float | None = None


class ChallengerDecision(WireModel):
    """What another policy, the challenger, decides on the same verdicts. It has no effect."""

    policy: PolicyRef
    decision: Decision
    rule: str = Field(description="The rule that made the decision.")
    score: Probability | None = Field(description="By the challenger's formula and weights.")
    complete: bool = Field(
        description="False where the applied policy ended the judging by a block and the challenger would "
        "have gone on: it decided on what was judged until then."
    )


class ResponseVerdict(OutputEvent):
    """The verdict on the whole response. The order of ``claims`` is that of the text."""

    type: Literal["verdict.response"] = "verdict.response"
    score: Probability | None = Field(
        description="How much of the response is supported, by the policy's formula: the severity-weighted "
        "mean of the claims' support, or of their verdicts' credits; null: nothing to check."
    )
    counts: VerdictCounts
    decision: Decision
    rule: str = Field(description="The rule that made the decision.")
    mode: Literal["hold", "stream", "observe"]
    complete: bool = Field(
        description="True when the text came whole and was judged to its end; false after a block on the "
        "way, an abort, a time-out or a gap."
    )
    claims: tuple[ClaimVerdict, ...] = ()
    hallucinated_claims: tuple[str, ...] = Field(
        default=(), description="Texts of the claims that are UNSUPPORTED or CONTRADICTED."
    )
    summary: str
    conflicting_contexts: tuple[str, ...] = ()
    usage: Usage = Usage()
    timings: Timings
    policy: PolicyRef
    challenger: ChallengerDecision | None = Field(
        default=None,
        description="What the challenger decides that the policy has for this response; null without one.",
    )
    omitted: tuple[str, ...] = Field(
        default=(), description="Fields left empty because the event would have been too large for a record."
    )


class DeliverySegment(OutputEvent):
    """Text to show. Joined by ``seq`` these are what the user reads."""

    type: Literal["delivery.segment"] = "delivery.segment"
    seq: Seq
    text: str = Field(description="As released: the original, or the policy's replacement when redacted.")
    segment: int | None = Field(default=None, description="Index of the segment; null in observe mode.")
    span: Span = Field(description="The original's place in the response's text.")
    decision: Decision
    rule: str | None = None
    claim_ids: tuple[str, ...] = ()


class DeliveryCompleted(OutputEvent):
    """No more text comes."""

    type: Literal["delivery.completed"] = "delivery.completed"
    seq: Seq
    decision: Decision
    rule: str
    score: Probability | None = None


class DeliveryBlocked(OutputEvent):
    """No more text comes, and what was shown is to be replaced by ``message``."""

    type: Literal["delivery.blocked"] = "delivery.blocked"
    seq: Seq
    message: str = Field(description="The policy's message, to show instead.")
    rule: str
    released_chars: int = Field(description="Code points that had been released before the block.")
    score: Probability | None = None


class FlaggedCase(OutputEvent):
    """The whole case of a flagged, redacted or blocked response, for reviewers."""

    type: Literal["case.flagged"] = "case.flagged"
    question: str
    contexts: tuple[Context, ...]
    answer: str = Field(description="The text as generated, as far as it was read.")
    delivered: str = Field(description="The text as released.")
    decision: Decision
    rule: str
    score: Probability | None
    claims: tuple[ClaimVerdict, ...]
    route: str | None = None
    tenant: str | None = None
    generator_model: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    policy: PolicyRef
    omitted: tuple[str, ...] = Field(
        default=(), description="Fields left empty because the event would have been too large for a record."
    )


DeliveryEvent = DeliverySegment | DeliveryCompleted | DeliveryBlocked
VerdictEvent = ClaimVerdict | ResponseVerdict
AnyOutputEvent = DeliveryEvent | VerdictEvent | FlaggedCase

INPUT_EVENTS: Final[tuple[type[Event], ...]] = (
    ResponseStarted,
    ResponseDelta,
    ResponseCompleted,
    ResponseAborted,
    Response,
)
OUTPUT_EVENTS: Final[tuple[type[OutputEvent], ...]] = (
    ClaimVerdict,
    ResponseVerdict,
    DeliverySegment,
    DeliveryCompleted,
    DeliveryBlocked,
    FlaggedCase,
)

_input_adapter: Final[TypeAdapter[Any]] = TypeAdapter(InputEvent)
_output_adapter: Final[TypeAdapter[Any]] = TypeAdapter(Annotated[AnyOutputEvent, Field(discriminator="type")])


def parse_input(
    value: bytes | str,
) -> ResponseStarted | ResponseDelta | ResponseCompleted | ResponseAborted | Response:
    """Read one input event. Raises DecodeError, whose message quotes no text of the event."""
    try:
        event: ResponseStarted | ResponseDelta | ResponseCompleted | ResponseAborted | Response
        event = _input_adapter.validate_json(value)
    except ValidationError as error:
        raise decode_error(error) from None
    return event


def parse_output(value: bytes | str) -> AnyOutputEvent:
    """Read one event that the guardrail wrote. Raises DecodeError."""
    try:
        event: AnyOutputEvent = _output_adapter.validate_json(value)
    except ValidationError as error:
        raise decode_error(error) from None
    return event


def decode_error(error: ValidationError) -> DecodeError:
    """What is wrong with an event, by its first wrong field; quotes nothing of the event."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    kind = first["type"]
    where = ".".join(str(part) for part in first["loc"]) or "event"
    message = f"{where}: {first['msg']}"
    if kind == "json_invalid" and error.errors()[0].get("input") in ("", b""):
        return DecodeError("empty_value", "there is no value")
    if kind == "json_invalid":
        return DecodeError("invalid_json", first["msg"].replace("Invalid JSON", "not valid JSON", 1))
    if kind in {"union_tag_invalid", "union_tag_not_found"}:
        known = ", ".join(cls.model_fields["type"].default for cls in INPUT_EVENTS)
        return DecodeError("unknown_type", f"field 'type' is missing or unknown; known input types: {known}")
    if first["loc"] and first["loc"][-1] == "schema":
        return DecodeError(
            "unknown_schema", f"field 'schema': this program reads version {SCHEMA_VERSION} only"
        )
    return DecodeError("invalid_event", message)
