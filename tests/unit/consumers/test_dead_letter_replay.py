"""What is written back, and where to."""

from __future__ import annotations

import pytest

from consumers.dead_letter_replay import (
    DeadLetter,
    Destinations,
    Origin,
    Unusable,
    read_letter,
    replay_settings,
    written_back,
)
from consumers.dead_letters import REPLAYED, dead_letter
from consumers.settings import KafkaSettings
from consumers.transport import Headers, OutRecord, Partition, Record
from guardrail.errors import ProtocolError

KNOWN = frozenset({"in", "out", "__consumer_offsets"})


def refused(headers: Headers = (), topic: str = "in") -> DeadLetter:
    record = Record(Partition(topic, 3), 42, b"\xfe", b"\x00value", headers, 1_000)
    out = dead_letter("dead", record, ProtocolError("sequence_gap", "7 after 3"), 1_000_000)
    return read_letter(Record(Partition("dead", 0), 5, out.key, out.value, out.headers, 2_000))


def test_it_goes_back_byte_for_byte_with_a_mark() -> None:
    own = (("traceparent", b"00-ab"), ("twice", b"\xff"), ("twice", b""), ("null", None))
    assert written_back(refused(own), "in") == OutRecord(
        "in", b"\xfe", b"\x00value", (*own, (REPLAYED, b"1"))
    )


def test_the_mark_survives_the_next_refusal_and_counts_on() -> None:
    headers: Headers = (("a", b"b"),)
    for count in range(1, 12):
        letter = refused(headers)
        assert letter.replays == count - 1
        headers = written_back(letter, "in").headers
        assert headers == (("a", b"b"), (REPLAYED, str(count).encode()))


def test_a_value_that_was_left_out_can_not_be_written_back() -> None:
    record = Record(Partition("in", 3), 42, b"k", b"x" * 9_000)
    out = dead_letter("dead", record, ProtocolError("r", "m"), 10_000)
    with pytest.raises(Unusable, match="9000 bytes"):
        written_back(read_letter(Record(Partition("dead", 0), 5, out.key, out.value, out.headers)), "in")


@pytest.mark.parametrize(
    ("topic", "match"),
    [("out", "only the guard"), ("__consumer_offsets", "Kafka itself"), ("gone", "no topic gone")],
)
def test_forged_and_vanished_origins_are_no_destinations(topic: str, match: str) -> None:
    where = Destinations(None, frozenset({"out"}), KNOWN)
    with pytest.raises(Unusable, match=match):
        where.of(refused(topic=topic))
    assert where.of(refused()) == "in"
    assert Destinations("in", frozenset({"out"}), KNOWN).of(refused(topic=topic)) == "in"


def test_without_an_origin_a_destination_has_to_be_named() -> None:
    letter = DeadLetter(Record(Partition("dead", 0), 5, b"k", b"v"), ())
    with pytest.raises(Unusable, match="--to"):
        Destinations(None, frozenset(), KNOWN).of(letter)
    assert Destinations("in", frozenset(), KNOWN).of(letter) == "in"


def test_progress_is_kept_apart_for_each_group_and_destination() -> None:
    settings = KafkaSettings(group_id="g")
    assert replay_settings(settings, None).group_id == "g-dead-letters-replay"
    assert replay_settings(settings, "copy").group_id == "g-dead-letters-replay-to-copy"


def test_origin_says_where_it_stood() -> None:
    assert refused().origin == Origin("in", 3, 42, 1_000)
