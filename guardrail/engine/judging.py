"""One call of a judge for a session's claims, whatever the judge does, and the time when put-off claims go
again.

Judges read claims as prose. ``take_in`` maps their results back to the raw text, and adds what judges can't
see or must not be trusted to see: text that looks different from what it says, links that are in no source,
citations of contexts that don't exist.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, cast

from guardrail.calls import FairSlots
from guardrail.claims.links import any_absent
from guardrail.claims.model import Claim
from guardrail.engine.runs import Run
from guardrail.errors import JudgeError, JudgeRefused
from guardrail.events import Finding, Usage, Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.base import Judge, JudgeRequest, Meter
from guardrail.judges.recorder import recorder
from guardrail.judges.streams import checked, closing
from guardrail.limits import Limits
from guardrail.log_events import EventLog
from guardrail.session.machine import Session
from guardrail.session.outputs import Explain
from guardrail.verdicts import Judgement, spans_within, total, unverified

# Characters to scan, once per link, that take less time than handing them to a thread: 0.1 ms.
_AT_ONCE: Final = 100_000
_ABSENT_LINK: Final = "A link or address in it does not appear in the documents."
_MISMATCH: Final = "The claim displays otherwise than it reads."


async def claims_with_absent_links(claims: Mapping[str, Claim], evidence: EvidenceIndex) -> frozenset[str]:
    """The ids of claims with a link or address that is in no context."""
    linking = {claim_id: claim.prose.links for claim_id, claim in claims.items() if claim.prose.links}
    if not linking:
        return frozenset()
    contexts = evidence.contexts

    def absent() -> frozenset[str]:
        return frozenset(claim_id for claim_id, links in linking.items() if any_absent(links, contexts))

    work = sum(len(context.text) for context in contexts) * sum(map(len, linking.values()))
    return absent() if work <= _AT_ONCE else await asyncio.to_thread(absent)


def take_in(judgement: Judgement, claim: Claim, absent_links: Collection[str] = ()) -> Judgement:
    """The judgement with spans in the raw claim, and with the findings that don't depend on a judge.

    A claim that looks different from what it says is never SUPPORTED. ``absent_links`` are the ids of claims
    with a link that is in no source. Such links don't change the verdict, and neither do citations that name
    no context.
    """
    findings = list(judgement.findings)
    prose = claim.prose
    if prose.deceptive:
        findings.append(Finding.DISPLAY_MISMATCH)
        if judgement.verdict is Verdict.SUPPORTED:
            judgement = replace(
                judgement,
                verdict=Verdict.UNSUPPORTED,
                confidence=1.0,
                support=0.0,
                reasoning=_MISMATCH,
                unsupported_spans=(),
            )
    if judgement.claim_id in absent_links:
        findings.append(Finding.LINK_ABSENT)
        judgement = replace(judgement, reasoning=f"{judgement.reasoning or ''} {_ABSENT_LINK}".strip())
    if any(not citation.context_ids for citation in claim.citations):
        findings.append(Finding.CITATION_ABSENT)
    if len(findings) > len(judgement.findings):
        judgement = replace(judgement, findings=tuple(dict.fromkeys(findings)))
    if judgement.unsupported_spans and prose.text != claim.text:
        raw = [piece for span in judgement.unsupported_spans for piece in prose.raw_spans(claim.text, *span)]
        judgement = replace(judgement, unsupported_spans=spans_within(claim.text, raw))
    return judgement


class Gatherer:
    """An engine's rules for gathering claims, and its calls of judges, for all its responses."""

    def __init__(
        self,
        limits: Limits,
        clock: Callable[[], float],
        *,
        judged: Callable[[Run, Sequence[Judgement]], None],
        proceed: Callable[[Run], None],
        wait: Callable[[Run], None],
    ) -> None:
        """``judged`` takes judgements, which are of claims in flight. ``proceed`` is called when a call can't
        be joined any more after the text of its response has ended; ``wait`` when a call leaves claims that
        were put off.
        """
        self.clock = clock
        self.slots = FairSlots(lambda: limits.max_concurrent_judgements)
        self.proceed = proceed
        self.slowness = 1.0
        """How many times as long as it should everything takes here: claims wait so many times as long for
        others, or a busy guard would make more calls for an answer than an idle one."""
        self.not_asked = 0
        """Claims that wait for a call to take them, of each response those of one call."""
        self._judged = judged
        self._wait = wait
        self._most = limits.max_claims_per_call

    def take(self, run: Run, asked: Iterable[tuple[str, Claim]]) -> None:
        """The judge is to be asked about these claims, but for those that say what others do."""
        run.waiting.extend(run.equal.first(asked))
        self.not_asked += run.newly_waiting(self._most)

    def may_begin(self, run: Run) -> bool:
        """Whether another call may begin, and has claims to take: one at a time while the text is arriving,
        two at its end, the second only if claims can't go with the first any more.
        """
        if run.session.reading:
            return not run.calls and self.to_judge(run)
        return len(run.calls) < _AT_THE_END and not run.sifting and self.to_judge(run)

    async def call(self, run: Run) -> None:
        """Send the claims of one response to the judge; claims that arrive meanwhile go into the next call.

        While its text is arriving, a response has one call at a time: its claims go together and share their
        contexts. At the end of the text the rest goes at once, in parallel with a call under way, because now
        somebody is waiting for it. Different responses are judged in parallel. Claims that the judge puts off
        go with the next ones, when they have waited long enough, or at the end of the text.
        """
        try:
            while self.to_judge(run) and not run.session.decided:
                async with self.slots.slot(run.lane.key):
                    batch, known = run.next_batch(self._most)
                    self.not_asked += run.newly_waiting(self._most)
                    if not batch:
                        continue
                    gathering = self.gathering(run, batch, known)
                    try:
                        found = await ask(run, batch, self.clock, partial(self._on_judgement, run), gathering)
                    finally:
                        if gathering is not None:
                            gathering.close()
                if run.dropped:
                    return  # a judge that swallows its cancellation
                if gathering is not None:
                    run.deferred.update(
                        (each.claim_id, (batch[each.claim_id], each))
                        for each in gathering.later.values()
                        if each.claim_id in batch and each.claim_id in run.session.pending
                    )
                self._judged(run, found)
        finally:
            # At once: the next claim may arrive before the loop has reported that this task is done.
            run.calls.discard(cast("asyncio.Task[None]", asyncio.current_task()))
            if run.deferred and not run.dropped:
                self._wait(run)

    def _on_judgement(self, run: Run, judgement: Judgement) -> None:
        """A verdict arrived before its call ended."""
        if not run.dropped:
            self._judged(run, [judgement])

    def due(self, run: Run) -> float:
        """When put-off claims must go to the judge; infinity during a call, which checks for them itself."""
        if not run.deferred or run.calls:
            return float("inf")
        return run.session.can_wait_until(run.deferred, run.max_wait_s * self.slowness)

    def to_judge(self, run: Run) -> bool:
        """Whether there is anything to send to the judge now."""
        if run.waiting or not run.deferred or not run.session.reading:
            return bool(run.waiting or run.deferred)
        return run.session.can_wait_until(run.deferred, run.max_wait_s * self.slowness) <= self.clock()

    def gathering(
        self, run: Run, batch: Mapping[str, Claim], known: Mapping[str, Judgement]
    ) -> RunGathering | None:
        """What lets the judge put off claims of ``batch``; None for a judge that never does."""
        if not run.max_wait_s:
            return None
        session = run.session
        # A call that is full can't wait for more claims, nor can one at the end of the text.
        over = len(batch) >= self._most or not session.reading
        until = float("-inf") if over else session.can_wait_until(batch, run.max_wait_s * self.slowness)
        return RunGathering(self, run, known, until)


