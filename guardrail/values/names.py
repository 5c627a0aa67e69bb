"""Proper names, without a model: capitalised runs that are more than a sentence's first word, and acronyms.

A name list or a tagger would find more (and "Patients" less often); it would also cost tens of megabytes.
Missed names cost little, invented ones cause false alarms, so the rules lean to missing.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from guardrail.values.lexicon import ALIASES, CONNECTORS, MONTHS, NO_NAME, SUFFIXES, TITLES, WEEKDAYS, words
from guardrail.values.model import Value, ValueKind
from guardrail.values.tokens import Tok, Token

_MAX_WORDS: Final = 10
_SENTENCE_ENDS: Final = frozenset('.!?:;…"“”„«»(•*-–—|#>[。！？')
_GERMAN: Final = words("""
    der die das und ist nicht mit für ein eine wird sie werden
""")


def capitalises_nouns(tokens: list[Token]) -> bool:
    """German writes every noun with a capital: single capitalised words say nothing there."""
    return sum(token.low in _GERMAN for token in tokens[:400]) * 12 > min(len(tokens), 400)


def is_headline(tokens: list[Token]) -> bool:
    """Nearly every longer word with a capital: a headline, in which capitals name nothing."""
    if len(tokens) > 60:
        return False
    words = [token.text for token in tokens if token.kind is Tok.WORD and len(token.text) > 3]
    capitals = sum(word[0].isupper() for word in words)
    return len(words) >= 5 and capitals * 4 > len(words) * 3


def is_capitalised(token: Token) -> bool:
    return token.kind is Tok.WORD and token.text[0].isupper()


def is_acronym(text: str) -> bool:
    """ "WHO", "EMA", "U.S.", but not "A" or "OK"."""
    bare = text.replace(".", "")
    return (
        2 <= len(bare) <= 6
        and bare.isupper()
        and bare not in {"OK", "AM", "PM", "II", "III", "IV", "VI", "NOT", "NO", "AND", "OR", "DO"}
    )


def _sentence_initial(text: str, tokens: list[Token], i: int) -> bool:
    if i == 0:
        return True
    before = tokens[i - 1]
    if before.text in _SENTENCE_ENDS:
        return not (before.text == "." and i >= 2 and tokens[i - 2].low in TITLES) and not (
            before.text in "-–—"
            and before.end == tokens[i].start
            and before.start > 0
            and not text[before.start - 1].isspace()
        )
    return "\n" in text[before.end : tokens[i].start]


def read_name(text: str, tokens: list[Token], i: int, nouns_too: bool) -> tuple[Value | None, int]:
    """The name that begins at the capitalised token ``i``, or None, and the index to go on from.

    ``nouns_too``: capitals mark every noun (German), so only acronyms and runs of two and more count.
    """
    if _no_name(tokens[i]):
        return None, i + 1
    initial = _sentence_initial(text, tokens, i)
    last, words = i, 1
    j = i + 1
    while words < _MAX_WORDS:
        token, gap = tokens[j], tokens[j].start - tokens[j - 1].end
        if gap > 1 or (gap == 1 and text[token.start - 1] == "\n"):
            break
        if is_capitalised(token):
            if gap == 0 and tokens[j - 1].kind is Tok.WORD:
                break
            if last > i and _is_possessive(tokens[last]):
                break  # "the World Economic Forum's Business Council" names two
            if token.low in WEEKDAYS or (token.low in MONTHS and tokens[j + 1].kind is Tok.NUMBER):
                break
            last, words = j, words + 1
        elif token.kind is Tok.ABBREVIATION:
            last, words = j, words + 1
        elif (
            token.text == "."
            and gap == 0
            and (len(tokens[j - 1].text) == 1 or tokens[j - 1].low in TITLES | SUFFIXES)
        ):
            if tokens[j + 1].kind is not Tok.WORD or not tokens[j + 1].text[0].isupper():
                break
        elif (
            token.text == "-"
            and gap == 0
            and tokens[j + 1].start == token.end
            and is_capitalised(tokens[j + 1])
        ):
            pass
        elif not (token.low in CONNECTORS and _continues(tokens, j)):
            break
        j += 1
    begin = i
    while begin <= last and (_no_name(tokens[begin]) or tokens[begin].text in ".-&"):
        begin += 1
    if (
        initial
        and begin == i
        and last > i
        and (_is_participle(tokens[i]) or (last == i + 1 and is_acronym(tokens[last].text)))
    ):
        begin += 1  # "Convincing Clinton", "Reach WHO"
    while begin <= last and tokens[begin].low in CONNECTORS and tokens[begin].text.islower():
        begin += 1
    if begin > last:
        return None, i + 1
    if begin > i:
        initial = False
    start, end = tokens[begin].start, tokens[last].end
    if _is_possessive(tokens[last]) and end - tokens[last].start > 3:
        end -= 2
    name = text[start:end]
    single = begin == last
    if single and not is_acronym(tokens[begin].text):
        mixed = any(c.isupper() for c in tokens[begin].text[1:]) and not tokens[begin].text.isupper()
        titled = begin >= 1 and tokens[begin - 1].low in TITLES
        possessive = _is_possessive(tokens[begin])
        if len(name) < 2 or tokens[begin].low in TITLES | SUFFIXES:
            return None, last + 1
        if ((initial or nouns_too) and not (mixed or titled or (possessive and not nouns_too))) or (
            name.isupper() and len(name) > 6
        ):
            return None, last + 1
    words_folded = fold_name(name)
    if not words_folded:
        return None, last + 1
    return Value(ValueKind.NAME, name, start, end, key=" ".join(words_folded), words=words_folded), last + 1


def _is_possessive(token: Token) -> bool:
    return token.low.endswith(("'s", "’s"))


def _is_participle(token: Token) -> bool:
    return token.low.endswith("ing") and len(token.low) > 5


def _no_name(token: Token) -> bool:
    """ "The", "There's", "Don't"; but WHO, IT and US in capitals are acronyms."""
    low = token.low
    if low in NO_NAME:
        return token.text not in {"WHO", "IT", "US"}
    head, mark, tail = low.replace("’", "'").partition("'")
    return bool(mark) and (head in NO_NAME or tail == "t")


def _continues(tokens: list[Token], j: int) -> bool:
    """Does a capitalised word follow after at most two connectors?"""
    after = tokens[j + 1]
    if is_capitalised(after):
        return tokens[j].low not in {"and", "for", "the"} and after.low not in NO_NAME
    return (
        after.low in CONNECTORS
        and tokens[j].low in {"of", "de", "van", "von"}
        and is_capitalised(tokens[j + 2])
    )


def strip_marks(text: str) -> str:
    """Case and diacritics folded: "Müller" and "Muller" are one."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in folded if not unicodedata.combining(c))


