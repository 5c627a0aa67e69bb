"""The statements of an English sentence: its coordinated and relative clauses, appositions and participles,
each as a sentence of its own with its subject.

Each word gets the letter of its kind, and patterns over these letters say where a sentence can be cut. What
they don't say stays whole: what only identifies ("the customer who cancels"), conditions, comparisons, and
lists within a clause.
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
_VERBS: Final = frozenset(map(stem, _W["verbs"]))
_WORD: Final = re.compile(r"[^\s,;:()—–]+(?:[,:](?=\d)[^\s,;:()—–]+)*|[,;:()—–]")
_YEAR: Final = re.compile(r"(?:1\d|20)\d\d")
_DAY: Final = re.compile(r"\d{1,2}(?:st|nd|rd|th)?|,")
_MOST_WORDS: Final = 100
_DEEPEST: Final = 8

# Beside the letters of clauses.yaml: X names, N figures, g "its owner's", v "costs", z other words in -s,
# B "cost", G "costing", E "treated", n other words; F verbs with a subject, f verbs behind a joint.
_O: Final = "(?:[atdiYjPpNX]|T(?=[XNatdz]))"
"""How an object or a place begins."""
_NO_VERB: Final = r"(?<![atdPpTIHMkqgcbow,;])(?<![atdPpkcbow,;]j)"
_REDUCED: Final = "(?![Pp][^,;cbowRs]*[IHMWv])"  # "the song written by him is"
_VERB: Final = re.compile(
    rf"{_NO_VERB}(?<!^)(?:W|(?<!N)v(?={_O}|[nzG])|E{_REDUCED}|z(?=[atN])|(?<=[zvY])B|(?<=[zY])n(?=[atN]))"
    "(?![IHM])"
)
_BEHIND_JOINT: Final = re.compile(rf"([,;)cbwR-]j*)(?:W|v(?={_O}|[nzG])|z(?=[atN]))(?![IHM])")
_MAIN: Final = re.compile(r"((?:[^IHMFRs]|[Rs][^IHMFf]*[IHMFf])+?)[IHMF]")
_GROUP: Final = re.compile(r"(?:(M[IHMjk]*)[EeGBvnf]?|([IH][IHMjk]*)[EeG]?|F)")
_SUBJECT: Final = re.compile(
    r"(?:(?:[Pp][^,]*|j|Pn),|pN|j)*(?![PpRsBqo]|j+B|G..|j*$)[^,;()IHMFfb]{1,10}(?<![co])"
)
_NAME: Final = re.compile(r"[atd]?X(?:[Xqt]*X)?$")
_NOUN: Final = re.compile(
    r"(?:[atd]N?|N|(?<=[PpFHqT])(?=[nBGE]{0,3}[nzvB]$))(?:(?![IHMFRsPpTcbojq,;:()-]).){0,5}$"
)
_PREDICATE: Final = re.compile(rf"j*(?:[IHMf]|E(?:{_O}|T|$))")
_THING: Final = re.compile(rf"a[^IHMFRsco,;(]*?(?:(?=Rj*[IHMFf])|(?<=[nXzGvB])(?=j?[eEF][Ppq]|G{_O}))")

Words = list[str]


class _Sentence:
    """Words, the letters of their kinds, where the verb is, its auxiliaries, and where the verbs end."""

    def __init__(self, words: Words) -> None:
        self.words, self.kinds = words, _kinds(words)
        if not _MAIN.match(self.kinds):  # a verb that isn't known
            self.kinds = re.sub("^([^IHMFz,]*[nX](?=z[atdpPNX])|z[^IHMF,]*?(?=B))[zB]", r"\1F", self.kinds)
        found = _MAIN.match(self.kinds)
        self.verb = found.end(1) if found else len(words)
        group = _GROUP.match(self.kinds, self.verb)
        self.aux = words[self.verb : max(group.end(1), group.end(2), self.verb)] if group else []
        self.end = group.end() if group else 0
        self.subject = words[: self.verb]
        self.whole = bool(found and _SUBJECT.fullmatch(found[1]))

    def low(self, at: int) -> str:
        """The word there, without capitals; empty beyond the end."""
        return self.words[at].lower() if at < len(self.words) else ""

    def be(self, phrase: Words, said: Words | None = None) -> str:
        """The form of "be" for what is ``said`` of ``phrase`` beside this clause."""
        verb, last = self.low(self.verb), phrase[-1]
        past = verb in {"was", "were", "had", "did"} or _kind(verb, 1) in {"E", "W"} or _of_a_year(said or [])
        plural = _kind(last.lower(), 1) == "Y" or (last.islower() and _kind(last, 1) in {"z", "v"})
        return ("were" if plural else "was") if past else ("are" if plural else "is")


def statements_in(text: str) -> list[str]:
    """The statements of a sentence, in about their order; ``[text]`` if it is one, or can't be cut surely."""
    words = _WORD.findall(text.strip().rstrip("."))
    if len(words) > _MOST_WORDS or text.rstrip().endswith("?"):
        return [text]
    found = _cut(words)
    return [_written(each) for each in found] if len(found) > 1 else [text]


