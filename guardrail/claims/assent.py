"""An answer of no more than yes or no: what it says is what the question before it asks."""

from __future__ import annotations

import re
from typing import Final

from guardrail.claims.detector import ASKS, INTERROGATIVES, fold, permits
from guardrail.claims.phrases import pattern, words
from guardrail.claims.severity import words_of
from guardrail.evidence.tokens import STOP_WORDS

_MOST_ASKED: Final = 400  # characters of a question
_MOST_ANSWERED: Final = 160  # characters of an answer of no more than yes or no
_FEWEST_ASKED: Final = 3  # words
_YES_OR_NO: Final = pattern("yes_or_no")
_REQUEST: Final = pattern("request")
_TAG: Final = pattern("question_tag")
_FINITE: Final = pattern("finite")
_AFFIRMS: Final = pattern("affirms")
_DENIES: Final = pattern("denies")
_REASSURES: Final = pattern("reassures")
_HEADS: Final = {_REASSURES: True, _DENIES: False, _AFFIRMS: True}
#: What such an answer may go on with, beside words of the question.
_IDLE: Final = (STOP_WORDS | words("courtesy") | words("manner")) - words("denials")
_NEGATED: Final = re.compile(r"\b(?:no|not|never|nobody|nothing|none|neither|without|cannot)\b|n't\b")
_SIGNS: Final = ((frozenset("👎❌🚫⛔✖✗✘"), False), (frozenset("👍✅💯👌🆗✔☑✓"), True))
_SENTENCES: Final = re.compile(r"(?<=[.!?？؟])\s+")
_GOING_ON: Final = re.compile(r"\A\W*(?:so|and|but|or|then|okay|ok|well|hm+)\b,? ")
_AUXILIARY: Final = re.compile(r"\A\W*(?:is it true that|is|are|do|does|did|was|were)\s+", re.IGNORECASE)
_AUXILIARIES: Final = "do|does|did|is|are|was|were|can|could|may|must|should|will|would|has|have|had"
_PRONOUNS: Final = "i|you|we|he|she|it|they|one|this|that|there"
_INVERTED: Final = re.compile(rf"\W*({_AUXILIARIES}) ({_PRONOUNS})\b(.*)", re.IGNORECASE | re.DOTALL)
#: "Isn't it free?" and "Should I not take it?": yes and no say of it what they say of "is it free?".
_ASKED_WITH_NOT: Final = re.compile(
    rf"\A(\W*)(?:(wo|ca)n't|({_AUXILIARIES})n't|({_AUXILIARIES})( (?:{_PRONOUNS})) not)\b", re.IGNORECASE
)
_WHOLE: Final = {"wo": "will", "ca": "can"}
_TRAILING: Final = " \t\r\n*_`~\"'”»)]"
_MARKS: Final = " \t*_#`>~\"'“” .!…"
_WORD: Final = re.compile(r"\w")


def asked_of(question: str) -> str:
    """The last question of what a user asks, if yes or no answers it, or may, as far as is known of one in
    another language than English; else nothing. One that states something in the negative ("it isn't free,
    right?") can be answered either way, and is none."""
    sentences = _SENTENCES.split(question[-_MOST_ASKED:].strip())
    whole = sentences if len(question) <= _MOST_ASKED else sentences[1:]
    asked = [each for each in whole if each.endswith(ASKS)]
    last = _without_not(asked[-1].rstrip(_TRAILING)) if asked else ""
    plain = _GOING_ON.sub("", fold(last))
    if not plain or _REQUEST.match(plain):
        return ""
    said = words_of(plain)
    if STOP_WORDS.isdisjoint(said) and (len(said) >= _FEWEST_ASKED or not plain.isascii()):
        return last  # no English
    if _YES_OR_NO.match(plain):
        return "" if " or " in plain else last
    if _NEGATED.search(_without_tag(plain)):
        return ""
    states = _FINITE.search(plain) or permits(plain)
    if not _TAG.search(plain) and (not states or next(iter(words_of(plain)), "") in INTERROGATIVES):
        return ""
    return last


def _without_not(asked: str) -> str:
    """A question that is asked with a "not", as it is without."""
    found = _ASKED_WITH_NOT.match(asked.replace("’", "'"))
    if found is None:
        return asked
    auxiliary = _WHOLE.get((found[2] or "").lower()) or found[3] or found[4]
    return f"{found[1]}{auxiliary}{found[5] or ''}{asked[found.end() :]}"


def _without_tag(asked: str) -> str:
    tag = None if _YES_OR_NO.match(fold(asked)) else _TAG.search(fold(asked))
    return (asked[: tag.start()] if tag else asked).rstrip(" ?？؟՞*_")


def stated_by(asked: str, *, denied: bool = False) -> str:
    """What yes says behind a question, as a statement as far as a reader of words needs it; where it is
    ``denied`` what no says, and nothing where a "not" has no sure place."""
    said = _without_tag(_without_not(asked))
    inverted = _INVERTED.match(said)
    if inverted:  # "Can I take it?": I can take it
        return f"{inverted[2]} {inverted[1].lower()}{' not' * denied}{inverted[3]}."
    return "" if denied else _AUXILIARY.sub("", said) + "."


def answers(asked: str, text: str) -> bool | None:
    """Whether ``text`` affirms what ``asked`` asks, and says no more than that; False if it denies it.

    None if it is not such an answer, or ``asked`` not such a question.
    """
    if not asked or len(text) > _MOST_ANSWERED or not asked_of(asked):
        return None
    plain = fold(text).strip(_MARKS)
    if not _WORD.search(plain):
        return next((yes for signs, yes in _SIGNS if not signs.isdisjoint(plain)), None)
    idle = _IDLE.union(words_of(fold(asked)))
    for heads, yes in _HEADS.items():
        rest = plain
        while head := heads.match(rest):  # "Yes, exactly."
            rest = rest[head.end() :].lstrip(" ,;.!–—-")
            if idle.issuperset(words_of(rest)) and not (yes and _NEGATED.search(rest)):
                return yes
    return None


def answer_in(asked: str, text: str) -> tuple[int, int] | None:
    """Where ``text``, of which nothing else states anything ("Sure, have a safe trip!"), affirms or denies
    what ``asked`` asks; None if it doesn't begin with that."""
    if not asked or not asked_of(asked):
        return None
    start = len(text) - len(text.lstrip(_MARKS))
    plain = fold(text)
    found = next((head for heads in _HEADS if (head := heads.match(plain, start))), None)
    return None if found is None else found.span()
