"""Compares what readers saw with what the inputs allow: pure functions over lists of records.

Written against the wire formats alone, in the manner of Jepsen's Kafka workload: nothing here uses the code
under test to find out what would be right.

A judge in these runs is a function of the claim's text, and of the harness's orders for the delicate ones,
which may stay UNVERIFIED. So the verdicts that a response must get are known, and from the verdicts that it
got follows what its policy had to deliver.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tests.chaos.history import Anomaly, Found, Headers, Log, Logs, Read
from tests.chaos.outcomes import Verdicts, allowed_verdicts, expected
from tests.chaos.policies import POLICIES
from tests.chaos.workload import SILENT, Case, Ending

_DEAD_LETTER: Final = "guardrail-dead-letter-"
Place = tuple[int, int]
"""Partition and offset in the input."""


class CaseReport(NamedTuple):
    """What is wrong with one case, and which of its records must or may be among the dead letters."""

    found: list[Found]
    dead: dict[Place, Read]
    may_be_dead: frozenset[Place]
    as_planned: bool
    """Whether the input has the planned records, and none twice; else nothing can be said of the outcome."""


class Output(NamedTuple):
    """An output record and its event."""

    read: Read
    event: dict[str, Any]


def check_case(case: Case, inputs: Sequence[Read], outputs: Sequence[Read]) -> CaseReport:
    """One response: its input records and all its outputs, each topic in the order of the offsets."""
    as_planned = [(read.key, read.value) for read in inputs] == [(s.key, s.value) for s in case.records]
    events = [Output(read, json.loads(read.value or b"{}")) for read in outputs]
    if not as_planned:
        return CaseReport([], {}, frozenset((r.partition, r.offset) for r in inputs), as_planned=False)
    found = [*_check_outputs(case, events)]
    bad = {(r.partition, r.offset): r for r, s in zip(inputs, case.records, strict=True) if s.bad}
    optional: frozenset[Place] = frozenset()
    if case.ending is Ending.GAP and _blocked_by_a_rule(events):
        optional, bad = frozenset(bad), {}  # nobody misses a delta of what is blocked already
    elif case.ending is Ending.ORPHAN:
        optional = frozenset((r.partition, r.offset) for r in inputs)  # its time may run out on the way
    return CaseReport(found, bad, optional, as_planned=True)


def _blocked_by_a_rule(events: Sequence[Output]) -> bool:
    return any(
        o.event.get("type") == "delivery.blocked" and o.event.get("rule") != "sequence_gap" for o in events
    )


def _check_outputs(case: Case, events: Sequence[Output]) -> Iterator[Found]:
    deliveries = [o for o in events if o.read.topic == "deliveries"]
    verdicts = [o for o in events if o.read.topic == "verdicts"]
    cases = [o for o in events if o.read.topic == "flagged"]
    if case.ending in SILENT:
        for output in events:
            yield Found(Anomaly.NO_INPUT, case.response_id, f"{output.read.place}: nothing was to come of it")
        return
    for outputs in (deliveries, verdicts, cases):
        yield from _order(case, outputs)
    claims = _first_of_each(verdicts, "verdict.claim", "claim_id")
    yield from _check_claims(case, claims)
    segments = _first_of_each(deliveries, "delivery.segment", "seq")
    yield from _check_segments(case, segments, claims)
    finals = [o for o in deliveries if o.event["type"] in {"delivery.completed", "delivery.blocked"}]
    verdict = next((o for o in verdicts if o.event["type"] == "verdict.response"), None)
    if not finals:
        yield Found(Anomaly.LOST, case.response_id, f"{case.ending}, {case.route}: no final delivery")
    if verdict is None:
        yield Found(Anomaly.LOST, case.response_id, f"{case.ending}, {case.route}: no verdict.response")
    if not finals or verdict is None:
        return
    if len({o.read.offset for o in finals}) > 1:
        yield Found(Anomaly.TWO_FINALS, case.response_id, ", ".join(o.read.place for o in finals))
    if finals[0].event["seq"] != len(segments):
        detail = f"the final has seq {finals[0].event['seq']}, {len(segments)} segments were delivered"
        yield Found(Anomaly.LOST, case.response_id, detail)
    yield from _check_outcome(case, segments, claims, finals[0].event, verdict.event, cases)


def _order(case: Case, outputs: Sequence[Output]) -> Iterator[Found]:
    """Each event once, segments in the order of the text, finals last, all in one partition.

    Verdicts on claims come as each is known: their order says nothing, their places in the text do.
    """
    ids: Counter[str] = Counter(o.event["id"] for o in outputs)
    for event_id, times in ids.items():
        if times > 1:
            places = ", ".join(o.read.place for o in outputs if o.event["id"] == event_id)
            yield Found(Anomaly.DUPLICATE, case.response_id, f"{event_id} {times} times: {places}")
    if len({o.read.partition for o in outputs}) > 1:
        yield Found(Anomaly.REORDERED, case.response_id, "its outputs are in more than one partition")
    seen: set[str] = set()
    last, over = -1, False
    for output in outputs:
        event = output.event
        if event["id"] in seen:
            continue  # said above
        seen.add(event["id"])
        kind = event["type"]
        if over and kind not in {"delivery.completed", "delivery.blocked"}:
            yield Found(Anomaly.REORDERED, case.response_id, f"{output.read.place}: {kind} after the final")
        if kind in {"delivery.completed", "delivery.blocked", "verdict.response"}:
            over = True
            continue
        if kind == "verdict.claim":
            continue
        number = event.get("seq", 0)
        if number <= last:
            detail = f"{output.read.place}: {kind} {number} after {last}"
            yield Found(Anomaly.REORDERED, case.response_id, detail)
        last = number


def _first_of_each(outputs: Iterable[Output], kind: str, name: str) -> dict[Any, Output]:
    found: dict[Any, Output] = {}
    for output in outputs:
        if output.event["type"] == kind:
            found.setdefault(output.event[name], output)
    return found


def _check_claims(case: Case, claims: Mapping[str, Output]) -> Iterator[Found]:
    for output in claims.values():
        event = output.event
        low, high = event["span"]
        index = event["index"]
        known = case.sentences[index] if index < len(case.sentences) else None
        if case.text[low:high] != event["text"] or known is None or known.start != low:
            detail = f"{output.read.place}: claim {index} at {low}..{high} is not in the response"
            yield Found(Anomaly.NO_INPUT, case.response_id, detail)
        elif event["verdict"] not in allowed_verdicts(case, event["text"]):
            detail = f"{output.read.place}: claim {index} is {event['verdict']} ({event['reasoning'][:80]})"
            yield Found(Anomaly.WRONG_OUTCOME, case.response_id, detail)


def _check_segments(
    case: Case, segments: Mapping[int, Output], claims: Mapping[str, Output]
) -> Iterator[Found]:
    """Segments tile the text, and every claim in them had its verdict."""
    end = 0
    observing = POLICIES[case.route].mode == "observe"
    for seq, output in sorted(segments.items()):
        event, place = output.event, output.read.place
        low, high = event["span"]
        if low != end:
            detail = f"{place}: segment {seq} begins at {low}, not at {end}"
            yield Found(Anomaly.LOST if low > end else Anomaly.WRONG_TEXT, case.response_id, detail)
        end = high
        if observing:
            continue
        for claim_id in event["claim_ids"]:
            verdict = claims.get(claim_id)
            if verdict is None:
                detail = f"{place}: claim {claim_id} has no verdict"
                yield Found(Anomaly.EARLY, case.response_id, detail)
            elif verdict.read.timestamp_ms > output.read.timestamp_ms:
                detail = f"{place}: before {verdict.read.place}"
                yield Found(Anomaly.EARLY, case.response_id, detail)
        checked = {claims[claim_id].event["index"] for claim_id in event["claim_ids"] if claim_id in claims}
        for index, sentence in enumerate(case.sentences):
            if low <= sentence.start and sentence.end <= high and index not in checked:
                detail = f"{place}: claim {index} stands in it and was not checked"
                yield Found(Anomaly.EARLY, case.response_id, detail)


def _check_outcome(
    case: Case,
    segments: Mapping[int, Output],
    claims: Mapping[str, Output],
    final: Mapping[str, Any],
    verdict: Mapping[str, Any],
    cases: Sequence[Output],
) -> Iterator[Found]:
    delivered = "".join(segments[seq].event["text"] for seq in sorted(segments))
    given: Verdicts = {o.event["index"]: o.event["verdict"] for o in claims.values()}
    blocked = final["type"] == "delivery.blocked"
    outcomes = [*expected(case, given)]
    fitting = [o for o in outcomes if o.blocked == blocked and o.decision == verdict["decision"]]
    if not fitting:
        wanted = " or ".join(sorted({f"{o.decision}{' (blocked)' * o.blocked}" for o in outcomes}))
        detail = (
            f"{case.ending}, {case.route}: {final['type']} ({final['rule']}), decision "
            f"{verdict['decision']}; expected {wanted or 'verdicts that are missing'}; given {given}"
        )
        yield Found(Anomaly.WRONG_OUTCOME, case.response_id, detail)
    elif not any(o.allows(delivered) for o in fitting):
        detail = f"{case.ending}, {case.route}: {delivered!r}, allowed {fitting[0].text!r}; given {given}"
        yield Found(Anomaly.WRONG_TEXT, case.response_id, detail)
    for claim in verdict["claims"]:
        if claim["claim_id"] not in claims:
            detail = f"verdict.response has claim {claim['index']}, which has no verdict.claim"
            yield Found(Anomaly.LOST, case.response_id, detail)
    if verdict["decision"] != "release" and not cases:
        yield Found(Anomaly.LOST, case.response_id, f"decision {verdict['decision']} and no case.flagged")
    if verdict["decision"] == "release" and cases:
        yield Found(Anomaly.NO_INPUT, case.response_id, "a case.flagged of a response that was released")
    if cases and POLICIES[case.route].mode != "observe" and cases[0].event["delivered"] != delivered:
        yield Found(Anomaly.WRONG_TEXT, case.response_id, "the case tells another delivered text")


# ------------------------------------------------------------------------------------ dead letters


def check_dead_letters(
    dead: Mapping[Place, Read], may_be_dead: Iterable[Place], letters: Iterable[Read], own: Headers
) -> Iterator[Found]:
    """Each bad record once, byte for byte with its ``own`` headers first, and no good one."""
    times: Counter[Place] = Counter()
    allowed = set(may_be_dead)
    for letter in letters:
        added = [(name, value or b"") for name, value in letter.headers if name.startswith(_DEAD_LETTER)]
        about = {name: value.decode() for name, value in added}
        place = (int(about[f"{_DEAD_LETTER}partition"]), int(about[f"{_DEAD_LETTER}offset"]))
        times[place] += 1
        original = dead.get(place)
        if original is None:
            if place not in allowed:
                detail = f"{letter.place}: input {place}, {about.get(f'{_DEAD_LETTER}reason')}"
                yield Found(Anomaly.DEAD_LETTER_UNDUE, str(letter.key), detail)
        elif (original.key, original.value) != (letter.key, letter.value) or letter.headers[
            : len(own)
        ] != own:
            yield Found(Anomaly.DEAD_LETTER_CHANGED, str(letter.key), f"{letter.place}: input {place}")
    for place, original in dead.items():
        if not times[place]:
            yield Found(Anomaly.DEAD_LETTER_LOST, str(original.key), f"input {place}")
    for place, count in times.items():
        if count > 1:
            yield Found(Anomaly.DEAD_LETTER_DOUBLED, f"input {place}", f"{count} times")


# ------------------------------------------------------------------------------------ whole topics


def check_reads(live: Logs, final: Logs, uncommitted: Logs) -> Iterator[Found]:
    """A reader that was there all the time saw what stands there now: all of it, in order, nothing else."""
    for place, log in live.items():
        subject = f"{place[0]}[{place[1]}]"
        last = -1
        for offset in log.offsets:
            if offset <= last:
                yield Found(Anomaly.REORDERED, subject, f"the reader got {offset} after {last}")
            last = max(last, offset)
        committed = final.get(place, Log()).entries()
        aborted = uncommitted.get(place, Log()).entries().keys() - committed.keys()
        seen = log.entries()
        for offset, checksum in seen.items():
            if offset in aborted:
                yield Found(Anomaly.ABORTED_READ, subject, f"{offset} was read, and was aborted")
            elif committed.get(offset) != checksum:
                yield Found(Anomaly.ABORTED_READ, subject, f"{offset} was read, and is not there (so) now")
        for offset in sorted(committed.keys() - seen.keys()):
            yield Found(Anomaly.LOST, subject, f"{offset} is there, and the reader never got it")


def aborted_records(final: Logs, uncommitted: Logs) -> int:
    """How many records stand in the topics that were aborted: shows that faults hit transactions."""
    return sum(len(log.offsets) - len(final.get(place, Log()).offsets) for place, log in uncommitted.items())


def check_sessions(latest: Mapping[bytes, bool]) -> Iterator[Found]:
    """``latest``: every key of the sessions topic, true where its last record is no tombstone.

    A key is the group, what is kept, and what of.
    """
    for key, present in latest.items():
        if present and key.split(b"/", 2)[1] in {b"head", b"progress"}:
            yield Found(Anomaly.SESSION_LEFT, key.decode(errors="replace"), "no tombstone")


def check_positions(committed: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[Found]:
    """Every input partition was read and committed to its end."""
    for partition, end in ends.items():
        if committed.get(partition, 0) != end:
            detail = f"committed {committed.get(partition)}, ends at {end}"
            yield Found(Anomaly.POSITION, f"responses[{partition}]", detail)
