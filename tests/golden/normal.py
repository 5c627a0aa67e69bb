"""From what a replay gave to the lines of ``expected/``. Whatever is left out of them is left out here.

Lost is only this: floats beyond their third digit (``compare.py`` lets them differ a little), times below a
tenth of a millisecond, hexadecimal ids beyond their eighth digit, what pydantic's words for bad input are,
and the order of a mapping's members.
Everything else is shortened in a way that could be undone: a member with its ordinary value goes, one that
is missing altogether says so, and what repeats something that stands elsewhere in the case, letter by
letter, is a short text that begins with ``=``. A record stands without topic and partition where these are
what its type and the partition of its response say.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from guardrail.events import GROUP_HEADER

ABSENT: Final = "(absent)"

_VERDICT: Final = object()
"""Stands for what the response's verdict has under the same name."""
_SUPPORT: Final = object()
"""Stands for the claim's support."""
_SEQ: Final = object()
"""Stands for the delivery's own number."""
_WITHHELD: Final = "This answer was withheld because it could not be verified against the source documents."
_UNAVAILABLE: Final = "This answer was withheld because it could not be checked. Please try again later."
_DEFAULT_POLICY: Final = "default 1 f15d607a7480"
"""Name, version and digest of the built-in policy."""
_CALL: Final = {
    "model": "judge-model",
    "form": "json_schema",
    "with": "max_completion_tokens stream stream_options temperature",
}

_ORDINARY: Final[Mapping[str, Mapping[str, Any]]] = {
    "delivery.segment": {
        "id": "= as before",
        "text": "= sent",
        "segment": _SEQ,
        "decision": "release",
        "rule": None,
        "claim_ids": [],
    },
    "delivery.completed": {"decision": _VERDICT, "rule": _VERDICT, "score": _VERDICT},
    "delivery.blocked": {"message": _WITHHELD, "released_chars": 0, "rule": _VERDICT, "score": _VERDICT},
    "verdict.claim": {
        "severity_reasons": [],
        "verdict": "SUPPORTED",
        "confidence": _SUPPORT,
        "contradiction": None,
        "evidence": [],
        "citations": [],
        "citation_backing": None,
        "conflicting_contexts": [],
        "unsupported_spans": [],
        "parts": [],
        "findings": [],
        "degraded_from": [],
        "usage": None,
        "reasoning": "",
        "judge": "local",
        "attempts": 1,
        "latency_ms": 0.0,
        "policy": _VERDICT,
        "omitted": [],
    },
    "verdict.response": {
        "decision": "release",
        "rule": "score and rules passed",
        "mode": "stream",
        "claims": "= all",
        "deciding_claim": ABSENT,
        "policy": _DEFAULT_POLICY,
        "complete": True,
        "hallucinated_claims": [],
        "conflicting_contexts": [],
        "usage": {},
        "timings": {},
        "omitted": [],
        "challenger": None,
        "route": None,
        "tenant": None,
        "generator_model": None,
        "judged_to_end": True,
        "ended_early": None,
        "judging_stopped": None,
    },
    "case.flagged": {
        "question": "= sent",
        "contexts": "= sent",
        "answer": "= sent",
        "delivered": "= delivered",
        "decision": _VERDICT,
        "rule": _VERDICT,
        "score": _VERDICT,
        "claims": _VERDICT,
        "deciding_claim": _VERDICT,
        "route": None,
        "tenant": None,
        "generator_model": None,
        "metadata": {},
        "policy": _VERDICT,
        "mode": _VERDICT,
        "omitted": [],
    },
}
_OF_A_POLICY: Final = ["name", "version", "digest"]
_TOPICS: Final = {"delivery": "deliveries", "verdict": "verdicts", "case": "flagged"}
_PLACE: Final = ("topic", "partition", "offset", "timestamp")
_WORDING: Final = re.compile(r"(?<=-message: )(not valid JSON|event|response[\w.]*): .*")
"""What pydantic says is wrong with a value; its next version may say it otherwise."""
_ID: Final = re.compile("[0-9a-f]{24}")
_NUMBERS: Final = {
    "usage": (
        "judge_calls",
        "input_tokens",
        "cached_input_tokens",
        "output_tokens",
        "cost_usd",
        "dropped_quotes",
    ),
    "counts": ("supported", "partially_supported", "unsupported", "contradicted", "unverified"),
    "timings": ("total_ms", "first_claim_ms", "after_completion_ms", "max_claim_ms"),
}
"""Mappings of numbers, with all their members, of which those that are 0 go."""


