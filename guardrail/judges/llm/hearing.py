"""What is made of answers as they come: judgements, some of them said before the reply is whole."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from guardrail.events import Usage
from guardrail.judges.llm.answer import Answer
from guardrail.judges.llm.prompt import Prompt
from guardrail.judges.llm.settings import LlmJudgeSettings
from guardrail.judges.llm.verdicts import dropped_quotes, settle
from guardrail.verdicts import TWO_VERDICTS, Judgement, unverified


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who gives answers: the judge's name, the calls made so far, and the models that failed before it."""

    judge: str
    attempts: int = 1
    degraded_from: tuple[str, ...] = ()


class Hearing:
    """Collects the judgements of one request, over all its calls.

    A judgement that was told is final, whatever is said of its claim later. Of a claim that got two verdicts
    before anything was told neither is believed. All in all a claim has one judgement or none.
    """

    __slots__ = ("_dropped", "_final", "_found", "_prompt", "_settings")

    def __init__(self, prompt: Prompt, settings: LlmJudgeSettings) -> None:
        self._prompt = prompt
        self._settings = settings
        self._final: set[str] = set()
        self._found: dict[str, Judgement] = {}
        self._dropped: dict[str, int] = {}

    def hear(self, answers: Sequence[Answer], speaker: Speaker, tell: Callable[[Judgement], None]) -> None:
        """Take in answers of a reply that is still being written, and tell what can be relied upon."""
        for judgement in self._judgements(answers, speaker).values():
            # What can't be used is left to the end: asking again may mend it.
            if judgement.claim_id not in self._final and judgement.support is not None:
                self._keep(judgement, answers)
                self._final.add(judgement.claim_id)
                tell(judgement)

    def take(self, answers: Sequence[Answer], speaker: Speaker) -> None:
        """Take in all answers of a reply that has ended, those that were heard among them."""
        for judgement in self._judgements(answers, speaker).values():
            if judgement.claim_id not in self._final:
                self._keep(judgement, answers)

    def settle(self, tell: Callable[[Judgement], None]) -> None:
        """Tell all that was taken in, for what follows may take long."""
        for claim_id, judgement in self._found.items():
            if claim_id not in self._final and judgement.support is not None:
                self._final.add(claim_id)
                tell(judgement)

    def missing(self) -> list[str]:
        """Ids of the claims that were asked for and have no judgement."""
        return [claim_id for claim_id in self._prompt.claim_ids.values() if claim_id not in self._found]

    @property
    def dropped_quotes(self) -> int:
        """Sentences that were named as evidence and were not shown, over all claims."""
        return sum(self._dropped.values())

    def rest(self, usage: Usage) -> list[Judgement]:
        """The judgements that were not told, in the order of the claims, each with its share of ``usage``.

        The shares of all claims that have a judgement add up to the whole.
        """
        found = [id_ for id_ in self._prompt.claim_ids.values() if id_ in self._found]
        return [
            replace(
                self._found[claim_id],
                usage=share.model_copy(update={"dropped_quotes": self._dropped.get(claim_id, 0)}),
            )
            for claim_id, share in zip(found, split(usage, len(found)), strict=True)
            if claim_id not in self._final
        ]

    def _judgements(self, answers: Sequence[Answer], speaker: Speaker) -> dict[str, Judgement]:
        """One for each claim that is answered, in the order they came."""
        made: dict[str, Judgement] = {}
        for answer in answers:
            judgement = settle(answer, self._prompt, self._settings, speaker.judge)
            if judgement is None:
                continue
            other = made.get(judgement.claim_id)
            if other is None:
                made[judgement.claim_id] = replace(
                    judgement, attempts=speaker.attempts, degraded_from=speaker.degraded_from
                )
            elif other.verdict is not judgement.verdict:
                made[judgement.claim_id] = unverified(
                    judgement.claim_id,
                    speaker.judge,
                    TWO_VERDICTS,
                    attempts=speaker.attempts,
                    degraded_from=speaker.degraded_from,
                )
        return made

    def _keep(self, judgement: Judgement, answers: Collection[Answer]) -> None:
        claim_id = judgement.claim_id
        self._found[claim_id] = judgement
        first = next(answer for answer in answers if self._prompt.claim_ids.get(answer.label) == claim_id)
        self._dropped[claim_id] = dropped_quotes(first, self._prompt)


def split(usage: Usage, ways: int) -> list[Usage]:
    """``usage`` in ``ways`` parts as equal as whole tokens allow, which add up to it."""
    if not ways:
        return []
    counts = {
        name: [total * (n + 1) // ways - total * n // ways for n in range(ways)]
        for name in ("judge_calls", "input_tokens", "cached_input_tokens", "output_tokens")
        for total in [getattr(usage, name)]
    }
    costs = [usage.cost_usd / ways] * (ways - 1)
    costs.append(usage.cost_usd - sum(costs))
    return [
        Usage(**{name: parts[n] for name, parts in counts.items()}, cost_usd=max(0.0, costs[n]))
        for n in range(ways)
    ]
