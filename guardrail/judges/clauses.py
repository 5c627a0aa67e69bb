"""The statements of an English sentence: its coordinated clauses, predicates and items, relative clauses,
appositions, participles, reasons, places and times, each as a sentence of its own with its subject.

Each word gets the letter of its kind, and each clause its verb. What a joint adds is read by how it begins: a
verb goes on with the subject, a relative or participle with the noun before it, a noun takes the place of the
last one. What only identifies ("the customer who cancels"), conditions, comparisons, and what no rule knows
stay whole.
"""

from __future__ import annotations

import re
from typing import Any, Final

from guardrail.evidence.tokens import stem
from guardrail.shipped import shipped_yaml

_data: Final[dict[str, Any]] = shipped_yaml("guardrail.judges", "clauses.yaml")
_KINDS: Final[dict[str, str]] = {
    word: kind for kind, words in _data["kinds"].items() for word in words.split()
}
_W: Final = {name: frozenset(words.split()) for name, words in _data.items() if isinstance(words, str)}
_BASES: Final[dict[str, str]] = {stem(word): word for name in ("noun_verbs", "verbs") for word in _W[name]}
_PASTS: Final = {stem(word): word for kind in "EW" for word in _data["kinds"][kind].split()}
_BOUND, _MEASURES, _COLLECTIVE = (
    frozenset(map(stem, words)) for words in (_W["bound"], _W["measures"], _W["bound"] | _W["collective"])
)
_WORD: Final = re.compile(r"[^\s,;:()—–]+(?:[,:–](?=\d)[^\s,;:()—–]+)*|[,;:()—–]")
_YEAR: Final = re.compile(r"(?:1\d|20)\d\ds?")
_VERBAL: Final = re.compile(
    "(?:(?:er|ol|ul|in|it|tr|lu|eg|iv|oc|om|or)ate|[^o]fy|[^cmrov]ise|[^rs]ize|(?:ie|ei)ve|olve|uire|sist|sume|lude"
    "|[tp]end|cede|ceed|scribe|rupt|[bln]ish)$"
)
_MOST_WORDS: Final = 100
_MOST_CHARS: Final = 1000  # some of the patterns take the square of it

# Beside the letters of clauses.yaml: X names, N figures, g "its owner's"; V "includes", v "costs", z other
# words in -s, B "include", u "cost", G "costing", E "treated", n other words; F the verb of a clause.
_SEGMENT: Final = re.compile("[Rs]?[^,;:()cboRs-]+")
_MAIN: Final = re.compile("((?:[^IHMFRs]|[Rs][^IHMF]*[IHMF])+?)[IHMF]")
_VERBS: Final = re.compile("([MIH][IHMjk]*)[EeGBuv]?|F")
_SUBJECT: Final = re.compile(
    r"(?:(?:[PpeE][^,]*|j|Pn),|pN|j)*(?![PpRsBqo]|[eE][PpT]|j+B|[Gu][atdXT].|j*$|[^,]*[nzvVX][ad])"
    "(?:[^,;()IHMFRb]|R[^IHMF,]*[IHMF]){1,14}(?<![co])"
)
_PARTICIPLE: Final = "j*[eE](?:[atdiYpPNXqTjc,]|$)"
_LAST: Final = re.compile("[^IHMFpPTjk,]+$")
_ONE: Final = "[^,;:()cboRsIHMF-]++"
_ITEM: Final = re.compile(f"{_ONE}(?![IHMFRs])")
_SERIES: Final = re.compile(rf"{_ONE}(?:,{_ONE})*,?c(?={_ONE}(?![IHMF]))")
_FINITE: Final = re.compile(
    "i|Y[^,]|[adtgXNnz]{1,5}(?:[IHMW]|E(?![pPq]))"
)  # before it was, after the board had
_LIST: Final = re.compile(rf"(?!j*[RsGeEpP]){_SERIES.pattern}")
_NOUN: Final = re.compile(
    r"(?:[atd]?X(?:[Xqt]*X)?N?|(?:[atd]N?|N(?=.)|(?<=[PpFHqTe])(?=[nBuGEX]{0,3}[nzuvVB]$))(?:(?![IHMFRsPpTcbojq,;:()-]).){0,5})$"
)
_THING: Final = re.compile(r"a[^IHMFRscoT,;(]*?(?:(?=Rj*[IHMF])|(?<=[nXzGvBu])(?=j?[eE][PpqT]|G[atdXPpN]))")

