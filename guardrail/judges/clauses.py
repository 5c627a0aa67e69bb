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
_KINDS: Final = {word: kind for kind, words in _data["kinds"].items() for word in words.split()}
_W: Final = {name: frozenset(words.split()) for name, words in _data.items() if name != "kinds"}
_VERBS: Final = frozenset(map(stem, _W["verbs"]))
_BE: Final = frozenset(_data["kinds"]["I"].split())
_NOUNS: Final = frozenset(map(stem, _W["nouns"]))
_WORD: Final = re.compile(r"[^\s,;:()—–]+(?:[,:](?=\d)[^\s,;:()—–]+)*|[,;:()—–]")
_YEAR: Final = re.compile(r"(?:1\d|20)\d\d")
_DAY: Final = re.compile(r"\d{1,2}(?:st|nd|rd|th)?|,")
_MOST_WORDS: Final = 100
_DEEPEST: Final = 8

# Letters that stand for several words, in patterns: an object or a place begins; verbs; "(not) also".
_O: Final = "(?:[atdijPpNX]|T(?=[XNatd]))"
_FINITE: Final = "[IHMF]"
_SETS_IN: Final = "j*[IHMFf]"  # a predicate, behind a joint
_MAIN: Final = re.compile(rf"((?:[^IHMFRs]|[Rs][^IHMFf]*[IHMFf])+?)({_FINITE})")
_GROUP: Final = re.compile(r"(M[IHMjk]*)[EeGBvVnf]?|([IH][IHMjk]*)[EeG]?|F")
_SUBJECT: Final = re.compile(
    r"(?:(?:[Pp][^,]*|j|Pn),|pN|j)*(?![PpRsBqo]|G..|j*$)[^,;()IHMFfb]{1,10}(?<![co])"
)
_NAME: Final = re.compile(r"[atd]?X(?:[Xqt]*X)?$")
_NOUN: Final = re.compile(
    r"(?:[atd]N?|N|(?<=[PpFHq])(?=[nBGE]{0,3}[nzvB]$))(?:(?![IHMFRsPpTcbojq,;:()-]).){0,5}$"
)

Words = list[str]


class _Sentence:
    """Words, and the letters of their kinds."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self.kinds = _kinds(words)
        if not (found := _MAIN.match(self.kinds)):  # a verb that isn't known
            self.kinds = re.sub("^([^IHMFz,]*[nX])z(?=[atdpPNX])", r"\1F", self.kinds)
            found = _MAIN.match(self.kinds)
        self.verb = found.end(1) if found else None
        """Where its verb is, behind the subject."""
        self.aux: Words = []
        """Auxiliaries from there on."""
        self.end = 0
        """Where the verbs end."""
        if self.verb is not None and (group := _GROUP.match(self.kinds, self.verb)):
            self.aux = words[self.verb : max(group.end(1), group.end(2), self.verb)]
            self.end = group.end()

    @property
    def subject(self) -> Words:
        return self.words[: self.verb]

    @property
    def whole(self) -> bool:
        """Whether it is a clause: a subject and its verb."""
        return self.verb is not None and _SUBJECT.fullmatch(self.kinds[: self.verb]) is not None

    def low(self, at: int) -> str:
        """The word there, without capitals; empty beyond the end."""
        return self.words[at].lower() if at < len(self.words) else ""

    def be(self, phrase: Words, *, of_year: bool = False) -> str:
        """The form of "be" for what is said of ``phrase`` beside this clause."""
        word = self.low(self.verb or 0)
        past = (
            of_year
            or word in {"was", "were", "had", "did"}
            or (_kind(word, 1) in {"E", "W"} and not word.endswith("s"))
        )
        last = phrase[-1]
        plural = last.lower() in {"they", "we", "you"} or (
            last.islower() and last.endswith("s") and last[-2:] != "ss"
        )
        return ("were" if plural else "was") if past else ("are" if plural else "is")


def statements_in(text: str) -> list[str]:
    """The statements of a sentence, in about their order; ``[text]`` if it is one, or can't be cut surely."""
    words = _WORD.findall(text.strip().rstrip("."))
    if len(words) > _MOST_WORDS or text.rstrip().endswith("?"):
        return [text]
    found = _cut(words)
    return [_written(each) for each in found] if len(found) > 1 else [text]


def _cut(words: Words, depth: int = 0) -> list[Words]:
    sentence = _Sentence(words)
    first = words.index(",") + 1 if re.match("[jP].?,", sentence.kinds) else 0
    if depth < _DEEPEST and not {sentence.low(0), sentence.low(first)} & _W["conditions"]:
        for rule in (_conceded, _fronted, _beside, _joined, _described, _placed):
            if pieces := rule(sentence):
                return [each for piece in pieces for each in _cut(piece, depth + 1)]
    return [words]


