"""A connection whose transport is closed already is a broken connection, whichever event loop says so.

The client library expects an OSError of such a write, which it turns into an error of its own and gets over.
uvloop raises a RuntimeError, "the handler is closed", which nothing expects: it would come out of a poll, and
end the guard because a broker has hung up.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any

from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.errors import KafkaConnectionError

_WRITING = ("send", "_send_sasl_token")
_Write = Callable[..., Awaitable[Any]]


def notice_closed_transports() -> None:
    """For all connections of this process. Doing it again changes nothing."""
    for name in _WRITING:
        write: _Write = getattr(AIOKafkaConnection, name)
        if not hasattr(write, "__wrapped__"):
            setattr(AIOKafkaConnection, name, _noticing(write))


def _noticing(write: _Write) -> _Write:
    @functools.wraps(write)
    def noticing(connection: AIOKafkaConnection, *args: Any, **kwargs: Any) -> Awaitable[Any]:
        try:
            return write(connection, *args, **kwargs)
        except RuntimeError as error:
            # As the library does after an OSError.
            connection.close(reason=CloseReason.CONNECTION_BROKEN)
            raise KafkaConnectionError(
                f"Connection at {connection.host}:{connection.port} broken: {error}"
            ) from error

    return noticing
