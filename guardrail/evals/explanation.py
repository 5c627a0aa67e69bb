"""Why an answer got its result, in words: by template, or by the LLM with the template to fall back to.

Both say nothing that the verdicts don't: which claims are not backed, how serious that is, what the contexts
say, and what the judge said. Texts are quoted on one line each. They are still the answer's and the
contexts', so whoever shows an explanation has to escape it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from guardrail.errors import JudgeError
from guardrail.events import ClaimVerdict, Response, ResponseVerdict, Usage, Verdict, claim_that_decided
from guardrail.printable import shorten

_MOST_CLAIMS: Final = 5
_MOST_CHARS: Final = 240
_WORST_FIRST: Final = (
    Verdict.CONTRADICTED,
    Verdict.UNSUPPORTED,
    Verdict.PARTIALLY_SUPPORTED,
    Verdict.UNVERIFIED,
)
_WORDS: Final = {
    Verdict.SUPPORTED: "supported",
    Verdict.PARTIALLY_SUPPORTED: "supported only in part",
    Verdict.UNSUPPORTED: "not in the contexts",
    Verdict.CONTRADICTED: "contradicted",
    Verdict.UNVERIFIED: "unverified",
}
_BEGINNINGS: Final = {verdict: words.capitalize() for verdict, words in _WORDS.items()} | {
    Verdict.SUPPORTED: "Supported, but not surely",
    Verdict.UNVERIFIED: "Not verified",
}


class Explainer(Protocol):
    """Puts the result of one answer into words; ``guardrail.judges.llm.LlmExplainer`` is one."""

    @property
    def name(self) -> str: ...

    async def explain(
        self, response_id: str, question: str, result: str, claims: Sequence[ClaimVerdict]
    ) -> tuple[str, Usage]:
        """``result`` has the score and the numbers of claims; ``claims`` are those to speak of, worst first.

        Raises JudgeError if there is no text.
        """
        ...


def explain(verdict: ResponseVerdict) -> str:
    """The reason of a result by template: the same verdict gives the same text."""
    sentences = [result_in_words(verdict)]
    told = worst_claims(verdict)
    sentences += [_about(claim) for claim in told[:_MOST_CLAIMS]]
    more = len(told) - _MOST_CLAIMS
    if more > 0:
        sentences.append(f"{more} more {'claim is' if more == 1 else 'claims are'} not wholly supported.")
    return " ".join(sentences)


async def explained(
    verdict: ResponseVerdict, response: Response | None = None, explainer: Explainer | None = None
) -> str:
    """The reason of a result by ``explainer`` if there is one and it answers, else by template.

    An answer of which nothing is in doubt has nothing to put into other words: the explainer isn't asked.
    """
    told = worst_claims(verdict)
    if explainer is None or not told:
        return explain(verdict)
    question = response.question if response is not None else ""
    try:
        text, _ = await explainer.explain(
            verdict.response_id, question, result_in_words(verdict), told[:_MOST_CLAIMS]
        )
    except JudgeError as error:
        return f"{explain(verdict)} (By template; {explainer.name} gave no explanation: {error}.)"
    return text


def result_in_words(verdict: ResponseVerdict) -> str:
    """Score, decision and numbers of claims; contains no text of the answer."""
    counts = verdict.counts
    by_verdict = {each: getattr(counts, each.value.lower()) for each in Verdict}
    total = sum(by_verdict.values())
    decision = f"Decision: {verdict.decision}" + (f" ({verdict.rule})." if verdict.rule else ".")
    if not total:
        return f"The answer states nothing that can be checked. {decision}"
    supported = by_verdict[Verdict.SUPPORTED]
    if total == supported:
        said = "Its only claim is supported" if total == 1 else f"All {total} claims are supported"
    else:
        others = [f"{by_verdict[each]} {_WORDS[each]}" for each in _WORST_FIRST if by_verdict[each]]
        claims = "claim" if total == 1 else "claims"
        said = f"Of {total} {claims}, {supported or 'none'} {'is' if supported <= 1 else 'are'} supported, "
        said += ", ".join(others)
    score = "there is no score" if verdict.score is None else f"the score is {verdict.score:.2f}"
    unfinished = "" if verdict.complete else " The answer was not judged to its end."
    return f"{said}; {score}. {decision}{unfinished}"


def worst_claims(verdict: ResponseVerdict) -> list[ClaimVerdict]:
    """The claim that decided, then those that are not wholly supported: by severity, verdict and place."""
    decided = claim_that_decided(verdict)
    open_ = [
        claim for claim in verdict.claims if claim.verdict is not Verdict.SUPPORTED and claim is not decided
    ]
    open_.sort(key=lambda c: (-c.severity.rank, _WORST_FIRST.index(c.verdict), c.index))
    return open_ if decided is None else [decided, *open_]


def _about(claim: ClaimVerdict) -> str:
    because = ", ".join(claim.severity_reasons)
    severity = f"{claim.severity}: {because}" if because else str(claim.severity)
    parts = [_ended(f"{_BEGINNINGS[claim.verdict]} ({severity}): {quoted(claim.text)}")]
    if claim.evidence:
        quotes = "; ".join(f"{one_line(e.context_id)}: {quoted(e.quote)}" for e in claim.evidence)
        contradicts = claim.verdict is Verdict.CONTRADICTED
        parts.append(_ended(f"{'The contexts say' if contradicts else 'Closest in the contexts'}: {quotes}"))
    if claim.reasoning:
        parts.append(_ended(one_line(claim.reasoning)))
    return " ".join(parts)


def _ended(sentence: str) -> str:
    return sentence if sentence.rstrip("”’'\"").endswith((".", "!", "?", "…")) else f"{sentence}."


def quoted(text: str) -> str:
    """``text`` on one line, shortened, in quotation marks."""
    return f"“{one_line(text)}”"


def one_line(text: str) -> str:
    """``text`` with single blanks, shortened."""
    return shorten(" ".join(text[: 4 * _MOST_CHARS].split()), _MOST_CHARS)