_SURE: Final = [
    re.compile(each.replace("A", "[^adtgpPqTIHMkj]j*").replace("C", "[^|adtgpPqTIHMkj]j*"))
    for each in (
        "(?<!T)[IHM]|A[WV]|Rj*[vzEBu]",
        "CE(?=j*[adtiYNXnz])|Av(?=j*[adtiYNX])|[zvVYi]j*B",
        "[nX]j*B",
        "CE|C(?<![^nXzvV]N)v|Az(?=j*[adt])|C(?<![^nXzvV]N)z(?=j*N)|[zvVYi]j*(?:u|n(?=j*[atN]))",
        "^(?:[|]j*v(?=[^q])|(?![GEePp|]).*C(?<![^nXzvV]N)z(?=.))",
    )
]
"""How the verb of a clause stands, the surest first; "|" is a joint before it."""
_SAID_OTHERWISE: Final = [
    (re.compile(rf"\b{one}", re.IGNORECASE), other) for one, other in _data["said_otherwise"].items()
]
_DENIED: Final = re.compile(r"\b(?:not|only)\b|n.t\b")
_PAIRED: Final = re.compile(r"\b(?:between|both|either)\b(?!.* and )")
_BOUNDED: Final = re.compile(rf"{_PAIRED.pattern}|\buntil\b")
_DAY: Final = "(?:" + "|".join(map(re.escape, _W["days"])) + r"|\d{1,4}(?:st|nd|rd|th)?)(?= |$)"
_MONTH: Final = "(?:" + "|".join(_W["months"]) + ")"
_DATE: Final = rf"(?:{_MONTH}|[A-Z][a-z]+day|\d{{1,4}}(?:st|nd|rd|th)?(?= |$))"
_NAME: Final = "(?:the )?[A-Z][^ ]*(?: (?:of (?:the )?)?[A-Z][^ ]*)*"
_PLACED: Final = re.compile(
    rf"(.+?)(?= (?:by|in|on|at|aboard|near|from) )( by {_NAME})?( (?:in|at|aboard|near) (?!{_DAY}){_NAME})?"
    rf"((?: [a-z]+(?: {_DAY})++)++)?( by {_NAME})?$"
)

_BEGINS: Final = "(?:by|in|on|at|aboard|near|during|off|to|from)"
_WHEN: Final = re.compile(
    rf"^ \d| (?:{_YEAR.pattern}|{_MONTH}|[A-Z][a-z]+day|noon|midnight|spring|summer|autumn|winter)(?: |$)"
)
_PLACE: Final = " (?:[A-Z]|(?:an?|the|this|his|her|its|their|room|hall) )"
_DATED: Final = re.compile(
    rf"((?:On|In|During)(?: {_DATE})++(?: ,)?|(?:In|During) [^,]* {_YEAR.pattern} ,) (.+) "
    rf"((?:in|at|off|near) (?!{_DATE}){_NAME}(?: [a-z]+)?)$"
)

Words = list[str]


