"""What guarded answers share, whichever API they have: what of an answer passes beside checked text, what is
told of the decision, and a stream of events cut anywhere.

What passes stands in tables of each API, by the rules below. What stands in none doesn't come back from the
model: reasoning, audio, annotations, log probabilities, citations and whatever providers add may be prose
that nobody has checked.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeVar

from consumers.gateway.admission import Refused, error_body, upstream_refused
from consumers.gateway.settings import ServeSettings
from guardrail.calls.http import EventStream
from guardrail.chat import (
    EXTENSION,
    Grounding,
    StreamedChoice,
    StreamedCompletion,
    UpstreamFailed,
    WholeAnswer,
    decide,
    grounding_of,
)
from guardrail.decisions import claims_decided_by, decided_by_score
from guardrail.errors import JudgeReplyError
from guardrail.events import (
    AnyOutputEvent,
    ClaimVerdict,
    Decision,
    DeliveryBlocked,
    DeliveryCompleted,
    DeliverySegment,
    Verdict,
)
from guardrail.guard import Guard
from guardrail.log_events import EventLog
from guardrail.policy import NO_CONTEXTS, Policy

_log = EventLog(__name__)
_Chunk = TypeVar("_Chunk")

# ------------------------------------------------------------------------------------------- what passes

DROP: Final = object()
"""What a rule gives for that which doesn't pass."""
_NAME: Final = re.compile(r"[\x21-\x7e]{1,200}")


def as_word(value: Any) -> Any:
    """One word, which says nothing."""
    return value if isinstance(value, str) and _NAME.fullmatch(value) else DROP


def as_number(value: Any) -> Any:
    """A count or a time; with more digits it could spell words."""
    ok = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**63
    return value if ok else DROP


def as_numbers(value: Any) -> Any:
    """Counts, in groups of groups."""
    if not isinstance(value, Mapping):
        return as_number(value)
    return {
        key: each
        for key, found in value.items()
        if (each := as_numbers(found)) is not DROP and as_word(key) is not DROP
    }


def as_text(value: Any) -> Any:
    """Text for a program, which no reader sees: the arguments of a tool."""
    return value if isinstance(value, str) else DROP


def _passing(value: Any, rule: Any) -> Any:
    if isinstance(rule, Mapping):
        found = value if isinstance(value, Mapping) else {}
        each = ((key, _passing(found[key], inner)) for key, inner in rule.items() if key in found)
        return {key: one for key, one in each if one is not DROP} or DROP
    if isinstance(rule, list):
        items = value if isinstance(value, list) else []
        return [one for item in items if (one := _passing(item, rule[0])) is not DROP] or DROP
    return rule(value)


def kept(value: Any, rule: Any) -> dict[str, Any]:
    """What of it passes by a rule of a table: a mapping of fields, a list of one rule, or a function."""
    found = _passing(value, rule)
    return found if isinstance(found, dict) else {}


_SAID: Final = frozenset({"error", "message", "msg", "detail"})


def error_of(body: bytes, status: int) -> Any:
    """What passes of the body of an error: words only where errors have theirs, since elsewhere some servers
    quote what the model wrote.
    """
    found = parsed(body)
    if isinstance(found, dict | list):
        return _said(found, "")
    told = f"the upstream answered {status}, not in JSON; check serve.upstream, which mostly ends in /v1"
    return error_body(told, "upstream_failed", "upstream_error")


def _said(value: Any, place: str) -> Any:
    if isinstance(value, dict):
        inside = {key: _said(each, key) for key, each in value.items() if as_word(key) is not DROP}
        return {key: each for key, each in inside.items() if each is not DROP}
    if isinstance(value, list):
        return [each for item in value if (each := _said(item, place)) is not DROP]
    if isinstance(value, str):
        return value if place in _SAID else as_word(value)
    return value if value is None or isinstance(value, bool) else as_number(value)


def characters(text: str) -> str:
    """Halves of characters joined, and those left alone replaced: UTF-8 can't hold them."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def as_json(found: Mapping[str, Any]) -> bytes:
    """In UTF-8. Arguments of tools may hold halves of characters, which only escapes can write."""
    try:
        return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(found, separators=(",", ":")).encode()


# ------------------------------------------------------------------------------------------- what is asked


def wrong(message: str) -> Refused:
    """A request that is none."""
    return Refused(400, message, "invalid_request")


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayRequest:
    """A request whose answer can be guarded."""

    grounding: Grounding
    model: str
    streamed: bool
    structured: bool
    """A program reads the answer: what stands in its place is given as the model's refusal."""
    calls: bool
    """A tool must be called: its arguments may be the answer, which nobody checks."""
    body: bytes
    """As the model gets it."""


