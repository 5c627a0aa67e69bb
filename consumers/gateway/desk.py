"""Answers other gateways, whatever their dialect."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import time
from collections.abc import Mapping
from math import inf
from typing import Any, Final

from consumers.gateway.answers import Flagged, as_json, extension, in_reply, wrong
from consumers.gateway.completions import GuardedCompletion, asked_by
from consumers.gateway.dialects import DialectCall, GatewayDialect, ShowableText
from consumers.gateway.keys import ApiCaller, ApiKey
from consumers.gateway.settings import ServeSettings
from guardrail.chat import APART, BLOCK, EXTENSION, FAILED, Grounding, WholeAnswer, decide, grounding_of
from guardrail.events import AnyOutputEvent, Decision, DeliverySegment, ResponseVerdict
from guardrail.guard import Guard

CALL: Final = "x-guardrail-call"
"""Names the call of the model, where the dialect itself doesn't."""
GROUNDING: Final = "x-guardrail-grounding"
"""The extension field in base64, where the product passes on no field of a request."""
_SENTENCE_END: Final = re.compile(r"[.!?…:;][\"'”’)\]*]*\s*\Z")
_NEAR: Final = 8
"""So many more characters may move the end of a sentence, as after "No."."""
_Key = tuple[ApiKey | None, str, str]
_Reply = tuple[dict[str, Any], list[dict[str, Any]]]


class GroundingMemory:
    """What requests said, until their answers come: of this process, bounded, and forgotten in time."""

    def __init__(self, lasts_s: float, most: int = 10_000, most_chars: int = 64 * 1024 * 1024) -> None:
        self._lasts_s, self._most, self._most_chars = lasts_s, most, most_chars
        self._chars = 0
        self._kept: dict[_Key, tuple[float, int, Grounding | None]] = {}  # the oldest first

    def keep(self, key: _Key, grounding: Grounding) -> None:
        """Requests of one name that say different things say nothing."""
        now = time.monotonic()
        _, freed, said = self._kept.pop(key, (0.0, 0, grounding))
        same = said == grounding
        chars = sum(len(each.text) for each in grounding.contexts) + len(grounding.question) if same else 0
        self._kept[key] = now + self._lasts_s, chars, said if same else None
        self._chars += chars - freed
        while len(self._kept) > self._most or self._chars > self._most_chars or self._oldest[0] < now:
            self._chars -= self._oldest[1]
            del self._kept[next(iter(self._kept))]

    def get(self, key: _Key) -> Grounding | None:
        until, _, grounding = self._kept.get(key, (0.0, 0, None))
        return grounding if until >= time.monotonic() else None

    @property
    def _oldest(self) -> tuple[float, int, Grounding | None]:
        return next(iter(self._kept.values()), (inf, 0, None))


