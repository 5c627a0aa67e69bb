"""The statements of an English sentence: its coordinated clauses, predicates and items, relative clauses,
appositions, participles, reasons, places and times, each as a sentence of its own with its subject.

Each word gets the letter of its kind and each clause its verb; behind the verb stand groups of nouns. What a
joint adds takes the place of the group of its kind. What no rule knows stays whole: what only identifies
("the customer who cancels"), conditions, comparisons, and pairs that are one thing.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from guardrail.evidence.tokens import stem
from guardrail.shipped import shipped_yaml

_data: Final[dict[str, Any]] = shipped_yaml("guardrail.judges", "clauses.yaml")
_KINDS: Final[dict[str, str]] = {
    word: kind for kind, words in _data["kinds"].items() for word in words.split()
}
_W: Final = {name: frozenset(words.split()) for name, words in _data.items() if name != "kinds"}
_BASES: Final[dict[str, str]] = {stem(word): word for name in ("noun_verbs", "verbs") for word in _W[name]}
_PASTS: Final = {stem(word): word for kind in "EW" for word in _data["kinds"][kind].split()}
_WORD: Final = re.compile(
    r"(?i:up to|at least|at most|(?:more|less|fewer) than)(?= (?:[\d$€£]|two|three|four|five|ten))"
    r"|[^\s,;:()—–]+(?:[,:–](?=\d)[^\s,;:()—–]+)*|[,;:()—–]"
)
_BOUND, _MEASURES = frozenset(map(stem, _W["bound"])), frozenset(map(stem, _W["measures"]))
_YEAR: Final = re.compile(r"(?:1\d|20)\d\ds?")
_DAY: Final = re.compile(r"\d{1,3}(?:st|nd|rd|th)?")
_VERBAL: Final = re.compile(
    "(?:(?:er|ol|ul|in|it|tr|lu|eg|iv|oc|om|or)ate|[^o]fy|[^cmrov]ise|[^rs]ize|(?:ie|ei)ve|olve|uire|sist|sume|lude"
    "|[tp]end|cede|ceed|scribe|rupt|[bln]ish)$"
)
_LATE: Final = frozenset({"although", "so", "though", "while", "yet"})
"""What joins clauses behind a comma."""
_MOST_WORDS: Final = 100
_DEEPEST: Final = 8

# Beside the letters of clauses.yaml: X names, N figures, g "its owner's"; V "includes", v "costs", z other
# words in -s, B "include", u "cost", G "costing", E "treated", n other words; F the verb of a clause.
_O: Final = "(?:[atdiYpPNX]|T(?=[XNatdz]))"
"""How an object or a place begins."""
_SEGMENT: Final = re.compile("[Rs]?[^,;:()cboRs-]+")
_MAIN: Final = re.compile("((?:[^IHMFRs]|[Rs][^IHMF]*[IHMF])+?)[IHMF]")
_VERBS: Final = re.compile("(M[IHMjk]*)[EeGBuvn]?|([IH][IHMjk]*)[EeG]?|F")
_SUBJECT: Final = re.compile(
    r"(?:(?:[Pp][^,]*|j|Pn),|pN|j)*(?![PpRsBqo]|j+B|[Gu][atdXT].|j*$|[^,]*[nzvVX][ad])"
    "(?:[^,;()IHMFRb]|R[^IHMF,]*[IHMF]){1,14}(?<![co])"
)
_NOUNS: Final = "j*[dt]*(?:[agNXnzvVBueGiY]|E(?![qpPT]))(?:[agNjXnzvVBueGiY]|E(?![qpPT]))*"
_GROUP: Final = re.compile(rf"([pPT]j*[GBu]?(?={_NOUNS}))?({_NOUNS}(?:q{_NOUNS})*)")
_ITEM: Final = "[^,;:()cboRsIHMF-]++"
_SERIES: Final = re.compile(rf"{_ITEM}(?:,{_ITEM})*,?c(?={_ITEM}(?![IHMF]))")
_OTHER: Final = re.compile("[adt]?[jnzuvVXg]+(?=N(?:n?z?$|n*[^n]))")
_NAME: Final = re.compile(r"[atd]?X(?:[Xqt]*X)?$")
_NOUN: Final = re.compile(
    r"(?:[atd]N?|N|(?<=[PpFHqT])(?=[nBuGE]{0,3}[nzuvVB]$))(?:(?![IHMFRsPpTcbojq,;:()-]).){0,5}$"
)
_THING: Final = re.compile(rf"a[^IHMFRscoT,;(]*?(?:(?=Rj*[IHMF])|(?<=[nXzGvBu])(?=j?[eE][PpqT]|G{_O}))")

Words = list[str]


class _Nouns(NamedTuple):
    """Nouns: what stands before them, where that starts, where they start and end, and their letters."""

    before: str
    start: int
    at: int
    end: int
    kinds: str

    @property
    def kind(self) -> str:
        """How it begins: a with an article or a number, t with an owner, X with a name, n with a noun."""
        return {"a": "a", "N": "a", "d": "t", "t": "t", "X": "X"}.get(self.kinds.lstrip("j")[0], "n")


def _groups(words: Words, kinds: str, start: int) -> list[_Nouns]:
    found = ((each, each.start(2)) for each in _GROUP.finditer(kinds, start))
    return [_Nouns(" ".join(words[m.start() : at]), m.start(), at, m.end(), m[2]) for m, at in found]


class _Clause:
    """Words, the letters of their kinds, where the verb is, its auxiliaries, and where the verbs end."""

    def __init__(self, words: Words) -> None:
        self.words, self.kinds = words, _kinds(words)
        found = _MAIN.match(self.kinds)
        self.verb = found.end(1) if found else len(words)
        group = _VERBS.match(self.kinds, self.verb)
        self.aux = words[self.verb : max(group.end(1), group.end(2), self.verb)] if group else []
        self.end = group.end() if group else 0
        self.subject = words[: self.verb]
        self.groups = _groups(words, self.kinds, self.end)
        self.whole = bool(found and _SUBJECT.fullmatch(found[1]))
        self.held = self.low(self.verb)
        now = _plural(self.subject) and self.held in _W["noun_verbs"]  # "the plants run"
        self.past = self.held in {"was", "were", "had", "did"} or (
            _kind(self.held, 1) in {"E", "W"} and not now
        )

    def low(self, at: int) -> str:
        """The word there, without capitals; empty beyond the end."""
        return self.words[at].lower() if at < len(self.words) else ""

    def be(self, phrase: Words, said: Words) -> str:
        """The form of "be" for what is ``said`` of ``phrase`` beside this clause."""
        dated = any(map(_YEAR.fullmatch, said)) and "since" not in said
        return ("is", "are", "was", "were")[_plural(phrase) + 2 * (dated or self.past)]

    def does(self, doing: str) -> str:
        """The verb of a participle, for this subject and time: "costing" -> "costs"."""
        if self.past:
            return _PASTS.get(stem(doing)) or re.sub("(?<![aeou])y$", "i", doing[:-3]) + "ed"
        if not _verb(base := _base(doing)):
            return f"{self.be(self.subject, [])} {doing}"
        single = re.sub("(?<![aeou])y$", "ie", re.sub("(s|[sc]h|x|o)$", r"\1e", base)) + "s"
        return base if _plural(self.subject) else single.replace("haves", "has")


def statements_in(text: str) -> list[str]:
    """The statements of a sentence, in about their order; ``[text]`` if it is one, or can't be cut surely."""
    words = _WORD.findall(text.strip().rstrip("."))
    if len(words) > _MOST_WORDS or re.search("[a-z]{3}[.!] +[A-Z]|[?]$", text.rstrip()):
        return [text]
    found = _cut(words)
    return [_written(each) for each in found] if len(found) > 1 else [text]