def _written(words: Words) -> str:
    text = re.sub(r" (?=[,;:)])", "", " ".join(words)).replace("( ", "(").strip(" ,;:")
    return text[:1].upper() + text[1:] + ("" if text.endswith("!") else ".")


# -------------------------------------------------------------------------------------------------- kinds


def _kind(word: str, at: int) -> str:
    low = word.lower()
    if low.endswith(("'s", "’s", "s'", "s’")):
        return "g"
    if at and word[0].isupper():
        return "i" if word == "I" else "X"
    if known := _KINDS.get(low):
        return str(known)
    if len(word) == 1 and not word.isalnum():
        return "-" if word in "–—" else word
    if low.lstrip("$€£¥")[:1].isdigit():
        return "N"
    if "-" in word:
        return "n"
    if low.endswith("ly") and len(low) > 4 and low not in _W["verbs"]:
        return "j"
    if low.endswith("ed") and len(low) > 3:
        return "E"
    if low.endswith("ing") and len(low) > 4:
        return "G"
    known_verb, known_noun = stem(low) in _VERBS, stem(low) in _NOUNS
    if low.endswith("s") and not low.endswith(("ss", "us", "is")):
        return "z" if not at or not known_verb or low.endswith("ings") else "v" if known_noun else "V"
    return "B" if at and low in _W["verbs"] else "n"


_NO_VERB: Final = r"(?<![atdPpTIHMqgcbow,;])(?<![atdPpcbow,;]j)"  # nothing before it that takes a noun
_REDUCED: Final = "(?![Pp][^,;cbowRs]*[IHMVW])"  # "the song written by him is"
_VERB: Final = re.compile(
    rf"{_NO_VERB}(?<!^)(?:[VW]|v(?={_O}|n)|E{_REDUCED}|z(?=[atN])|(?<=[zvVY])B(?![IHM]))(?![IHM])"
)
_BEHIND_JOINT: Final = re.compile(rf"([,;)cbwR-]j*)(?:[VW]|v(?={_O}|n(?![cR]))|z(?=[atN]))(?![IHM])")
_RELATIVE: Final = re.compile(r"(Rj*)[zEBVW]")


def _kinds(words: Words) -> str:
    """The kinds of words, with verbs that have a subject as F, and those that begin a predicate as f."""
    kinds = "".join(_kind(word, at) for at, word in enumerate(words))
    kinds = "".join(
        "Y" if word.lower() in _W["plurals"] else kind for word, kind in zip(words, kinds, strict=True)
    )
    kinds = _RELATIVE.sub(r"\1f", kinds)
    kinds = _BEHIND_JOINT.sub(r"\1f", kinds)
    return _VERB.sub("F", kinds).replace("Y", "i")


# -------------------------------------------------------------------------------------------------- rules


def _conceded(s: _Sentence) -> list[Words]:
    """Although this, that."""
    if s.low(0) not in {"although", "though", "while", "whereas"} or "," not in s.words:
        return []
    at = s.words.index(",")
    first, second = s.words[1:at], s.words[at + 1 :]
    return [first, second] if _Sentence(first).whole and _Sentence(second).whole else []


def _fronted(s: _Sentence) -> list[Words]:
    """Founded in 1995, it …; A physicist by training, she …"""
    front = re.match(r"(?:j?[eE][^:]*?|j?G[^IHMF:]*?|a[^IHMF:]*?)(?=,)", s.kinds)
    if front is None or s.words[:2] == ["Based", "on"] or s.low(0) in {"given", "provided", "compared"}:
        return []
    said, rest = s.words[: front.end()], _Sentence(s.words[front.end() + 1 :])
    if not rest.whole:
        return []
    be = rest.be(rest.subject, of_year=s.kinds[0] in "eE" and any(map(_YEAR.fullmatch, said)))
    return [[*rest.subject, be, said[0].lower(), *said[1:]], rest.words]


def _beside(s: _Sentence) -> list[Words]:
    """What is said beside the clause: between commas, dashes or brackets, or behind one."""
    for mark in re.finditer("[,(-]", s.kinds):
        at, left = mark.start(), _Sentence(s.words[: mark.start()])
        behind_subject = s.verb is None or s.verb > at
        closing = mark[0] if mark[0] != "(" else r"\)"
        if mark[0] == ",":
            closing += rf"(?={_SETS_IN}|j*E{_O})" if behind_subject else "(?=[cbw])"
        ends = [found.start() for found in re.finditer(closing, s.kinds)]
        if mark[0] != "(" and not behind_subject:
            ends.append(len(s.words))
        for end in ends:
            if end <= at + 1:
                continue
            rest = s.words[end + (behind_subject or mark[0] != ",") :]
            clause = _Sentence([*left.words, *rest])
            if not clause.whole or (rest and not behind_subject and not _joined(clause) and mark[0] == ","):
                continue
            if told := _told(left, s.words[at + 1 : end], s.kinds[at + 1 : end], clause, behind_subject):
                return [clause.words, told]
    return []


