"""The wire contracts: every event that is read from or written to a topic.

All events are JSON objects with a ``type`` and a ``schema`` version. Unknown fields are tolerated; unknown
types and versions are not. Spans are half-open ``[start, end)`` offsets in Unicode code points: of the
response's text for claims and segments, of the context's text for evidence. Output ids are deterministic
(same input and policy, same id), so readers can upsert by them.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)

from guardrail.errors import DecodeError

SCHEMA_VERSION: Final = 1
MAX_CITED_CONTEXTS: Final = 20
MAX_CONTEXTS: Final = 10_000
"""Of one response: a hundred times what a model reads. Reading an event can't be interrupted; so many take
some tens of milliseconds."""

Span = tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]]
Probability = Annotated[float, Field(ge=0.0, le=1.0)]
ResponseId = Annotated[
    str, Field(min_length=1, max_length=256, description="Identifies the response; also the Kafka key.")
]
Seq = Annotated[int, Field(ge=0, le=2**31 - 1)]
Name = Annotated[str, Field(max_length=256)]
DecidingClaim = Annotated[
    str | None,
    Field(
        exclude_if=lambda value: value is None,
        description="The claim_id of the claim that decided; where the score alone decided, of the one that "
        "weighs most in it. Absent where no claim did, and in events of earlier releases.",
    ),
]


class Verdict(StrEnum):
    """What the judge decides about a claim. UNVERIFIED: it could not decide (timeout, outage, budget), or has
    looked and leaves it open, for which a finding says why (``LEFT_OPEN``)."""

    SUPPORTED = "SUPPORTED"
    PARTIALLY_SUPPORTED = "PARTIALLY_SUPPORTED"
    UNSUPPORTED = "UNSUPPORTED"
    CONTRADICTED = "CONTRADICTED"
    UNVERIFIED = "UNVERIFIED"


_YES: Final = frozenset({"yes", "y", "true", "t", "1"})
_NO: Final = frozenset({"no", "n", "false", "f", "0"})
_SAID: Final = {
    **{verdict.value.lower().replace("_", " "): verdict for verdict in Verdict},
    **dict.fromkeys(
        (
            *("right", "correct", "accurate", "good", "ok", "okay", "pass", "passed", "valid", "accept"),
            *("accepted", "approved", "faithful", "grounded", "factual", "entailment", "thumbs up", "👍"),
        ),
        Verdict.SUPPORTED,
    ),
    **dict.fromkeys(("partial", "partially", "partly", "partly right"), Verdict.PARTIALLY_SUPPORTED),
    **dict.fromkeys(
        (
            *("wrong", "incorrect", "inaccurate", "bad", "not ok", "fail", "failed", "invalid", "reject"),
            *("rejected", "unfaithful", "ungrounded", "not supported", "hallucinated", "hallucination"),
            *("baseless", "neutral", "thumbs down", "👎"),
        ),
        Verdict.UNSUPPORTED,
    ),
    **dict.fromkeys(("contradiction", "contradictory", "refuted", "conflict"), Verdict.CONTRADICTED),
    **dict.fromkeys(("unsure", "unknown", "unclear", "idk"), Verdict.UNVERIFIED),
}
KNOWN_WORDS: Final = (
    "right, wrong, correct, incorrect, good, bad, yes, no, true, false, 1, 0, pass, fail, partial, unsure "
    "and the verdicts themselves"
)
"""What messages name of the words that are read."""


_JOINED: Final = re.compile(r"(?<=[^\W\d_])[-_](?=[^\W\d_])")


def verdict_said(value: Any, *, of_error: bool = False) -> Verdict | None:
    """The verdict that a person's word stands for: 1, true, yes and right are SUPPORTED. None if it is none.

    ``of_error``: the word answers whether there is an error, so that yes says UNSUPPORTED; words that say
    what the answer is, such as wrong and hallucinated, mean the same there.
    """
    if isinstance(value, (bool, int, float)):
        value = "1" if value == 1 else "0" if value == 0 else ""
    if not isinstance(value, str):
        return None
    # "not-ok" and "thumbs_down", but not "-1", which is no 1.
    word = " ".join(_JOINED.sub(" ", value).lower().split())
    word = {"1.0": "1", "0.0": "0"}.get(word, word)  # what pandas makes of a column with gaps
    if word in _YES or word in _NO:
        return Verdict.SUPPORTED if (word in _YES) is not of_error else Verdict.UNSUPPORTED
    return _SAID.get(word)


def _as_verdict(value: Any) -> Any:
    said = verdict_said(value)
    return value if said is None else said


class Severity(StrEnum):
    """How much a wrong claim costs, from least to most."""

    MINOR = "minor"
    NORMAL = "normal"
    MAJOR = "major"
    CRITICAL = "critical"

    rank: int

    def __init__(self, *_: str) -> None:
        self.rank = len(type(self).__members__)  # members are created in definition order


class Finding(StrEnum):
    """An exact result of checking a claim, in addition to the verdict."""

    FIGURE_CONFLICT = "figure_conflict"
    """A source gives another figure for the same thing."""
    FIGURE_ABSENT = "figure_absent"
    """A figure in the claim is in no source, and nothing suggests that it is calculated from theirs."""
    CALCULATION_UNCHECKED = "calculation_unchecked"
    """A figure in the claim may be calculated from the sources' figures, and the claim does not spell out
    how; or it is the opposite limit, or compared, and it is not sure that the sources speak of the same.
    """
    FIGURE_AMBIGUOUS = "figure_ambiguous"
    """A figure in the claim is a source's only if a comma or point before three digits groups them, or only
    if it begins decimals, and the texts don't show which: "2.500" and 2,500.
    """
    OTHER_THING = "other_thing"
    """The sources have the claim's figure or name, but beside another thing than the claim names."""
    LINK_ABSENT = "link_absent"
    """A link or an address that is in no source."""
    CITATION_ABSENT = "citation_absent"
    """A citation that names none of the contexts."""
    DISPLAY_MISMATCH = "display_mismatch"
    """The text looks different from what it says."""
    CONTEXTS_DISAGREE = "contexts_disagree"
    """Two contexts give different figures for the same thing: the claim's and another one."""
    CHECKED_IN_PART = "checked_in_part"
    """The judge had no time to read the contexts for the claim, and only compared words and figures."""
    LANGUAGE_UNCOVERED = "language_uncovered"
    """The claim, or what would decide it, is in a language that the judge does not read."""
    JUDGE_REFUSED = "judge_refused"
    """The model refused to judge, or its provider's filter withheld the reply."""
    JUDGE_UNCLEAR = "judge_unclear"
    """A decision model's answer can't be used: it is missing or doubled, its probabilities are none, or most
    of the model's probability lies outside the options."""
    TOO_MANY_CLAIMS = "too_many_claims"
    """It stands behind as many claims as are judged of one response."""