def _cut(words: Words, depth: int = 0) -> list[Words]:
    s = _Clause(words)
    asks = _verb(s.low(0)) and re.match(".[PpatdTj]", s.kinds)
    if depth < _DEEPEST and not asks and s.low(0) not in _W["conditions"]:
        for rule in (_fronted, _beside, _because, _joined, _described, _placed):
            pieces = rule(s)
            if pieces and all(_Clause(each).whole or each == words for each in pieces):
                cut = ([piece] if piece == words else _cut(piece, depth + 1) for piece in pieces)
                return [each for found in cut for each in found]
    return [words]


def _written(words: Words) -> str:
    text = re.sub(r" (?=[,;:)])", "", " ".join(words)).replace("( ", "(").strip(" ,;:")
    return text[:1].upper() + text[1:] + ("" if text.endswith("!") else ".")


def _kind(word: str, at: int) -> str:
    low = word.lower()
    if low.endswith(("'s", "’s", "s'", "s’")):
        return "g"
    if at and word[:1].isupper() and word != "I" and " " not in word:
        return "X"
    if low in _KINDS:
        return _KINDS[low]
    if len(word) == 1 and not word.isalnum():
        return "-" if word in "–—" else word
    if low.lstrip("$€£¥")[:1].isdigit() or " " in word:
        return "N"
    if at and (verb := _verb(low)):
        return verb
    if "-" in word or len(low) < 4:
        return "n"
    if low.endswith("ly"):
        return "j"
    if low.endswith(("ed", "ing")):
        return "E" if low.endswith("ed") else "G"
    if low.endswith("s") and not low.endswith(("ss", "us", "is")):
        return {"B": "V", "u": "v"}.get(_verb(_base(low)), "z") if at and not low.endswith("ings") else "z"
    return "n"