def _told(left: _Sentence, aside: Words, kinds: str, clause: _Sentence, behind_subject: bool) -> Words:
    """The sentence that an aside makes; none if it makes none."""
    subject, first = _own(clause.subject), aside[0].lower()
    phrase = subject if behind_subject and not re.match("[Pp]", _kinds(subject)) else _phrase(left)
    inner = _MAIN.match(kinds, 1)
    if re.match("j?G[^c,]", kinds) and not inner and "G" not in left.kinds and "such" not in left.words:
        return [*subject, clause.be(subject), *(aside[2:] if aside[1:2] == ["it"] else aside)]
    if re.match("PN", kinds) and first == "with":
        return [*subject, "had" if clause.be(subject)[0] == "w" else "has", *aside[1:]]
    if (
        kinds[0] == "p"
        and left.kinds[left.end : left.end + 1] == "p"
        and not any(map(_YEAR.fullmatch, left.words))
    ):
        return [*left.words[: left.end], *aside]  # in London, in the centre
    if not phrase:
        return []
    be = clause.be(phrase)
    if first in {"which", "who"}:
        if predicate := re.match(rf"R({_SETS_IN})", kinds):
            verb = aside[predicate.end() - 1]
            many = {"V": False, "v": False, "z": False, "B": True}.get(_kind(verb, 1), be in {"are", "were"})
            sure = many == (be in {"are", "were"}) and not {*aside[1:3]} & _W["of_all"]
            return [*phrase, *aside[1:]] if behind_subject or sure else []
        relative = _Sentence(aside[1:])
        return [*aside[1 : relative.end + 1], *phrase, *aside[relative.end + 1 :]] if relative.whole else []
    if first == "whose" and _MAIN.match(kinds[1:]):
        return [*phrase[:-1], f"{phrase[-1]}'s", *aside[1:]]
    placed = behind_subject or left.kinds[-1] == "X" or left.kinds[: -len(phrase)].endswith("p")
    if first == "where" and placed and _MAIN.match(kinds[1:]):
        return ["in", *phrase, ",", *aside[1:]]
    if re.match(rf"j?[eE](?:{_O}|q|T|$)", kinds) and first != "given":
        return [*phrase, "was" if any(map(_YEAR.fullmatch, aside)) else be, *aside]
    if _MAIN.match(kinds) or re.search("[co][atd]|,[co]", kinds):
        return []
    named = behind_subject and re.match("[atd]", _kinds(phrase)) and re.fullmatch("X{1,4}", kinds)
    return [*phrase, be, *aside] if named or re.match("j?[atg]", kinds) or first == "one" else []


def _own(words: Words) -> Words:
    """A subject without what stands before it: "In 2010, the bridge"."""
    own = words[len(words) - words[::-1].index(",") :] if "," in words else words
    return own[2:] if re.match("pN", _kinds(own)) else own


def _phrase(left: _Sentence) -> Words:
    """The noun phrase at the end; none if it can't be told."""
    found = _NAME.search(left.kinds) or _NOUN.search(left.kinds)
    phrase = left.words[found.start() :] if found else []
    if not found or left.kinds[: found.start()].endswith(("c", "o")) or all(map(_dated, phrase)):
        return []
    return ["the", *phrase[1:]] if phrase[0].lower() in {"a", "an"} else phrase


def _dated(word: str) -> bool:
    return word in _W["months"] or bool(_YEAR.fullmatch(word) or _DAY.fullmatch(word))


def _joined(s: _Sentence) -> list[Words]:
    """It does this and does that; it does this, but that does so."""
    if s.verb is None or not s.whole:
        return []
    bound = next(
        (n for n in range(s.end, len(s.words)) if s.kinds[n] in "Rs" or s.low(n) in {"until", "as", "once"}),
        len(s.words),
    )
    for joint in re.finditer("(,?)([cbw;,])(?![cbw])", s.kinds[s.verb :]):
        left, at = s.words[: s.verb + joint.start()], s.verb + joint.end()
        free = (at < bound and (joint[0] != "w" or s.low(at - 1) != "while")) or (
            joint[1] and s.kinds[at : at + 1] in {*"adtiX"}
        )
        paired = any(
            each in {"between", "both", "either"} and "and" not in left[n:] for n, each in enumerate(left)
        )
        if not free or paired or at == len(s.words):
            continue
        if second := _second(_Sentence(left), s.words[at:], s.kinds[at:], joint, at < bound):
            return [left, second]
    return []


