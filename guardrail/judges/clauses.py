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
_W: Final = {name: frozenset(words.split()) for name, words in _data.items() if name != "kinds"}
_BASES: Final[dict[str, str]] = {stem(word): word for name in ("noun_verbs", "verbs") for word in _W[name]}
_PASTS: Final = {stem(word): word for kind in "EW" for word in _data["kinds"][kind].split()}
_BOUND, _MEASURES = frozenset(map(stem, _W["bound"])), frozenset(map(stem, _W["measures"]))
_WORD: Final = re.compile(r"[^\s,;:()—–]+(?:[,:–](?=\d)[^\s,;:()—–]+)*|[,;:()—–]")
_YEAR: Final = re.compile(r"(?:1\d|20)\d\ds?")
_VERBAL: Final = re.compile(
    "(?:(?:er|ol|ul|in|it|tr|lu|eg|iv|oc|om|or)ate|[^o]fy|[^cmrov]ise|[^rs]ize|(?:ie|ei)ve|olve|uire|sist|sume|lude"
    "|[tp]end|cede|ceed|scribe|rupt|[bln]ish)$"
)
_MOST_WORDS: Final = 100

# Beside the letters of clauses.yaml: X names, N figures, g "its owner's"; V "includes", v "costs", z other
# words in -s, B "include", u "cost", G "costing", E "treated", n other words; F the verb of a clause.
_SEGMENT: Final = re.compile("[Rs]?[^,;:()cboRs-]+")
_MAIN: Final = re.compile("((?:[^IHMFRs]|[Rs][^IHMF]*[IHMF])+?)[IHMF]")
_VERBS: Final = re.compile("([MIH][IHMjk]*)[EeGBuv]?|F")
_SUBJECT: Final = re.compile(
    r"(?:(?:[Pp][^,]*|j|Pn),|pN|j)*(?![PpRsBqo]|j+B|[Gu][atdXT].|j*$|[^,]*[nzvVX][ad])"
    "(?:[^,;()IHMFRb]|R[^IHMF,]*[IHMF]){1,14}(?<![co])"
)
_PARTICIPLE: Final = "j*[eE](?:[atdiYpPNXqTjc,]|$)"
_LAST: Final = re.compile("[^IHMFpPTjk,]+$")
_ONE: Final = "[^,;:()cboRsIHMF-]++"
_ITEM: Final = re.compile(f"{_ONE}(?![IHMFRs])")
_SERIES: Final = re.compile(rf"{_ONE}(?:,{_ONE})*,?c(?={_ONE}(?![IHMF]))")
_NOUN: Final = re.compile(
    r"(?:[atd]?X(?:[Xqt]*X)?|(?:[atd]N?|N(?=.)|(?<=[PpFHqT])(?=[nBuGE]{0,3}[nzuvVB]$))(?:(?![IHMFRsPpTcbojq,;:()-]).){0,5})$"
)
_THING: Final = re.compile(r"a[^IHMFRscoT,;(]*?(?:(?=Rj*[IHMF])|(?<=[nXzGvBu])(?=j?[eE][PpqT]|G[atdXPpN]))")

