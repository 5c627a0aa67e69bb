"""The statements of an English sentence: its coordinated and relative clauses, appositions and participles,
each as a sentence of its own with its subject.

Sentences are cut by a few words of grammar and the order of words. Where these leave doubt a sentence stays
whole: what only identifies ("the customer who cancels"), conditions, comparisons, and lists within a clause.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from guardrail.evidence.tokens import stem
from guardrail.shipped import shipped_yaml

_data: Final[dict[str, str]] = shipped_yaml("guardrail.judges", "clauses.yaml")
_W: Final = {name: frozenset(words.split()) for name, words in _data.items()}
_VERBS: Final = frozenset(map(stem, _W["verbs"]))
_NOUNISH: Final = frozenset(map(stem, _W["nounish"]))
_BE: Final = _W["be"]
_MODALS: Final = _W["modals"]
_AUX: Final = _BE | _W["have"] | _MODALS
_NO_VERB_AFTER: Final = (_W["determiners"] - _W["quantities"]) | _W["prepositions"] | _AUX | {"to"}
_ALSO: Final = frozenset({"and", "but", "yet"})
_BESIDE: Final = frozenset({"while", "whereas", ";"})
_PLACING: Final = frozenset({"in", "at", "on", "near"})
_PAIRED: Final = frozenset({"between", "both", "either"})
_GENITIVE: Final = ("'s", "’s", "s'", "s’")
_TOKEN: Final = re.compile(r"[^\s,;:()—–]+(?:[,:](?=\d)[^\s,;:()—–]+)*|[,;:()—–]")
_YEAR: Final = re.compile(r"(?:1\d|20)\d\d")
_DATE: Final = re.compile(r"(?:1\d|20)\d\d|\d{1,2}(?:st|nd|rd|th)?|,")
_MOST_WORDS: Final = 100
_DEEPEST: Final = 8

Words = list[str]


def statements_in(text: str) -> list[str]:
    """The statements of a sentence, in about their order; ``[text]`` if it is one, or can't be cut surely."""
    words = _TOKEN.findall(text.strip().rstrip("."))
    if len(words) > _MOST_WORDS or text.rstrip().endswith("?"):
        return [text]
    found = _cut(words)
    return [_sentence(each) for each in found] if len(found) > 1 else [text]


def _cut(words: Words, depth: int = 0) -> list[Words]:
    if depth < _DEEPEST and not _conditional(words):
        for rule in (_conceding, _fronted, _asides, _coordinated, _described, _placed):
            if pieces := rule(words):
                return [each for piece in pieces for each in _cut(piece, depth + 1)]
    return [words]


def _sentence(words: Words) -> str:
    text = re.sub(r" (?=[,;:)])", "", " ".join(words)).replace("( ", "(").strip(" ,;:")
    return text[:1].upper() + text[1:] + ("" if text.endswith("!") else ".")


# ----------------------------------------------------------------------------------------- words and verbs


def _low(words: Words, at: int) -> str:
    word = words[at] if 0 <= at < len(words) else ""
    return word if word == "May" else word.lower()


def _is(words: Words, at: int, *kinds: str) -> bool:
    return any(_low(words, at) in _W[kind] for kind in kinds)


def _regular(word: str) -> bool:
    return word.endswith("ed") and len(word) > 3 and "-" not in word and word not in _W["not_ed"]


def _past(word: str) -> bool:
    return word in _W["past"] or word in _W["both"] or _regular(word)


def _participle(word: str) -> bool:
    return word in _W["participles"] or word in _W["both"] or _regular(word)


def _gerund(word: str) -> bool:
    return word.endswith("ing") and len(word) > 4 and "-" not in word and word not in _W["not_ing"]


def _singular(word: str) -> bool:
    """Whether it may be a verb in the third person: "costs"."""
    return word.endswith("s") and not word.endswith(("ss", "us", "is", "ings")) and stem(word) in _VERBS


def _adverb(words: Words, at: int) -> bool:
    return _is(words, at, "adverbs") or (_low(words, at).endswith("ly") and len(_low(words, at)) > 4)


def _number(words: Words, at: int) -> bool:
    return _low(words, at).lstrip("$€£¥")[:1].isdigit() or _is(words, at, "numbers")


def _named(words: Words, at: int) -> bool:
    return 0 <= at < len(words) and words[at][:1].isupper()


def _opens(words: Words, at: int) -> bool:
    """Whether an object or a place begins there, as it does behind a verb and seldom behind a noun."""
    if _low(words, at) == "to":
        return _named(words, at + 1) or _number(words, at + 1) or _is(words, at + 1, "determiners")
    known = _is(words, at, "determiners", "pronouns", "prepositions") and _low(words, at) != "of"
    return known or _adverb(words, at) or _number(words, at) or _named(words, at)


