"""All metrics of the guardrail, with their units, in Prometheus format.

The process counts the metrics in ``REGISTRY``; ``guardrail run`` serves them under ``/metrics``. Times are in
seconds, texts in characters. No label contains the id of a response, a tenant or a text. Labels whose values
come from outside (names of judges, rules, reasons) take at most ``MOST_VALUES`` different values; further
ones are counted as ``(other)``.

Gauges are read when they are scraped. An unknown value is absent, never 0. Counters whose labels are known
begin with 0: Prometheus sees no increase in a series that is born with its first count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from guardrail.events import (
    ClaimVerdict,
    DeliveryBlocked,
    DeliverySegment,
    OutputEvent,
    ResponseVerdict,
    Usage,
    Verdict,
)
from guardrail.policy import ON_UNVERIFIED, FailPolicy

if TYPE_CHECKING:
    from guardrail.engine.engine import Engine

__all__ = ["REGISTRY", "GuardState", "PartitionState", "count_output", "serve_state"]

REGISTRY: Final = CollectorRegistry(auto_describe=True)
MOST_VALUES: Final = 100
OTHER: Final = "(other)"

ProcessCollector(registry=REGISTRY)  # on Linux: memory, processor time and descriptors, as process_…

_FAST: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SCORES: Final = tuple(tenth / 10 for tenth in range(1, 11))


def _counter(name: str, text: str, *labels: str) -> Counter:
    return Counter(name, text, labels, namespace="guardrail", registry=REGISTRY)


def _counter_of(name: str, text: str, label: str, *values: str) -> Counter:
    """A counter with one label, whose values begin with 0."""
    counter = _counter(name, text, label)
    for value in values:
        counter.labels(value)
    return counter


def _gauge(name: str, text: str, *labels: str) -> Gauge:
    return Gauge(name, text, labels, namespace="guardrail", registry=REGISTRY)


def _histogram(name: str, text: str, *labels: str, buckets: Sequence[float] = _FAST) -> Histogram:
    return Histogram(name, text, labels, namespace="guardrail", registry=REGISTRY, buckets=buckets)


# What was decided.
RESPONSES: Final = _counter(
    "responses",
    "Responses decided, observed ones too. complete: true if judged to the end.",
    "policy",
    "decision",
    "complete",
)
DECISIONS: Final = _counter(
    "decisions", "Responses by the rule that decided them.", "policy", "rule", "decision"
)
STREAMS: Final = _counter(
    "streams",
    "Responses by mode; enforced: false where text leaves before it is judged (observe).",
    "mode",
    "enforced",
)
SEGMENTS: Final = _counter("segments", "Segments released, by decision.", "decision")
BLOCKS: Final = _counter_of(
    "blocks", "Responses blocked, by whether text had been shown before.", "shown", "true", "false"
)
CLAIMS: Final = _counter("claims", "Verdicts on claims.", "verdict", "severity", "judge")
FINDINGS: Final = _counter("findings", "Exact findings on claims.", "finding")
UNVERIFIED: Final = _counter_of(
    "unverified",
    "Claims that could not be checked, by reason.",
    "reason",
    "no verdict in time",
    "JudgeUnavailable",
    "overloaded",
)
DEGRADED: Final = _counter(
    "degraded", "Verdicts from a fallback instead of the intended judge; which, and why.", "reason"
)
CHALLENGERS: Final = _counter(
    "challenger",
    "Responses by what the policy (champion) and its challenger decide on the same verdicts.",
    "policy",
    "challenger",
    "champion_decision",
    "challenger_decision",
)
SCORES: Final = _histogram("score", "Scores of responses, 0 to 1.", "policy", buckets=_SCORES)

HTTP_REQUESTS: Final = _counter(
    "http_requests", "Requests to the gateway (guardrail serve).", "endpoint", "status"
)

PUBLISHED: Final = _counter_of(
    "published_events",
    "Events of the gateway for Kafka (serve.publish). outcome: written, or lost for want of room.",
    "outcome",
    "written",
    "lost",
)

# How long it took.
VERDICT_SECONDS: Final = _histogram(
    "verdict_seconds", "From a claim being cut to its verdict, in seconds.", "judge"
)
RELEASE_SECONDS: Final = _histogram("release_seconds", "From a segment being cut to its release, in seconds.")
ADDED_SECONDS: Final = _histogram(
    "after_completion_seconds", "From the end of a response's text to its decision, in seconds."
)
WRITTEN_TO_DECIDED_SECONDS: Final = _histogram(
    "written_to_decided_seconds",
    "From the end of a response being written, by its record's timestamp, to its decision, in seconds.",
    buckets=(*_FAST, 60, 120, 300),
)
COMMIT_SECONDS: Final = _histogram(
    "commit_seconds", "From a step being taken to its commit by the broker, in seconds."
)

# Judges over the network.
JUDGE_CALL_SECONDS: Final = _histogram(
    "judge_call_seconds",
    "Calls to a model, from sending to their end, in seconds. outcome: ok or failed.",
    "model",
    "outcome",
)
JUDGE_TOKENS: Final = _counter(
    "judge_tokens",
    "Tokens of the calls. kind: input (cached ones too), cached_input, output.",
    "model",
    "kind",
)
LLM_CONTEXTS: Final = _counter(
    "llm_contexts",
    "What the LLM judge's questions carried of the contexts. sent: whole, passages, more (a second look).",
    "sent",
)
JUDGE_COST: Final = _counter("judge_cost_usd", "Cost of the calls in US dollars, by judge.prices.", "model")
MODEL_CHANGES: Final = _counter(
    "judge_model_changes",
    "Times that a decision model's server named another model than before in its reply.",
    "model",
)
ORDER_DIFFERENCE: Final = _gauge(
    "judge_order_difference",
    "How much a decision model's probability of support still depends on the order of the options (0 to 1), "
    "after its preference for a place is taken out.",
    "model",
)
CIRCUIT_STATE: Final = _gauge(
    "judge_circuit_state", "Circuit breaker of a model: 0 closed, 1 half open, 2 open.", "model"
)

# The pipe.
RECORDS: Final = _counter("input_records", "Records read.")
DEAD_LETTERS: Final = _counter("dead_letters", "Records that could not be used, by reason.", "reason")
OVERSIZED: Final = _counter("oversized_events", "Events of which something was left out to fit a record.")
REBALANCES: Final = _counter_of(
    "rebalances", "Changes of the assignment. event: assigned or revoked.", "event", "assigned", "revoked"
)
FAILED_STEPS: Final = _counter("failed_steps", "Transactions that failed and were taken again.")
FAILED_TAKEOVERS: Final = _counter("failed_takeovers", "Attempts to take partitions over that failed.")
RESTORED: Final = _counter("restored_sessions", "Responses in flight that were taken up from another guard.")
OVERLOADS: Final = _counter("overloads", "Times that new responses were turned away for want of room.")

# Flagged cases.
CASES: Final = _counter(
    "cases",
    "Records of flagged cases. outcome: stored, known (stored before), proof (of doctor), unreadable.",
    "outcome",
)
WEBHOOK_POSTS: Final = _counter(
    "webhook_posts", "Posts of cases. outcome: sent, failed (tried again later), given_up.", "outcome"
)

# Configuration.
RELOADS: Final = _counter("config_reloads", "Reloads. outcome: ok, unchanged or failed.", "outcome")
KAFKA_AWAY: Final = _gauge("kafka_away", "1 while no broker of Kafka answers, else 0.")
OTHER_GROUPS: Final = _gauge("other_groups", "Other groups of guards that write to the same deliveries.")
RELOAD_FAILED: Final = _gauge(
    "config_reload_failed", "1 while the latest reload failed and the former policies hold, else 0."
)
CONFIG_TIME: Final = _gauge(
    "config_loaded_timestamp_seconds", "When the policies that hold were read, Unix time."
)
BUILD: Final = _gauge("build_info", "Always 1; what runs here.", "version", "judge")


class _Bounded:
    """Values of one label: the first ``MOST_VALUES`` keep their names."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def __call__(self, value: str) -> str:
        if value in self._known:
            return value
        if len(self._known) >= MOST_VALUES:
            return OTHER
        value = value[:120]
        self._known.add(value)
        return value


