"""Claims against the contexts of their response: search, reading, figures, combiner, verdict."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final, overload

from guardrail.claims.assent import answers, stated_by
from guardrail.claims.detector import DENYING_LABEL, fold
from guardrail.claims.model import Claim
from guardrail.claims.phrases import pattern
from guardrail.claims.prose import read_prose
from guardrail.claims.silence import Silence, silence_of
from guardrail.errors import ConfigError
from guardrail.events import Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.evidence.tokens import words as words_of
from guardrail.figures import FigureCheck, FigureSource, SourceText, State, check_figures
from guardrail.judges.local.cells import CellCheck, Tables, check_cells, with_cells
from guardrail.judges.local.combiner import (
    Fit,
    Parameters,
    Read,
    best_of,
    load_parameters,
    packaged_folder,
    read_features,
    word_features,
)
from guardrail.judges.local.doubts import Revoked, Rival, backed_elsewhere, revoked, rivals_of, taken_back
from guardrail.judges.local.languages import Languages
from guardrail.judges.local.reader import Reworded, WindowReader, reworded
from guardrail.judges.local.search import (
    Candidates,
    ClaimView,
    find_candidates,
    load_rarity,
    mentioned,
    view_of,
    window_around,
    windows_of,
    word_for_word,
)
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.judges.local.verdict import (
    Examined,
    answered_no,
    compared_exactly,
    deciding_texts,
    judgement_of,
    judgement_of_silence,
    judgement_word_for_word,
    mentioned_only,
    nothing_to_compare,
    said_to_be_false,
    unread,
    with_silence,
)
from guardrail.judges.model import Verifier, load_verifier, read_folder, served_verifier
from guardrail.verdicts import Judgement, checked_in_part

NAME: Final = "local"
_FINITE: Final = pattern("finite")
_JOINING: Final = re.compile(r"(?:[,;]\s+|\s+)(?:and|but|while|whereas|whilst)\s+|;\s+", re.IGNORECASE)
_SEVERAL: Final = 2
_MOST_FACTS: Final = 4
_FACT_SPACES: Final = 2
_LESS_LIKELY: Final = 0.1  # by which each window that settled nothing raises the line of what is hopeless
_DOUBTED: Final = 0.3  # support of a fact below which the claim is no better supported
_FACTS_SURE: Final = 0.85  # support of a claim from which on none of its facts is doubted
_SENTENCES: Final = 12  # that evidence search looks at more closely
_NEAR: Final = 5  # sentences whose figures are compared
_NOT_SAID: Final = frozenset({Verdict.PARTIALLY_SUPPORTED, Verdict.UNSUPPORTED})
_HARDLY_SAID: Final = 0.2  # support of what is asked, and of its denial, for a bare "no" to be SUPPORTED
_DENIED: Final = 0.9
_SAME_MATTER: Final = 0.5  # of what a question or data says around a figure, that its sentence says too
_FEWER: Final = "verifier: too little time was left to read more than one window"
_WHOLE: Final = "verifier: too little time was left to read each fact by itself"
_ALL_BUT: Final = 0.8  # of a claim, in a sentence that says or denies it
_FEW_MORE: Final = 2  # words
_YES_OR_NO: Final = re.compile(  # "False: it takes an hour" answers it
    r"\W*(?:is|are|was|were|do|does|did|can|could|may|must|should|will|would|has|have|had|true)\b",
    re.IGNORECASE,
)
_MOST_TOPICS: Final = 3  # that documents are said to be silent on
_SPOKEN_OF: Final = 0.7  # support of a text's saying something about a topic
_HOLDS: Final = 0.55  # support by one of two contexts that disagree
_NONE: Final = "verifier: too little time was left"

Pressed = Callable[[], int]
"""How short the time is: 0, not at all; 1, one window is read of each claim; 2, none is."""
_READS_ONE: Final = 1
_READS_NOTHING: Final = 2


@dataclass(frozen=True, slots=True)
class Examination:
    """Everything found out about one claim. ``features`` are those of words and figures and, where the
    verifier has read, of what it ``read``. ``left_out`` says what there was no time to read, ``cells`` what
    the cells of a table say otherwise, ``standing`` where the claim stands word for word, ``(context, start,
    end)``: then nothing is read; ``rival`` that another context has another value, and ``revoked`` that the
    document takes back what backs the claim."""

    view: ClaimView
    found: Candidates
    figures: Sequence[FigureCheck]
    features: dict[str, float]
    read: Sequence[Read]
    left_out: str | None = None
    cells: Sequence[CellCheck] = ()
    standing: tuple[int, int, int] | None = None
    rival: Rival | None = None
    revoked: Revoked | None = None


class ClaimChecker:
    """CPU work without state of its own, so threads may share one."""

    def __init__(
        self, settings: LocalJudgeSettings, parameters: Parameters, verifier: Verifier | None = None
    ) -> None:
        """Raises ConfigError where ``parameters`` were fitted with another verifier."""
        if verifier is not None and verifier.sha256 != parameters.verifier.sha256:
            raise _other_verifier(parameters, verifier.name, verifier.sha256)
        self._verifier = verifier
        self._rarity = load_rarity()
        self._languages = Languages(settings.languages)
        self._read = _as_set(parameters.read, settings)
        self._words = _as_set(parameters.words, settings)
        # Whoever asks for more support before a claim is SUPPORTED has its facts read all the same.
        self._parts_from = min(parameters.read.lines.supported, self._read.lines.supported)

    def close(self) -> None:
        """End what the verifier holds on a server. Blocks."""
        if self._verifier is not None:
            self._verifier.close()

    def check(self, claim_id: str, claim: Claim, question: str, evidence: EvidenceIndex) -> Judgement:
        """The judgement of one claim, in peace. Raises JudgeError when the verifier fails."""
        return next(self.check_all({claim_id: claim}, question, evidence, lambda: False))

    def check_all(
        self,
        claims: Mapping[str, Claim],
        question: str,
        evidence: EvidenceIndex,
        stopped: Callable[[], bool],
        pressed: Pressed = lambda: 0,
        examined_of: Callable[[str, Examination], None] | None = None,
    ) -> Iterator[Judgement]:
        """The judgements of a request's claims, in their order, until ``stopped()``.

        It is asked before each claim and each window; a claim that isn't wholly judged by then has no
        judgement. ``pressed()`` is asked before each claim: a verdict on less is better than none, and says
        so where something was left out. A claim that the verifier should have read, and did not, is never
        SUPPORTED. ``examined_of`` gets what was found out about each claim that was compared. Raises
        JudgeError when the verifier fails.
        """
        reader = None if self._verifier is None else WindowReader(self._verifier)
        source = _figures_of(evidence)
        for claim_id, claim in claims.items():
            if stopped():
                return
            pressure = 0 if reader is None else pressed()
            asked, answer = claim, answers(claim.lead_in, _text(claim) or claim.text)
            if answer is not None:
                claim = _with_text(claim, stated_by(claim.lead_in))
            silence = silence_of(fold(_text(claim)))
            spoken_of = None
            if silence is not None:
                spoken_of = mentioned(silence, evidence, self._rarity)
                if spoken_of is None and reader is not None and pressure < _READS_NOTHING:
                    spoken_of = self._spoken_of(silence, evidence, reader, stopped)
                if stopped():
                    return
            if silence is not None and silence.rest is None:
                unread = (_NONE,) if reader is not None and pressure >= _READS_NOTHING else ()
                judgement = judgement_of_silence(claim_id, NAME, spoken_of, evidence, unread)
                yield _as_far_as_read(judgement, *unread)
                continue
            part = (0, len(_text(claim))) if silence is None or silence.rest is None else silence.rest
            label = None if _YES_OR_NO.match(question) else DENYING_LABEL.match(fold(_text(claim)))
            if label is not None and part[0] == 0:
                part = label.end(), part[1]
            examined = self._examine(claim, part, question, evidence, source, reader, pressure, stopped)
            if stopped():
                return
            judgement = self._judgement(claim_id, claim, examined, part[0], evidence, examined_of)
            if label is not None:
                judgement = said_to_be_false(judgement)
            if answer is False:
                judgement = self._of_no(asked, judgement, question, evidence, stopped, pressed)
            if answer is not None:  # its words are the question's
                judgement = replace(judgement, unsupported_spans=())
            if silence is not None:
                judgement = with_silence(judgement, spoken_of, evidence)
            left_out = examined.left_out if examined is not None else None
            yield _as_far_as_read(judgement, left_out)

    def _of_no(
        self,
        asked: Claim,
        judgement: Judgement,
        question: str,
        evidence: EvidenceIndex,
        stopped: Callable[[], bool],
        pressed: Pressed,
    ) -> Judgement:
        """The judgement of a "No", where that of what was asked is given: its denial may stand there."""
        text = stated_by(asked.lead_in, denied=True)
        if text and judgement.verdict in _NOT_SAID and (judgement.support or 0.0) <= _HARDLY_SAID:
            no = {judgement.claim_id: _with_text(asked, text)}
            denied = next(self.check_all(no, question, evidence, stopped, pressed), None)
            if denied is not None and (denied.support or 0.0) >= _DENIED:
                return denied
        return answered_no(judgement)

    def _spoken_of(
        self, silence: Silence, evidence: EvidenceIndex, reader: WindowReader, stopped: Callable[[], bool]
    ) -> int | None:
        """A sentence that speaks of one of the topics in other words, as the verifier reads it."""
        for topic in silence.topics[:_MOST_TOPICS]:
            view = view_of(topic, "", "", self._rarity)
            found = find_candidates(evidence.layout, view, _SENTENCES, cited=frozenset())
            asked = Reworded(f"the text says something about {topic}.", ())
            for read in reader.reads(asked, windows_of(view, evidence, found.sentences), stopped):
                if read.reading.support >= _SPOKEN_OF:
                    return read.window.best
        return None

    def _judgement(
        self,
        claim_id: str,
        claim: Claim,
        examined: Examination | None,
        start: int,
        evidence: EvidenceIndex,
        examined_of: Callable[[str, Examination], None] | None,
    ) -> Judgement:
        if examined is None:
            return nothing_to_compare(claim_id, NAME)
        if examined_of is not None:
            examined_of(claim_id, examined)
        fit = self._read if examined.read else self._words
        if examined.standing is not None:
            said = evidence.quote(*examined.standing)
            return judgement_word_for_word(claim_id, NAME, said, fit.lines.supported)
        whole = Examined(
            examined.view,
            examined.found,
            examined.figures,
            examined.read,
            fit.combiner.probabilities(examined.features),
            fit.lines,
            evidence,
            start,
            examined.cells,
            examined.rival,
            examined.revoked,
        )
        degraded = () if examined.left_out is None else (examined.left_out,)
        judgement = judgement_of(claim_id, NAME, whole, degraded)
        if claim.mentions:
            judgement = mentioned_only(judgement, rightly=_mentioned_rightly(examined))
        if judgement.verdict is Verdict.UNVERIFIED or compared_exactly(judgement, whole):
            return judgement
        if self._languages.other(examined.view.text):
            return unread(judgement, whole, claim=True)
        other = self._languages.other(*deciding_texts(whole, judgement.verdict))
        if judgement.verdict in _NOT_SAID and not examined.found.shared:  # what isn't read may say it
            other = self._languages.other_contexts(evidence)
        return unread(judgement, whole, claim=False) if other else judgement

    def examine(
        self, claim: Claim, question: str, evidence: EvidenceIndex, *, wholly: bool = True
    ) -> Examination | None:
        """What is found out about a claim; None if there is nothing to compare it with. ``wholly``: all
        windows are read, also where one settles it; for fitting. Raises JudgeError when the verifier
        fails."""
        reader = None if self._verifier is None else WindowReader(self._verifier)
        source = _figures_of(evidence)
        whole = (0, len(_text(claim)))
        pressure = -1 if wholly else 0
        return self._examine(claim, whole, question, evidence, source, reader, pressure, lambda: False)

    def _examine(
        self,
        claim: Claim,
        part: tuple[int, int],
        question: str,
        evidence: EvidenceIndex,
        source: FigureSource,
        reader: WindowReader | None,
        pressure: int,
        stopped: Callable[[], bool],
    ) -> Examination | None:
        view = view_of(_text(claim)[slice(*part)], question, claim.lead_in, self._rarity)
        found = find_candidates(evidence.layout, view, _SENTENCES, cited=_cited(claim, evidence))
        if not found.sentences:
            return None
        gone = taken_back(view, found, evidence)
        matches = tuple(m for m in found.sentences if m.number not in gone) or found.sentences
        near = [match.number for match in matches[:_NEAR]]
        figures = check_figures(view.text, source, near, question, claim.lead_in, stopped)
        tables = evidence.kept(Tables, lambda: Tables(evidence))
        cells = check_cells(view.text, tables, claim.lead_in, question)
        open_ = (State.DERIVED, State.UNCHECKED, State.FOUND)
        reckoned = {check.figure.start for check in figures if check.state in open_}
        otherwise = [c for c in cells.otherwise if c.owner or not c.figure or c.start not in reckoned]
        figures = with_cells(figures, cells)
        rival = None
        if reader is not None and pressure == 0:
            elsewhere = backed_elsewhere(view, figures, source, evidence, gone)
            rival = next((r for r in elsewhere if self._backs(view.text, r, evidence, reader, stopped)), None)
        if rival is not None:
            figures = tuple(rival.check if c.figure == rival.check.figure else c for c in figures)
        features = word_features(view, found, figures)
        lost = revoked(view, figures, found, source, evidence)
        examination = Examination(view, found, figures, features, (), cells=otherwise, revoked=lost)
        known = replace(found, sentences=matches)
        doubted = otherwise or lost or rival or any(check.owned for check in figures)
        if pressure >= 0 and not (doubted or claim.prose.deceptive or _denied_elsewhere(view, found, source)):
            standing = word_for_word(view, claim.lead_in, found, figures, evidence, self._rarity)
            if standing is not None and not any(rivals_of(view, figures, known, source, evidence)):
                return replace(examination, standing=standing)
        if reader is None:
            return examination
        words = reworded(view.text, figures, claim.lead_in, question, row="|" in claim.text)
        words = replace(words, known=f"{words.known} {cells.told}" if cells.told else words.known)
        windows = windows_of(view, evidence, matches, gone)
        if pressure >= _READS_NOTHING:
            return replace(examination, left_out=_NONE if reader.readable(words, windows) else None)
        read: list[Read] = []
        settled = False
        for each in reader.reads(words, windows, stopped):
            read.append(each)
            settled = pressure >= 0 and self._settled(features, read)
            if settled or pressure == _READS_ONE:
                break
        if not read:
            return examination
        features |= read_features(read)
        left_out = (
            _FEWER if pressure == _READS_ONE and not settled and reader.readable(words, windows) else None
        )
        facts = self._open_facts(view, words.known, features) if pressure >= 0 and left_out is None else []
        if pressure == _READS_ONE and facts:
            left_out = _WHOLE
        elif facts:
            features |= self._least_of(facts, features, read, reader, stopped)
        if rival is None and pressure == 0:
            rivals = rivals_of(view, figures, known, source, evidence)
            said = ((each, each.said_of(view.text)) for each in rivals)
            held = (r for r, text in said if self._holds(text, r.sentence, evidence, reader, stopped))
            rival = next(held, None)
        return replace(examination, features=features, read=read, left_out=left_out, rival=rival)

    def _backs(
        self,
        text: str,
        rival: Rival,
        evidence: EvidenceIndex,
        reader: WindowReader,
        stopped: Callable[[], bool],
    ) -> bool:
        """Whether the sentence that has the claim's value supports the claim."""
        number = rival.check.sentence
        return number is not None and self._holds(text, number, evidence, reader, stopped)

    def _holds(
        self,
        text: str,
        number: int,
        evidence: EvidenceIndex,
        reader: WindowReader,
        stopped: Callable[[], bool],
    ) -> bool:
        """Whether the verifier finds a text supported by a sentence and its neighbours."""
        window = iter([window_around(evidence, number)])
        return any(r.reading.support >= _HOLDS for r in reader.reads(Reworded(text, ()), window, stopped))

    def _open_facts(self, view: ClaimView, known: str, features: Mapping[str, float]) -> list[Reworded]:
        """The facts of a claim of several that is supported, unless it surely is: those are worth a reading
        each.

        A sentence of two facts is mostly the source's where one of them is wrong, and the verifier reads over
        it.
        """
        told = self._read.combiner.probabilities(features).supported
        if not self._parts_from <= told < _FACTS_SURE:
            return []
        return [Reworded(view.text[start:end], (), known) for start, end in facts_of(view.text)]

    def _least_of(
        self,
        facts: Sequence[Reworded],
        features: dict[str, float],
        read: Sequence[Read],
        reader: WindowReader,
        stopped: Callable[[], bool],
    ) -> dict[str, float]:
        """The features of the fact that is supported least; nothing where all of them are."""
        least: dict[str, float] = {}
        lowest = _DOUBTED
        for fact in facts:
            window = iter([best_of(read).window])
            found = read_features(list(reader.reads(fact, window, stopped)) or read)
            support = self._read.combiner.probabilities(features | found).supported
            if support < lowest:
                least, lowest = found, support
        return least

    def _settled(self, features: dict[str, float], read: Sequence[Read]) -> bool:
        """Whether another window would hardly change the verdict: the less likely, the more were read."""
        lines = self._read.lines
        told = self._read.combiner.probabilities(features | read_features(read))
        hopeless = lines.hopeless + _LESS_LIKELY * (len(read) - 1)
        return told.supported >= lines.sure or told.supported <= hopeless


