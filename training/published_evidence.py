"""The rows of public data sets whose claims people held against what was found for them: cited passages of
answers, pages of the web, abstracts and trials.

Readers as those of ``training.published_readers``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from pathlib import Path
from typing import Final

from training.examples import Label
from training.published_files import Record, json_lines, table
from training.published_readers import PoolRow, pool_row

_ATTRIBUTION: Final[Mapping[str, Label]] = {
    "attributable": "supported",
    "not attributable": "not_supported",
}
_ANSWERS: Final = frozenset(("Stanford-GenSearch", "HAGRID", "AttributedQA", "AttrScore-GenSearch"))
"""The parts of AttributionBench that are read: BEGIN is read elsewhere, ExpertQA and LFQA are measured on."""
_CITATION: Final = re.compile(r"\s*(?:References?:\s*)?\[\d+(?:\s*,\s*\d+)*\]")
_CHECKED: Final[Mapping[str, Label]] = {
    "SUPPORT": "supported",
    "REFUTE": "contradicted",
    "NOTENOUGHINFO": "unsupported",
}
_TRIAL: Final[Mapping[str, int]] = {
    "significantly increased": 1,
    "significantly increase": 1,
    "significantly decreased": -1,
    "no significant difference": 0,
    "invalid prompt": 2,
}
_VALID: Final[Mapping[str, bool]] = {"True": True, "False": False, "1": True, "0": False}
_LEAST_CLAIM: Final = 4  # words
_LEAST_WORDS: Final = 8  # of evidence; what is shorter is a part of a table without its head
_STEM: Final = 5  # letters by which a word of a prompt is found in the evidence: "mortal(ity)"
_NO_ARM: Final = re.compile(r"(?:no|nothing|none|not)\b", re.IGNORECASE)
_TRUE: Final = 0.45  # of the claims that are made of trials
_SAID: Final[Mapping[int, tuple[str, ...]]] = {
    1: (
        "{outcome} was significantly higher with {one} than with {other}.",
        "{one} significantly increased {outcome} compared with {other}.",
        "Compared with {other}, {one} led to significantly higher {outcome}.",
        "A significant increase in {outcome} was found with {one} compared with {other}.",
    ),
    -1: (
        "{outcome} was significantly lower with {one} than with {other}.",
        "{one} significantly reduced {outcome} compared with {other}.",
        "Compared with {other}, {one} led to significantly lower {outcome}.",
        "A significant decrease in {outcome} was found with {one} compared with {other}.",
    ),
    0: (
        "{outcome} did not differ significantly between {one} and {other}.",
        "{one} had no significant effect on {outcome} compared with {other}.",
        "There was no significant difference in {outcome} between {one} and {other}.",
        "{outcome} was similar with {one} and with {other}.",
    ),
}


def attribution_bench(dataset: str, files: Sequence[Path]) -> Iterator[PoolRow]:
    """AttributionBench: a ``claim`` of an answer to ``question``, and the ``references`` that it cites."""
    for path in files:
        for record in json_lines(path):
            claim = _CITATION.sub("", record.text("claim")).strip()
            if record.text("src_dataset") in _ANSWERS and _states(claim):
                yield from pool_row(
                    dataset,
                    [_CITATION.sub("", text).strip() for text in record.texts("references")],
                    claim,
                    record.one_of("attribution_label", _ATTRIBUTION),
                    question=record.text("question"),
                )


def _states(claim: str) -> bool:
    """Whether a piece of an answer is a statement: not "Based on the given context,", nor a heading."""
    return len(claim.split()) >= _LEAST_CLAIM and not claim.endswith((",", ";", ":", "?"))


def check_covid(dataset: str, files: Sequence[Path]) -> Iterator[PoolRow]:
    """Check-COVID: claims of the news, and the sentences of an abstract that decide them.

    Files: the abstracts, then the claims. Where the sentences don't say enough the others might: so these are
    beside the claim (``distractors``) only where they do. Rows of one abstract have the same ``source``.
    """
    corpus, *claims = files
    abstracts = {record.text("cord_id"): record.texts("abstract") for record in json_lines(corpus)}
    for path in claims:
        for record in json_lines(path):
            name = record.text("cord_id")
            if name not in abstracts:
                raise record.wrong(f"no abstract of its 'cord_id' in {corpus}")
            label = record.one_of("label", _CHECKED)
            sentences = abstracts[name]
            named = {_place(item, len(sentences)) for item in record.records("evidence_set")}
            others = [text for place, text in enumerate(sentences) if place not in named]
            yield from pool_row(
                dataset,
                [" ".join(sentences[place] for place in sorted(named))],
                record.text("claim"),
                label,
                distractors=[] if label == "unsupported" else others,
                source=name,
            )


def _place(item: Record, count: int) -> int:
    return item.one_of("sent_index", {str(place): place for place in range(count)})


def evidence_inference(dataset: str, files: Sequence[Path]) -> Iterator[PoolRow]:
    """Evidence Inference: what a trial found of an outcome, of which a claim is made by rule.

    Files: the prompts (``Outcome``, ``Intervention``, ``Comparator``), then physicians' answers with the
    words of the article that say it, confirmed by another physician. Left out are prompts that they answer
    differently, and words that do not name the outcome and both sides: a claim would. The claim says what was
    found, also from the comparator's side, or something else: which of them is the same in each run. Rows of
    one article have the same ``source``.
    """
    prompts, *answers = files
    columns = ("PromptID", "Outcome", "Intervention", "Comparator")
    asked = {
        record.text("PromptID"): record for record in table(prompts, columns, quoted=True, delimiter=",")
    }
    needed = ("PromptID", "PMCID", "Valid Label", "Valid Reasoning", "Label", "Annotations")
    found: dict[str, dict[tuple[str, str], None]] = {}
    results: dict[str, set[int]] = {}
    for path in answers:
        for record in table(path, needed, quoted=True, delimiter=","):
            result = record.one_of("Label", _TRIAL)
            valid = record.one_of("Valid Label", _VALID) and record.one_of("Valid Reasoning", _VALID)
            if valid and result in _SAID:
                if record.text("PromptID") not in asked:
                    raise record.wrong(f"no prompt of its 'PromptID' in {prompts}")
                results.setdefault(record.text("PromptID"), set()).add(result)
                told = unescape(record.text("Annotations")), record.text("PMCID")
                found.setdefault(record.text("PromptID"), {})[told] = None
    for name, said in found.items():
        parts = tuple(_within(asked[name].text(column)) for column in columns[1:])
        result, *others = results[name]
        if others or not all(parts) or any(map(_NO_ARM.match, parts)):
            continue
        for evidence, article in said:
            if "\n" not in evidence and len(evidence.split()) >= _LEAST_WORDS and _names(evidence, parts):
                claim, true = _trial_claim(parts, result, random.Random(f"{name} {evidence}"))
                label: Label = "supported" if true else "contradicted"
                yield from pool_row(dataset, [evidence], claim, label, source=article)


def _names(evidence: str, parts: Sequence[str]) -> bool:
    """Whether the evidence has a word of each part, by its first letters."""
    stems = {word[:_STEM] for word in _words(evidence)}
    return all(any(word[:_STEM] in stems for word in _words(part)) for part in parts)


def _words(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", text.lower()) if len(word) > 3 or not word.isalpha()]


def _trial_claim(parts: Sequence[str], found: int, random_: random.Random) -> tuple[str, bool]:
    """A sentence about what a trial found of an outcome, and whether it did."""
    outcome, one, other = parts
    true = random_.random() < _TRUE
    said = found if true else random_.choice([each for each in _SAID if each != found])
    if random_.random() < 0.5:
        one, other, said = other, one, -said
    return _opened(random_.choice(_SAID[said]).format(outcome=outcome, one=one, other=other)), true


def _within(text: str) -> str:
    """Words as they stand within a sentence: "Total mortality" in small letters, "HbA1c" as it is."""
    text = unescape(text).strip(" ;.,:")
    first = text.split()[0] if text else ""
    return text[0].lower() + text[1:] if first[1:].islower() else text


def _opened(sentence: str) -> str:
    first = sentence.split()[0]
    return sentence[0].upper() + sentence[1:] if first.islower() else sentence
