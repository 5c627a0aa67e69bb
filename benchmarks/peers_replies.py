"""What the simulated model of ``benchmarks.peers`` replies: the truth, in the form that each prompt asks for.

It knows the answers and their errors, so what is compared is how long a system takes and what it spends to
get the same judgement out of the same model, not how good a model is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.peers_answers import Case, Truth

# [MARKER claim c1], what stands up to the next marker line, and the ids that the last line asks for.
_FENCED: Final = re.compile(r"\[(m\d+) claim (\w+)\]\n(.*?)(?=\n\[\1 )", re.DOTALL)
_ASKED: Final = re.compile(r"[Gg]ive the verdicts? on ([\w, ]+?)(?=,? as\b|\.|$)", re.MULTILINE)
_LABEL: Final = re.compile(r"\[([a-z]*\d+(?:[.:_-]\w+)*)\]", re.IGNORECASE)
_NO_BLANKS: Final = "without blanks between its parts"
_BRIEF: Final = '"" when the verdict is SUPPORTED'
_QUOTED_WORDS: Final = 12
_ENOUGH_CHARS: Final = 24
_DOCUMENT: Final = re.compile(r"\[m\d+ (?:excerpt of )?(?:document|context) (\w+)\]")


@dataclass(frozen=True, slots=True)
class Reply:
    """``text`` is the content, or with ``tool`` the arguments of a call of that tool.

    ``unknown`` counts the claims that were asked for and stand in no known answer.
    """

    text: str
    tool: str | None = None
    unknown: int = 0


class Replies:
    """Knows all cases, and tells from a request's form which system asks."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._cases = sorted(cases, key=lambda case: -len(case.answer))
        self._claims = {_plain(claim.text): claim for case in cases for claim in case.claims}

    def to(self, body: dict[str, Any]) -> Reply:
        """The reply to the body of a chat-completions request. Raises ValueError for one of no known form."""
        messages = [_text(message) for message in body["messages"]]
        prompt = "\n".join(messages)
        tools = [tool["function"] for tool in body.get("tools") or ()]
        schema = (body.get("response_format") or {}).get("json_schema", {}).get("schema")
        if fenced := _FENCED.findall(messages[-1]):
            claims = {label: text for _, label, text in fenced}
            return self._verdicts(prompt, messages[-1], claims, schema)
        if "statement_scores" in prompt:
            return self._statement_scores(prompt)
        if "answer with either YES or NO" in prompt or "existing YES/NO answer" in prompt:
            case = self._case(prompt)
            return Reply("NO" if any(claim.bad for claim in case.claims) else "YES")
        if "faithfulness of a series of statements" in prompt:
            return _as_asked(self._nli(prompt), tools)
        if "fully understandable statements" in prompt:
            statements = [claim.text for claim in self._case(prompt).claims]
            return _as_asked({"statements": statements}, tools)
        raise ValueError("a prompt of no known form: see benchmarks/peers_replies.py")

    def _case(self, prompt: str) -> Case:
        """The case whose answer the prompt holds."""
        unescaped = prompt.replace('\\"', '"').replace("\\'", "'")
        found = next((case for case in self._cases if case.answer in unescaped), None)
        if found is None:
            raise ValueError("a prompt without a known answer")
        return found

    # ------------------------------------------------------------------------------------- peers

    def _statement_scores(self, prompt: str) -> Reply:
        """Haystack: the statements and a 1 or 0 for each."""
        claims = self._case(prompt).claims
        scores = [int(not claim.bad) for claim in claims]
        return Reply(json.dumps({"statements": [claim.text for claim in claims], "statement_scores": scores}))

    def _nli(self, prompt: str) -> dict[str, Any]:
        """Ragas, second call: each statement again, with a reason and a 1 or 0."""
        tail = prompt.rpartition("Now perform the same with the following input")[2]
        asked = [claim for text, claim in self._claims.items() if text in _plain(tail)]
        return {
            "statements": [
                {"statement": claim.text, "reason": _reason(claim), "verdict": int(not claim.bad)}
                for claim in asked
            ]
        }

    # -------------------------------------------------------------------------------------- ours

    def _verdicts(
        self, system: str, prompt: str, claims: dict[str, str], schema: dict[str, Any] | None
    ) -> Reply:
        """A verdict for every id asked, with the members that the schema lists, in its order."""
        last = _ASKED.findall(prompt)
        asked = [label for label in re.split(r"[, ]+", last[-1]) if label in claims] if last else list(claims)
        item = _item(schema)
        compact = _compact_pattern(schema)
        brief = _BRIEF in system
        unknown = 0
        members: list[Any] = []
        for label in asked:
            truth = self._claims.get(_plain(claims[label]))
            if truth is None:
                unknown += 1
                truth = Truth(claims[label], "UNSUPPORTED", "")
            elif not _shown(truth, prompt):
                truth = Truth(truth.text, "UNSUPPORTED", "")
            if compact is not None:
                members.append(_text_of(compact, label, truth, prompt))
                continue
            made = {name: _value(name, form, label, truth, prompt) for name, form in item.items()}
            if brief and not truth.bad and "reasoning" in made:
                made["reasoning"] = ""
            members.append(made)
        value = {_list_name(schema): members}
        return Reply(_compact(value) if _NO_BLANKS in system else json.dumps(value), unknown=unknown)