def _base(form: str) -> str:
    """What a form in -s or -ing is of, if it is a verb."""
    if base := _BASES.get(stem(form)):
        return base
    root = re.sub("ies$", "y", form).removesuffix("ing").removesuffix("s")
    short = root[:-1] if re.search(r"e$|(.)\1$", root) else root
    return next((each for each in (root, root + "e", short) if _VERBAL.search(each)), root)


def _verb(base: str) -> str:
    """B for a verb, u for what is a noun as well; empty for other words."""
    return "u" if base in _W["noun_verbs"] else "B" if base in _W["verbs"] or _VERBAL.search(base) else ""


def _kinds(words: Words) -> str:
    """The letters of the words: F for the verb of each clause, where it is no auxiliary."""
    late = (at and words[at - 1] == "," and word in _LATE for at, word in enumerate(words))
    kinds = "".join("b" if each else _kind(words[at], at) for at, each in enumerate(late))
    found = list(kinds)
    for segment in _SEGMENT.finditer(kinds):
        sure = [(_sure(kinds, segment.start(), at), -at) for at in range(*segment.span())]
        first = next((n for n, each in enumerate(sure, 1) if each[0]), 0) if segment[0][0] == "R" else 0
        for strength, at in (*sure[:first], max(sure[first:], default=(0, 0))):
            if strength and kinds[-at] not in "IHM":
                found[-at] = "F"
    return "".join(found)


def _sure(kinds: str, start: int, at: int) -> int:
    """How surely the word there is the verb of the clause that starts there; 0 if it is none."""
    kind, before, after = kinds[at], kinds[start:at].rstrip("j"), kinds[at + 1 :].lstrip("j")[:1] or "."
    last = before[-1:] or "."
    if kind in "IHM":
        return 0 if last == "T" else 6
    if last == "R" and kind in "WVvzEBu":
        return 6
    opens, clear, many = not before, after in "adtiYNX", last in "zvVYi"
    counted = kind not in "EW" and re.search("(?<![nXzvV])N$", before)
    if (opens and not start) or last in "adtgpPqTIHMk" or after in "IHM" or counted:
        return 0
    if kind in "WV":
        return 6
    if kind == "E" and not opens:
        return 4 if clear or after in ".nz" else 2
    if kind == "v":
        # "sells prints and maps of Rome"
        bare = after == "." or re.search("[^adtNXn]n?[zvV].$", kinds[:start])
        return 4 if clear else 2 if before[:1] not in {"", "G"} or not bare else 0
    if kind == "z":
        sure = after in "adt" or (after == "N" and not opens)
        return 2 if sure else int(not start and after != "." and before[0] not in "GEePp")
    if kind == "B" and not opens:
        return 4 if many else 3 * (not start and last in "nX")
    return 2 * (many and (kind == "u" or after in "atN")) if kind in "un" else 0