def asked(
    request: Mapping[str, Any],
    settings: ServeSettings,
    scoped: Callable[[Grounding], Grounding],
    refused: Mapping[str, str],
    form: Any,
) -> dict[str, Any]:
    """What requests of both APIs say; ``scoped`` says for whom, ``form`` is that of the answer.

    Raises Refused, also for what stands in ``refused``, and InputError.
    """
    for name, why in refused.items():
        if request.get(name):
            raise Refused(400, f"{name}: {why}; leave it out", "not_guarded")
    model, streamed = request.get("model"), request.get("stream")
    if not isinstance(model, str) or not 0 < len(model) <= 256:
        raise wrong("model: give the name of a model")
    if streamed is not None and not isinstance(streamed, bool):
        raise wrong("stream: give true or false")
    # The metadata, in which LiteLLM has the extension, are the client's own.
    own = {name: each for name, each in request.items() if not name.endswith("metadata")}
    chosen = (request.get("tool_choice"), request.get("function_call"))
    return {
        "grounding": scoped(grounding_of(own, settings.contexts_from, settings.tools)),
        "model": model,
        "streamed": bool(streamed),
        "structured": form is not None and type_of(form) != "text",
        "calls": any(isinstance(each, Mapping) or each == "required" for each in chosen),
    }


def type_of(found: Any) -> Any:
    """What an object says that it is."""
    return found.get("type") if isinstance(found, Mapping) else None


def index_in(found: Mapping[str, Any], name: str, most: int) -> int:
    """A place below ``most``. Raises UpstreamFailed."""
    index = found.get(name, 0)
    if type(index) is not int or not 0 <= index < most:
        raise UpstreamFailed
    return index


# ------------------------------------------------------------------------------------------- what is told

UNCHECKED: Final = {"decision": "not-checked", "rule": "a call was asked for", "flagged": []}
_DEFAULT: Final = Policy()
"""Whose weights say which claim weighs most in a score."""


class Flagged:
    """What the events of one answer say of the claims that were not simply released."""

    def __init__(self) -> None:
        self._claims: dict[str, ClaimVerdict] = {}
        self._decided: dict[str, Decision] = {}
        self._blocked = False
        self.observed = False
        """The text left before its verdicts, as the policy says."""
        self.replaced = False
        """What comes now is the policy's text in place of the model's."""

    def seen(self, event: AnyOutputEvent) -> None:
        """An event of the answer."""
        match event:
            case ClaimVerdict():
                self._claims[event.claim_id] = event
            case DeliverySegment():
                self._decided.update(dict.fromkeys(event.claim_ids, event.decision))
                self.observed = event.segment is None
                self.replaced = event.decision is Decision.REDACT
            case DeliveryBlocked():
                self._blocked = self.replaced = True
            case DeliveryCompleted() if decided_by_score(event.rule):
                about = claims_decided_by(event.decision, event.rule, [*self._claims.values()], _DEFAULT)
                self._decided.update((claim.claim_id, event.decision) for claim in about[:1])

    def told(self, *, shown: bool) -> list[dict[str, Any]]:
        """The claims; with ``shown`` the texts of those that are flagged. Where the score alone flags the
        answer, the claim that weighs most in it, by the default weights."""
        found = []
        for name, claim in sorted(self._claims.items(), key=lambda each: each[1].index):
            decision = self._decided.get(name)
            withheld = decision is None and self._blocked and claim.verdict is not Verdict.SUPPORTED
            if decision in {None, Decision.RELEASE} and not withheld:
                continue
            told = {
                "claim_id": name,
                "decision": (decision or Decision.BLOCK).value,
                "verdict": claim.verdict.value,
                "severity": claim.severity.value,
                "support": claim.support,
            }
            found.append({**told, "text": claim.text} if decision is Decision.FLAG and shown else told)
        return found


def extension(told: Mapping[str, Any], flagged: Flagged) -> dict[str, Any]:
    """What the reply says of one answer."""
    shown_anyway = told.get("rule") == NO_CONTEXTS and told.get("decision") == Decision.FLAG
    if shown_anyway or flagged.observed:
        return {**told, "decision": "not-checked", "flagged": []}
    # A whole answer that is blocked was not shown at all.
    shown = told.get("decision") != Decision.BLOCK or "replace_all" in told
    return {**told, "flagged": flagged.told(shown=shown)}


def in_reply(told: list[dict[str, Any]]) -> dict[str, Any]:
    """The field that says what was decided: of one text, or of each."""
    return {EXTENSION: told[0] if len(told) == 1 else told} if told else {}


