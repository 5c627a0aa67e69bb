"""What is asked: the documents as they go out, and a question for each claim. Texts stand behind fences."""

from __future__ import annotations

from collections.abc import Container, Mapping
from functools import cache
from typing import Any

from guardrail.claims.model import Claim
from guardrail.events import Verdict
from guardrail.judges.base import JudgeRequest
from guardrail.judges.decisions.settings import DecisionsSettings, Form
from guardrail.judges.decisions.transports import Choice, QuestionSheet
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


def asked(
    request: JudgeRequest, settled: Container[str], fence: Fence, settings: DecisionsSettings
) -> QuestionSheet:
    """The questions of the claims that are not ``settled``, over the documents, or over the passages closest
    to them where the documents are too long. CPU work: passes over everything that is sent."""
    evidence, most = request.evidence, settings.max_context_chars
    claims = {claim_id: claim for claim_id, claim in request.claims.items() if claim_id not in settled}
    whole = sum(len(context.text) for context in evidence.contexts) <= most
    if whole:
        shown = [fence.named(f"document d{n}", each.text) for n, each in enumerate(evidence.contexts, 1)]
    else:
        sentences = evidence.kept(Sentences, lambda: Sentences(evidence.contexts))
        closest = select(evidence, sentences, claims, most, excerpts=True)
        shown = [fence.named(f"excerpt of document {each.label}", each.text) for each in closest.shown]
        claims = {name: claim for name, claim in claims.items() if name not in closest.uncovered}
    texts = wording()
    options = {name: texts["options"][name] for name in verdicts_of(settings.options)}
    documents = [*([] if whole else [texts["excerpts"]]), fence.group(shown)]
    if request.question:
        documents.append(fence.group([fence.named("question", request.question)]))
    meanings = (f"{name}: {text}" for name, text in options.items())
    return QuestionSheet(
        texts["instructions"].format(marker=fence.marker),
        "\n".join(documents),
        fence.marker,
        "\n".join([f"{texts['refers']} {texts['counts']}", *meanings]),
        texts["labels"],
        {
            claim_id: _choice(f"c{number}", claim, fence, options)
            for number, (claim_id, claim) in enumerate(claims.items(), 1)
        },
        not whole,
    )


def _choice(name: str, claim: Claim, fence: Fence, options: Mapping[str, str]) -> Choice:
    before = [fence.named("text before", claim.lead_in)] if claim.lead_in else []
    brief = f"{fence.group([*before, fence.named('claim', claim.prose.text)])}\n{wording()['asks']}"
    return Choice(name, f"{wording()['refers']}\n{brief} {wording()['counts']}", options, brief)