judge_label: Final = _Bounded()
model_label: Final = _Bounded()
rule_label: Final = _Bounded()
policy_label: Final = _Bounded()
reason_label: Final = _Bounded()


def count_output(event: OutputEvent, waited_s: float | None = None, late_s: float = 0.0) -> None:
    """Count an event when it is published; ``waited_s`` is how long a segment was held, if known, and
    ``late_s`` how long ago the response's latest input had been written when it was read.
    """
    if isinstance(event, DeliverySegment):
        _released(event.decision).inc()
        if waited_s is not None:
            RELEASE_SECONDS.observe(waited_s)
    elif isinstance(event, ClaimVerdict):
        _count_claim(event)
    elif isinstance(event, ResponseVerdict):
        _count_response(event, late_s)
    elif isinstance(event, DeliveryBlocked):
        BLOCKS.labels("true" if event.released_chars else "false").inc()


@cache
def _released(decision: str) -> Counter:
    return SEGMENTS.labels(decision)


def _count_claim(event: ClaimVerdict) -> None:
    judge = judge_label(event.judge)
    CLAIMS.labels(event.verdict.value, event.severity.value, judge).inc()
    VERDICT_SECONDS.labels(judge).observe(event.latency_ms / 1000)
    for finding in event.findings:
        FINDINGS.labels(finding.value).inc()
    # Nearly all are answered, which the verdict says without a call.
    if event.verdict is Verdict.UNVERIFIED and event.unanswered:
        UNVERIFIED.labels(reason_label(_kind(event.reasoning))).inc()
    if event.degraded_from:
        DEGRADED.labels(reason_label(_kind(event.degraded_from[0], parts=2))).inc()