def _takes_object(words: Words, at: int) -> bool:
    """Whether what could be a noun is a verb by what follows it: "runs two shops", not "runs and walks"."""
    word = _low(words, at)
    other = _regular(word) or _past(word) or stem(word) in _VERBS or _is(words, at, "subordinators", "joints")
    return word != "that" and (_opens(words, at) or (word.isalpha() and not other))


def _finite(words: Words, at: int, start: int) -> bool:
    """Whether that is the verb of a clause, which begins at ``start``."""
    word, before = _low(words, at), _low(words, at - 1) if at > start else ""
    if word in _AUX:
        return True
    if (
        before in _NO_VERB_AFTER
        or before in {"and", "or"}
        or before.endswith(_GENITIVE)
        or not words[at].islower()
    ):
        return False
    if "-" in word or _low(words, at + 1) in _AUX:
        return False
    if before and _adverb(words, at - 1) and _low(words, at - 2) in _NO_VERB_AFTER:
        return False
    if _past(word):
        return True
    if _singular(word):
        return stem(word) not in _NOUNISH or _takes_object(words, at + 1)
    if word.endswith("s") and word.islower() and not word.endswith(("ss", "us", "is", *_GENITIVE)):
        return _is(words, at + 1, "articles") or _number(words, at + 1)
    plural = before.endswith("s") and not before.endswith(("ss", "us", "is"))
    return word in _W["verbs"] and (plural or before in _W["plurals"])


def _verb(words: Words, start: int = 0) -> int | None:
    """Where the verb of the clause is that begins at ``start``, behind its subject."""
    owed, reduced = 0, None
    for at in range(start + 1, len(words)):
        word = _low(words, at)
        if word in _W["subordinators"]:
            owed += 1
        elif reduced is not None and (word in _ALSO or word in {",", ";"}):
            break
        elif _finite(words, at, start):
            if owed:
                owed -= 1
            elif word in _AUX or not _participle(word) or not _is(words, at + 1, "prepositions"):
                return at
            elif reduced is None:  # "The song written by him is …"
                reduced = at
    return reduced


def _predicate(words: Words, start: int = 0) -> bool:
    """Whether a verb begins there, maybe behind adverbs, whose subject stands elsewhere."""
    at = start
    while _adverb(words, at):
        at += 1
    relative = start > 0 and _low(words, start - 1) in {"who", "which", "that"}
    verb = _finite(words, at, at) or (
        relative and _low(words, at).endswith("s") and not _is(words, at, "pronouns")
    )
    if not verb or not _regular(_low(words, at)):
        return verb
    return at + 1 == len(words) or _opens(words, at + 1) or _low(words, at + 1) == "to"


def _group(words: Words, verb: int) -> tuple[Words, int]:
    """The auxiliaries from the verb on, and where the verbs end."""
    at = verb
    while at == verb or _is(words, at, "within") or _adverb(words, at) or _low(words, at) in _AUX:
        if _low(words, at) not in _AUX and at == verb:
            return [], verb + 1
        at += 1
    main = _low(words, at)
    follows = stem(main) in _VERBS if _low(words, verb) in _MODALS else _participle(main) or _gerund(main)
    return words[verb:at], at + follows


def _own(words: Words) -> Words:
    """A subject without what stands before it: "In 2010, the bridge"."""
    while "," in words:
        words = words[words.index(",") + 1 :]
    return words[2:] if _is(words, 0, "prepositions") and _number(words, 1) else words


def _stands_alone(words: Words) -> bool:
    """Whether that may be the subject of a clause."""
    own = _own(words)
    at = next((n for n in range(len(own)) if not _adverb(own, n)), len(own))
    return (
        at < len(own) <= 10
        and not _is(own, at, "prepositions", "subordinators", "conditions", "verbs")
        and not (_participle(_low(own, at)) or (_gerund(_low(own, at)) and len(own) > 2))
        and not {"(", ")", ";", "but"} & set(own)
        and own[-1] not in {"and", "or"}
        and ("," not in words or _is(words, 0, "prepositions") or _adverb(words, 0))
    )


