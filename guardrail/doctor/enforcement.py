"""The proof: answers sent through the guard that runs, as a chat service sends them.

A right one must come back whole, a wrong one must never be delivered: streamed by small deltas, and whole.
The answers have a route of their own, ``PROOF_ROUTE``, which operators may route to any policy.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from guardrail.client import GuardClient, GuardTimeout, Piece
from guardrail.doctor.checks import (
    CONTEXT,
    PROOF_ROUTE,
    QUESTION,
    RIGHT,
    WRONG,
    WRONG_FIGURE,
    Area,
    Check,
)
from guardrail.doctor.settings import withholds
from guardrail.errors import GuardrailError
from guardrail.events import Decision
from guardrail.policy import Policy

_ENFORCEMENT: Final = Area("enforcement")
_DELTA_CHARS: Final = 4
_METADATA: Final = {"guardrail": "doctor"}

_RIGHT_STREAMED: Final = "right answer, streamed"
_WRONG_STREAMED: Final = "wrong answer, streamed"
_WRONG_WHOLE: Final = "wrong answer, whole"


@dataclass(frozen=True, slots=True)
class Proof:
    """What came back for one answer. ``delivered`` is all text that a user would have seen, in order, also
    where it was replaced later; ``message`` what replaced it."""

    sent: str
    delivered: str
    message: str | None
    decision: Decision | None
    rule: str | None
    took_s: float

    @classmethod
    def of(
        cls, sent: str, pieces: Sequence[Piece], decision: Decision | None, rule: str | None, took_s: float
    ) -> Self:
        """From the pieces that a client yielded."""
        shown = "".join(piece.text for piece in pieces if not piece.replaces)
        message = next((piece.text for piece in pieces if piece.replaces), None)
        return cls(sent, shown, message, decision, rule, took_s)

    @property
    def withheld(self) -> bool:
        """Was what is wrong never delivered?"""
        return WRONG_FIGURE not in self.delivered


async def prove(client: GuardClient, policy: Policy, *, within_s: float) -> list[Check]:
    """Send three answers through the guards that ``client``, which is open, obeys.

    ``policy`` is what the settings at hand give to ``PROOF_ROUTE``; remedies name it. ``within_s`` is how
    long the guard may say nothing.
    """
    sending = {
        _RIGHT_STREAMED: _stream(client, _RIGHT_STREAMED, RIGHT, within_s),
        _WRONG_STREAMED: _stream(client, _WRONG_STREAMED, WRONG, within_s),
        _WRONG_WHOLE: _whole(client, _WRONG_WHOLE, WRONG, within_s),
    }
    answers = await asyncio.gather(*map(_tried, sending.values()))
    if all(isinstance(answer, GuardTimeout) for answer in answers):
        of_group = f" of the group {client.group}" if client.group else ""
        return [
            _ENFORCEMENT.fail(
                "the guard",
                f"no guard{of_group} answered within {within_s:g} s",
                "is 'guardrail run' running on these topics, in this group? /readyz says whether it has "
                "partitions",
            )
        ]
    return [_check(sent, answer, policy, within_s) for sent, answer in zip(sending, answers, strict=True)]


async def _tried(proving: Awaitable[Proof]) -> Proof | GuardrailError:
    try:
        return await proving
    except GuardrailError as error:
        return error


def _check(sent: str, answer: Proof | GuardrailError, policy: Policy, within_s: float) -> Check:
    if isinstance(answer, Proof):
        return told_of(answer, policy, _ENFORCEMENT, right=sent == _RIGHT_STREAMED)
    if isinstance(answer, GuardTimeout):
        return _ENFORCEMENT.fail(
            sent,
            f"the guard said nothing for {within_s:g} s, though it answered others",
            "look into its log: its judge may be slow or away, or a partition without a guard",
        )
    return _ENFORCEMENT.error(sent, answer)


def told_of(proof: Proof, policy: Policy, area: Area, *, right: bool) -> Check:
    """What a proof with a right answer, or a wrong one, tells of the guard; remedies name ``policy``."""
    return _right(proof, area) if right else _wrong(proof, policy, area)


def _by(proof: Proof) -> str:
    return f"by '{proof.rule}' " if proof.rule else ""


def _right(proof: Proof, area: Area) -> Check:
    when = f"after {proof.took_s:.1f} s"
    if proof.delivered == RIGHT and proof.message is None:
        if proof.decision is Decision.FLAG:
            return area.warn(
                proof.sent,
                f"shown unchanged {when}, but flagged {_by(proof)}".rstrip(),
                "lower flag_below, or look at what the judge says of it in the verdicts",
            )
        return area.ok(proof.sent, f"shown unchanged {when}")
    return area.fail(
        proof.sent,
        f"withheld or changed {_by(proof)}{when}",
        "the guard's judge is away (see its log)"
        if _unverified(proof)
        else "make the rule or the judge milder",
    )


def _unverified(proof: Proof) -> bool:
    return proof.rule is not None and proof.rule.startswith("on_unverified")


def _wrong(proof: Proof, policy: Policy, area: Area) -> Check:
    when = f"after {proof.took_s:.1f} s"
    if proof.withheld and proof.decision in (Decision.BLOCK, Decision.REDACT):
        done = "blocked" if proof.decision is Decision.BLOCK else "redacted"
        if _unverified(proof):
            return area.warn(
                proof.sent,
                f"{done} {when}, but only because the judge gave no verdict",
                "the guard's judge is away: see its log",
            )
        return area.ok(proof.sent, f"{done} {_by(proof)}{when}; what is wrong was never shown")
    if proof.withheld:
        shown = "not all of it came back, though the guard says that it withheld nothing"
    elif proof.decision is Decision.BLOCK:
        shown = f"shown before it was blocked {_by(proof)}{when}"
    elif proof.decision is Decision.FLAG:
        shown = f"shown {when}: flagged {_by(proof)}but not withheld"
    else:
        shown = f"shown {when}: the guard released it"
    return area.fail(proof.sent, shown, _remedy(policy))


def _remedy(policy: Policy) -> str:
    route = f"or route '{PROOF_ROUTE}' to a policy that does"
    if policy.mode == "observe":
        return f"policy '{policy.name}' only observes: set mode hold or stream, {route}"
    if not withholds(policy):
        return f"policy '{policy.name}' withholds nothing: give it a rule that blocks, {route}"
    return (
        f"by these settings policy '{policy.name}' could withhold it: does the guard run by the same ones "
        f"(policy.digest {policy.ref.digest})? Else give it a rule for contradictions, {route}"
    )


async def _stream(client: GuardClient, sent: str, text: str, within_s: float) -> Proof:
    begun = time.monotonic()
    pieces = []
    async with client.guard(
        QUESTION,
        [CONTEXT],
        _deltas(text),
        route=PROOF_ROUTE,
        on_block="yield",
        on_timeout="raise",
        timeout_s=within_s,
        stall_timeout_s=None,
        metadata=_METADATA,
    ) as answer:
        async for piece in answer:
            pieces.append(piece)  # noqa: PERF401 - the decision is known after the last one
    return Proof.of(sent, pieces, answer.decision, answer.rule, time.monotonic() - begun)


async def _deltas(text: str) -> AsyncIterator[str]:
    for start in range(0, len(text), _DELTA_CHARS):
        yield text[start : start + _DELTA_CHARS]
        await asyncio.sleep(0.01)  # as a model writes: several events, not one


async def _whole(client: GuardClient, sent: str, text: str, within_s: float) -> Proof:
    begun = time.monotonic()
    checked = await client.check(
        QUESTION,
        [CONTEXT],
        text,
        route=PROOF_ROUTE,
        on_timeout="raise",
        timeout_s=within_s,
        metadata=_METADATA,
    )
    return Proof.of(sent, list(checked.pieces), checked.decision, checked.rule, time.monotonic() - begun)