def _cut(words: Words, depth: int = 0) -> list[Words]:
    s = _Sentence(words)
    first = words.index(",") + 1 if re.match("[jP].?,", s.kinds) else 0
    asks = s.low(0) in _W["verbs"] and re.match(".[PpatdTj]", s.kinds)
    if depth < _DEEPEST and not asks and not {s.low(0), s.low(first)} & _W["conditions"]:
        for rule in (_conceded, _fronted, _beside, _joined, _described, _placed):
            if pieces := rule(s):
                return [each for piece in pieces for each in _cut(piece, depth + 1)]
    return [words]


def _written(words: Words) -> str:
    text = re.sub(r" (?=[,;:)])", "", " ".join(words)).replace("( ", "(").strip(" ,;:")
    return text[:1].upper() + text[1:] + ("" if text.endswith("!") else ".")


def _kind(word: str, at: int) -> str:
    low = word.lower()
    if low.endswith(("'s", "’s", "s'", "s’")):
        return "g"
    if at and word[0].isupper() and word != "I":
        return "X"
    if low in _KINDS:
        return _KINDS[low]
    if len(word) == 1 and not word.isalnum():
        return "-" if word in "–—" else word
    if low.lstrip("$€£¥")[:1].isdigit():
        return "N"
    if at and low in _W["verbs"]:
        return "B"
    if "-" in word or len(low) < 4:
        return "n"
    if low.endswith("ly"):
        return "j"
    if low.endswith(("ed", "ing")):
        return "E" if low.endswith("ed") else "G"
    if low.endswith("s") and not low.endswith(("ss", "us", "is")):
        return "v" if at and stem(low) in _VERBS and not low.endswith("ings") else "z"
    return "n"


def _kinds(words: Words) -> str:
    """The letters of the words: F for verbs with a subject, f for those that begin a predicate."""
    kinds = "".join(_kind(word, at) for at, word in enumerate(words))
    return _VERB.sub("F", _BEHIND_JOINT.sub(r"\1f", re.sub("(Rj*)[zEBvW]", r"\1f", kinds)))


def _of_a_year(words: Words) -> bool:
    return any(map(_YEAR.fullmatch, words))


def _dated(words: Words) -> bool:
    return all(word in _W["months"] or _YEAR.fullmatch(word) or _DAY.fullmatch(word) for word in words)


def _own(words: Words) -> Words:
    """A subject without what stands before it: "In 2010, the bridge"."""
    own = words[len(words) - words[::-1].index(",") :] if "," in words else words
    return own[2:] if re.match("pN", _kinds(own)) else own


def _phrase(s: _Sentence) -> Words:
    """The noun phrase at the end; none if it can't be told."""
    found = _NAME.search(s.kinds) or _NOUN.search(s.kinds)
    phrase = s.words[found.start() :] if found else []
    if not found or s.kinds[: found.start()].endswith(("c", "o")) or _dated(phrase):
        return []
    return ["the", *phrase[1:]] if phrase[0].lower() in {"a", "an"} else phrase


# -------------------------------------------------------------------------------------------------- rules


def _conceded(s: _Sentence) -> list[Words]:
    """Although this, that."""
    at = s.words.index(",") if "," in s.words else 0
    both = [s.words[1:at], s.words[at + 1 :]]
    concedes = at and s.low(0) in {"although", "though", "while", "whereas"}
    return both if concedes and all(_Sentence(each).whole for each in both) else []


def _fronted(s: _Sentence) -> list[Words]:
    """Founded in 1995, it …; A physicist by training, she …"""
    front = re.match(r"(?:j?[eE][^:]*?|j?G[^IHMF:]*?|a[^IHMF:]*?)(?=,)", s.kinds)
    said, rest = (
        s.words[: front.end() if front else 0],
        _Sentence(s.words[front.end() + 1 :] if front else []),
    )
    if not rest.whole or s.words[:2] == ["Based", "on"] or s.low(0) in {"given", "provided", "compared"}:
        return []
    be = rest.be(rest.subject, said if s.kinds[0] in "eE" else [])
    return [[*rest.subject, be, said[0].lower(), *said[1:]], rest.words]