class _Clause:
    """Words, the letters of their kinds, where the verb is, its auxiliaries, and where the verbs end."""

    def __init__(self, words: Words) -> None:
        self.words, self.kinds = words, _kinds(words)
        found = _MAIN.match(self.kinds)
        self.verb = found.end(1) if found else len(words)
        group = _VERBS.match(self.kinds, self.verb)
        self.aux = words[self.verb : max(group.end(1), self.verb)] if group else []
        self.end = group.end() if group else 0
        self.subject = words[: self.verb]
        self.name = self.subject[1 + found[1].rfind(",") :] if found else []  # of "in 1931, the firm"
        self.whole = bool(found and _SUBJECT.fullmatch(found[1]))
        self.passive = bool(group and re.search("I[jk]*[Ee]$", group[0]))
        self.held = words[self.verb].lower() if found else ""
        now = self.held in _W["noun_verbs"] and _plural(self.subject)  # "the plants run"
        self.past = self.held in {"was", "were", "had", "did"} or (
            _kind(self.held, 1) in {"E", "W"} and not now
        )

    def be(self, phrase: Words, said: Words) -> str:
        """The form of "be" for what is ``said`` of ``phrase`` beside this clause."""
        dated = any(map(_YEAR.fullmatch, said)) and "since" not in said
        return ("is", "are", "was", "were")[_plural(phrase) + 2 * (dated or self.past)]

    def does(self, doing: str, phrase: Words) -> str:
        """The verb of a participle, for a subject and the time of this clause: "costing" -> "costs"."""
        if self.past:
            return _PASTS.get(stem(doing)) or re.sub("(?<![aeou])y$", "i", doing[:-3]) + "ed"
        if not _verb(base := _base(doing)):
            return f"{self.be(phrase, [])} {doing}"
        return base if _plural(phrase) else _single(base)

    def told(self, phrase: Words, said: Words, kinds: str) -> Words:
        """What a relative, a participle or a noun says of a phrase beside this clause, if anything."""
        first = said[0].lower()
        if first in _W["no_more"] or said[0].isupper():
            return []
        if re.match("G(?![oc,])(?!.*cG)", kinds):
            return [*phrase, self.does(said[0], phrase), *said[1:]]
        if kinds[0] == self.kinds[self.end : self.end + 1] == "p":
            return [*self.words[: self.end], *said]  # in London, in the centre
        if not phrase:
            return []
        if re.match("RF", kinds) and _kind(said[1], 1) in "Bu" and not _plural(phrase):
            return []  # symptoms in a disease, which include
        if kinds[0] == "R":
            by = _Clause(said[1:])
            if by.whole and not re.match("Rj*[IHMF]", kinds):  # which somebody does
                return [*by.words[: by.end], *phrase, *by.words[by.end :]]
            return [*phrase, *said[1:]]
        if kinds[0] in "pPT" and said[1:2] in (["which"], ["whom"]):  # for which somebody does it
            return [*said[2:], first, *phrase]
        if first == "whose":
            return [*phrase[:-1], f"{phrase[-1]}'s", *said[1:]]
        if first == "where" or (first == "when" and _YEAR.fullmatch(phrase[-1])):
            return ["in", *phrase, ",", *said[1:]]
        noun = "j?[atgnXN]" if phrase == self.subject else "j?[atg]" if _kind(phrase[0], 1) != "N" else "$"
        if phrase[-1][0].isupper() and phrase[0] != "the":  # Ann Lee, head of the school
            noun = f"(?:{noun}|n+[pPq])"
        if re.match(rf"{_PARTICIPLE}|{noun}(?:[^IHMFR]|F[PpqT])*(?:R|$)", kinds):
            return [*phrase, self.be(phrase, said), *said]
        return []


def statements_in(text: str) -> list[str]:
    """The statements of a sentence, in about their order; ``[text]`` if it is one, or can't be cut surely."""
    if len(text) > _MOST_CHARS or re.search("[a-z]{3}[.!] +[A-Z]|[?]$", text.rstrip()):
        return [text]
    told = text.strip().rstrip(".")
    for pattern, other in _SAID_OTHERWISE:
        told = pattern.sub(other, told)
    words = _WORD.findall(told)
    found = _cut(words) if len(words) <= _MOST_WORDS else [words]
    return [_written(each) for each in found] if len(found) > 1 else [text]


def _cut(words: Words, deepest: int = 8) -> list[Words]:
    if not words or not deepest:
        return [words]
    if words.count(";") == 1:
        at = words.index(";")
        return [*_cut(words[:at], deepest - 1), *_cut(words[at + 1 :], deepest - 1)]
    s = _Clause(words)
    if found := re.search("[cb](,[sbPp][^,;]+),", s.kinds):  # and, if that is so, does that
        start, end = found.span(1)
        return _cut([*words[:start], *words[end + 1 :], *words[start:end]], deepest - 1)
    if lead := _lead(s):
        pieces = _cut(words[lead:], deepest - 1)
        about = _Clause(words[lead:]).subject
        if len(pieces) > 1:
            return [[*words[:lead], *each] if each[: len(about)] == about else each for each in pieces]
    if ":" in words[: s.verb]:
        return [words]
    asks = _verb(words[0].lower()) and re.match(".[PpatdTj]", s.kinds)
    for rule in () if asks else _RULES:
        pieces = rule(s)
        if pieces and all(_Clause(each).whole or each == words for each in pieces):
            cut = ([piece] if piece == words else _cut(piece, deepest - 1) for piece in pieces)
            return [each for found in cut for each in found]
    return [words]


