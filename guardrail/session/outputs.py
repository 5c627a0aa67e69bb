"""What a session asks its surroundings to do, its effects; and the output events of one response, with their
deterministic ids, and the segments waiting for release.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from guardrail.claims.citations import Citation
from guardrail.claims.model import Claim, Segment
from guardrail.decisions import claims_decided_by
from guardrail.event_ids import EventIds
from guardrail.events import (
    MAX_CITED_CONTEXTS,
    ChallengerDecision,
    CitationBacking,
    ClaimCitation,
    ClaimVerdict,
    Context,
    Decision,
    DeliveryBlocked,
    DeliveryCompleted,
    DeliverySegment,
    Evidence,
    FlaggedCase,
    Interruption,
    OutputEvent,
    ResponseHead,
    ResponseVerdict,
    SegmentKind,
    Span,
    Timings,
    Usage,
    Verdict,
)
from guardrail.evidence.tokens import STOP_TERMS, terms_of
from guardrail.policy import Policy
from guardrail.scoring import count_verdicts
from guardrail.verdicts import SAID, Judgement


class Channel(StrEnum):
    """Where an output event goes."""

    DELIVERIES = "deliveries"
    VERDICTS = "verdicts"
    FLAGGED = "flagged"


class AskJudge(NamedTuple):
    """Effect: ask the judge about these claims, by id."""

    claims: tuple[tuple[str, Claim], ...]


@dataclass(frozen=True, slots=True)
class Cancel:
    """Effect: no more verdicts are wanted."""


@dataclass(frozen=True, slots=True)
class CutOn:
    """Effect: call the session's ``cut_on`` to cut more of the text, after other tasks have had their
    turn.
    """


class Explain(NamedTuple):
    """Effect: have the reason for the verdict on this claim put into words, and tell ``explained``."""

    claim_id: str
    explain: Callable[[], Awaitable[str]]


class Emit(NamedTuple):
    """Effect: publish this event. ``since`` is when the text that it releases was cut, if it releases any."""

    channel: Channel
    event: OutputEvent
    since: float | None = None


Effect = AskJudge | Cancel | CutOn | Explain | Emit


# ------------------------------------------------------------------------------------ the output events

_MOST_WORDS: Final = 0.5
_MOST_READ: Final = 50_000  # characters of a context
NOT_BACKED: Final = (Verdict.UNSUPPORTED, Verdict.CONTRADICTED)
_DELIVERIES: Final = Channel.DELIVERIES
Ready = tuple[Segment, Decision, str | None, tuple[str, ...], float | None]
"""A resolved segment that is held back: with its decision, the rule to show, the ids of its claims, and when
it was cut."""


class Deliveries:
    """Numbers and makes the delivery events of one response."""

    __slots__ = ("_id", "_make", "_replacement", "ready", "released_end", "replaced", "seq")

    def __init__(self, make: OutputEvents, replacement: str) -> None:
        self._make = make
        self._id = make.make_id("delivery")
        self._replacement = replacement
        self.seq = 0  # of the next event
        self.released_end = 0  # everything before it has been released
        self.replaced: list[tuple[int, int]] = []  # spans of the response that were replaced for readers
        self.ready: list[Ready] = []  # in hold mode, until the last verdict

    def release(
        self,
        segment: Segment,
        decision: Decision,
        rule: str | None,
        claim_ids: tuple[str, ...],
        since: float | None = None,
    ) -> Emit:
        """Release a segment that was cut at ``since``, redacted if that was decided."""
        text = segment.text
        if decision is Decision.REDACT:
            text = redacted(segment, self._replacement)
            self.replaced.append((segment.start + segment.body[0], segment.start + segment.body[1]))
        span = (segment.start, segment.end)
        return self.deliver(text, span, segment.index, decision, rule, claim_ids, since)

    def deliver(
        self,
        text: str,
        span: Span,
        segment: int | None,
        decision: Decision,
        rule: str | None,
        claim_ids: tuple[str, ...],
        since: float | None = None,
    ) -> Emit:
        """Release ``text`` for ``span`` of the response."""
        event = DeliverySegment(
            id=f"{self._id}-{self.seq}-{span[0]}",
            response_id=self._make.response_id,
            seq=self.seq,
            text=text,
            segment=segment,
            span=span,
            decision=decision,
            rule=rule,
            claim_ids=claim_ids,
        )
        self.seq += 1
        self.released_end = span[1]
        return Emit(_DELIVERIES, event, since)

    def completed(self, decision: Decision, rule: str, score: float | None) -> Emit:
        """Everything is released."""
        event = DeliveryCompleted(
            id=self._make.make_id("delivery.completed"),
            response_id=self._make.response_id,
            seq=self.seq,
            decision=decision,
            rule=rule,
            score=score,
        )
        return Emit(_DELIVERIES, event)

    def blocked(self, rule: str, message: str, score: float | None) -> Emit:
        """Nothing more is released."""
        event = DeliveryBlocked(
            id=self._make.make_id("delivery.blocked"),
            response_id=self._make.response_id,
            seq=self.seq,
            message=message,
            rule=rule,
            released_chars=self.released_end,
            score=score,
        )
        return Emit(_DELIVERIES, event)

    def shown(self, answer: str) -> str:
        """What readers have seen of ``answer``: rebuilt rather than stored, because few responses need it."""
        pieces: list[str] = []
        at = 0
        for start, stop in self.replaced:
            pieces += (answer[at:start], self._replacement)
            at = stop
        return "".join(pieces) + answer[at : self.released_end]


def _published(citation: Citation, claim_start: int) -> ClaimCitation:
    start, end = citation.span
    return ClaimCitation(
        span=(claim_start + start, claim_start + end),
        text=citation.text,
        contexts=citation.context_ids[:MAX_CITED_CONTEXTS],
    )


class OutputEvents:
    """Makes the events of one response under one policy.

    Their ids are those of ``EventIds``. Events that are numerous reuse the digest of what they belong to and
    append the rest in plain text.
    """

    __slots__ = ("_ids", "_policy", "_ref", "response_id")

    def __init__(self, response_id: str, policy: Policy) -> None:
        self.response_id = response_id
        self._policy = policy
        self._ref = policy.ref
        self._ids = EventIds(response_id, policy.name, policy.version)

    def make_id(self, about: str) -> str:
        """24 hex digits, the same for the same response, policy and ``about``."""
        return self._ids.make(about)

    def claim_id(self, claim: Claim) -> str:
        return self._ids.claim(claim.index, (claim.start, claim.end), claim.text)

    def claim_verdict(
        self,
        claim_id: str,
        claim: Claim,
        judgement: Judgement,
        latency_ms: float,
        contexts: Sequence[Context],
    ) -> ClaimVerdict:
        """The verdict on a claim of a response with these contexts."""
        return ClaimVerdict(
            id=f"{claim_id}-verdict",
            response_id=self.response_id,
            claim_id=claim_id,
            index=claim.index,
            text=claim.text,
            span=(claim.start, claim.end),
            segment=claim.segment,
            severity=claim.severity,
            severity_reasons=claim.severity_reasons,
            citations=tuple(_published(citation, claim.start) for citation in claim.citations),
            citation_backing=backing(judgement, claim.citations, contexts, claim.text),
            unsupported_spans=tuple(
                (claim.start + start, claim.start + end) for start, end in judgement.unsupported_spans
            ),
            **{name: getattr(judgement, name) for name in SAID},
            latency_ms=round(max(0.0, latency_ms), 3),
            policy=self._ref,
        )

    def response_verdict(
        self,
        claims: Sequence[ClaimVerdict],
        score: float | None,
        decision: Decision,
        rule: str,
        *,
        complete: bool,
        usage: Usage,
        timings: Timings,
        challenger: ChallengerDecision | None = None,
        head: ResponseHead,
        kinds: Sequence[SegmentKind | None],
        judged_to_end: bool,
        ended_early: Interruption | None = None,
        judging_stopped: Interruption | None = None,
    ) -> ResponseVerdict:
        """``kinds``: of the segments that were decided; None of one that another process decided."""
        known = tuple(kind for kind in kinds if kind is not None)
        about = claims_decided_by(decision, rule, claims, self._policy)
        return ResponseVerdict(
            id=self.make_id("verdict.response"),
            response_id=self.response_id,
            score=score,
            counts=count_verdicts(claim.verdict for claim in claims),
            decision=decision,
            rule=rule,
            mode=self._policy.mode,
            complete=complete,
            claims=tuple(claims),
            deciding_claim=about[0].claim_id if about else None,
            hallucinated_claims=tuple(claim.text for claim in claims if claim.verdict in NOT_BACKED),
            summary=_summary(claims, score, decision, rule, complete),
            conflicting_contexts=tuple(sorted({c for claim in claims for c in claim.conflicting_contexts})),
            usage=usage,
            timings=timings,
            policy=self._ref,
            challenger=challenger,
            route=head.route,
            tenant=head.tenant,
            generator_model=head.generator_model,
            segment_kinds=known if len(known) == len(kinds) else None,
            judged_to_end=judged_to_end,
            ended_early=ended_early,
            judging_stopped=judging_stopped,
        )

    def flagged_case(
        self, head: ResponseHead, answer: str, delivered: str, verdict: ResponseVerdict
    ) -> FlaggedCase:
        return FlaggedCase(
            id=self.make_id("case.flagged"),
            response_id=self.response_id,
            question=head.question,
            contexts=head.contexts,
            answer=answer,
            delivered=delivered,
            decision=verdict.decision,
            rule=verdict.rule,
            score=verdict.score,
            claims=verdict.claims,
            deciding_claim=verdict.deciding_claim,
            route=head.route,
            tenant=head.tenant,
            generator_model=head.generator_model,
            metadata=head.metadata,
            policy=verdict.policy,
            mode=verdict.mode,
        )


def redacted(segment: Segment, replacement: str) -> str:
    """The segment's text with its body replaced; white space and list markers stay."""
    start, end = segment.body
    return segment.text[:start] + replacement + segment.text[end:]


