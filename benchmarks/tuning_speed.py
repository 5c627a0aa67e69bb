"""How fast thresholds are searched on many responses.

    python -m benchmarks.tuning_speed [--responses 10000]

Made verdicts, eight claims each on the average, and labels that follow the support with noise; one core.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.frame import command_line
from guardrail.events import (
    ClaimVerdict,
    Decision,
    Label,
    PolicyRef,
    ResponseVerdict,
    Severity,
    Timings,
    Verdict,
    VerdictCounts,
)
from guardrail.offline.aims import Aim
from guardrail.offline.labelled import Judged
from guardrail.offline.search import Vary
from guardrail.offline.tuning import tune
from guardrail.policy import Policy

_POLICY = PolicyRef(name="default", version="1", digest="0" * 12)
_CLAIMS = 8


def made(number: int, random: np.random.Generator) -> Judged:
    """One response with labels."""
    response_id = f"r-{number}"
    claims, labels = [], []
    for index in range(random.poisson(_CLAIMS - 1) + 1):
        support = float(random.beta(5, 1.2))
        right = random.random() < 0.3 + 0.7 * support
        verdict = (
            Verdict.SUPPORTED
            if support > 0.6
            else Verdict.PARTIALLY_SUPPORTED
            if support > 0.35
            else Verdict.UNSUPPORTED
        )
        claims.append(
            ClaimVerdict(
                id=f"{response_id}-{index}",
                response_id=response_id,
                claim_id=f"{response_id}-{index}",
                index=index,
                text="",
                span=(index, index + 1),
                segment=index,
                severity=list(Severity)[int(random.choice(4, p=(0.1, 0.5, 0.3, 0.1)))],
                verdict=verdict,
                confidence=max(support, 1 - support),
                support=support,
                contradiction=float(random.beta(1, 8)),
                judge="made",
                latency_ms=1.0,
                policy=_POLICY,
            )
        )
        said = Verdict.SUPPORTED if right else Verdict.UNSUPPORTED
        labels.append(Label(response_id=response_id, claim_id=claims[-1].claim_id, verdict=said))
    whole = ResponseVerdict(
        id=response_id,
        response_id=response_id,
        score=None,
        counts=VerdictCounts(),
        decision=Decision.RELEASE,
        rule="",
        mode="observe",
        complete=True,
        claims=tuple(claims),
        summary="",
        timings=Timings(total_ms=1.0),
        policy=_POLICY,
    )
    return Judged(whole, tuple(labels))


def main() -> None:
    """Command line."""
    parser = command_line(__doc__)
    parser.add_argument("--responses", type=int, default=10_000, help="how many are made")
    options = parser.parse_args()
    random = np.random.default_rng(1)
    responses = [made(number, random) for number in range(options.responses)]
    print(f"{len(responses):,} responses, {sum(len(r.claims) for r in responses):,} claims")
    each: tuple[Vary, ...]
    for each in (("thresholds",), ("thresholds", "weights", "bounds")):
        begun = time.perf_counter()
        found = tune(responses, Policy(), Aim(catch=0.9), vary=each)
        seconds = time.perf_counter() - begun
        print(
            f"{', '.join(each)}: {found.tried:,} policies in {seconds:.1f} s, "
            f"{found.tried / seconds:,.0f} a second, with cross-validation"
        )


if __name__ == "__main__":
    main()
