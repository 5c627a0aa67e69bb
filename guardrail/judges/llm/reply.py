"""A reply: the form that is requested, and how to read replies, complete or while they are being written.

The reader skips whatever a model writes around its JSON (prose, code fences, thoughts). What the model says
about a claim must be exact: "not SUPPORTED" is not a verdict. An unusable text affects only its claim.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Final

from guardrail.errors import JudgeReplyError
from guardrail.events import ClaimPart, Verdict
from guardrail.judges.llm.settings import together
from guardrail.printable import shorten

MAX_REPLY_CHARS: Final = 1_000_000
MAX_REASONING_CHARS: Final = 2_000
MOST_NUMBERS: Final = 10
"""Of sentences that a claim's evidence may name; the prompt asks for no more than 3."""
ASSUMED_CONFIDENCE: Final = 0.9
"""In a verdict that says none: it is not in doubt."""

_SHOWN_CHARS: Final = 40


def shown(word: str) -> str:
    """`` 'WORD'`` for a message about what a model wrote instead of a verdict, printable and short. Empty if
    it wrote nothing.
    """
    text = " ".join(word[: 2 * _SHOWN_CHARS].split())
    return f" {shorten(text, _SHOWN_CHARS)!r}" if text else ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a reply says about one claim, by the claim's short id. ``problem`` says why it is unusable.

    ``evidence`` and ``against`` are sentence numbers as given, which may not exist.
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

WORDS: Final = {
    Verdict.SUPPORTED: "supported",
    Verdict.PARTIALLY_SUPPORTED: "partial",
    Verdict.UNSUPPORTED: "unsupported",
    Verdict.CONTRADICTED: "contradicted",
}
"""The verdicts as a model writes them: lower-case words that are single tokens."""