_RANKS: Final = ("release", "flag", "not-checked", "redact", "block")


def headers_of(told: list[dict[str, Any]]) -> dict[str, str]:
    """The strictest decision and the lowest score, for whole answers."""
    if not told:
        return {}
    headers = {"x-guardrail-decision": max((each["decision"] for each in told), key=_RANKS.index)}
    scores = [each["score"] for each in told if each.get("score") is not None]
    return {**headers, "x-guardrail-score": f"{min(scores):.4f}"} if scores else headers


# ------------------------------------------------------------------------------------------- the answer


class GatewayAnswer(StreamedCompletion[_Chunk]):
    """An answer, whole, or as server-sent events that come cut anywhere."""

    ending: ClassVar[bytes] = b""
    """What follows the last chunk of a stream that ended in order."""

    def __init__(
        self, asked: Any, guard: Guard, settings: ServeSettings, deadline: float | None = None
    ) -> None:
        """``asked`` is a GatewayRequest; ``deadline``, by the event loop's clock, is that of a stream."""
        super().__init__()
        self._asked = asked
        self._guard = guard
        self._settings = settings
        self._deadline = deadline
        self._head: dict[str, Any] = {}
        self._flagged = defaultdict[int, Flagged](Flagged)
        self._halves: dict[Any, str] = {}
        self._done = False  # the upstream has sent [DONE]
        self.read = 0  # characters of the upstream's

    @abstractmethod
    def frame(self, chunk: _Chunk) -> bytes:
        """The chunk as bytes."""

    @abstractmethod
    def failure(self, message: str, code: str) -> bytes:
        """What ends a stream that can't be ended in order."""

    @abstractmethod
    def complete(self) -> bool:
        """Whether the upstream has said all."""

    @abstractmethod
    async def answered(self, found: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """What may go of a whole answer, and what is told of each text. Raises UpstreamFailed."""

    async def whole(self, body: bytes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """What may go of a whole answer, and what is told of each text. Raises Refused if it is none."""
        try:
            return await self.answered(parsed(body))
        except UpstreamFailed:
            told = "the upstream's answer is not what was asked for, broke off, or is too long"
            raise upstream_refused(told) from None

    async def frames(self, pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        """What may go, as events; comments while nothing may, an error where the upstream breaks off."""
        try:
            chunks = self.guarded(self._chunks(pieces), self._settings.silence_s, self._deadline)
            async with aclosing(chunks):
                async for chunk in chunks:
                    yield b": held\n\n" if chunk is None else self.frame(chunk)
        except (UpstreamFailed, TimeoutError) as error:
            late = isinstance(error, TimeoutError)
            broke_off = "the model's answer broke off before its end"
            why = "it took longer than serve.answer_timeout_ms" if late else broke_off
            _log.warning("serve.broke_off", reason=why)
            yield self.failure(why, "upstream_failed")
        except Exception as error:  # noqa: BLE001 - a stream has no other way to end
            _log.error("serve.stream_failed", error=type(error).__name__)
            yield self.failure("the gateway failed", "failed")
        else:
            yield self.ending

    async def _chunks(self, pieces: AsyncIterator[bytes]) -> AsyncGenerator[Mapping[str, Any], None]:
        events = EventStream()
        try:
            async for piece in pieces:  # half an event at their end means nothing
                for data in events.feed(piece):
                    self.read += len(data)
                    if data.strip() == "[DONE]":
                        self._done = True
                        break
                    chunk = parsed(data)
                    if not isinstance(chunk, Mapping) or chunk.get("error"):
                        raise UpstreamFailed
                    yield chunk
                if self._done:
                    break
        except JudgeReplyError:
            raise UpstreamFailed from None
        if not self.complete():
            raise UpstreamFailed

    async def decide(self, choice: StreamedChoice) -> None:
        await self._decide(choice.deltas(), choice, choice.index, self._asked.grounding)

    async def _decide(
        self, deltas: Any, answer: WholeAnswer | StreamedChoice, index: int, grounding: Grounding
    ) -> None:
        await decide(
            self._guard,
            grounding,
            deltas,
            answer,
            missing=self._settings.missing,
            generator_model=self._asked.model,
            seen=self._flagged[index].seen,
        )

    def _joined(self, place: Any, text: str) -> str:
        """A character may come in halves, as JSON escapes them."""
        text = self._halves.pop(place, "") + text
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._halves[place] = text[-1]
            text = text[:-1]
        return characters(text)


def parsed(said: str | bytes) -> Any:
    """What the upstream says in JSON; None where it is none."""
    try:
        return json.loads(said)
    except (ValueError, RecursionError):
        return None
