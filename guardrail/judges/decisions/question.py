"""What is asked: the documents as they go out, and a question for each claim. Texts stand behind fences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from guardrail.claims.model import Claim
from guardrail.events import Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.decisions.settings import Form
from guardrail.judges.decisions.transports import Choice, QuestionState
from guardrail.judges.llm.prompt import Fence, Sentences, select
from guardrail.shipped import shipped_yaml


@cache
def wording() -> Mapping[str, Any]:
    """The package's texts, by name."""
    loaded: Mapping[str, Any] = shipped_yaml("guardrail.judges.decisions", "questions.yaml")
    return loaded


@cache
def verdicts_of(form: Form) -> dict[str, Verdict]:
    """The options of a form by name, and the verdict that each stands for."""
    return {name: Verdict(verdict) for name, verdict in wording()["forms"][form].items()}


@cache
def options_of(form: Form) -> dict[str, str]:
    """The options of a form by name, and what they mean."""
    return {name: wording()["options"][name] for name in verdicts_of(form)}


@dataclass(frozen=True, slots=True)
class QuestionSheet:
    """The state and the questions of a request; ``partial``: not all of the documents are shown, and of the
    ``uncovered`` claims nothing is."""

    state: QuestionState
    questions: dict[str, Choice]
    partial: bool
    uncovered: frozenset[str]


def asked(
    claims: Mapping[str, Claim],
    question: str,
    evidence: EvidenceIndex,
    fence: Fence,
    form: Form,
    most_chars: int,
) -> QuestionSheet:
    """The questions of ``claims``, by their ids, over the documents, or over the passages closest to them
    where the documents have more than ``most_chars``. CPU work: passes over everything that is sent."""
    whole = sum(len(context.text) for context in evidence.contexts) <= most_chars
    uncovered: frozenset[str] = frozenset()
    if whole:
        shown = [fence.named(f"document d{n}", each.text) for n, each in enumerate(evidence.contexts, 1)]
    else:
        sentences = evidence.kept(Sentences, lambda: Sentences(evidence.contexts))
        closest = select(evidence, sentences, dict(claims), most_chars, excerpts=True)
        shown = [fence.named(f"excerpt of document {each.label}", each.text) for each in closest.shown]
        uncovered = closest.uncovered
    documents = [*([] if whole else [wording()["excerpts"]]), fence.group(shown)]
    if question:
        documents.append(fence.group([fence.named("question", question)]))
    texts, options = wording(), options_of(form)
    state = QuestionState(
        texts["instructions"].format(marker=fence.marker),
        "\n".join(documents),
        fence.marker,
        "\n".join([f"{texts['refers']} {texts['counts']}", *(f"{n}: {text}" for n, text in options.items())]),
        texts["labels"],
    )
    questions = {
        claim_id: _choice(f"c{number}", claim, fence, options)
        for number, (claim_id, claim) in enumerate(claims.items(), 1)
        if claim_id not in uncovered
    }
    return QuestionSheet(state, questions, not whole, uncovered)


def _choice(name: str, claim: Claim, fence: Fence, options: Mapping[str, str]) -> Choice:
    before = [fence.named("text before", claim.lead_in)] if claim.lead_in else []
    brief = f"{fence.group([*before, fence.named('claim', claim.prose.text)])}\n{wording()['asks']}"
    return Choice(name, f"{wording()['refers']}\n{brief} {wording()['counts']}", options, brief)
