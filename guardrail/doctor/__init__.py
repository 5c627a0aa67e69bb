"""What ``guardrail doctor`` looks at without Kafka: policies, judges, the machine, and the proof by a client.

Every function returns ``Check``s and raises nothing for what it finds wrong.
"""

from __future__ import annotations

from guardrail.doctor.checks import Area, Check, State, failed
from guardrail.doctor.clock import check_clock, endpoint_time_s
from guardrail.doctor.enforcement import PROOF_ROUTE, Proof, prove
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
    "endpoint_time_s",
    "failed",
    "prove",
]
