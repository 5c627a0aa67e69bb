"""Few-shot examples of verdicts: read, checked, and written in the form that replies are asked for in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from guardrail.events import Verdict
from guardrail.judges.llm import compact

if TYPE_CHECKING:
    from guardrail.judges.llm.reply_form import ReplyForm

MOST_EXAMPLES: Final = 20
_Text = Annotated[str, Field(min_length=1, max_length=2_000)]
_Numbers = tuple[Annotated[int, Field(ge=1)], ...]
_Verdict = Literal["SUPPORTED", "PARTIALLY_SUPPORTED", "UNSUPPORTED", "CONTRADICTED"]


class ExamplePart(BaseModel):
    """One statement of a claim that makes several."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: _Text
    verdict: _Verdict


class ExampleClaim(BaseModel):
    """A claim and the verdict on it. ``evidence`` and ``against`` number the example's sentences from 1."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: _Text
    verdict: _Verdict
    evidence: _Numbers = ()
    against: _Numbers = ()
    confidence: Annotated[float, Field(ge=0, le=1)] = 0.97
    reasoning: str = ""
    parts: tuple[ExamplePart, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> ExampleClaim:
        if self.verdict == "UNSUPPORTED" and self.evidence:
            raise ValueError(
                "a claim that is UNSUPPORTED has evidence; leave evidence out, or correct the verdict"
            )
        if self.verdict != "UNSUPPORTED" and not self.evidence:
            raise ValueError(
                f"a claim that is {self.verdict} has no evidence; give the numbers of its sentences"
            )
        if self.against and self.verdict not in {"SUPPORTED", "PARTIALLY_SUPPORTED"}:
            raise ValueError(f"a claim that is {self.verdict} has against; leave it out")
        if self.parts and self.verdict != _together([part.verdict for part in self.parts]):
            raise ValueError(
                f"the parts of a claim don't add up to {self.verdict}; correct the parts or the verdict"
            )
        return self


class Example(BaseModel):
    """Sentences of a document, claims about them, and their verdicts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sentences: tuple[_Text, ...]
    question: str = ""
    claims: tuple[ExampleClaim, ...]

    @model_validator(mode="after")
    def _consistent(self) -> Example:
        if not self.sentences or not self.claims:
            raise ValueError("an example has no sentences or no claims; give it at least one of each")
        for number, claim in enumerate(self.claims, 1):
            beyond = [n for n in (*claim.evidence, *claim.against) if n > len(self.sentences)]
            if beyond:
                raise ValueError(
                    f"claim {number} names sentence {beyond[0]} of {len(self.sentences)}; "
                    "sentences are numbered from 1 in the order they stand"
                )
        return self


def _together(verdicts: Sequence[str]) -> str:
    if "CONTRADICTED" in verdicts:
        return "CONTRADICTED"
    if set(verdicts) in ({"SUPPORTED"}, {"UNSUPPORTED"}):
        return verdicts[0]
    return "PARTIALLY_SUPPORTED"


def read_examples(value: Any) -> Any:
    """What stands in the file that ``value`` names, unchecked; anything but a path as it is.

    Raises ValueError when the file can't be read or is no YAML.
    """
    if not isinstance(value, str | Path):
        return value
    path = Path(value)
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ValueError(f"{path} can't be read ({reason}); name a file with a list of examples") from None
    except yaml.YAMLError:
        raise ValueError(f"{path} is no YAML; write a list of examples") from None


@cache
def default_examples() -> tuple[Example, ...]:
    """Those that the package ships."""
    text = (files("guardrail.judges.llm") / "prompts" / "examples.yaml").read_text(encoding="utf-8")
    return TypeAdapter(tuple[Example, ...]).validate_python(yaml.safe_load(text))


def render(examples: Sequence[Example], form: ReplyForm) -> str:
    """The examples as text for the instructions, replies in ``form``."""
    return "\n\n".join(_render(example, form) for example in examples)


def _render(example: Example, form: ReplyForm) -> str:
    lines = ["Document:", *(f"[{number}] {text}" for number, text in enumerate(example.sentences, 1))]
    if example.question:
        lines += ["Question:", example.question]
    lines += ["Claims:", *(f"c{number}: {claim.text}" for number, claim in enumerate(example.claims, 1))]
    say = _text if form.compact else _member
    said = [say(f"c{number}", claim, form) for number, claim in enumerate(example.claims, 1)]
    reply = json.dumps({"v" if form.compact else "verdicts": said}, ensure_ascii=False, separators=(",", ":"))
    return "\n".join([*lines, "Reply:", reply])


def _text(label: str, claim: ExampleClaim, form: ReplyForm) -> str:
    return compact.write(
        form,
        label,
        Verdict(_said(claim.verdict, form)),
        claim.evidence,
        claim.confidence,
        claim.against,
        claim.reasoning,
    )


def _member(label: str, claim: ExampleClaim, form: ReplyForm) -> dict[str, Any]:
    silent = claim.verdict == "SUPPORTED" and not form.reason_when_supported
    values: dict[str, Any] = {
        "id": label,
        "evidence": list(claim.evidence),
        "parts": [{"text": part.text, "verdict": _said(part.verdict, form)} for part in claim.parts],
        "verdict": _said(claim.verdict, form),
        "confidence": claim.confidence,
        "against": list(claim.against),
        "reasoning": "" if silent else claim.reasoning,
    }
    return {name: values[name] for name in form.members}


def _said(verdict: str, form: ReplyForm) -> str:
    """Where there are two verdicts only, all that is not SUPPORTED is UNSUPPORTED."""
    return verdict if verdict in form.verdicts else "UNSUPPORTED"
