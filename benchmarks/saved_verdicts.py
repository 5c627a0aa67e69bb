"""Verdicts kept in a file, and a judge that repeats them: another policy decides without judging again."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from benchmarks.labelled_answers import LabelledAnswer
from guardrail.events import ClaimVerdict, ResponseVerdict, Span
from guardrail.judges import Judgement, JudgeRequest

# Places within the claim, which no policy asks for; in the event they are places of the answer.
_LEFT_OUT: Final = frozenset(("unsupported_spans",))
_SHARED: Final = [
    each.name
    for each in fields(Judgement)
    if each.name in ClaimVerdict.model_fields and each.name not in _LEFT_OUT
]


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on all claims of one answer, and what it took: seconds by the clock, and of processors."""

    verdict: ResponseVerdict
    seconds: float
    processor_seconds: float


class SavedJudge:
    """A Judge that says of each claim what was said of it before; of others, nothing (``UNVERIFIED``)."""

    name = "saved"

    def __init__(self, judged: Iterable[Judged]) -> None:
        self._claims: dict[tuple[str, Span], ClaimVerdict] = {
            (each.verdict.response_id, claim.span): claim for each in judged for claim in each.verdict.claims
        }
        self.missing = 0
        """Claims asked for that nothing was said of: answers are cut otherwise than they were."""

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """What is known of the claims."""
        for claim_id, claim in request.claims.items():
            known = self._claims.get((request.response_id, (claim.start, claim.end)))
            if known is None:
                self.missing += 1
            else:
                yield _repeated(claim_id, known)

    async def aclose(self) -> None:
        """Nothing is held."""


def _repeated(claim_id: str, known: ClaimVerdict) -> Judgement:
    return Judgement(**{name: getattr(known, name) for name in _SHARED} | {"claim_id": claim_id})


def save(path: Path, judged: Mapping[str, Judged], answers: Iterable[LabelledAnswer]) -> None:
    """One line for each answer: its verdict, what people said of each claim, and what judging took."""
    with path.open("w", encoding="utf-8") as lines:
        for answer in answers:
            each = judged[answer.response.response_id]
            row = {
                "labels": [answer.label_of(claim.span) for claim in each.verdict.claims],
                "seconds": round(each.seconds, 4),
                "processor_seconds": round(each.processor_seconds, 4),
                "verdict": each.verdict.model_dump(mode="json", by_alias=True),
            }
            lines.write(json.dumps(row, ensure_ascii=False) + "\n")


def load(path: Path) -> dict[str, Judged]:
    """What ``save`` wrote, by response id. Raises OSError, or ValueError where it is something else."""
    found = {}
    for line in path.read_bytes().splitlines():
        raw = json.loads(line)
        if not isinstance(raw, dict) or "verdict" not in raw:
            raise ValueError(f"{path} holds no saved verdicts: make them with --save")
        verdict = ResponseVerdict.model_validate(raw["verdict"])
        found[verdict.response_id] = Judged(verdict, raw["seconds"], raw["processor_seconds"])
    return found
