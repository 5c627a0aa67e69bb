"""What a dead letter says of the record that it is."""

from __future__ import annotations

import pytest

from consumers.dead_letters import PREFIX, dead_letter
from consumers.transport import Partition, Record
from guardrail.errors import DecodeError, InputError, ProtocolError

HEADERS = (
    ("traceparent", b"00-ab"),
    ("twice", b"\xff"),
    ("twice", b""),
    ("null", None),
    (PREFIX + "reason", b"forged"),
)
RECORD = Record(Partition("in", 3), 42, b"\xfe", b"{\x00", HEADERS, 1_700_000_000_000)


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