def lines(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A case as it is expected: its name, a line for each record, one for each call of the model server."""
    about = _About(result)
    found = [{"case": result["case"]}]
    found += [about.line(role, record) for role, records in result["written"].items() for record in records]
    for number, call in enumerate(result["calls"], start=1):
        found.append(
            {"call": number} | {name: told for name, told in call.items() if _CALL.get(name) != told}
        )
    found += [{name: result[name]} for name in ("unread", "failed") if result[name]]
    return [_rounded(line) for line in found]


class _About:
    """What a line may refer to."""

    def __init__(self, result: Mapping[str, Any]) -> None:
        self._case: str = result["case"]
        self._python = result["through"] == "python"
        self._sent: Sequence[Mapping[str, Any]] = result["sent"]
        self._partitions: dict[str, Any] = {}
        self._heads: dict[str, dict[str, Any]] = {}
        self._texts: dict[str, str] = dict.fromkeys([self._case], result.get("text", ""))
        for record in self._sent:
            event = _event(record) or {}
            response_id = str(event.get("response_id"))
            self._partitions.setdefault(response_id, record["partition"])
            if "contexts" in event:
                self._heads.setdefault(response_id, event)
            kind = {"response": "answer", "response.delta": "text"}.get(str(event.get("type")), "")
            self._texts[response_id] = self._texts.get(response_id, "") + str(event.get(kind, ""))
        self._bases: dict[str, str] = {}
        self._claims: dict[tuple[str, str], dict[str, Any]] = {}
        self._verdicts: dict[str, dict[str, Any]] = {}
        self._delivered: dict[str, str] = {}
        for records in result["written"].values():
            for event in filter(None, map(_event, records)):
                self._note(event)

    def _note(self, event: dict[str, Any]) -> None:
        response_id = str(event.get("response_id"))
        match event.get("type"):
            case "verdict.claim":
                self._claims.setdefault((response_id, str(event.get("claim_id"))), event)
            case "verdict.response":
                self._verdicts.setdefault(response_id, event)
            case "delivery.segment":
                self._delivered[response_id] = self._delivered.get(response_id, "") + str(event.get("text"))

    def line(self, role: str, record: Mapping[str, Any]) -> dict[str, Any]:
        """One record. ``key`` and ``response_id`` go where they are the case's own."""
        event = {} if role == "dead_letters" else dict(_event(record) or {})
        response_id = str(event.get("response_id"))
        line: dict[str, Any] = {}
        kind = str(event.get("type", ""))
        usual = "python" if self._python else _TOPICS.get(kind.partition(".")[0])
        if role != usual or record["partition"] != self._partitions.get(response_id):
            line["to"] = f"{role}/{record['partition']}"
        if record["key"] != self._case:
            line["key"] = record["key"]
        if role == "dead_letters":
            return line | self._dead_letter(record)
        # All outputs name the group of guards that wrote them.
        headers = [": ".join(map(str, each)) for each in record["headers"] if each[0] != GROUP_HEADER]
        if headers:
            line["headers"] = headers
        if response_id == self._case:
            del event["response_id"]
        try:
            short = self._short(copy.deepcopy(event), response_id)
        except (AttributeError, KeyError, TypeError, ValueError):
            short = event  # of another form than all that were ever written: whole
        return {"type": kind} | line | short

    def _dead_letter(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Which of the records that were sent this one is, as it was, and what the added headers say."""
        for number, sent in enumerate(self._sent, start=1):
            own, added = record["headers"][: len(sent["headers"])], record["headers"][len(sent["headers"]) :]
            place = [[f"guardrail-dead-letter-{name}", str(sent[name])] for name in _PLACE]
            same = (record["key"], record["value"], own) == (sent["key"], sent["value"], sent["headers"])
            if same and added[-len(place) :] == place:
                told = [_WORDING.sub(r"\1: …", ": ".join(header)) for header in added[: -len(place)]]
                return {"headers": told, "value": f"= sent {number}"}
        return {"headers": record["headers"], "value": record["value"]}

    def _short(self, event: dict[str, Any], response_id: str) -> dict[str, Any]:
        kind = str(event.get("type"))
        if event.get("schema") == 1:
            del event["schema"]
        else:
            event["schema"] = event.get("schema", ABSENT)
        ordinary = dict(_ORDINARY.get(kind, {}))
        for name, value in ordinary.items():
            if value is _VERDICT:
                ordinary[name] = self._verdicts.get(response_id, {}).get(name, ABSENT)
            elif value is _SUPPORT or value is _SEQ:
                ordinary[name] = event.get("support" if value is _SUPPORT else "seq")
        left_out = {name for name, value in ordinary.items() if name in event and _equal(event[name], value)}
        if event.get("message") == _UNAVAILABLE:
            event["message"] = "= unavailable"
        match kind:
            case "delivery.segment":
                self._shorten_segment(event, response_id)
            case "verdict.claim":
                self._shorten_claim(event, response_id)
            case "verdict.response":
                self._shorten_response(event, response_id)
            case "case.flagged":
                self._shorten_case(event, response_id)
        for name in _NUMBERS.keys() & event.keys():
            if isinstance(numbers := event[name], dict):
                event[name] = {
                    each: _tenths(value) for each, value in numbers.items() if value or value is None
                }
                event[name] |= {each: ABSENT for each in _NUMBERS[name] if each not in numbers}
        if isinstance(claims := event.get("claims"), list):
            shorter = [self._claim(claim, response_id) for claim in claims]
            all_of_them = [
                claim["index"] for (owner, _), claim in self._claims.items() if owner == response_id
            ]
            event["claims"] = "= all" if shorter == sorted(all_of_them) else shorter
        if isinstance(policy := event.get("policy"), dict) and list(policy) == _OF_A_POLICY:
            event["policy"] = " ".join(policy.values())
        left_out |= {name for name, value in ordinary.items() if name in event and _equal(event[name], value)}
        missing = {
            name: ABSENT for name, value in ordinary.items() if name not in event and value is not ABSENT
        }
        return {name: value for name, value in event.items() if name not in left_out} | missing

    def _number(self, claim_id: str, response_id: str) -> str | int:
        """The number of a claim instead of its id."""
        claim = self._claims.get((response_id, claim_id))
        return claim_id if claim is None else int(claim["index"])

    def _claim(self, claim: Any, response_id: str) -> Any:
        """A claim within another event: its number; whole where it is not what was published of it."""
        if not isinstance(claim, dict):
            return [claim]
        if self._claims.get((response_id, claim.get("claim_id", ""))) == claim:
            return claim["index"]
        return self._short(dict(claim), response_id)

    def _shorten_segment(self, event: dict[str, Any], response_id: str) -> None:
        start, end = event.get("span", [0, 0])
        if event.get("text") == self._texts.get(response_id, "")[start:end]:
            event["text"] = "= sent"
        if isinstance(event.get("claim_ids"), list):
            event["claim_ids"] = [self._number(claim_id, response_id) for claim_id in event["claim_ids"]]
        if str(event.get("id")).endswith(end := f"-{event.get('segment')}-{start}"):
            base = event["id"].removesuffix(end)
            event["id"] = "= as before" if self._bases.get(response_id) == base else f"{base}-="
            self._bases[response_id] = base

    def _shorten_claim(self, claim: dict[str, Any], response_id: str) -> None:
        if claim.get("id") == f"{claim.get('claim_id')}-verdict":
            del claim["id"]
        else:
            claim["id"] = claim.get("id", ABSENT)
        contexts = {each["id"]: each["text"] for each in self._heads.get(response_id, {}).get("contexts", [])}
        if isinstance(claim.get("evidence"), list):
            claim["evidence"] = [_evidence(each, contexts) for each in claim["evidence"]]
        if isinstance(claim.get("latency_ms"), float):
            claim["latency_ms"] = _tenths(claim["latency_ms"])

    def _shorten_response(self, event: dict[str, Any], response_id: str) -> None:
        claims = [claim for (owner, _), claim in self._claims.items() if owner == response_id]
        numbers = {claim["text"]: claim["index"] for claim in reversed(claims)}
        if "deciding_claim" in event:
            event["deciding_claim"] = self._number(event["deciding_claim"], response_id)
        if isinstance(texts := event.get("hallucinated_claims"), list):
            event["hallucinated_claims"] = [numbers.get(text, text) for text in texts]
        if isinstance(summary := event.get("summary"), str):
            if isinstance(score := event.get("score"), float):
                # A score that differs in its third digit may differ in the second one here.
                summary = summary.replace(f"score {score:.2f}", "score = score")
            event["summary"] = summary.replace(f"({event.get('rule')})", "(= rule)")
        if isinstance(kinds := event.get("segment_kinds"), list):
            event["segment_kinds"] = ", ".join(f"{len([*same])} {kind}" for kind, same in groupby(kinds))

    def _shorten_case(self, event: dict[str, Any], response_id: str) -> None:
        head = self._heads.get(response_id, {})
        contexts = [{"source": None, "score": None, **context} for context in head.get("contexts", [])]
        for name, value, short in (
            ("question", head.get("question", ""), "= sent"),
            ("contexts", contexts, "= sent"),
            ("answer", self._texts.get(response_id, ""), "= sent"),
            ("delivered", self._delivered.get(response_id, ""), "= delivered"),
        ):
            if name in event and event[name] == value:
                event[name] = short


def _equal(value: Any, other: Any) -> bool:
    return type(value) is type(other) and bool(value == other)


def _event(record: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        event = json.loads(record["value"] or "")
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


def _evidence(each: Mapping[str, Any], contexts: Mapping[str, str]) -> Any:
    """``context[start:end]``, for a quote that stands there."""
    if set(each) == {"context_id", "quote", "span"}:
        start, end = each["span"]
        if contexts.get(each["context_id"], "")[start:end] == each["quote"]:
            return f"= {each['context_id']}[{start}:{end}]"
    return dict(each)


def _tenths(value: Any) -> Any:
    """A time to a tenth of a millisecond; what is less than that may be money."""
    return round(value, 1) if isinstance(value, float) and value >= 1.0 else value


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 3 if value >= 0.001 else 9)
    if isinstance(value, str):
        return _ID.sub(lambda found: f"{found[0][:8]}…", value)
    if isinstance(value, Mapping):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return value


def written(found: Sequence[Mapping[str, Any]]) -> str:
    """Lines as they stand in a file."""
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in found)


def read(text: str) -> Iterator[dict[str, Any]]:
    """Lines of such a file."""
    for line in text.splitlines():
        yield json.loads(line)
