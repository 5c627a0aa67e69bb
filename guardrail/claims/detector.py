"""Decides what a segment says: something to check, or one of the things that need no check.

A sentence is read clause by clause. Clauses that state nothing (courtesy, "I'm sorry", "the documents don't
mention it", offers of help) frame the statement: a claim extends from the first clause that states something
to the last, and a sentence that is all frame has no claim. A question states what follows "did you know".

The costs are unequal. A claim mistaken for chatter is released unverified; chatter mistaken for a claim costs
a judgement. So a clause is exempt only if it is recognised, and a number, an address or a link in it makes it
a claim.

Three places may state something where readers don't expect it. *Names* ("Source: the annual report", the text
of a link) state something if a verb has a subject before it, or if they contain an amount, a permission or a
denial. *Headings, offers and lead-ins* ("### The maximum dose is 5000 mg a day") are read the same way: a
verb with its own subject asserts, one after "what" or "if" does not. *Fences* hold prose and data.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple

from guardrail.claims.phrases import expression, pattern, words
from guardrail.claims.severity import figure_reasons, lexicon, words_of
from guardrail.claims.silence import silence_of
from guardrail.events import SegmentKind, Span
from guardrail.evidence.tokens import STOP_WORDS

_AMOUNT: Final = pattern("amount")
_FINITE: Final = pattern("finite")
_PERMISSIONS: Final = words("permissions") | lexicon().lists["modals"]
_DENIALS: Final = words("denials")
_EXCLAIMING: Final = words("exclaiming")
INTERROGATIVES: Final = words("interrogatives")
_POINTING: Final = frozenset("at on via under here in from".split())  # noqa: SIM905
_MOST_POINTING: Final = 7  # words
_MOST_EXCLAIMED: Final = 10  # words
_LINK: Final = re.compile(r"[a-z]{2,6}://|www\.|[^\s@]{1,64}@")
_MONTH: Final = re.compile(r"\bmay(?= \d|\W*\Z)")
# "Fees and costs", "the terms of use": no subject, or not their own.
_NOUN_BEFORE: Final = re.compile(r"(?:\A|\b(?:and|or|of|the|und|der|et|de|y|e)|[,&:–—-])\s*\Z")
_INVITES: Final = frozenset("call contact visit use".split())  # noqa: SIM905
_PARTICIPLE_OF: Final = re.compile(r" (?:to|by|from|in|on|at|for|the|a|an|all|every|no|its|their|\d)")
_REACH: Final = 12


def tells(text: str) -> bool:
    """Whether ``text``, a few words in lower case, says more than a name. Linear in its length."""
    plain = text.strip()
    if not plain or _LINK.match(plain):
        return False
    if _AMOUNT.search(plain):
        return True
    plain = _MONTH.sub(" ", plain)
    said = words_of(plain)
    if not said or said[0] in INTERROGATIVES:
        return False
    return permits(plain) or any(_is_verb(plain, verb) for verb in _FINITE.finditer(plain))


def permits(plain: str) -> bool:
    """Whether ``plain``, which is in lower case, permits, denies or demands something."""
    said = words_of(plain)
    return not _PERMISSIONS.isdisjoint(said) or not _DENIALS.isdisjoint(said)


def _is_verb(plain: str, found: re.Match[str]) -> bool:
    """Whether a word that may be a verb is one: a noun with the same letters has no subject before it."""
    if found[0] in _INVITES or _NOUN_BEFORE.search(plain, max(0, found.start() - _REACH), found.start()):
        return False
    return not found[0].endswith("ed") or _PARTICIPLE_OF.match(plain, found.end()) is not None


class Statement(StrEnum):
    """What a segment states. Everything except ``CLAIM`` goes unchecked."""

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


class FoundStatement(NamedTuple):
    """What a text says; for a claim, also which part of the text states it."""

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
DENYING_LABEL: Final = pattern("denying_label")
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
_PATH: Final = re.compile(r"\S+[./]\w\S*")
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
_COURTESY: Final = STOP_WORDS | words("courtesy")
_FEWEST_TOLD: Final = 2  # words that say something: a subject and a verb
_GIVEN: Final = pattern("given")
_ASKER: Final = frozenset("you i we there anyone anything".split())  # noqa: SIM905


def classify(
    text: str,
    kind: SegmentKind,
    *,
    header: bool = False,
    linked: Sequence[Span] = (),
    cited: bool = False,
    title: str = "",
) -> FoundStatement:
    """What the segment that reads ``text`` says. Linear in its length.

    ``linked`` are the parts of ``text`` that are link texts; ``cited``: citations were removed. ``title`` is
    the title of the list that the segment is an item of.
    """
    if kind is SegmentKind.CODE:
        return FoundStatement(Statement.CODE)
    if not _WORD.search(text):
        return FoundStatement(Statement.CITATION if cited else Statement.NOTHING)
    if kind is SegmentKind.HEADING or kind is SegmentKind.BLANK or header:
        return FoundStatement(Statement.STRUCTURE)
    if kind is SegmentKind.TABLE_ROW:
        return FoundStatement(Statement.CLAIM, 0, len(text))
    plain = fold(text)
    if linked or cited or "[" in text or "【" in text:
        named = [span for span in linked if not tells(plain[slice(*span)])]
        own = _MARK.sub(" ", _blanked(plain, named))
        if not _WORD.search(own) or _is_source(own):
            return FoundStatement(Statement.CITATION)
    if title and _names_sources(title) and not _FINITE.search(_PATH.sub(" ", plain)) and not permits(plain):
        return FoundStatement(Statement.CITATION)
    if _names_sources(text):
        return FoundStatement(Statement.LEAD_IN)
    end = len(plain.rstrip(_TRAILING_MARKS))
    leading = _LEADING_MARKS.match(plain, 0, end)
    start = leading.end() if leading else 0
    if start == end:
        return FoundStatement(Statement.CLAIM, 0, len(text))
    if plain.endswith(ASKS, start, end) and _is_question(plain[start:end]):
        return _asked(plain, start, end, len(text))
    return _sentence(plain, start, end, cited=cited)


def fold(text: str) -> str:
    """``text`` in lower case with typographic apostrophes folded, character for character."""
    lowered = text.lower().replace("’", "'")
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := char.lower()) == 1 else char for char in text).replace("’", "'")


def _names_sources(title: str) -> bool:
    """Whether a line is the title of a list of sources."""
    return _SOURCE_LIST.match(fold(title)) is not None


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


def _asked(plain: str, start: int, end: int, whole: int) -> FoundStatement:
    """What a question states: after "did you know that", or all of "isn't entry free on Sundays?"."""
    frame = _QUESTION_FRAME.match(plain, start, end)
    if frame and len(plain[frame.end() : end].split()) >= _FEWEST_WORDS:
        return FoundStatement(Statement.CLAIM, frame.end(), len(plain[:end].rstrip("".join(ASKS))))
    if _ASIDE.search(plain, start, end):
        return FoundStatement(Statement.CLAIM, 0, whole)
    first, _, rest = plain[start:end].partition(" ")
    if first.endswith("n't") and rest.partition(" ")[0] not in _ASKER and not frame:
        return FoundStatement(Statement.CLAIM, 0, whole)
    return FoundStatement(Statement.QUESTION)


def _sentence(plain: str, start: int, end: int, *, cited: bool) -> FoundStatement:
    whole = FoundStatement(Statement.CLAIM, 0, len(plain))
    sentence = plain[start:end]
    if cited and _points(sentence):
        return FoundStatement(Statement.CITATION)
    if _exclaims(sentence):
        return FoundStatement(Statement.GREETING)
    stated, said, last = _stated(plain, start, end)
    if stated is None:
        if said is Statement.META and sentence.endswith(_COLONS):
            return FoundStatement(Statement.LEAD_IN)
        return FoundStatement(said)
    if sentence.endswith(_COLONS):
        leads = (
            _LEAD_IN.fullmatch(sentence)
            or (len(sentence.split()) <= 8 and not _DIGIT.search(sentence) and not _FINITE.search(sentence))
            or (_LEADS.search(sentence[-140:]) and not _DIGIT.search(sentence))
        )
        return FoundStatement(Statement.LEAD_IN) if leads else whole
    if _META.fullmatch(sentence):
        return whole if _ADDRESS.search(sentence) else FoundStatement(Statement.META)
    if len(plain[stated:last].split()) <= _FEWEST_WORDS and not _FINITE.search(plain, stated, last):
        return whole  # "other than nausea" is understood from what frames it
    return FoundStatement(
        Statement.CLAIM, 0 if stated == start else stated, len(plain) if last >= end else last
    )


def _points(sentence: str) -> bool:
    """Whether a sentence, without its mark, only says where to look: "You can read more at"."""
    said = words_of(sentence)
    return 1 < len(said) <= _MOST_POINTING and said[-1] in _POINTING and not _DIGIT.search(sentence)


def _exclaims(sentence: str) -> bool:
    """Whether a sentence wishes or praises, without a verb that would state something: "Happy hiking!"."""
    if not sentence.endswith("!") or _ADDRESS.search(sentence) or _FINITE.search(sentence):
        return False
    said = words_of(sentence)
    return bool(said) and len(said) <= _MOST_EXCLAIMED and said[0] in _EXCLAIMING and not permits(sentence)


def _stated(plain: str, start: int, end: int) -> tuple[int | None, Statement, int]:
    """Where the first clause that states something begins and the last one ends; what the others say.

    The first is None if none does.
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
            if frame is Statement.ANSWER and first is None and DENYING_LABEL.match(plain, at, end):
                frame = None  # "False: …" is no answer, it takes back what follows
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
    """What kind of frame the clause that begins with ``head`` is, unless it states something after all."""
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
    """Whether a clause after a frame continues it, or has too few words to state anything: a name, or nothing
    but courtesy. No list can say which words are verbs.
    """
    if _DIGIT.search(clause) or turn or VERDICT.match(clause) or clause.partition(" ")[0] in ORDERS:
        return False
    if _EMBEDDED.match(clause):
        return True
    if _FINITE.search(clause):
        return False
    return len([word for word in words_of(clause) if word not in _COURTESY]) < _FEWEST_TOLD


