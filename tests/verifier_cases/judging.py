"""What a judge makes of the cases of this folder, claim by claim."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from guardrail.claims import Claim
from guardrail.events import Context, Severity
from guardrail.evidence import EvidenceIndex
from guardrail.judges import Judge, Judgement, JudgeRequest, Verdict
from tests.support.judges import reply_of
from tests.verifier_cases.cases import SUPPORTED_KINDS, Located

_FIGURES: Final = frozenset({"number", "date", "unit", "other-value"})
_TOGETHER: Final = ("supported", "not supported", "not called contradicted", "critical figures")


class Judged(NamedTuple):
    """A case, and the judgement on its claim."""

    located: Located
    judgement: Judgement

    @property
    def right(self) -> bool:
        """Whether the judge tells supported from not supported as the label does."""
        return (self.judgement.verdict is Verdict.SUPPORTED) == (self.located.case.label == "supported")


class Rate(NamedTuple):
    """How many cases of so many."""

    right: int
    of: int

    @property
    def share(self) -> float:
        """1.0 where there is no case."""
        return self.right / self.of if self.of else 1.0


def rates(found: Iterable[Judged]) -> dict[str, Rate]:
    """The rates that a judge is measured by.

    ``supported``: supported claims that are called SUPPORTED; ``not supported``: others that are not;
    ``not called contradicted``: supported claims that are not CONTRADICTED; ``critical figures``: wrong
    numbers, dates, units and other things' values in critical claims that are not called SUPPORTED; then the
    right ones of each kind, those of supported claims first.
    """
    kept: dict[str, list[bool]] = defaultdict(list)
    by_kind: dict[str, list[bool]] = defaultdict(list)
    for one in found:
        case = one.located.case
        by_kind[case.kind].append(one.right)
        if case.label == "supported":
            kept["supported"].append(one.right)
            kept["not called contradicted"].append(one.judgement.verdict is not Verdict.CONTRADICTED)
        else:
            kept["not supported"].append(one.right)
            if case.kind in _FIGURES and case.severity is Severity.CRITICAL:
                kept["critical figures"].append(one.right)
    names = sorted(by_kind, key=lambda kind: (kind not in SUPPORTED_KINDS, kind))
    return {
        name: Rate(sum(rights), len(rights))
        for name, rights in (*((name, kept[name]) for name in _TOGETHER), *((k, by_kind[k]) for k in names))
    }


def sampled(cases: Sequence[Located], most: int) -> list[Located]:
    """No more than ``most`` cases of each kind, always the same ones, spread evenly over their order."""
    by_kind: dict[str, list[Located]] = defaultdict(list)
    for case in cases:
        by_kind[case.case.kind].append(case)
    kept: list[Located] = []
    for those in by_kind.values():
        step = max(1.0, len(those) / most)
        kept += [those[int(number * step)] for number in range(min(most, len(those)))]
    return kept


async def judged(judge: Judge, cases: Iterable[Located]) -> list[Judged]:
    """Each case with the judge's word on it: a request of its own, its passages the only contexts.

    Raises what the judge raises.
    """
    found = []
    for located in cases:
        case = located.case
        claim = Claim(0, 0, case.claim, 0, len(case.claim), case.severity)
        evidence = EvidenceIndex([Context(id=f"p{n}", text=t) for n, t in enumerate(located.contexts, 1)])
        reply = await reply_of(judge, JudgeRequest("r", "", {"c": claim}, evidence, time.monotonic() + 60))
        (judgement,) = reply.judgements
        found.append(Judged(located, judgement))
    return found