def _written(words: Words) -> str:
    text = re.sub(r" (?=[,;:)])", "", " ".join(words)).replace("( ", "(").strip(" ,;:")
    return text[:1].upper() + text[1:] + "."


def _kind(word: str, at: int) -> str:
    low = word.lower()
    if low.endswith(("'s", "’s", "s'", "s’")):
        return "g"
    if at and word[:1].isupper() and word != "I":
        return "X"
    if low in _KINDS:
        return _KINDS[low]
    if len(word) == 1 and not word.isalnum():
        return "-" if word in "–—" else word
    if low.lstrip("$€£¥")[:1].isdigit():
        return "N"
    if at and (verb := _verb(low)):
        return verb
    if low.endswith(("ed", "ing", "ly")):
        return {"d": "E", "g": "G", "y": "j"}[low[-1]]
    if low.endswith("s") and not low.endswith(("ss", "us", "is")):
        return {"B": "V", "u": "v"}.get(_verb(_base(low)), "z")
    return "n"


def _base(form: str) -> str:
    """What a form in -s or -ing is of, if it is a verb."""
    root = re.sub("ies$", "y", form).removesuffix("ing").removesuffix("s")
    return _BASES.get(stem(form)) or next(
        (each for each in (root, root + "e", root[:-1]) if _VERBAL.search(each)), root
    )


def _verb(base: str) -> str:
    """B for a verb, u for what is a noun as well; empty for other words."""
    return "u" if base in _W["noun_verbs"] else "B" if base in _W["verbs"] or _VERBAL.search(base) else ""


def _kinds(words: Words) -> str:
    """The letters of the words: F for the verb of each clause, where it is no auxiliary."""
    late = (at and words[at - 1] == "," and word in _W["late"] for at, word in enumerate(words))
    kinds = "".join("b" if each else _kind(words[at], at) for at, each in enumerate(late))
    if kinds[:1] == "j" and words[0][-2:] == "ly" and kinds[1:2] in {"I", "H", "M"}:
        kinds = "n" + kinds[1:]  # Monopoly
    kinds = "".join(
        "s" if kind == "P" and words[at] in _W["past_facts"] and _FINITE.match(kinds, at + 1) else kind
        for at, kind in enumerate(kinds)
    )
    found = list(kinds)
    for segment in _SEGMENT.finditer(kinds):
        start, end = segment.span()
        verbs = _verbs(kinds, start, end)
        if segment[0][0] == "R" and verbs:  # which has a verb of its own before that of the clause
            verbs = [min(verbs), *_verbs(kinds, min(verbs) + 1, end)[:1]]
        for at in verbs[: 1 + (segment[0][0] == "R")]:
            found[at] = kinds[at] if kinds[at] in "IHM" else "F"
    return "".join(found)


def _verbs(kinds: str, start: int, end: int) -> list[int]:
    """Where the verb of what stands there may be, the surest place first."""
    text = "|" * bool(start) + kinds[start:end]
    return [each.end() - 1 - bool(start) + start for each in (one.search(text) for one in _SURE) if each]


def _single(base: str) -> str:
    """A verb for one: "carry" -> "carries"."""
    single = re.sub("(?<![aeou])y$", "ie", re.sub("(s|[sc]h|x|o)$", r"\1e", base)) + "s"
    return single.replace("haves", "has")


def _plural(phrase: Words) -> bool:
    last = phrase[-1] if phrase else "a"
    return _kind(last.lower(), 1) == "Y" or (last.islower() and _kind(last, 1) in "zvV")


