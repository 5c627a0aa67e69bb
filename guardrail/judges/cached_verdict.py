"""A verdict as the caches keep it: of a claim and contexts, free of the ids of any one response.

Evidence is kept as the number of its context and a span, never as text: on reading it is taken from the
contexts at hand, and what does not fit there makes the entry unusable.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Final

from guardrail.claims.model import Claim
from guardrail.events import ClaimPart, Context, Evidence, Finding, Verdict
from guardrail.judges.base import Judgement, JudgeReply, JudgeRequest, reconcile

_VERSION: Final = 2
_MAX_BYTES: Final = 8_192


def request_digest(request: JudgeRequest, fingerprint: str) -> bytes:
    """What all claims of a request have in common: tenant, question, contexts, and who judges how.

    A pass over all the contexts: off the event loop where they are long. The ids of contexts don't count,
    their order does. Tenants never share verdicts.
    """
    digest = hashlib.blake2b(digest_size=32)
    for part in (str(_VERSION), fingerprint, request.tenant or "", request.question):
        _feed(digest, part)
    for context in request.evidence.contexts:
        _feed(digest, context.text)
        _feed(digest, context.source or "")
    return digest.digest()


def claim_key(request: bytes, claim: Claim) -> bytes:
    """The key of one claim's verdict; 32 bytes from which no text can be read."""
    digest = hashlib.blake2b(request, digest_size=32)
    _feed(digest, claim.prose.text)
    _feed(digest, claim.lead_in)
    _feed(digest, claim.severity.value)
    for citation in claim.citations:  # cited contexts are read first
        _feed(digest, " ".join(citation.context_ids))
    return digest.digest()


def _feed(digest: hashlib.blake2b, text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    digest.update(len(data).to_bytes(8, "big"))
    digest.update(data)


def pack(judgement: Judgement, contexts: Sequence[Context]) -> bytes | None:
    """The judgement as bytes; None for what must not be kept.

    That is UNVERIFIED, or degraded, or has evidence that is in no context, or is very long.
    """
    if judgement.verdict is Verdict.UNVERIFIED or judgement.degraded_from:
        return None
    numbers = {context.id: number for number, context in enumerate(contexts)}
    evidence = []
    for item in judgement.evidence:
        number = numbers.get(item.context_id)
        if number is None or contexts[number].text[slice(*item.span)] != item.quote:
            return None
        evidence.append([number, *item.span])
    if any(context_id not in numbers for context_id in judgement.conflicting_contexts):
        return None
    kept = {
        "v": _VERSION,
        "verdict": judgement.verdict.value,
        "confidence": judgement.confidence,
        "support": judgement.support,
        "judge": judgement.judge,
        "evidence": evidence,
        "conflicting": [numbers[context_id] for context_id in judgement.conflicting_contexts],
        "reasoning": judgement.reasoning,
        "parts": [[part.text, part.verdict.value] for part in judgement.parts],
        "unsupported": judgement.unsupported_spans,
        "contradiction": judgement.contradiction,
        "findings": [finding.value for finding in judgement.findings],
    }
    try:
        data = json.dumps(kept, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (ValueError, TypeError):
        return None
    return data if len(data) <= _MAX_BYTES else None


def unpack(data: bytes, claim_id: str, claim: Claim, contexts: Sequence[Context]) -> Judgement | None:
    """The judgement for ``claim_id``, None where the bytes are not what ``pack`` makes for this claim and
    these contexts."""
    if len(data) > _MAX_BYTES:
        return None
    try:
        kept = json.loads(data)
        judgement = _read(kept, claim_id, contexts)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return None
    if judgement.verdict is Verdict.UNVERIFIED:
        return None
    sound = reconcile({claim_id: claim}, JudgeReply((judgement,)), judgement.judge)[claim_id]
    return sound if sound == judgement else None


def _read(kept: dict[str, Any], claim_id: str, contexts: Sequence[Context]) -> Judgement:
    if kept["v"] != _VERSION:
        raise ValueError("another version")
    evidence = []
    for number, start, end in kept["evidence"]:
        context = _context(contexts, number)
        if not (_whole(start) and _whole(end) and 0 <= start < end <= len(context.text)):
            raise ValueError("a span outside of its context")
        quote = context.text[start:end]
        evidence.append(Evidence(context_id=context.id, quote=quote, span=(start, end)))
    return Judgement(
        claim_id,
        Verdict(kept["verdict"]),
        _number(kept["confidence"]),
        _number(kept["support"]),
        _text(kept["judge"]),
        tuple(evidence),
        tuple(_context(contexts, number).id for number in kept["conflicting"]),
        _text(kept["reasoning"]),
        tuple(ClaimPart(text=_text(text), verdict=Verdict(verdict)) for text, verdict in kept["parts"]),
        attempts=0,
        # Entries of earlier releases don't have them.
        unsupported_spans=tuple((start, end) for start, end in kept.get("unsupported", ())),
        contradiction=None if (given := kept.get("contradiction")) is None else _number(given),
        findings=tuple(Finding(name) for name in kept.get("findings", ())),
    )


def _context(contexts: Sequence[Context], number: object) -> Context:
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise ValueError("no number of a context")
    return contexts[number]


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("not a number")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value
