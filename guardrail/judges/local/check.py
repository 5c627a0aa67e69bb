"""Claims against the contexts of their response, one after the other.

    claim ── says that the documents are silent? ──► what it misses is searched for
      │   └─ a "No", or "Myth: …"? ────────────────► what that denies is judged, and turned round
      ▼
    search.py    the sentences that have most of its words, without those that a document takes back
      ├── figures/    its figures beside those sentences      ┐
      ├── cells.py    what it says beside the cells of tables ├ compared exactly, not read
      ├── doubts.py   other values in other contexts          ┘
      ├── stands there word for word? ─────────────► SUPPORTED, and nothing is read
      ▼
    reader.py    windows around the sentences, read until one settles it; then its facts one by one
      ▼
    combiner.py  what all of that makes likely ──► verdict.py: the verdict, and the reason in words

Invariants:
- a claim that the verifier should have read, and did not, is never SUPPORTED, and says so (``left_out``);
- a claim with a figure that is in conflict, or in no source, is never SUPPORTED;
- a judgement depends on the claim, its question and the contexts only, not on the request's other claims,
  unless time is short (``Pressed``): then less is read, exact comparisons are made all the same;
- ``stopped`` is asked before each claim, each window and each sentence whose figures are read: of a claim
  that isn't wholly judged by then nothing is said.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from guardrail.claims.assent import answers, stated_by
from guardrail.claims.detector import DENYING_LABEL, fold
from guardrail.claims.model import Claim, read_prose
from guardrail.claims.silence import Silence, silence_of
from guardrail.errors import ConfigError
from guardrail.events import Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.figures import FigureSource, State, check_figures
from guardrail.judges.local import verdict
from guardrail.judges.local.cells import check_cells, with_cells
from guardrail.judges.local.combiner import (
    Parameters,
    Read,
    best_of,
    load_parameters,
    packaged_folder,
    read_features,
    word_features,
)
from guardrail.judges.local.doubts import Doubts, may_stand_in
from guardrail.judges.local.examination import (
    Examination,
    cited_contexts,
    facts_of,
    figures_of,
    is_denied_elsewhere,
)
from guardrail.judges.local.languages import Languages
from guardrail.judges.local.reader import Reworded, WindowReader, reworded
from guardrail.judges.local.records import Tables
from guardrail.judges.local.search import (
    ClaimView,
    WindowText,
    find_candidates,
    load_rarity,
    mentioned,
    view_of,
    window_around,
    windows_of,
)
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.judges.model import Verifier, load_verifier, read_folder, served_verifier
from guardrail.verdicts import Judgement, checked_in_part

_LESS_LIKELY: Final = 0.1  # by which each window that settled nothing raises the line of what is hopeless
_DOUBTED: Final = 0.3  # support of a fact below which the claim is no better supported
_FACTS_SURE: Final = 0.9  # support of a claim from which on none of its facts is doubted
_SENTENCES: Final = 12  # that evidence search looks at more closely
_NEAR: Final = 5  # sentences whose figures are compared
_NOT_SAID: Final = frozenset({Verdict.PARTIALLY_SUPPORTED, Verdict.UNSUPPORTED})
_HARDLY_SAID: Final = 0.2  # support of what is asked, and of its denial, for a bare "no" to be SUPPORTED
_DENIED: Final = 0.9
_FEWER: Final = "verifier: too little time was left to read more than one window"
_WHOLE: Final = "verifier: too little time was left to read each fact by itself"
_YES_OR_NO: Final = re.compile(  # "False: it takes an hour" answers it
    r"\W*(?:is|are|was|were|do|does|did|can|could|may|must|should|will|would|has|have|had|true)\b",
    re.IGNORECASE,
)
_MOST_TOPICS: Final = 3  # that documents are said to be silent on
_SPOKEN_OF: Final = 0.6  # support of a text's saying something about a topic
_HOLDS: Final = 0.55  # support by one of two contexts that disagree
_NONE: Final = "verifier: too little time was left"

Pressed = Callable[[], int]
"""How short the time is: 0, not at all; 1, one window is read of each claim; 2, none is."""
_READS_ALL: Final = -1  # for fitting
_READS_ONE: Final = 1
_READS_NOTHING: Final = 2


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the claims of a request have in common. ``reader`` is None where there is no verifier."""

    question: str
    evidence: EvidenceIndex
    source: FigureSource
    reader: WindowReader | None
    stopped: Callable[[], bool]

    def reads(self, claim: Reworded, windows: Iterator[WindowText]) -> Iterator[Read]:
        """What the verifier says of a claim beside windows, until ``stopped()``; nothing without one."""
        return iter(()) if self.reader is None else self.reader.reads(claim, windows, self.stopped)

    def holds(self, text: str, number: int | None) -> bool:
        """Whether the verifier finds a text supported by a sentence and its neighbours."""
        window = iter(() if number is None else [window_around(self.evidence, number)])
        return any(read.reading.support >= _HOLDS for read in self.reads(Reworded(text, ()), window))


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
        self._read = parameters.read
        self._words = parameters.words
        # Whoever asks for more support before a claim is SUPPORTED has its facts read all the same.
        self._parts_from = min(parameters.read.lines.supported, self._read.lines.supported)

    def close(self) -> None:
        """End what the verifier holds on a server. Blocks."""
        if self._verifier is not None:
            self._verifier.close()

    def check(self, claim_id: str, claim: Claim, question: str, evidence: EvidenceIndex) -> Judgement:
        """Judge one claim without a deadline. Raises JudgeError when the verifier fails."""
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
        about = self._asked(question, evidence, stopped)
        for claim_id, claim in claims.items():
            if stopped():
                return
            pressure = 0 if about.reader is None else pressed()
            asked, answer = claim, answers(claim.lead_in, _text(claim) or claim.text)
            if answer is not None:
                claim = _with_text(claim, stated_by(claim.lead_in))
            silence = silence_of(fold(_text(claim)))
            spoken_of = None
            if silence is not None:
                spoken_of = mentioned(silence, evidence, self._rarity)
                if spoken_of is None and about.reader is not None and pressure < _READS_NOTHING:
                    spoken_of = self._spoken_of(silence, about)
                if stopped():
                    return
            if silence is not None and silence.rest is None:
                left_out = (_NONE,) if pressure >= _READS_NOTHING else ()
                judgement = verdict.judgement_of_silence(claim_id, spoken_of, evidence, left_out)
                yield _as_far_as_read(judgement, *left_out)
                continue
            part = (0, len(_text(claim))) if silence is None or silence.rest is None else silence.rest
            label = None if _YES_OR_NO.match(question) else DENYING_LABEL.match(fold(_text(claim)))
            if label is not None and part[0] == 0:
                part = label.end(), part[1]
            examined = self._examine(claim, part, about, pressure)
            if stopped():
                return
            judgement = self._judgement(claim_id, claim, examined, examined_of)
            if label is not None:
                judgement = verdict.said_to_be_false(judgement)
            if answer is False:
                judgement = self._of_no(asked, judgement, about, pressed)
            if answer is not None:  # its words are the question's
                judgement = replace(judgement, unsupported_spans=())
            if silence is not None:
                judgement = verdict.with_silence(judgement, spoken_of, evidence)
            yield _as_far_as_read(judgement, examined.left_out if examined is not None else None)

    def _of_no(self, asked: Claim, judgement: Judgement, about: _Asked, pressed: Pressed) -> Judgement:
        """The judgement of a "No", where that of what was asked is given: its denial may stand there."""
        text = stated_by(asked.lead_in, denied=True)
        if text and judgement.verdict in _NOT_SAID and (judgement.support or 0.0) <= _HARDLY_SAID:
            no = {judgement.claim_id: _with_text(asked, text)}
            again = self.check_all(no, about.question, about.evidence, about.stopped, pressed)
            denied = next(again, None)
            if denied is not None and (denied.support or 0.0) >= _DENIED:
                return denied
        return verdict.answered_no(judgement)

    def _spoken_of(self, silence: Silence, about: _Asked) -> int | None:
        """A sentence that speaks of one of the topics in other words, as the verifier reads it."""
        for topic in silence.topics[:_MOST_TOPICS]:
            view = view_of(topic, "", "", self._rarity)
            found = find_candidates(about.evidence.layout, view, _SENTENCES, cited=frozenset())
            said = Reworded(f"the text says something about {topic}.", ())
            for read in about.reads(said, windows_of(view, about.evidence, found.sentences)):
                if read.reading.support >= _SPOKEN_OF:
                    return read.window.best
        return None

    def _judgement(
        self,
        claim_id: str,
        claim: Claim,
        examined: Examination | None,
        examined_of: Callable[[str, Examination], None] | None,
    ) -> Judgement:
        if examined is None:
            return verdict.nothing_to_compare(claim_id)
        if examined_of is not None:
            examined_of(claim_id, examined)
        fit = self._read if examined.read else self._words
        if examined.standing is not None:
            said = examined.evidence.quote(*examined.standing)
            return verdict.judgement_word_for_word(claim_id, said, fit.lines.supported)
        told = fit.combiner.probabilities(examined.features)
        degraded = () if examined.left_out is None else (examined.left_out,)
        judgement = verdict.Ruling(examined, told, fit.lines).judgement(claim_id, degraded)
        if claim.mentions:
            judgement = verdict.mentioned_only(judgement, rightly=examined.has_right_figures)
        if judgement.verdict is Verdict.UNVERIFIED or verdict.compared_exactly(judgement, examined):
            return judgement
        if self._languages.other(examined.view.text):
            return verdict.unread(judgement, examined, claim=True)
        other = self._languages.other(*examined.deciding_texts(judgement.verdict))
        if other and (context := examined.context_of_few_words(judgement.verdict)):
            other = self._languages.other(context)
        if judgement.verdict in _NOT_SAID and not examined.found.shared:  # what isn't read may say it
            other = self._languages.other_contexts(examined.evidence)
        return verdict.unread(judgement, examined, claim=False) if other else judgement

    def examine(self, claim: Claim, question: str, evidence: EvidenceIndex) -> Examination | None:
        """What is found out about a claim; None if there is nothing to compare it with. All windows are read,
        also where one settles it; for fitting. Raises JudgeError when the verifier fails."""
        about = self._asked(question, evidence, lambda: False)
        return self._examine(claim, (0, len(_text(claim))), about, _READS_ALL)

    def compare(
        self, claim: Claim, question: str, evidence: EvidenceIndex, stopped: Callable[[], bool]
    ) -> Examination | None:
        """What is found out about a claim where somebody else reads it, until ``stopped()``; None if there is
        nothing to compare it with."""
        about = self._asked(question, evidence, stopped)
        return self._examine(claim, (0, len(_text(claim))), about, 0)

    def may_stand(self, claim: Claim, evidence: EvidenceIndex) -> bool:
        """Whether ``compare`` may find that a context has the claim word for word. Cheap."""
        shown = (evidence.shown(number) for number in range(len(evidence.contexts)))
        return any(may_stand_in(_text(claim), text) for text in shown)

    def reads(self, examined: Examination) -> bool:
        """Whether the claim, and the sentence closest to it, are in languages that are compared here."""
        closest = examined.quote(examined.found.sentences[0].number).quote
        return not self._languages.other(examined.view.text, closest)

    def _asked(self, question: str, evidence: EvidenceIndex, stopped: Callable[[], bool]) -> _Asked:
        reader = None if self._verifier is None else WindowReader(self._verifier)
        return _Asked(question, evidence, figures_of(evidence), reader, stopped)

    def _examine(
        self, claim: Claim, part: tuple[int, int], about: _Asked, pressure: int
    ) -> Examination | None:
        evidence, source, question = about.evidence, about.source, about.question
        view = view_of(_text(claim)[slice(*part)], question, claim.lead_in, self._rarity)
        found = find_candidates(evidence.layout, view, _SENTENCES, cited=cited_contexts(claim, evidence))
        if not found.sentences:
            return None
        doubts = Doubts(view, found, source, evidence)
        near = [match.number for match in doubts.standing[:_NEAR]]
        figures = check_figures(view.text, source, near, question, claim.lead_in, about.stopped)
        tables = evidence.kept(Tables, lambda: Tables(evidence))
        cells = check_cells(view.text, tables, claim.lead_in, question)
        open_ = (State.DERIVED, State.UNCHECKED, State.FOUND)
        accounted = {check.figure.start for check in figures if check.state in open_}
        otherwise = [c for c in cells.otherwise if c.owner or not c.figure or c.start not in accounted]
        figures = with_cells(figures, cells)
        rival = None
        if pressure == 0:
            elsewhere = doubts.backed_elsewhere(figures) if about.reader is not None else ()
            rival = next((r for r in elsewhere if about.holds(view.text, r.check.sentence)), None)
        if rival is not None:
            figures = tuple(rival.check if c.figure == rival.check.figure else c for c in figures)
        examined = Examination(
            view, found, evidence, figures, word_features(view, found, figures), part[0], cells=otherwise,
            rival=rival, revoked=doubts.revoked(figures),
        )  # fmt: skip
        doubted = otherwise or examined.revoked or rival or any(check.owned for check in figures)
        if pressure >= 0 and not (
            doubted or claim.prose.deceptive or is_denied_elsewhere(view, found, source)
        ):
            standing = doubts.word_for_word(figures, claim.lead_in, self._rarity)
            if standing is not None and not any(doubts.rivals(figures)):
                return replace(examined, standing=standing)
        if about.reader is None:
            return examined
        words = reworded(view.text, figures, claim.lead_in, question, row="|" in claim.text)
        words = replace(words, known=f"{words.known} {cells.told}" if cells.told else words.known)
        return self._with_readings(examined, doubts, words, about, pressure)

    def _with_readings(
        self, examined: Examination, doubts: Doubts, words: Reworded, about: _Asked, pressure: int
    ) -> Examination:
        """What was compared, with what the verifier says of the claim in these ``words``."""
        assert about.reader is not None  # noqa: S101
        view, features, rival = examined.view, examined.features, examined.rival
        windows = windows_of(view, about.evidence, doubts.standing, doubts.gone)
        if pressure >= _READS_NOTHING:
            return replace(examined, left_out=_NONE if about.reader.readable(words, windows) else None)
        read: list[Read] = []
        settled = False
        for each in about.reads(words, windows):
            read.append(each)
            settled = pressure >= 0 and self._settled(features, read)
            if settled or pressure == _READS_ONE:
                break
        if not read:
            return examined
        features |= read_features(read)
        more = pressure == _READS_ONE and not settled and about.reader.readable(words, windows)
        left_out = _FEWER if more else None
        facts = self._open_facts(view, words.known, features) if pressure >= 0 and left_out is None else []
        if pressure == _READS_ONE and facts:
            left_out = _WHOLE
        elif facts:
            features |= self._least_of(facts, features, read, about)
        if rival is None and pressure == 0:
            others = doubts.rivals(examined.figures)
            rival = next((r for r in others if about.holds(r.said_of(view.text), r.sentence)), None)
        return replace(examined, features=features, read=read, left_out=left_out, rival=rival)

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
        about: _Asked,
    ) -> dict[str, float]:
        """The features of the fact that is supported least; nothing where all of them are."""
        least: dict[str, float] = {}
        lowest = _DOUBTED
        for fact in facts:
            window = iter([best_of(read).window])
            found = read_features(list(about.reads(fact, window)) or read)
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


def _with_text(claim: Claim, text: str) -> Claim:
    """What a bare "Yes" or "No" behind a question says."""
    return replace(claim, text=text, lead_in="", prose=read_prose(text), citations=())


def _text(claim: Claim) -> str:
    return claim.prose.text


def _as_far_as_read(judgement: Judgement, left_out: str | None = None) -> Judgement:
    """``judgement`` of a claim for which there was no time to read ``left_out``."""
    if left_out is not None:
        judgement = replace(judgement, hurried=True)
    return checked_in_part(judgement) if left_out == _NONE else judgement


def build_checker(settings: LocalJudgeSettings) -> ClaimChecker:
    """The checker that the settings describe; loads the verifier, if there is one. Raises ConfigError."""
    parameters = load_parameters(settings.verifier.path)
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
    if settings.verifier.path is not None and not os.access(settings.verifier.path, os.R_OK):
        return
    parameters = load_parameters(settings.verifier.path)
    folder = _folder(settings, parameters)
    if folder is not None:
        manifest, _, _ = read_folder(folder)
        if manifest.checksum != parameters.verifier.sha256:
            raise _other_verifier(parameters, manifest.name, manifest.checksum)


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
        "fit parameters for this one with training.calibrate"
    )
