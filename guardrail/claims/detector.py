"""What a segment says: something to be checked, or one of the things that need no check.

A sentence is read clause by clause. Clauses that state nothing (courtesy, "I'm sorry", "the documents don't
mention it", offers of help) frame what is stated: a claim reaches from the first clause that states something
to the last, and a sentence that is all frame is none. A question states what stands behind "did you know".

The costs are unequal. A claim taken for chatter is released unverified; chatter taken for a claim costs a
judgement. So a clause is let off only when it is recognised, and a number, an address or a link in it tips
the balance. What is let off for its place or wording may state something all the same, "### Take 5000 mg a
day": ``assertions`` and ``fences`` tell what, and the cutter has it rated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from guardrail.claims.phrases import expression, pattern, words
from guardrail.claims.silence import silence_of
from guardrail.claims.telling import tells
from guardrail.events import SegmentKind, Span


class Statement(StrEnum):
    """What a segment states. Everything but ``CLAIM`` goes unchecked."""

    CLAIM = "claim"
    NOTHING = "nothing"
    STRUCTURE = "structure"
    CODE = "code"
    CITATION = "citation"
    QUESTION = "question"
    GREETING = "greeting"
    ANSWER = "answer"
    OFFER = "offer"
    ABSTENTION = "abstention"
    HEDGE = "hedge"
    META = "meta"
    LEAD_IN = "lead_in"


class Found(NamedTuple):
    """What a text says; of a claim, which part of the text states it."""

    statement: Statement
    start: int = 0
    end: int = 0


#: What is let off for its wording only, and not when it holds a number, an address or a link.
_LIGHT: Final = frozenset(
    {Statement.GREETING, Statement.ANSWER, Statement.HEDGE, Statement.OFFER, Statement.META}
)
#: Clauses that are cut off behind a statement too. "No" and "right" are part of one there.
_CUT_BEHIND: Final = frozenset({Statement.ABSTENTION, Statement.OFFER})
ASKS: Final = ("?", "？", "؟", "՞")
VERDICT: Final = pattern("verdict")
INTERROGATIVES: Final = words("interrogatives")
ORDERS: Final = words("orders")

_WORD: Final = re.compile(r"\w")
_DIGIT: Final = re.compile(r"\d")
_ADDRESS: Final = re.compile(r"\d|[$€£¥₹%@]|https?:|www\.")
_MARK: Final = re.compile(
    r"\[\[?\^?(?:[A-Za-z_]{1,12}[ :#._-]?)?[0-9]{1,4}[^\]\[\n]{0,60}\]\]?|【[^】\n]{0,80}】"
)
_LEADING_MARKS: Final = re.compile(r"[^\w¿(\"'$€£¥₹]+")
_TRAILING_MARKS: Final = " \t\r\n*_`~\"'”»)]"
_SOURCE_LABEL: Final = pattern("source_label")
_SOURCE_LIST: Final = pattern("source_list")
# A courtesy is a whole clause; the same words in another are none: "thanks to its price", "sure-fire".
_HEAD: Final = re.compile(
    "(?:"
    + "|".join(f"(?P<{name}>{expression(name)})" for name in ("answer", "greeting", "hedge"))
    + rf"|(?P<meta>{expression('opener')})"
    r")(?=\s*(?:[,.!:;–—…，。！]|\Z|\s-\s|\bbut\b))"
    rf"|(?P<abstention>{expression('excuse')}(?:{expression('english_abstention')})|{expression('abstention')})"
    rf"|(?P<offer>{expression('offer')})"
)
_JOINT: Final = pattern("joint")
_TURN: Final = pattern("turn")
_EMBEDDED: Final = re.compile(rf"(?:{expression('embedded')})")
_FINITE: Final = pattern("finite")
_ASIDE: Final = pattern("aside")
_TOLD_OF: Final = re.compile(
    rf"\A(?:(?!\b(?:{'|'.join(sorted(words('embedders')))})\b).)*?"
    rf"(?:{expression('amount')})(?:{expression('told_of')})"
)
_META: Final = pattern("meta")
_LEAD_IN: Final = pattern("meta", "lead_in")
_LEADS: Final = pattern("leads")
_QUESTION_FRAME: Final = pattern("question_frame")
_COLONS: Final = (":", "：")
_FEWEST_WORDS: Final = 3
_ASKER: Final = frozenset("you i we there anyone anything".split())  # noqa: SIM905


def classify(
    text: str,
    kind: SegmentKind,
    *,
    header: bool = False,
    linked: Sequence[Span] = (),
    cited: bool = False,
    title: str = "",
) -> Found:
    """What the segment that reads ``text`` says. Linear in its length.

    ``linked`` are the parts of ``text`` that are the texts of links; ``cited``: citations were left out.
    ``title`` is what stands above the list that it is an item of.
    """
    if kind is SegmentKind.CODE:
        return Found(Statement.CODE)
    if not _WORD.search(text):
        return Found(Statement.CITATION if cited else Statement.NOTHING)
    if kind is SegmentKind.HEADING or kind is SegmentKind.BLANK or header:
        return Found(Statement.STRUCTURE)
    if kind is SegmentKind.TABLE_ROW:
        return Found(Statement.CLAIM, 0, len(text))
    plain = fold(text)
    if linked or cited or "[" in text or "【" in text:
        named = [span for span in linked if not tells(plain[slice(*span)])]
        own = _MARK.sub(" ", _blanked(plain, named))
        if not _WORD.search(own) or _is_source(own):
            return Found(Statement.CITATION)
    if title and _SOURCE_LIST.match(fold(title)) and not _FINITE.search(plain):
        return Found(Statement.CITATION)
    end = len(plain.rstrip(_TRAILING_MARKS))
    leading = _LEADING_MARKS.match(plain, 0, end)
    start = leading.end() if leading else 0
    if start == end:
        return Found(Statement.CLAIM, 0, len(text))
    if plain.endswith(ASKS, start, end) and _is_question(plain[start:end]):
        return _asked(plain, start, end, len(text))
    return _sentence(plain, start, end)


def fold(text: str) -> str:
    """``text`` in lower case with typographic apostrophes folded, character for character."""
    lowered = text.lower().replace("’", "'")
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := char.lower()) == 1 else char for char in text).replace("’", "'")


def _blanked(plain: str, linked: Sequence[Span]) -> str:
    for start, end in linked:
        plain = plain[:start] + " " * (end - start) + plain[end:]
    return plain


def _is_source(own: str) -> bool:
    """ "Source: [Price list](https://…)": a label, a link and little else."""
    said = own.strip(" *_:.-–,()").split()
    return len(said) <= 3 and _SOURCE_LABEL.match(" ".join(said)) is not None and not _DIGIT.search(own)


def _is_question(asked: str) -> bool:
    if asked.startswith("¿") or not asked[0].isascii():
        return not _DIGIT.search(asked) or asked.startswith("¿")
    said = asked.split(None, 4)
    first = said[0].strip("\"'(,")
    if asked.startswith(("so, ", "or, ")):
        return False
    if first.partition("'")[0] in INTERROGATIVES or first in INTERROGATIVES:
        # "Is it safe, it costs $50, right?" asserts.
        return not (_DIGIT.search(asked) and "," in asked)
    return len(said) <= 4 and "," not in asked and not _DIGIT.search(asked)


def _asked(plain: str, start: int, end: int, whole: int) -> Found:
    """What a question states: behind "did you know that", or all of "isn't entry free on Sundays?"."""
    frame = _QUESTION_FRAME.match(plain, start, end)
    if frame and len(plain[frame.end() : end].split()) >= _FEWEST_WORDS:
        return Found(Statement.CLAIM, frame.end(), len(plain[:end].rstrip("".join(ASKS))))
    if _ASIDE.search(plain, start, end):
        return Found(Statement.CLAIM, 0, whole)
    first, _, rest = plain[start:end].partition(" ")
    if first.endswith("n't") and rest.partition(" ")[0] not in _ASKER and not frame:
        return Found(Statement.CLAIM, 0, whole)
    return Found(Statement.QUESTION)


def _sentence(plain: str, start: int, end: int) -> Found:
    whole = Found(Statement.CLAIM, 0, len(plain))
    stated, said, last = _stated(plain, start, end)
    sentence = plain[start:end]
    if stated is None:
        if said is Statement.META and sentence.endswith(_COLONS):
            return Found(Statement.LEAD_IN)
        return Found(said)
    if sentence.endswith(_COLONS):
        leads = (
            _LEAD_IN.fullmatch(sentence)
            or (len(sentence.split()) <= 8 and not _DIGIT.search(sentence) and not _FINITE.search(sentence))
            or (_LEADS.search(sentence[-140:]) and not _DIGIT.search(sentence))
        )
        return Found(Statement.LEAD_IN) if leads else whole
    if _META.fullmatch(sentence):
        return whole if _ADDRESS.search(sentence) else Found(Statement.META)
    if len(plain[stated:last].split()) <= _FEWEST_WORDS and not _FINITE.search(plain, stated, last):
        return whole  # "other than nausea" is understood from what frames it
    return Found(Statement.CLAIM, 0 if stated == start else stated, len(plain) if last >= end else last)


def _stated(plain: str, start: int, end: int) -> tuple[int | None, Statement, int]:
    """Where the first clause that states something begins and the last one ends; what the others say.

    The first is None when none does.
    """
    first: int | None = None
    last = at = start
    said: Statement | None = None
    silence = silence_of(plain[start:end])
    silent = (start + silence.span[0], start + silence.span[1]) if silence else (end, end)
    framed = turn = False
    while at < end:
        while at < end and plain[at].isspace():
            at += 1
        head = _HEAD.match(plain, at, end)
        joint = _JOINT.search(plain, head.end() if head else at, end)
        stop = joint.start() if joint else end
        clause = plain[at:stop].strip(" .!?")
        frame = head and _frames(plain, head, stop)
        checkable = at < silent[1] and silent[0] < stop
        if frame is Statement.ABSTENTION and checkable:
            frame, said = None, said or Statement.ABSTENTION  # what the documents lack can be checked
            at = max(at, silent[0])
        if clause:
            if frame and (first is None or frame in _CUT_BEHIND):
                said = frame if said is None or frame is Statement.ABSTENTION else said
                framed = True
            elif not framed or checkable or not _says_nothing(clause, turn=turn):
                first = (at if said else start) if first is None else first
                last = at + len(plain[at:stop].rstrip())
                framed = False
            turn = False
        if joint is None:
            break
        turn = turn or _TURN.fullmatch(joint[0]) is not None
        at = max(joint.end(), at + 1)
    if said is None:  # nothing but a joint, if no clause stated something
        return start, Statement.CLAIM, end
    return first, said, last


def _frames(plain: str, head: re.Match[str], stop: int) -> Statement | None:
    """What the clause that begins with ``head`` is, unless it states something all the same."""
    statement = Statement(head.lastgroup or "")
    clause = plain[head.start() : stop]
    if statement is Statement.OFFER and _ASIDE.match(plain, stop):
        return None
    if statement is Statement.ABSTENTION and _TOLD_OF.match(clause):
        return None
    # A number, an address or a link may be what the clause is there for.
    if statement in _LIGHT and statement is not Statement.META and _ADDRESS.search(clause):
        return None
    return statement


def _says_nothing(clause: str, *, turn: bool) -> bool:
    """Whether a clause behind a frame goes on with it, or has no verb to state anything with."""
    if _DIGIT.search(clause) or turn or VERDICT.match(clause) or clause.partition(" ")[0] in ORDERS:
        return False
    return _EMBEDDED.match(clause) is not None or not _FINITE.search(clause)
