"""Make pairs of claim and passage from the texts of the data sets: WORK/synthetic.jsonl.gz.

    python -m training.synthesise --data DIR --work WORK [--pairs N] [--seed S]

Half of the pairs are supported. A claim is a sentence of the passage, mostly in other words, or the same with
one detail changed (``training.perturb``), one word replaced (``training.perturb_words``), something added (a
short modifier, too: ``training.modifiers``), or its sentence missing from the passage; or it gathers what the
passage says in several. In one pair of seven or so it is the *passage* that was changed, or hedged
(``training.perturb_hedges``), so that neither the wording of a claim nor what is likely in the world tells
its label.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from training.changes import MIRRORED, Change, label_of
from training.examples import DataError
from training.modifiers import without_modifier
from training.paraphrase import SHORTENING, joined, left_out, paraphrased
from training.passages import Source, claimable, covers, neighbours, sources
from training.perturb import altered
from training.perturb_hedges import hedged
from training.perturb_meaning import crossed, joined_with
from training.perturb_words import Substitutes
from training.prepare import source_rows

SEED: Final = 20260606
PAIRS: Final = 60_000
_WEIGHTS: Final[dict[str, float]] = {
    "number": 6.0, "date": 1.8, "unit": 7.0, "name": 2.2, "swap": 5.0, "negation": 0.7, "antonym": 0.9,
    "comparison": 3.0, "qualifier": 9.0, "overgeneralisation": 6.0, "addition": 1.5, "merge": 0.3,
    "absent": 1.4, "word": 1.5,
}  # fmt: skip
_ENTAILED: Final = ("addition", "qualifier", "overgeneralisation")
_TELLING: Final = ("overgeneralisation", "negation", "addition", "swap", "unit")
"""Kinds whose wording gives them away: the same wording is to be seen in supported claims."""
_MIRRORED_SHARE: Final = 0.26
_HEDGED_SHARE: Final = 0.14  # of those that aren't gathered are tried; the others may be mirrored
_MODIFIED_SHARE: Final = 0.5  # of those that come so far are tried; few sentences have a modifier that may go
_OWN: Final = ("absent", "merge")  # kinds that are made by methods of their own
_MANY_SENTENCES: Final = 6  # of a document: its sentences are taken more often
_RICH: Final = re.compile(
    r"(?<!\d)\d{1,3}(?:,\d{3})*(?:\.\d+)?(?!\d)|\b(?:some|many|most|often|usually|sometimes|mainly|mostly|largely|may"
    r"|might|probably|up to|fewer|less|more than|increased?|larger|higher|lower|largest|if|tried|expected)\b"
)
"""What errors that matter need, and few sentences have: those that do are taken more often."""


@dataclass(frozen=True, slots=True)
class Pair:
    """``spans``: what of the claim the passage doesn't support; None where it is not known."""

    claim: str
    passage: str
    label: str
    kind: str | None
    spans: tuple[tuple[int, int], ...] | None
    made: str

    def row(self, source: Source) -> dict[str, Any]:
        """As the work folder's files hold it."""
        return {
            "dataset": f"synthetic-{self.kind or 'supported'}",
            "source": source.document.dataset,
            "licence": source.document.licence,
            "claim": self.claim,
            "contexts": [self.passage],
            "label": self.label,
            "kind": self.kind,
            "spans": None if self.spans is None else [list(span) for span in self.spans],
            "made": self.made,
            "held_out": source.document.held_out,
        }