# Without the characters that JSON escapes: servers that compile the pattern into a grammar apply it to the
# raw JSON text, where such a character would end the text or break it.
_SAID: Final = r': [^"\\\n\r\t]+'
_NUMBERS: Final = rf"( [0-9]{{1,6}}){{0,{MOST_NUMBERS}}}"
_SURE: Final = "( [0-9]{1,2}%)?"
_AGAINST: Final = f"( ![0-9]{{1,6}}){{0,{MOST_NUMBERS}}}"


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """What a reply says about each claim: one text, such as ``c2 15 contradicted: It costs $5.``

    It has, in this order: the id of the claim, sentence numbers, the verdict as one word, and then, only if
    needed, the confidence (``60%``), sentences that contradict what others support (``!15``) and, after a
    colon, the reason. Every token delays the verdicts: SUPPORTED takes six. The model's own words come after
    the verdict, so that they can't be mistaken for it.

    With ``decompose`` a claim of several statements is given a text for each of them, ahead of its own: the
    claim's id with a letter, and the statement after the colon.
    """

    reasons: bool = True
    decompose: bool = False

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of a reply, for strict structured outputs.

        It doesn't depend on the claims, because a provider takes seconds to compile a new schema.
        """
        texts = {"type": "array", "items": {"type": "string", "pattern": f"^{self._pattern()}$"}}
        return {
            "type": "object",
            "properties": {"v": texts},
            "required": ["v"],
            "additionalProperties": False,
        }

    def _pattern(self) -> str:
        """The regular expression of a whole text."""
        reason = _SAID if self.reasons else ""
        supported, *others = WORDS.values()
        verdict = f"({supported}{_SURE}{_AGAINST}|({'|'.join(others)}){_SURE}{reason})"
        claim = f"c[0-9]{{1,4}}{_NUMBERS} {verdict}"
        if not self.decompose:
            return claim
        return f"({claim}|c[0-9]{{1,4}}[a-z]{_NUMBERS} ({'|'.join(WORDS.values())}){_SURE}{_SAID})"

    def example(self) -> str:
        """An example of the form, for servers that accept no schema. It shows places, not verdicts."""
        return '{"v":["ID NUMBERS VERDICT","ID NUMBERS VERDICT' + (': REASON"]}' if self.reasons else '"]}')


def write_reply(said: Iterable[Answer]) -> str:
    """The reply of a model that says ``said``, claims and statements alike, and keeps to the form."""
    return json.dumps({"v": [_text(answer) for answer in said]}, ensure_ascii=False, separators=(",", ":"))


def _text(said: Answer) -> str:
    words = [said.label, *map(str, said.evidence), WORDS[said.verdict]]
    if said.confidence < ASSUMED_CONFIDENCE:
        words.append(f"{said.confidence:.0%}")
    if said.verdict is Verdict.SUPPORTED:
        words += [f"!{number}" for number in said.against]
    reason = " ".join(said.reasoning.replace('"', "'").replace("\\", "/").split())
    return " ".join(words) + (f": {reason}" if reason else "")


# ---------------------------------------------------------------------------- reading what is said of a claim

_MOST_PARTS: Final = 20
_MAX_PART_CHARS: Final = 500
_MOST_TOLD: Final = 3
_UNUSABLE_PARTS: Final = "the judge's verdicts on the parts of the claim are unusable"
_VERDICTS: Final = {verdict.value: verdict for verdict in WORDS} | {"PARTIAL": Verdict.PARTIALLY_SUPPORTED}

# A statement's id is a claim's with one letter; others that begin like that may be meant as one.
_PART_OF: Final = re.compile(r"(c[0-9]{1,4})(?:([a-z])|[^0-9].*)", re.DOTALL)
# With no colon but behind the id, so that no reason has begun, however short.
_WITHOUT_WORDS: Final = re.compile(r"\s*c[0-9]{1,4}[\s:,][^:]*", re.IGNORECASE)
# More lenient than the pattern about what surrounds the words, but the whole text must match.
_BEGIN: Final = re.compile(r"\s*+([^\s:,]{1,64})[\s:,]++(?=\S)((?:\[?[0-9]{1,9}\]?[\s,]++)*+)")
_REST: Final = re.compile(
    r"(?P<verdict>[A-Za-z]++(?:[ _-][A-Za-z]++)?+)"
    r"(?:\s++(?P<confidence>[0-9]{1,3})\s?%)?+"
    r"(?P<against>(?:[\s,]*+![0-9]{1,9})*+)\s*+"
    r"(?::\s*+(?P<reasoning>.*+))?+",
    re.DOTALL,
)
_NUMBER: Final = re.compile(r"[0-9]+")


def _read_text(text: str) -> Answer | None:
    """What a text says; None if it names no claim."""
    begin = _BEGIN.match(text)
    if begin is None:
        return None
    label, said = begin[1].lower(), text[begin.end() :]
    match = _REST.fullmatch(said)
    if match is None:
        return Answer(label, problem=f"the judge's verdict{shown(said.partition(':')[0])} can't be read")
    word = match["verdict"]
    verdict = _VERDICTS.get(word.upper().replace("-", "_").replace(" ", "_"))
    if verdict is None:
        return Answer(label, problem=f"the judge's verdict{shown(word)} is none of the four")
    percent = match["confidence"]
    if percent is not None and int(percent) > 100:
        return Answer(label, problem="the judge's confidence is not between 0 and 100 %")
    return Answer(
        label,
        verdict,
        ASSUMED_CONFIDENCE if percent is None else int(percent) / 100,
        _numbers(begin[2]),
        _numbers(match["against"]),
        (match["reasoning"] or "").strip()[:MAX_REASONING_CHARS],
    )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in _NUMBER.findall(text)[:MOST_NUMBERS])


class _ListReader:
    """Reads the texts of one list in order, and holds back those that may be a document's words.

    A model that quotes in a reason without escaping ends its own text with the quotation's first quote, so
    that what follows looks like texts of its own. Ahead of the first text with words there can be none, if
    the list is ``certain`` to be the model's own. With ``decompose`` all are held back: statements hold
    words, and one may follow its claim by mistake.
    """

    def __init__(self, form: ReplyForm, *, certain: bool) -> None:
        self._form = form
        self._certain = certain and not form.decompose
        self._held: list[Answer] = []
        self._statements: dict[str, list[Answer] | None] = {}  # None: the claim's own text has come

    def read(self, text: str) -> list[Answer]:
        """What the next text says, if that is certain already."""
        answers = self._answer(text)
        if not self._certain:
            self._held += answers
            return []
        usable = bool(answers) and not answers[0].problem
        self._certain = usable and _WITHOUT_WORDS.fullmatch(text) is not None
        return answers

    def end(self, *, closed: bool) -> list[Answer]:
        """What was held back; without SUPPORTED unless the list was ``closed`` by the model itself: else its
        own verdicts may be missing.
        """
        return [answer for answer in self._held if closed or answer.verdict is not Verdict.SUPPORTED]

    def _answer(self, text: str) -> list[Answer]:
        """One answer, or none if the text is on a statement, or names no claim."""
        answer = _read_text(text)
        if answer is None:
            return []
        of = _PART_OF.fullmatch(answer.label) if self._form.decompose else None
        if of is None:
            said = self._statements.get(answer.label)
            self._statements[answer.label] = None
            return [_decided_by(said, answer) if said else answer]
        claim, letter = of.groups()
        statements = self._statements.setdefault(claim, [])
        if statements is None or letter is None:
            return [Answer(claim, problem=_UNUSABLE_PARTS)]
        statements.append(answer)
        return []


def _decided_by(said: Sequence[Answer], whole: Answer) -> Answer:
    """The answer to a claim from those to its statements: models are poor at combining them.

    But SUPPORTED statements never overrule the model's doubt about the ``whole``. If they lead to another
    verdict than its own, its reason and sentences don't belong to that: those of the statements that decided
    take their place.
    """
    if len(said) > _MOST_PARTS or any(each.problem or not each.reasoning for each in said):
        # An unusable one might be the wrong one.
        return Answer(whole.label, problem=_UNUSABLE_PARTS)
    parts = tuple(ClaimPart(text=each.reasoning[:_MAX_PART_CHARS], verdict=each.verdict) for each in said)
    verdict = Verdict(together(part.verdict for part in parts))
    if verdict in {Verdict.SUPPORTED, whole.verdict}:
        return replace(whole, parts=parts)
    partly = verdict is Verdict.PARTIALLY_SUPPORTED
    deciding = [
        each for each in said if each.verdict is verdict or (partly and each.verdict is not Verdict.SUPPORTED)
    ]
    told = [f"{each.verdict.value}: {each.reasoning}" for each in deciding[:_MOST_TOLD]]
    more = len(deciding) - len(told)
    reason = "Of its parts, " + "; ".join([*told, *([f"and {more} more"] if more else [])])
    evidence = dict.fromkeys(number for each in (said if partly else deciding) for number in each.evidence)
    return replace(
        whole,
        verdict=verdict,
        confidence=max(each.confidence for each in deciding),
        evidence=tuple(evidence)[:MOST_NUMBERS],
        reasoning=reason[:MAX_REASONING_CHARS],
        parts=parts,
        problem="",
    )


# -------------------------------------------------------------------------------------- reading a whole reply

# The rest of the reply is read once for each start of an object without an end: this bounds how often.
_MAX_FAILED_STARTS: Final = 64
_MAX_VALUES: Final = 1_000
_THOUGHTS: Final = re.compile(r"</?(?:think|thinking|thought|reasoning)>|\[/?THINK\]", re.IGNORECASE)
_START: Final = re.compile(r"[{\[]")
_LIST_START: Final = re.compile(r'\s*\{\s*"v"\s*:\s*\[')
_BEGINS_WITH_LIST: Final = re.compile(
    rf"(?:[\s,;`\ufeff]|json(?:l|5)?\b)*+{_LIST_START.pattern}", re.IGNORECASE
)
_JSON_START: Final = re.compile(r'\{\s*"|\[\s*[\[{"]')
_FIRST: Final = re.compile(r'[\s,]*+(?=")')
_NEXT: Final = re.compile(r'\s*+,[\s,]*+(?=")')
_NO_VERDICTS: Final = "the reply holds no verdicts in JSON"


def read_reply(text: str, form: ReplyForm, *, cut: bool = False) -> list[Answer]:
    """The answers in a reply, in order; at least one; for a reply that was ``cut`` those that were complete.

    A cut reply has to begin with its list: one that begins otherwise may have quoted another, and its own
    would have come. An id may occur twice. Raises JudgeReplyError, which quotes nothing of the reply.
    """
    outside = _without_thoughts(text)
    certain = _BEGINS_WITH_LIST.match("".join(part for part, _ in outside)) is not None
    if cut and not certain:
        raise JudgeReplyError("the reply was cut, and does not begin with verdicts in JSON")
    last_quote = len(text) if cut else text.rfind('"')
    answers: list[Answer] = []
    for part, end in outside:
        answers += _read_lists(part, form, certain=certain, goes_on=last_quote >= end)
        certain = certain and not part.strip()
    if not answers:
        raise JudgeReplyError(_NO_VERDICTS)
    return answers


def _read_lists(text: str, form: ReplyForm, *, certain: bool, goes_on: bool) -> Iterator[Answer]:
    """The answers of all lists in ``text``. If JSON breaks off, everything complete before that counts, and
    nothing after it.

    Of two lists one may be quoted from a document: only the first can be ``certain``. If they disagree, the
    caller uses neither. A list was closed by the model if no quotes follow: of a quotation's, its own would.
    ``goes_on``: some follow behind ``text``.
    """
    last_quote = len(text) if goes_on else text.rfind('"')
    for found, end in objects(text):
        said = found.get("v")
        items = said if isinstance(said, list) else []
        texts = list(takewhile(lambda item: isinstance(item, str), items))
        reader = _ListReader(form, certain=certain)
        certain = False
        for item in texts:
            yield from reader.read(item)
        closed = len(texts) == len(items) and [*found][-1:] == ["v"] and last_quote < end
        yield from reader.end(closed=closed)


def _decode(text: str, start: int = 0) -> tuple[Any, int] | None:
    """The JSON value that begins at ``start``, and its end; None if there is none, or it is incomplete."""
    try:
        value, end = _decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return value, end


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; an empty one if a member is given twice, since either may be meant."""
    made = dict(pairs)
    return made if len(made) == len(pairs) else {}