class Assertion(IntEnum):
    """How surely an exempted segment states something."""

    NONE = 0
    #: A claim if it is about anything that the severity rules know.
    WEAK = 1
    #: So is this, and in a heading it is surely one.
    SOME = 2
    #: A claim of which only the figures state anything.
    MENTION = 3
    STRONG = 4


#: What may be a claim after all.
_LINES: Final = frozenset({Statement.STRUCTURE, Statement.CITATION})
_SPOKEN: Final = frozenset(
    {Statement.GREETING, Statement.OFFER, Statement.HEDGE, Statement.META, Statement.LEAD_IN}
)
_GRANTING: Final = pattern("granting")
_MARKS: Final = " \t*_#`>~\"'“”"
_TOKEN: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)?|[,;:–—|.!?]|\s-\s")
_LETTERS: Final = re.compile(r"[^\W\d_]{2,}")
_BREAKS: Final = frozenset(",;:–—|.!?-")
_STATING: Final = words("stating")
_EMBEDDERS: Final = words("embedders")
_BINDERS: Final = words("binders")
_ADDRESSED: Final = words("addressed")
_POINTERS: Final = words("pointers")
_FREE_WITH: Final = words("fronted")
# "You can …", "it is …", "Dose: you must …" speak in whole sentences.
_ADDRESSES: Final = re.compile(rf"(?:\A|[:–—|] ?)(?:{'|'.join(_ADDRESSED)}) (?:{'|'.join(_STATING)}) \S+ \S")


