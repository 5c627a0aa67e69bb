"""What every verdict goes through on its way into a response, whoever gave it.

Judges read claims as prose; here what they say is led back to the raw text. What they can't see, or must not
be trusted to see, is found out here: text that displays otherwise than it reads, links that are in no source,
citations of what is not there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from guardrail.claims.links import any_absent
from guardrail.claims.model import Claim
from guardrail.events import Finding, Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.verdicts import Judgement, spans_within

# Characters to look through, once for each link, that take less than handing them to a thread: 0.1 ms.
_AT_ONCE: Final = 100_000
_MISMATCH: Final = "The claim displays otherwise than it reads."


async def claims_with_absent_links(claims: Mapping[str, Claim], evidence: EvidenceIndex) -> frozenset[str]:
    """The ids of the claims that have a link or address which is in no context."""
    linking = {claim_id: claim.prose.links for claim_id, claim in claims.items() if claim.prose.links}
    if not linking:
        return frozenset()
    contexts = evidence.contexts

    def absent() -> frozenset[str]:
        return frozenset(claim_id for claim_id, links in linking.items() if any_absent(links, contexts))

    work = sum(len(context.text) for context in contexts) * sum(map(len, linking.values()))
    return absent() if work <= _AT_ONCE else await asyncio.to_thread(absent)


def take_in(judgement: Judgement, claim: Claim, absent_links: Collection[str] = ()) -> Judgement:
    """The judgement as it counts: spans in the raw claim, with the findings that no judge has to make.

    A claim that displays otherwise than it reads is never SUPPORTED. ``absent_links`` are the ids of claims
    with a link that is in no source. That leaves the verdict as it is, and so do citations that name no
    context.
    """
    findings = list(judgement.findings)
    prose = claim.prose
    if prose.deceptive:
        findings.append(Finding.DISPLAY_MISMATCH)
        if judgement.verdict is Verdict.SUPPORTED:
            judgement = replace(
                judgement,
                verdict=Verdict.UNSUPPORTED,
                confidence=1.0,
                support=0.0,
                reasoning=_MISMATCH,
                unsupported_spans=(),
            )
    if judgement.claim_id in absent_links:
        findings.append(Finding.LINK_ABSENT)
    if any(not citation.context_ids for citation in claim.citations):
        findings.append(Finding.CITATION_ABSENT)
    if len(findings) > len(judgement.findings):
        judgement = replace(judgement, findings=tuple(dict.fromkeys(findings)))
    if judgement.unsupported_spans and prose.text != claim.text:
        raw = [piece for span in judgement.unsupported_spans for piece in prose.raw_spans(claim.text, *span)]
        judgement = replace(judgement, unsupported_spans=spans_within(claim.text, raw))
    return judgement
