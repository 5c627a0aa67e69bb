"""Changes of meaning: negation, opposites, comparisons, what a claim claims too much, what it adds."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Final

from training.changes import Change, replaced
from training.lexicon import ADDITIONS, ANTONYMS, COMPARISONS, DOUBTS, OPENINGS, PAST_TO_BASE, WEAKENED
from training.paraphrase import running_on

_AUXILIARY: Final = re.compile(
    r"\b(is|are|was|were|can|will|would|should|must)\b(?! not\b| only\b| also\b| never\b| n't|n't"
    r"| to be\b|,|\.)"
)
_PERFECT: Final = re.compile(r"\b(has|have|had)(?= (?:been|become|[a-z]{2,}(?:ed|en))\b)")
_NEGATED: Final = re.compile(
    r"\b(is|are|was|were|can|could|will|would|should|must|has|have|had) ?(?:not|n't|n’t) (?!only\b"
    r"|until\b|just\b|"
    r"necessarily\b|yet\b|always\b|all\b|a\b|to\b)"
)
_DID_NOT: Final = re.compile(r"\bdid(?: not|n't|n’t) ([a-z]+)\b")
_DO_NOT: Final = re.compile(r"\bdo(?: not|n't|n’t) (?=[a-z]+\b)")
_WITHOUT: Final = re.compile(r"\bwithout (?=(?:any |the |a |an )?[a-z]+\b)")
_UNSURE: Final = re.compile(
    r"(?i)\b(?:if|whether|unless|not|n't|no|never|without|neither|nor|none|nothing)\b|\?"
)
_PAST: Final = re.compile(
    r"^(?![^.]{0,40}\b(?:has|have|had|was|were|is|are|be|been|by|that|who|which)\b)"
    r"((?:He|She|It|They|The [\w -]{2,30}|[A-Z][\w.'-]+(?: [A-Z][\w.'-]+){0,3})) ("
    + "|".join(PAST_TO_BASE)
    + r")\b"
)
_BASE_TO_PAST: Final = {base: past for past, base in PAST_TO_BASE.items()}
_WORD: Final = re.compile(r"(?<![\w'’-])[a-z]{3,}(?![\w'’-])")
_FIXED: Final = re.compile(
    r"\b(?:at|for the|the|a|as|so|too) (?:first|last|best|least|long|open)(?= (?:time|and|place|as|,"
    r"|\.)|[,.])"
    r"|\b(?:first|last) name|\bas (?:soon|long|well|far) as|\b(?:good|bad) (?:luck|at)|\bmen and women"
    r"|\bboys and girls"
    r"|\bpeace|\bday(?:s)? before|\bnew (?:year)|\bhigh school|\bmajor league|\bmajor in|\bold (?:town)"
    r"|\bopen to"
    r"|\bin the end|\bat the end|\bday by day|\bday (?:after|of)|\bone day|\bhit (?:single|song|the)"
    r"|\bhit \w+ (?:single|song)"
)
_MORE: Final = re.compile(
    r"\b(more|less|fewer|most|least|over|under) than\b|\bmore(?= [a-z]{4,}(?:s\b| than))"
)
_BOUND: Final = re.compile(
    r"\b(up to|less than|fewer than|at most|a maximum of|no more than|not more than)"
    r" (?=[$€£]?\d|(?:two|three|four|five|six|seven|eight|nine|ten|half)\b)"
)
_PLURAL: Final = (
    r"(?:[a-z]{3,}[^su\W]s|people|men|women|children|of the [a-z]+|of (?:his|her|its|their) [a-z]+)\b"
)
_SOME: Final = re.compile(
    rf"\b(some|many|most|several|a few|few|a number|certain|almost all"
    rf"|nearly all) (?={_PLURAL})(?!times|years|days|weeks|months|hours|minutes|decades|centuries"
    rf"|thousands|hundreds|reasons)"
)
_DOUBT: Final = re.compile(rf"(?<! a)(?<! an),? \b(?:{'|'.join(DOUBTS)})\b,?(?= [a-z])")
_BELIEVED: Final = re.compile(
    r"\b(is|was|are|were) (?:believed|thought|said|reported|rumoured|rumored|alleged|claimed)"
    r" to (?=(?:be|have been)\b)"
)
_TRIED: Final = re.compile(r"\b(?:tried|attempted|sought|hoped|intended|planned|wanted) to (?=[a-z]{3,} )")
_EXPECTED: Final = re.compile(r"\b(is|are) (?:expected|likely|planned|intended) to (?=[a-z]{2,} )")
_MAY: Final = re.compile(
    r"\b(?:may|might) (?=(?!have\b|not\b|also\b|well\b|or\b|in\b|at\b|on\b|perhaps\b|possibly\b)[a-z]{2,} )"
)
_CONDITION: Final = re.compile(
    r"(?<!even)(?<! as),? (?:if|unless|provided that|as long as|only when|except(?: for| that| in)?"
    r"|only if) [^,;:]{8,}(?=\.$)"
)
_SUGGESTS: Final = re.compile(r"\b(suggests?|suggested) (?=that\b)")
_CLAUSE: Final = re.compile(
    r"(?:,)? (?:because|after|despite|in order to|due to|thanks to|following|with the help of"
    r"|as a result of) "
    r"(?!which|he |she |they |it |his |her |their |its |being |having )[^,;:()\"]{15,80}(?=\.$)"
)


def _negation(sentence: str, _names: Sequence[str], random_: random.Random) -> Change | None:
    options: list[Change] = []
    options += [
        _widened(replaced("negation", sentence, match.span(), match[1] + " "))
        for match in _NEGATED.finditer(sentence)
    ]
    options += [
        replaced("negation", sentence, match.span(), past)
        for match in _DID_NOT.finditer(sentence)
        if (past := _BASE_TO_PAST.get(match[1]))
    ]
    options += [
        _widened(replaced("negation", sentence, match.span(), "")) for match in _DO_NOT.finditer(sentence)
    ]
    for match in _WITHOUT.finditer(sentence):
        rest = re.match(r"any ", sentence[match.end() :])
        span = (match.start(), match.end() + (rest.end() if rest else 0))
        if not re.match(r"(?:any )?\w+ing\b", sentence[match.end() :]):
            options.append(_widened(replaced("negation", sentence, span, "with ")))
    if options:
        return random_.choice(options)
    if _UNSURE.search(sentence):
        return None
    return _negated(sentence, random_)


def _negated(sentence: str, random_: random.Random) -> Change | None:
    match = _AUXILIARY.search(sentence)
    perfect = _PERFECT.search(sentence)
    past = _PAST.match(sentence)
    if past:
        low = past[2]
        new = random_.choice(("did not ", "did not ", "didn't ", "never "))
        new += low if new == "never " else PAST_TO_BASE[low]
        return replaced("negation", sentence, past.span(2), new)
    if perfect and (not match or perfect.start() < match.start()):
        match = perfect
    if not match or sentence[match.end() : match.end() + 1] in ("'", "’"):
        return None  # "can't" has its negation
    before = sentence[: match.start()]
    if before.endswith((", ", '" ')) or re.search(r"\b(?:what|how|where|when|that|which|who|as)\b", before):
        return None  # in a subordinate clause a negation may change little
    contracted = {"is": "isn't", "are": "aren't", "was": "wasn't", "were": "weren't", "can": "can't"}
    plain = "cannot" if match[1] == "can" else f"{match[1]} not"
    new = random_.choice((plain, plain, plain, contracted.get(match[1], plain)))
    return replaced("negation", sentence, match.span(1), new)


def _widened(change: Change) -> Change:
    """The span reaches over the word behind what was put in: where a "not" is gone, that word is wrong."""
    start, end = change.spans[0]
    word = re.match(r" ?\w[\w'’-]*(?:[.,]\d+)*", change.claim[end:])
    start += change.claim[start : start + 1] == " "
    return Change(change.claim, change.kind, ((start, end + (word.end() if word else 0)),), change.old)


def _opposite(
    kind: str, listed: dict[str, tuple[str, ...]], sentence: str, random_: random.Random
) -> Change | None:
    fixed = [m.span() for m in _FIXED.finditer(sentence)]
    found: list[tuple[re.Match[str], str]] = []
    for match in _WORD.finditer(sentence):
        if match.group() in listed and not any(a <= match.start() < b for a, b in fixed):
            found.extend((match, other) for other in listed[match.group()])
    if not found:
        return None
    match, other = random_.choice(found)
    before = sentence[: match.start()]
    # An article keeps its form, and a pair named together stays a pair.
    if re.search(r"\b[Aa] \Z", before) and other[0] in "aeiou":
        return None
    if re.search(r"\b[Aa]n \Z", before) and other[0] not in "aeiou":
        return None
    if re.search(rf"\b{other}\b", sentence):
        return None
    return replaced(kind, sentence, match.span(), other)


def _antonym(sentence: str, _names: Sequence[str], random_: random.Random) -> Change | None:
    return _opposite("antonym", ANTONYMS, sentence, random_)


_NEEDS_MORE: Final = frozenset(
    ("better", "later", "closer", "above", "earlier", "higher", "lower", "rose", "fell")
)


def _comparison(sentence: str, _names: Sequence[str], random_: random.Random) -> Change | None:
    more = re.search(r"\b([Mm]ore|[Ll]ess|[Ff]ewer)(?= than (?!one\b|ever|once))", sentence)
    if (
        more
        and random_.random() < 0.6
        and not re.search(r"\b(?:no|not|or|any|once|much) \Z", sentence[: more.start()])
    ):
        other = {"more": "less", "less": "more", "fewer": "more"}[more[1].lower()]
        other = other.capitalize() if more[1][0].isupper() else other
        return replaced("comparison", sentence, more.span(1), other)
    made = _opposite("comparison", COMPARISONS, sentence, random_)
    if made and made.old:
        word = sentence[made.old[0] : made.old[1]]
        before, behind = sentence[: made.old[0]], sentence[made.old[1] :]
        if word in ("before", "after") and not re.match(r" (?:the|he|she|they|it|his|her|[A-Z\d])", behind):
            return None
        if word == "after" and re.search(
            r"\b(?:named|shortly|soon|look\w*|called|immediately|year|day) \Z", before
        ):
            return None
        if re.search(r"\b(?:no|any|not|much|once) \Z", before) or behind.startswith(" or "):
            return None
        follows = re.match(r" (?:than|the|to|by|from|in|at)\b", behind) and "known" not in before[-8:]
        if word in _NEEDS_MORE and not follows:
            return None
        if word in ("rose", "fell") and re.match(r" (?:in love|ill|to|through|into|apart)\b", behind):
            return None
    return made


def _qualifier(sentence: str, _names: Sequence[str], random_: random.Random) -> Change | None:
    """A hedge, bound or condition of the sentence left out: the claim says more than its source."""
    options: list[Change] = []
    options += [
        _widened(replaced("qualifier", sentence, match.span(), ""))
        for match in _BOUND.finditer(sentence)
        if (not sentence[: match.start()].endswith((" not ", " no ")))
    ]
    options += [
        _widened(replaced("qualifier", sentence, match.span(), "")) for match in _DOUBT.finditer(sentence)
    ]
    for match in _BELIEVED.finditer(sentence):
        behind = sentence[match.end() :]
        be = re.match(r"be |have been ", behind)
        if be:
            span = (match.start(), match.end() + be.end())
            verb = match[1] if be.group() == "be " else {"is": "was", "are": "were"}.get(match[1], match[1])
            options.append(_widened(replaced("qualifier", sentence, span, verb + " ")))
    options += [
        _widened(replaced("qualifier", sentence, match.span(), "managed to "))
        for match in _TRIED.finditer(sentence)
    ]
    options += [
        _widened(replaced("qualifier", sentence, match.span(), f"{match[1]} certain to "))
        for match in _EXPECTED.finditer(sentence)
    ]
    options += [
        _widened(replaced("qualifier", sentence, match.span(), "will "))
        for match in _MAY.finditer(sentence)
        if (not re.search(r"\b(?:that|so|who|it|they|you) \Z", sentence[: match.start()]))
    ]
    for match in _SUGGESTS.finditer(sentence):
        form = "proves" if match[1].endswith("s") else "proved" if match[1].endswith("ed") else "prove"
        options.append(replaced("qualifier", sentence, match.span(1), form))
    if (condition := _CONDITION.search(sentence)) and condition.start() > 25:
        claim = sentence[: condition.start()] + "."
        options.append(Change(claim, "qualifier", ((0, len(claim)),), None))
    if not options:
        return None
    made = random_.choice(options)
    claim, spans = made.claim, made.spans
    if claim[0].islower():  # what was left out stood in front
        claim = claim[0].upper() + claim[1:]
    return Change(claim, "qualifier", spans, None)


def _overgeneralisation(sentence: str, _names: Sequence[str], random_: random.Random) -> Change | None:
    if re.search(r"(?i)\b(?:not|n't|never|no|if|without|than)\b", sentence):
        return None
    options: list[Change] = []
    for match in _SOME.finditer(sentence):
        if re.search(
            r"\b(?:the|these|those|a|its|his|her|their|so|too|as|until|million|only|one of) \Z",
            sentence[: match.start()],
        ):
            continue
        new = "no" if match[1] == "few" else "all"
        options.append(replaced("overgeneralisation", sentence, match.span(1), new))
    if opening := re.match(
        rf"(?:Some|Many|Most|Several|A few|Certain|Almost all|Nearly all) (?={_PLURAL})", sentence
    ):
        options.append(replaced("overgeneralisation", sentence, (0, opening.end() - 1), "All"))
    for match in _WORD.finditer(sentence):
        if adverb := WEAKENED.get(match.group()):
            before = sentence[: match.start()]
            if not re.search(r"\b(?:as|more|most|very|so|too|less|quite|the) \Z", before):
                options.append(replaced("overgeneralisation", sentence, match.span(), adverb))
    return random_.choice(options) if options else None


def _addition(sentence: str, clauses: Sequence[str], random_: random.Random) -> Change | None:
    """A phrase put in front or behind that the source doesn't say. ``clauses``: see ``clauses_of``; names
    in it are passed over."""
    if not sentence.endswith(".") or len(sentence.split()) > 30:
        return None
    own = [c for c in clauses if c.startswith((" ", ","))]
    if random_.random() < 0.15:
        low = running_on(sentence)
        if low and not re.match(r"(?:In|On|At|After|Before|During|Although|While|When|With)\b", sentence):
            opening = random_.choice(OPENINGS)
            return Change(opening + low, "addition", ((0, len(opening) - 2),), None)
    clause = random_.choice(own) if own and random_.random() < 0.55 else random_.choice(ADDITIONS)
    if re.search(r"\b(?:because|after|despite|following|which|due)\b", sentence) and clause[1:8] in sentence:
        return None
    body = sentence[:-1]
    start = len(body) + (2 if clause.startswith(",") else 1)
    claim = body + clause + "."
    return Change(claim, "addition", ((start, len(claim) - 1),), None)


def clauses_of(sentences: Sequence[str]) -> list[str]:
    """Endings of sentences that can be put behind others: reasons, purposes, times."""
    return [match.group() for s in sentences if (match := _CLAUSE.search(s)) and len(s) > 60]


def joined_with(one: str, other: str, random_: random.Random) -> Change | None:
    """``one`` and ``other``, of another document, as one claim: its second half is unsupported."""
    low = running_on(other)
    if low is None or not one.endswith(".") or len(one.split()) > 22 or len(other.split()) > 20:
        return None
    if re.match(r"(?i)(?:however|but|and|also|although|while|when|this|these|such|in addition)\b", other):
        return None
    link = random_.choice((", and ", ", and ", "; "))
    start = len(one) - 1 + len(link)
    claim = one[:-1] + link + low
    return Change(claim, "merge", ((start, len(claim) - 1),), None)


_BIOGRAPHY: Final = re.compile(
    r"^([A-Z][a-z]+(?: [A-Z]\.)?(?: [A-Z][a-z]+){1,2}|He|She) (was|is|has|had|won|played|worked) "
)


def crossed(one: str, other: str) -> Change | None:
    """The subject of ``one``, a person, with what ``other``, of another document, says of someone."""
    first, second = _BIOGRAPHY.match(one), _BIOGRAPHY.match(other)
    if not first or not second or first[1] in ("He", "She") or first[1] in other:
        return None
    said = other[second.start(2) :]
    if re.search(r"\b(?:he|she|his|her|him|himself|herself)\b", said) or len(said.split()) > 25:
        return None
    claim = f"{first[1]} {said}"
    return Change(claim, "merge", ((len(first[1]) + 1, len(claim) - 1),), None)


MEANING: Final[dict[str, Callable[[str, Sequence[str], random.Random], Change | None]]] = {
    "negation": _negation,
    "antonym": _antonym,
    "comparison": _comparison,
    "qualifier": _qualifier,
    "overgeneralisation": _overgeneralisation,
    "addition": _addition,
}