class RunGathering:
    """The ``Gathering`` of one call: claims may be put off until a given time, and never at the end of the
    text.
    """

    def __init__(self, gatherer: Gatherer, run: Run, known: Mapping[str, Judgement], until: float) -> None:
        self.known = known
        self.later: dict[str, Judgement] = {}
        """What was put off, with what is known of it."""
        self._gatherer = gatherer
        self._run = run
        self._until = until
        run.sifting.add(self)

    def may_defer(self) -> bool:
        """Whether claims could be put off now."""
        return self._may_put_off(urgent=False)

    def defer(self, judgements: Sequence[Judgement], *, urgent: bool = False) -> bool:
        """Keep the claims for the next request, or let others begin because this one goes on."""
        if self._may_put_off(urgent=urgent):
            self.later = {judgement.claim_id: judgement for judgement in judgements}
            return True
        self.close()
        if not self._run.session.reading and not self._run.dropped:
            self._gatherer.proceed(self._run)
        return False

    def close(self) -> None:
        """The call can't be joined any more."""
        self._run.sifting.discard(self)

    def _may_put_off(self, *, urgent: bool) -> bool:
        if self._gatherer.clock() >= self._until:
            return False
        return bool(self._run.waiting) or (self._run.session.reading and not urgent)


_AT_THE_END: Final = 2

