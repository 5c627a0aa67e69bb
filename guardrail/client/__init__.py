"""What a chat service imports: its answers go to the guard through Kafka, and come back checked.

::

    async with GuardClient(bootstrap_servers="localhost:9092") as client:
        try:
            async for piece in client.guard(question, contexts, token_stream):
                show(piece.text)
        except AnswerBlocked as blocked:
            show_instead(blocked.message)

One client serves a process, on one event loop: one producer and one consumer, any number of answers at once.

**How a reply finds its process.** The key of every delivery is its response's id, so the id determines the
partition of ``rag.deliveries``. A client reads a few partitions only, assigned by hand and without a consumer
group, and makes up ids that hash to them, by the partitioner that the guard writes with (Kafka's default,
murmur2). What other processes are told on the same partitions is dropped by its key, unread. For an id that
the caller gives, the client reads the partition of that id as well. The alternatives are worse: a topic for
each process would have to be created, secured and cleaned up for every pod; a consumer group would hand a
partition, and the answers in flight on it, to another process with every rebalance; and reading all
partitions would grow with the traffic of all processes.

**What holds text back.** Characters that were taken from the token stream and not yet decided and read by the
caller are bounded for each answer; undecided ones are bounded for all answers together. At a bound the client
takes no more tokens.

**Whose word counts.** Every delivery names the group of guards that wrote it. A client that is told a
``group`` obeys that one alone; without, answers end in a ConfigError once two groups write about the same
one.

It needs aiokafka and pydantic, and loads neither a judge nor anything of the command line.
"""

from __future__ import annotations

from guardrail.client.answers import Piece, TimeoutPolicy
from guardrail.client.client import Checked, GuardClient, GuardedAnswer
from guardrail.client.transport import ClientTransport, DeliveryRecord, OutgoingRecord
from guardrail.errors import AnswerBlocked, GuardTimeout

__all__ = [
    "AnswerBlocked",
    "Checked",
    "ClientTransport",
    "DeliveryRecord",
    "GuardClient",
    "GuardTimeout",
    "GuardedAnswer",
    "OutgoingRecord",
    "Piece",
    "TimeoutPolicy",
]