_decoder: Final = json.JSONDecoder(object_pairs_hook=_pairs)


def _without_thoughts(text: str) -> list[tuple[str, int]]:
    """The parts of ``text`` outside the model's thoughts, which are enclosed in marks, each with its end.

    Some templates begin the thoughts in the prompt, so that the reply contains only their end. The text
    before such an end is kept: if it contains verdicts it may be the reply, and what follows may be quoted.
    Thoughts within thoughts end with the outer ones.
    """
    parts = []
    at = depth = 0
    for mark in _THOUGHTS.finditer(text):
        if not depth:
            parts.append((text[at : mark.start()], mark.start()))
        depth = depth + 1 if "/" not in mark[0] else max(0, depth - 1)
        at = mark.end()
    return parts if depth else [*parts, (text[at:], len(text))]


def objects(text: str) -> Iterator[tuple[dict[str, Any], int]]:
    """The outermost JSON objects in ``text``, each with its end. If a list of verdicts breaks off, the last
    has the texts that were complete, and then None.
    """
    at = failed = read = 0
    while failed < _MAX_FAILED_STARTS and read < _MAX_VALUES:
        start = _START.search(text, at)
        if start is None:
            return
        at = start.start()
        decoded = _decode(text, at)
        if decoded is not None:
            read += 1
            value, at = decoded
            if isinstance(value, dict):
                yield value, at
        elif (broken := _LIST_START.match(text, at)) is not None:
            yield {"v": [*(item for item, _ in _texts(text, broken.end(), first=True)), None]}, len(text)
            return
        elif _JSON_START.match(text, at) is not None:
            return  # anything found within it may be a part of it, or a document's words
        else:
            at += 1
            failed += 1


