"""Probabilities and figures -> a judgement with reasons that a person can check.

The verdict follows from the probabilities. One rule stands above them: a figure for which a source gives
another one of the same thing contradicts the claim, and a figure that stands in no source keeps it from being
supported.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from guardrail.claims.phrases import pattern
from guardrail.events import Evidence, Finding, Span, Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.evidence.tokens import words as words_of
from guardrail.evidence.tokens import written
from guardrail.figures import Figure, FigureCheck, State
from guardrail.figures.agreement import is_plain
from guardrail.figures.equations import shown
from guardrail.figures.source import Sentence
from guardrail.judges.local.combiner import Lines, Probabilities, best_of
from guardrail.judges.local.doubts import Rival
from guardrail.judges.local.examination import MARKED, Examination, quoted_sentence
from guardrail.judges.local.reader import unsupported_spans
from guardrail.judges.local.records import Cell, CellCheck
from guardrail.verdicts import HALF_CHECKED, Judgement, spans_within

NAME: Final = "local"
_NOTHING_SHARED: Final = 0.01
_SILENT: Final = 0.85  # how sure it is that what no sentence has most words of is not spoken of
_BELOW: Final = 0.001  # a line, that support lies where a figure keeps a claim below it
_WORD_FOR_WORD: Final = 0.99  # how sure it is that what a sentence says is what it says
_LETTERS_OR_DIGITS: Final = re.compile(r"\d+|[^\W\d_]+")
_YES_OR_NO: Final = re.compile(r"\b(?:true|false)\b")
_SAME_WORDS: Final = 0.95
_SAME_LENGTH: Final = 0.7  # of a sentence, that a claim has which says so in the same words
_NEAR: Final = 0.3  # of a claim in a sentence that is called the closest
_CLOSE: Final = 0.6  # of a claim in a sentence that may say the same
_STEM: Final = 5  # letters in which forms of a word agree
_MOST_QUOTED: Final = 3  # words of a claim
_MOST_OF_A_ROW: Final = 2  # times as long as it is told
_MOST_OF_A_SOURCE: Final = 160
_MOST_PROOF: Final = 3
_MOST_LACKING: Final = 2
_NAMES_A_SOURCE: Final = pattern("source_named")
_TELLING: Final = 0.8  # rarity; that the sources lack a word such as "comes" tells nobody anything


def _in_its_row(evidence: EvidenceIndex, cell: Cell) -> Evidence:
    """A cell with what stands before it in its record, from the label on; alone where the text has other
    records between."""
    shown, (start, end) = evidence.shown(cell.context), cell.span
    begin = shown.rfind("\n", 0, start) + 1
    row = evidence.quote(cell.context, begin, end)
    return (
        row if len(row.quote) <= _MOST_OF_A_ROW * (end - begin) else evidence.quote(cell.context, start, end)
    )


def nothing_to_compare(claim_id: str) -> Judgement:
    """The judgement where there is no context, or none with a word."""
    return Judgement(
        claim_id,
        Verdict.UNSUPPORTED,
        1.0 - _NOTHING_SHARED,
        _NOTHING_SHARED,
        NAME,
        reasoning="There is no document to compare it with.",
    )


def judgement_of_silence(
    claim_id: str, spoken_of: int | None, evidence: EvidenceIndex, degraded: tuple[str, ...]
) -> Judgement:
    """The judgement of a claim that says nothing but that the documents are silent on something, which the
    sentence ``spoken_of`` speaks of, if any."""
    said = Judgement(
        claim_id,
        Verdict.SUPPORTED,
        _SILENT,
        _SILENT,
        NAME,
        reasoning="No passage was found that speaks of it.",
        contradiction=0.0,
        degraded_from=degraded,
    )
    return with_silence(said, spoken_of, evidence)


def with_silence(judgement: Judgement, spoken_of: int | None, evidence: EvidenceIndex) -> Judgement:
    """The judgement of a claim that also says that the documents are silent on something: it is not supported
    where a sentence of theirs speaks of it."""
    if spoken_of is None or judgement.verdict is not Verdict.SUPPORTED:
        return judgement
    quote = quoted_sentence(evidence, spoken_of)
    return replace(
        judgement,
        verdict=Verdict.UNSUPPORTED,
        confidence=_SILENT,
        support=1.0 - _SILENT,
        evidence=(quote,),
        reasoning="The documents may speak of it.",
    )


def judgement_word_for_word(claim_id: str, said: Evidence, least: float) -> Judgement:
    """The judgement of a claim that is a sentence of a context; its support is ``least`` or more."""
    support = max(_WORD_FOR_WORD, least)
    return Judgement(
        claim_id,
        Verdict.SUPPORTED,
        support,
        support,
        NAME,
        (said,),
        reasoning="A document says so word for word.",
        contradiction=0.0,
    )


def said_to_be_false(judgement: Judgement) -> Judgement:
    """The judgement of a claim that says of what was judged that it is false ("Myth: …")."""
    reasoning = f"The answer calls it false. {judgement.reasoning}"
    if judgement.verdict is Verdict.SUPPORTED and judgement.support is not None:
        return replace(
            judgement,
            verdict=Verdict.UNSUPPORTED,
            confidence=judgement.support,
            support=1.0 - judgement.support,
            reasoning=reasoning,
        )
    if judgement.verdict is Verdict.CONTRADICTED:
        return replace(
            judgement,
            verdict=Verdict.PARTIALLY_SUPPORTED,
            confidence=HALF_CHECKED,
            support=HALF_CHECKED,
            contradiction=0.0,
            reasoning=reasoning,
            unsupported_spans=(),
            findings=(),
        )
    return judgement


_DENIED_RATHER: Final = 0.5  # contradiction of what a question says around figures that the sources have
_MENTIONED: Final = 0.6  # support of what has only right figures
_UNBACKED: Final = 0.6  # support of a "no" where nothing backs what is denied
_HARDLY_BACKED: Final = 0.25


def answered_no(judgement: Judgement) -> Judgement:
    """The judgement of a "No", where that of what was asked is given: the reverse."""
    if judgement.verdict is Verdict.UNVERIFIED:
        return judgement
    reasoning = f"The answer denies what was asked. {judgement.reasoning}"
    if judgement.verdict is Verdict.SUPPORTED:
        return replace(said_to_be_false(judgement), reasoning=reasoning)
    if judgement.verdict is Verdict.CONTRADICTED:
        verdict, support = Verdict.SUPPORTED, judgement.confidence
    else:  # that nothing backs what is denied speaks for "no"
        verdict = Verdict.PARTIALLY_SUPPORTED
        support = _UNBACKED if (judgement.support or 0.0) < _HARDLY_BACKED else HALF_CHECKED
    return replace(
        judgement,
        verdict=verdict,
        support=support,
        contradiction=judgement.support,
        reasoning=reasoning,
        findings=(),
    )


def mentioned_only(judgement: Judgement, *, rightly: bool) -> Judgement:
    """The judgement of a question, an offer or data, of which only the figures state anything. Where these
    stand in the sources ``rightly``, it is SUPPORTED; where they only stand nowhere, it is contradicted by
    nothing."""
    doubted = (judgement.contradiction or 0.0) >= _DENIED_RATHER
    if rightly and not doubted and judgement.verdict in (Verdict.PARTIALLY_SUPPORTED, Verdict.UNSUPPORTED):
        return replace(
            judgement,
            verdict=Verdict.SUPPORTED,
            support=max(_MENTIONED, judgement.support or 0.0),
            confidence=max(_MENTIONED, judgement.confidence),
            reasoning="Its figures stand in the documents; nothing else in it was taken for a statement.",
            unsupported_spans=(),
        )
    absent = Finding.FIGURE_ABSENT in judgement.findings and Finding.FIGURE_CONFLICT not in judgement.findings
    if judgement.verdict is Verdict.CONTRADICTED and absent:
        return replace(judgement, verdict=Verdict.UNSUPPORTED)
    return judgement


class Ruling:
    """What follows for a claim from what was found out about it, and from what the combiner makes of that
    (``told``), by ``lines``."""

    def __init__(self, examined: Examination, told: Probabilities, lines: Lines) -> None:
        self._examined, self._told = examined, told
        values = [check for check in examined.figures if not check.figure.name]
        conflicts = (check for check in values if check.state is State.CONFLICT)
        self._conflict = max(conflicts, key=lambda check: check.frame, default=None)
        self._absent = [check for check in values if check.state is State.ABSENT]
        backed = ((check, check.source) for check in values if check.state is State.FOUND)
        self._unsure = [
            (c.figure, source) for c, source in backed if source and not is_plain(c.figure, source)
        ]
        self._unchecked = [check for check in examined.figures if check.state is State.UNCHECKED]
        self._elsewhere = any(check.owned is not None for check in examined.figures)
        self._cell = next(iter(examined.cells), None)
        self._rival = examined.rival if self._conflict is None else None
        self._support = self._bounded_support(lines)
        self._verdict = self._verdict_by(lines)
        if self._verdict is Verdict.UNSUPPORTED:  # what was asked is not backed by being said again
            self._absent += [check for check in values if check.state is State.ECHOED]

    def _bounded_support(self, lines: Lines) -> float:
        """The probability of support, below the line of what keeps the claim from being supported."""
        support = self._told.supported
        if self._conflict or self._absent or self._unsure or self._elsewhere or self._cell:
            support = min(support, max(0.0, lines.supported - _BELOW))
        if self._examined.revoked is not None:
            support = min(support, max(0.0, lines.partially - _BELOW))
        return support

    def _verdict_by(self, lines: Lines) -> Verdict:
        told, support = self._told, self._support
        sure = self._cell is not None and self._cell.sure
        if self._unchecked and self._conflict is None and not self._absent and not sure:
            return Verdict.UNVERIFIED
        if sure or self._conflict is not None:
            return Verdict.CONTRADICTED
        if support >= lines.supported:
            return Verdict.SUPPORTED
        contradicted = told.contradicted >= lines.contradicted and told.contradicted == max(told)
        if contradicted and self._rival is None:
            return Verdict.CONTRADICTED
        # One context contradicts it, and another one supports it; or a part of it is what a source says.
        partly = (contradicted or support >= lines.partially) and self._examined.found.shared
        return Verdict.PARTIALLY_SUPPORTED if partly else Verdict.UNSUPPORTED

    def judgement(self, claim_id: str, degraded: tuple[str, ...] = ()) -> Judgement:
        """As one that a person can check."""
        if self._cell is not None and self._verdict not in (Verdict.UNVERIFIED, Verdict.SUPPORTED):
            return self._of_cell(claim_id, degraded, self._cell)
        left_open = self._verdict is Verdict.UNVERIFIED
        spans = self._unsupported()
        return Judgement(
            claim_id,
            self._verdict,
            self._confidence(),
            None if left_open else self._support,
            NAME,
            self._proof(),
            _disagreeing(self._examined, self._rival),
            reasoning=_left_open(self._unchecked[0]) if left_open else self._reason(spans),
            degraded_from=degraded,
            unsupported_spans=self._placed(spans),
            contradiction=None if left_open else self._told.contradicted,
            findings=tuple(
                finding
                for finding, there in (
                    (Finding.FIGURE_CONFLICT, self._conflict is not None),
                    (Finding.FIGURE_ABSENT, bool(self._absent)),
                    (Finding.FIGURE_AMBIGUOUS, bool(self._unsure)),
                    (Finding.OTHER_THING, self._elsewhere),
                    (Finding.CONTEXTS_DISAGREE, self._rival is not None),
                    (Finding.CALCULATION_UNCHECKED, bool(self._unchecked)),
                )
                if there
            ),
        )

    def _of_cell(self, claim_id: str, degraded: tuple[str, ...], cell: CellCheck) -> Judgement:
        """The judgement of a claim that is at odds with the cell of a table."""
        said = self._examined.view.text[cell.start : cell.end]
        header = f", {cell.cell.header}" if cell.cell.header else ""
        reason = f"The documents say '{_shortened(f'{cell.row}{header}: {cell.cell.text}')}'"
        if cell.owner and cell.owner != cell.row:
            reason += f"; the claim says '{said}', which is that of '{cell.owner}'."
        else:
            reason += f"; the claim says '{_shortened(said)}'."
        confidence = 1.0 - self._support
        if self._verdict is Verdict.CONTRADICTED:
            confidence = max(self._told.contradicted, confidence)
        return Judgement(
            claim_id,
            self._verdict,
            confidence,
            self._support,
            NAME,
            (_in_its_row(self._examined.evidence, cell.cell),),
            reasoning=reason,
            degraded_from=degraded,
            unsupported_spans=self._placed([(cell.start, cell.end)]),
            contradiction=self._told.contradicted,
            findings=(Finding.FIGURE_CONFLICT,) if cell.figure and cell.sure else (),
        )

    def _confidence(self) -> float:
        if self._verdict is Verdict.UNVERIFIED:
            return 0.0
        if self._verdict is Verdict.SUPPORTED:
            return self._support
        if self._verdict is not Verdict.CONTRADICTED:
            return 1.0 - self._support
        return max(self._told.contradicted, self._conflict.frame if self._conflict else 0.0)

    def _placed(self, spans: Sequence[Span]) -> tuple[Span, ...]:
        """Spans of what was examined as those of the claim."""
        begin = self._examined.start
        return tuple((start + begin, end + begin) for start, end in spans)

    def _unsupported(self) -> tuple[Span, ...]:
        """The words that figures or the verifier find no support for; none of a claim that is supported."""
        if self._verdict is Verdict.SUPPORTED:
            return ()
        spans = [
            (check.figure.start, check.figure.end)
            for check in self._examined.figures
            if check.owned or (check.state in (State.CONFLICT, State.ABSENT) and not check.figure.name)
        ]
        text = self._examined.view.text
        if self._examined.read:
            spans += unsupported_spans(text, best_of(self._examined.read).reading.tokens, MARKED)
        return spans_within(text, spans)

    def _proof(self) -> tuple[Evidence, ...]:
        """The sentence that decides, and those that have figures of the claim which it lacks."""
        if not self._examined.found.shared and self._verdict is not Verdict.SUPPORTED:
            return ()
        return tuple(map(self._examined.quote, [*dict.fromkeys(self._deciding())][:_MOST_PROOF]))

    def _deciding(self) -> Iterator[int]:
        rival = self._examined.rival
        if self._conflict is not None and self._conflict.sentence is not None:
            yield self._conflict.sentence
        elif rival is not None and rival.check.sentence is not None:
            yield rival.check.sentence
            yield rival.sentence
        yield self._examined.best_sentence(self._verdict)
        for check in self._examined.figures:
            found = check.state is State.FOUND and self._verdict is Verdict.SUPPORTED
            if found and check.sentence is not None:
                yield check.sentence

    def _reason(self, spans: Sequence[Span]) -> str:
        examined, verdict = self._examined, self._verdict
        contradicted = verdict is Verdict.CONTRADICTED
        if self._conflict is not None and self._conflict.source is not None:
            return _of_conflict(self._conflict, self._conflict.source)
        if contradicted and examined.says_otherwise:
            quote = examined.quote(examined.best_sentence(verdict)).quote
            return f"It was read as contradicting this passage: '{_shortened(quote)}'"
        if not contradicted and (doubt := _doubted(examined)):
            return doubt
        if lacking := _not_there(examined, [check.figure.text for check in self._absent]):
            return lacking
        if contradicted:
            return "It was read as contradicting the documents."
        if self._unsure:
            claimed, given = map(_quoted, self._unsure[0])
            return f"{claimed} may be the document's {given}: it depends on what the separator means."
        if verdict is Verdict.SUPPORTED:
            return _support_reason(examined)
        if not examined.found.shared:
            return "No passage was found that has any of its main words."
        # A contradiction may be likelier than all else, though not sure enough for the verdict.
        likeliest = self._told.contradicted == max(self._told)
        likely = bool(examined.read) and likeliest and examined.says_otherwise
        if not likely and (lacking := _not_there(examined, _unsaid(examined, spans))):
            return lacking
        number = examined.best_sentence(Verdict.CONTRADICTED if likely else verdict)
        coverage = examined.coverage(number)
        if coverage < _NEAR:
            return "No passage was read as supporting it."
        quote = _shortened(examined.quote(number).quote)
        if likely or coverage >= _CLOSE:
            # Whether that is what the claim says or its opposite, nothing but the verifier's doubt tells.
            return f"It may not say the same as this passage: '{quote}'"
        lacks = "say all of it" if verdict is Verdict.PARTIALLY_SUPPORTED else "support it"
        return f"This passage does not {lacks}: '{quote}'"


def _disagreeing(examined: Examination, rival: Rival | None) -> tuple[str, ...]:
    """The ids of the contexts that disagree: first that of the claim's value."""
    if rival is None or rival.check.sentence is None:
        return ()
    return tuple(examined.quote(number).context_id for number in (rival.check.sentence, rival.sentence))