def _plural(phrase: Words) -> bool:
    last = phrase[-1] if phrase else "a"
    return _kind(last.lower(), 1) == "Y" or (last.islower() and _kind(last, 1) in "zvV")


def _dated(words: Words) -> bool:
    return all(word in _W["days"] or _YEAR.fullmatch(word) or _DAY.fullmatch(word) for word in words)


def _own(words: Words) -> Words:
    """A subject without what stands before it: "In 2010, the bridge"."""
    return words[len(words) - words[::-1].index(",") :] if "," in words else words


def _phrase(s: _Clause) -> Words:
    """The noun phrase at the end; none if it can't be told."""
    found = _NAME.search(s.kinds) or _NOUN.search(s.kinds)
    phrase = s.words[found.start() :] if found else []
    if not found or s.kinds[: found.start()].endswith(("c", "o", "N")) or _dated(phrase):
        return []
    return ["the", *phrase[1:]] if phrase[0].lower() in {"a", "an"} else phrase


def _fronted(s: _Clause) -> list[Words]:
    """Although this, that; founded in 1995, it …; after leaving it in 1995, she …."""
    at = s.words.index(",") if "," in s.words else 0
    said, rest, front = s.words[s.low(0) == "even" : at], _Clause(s.words[at + 1 :]), s.kinds[:at]
    first = said[0].lower() if said else ""
    if first in {"although", "though", "while", "whereas"}:
        return [said[1:], rest.words]
    if re.match("PG.", front) and first in {"after", "before"}:
        return [[*rest.subject, rest.does(said[1]), *said[2:]], s.words]
    if re.fullmatch("G[^IHMF:]+", front):
        return [[*rest.subject, rest.does(first), *said[1:]], rest.words]
    begins = re.fullmatch("(?:j?[eE](?![nz])|a.)[^IHMF:]+", front)
    listed = front[:1] == "a" and "c" in rest.kinds[: rest.verb]
    if not begins or listed or first in _W["no_more"]:
        return []
    be = rest.be(rest.subject, [] if front[0] == "a" else said)
    return [[*rest.subject, be, first, *said[1:]], rest.words]


def _beside(s: _Clause) -> list[Words]:
    """What is said beside the clause: between commas, dashes or brackets, or behind one."""
    for mark in re.finditer("[,(-]", s.kinds):
        at, left = mark.start(), _Clause(s.words[: mark.start()])
        comma, inside = mark[0] == ",", left.verb == at  # between the subject and its verb
        listed = _SERIES.match(s.kinds, at + 1) and not re.match("j*[RsGeEpP]|X+cX+$", s.kinds[at + 1 :])
        closing = {"(": r"\)", "-": "-"}.get(mark[0], ",(?=j*[IHMFE])" if inside else ",(?=[cb])")
        ends = [found.start() for found in re.finditer(closing, s.kinds) if found.start() > at + 1]
        if mark[0] != "(" and not inside and at + 1 < len(s.words):
            ends.append(len(s.words))
        for end in ends if not (comma and listed) else ():
            rest = s.words[end + (inside or not comma) :]
            clause = _Clause([*left.words, *rest])
            sound = not rest or not comma or (clause.verb <= at + 1 if inside else _joined(clause))
            aside = s.words[at + 1 : end], s.kinds[at + 1 : end]
            if clause.whole and sound and (told := _told(left, *aside, clause, inside)):
                return [clause.words, told]
    return []