def _shown(truth: Truth, prompt: str) -> bool:
    """Whether the prompt has the sentence that tells: a model can't know the rest of the documents."""
    return truth.evidence[:_ENOUGH_CHARS] in prompt


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def _plain(text: str) -> str:
    return " ".join(text.split()).strip()


def _reason(claim: Truth) -> str:
    if claim.verdict == "UNSUPPORTED":
        return "Nothing of this is stated in the context."
    words = _short(claim.evidence)
    return f"The context states that {words[:1].lower()}{words[1:]}."


def _short(evidence: str) -> str:
    """As much of a sentence as a model that is told to be brief repeats of it."""
    return " ".join(evidence.split()[:_QUOTED_WORDS])


def _short_reason(claim: Truth) -> str:
    """One sentence, as our prompt asks for where a claim is not supported."""
    if claim.verdict == "UNSUPPORTED":
        return "No document says so."
    return f"The document says: {_short(claim.evidence)}."


def _as_asked(value: dict[str, Any], tools: Sequence[dict[str, Any]]) -> Reply:
    """As content, or as the arguments of the only tool."""
    if not tools:
        return Reply(json.dumps(value))
    return Reply(_compact(value), tool=tools[0]["name"])


def _compact(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _list_name(schema: dict[str, Any] | None) -> str:
    for name, value in (schema or {}).get("properties", {}).items():
        if value.get("type") == "array":
            return str(name)
    return "verdicts"


def _item(schema: dict[str, Any] | None) -> dict[str, Any]:
    """The properties of one verdict; without a schema, those that the prompt's own form has shown so far."""
    properties = (schema or {}).get("properties", {})
    items: dict[str, Any] = properties.get(_list_name(schema), {}).get("items", {})
    found: dict[str, Any] = items.get("properties", {})
    return found or {"id": {"type": "string"}, "verdict": {"type": "string"}}


def _compact_pattern(schema: dict[str, Any] | None) -> re.Pattern[str] | None:
    """What the schema asks of a verdict that is a text rather than an object."""
    item = (schema or {}).get("properties", {}).get(_list_name(schema), {}).get("items", {})
    return re.compile(item["pattern"]) if item.get("type") == "string" else None


def _text_of(pattern: re.Pattern[str], label: str, truth: Truth, prompt: str) -> str:
    """The shortest text with the truth that the pattern allows, with a reason where it must have one."""
    number = _pointer({"type": "integer"}, truth, prompt) if truth.evidence else ""
    rest = {"PARTIALLY_SUPPORTED": "partial"}.get(truth.verdict, truth.verdict.lower())
    short = f"{label} {number} {rest}".replace("  ", " ")
    reason = f": {_short_reason(truth)}".replace('"', "'")
    for text in (short, short + reason):
        if pattern.fullmatch(text):
            return text
    raise ValueError("a form of verdict that benchmarks/peers_replies.py doesn't know")


def _value(name: str, form: dict[str, Any], label: str, truth: Truth, prompt: str) -> Any:
    """One member of a verdict, by its name and by the type that the schema gives it."""
    if name == "id":
        return label
    if name == "verdict":
        return _verdict(form.get("enum") or (), truth)
    if name in {"quotes", "evidence", "sentences"}:
        return [_pointer(form.get("items", {}), truth, prompt)] if truth.evidence else []
    if name in {"reasoning", "reason"}:
        return _short_reason(truth)
    kind = form.get("type")
    if isinstance(kind, list):
        kind = kind[0]
    by_type: dict[Any, Any] = {"number": 0.95, "integer": 95, "array": [], "boolean": False, "object": {}}
    return by_type.get(kind, "")


def _verdict(names: Sequence[str], truth: Truth) -> str:
    """The verdict as the schema spells it; the nearest where it has fewer than four."""
    for name in (truth.verdict, "UNSUPPORTED" if truth.bad else "SUPPORTED"):
        found = next((known for known in names if known.upper() == name), None)
        if found is not None:
            return found
    return truth.verdict


def _pointer(form: dict[str, Any], truth: Truth, prompt: str) -> Any:
    """The evidence as a quote or as the label that its sentence has in the prompt, as the schema asks."""
    at = prompt.find(truth.evidence)
    if at < 0:
        at = prompt.find(truth.evidence[:_ENOUGH_CHARS])  # cut into sentences elsewhere than here
    line = prompt[prompt.rfind("\n", 0, at) + 1 : at] if at >= 0 else ""
    labelled = _LABEL.match(line)
    documents = _DOCUMENT.findall(prompt[: max(at, 0)])
    document = documents[-1] if documents else "d1"
    mark = labelled[1] if labelled else ""
    if form.get("type") == "object":
        return {
            name: document if name in {"document", "context"} else _plain_pointer(part, mark, truth)
            for name, part in form.get("properties", {}).items()
        }
    return _plain_pointer(form, mark, truth)


def _plain_pointer(form: dict[str, Any], mark: str, truth: Truth) -> Any:
    if form.get("type") == "integer":
        digits = re.findall(r"\d+", mark)
        return int(digits[-1]) if digits else 1
    if form.get("type") == "array":
        return [_plain_pointer(form.get("items", {}), mark, truth)]
    return mark or _short(truth.evidence)