LEFT_OPEN: Final = frozenset(
    {
        Finding.CALCULATION_UNCHECKED,
        Finding.LANGUAGE_UNCOVERED,
        Finding.JUDGE_REFUSED,
        Finding.JUDGE_UNCLEAR,
        Finding.TOO_MANY_CLAIMS,
    }
)
"""Findings with which a judge leaves a claim open: UNVERIFIED, but not for want of an answer."""


class CitationBacking(StrEnum):
    """Whether the contexts that a claim cites support it."""

    CITED = "cited"
    """A context that the claim cites supports it."""
    OTHER = "other"
    """Only contexts that it does not cite support it."""
    NONE = "none"
    """No context supports it."""
    UNKNOWN = "unknown"
    """The judge did not say: UNVERIFIED, or supported without evidence."""


class Decision(StrEnum):
    """What happens to a text, from mildest to strictest."""

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


GROUP_HEADER: Final = "guardrail-group"
"""Header of every record that a guard writes: the group of guards that it is a member of."""


class Event(WireModel):
    """Base of every event."""

    schema_version: Literal[1] = Field(
        default=SCHEMA_VERSION, alias="schema", description="Version of the event's schema."
    )

    def to_json(self) -> bytes:
        """The event as UTF-8 JSON, with every field."""
        return self.__pydantic_serializer__.to_json(self, by_alias=True)


# ---------------------------------------------------------------------------------------------- input