def _told(left: _Clause, aside: Words, kinds: str, clause: _Clause, inside: bool) -> Words:
    """The sentence that an aside makes; none if it makes none."""
    subject, first = _own(clause.subject), aside[0].lower()
    if first in _W["no_more"]:
        return []
    if doing := re.match("j?G(?=[^c,])", kinds):
        at = doing.end() - 1
        known = _MAIN.match(kinds, 1) or "o" in kinds or "G" in left.kinds or (not inside and _joined(left))
        return [] if known else [*subject, *aside[:at], clause.does(aside[at]), *aside[at + 1 :]]
    if kinds[0] == left.kinds[left.end : left.end + 1] == "p":
        return [*left.words[: left.end], *aside]  # in London, in the centre
    phrase = subject if inside else _phrase(left)
    if not phrase:
        return []
    if kinds[0] == "R":
        by = _Clause(aside[1:])
        if by.whole and not re.match("Rj*[IHMF]", kinds):  # which somebody does
            return [*by.words[: by.end], *phrase, *by.words[by.end :]]
        plural, verb = _plural(phrase), aside[1]
        many = verb in {"are", "were", "have"} or _kind(verb, 1) in {"B", "u"}
        agrees = not verb.endswith("s") if plural else not many
        return [*phrase, *aside[1:]] if inside or (agrees and not {*aside[1:3]} & _W["of_all"]) else []
    if re.match("[pP]R", kinds):  # for which somebody does it
        return [*aside[2:], first, *phrase]
    if first == "whose":
        return [*phrase[:-1], f"{phrase[-1]}'s", *aside[1:]]
    if first == "where":
        return ["in", *phrase, ",", *aside[1:]] if inside or left.kinds[-1] == "X" else []
    if re.match(rf"j?[eE](?:{_O}|q|T|$)", kinds):
        return [*phrase, clause.be(phrase, aside), *aside]
    return [*phrase, clause.be(phrase, []), *aside] if _apposed(left, phrase, aside, kinds, inside) else []


def _apposed(left: _Clause, phrase: Words, aside: Words, kinds: str, inside: bool) -> bool:
    """Whether an aside says what the phrase is, as no list and no clause does."""
    own = _MAIN.match(kinds, 1)
    if re.fullmatch("X{1,4}|X+cX+", kinds):
        return not aside[0].isupper() and bool(re.match("[atd]" if inside else "N", _kinds(phrase)))
    behind = left.words[: -len(phrase)]  # "it is learnt from the environment, a process that …"
    if not inside and behind and not left.kinds.endswith("X") and left.kinds[len(behind) - 1] in "pPq":
        return False
    if own and _kind(aside[own.end() - 1], 1) != "E":
        return False
    titled = re.match("[nu]+[qP]", kinds) and left.kinds.endswith("X")
    return bool(titled or re.match("j?[atg]", kinds) or aside[0].lower() in {"one", "home"})


def _because(s: _Clause) -> list[Words]:
    """It was so because of this."""
    at = s.words.index("because") if "because" in s.words else 0
    left, why = _Clause(s.words[:at]), _Clause(s.words[at + 1 :])
    denied = {"not", "only"} & {*left.words} or re.search("[Rs]", left.kinds)
    return [left.words, s.words] if at and why.whole and not denied else []


def _joined(s: _Clause) -> list[Words]:
    """It does this and does that; it does this, but that does so; it has this, this and that."""
    for joint in re.finditer("(,?)([cb;,])(?![cb])", s.kinds[s.verb :]) if s.whole else ():
        left, at = s.words[: s.verb + joint.start()], s.verb + joint.end()
        inner = (n for n in range(s.end, at - 1) if s.low(n) in {"as", "once", "until"})
        dependent = re.search("[Rs]", s.kinds[s.end : at - 1]) or any(s.kinds[n + 1] in "atdi" for n in inner)
        pairs = (n for n, each in enumerate(left) if each in {"between", "both", "either"})
        before = _Clause(left)
        paired = any("and" not in left[n:] for n in pairs) and s.kinds[at : at + 1] not in {*"IHMF"}
        if not before.whole or at == len(s.words) or paired or left.count("(") > left.count(")"):
            continue
        if dependent and not (joint[1] and s.kinds[at] in "adtiYX"):
            continue
        alone = bool(dependent) or s.low(at - 1) in _LATE  # can't go on without a subject
        if added := _added(before, s.words[at:], s.kinds[at:], joint, alone):
            return [left, *added]
    return []