def _phrase(words: Words) -> Words:
    """The noun phrase at the end; none if it can't be told."""
    at = len(words)
    while (at and _named(words, at - 1)) or (
        _low(words, at - 1) in {"of", "de", "van", "&"} and _named(words, at - 2) and at < len(words)
    ):
        at -= 1
    if at == len(words):
        while at and len(words) - at < 6 and not _ends_phrase(words, at - 1):
            at -= 1
            if _is(words, at, "determiners") or _number(words, at):
                break
    elif _is(words, at - 1, "determiners"):
        at -= 1
    if _number(words, at) and _is(words, at - 1, "determiners"):
        at -= 1
    if _low(words, at - 1) in {"and", "or"} or _adverb(words, at) or all(map(_DATE.fullmatch, words[at:])):
        return []
    return ["the", *words[at + 1 :]] if _low(words, at) in {"a", "an"} else words[at:]


def _ends_phrase(words: Words, at: int) -> bool:
    word = _low(words, at)
    verb = stem(word) in _VERBS and word not in _W["nounish"] and not word.endswith("ing")
    verb |= _low(words, at - 1) in _MODALS | {"to"} and not _opens(words, at)
    return (
        not word[:1].isalnum()
        or word in _ALSO | _AUX | {"or", "to"}
        or _is(words, at, "prepositions", "subordinators")
        or verb
    )


def _plural(phrase: Words) -> bool:
    word = phrase[-1]
    return word.lower() in {"they", "we", "you"} or (
        word.islower() and word.endswith("s") and not word.endswith("ss")
    )


def _be(words: Words, verb: int, phrase: Words, aside: Words) -> str:
    """The form of "be" for what is said of ``phrase`` beside a clause with that verb."""
    word = _low(words, verb)
    past = word in {"was", "were", "had", "did"} or (word not in _AUX and _past(word))
    past |= _participle(_low(aside, 0)) and any(map(_YEAR.fullmatch, aside))
    plural = _plural(phrase)
    return ("were" if plural else "was") if past else ("are" if plural else "is")


# --------------------------------------------------------------------------------------------------- rules


def _conditional(words: Words) -> bool:
    """Whether all of it depends on what is said first."""
    first = words.index(",") + 1 if "," in words[1:3] else 0
    return _is(words, 0, "conditions") or _is(words, first, "conditions")


def _conceding(words: Words) -> list[Words]:
    """Although this, that."""
    if _low(words, 0) not in {"although", "though", "while", "whereas"} or "," not in words:
        return []
    at = words.index(",")
    first, second = words[1:at], words[at + 1 :]
    return [first, second] if _verb(first) and _verb(second) else []


def _fronted(words: Words) -> list[Words]:
    """Founded in 1995, it …; A physicist by training, she …"""
    if "," not in words[1:]:
        return []
    at = words.index(",")
    front, rest = words[:at], words[at + 1 :]
    verb, first = _verb(rest), 1 if _adverb(front, 0) else 0
    if (
        verb is None
        or ":" in front
        or not _stands_alone(rest[:verb])
        or (_low(front, first), _low(front, first + 1)) == ("based", "on")
    ):
        return []
    said = _participle(_low(front, first)) and not _is(front, first, "given")
    said |= _gerund(_low(front, first)) and _verb(front) is None
    if said or (_low(front, 0) in {"a", "an"} and _verb(front) is None):
        return [[*rest[:verb], _be(rest, verb, rest[:verb], front), front[0].lower(), *front[1:]], rest]
    return []


def _asides(words: Words) -> list[Words]:
    """What is said beside the clause: between commas, dashes or brackets, or behind one."""
    for at in range(1, len(words) - 1):
        mark, left = words[at], words[:at]
        if mark not in {",", "(", "–", "—"}:
            continue
        behind_subject = _verb(left) is None
        for end in _ends(words, at, mark, behind_subject=behind_subject):
            rest = words[end + 1 :] if behind_subject or mark != "," else words[end:]
            whole, aside = [*left, *rest], words[at + 1 : end]
            verb = _verb(whole)
            if verb is None or not _stands_alone(whole[:verb]) or not aside:
                continue
            told = _told(left, aside, whole, verb, behind_subject=behind_subject, mark=mark)
            if told:
                return [whole, told]
    return []


def _ends(words: Words, at: int, mark: str, *, behind_subject: bool) -> Iterator[int]:
    closing = ")" if mark == "(" else mark
    for end in range(at + 2, len(words)):
        if words[end] == closing:
            joined = _low(words, end + 1) in _ALSO | _BESIDE and (
                _predicate(words, end + 2) or _verb(words[end + 2 :])
            )
            if mark == "(" or (_predicate(words, end + 1) if behind_subject else joined or mark != ","):
                yield end
    if mark != "(" and not behind_subject:
        yield len(words)