def compared_exactly(judgement: Judgement, examined: Examination) -> bool:
    """Whether figures or the cells of a table contradict the claim, for which nothing needs to be read."""
    exact = Finding.FIGURE_CONFLICT in judgement.findings or any(cell.sure for cell in examined.cells)
    return judgement.verdict is Verdict.CONTRADICTED and exact


def unread(judgement: Judgement, examined: Examination, *, claim: bool) -> Judgement:
    """The judgement where the ``claim``, or else what would decide it, is in a language that the judge does
    not read. Only that a figure stands in no source still counts, against the claim."""
    findings = (*judgement.findings, Finding.LANGUAGE_UNCOVERED)
    if absent := [c for c in examined.figures if c.state is State.ABSENT and not c.figure.name]:
        return replace(
            judgement,
            verdict=Verdict.UNSUPPORTED,
            confidence=1.0 - (judgement.support or 0.0),
            reasoning=_not_there(examined, [check.figure.text for check in absent])
            or f"{_quoted(absent[0].figure)} was not found where the documents speak of it.",
            contradiction=0.0,
            findings=findings,
        )
    reason = f"{'The claim is' if claim else 'A document is'} in a language that the judge does not read"
    if examined.coverage(number := examined.found.sentences[0].number) >= _NEAR:
        closest = examined.quote(number).quote
        reason += f"; the closest passage is: '{_shortened(closest)}'"
    return replace(
        judgement,
        verdict=Verdict.UNVERIFIED,
        confidence=0.0,
        support=None,
        evidence=(),
        reasoning=f"{reason}." if reason[-1].isalpha() else reason,
        unsupported_spans=(),
        contradiction=None,
        findings=findings,
    )


