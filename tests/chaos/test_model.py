"""The workload, its policies and the checker fit the product: without faults there is nothing to report."""

from __future__ import annotations

from guardrail.claims import BuiltinSeverityRater, ClaimCutter
from guardrail.policy import Policy
from tests.chaos.checker import CaseReport, check_case, check_dead_letters
from tests.chaos.history import Read
from tests.chaos.judge import ScriptedJudge
from tests.chaos.policies import router
from tests.chaos.workload import SILENT, Ending, Workload, number_of, streams
from tests.support.guards import TOPICS, Reader, new_broker, running_guard, until

CASES = 300


def test_every_sentence_is_one_claim() -> None:
    for case in Workload(7, CASES):
        cutter = ClaimCutter(BuiltinSeverityRater(Policy().severity))
        claims = [claim for _, found in [*cutter.feed(case.text), *cutter.finish()] for claim in found]
        whole = [s for s in case.sentences if s.end <= len(case.text)]
        assert [(c.start, c.end, c.text) for c in claims[: len(whole)]] == [tuple(s) for s in whole]
        assert len(claims) <= len(case.sentences)


def test_a_case_is_the_same_whenever_it_is_made() -> None:
    workload = Workload(7, CASES)
    assert [workload.case(n) for n in range(40)] == list(workload)[:40]
    assert Workload(8, CASES).case(50) != workload.case(50)


def test_every_ending_is_in_a_small_workload_and_streams_keep_each_cases_order() -> None:
    workload = Workload(7, 60)
    assert {case.ending for case in workload} == set(Ending)
    sent: dict[int, list[bytes]] = {}
    for number, record in streams(workload, at_once=10):
        sent.setdefault(number, []).append(record.value)
        assert number_of(record.key, record.value) == number
    assert all(sent[case.number] == [record.value for record in case.records] for case in workload)


async def test_nothing_to_report_of_a_guard_without_faults() -> None:
    workload = Workload(1, CASES)
    reports, letters = await _run(workload)
    assert all(report.as_planned for report in reports)
    assert [str(found) for report in reports for found in report.found] == []
    dead = {place: read for report in reports for place, read in report.dead.items()}
    optional = {place for report in reports for place in report.may_be_dead}
    assert [str(f) for f in check_dead_letters(dead, optional, letters, ())] == []
    assert len(dead) > 10


async def _run(workload: Workload) -> tuple[list[CaseReport], list[Read]]:
    broker = new_broker()
    reader = Reader(broker)
    for _, sent in streams(workload, at_once=20):
        broker.append(TOPICS.responses, sent.key, sent.value)
    answered = [case for case in workload if case.ending not in SILENT]
    async with running_guard(broker, ScriptedJudge(), router=router()):
        await until(lambda: len(reader.verdicts()) == len(answered))
    inputs: dict[int, list[Read]] = {}
    outputs: dict[int, list[Read]] = {}
    letters: list[Read] = []
    for role in ("responses", "deliveries", "verdicts", "flagged", "dead_letters"):
        for record in broker.records(getattr(TOPICS, role)):
            read = Read(
                role,
                record.partition.index,
                record.offset,
                record.timestamp_ms,
                record.key,
                record.value,
                record.headers,
            )
            if role == "dead_letters":
                letters.append(read)
                continue
            number = number_of(read.key, read.value)
            assert number is not None
            (inputs if role == "responses" else outputs).setdefault(number, []).append(read)
    reports = [check_case(c, inputs.get(c.number, []), outputs.get(c.number, [])) for c in workload]
    return reports, letters
