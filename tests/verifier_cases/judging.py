"""What a judge makes of the cases of this folder, claim by claim.

``python -m tests.verifier_cases.judging`` prints the local judge's rates over all of them; with
``--misjudged`` also the cases that it judges wrongly, with ``--verifier FOLDER`` those of another verifier.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from guardrail.claims import Claim
from guardrail.events import Context, Severity
from guardrail.evidence import EvidenceIndex
from guardrail.judges import Judge, Judgement, JudgeRequest, Verdict
from guardrail.judges.local import LocalJudge, LocalJudgeSettings
from tests.support.judges import reply_of
from tests.verifier_cases.cases import SUPPORTED_KINDS, Located, load

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


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verifier", type=Path, help="folder of another verifier")
    parser.add_argument("--misjudged", action="store_true", help="list the cases that are judged wrongly too")
    options = parser.parse_args()
    settings = LocalJudgeSettings.model_validate({"verifier": {"path": options.verifier}})
    found = asyncio.run(judged(LocalJudge(settings), load()))
    for name, rate in rates(found).items():
        sys.stdout.write(f"{name:24} {rate.right:4} of {rate.of:4} {rate.share:6.1%}\n")
    for (_, _, case), judgement in (one for one in found if options.misjudged and not one.right):
        told = f"{judgement.verdict.value} {judgement.confidence:.2f}"
        sys.stdout.write(f"{case.kind:19} {case.label:20} {told}  {case.claim}\n")


if __name__ == "__main__":
    main()