class Context(WireModel):
    """One retrieved document handed to the generator."""

    id: Annotated[
        str,
        Field(min_length=1, max_length=512, description="Unique within the response; evidence refers to it."),
    ]
    text: str
    source: str | None = Field(
        default=None, description="Where the document comes from: a URL, a file, a title."
    )
    score: float | None = Field(default=None, description="The retriever's score, as given.")


class ResponseHead(Event):
    """What is known about a response before its text."""

    response_id: ResponseId
    question: str = Field(default="", description="What the user asked.")
    contexts: tuple[Context, ...] = Field(
        default=(),
        max_length=MAX_CONTEXTS,
        description="The retrieved documents that the answer is based on; without any, no claim is "
        "supported.",
    )
    route: Name | None = Field(
        default=None, description="Selects the policy, together with tenant and generator_model."
    )
    tenant: Name | None = Field(
        default=None, description="Selects the policy, together with route and generator_model."
    )
    generator_model: Name | None = Field(
        default=None,
        description="The model that writes the answer; selects the policy, together with route and tenant.",
    )
    language: Name | None = Field(
        default=None,
        description="BCP 47 tag of the reader's language, such as de or pt-BR; selects among the "
        "policy's messages.",
    )
    deadline_ms: Annotated[int, Field(gt=0, le=86_400_000)] | None = Field(
        default=None,
        description="Time from this event to the last verdict; claims not judged by then are UNVERIFIED.",
    )
    metadata: dict[str, Any] = Field(
        default_factory=dict,
        description="Passed through to the flagged case. Nested less than 200 deep, whole numbers of at most "
        "4,300 digits.",
    )


class ResponseStarted(ResponseHead):
    """A response begins; its text follows as deltas."""

    type: Literal["response.started"] = "response.started"


class ResponseDelta(Event):
    """A piece of text. ``seq`` counts the deltas of a response from 0 without gaps."""

    type: Literal["response.delta"] = "response.delta"
    response_id: ResponseId
    seq: Seq = Field(description="Number of this delta, from 0 without gaps.")
    text: str = Field(description="Text to append to the response, exactly as it is.")


class ResponseCompleted(Event):
    """The text is complete. ``seq`` is the number of deltas sent, so that the guard notices a lost last
    one.
    """

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


InputEvent = ResponseStarted | ResponseDelta | ResponseCompleted | ResponseAborted | Response

# --------------------------------------------------------------------------------------------- output