def _told(left: Words, aside: Words, whole: Words, verb: int, *, behind_subject: bool, mark: str) -> Words:
    """The sentence that an aside makes; none if it makes none."""
    subject = _own(whole[:verb])
    phrase = subject if behind_subject and not _is(subject, 0, "prepositions") else _phrase(left)
    first, own = _low(aside, 1 if _adverb(aside, 0) else 0), _verb(aside)
    if _gerund(first) and own is None and mark == "," and "such" not in left and not any(map(_gerund, left)):
        return [*subject, _be(whole, verb, subject, []), *(aside[2:] if _low(aside, 1) == "it" else aside)]
    if first == "with" and _number(aside, 1):
        return [*subject, "had" if _be(whole, verb, subject, [])[0] == "w" else "has", *aside[1:]]
    inner = _verb(left)
    if first in _PLACING and inner:  # in London, in the centre
        _, end = _group(left, inner)
        return (
            [*left[:end], *aside]
            if _low(left, end) in _PLACING and not any(map(_YEAR.fullmatch, left))
            else []
        )
    if not phrase:
        return []
    be = _be(whole, verb, phrase, aside)
    if first in {"which", "who"}:
        if _predicate(aside, 1):
            of_all = not behind_subject and (_is(aside, 1, "of_all") or _is(aside, 2, "of_all"))
            agrees = not _plural(phrase) or not (
                _singular(_low(aside, 1)) or _low(aside, 1) in {"is", "was", "has"}
            )
            return [*phrase, *aside[1:]] if agrees and not of_all else []
        inner = _verb(aside, 1)
        if inner is None or not _stands_alone(aside[1:inner]):
            return []
        _, end = _group(aside, inner)
        return [*aside[1:end], *phrase, *aside[end:]]
    if first == "whose" and own:
        return [*phrase[:-1], f"{phrase[-1]}'s", *aside[1:]]
    if (
        first == "where"
        and own
        and (_named(phrase, len(phrase) - 1) or _low(left, len(left) - len(phrase) - 1) in _PLACING)
    ):
        return [*aside[1:], "in", *phrase]
    after = 2 if _adverb(aside, 0) else 1
    if (
        first != "given"
        and _participle(first)
        and (_opens(aside, after) or _low(aside, after) in {"of", "to"} or after == len(aside))
    ):
        return [*phrase, be, *aside]
    listed = {"and", "or"}
    if own is not None or any(
        _low(aside, n) in listed and (_is(aside, n + 1, "articles") or aside[n - 1] == ",")
        for n in range(len(aside))
    ):
        return []
    named = (
        behind_subject and len(aside) <= 4 and _is(phrase, 0, "determiners") and all(map(str.istitle, aside))
    )
    if first in {"a", "an", "one", "formerly"} or named or (mark == "," and _is(aside, 0, "articles")):
        return [*phrase, be, *aside]
    return []


def _coordinated(words: Words) -> list[Words]:
    """It does this and does that; it does this, but that does so."""
    verb = _verb(words)
    if verb is None or not _stands_alone(words[:verb]):
        return []
    dependent = len(words)
    for at in range(verb + 1, len(words) - 1):
        joint, comma = _low(words, at), words[at - 1] == ","
        if _is(words, at, "subordinators", "conditions") and joint not in _BESIDE:
            dependent = min(dependent, at)
        if joint in _ALSO | _BESIDE | {","} and _low(words, at + 1) not in _ALSO | _BESIDE:
            left = words[: at - comma]
            second = _second(left, words[at + 1 :], joint, verb, comma=comma, dependent=at > dependent)
            if second:
                return [left, second]
    return []