def fold_text(text: str) -> str:
    """A whole text folded word by word as names are, with a space on either side of every word."""
    spaced = "".join(c if c.isalnum() or c in "'." else " " for c in strip_marks(text).replace("’", "'"))
    words = (raw.removesuffix("'s").strip("'").replace(".", "") for raw in spaced.split())
    return f" {' '.join(word for word in words if word not in CONNECTORS and word not in TITLES)} "


def fold_name(name: str) -> tuple[str, ...]:
    """The words a name is compared by: no case, marks, possessive, titles, legal forms, connectors."""
    words = []
    for raw in strip_marks(name).replace("-", " ").replace("’", "'").split():
        word = raw.removesuffix("'s").removesuffix("'").replace(".", "")
        if word and word not in CONNECTORS and word not in TITLES:
            words.append(word)
    while len(words) > 1 and words[-1] in SUFFIXES:
        words.pop()
    return tuple(words)


def same_name(claim: tuple[str, ...], source: tuple[str, ...]) -> bool:
    """May the source's name stand for the claim's? The claim's may be a part of it, not the other way."""
    if claim == source:
        return True
    a, b = " ".join(claim), " ".join(source)
    if ALIASES.get(a, a) == ALIASES.get(b, b):
        return True
    if len(claim) == 1 and len(source) > 1 and _initials(claim[0], source):
        return True
    if len(source) == 1 and len(claim) > 1 and _initials(source[0], claim):
        return True
    if a.replace(" ", "") == b.replace(" ", ""):
        return True
    if _singular(claim) == _singular(source):
        return True
    if len(claim) < len(source):
        span = len(claim)
        if any(source[k : k + span] == claim for k in range(len(source) - span + 1)):
            return len(a) > 1
        return span > 1 and _same_word(claim[0], source[0]) and claim[-1] == source[-1]
    return len(claim) == len(source) > 1 and all(_same_word(x, y) for x, y in zip(claim, source, strict=True))


def _same_word(a: str, b: str) -> bool:
    return a == b or (len(a) == 1 and b.startswith(a)) or (len(b) == 1 and a.startswith(b))


def _singular(words: tuple[str, ...]) -> tuple[str, ...]:
    return (*words[:-1], words[-1].removesuffix("s"))


def _initials(acronym: str, words: tuple[str, ...]) -> bool:
    return len(acronym) == len(words) >= 2 and all(w[0] == c for w, c in zip(words, acronym, strict=True))