def _phrase(s: _Clause) -> Words:
    """The noun phrase at the end; none if it can't be told."""
    found = _NOUN.search(s.kinds)
    phrase = s.words[found.start() :] if found else []
    if not found or s.kinds[: found.start()].endswith(("c", "o", "N")):
        return []
    return ["the", *phrase[1:]] if phrase[0].lower() in {"a", "an"} else phrase


def _lead(s: _Clause) -> int:
    """How many words say for when, where or for what purpose the rest holds; 0 if none do."""
    at = s.words.index(",") + 1 if "," in s.words[1:] else 0
    gone = s.words[0].lower() in {"after", "before"} and s.kinds[1:2] == "G"
    told = gone or _tells(s.words[: at - 1])
    if told or not re.match("[PpTs]", s.kinds[:at]) or re.search("[bo;]", s.kinds[:at]):
        return 0
    rest = _Clause(s.words[at:])
    if not rest.verb or _verb(rest.words[0].lower()) == "B" or rest.kinds[0] in "cbo":
        return 0
    return at if rest.whole and rest.verb < len(rest.words) else 0


def _fronted(s: _Clause) -> list[Words]:
    """Although this, that; founded in 1995, it …; after leaving it in 1995, she …."""
    at = s.words.index(",") if "," in s.words[1:] else 0
    said, rest, front = s.words[:at], _Clause(s.words[at + 1 :]), s.kinds[:at]
    first = said[0].lower() if said else ""
    if not re.match("[^cbo]", rest.kinds):
        return []
    if _tells(said):
        return [_named(said[1:], rest), _named(rest.words, _Clause(said[1:]))]
    if re.match("PG.", front) and first in {"after", "before"}:
        return [[*rest.subject, rest.does(said[1], rest.subject), *said[2:]], s.words]
    if re.fullmatch("(?:G|j?[eE](?![nz]))[^IHMF:]+", front):
        who = " ".join(rest.subject).partition(" ,")[0].split()
        return [rest.told(who, [first, *said[1:]], front), rest.words]
    verb = {"having": "had", "a": rest.be(rest.subject, []), "an": rest.be(rest.subject, [])}.get(first)
    if verb == "had" or (verb and rest.words[0][:1].isupper() and not re.search("[IHMFRs]", front)):
        return [[*rest.subject, verb, *([first] if verb != "had" else []), *said[1:]], rest.words]
    return []


def _tells(said: Words) -> bool:
    """Whether a clause behind its joint tells of a fact of its own, and not when or if another holds."""
    first = said[0].lower() if said else ""
    if first not in _W["facts"] | _W["past_facts"]:
        return False
    clause = _Clause(said[1:])
    if not clause.whole or clause.verb == len(clause.words) or clause.kinds[0] == "G":
        return False
    return (
        first not in _W["past_facts"]
        or clause.past
        or (first == "since" and clause.held not in _W["perfect"])
    )


def _named(words: Words, beside: _Clause) -> Words:
    """A clause with the subject of the one beside it in place of its pronoun."""
    first, name = words[0].lower() if words else "", beside.subject
    if (
        not first
        or not name
        or "," in name
        or _kind(name[0].lower(), 1) in "iYR"
        or "g" in beside.kinds[: len(name)]
    ):
        return words
    if (first in {"they", "their"}) != _plural([*name[:-1], name[-1].lower()]):
        return words
    if first == "it" and {"to", "that"} & {*words}:  # which may stand for what follows
        return words
    if name[0].lower() in {"a", "an"}:
        name = ["the", *name[1:]]
    if first in {"it", "he", "she", "they"}:
        return [*name, *words[1:]]
    if first in {"its", "his", "her", "their"}:
        return [*name[:-1], name[-1] + ("'" if name[-1].endswith("s") else "'s"), *words[1:]]
    return words