def _added(left: _Clause, right: Words, kinds: str, joint: re.Match[str], alone: bool) -> list[Words]:
    """What stands behind a joint, as sentences; none if it is part of what stands before."""
    begins, own = re.match(rf"j*(?:[IHMF]|E(?:{_O}|[Tj]|$))", kinds), _MAIN.match(kinds)
    subject, aux, held = left.subject, left.aux, left.held
    if own and not begins and joint[2] != "," and _SUBJECT.fullmatch(own[1]):
        named, kind = re.match("j*[atdiYX]", kinds), _kind(right[own.end(1)], 1)
        doubtful = re.match("F[pPT]|F$", left.kinds[left.verb :]) and _kind(held, 1) in "Evu"
        many = right[1] in {"are", "were", "have"} and not _plural(right[:1])
        if (doubtful or many) and joint[0] == "c" and kinds[0] not in "adtiY":
            return []  # "flour mixed with water and yeast forms a dough"
        after = re.match("[atdiYjNX]" + "|$" * (kind == "E"), kinds[own.end() :])
        return [right] if after or kind not in "Ev" or (joint[1] and named) else []
    if alone or joint[2] == ";" or (joint[2] == "," and "c" not in kinds):
        return []
    if re.match("j*[IHM]", kinds):
        return [[*subject, *right]]
    if left.end >= len(left.words) or re.search("Mj*[^atdNX]$|T[Bu]$", left.kinds):
        return []  # what follows belongs to both
    if aux and re.match(rf"j*[eE](?:{_O}|[qT,c]|$)", kinds):
        be = _KINDS.get(held) == "I"
        return [[*subject, *([] if be and re.match("j*E[atdiN]", kinds) else aux[:1] if be else aux), *right]]
    modal = left.kinds[left.verb] == "M"
    several = (modal and _plural(subject)) or held in {"are", "were", "have"} or _kind(held, 1) in "Bu"
    if begins and not (several and right[0].endswith("s")):
        return [[*subject, *right]]
    if re.match(f"j*(?:[Bu]j*(?:{_O}|[nz])|n[atd])", kinds):
        if to := re.search("T(?=[Buv](?!.*T[Buv]))", left.kinds):
            return [[*left.words[: to.end()], *right]]
        if several or (modal and "be" not in aux):
            return [[*subject, *([] if several else aux), *right]]
    return _items(left, right, kinds, joint[2] == ",")


def _items(left: _Clause, right: Words, kinds: str, listed: bool) -> list[Words]:
    """It has 5 rooms, a bar and 3 halls; a room costs 9 euros and a hall 10."""
    held, new = left.groups, _groups(right, kinds, 0)
    if not held or not new or new[0].start or new[0].kinds[0] == "G" or re.search("[iY]j*[IHMF]", kinds):
        return []
    bound = _BOUND & set(map(stem, [*left.words[left.end :], *right, left.held]))
    measured = len(new) == 1 and {stem(left.words[-1]), stem(right[-1])} <= _MEASURES
    if measured or bound - {new[0].before}:
        return []
    other, unit = _OTHER.match(kinds), left.low(left.end + 1)
    if other and left.kinds[left.end] == "N" and [*right, "and"][other.end() + 1] in {"and", unit}:
        return [[*right[: other.end()], *left.words[left.verb : left.end], *right[other.end() :]]]
    series = _SERIES.match(kinds) if listed else None
    unlisted = ("," in left.kinds[left.end :]) if not listed else not series
    at = None if unlisted else _place(left, new, listed, "and" not in right)
    if at is None:
        return []
    joints = [0, *(n + 1 for n in range(series.end() if series else 0) if kinds[n] in ",c")]
    ends = [*(n - 1 for n in joints[1:]), len(right)]
    return [[*left.words[:at], *right[one:end]] for one, end in zip(joints, ends, strict=True) if one < end]