LAST_HELD_S: Final = 0.25
"""What a reply takes to end after its last verdict: a few characters, and the count of its tokens."""
DEADLINE_MARGIN_S: Final = 0.05
_STOOD_STILL_S: Final = 0.1
"""By so much less a judge saw of a claim's time than there was, if the clock stood still meanwhile."""

# The library logs by the standard means, which are silent about warnings' details until configured; never
# with a traceback of an unknown judge's error, whose message may hold texts.
_log = EventLog(__name__)


async def ask(
    run: Run,
    batch: dict[str, Claim],
    clock: Callable[[], float],
    on_judgement: Callable[[Judgement], None],
    gathering: RunGathering | None = None,
) -> list[Judgement]:
    """Ask the judge of a response about the claims of ``batch``, which are awaited; returns the remaining
    judgements.

    ``on_judgement`` is called from the event loop with judgements as they come. Those that come together with
    the end of the stream are in the result instead; the last one waits a moment for that end, so that the
    call's usage is usually known before the response is decided. The result also contains an UNVERIFIED
    judgement for each claim that the judge has neither judged in time nor put off. The session's usage
    includes what the call consumes as soon as the judge records it. ``clock`` is the session's: where it
    stood still during a call, the judge is asked again for what it has not judged by then, as judges have
    clocks of their own. Raises only cancellation.
    """
    judge, session = run.judge, run.session
    evidence = run.evidence = run.evidence or EvidenceIndex(session.head.contexts)
    meter = _SessionMeter(session)
    now, monotonic = clock(), time.monotonic()
    due, since = session.judging_started(batch)
    if (record := recorder()) is not None:
        record.add("statements", tuple(batch), time.monotonic(), reply=_statements(batch), timed=False)
    # Among gathered claims, the first expires long before the last.
    deadline = max(due.values()) if gathering is None else min(due.values())
    open_ = _OpenClaims(batch, {claim_id: at - now for claim_id, at in due.items()}, on_judgement)
    request = JudgeRequest(
        response_id=session.head.response_id,
        question=run.question,
        claims=batch,
        evidence=evidence,
        deadline=monotonic + deadline - now,
        since=monotonic + since - now,
        generator_model=session.head.generator_model,
        tenant=session.head.tenant,
        spent=session.usage,
        budget=session.policy.budget,
        meter=meter,
        gathering=gathering,
    )
    left_s = deadline - now
    try:
        while True:
            why_open = await _asked(judge, request, open_, clock, deadline, left_s)
            later = {} if gathering is None else gathering.later
            left = {claim_id: batch[claim_id] for claim_id in open_.left if claim_id not in later}
            if not left:
                break
            left_s, monotonic = deadline - clock(), time.monotonic()
            stood_still = left_s - (request.deadline - monotonic) >= _STOOD_STILL_S
            if left_s <= 0 or why_open.refused or not stood_still:
                break
            request = replace(
                request, claims=left, deadline=monotonic + left_s, since=monotonic, gathering=None
            )
    finally:
        open_.close()
    for claim_id in left:
        open_.take(unverified(claim_id, judge.name, **why_open._asdict()))
    return [open_.untold.pop(claim_id) for claim_id in batch if claim_id in open_.untold]


class _WhyOpen(NamedTuple):
    """Why claims that are still open have no verdict."""

    reason: str
    attempts: int = 1
    refused: bool = False


