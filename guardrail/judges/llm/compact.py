"""The compact form of a verdict, one text of a list: ``c2 15 contradicted: It costs $5.``

In this order: the id of the claim, numbers of sentences, the verdict as one word, then, each only where there
is something to say, how sure it is (``60%``), sentences that contradict what others support (``!15``) and,
behind a colon, the reason. A verdict that is SUPPORTED takes six tokens; as an object it takes thirty.

The words are lower-case ones that tokenizers have whole. Texts of a model's own stand behind the verdict
only, so that nothing in them can be taken for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from guardrail.events import Verdict
from guardrail.judges.llm.answer import (
    ASSUMED_CONFIDENCE,
    MAX_REASONING_CHARS,
    MOST_NUMBERS,
    Answer,
    shown,
)

if TYPE_CHECKING:
    from guardrail.judges.llm.reply_form import ReplyForm

WORDS: Final = {
    Verdict.SUPPORTED: "supported",
    Verdict.PARTIALLY_SUPPORTED: "partial",
    Verdict.UNSUPPORTED: "unsupported",
    Verdict.CONTRADICTED: "contradicted",
}
EXAMPLE: Final = '{"v":["ID NUMBERS VERDICT","ID NUMBERS VERDICT: REASON"]}'
EXAMPLE_WITHOUT_REASONS: Final = '{"v":["ID NUMBERS VERDICT","ID NUMBERS VERDICT"]}'

# Without the characters that JSON writes with a backslash: servers that make a grammar of the pattern hold
# the raw text of the JSON against it, where such a character would end the text or break it.
_REASON: Final = r': [^"\\\n\r\t]+'
_NUMBERS: Final = rf"( [0-9]{{1,6}}){{0,{MOST_NUMBERS}}}"
_SURE: Final = "( [0-9]{1,2}%)?"
_AGAINST: Final = f"( ![0-9]{{1,6}}){{0,{MOST_NUMBERS}}}"

_LABEL: Final = re.compile(r"\s*([^\s:,]{1,64})[\s:,]+\S")
# More lenient than the pattern in what surrounds the words, as strict in the words: all of the text must fit.
_ITEM: Final = re.compile(
    r"\s*+(?P<label>[^\s:,]{1,64})[\s:,]++"
    r"(?P<evidence>(?:\[?[0-9]{1,9}\]?[\s,]++)*+)"
    r"(?P<verdict>[A-Za-z]++(?:[ _-][A-Za-z]++)?+)"
    r"(?:\s++(?P<confidence>[0-9]{1,3})\s?%)?+"
    r"(?P<against>(?:[\s,]*+![0-9]{1,9})*+)\s*+"
    r"(?::\s*+(?P<reasoning>.*+))?+",
    re.DOTALL,
)
_EVIDENCE: Final = re.compile(r"(?:\[?[0-9]{1,9}\]?[\s,]+)*+")
_NUMBER: Final = re.compile("[0-9]+")


def pattern(form: ReplyForm) -> str:
    """The regular expression that a verdict in ``form`` matches, from its first character to its last."""
    sure = _SURE if form.confidence else ""
    against = _AGAINST if form.conflicts else ""
    reason = _REASON if form.reasons else ""
    tail = sure + against
    words = [WORDS[verdict] for verdict in form.verdicts.values()]
    if form.reasons and not form.reason_when_supported:
        others = [word for word in words if word != WORDS[Verdict.SUPPORTED]]
        said = f"(supported{tail}|({'|'.join(others)}){sure}{reason})"
    else:
        said = f"({'|'.join(words)}){tail}{reason}"
    return f"^c[0-9]{{1,4}}{_NUMBERS} {said}$"


def write(
    form: ReplyForm,
    label: str,
    verdict: Verdict,
    evidence: Sequence[int] = (),
    confidence: float = 1.0,
    against: Sequence[int] = (),
    reasoning: str = "",
) -> str:
    """A verdict as a model that keeps to ``form`` would write it."""
    supported = verdict is Verdict.SUPPORTED
    said = [label, *map(str, evidence), WORDS[verdict]]
    if form.confidence and confidence < ASSUMED_CONFIDENCE:
        said.append(f"{confidence:.0%}")
    if form.conflicts and supported:
        said += [f"!{number}" for number in against]
    text = " ".join(said)
    if form.reasons and reasoning and (form.reason_when_supported or not supported):
        text += ": " + " ".join(reasoning.replace('"', "'").replace("\\", "/").split())
    return text


def read(text: str, form: ReplyForm) -> Answer | None:
    """What one text of a list says; None when it names no claim."""
    match = _ITEM.fullmatch(text)
    if match is None:
        begin = _LABEL.match(text)
        if begin is None:
            return None
        said = text[begin.end() - 1 :]
        word = said[_EVIDENCE.match(said).end() :]  # type: ignore[union-attr]  # it matches nothing too
        problem = f"the judge's verdict{shown(word.partition(':')[0])} can't be read"
        return Answer(begin[1].lower(), problem=problem)
    label = match["label"].lower()
    verdict = _verdict(match["verdict"], form)
    if verdict is None:
        known = "two" if form.binary else "four"
        return Answer(label, problem=f"the judge's verdict{shown(match['verdict'])} is none of the {known}")
    percent = match["confidence"] if form.confidence else None
    if percent is not None and int(percent) > 100:
        return Answer(label, problem="the judge's confidence is not between 0 and 100 %")
    return Answer(
        label,
        verdict,
        ASSUMED_CONFIDENCE if percent is None else int(percent) / 100,
        _numbers(match["evidence"]),
        _numbers(match["against"]) if form.conflicts else (),
        (match["reasoning"] or "").strip()[:MAX_REASONING_CHARS],
    )


def _verdict(word: str, form: ReplyForm) -> Verdict | None:
    """A verdict by its whole word: that of this form, or its name in others."""
    name = word.upper().replace(" ", "_").replace("-", "_")
    return form.understood.get(Verdict.PARTIALLY_SUPPORTED.value if name == "PARTIAL" else name)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in _NUMBER.findall(text)[:MOST_NUMBERS])
