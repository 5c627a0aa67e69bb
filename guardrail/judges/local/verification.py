"""A claim's readings by the verifier -> features of the combiner, and which words have no support."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.local.candidates import Candidates
from guardrail.judges.local.claim_view import ClaimView
from guardrail.judges.local.combiner import log_odds
from guardrail.judges.local.fitted import FittedVerifier, ReadingKind
from guardrail.judges.local.readings import MOST_CHARS_A_TOKEN, Premise, readings_of
from guardrail.judges.local.verifier import Reading, Verifier

if TYPE_CHECKING:
    from tokenizers import Encoding

RULES_SUPPORT: Final = "rules_support"
"""The probability that the parameters for rules alone give: what is added to it is the verifier's part."""
UNREAD_RULES: Final = "unread_rules"
READ_SUPPORT: Final = "read_support"
"""The log-odds of the rules' probability, times the share of the claim's words in the contexts that the best
three sentences lack; and of the verifier's, times the rest: what it hasn't read the rules know better."""
FEATURES: Final = (
    RULES_SUPPORT,
    UNREAD_RULES,
    READ_SUPPORT,
    "model_support",
    "model_support_sentences",
    "model_support_mean",
    "model_contradiction",
    "model_contradiction_at_best",
    "model_token_max",
    "model_token_mean",
)
OF_ITSELF: Final = 3
"""Times its own tokens that a long claim may have in all: beside one sentence a summary looks made up."""
_LEAST_ANYWHERE: Final = 0.1
_MARKED: Final = 0.5
_MOST_UNKNOWN: Final = 0.5  # of a claim's tokens, in words
_TEXTS_REMEMBERED: Final = 256


@dataclass(frozen=True, slots=True)
class Verification:
    """A claim's premises and what the verifier says of each, in the same order; at least one."""

    premises: Sequence[Premise]
    readings: Sequence[Reading]

    @property
    def best(self) -> Reading:
        """The reading that supports the claim most."""
        return max(self.readings, key=lambda reading: reading.support)

    @property
    def contradiction(self) -> float:
        """The highest probability of contradiction, 0..1."""
        return max(reading.contradiction for reading in self.readings)

    @property
    def contradicting(self) -> int:
        """The number of the sentence that the reading was chosen for which contradicts most."""
        at = max(range(len(self.readings)), key=lambda n: self.readings[n].contradiction)
        return self.premises[at].sentences[0]

    def features(self) -> dict[str, float]:
        """Those of ``FEATURES`` that come of the readings alone, 0..1."""
        best = self.best
        by_sentences = [
            reading.support
            for premise, reading in zip(self.premises, self.readings, strict=True)
            if premise.kind is not ReadingKind.PASSAGE
        ]
        marks = [unsupported for _, _, unsupported in best.tokens]
        return {
            "model_support": best.support,
            "model_support_sentences": max(by_sentences, default=best.support),
            "model_support_mean": sum(r.support for r in self.readings) / len(self.readings),
            "model_contradiction": self.contradiction,
            "model_contradiction_at_best": best.contradiction,
            "model_token_max": max(marks, default=0.0),
            "model_token_mean": sum(marks) / len(marks) if marks else 0.0,
        }

    def unsupported(self, text: str) -> list[tuple[int, int]]:
        """The spans of ``text``, the claim, whose words the best reading finds no support for.

        Code points, ascending, whole words; neighbouring words are one span.
        """
        spans: list[tuple[int, int]] = []
        for start, end, unsupported in self.best.tokens:
            if unsupported < _MARKED or end <= start:
                continue
            while start > 0 and _in_word(text, start - 1) and _in_word(text, start):
                start -= 1
            while end < len(text) and _in_word(text, end) and _in_word(text, end - 1):
                end += 1
            if spans and not any(_in_word(text, at) for at in range(spans[-1][1], start)):
                spans[-1] = spans[-1][0], max(end, spans[-1][1])
            else:
                spans.append((start, end))
        return [span for span in spans if any(_in_word(text, at) for at in range(*span))]


