"""What a dead letter says of the record that it is, what is read of it again, and how it is written back."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from consumers.dead_letter_replay import (
    DeadLetter,
    DeadLetterFilter,
    Origin,
    ReplayProgress,
    Unusable,
    destination,
    read_letter,
    replay_settings,
    resume,
    rewound,
    written_back,
)
from consumers.dead_letters import PREFIX, REPLAYED, dead_letter
from consumers.settings import KafkaSettings, Topics
from consumers.transport import MAX_METADATA_BYTES, Commit, Headers, OutRecord, Partition, Record
from guardrail.errors import DecodeError, InputError, ProtocolError, TransportError

HEADERS = (
    ("traceparent", b"00-ab"),
    ("twice", b"\xff"),
    ("twice", b""),
    ("null", None),
    (PREFIX + "reason", b"forged"),
)
RECORD = Record(Partition("in", 3), 42, b"\xfe", b"{\x00", HEADERS, 1_700_000_000_000)
DEAD = Partition("dead", 1)
KNOWN = frozenset({"in", "out", "__consumer_offsets"})


def added(error: InputError, record: Record = RECORD, max_bytes: int = 1_000_000) -> dict[str, str]:
    letter = dead_letter("dead", record, error, max_bytes)
    assert letter.headers[: len(record.headers)] == record.headers
    more = letter.headers[len(record.headers) :]
    assert more[0][0] == PREFIX + "reason"
    return {name.removeprefix(PREFIX): (value or b"").decode() for name, value in more}


@pytest.mark.parametrize(
    ("error", "stage"), [(DecodeError, "decode"), (ProtocolError, "session"), (InputError, "guard")]
)
def test_the_place_the_error_and_the_stage_are_told(error: type[InputError], stage: str) -> None:
    assert added(error("some_reason", "what was wrong")) == {
        "reason": "some_reason",
        "error": error.__name__,
        "message": "what was wrong",
        "stage": stage,
        "topic": "in",
        "partition": "3",
        "offset": "42",
        "timestamp": "1700000000000",
    }


def test_key_value_and_headers_stay_byte_for_byte() -> None:
    letter = dead_letter("dead", RECORD, DecodeError("invalid_json", "no JSON"), 1_000_000)
    assert (letter.topic, letter.key, letter.value) == ("dead", b"\xfe", b"{\x00")


def test_a_value_that_does_not_fit_is_left_out_and_its_size_told() -> None:
    large = RECORD._replace(value=b"x" * 9_000)
    assert added(DecodeError("invalid_json", "no JSON"), large, 10_000)["value-bytes"] == "9000"
    assert dead_letter("dead", large, DecodeError("invalid_json", "no JSON"), 10_000).value is None


def test_headers_and_a_key_that_do_not_fit_are_left_out_too() -> None:
    error = DecodeError("invalid_json", "no JSON")
    large_headers = RECORD._replace(headers=(("h", b"x" * 9_000),))
    letter = dead_letter("dead", large_headers, error, 10_000)
    about = dict(letter.headers)
    assert (letter.key, letter.value) == (RECORD.key, None)
    assert about[PREFIX + "headers-bytes"] == b"9011"
    assert "h" not in about
    letter = dead_letter("dead", RECORD._replace(key=b"k" * 9_000), error, 10_000)
    assert (letter.key, letter.value) == (None, None)
    assert dict(letter.headers)[PREFIX + "key-bytes"] == b"9000"


# ------------------------------------------------------------------------------------ read again


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


# --------------------------------------------------------------------------------- written back


def refused(headers: Headers = (), topic: str = "in") -> Record:
    return Record(Partition(topic, 3), 42, b"\xfe", b"\x00value", headers, 1_000)


def test_it_goes_back_byte_for_byte_with_a_mark() -> None:
    own = (("traceparent", b"00-ab"), ("twice", b"\xff"), ("twice", b""), ("null", None))
    assert written_back(letter_of(refused(own)), "in") == OutRecord(
        "in", b"\xfe", b"\x00value", (*own, (REPLAYED, b"1"))
    )


def test_the_mark_survives_the_next_refusal_and_counts_on() -> None:
    headers: Headers = (("a", b"b"),)
    for count in range(1, 12):
        letter = letter_of(refused(headers))
        assert letter.replays == count - 1
        headers = written_back(letter, "in").headers
        assert headers == (("a", b"b"), (REPLAYED, str(count).encode()))


def test_a_value_that_was_left_out_can_not_be_written_back() -> None:
    large = refused()._replace(value=b"x" * 9_000)
    with pytest.raises(Unusable, match="9000 bytes"):
        written_back(letter_of(large, 10_000), "in")


@pytest.mark.parametrize(
    ("topic", "match"),
    [("out", "only the guard"), ("__consumer_offsets", "Kafka itself"), ("gone", "no topic gone")],
)
def test_forged_and_vanished_origins_are_no_destinations(topic: str, match: str) -> None:
    topics = Topics(flagged="out")
    with pytest.raises(Unusable, match=match):
        destination(letter_of(refused(topic=topic)), None, topics, KNOWN)
    assert destination(letter_of(refused()), None, topics, KNOWN) == "in"
    assert destination(letter_of(refused(topic=topic)), "in", topics, KNOWN) == "in"


def test_without_an_origin_a_destination_has_to_be_named() -> None:
    letter = DeadLetter(Record(DEAD, 5, b"k", b"v"), ())
    with pytest.raises(Unusable, match="--to"):
        destination(letter, None, Topics(), KNOWN)
    assert destination(letter, "in", Topics(), KNOWN) == "in"


def test_progress_is_kept_apart_for_each_group_and_destination() -> None:
    settings = KafkaSettings(group_id="g")
    assert replay_settings(settings, None).group_id == "g-dead-letters-replay"
    assert replay_settings(settings, "copy").group_id == "g-dead-letters-replay-to-copy"


# ------------------------------------------------------------------------------------- progress


def after(
    chosen: Collection[int], offsets: Collection[int], progress: ReplayProgress | None = None
) -> ReplayProgress:
    """Read ``offsets``, replaying those of ``chosen`` that were not replayed before."""
    progress = progress or ReplayProgress(min(offsets))
    for offset in offsets:
        if progress.was_done(offset) or offset in chosen:
            progress.done(offset)
        else:
            progress.left(offset)
    return progress


def test_without_gaps_there_is_only_a_position() -> None:
    assert after(range(10), range(10)).commit() == Commit(10)
    assert after((), range(10)).commit() == Commit(0)


def test_offsets_without_records_belong_to_what_is_beside_them() -> None:
    """Markers of transactions take offsets, and are no dead letters that were left behind."""
    assert after({0, 3, 9}, [0, 3, 9]).commit() == Commit(10)


def test_what_was_left_behind_is_between_ranges() -> None:
    commit = after({0, 1, 4, 5, 8}, range(10)).commit()
    assert commit == Commit(2, "1:2+2,2+1")
    again = resume(commit, 0)
    assert again.begin == 2
    assert [offset for offset in range(2, 12) if again.was_done(offset)] == [4, 5, 8]


def test_the_position_moves_over_what_was_done_ahead_of_it() -> None:
    commit = after({4, 5, 8}, range(10)).commit()
    commit = after({0, 1, 2, 3}, range(10), resume(commit, 0)).commit()
    assert commit == Commit(6, "1:2+1")
    assert after(range(10), range(6, 10), resume(commit, 0)).commit() == Commit(10)


def test_a_reading_that_stops_half_way_keeps_what_is_beyond() -> None:
    commit = after({4, 5, 8}, range(10)).commit()
    progress = resume(commit, 0)
    assert not progress.was_done(0)
    progress.done(0)
    assert progress.commit() == Commit(1, "1:3+2,2+1")


def test_records_that_the_topic_no_longer_keeps_are_behind_the_position() -> None:
    commit = after({4, 5, 8}, range(10)).commit()
    assert after(range(10), range(5, 10), resume(commit, 5)).commit() == Commit(10)
    assert resume(Commit(3), 7).begin == 7


def test_a_thousand_gaps_fit_and_more_are_refused() -> None:
    commit = after(range(1, 2_000, 2), range(2_000)).commit()
    assert len(commit.metadata) <= MAX_METADATA_BYTES
    again = resume(commit, 0)
    assert {offset for offset in range(2_000) if again.was_done(offset)} == set(range(1, 2_000, 2))
    with pytest.raises(TransportError, match=r"separate ranges.*without a filter"):
        after(range(1, 4_000, 2), range(4_000)).commit()


@pytest.mark.parametrize("note", ["rubbish", "1:x", "1:3+0", "1:1+1,", "1:1+1 2+2", "2:1+1", "1:+", "1:-1+1"])
def test_a_note_that_can_not_be_read_stops_the_replay(note: str) -> None:
    with pytest.raises(TransportError, match="from-beginning"):
        resume(Commit(3, note), 0)


def test_what_is_read_once_more_stays_done() -> None:
    commit = after({0, 1, 4}, range(6)).commit()
    once_more = rewound(commit, 0)
    assert once_more.begin == 0
    assert [offset for offset in range(6) if once_more.was_done(offset)] == [0, 1, 4]
    assert rewound(commit, 0).commit() == Commit(2, "1:2+1")
    assert rewound(Commit(3), 5).begin == 5
    assert rewound(None, 5).begin == 5