def presupposes(text: str, asked: frozenset[str]) -> bool:
    """Whether a question or an abstention takes for given that something is allowed or not: "why may children
    take it?"; not if it has no more than the words that the user ``asked`` in."""
    plain = fold(text)
    given = _GIVEN.search(plain)
    if given is None or not permits(plain[given.end() :]):
        return False
    return not all(word in asked or word in STOP_WORDS for word in words_of(plain))


def repeats(text: str, asked: frozenset[str]) -> bool:
    """Whether all figures of a text are among the words that the user ``asked`` in."""
    counts = lexicon().lists["counts"]
    return all(word in asked for word in words_of(text) if word in counts or _DIGIT.search(word))


def asserts(text: str, statement: Statement) -> Assertion:
    """How surely a segment that reads ``text`` states something although it was exempted as ``statement``.

    Linear in the length of ``text``. Abstentions, answers and questions never do.
    """
    if statement in _LINES:
        return line_asserts(fold(text))
    if statement not in _SPOKEN:
        return Assertion.NONE
    plain = fold(text).strip(_MARKS)
    if VERDICT.match(plain) or _GRANTING.search(plain):
        return Assertion.STRONG
    if _AMOUNT.search(plain) or _states(plain, leads=statement is Statement.LEAD_IN):
        return Assertion.WEAK
    return Assertion.NONE