def count_usage(model: str, usage: Usage) -> None:
    """Count what a call of a model consumed."""
    name = model_label(model)
    JUDGE_TOKENS.labels(name, "input").inc(max(0, usage.input_tokens))
    JUDGE_TOKENS.labels(name, "cached_input").inc(max(0, usage.cached_input_tokens))
    JUDGE_TOKENS.labels(name, "output").inc(max(0, usage.output_tokens))
    JUDGE_COST.labels(name).inc(max(0.0, usage.cost_usd))


def _kind(reason: str, parts: int = 1) -> str:
    """The beginning of a reason, which names its kind; the rest may quote a server or a number."""
    return ":".join(reason.split(":", parts)[:parts])[:60] or "none given"


def _count_response(event: ResponseVerdict, late_s: float) -> None:
    policy = policy_label(event.policy.name)
    _begin(policy)
    RESPONSES.labels(policy, event.decision.value, "true" if event.complete else "false").inc()
    DECISIONS.labels(policy, rule_label(event.rule), event.decision.value).inc()
    STREAMS.labels(event.mode, "false" if event.mode == "observe" else "true").inc()
    if event.challenger is not None:
        challenger = policy_label(event.challenger.policy.name)
        decisions = (event.decision.value, event.challenger.decision.value)
        CHALLENGERS.labels(policy, challenger, *decisions).inc()
    if event.score is not None:
        SCORES.labels(policy).observe(event.score)
    if event.timings.after_completion_ms is not None:
        after_s = event.timings.after_completion_ms / 1000
        ADDED_SECONDS.observe(after_s)
        WRITTEN_TO_DECIDED_SECONDS.observe(after_s + late_s)


@cache
def _begin(policy: str) -> None:
    """What tells that a policy's answers can't be checked is 0 before the first of them."""
    DECISIONS.labels(policy, f"{ON_UNVERIFIED}{FailPolicy.FAIL_CLOSED}", "block")
    DECISIONS.labels(policy, f"{ON_UNVERIFIED}{FailPolicy.FLAG}", "flag")


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One held partition. ``lag`` counts records that wait to be taken up; None: unknown."""

    topic: str
    index: int
    ready: bool
    paused: bool
    lag: int | None
    unreadable: bool = False
    """Too many of its records can't be read."""


