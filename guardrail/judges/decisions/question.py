"""What is asked: the documents as they go out, and a question for each claim. Texts stand behind fences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from guardrail.claims.model import Claim
from guardrail.events import Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.decisions.settings import Form
from guardrail.judges.decisions.transports import Choice, Option, QuestionState
from guardrail.judges.llm.prompt import Fence, closest_passages
from guardrail.shipped import shipped_yaml

_PASSAGES_PER_CLAIM: Final = 6


@cache
def wording() -> Mapping[str, Any]:
    """The package's texts, by name."""
    loaded: Mapping[str, Any] = shipped_yaml("guardrail.judges.decisions", "questions.yaml")
    return loaded


@dataclass(frozen=True, slots=True)
class Options:
    """The answers to choose among, and the verdict that each stands for."""

    options: tuple[Option, ...]
    verdicts: Mapping[str, Verdict]


@cache
def options_of(form: Form) -> Options:
    """Those of a form."""
    texts, verdicts = wording()["options"], wording()["forms"][form]
    return Options(
        tuple(Option(value, texts[value]) for value in verdicts),
        {value: Verdict(verdict) for value, verdict in verdicts.items()},
    )


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
    covered = frozenset(claims)
    if whole:
        shown = [(f"document d{n}", context.text) for n, context in enumerate(evidence.contexts, 1)]
    else:
        shown, covered = _excerpts(claims, evidence, most_chars)
    texts = wording()
    documents = [fence.group(fence.named(name, text) for name, text in shown)]
    if not whole:
        documents.insert(0, texts["excerpts"])
    if question:
        documents.append(fence.group([fence.named("question", question)]))
    state = QuestionState(
        texts["instructions"].format(marker=fence.marker), "\n".join(documents), fence.marker
    )
    questions = {
        claim_id: Choice(f"c{number}", _instructions(claim, fence), options_of(form).options)
        for number, (claim_id, claim) in enumerate(claims.items(), 1)
        if claim_id in covered
    }
    return QuestionSheet(state, questions, not whole, frozenset(claims.keys() - covered))


def _instructions(claim: Claim, fence: Fence) -> str:
    before = [fence.named("text before", claim.lead_in)] if claim.lead_in else []
    text: str = wording()["claim"].format(
        claim=fence.group([*before, fence.named("claim", claim.prose.text)])
    )
    return text


def _excerpts(
    claims: Mapping[str, Claim], evidence: EvidenceIndex, most_chars: int
) -> tuple[list[tuple[str, str]], frozenset[str]]:
    """The best passage of every claim, then the second best, and so on, as long as they fit, in the
    documents' order; and the claims for which there is one."""
    numbers = {context.id: n for n, context in reversed(list(enumerate(evidence.contexts, 1)))}
    ranked = {
        claim_id: closest_passages(evidence, claim, _PASSAGES_PER_CLAIM) or evidence.passages
        for claim_id, claim in claims.items()
    }
    chosen: dict[tuple[int, int], str] = {}
    covered = set()
    left = most_chars
    for rank in range(max(map(len, ranked.values()), default=0)):
        for claim_id, passages in ranked.items():
            if rank >= len(passages):
                continue
            passage = passages[rank]
            place = numbers[passage.context_id], passage.start
            if place not in chosen:
                if len(passage.text) > left:
                    continue
                left -= len(passage.text)
                chosen[place] = passage.text
            covered.add(claim_id)
    shown = [(f"excerpt of document d{number}", text) for (number, _), text in sorted(chosen.items())]
    return shown, frozenset(covered)


def verdict_probabilities(answer: Mapping[str, float], form: Form) -> Sequence[float]:
    """The probabilities of SUPPORTED, PARTIALLY_SUPPORTED, UNSUPPORTED and CONTRADICTED."""
    verdicts = options_of(form).verdicts
    found = dict.fromkeys(Verdict, 0.0)
    for value, probability in answer.items():
        found[verdicts[value]] += probability
    order = (Verdict.SUPPORTED, Verdict.PARTIALLY_SUPPORTED, Verdict.UNSUPPORTED, Verdict.CONTRADICTED)
    return [found[verdict] for verdict in order]
