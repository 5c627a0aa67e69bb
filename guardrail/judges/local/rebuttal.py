"""What a source reports only to rebut it: "People say that cars are banned. They aren't."

Rules for English: a sentence reports something (in quotes, after "said that", as a question), and the next
one opens by taking it back; or a verb of the sentence itself does ("denied reports that"). Who denies as much
as the report does, or reports it too, says nothing else than the source.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from guardrail.events import Evidence
from guardrail.evidence.stopwords import STOP_TERMS
from guardrail.judges.local.claim_view import ClaimView
from guardrail.judges.local.polarity import negations
from guardrail.judges.local.source import Sentence, Source, tokens_within

REPORTED: Final = 0.75
"""The least share of a claim, by rarity, that a sentence reports to be what it takes back."""
_OF_THE_REPORT: Final = 0.6  # of its content words that the claim has: it says the same, not a detail of it
_AT_THE_END: Final = 4  # tokens; "..., some people say" reports what stands before it
_BEFORE: Final = 5  # tokens before a denial in which a negation turns it round: "nobody denies"


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE | re.VERBOSE)


_THING: Final = r"""(?:reports?|claims?|rumou?rs?|suggestions?|allegations?|accusations?|ideas?|notion
    |belief|assertions?|statements?|speculation|stor(?:y|ies)|view|theory)"""
_DENIED: Final = _pattern(
    rf"""\b(?:
        (?:den(?:y|ies|ied|ying)|refut(?:es?|ed)|disput(?:es?|ed)|debunk(?:s|ed)?|disprov(?:es?|ed|en))
            \s+(?:(?:(?!that\b)\w+\s+){{0,2}}?{_THING}\s+)?that
      | (?:reject(?:s|ed|ing)?|dismiss(?:es|ed)?|withdr(?:ew|awn)|retract(?:s|ed)?|rebut(?:s|ted)?)
            \s+(?:(?!that\b)\w+\s+){{0,2}}?{_THING}\s+that
      | (?:falsely|wrongly|mistakenly|incorrectly|erroneously)\s+
            (?:sa(?:id|ys)|claim(?:s|ed)?|stated?s?|report(?:s|ed)?|believ(?:es|ed?)|wrote)\s+that
      | (?:myth|misconception|hoax|fallacy|superstition|urban\ legend|nonsense)\s+that
      | not\s+(?:true|the\s+case|correct|right)\s+that
      | (?:untrue|false|wrong|incorrect|a\s+mistake)\s+(?:to\s+(?:say|think|believe|claim)\s+)?that
    )\b"""
)
_UNPROVED: Final = _pattern(
    r"""\b(?:no|little)\s+(?:evidence|proof|indication|sign)\s+(?:at\s+all\s+|yet\s+|so\s+far\s+)?that\b"""
)
_CLOSING: Final = ' \t\n"”»)'
_PART_ENDS: Final = re.compile(r"[,;:–—]")
_REPORTS: Final = _pattern(
    r"""\b(?:sa(?:y|ys|id|ying)|t(?:ell|ells|old)|wr(?:ite|ites|ote|itten)|claim(?:s|ed|ing)?|suggest(?:s|ed)?
      |report(?:s|ed)?|rumou?r(?:s|ed)?(?:\s+has\s+it)?|believ(?:e|es|ed)|thinks?|thought|assum(?:e|es|ed)
      |promis(?:e|es|ed)|advertis(?:e|es|ed)|legend(?:\s+has\s+it)?|myths?|misconceptions?
      |alleg(?:e|es|ed|edly)|supposed(?:ly)?|according\s+to|hear(?:d|s)?|read|announc(?:e|es|ed)
      |argu(?:e|es|ed)|insist(?:s|ed)?|predict(?:s|ed)?|planned|expected|hoped|feared|mention(?:s|ed)?
      |posted|stated?|states)\b
      (?:\s+(?:\w+\s+){0,3}?that\b)?"""
)
_QUOTED: Final = re.compile(r"[\"“„«]([^\"“”„«»]+)[\"”“»]?")
_IT: Final = r"(?:this|that|it)"
_ENDS: Final = r"\s*(?:[.!?;:)—–]|$|,?\s*\b(?:and|but|because|though)\b)"
_NO_MORE_SAID: Final = rf"""(?:\s+(?:so|true|right|correct|the\s+case|accurate|yet|quite|at\s+all|possible
    |necessary|needed|happen(?:ed)?|any\s?more|any\s+longer|entirely|to\s+be))*{_ENDS}"""
_BUT: Final = r"""\s*["”“»)]*\s*(?:(?:but|however|yet|still|in\s+fact|actually|in\s+reality|in\s+truth
    |unfortunately)\b,?\s+)?"""
_TAKES_BACK: Final = _pattern(
    rf"""{_BUT}(?:
        (?:this|that|these|those|it|they|he|she|we|you|there|which)\s+
            (?:do|does|did|is|are|was|were|will|would|can|could|has|have|had|need|should|must|may)
            (?:n['’]t|\s*not|\s+never)\b{_NO_MORE_SAID}
      | (?:this|that|these|those|it|they|he|she|we|you)\s+(?:won['’]t|can['’]t)\b{_NO_MORE_SAID}
      | (?:this|that|it|they|these|those|both|all\s+of\s+(?:this|that)|the\s+(?:\w+\s+)?{_THING})\s+
            (?:is|was|were|are|has\s+been|have\s+been|had\s+been|proved|proves|turned\s+out)\s+
            (?:(?:to\s+be|simply|quite|completely|entirely|just|of\s+course|also|always|plain)\s+){{0,2}}
            (?:wrong|false|untrue|incorrect|mistaken|inaccurate|nonsense|unfounded|misleading
              |an?\s+(?:\w+\s+)?(?:myth|mistake|error|hoax|misunderstanding|misconception|fable|legend))\b
      | (?:this|that|these|those|the\s+(?:\w+\s+)?{_THING})\s+(?:is|was|were|are|has\s+been|have\s+been)\s+
            (?:\w+\s+)?(?:withdrawn|retracted|denied|overturned|disproved|refuted|debunked|outdated)\b
      | {_IT}\s+(?:was|used\s+to\s+be)\s+(?:so|the\s+case|true|right|correct)\s+(?:only\s+)?
            (?:until|before|up\s+to|till)\b
      | no\s*(?:[,;:!—–]|\.(?!\s*\d)) | not\s+(?:so|true|quite|at\s+all|any\s?more|really){_ENDS}
      | (?:wrong|false|nonsense|untrue){_ENDS}
      | (?:none\s+of\s+{_IT}|neither)\s+(?:is|was|are|were)\s+(?:true|so|right|correct)\b
      | nothing\s+of\s+the\s+(?:kind|sort){_ENDS}
      | there\s+(?:is|was)\s+no\s+(?:\w+\s+)?(?:truth|basis|reason|benefit|grounds?)
            (?:\s+(?:in|to|for)\s+{_IT})?{_ENDS}
      | (?:we|i)\s+disagree\b
    )"""
)
_LEAVES_OPEN: Final = _pattern(
    rf"""{_BUT}(?:
        there\s+(?:is|was|are|were|has\s+been)\s+no\s+(?:\w+\s+)?(?:evidence|proof|sign|records?|indication)
            (?:\s+(?:of|for)\s+(?:{_IT}|the\s+{_THING}))?{_ENDS}
      | (?:\w+\s+){{1,5}}?doubt(?:s|ed)?\s+{_IT}\b
      | (?:\w+\s+){{1,5}}?(?:disagrees?d?|den(?:y|ies|ied)\s+{_IT}){_ENDS}
      | (?:\w+\s+){{1,5}}?(?:can|could)\s*(?:not|n['’]t)\s+(?:be\s+)?(?:confirm|verify|confirmed|verified)
            (?:\s+(?:{_IT}|the\s+{_THING}))?{_ENDS}
    )"""
)
_NOBODY: Final = re.compile(r"\b(?:nobody|no one|none|few|hardly|never|not|n['’]t)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rebuttal:
    """How much of the claim, 0..1 by rarity, stands in what is reported; and the sentences of both.

    ``left_open``: the source doubts it, or knows of no proof, and does not deny it.
    """

    share: float
    proof: tuple[Evidence, ...]
    left_open: bool


def rebuttal(view: ClaimView, source: Source, sentence: Sentence) -> Rebuttal | None:
    """What takes back the claim in this sentence of the source or in the next; None where nothing does."""
    for pattern in (_DENIED, _UNPROVED):
        if found := pattern.search(sentence.text):
            if pattern is _DENIED and _turned_round(sentence, found.start()):
                return None
            end = _PART_ENDS.search(sentence.text, found.end())
            told = [(found.end(), len(sentence.text) if end is None else end.start())]
            return _of(view, sentence, told, (sentence.evidence,), left_open=pattern is _UNPROVED)
    after = _next(source, sentence)
    if after is None or sentence.text.rstrip(_CLOSING).endswith("?"):
        return None  # of a question it takes more to tell what its answer denies
    for pattern in (_TAKES_BACK, _LEAVES_OPEN):
        if found := pattern.match(after.text):
            if pattern is _LEAVES_OPEN and _NOBODY.match(after.text):
                return None
            proof = (sentence.evidence, after.evidence)
            return _of(view, sentence, reported(sentence), proof, left_open=pattern is _LEAVES_OPEN)
    return None


def _turned_round(sentence: Sentence, at: int) -> bool:
    """Whether a denial is denied: "nobody denies that", "it is not wrong to say that"."""
    before = tokens_within(sentence.starts, 0, at)
    near = before[-_BEFORE:]
    return bool(near) and _NOBODY.search(sentence.text, sentence.starts[near[0]], at) is not None


def _next(source: Source, sentence: Sentence) -> Sentence | None:
    contexts = source.layout.sentences.context
    number = sentence.number + 1
    if number >= len(contexts) or contexts[number] != contexts[sentence.number]:
        return None
    return source.sentence(number)


def reported(sentence: Sentence) -> list[tuple[int, int]]:
    """Where a sentence gives what others say or ask, in code points; empty where it does not."""
    text = sentence.text
    if quoted := [match.span(1) for match in _QUOTED.finditer(text)]:
        return quoted
    if text.rstrip(' \t\n"”»)').endswith("?"):
        return [(0, len(text))]
    found = _REPORTS.search(text)
    if found is None:
        return []
    behind = tokens_within(sentence.starts, found.end(), len(text))
    at_the_end = len(behind) < _AT_THE_END and not found.group().lower().endswith("that")
    return [(0, found.start())] if at_the_end else [(found.end(), len(text))]


def _of(
    view: ClaimView,
    sentence: Sentence,
    spans: list[tuple[int, int]],
    proof: tuple[Evidence, ...],
    *,
    left_open: bool,
) -> Rebuttal | None:
    if _REPORTS.search(view.text) or _DENIED.search(view.text):
        return None
    denials = negations(view.terms) % 2
    best = 0.0
    for start, end in spans:
        own = tokens_within(sentence.starts, start, end)
        terms = frozenset(sentence.terms[own.start : own.stop])
        content = terms - STOP_TERMS
        same = len(content & view.content.keys()) >= _OF_THE_REPORT * len(content)
        if same and negations(sentence.terms[own.start : own.stop]) % 2 == denials:
            best = max(best, view.share(terms))
    return Rebuttal(best, proof, left_open) if best >= REPORTED else None
