"""The settings of the local judge."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Self

from pydantic import Field, field_validator, model_validator

from guardrail.frozen import Frozen
from guardrail.judges.local.languages import ENGLISH, TOLD_APART
from guardrail.judges.model import ServerSettings


class VerifierSettings(Frozen):
    """The embedded verifier, a small model that reads claims beside windows of the contexts."""

    enabled: bool = Field(
        default=True,
        description="Whether it is used. false: claims are judged by their words and figures alone.",
    )
    path: Path | None = Field(
        default=None,
        description="The folder of another verifier, with model.onnx, tokenizer.json, manifest.json, and in "
        "parameters.json what training.calibrate fitted with it. Unset: the packaged one.",
    )
    server: ServerSettings | None = Field(
        default=None,
        description="A server of the Open Inference Protocol that runs this verifier's model.onnx; unset: "
        "the guard runs it.",
    )

    @field_validator("server")
    @classmethod
    def _gives_both_outputs(cls, server: ServerSettings | None) -> ServerSettings | None:
        if server is not None and server.kind != "oip":
            raise ValueError(f"a server of kind {server.kind} gives no token_logits; serve it with kind oip")
        return server


class LocalJudgeSettings(Frozen):
    """How the local judge works. Where its verdicts begin is fitted with the verifier; what they do is the
    policy's."""

    workers: ClassVar[int | None] = None
    """Threads that judge; None: 2, or 1 where only one processor may be used, and 16 where a server runs the
    verifier, for which they wait. Search and figures are pure Python and hold the interpreter's lock; the
    verifier, which takes most of the time, doesn't hold it: threads add up as far as processors are idle."""

    languages: tuple[str, ...] | None = Field(
        default=(ENGLISH,),
        description="Languages that the verifier reads, by ISO 639 code; others than en need a verifier "
        "of your own. A claim in another one, or for which a passage in another one decides, is judged by "
        "its figures alone, and only against it: else it is UNVERIFIED with the finding language_uncovered, "
        "unless a context has it word for word. null: languages are not told apart.",
    )
    verifier: VerifierSettings = Field(
        default_factory=VerifierSettings, description="The small model that reads claims beside the contexts."
    )

    @field_validator("languages")
    @classmethod
    def _known(cls, languages: tuple[str, ...] | None) -> tuple[str, ...] | None:
        unknown = [code for code in languages or () if code not in TOLD_APART]
        if unknown or languages == ():
            wrong = (
                f"{unknown[0]!r} is none of the languages that are told apart" if unknown else "none is named"
            )
            raise ValueError(f"{wrong}; write some of {', '.join(sorted(TOLD_APART))}, or null for all")
        return languages

    @model_validator(mode="after")
    def _read_by_the_verifier(self) -> Self:
        if self.languages not in (None, (ENGLISH,)) and self.verifier.path is None:
            raise ValueError(
                f"languages: the packaged verifier reads {ENGLISH} alone; name the folder of yours as "
                "verifier.path, or leave languages out"
            )
        return self