def _denied_elsewhere(view: ClaimView, found: Candidates, source: FigureSource) -> bool:
    """Whether one sentence has nearly all words of a claim, and few others, and denies it, and another has
    it: two documents that disagree in words."""
    told = [source.sentence(m.number) for m in found.sentences if m.coverage >= _ALL_BUT]
    own = frozenset(term for _, term, _ in words_of(view.text))
    return len({sentence.denials % 2 for sentence in told if len(sentence.terms - own) <= _FEW_MORE}) > 1


def _cited(claim: Claim, evidence: EvidenceIndex) -> frozenset[int]:
    """The numbers of the contexts that the claim cites."""
    if not claim.citations:
        return frozenset()
    ids = {context_id for citation in claim.citations for context_id in citation.context_ids}
    return frozenset(number for number, context in enumerate(evidence.contexts) if context.id in ids)


def _mentioned_rightly(examined: Examination) -> bool:
    """Whether all figures of a claim stand in the sources, of the same matter as far as words tell."""
    if examined.cells or examined.rival or examined.revoked:
        return False
    return bool(examined.figures) and all(
        check.state is State.FOUND and check.frame >= _SAME_MATTER and not check.owned and not check.disputed
        for check in examined.figures
    )


def _with_text(claim: Claim, text: str) -> Claim:
    """What a bare "Yes" or "No" behind a question says."""
    return replace(claim, text=text, lead_in="", prose=read_prose(text), citations=())