def line_asserts(plain: str) -> Assertion:
    """A heading, a bold line, a table's header row or the text of a link, in lower case."""
    plain = plain.strip().strip(_MARKS)
    if not plain or plain.endswith(ASKS):
        return Assertion.NONE
    first = next(iter(plain.split(None, 1)), "").rstrip(",")
    orders = first == "don't" or plain.startswith("do not ")
    if (first in INTERROGATIVES or first in _EMBEDDERS) and not orders:
        # "What it costs: $5 a month" answers itself.
        plain = plain.partition(":")[2].strip()
        if not plain:
            return Assertion.NONE
    key, colon, value = plain.partition(":")
    if VERDICT.match(plain) or _ADDRESSES.search(plain) or (key and colon and decides(value)):
        return Assertion.STRONG
    states = _states(plain, leads=False)
    if states and plain.endswith((".", "!")):
        return Assertion.STRONG
    amounts = len(_AMOUNT.findall(plain))
    cells = plain.count(",")
    if amounts and not (cells >= 2 and amounts >= cells):  # columns of amounts are a header
        named = len(_LETTERS.findall(_AMOUNT.sub(" ", plain)))
        if named >= 2 or (named and (cells or ":" in plain)):
            return Assertion.WEAK
    return Assertion.SOME if states else Assertion.NONE


def decides(value: str) -> bool:
    """Whether the value of a key is no more than a yes, a no or a permission: "Alcohol: not allowed"."""
    said = words_of(value)
    return bool(said) and _PERMISSIONS.union(_DENIALS, ("yes", "any")).issuperset(said)


def _states(plain: str, *, leads: bool) -> bool:
    """Whether a main clause has a subject and a verb, or an order begins a clause.

    ``leads``: the last clause leads over to what follows, and its verb states nothing yet. A verb after an
    embedder ("if", "what", "that") belongs to it; "the dose you should take" is about a dose.
    """
    tokens = _TOKEN.findall(plain)
    begins, embedded, open_embedding, found = 0, False, False, False
    for i, token in enumerate(tokens):
        token = token.strip()
        if token in _BREAKS:
            if found and i + 1 < len(tokens):
                return True
            begins, embedded, open_embedding = i + 1, False, False
        elif token in _BINDERS:
            if found:
                return True
            embedded = open_embedding
            if not open_embedding:
                begins = i + 1
        elif token in _EMBEDDERS:
            embedded = open_embedding = True
        elif i == begins and _orders(tokens, i):
            found = True
        elif token in _STATING:
            found = found or (not embedded and i > begins and _subject_stands(tokens, begins, i))
            embedded = False
        if found and not leads:
            return True
    return False


