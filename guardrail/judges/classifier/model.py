"""What a runtime offers, and what a loaded classifier is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from guardrail.errors import JudgeError, JudgeReplyError
from guardrail.judges.classifier.labels import LabelMap, Scores
from guardrail.judges.classifier.pairs import Pair, PairForm, Tokens


class Model(Protocol):
    """A loaded model. ``logits`` blocks and is called from one thread at a time."""

    @property
    def label_names(self) -> Sequence[str]:
        """Names of the outputs, by position, as far as the model has any."""
        ...

    @property
    def vocabulary_out(self) -> bool:
        """Whether the outputs are a vocabulary, of which a few tokens are labels."""
        ...

    def logits(self, batch: Sequence[Tokens]) -> list[list[float]]:
        """A row of outputs for each encoded pair."""
        ...


@dataclass(frozen=True, slots=True)
class Classifier:
    """A model with the form of its pairs and the meaning of its outputs."""

    model: Model
    form: PairForm
    labels: LabelMap
    max_length: int
    batch_size: int

    def score(self, pairs: Sequence[Pair]) -> list[Scores | JudgeError]:
        """Scores of pairs, in their order; an error for a pair that has none.

        A window is measured before it is put into its pair, where its tokens may come out a few more. One
        that then doesn't fit is scored in two halves, whichever supports (contradicts) more.
        """
        parts = [
            self._parts(pair, tokens) for pair, tokens in zip(pairs, self.form.encode(pairs), strict=True)
        ]
        flat = [tokens for part in parts if not isinstance(part, JudgeError) for tokens in part]
        rows: list[list[float]] = []
        for at in range(0, len(flat), self.batch_size):
            batch = flat[at : at + self.batch_size]
            found = self.model.logits(batch)
            if len(found) != len(batch):
                raise JudgeReplyError("the model gave another number of rows than it was given")
            rows += found
        scores: list[Scores | JudgeError] = []
        at = 0
        for part in parts:
            if isinstance(part, JudgeError):
                scores.append(part)
            else:
                scores.append(self._joined(rows[at : at + len(part)]))
                at += len(part)
        return scores

    def _parts(self, pair: Pair, tokens: Tokens) -> list[Tokens] | JudgeError:
        """What the model is to read for a pair: the pair itself, or its parts."""
        parts = [tokens] if len(tokens) <= self.max_length else self._halves(pair)
        if not parts:
            return JudgeReplyError("the claim leaves no room for the contexts; raise max_length")
        if any(self.form.forged(part) for part in parts):
            return JudgeReplyError("a text forges special tokens of the model")
        return parts

    def _joined(self, rows: Sequence[Sequence[float]]) -> Scores | JudgeError:
        """The scores of one pair from the rows of its parts."""
        try:
            scores = [self.labels.scores(row) for row in rows]
        except JudgeReplyError as error:
            return error
        return Scores(max(s.support for s in scores), max(s.contradiction for s in scores))

    def _halves(self, pair: Pair) -> list[Tokens]:
        """The parts of a window that is too long; none where parts of any size are."""
        span = pair.end - pair.start
        if span < 8:
            return []
        middle, shared = pair.start + span // 2, span // 8
        halves = [
            Pair(pair.text, pair.start, middle + shared, pair.hypothesis),
            Pair(pair.text, middle - shared, pair.end, pair.hypothesis),
        ]
        found: list[Tokens] = []
        for half, tokens in zip(halves, self.form.encode(halves), strict=True):
            part = [tokens] if len(tokens) <= self.max_length else self._halves(half)
            if not part:
                return []
            found += part
        return found
