"""The checker reports each way in which a history can be wrong, and nothing of a right one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.chaos.checker import (
    aborted_records,
    check_case,
    check_dead_letters,
    check_positions,
    check_reads,
    check_sessions,
)
from tests.chaos.history import Anomaly, Found, Log, Read
from tests.chaos.outcomes import scripted_verdict
from tests.chaos.workload import Case, Ending, Workload

Event = dict[str, Any]
Events = dict[str, list[Event]]
WORKLOAD = Workload(3, 2_000)


def a_case(route: str, ending: Ending, *, wrong: int | None = None, sentences: int = 3) -> Case:
    """The first case of this kind with at least so many sentences, the ``wrong``-th being the first wrong."""
    for case in WORKLOAD:
        verdicts = [scripted_verdict(sentence.text) for sentence in case.sentences]
        first = verdicts.index("CONTRADICTED") if "CONTRADICTED" in verdicts else None
        if (case.route, case.ending, first) == (route, ending, wrong) and len(verdicts) >= sentences:
            return case
    raise AssertionError((route, ending, wrong))


def right_events(case: Case, *, blocked_at: int | None = None) -> Events:
    """What stream-block delivers of a complete case: the segments one by one, up to the one that blocks."""
    deliveries: list[Event] = []
    verdicts: list[Event] = []
    end = 0
    for index, sentence in enumerate(case.sentences):
        verdict = scripted_verdict(sentence.text)
        verdicts.append(
            {
                "type": "verdict.claim",
                "id": f"c{index}-verdict",
                "claim_id": f"c{index}",
                "index": index,
                "text": sentence.text,
                "span": [sentence.start, sentence.end],
                "verdict": verdict,
                "reasoning": "",
            }
        )
        if index == blocked_at:
            break
        start, end = end, min(sentence.end + 1, len(case.text))
        deliveries.append(
            {
                "type": "delivery.segment",
                "id": f"d-{index}",
                "seq": index,
                "text": case.text[start:end],
                "span": [start, end],
                "claim_ids": [f"c{index}"],
            }
        )
    blocked = blocked_at is not None
    final = "delivery.blocked" if blocked else "delivery.completed"
    deliveries.append({"type": final, "id": "final", "seq": len(deliveries), "rule": "the rule"})
    claims = [{"claim_id": v["claim_id"], "index": v["index"]} for v in verdicts]
    decision = "block" if blocked else "release"
    verdicts.append({"type": "verdict.response", "id": "verdict", "decision": decision, "claims": claims})
    flagged = [{"type": "case.flagged", "id": "case", "delivered": case.text[:end]}] if blocked else []
    return {"verdicts": verdicts, "deliveries": deliveries, "flagged": flagged}


def reads(case: Case, events: Events) -> list[Read]:
    key = case.response_id.encode()
    return [
        Read(topic, 0, 10 + offset, 1_000, key, json.dumps(event).encode())
        for topic, found in events.items()
        for offset, event in enumerate(found)
    ]


def sent(case: Case) -> list[Read]:
    return [Read("responses", 1, n, 900, s.key, s.value) for n, s in enumerate(case.records)]


def anomalies(case: Case, events: Events) -> set[Anomaly]:
    return {found.anomaly for found in check_case(case, sent(case), reads(case, events)).found}


def test_a_right_history_has_no_anomaly() -> None:
    complete = a_case("stream-block", Ending.COMPLETE)
    assert anomalies(complete, right_events(complete)) == set()
    blocked = a_case("stream-block", Ending.COMPLETE, wrong=1)
    assert anomalies(blocked, right_events(blocked, blocked_at=1)) == set()


def _drop(topic: str, index: int) -> Callable[[Events], None]:
    return lambda events: events[topic].__delitem__(index)


def _repeat(topic: str, index: int) -> Callable[[Events], None]:
    return lambda events: events[topic].append(events[topic][index])


def _swap(topic: str, one: int, other: int) -> Callable[[Events], None]:
    def change(events: Events) -> None:
        found = events[topic]
        found[one], found[other] = found[other], found[one]

    return change


def _set(topic: str, index: int, **fields: Any) -> Callable[[Events], None]:
    return lambda events: events[topic][index].update(fields)


def test_verdicts_on_claims_may_come_as_each_is_known() -> None:
    case = a_case("stream-block", Ending.COMPLETE)
    events = right_events(case)
    _swap("verdicts", 0, 1)(events)
    assert anomalies(case, events) == set()


@pytest.mark.parametrize(
    ("change", "anomaly"),
    [
        (_drop("deliveries", -1), Anomaly.LOST),
        (_drop("deliveries", 1), Anomaly.LOST),
        (_drop("verdicts", -1), Anomaly.LOST),
        (_drop("verdicts", 1), Anomaly.EARLY),
        (_repeat("deliveries", 1), Anomaly.DUPLICATE),
        (_repeat("verdicts", 0), Anomaly.DUPLICATE),
        (_repeat("verdicts", -1), Anomaly.DUPLICATE),
        (_repeat("deliveries", -1), Anomaly.TWO_FINALS),
        (_swap("deliveries", 0, 1), Anomaly.REORDERED),
        (_swap("deliveries", -1, -2), Anomaly.REORDERED),
        (_swap("verdicts", -1, -2), Anomaly.REORDERED),
        (_set("deliveries", 1, text="Something else. "), Anomaly.WRONG_TEXT),
        (_set("deliveries", 1, claim_ids=[]), Anomaly.EARLY),
        (_set("deliveries", 1, claim_ids=["c9"]), Anomaly.EARLY),
        (_set("deliveries", -1, type="delivery.blocked"), Anomaly.WRONG_OUTCOME),
        (_set("verdicts", 1, verdict="UNVERIFIED"), Anomaly.WRONG_OUTCOME),
        (_set("verdicts", 1, text="The claim of another response."), Anomaly.NO_INPUT),
        (_set("verdicts", -1, decision="flag"), Anomaly.WRONG_OUTCOME),
    ],
)
def test_each_violation_is_reported(change: Callable[[Events], None], anomaly: Anomaly) -> None:
    case = a_case("stream-block", Ending.COMPLETE)
    events = right_events(case)
    change(events)
    assert anomaly in anomalies(case, events)


def test_text_released_past_a_wrong_claim_is_reported() -> None:
    case = a_case("stream-block", Ending.COMPLETE, wrong=1)
    events = right_events(case)  # all of it is delivered
    assert Anomaly.WRONG_OUTCOME in anomalies(case, events)
    events = right_events(case, blocked_at=1)
    low, high = case.sentences[1].start, case.sentences[1].end
    leak = {"type": "delivery.segment", "id": "d-1", "seq": 1, "text": case.text[low:high]}
    events["deliveries"].insert(1, {**leak, "span": [low, high], "claim_ids": ["c1"]})
    events["deliveries"][-1]["seq"] = 2
    assert Anomaly.WRONG_TEXT in anomalies(case, events)


def test_a_block_without_its_case_is_reported() -> None:
    case = a_case("stream-block", Ending.COMPLETE, wrong=1)
    events = right_events(case, blocked_at=1)
    del events["flagged"][0]
    assert anomalies(case, events) == {Anomaly.LOST}


def test_an_aborted_case_may_stop_after_any_segment_and_must_be_blocked() -> None:
    case = a_case("stream-block", Ending.ABORTED, sentences=3)
    for blocked_at in range(len(case.sentences) - 1):  # the last one is a fragment
        events = right_events(case, blocked_at=blocked_at)
        assert anomalies(case, events) == set()
    assert Anomaly.WRONG_OUTCOME in anomalies(case, right_events(case))


def test_outputs_of_what_was_never_started_are_reported() -> None:
    unknown = next(case for case in WORKLOAD if case.ending is Ending.UNKNOWN)
    complete = right_events(a_case("stream-block", Ending.COMPLETE))
    assert anomalies(unknown, complete) == {Anomaly.NO_INPUT}
    assert anomalies(unknown, {}) == set()


def test_an_input_that_is_not_the_planned_one_proves_nothing() -> None:
    case = a_case("stream-block", Ending.COMPLETE)
    report = check_case(case, sent(case)[1:], [])
    assert not report.as_planned
    assert report.found == []


# ------------------------------------------------------------------------------------ dead letters


OWN = (("origin", b"\xff\x00"),)


def letter(of: Read, offset: int = 5) -> Read:
    about = (("partition", of.partition), ("offset", of.offset), ("reason", "invalid_json"))
    added = tuple((f"guardrail-dead-letter-{name}", str(value).encode()) for name, value in about)
    return Read("dead_letters", 0, offset, 1_000, of.key, of.value, (*OWN, *added))


def kinds(found: list[Found]) -> list[Anomaly]:
    return [one.anomaly for one in found]


def test_dead_letters() -> None:
    bad = Read("responses", 1, 7, 0, b"k", b"\xff", OWN)
    dead = {(1, 7): bad}
    assert kinds([*check_dead_letters(dead, [], [letter(bad)], OWN)]) == []
    assert kinds([*check_dead_letters(dead, [], [], OWN)]) == [Anomaly.DEAD_LETTER_LOST]
    twice = [letter(bad), letter(bad, 6)]
    assert kinds([*check_dead_letters(dead, [], twice, OWN)]) == [Anomaly.DEAD_LETTER_DOUBLED]
    changed = letter(bad)._replace(value=b"?")
    assert kinds([*check_dead_letters(dead, [], [changed], OWN)]) == [Anomaly.DEAD_LETTER_CHANGED]
    bare = letter(bad)._replace(headers=letter(bad).headers[1:])
    assert kinds([*check_dead_letters(dead, [], [bare], OWN)]) == [Anomaly.DEAD_LETTER_CHANGED]
    assert kinds([*check_dead_letters({}, [], [letter(bad)], OWN)]) == [Anomaly.DEAD_LETTER_UNDUE]
    assert kinds([*check_dead_letters({}, [(1, 7)], [letter(bad)], OWN)]) == []


def test_a_gap_must_be_dead_lettered_unless_the_response_was_blocked_already() -> None:
    case = a_case("stream-block", Ending.GAP, sentences=1)
    events = right_events(case, blocked_at=0)
    events["deliveries"][-1]["rule"] = "sequence_gap"
    assert len(check_case(case, sent(case), reads(case, events)).dead) == 1
    events["deliveries"][-1]["rule"] = "verdict CONTRADICTED: block"
    report = check_case(case, sent(case), reads(case, events))
    assert (len(report.dead), len(report.may_be_dead)) == (0, 1)


# ------------------------------------------------------------------------------------ whole topics


def log(*offsets: int, value: bytes = b"v") -> Log:
    return Log.of(Read("deliveries", 0, offset, 0, b"k", value) for offset in offsets)


def test_reads_of_a_topic() -> None:
    place = ("deliveries", 0)

    def found(live: Log, final: Log, uncommitted: Log) -> list[Anomaly]:
        return kinds([*check_reads({place: live}, {place: final}, {place: uncommitted})])

    assert found(log(0, 1, 4), log(0, 1, 4), log(0, 1, 2, 4)) == []
    assert found(log(0, 2), log(0), log(0, 2)) == [Anomaly.ABORTED_READ]
    assert found(log(0, 2), log(0), log(0)) == [Anomaly.ABORTED_READ]
    assert found(log(0), log(0, value=b"other"), log(0)) == [Anomaly.ABORTED_READ]
    assert found(log(0), log(0, 1), log(0, 1)) == [Anomaly.LOST]
    assert found(log(0, 1, 1), log(0, 1), log(0, 1)) == [Anomaly.REORDERED]
    assert found(log(1, 0), log(0, 1), log(0, 1)) == [Anomaly.REORDERED]
    assert aborted_records({place: log(0, 1)}, {place: log(0, 1, 2, 3)}) == 2


def test_sessions_and_positions() -> None:
    kept = (b"head/5/case-0000001", b"progress/9", b"finished/3", b"policy/ab")
    left = {b"chaos/" + key: True for key in kept}
    assert kinds([*check_sessions(left)]) == [Anomaly.SESSION_LEFT] * 2
    assert kinds([*check_sessions(dict.fromkeys(left, False))]) == []
    assert kinds([*check_positions({0: 5, 1: 7}, {0: 5, 1: 7})]) == []
    assert kinds([*check_positions({0: 5}, {0: 5, 1: 7})]) == [Anomaly.POSITION]
    assert kinds([*check_positions({0: 4}, {0: 5})]) == [Anomaly.POSITION]
