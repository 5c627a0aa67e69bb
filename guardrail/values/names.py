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
    der die das und ist nicht mit für ein eine wird sie werden ab vor nach zum zur den dem des bei auf von zu
    sind kann muss innerhalb mindestens höchstens pro beträgt
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
    last = _run_end(text, tokens, i)
    begin, initial = i, _sentence_initial(text, tokens, i)
    if (
        initial
        and last > i
        and (_is_participle(tokens[i]) or (last == i + 1 and is_acronym(tokens[last].text)))
    ):
        begin, initial = i + 1, False  # "Convincing Clinton", "Reach WHO"
        while begin < last and not is_capitalised(tokens[begin]):
            begin += 1
    if begin == last and not _stands_alone(tokens, begin, initial, nouns_too):
        return None, last + 1
    start, end = tokens[begin].start, tokens[last].end
    if _is_possessive(tokens[last]) and end - tokens[last].start > 3:
        end -= 2
    folded = fold_name(text[start:end])
    if not folded:
        return None, last + 1
    return Value(ValueKind.NAME, text[start:end], start, end, key=" ".join(folded), words=folded), last + 1


def _run_end(text: str, tokens: list[Token], i: int) -> int:
    """The last token of the capitalised run that begins at ``i``."""
    last, words, j = i, 1, i + 1
    while words < _MAX_WORDS:
        token = tokens[j]
        gap = token.start - tokens[j - 1].end
        if gap > 1 or (gap == 1 and text[token.start - 1] == "\n"):
            break
        if is_capitalised(token) or token.kind is Tok.ABBREVIATION:
            if _begins_another(tokens, j, last if last > i else None):
                break
            last, words = j, words + 1
        elif not (_joins(tokens, j) if gap == 0 else token.low in CONNECTORS and _continues(tokens, j)):
            break
        j += 1
    return last


def _begins_another(tokens: list[Token], j: int, last: int | None) -> bool:
    """Does the capitalised token ``j`` belong to something else than the run that ended at ``last``?"""
    token = tokens[j]
    if token.start == tokens[j - 1].end and tokens[j - 1].kind is Tok.WORD:
        return True
    if last is not None and _is_possessive(tokens[last]):
        return True  # "the World Economic Forum's Business Council" names two
    return token.low in WEEKDAYS or (token.low in MONTHS and tokens[j + 1].kind is Tok.NUMBER)


def _joins(tokens: list[Token], j: int) -> bool:
    """Is the sign at ``j``, right after a word, inside a name: "J. Smith", "Jean-Luc"?"""
    token, before, after = tokens[j], tokens[j - 1], tokens[j + 1]
    if not is_capitalised(after):
        return False
    if token.text == ".":
        return len(before.text) == 1 or before.low in TITLES or before.low in SUFFIXES
    return token.text == "-" and after.start == token.end


def _stands_alone(tokens: list[Token], i: int, initial: bool, nouns_too: bool) -> bool:
    """Is the single capitalised word ``i`` a name?"""
    token = tokens[i]
    if is_acronym(token.text):
        return True
    if len(token.text) < 2 or token.low in TITLES or token.low in SUFFIXES:
        return False
    if token.text.isupper() and len(token.text) > 6:  # shouted
        return False
    if not initial and not nouns_too:
        return True
    mixed = any(c.isupper() for c in token.text[1:]) and not token.text.isupper()
    titled = i >= 1 and tokens[i - 1].low in TITLES
    return mixed or titled or (_is_possessive(token) and not nouns_too)


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
