"""What parameters say of the verifier they were fitted with: another one's scores mean other things."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from guardrail.judges.local.verifier_files import Sha256


class FittedVerifier(BaseModel):
    """The verifier that parameters belong to."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    sha256: Sha256 = Field(description="Of its model and tokenizer together (Manifest.checksum).")