async def _asked(
    judge: Judge,
    request: JudgeRequest,
    open_: _OpenClaims,
    clock: Callable[[], float],
    deadline: float,
    left_s: float,
) -> _WhyOpen:
    """Pass on what the judge says until ``deadline``, which is ``left_s`` away."""
    try:
        async with _until(clock, deadline, left_s):
            open_.absent_links = await claims_with_absent_links(request.claims, request.evidence)
            async with closing(checked(judge, request)) as judgements:
                async for judgement in judgements:
                    open_.record(judgement)
    except TimeoutError:
        return _WhyOpen("no verdict in time")
    except JudgeError as error:
        why = f"{type(error).__name__}: {error}"
        _log.warning("judge.failed", judge=judge.name, error=why)
        return _WhyOpen(why, request.meter.attempts, isinstance(error, JudgeRefused))
    except Exception as error:  # noqa: BLE001 - a faulty judge must not take others down
        _log.error("judge.faulty", judge=judge.name, error=type(error).__name__)
        return _WhyOpen(f"{type(error).__name__} in the judge")
    return _WhyOpen("the judge's reply has no verdict for this claim")


@asynccontextmanager
async def _until(clock: Callable[[], float], deadline: float, left_s: float) -> AsyncIterator[None]:
    """Like ``asyncio.timeout``, by a clock that may stand still; ``left_s`` by its latest reading."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as scope:
        timer: asyncio.TimerHandle | None = None

        def look(left_s: float) -> None:
            nonlocal timer
            if left_s > 0:
                again = lambda: look(deadline - clock())  # noqa: E731, F821 - until it is deleted, below
                timer = loop.call_later(left_s, again)
            else:
                scope.reschedule(loop.time())

        look(left_s)
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()
            del look  # a cycle, and with it the call, would wait for a collection


def _statements(batch: Mapping[str, Claim]) -> str:
    """The claims as judges read them, one a line, each behind what leads in to it."""
    texts = (
        f"({claim.lead_in}) {claim.prose.text}" if claim.lead_in else claim.prose.text
        for claim in batch.values()
    )
    return "\n".join(" ".join(text.split()) for text in texts)


class _SessionMeter(Meter):
    """Also adds what one call consumes to the usage of its session; others may be under way."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session

    def add(self, usage: Usage, model: str = "") -> None:
        super().add(usage, model)
        self._session.usage = total(self._session.usage, usage)


async def reason_in_words(run: Run, effect: Explain) -> str:
    """A reason that comes after its verdict; empty if there is none. Raises only cancellation."""
    try:
        return (await effect.explain()).encode("utf-8", "replace").decode()
    except JudgeError as error:
        if not run.reason_failed:  # the others will have failed likewise
            run.reason_failed = True
            why = f"no reason in words: {type(error).__name__}: {error}"
            _log.warning("judge.failed", judge=run.judge.name, error=why)
    except Exception as error:  # noqa: BLE001 - of a judge that we don't know
        _log.error("judge.faulty", judge=run.judge.name, error=type(error).__name__)
    return ""


class _OpenClaims:
    """The claims of a call without a verdict, and the verdicts that are not reported yet.

    These are reported in the next turn of the event loop, if the call isn't over by then: judgements that a
    judge gives all at once are reported in the order of the claims. The verdict on the last claim is held for
    ``LAST_HELD_S``, but never until its claim expires: a stream that doesn't end must not lose a known
    verdict.
    """

    def __init__(
        self, claims: dict[str, Claim], left_s: dict[str, float], on_judgement: Callable[[Judgement], None]
    ) -> None:
        """``left_s``: the seconds until each claim of the call expires."""
        self._claims = claims
        self._on_judgement = on_judgement
        self._loop = asyncio.get_running_loop()
        self._began_at = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self.left = left_s
        self.untold: dict[str, Judgement] = {}
        self.absent_links: frozenset[str] = frozenset()

    def take(self, judgement: Judgement) -> float:
        """Record a judgement; returns the event loop's time at which its claim expires."""
        claim_id = judgement.claim_id
        self.untold[claim_id] = take_in(judgement, self._claims[claim_id], self.absent_links)
        return self._began_at + self.left.pop(claim_id)

    def record(self, judgement: Judgement) -> None:
        """Record a judgement and have it reported."""
        given_up_at = self.take(judgement)
        if self.left:
            self._loop.call_soon(self._tell, judgement.claim_id)
        else:
            at = min(self._loop.time() + LAST_HELD_S, given_up_at - DEADLINE_MARGIN_S)
            self._timer = self._loop.call_at(at, self._tell, judgement.claim_id)

    def close(self) -> None:
        """The call is over: its result contains whatever is unreported."""
        if self._timer is not None:
            self._timer.cancel()

    def _tell(self, claim_id: str) -> None:
        judgement = self.untold.pop(claim_id, None)
        if judgement is not None:
            self._on_judgement(judgement)
