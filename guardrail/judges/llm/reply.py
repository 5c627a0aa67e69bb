"""A reply: the form that is requested, and how to read replies, complete or while they are being written.

A verdict is one short text in a list. It is an object with named members only if the model has to write text
of its own before the verdict. Every token delays the verdicts, so both forms request little: evidence is
given as sentence numbers.

The reader skips whatever a model writes around its JSON (prose, code fences, thoughts). What the model says
about a claim must be exact: "not SUPPORTED" is not a verdict. An invalid member affects only its claim.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, Final

from guardrail.errors import JudgeReplyError
from guardrail.events import ClaimPart, Verdict
from guardrail.judges.llm.settings import LlmJudgeSettings, Reasoning, together
from guardrail.printable import shorten

MAX_REPLY_CHARS: Final = 1_000_000
MAX_REASONING_CHARS: Final = 2_000
MOST_NUMBERS: Final = 10
"""Of sentences that a claim's evidence may name; the settings ask for no more (``max_quotes``)."""
ASSUMED_CONFIDENCE: Final = 0.9
"""In a verdict that says none: none was asked for, or a compact one is not in doubt."""

_SHOWN_CHARS: Final = 40


def shown(word: object) -> str:
    """`` 'WORD'`` for a message about what a model wrote instead of a verdict, printable and short. Empty if
    it wrote no text.
    """
    text = " ".join(word[: 2 * _SHOWN_CHARS].split()) if isinstance(word, str) else ""
    return f" {shorten(text, _SHOWN_CHARS)!r}" if text else ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a reply says about one claim, by the claim's short id. ``problem`` says why it is unusable.

    ``evidence`` and ``against`` are sentence numbers as given, which may not exist; 0, which never exists,
    stands for anything that is not a number.
    """

    label: str
    verdict: Verdict = Verdict.UNVERIFIED
    confidence: float = 0.0
    evidence: tuple[int, ...] = ()
    against: tuple[int, ...] = ()
    reasoning: str = ""
    parts: tuple[ClaimPart, ...] = ()
    problem: str = ""


# ------------------------------------------------------------------------------------------ what is asked for

VERDICTS: Final[dict[str, Verdict]] = {
    verdict.value: verdict for verdict in Verdict if verdict is not Verdict.UNVERIFIED
}
WORDS: Final = {
    Verdict.SUPPORTED: "supported",
    Verdict.PARTIALLY_SUPPORTED: "partial",
    Verdict.UNSUPPORTED: "unsupported",
    Verdict.CONTRADICTED: "contradicted",
}
"""The verdicts in the compact form: lower-case words that are single tokens."""

# Without the characters that JSON escapes: servers that compile the pattern into a grammar apply it to the
# raw JSON text, where such a character would end the text or break it.
_REASON: Final = r': [^"\\\n\r\t]+'
_NUMBERS: Final = rf"( [0-9]{{1,6}}){{0,{MOST_NUMBERS}}}"
_SURE: Final = "( [0-9]{1,2}%)?"
_AGAINST: Final = f"( ![0-9]{{1,6}}){{0,{MOST_NUMBERS}}}"


def _object(members: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


_STRING: Final = {"type": "string"}
_NUMBERED: Final = {"type": "array", "items": {"type": "integer"}}
_VERDICT: Final = {"type": "string", "enum": list(VERDICTS)}
_MEMBERS: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "id": (_STRING, '"c1"'),
    "evidence": (_NUMBERED, "[12,13]"),
    "reasoning": (_STRING, '"…"'),
    "parts": (
        {"type": "array", "items": _object({"text": _STRING, "verdict": _VERDICT})},
        '[{"text":"…","verdict":"…"}]',
    ),
    "verdict": (_VERDICT, '"…"'),
    "confidence": ({"type": "number"}, "0.0"),
    "against": (_NUMBERED, "[]"),
}
"""Of a verdict that is an object: the schema and an example of each."""


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """What a reply says about each claim. Equal forms have equal schemas and read replies alike."""

    reasoning: Reasoning = Reasoning.NOT_SUPPORTED
    decompose: bool = False

    @classmethod
    def of(cls, settings: LlmJudgeSettings) -> ReplyForm:
        """The form that ``settings`` request."""
        return cls(settings.reasoning, settings.decompose)

    @property
    def compact(self) -> bool:
        """Whether a verdict is a text, such as ``c2 15 contradicted: It costs $5.``, and not an object.

        The text has, in this order: the id of the claim, sentence numbers, the verdict as one word, and then,
        only if needed, the confidence (``60%``), sentences that contradict what others support (``!15``) and,
        after a colon, the reason. SUPPORTED takes six tokens; as an object it takes thirty. The model's own
        words come after the verdict, so that they can't be mistaken for it.
        """
        return not self.decompose and self.reasoning is not Reasoning.BEFORE

    @property
    def reasons(self) -> bool:
        """Whether reasons are requested."""
        return self.reasoning is not Reasoning.NONE

    @property
    def reason_when_supported(self) -> bool:
        """Whether reasons are requested for SUPPORTED too."""
        return self.reasoning in {Reasoning.BEFORE, Reasoning.AFTER}

    @property
    def members(self) -> tuple[str, ...]:
        """The names of an object's members in writing order: a verdict comes after what it is based on."""
        before = ("reasoning",) if self.reasoning is Reasoning.BEFORE else ()
        after = ("reasoning",) if self.reasoning in {Reasoning.AFTER, Reasoning.NOT_SUPPORTED} else ()
        parts = ("parts",) if self.decompose else ()
        return ("id", "evidence", *before, *parts, "verdict", "confidence", "against", *after)

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of a reply, for strict structured outputs.

        It doesn't depend on the claims, because a provider takes seconds to compile a new schema. Models
        write members in the order of the schema.
        """
        if self.compact:
            texts = {"type": "array", "items": {"type": "string", "pattern": self._pattern()}}
            return _object({"v": texts})
        item = _object({name: _MEMBERS[name][0] for name in self.members})
        return _object({"verdicts": {"type": "array", "items": item}})

    def _pattern(self) -> str:
        """The regular expression that a whole verdict in the compact form matches."""
        reason = _REASON if self.reasons else ""
        if self.reasons and not self.reason_when_supported:
            others = "|".join(word for verdict, word in WORDS.items() if verdict is not Verdict.SUPPORTED)
            said = f"(supported{_SURE}{_AGAINST}|({others}){_SURE}{reason})"
        else:
            said = f"({'|'.join(WORDS.values())}){_SURE}{_AGAINST}{reason}"
        return f"^c[0-9]{{1,4}}{_NUMBERS} {said}$"

    def example(self) -> str:
        """An example of the form, for servers that accept no schema. Its values show types, not verdicts."""
        if self.compact:
            return '{"v":["ID NUMBERS VERDICT","ID NUMBERS VERDICT' + (
                ': REASON"]}' if self.reasons else '"]}'
            )
        return '{"verdicts":[{' + ",".join(f'"{name}":{_MEMBERS[name][1]}' for name in self.members) + "}]}"

    def write(self, said: Sequence[Answer]) -> str:
        """The reply of a model that says ``said`` and keeps to the form."""
        each = self._text if self.compact else self._member
        reply = {"v" if self.compact else "verdicts": [each(answer) for answer in said]}
        return json.dumps(reply, ensure_ascii=False, separators=(",", ":"))

    def _reason(self, said: Answer) -> str:
        silent = said.verdict is Verdict.SUPPORTED and not self.reason_when_supported
        return said.reasoning if self.reasons and not silent else ""

    def _text(self, said: Answer) -> str:
        words = [said.label, *map(str, said.evidence), WORDS[said.verdict]]
        if said.confidence < ASSUMED_CONFIDENCE:
            words.append(f"{said.confidence:.0%}")
        if said.verdict is Verdict.SUPPORTED:
            words += [f"!{number}" for number in said.against]
        reason = " ".join(self._reason(said).replace('"', "'").replace("\\", "/").split())
        return " ".join(words) + (f": {reason}" if reason else "")

    def _member(self, said: Answer) -> dict[str, Any]:
        values: dict[str, Any] = {
            "id": said.label,
            "evidence": list(said.evidence),
            "parts": [{"text": part.text, "verdict": part.verdict.value} for part in said.parts],
            "verdict": said.verdict.value,
            "confidence": said.confidence,
            "against": list(said.against),
            "reasoning": self._reason(said),
        }
        return {name: values[name] for name in self.members}


# ---------------------------------------------------------------------------- reading what is said of a claim

_MOST_PARTS: Final = 20
_MAX_PART_CHARS: Final = 500
_MOST_TOLD: Final = 3
_AGAINST_IT: Final = frozenset({Verdict.UNSUPPORTED, Verdict.CONTRADICTED})
_DUPLICATE: Final = "\0duplicate"
_NO_PARTS: Final = "the judge's verdict is a text, which can't tell of the parts that decompose asks for"

_LABEL: Final = re.compile(r"\s*([^\s:,]{1,64})[\s:,]+\S")
# More lenient than the pattern about what surrounds the words, but the whole text must match.
_ITEM: Final = re.compile(
    r"\s*+(?P<label>[^\s:,]{1,64})[\s:,]++"
    r"(?P<evidence>(?:\[?[0-9]{1,9}\]?[\s,]++)*+)"
    r"(?P<verdict>[A-Za-z]++(?:[ _-][A-Za-z]++)?+)"
    r"(?:\s++(?P<confidence>[0-9]{1,3})\s?%)?+"
    r"(?P<against>(?:[\s,]*+![0-9]{1,9})*+)\s*+"
    r"(?::\s*+(?P<reasoning>.*+))?+",
    re.DOTALL,
)
_EVIDENCE: Final = re.compile(r"(?:\[?[0-9]{1,9}\]?[\s,]+)*+")
_NUMBER: Final = re.compile(r"\[?([0-9]{1,9})\]?")


def _read_member(member: Any, form: ReplyForm) -> Answer | None:
    """What one member of a list of verdicts says; None if it names no claim.

    Models don't always keep to the form, so both forms are read; but a text can't contain the statements that
    ``decompose`` requires.
    """
    if isinstance(member, str):
        answer = _read_text(member)
        if answer is None or not form.decompose:
            return answer
        return Answer(answer.label, problem=_NO_PARTS)
    if not isinstance(member, dict) or not isinstance(member.get("id"), str):
        return None
    label = member["id"].strip().lower()
    if _DUPLICATE in member:
        return Answer(label, problem="the judge gave a member of its verdict twice")
    parts = _parts(member.get("parts")) if form.decompose else []
    if parts is None:
        return Answer(label, problem="the judge's verdicts on the parts of the claim are unusable")
    said = verdict = _verdict(member.get("verdict"))
    if parts and (calculated := Verdict(together(part.verdict for part in parts))) is not Verdict.SUPPORTED:
        # Models are poor at combining parts. But SUPPORTED parts never overrule the model's doubt.
        verdict = calculated
    if verdict is None:
        return Answer(label, problem=f"the judge's verdict{shown(member.get('verdict'))} is none of the four")
    confidence = member.get("confidence", 0.5)
    if isinstance(confidence, bool) or not isinstance(confidence, int | float):
        return Answer(label, problem="the judge's confidence is not a number")
    if not 0.0 <= confidence <= 1.0:
        return Answer(label, problem="the judge's confidence is not between 0 and 1")
    reasoning = member.get("reasoning")
    answer = Answer(
        label,
        verdict,
        float(confidence),
        tuple(_numbers(member.get("evidence"))),
        tuple(_numbers(member.get("against"))),
        reasoning.strip()[:MAX_REASONING_CHARS] if isinstance(reasoning, str) else "",
        tuple(parts),
    )
    return answer if said is verdict else _decided_by_parts(answer, said)


def _read_text(text: str) -> Answer | None:
    """What a text in the compact form says; None if it names no claim."""
    match = _ITEM.fullmatch(text)
    if match is None:
        begin = _LABEL.match(text)
        if begin is None:
            return None
        said = text[begin.end() - 1 :]
        word = said[_EVIDENCE.match(said).end() :]  # type: ignore[union-attr]  # it matches nothing too
        problem = f"the judge's verdict{shown(word.partition(':')[0])} can't be read"
        return Answer(begin[1].lower(), problem=problem)
    label, word = match["label"].lower(), match["verdict"]
    verdict = Verdict.PARTIALLY_SUPPORTED if word.lower() == "partial" else _verdict(word)
    if verdict is None:
        return Answer(label, problem=f"the judge's verdict{shown(word)} is none of the four")
    percent = match["confidence"]
    if percent is not None and int(percent) > 100:
        return Answer(label, problem="the judge's confidence is not between 0 and 100 %")
    return Answer(
        label,
        verdict,
        ASSUMED_CONFIDENCE if percent is None else int(percent) / 100,
        _numbers_in(match["evidence"]),
        _numbers_in(match["against"]),
        (match["reasoning"] or "").strip()[:MAX_REASONING_CHARS],
    )


def _verdict(value: Any) -> Verdict | None:
    """The verdict, if it is the whole of ``value``. Case and word separators may differ."""
    if not isinstance(value, str) or not value.isascii():  # the upper case of "ſ" is an S
        return None
    return VERDICTS.get("_".join(value.upper().replace("-", " ").replace("_", " ").split()))


def _numbers(value: Any) -> Iterator[int]:
    """Sentence numbers in the forms that models use: 12, "12", "[12]". 0 stands for anything else."""
    for item in value[:MOST_NUMBERS] if isinstance(value, list) else ():
        if isinstance(item, int) and not isinstance(item, bool):
            yield item
        else:
            match = _NUMBER.fullmatch(item.strip()) if isinstance(item, str) else None
            yield int(match[1]) if match else 0


def _numbers_in(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in _NUMBER.findall(text)[:MOST_NUMBERS])


def _parts(value: Any) -> list[ClaimPart] | None:
    """The statements of a claim; None if one is unusable, since it might be the wrong one."""
    if not isinstance(value, list):
        return [] if value is None else None
    if len(value) > _MOST_PARTS:
        return None
    parts = []
    for item in value:
        if not isinstance(item, dict) or _DUPLICATE in item:
            return None
        text, verdict = item.get("text"), _verdict(item.get("verdict"))
        if not isinstance(text, str) or verdict is None:
            return None
        parts.append(ClaimPart(text=text.strip()[:_MAX_PART_CHARS], verdict=verdict))
    return parts


def _decided_by_parts(answer: Answer, said: Verdict | None) -> Answer:
    """The answer if its parts led to another verdict than the model ``said`` for the whole claim.

    The model's reason belongs to its own verdict, so the reason names the parts that decided instead.
    Sentences that it named as support don't prove the opposite either, so they are dropped.
    """
    deciding = [part for part in answer.parts if part.verdict is answer.verdict]
    deciding = deciding or [part for part in answer.parts if part.verdict is not Verdict.SUPPORTED]
    told = [f"{part.verdict.value}: {part.text}" for part in deciding[:_MOST_TOLD]]
    more = len(deciding) - len(told)
    reason = "Of its parts, " + "; ".join([*told, *([f"and {more} more"] if more else [])])
    against = answer.verdict in _AGAINST_IT and said not in _AGAINST_IT
    return replace(
        answer, reasoning=reason[:MAX_REASONING_CHARS], evidence=() if against else answer.evidence
    )


# -------------------------------------------------------------------------------------- reading a whole reply

# The rest of the reply is read once for each start of an object without an end: this bounds how often.
_MAX_FAILED_STARTS: Final = 64
_MAX_VALUES: Final = 1_000
_THOUGHTS: Final = re.compile(r"</?(?:think|thinking|thought|reasoning)>|\[/?THINK\]", re.IGNORECASE)
_NOTHING: Final = re.compile(r"(?:[\s,;`\ufeff]|json(?:l|5)?\b)*+", re.IGNORECASE)
_START: Final = re.compile(r"[{\[]")
_LIST_NAMES: Final = ("v", "verdicts")
_LIST_START: Final = re.compile(r'(?:\{\s*"(?:v|verdicts)"\s*:\s*)?\[\s*(?=[{"])')
_BEGINS_WITH_LIST: Final = re.compile(_NOTHING.pattern + _LIST_START.pattern, re.IGNORECASE)
_JSON_START: Final = re.compile(r'\{\s*"|\[\s*[\[{"]')
_SEPARATOR: Final = re.compile(r"\s*,\s*")
_TELLING: Final = {"verdict", "parts"}


def read_reply(text: str, form: ReplyForm, *, cut: bool = False) -> list[Answer]:
    """The answers in a reply, in order; at least one; for a reply that was ``cut`` those that were complete.

    A cut reply has to begin with its list: one that begins otherwise may have quoted another, and its own
    would have come. An id may occur twice. Raises JudgeReplyError, which quotes nothing of the reply.
    """
    if len(text) > MAX_REPLY_CHARS:
        raise JudgeReplyError(f"the reply has more than {MAX_REPLY_CHARS} characters")
    parts = _without_thoughts(text)
    if cut and not _BEGINS_WITH_LIST.match("".join(parts)):
        raise JudgeReplyError("the reply was cut, and does not begin with verdicts in JSON")
    answers = _read_parts(parts, form)
    if not answers:
        raise JudgeReplyError("the reply holds no verdicts in JSON")
    return answers


def _read_parts(texts: Sequence[str], form: ReplyForm, *, lists_only: bool = False) -> list[Answer]:
    """The answers in ``texts``. If JSON breaks off, everything complete before that counts, and nothing after
    it.

    Verdicts that stand alone, or in an array, count only if there is nothing else. Beside a list of verdicts,
    or in prose, they may be quoted from a document.
    """
    lists: list[Any] = []
    alone: list[Any] = []
    around: list[str] = []
    for text in texts:
        for value, before in values(text):
            around.append(before)
            if isinstance(value, list):
                alone += value
            elif isinstance(value, dict) and _DUPLICATE not in value:  # either of two lists may be meant
                inner = [value[name] for name in _LIST_NAMES if isinstance(value.get(name), list)]
                lists += [each for members in inner for each in members]
                if not inner and value.keys() & _TELLING:
                    alone.append(value)
    if lists_only or not _NOTHING.fullmatch("".join(around)):
        alone.clear()
    # Of two lists one may be quoted from a document. If they disagree, the caller uses neither.
    found = (_read_member(member, form) for member in lists or alone)
    return [answer for answer in found if answer is not None]


def _decode(text: str, start: int = 0) -> tuple[Any, int] | None:
    """The JSON value that begins at ``start``, and its end; None if there is none, or it is incomplete."""
    try:
        value, end = _decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return value, end


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, marked if a member is given twice, since either may be meant."""
    made = dict(pairs)
    if len(made) != len(pairs):
        made[_DUPLICATE] = True
    return made


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_decoder: Final = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_no_constant)


