"""Where a sentence ends: the sentence boundary rules of UAX #29 with suppressions, made incremental.

UAX #29 (SB6 to SB11) decides by what follows a terminator: closing marks belong to the sentence, and a
lower-case letter or a comma continues it. In addition there are the suppressions that CLDR describes
(abbreviations, initials, ordinals) and citation marks after the full stop. A rule that needs more text than
has arrived returns ``MORE``; any other answer is final. Patterns have bounded repeats only, so that each look
is linear.

Abbreviations are compared without their last full stop ("e.g" for "e.g."). Each list says how it decides. The
lists contain what assistants' answers contain, in the languages they are mostly written in, following CLDR's
suppression lists and common usage.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from guardrail.claims.citation_names import one_of


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Never end a sentence; compared as written, since "ms" and "gen" without a capital are other words.
NEVER: Final = _words(
    """
    Dr Drs Mr Mrs Ms Mx Prof Rev Hon Gov Sen Rep Gen Col Lt Sgt Capt Cpl Maj Cmdr Adm Pres Supt Msgr Fr
    Ste Messrs Mmes Mlle Mme Sr Sra Srta Dra Dña Ud Uds Vd Exmo Exma Excmo Ing Dipl Mag Hr Fra Dhr Mevr
    Sig Dott Avv Geom Rag vs Vs e.g E.g i.e I.e cf Cf viz approx Approx appx ca Ca esp resp incl excl
    z.B z.b d.h D.h Z.B u.a v.a o.ä i.d.R ggf bzw evtl inkl exkl zzgl abzgl vgl Vgl sog gem ebd p.ex
    p.ej env cap ej Ej bijv d.w.z o.a m.b.t nl incl. np tj tzn m.in т.е т.к напр см ул гр им EE a.k.a
    w/o Hrsg bzgl Bhf
    """
)

#: End no sentence before a number ("No. 5", "p. 12", "Fig. 3"), otherwise they do; compared in lower case.
BEFORE_NUMBER: Final = _words(
    """
    no nos nr nrs num núm nº n° n p pp pg pgs pag pág págs s ss f ff fig figs abb tab eq eqs gl sec secs
    sect ch chap kap cap vol vols bd art arts §§ § abs para paras par pt pts ex exs app anh ziff lit rn
    rdnr ver v rev ed cl reg sched tel tél fax ext apt ste rm bldg bl blz pos ref refs ann anm str р стр
    рис табл ст п гл тел approx circa ca max min jan feb mar apr jun jul aug sep sept oct nov dec
    """
)

#: May end a sentence: they do before a word that usually begins one. Compared in lower case.
MAYBE: Final = _words(
    """
    inc ltd co corp llc plc gmbh bros jr sr esq dept univ assn assoc ave blvd rd ln hwy sq u.s u.k u.n
    u.s.a e.u d.c l.a n.y a.m p.m b.c a.d b.c.e c.e ph.d m.d b.a m.a b.sc m.sc j.d d.d.s r.n mass calif
    conn fla penn tex wash ariz colo wis mich minn jan feb mar apr jun jul aug sep sept oct nov dec mon
    tue tues wed thu thur thurs fri sat sun al ibid op cit gov st mio mrd tsd stk std mil mln млн млрд
    тыс руб г ft in mt uu
    """
)

#: Month names behind an ordinal ("3. März"), which German and its neighbours write with a full stop.
MONTHS: Final = _words(
    """
    Januar Jänner Februar Feber März April Mai Juni Juli August September Oktober November Dezember
    Jan Feb Mär Apr Jun Jul Aug Sep Sept Okt Nov Dez Jahrhundert Jahrhunderts Jh Jhd Klasse Auflage Etage
    Stock Quartal
    Halbjahr Weltkrieg Weltkriegs Bundesliga Absatz Lebensjahr Lebensjahres Monat Tag Woche
    """
)

#: Words in front of an ordinal ("am 3.", "der 2."), in lower case.
BEFORE_ORDINAL: Final = _words("am der den dem des das vom zum im ab seit bis beim ersten el la den")

#: Capitalised words that usually begin a sentence and seldom continue a name.
STARTERS: Final = _words(
    """
    The A An This That These Those It Its It's He She They We You I I'm My Your His Her Their Our There
    Here If In On At By For From To With Without As When While Where Who What Why How Which Whether
    Since Because Although Though Even After Before During Until Unless Once However Therefore Thus
    Hence Moreover Furthermore Additionally Also Besides Instead Otherwise Then Next Finally First
    Second Third Overall Generally Typically Usually Often Sometimes Note Please And But Or So Yet Nor
    No Not Yes Some Many Most Several All Both Each Every Other Another Any Such More Less Only Just
    According Based Depending Contact Take Use Do Does Did Is Are Was Were Can Could Should Would Will
    May Might Must Has Have Had Be Been Once Under Over Between Through About Despite Given Let Make See
    Visit Call Never Always Customers Patients Users Employees People Refunds Orders Prices Tickets
    Doctors Children Adults Today Tomorrow Der Die Das Ein Eine Es Er Sie Wir Ihr Dies Diese Dieser
    Dieses Wenn Falls Bei Nach Vor Zu Zum Zur Mit Für Von Und Aber Oder Auch Außerdem Jedoch Daher Dann
    Nur Alle Bitte Nein Ja Im Am An Auf Aus Als Ab Le La Les Un Une Des Il Elle Ils Elles Nous Vous Ce
    Cet Cette Ces Si Dans Pour Par Avec Sans Mais Donc Cependant El Los Las Una Unos Esto Esta Este
    Estos Estas Eso Ello Si En Con Por Para Pero Sin También Además Según Es Son Se Lo Gli Questo Questa
    Nel Per O Os As Uma Não No Na Это Этот Эта Эти Он Она Они Мы Вы Если В На По При Для Но Однако Также
    Когда
    """
)

#: Every beginning of a starter, so that a word that can't become one is settled by its first letters.
STARTER_PREFIXES: Final = frozenset(word[:n] for word in STARTERS for n in range(1, len(word) + 1))


#: No sentence ends here. Cuts are positive, so the two can't be confused.
GOES_ON: Final = -1
#: What has arrived fits both.
MORE: Final = -2

#: These end a sentence whatever follows: full stops of scripts without upper case.
STRONG: Final = "。｡．！？।॥؟۔።፧။၊។៕᙮᠃꓿"
TERMINATORS: Final = ".!?…‼⁇⁈⁉" + STRONG
OPENERS: Final = "([{（【〔「『《〈«„"
CLOSERS: Final = ")]}）】〕」』》〉»”"
_QUOTES: Final = "\"'“‘’"
_MARKS: Final = "*_`~"  # Markdown emphasis closes after the full stop: "**Note.**"
_SUPERSCRIPTS: Final = "¹²³⁰⁴⁵⁶⁷⁸⁹"
# Extend and Format characters of UAX #29 (SB5) in the scripts that use them most.
_EXTEND: Final = "\u0300-\u036f\u200b-\u200f\u2060\u20d0-\u20ff\ufe00-\ufe0f\ufeff"

_RUN: Final = re.compile(f"[{re.escape(TERMINATORS + CLOSERS + _QUOTES + _MARKS + _SUPERSCRIPTS)}{_EXTEND}]*")
_SPACE: Final = re.compile(r"\s*")
_LEADING: Final = re.compile(f"[{re.escape(OPENERS + _QUOTES + _MARKS + '¿¡')}]*")
_WORD: Final = re.compile(r"[^\W\d_]+")
_HAS_WORD: Final = re.compile(r"\w")
_INITIALS: Final = re.compile(r"(?:[^\W\d_]\.){1,8}[^\W\d_]|[^\W\d_a-z]\Z")
_CJK: Final = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
_HIRAGANA: Final = re.compile(r"[\u3041-\u309f]")

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


def has_word(text: str, at: int, stop: int) -> bool:
    """Whether ``text[at:stop]`` contains a letter or digit of any script."""
    return _HAS_WORD.search(text, at, stop) is not None


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
        return _without_space(text, dot, after, following, strong=strong)
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
    if letter.islower() or letter in _CONTINUES or letter in TERMINATORS:
        return GOES_ON
    if run.rstrip(_MARKS + _SUPERSCRIPTS) != ".":
        return end
    verdict = _after_full_stop(text, start, dot, letter_at, stop, last=last)
    return end if verdict > 0 else verdict


def _without_space(text: str, dot: int, after: int, following: str, *, strong: bool) -> int:
    if strong:
        # 「行く。」と言った: what is said goes on in the sentence that reports it.
        if text[after - 1] in "」』”" and _HIRAGANA.match(following):
            return GOES_ON
        return GOES_ON if following in "、，,;；" or unicodedata.category(following)[0] == "M" else after
    if _CJK.match(following) and (text[dot] in "!?" or (dot > 0 and _CJK.match(text[dot - 1]))):
        return after
    return GOES_ON


def _after_full_stop(text: str, start: int, dot: int, next_at: int, stop: int, *, last: bool) -> int:
    """Suppressions after a single full stop: positive if the sentence ends, ``GOES_ON`` or ``MORE``."""
    words = text[max(start, dot - 40) : dot].split()
    token = words[-1].lstrip(OPENERS + _QUOTES + _MARKS + "-–—/") if words else ""
    lower = token.lower()
    following = text[next_at]
    digit = following.isdigit()
    if token in NEVER:
        return GOES_ON
    if token.isdigit():
        return _after_number(text, start, dot, next_at, stop, words, last=last)
    if digit:
        return GOES_ON if lower in BEFORE_NUMBER else 1
    if lower in MAYBE or _INITIALS.fullmatch(token):
        return _before_starter(text, next_at, stop, last=last)
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
    if len(token) > 2 or not text[next_at].isalpha():
        return 1
    if len(words) > 1 and words[-2].lower() in BEFORE_ORDINAL:
        return GOES_ON
    word = _WORD.match(text, next_at, stop)
    if word is None:
        return 1
    if word.end() == stop and not last and any(month.startswith(word[0]) for month in MONTHS):
        return MORE
    return GOES_ON if word[0] in MONTHS else 1


def _before_starter(text: str, at: int, stop: int, *, last: bool) -> int:
    """Ends before a word that usually begins sentences ("U.S. The"), not before others ("U.S. Army")."""
    word = _WORD.match(text, at, stop)
    if word is None:
        return 1
    if word.end() == stop:
        if not last:
            return MORE if word[0] in STARTER_PREFIXES else GOES_ON
        return 1 if word[0] in STARTERS else GOES_ON
    if len(word[0]) == 1 and text[word.end()] == ".":
        return GOES_ON  # the next initial: "J. A. Smith"
    return 1 if word[0] in STARTERS else GOES_ON