_SURE: Final = [
    re.compile(each.replace("A", "[^adtgpPqTIHMkj]j*").replace("C", "[^|adtgpPqTIHMkj]j*"))
    for each in (
        "(?<!T)[IHM]|A[WV]|Rj*[vzEBu]",
        "CE(?=j*[adtiYNXnz])|Av(?=j*[adtiYNX])|[zvVYi]j*B",
        "[nX]j*B",
        "CE|C(?<![^nXzvV]N)v|Az(?=j*[adt])|C(?<![^nXzvV]N)z(?=j*N)|[zvVYi]j*(?:u|n(?=j*[atN]))",
        "^(?:[|]v(?=[^q])|(?![GEePp|]).*C(?<![^nXzvV]N)z(?=.))",
    )
]
"""How the verb of a clause stands, the surest first; "|" is a joint before it."""
_DENIED: Final = re.compile(r"\b(?:not|only)\b|n.t\b")
_PAIRED: Final = re.compile(r"\b(?:between|both|either)\b(?!.* and )")
_BOUNDED: Final = re.compile(rf"{_PAIRED.pattern}|\buntil\b")
_DAY: Final = "(?:" + "|".join(map(re.escape, _W["days"])) + r"|\d{1,4}(?:st|nd|rd|th)?)(?= |$)"
_NAME: Final = "(?:the )?[A-Z][^ ]*(?: (?:of (?:the )?)?[A-Z][^ ]*)*"
_PLACED: Final = re.compile(
    rf"(.+?)(?= (?:by|in|on|at|aboard|near|from) )( by {_NAME})?( (?:in|at|aboard|near) (?!{_DAY}){_NAME})?"
    rf"((?: [a-z]+(?: {_DAY})++)++)?( by {_NAME})?$"
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
        self.whole = bool(found and _SUBJECT.fullmatch(found[1]))
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
        single = re.sub("(?<![aeou])y$", "ie", re.sub("(s|[sc]h|x|o)$", r"\1e", base)) + "s"
        return base if _plural(phrase) else single.replace("haves", "has")

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
        if kinds[0] == "R":
            by = _Clause(said[1:])
            if by.whole and not re.match("Rj*[IHMF]", kinds):  # which somebody does
                return [*by.words[: by.end], *phrase, *by.words[by.end :]]
            return [*phrase, *said[1:]]
        if re.match("[pP]R", kinds):  # for which somebody does it
            return [*said[2:], first, *phrase]
        if first == "whose":
            return [*phrase[:-1], f"{phrase[-1]}'s", *said[1:]]
        if first == "where":
            return ["in", *phrase, ",", *said[1:]]
        noun = "j?[atgnXN]" if phrase == self.subject else "j?[atg]" if _kind(phrase[0], 1) != "N" else "$"
        if re.match(rf"{_PARTICIPLE}|{noun}(?:[^IHMFR]|F[PpqT])*(?:R|$)", kinds):
            return [*phrase, self.be(phrase, said), *said]
        return []


def statements_in(text: str) -> list[str]:
    """The statements of a sentence, in about their order; ``[text]`` if it is one, or can't be cut surely."""
    words = _WORD.findall(text.strip().rstrip("."))
    if len(words) > _MOST_WORDS or re.search("[a-z]{3}[.!] +[A-Z]|[?]$", text.rstrip()):
        return [text]
    found = _cut(words)
    return [_written(each) for each in found] if len(found) > 1 else [text]


def _cut(words: Words, deepest: int = 8) -> list[Words]:
    s = _Clause(words)
    asks = words and _verb(words[0].lower()) and re.match(".[PpatdTj]", s.kinds)
    for rule in (
        (_apart, _fronted, _beside, _joined, _described, _placed) if words and deepest and not asks else ()
    ):
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


def _apart(s: _Clause) -> list[Words]:
    """This is so; that is so."""
    at = s.kinds.find(";")
    return [s.words[:at], s.words[at + 1 :]] if at > 0 else []


def _fronted(s: _Clause) -> list[Words]:
    """Although this, that; founded in 1995, it …; after leaving it in 1995, she …."""
    at = s.words.index(",") if "," in s.words[1:] else 0
    said, rest, front = s.words[:at], _Clause(s.words[at + 1 :]), s.kinds[:at]
    first = said[0].lower() if said else ""
    if first in {"although", "though", "while", "whereas"}:
        return [said[1:], rest.words]
    if re.match("PG.", front) and first in {"after", "before"}:
        return [[*rest.subject, rest.does(said[1], rest.subject), *said[2:]], s.words]
    if re.fullmatch("(?:G|j?[eE](?![nz]))[^IHMF:]+", front):
        return [rest.told(rest.subject, [first, *said[1:]], front), rest.words]
    return []


def _beside(s: _Clause) -> list[Words]:
    """What is said beside the clause: between commas, dashes or brackets, or behind one."""
    for mark in re.finditer(rf"[(-]|,(?!(?!j*[RsGeEpP]){_SERIES.pattern})", s.kinds):
        at, left = mark.start(), _Clause(s.words[: mark.start()])
        inside = left.verb == at  # between the subject and its verb
        closing = {"(": r"\)", "-": "-|$"}.get(mark[0], ",(?=j*[IHMFE])" if inside else ",(?=[cb])|$")
        for end in (found.start() for found in re.finditer(closing, s.kinds) if found.start() > at + 1):
            clause = _Clause([*left.words, *s.words[end + (inside or mark[0] != ",") :]])
            said, kinds = s.words[at + 1 : end], s.kinds[at + 1 : end]
            phrase = clause.subject if inside or kinds[0] == "G" else _phrase(left)
            told = clause.told(phrase, said, kinds)
            if clause.whole and told:
                return [clause.words, told]
    return []


def _joined(s: _Clause) -> list[Words]:
    """It does this and does that; it does this, but that does so; it has this, this and that."""
    for joint in re.finditer("(,?)([cb,])(?![cb])(?=.)|s(?!q)", s.kinds[s.verb :]) if s.whole else ():
        left, at = _Clause(s.words[: s.verb + joint.start()]), s.verb + joint.end()
        if joint[0] == "s":
            if s.words[at - 1] == "because" and not _DENIED.search(" ".join(left.words)):
                return [left.words, s.words]  # the reason is none without what it is of
            continue
        dependent = re.search("[Rs]", left.kinds[left.end :])  # what follows may be, too
        unsure = dependent and not (joint[1] and s.kinds[at] in "adtiYX")
        if unsure or (_PAIRED if joint[1] else _BOUNDED).search(" ".join(left.words)):
            continue
        alone = bool(dependent) or s.words[at - 1] in _W["late"]  # can't go on without a subject
        if added := _added(left, s.words[at:], s.kinds[at:], joint, alone):
            return [left.words, *added]
    return []


def _added(left: _Clause, right: Words, kinds: str, joint: re.Match[str], alone: bool) -> list[Words]:
    """What stands behind a joint, as sentences; none if it is part of what stands before."""
    begins, own = re.match(rf"j*[IHMF]|{_PARTICIPLE}", kinds), _MAIN.match(kinds)
    if own and not begins and joint[2] != "," and _SUBJECT.fullmatch(own[1]):
        sure = (
            joint[1] or _kind(right[own.end(1)], 1) not in "Ev" or re.match("[atdiYjNX]", kinds[own.end() :])
        )
        return [right] if sure else []
    of_both = left.end == len(left.words) and not re.match("j*[IHM]", kinds)
    if alone or of_both or (joint[2] == "," and "c" not in kinds):
        return []
    modal = left.kinds[left.verb] == "M"
    several = left.held in {"are", "were", "have"} or _kind(left.held, 1) in "Bu"
    if re.match(_PARTICIPLE, kinds) and not re.match("j*E[atdiN]", kinds):  # "was built", not "built it"
        return [[*left.subject, *left.aux, *right]]
    if begins:
        return [[*left.subject, *right]]
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
    found = _PLACED.match(" ".join(s.words))
    held, *rows = [each.split() for each in found.groups() if each] if found else [[]]
    return [[*held, *each] for each in rows] if len(rows) > 1 and len(held) >= s.end else []