def _second(  # noqa: C901
    left: Words, right: Words, joint: str, verb: int, *, comma: bool, dependent: bool
) -> Words:
    """What stands behind a joint, as a sentence; none if it is part of what stands before."""
    subject, own = left[:verb], _verb(right)
    if any(_low(left, n) in _PAIRED and "and" not in left[n:] for n in range(len(left))):
        return []
    aux, end = _group(left, verb)
    at = next((n for n in range(len(right)) if not _adverb(right, n)), 0)
    first, held = _low(right, at), _low(left, verb)
    if joint == "while" and not comma:
        return []
    if dependent and not (comma and (_is(right, 0, "determiners", "pronouns") or _named(right, 0))):
        return []
    clause = own and (not _regular(_low(right, own)) or _opens(right, own + 1) or own + 1 == len(right))
    if own and clause and not _predicate(right) and joint != "," and _stands_alone(right[:own]):
        return right if comma or joint != "and" or not _participle(_low(right, own)) else []
    if dependent or joint in _BESIDE or (joint == "," and "and" not in right):
        return []
    if first in _AUX:
        return [*subject, *right]
    if end == len(left) or (stem(left[-1]) in _VERBS and _low(left, -2 + len(left)) in _AUX | {"to"}):
        return []  # what follows belongs to both
    if (
        aux
        and _participle(first)
        and not _opens(right, at + 1)
        and _low(right, at + 1) not in {"", "to", "of", ",", "and"}
    ):
        return []
    if aux and _participle(first):
        active = (
            _is(right, at, "active")
            or _is(right, at + 1, "determiners", "pronouns")
            or _number(right, at + 1)
        )
        helping = aux[:1] if aux[0].lower() in _BE else aux
        return [*subject, *right] if active and aux[0].lower() in _BE else [*subject, *helping, *right]
    if _predicate(right) and not (
        _singular(first) and held in {"are", "were", "have"} | (_W["verbs"] - _W["both"])
    ):
        return [*subject, *right]
    if first in _W["verbs"] and _opens(right, at + 1):
        to = next(
            (n for n in range(len(left) - 1, end, -1) if _low(left, n) == "to" and _is(left, n + 1, "verbs")),
            None,
        )
        if to is not None and _is(left, to - 2, "determiners"):
            return []
        if to is not None:
            return [*left[: to + 1], *right]
        if held in _MODALS:
            return [*subject, *aux, *right]
        return [*subject, *right] if held in _W["verbs"] else []
    if aux and held in _BE and first in {"a", "an"} and not _participle(_low(left, end - 1)):
        return [*subject, aux[0], *right]
    return _objects(left, right, verb)


def _objects(left: Words, right: Words, verb: int) -> Words:
    """It has 5 rooms and 3 halls; it won the cup in 1998 and the league in 2004."""
    kind: Callable[[Words, int], bool] = (
        _number if _number(right, 0) else lambda of, n: _is(of, n, "articles")
    )
    at = next((n for n in range(verb + 1, len(left)) if kind(left, n)), len(left))
    figures = [any(_number(of, n) for n in range(len(of))) for of in (left[at:], right)]
    if (
        len(right) < 2
        or not kind(right, 0)
        or not all(figures)
        or _number(right, 1)
        or (_number(left[-1:], 0) and kind is _number)
    ):
        return []
    return [*left[:at], *right] if not {"from", "to", "than", "of"} & set(left[verb:]) else []


def _described(words: Words) -> list[Words]:
    """It is a thing that does this; it has a thing made by them."""
    verb = _verb(words)
    if verb is None or _low(words, verb) in _MODALS or (_low(words, 0), _low(words, verb)) == ("it", "was"):
        return []
    at = verb + 1 + _adverb(words, verb + 1)
    if _low(words, at) not in {"a", "an"} or _low(words, 0) == "there":
        return []
    for n in range(at + 2, len(words) - 1):
        thing = words[:verb] if _low(words, verb) in _BE else ["the", *words[at + 1 : n]]
        if words[n] in {",", ";", "(", "and", "or"} or _is(words, n, "conditions"):
            break
        if _is(words, n, "subordinators"):
            return (
                [words[:n], [*thing, *words[n + 1 :]]]
                if _predicate(words, n + 1) and _low(words, n) != "what"
                else []
            )
        noun = not _is(words, n - 1, "determiners", "prepositions")
        behind = _is(words, n + 1, "prepositions") and (
            _low(words, n + 1) != "of" or _low(words, n) not in {"set", "cut"}
        )
        follows = behind if _participle(_low(words, n)) else _gerund(_low(words, n)) and _opens(words, n + 1)
        if noun and follows and not _is(words, n, "given"):
            n -= _adverb(words, n - 1)
            return [words[:n], [*thing, _be(words, verb, thing, words[n:]), *words[n:]]]
    return []


def _placed(words: Words) -> list[Words]:
    """It was held in a place at a time, or at a time in a place."""
    verb = _verb(words)
    if verb is None:
        return []
    _, end = _group(words, verb)
    at = next((n for n in range(len(words) - 1, end + 1, -1) if _low(words, n) in _PLACING), None)
    if at is None or _low(words, end) not in _PLACING:
        return []
    phrases = words[end + 1 : at], words[at + 1 :]
    dated = [all(_DATE.fullmatch(word) or word.lower() in _W["months"] for word in each) for each in phrases]
    place = phrases[0] if dated[1] else phrases[1]
    named = any(_named(place, n) for n in range(len(place)))
    if dated[0] == dated[1] or not named or any(_is(place, n, "prepositions") for n in range(len(place))):
        return []
    return [words[:at], [*words[:end], *words[at:]]]