def timings(
    started_at: float,
    first_verdict_at: float | None,
    text_ended_at: float | None,
    now: float,
    claims: Iterable[ClaimVerdict],
) -> Timings:
    """The timings of a response that is decided ``now``; readings of one clock, in seconds."""

    def ms(since: float, until: float) -> float:
        return round(max(0.0, until - since) * 1000, 3)

    return Timings(
        total_ms=ms(started_at, now),
        first_claim_ms=None if first_verdict_at is None else ms(started_at, first_verdict_at),
        after_completion_ms=None if text_ended_at is None else ms(text_ended_at, now),
        max_claim_ms=max((claim.latency_ms for claim in claims), default=None),
    )


def _summary(
    claims: Sequence[ClaimVerdict], score: float | None, decision: Decision, rule: str, complete: bool
) -> str:
    """One sentence for people; contains only numbers and our own names, never the response's text."""
    tail = f"; decision: {decision} ({rule})" + ("" if complete else "; not judged to its end")
    if not claims:
        return f"Nothing to check{tail}."
    by_verdict: dict[Verdict, int] = {}
    for claim in claims:
        by_verdict[claim.verdict] = by_verdict.get(claim.verdict, 0) + 1
    counts = ", ".join(
        f"{by_verdict[v]} {v.value.lower().replace('_', ' ')}" for v in Verdict if v in by_verdict
    )
    scored = "no score" if score is None else f"score {score:.2f}"
    return f"{len(claims)} claim{'s' if len(claims) != 1 else ''}: {counts}; {scored}{tail}."