def _not_there(examined: Examination, texts: Iterable[str]) -> str:
    """What is said of the texts that stand nowhere in the documents, letter for letter; empty if all do."""
    plain = examined.evidence.kept(_Words, lambda: _Words(examined.evidence))
    lacking = list(dict.fromkeys(" ".join(text.split()) for text in texts if text not in plain))
    quoted = " and ".join(f"'{text}'" for text in lacking[:_MOST_LACKING])
    many = "do" if len(lacking) > 1 else "does"
    return f"{quoted} {many} not appear in the documents." if lacking else ""


class _Words:
    """The words of all contexts in a row, to tell whether a text stands there literally."""

    def __init__(self, evidence: EvidenceIndex) -> None:
        self._all = "\n".join(_folded(evidence.shown(n)) for n in range(len(evidence.contexts)))

    def __contains__(self, text: str) -> bool:
        return _folded(text) in self._all


def _folded(text: str) -> str:
    return f" {' '.join(_LETTERS_OR_DIGITS.findall(text.casefold()))} "


def _of_conflict(conflict: FigureCheck, source: Figure) -> str:
    claimed, given = _quoted(conflict.figure), _quoted(source)
    if conflict.operands:
        first, second = map(_quoted, conflict.operands)
        whose = "the documents say" if conflict.sentence is not None else "by its own figures it is"
        return f"The claim says {claimed}; {whose} {first} against {second}."
    if conflict.sentence is None:
        return f"{given} is {shown(conflict.figure, source)}, not {claimed}."
    if conflict.owned is not None:
        thing, owner = conflict.owned.thing, conflict.owned.owner
        said = f"the document says {claimed} of '{owner}' and {given} of '{thing}'"
        return f"The claim says {claimed} of '{thing}'; {said}."
    return f"The claim says {claimed}, the document says {given}."