def _second(left: _Sentence, right: Words, kinds: str, joint: re.Match[str], inside: bool) -> Words:
    """What stands behind a joint, as a sentence; none if it is part of what stands before."""
    if left.verb is None:
        return []
    begins, own = re.match(rf"j*(?:[IHMf]|E(?:{_O}|T|$))", kinds), _MAIN.match(kinds)
    if own and not begins and joint[2] != "," and _SUBJECT.fullmatch(own[1]):
        past = right[own.end(1)].endswith("ed") or _kind(right[own.end(1)], 1) == "E"
        certain = r"[atdijNX]|$" if joint[0] == "c" else rf"{_O}|T|$"
        return right if not past or re.match(certain, kinds[own.end() :]) else []
    if not inside or joint[2] in "w;" or (joint[2] == "," and "c" not in kinds):
        return []
    subject, aux, held = left.subject, left.aux, left.low(left.verb)
    if re.match("j*[IHM]", kinds):
        return [*subject, *right]
    if left.end >= len(left.words) or re.search("[MT]j*[^atdNX]$", left.kinds):
        return []  # what follows belongs to both
    if aux and re.match(rf"j*[eE](?:{_O}|[qT,c]|$)", kinds):
        first = right[len(kinds) - len(kinds.lstrip("j"))].lower()
        if held in _BE and (first in _W["active"] or re.match("j*E[atdiN]", kinds)):
            return [*subject, *right]
        return [*subject, *(aux[:1] if held in _BE else aux), *right]
    if begins and not (re.match("j*f", kinds) and (held in {"are", "were", "have"} or held in _W["verbs"])):
        return [*subject, *right]
    if re.match(f"j*(?:B{_O}|n[atd])", kinds):
        to = re.search("T[Bv](?!.*T[Bv])", left.kinds[left.end :])
        if to:
            return (
                [*left.words[: left.end + to.start() + 1], *right]
                if left.kinds[left.end + to.start() - 2] not in "atd"
                else []
            )
        return [*subject, *aux, *right] if held in _W["verbs"] or left.kinds[left.verb] == "M" else []
    if aux and held in _BE and kinds[0] == "a" and left.end == left.verb + len(aux):
        return [*subject, aux[0], *right]
    return _objects(left, right, kinds)


def _objects(left: _Sentence, right: Words, kinds: str) -> Words:
    """It has 5 rooms and 3 halls; it won the cup in 1998 and the league in 2004."""
    begins = re.search("N" if kinds[0] == "N" else "[at]", left.kinds[left.end :])
    alike = re.match(r"N(?!N).|[at].*N", kinds)
    if not begins or not alike or {"from", "to", "than", "of"} & set(left.words[left.end :]):
        return []
    at = left.end + begins.start()
    counts = "N" in left.kinds[at:] and not (kinds[0] == "N" and left.kinds[-1] == "N")
    return [*left.words[:at], *right] if counts else []


def _described(s: _Sentence) -> list[Words]:
    """It is a thing that does this; it has a thing made by them."""
    if (
        s.verb is None
        or s.kinds[s.verb] == "M"
        or s.low(0) == "there"
        or (s.low(0), s.low(s.verb)) == ("it", "was")
    ):
        return []
    found = re.compile(rf"a[^IHMFRsco,;(]*?(?:(?=R{_SETS_IN})|(?<=[nXzGvB])(?=j?[eEF][Pp]|G{_O}))").match(
        s.kinds, s.verb + 1 + (s.kinds[s.verb + 1 : s.verb + 2] == "j")
    )
    if (
        not found
        or s.words[found.end()] == "compared"
        or (s.kinds[found.end()] == "F" and _kind(s.words[found.end()], 1) != "E")
    ):
        return []
    thing = s.subject if s.low(s.verb) in _BE else ["the", *s.words[found.start() + 1 : found.end()]]
    more = s.words[found.end() :]
    if s.kinds[found.end()] == "R":
        return [s.words[: found.end()], [*thing, *more[1:]]]
    return [s.words[: found.end()], [*thing, s.be(thing, of_year=any(map(_YEAR.fullmatch, more))), *more]]


def _placed(s: _Sentence) -> list[Words]:
    """It was held in a place at a time, or at a time in a place."""
    found = re.compile("[nB]?p([^pP]+)(p[^pP]+)$").match(s.kinds, s.end) if s.verb else None
    if not found:
        return []
    at = found.start(2)
    first = found.start(1) - 1
    phrases = s.words[first + 1 : at], s.words[at + 1 :]
    dated = [all(map(_dated, each)) for each in phrases]
    if dated[0] == dated[1] or "X" not in _kinds(["", *phrases[dated[0]]]):
        return []
    return [s.words[:at], [*s.words[:first], *s.words[at:]]]
