"""Logs: one door for structlog and the standard library, no texts, no control characters."""

from __future__ import annotations

import io
import json
import logging
import warnings
from typing import Any, get_args

import pytest
import structlog

from guardrail.config import LoggingSettings
from guardrail.config.settings import LogLevel
from guardrail.events import Response
from guardrail.logs import TEXT_KEYS, configure_logging
from tests.support.aiokafka_secrets import send_secrets

OURS: Any = structlog.stdlib.get_logger("guardrail.test")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def logging_to(stream: io.StringIO, **settings: Any) -> io.StringIO:
    configure_logging(LoggingSettings(**settings), stream)
    return stream


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_structlog_and_the_standard_library_write_the_same_json() -> None:
    stream = logging_to(io.StringIO())
    OURS.info("ready", partitions=3)
    logging.getLogger("theirs").warning("slow: %s ms", 12)
    first, second = lines(stream)
    assert (first["event"], first["level"], first["logger"], first["partitions"]) == (
        "ready",
        "info",
        "guardrail.test",
        3,
    )
    assert (second["event"], second["level"], second["logger"]) == ("slow: 12 ms", "warning", "theirs")
    assert first["timestamp"].endswith("Z")


def test_auto_is_console_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = logging_to(_Terminal())
    OURS.info("ready", partitions=3)
    assert "ready" in stream.getvalue()
    assert "\x1b[" in stream.getvalue()
    with pytest.raises(ValueError, match="Expecting"):
        json.loads(stream.getvalue())


def test_no_color_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    stream = logging_to(_Terminal())
    OURS.info("ready")
    assert "\x1b" not in stream.getvalue()


@pytest.mark.parametrize(("level", "ours"), [("debug", ["step", "done"]), ("info", ["done"]), ("error", [])])
def test_level_holds_for_us_and_libraries_tell_of_trouble_only(level: Any, ours: list[str]) -> None:
    stream = logging_to(io.StringIO(), level=level)
    for name in ("guardrail.session", "consumers.guard"):
        structlog.stdlib.get_logger(name).debug("step")
        structlog.stdlib.get_logger(name).info("done")
    for name in ("aiokafka.consumer", "one.that.nobody.has.heard.of"):
        logging.getLogger(name).debug("Sending %s", "SECRET")
        logging.getLogger(name).info("Updating subscribed topics")
        logging.getLogger(name).error("Unable to connect")
    assert [line["event"] for line in lines(stream)] == [
        *ours,
        *ours,
        "Unable to connect",
        "Unable to connect",
    ]


@pytest.mark.parametrize("level", get_args(LogLevel))
async def test_neither_password_nor_record_of_kafka_is_in_the_log_at_any_level(level: LogLevel) -> None:
    stream = logging_to(io.StringIO(), level=level, format="json")
    await send_secrets()
    assert "SECRET" not in stream.getvalue()


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_texts_of_responses_are_withheld_unless_asked(log_format: Any) -> None:
    for wanted in (False, True):
        stream = logging_to(io.StringIO(), format=log_format, log_texts=wanted)
        for key in TEXT_KEYS:
            OURS.info("judged", response_id="r1", **{key: "Mrs Smith takes 5 mg"})
            OURS.info("judged", **{key: ["Mrs Smith", "takes"]})
        assert ("Smith" in stream.getvalue()) is wanted
        assert "r1" in stream.getvalue()


def test_what_validation_errors_quote_is_withheld() -> None:
    stream = logging_to(io.StringIO())
    log = OURS
    answer = " ".join(["Mrs", "Smith", "takes", "5 mg"])  # not as a literal: tracebacks show lines of source
    try:
        try:
            Response.model_validate({"response_id": "r", "answer": [answer]})
        except ValueError as error:
            raise RuntimeError("could not go on") from error
    except RuntimeError:
        log.exception("failed")
        logging.getLogger("theirs").exception("failed too")
    assert "Smith" not in stream.getvalue()
    for line in lines(stream):
        assert "answer: string_type" in line["exception"]
        assert "RuntimeError: could not go on" in line["exception"]
        assert "test_logs.py" in line["exception"]


def test_groups_of_exceptions_are_told_member_by_member() -> None:
    stream = logging_to(io.StringIO())
    group = ExceptionGroup("two", [ValueError("first"), KeyError("second")])
    OURS.error("failed", exc_info=group)
    told = lines(stream)[0]["exception"]
    assert "ValueError: first" in told
    assert "KeyError: 'second'" in told


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_control_characters_never_reach_the_stream(log_format: Any) -> None:
    stream = logging_to(io.StringIO(), format=log_format)
    hostile = "r1\x1b[2J\r\nlevel=error forged\u202e\ud800"
    OURS.info("read", response_id=hostile, more=[hostile], **{"key\x1b": 1})
    logging.getLogger("theirs").warning("odd id %s", hostile)
    written = stream.getvalue()
    written.encode()
    assert "\x1b" not in written
    assert "\r" not in written
    assert "\u202e" not in written
    assert len(written.splitlines()) == 2


def test_the_last_configuration_holds() -> None:
    first, second = logging_to(io.StringIO()), logging_to(io.StringIO())
    logging.getLogger("theirs").warning("once")
    assert first.getvalue() == ""
    assert len(lines(second)) == 1


def test_warnings_are_logged() -> None:
    stream = logging_to(io.StringIO())
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("old option", UserWarning, stacklevel=1)
    assert "old option" in stream.getvalue()