def _place(left: _Clause, new: list[_Nouns], listed: bool, alone: bool) -> int | None:
    """Where in the left what is added would stand; None if that can't be told."""
    held, first, last = left.groups, new[0], left.groups[-1]
    if first.before:  # "at 8 on weekdays and at 6 on Sundays"
        same = next((each for each in held if each.before == first.before), None)
        like = last.before and not listed and _KINDS.get(last.before, "P") == _KINDS.get(first.before)
        return same.start if same else last.start if like else None
    tail = [each.before for each in new[1:]]
    for n, each in enumerate(held if tail and alone else ()):  # "the cup in 1998 and the league in 2004"
        ours = [after.before for after in held[n + 1 :]]
        alike = each.kind == first.kind in {"a", "t"} and len(ours) == len(tail) and all(ours + tail)
        if ours == tail or alike:
            return each.at
    if last.before and last.before in tail:
        return None
    if first.kind in "at":
        last, *more = [each for each in held if each.kind == first.kind] or held
        inner = "q" in last.kinds and (first.kind == "t" or re.search("q[aN]", last.kinds))
        if more or (inner and not listed):
            return None
    elif first.kind == "n" and not listed:
        be = left.kinds[left.verb] == "I" and last.at == left.end == left.verb + 1 and last.kind == "n"
        shared = last.kind == "t" or (last.kind == "a" and last.kinds[-1] not in "zvV") or "q" in last.kinds
        lengths = len(first.kinds), len(last.kinds)
        longer = lengths[0] > lengths[1] and left.held not in {"are", "were"}
        if longer if be else shared or lengths[0] == 1 or (lengths[1] == 1 and last.kind == "n"):
            return None
    named = last.before in _W["places"] if last.before else listed or first.kind != "X"
    sure = named if last.kind == "X" else first.kind != "X"
    return last.at if sure else None


def _described(s: _Clause) -> list[Words]:
    """It is a thing that does this; it has a thing made by them."""
    after = s.verb + 1 + (s.kinds[s.verb + 1 : s.verb + 2] == "j")
    found = None if s.kinds[s.verb : s.verb + 1] in {"M", ""} else _THING.match(s.kinds, after)
    if not found or s.low(0) == "there":
        return []
    thing = s.subject if s.kinds[s.verb] == "I" else ["the", *s.words[found.start() + 1 : found.end()]]
    more = s.words[found.end() :]
    said = more[1:] if s.kinds[found.end()] == "R" else [s.be(thing, more), *more]
    return [] if more[0] in _W["no_more"] else [s.words[: found.end()], [*thing, *said]]


def _placed(s: _Clause) -> list[Words]:
    """It was held in a place, at a time, by somebody."""
    starts: dict[str, int] = {}
    at, last = len(s.words), ""
    for group in reversed(s.groups):
        words = s.words[group.at : group.end]
        day = any(_YEAR.fullmatch(word) or word in _W["days"] - {word.lower()} for word in words)
        named = ("X" in group.kinds and {"by": "by"}.get(group.before, _KINDS.get(group.before))) or ""
        kind = "time" if group.before and (day or last == "time") and _dated(words) else named
        again = kind in starts and {kind, last} != {"time"}
        if kind not in {"time", "by", "p"} or group.end != at or again:
            break
        starts[kind], at, last = group.start, group.start, kind
    rows = sorted(starts.values()) if len(starts) > 1 else []
    return [
        [*s.words[: rows[0]], *s.words[one:end]]
        for one, end in zip(rows, [*rows[1:], None], strict=bool(rows))
    ]
