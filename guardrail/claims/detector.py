"""What a segment says: something to be checked, or one of the things that need no check.

The costs are unequal. A claim taken for chatter is released unverified; chatter taken for a claim costs a
judgement. So a sentence is let off only when all of it is recognised, clause by clause ("I don't know the
exact price, but it costs $50." is a claim), and a number, an address or a link in it tips the balance.

What is let off for its place or wording may state something all the same: "### Take 5000 mg a day", a fence
around prose. ``assertions`` and ``fences`` tell what, and the cutter has it rated.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from guardrail.claims.phrases import (
    ABSTENTIONS,
    ANSWERS,
    GREETINGS,
    HEDGES,
    INTERROGATIVES,
    LEAD_INS,
    META,
    OFFERS,
    ORDERS,
    VERDICT,
)
from guardrail.events import SegmentKind


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


#: What is let off for its wording only, and not when it holds a number, an address or a link.
_LIGHT: Final = frozenset(
    {Statement.GREETING, Statement.ANSWER, Statement.HEDGE, Statement.OFFER, Statement.META}
)


def _any(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{p})" for p in patterns))


_ABSTENTION: Final = _any(ABSTENTIONS)
_OFFER: Final = _any(OFFERS)
_META: Final = _any(META)
_LEAD_IN: Final = _any((*META, *LEAD_INS))
_COURTESY: Final = re.compile(
    f"(?P<answer>{'|'.join(ANSWERS)})|(?P<greeting>{'|'.join(GREETINGS)})|(?P<hedge>{'|'.join(HEDGES)})"
)

_WORD: Final = re.compile(r"\w")
_PICTURE_LETTERS: Final = re.compile(r"[\u24b6-\u24e9\U0001f110-\U0001f169\U0001f170-\U0001f189]{3}")
_DIGIT: Final = re.compile(r"\d")
_ADDRESS: Final = re.compile(r"\d|[$€£¥₹%@]|https?:|www\.")
# "…, you can follow these steps:", "this can be done by:": what is said comes behind the colon.
_LEADS: Final = re.compile(
    r"\b(?:follow|use|using|consider|take|try|suggest|apply|implement|include|includes|including|involves?"
    r"|are|is|be|by|with|have|has|by following"
    r"|needs?|covers?|offers?|provides?|recommends?|as|considered|outlined|listed|described|summari[sz]ed"
    r"|shown|given|grouped|graded) "
    r"(?:(?:the|these|this|some|a|few|several|our|your|key|main|important|as) ){0,4}"
    r"(?:follow(?:s|ing)|below|steps?|practices|options|tips|points|guidelines|rules|ways|methods"
    r"|strategies|things|measures)\b[a-z -]{0,40} ?[:：]$"
    r"|\b(?:by|through|durch|par|por) ?[:：]$"
)
_VERDICT: Final = re.compile(VERDICT)
_LEADING_MARKS: Final = re.compile(r"[^\w¿(\"'$€£¥₹]+")
_TRAILING_MARKS: Final = " \t\r\n*_`~\"'”»)]"
ASKS: Final = ("?", "？", "؟", "՞")
_CITATION: Final = re.compile(
    r"\[\[?\^?(?:[A-Za-z_]{1,12}[ :#._-]?)?[0-9]{1,4}[^\]\[\n]{0,60}\]\]?(?:\([^\s()]{0,300}\))?"
    r"|!?\[[^\]\[\n]{0,200}\]\([^\s()]{0,300}(?: \"[^\"\n]{0,100}\")?\)|【[^】\n]{0,80}】"
    r"|<?(?:https?://|www\.)[^\s<>]{1,300}>?"
)
_MOST_LINK_WORDS: Final = 3
_SOURCE_LABEL: Final = re.compile(
    r"(?:sources?|references?|citations?|see(?: also)?|links?|more|read more|quellen?|fuentes?|fonti?"
    r"|источник)\b"
)
_PARTS: Final = re.compile(r"[,.!;:–—…，。！]|\s-\s")
_JOINTS: Final = re.compile(
    r"[,;:–—，；]|\s-\s|\b(?:but|however|although|though|yet|nevertheless|nonetheless|except|other than"
    r"|apart from|aside from"
    r"|besides|only|maybe|perhaps|probably|likely|typically|generally|usually|instead|while|whereas|and|so"
    r"|because|since|as"
    r"|aber|jedoch|allerdings|sondern|doch|außer|nur|vermutlich|weil|da|und|mais|cependant|toutefois|sauf"
    r"|peut-être|car|et"
    r"|pero|sino|aunque|excepto|salvo|quizás|porque|y|ma|però|tranne|mas|porém)\b|但是?|しかし|が、"
)
# Joints behind which something else is said than before.
_TURNS: Final = frozenset(
    (
        *("but", "however", "although", "though", "nevertheless", "nonetheless", "except", "other than"),
        *("apart from", "aside from", "besides", "only", "maybe", "perhaps", "probably", "likely"),
        *("typically", "generally", "usually", "instead", "while", "whereas"),
        *("aber", "jedoch", "allerdings", "sondern", "außer", "nur", "vermutlich"),
        *("mais", "cependant", "toutefois", "sauf", "peut-être"),
        *("pero", "sino", "aunque", "excepto", "salvo", "quizás", "ma", "però", "tranne", "mas", "porém"),
        *("但", "但是", "しかし", "が、"),
    )
)
_EMBEDDED: Final = re.compile(
    r"(?:or|nor|if|whether|what|when|where|who|why|how|which|that|about|regarding|such as|for example"
    r"|including|ob|wann|wie|welche"
    r"|oder|si|ou|qué|cuándo|o)\b"
)
_EMBEDS: Final = re.compile(
    r"\b(?:if|whether|what|when|where|who|why|how|which|that|ob|wann|wie|wo|dass|si|que|quand|qué|cuándo"
    r"|cómo)\b"
)
_FINITE: Final = re.compile(
    r"\b(?:is|are|was|were|be|am|has|have|had|do|does|did|can|may|might|will|would|should|must|could|shall"
    r"|cannot|isn't|aren't|it's|that's|there's"
    r"|they're|you're|costs?|takes?|needs?|includes?|contains?|requires?|says?|states?|means?|works?|makes?"
    r"|gets?|gives?|goes|comes?|becomes?"
    r"|causes?|applies|apply|allows?|provides?|offers?|uses?|helps?|starts?|ends?|expires?|begins?|remains?"
    r"|lies|lives?|seems?|appears?|opens?"
    r"|closes?|runs?|shows?|leads?|increases?|reduces?|decreases?|prevents?|treats?|affects?|covers?"
    r"|exists?|call|contact|visit|take|use|avoid|\w{3,}ed"
    r"|ist|sind|war|waren|hat|haben|kann|können|muss|müssen|soll|sollte|darf|wird|werden|kostet|beträgt"
    r"|gilt|enthält|liegt"
    r"|est|sont|était|ont|peut|peuvent|doit|coûte|es|son|está|están|era|fue|puede|pueden|debe|cuesta|tiene"
    r"|tienen|hay)\b"
)


def classify(text: str, kind: SegmentKind, *, header: bool = False) -> Statement:
    """What the segment with this body says. Linear in the length of ``text``."""
    if kind is SegmentKind.CODE:
        return Statement.CODE
    if not _WORD.search(text):
        # Words in letters that are pictures to Unicode.
        return Statement.CLAIM if _PICTURE_LETTERS.search(text) else Statement.NOTHING
    if kind is SegmentKind.HEADING or kind is SegmentKind.BLANK or header:
        return Statement.STRUCTURE
    if kind is SegmentKind.TABLE_ROW:
        return Statement.CLAIM
    plain = text
    if "[" in text or "://" in text or "【" in text or "www." in text:
        plain = _CITATION.sub(_unlinked, text)
        if not _WORD.search(plain) or _is_source(plain):
            return Statement.CITATION
    plain = plain.replace("’", "'").lower().rstrip(_TRAILING_MARKS)
    leading = _LEADING_MARKS.match(plain)
    if leading:
        plain = plain[leading.end() :]
    if plain.endswith(ASKS) and _is_question(plain):
        return Statement.QUESTION
    if not plain:
        return Statement.CLAIM
    statement = _classify_plain(plain)
    # A number, an address or a link may be what the sentence is there for.
    if statement in _LIGHT and _ADDRESS.search(text):
        return Statement.CLAIM
    return statement


def _unlinked(link: re.Match[str]) -> str:
    """Nothing, or the text of a link that is long enough to say something."""
    inner = link[0].lstrip("!").partition("](")[0].strip("[]")
    return inner if len(inner.split()) > _MOST_LINK_WORDS else " "


def _is_source(plain: str) -> bool:
    """ "Source: [Price list](https://…)": a label, a link and little else."""
    words = plain.lower().strip(" *_:.-–,()").split()
    return len(words) <= 3 and _SOURCE_LABEL.match(" ".join(words)) is not None and not _DIGIT.search(plain)


def _is_question(plain: str) -> bool:
    if plain.startswith("¿") or not plain[0].isascii():
        return not _DIGIT.search(plain) or plain.startswith("¿")
    words = plain.split(None, 4)
    if plain.startswith(("did you know", "so, ", "or, ")):
        return False
    first = words[0].strip("\"'(,")
    if first in INTERROGATIVES or first.partition("'")[0] in INTERROGATIVES:
        # "Is it safe, it costs $50, right?" asserts.
        return not (_DIGIT.search(plain) and "," in plain)
    return len(words) <= 4 and "," not in plain and not _DIGIT.search(plain)


def _classify_plain(plain: str) -> Statement:
    courtesy = _courtesy(plain)
    if courtesy:
        return courtesy
    if _rest_is_empty(plain, _ABSTENTION):
        return Statement.ABSTENTION
    if _rest_is_empty(plain, _OFFER):
        return Statement.OFFER
    if plain.endswith((":", "：")):
        leads = (
            _LEAD_IN.fullmatch(plain)
            or _is_label(plain)
            or (_LEADS.search(plain[-140:]) and not _DIGIT.search(plain))
        )
        return Statement.LEAD_IN if leads else Statement.CLAIM
    return Statement.META if _META.fullmatch(plain) else Statement.CLAIM


def _is_label(plain: str) -> bool:
    """ "Side effects:", "Eligibility:" name what follows and state nothing."""
    return len(plain.split()) <= 8 and not _DIGIT.search(plain) and not _FINITE.search(plain)


def _courtesy(plain: str) -> Statement | None:
    """Greeting, bare answer or hedge, when every part of the sentence is one."""
    if len(plain) > 160 or not _COURTESY.match(plain):
        return None
    whole = plain.strip(" .!,…。！")
    head = _PARTS.split(whole, 1)[0].strip()
    first = _courtesy_part(whole)
    if first or head == whole:
        return first
    first = _courtesy_part(head)
    if first and all(not part.strip() or _courtesy_part(part.strip()) for part in _PARTS.split(whole)):
        return first
    return None


def _courtesy_part(part: str) -> Statement | None:
    match = _COURTESY.fullmatch(part)
    return Statement(match.lastgroup) if match and match.lastgroup else None


def _rest_is_empty(plain: str, head: re.Pattern[str]) -> bool:
    """Whether nothing is stated behind the head: each further clause is let off or verbless."""
    match = head.match(plain)
    if match is None:
        return False
    at = match.end()
    joint = _JOINTS.search(plain, at)
    own = plain[at : joint.start() if joint else len(plain)]
    if _DIGIT.search(own) and _FINITE.search(own) and not _EMBEDS.search(own):
        return False
    while joint:
        at = joint.end()
        following = _JOINTS.search(plain, at)
        clause = plain[at : following.start() if following else len(plain)]
        at += len(clause) - len(clause.lstrip())
        clause = clause.strip(" .!?")
        if clause and not _states_nothing(plain, at, clause, turn=joint[0] in _TURNS):
            return False
        if clause and (_VERDICT.match(clause) or clause.partition(" ")[0] in ORDERS):
            return False
        joint = following
    return True


def _states_nothing(plain: str, at: int, clause: str, *, turn: bool) -> bool:
    """Whether the clause at ``at`` is let off itself, or has no verb to state anything with."""
    if _ABSTENTION.match(plain, at) or _OFFER.match(plain, at) or _courtesy_part(clause):
        return True
    if _DIGIT.search(clause) or turn:
        return False
    return _EMBEDDED.match(clause) is not None or not _FINITE.search(clause)
