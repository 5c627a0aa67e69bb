"""The form of a reply: what is said of a claim, in which order, as a JSON Schema and as an example.

Every token that is written delays the verdicts, so the form asks for little: evidence are numbers of
sentences, members that the settings do without are not in it, and a verdict is one short text rather than an
object wherever it needs no text of the model's own ahead of the verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from guardrail.events import Verdict
from guardrail.judges.llm import compact
from guardrail.judges.llm.settings import LlmJudgeSettings, Reasoning

_FOUR: Final[dict[str, Verdict]] = {
    verdict.value: verdict for verdict in Verdict if verdict is not Verdict.UNVERIFIED
}
_TWO: Final[dict[str, Verdict]] = {
    verdict.value: verdict for verdict in (Verdict.SUPPORTED, Verdict.UNSUPPORTED)
}
# Whoever says more than was asked has said no all the same: a claim that is contradicted is not supported.
_TWO_OF_FOUR: Final[dict[str, Verdict]] = {
    name: verdict if verdict in _TWO.values() else Verdict.UNSUPPORTED for name, verdict in _FOUR.items()
}
_EXAMPLES: Final = {
    "id": '"c1"',
    "evidence": "[12,13]",
    "reasoning": '"…"',
    "parts": '[{"text":"…","verdict":"…"}]',
    "verdict": '"…"',
    "confidence": "0.0",
    "against": "[]",
}


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """What a reply holds for each claim. Two equal forms make equal schemas and read replies alike."""

    reasoning: Reasoning = Reasoning.NOT_SUPPORTED
    binary: bool = False
    decompose: bool = False
    conflicts: bool = True
    confidence: bool = True
    compact: bool = False

    @classmethod
    def of(cls, settings: LlmJudgeSettings) -> ReplyForm:
        """The form that ``settings`` ask for."""
        return cls(
            settings.reasoning,
            settings.verdicts == "binary",
            settings.decompose,
            settings.conflicts,
            settings.confidence,
            settings.reply_form == "compact"
            and not settings.decompose
            and settings.reasoning is not Reasoning.BEFORE,
        )

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdicts that may be given, by the word that stands for each."""
        return _TWO if self.binary else _FOUR

    @property
    def understood(self) -> dict[str, Verdict]:
        """What each word is read as, by its name in upper case: also those that were not asked for."""
        return _TWO_OF_FOUR if self.binary else _FOUR

    @property
    def may_be_compact(self) -> bool:
        """Can a text say all that is asked for? Statements that a claim is made of don't fit into one."""
        return not self.decompose

    @property
    def reasons(self) -> bool:
        """Are there reasons?"""
        return self.reasoning is not Reasoning.NONE

    @property
    def reason_when_supported(self) -> bool:
        """Are there reasons for SUPPORTED too?"""
        return self.reasoning in {Reasoning.BEFORE, Reasoning.AFTER}

    @property
    def members(self) -> tuple[str, ...]:
        """Names of what is said, in the order it is written: what a verdict rests on comes before it."""
        before = self.reasoning is Reasoning.BEFORE
        after = self.reasoning in {Reasoning.AFTER, Reasoning.NOT_SUPPORTED}
        wanted = {
            "id": True,
            "evidence": True,
            "reasoning": before,
            "parts": self.decompose,
            "verdict": True,
            "confidence": self.confidence,
            "against": self.conflicts,
        }
        names = [name for name, used in wanted.items() if used]
        return (*names, "reasoning") if after else tuple(names)

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of a reply, for strict structured outputs.

        It doesn't depend on the claims asked for: a provider compiles each new schema once, which takes
        seconds. Members are written in the order they stand here.
        """
        if self.compact:
            texts = {"type": "array", "items": {"type": "string", "pattern": compact.pattern(self)}}
            return _object({"v": texts})
        text = {"type": "string"}
        numbers = {"type": "array", "items": {"type": "integer"}}
        verdict = {"type": "string", "enum": list(self.verdicts)}
        types: dict[str, Any] = {
            "id": text,
            "evidence": numbers,
            "reasoning": text,
            "parts": {"type": "array", "items": _object({"text": text, "verdict": verdict})},
            "verdict": verdict,
            "confidence": {"type": "number"},
            "against": numbers,
        }
        item = _object({name: types[name] for name in self.members})
        return _object({"verdicts": {"type": "array", "items": item}})

    def example(self) -> str:
        """An example of the form, for servers that take no schema; its values show types, not verdicts."""
        if self.compact:
            return compact.EXAMPLE if self.reasons else compact.EXAMPLE_WITHOUT_REASONS
        return '{"verdicts":[{' + ",".join(f'"{name}":{_EXAMPLES[name]}' for name in self.members) + "}]}"


def _object(members: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }
