"""Settings of the classifier judge, and presets for published models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from guardrail.frozen import Frozen
from guardrail.judges.http import HttpHeaders, HttpUrl

SECTION: Final = "judge.classifier"
"""Where the settings stand, for errors."""

PresetName = Literal[
    "hhem", "minicheck-flan-t5-large", "minicheck-roberta-large", "minicheck-deberta-v3-large"
]
Architecture = Literal["sequence", "seq2seq", "hhem"]
"""sequence: a classification head. seq2seq: the first token written is the label, and labels are token ids.
hhem: a T5 encoder whose first token's logits are those of the labels."""


class LabelMeaning(StrEnum):
    """What a label of the model says about a claim. ``neutral`` counts as not supported."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    CONTRADICTED = "contradicted"
    NEUTRAL = "neutral"


@dataclass(frozen=True, slots=True)
class Preset:
    """How to use a published model. The first four are settings, which the user's own override."""

    model: str
    revision: str
    template: str
    labels: Mapping[str, LabelMeaning]
    architecture: Architecture = "sequence"
    max_tokens: int = 512
    tokenizer: tuple[str, str] | None = None
    """Repository and commit of ``tokenizer.json``, in case that the model's has none."""


_FLAN_T5: Final = (
    "google/flan-t5-base",
    "7bcac572ce56db69c1ea7c8af255c5d7c9672fc2",
)  # the same for all sizes
_LABEL_1_SUPPORTS: Final = {"0": LabelMeaning.UNSUPPORTED, "1": LabelMeaning.SUPPORTED}

PRESETS: Final[dict[str, Preset]] = {
    # The prompt, and the use of the first token's two logits, follow the model's own code.
    "hhem": Preset(
        model="vectara/hallucination_evaluation_model",
        revision="8e4a2e6e96c708cc76c2344f7e4757df2515292c",  # HHEM-2.1-Open
        tokenizer=_FLAN_T5,
        architecture="hhem",
        template="<pad> Determine if the hypothesis is true given the premise?\n\n"
        "Premise: {premise}\n\nHypothesis: {hypothesis}",
        labels=_LABEL_1_SUPPORTS,
    ),
    # Tang, Laban and Durrett, "MiniCheck", EMNLP 2024. The T5 writes "0" or "1"; its tokenizer takes "0"
    # apart into a word boundary (3) and the digit, so that the first token decides between 3 and 209.
    "minicheck-flan-t5-large": Preset(
        model="lytang/MiniCheck-Flan-T5-Large",
        revision="96eafd01cee2d16cf81aaa2fb226b14f422a37b3",
        tokenizer=_FLAN_T5,
        architecture="seq2seq",
        template="predict: {premise}</s>{hypothesis}",
        labels={"3": LabelMeaning.UNSUPPORTED, "209": LabelMeaning.SUPPORTED},
        max_tokens=1024,
    ),
    "minicheck-roberta-large": Preset(
        model="lytang/MiniCheck-RoBERTa-Large",
        revision="74c8919647e61ed0f71bc177d94f10930f090068",
        template="{premise}</s>{hypothesis}",
        labels=_LABEL_1_SUPPORTS,
    ),
    "minicheck-deberta-v3-large": Preset(
        model="lytang/MiniCheck-DeBERTa-v3-Large",
        revision="2f2d01a54fa022a7ffadb76260e1ea8bc88c82bb",
        template="{premise}[SEP]{hypothesis}",
        labels=_LABEL_1_SUPPORTS,
    ),
}