def _dependent(s: _Clause) -> list[Words]:
    """It is so, because that is; it did this before doing that."""
    if not s.whole or s.kinds[s.verb] == "M" or _DENIED.search(" ".join(s.words[: s.end])):
        return []
    for at in range(s.end, len(s.words) - 1):
        left, said = s.words[: at - (s.words[at - 1] == ",")], s.words[at:]
        if said[0] in {"before", "after"} and s.kinds[at + 1] == "G" and s.past:
            return [left, [*s.subject, s.does(said[1], s.subject), *said[2:]]]
        told = said[2:] if said[:2] == ["so", "that"] else said[1:]
        if s.words[at - 1] in _W["as_one"] or (at == s.verb + 1 and s.kinds[s.verb] == "I"):
            continue  # only when; this is because
        if len(told) < len(said) - 1 or (_tells(said) and (said[0] != "while" or _Clause(told).past)):
            return [left, _named(told, _Clause(left))]
    return []


def _beside(s: _Clause) -> list[Words]:
    """What is said beside the clause: between commas, dashes or brackets, or behind one."""
    for mark in re.finditer("[(,-]", s.kinds):
        at, left = mark.start(), _Clause(s.words[: mark.start()])
        inside = left.verb == at  # between the subject and its verb
        if inside and at and not _SUBJECT.fullmatch(left.kinds):
            continue
        if mark[0] == "," and _LIST.match(s.kinds, at + 1) and not (inside and s.kinds[at + 1] in "atd"):
            continue
        closing = {"(": r"\)", "-": "-|$"}.get(mark[0], ",(?=j*[IHMFE])" if inside else ",(?=[cb])|$")
        for end in (found.start() for found in re.finditer(closing, s.kinds) if found.start() > at + 1):
            clause = _Clause([*left.words, *s.words[end + (inside or mark[0] != ",") :]])
            said, kinds = s.words[at + 1 : end], s.kinds[at + 1 : end]
            phrase = clause.name if inside or kinds[0] == "G" else _phrase(left)
            told = clause.told(phrase, said, kinds)
            if clause.whole and told:
                return [clause.words, told]
    return []


def _joined(s: _Clause) -> list[Words]:
    """It does this and does that; it does this, but that does so; it has this, this and that."""
    for joint in re.finditer("(,?)([cb,])(?![cb])(?=.)", s.kinds[s.verb :]) if s.whole else ():
        left, at = _Clause(s.words[: s.verb + joint.start()]), s.verb + joint.end()
        dependent = re.search("[Rs]", left.kinds[left.end :])  # what follows may be, too
        right, kinds = s.words[at:], s.kinds[at:]
        unsure = dependent and not (joint[1] and kinds[0] in "adtiYX")
        if unsure or (_PAIRED if joint[1] else _BOUNDED).search(" ".join(left.words)):
            continue
        alone = bool(dependent) or s.words[at - 1] in _W["late"] - {"yet"}  # can't go on without a subject
        if added := _added(left, right, kinds, joint, alone):
            return [left.words, *added]
    return []


def _added(left: _Clause, right: Words, kinds: str, joint: re.Match[str], alone: bool) -> list[Words]:
    """What stands behind a joint, as sentences; none if it is part of what stands before."""
    begins, own = re.match(rf"j*[IHMF]|{_PARTICIPLE}", kinds), _MAIN.match(kinds)
    series = ",c" in kinds and kinds[0] not in "Gs"
    if own and not begins and (joint[2] != "," or series) and _SUBJECT.fullmatch(own[1]):
        sure = (
            joint[1] or _kind(right[own.end(1)], 1) not in "Ev" or re.match("[atdiYjNX]", kinds[own.end() :])
        )
        return [_named(right, left)] if sure else []
    of_both = left.end == len(left.words) and not re.match("j*[IHM]", kinds)
    if begins and kinds[0] in "Ee" and not left.aux and "T" in left.kinds[left.end :]:
        return []  # they are allowed to come and cut it
    if alone or of_both or (joint[2] == "," and "c" not in kinds):
        return []
    modal = left.kinds[left.verb] == "M"
    several = left.held in {"are", "were", "have"} or _kind(left.held, 1) in "Bu"
    if re.match(_PARTICIPLE, kinds) and not re.match("j*E[atdiN]", kinds):  # "was built", not "built it"
        return [[*left.subject, *left.aux, *right]]
    if begins:
        return [[*left.subject, *right]]
    if re.search(r"[^,] (?:if|unless) ", " ".join(right)):
        return []  # which may be the condition of both
    if re.match("j*[Bu]j*[atdiYpPNXTnz]", kinds) and (modal or several):
        return [[*left.subject, *(left.aux[:1] if modal else []), *right]]
    return _items(left, right, kinds, joint[2] == ",")