def _without_thoughts(text: str) -> list[str]:
    """The parts of ``text`` outside the model's thoughts, which are enclosed in marks.

    Some templates begin the thoughts in the prompt, so that the reply contains only their end. The text
    before such an end is kept: if it contains verdicts it may be the reply, and what follows may be quoted.
    Thoughts within thoughts end with the outer ones.
    """
    parts = []
    at = depth = 0
    for mark in _THOUGHTS.finditer(text):
        if not depth:
            parts.append(text[at : mark.start()])
        depth = depth + 1 if "/" not in mark[0] else max(0, depth - 1)
        at = mark.end()
    return parts if depth else [*parts, text[at:]]


def values(text: str) -> Iterator[tuple[Any, str]]:
    """The outermost JSON objects and arrays in ``text``, each with the text before it.

    If a list of verdicts breaks off, its complete members count. The last item is None with the remaining
    text.
    """
    at = end = failed = read = 0
    while failed < _MAX_FAILED_STARTS and read < _MAX_VALUES:
        start = _START.search(text, at)
        if start is None:
            break
        at = start.start()
        decoded = _decode(text, at)
        if decoded is not None:
            read += 1
            yield decoded[0], text[end:at]
            at = end = decoded[1]
        elif (broken := _LIST_START.match(text, at)) is not None:
            complete = list(_complete(text, broken.end()))
            yield complete if text[at] == "[" else {"verdicts": complete}, text[end:at]
            return
        elif _JSON_START.match(text, at) is not None:
            break  # anything found within it may be a part of it, or a document's words
        else:
            at += 1
            failed += 1
    yield None, text[end:]


