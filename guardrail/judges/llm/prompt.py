"""The messages of a call. The words stand in ``prompts/``; here the data is put into them."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from string import Template

from guardrail.judges.base import JudgeRequest
from guardrail.judges.llm.documents import Selection, select
from guardrail.judges.llm.examples import default_examples, render
from guardrail.judges.llm.fence import Fence
from guardrail.judges.llm.reply_form import ReplyForm
from guardrail.judges.llm.sentences import Sentences, defuse_numbers
from guardrail.judges.llm.settings import LlmJudgeSettings
from guardrail.judges.llm.templates import rules, template


@dataclass(frozen=True, slots=True)
class Prompt:
    """One call's messages and what their short ids and numbers stand for.

    ``claim_ids`` has those of the claims asked for. ``shown`` are the numbers of ``sentences`` that stand in
    the messages; ``partial``: not all of them do. ``uncovered`` claims could not be asked for.
    """

    messages: tuple[dict[str, str], ...]
    claim_ids: dict[str, str]
    sentences: Sentences
    shown: Container[int]
    fence: Fence
    partial: bool
    uncovered: frozenset[str]


class Prompts:
    """Makes the messages of calls; what is the same in all of them is made once."""

    __slots__ = ("_data", "_fixed", "_instructions", "_settings", "form")

    def __init__(self, settings: LlmJudgeSettings) -> None:
        """Raises ConfigError when a prompt of the user's own has become unreadable."""
        self._settings = settings
        self.form = ReplyForm.of(settings)
        examples = default_examples() if settings.examples is None else settings.examples
        self._fixed = {
            "verdict_rules": rules()[f"verdicts_{settings.verdicts}"],
            "reply_form": self.form.example(),
            "member_rules": _member_rules(self.form, settings.max_quotes),
            "examples": f"{rules()['examples']}\n{render(examples, self.form)}\n" if examples else "",
        }
        self._instructions = template("system", settings.prompts)
        self._data = template("user", settings.prompts)

    def build(self, request: JudgeRequest, fence: Fence, only: Container[str] | None = None) -> Prompt:
        """The messages for ``request``, or for those of its claims that have an id in ``only``.

        CPU work (search, passes over all that is sent): off the event loop. In this order, from what changes
        least to what changes most: instructions and examples, marker, documents, question, claims. Calls for
        the same response are alike up to the claims, as long as its documents fit. Short ids of claims are
        the same with ``only`` and without.
        """
        settings = self._settings
        sentences = Sentences(request.evidence.contexts)
        selection = select(
            request.evidence,
            sentences,
            request.claims,
            settings.max_context_chars,
            settings.passages_per_claim,
        )
        claim_ids = {
            f"c{number}": claim_id
            for number, claim_id in enumerate(request.claims, 1)
            if claim_id not in selection.uncovered and (only is None or claim_id in only)
        }
        instructions = self._instructions.substitute(self._fixed, marker=fence.marker)
        data = self._data.substitute(
            notice=f"{rules()['notice']}\n\n" if selection.partial else "",
            documents=_documents(selection, fence),
            question=_wrap(fence, "question", request.question),
            claims=_claims(request, claim_ids, fence),
            asked=", ".join(claim_ids),
        )
        return Prompt(
            _messages(settings.system_role, instructions, data),
            claim_ids,
            sentences,
            selection.numbers,
            fence,
            selection.partial,
            selection.uncovered,
        )


def _messages(role: str, instructions: str, data: str) -> tuple[dict[str, str], ...]:
    if role == "user":
        return ({"role": "user", "content": f"{instructions}\n\n{data}"},)
    return {"role": role, "content": instructions}, {"role": "user", "content": data}


def _member_rules(form: ReplyForm, max_quotes: int) -> str:
    said = rules()["compact" if form.compact else "members"]
    reasoning: str = (said if form.compact else rules())["reasoning"][form.reasoning.value]
    known = {"max_quotes": max_quotes, "verdicts": ", ".join(form.verdicts), "words": _words(form)}
    lines = [
        reasoning if name == "reasoning" else Template(said[name]).substitute(known)
        for name in ("one", *form.members)
    ]
    return "\n".join(lines if "reasoning" in form.members else [*lines, reasoning])


def _words(form: ReplyForm) -> str:
    *others, last = (rules()["compact"]["words"][name] for name in form.verdicts)
    return f"{', '.join(others)} or {last}"


def _documents(selection: Selection, fence: Fence) -> str:
    noun = "excerpt of document" if selection.partial else "document"
    # The lines are numbered already, and what looked like a number in their texts is none any more.
    return "\n\n".join(fence.wrap(f"{noun} {shown.label}", shown.text) for shown in selection.shown)


def _claims(request: JudgeRequest, claim_ids: dict[str, str], fence: Fence) -> str:
    parts = []
    for label, claim_id in claim_ids.items():
        claim = request.claims[claim_id]
        if claim.lead_in:
            parts.append(_wrap(fence, f"lead-in of {label}", claim.lead_in))
        parts.append(_wrap(fence, f"claim {label}", claim.prose.text))
    return "\n\n".join(parts)


def _wrap(fence: Fence, name: str, data: str) -> str:
    return fence.wrap(name, defuse_numbers(data))