def _beside(s: _Sentence) -> list[Words]:
    """What is said beside the clause: between commas, dashes or brackets, or behind one."""
    for mark in re.finditer("[,(-]", s.kinds):
        at, left = mark.start(), _Sentence(s.words[: mark.start()])
        inside = s.verb > at  # between the subject and its verb
        closing = {"(": r"\)", "-": "-"}.get(mark[0], f",(?=j*[IHMFf]|j*E{_O})" if inside else ",(?=[cbw])")
        ends = [found.start() for found in re.finditer(closing, s.kinds) if found.start() > at + 1]
        if mark[0] != "(" and not inside and at + 1 < len(s.words):
            ends.append(len(s.words))
        for end in ends:
            rest = s.words[end + (inside or mark[0] != ",") :]
            clause = _Sentence([*left.words, *rest])
            sound = clause.whole and (inside or not rest or mark[0] != "," or _joined(clause))
            aside = s.words[at + 1 : end], s.kinds[at + 1 : end]
            if sound and (told := _told(left, *aside, clause, inside)):
                return [clause.words, told]
    return []


def _told(left: _Sentence, aside: Words, kinds: str, clause: _Sentence, inside: bool) -> Words:
    """The sentence that an aside makes; none if it makes none."""
    subject, first = _own(clause.subject), aside[0].lower()
    several = "G" in left.kinds or _joined(left)
    if re.match("j?G[^c,]", kinds) and not (several or _MAIN.match(kinds, 1)):
        return [*subject, clause.be(subject), *aside[2 if aside[1:2] == ["it"] else 0 :]]
    if re.match("PN", kinds) and first == "with":
        return [*subject, "had" if clause.be(subject)[0] == "w" else "has", *aside[1:]]
    if kinds[0] == left.kinds[left.end : left.end + 1] == "p" and not _of_a_year(left.words):
        return [*left.words[: left.end], *aside]  # in London, in the centre
    phrase = subject if inside and not re.match("[Pp]", _kinds(subject)) else _phrase(left)
    if not phrase:
        return []
    own, be = _MAIN.match(kinds[1:]), clause.be(phrase, aside)
    if first in {"which", "who"} and (predicate := re.match("Rj*[IHMFf]", kinds)):
        plural = clause.be(phrase) in {"are", "were"}
        verb = aside[predicate.end() - 1]
        many = not verb.endswith("s") and (plural or verb in {"are", "were", "have"} or _kind(verb, 1) == "B")
        sure = many == plural and not {*aside[1:3]} & _W["of_all"]
        return [*phrase, *aside[1:]] if inside or sure else []
    if first in {"which", "who"}:  # that somebody does
        by = _Sentence(aside[1:])
        return [*by.words[: by.end], *phrase, *by.words[by.end :]] if by.whole else []
    if first == "whose" and own:
        return [*phrase[:-1], f"{phrase[-1]}'s", *aside[1:]]
    if first == "where" and own:
        placed = inside or left.kinds[-1] == "X" or left.kinds[: -len(phrase)].endswith("p")
        return ["in", *phrase, ",", *aside[1:]] if placed else []
    if re.match(rf"j?[eE](?:{_O}|q|T|$)", kinds) and first not in {"given", "compared"}:
        return [*phrase, be, *aside]
    named = re.fullmatch("X{1,4}|X+cX+", kinds) and re.match("[atd]" if inside else "N", _kinds(phrase))
    apposed = re.match("j?[atg]", kinds) or first in {"one", "home"}
    listed = _MAIN.match(kinds) or re.search("[co][atd]|,[co]", kinds)
    return [*phrase, clause.be(phrase), *aside] if named or (apposed and not listed) else []


def _joined(s: _Sentence) -> list[Words]:
    """It does this and does that; it does this, but that does so."""
    for joint in re.finditer("(,?)([cbw;,])(?![cbw])", s.kinds[s.verb :]) if s.whole else ():
        left, at = s.words[: s.verb + joint.start()], s.verb + joint.end()
        clauses = (
            n for n in range(s.end, at - 1) if s.kinds[n] in "Rs" or s.low(n) in {"until", "as", "once"}
        )
        dependent = any(re.search("[RsIHMF]", s.kinds[n:at]) for n in clauses)
        apart = joint[1] and s.kinds[at : at + 1] in {*"adtiYX"}
        paired = any(
            each in {"between", "both", "either"} and "and" not in left[n:] for n, each in enumerate(left)
        )
        during = joint[0] == "w" and s.low(at - 1) == "while"
        if paired or at == len(s.words) or (not apart and (dependent or during)):
            continue
        if second := _second(_Sentence(left), s.words[at:], s.kinds[at:], joint, dependent):
            return [left, second]
    return []


