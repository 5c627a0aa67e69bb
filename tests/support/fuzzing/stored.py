"""What a step would have stored of every response, and a state taken up from it, sound or spoilt."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from guardrail.engine import Captured, Change, ClosedResponse, Engine
from guardrail.errors import StateError, UnreadableSession
from tests.support.fuzzing.accounts import Life, require
from tests.support.fuzzing.texts import NASTY_VALUES


@dataclass(slots=True)
class _Stored:
    head: Any = None
    progress: list[Any] = field(default_factory=list)
    silent: bool = False


class Store:
    """Stores what changes as JSON, as a compacted topic would hold it, and restores sessions from that."""

    def __init__(self, rng: random.Random, counts: Counter[str]) -> None:
        self._rng = rng
        self._counts = counts
        self._stored: dict[int, _Stored] = {}
        self._changes: list[Change] = []
        self._finished: dict[Hashable, list[tuple[ClosedResponse, float]]] = {}

    def closed(self, response: ClosedResponse, now: float) -> None:
        """A response is over; its id is remembered."""
        self._stored.pop(response.born, None)
        self._finished.setdefault(response.lane, []).append((response, now))

    def changed(self, change: Change) -> None:
        """A response has something to store."""
        self._changes.append(change)

    def step(self, lane: Hashable, open_lives: Mapping[str, Life]) -> None:
        """Store what is new of the responses of this lane."""
        changes = [change for change in self._changes if change.lane == lane]
        self._changes = [change for change in self._changes if change.lane != lane]
        for change in changes:
            captured = change.take()
            if captured is not None:
                self._put(captured, open_lives[change.response_id])

    def _put(self, captured: Captured, life: Life) -> None:
        require(captured.born == life.born, "captured is what began there", life)
        stored = self._stored.setdefault(life.born, _Stored())
        if captured.head is not None:
            silent = bool(captured.head["silent"])
            once = stored.head is None or (silent and not stored.silent)
            require(once, "a head is captured once, and once more when nothing more will be said", life)
            stored.head, stored.silent = _through_json(captured.head), silent
            if silent:
                stored.progress.clear()  # what comes with it stands for all before
        if captured.progress is not None:
            stored.progress.append(_through_json(captured.progress))
            self._counts["captured"] += 1

    def restore(self, engine: Engine, lane: Hashable, lives: list[Life], now: float) -> None:
        """Give an engine, which knows nothing of this lane, what was stored of it."""
        for response, at in self._finished.get(lane, []):
            engine.remember(lane, response.response_id, response.digest, response.next_seq, now - at)
        for life in lives:
            stored = self._stored[life.born]
            if not life.spoilt and self._rng.randrange(50) == 49:
                self._spoil(life, stored)
            life.restored(now)
            self._counts["restored"] += 1
            try:
                engine.restore(
                    life.response_id, stored.head, stored.progress, life.policy, lane=lane, born=life.born
                )
            except (UnreadableSession, StateError):
                # What the consumer does with these is its own matter; here the response is forgotten.
                require(life.spoilt, "what was captured can be restored", life)
                life.lost = True

    def _spoil(self, life: Life, stored: _Stored) -> None:
        """Change something in it, as rot, a bug or an unknown version may."""
        life.spoilt = True
        self._counts["spoilt"] += 1
        rng = self._rng
        if not stored.progress or rng.randrange(4) == 0:
            stored.head = _changed(rng, stored.head)
        elif rng.randrange(3) == 0:
            del stored.progress[rng.randrange(len(stored.progress))]
        else:
            at = rng.randrange(len(stored.progress))
            stored.progress[at] = _changed(rng, stored.progress[at])


def _through_json(value: Any) -> Any:
    return json.loads(json.dumps(value, allow_nan=False))


def _changed(rng: random.Random, value: Any, *, top: bool = True) -> Any:
    """The same with one value, at any depth, replaced or taken out; a mapping, as the consumer sees to."""
    if isinstance(value, dict) and value and (top or rng.randrange(5)):
        key = rng.choice(sorted(value))
        changed = {**value, key: _changed(rng, value[key], top=False)}
        if rng.randrange(6) == 0:
            del changed[key]
        return changed
    if isinstance(value, list) and value and rng.randrange(5):
        at = rng.randrange(len(value))
        return [*value[:at], _changed(rng, value[at], top=False), *value[at + 1 :]]
    return rng.choice(NASTY_VALUES)
