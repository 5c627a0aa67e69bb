"""What the citations of a claim are worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from guardrail.claims.citations import Citation
from guardrail.events import MAX_CITED_CONTEXTS, CitationBacking, Context, Evidence, Verdict
from guardrail.evidence.tokens import STOP_TERMS, terms_of
from guardrail.verdicts import Judgement

_MOST_WORDS: Final = 0.5
_MOST_READ: Final = 50_000  # characters of a context
NOT_BACKED: Final = (Verdict.UNSUPPORTED, Verdict.CONTRADICTED)


def backing(
    judgement: Judgement, citations: Sequence[Citation], contexts: Sequence[Context], text: str
) -> CitationBacking | None:
    """What the citations of a claim that reads ``text`` are worth by the judgement on it; None where there
    are none.

    A quote backs for every context that it stands in: neighbouring chunks of a document overlap. Of several
    marks with words between them each has to be backed, and the worst counts. A footnote that was not
    defined when the claim was cut is only taken for the number of a context: where that doesn't back the
    claim, nothing is known.
    """
    if not citations:
        return None
    if judgement.verdict in NOT_BACKED:
        return CitationBacking.NONE
    if judgement.verdict is Verdict.UNVERIFIED or not judgement.evidence:
        return CitationBacking.UNKNOWN
    quotes = judgement.evidence
    groups = list(_groups(citations, text))
    unbacked = [group for group in groups if not _backed(group, quotes, contexts)]
    if not unbacked:
        return CitationBacking.CITED
    if len(unbacked) < len(groups):  # of a sentence with several marks
        unbacked = [group for group in unbacked if not _speaks_of(group, contexts)]
        return CitationBacking.OTHER if unbacked else CitationBacking.CITED
    guessed = all(mark.text.startswith("[^") for group in unbacked for mark in group.marks)
    return CitationBacking.UNKNOWN if guessed else CitationBacking.OTHER


class _Group(NamedTuple):
    """Marks that stand together, and what they stand behind."""

    marks: list[Citation]
    said: str


def _groups(citations: Sequence[Citation], text: str) -> Iterator[_Group]:
    """The marks of a claim, those without a word between them together."""
    marks: list[Citation] = []
    said, at = "", 0
    for citation in citations:
        between = text[at : citation.span[0]]
        if marks and any(map(str.isalnum, between)):
            yield _Group(marks, said)
            marks = []
        said = said if marks else between
        marks.append(citation)
        at = citation.span[1]
    if marks:
        yield _Group(marks, said + text[at:] if not any(map(str.isalnum, said)) else said)


def _backed(group: _Group, quotes: Sequence[Evidence], contexts: Sequence[Context]) -> bool:
    """Whether a context that the marks name has one of the quotes."""
    cited = _cited(group)
    if any(quote.context_id in cited for quote in quotes):
        return True
    texts = [context.text for context in contexts if context.id in cited]
    return any(quote.quote in text for text in texts for quote in quotes)


def _speaks_of(group: _Group, contexts: Sequence[Context]) -> bool:
    """Whether a context that the marks name has most words of what they stand behind: of a sentence with
    several marks not everything is quoted."""
    said = _said(group.said)
    cited = _cited(group)
    found = (said & _said(context.text[:_MOST_READ]) for context in contexts if context.id in cited)
    return any(len(shared) >= _MOST_WORDS * len(said) for shared in found)


def _cited(group: _Group) -> frozenset[str]:
    ids = dict.fromkeys(by for mark in group.marks for by in mark.context_ids)
    return frozenset(list(ids)[:MAX_CITED_CONTEXTS])


def _said(text: str) -> frozenset[int]:
    return terms_of(text) - STOP_TERMS