def _doubted(examined: Examination) -> str:
    """Why what a sentence says doesn't count, or not alone; empty where it does."""
    rival, lost = examined.rival, examined.revoked
    if rival is not None and rival.check.source is not None:
        (one, other), own = _disagreeing(examined, rival), _quoted(rival.check.source)
        return f"The contexts disagree: '{one}' says {own}, '{other}' says {_quoted(rival.figure)}."
    return "" if lost is None else f"{lost.how}: '{_shortened(examined.quote(lost.sentence).quote)}'"


def _left_open(check: FigureCheck) -> str:
    if check.source is not None:
        other = f"The claim says {_quoted(check.figure)}, a document {_quoted(check.source)}"
        return f"{other}; whether they speak of the same was not checked."
    if not check.figure.values:
        return f"Whether {_quoted(check.figure)} is right was not checked."
    return f"{_quoted(check.figure)} may have been calculated; whether it is right was not checked."


def _support_reason(examined: Examination) -> str:
    derived = (c for c in examined.figures if c.state is State.DERIVED and c.operands)
    calculated = next((c for c in derived if _quoted(c.figure) not in map(_quoted, c.operands)), None)
    if calculated is not None:
        of = " and ".join(_quoted(operand) for operand in calculated.operands[:3])
        return f"The documents say so; {_quoted(calculated.figure)} follows from {of}."
    if _same_words(examined):
        return "A document says so in nearly the same words."
    deciding = examined.quote(examined.best_sentence(Verdict.SUPPORTED))
    return f"It was read as supported by this passage: '{_shortened(deciding.quote)}'"