class PolicyRef(WireModel):
    """The policy that was applied."""

    name: str
    version: str = Field(description="The policy's version, set by the operator.")
    digest: str = Field(
        default="",
        description="12 hex digits that identify the policy's content, without its name.",
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
    """What judges consumed: for a response, or one claim's share of the calls made for it."""

    judge_calls: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = Field(
        default=0, description="Input tokens that came from the provider's cache."
    )
    output_tokens: int = 0
    cost_usd: float = Field(default=0.0, description="At the configured prices; 0 if no price is known.")
    dropped_quotes: int = Field(default=0, description="Quotes offered as evidence that are in no context.")


class ClaimPart(WireModel):
    """An atomic statement of a decomposed claim, with its own verdict."""

    text: str = Field(description="In the judge's words, with pronouns resolved.")
    verdict: Verdict


class ClaimCitation(WireModel):
    """A mark in a claim that names its source: [1], (Source: pricing.pdf), a link."""

    span: Span = Field(description="Code points of the response's text, within the claim's.")
    text: str = Field(description="The mark as written.")
    contexts: tuple[str, ...] = Field(
        default=(),
        description=f"Ids of the contexts it names, at most {MAX_CITED_CONTEXTS}; empty: none of the "
        "contexts.",
    )


class ClaimVerdict(OutputEvent):
    """The verdict on one claim."""

    type: Literal["verdict.claim"] = "verdict.claim"
    claim_id: str = Field(description="Deterministic id of the claim, for joining its verdicts.")
    index: Annotated[int, Field(ge=0, description="Position among the claims of the response.")]
    text: str = Field(description="The claim as it is written in the response.")
    span: Span = Field(description="Code points of the response's text.")
    segment: Annotated[int, Field(ge=0, description="Index of the segment that contains the claim.")]
    severity: Severity = Field(description="How much it costs if the claim is wrong.")
    severity_reasons: tuple[str, ...] = Field(
        default=(), description="Why the claim has this severity: price, dosage, …"
    )
    verdict: Verdict
    confidence: Probability = Field(description="How sure the judge is of this verdict.")
    support: Probability | None = Field(
        description="Calibrated probability that the claim is supported; null when UNVERIFIED."
    )
    contradiction: Probability | None = Field(
        default=None,
        description="Calibrated probability that the contexts contradict the claim; null if the judge "
        "gives none.",
    )
    findings: tuple[Finding, ...] = Field(
        default=(),
        description="Exact findings, each at most once. figure_conflict: a source gives another "
        "figure for the same thing. figure_absent: a figure in the claim is in no source, and "
        "nothing suggests that it is calculated. figure_ambiguous: whether a figure is a source's "
        "depends on what a comma or point does. calculation_unchecked: a figure may be calculated "
        "from the sources' figures, but the claim does not spell out how. other_thing: the "
        "sources have the claim's figure or name, but beside another thing. link_absent: a "
        "link or an address is in no source. citation_absent: a citation names none of "
        "the contexts. display_mismatch: the text looks different from what it says. "
        "contexts_disagree: another context has another figure for the same thing. "
        "checked_in_part: the judge had no time to read the contexts for the claim. "
        "language_uncovered: the claim, or what would decide it, is in a language that the judge does "
        "not read. judge_refused: the model refused to judge. too_many_claims: it stands behind as "
        "many claims as are judged of one response.",
    )
    evidence: tuple[Evidence, ...] = Field(default=(), description="What the verdict is based on.")
    citations: tuple[ClaimCitation, ...] = Field(
        default=(), description="The citations in the claim, in ascending order and without overlap."
    )
    citation_backing: CitationBacking | None = Field(
        default=None,
        description="Whether the cited contexts support the claim; null for a claim without "
        "citations. cited: the claim is supported at least in part, and a cited context "
        "is among the evidence or contains one of its quotes too. other: only contexts "
        "that it does not cite support it. none: it is not supported. unknown: the judge "
        "did not say.",
    )
    conflicting_contexts: tuple[str, ...] = Field(
        default=(),
        description="Ids of contexts that contradict a claim that another context supports. Where the local "
        "judge finds that two disagree, both: first the one that supports it.",
    )
    reasoning: str = Field(default="", description="The judge's explanation, in its own words.")
    unsupported_spans: tuple[Span, ...] = Field(
        default=(),
        description="Words of the claim for which the judge finds no support: code points of the "
        "response's text, within span, in ascending order and apart. Empty: not reported, "
        "which does not mean that every word is supported.",
    )
    parts: tuple[ClaimPart, ...] = Field(
        default=(), description="The statements that the claim was decomposed into, if it was."
    )
    judge: str = Field(description="Name of the judge that gave the verdict.")
    attempts: Annotated[int, Field(ge=0)] = Field(
        default=1, description="Calls made for this verdict, including failed ones; 0: none was needed."
    )
    degraded_from: tuple[str, ...] = Field(
        default=(),
        description="Judges that should have answered and didn't, each with the reason, in order.",
    )
    usage: Usage | None = Field(
        default=None,
        description="This claim's share of what the calls for it consumed; null: nothing, or not yet "
        "known when this was published.",
    )
    latency_ms: Annotated[float, Field(ge=0)] = Field(
        description="From the claim being cut to its verdict, in milliseconds."
    )
    policy: PolicyRef
    omitted: tuple[str, ...] = Field(
        default=(), description="Fields left empty because the event would have been too large for a record."
    )

    @property
    def unanswered(self) -> bool:
        """Whether no judge could say anything in time: UNVERIFIED without a finding that leaves it open."""
        return self.verdict is Verdict.UNVERIFIED and LEFT_OPEN.isdisjoint(self.findings)


class VerdictCounts(WireModel):
    """The number of claims with each verdict."""

    supported: int = 0
    partially_supported: int = 0
    unsupported: int = 0
    contradicted: int = 0
    unverified: int = 0


class Timings(WireModel):
    """Milliseconds."""

    total_ms: float = Field(description="From the start of the response to its last verdict.")
    first_claim_ms: float | None = Field(default=None, description="From the start to the first verdict.")
    after_completion_ms: float | None = Field(
        default=None, description="From the end of the text to the decision."
    )
    max_claim_ms: float | None = None


class ChallengerDecision(WireModel):
    """What another policy, the challenger, decides on the same verdicts. It has no effect."""

    policy: PolicyRef
    decision: Decision
    rule: str = Field(description="The rule that made the decision.")
    score: Probability | None = Field(description="By the challenger's formula and weights.")
    complete: bool = Field(
        description="False if the applied policy stopped the judging by a block and the challenger "
        "would have gone on: it decided on what was judged until then."
    )


class Interruption(WireModel):
    """What ended a response's text or its judging early. Policies may differ in what follows from that."""

    rule: str = Field(description="What happened: aborted, timed out, sequence_gap, overloaded, …")
    after: Annotated[int, Field(ge=0)] = Field(
        description="How many segments had been decided by then; the first ones of the text."
    )
    forced: bool = Field(
        default=False, description="Whether the response is blocked for it whatever its policy says."
    )


class ResponseVerdict(OutputEvent):
    """The verdict on the whole response. ``claims`` are in text order."""

    type: Literal["verdict.response"] = "verdict.response"
    score: Probability | None = Field(
        description="How much of the response is supported, by the policy's formula: the "
        "severity-weighted mean of the claims' support or of their verdicts' credits; "
        "null if there was nothing to check."
    )
    counts: VerdictCounts
    decision: Decision
    rule: str = Field(description="The rule that made the decision.")
    mode: Literal["hold", "stream", "observe"]
    complete: bool = Field(
        description="True if the whole text arrived and was judged; false after an early block, an "
        "abort, a time-out or a gap."
    )
    claims: tuple[ClaimVerdict, ...] = ()
    deciding_claim: DecidingClaim = None
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
        description="What the policy's challenger for this response decides; null without one.",
    )
    route: Name | None = Field(default=None, description="As in the response.")
    tenant: Name | None = Field(default=None, description="As in the response.")
    generator_model: Name | None = Field(default=None, description="As in the response.")
    segment_kinds: tuple[SegmentKind, ...] | None = Field(
        default=None,
        description="The kind of each segment that was decided, in text order; null: not known.",
    )
    judged_to_end: bool | None = Field(
        default=None,
        description="Whether all text that arrived was judged. False if a block ended the judging, where "
        "another policy might have gone on; null: not known.",
    )
    ended_early: Interruption | None = Field(
        default=None, description="What ended the text early; null: it is complete, or a block came first."
    )
    judging_stopped: Interruption | None = Field(
        default=None, description="Why no judge was asked from there on; null: judges were asked."
    )
    omitted: tuple[str, ...] = Field(
        default=(), description="Fields left empty because the event would have been too large for a record."
    )


