"""What ``guardrail doctor`` looks at without Kafka: policies, judges, the machine, and the proof by a client.

Every check returns ``Check``s and raises nothing for what it finds wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.doctor.checks import CONTEXT as CONTEXT
    from guardrail.doctor.checks import PROOF_ROUTE as PROOF_ROUTE
    from guardrail.doctor.checks import QUESTION as QUESTION
    from guardrail.doctor.checks import RIGHT as RIGHT
    from guardrail.doctor.checks import WRONG as WRONG
    from guardrail.doctor.checks import Area as Area
    from guardrail.doctor.checks import Check as Check
    from guardrail.doctor.checks import State as State
    from guardrail.doctor.checks import is_proof as is_proof
    from guardrail.doctor.enforcement import Proof as Proof
    from guardrail.doctor.enforcement import prove as prove
    from guardrail.doctor.enforcement import told_of as told_of
    from guardrail.doctor.judges import check_judges as check_judges
    from guardrail.doctor.machine import Machine as Machine
    from guardrail.doctor.machine import check_clock as check_clock
    from guardrail.doctor.machine import check_machine as check_machine
    from guardrail.doctor.machine import endpoint_time_s as endpoint_time_s
    from guardrail.doctor.settings import check_policies as check_policies
    from guardrail.doctor.settings import check_settings as check_settings
    from guardrail.doctor.settings import policy_notes as policy_notes
    from guardrail.doctor.settings import refused as refused
    from guardrail.doctor.settings import start_notes as start_notes
    from guardrail.doctor.settings import unreadable_files as unreadable_files
    from guardrail.doctor.settings import withholds as withholds

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__, __all__ = face(__name__)