class DeskText(WholeAnswer):
    """What becomes of a text: whole, or where more of it may come."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.original = text
        self.flagged = Flagged()
        self._shown = ""
        self._near = 0
        self._verdict: ResponseVerdict | None = None

    def seen(self, event: AnyOutputEvent) -> None:
        self.flagged.seen(event)
        match event:
            case DeliverySegment() if event.span[1] > len(self.original) - _NEAR:
                self._near += len(event.text)
            case ResponseVerdict():
                self._verdict = event

    def block(self, message: str, told: dict[str, Any]) -> None:
        self._shown = self.text
        super().block(message, told)

    def becomes(self, *, grows: bool) -> ShowableText | None:
        """None where a block is certain."""
        verdict = self._verdict
        if self.finish != BLOCK:
            held = len(self.text) if verdict and verdict.mode == "hold" else self._near
            return ShowableText(self.text, 0 if self.flagged.observed else held)
        if verdict is None or not grows:
            return None
        end = next((each.span[1] for each in verdict.claims if each.claim_id == verdict.deciding_claim), 0)
        if len(self.original) - end > _NEAR and _SENTENCE_END.search(self.original[:end]):
            return None
        # The claim may be half of one. If nothing more comes, the message stands in its place.
        message = APART + self.text if self._shown else self.text
        return ShowableText(self._shown + message, len(message))


class DialectDesk:
    """Reads a request of a dialect, judges what it has of an answer, and replies as the dialect does."""

    def __init__(self, settings: ServeSettings, guard: Guard) -> None:
        """``guard`` is open."""
        self._settings = settings
        self._guard = guard
        self._memory = GroundingMemory(settings.answer_timeout_ms / 1000)

    async def reply(
        self, dialect: GatewayDialect, path: str, headers: Mapping[str, str], body: Any, caller: ApiCaller
    ) -> _Reply:
        """The reply, and what is told of each text. Raises Refused and InputError."""
        if not isinstance(body, Mapping):
            raise wrong("give a JSON object")
        call = dialect.read(path, body, headers)
        said = _said(call.rests_on, {**call.headers, **headers})
        if call.completion is not None:
            asked = asked_by(said, self._settings, caller.grounding)
            return await self._completion(dialect, call, asked)
        found = grounding_of(said, self._settings.contexts_from, self._settings.tools)
        grounding = caller.grounding(found)
        name = call.id or headers.get(CALL)
        key = (caller.key, dialect.paths[0], name) if isinstance(name, str) and len(name) <= 512 else None
        if call.texts is None:
            if key is not None:
                self._memory.keep(key, grounding)
            return dialect.allow(call, (), {}), []
        if len(call.texts) > self._settings.most_choices:
            raise wrong(f"there are more than {self._settings.most_choices} texts")
        if key is not None and not grounding.contexts:
            grounding = self._memory.get(key) or grounding
        judged = await asyncio.gather(*(self._judged(text, grounding, call.model) for text in call.texts))
        told = [extension({"choice": n, **each.told}, each.flagged) for n, each in enumerate(judged)]
        shown = []
        for each, one in zip(judged, told, strict=True):
            becomes = each.becomes(grows=call.grows)
            if becomes is None:
                return self._blocked(dialect, each.text, told)
            if becomes.text != each.original and not call.redacts:
                one.update(decision=Decision.BLOCK.value, rule=f"{one['rule']}: redactions can't be shown")
                return self._blocked(dialect, FAILED, told)
            shown.append(becomes)
        return {**dialect.allow(call, shown, {}), **in_reply(told)}, told

    async def _judged(self, text: str, grounding: Grounding, model: Any) -> DeskText:
        judged = DeskText(text)
        await decide(
            self._guard,
            grounding,
            [text] if text else [],
            judged,
            missing=self._settings.missing,
            generator_model=str(model or ""),
            seen=judged.seen,
        )
        return judged

    async def _completion(self, dialect: GatewayDialect, call: DialectCall, asked: Any) -> _Reply:
        answer = GuardedCompletion(asked, self._guard, self._settings)
        completion, told = await answer.whole(as_json(call.completion or {}))
        blocks = [each["choice"] for each in told if each["decision"] == Decision.BLOCK]
        if blocks:
            message = completion["choices"][blocks[0]]["message"]
            return self._blocked(dialect, message["content"] or message["refusal"], told, completion)
        return {**dialect.allow(call, (), completion), **in_reply(told)}, told

    def _blocked(self, dialect: GatewayDialect, message: str, told: Any, completion: Any = None) -> _Reply:
        rule = next(str(each["rule"]) for each in told if each["decision"] == Decision.BLOCK)
        return {**dialect.deny(message, rule, completion or {}), **in_reply(told)}, told


def _said(rests_on: Mapping[str, Any], headers: Mapping[str, Any]) -> Mapping[str, Any]:
    """With the extension of the header, where the request has none."""
    if GROUNDING not in headers or EXTENSION in rests_on:
        return rests_on
    try:
        return {**rests_on, EXTENSION: json.loads(base64.b64decode(headers[GROUNDING], validate=True))}
    except (TypeError, ValueError, RecursionError):
        raise wrong(f"{GROUNDING}: give an object as JSON in base64") from None
