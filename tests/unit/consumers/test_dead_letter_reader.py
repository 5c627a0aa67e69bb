"""What is made of dead letters' headers, also of those that nobody of ours wrote."""

from __future__ import annotations

import pytest

from consumers.dead_letter_replay import DeadLetter, DeadLetterFilter, Origin, read_letter
from consumers.dead_letters import PREFIX, REPLAYED, dead_letter
from consumers.transport import Headers, Partition, Record
from guardrail.errors import DecodeError, ProtocolError

DEAD = Partition("dead", 1)


def letter_of(refused: Record, max_bytes: int = 1_000_000) -> DeadLetter:
    out = dead_letter("dead", refused, ProtocolError("sequence_gap", "7 after 3"), max_bytes)
    return read_letter(Record(DEAD, 5, out.key, out.value, out.headers, 2_000))


def test_what_the_guard_writes_is_read_back() -> None:
    own = (("a", b"\xff"), ("a", b""))
    letter = letter_of(Record(Partition("in", 3), 42, b"k", b"value", own, 1_000))
    assert letter.headers == own
    assert (letter.reason, letter.error, letter.message) == ("sequence_gap", "ProtocolError", "7 after 3")
    assert letter.stage == "session"
    assert letter.origin == Origin("in", 3, 42, 1_000)
    assert (letter.size, letter.omitted_bytes, letter.replays) == (5, None, 0)


def test_a_refused_record_keeps_dead_letter_headers_of_its_own() -> None:
    """As when somebody copied a dead letter into the input: only what was added last is the guard's."""
    inner = dead_letter(
        "dead", Record(Partition("x", 0), 1, b"k", b"v"), DecodeError("invalid_json", "m"), 9_999
    )
    letter = letter_of(Record(Partition("in", 3), 42, b"k", b"v", inner.headers))
    assert letter.headers == inner.headers
    assert letter.reason == "sequence_gap"
    assert letter.origin is not None
    assert letter.origin.topic == "in"


def test_the_size_of_a_value_left_out_is_told() -> None:
    letter = letter_of(Record(Partition("in", 3), 42, b"k", b"x" * 9_000), max_bytes=10_000)
    assert letter.record.value is None
    assert (letter.size, letter.omitted_bytes) == (9_000, 9_000)


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (("a", b"b"),),
        ((PREFIX + "topic", b"in"), (PREFIX + "partition", b"0"), (PREFIX + "offset", b"1")),
    ],
)
def test_a_record_without_a_reason_was_not_written_by_a_guard(headers: Headers) -> None:
    letter = read_letter(Record(DEAD, 5, b"k", b"v", headers))
    assert letter == DeadLetter(letter.record, headers)


@pytest.mark.parametrize("number", [b"", b"-1", b"1.0", b"x", "٣".encode(), b"\xff", b"9" * 5_000, None])
def test_headers_that_are_no_numbers_say_nothing(number: bytes) -> None:
    headers = (
        (REPLAYED, number),
        (PREFIX + "reason", b"\xff"),
        (PREFIX + "topic", b"in"),
        (PREFIX + "partition", b"0"),
        (PREFIX + "offset", number),
        (PREFIX + "value-bytes", number),
    )
    letter = read_letter(Record(DEAD, 5, b"k", b"v", headers))
    assert letter.reason == "\ufffd"
    assert (letter.origin, letter.omitted_bytes, letter.replays) == (None, None, 0)


def test_the_last_mark_counts_the_replays() -> None:
    marks = ((REPLAYED, b"9"), (REPLAYED, b"2"))
    assert letter_of(Record(Partition("in", 0), 1, b"k", b"v", marks)).replays == 2


def test_filters_go_together() -> None:
    letter = letter_of(Record(Partition("in", 0), 1, b"k", b"v"))
    assert DeadLetterFilter().everything
    wanted = [
        DeadLetterFilter(),
        DeadLetterFilter(reason="sequence_gap"),
        DeadLetterFilter(key=b"k"),
        DeadLetterFilter(since_ms=2_000),
        DeadLetterFilter("sequence_gap", b"k", 1_999),
    ]
    assert all(selection.wants(letter) for selection in wanted)
    others = [
        DeadLetterFilter(reason="invalid_json"),
        DeadLetterFilter(key=b""),
        DeadLetterFilter(since_ms=2_001),
        DeadLetterFilter("sequence_gap", b"other"),
    ]
    assert not any(selection.wants(letter) or selection.everything for selection in others)
