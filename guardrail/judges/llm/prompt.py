"""The messages of a call. The words stand in ``prompts/``; here the data is put into them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import Final

from guardrail.judges.base import JudgeRequest
from guardrail.judges.llm.documents import Selection, select
from guardrail.judges.llm.fence import Fence
from guardrail.judges.llm.reply import reply_form
from guardrail.judges.llm.settings import LlmJudgeSettings, Reasoning

_PARTIAL_NOTICE: Final = (
    "The documents are too long to be shown whole: these are the excerpts closest to the claims. "
    "Judge by what is shown, and with less confidence where the rest could matter.\n\n"
)

_REASONING_RULE: Final = {
    Reasoning.BEFORE: "- `reasoning`: one or two sentences that lead to the verdict, in the language of the "
    "claim, written before it.",
    Reasoning.AFTER: "- `reasoning`: one sentence that says why, in the language of the claim.",
    Reasoning.NOT_SUPPORTED: '- `reasoning`: "" when the verdict is SUPPORTED; otherwise one sentence that '
    "says what is missing or different, in the language of the claim.",
    Reasoning.NONE: "Give no reasons.",
}


@dataclass(frozen=True, slots=True)
class Prompt:
    """One call's messages and what their short ids stand for."""

    messages: tuple[dict[str, str], ...]
    claim_ids: dict[str, str]
    context_ids: dict[str, str]
    fence: Fence
    partial: bool
    uncovered: frozenset[str]


@cache
def _template(name: str) -> Template:
    return Template((files(__package__) / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip())


def build_prompt(request: JudgeRequest, fence: Fence, settings: LlmJudgeSettings) -> Prompt:
    """The messages for ``request``. CPU work (search, a pass over all that is sent): off the event loop.

    In this order, from what changes least to what changes most: instructions, marker, documents, question,
    claims. Calls for the same response are alike up to the claims, as long as its documents fit.
    """
    selection = select(
        request.evidence, request.claims, settings.max_context_chars, settings.passages_per_claim
    )
    claim_ids = {
        f"c{number}": claim_id
        for number, claim_id in enumerate(
            (claim_id for claim_id in request.claims if claim_id not in selection.uncovered), 1
        )
    }
    instructions = _template("system").substitute(
        reply_form=reply_form(settings.reasoning),
        max_quotes=settings.max_quotes,
        reasoning_rule=_REASONING_RULE[settings.reasoning],
        marker=fence.marker,
    )
    data = _template("user").substitute(
        notice=_PARTIAL_NOTICE if selection.partial else "",
        documents=_documents(selection, fence),
        question=fence.wrap("question", request.question),
        claims=_claims(request, claim_ids, fence),
        asked=", ".join(claim_ids),
    )
    if settings.system_role == "user":
        messages = [{"role": "user", "content": f"{instructions}\n\n{data}"}]
    else:
        messages = [
            {"role": settings.system_role, "content": instructions},
            {"role": "user", "content": data},
        ]
    return Prompt(
        tuple(messages),
        claim_ids,
        {shown.label: shown.context_id for shown in selection.shown},
        fence,
        selection.partial,
        selection.uncovered,
    )


def _documents(selection: Selection, fence: Fence) -> str:
    noun = "excerpt of document" if selection.partial else "document"
    return "\n\n".join(fence.wrap(f"{noun} {shown.label}", shown.text) for shown in selection.shown)


def _claims(request: JudgeRequest, claim_ids: dict[str, str], fence: Fence) -> str:
    parts = []
    for label, claim_id in claim_ids.items():
        claim = request.claims[claim_id]
        if claim.lead_in:
            parts.append(fence.wrap(f"lead-in of {label}", claim.lead_in))
        parts.append(fence.wrap(f"claim {label}", claim.text))
    return "\n\n".join(parts)
