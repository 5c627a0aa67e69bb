"""What ``guardrail doctor`` looks at without Kafka: policies, judges, the machine, and the proof by a client.

Every check returns ``Check``s and raises nothing for what it finds wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.doctor.checks import PROOF_ROUTE, Area, Check, State, detail_and_remedy, is_proof
    from guardrail.doctor.clock import check_clock, endpoint_time_s
    from guardrail.doctor.enforcement import Proof, prove
    from guardrail.doctor.judges import check_judges
    from guardrail.doctor.machine import Machine, check_machine
    from guardrail.doctor.policies import check_policies

__all__ = [
    "PROOF_ROUTE",
    "Area",
    "Check",
    "Machine",
    "Proof",
    "State",
    "check_clock",
    "check_judges",
    "check_machine",
    "check_policies",
    "detail_and_remedy",
    "endpoint_time_s",
    "is_proof",
    "prove",
]

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__ = face(
        __name__,
        {
            "guardrail.doctor.checks": (
                "PROOF_ROUTE",
                "Area",
                "Check",
                "State",
                "detail_and_remedy",
                "is_proof",
            ),
            "guardrail.doctor.clock": ("check_clock", "endpoint_time_s"),
            "guardrail.doctor.enforcement": ("Proof", "prove"),
            "guardrail.doctor.judges": ("check_judges",),
            "guardrail.doctor.machine": ("Machine", "check_machine"),
            "guardrail.doctor.policies": ("check_policies",),
        },
    )
