"""What people say of claims and answers, as one truth each: labels joined to claims, votes counted.

**Which labels are about a claim.** One with its ``claim_id``. Ids differ by the name and version of the
policy, so a label with its ``policy`` is about the claim that has this id under that policy. Else one with a
``span`` that calls an error and covers at least half of the claim, or lies in it with at least half of its
own length; and one with a ``span`` that calls the words supported and covers at least half of the claim: that
one word of a claim is supported says nothing of the claim. A label about several claims counts for each. One
whose ``claim_id`` no claim has, and without a ``span``, is *unknown*: it counts for nothing, but an answer of
which it calls a claim wrong is not known to be right.

**Whose word counts.** A label that repeats an ``id`` replaces the earlier one. All labels by one reviewer on
a claim are one vote, for the worst that they say; labels without a reviewer are one vote, too. Most votes
decide; of a tie nothing is known. Labels with verdict UNVERIFIED are no votes.

**Claims without a label.** They are right if a label about the whole answer says SUPPORTED. They are right as
well if a labelled set rates the whole answer and marks its errors: such sets mark all of them. A reviewer who
calls an answer wrong need not have looked at every claim, so of the rest nothing is known.

**The whole answer.** Labels about it decide by votes. Without any, it is wrong if one of its claims is, or an
error is marked outside of all claims; it is right if all its claims are known to be right.

Every command that reads labels joins them here, so that a label means the same to all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from guardrail.event_ids import EventIds
from guardrail.events import ClaimVerdict, Label, LabelSource, PolicyRef, Severity, Span, Verdict

ERRORS: Final[Mapping[Verdict, frozenset[Verdict]]] = {
    Verdict.PARTIALLY_SUPPORTED: frozenset(
        {Verdict.PARTIALLY_SUPPORTED, Verdict.UNSUPPORTED, Verdict.CONTRADICTED}
    ),
    Verdict.UNSUPPORTED: frozenset({Verdict.UNSUPPORTED, Verdict.CONTRADICTED}),
    Verdict.CONTRADICTED: frozenset({Verdict.CONTRADICTED}),
}
"""By the mildest verdict that counts as an error: all that do."""

_HALF: Final = 0.5


@dataclass(frozen=True, slots=True)
class ClaimTruth:
    """What people say of a claim: its severity, else the claim's own, and the kinds of error."""

    claim: ClaimVerdict
    right: bool
    severity: Severity
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerTruth:
    """What people say of an answer. ``right`` is None if that is not known.

    ``disputed`` claims have as many votes for as against. ``outside`` are marked errors that are in no claim:
    the guard has not looked at them at all. ``unknown`` labels name claims that the
    answer doesn't have, and no words. ``worst`` is the severity of the worst of its wrong claims, which
    says more precisely than a label about the whole answer which error it is; where no claim is known to be
    wrong, the gravest that such a label gives, and None without any.
    """

    claims: tuple[ClaimTruth, ...]
    right: bool | None
    disputed: int = 0
    outside: int = 0
    unknown: int = 0
    worst: Severity | None = None


def answer_truth(
    claims: Sequence[ClaimVerdict], labels: Iterable[Label], mildest: Verdict = Verdict.PARTIALLY_SUPPORTED
) -> AnswerTruth:
    """The labels of one answer, joined to its claims; labels of ``mildest`` or worse say of an error."""
    errors = ERRORS[mildest]
    saying = [label for label in latest(labels) if label.verdict is not Verdict.UNVERIFIED]
    whole = [label for label in saying if label.claim_id is None and label.span is None]
    parts = [label for label in saying if label.claim_id is not None or label.span is not None]
    named = _named(claims, parts)
    unknown = [label for label in parts if label.span is None and id(label) not in named]
    marks = [label for label in parts if label.verdict in errors]
    lost = any(label.verdict in errors for label in unknown)
    whole_right = _vote(whole, errors)
    rest_is_right = whole_right is True or (
        bool(marks) and not lost and any(label.source is LabelSource.DATASET for label in whole)
    )
    truths: list[ClaimTruth] = []
    disputed = 0
    joined: set[int] = set()
    for claim in claims:
        about = [
            label
            for label in parts
            if (named[id(label)] == claim.claim_id if id(label) in named else _is_about(label, claim, errors))
        ]
        joined.update(map(id, about))
        right = _vote(about, errors) if about else (True if rest_is_right else None)
        if right is not None:
            truths.append(_truth(claim, about, right=right, errors=errors))
        elif about:
            disputed += 1
    outside = sum(label.span is not None and id(label) not in joined for label in marks)
    if whole_right is None and not whole:
        if outside or not all(each.right for each in truths):
            whole_right = False
        elif truths and len(truths) == len(claims) and not lost:
            whole_right = True
    worst = _worst(each.severity for each in truths if not each.right)
    if worst is None:
        worst = _worst(label.severity for label in whole if label.verdict in errors)
    return AnswerTruth(tuple(truths), whole_right, disputed, outside, len(unknown), worst)


