"""What a policy may have come to, given a text and the verdicts on its claims. Independent of the product."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from tests.chaos.policies import POLICIES
from tests.chaos.workload import CUT, WRONG, Case, Ending, Sentence

Verdicts = Mapping[int, str]
"""Verdict by index of the claim."""

_RANK: Final = ("release", "flag", "redact", "block")
_ON_UNVERIFIED: Final = {"fail_closed": "block", "fail_open": "release", "flag": "flag"}


class Outcome(NamedTuple):
    """One way in which a response may have ended."""

    blocked: bool
    decision: str
    text: str
    """What was delivered; where ``prefix``, at most that."""
    prefix: bool = False

    def allows(self, delivered: str) -> bool:
        """May this have been delivered? Space between two sentences goes with either."""
        if self.prefix:
            return self.text.startswith(delivered.rstrip())
        return delivered.rstrip() == self.text.rstrip() if self.blocked else delivered == self.text


def scripted_verdict(text: str) -> str:
    """What the judge of these runs says of a claim."""
    return "CONTRADICTED" if WRONG in text else "SUPPORTED"


def allowed_verdicts(case: Case, text: str) -> frozenset[str]:
    """What may stand in the verdict on a claim of this case."""
    return frozenset({scripted_verdict(text)} | ({"UNVERIFIED"} if case.delicate else set()))


def expected(case: Case, given: Verdicts) -> Iterator[Outcome]:
    """Every outcome that fits the verdicts that were given; none when a verdict is missing."""
    if case.ending is Ending.GARBAGE:
        yield Outcome(blocked=True, decision="block", text="")
        return
    policy = POLICIES[case.route]
    ends = [0, *case.boundaries] if case.ending is Ending.ORPHAN else [len(case.text)]
    for end in ends:
        cut = case.ending in CUT
        if cut and policy.on_incomplete == "block":
            yield from _stopped(case, given)
            outcome = _judged(case, given, end)
            if outcome is not None and outcome.blocked:  # by a claim, before the cut
                yield outcome
            return
        outcome = _judged(case, given, end)
        if outcome is not None and cut and outcome.decision == "release":
            outcome = outcome._replace(decision="flag")
        if outcome is not None:
            yield outcome


def _stopped(case: Case, given: Verdicts) -> Iterator[Outcome]:
    """Cut and blocked at once: of what had verdicts by then, any beginning may have been out."""
    shown: list[str] = []
    for index, sentence in enumerate(case.sentences):
        action = _action(case, given[index]) if index in given else None
        if action is None or action == "block":
            break
        shown.append(_shown(case, sentence, action, len(case.text)))
    text = "" if POLICIES[case.route].mode == "hold" else " ".join(shown)
    yield Outcome(blocked=True, decision="block", text=text, prefix=True)


def _judged(case: Case, given: Verdicts, end: int) -> Outcome | None:
    """The text up to ``end``, judged to its end or to the first claim that blocks it."""
    policy = POLICIES[case.route]
    worst, at, shown = "release", 0, ""
    for index, sentence in enumerate(case.sentences):
        if sentence.start >= end:
            break
        whole = sentence.end <= end
        if index not in given and whole:
            return None
        action = (
            _action(case, given[index]) if index in given else "release"
        )  # a fragment need not be a claim
        worst = max(worst, action, key=_RANK.index)
        if policy.mode == "observe":
            continue
        shown += case.text[at : sentence.start]
        if action == "block":
            return Outcome(blocked=True, decision="block", text="" if policy.mode == "hold" else shown)
        shown += _shown(case, sentence, action, end)
        at = min(sentence.end, end)
    text = case.text[:end] if policy.mode == "observe" else shown + case.text[at:end]
    return Outcome(blocked=False, decision=worst, text=text)


def _shown(case: Case, sentence: Sentence, action: str, end: int) -> str:
    text = case.text[sentence.start : min(sentence.end, end)]
    if action != "redact":
        return text
    body = text.rstrip()
    return POLICIES[case.route].redaction() + text[len(body) :]


def _action(case: Case, verdict: str) -> str:
    """What the policy does to the segment of a claim with this verdict."""
    policy = POLICIES[case.route]
    if verdict == "UNVERIFIED":
        return _ON_UNVERIFIED[policy.on_unverified]
    return str(policy.rules[0].action) if verdict == "CONTRADICTED" else "release"