def _complete(text: str, at: int) -> Iterator[Any]:
    """The values of a list from ``at`` on, up to the first that is not complete."""
    while (decoded := _decode(text, at)) is not None:
        value, end = decoded
        yield value
        separator = _SEPARATOR.match(text, end)
        if separator is None:
            return
        at = separator.end()


# ------------------------------------------------------------------------ reading a reply while it is written

_HEAD: Final = re.compile(r'\s*\{\s*"(?:v|verdicts)"\s*:\s*\[')
_HEAD_MAX_CHARS: Final = 200
_BETWEEN: Final = re.compile(r"[\s,]*")
_MORE_MEMBERS: Final = re.compile(r"\]\s*,")
_ENDS: Final = {'"': '"', "{": "}"}

# The reader tries a longer verdict again only when it has grown by a tenth, so that reading stays linear.
_USUAL_CHARS: Final = 1_000
_GROWN: Final = 1.1


class _At(Enum):
    HEAD = auto()  # before the first verdict
    BETWEEN = auto()  # before the next verdict, or the end of the list
    INSIDE = auto()  # in the text or the object of a verdict
    REST = auto()  # after the list, or in what must not be used early


class ReplyReader:
    """Reads one reply. A verdict is known as soon as its text or object closes.

    Only a reply that is the expected object from its first character on (``{"v":["…"]}`` or
    ``{"verdicts":[{…}]}``) is used early. In anything else (prose, thoughts, a code fence) an object may be
    quoted from a document before the real ones, so the reader reads such a reply as a whole once it has
    ended. It also stops using verdicts early after an object that isn't valid JSON.

    Time is linear in the length of the reply, which is bounded. ``feed`` and ``finish`` together return every
    answer once, in the order of the reply, including those to claims that were not asked for, and those with
    an id that occurs twice.
    """

    def __init__(self, form: ReplyForm, asked: Collection[str]) -> None:
        """``asked`` are the short ids (c1, …) of the claims."""
        self._form = form
        self._asked = asked
        self._at = _At.HEAD
        self._pieces: list[str] = []  # text that belongs to no answer yet
        self._waiting = 0  # its length
        self._enough = 0  # this many characters justify another look at a long verdict
        self._end = ""  # the character that the verdict ends with
        self._chars = 0
        self._parted = True  # a comma, or no text, comes before the next item
        self._broken = False
        self._read = self._found = 0  # answers, and those to claims that were asked for
        self._labels: set[str] = set()  # of the answers

    def feed(self, text: str) -> list[Answer]:
        """The answers that are complete with ``text``, the next piece of the reply.

        Raises JudgeReplyError if the reply is longer than ``MAX_REPLY_CHARS``.
        """
        self._chars += len(text)
        if self._chars > MAX_REPLY_CHARS:
            raise JudgeReplyError(f"the reply has more than {MAX_REPLY_CHARS} characters")
        self._pieces.append(text)
        self._waiting += len(text)
        if self._at is _At.REST or (
            self._at is _At.INSIDE and (self._end not in text or self._waiting < self._enough)
        ):
            return []
        return self._count(self._look())

    def finish(self, *, cut: bool = False) -> list[Answer]:
        """The answers that ``feed`` didn't return, once the reply has ended (``cut``: maybe in the middle).

        Raises JudgeReplyError if the whole reply has no verdict on any claim that was asked for.
        """
        answers = self._look() if self._at is _At.INSIDE else []
        self._count(answers)
        rest = "".join(self._pieces)
        if not self._read:
            answers = self._count(read_reply(rest, self._form, cut=cut))
        elif not self._broken and self._at is not _At.INSIDE:
            # Not inside an unterminated object or broken JSON: its contents may be a quotation.
            if _MORE_MEMBERS.match(rest):
                rest = f'{{"":[{rest}'  # the rest of the object, which may have a second list
            further = _read_parts([rest], self._form, lists_only=True)
            # A second list can contradict the first. If the reply was cut, it can't add to it: its own last
            # list, which would contradict a quoted one, is what may be missing.
            answers += self._count([one for one in further if not cut or one.label in self._labels])
        if not self._found:
            raise JudgeReplyError("the reply has no verdict for any claim that was asked")
        return answers

    def _count(self, answers: list[Answer]) -> list[Answer]:
        self._read += len(answers)
        self._labels.update(answer.label for answer in answers)
        self._found += sum(answer.label in self._asked for answer in answers)
        return answers

    def _look(self) -> list[Answer]:
        """The answers that are complete in the text so far. The rest is kept."""
        text = "".join(self._pieces)
        answers: list[Answer] = []
        at = self._begin_list(text) if self._at is _At.HEAD else 0
        while self._at in {_At.BETWEEN, _At.INSIDE}:
            if self._at is _At.BETWEEN:
                at = self._begin_verdict(text, at)
            if self._at is not _At.INSIDE or (decoded := _decode(text, at)) is None:
                break
            value, at = decoded
            self._at, self._parted = _At.BETWEEN, not isinstance(value, str)
            answer = _read_member(value, self._form)
            answers += [] if answer is None else [answer]
        self._pieces = [text[at:]]
        self._waiting = len(text) - at
        self._enough = 0 if self._waiting < _USUAL_CHARS else int(self._waiting * _GROWN)
        return answers

    def _begin_list(self, text: str) -> int:
        """Where the list begins, if it does."""
        match = _HEAD.match(text)
        if match is not None:
            self._at = _At.BETWEEN
            return match.end()
        if len(text) > _HEAD_MAX_CHARS or (text.strip() and not text.lstrip().startswith("{")):
            self._at = _At.REST
        return 0

    def _begin_verdict(self, text: str, at: int) -> int:
        """Where the next verdict begins, or, with the state REST, what can't be one."""
        match = _BETWEEN.match(text, at)
        if match is not None:
            self._parted = self._parted or "," in match[0]
            at = match.end()
        if at < len(text):
            # Text that follows without a comma belonged inside: a quotation whose quotes were not escaped.
            # Unless the list ends here, later lists may be quoted as well.
            if text[at] in _ENDS and self._parted:
                self._at, self._end = _At.INSIDE, _ENDS[text[at]]
            else:
                self._at, self._broken = _At.REST, text[at] != "]"
        return at