def _truth(
    claim: ClaimVerdict, about: Sequence[Label], *, right: bool, errors: frozenset[Verdict]
) -> ClaimTruth:
    severity = _worst(label.severity for label in about) or claim.severity
    if right:
        return ClaimTruth(claim, right, severity)
    named = (label.category for label in about if label.category and label.verdict in errors)
    return ClaimTruth(claim, right, severity, tuple(dict.fromkeys(named)))


def _worst(given: Iterable[Severity | None]) -> Severity | None:
    return max((each for each in given if each is not None), key=lambda each: each.rank, default=None)


def latest(labels: Iterable[Label]) -> list[Label]:
    """Without those that a later one with the same id replaces, in the order of their first appearance."""
    found: dict[Any, Label] = {}
    for number, label in enumerate(labels):
        found[(label.response_id, label.id) if label.id else number] = label
    return list(found.values())


class LabelsByResponse:
    """Labels from any number of places, by the id of the response that they are about."""

    def __init__(self, labels: Iterable[Label] = ()) -> None:
        self._labels: dict[str, list[Label]] = {}
        self.add(labels)

    def __len__(self) -> int:
        """The number of responses with labels."""
        return len(self._labels)

    def add(self, labels: Iterable[Label]) -> None:
        """Take more; one with the id of an earlier one replaces it."""
        for label in labels:
            self._labels.setdefault(label.response_id, []).append(label)

    def of(self, response_id: str, own: Sequence[Label] = ()) -> tuple[Label, ...]:
        """Those of a response; ``own`` are labels that came with it, and count as the earliest."""
        return tuple(latest([*own, *self._labels.get(response_id, ())]))

    def stray(self, known: Container[str]) -> int:
        """How many are about responses that are not ``known``."""
        return sum(len(each) for response_id, each in self._labels.items() if response_id not in known)


def _named(claims: Sequence[ClaimVerdict], labels: Iterable[Label]) -> dict[int, str]:
    """By the ``id()`` of a label, the claim that its ``claim_id`` names."""
    ids = {claim.claim_id for claim in claims}
    under: dict[tuple[str, PolicyRef], dict[str, str]] = {}
    found: dict[int, str] = {}
    for label in labels:
        if label.claim_id in ids:
            found[id(label)] = label.claim_id
        elif label.claim_id is not None and label.policy is not None:
            key = label.response_id, label.policy
            if key not in under:
                make = EventIds(label.response_id, label.policy.name, label.policy.version)
                under[key] = {make.claim(each.index, each.span, each.text): each.claim_id for each in claims}
            if (name := under[key].get(label.claim_id)) is not None:
                found[id(label)] = name
    return found


def claim_named(claims: Sequence[ClaimVerdict], label: Label) -> str | None:
    """The ``claim_id`` that the claim has here which ``label`` names by its own, None if there is none."""
    return _named(claims, [label]).get(id(label))


def _is_about(label: Label, claim: ClaimVerdict, errors: frozenset[Verdict]) -> bool:
    if label.span is None:
        return False
    shared = min(label.span[1], claim.span[1]) - max(label.span[0], claim.span[0])
    if shared <= 0:
        return False
    needed = _length(claim.span)
    if label.verdict in errors:
        needed = min(needed, _length(label.span))
    return shared >= _HALF * needed


def _length(span: Span) -> int:
    return span[1] - span[0]


def _vote(labels: Sequence[Label], errors: frozenset[Verdict]) -> bool | None:
    """Whether most say that it is right; None of a tie, or if nobody says anything."""
    wrong_by: dict[tuple[LabelSource, str | None], bool] = defaultdict(bool)
    for label in labels:
        wrong_by[label.source, label.reviewer] |= label.verdict in errors
    wrong = sum(wrong_by.values())
    right = len(wrong_by) - wrong
    return None if wrong == right else right > wrong