def joint_features(found: Mapping[str, float], rules: float) -> dict[str, float]:
    """Those of ``FEATURES`` that need both: ``found`` are the others, ``rules`` is ``RULES_SUPPORT``."""
    anywhere = found["anywhere"]
    unread = min(1.0, max(0.0, anywhere - found["three_sentences"]) / max(anywhere, _LEAST_ANYWHERE))
    return {
        RULES_SUPPORT: rules,
        UNREAD_RULES: unread * log_odds(rules),
        READ_SUPPORT: (1.0 - unread) * log_odds(found["model_support"]),
    }


def _in_word(text: str, at: int) -> bool:
    return text[at].isalnum()


class Reader:
    """Reads the claims of one request: the same claim beside the same premise is read once."""

    def __init__(
        self,
        verifier: Verifier,
        fitted: FittedVerifier,
        stopped: Callable[[], bool] = lambda: False,
        *,
        longer: bool = True,
    ) -> None:
        """``stopped`` is asked before each batch; once it says so nothing more is read. ``longer``: long
        claims may have ``OF_ITSELF`` times their own tokens."""
        self._verifier = verifier
        self._stopped = stopped
        self._of_itself = OF_ITSELF if longer else 0
        self._encoded: dict[str, Encoding] = {}
        self._read: dict[tuple[str, str], Reading] = {}
        self.fitted = fitted

    def encode(self, text: str) -> Encoding:
        """The tokens of a text, remembered for the other claims of the request."""
        encoding = self._encoded.get(text)
        if encoding is None:
            if len(self._encoded) >= _TEXTS_REMEMBERED:
                self._encoded.clear()
            encoding = self._encoded[text] = self._verifier.encode(text)
        return encoding

    def premises(self, view: ClaimView, evidence: EvidenceIndex, found: Candidates) -> list[Premise]:
        """What is to be read for a claim; empty where it can't be.

        That is where it is too long, forges special tokens, or has words that the vocabulary lacks, mostly
        or such as a premise doesn't have: one of them reads as any other.
        """
        if len(view.text) > MOST_CHARS_A_TOKEN * self._verifier.max_tokens:
            return []
        claim = self.encode(view.text)
        overhead = len(claim.ids) + self._verifier.overhead
        premises = readings_of(
            view,
            evidence,
            found,
            self.fitted.readings,
            self.encode,
            room=self._verifier.max_tokens - overhead,
            overhead=overhead,
            tokens=max(self.fitted.tokens_per_claim, self._of_itself * overhead),
        )
        if not self._told_apart(view.text, claim, premises):
            return []
        texts = [claim, *(premise.tokens for premise in premises)]
        return [] if any(self._verifier.forged(text) for text in texts) else premises

    def _told_apart(self, text: str, claim: Encoding, premises: Sequence[Premise]) -> bool:
        unknown = self._unknown_words(text, claim)
        return unknown.total() <= _MOST_UNKNOWN * len(claim.ids) and all(
            unknown.keys() <= self._unknown_words(premise.text, premise.tokens).keys() for premise in premises
        )

    def _unknown_words(self, text: str, tokens: Encoding) -> Counter[str]:
        words = (text[start:end].casefold() for start, end in self._verifier.unknown(tokens))
        return Counter(word for word in words if any(char.isalnum() for char in word))

    @property
    def claims_at_once(self) -> int:
        """How many claims make up full batches."""
        return self._verifier.batch_size

    def read(self, claims: Iterable[tuple[str, Sequence[Premise]]]) -> None:
        """Read the premises of claims (their texts), as one set of batches.

        Raises JudgeError as ``Verifier.read`` does.
        """
        wanted = {
            (claim, premise.text): (self.encode(claim), premise.tokens)
            for claim, premises in claims
            for premise in premises
            if (claim, premise.text) not in self._read
        }
        keys = list(wanted)
        for number, reading in self._verifier.read(list(wanted.values()), self._stopped):
            self._read[keys[number]] = reading

    def verification(self, claim: str, premises: Sequence[Premise]) -> Verification | None:
        """What was read for a claim; None where not all of it was, for want of time."""
        found = [self._read.get((claim, premise.text)) for premise in premises]
        readings = [reading for reading in found if reading is not None]
        return Verification(premises, readings) if len(readings) == len(found) and found else None
