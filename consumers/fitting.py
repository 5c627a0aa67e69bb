"""Output events as values that fit into a record.

One answer must not stop the guard: a case with megabytes of contexts would be refused by the broker, now and
after every restart. What is left out of such an event is named in it, and is on the topics all the same: the
contexts in the input, the evidence in the verdicts of the single claims.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from guardrail.events import ClaimVerdict, FlaggedCase, OutputEvent, ResponseVerdict

_KEPT_CHARS: Final = 10_000


def value_within(event: OutputEvent, max_bytes: int) -> tuple[bytes, tuple[str, ...]]:
    """The event as JSON of at most ``max_bytes``, and the names of the fields left out to get there."""
    value = event.to_json()
    if len(value) <= max_bytes:
        return value, ()
    omitted: tuple[str, ...] = ()
    for name, changes in _smaller(event):
        omitted = (*omitted, name)
        event = event.model_copy(update={**changes, "omitted": omitted})
        value = event.to_json()
        if len(value) <= max_bytes:
            break
    return value, omitted


def _smaller(event: OutputEvent) -> Iterator[tuple[str, dict[str, Any]]]:
    """What may be left out, what is easiest to find elsewhere first."""
    if isinstance(event, FlaggedCase):
        yield "contexts", {"contexts": tuple(c.model_copy(update={"text": ""}) for c in event.contexts)}
    if isinstance(event, FlaggedCase | ResponseVerdict):
        yield "claims.evidence", {"claims": tuple(_bare(claim) for claim in event.claims)}
        yield "claims", {"claims": ()}
    if isinstance(event, ResponseVerdict):
        yield "hallucinated_claims", {"hallucinated_claims": ()}
    if isinstance(event, ClaimVerdict):
        yield "evidence", {"evidence": ()}
    if isinstance(event, FlaggedCase):
        yield "metadata", {"metadata": {}, "contexts": ()}
        texts = {name: getattr(event, name)[:_KEPT_CHARS] for name in ("question", "answer", "delivered")}
        yield "rest of the texts", texts


def _bare(claim: ClaimVerdict) -> ClaimVerdict:
    return claim.model_copy(update={"evidence": (), "omitted": ("evidence",)})
