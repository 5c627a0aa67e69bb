"""One guard as a process of a chaos run: the real consumer and transport, the harness's judge and producer.

    python -m tests.chaos.guard_process '{"kafka": {…}, "pace": {…}, "bug": ""}'

Takes orders as JSON lines on its standard input: ``{"trouble": "hang"}``, ``{"refused_sends": 1}``,
``{"part": "before_commit", "signal": "SIGKILL"}``. Ends when its harness does.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any, Final

import uvloop

from consumers.guarantee import GuardOptions
from consumers.guard import GuardConsumer
from consumers.kafka import KafkaTransport
from consumers.settings import KafkaSettings
from guardrail.config import LoggingSettings
from guardrail.errors import GuardrailError
from guardrail.limits import Limits
from guardrail.logs import configure_logging
from tests.chaos.judge import ScriptedJudge
from tests.chaos.policies import router
from tests.chaos.producers import PRODUCERS, DoomedProducer, Orders
from tests.support.constants import made

FAILED: Final = 70
"""Exit status after a TransportError: whoever supervises the guard starts it again."""
DRAIN_MS: Final = 2_000
REVOKE_MS: Final = 500


async def guard(settings: KafkaSettings, pace: Mapping[str, Any], bug: str) -> int:
    """Guard until SIGTERM. The exit status."""
    judge, orders, stop = ScriptedJudge(), Orders(), asyncio.Event()
    DoomedProducer.orders = orders
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    listener = asyncio.create_task(_take_orders(judge, orders))
    consumer = GuardConsumer(
        KafkaTransport(settings, producer_class=PRODUCERS[bug]),
        judge,
        router(),
        GuardOptions(
            # Wide enough that no response is turned away for want of room: that is another test's subject.
            limits=Limits(max_concurrent_judgements=2_000),
            topics=settings.topics,
            delivery_guarantee=settings.delivery_guarantee,
            **pace,
            revoke_timeout_ms=REVOKE_MS,
            max_record_bytes=settings.max_request_bytes,
            drain_timeout_ms=DRAIN_MS,
        ),
    )
    try:
        await consumer.run(stop)
    except GuardrailError as error:
        sys.stderr.write(f"ended: {type(error).__name__}: {error}\n")
        return FAILED
    finally:
        listener.cancel()
    return 0


async def _take_orders(judge: ScriptedJudge, orders: Orders) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while line := await reader.readline():
        order: dict[str, Any] = json.loads(line)
        judge.trouble = order.get("trouble", judge.trouble)
        orders.refused_sends += order.get("refused_sends", 0)
        if "part" in order:
            orders.signal = signal.Signals[order["signal"]]
            orders.part = order["part"]
    os._exit(FAILED)  # the harness is gone


def main() -> int:
    """Command line."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # Linux, PR_SET_PDEATHSIG: also when frozen
    given = json.loads(sys.argv[1])
    configure_logging(LoggingSettings(level="info", format="json"))
    return uvloop.run(guard(made(KafkaSettings, **given["kafka"]), given["pace"], given["bug"]))


if __name__ == "__main__":
    sys.exit(main())