def _items(left: _Clause, right: Words, kinds: str, listed: bool) -> list[Words]:
    """It has 5 rooms, a bar and 3 halls; a room costs 9 euros and a hall 10."""
    held, first, object_ = left.words[left.end :], right[0], left.kinds[left.end : left.end + 1]
    series, last = _SERIES.match(kinds) if listed else None, _LAST.search(left.kinds, left.end)
    bound = _BOUND & set(map(stem, [*held, *right, left.held])) - {first}
    measured = len(right) < 4 and {stem(left.words[-1]), stem(right[-1])} <= _MEASURES
    if bound or measured or not (series if listed else _ITEM.match(kinds)):
        return []
    if (other := re.match("[adtjnzuvVXYg]+(?=N)", kinds)) and object_ == "N":
        return [[*right[: other.end()], *left.words[left.verb : left.end], *right[other.end() :]]]
    at = last.start() if last else 0
    noun = "[^pPTG]" if series else "j*[adN]|X" if left.kinds[at - 1] == "p" else "j*[adN]"
    if first in held:  # "from 9 to 5 on weekdays and from 10 to 4 on Sundays"
        at = left.end + held.index(first)
    elif object_ not in {"", *"pPT"} and any(_kind(each, 1) in "pP" for each in {*held} & {*right}):
        at = left.end  # "5 in Rome and 8 in Lyon"
    elif not (last and re.match(noun, kinds)):
        return []
    joints = [0, *(n + 1 for n in range(series.end() if series else 0) if kinds[n] in ",c")]
    ends = [*(n - 1 for n in joints[1:]), len(right)]
    return [[*left.words[:at], *right[one:end]] for one, end in zip(joints, ends, strict=True) if one < end]


def _together(s: _Clause) -> list[Words]:
    """This, that and those do it."""
    subject, rest = [each for each in s.subject if each != "each"], s.words[s.verb :]
    rest = [each for at, each in enumerate(rest) if at != 1 or each != "all"]
    plain = re.fullmatch("[^;:()bospPTR-]+", s.kinds[: s.verb]) and s.held not in _W["of_one"]
    if not plain or not rest or {*map(stem, [*subject, *rest])} & _COLLECTIVE:
        return []
    items = [part.split() for part in re.split(" , and | and | , ", " ".join(subject))]
    if len(items) < 2 or not all(items):
        return []
    owned = [_kind(item[0].lower(), 1) in "adtN" for item in items]
    named = all(item[0][0].isupper() and len(item) > (len(items) < 3) for item in items)
    several = len(items) > 2 and all(_plural([each.lower() for each in item]) for item in items)
    alike = all(owned) or (not any(owned) and (named or several))
    return [[*item, *_agreeing(rest, item)] for item in items] if alike else []


def _agreeing(rest: Words, subject: Words) -> Words:
    """What is said of several, of one of them."""
    held = rest[0].lower()
    if _plural(subject) or _kind(held, 1) not in "IHBu":
        return rest
    return [{"are": "is", "were": "was", "have": "has"}.get(held) or _single(held), *rest[1:]]


def _listed(s: _Clause) -> list[Words]:
    """It has three things: this, that and those; it has four things, including this and that."""
    found = re.search(r" (?:, including|:) ", " ".join(s.words))
    at = len(found.string[: found.start()].split()) if found else 0
    left, listed = _Clause(s.words[:at]), s.words[at + 1 + (s.words[at : at + 1] == [","]) :]
    thing = re.search("[adt]?N?[^IHMFpPTcbo,;:()]+$", left.kinds)
    if (
        not found
        or not left.end
        or not thing
        or thing.start() < left.end
        or re.search("[cbo,]", left.kinds[left.end :])
    ):
        return []
    either, number = "or" in listed, "N" in left.kinds[thing.start() :]
    joint = (
        " , (?:and|or) | and | or | , " if either and left.kinds[left.verb] == "M" else " , and | and | , "
    )
    items = [item.split() for item in re.split(joint, " ".join(listed))]
    bound = {*map(stem, listed)} & _BOUND or (either and " or " not in joint)
    plain = all(item and not re.search("[IHMRs]", _Clause(item).kinds) for item in items)
    if (
        bound
        or not plain
        or len(items) < 2
        or s.words[0].lower() == "there"
        or not (number or "including" in found[0])
    ):
        return []
    each = [[*left.words[: thing.start()], *item] for item in items]
    return [left.words, *each] if "including" in found[0] else each


