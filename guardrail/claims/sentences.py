"""Where a sentence ends: the sentence boundary rules of UAX #29 with suppressions, made incremental.

UAX #29 (SB6 to SB11) decides by what follows a terminator: closing marks belong to the sentence, and a
lower-case letter or a comma continues it. In addition there are the suppressions that CLDR describes
(abbreviations, initials, ordinals) and citation marks after the full stop. A rule that needs more text than
has arrived returns ``MORE``; any other answer is final. Patterns have bounded repeats only, so that each look
is linear.

The lists (``data/phrases.yaml`` says how each decides) contain what assistants' answers contain, in the
languages they are mostly written in, following CLDR's suppression lists and common usage.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from guardrail.claims.phrases import one_of
from guardrail.claims.phrases import words as word_list

NEVER: Final = word_list("never_ending")
BEFORE_NUMBER: Final = word_list("before_number")
MAYBE: Final = word_list("maybe_ending")
#: These end a sentence, except before one of ``OF_THE_CLOCK``.
CLOCK: Final = frozenset(("a.m", "p.m"))
OF_THE_CLOCK: Final = word_list("of_the_clock")
LABELS: Final = word_list("labels_of_letters")
MONTHS: Final = word_list("months_and_such")
BEFORE_ORDINAL: Final = word_list("before_ordinal")
STARTERS: Final = word_list("starters")
# Every beginning of these words, so that a word that can't become one is settled by its first letters.
_BEGINNINGS: Final = {
    listed: frozenset(word[:n] for word in listed for n in range(1, len(word) + 1))
    for listed in (STARTERS, OF_THE_CLOCK, MONTHS)
}

#: No sentence ends here. Cuts are positive, so the two can't be confused.
GOES_ON: Final = -1
#: What has arrived fits both.
MORE: Final = -2

#: These end a sentence whatever follows: full stops of scripts without upper case.
STRONG: Final = "。｡．！？।॥؟۔።፧။၊។៕᙮᠃꓿։᱾᱿꯫꧈꧉"
TERMINATORS: Final = ".!?…‼⁇⁈⁉" + STRONG
OPENERS: Final = "([{（【〔「『《〈«„"
CLOSERS: Final = ")]}）】〕」』》〉»”"
NESTING: Final = OPENERS + CLOSERS + '"“'
_QUOTES: Final = "\"'“‘’"
_MARKS: Final = "*_`~"  # Markdown emphasis closes after the full stop: "**Note.**"
_SUPERSCRIPTS: Final = "¹²³⁰⁴⁵⁶⁷⁸⁹"
# Extend and Format characters of UAX #29 (SB5) in the scripts that use them most.
_EXTEND: Final = "\u0300-\u036f\u200b-\u200f\u2060\u20d0-\u20ff\ufe00-\ufe0f\ufeff"

# « and “ close »German« „quotes“; with a space before it, » closes « French » ones.
_CLOSING: Final = f"[{re.escape(TERMINATORS + CLOSERS + _MARKS + _SUPERSCRIPTS)}\"'’«{_EXTEND}]"
_RUN: Final = re.compile(rf"(?:{_CLOSING}++|(?:[“‘]|[ \u00a0\u202f]»)(?!\w))*")
_SPACE: Final = re.compile(r"\s*")
_LEADING: Final = re.compile(f"[{re.escape(OPENERS + _QUOTES + _MARKS + '¿¡')}]*")
_WORD: Final = re.compile(r"[^\W\d_]+")
_INITIALS: Final = re.compile(r"(?:[^\W\d_]\.){1,8}[^\W\d_]|[^\W\d_a-z]\Z")
_CJK: Final = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
# 「行く。」と言った, "가요."라고, “走。”他说: what is said goes on in the sentence that reports it.
_REPORTS: Final = re.compile(
    r"[\u3041-\u309f\uac00-\ud7af]|[^\W\d_]{0,4}(?:[说說道喊称稱]|[问問](?![题題])|答(?!え))"
)
_MOST_REPORTING: Final = 6
_LONGEST_ABBREVIATION: Final = 12
_LETTER_OR_NUMERAL: Final = re.compile(r"[A-Z]{1,4}[-.]?\d|(?!I\b)(?:[IVXLC]{1,6}|[B-Z])(?![\w'’])")
_LETTER_OR_NUMERAL_BEGUN: Final = re.compile(r"[A-Z]{1,6}[-.]?\Z")
_DATE: Final = re.compile(r"(?P<month>\d{1,2}\.[ \u00a0]?)?\d{4}(?!\d)")  # "30. 6. 2024", behind the day
_DATE_BEGUN: Final = re.compile(r"\d{1,2}(?:\.[ \u00a0]?\d{0,4})?\Z|\d{3,4}\Z")

# Marks of citations behind the full stop: "[3]", "[2, 5–7]", "[doc 4]", "[[3]](https://…)", "【3†source】";
# ids and file names, "[kb-2214]", "(pricing.pdf)"; "[Source: Guided tours]", "(see document 2)"; superscripts
# in tags; OpenAI's marks; a link that ends its line. Texts are cut alike whichever contexts there are.
_LABEL: Final = r"(?:[A-Za-z_]{1,12}[ :#._-]?)?"
_NAMED: Final = rf"(?i:(?:see (?:also )?)?{one_of('labels')}\b)"
_LONGEST_NAMED: Final = 32  # a content this long shows whether it begins so
_ID: Final = r"(?=[^\s()\[\]]{0,79}[\d.@_-])(?=[^\s()\[\]]{0,79}[^\W\d_])[^\s()\[\]]{4,80}"
_IN_TAG: Final = r"(?:(?!</sup>)[^\n])"
_CITATION: Final = re.compile(
    rf"[ \t]{{0,4}}(?:\[\[?\^?{_LABEL}[0-9]{{1,4}}"
    rf"(?:[-–, ;:.†]{{1,3}}{_LABEL}[0-9]{{1,4}}){{0,8}}(?:†\w{{1,12}})?\]\]?"
    r"(?:\([^\s()]{1,300}\))?|【[^】\n]{1,40}】"
    r"|\ue200[^\ue200\ue201\n]{1,200}\ue201"
    rf"|\[(?:{_ID}|{_NAMED}[^\[\]\n]{{1,120}})\](?!\()|\((?:{_ID}|{_NAMED}[^()\n]{{1,120}})\)"
    rf"|<sup>{_IN_TAG}{{1,260}}</sup>|\[[^\[\]\n]{{1,80}}\]\([^\s()]{{1,300}}\)(?=[ \t]{{0,4}}(?:\n|\Z)))"
)
_CITATION_BEGUN: Final = re.compile(
    r"[ \t]{0,4}(?:|\[\[?\^?(?:[A-Za-z_]{0,12}[ :#._-]?"
    r"(?:[0-9][0-9A-Za-z_ ,;:.†–-]{0,60}(?:\]\]?(?:\([^\s()]{0,300})?)?)?)?|【[^】\n]{0,40}"
    r"|\ue200[^\ue200\ue201\n]{0,200}"
    rf"|\[(?:[^\s\[\]]{{0,80}}|{_NAMED}[^\[\]\n]{{0,120}})"
    rf"|\((?:[^()\n]{{0,{_LONGEST_NAMED}}}|[^\s()]{{0,80}}|{_NAMED}[^()\n]{{0,120}})"
    rf"|<(?:s(?:u(?:p(?:>{_IN_TAG}{{0,260}})?)?)?)?"
    rf"|\[(?:[^\[\]\n]{{0,80}}|{_NAMED}[^\[\]\n]{{0,120}})"
    r"(?:\](?:\([^\s()]{0,300}(?:\)[ \t]{0,4})?)?)?)\Z"
)
_OPENS_CITATION: Final = re.compile(r"[\[【(<\ue200]")
_CONTINUES: Final = ",;:-–—/%)]}’"


def run_end(text: str, at: int, stop: int) -> int:
    """End of the terminators, closing brackets and quotes, emphasis and superscripts that begin at ``at``."""
    match = _RUN.match(text, at, stop)
    return match.end() if match else at


def skip_space(text: str, at: int, stop: int) -> int:
    """End of the white space that begins at ``at``."""
    match = _SPACE.match(text, at, stop)
    return match.end() if match else at


def skip_citations(text: str, at: int, stop: int, *, last: bool) -> int:
    """End of the citation marks and closing marks at ``at``, or ``MORE`` if one has only begun."""
    near = text[at : min(at + 2, stop)]
    if len(near) == 2 and not near.isspace() and not _OPENS_CITATION.search(near):
        return at
    while True:
        if not last and _CITATION_BEGUN.match(text, at, stop):
            return MORE
        match = _CITATION.match(text, at, stop)
        if match is None:
            return at
        at = run_end(text, match.end(), stop)


def sentence_end(text: str, start: int, dot: int, after: int, stop: int, *, last: bool) -> int:
    """Where the sentence with a terminator at ``dot`` ends: an offset, ``GOES_ON`` or ``MORE``.

    ``start`` is that of the segment, ``after`` the end of the terminator's run and citations. White space
    after the sentence belongs to it. Line structure is the caller's business: a blank line ends a sentence
    whatever this says.
    """
    if after == stop:
        return GOES_ON if last else MORE
    run = text[dot:after]
    strong = run != "." and any(c in STRONG for c in run)
    following = text[after]
    if not following.isspace():
        return _without_space(text, dot, after, stop, strong=strong, last=last)
    end = skip_space(text, after, stop)
    if end == stop:
        return GOES_ON if last else MORE
    if strong:
        return end
    letter_at = end
    letter = text[end]
    if not letter.isalnum():
        lead = _LEADING.match(text, end, stop)
        letter_at = lead.end() if lead else end
        if letter_at == stop:
            return end if last else MORE
        letter = text[letter_at]
    if letter in "-–—" and run == "." and letter_at == end:
        # "… are kept. - Next item": a list written in one line.
        if stop - end < 3 and not last:
            return MORE
        return end if text[end + 1 : end + 2].isspace() and text[end + 2 : end + 3].isupper() else GOES_ON
    if letter.islower():
        if letter_at + 1 == stop and not last:
            return MORE
        if not text[letter_at + 1 : letter_at + 2].isupper():  # "iPads"
            return GOES_ON
    if letter in _CONTINUES or letter in TERMINATORS:
        return GOES_ON
    if run.rstrip(_MARKS + _SUPERSCRIPTS) != ".":
        return end
    verdict = _after_full_stop(text, start, dot, letter_at, stop, last=last)
    return end if verdict > 0 else verdict


def _without_space(text: str, dot: int, after: int, stop: int, *, strong: bool, last: bool) -> int:
    following = text[after]
    if text[after - 1] in '」』”"）' and (strong or _CJK.match(following)):
        if not last and stop - after < _MOST_REPORTING and text[after:stop].isalpha():
            return MORE
        if _REPORTS.match(text, after, stop):
            return GOES_ON
    if strong:
        if following in "、，,;；" or unicodedata.category(following)[0] == "M":
            return GOES_ON
        decimal = text[dot:after] == "．" and following.isdigit() and text[dot - 1 : dot].isdigit()
        return GOES_ON if decimal else after
    if text[dot] == "…" or not _CJK.match(following):
        return GOES_ON
    return after if text[dot] in "!?" or (dot > 0 and _CJK.match(text[dot - 1])) else GOES_ON


def _after_full_stop(text: str, start: int, dot: int, next_at: int, stop: int, *, last: bool) -> int:
    """Suppressions after a single full stop: positive if the sentence ends, ``GOES_ON`` or ``MORE``."""
    words = text[max(start, dot - 40) : dot].split()
    token = words[-1].lstrip(OPENERS + _QUOTES + _MARKS + "-–—/") if words else ""
    lower = token.lower()
    if token in NEVER or _abbreviates(token):
        return GOES_ON
    if token.isdigit():
        return _after_number(text, start, dot, next_at, stop, words, last=last)
    if lower in BEFORE_NUMBER:
        if not last and _LETTER_OR_NUMERAL_BEGUN.match(text, next_at, stop):
            return MORE
        if text[next_at].isdigit() or _LETTER_OR_NUMERAL.match(text, next_at, stop):
            return GOES_ON
    if text[next_at].isdigit():
        return 1
    if lower in CLOCK:
        if text[next_at - 1] in OPENERS:
            return GOES_ON
        return _by_next_word(OF_THE_CLOCK, text, next_at, stop, last=last)
    if lower in MAYBE or _INITIALS.fullmatch(token):
        if len(token) == 1 and len(words) > 1 and words[-2].lower() in LABELS:
            return 1
        word = _WORD.match(text, next_at, stop)
        if word and len(word[0]) == 1 and word.end() < stop and text[word.end()] == ".":
            return GOES_ON  # the next initial: "J. A. Smith"
        return _by_next_word(STARTERS, text, next_at, stop, last=last)
    if len(token) == 1 and not last and stop - next_at < 2:
        return MORE
    # "z. B.", "i. d. R."
    return GOES_ON if len(token) == 1 and text[next_at + 1 : next_at + 2] == "." else 1


def _after_number(
    text: str, start: int, dot: int, next_at: int, stop: int, words: list[str], *, last: bool
) -> int:
    token = words[-1]
    if len(token) <= 3 and text[start:dot].strip() == token:
        return GOES_ON  # "2. Drink it.": an enumerator in running text
    if len(token) > 2:
        return 1
    if text[next_at].isdigit():
        date = _DATE.match(text, next_at, stop)
        if date and (date["month"] or (len(words) > 1 and words[-2].rstrip(".").isdigit())):
            return MORE if date.end() == stop and not last else GOES_ON
        return MORE if not last and _DATE_BEGUN.match(text, next_at, stop) else 1
    if len(words) > 1 and words[-2].lower() in BEFORE_ORDINAL and text[next_at].isalpha():
        return GOES_ON
    return _by_next_word(MONTHS, text, next_at, stop, last=last)


def _abbreviates(token: str) -> bool:
    """Full stops within a word of a script without capitals abbreviate: "मि.ग्रा."."""
    caseless = "." in token and len(token) <= _LONGEST_ABBREVIATION and token.lower() == token.upper()
    return caseless and not _CJK.search(token) and not any(char.isdigit() for char in token)


def _by_next_word(listed: frozenset[str], text: str, at: int, stop: int, *, last: bool) -> int:
    """Ends before one of the starters ("U.S. The", not "U.S. Army"), or not before one of another list."""
    word = _WORD.match(text, at, stop)
    if word is None:
        return 1
    if word.end() == stop and not last and word[0] in _BEGINNINGS[listed]:
        return MORE
    return 1 if (word[0] in listed) is (listed is STARTERS) else GOES_ON


# Terminators inside brackets or quotes end nothing, unless the bracket was opened this many characters ago:
# an unclosed one must not hold up what follows.
_NESTING_REACH: Final = 200
# „German“ and »German« close with what opens in “English” and «français».
_CLOSED_BY: Final = {"„": "“", "»": "«"}


class Nesting:
    """The brackets and quotes that are open in a sentence."""

    __slots__ = ("_closed_by", "_depth", "_opened_at", "_quote_at", "_start")

    def __init__(self) -> None:
        self.begin(0)

    def begin(self, at: int) -> None:
        """A sentence begins: nothing is open."""
        self._start = at
        self._depth = self._opened_at = 0
        self._quote_at = -1
        self._closed_by = ""

    def forget(self, count: int) -> None:
        """``count`` characters of the text are dropped."""
        self._start -= count
        self._opened_at -= count
        if self._quote_at >= 0:
            self._quote_at -= count

    def mark(self, text: str, at: int) -> None:
        """A bracket or quote stands at ``at``."""
        char = text[at]
        first = at == self._start or text[at - 1].isspace()
        if char == '"':
            # An opening quote stands behind a space or a bracket; any other closes (or means inches).
            self._quote_at = at if first or text[at - 1] in OPENERS else -1
        elif char == self._closed_by:
            self._closed_by = ""
            self._depth -= self._depth > 0
        elif char in OPENERS or char == "“" or (char == "»" and first and not self._depth):
            self._closed_by = _CLOSED_BY.get(char, "")
            if char == "(" and not first and text[at - 1] in ":;":
                return  # :(
            if not self._depth:
                self._opened_at = at
            self._depth += 1
        elif self._depth:
            self._depth -= 1

    def holds(self, text: str, at: int, after: int) -> bool:
        """Whether a terminator at ``at`` stands inside, with all that closes up to ``after``."""
        depth, quote_at = self._closed(text, at, after)
        return (depth > 0 and at - self._opened_at <= _NESTING_REACH) or (
            quote_at >= 0 and at - quote_at <= _NESTING_REACH
        )

    def skip(self, text: str, at: int, after: int) -> None:
        """The sentence goes on behind ``text[at:after]``."""
        self._depth, self._quote_at = self._closed(text, at, after)

    def _closed(self, text: str, at: int, after: int) -> tuple[int, int]:
        if after - at == 1:
            return self._depth, self._quote_at
        skipped = text[at:after]
        closing = sum((c in CLOSERS or c in "“«") - (c in OPENERS and c != "«") for c in skipped)
        return max(0, self._depth - closing), -1 if '"' in skipped else self._quote_at
