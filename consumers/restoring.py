"""Puts stored sessions back into the engine."""

from __future__ import annotations

import asyncio
import time
from typing import Final

import structlog

from consumers.session_store import SessionStore, StoredSession
from consumers.transport import Partition, Restored
from guardrail.engine import Engine
from guardrail.errors import StateError

UNREADABLE: Final = "session_state_unreadable"
SLICE: Final = 50

log = structlog.get_logger(__name__)


async def restore(engine: Engine, partition: Partition, store: SessionStore, restored: Restored) -> int:
    """Go on with the stored sessions of a partition; returns how many were in flight.

    One whose start can't be read ends blocked, as the engine ends one whose progress can't be; the others
    go on. Raises StateError when a newer version of the
    program stored them. Other tasks run in between.
    """
    if restored.commit is None:
        if restored.state:
            # Somebody has deleted the group's position. Its sessions are of records that are read again.
            log.warning("guard.sessions_without_position", partition=f"{partition.topic}-{partition.index}")
            store.forget(restored.state)
        return 0
    sessions, finished = store.load(restored.state)
    now = time.time()
    for response in finished:
        age_s = max(0.0, now - response.at_s)
        engine.remember(partition, response.response_id, response.digest, response.next_seq, age_s)
    for number, session in enumerate(sessions, 1):
        if not _resumed(engine, partition, session):
            log.error("guard.session_unreadable", response_id=session.response_id, born=session.born)
            engine.reject(session.response_id, UNREADABLE, lane=partition, born=session.born)
        if number % SLICE == 0:
            await asyncio.sleep(0)
    return len(sessions)


def _resumed(engine: Engine, partition: Partition, session: StoredSession) -> bool:
    if session.head is None:
        return False
    try:
        engine.restore(
            session.response_id,
            session.head,
            session.progress,
            session.policy,
            lane=partition,
            born=session.born,
        )
    except StateError:
        raise
    except Exception as error:  # noqa: BLE001 - one session that we fail on must not stop all others for ever
        # No traceback: it may quote the session.
        log.error("guard.restore_failed", error=type(error).__name__)  # noqa: TRY400
        engine.discard([session.response_id])
        return False
    return True