class DeliverySegment(OutputEvent):
    """Text to show. Joined in ``seq`` order, the segments are what the user reads."""

    type: Literal["delivery.segment"] = "delivery.segment"
    seq: Seq
    text: str = Field(description="As released: the original, or the policy's replacement if redacted.")
    segment: int | None = Field(default=None, description="Index of the segment; null in observe mode.")
    span: Span = Field(description="Span of the original in the response's text.")
    decision: Decision
    rule: str | None = None
    claim_ids: tuple[str, ...] = ()


class DeliveryCompleted(OutputEvent):
    """The answer is complete."""

    type: Literal["delivery.completed"] = "delivery.completed"
    seq: Seq
    decision: Decision
    rule: str
    score: Probability | None = None


class DeliveryBlocked(OutputEvent):
    """The answer is blocked: show ``message`` in place of what was shown."""

    type: Literal["delivery.blocked"] = "delivery.blocked"
    seq: Seq
    message: str = Field(description="The policy's message, to show in place of the answer.")
    rule: str
    released_chars: int = Field(description="Code points that had been released before the block.")
    score: Probability | None = None


class FlaggedCase(OutputEvent):
    """The whole case of a flagged, redacted or blocked response, for reviewers."""

    type: Literal["case.flagged"] = "case.flagged"
    question: str
    contexts: tuple[Context, ...]
    answer: str = Field(description="The text as generated, as far as the guard read it.")
    delivered: str = Field(description="The text as released.")
    decision: Decision
    rule: str
    score: Probability | None
    claims: tuple[ClaimVerdict, ...]
    deciding_claim: DecidingClaim = None
    route: str | None = None
    tenant: str | None = None
    generator_model: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    policy: PolicyRef
    mode: Literal["hold", "stream", "observe"] | None = Field(
        default=None,
        description="The policy's mode; of an observed response everything was shown, whatever the decision. "
        "null in cases of earlier releases.",
    )
    omitted: tuple[str, ...] = Field(
        default=(), description="Fields left empty because the event would have been too large for a record."
    )