def _orders(tokens: list[str], i: int) -> bool:
    """Whether an order begins here: "avoid …", "do not …"."""
    following = tokens[i + 1 : i + 2]
    return bool(following) and (tokens[i] in ORDERS or (tokens[i] == "do" and following == ["not"]))


def _subject_stands(tokens: list[str], begins: int, verb: int) -> bool:
    """Whether the verb has its own subject, and not one that only points at the answer."""
    before = tokens[verb - 1]
    if before in _POINTERS:
        return False
    # "side effects you may have" is a noun; "with this drug you can drink" is not.
    return before not in _ADDRESSED or verb - 1 == begins or tokens[begins] in _FREE_WITH


AMOUNTS: Final = frozenset(("price", "dosage", "quantity", "contact"))
TELLING: Final = AMOUNTS | {"percentage", "date", "time", "deadline"}
"""The reasons for severity of figures that are rarely there without stating something."""
_IN_ADDRESSES: Final = re.compile("://|www\\.|@")


def has_figure(text: str, kinds: frozenset[str] = TELLING) -> bool:
    """Whether a text has a figure of one of these kinds; links and mail addresses are none."""
    if _IN_ADDRESSES.search(text):
        text = " ".join(word for word in text.split() if not _IN_ADDRESSES.search(word))
    return not kinds.isdisjoint(figure_reasons(text, set()))


# --------------------------------------------------------------------------------------------- prose in code
#
# Fences for text contain a claim if a line is a sentence; in other fences sentences are comments and output,
# so all lines must read as prose, and an error must be grave.

_PROSE_FENCES: Final = words("prose_fences")
_FENCE_LINE: Final = re.compile(r"[ \t>]*(`{3,}|~{3,})([^\n]*)")
_CODE_SIGNS: Final = re.compile(
    r"[;{}\\]|\w\(|\)\s*$|[=!<>+]=|=>|->|::|</|/>|&&|\|\||\$[A-Za-z_]|\$\(|\s=\s|\w=\w|(?:^|\s)--?[a-z]|[,(="
    r"|&]\s*$|^\s*(?:[$%@] |[<>/@])"
    r"|^\s*[-+*]{2}|^\s*[\w.\"'-]+:(?:\s*$|\s*[\"'\[\d])|^\s*\[|^\s*\d{4}-\d\d|^\s*\d\d:\d\d"
    r"|^(?:\w+\.)*\w*(?:Error|Exception)\b"
    r"|^(?:ERROR|WARN|WARNING|INFO|DEBUG|FATAL|TRACE)\b|^(?:import|from|def|class|return|SELECT|FROM|WHERE)\b"
)
_LINE: Final = re.compile(r"(?:\A|(?<=\n))[^\n]*")
_COMMENT: Final = re.compile(r"\s*(?:#|//|--|/\*|\*|\x22{3}|\x27{3})")
_SENTENCE: Final = re.compile(r"[.!。！]['\"”’)*_\]]{0,4}$")
_LEAST_WORDS: Final = 4
_DATA_FENCES: Final = words("data_fences")
_LITERAL: Final = re.compile(r"\"([^\"\n]{8,})\"|'([^'\n]{8,})'|(?:#|//|--|/\*)\s(.{8,})")
_PAIR: Final = re.compile(r"[ \t>]*[\"']?[^\W\d][\w .\"'-]{0,60}(?::(?=[\s\"'\[{])|=|=>)\s*\S")