# ------------------------------------------------------------------- what citations are worth


def backing(
    judgement: Judgement, citations: Sequence[Citation], contexts: Sequence[Context], text: str
) -> CitationBacking | None:
    """What the citations of a claim that reads ``text`` are worth by the judgement on it; None where there
    are none.

    A quote backs for every context that it stands in: neighbouring chunks of a document overlap. Of several
    marks with words between them each has to be backed, and the worst counts. A footnote that was not
    defined when the claim was cut is only taken for the number of a context: where that doesn't back the
    claim, nothing is known.
    """
    if not citations:
        return None
    if judgement.verdict in NOT_BACKED:
        return CitationBacking.NONE
    if judgement.verdict is Verdict.UNVERIFIED or not judgement.evidence:
        return CitationBacking.UNKNOWN
    quotes = judgement.evidence
    groups = list(_groups(citations, text))
    unbacked = [group for group in groups if not _backed(group, quotes, contexts)]
    if not unbacked:
        return CitationBacking.CITED
    if len(unbacked) < len(groups):  # of a sentence with several marks
        unbacked = [group for group in unbacked if not _speaks_of(group, contexts)]
        return CitationBacking.OTHER if unbacked else CitationBacking.CITED
    guessed = all(mark.text.startswith("[^") for group in unbacked for mark in group.marks)
    return CitationBacking.UNKNOWN if guessed else CitationBacking.OTHER


class _Group(NamedTuple):
    """Marks that stand together, and what they stand behind."""

    marks: list[Citation]
    said: str


def _groups(citations: Sequence[Citation], text: str) -> Iterator[_Group]:
    """The marks of a claim, those without a word between them together."""
    marks: list[Citation] = []
    said, at = "", 0
    for citation in citations:
        between = text[at : citation.span[0]]
        if marks and any(map(str.isalnum, between)):
            yield _Group(marks, said)
            marks = []
        said = said if marks else between
        marks.append(citation)
        at = citation.span[1]
    if marks:
        yield _Group(marks, said + text[at:] if not any(map(str.isalnum, said)) else said)


def _backed(group: _Group, quotes: Sequence[Evidence], contexts: Sequence[Context]) -> bool:
    """Whether a context that the marks name has one of the quotes."""
    cited = _cited(group)
    if any(quote.context_id in cited for quote in quotes):
        return True
    texts = [context.text for context in contexts if context.id in cited]
    return any(quote.quote in text for text in texts for quote in quotes)


def _speaks_of(group: _Group, contexts: Sequence[Context]) -> bool:
    """Whether a context that the marks name has most words of what they stand behind: of a sentence with
    several marks not everything is quoted."""
    said = _said(group.said)
    cited = _cited(group)
    found = (said & _said(context.text[:_MOST_READ]) for context in contexts if context.id in cited)
    return any(len(shared) >= _MOST_WORDS * len(said) for shared in found)


def _cited(group: _Group) -> frozenset[str]:
    ids = dict.fromkeys(by for mark in group.marks for by in mark.context_ids)
    return frozenset(list(ids)[:MAX_CITED_CONTEXTS])


def _said(text: str) -> frozenset[int]:
    return terms_of(text) - STOP_TERMS