def _same_words(examined: Examination) -> bool:
    """Whether a sentence has nearly all words of the claim, in its order, few others, and denies no more."""
    view = examined.view
    best = max(examined.found.sentences, key=lambda match: match.coverage)
    quote = examined.quote(best.number).quote
    said = [term for _, term, _ in words_of(quote)]
    claimed = [term for _, term, _ in words_of(view.text)]
    if best.coverage < _SAME_WORDS or len(claimed) < _SAME_LENGTH * len(said):
        return False
    terms = iter(said)
    in_order = all(term in terms for term in claimed if term in best.terms)
    told_as_data = _YES_OR_NO.search(quote) is not None  # "in_stock": false
    return in_order and not told_as_data and Sentence(view.text).denials == Sentence(quote).denials


def _quoted(figure: Figure) -> str:
    return f"'{' '.join(figure.text.split())}'"


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    if len(text) <= _MOST_OF_A_SOURCE:
        return text
    end = text.rfind(" ", 0, _MOST_OF_A_SOURCE)
    return text[: end if end > 0 else _MOST_OF_A_SOURCE] + " …"


def _unsaid(examined: Examination, spans: Sequence[Span]) -> list[str]:
    """What of the claim may not appear in the contexts: what the verifier finds no support for and has a word
    that they lack; else the rarest words that they lack.

    Words are quoted as they are written. What names the source ("According to the price list, …") is none
    of them, nor is a figure that the sources have in another notation.
    """
    view = examined.view
    opener = _NAMES_A_SOURCE.match(view.text.lower().replace("’", "'"))
    begin = opener.end() if opener else 0
    found = [check.figure for check in examined.figures if check.state not in (State.CONFLICT, State.ABSENT)]
    words = written(view.text)
    lacking: dict[Span, float] = {}
    said = _stems(examined)
    for at, term, _ in words_of(view.text):
        weight = 0.0 if term in examined.found.present else view.content.get(term, 0.0)
        start, end = words[bisect_right(words, (at, len(view.text))) - 1] if words else (0, 0)
        if (
            weight
            and view.text[start:end][:_STEM].casefold() not in said
            and begin <= start <= at < end
            and not any(figure.start < end and start < figure.end for figure in found)
        ):
            lacking[start, end] = max(weight, lacking.get((start, end), 0.0))
    places = [start for start, _ in lacking]
    marked = [
        (max(start, begin), end)
        for start, end in spans
        if bisect_left(places, start) < bisect_left(places, end)
    ]
    rare = [span for span in lacking if lacking[span] >= _TELLING]
    longest = _short(view.text, sorted(marked, key=lambda span: span[0] - span[1]))
    return longest or _short(view.text, sorted(rare, key=lambda span: -lacking[span]))


def _stems(examined: Examination) -> frozenset[str]:
    """How the longer words of the sentences that were found begin: "cancelled" says "cancel", too."""
    texts = (examined.quote(match.number).quote for match in examined.found.sentences)
    return frozenset(
        text[start:end][:_STEM].casefold()
        for text in texts
        for start, end in written(text)
        if end - start >= _STEM
    )


def _short(text: str, spans: Sequence[Span]) -> list[str]:
    said = [text[start:end].split() for start, end in spans]
    return list(dict.fromkeys(" ".join(each) for each in said if len(each) <= _MOST_QUOTED))