class Maker:
    """Makes pairs from sources; what else stands in a passage is of the same side of the split."""

    def __init__(self, found: Sequence[Source], random_: random.Random) -> None:
        self._random = random_
        self._alone = {
            side: [s.sentence for s in found if s.document.held_out == side] for side in (True, False)
        }
        self._names = {
            side: sorted({n for s in found if s.document.held_out == side for n in s.document.names})
            for side in (True, False)
        }
        self._substitutes = Substitutes(sorted({s.sentence for s in found if not s.document.held_out}))

    def pair(self, source: Source, *, supported: bool) -> Pair | None:
        """A pair from the source, or None where nothing fits it."""
        if source.parts:
            return self._gathered(source, supported=supported)
        if self._random.random() < _HEDGED_SHARE and (made := self._hedged(source, supported=supported)):
            return made
        if self._random.random() < _MODIFIED_SHARE and (made := self._modified(source, supported=supported)):
            return made
        if self._random.random() < _MIRRORED_SHARE:
            return self._mirrored(source, supported=supported)
        return self._supported(source) if supported else self._wrong(source)

    def _gathered(self, source: Source, *, supported: bool) -> Pair | None:
        """The passage says in several sentences, apart from each other, what the claim says in one."""
        alone = self._alone[source.document.held_out]
        others = [*source.siblings[:5], *self._random.sample(alone, min(3, len(alone)))]
        others = [other for other in others if not covers(other, source.sentence)]
        self._random.shuffle(others)
        texts = list(source.parts)
        if supported:
            claim, steps = source.sentence, tuple[str, ...]()
            if self._random.random() < 0.5:
                claim, steps = paraphrased(claim, self._random)
            made = Pair(claim, "", "supported", None, (), ", ".join(("gathered", *steps)))
        elif self._random.random() < 0.4:
            missing = texts.pop(0 if self._random.random() < 0.25 else -1)
            if covers(" ".join((*texts, *others)), missing):
                return None
            made = Pair(
                source.sentence, "", "partially_supported", "addition", None, "gathered, a part left out"
            )
        else:
            changes = (
                self._changed(kind, source.sentence, source) for kind in self._kinds() if kind not in _OWN
            )
            change = next((change for change in changes if change), None)
            if change is None or not self._new(change, " ".join(texts)):
                return None
            made = Pair(change.claim, "", change.label, change.kind, change.spans, "gathered, changed claim")
        if self._random.random() < 0.7:
            for other in others[: self._random.randint(1, 6)]:
                texts.insert(self._random.randint(0, len(texts)), other)
        return replace(made, passage=" ".join(texts))

    def _hedged(self, source: Source, *, supported: bool) -> Pair | None:
        """The passage says with a hedge, a bound or a condition what the claim says without (or with it)."""
        if source.claim or (change := hedged(source.sentence, self._random)) is None or change.old is None:
            return None
        before, behind = self._neighbours(source)
        passage = _passage(before, change.claim, behind)
        if supported:
            claim, steps = paraphrased(change.claim, self._random, shorten=False, most=2)
            return Pair(claim, passage, "supported", None, (), ", ".join(("hedged passage", *steps)))
        claim, start, end = source.sentence, *change.old
        if claim in passage:
            return None
        spans = ((start, end),) if end > start else None
        return Pair(claim, passage, "unsupported", "qualifier", spans, "hedged passage")

    def _modified(self, source: Source, *, supported: bool) -> Pair | None:
        """The claim has a short modifier more than the passage; or less, or as many."""
        if source.claim or (shorter := without_modifier(source.sentence, self._random)) is None:
            return None
        before, behind = self._neighbours(source)
        if supported:
            claim = shorter if self._random.random() < 0.6 else source.sentence
            passage = _passage(before, source.sentence, behind)
            claim, steps = paraphrased(claim, self._random, shorten=False, most=2)
            return Pair(claim, passage, "supported", None, (), ", ".join(("with its modifiers", *steps)))
        span = left_out(source.sentence, shorter)
        passage = _passage(before, shorter, behind)
        if span is None or covers(passage, source.sentence[slice(*span)]):
            return None
        made = "modifier left out of passage"
        return Pair(source.sentence, passage, "partially_supported", "addition", (span,), made)

    def _supported(self, source: Source) -> Pair | None:
        before, behind = self._neighbours(source)
        passage = _passage(before, source.sentence, behind)
        claim, made = source.claim, "other words"
        if not claim or self._random.random() < 0.3:
            claim, made = claim or source.sentence, made if claim else "verbatim"
            if both := self._both(source, behind):
                return Pair(both, passage, "supported", None, (), "two sentences")
            if source.claim or self._random.random() < 0.8:
                claim, steps = paraphrased(claim, self._random)
                made = ", ".join(steps) or made
            if made == "verbatim" and self._random.random() < 0.6:
                return None  # else too many claims stand in their passage as they are
        return Pair(claim, passage, "supported", None, (), made)

    def _wrong(self, source: Source) -> Pair | None:
        before, behind = self._neighbours(source)
        passage = _passage(before, source.sentence, behind)
        base = self._both(source, behind) or source.claim or source.sentence
        if self._random.random() < 0.6:
            base, _ = paraphrased(base, self._random)
        for kind in self._kinds():
            if kind == "absent":
                if made := self._absent(source, base, before, behind):
                    return made
                continue
            if kind == "addition" and self._random.random() < 0.6:
                if made := self._shortened_passage(source, before, behind):
                    return made
                continue
            if kind == "merge":
                change = self._merged(source, base, passage)
            else:
                change = self._changed(kind, base, source)
            if change and change.claim not in passage and self._new(change, passage):
                return Pair(change.claim, passage, change.label, change.kind, change.spans, "changed claim")
        return None

    def _both(self, source: Source, behind: Sequence[str]) -> str | None:
        """Now and then, the sentence and the one behind it in its document as one."""
        if source.claim or not behind or len(source.document.sentences) == 1 or self._random.random() > 0.25:
            return None
        return joined(source.sentence, behind[0], self._random)

    def _new(self, change: Change, passage: str) -> bool:
        """Whether the passage doesn't say what was put in, where that can be told."""
        if change.kind in ("addition", "merge", "word"):
            return not covers(passage, " ".join(change.claim[a:b] for a, b in change.spans))
        return True

    def _absent(self, source: Source, claim: str, before: list[str], behind: list[str]) -> Pair | None:
        rest = [*before, *behind]
        if sum(len(s.split()) for s in rest) < 20 or any(covers(s, source.sentence) for s in rest):
            return None
        passage = " ".join(rest)
        related = len(source.document.sentences) > 1 or any(s in source.siblings for s in rest)
        if covers(passage, claim) or (not related and self._random.random() < 0.9):
            return None
        return Pair(claim, passage, "unsupported", "absent", ((0, len(claim)),), "source left out")

    def _shortened_passage(self, source: Source, before: list[str], behind: list[str]) -> Pair | None:
        """The claim is the whole sentence, and the passage says only a part of it."""
        whole = source.sentence
        if source.claim:
            part = source.claim
            if len(part.split()) > 0.75 * len(whole.split()) or not covers(whole, part):
                return None
            spans = None
        else:
            steps = [SHORTENING[n] for n in ("parenthesis", "adverbial", "relative clause", "first clause")]
            made = (step(whole, self._random) for step in self._random.sample(steps, len(steps)))
            part = next((p for p in made if p), "")
            span = left_out(whole, part) if part else None
            if span is None or not re.search(r"[a-z]{3,} [\w ]*\w|\d{2}", whole[slice(*span)]):
                return None
            spans = (span,)
        missing = whole[slice(*spans[0])] if spans else " ".join(set(whole.split()) - set(part.split()))
        passage = _passage(before, part, behind)
        if covers(passage, missing):
            return None
        claim = whole
        return Pair(claim, passage, "partially_supported", "addition", spans, "shortened passage")

    def _merged(self, source: Source, base: str, passage: str) -> Change | None:
        alone = self._alone[source.document.held_out]
        others = self._random.sample(alone, min(12, len(alone)))
        near = (*source.document.sentences, *source.siblings)
        own = [s for s in near if s not in passage and claimable(s)]
        if own and self._random.random() < 0.8:
            return joined_with(base, self._random.choice(own), self._random)
        for other in others:
            if made := crossed(base, other):
                return made
        for other in others if self._random.random() < 0.5 else ():
            if made := joined_with(base, other, self._random):
                return made
        return None

    def _changed(self, kind: str, sentence: str, source: Source) -> Change | None:
        if kind == "word":
            return self._substitutes.replaced(sentence, self._random)
        material: Sequence[str] = source.document.names
        if kind == "addition":
            material = source.document.clauses
        elif kind == "name" and len(material) < 6:
            all_names = self._names[source.document.held_out]
            material = [*material, *self._random.sample(all_names, min(60, len(all_names)))]
        return altered(kind, sentence, material, self._random)

    def _mirrored(self, source: Source, *, supported: bool) -> Pair | None:
        """The passage says the changed sentence; the claim says that too, or what it was before."""
        before, behind = self._neighbours(source)
        sentence = source.sentence
        telling = _TELLING if supported else ()
        for kind in self._kinds(telling):
            if kind not in MIRRORED and not (supported and kind in _ENTAILED):
                continue
            change = self._changed(kind, sentence, source)
            if change is None:
                continue
            passage = _passage(before, change.claim, behind)
            if supported:
                base = sentence if kind == "addition" and self._random.random() < 0.3 else change.claim
                claim, steps = paraphrased(base, self._random) if self._random.random() < 0.7 else (base, ())
                return Pair(
                    claim, passage, "supported", None, (), f"changed passage ({kind})" + ", ".join(steps)
                )
            if sentence in passage:
                return None  # it stands there a second time
            if source.claim or change.old is None:
                claim, steps = sentence, ()
            else:
                claim, steps = paraphrased(sentence, self._random, shorten=False, most=2)
            spans = None
            if change.old is not None:
                words = sentence[slice(*change.old)]
                at = claim.find(words)
                if at < 0 or not words:
                    return None
                spans = ((at, at + len(words)),) if not steps or claim.count(words) == 1 else None
            return Pair(claim, passage, label_of(kind), kind, spans, "changed passage")
        return None

    def _neighbours(self, source: Source) -> tuple[list[str], list[str]]:
        return neighbours(source, self._alone[source.document.held_out], self._random)

    def _kinds(self, favoured: Sequence[str] = ()) -> list[str]:
        """All kinds in a random order, those that seldom fit first more often, and so the ``favoured``."""
        weights = {kind: w * (4.0 if kind in favoured else 1.0) for kind, w in _WEIGHTS.items()}
        return sorted(weights, key=lambda kind: -(self._random.random() ** (1.0 / weights[kind])))