def _texts(text: str, at: int, *, first: bool) -> Iterator[tuple[str, int]]:
    """The texts of a list from ``at`` on, each with its end, up to what is not complete, or no text.

    One that follows without a comma belonged inside the one before: a quotation whose quotes were not
    escaped.
    """
    while (begin := (_FIRST if first else _NEXT).match(text, at)) is not None:
        decoded = _decode(text, begin.end())
        if decoded is None:
            return
        yield decoded
        first, at = False, decoded[1]


# ------------------------------------------------------------------------ reading a reply while it is written

_HEAD_MAX_CHARS: Final = 200
_END: Final = re.compile(r"[\s,]*\]")

# The reader tries a longer text again only when it has grown by a tenth, so that reading stays linear.
_USUAL_CHARS: Final = 1_000
_GROWN: Final = 1.1


class ReplyReader:
    """Reads one reply. A verdict is known as soon as its text closes, unless that may be a quotation.

    Only a reply that is the expected object from its first character on (``{"v":["…"]}``) is used early. In
    anything else (prose, thoughts, a code fence) a list may be quoted from a document before the real one, so
    the reader reads such a reply as a whole once it has ended. It also stops using verdicts early after what
    isn't valid JSON.

    From the first text with words on the reader holds all verdicts back until the reply has ended. It also
    does so with ``decompose``.

    Time is linear in the length of the reply, which is bounded. ``feed`` and ``finish`` together return every
    usable answer once, in the order of the reply, including those to claims that were not asked for, and
    those with an id that occurs twice.
    """

    def __init__(self, form: ReplyForm, asked: Collection[str]) -> None:
        """``asked`` are the short ids (c1, …) of the claims."""
        self._form = form
        self._asked = asked
        self._begun: bool | None = None  # whether the reply begins with its list; None: not known yet
        self._first = True  # of the list's texts none has been read
        self._pieces: list[str] = []  # text that belongs to no answer yet
        self._waiting = 0  # its length
        self._enough = 0  # this many characters justify another look at a long text
        self._chars = 0
        self._list = _ListReader(form, certain=True)
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
        if self._waiting < self._enough or (self._begun and '"' not in text):
            return []
        return self._look()

    def finish(self, *, cut: bool = False) -> list[Answer]:
        """The answers that ``feed`` didn't return, once the reply has ended (``cut``: maybe in the middle).

        Raises JudgeReplyError if the whole reply has no verdict on any claim that was asked for.
        """
        answers = self._look()
        rest = "".join(self._pieces)
        if not self._begun:
            answers = self._note(read_reply(rest, self._form, cut=cut))
        else:
            closed = not cut and '"' not in rest and _END.match(rest) is not None
            answers += self._note(self._list.end(closed=closed))
            answers += self._note(self._behind_list(rest, cut=cut))
        if not any(label in self._asked for label in self._labels):
            raise JudgeReplyError(
                "the reply has no verdict for any claim that was asked" if self._labels else _NO_VERDICTS
            )
        return answers

    def _behind_list(self, rest: str, *, cut: bool) -> list[Answer]:
        """The answers of further lists in the ``rest`` of the reply. Such a list can contradict the first. If
        the reply was cut, it can't add to it: its own last list, which would contradict a quoted one, is what
        may be missing.
        """
        end = _END.match(rest)
        if end is None:
            return []  # an unterminated text or broken JSON, which may hold a quotation
        rest = rest[end.end() :]
        if rest.lstrip().startswith(","):
            rest = f'{{"":0{rest}'  # the rest of the object, which may have a second list
        further = _read_lists(rest, self._form, certain=False, goes_on=cut)
        return [one for one in further if not cut or one.label in self._labels]

    def _note(self, answers: list[Answer]) -> list[Answer]:
        self._labels.update(answer.label for answer in answers)
        return answers

    def _look(self) -> list[Answer]:
        """The answers that are complete in the text so far. The rest is kept."""
        if self._begun is False:
            return []
        text = "".join(self._pieces)
        at = self._begin(text) if self._begun is None else 0
        answers: list[Answer] = []
        if self._begun:
            for item, end in _texts(text, at, first=self._first):
                answers += self._list.read(item)
                self._first, at = False, end
        self._pieces = [text[at:]]
        self._waiting = len(text) - at
        self._enough = 0 if self._waiting < _USUAL_CHARS else int(self._waiting * _GROWN)
        return self._note(answers)

    def _begin(self, text: str) -> int:
        """Where the list begins, if it does."""
        match = _LIST_START.match(text)
        if match is not None:
            self._begun = True
            return match.end()
        if len(text) > _HEAD_MAX_CHARS or (text.strip() and not text.lstrip().startswith("{")):
            self._begun = False
        return 0
