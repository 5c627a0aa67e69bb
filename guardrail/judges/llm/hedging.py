"""A second call when the first is late; the sooner one speaks, the other is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, TypeAlias

from guardrail.judges.llm.failures import Failure
from guardrail.judges.llm.reply import Answer

Outcome: TypeAlias = list[Answer] | Failure
_MOST_CREDIT: Final = 10.0


class Voice:
    """What one call may say ahead of its end. For one claim, the answers of one call only are passed on."""

    def __init__(self, announcer: Announcer) -> None:
        self._announcer = announcer
        self.muted = False
        self.spoke = False
        self.rival: Callable[[], None] | None = None
        """Ends the other call of a race; called when this one speaks first."""

    def say(self, answers: Sequence[Answer]) -> None:
        if self.muted or not answers:
            return
        if not self.spoke and self.rival is not None:
            self.rival()
        self.spoke = True
        self._announcer.pass_on(self, answers)


class Announcer:
    """Passes answers on as they come, and makes sure that none of them is contradicted later."""

    def __init__(self, heard: Callable[[Sequence[Answer]], None]) -> None:
        self._heard = heard
        self._said: list[Answer] = []
        self._speaker: dict[str, Voice] = {}

    def voice(self) -> Voice:
        return Voice(self)

    def pass_on(self, voice: Voice, answers: Sequence[Answer]) -> None:
        own = [answer for answer in answers if self._speaker.setdefault(answer.label, voice) is voice]
        self._said += own
        if own:
            self._heard(own)

    def agreed(self, voice: Voice, answers: list[Answer]) -> list[Answer]:
        """The answers of the call that was used, those apart on which another call had spoken before."""
        others = {label for label, speaker in self._speaker.items() if speaker is not voice}
        if not others:
            return answers
        kept = [answer for answer in answers if answer.label not in others]
        return [answer for answer in self._said if answer.label in others] + kept


class HedgingBudget:
    """How many second calls may be sent: a share of the calls, and few at once after a quiet time."""

    def __init__(self, max_share: float) -> None:
        self._share = max_share
        self._credit = 1.0

    def called(self) -> None:
        self._credit = min(_MOST_CREDIT, self._credit + self._share)

    def take(self) -> bool:
        if self._credit < 1.0:
            return False
        self._credit -= 1.0
        return True


async def hedged(
    call: Callable[[Voice], Coroutine[Any, Any, Outcome]],
    announcer: Announcer,
    delay_s: float | None,
    may_hedge: Callable[[], bool],
) -> tuple[Voice, Outcome]:
    """The outcome of ``call`` or, when it has said nothing after ``delay_s``, of the sooner of two calls.

    A call that fails leaves the field to the other. Both have ended when this returns or is cancelled.
    """
    voices = [announcer.voice()]
    if delay_s is None:
        return voices[0], await call(voices[0])
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(call(voices[0]))]
        await asyncio.wait(tasks, timeout=delay_s)
        if tasks[0].done() or voices[0].spoke or not may_hedge():
            return voices[0], await tasks[0]
        voices.append(announcer.voice())
        tasks.append(group.create_task(call(voices[1])))
        for number in (0, 1):
            voices[number].rival = _ender(tasks[1 - number], voices[1 - number])
        return await _sooner(tasks, voices)


def _ender(task: asyncio.Task[Outcome], voice: Voice) -> Callable[[], None]:
    def end() -> None:
        voice.muted = True
        task.cancel()

    return end


async def _sooner(tasks: list[asyncio.Task[Outcome]], voices: list[Voice]) -> tuple[Voice, Outcome]:
    failed: list[tuple[Voice, Outcome]] = []
    pending = set(tasks)
    while pending:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for voice, task in zip(voices, tasks, strict=True):
            if task not in done or task.cancelled():
                continue
            if not isinstance(task.result(), Failure):
                for number, other in enumerate(tasks):
                    if other in pending:
                        _ender(other, voices[number])()
                return voice, task.result()
            failed.append((voice, task.result()))
    # A call that spoke ahead of the other and then failed stands for both, else the one that was sent first.
    failed.sort(key=lambda entry: voices.index(entry[0]))
    return next((entry for entry in failed if entry[0].spoke), failed[0])