def _second(left: _Sentence, right: Words, kinds: str, joint: re.Match[str], dependent: bool) -> Words:
    """What stands behind a joint, as a sentence; none if it is part of what stands before."""
    begins, own = _PREDICATE.match(kinds), _MAIN.match(kinds)
    if own and not begins and joint[2] != "," and _SUBJECT.fullmatch(own[1]):
        named, kind = re.match("j*[atdiYX]", kinds), _kind(right[own.end(1)], 1)
        after = f"{_O}|T|$" if named and joint[1] else "[atdiYjNX]|$"
        sure = kind not in "Ev" or (kind == "v" and named) or re.match(after, kinds[own.end() :])
        return right if sure else []
    if not left.subject or dependent or joint[2] in "w;" or (joint[2] == "," and "c" not in kinds):
        return []
    subject, aux, held = left.subject, left.aux, left.low(left.verb)
    modal, be = left.kinds[left.verb : left.verb + 1] == "M", _KINDS.get(held) == "I"
    if re.match("j*[IHM]", kinds):
        return [*subject, *right]
    if left.end >= len(left.words) or re.search("[MT]j*[^atdNX]$", left.kinds):
        return []  # what follows belongs to both
    if aux and re.match(rf"j*[eE](?:{_O}|[qT,c]|$)", kinds):
        first = right[len(kinds) - len(kinds.lstrip("j"))].lower()
        active = be and (first in _W["active"] or re.match("j*E[atdiN]", kinds))
        return [*subject, *([] if active else aux[:1] if be else aux), *right]
    if begins and not (
        kinds.lstrip("j")[0] == "f" and (held in {"are", "were", "have"} or held in _W["verbs"])
    ):
        return [*subject, *right]
    if re.match(f"j*(?:B(?:{_O}|[nz])|n[atd])", kinds):
        to = re.search("(.)(.)T[Bv](?!.*T[Bv])", left.kinds)
        if to:
            return [*left.words[: to.end() - 1], *right] if to[1] not in "atd" else []
        if held in {"are", "were", "have"}:
            return [*subject, *right]
        return [*subject, *aux, *right] if modal or held in _W["verbs"] else []
    if be and kinds[0] == "a" and left.end == left.verb + len(aux):
        return [*subject, aux[0], *right]
    return _objects(left, right, kinds)


def _objects(left: _Sentence, right: Words, kinds: str) -> Words:
    """It has 5 rooms and 3 halls; it won the cup in 1998 and the league in 2004."""
    begins = re.search("[atN]", left.kinds[left.end :])
    if not begins or not re.match("N(?!N).|[at].*N", kinds):
        return []
    at = left.end + begins.start()
    bound = {"from", "to", "than", "of"} & set(left.words[left.end :])
    counts = "N" in left.kinds[at:] and not (kinds[0] == "N" and left.kinds[-1] == "N")
    return [*left.words[:at], *right] if counts and not bound else []


def _described(s: _Sentence) -> list[Words]:
    """It is a thing that does this; it has a thing made by them."""
    after = s.verb + 1 + (s.kinds[s.verb + 1 : s.verb + 2] == "j")
    found = None if s.kinds[s.verb : s.verb + 1] in {"M", ""} else _THING.match(s.kinds, after)
    if not found or s.low(0) == "there" or (s.low(0), s.low(s.verb)) == ("it", "was"):
        return []
    thing = s.subject if s.kinds[s.verb] == "I" else ["the", *s.words[found.start() + 1 : found.end()]]
    more, kind = s.words[found.end() :], s.kinds[found.end()]
    of = more[1:2] == ["of"] and more[0] not in {"made", "composed"}
    if of or more[0] == "compared" or (kind == "F" and _kind(more[0], 1) != "E"):
        return []
    return [s.words[: found.end()], [*thing, *(more[1:] if kind == "R" else [s.be(thing, more), *more])]]


def _placed(s: _Sentence) -> list[Words]:
    """It was held in a place at a time, or at a time in a place."""
    found = re.compile("[nB]?p([^pP]+)(p[^pP]+)$").match(s.kinds, s.end)
    if not found or not s.whole:
        return []
    first, at = found.start(1) - 1, found.start(2)
    phrases = s.words[first + 1 : at], s.words[at + 1 :]
    dated = [_dated(each) for each in phrases]
    if dated[0] == dated[1] or "X" not in _kinds(["", *phrases[dated[0]]]):
        return []
    return [s.words[:at], [*s.words[:first], *s.words[at:]]]