class FencedProse:
    """Finds prose in code segments, which may be pieces of one fence. Remembers the open fence."""

    def __init__(self) -> None:
        self._mark = ""
        self._info = ""

    def leave(self) -> None:
        """A segment that is not code ends any fence."""
        self._mark = ""

    def find(self, text: str) -> tuple[int, int, Assertion] | None:
        """First and last character of the prose in a code segment's body, and how surely it states something.

        Linear in the length of ``text``.
        """
        lines = [match.span() for match in _LINE.finditer(text)]
        opening = None if self._mark else _FENCE_LINE.match(text)
        if opening:
            self._mark, self._info = opening[1], opening[2].strip().lower()
            inner = opening[2].partition(opening[1])
            lines[0] = (opening.start(2), opening.start(2) + len(inner[0]))
            if inner[1]:  # ```one line```
                self._info = ""
                self._mark = ""
        last = text[slice(*lines[-1])].strip(" \t>\r") if len(lines) > 1 or not opening else ""
        if self._mark and last.startswith(self._mark) and not last.strip(self._mark[0]):
            self._mark = ""
            lines.pop()
        label = self._info.split(None, 1)[0].strip("{}.:,") if self._info else ""
        listed = not label or label in _PROSE_FENCES
        if label == "diff":  # what is taken out is not stated
            lines = [(start, end) for start, end in lines if not text.startswith("-", start)]
        found = _prose(text, lines, listed=listed, markdown=label in ("markdown", "md"))
        values = label in _DATA_FENCES
        if opening and len(lines) > 1:
            del lines[0]  # what the fence is labelled with
        return found or _data(text, lines, listed=listed or values, values=values)


def _prose(
    text: str, lines: list[Span], *, listed: bool, markdown: bool
) -> tuple[int, int, Assertion] | None:
    """Span of the lines that read as prose. Surely so in a fence for text, perhaps in one all of prose."""
    sure: list[Span] = []
    perhaps: list[Span] = []
    code = False
    for number, (start, end) in enumerate(lines):
        bare = text[start:end].strip()
        if _CODE_SIGNS.search(text[start:end].rstrip()):
            code = code or number > 0
            continue
        if len(_LETTERS.findall(bare)) < _LEAST_WORDS and len(bare.split()) < _LEAST_WORDS:
            continue
        comment = _COMMENT.match(bare) and not markdown and not bare.startswith("* ")
        begins = end - len(text[start:end].lstrip())
        span = begins, begins + len(bare)
        if _SENTENCE.search(bare) and not comment:
            sure.append(span)
        elif _SENTENCE.search(bare) or line_asserts(fold(bare)):
            perhaps.append(span)
    if sure and listed:
        return sure[0][0], sure[-1][1], Assertion.STRONG
    spans = sorted(sure + perhaps)
    if spans and not code and (listed or sure):
        return spans[0][0], spans[-1][1], Assertion.WEAK
    return None


def _data(text: str, lines: list[Span], *, listed: bool, values: bool) -> tuple[int, int, Assertion] | None:
    """Span of the lines that hold data: in code those with an amount or a telephone number. Where data is
    ``listed`` all do, if a literal or comment is a sentence, or a value decides or counts: that of a key, or
    any where all are ``values``. Figures alone are mentioned."""
    spans = []
    states = counts = False
    for start, end in lines:
        line = text[start:end]
        if listed:
            pair = _PAIR.match(line)
            sentence = any(len(words_of("".join(each))) >= _LEAST_WORDS for each in _LITERAL.findall(line))
            states = states or sentence or (pair is not None and decides(line[pair.end() - 1 :]))
            counts = counts or bool((pair or values) and _DIGIT.search(line) and _LETTERS.search(line))
        amount = has_figure(line, AMOUNTS)
        counts = counts or amount
        if amount or (listed and line.strip()):
            begins = end - len(line.lstrip())
            spans.append((begins, begins + len(line.strip())))
    if not spans or not (states or counts):
        return None
    return spans[0][0], spans[-1][1], Assertion.STRONG if states else Assertion.MENTION