class ServerSettings(Frozen):
    """A model server that runs the model, and how to reach it."""

    timeout_ms: ClassVar[int] = 2_000
    """Longest wait for one reply; calls are repeated while the claim's deadline allows."""
    max_concurrency: ClassVar[int] = 64
    """Most calls at once; fewer if the server turns out to take fewer."""

    kind: Literal["oip", "tei", "vllm"] = Field(
        default="oip",
        description="oip: the Open Inference Protocol, version 2 (Triton, KServe, MLServer, OpenVINO). tei: "
        "text-embeddings-inference. vllm: vLLM's /score for models with one label, /classify for others.",
    )
    url: HttpUrl = Field(description="Root of the server, without /v2, /predict or /v1.")
    model: Annotated[str, Field(pattern=r"^[^\s?#]+$")] | None = Field(
        default=None, description="The model's name on the server. Not for tei, which serves one."
    )
    headers: HttpHeaders = Field(
        default_factory=dict,
        description="HTTP headers to add; a value is text, {file: PATH} or {env: VARIABLE}.",
    )

    @field_validator("url")
    @classmethod
    def _is_a_root(cls, url: str) -> str:
        return url.rstrip("/")

    @model_validator(mode="after")
    def _named(self) -> Self:
        if self.kind == "tei" and self.model is not None:
            raise ValueError("model is set, but text-embeddings-inference serves one model; take it out")
        if self.kind != "tei" and self.model is None:
            raise ValueError(f"model is not set; give the model's name on the {self.kind} server")
        return self


class ClassifierSettings(Frozen):
    """Which model to use, how it takes pairs, and what its labels mean."""

    contradicted_at: ClassVar[float] = 0.5
    """Lowest probability of contradiction for CONTRADICTED; it must also exceed that of support. What a
    contradiction does is a matter of the policy, whose rules say ``contradiction >= 0.9``."""

    preset: PresetName | None = Field(
        default=None,
        description="A published model: its commit, prompt and labels. Other settings here override it.",
    )
    model: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="Id on the Hugging Face hub, or a folder with the model's files."
    )
    revision: str | None = Field(
        default=None,
        description="Commit of the model on the hub, 40 hexadecimal digits. Anything else can change "
        "under you, and the guard warns about it.",
    )
    allow_remote_code: bool = Field(
        default=False,
        description="Run Python code that comes with the model; it can do whatever the guard can. "
        "Needs a pinned revision.",
    )
    server: ServerSettings | None = Field(
        default=None,
        description="A server that runs the model; unset: the guard runs it. model still says where "
        "tokenizer.json and config.json are.",
    )
    template: str | None = Field(
        default=None,
        description="A text with {premise} and {hypothesis}; unset: the pair form of the model's tokenizer.",
    )
    labels: dict[str, LabelMeaning] = Field(
        default_factory=dict,
        description="What each label of the model means, by name or index; unset: known names such as "
        "entailment.",
    )
    supported_at: float = Field(
        default=0.5, ge=0.0, le=1.0, description="Lowest probability of support for SUPPORTED."
    )

    def known(self) -> Preset | None:
        """The model's preset, if there is one."""
        return None if self.preset is None else PRESETS[self.preset]

    @model_validator(mode="before")
    @classmethod
    def _from_preset(cls, data: Any) -> Any:
        preset = data.get("preset") if isinstance(data, dict) else None
        known = PRESETS.get(preset) if isinstance(preset, str) else None
        if known is None:
            return data
        values: dict[str, Any] = {"template": known.template, "labels": dict(known.labels)}
        if data.get("model", known.model) == known.model:  # the commit belongs to another repository
            values |= {"model": known.model, "revision": known.revision}
        return values | data

    @field_validator("template")
    @classmethod
    def _both_places(cls, template: str | None) -> str | None:
        if template is not None:
            for place in ("{premise}", "{hypothesis}"):
                if template.count(place) != 1:
                    raise ValueError(f"must hold {place} once, not {template.count(place)} times")
        return template

    @field_validator("labels")
    @classmethod
    def _some_support(cls, labels: dict[str, LabelMeaning]) -> dict[str, LabelMeaning]:
        if labels and LabelMeaning.SUPPORTED not in labels.values():
            raise ValueError("names no label that means supported; add the one that does")
        return labels
