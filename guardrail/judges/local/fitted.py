"""What parameters say of the verifier they were fitted with: another one's scores mean other things."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from guardrail.judges.local.verifier_files import Sha256


class ReadingKind(StrEnum):
    """What is read for a claim.

    SENTENCES: the best sentences together, in the order of the text; all of contexts that are short.
    SENTENCE: the best one alone. PASSAGE: at most 150 words around it.
    """

    SENTENCES = "sentences"
    SENTENCE = "sentence"
    PASSAGE = "passage"


DEFAULT_READINGS: Final = (ReadingKind.SENTENCES, ReadingKind.SENTENCE)
DEFAULT_TOKENS: Final = 112


class FittedVerifier(BaseModel):
    """The verifier that a combiner's parameters belong to, and how it read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    sha256: Sha256 = Field(description="Of its model and tokenizer together (Manifest.checksum).")
    readings: tuple[ReadingKind, ...] = Field(default=DEFAULT_READINGS, min_length=1)
    tokens_per_claim: int = Field(default=DEFAULT_TOKENS, ge=32, le=65_536)