def _passage(before: Sequence[str], sentence: str, behind: Sequence[str]) -> str:
    return " ".join((*before, sentence, *behind))


def _times(source: Source) -> int:
    """How often a source is taken."""
    rich = bool(_RICH.search(source.claim or source.sentence))
    long = len(source.document.sentences) >= _MANY_SENTENCES  # as passages are that answers are from
    return 1 + bool(source.claim) + bool(source.parts) + 2 * rich + 2 * long


def pairs(found: list[Source], wanted: int, seed: int) -> Iterator[dict[str, Any]]:
    """At most ``wanted`` rows, half of them supported; the same for the same sources and seed."""
    random_ = random.Random(seed)
    maker = Maker(found, random_)
    order = [source for source in found for _ in range(_times(source))]
    seen: set[tuple[str, str]] = set()
    balance = 0
    for _ in range(6):
        random_.shuffle(order)
        for source in order:
            supported = balance < 0 if balance else random_.random() < 0.5
            made = maker.pair(source, supported=supported)
            if made is None or (made.claim, made.passage) in seen:
                continue
            seen.add((made.claim, made.passage))
            balance += 1 if made.label == "supported" else -1
            yield made.row(source)
            if len(seen) == wanted:
                return


def main() -> None:
    """Make them and write the file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--work", type=Path, required=True, help="the work folder")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    count: Counter[str] = Counter()
    try:
        found = sources(source_rows(options.data))
    except DataError as error:
        parser.exit(1, f"synthesise: {error}\n")
    target = options.work / "synthetic.jsonl.gz"
    # No time and no name in the gzip header: the same rows are the same bytes.
    with target.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as out:
        for row in pairs(found, options.pairs, options.seed):
            out.write((json.dumps(row, ensure_ascii=False) + "\n").encode())
            count[row["kind"] or "supported"] += 1
    print(f"{sum(count.values())} pairs from {len(found)} sources: {dict(count.most_common())}")


if __name__ == "__main__":
    main()