@dataclass(frozen=True, slots=True)
class GuardState:
    """What a guard holds at a moment.

    ``oldest_held_s`` is how long ago the oldest text that waits was written, whether it is unread, held or
    not committed: 0 if none waits, None if unknown, as while partitions are being restored.
    """

    sessions: int
    pending_claims: int
    chars: int
    judge_queue: int
    judging: int
    saturated: bool
    oldest_held_s: float | None
    partitions: tuple[PartitionState, ...]
    judge_wait_s: float = 0.0
    judge_behind: bool = False
    ready: bool = True


def state_of(
    engine: Engine,
    oldest_held_s: float | None,
    partitions: tuple[PartitionState, ...] = (),
    *,
    ready: bool = True,
) -> GuardState:
    """What a guard with this engine holds."""
    return GuardState(
        sessions=engine.sessions,
        pending_claims=engine.pending_claims,
        chars=engine.chars,
        judge_queue=engine.judge_queue,
        judging=engine.judging,
        saturated=engine.saturated,
        oldest_held_s=oldest_held_s,
        partitions=partitions,
        judge_wait_s=engine.judge_wait_s,
        judge_behind=engine.behind,
        ready=ready,
    )


class _StateCollector(Collector):
    """Reads the guard's state when it is scraped."""

    def __init__(self) -> None:
        self.read: Callable[[], GuardState] | None = None

    def describe(self) -> Iterable[GaugeMetricFamily]:
        return ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        if self.read is None:
            return
        state = self.read()
        for name, text, value in (
            ("sessions", "Responses in flight.", state.sessions),
            ("pending_claims", "Claims that wait for a verdict.", state.pending_claims),
            ("in_flight_chars", "Characters of questions, contexts and answers in flight.", state.chars),
            ("judge_queue", "Requests that wait for a turn at the judge.", state.judge_queue),
            ("judging", "Requests that the judge works on.", state.judging),
            (
                "judge_wait_seconds",
                "How long a claim would wait for a verdict at the judge's recent pace; 0 while none waits.",
                state.judge_wait_s,
            ),
            (
                "judge_behind",
                "1 while reading pauses for a judge that is behind, else 0.",
                int(state.judge_behind),
            ),
            ("ready", "1 while /readyz says so: all partitions are read; else 0.", int(state.ready)),
            ("saturated", "1 while a bound is reached and reading pauses, else 0.", int(state.saturated)),
        ):
            yield GaugeMetricFamily(f"guardrail_{name}", text, value)
        if state.oldest_held_s is not None:
            yield GaugeMetricFamily(
                "guardrail_oldest_unreleased_seconds",
                "How long ago the oldest text was written that is unread, held or not committed, in seconds; "
                "absent while not known.",
                state.oldest_held_s,
            )
        held = GaugeMetricFamily(
            "guardrail_partitions",
            "Partitions held. state: restoring, ready, paused or unreadable.",
            labels=("state",),
        )
        counts = {"restoring": 0, "ready": 0, "paused": 0, "unreadable": 0}
        lag = GaugeMetricFamily(
            "guardrail_partition_lag_records",
            "Records that are not taken up yet; absent while not known.",
            labels=("topic", "partition"),
        )
        for partition in state.partitions:
            counts[_state_of(partition)] += 1
            if partition.lag is not None:
                lag.add_metric((partition.topic, str(partition.index)), partition.lag)
        for name, number in counts.items():
            held.add_metric((name,), number)
        yield held
        yield lag


def _state_of(partition: PartitionState) -> str:
    if partition.unreadable:
        return "unreadable"
    return "paused" if partition.paused else "ready" if partition.ready else "restoring"


_state: Final = _StateCollector()
REGISTRY.register(_state)


def serve_state(read: Callable[[], GuardState] | None) -> None:
    """Make the gauges show what ``read`` returns when scraped; None removes them."""
    _state.read = read