def _repeated(s: _Clause) -> list[Words]:
    """It can be had by this, by that or by those."""
    text = " ".join(s.words)
    for p in dict.fromkeys(word for word, kind in zip(s.words, s.kinds, strict=True) if kind in "pPT"):
        joints = [*re.finditer(rf"(?: ,)?(?: (?:and|or))? (?={re.escape(p)} )", text)]
        if len(joints) < 3 or joints[0][0] != " " or any(each[0] == " " for each in joints[1:]):
            continue
        if " or " in joints[-1][0] and s.kinds[s.verb : s.verb + 1] != "M":
            continue
        ends = [*(each.start() for each in joints[1:]), len(text)]
        return [
            [*text[: joints[0].start()].split(), *text[one.end() : end].split()]
            for one, end in zip(joints, ends, strict=True)
        ]
    return []


def _described(s: _Clause) -> list[Words]:
    """It is a thing that does this; it has a thing made by them."""
    found = _THING.match(s.kinds, s.verb + 1)
    if not found or s.words[0].lower() == "there":
        return []
    end = found.end()
    thing = s.subject if s.kinds[s.verb] == "I" else ["the", *s.words[found.start() + 1 : end]]
    return [s.words[:end], s.told(thing, s.words[end:], s.kinds[end:])]


def _placed(s: _Clause) -> list[Words]:
    """It was held in a place, at a time, by somebody."""
    text = " ".join(s.words)
    if found := _DATED.match(text):  # in 1931 it opened in Rome
        return [f"{found[1].rstrip(' ,')} , {found[2]}".split(), f"{found[2]} {found[3]}".split()]
    start = s.end + (s.words[s.end : s.end + 1] == ["place"])  # takes place
    if s.passive or (s.end and s.held not in _W["states"]):
        phrases = _phrases(s.words[start:], s.passive)
        dated = any(re.search(rf" (?:{_YEAR.pattern}|{_MONTH})(?: |$)", " ".join(each)) for each in phrases)
        if len(phrases) > 1 and (s.past or (dated and s.kinds[s.verb] != "M")):
            return [[*s.words[:start], *each] for each in phrases]
    found = _PLACED.match(text)
    held, *rows = [each.split() for each in found.groups() if each] if found else [[]]
    return [[*held, *each] for each in rows] if len(rows) > 1 and len(held) >= s.end else []


def _phrases(words: Words, passive: bool) -> list[Words]:
    """By whom, where and when; none where something else is said."""
    found: dict[str, Words] = {}
    last = ""
    for at, word in enumerate(words):
        to_day = word in {"last", "next", "this"} and re.match(_DAY, " ".join(words[at + 1 :]))
        if to_day or (
            re.fullmatch(_BEGINS, word) and not (word == "to" and found.get(last, [""])[0] == "from")
        ):
            behind = re.match(rf"((?: (?!(?!to){_BEGINS} )[^ ]+)+)", " " + " ".join(words[at + 1 :]))
            said = behind[1] if behind else ""
            kind = word if word in {"by", "to"} else "age" if said.startswith(" the age ") else "where"
            if to_day or (kind == "where" and _WHEN.search(said)):
                kind = "when"
            known = {"by": r" \D", "to": " [A-Z]" if passive else "$.", "where": _PLACE}.get(kind, "")
            if not re.match(known, said) or (kind != last and kind in found):
                return []
            last = kind
        elif word != "to" and (not found or _kind(word, 1) in "PpTcRs,"):
            return []
        found.setdefault(last, []).append(word)
    return [*found.values()]


_RULES: Final = (
    _fronted, _together, _listed, _beside, _dependent, _repeated, _joined, _described, _placed,
)  # fmt: skip