def _text(claim: Claim) -> str:
    return claim.prose.text


def facts_of(text: str) -> list[tuple[int, int]]:
    """The stretches of a claim that state something each, where it has several; else none. Linear."""
    borders = [(0, 0), *(match.span() for match in _JOINING.finditer(text)), (len(text), len(text))]
    stretches = [(end, begin) for (_, end), (begin, _) in pairwise(borders)]
    if len(stretches) < _SEVERAL or len(stretches) > _MOST_FACTS:
        return []
    parts = [text[start:end].lower() for start, end in stretches]
    stating = all(part.count(" ") >= _FACT_SPACES and _FINITE.search(part) for part in parts)
    return stretches if stating else []


def _figures_of(evidence: EvidenceIndex) -> FigureSource:
    return evidence.kept(FigureSource, lambda: FigureSource(_Sentences(evidence)))


class _Sentences(Sequence[SourceText]):
    """The sentences of the contexts, as the figures check takes them; made when they are asked for."""

    def __init__(self, evidence: EvidenceIndex) -> None:
        self._evidence = evidence
        self._all = evidence.layout.sentences

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, number: int) -> SourceText: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[SourceText]: ...
    def __getitem__(self, number: int | slice) -> SourceText | Sequence[SourceText]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        context = self._all.context[number]
        start, end = self._all.start[number], self._all.end[number]
        text = self._evidence.shown(context)
        first = number == 0 or self._all.context[number - 1] != context
        before = "\n\n" if first else text[self._all.end[number - 1] : start]
        return SourceText(self._evidence.contexts[context].id, start, end, text[start:end], before)


