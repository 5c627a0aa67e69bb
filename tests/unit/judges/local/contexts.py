"""What the parts of the local judge are tested on."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Encoding

from guardrail.claims.model import Claim
from guardrail.events import Context, Severity
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.local.search import Candidates, ClaimView, Rarity, find_candidates, view_of
from guardrail.judges.model import Reading, Verifier, load_verifier

PRICING = """Northwind Cloud pricing. Basic costs $29 per month and includes 5 users. Pro costs $49 per
month and includes 20 users. Enterprise pricing is available on request. Annual billing saves 20%.
All plans have a 14-day free trial; no credit card is required."""
FILLER = " ".join(f"Line {n} says nothing about what is asked here." for n in range(30))
"""270 words, none of them of any claim."""


def index_of(*texts: str) -> EvidenceIndex:
    """The contexts ``d0``, ``d1``, …, ready for a judge."""
    return EvidenceIndex([Context(id=f"d{n}", text=text) for n, text in enumerate(texts)])


def claim_of(text: str, lead_in: str = "") -> Claim:
    """A claim with this text."""
    return Claim(0, 0, text, 0, len(text), Severity.NORMAL, lead_in=lead_in)


def looked_up(
    text: str, index: EvidenceIndex, question: str = "", cited: frozenset[int] = frozenset(), most: int = 12
) -> tuple[ClaimView, Candidates]:
    """What of a claim is looked for, all words alike, and where it is found."""
    view = view_of(text, question, "", Rarity())
    return view, find_candidates(index.layout, view, most, cited=cited)


class Noting(Verifier):
    """A verifier that notes what it is given."""

    def __init__(self, folder: Path) -> None:
        self.__dict__.update(load_verifier(folder).__dict__)
        self.encoded: list[str] = []
        self.lengths: list[int] = []

    def encode(self, text: str) -> Encoding:
        self.encoded.append(text)
        return super().encode(text)

    def read(self, claim: Encoding, premise: Encoding) -> Reading:
        self.lengths.append(len(premise.ids))
        return super().read(claim, premise)
