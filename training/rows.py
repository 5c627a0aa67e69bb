"""Labelled claims with their contexts, as the data files hold them.

Licences decide what may be fitted on: rows of a data set whose licence is not stated are only for
measuring.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from guardrail.claims.model import Claim
from guardrail.events import Context, Severity
from guardrail.evidence.index import EvidenceIndex

LICENCES: Final[dict[str, str]] = {
    "conjnli": "MIT",
    "counterfactual-nli": "Apache-2.0",
    "breaking-nli": "CC-BY-SA-4.0",
    "begin-cmu": "CC-BY-4.0",
    "begin-tc": "CDLA-Sharing-1.0",
    "begin-wow": "CC-BY-4.0",
    "summedits-podcast": "Apache-2.0",
    "summedits-scitldr": "Apache-2.0",
    "summedits-qmsumm": "Apache-2.0",
    "summedits-sales_email": "Apache-2.0",
    "wice-subclaim": "ODC-BY",
    "wice-claim": "ODC-BY",
    "fool-me-twice": "Apache-2.0; Wikipedia text CC-BY-SA",
    "fever": "CC-BY-SA-3.0",
    "fever-symmetric": "CC-BY-SA-3.0",
    "vitaminc-real": "CC-BY-SA-3.0",
    "vitaminc-synthetic": "CC-BY-SA-3.0",
    "wikisplit": "CC-BY-SA-4.0",
    "help": "CC-BY-SA-4.0",
    "med": "CC-BY-SA-4.0",
    "paws": "free for any purpose (Google LLC); sentences of Wikipedia CC-BY-SA",
    "taxinli": "C-UDA-1.0, which leaves results free; texts of MultiNLI",
    "multinli": "OANC and other free licences; DocNLI's form of it BSD-3-Clause",
    "attribution-bench": "MIT and Apache-2.0; texts of Wikipedia CC-BY-SA and of the web",
    "check-covid": "MIT; abstracts of CORD-19",
    "evidence-inference": "MIT; sentences of PubMed Central",
    "factcg-doc": "MIT; texts of news (FactCG)",
}
"""The data sets that a shipped model may be fitted on."""

SUPPORTED_SHARE: Final = 0.57
"""Of the claims that probabilities of support are for: of real answers people call 78 % (LFQA) and 61 %
(ExpertQA) supported. Chosen on answers written for it (docs/training.md)."""


@dataclass(frozen=True, slots=True)
class Row:
    """A claim, where it is to be found, and what people said of it. ``supported``: wholly supported."""

    dataset: str
    contexts: tuple[str, ...]
    claim: str
    label: str
    question: str = ""
    lead_in: str = ""
    distractors: tuple[str, ...] = ()
    held_out: bool | None = None
    """As ``training.prepare`` has it; None: by the checksums of the contexts."""

    @property
    def is_held_out(self) -> bool:
        """Whether no model is trained on it."""
        return any(map(is_held_out, self.contexts)) if self.held_out is None else self.held_out

    @property
    def supported(self) -> bool:
        """Whether the contexts say all of the claim."""
        return self.label in ("supported", "Complete")

    def as_claim(self, severity: Severity = Severity.NORMAL) -> Claim:
        """The claim as the segmenter would hand it on."""
        return Claim(0, 0, self.claim, 0, len(self.claim), severity, lead_in=self.lead_in)

    def index(self) -> EvidenceIndex:
        """The contexts, ready for a judge."""
        return EvidenceIndex([Context(id=f"c{n}", text=text) for n, text in enumerate(self.contexts, 1)])


def is_held_out(text: str) -> bool:
    """Whether a text belongs to the fifth that nothing is trained on."""
    return zlib.crc32(text.encode()) % 5 == 0


def pool(path: Path) -> Iterator[Row]:
    """The rows of a ``pool-*.jsonl.gz``."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            raw: dict[str, Any] = json.loads(line)
            yield Row(
                dataset=raw["dataset"],
                contexts=tuple(raw["contexts"]),
                claim=raw["claim"],
                label=raw["label"],
                question=raw.get("question") or "",
                distractors=tuple(raw.get("distractors") or ()),
            )


def expert_answers(path: Path) -> Iterator[Row]:
    """The claims of ``expertqa-val.jsonl`` that experts judged, each with the sentence before it."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            raw: dict[str, Any] = json.loads(line)
            contexts = tuple(context["text"] for context in raw["contexts"])
            before = ""
            for label in raw["metadata"]["labels"]:
                if label["support"] not in (None, "N/A"):
                    yield Row(
                        dataset="expertqa",
                        contexts=contexts,
                        claim=label["text"],
                        label=label["support"],
                        question=raw["question"],
                        lead_in=before,
                    )
                before = label["text"]