def _as_far_as_read(judgement: Judgement, left_out: str | None = None) -> Judgement:
    """``judgement`` of a claim for which there was no time to read ``left_out``."""
    if left_out is not None:
        judgement = replace(judgement, hurried=True)
    return checked_in_part(judgement) if left_out == _NONE else judgement


def _as_set(fit: Fit, settings: LocalJudgeSettings) -> Fit:
    """The fit, with the lines of the settings where they have some."""
    high = fit.lines.supported if settings.supported_at is None else settings.supported_at
    low = min(fit.lines.partially, high)
    return fit.model_copy(
        update={"lines": fit.lines.model_copy(update={"supported": high, "partially": low})}
    )


def build_checker(settings: LocalJudgeSettings) -> ClaimChecker:
    """The checker that the settings describe; loads the verifier, if there is one. Raises ConfigError."""
    parameters = load_parameters(settings.parameters_path)
    folder = _folder(settings, parameters)
    if folder is None:
        return ClaimChecker(settings, parameters)
    if settings.verifier.server is not None:
        return ClaimChecker(settings, parameters, served_verifier(folder, settings.verifier.server))
    return ClaimChecker(settings, parameters, load_verifier(folder))


def check_files(settings: LocalJudgeSettings) -> None:
    """What ``build_checker`` would refuse of the files that are here, without loading the verifier.

    Raises ConfigError. Of files that the settings name and that are not here nothing is said: they may be
    where the judge runs.
    """
    if not _readable(settings.parameters_path):
        return
    parameters = load_parameters(settings.parameters_path)
    folder = _folder(settings, parameters)
    if folder is not None and _readable(folder):
        manifest, _, _ = read_folder(folder)
        if manifest.checksum != parameters.verifier.sha256:
            raise _other_verifier(parameters, manifest.name, manifest.checksum)


def _readable(path: Path | None) -> bool:
    return path is None or os.access(path, os.R_OK)


def _folder(settings: LocalJudgeSettings, parameters: Parameters) -> Path | None:
    """The folder of the verifier, or None where there shall be none. Raises ConfigError."""
    if not settings.verifier.enabled:
        return None
    folder = settings.verifier.path or packaged_folder()
    if folder is None:
        raise ConfigError(
            f"judge.local.verifier.path is unset and the package has no verifier, but the parameters were "
            f"fitted with {parameters.verifier.name}; name its folder, reinstall the package, or set "
            "judge.local.verifier.enabled to false"
        )
    return folder


def _other_verifier(parameters: Parameters, name: str, sha256: str) -> ConfigError:
    fitted = parameters.verifier
    return ConfigError(
        f"judge.local.verifier: the parameters were fitted with {fitted.name} (sha256 {fitted.sha256}), but "
        f"{name} (sha256 {sha256}) is loaded; set judge.local.verifier.path to its folder, or "
        "judge.local.parameters_path to parameters that training.calibrate wrote for this one"
    )
