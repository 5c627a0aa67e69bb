"""Every error this package raises on purpose.

    GuardrailError
    ├── ConfigError           the operator: fix the setting that the message names
    ├── InputError            the producer: one event or line is bad; dead-letter it and go on
    │   ├── DecodeError           the bytes are not a known event
    │   └── ProtocolError         a well-formed event that does not fit its response
    ├── JudgeError            nobody: the claim becomes UNVERIFIED and the fail policy decides
    │   ├── JudgeUnavailable      worth asking again (timeout, rate limit, connection)
    │   └── JudgeReplyError       the reply could not be used
    │       └── JudgeRefused          the model won't judge these claims: rules on judge_refused decide
    ├── AnswerBlocked         the chat service: show its message in place of everything shown so far
    ├── GuardTimeout          the chat service: the rest of the answer was not verified in time
    ├── StateError            the operator: stored sessions were written by a newer version
    ├── UnreadableSession     nobody: one stored session makes no sense; its response ends blocked
    ├── CaseStoreError        the operator: the store of flagged cases can't be used, the message says why
    └── TransportError        the process: stop, say so, be restarted
        ├── PartitionLost         nobody: another member of the group reads on from the last position
        ├── StepFailed            the consumer: restore the partition from what the broker has
        └── TransportUnavailable  broker not reachable, topic missing, access denied

Each branch says who has to act.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class GuardrailError(Exception):
    """Root of all errors that guardrail and consumers raise on purpose."""


class ConfigError(GuardrailError):
    """A setting is wrong. The message names the path, the value and the remedy."""


class InputError(GuardrailError):
    """One input is bad; the others are unaffected. ``reason`` is a stable snake_case code."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class DecodeError(InputError):
    """The bytes are not an event of a known type and schema version."""


class NotAllowed(InputError):
    """A route or tenant that whoever asks may not name."""


class ProtocolError(InputError):
    """A well-formed event that does not fit the state of its response."""


class JudgeError(GuardrailError):
    """The judge could not answer. Never raised to a caller of the engine: claims become UNVERIFIED."""


class JudgeUnavailable(JudgeError):
    """The judge did not answer: timeout, rate limit, connection, server error."""


class JudgeReplyError(JudgeError):
    """The judge's reply could not be used."""


class JudgeRefused(JudgeReplyError):
    """The model, or its provider's filter, refuses to judge these claims, and would again."""


class AnswerBlocked(GuardrailError):
    """The guard blocked an answer. ``message`` is the policy's message, to show in place of the answer.

    ``released_chars`` code points of it had been released; ``score`` is None if there is none.
    """

    def __init__(
        self, response_id: str, message: str, rule: str, released_chars: int, score: float | None
    ) -> None:
        super().__init__(f"response {response_id!r} was blocked ({rule})")
        self.response_id = response_id
        self.message = message
        self.rule = rule
        self.released_chars = released_chars
        self.score = score


class GuardTimeout(GuardrailError):
    """The guard didn't answer within the caller's timeout. Everything yielded until then is verified."""


class StateError(GuardrailError):
    """This version can't read the stored sessions. The message says which version can."""


class UnreadableSession(GuardrailError):
    """The stored state of one session makes no sense. The others are unaffected."""


class CaseStoreError(GuardrailError):
    """The store of flagged cases can't be reached, or refuses. The message holds no text of a case."""


class TransportError(GuardrailError):
    """Reading or writing failed in a way that retrying the call does not fix."""


class PartitionLost(TransportError):
    """The group has given the partition of a position to be committed to another member.

    That member reads again what was not committed: drop the partition's work and go on with the others.
    """


class StepFailed(TransportError):
    """A transaction failed, or its outcome is unknown. Recover the partition from the broker."""


class TransportUnavailable(TransportError):
    """The broker is unreachable, a topic is missing or access is denied. The message has the remedy."""


def install_hint(extra: str) -> str:
    """How to get what an extra needs. It works in a checkout: the package is on no index yet."""
    return f"in a checkout of streaming-guardrail, run: pip install '.[{extra}]'"


def said_wrong(details: Mapping[str, Any]) -> str:
    """What one error of a failed validation says, without what pydantic puts before words of our own."""
    told: str = details["msg"]
    return told.removeprefix("Value error, ")


def only_cause(error: BaseException) -> BaseException:
    """The error in a group of one, which a TaskGroup makes of every failure; else ``error`` itself."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
