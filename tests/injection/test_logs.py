"""What the judge logs and raises holds no text of anybody, no marker and no key."""

from __future__ import annotations

import io
import logging
from typing import Final

import pytest
import structlog

from guardrail import Guard
from guardrail.config import LoggingSettings
from guardrail.logs import configure_logging
from tests.injection.judging import KEY, judging, outcome, request
from tests.injection.sent import marker_of
from tests.support.llm_server import Behaviour, Cut, LlmServer, Reply, Status, StreamError, member, verdicts

SECRETS: Final = {
    "context": "Zwetschge costs $50 a month.",
    "question": "What does Quitte cost?",
    "answer": "Mirabelle costs $50 a month.",
    "reply": "Holunder says so.",
    "error": "Schlehe is too long",
    "header": "hdr-secret-of-the-test",
}
ERROR: Final = {"message": f"{SECRETS['error']}: {SECRETS['context']}", "code": "bad", "param": None}
REPLIES: Final[dict[str, Behaviour]] = {
    "a good reply": Reply(verdicts(member("c1", reasoning=SECRETS["reply"]))),
    "junk": Reply(SECRETS["reply"] + SECRETS["context"]),
    "junk in JSON": Reply(verdicts(member("c1", SECRETS["reply"], reasoning=SECRETS["context"]))),
    "a refusal": Reply(None, refusal=SECRETS["reply"]),
    "a content filter": Reply(SECRETS["reply"], finish_reason="content_filter"),
    "no choices": Reply(SECRETS["reply"], choices=[]),
    "a bad request": Status(400, dict(ERROR)),
    "a wrong key": Status(401, {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}),
    "a failure": Status(500, dict(ERROR), raw=SECRETS["context"]),
    "no completion": Status(200, raw='{"said": "' + SECRETS["context"] + '"}'),
    "no JSON": Status(200, raw=SECRETS["context"]),
    "a cut": Cut(chunks=2, reply=Reply(SECRETS["reply"] * 3)),
    "an error in the stream": StreamError(error=ERROR),
}


async def converse(reply: str) -> tuple[str, str]:
    """Drive the judge alone and through a guard; the marker of the first, and what was raised and said."""
    async with (
        LlmServer(REPLIES[reply]) as server,
        judging(server, extra_headers={"x-gateway-key": SECRETS["header"]}) as judge,
    ):
        asked = request(SECRETS["answer"], contexts=(SECRETS["context"],), question=SECRETS["question"])
        result = await outcome(judge, asked)
        async with Guard(judge) as guard:
            await guard.check(SECRETS["question"], [SECRETS["context"]], SECRETS["answer"])
    assert server.calls[0].headers["x-gateway-key"] == SECRETS["header"]
    assert SECRETS["context"] in server.calls[0].user
    return marker_of(server.calls[0]), f"{result.error} {result.error!r}"


def check_silence(logged: str, marker: str) -> None:
    for secret in (*SECRETS.values(), KEY, marker):
        assert secret not in logged
        assert secret.split()[0] not in logged


@pytest.mark.parametrize("reply", REPLIES)
async def test_our_loggers_and_errors_tell_nothing(reply: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="guardrail")
    with structlog.testing.capture_logs() as events:
        marker, raised = await converse(reply)
    records = [record for record in caplog.records if record.name.startswith("guardrail")]
    told = [f"{record.getMessage()} {record.args!r} {record.exc_info!r}" for record in records]
    check_silence("\n".join([*told, repr(events), raised]), marker)


@pytest.mark.parametrize("level", ["info", "debug"])
@pytest.mark.parametrize("reply", ["a good reply", "a bad request", "an error in the stream"])
async def test_the_log_of_a_process_tells_nothing_at_any_level(reply: str, level: str) -> None:
    """Also what the API client and its HTTP library would say: texts are not theirs to log."""
    stream = io.StringIO()
    configure_logging(LoggingSettings.model_validate({"level": level, "format": "json"}), stream)
    logging.getLogger("guardrail.test").warning("the log is written")
    marker, _ = await converse(reply)
    assert "the log is written" in stream.getvalue()
    check_silence(stream.getvalue(), marker)