def claim_that_decided(event: ResponseVerdict | FlaggedCase) -> ClaimVerdict | None:
    """The claim that ``deciding_claim`` names. None: no claim decided, or the claims were left out."""
    if event.deciding_claim is None:
        return None
    return next((claim for claim in event.claims if claim.claim_id == event.deciding_claim), None)


class LabelSource(StrEnum):
    """Who says what a label says."""

    HUMAN = "human"
    """A person: a reviewer, an annotator."""
    DATASET = "dataset"
    """A labelled set, whose labels came with it."""


class Label(Event):
    """What a person says about a claim or a whole response: the truth that verdicts are measured against.

    With ``claim_id`` or ``span`` it is about a claim, or about those words; without either, about the whole
    response, where ``verdict`` is that of its worst claim: SUPPORTED says that everything is.
    """

    type: Literal["label"] = "label"
    response_id: ResponseId
    claim_id: str | None = Field(default=None, description="The claim, as verdicts name it.")
    span: Span | None = Field(
        default=None, description="The words it is about: code points of the response's text."
    )
    verdict: Annotated[Verdict, BeforeValidator(_as_verdict)] = Field(
        description="What is right. UNVERIFIED: the labeller could not say, so it counts for nothing. Words "
        "that say the same, such as right and wrong, are read too."
    )
    severity: Severity | None = Field(
        default=None, description="How much it costs if it is wrong, where it differs from the guard's view."
    )
    category: Name | None = Field(default=None, description="The kind of error, in the labeller's words.")
    correction: str | None = Field(default=None, description="What the text should say.")
    reviewer: Name | None = Field(default=None, description="Who says so.")
    source: LabelSource = LabelSource.HUMAN
    policy: PolicyRef | None = Field(
        default=None, description="The policy under which the reviewer saw the response."
    )
    time: AwareDatetime | None = Field(default=None, description="When it was said, with a time zone.")
    id: str = Field(default="", description="Identifies the label; a later one with the same id replaces it.")


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

_input_adapter: Final[TypeAdapter[Any]] = TypeAdapter(Annotated[InputEvent, Field(discriminator="type")])
_output_adapter: Final[TypeAdapter[Any]] = TypeAdapter(Annotated[AnyOutputEvent, Field(discriminator="type")])


def parse_input(value: bytes | str) -> InputEvent:
    """Read one input event. Raises DecodeError, whose message quotes no text of the event."""
    try:
        event: InputEvent = _input_adapter.validate_json(value)
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


def parse_label(value: bytes | str) -> Label:
    """Read one label. Raises DecodeError, whose message quotes no text of the label."""
    try:
        return Label.model_validate_json(value)
    except ValidationError as error:
        raise decode_error(error) from None


def decode_error(error: ValidationError) -> DecodeError:
    """Describes what is wrong with an event, by its first invalid field; quotes nothing of the event."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    kind = first["type"]
    where = ".".join(str(part) for part in first["loc"]) or "event"
    if kind == "too_long" and first["loc"][-1] == "contexts":
        given = error.errors(include_url=False, include_input=False)[0]["ctx"]["actual_length"]
        many = f"{given:,} are more" if given else "there are more"
        return DecodeError(
            "invalid_event",
            f"contexts: {many} than the {MAX_CONTEXTS:,} that a response may have; send the best ones, or "
            "join short ones",
        )
    # A tuple of the model is a list of JSON, and a model an object.
    of_json = {
        "tuple_type": "Input should be a valid list",
        "model_type": "Input should be an object",
        "extra_forbidden": "There is no such field",
    }
    message = f"{where}: {of_json.get(kind, first['msg'].replace('Tuple', 'List', 1))}"
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
