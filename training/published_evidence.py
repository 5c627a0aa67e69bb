"""The rows of public data sets whose claims people held against what was found for them: cited passages of
answers, pages of the web, abstracts and trials.

Readers as those of ``training.published_readers``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
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
_STANCE: Final[Mapping[str, Label]] = {
    "completely-support": "supported",
    "partially-support": "partially_supported",
    "refute": "contradicted",
}
_NO_STANCE: Final = "irrelevant"
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
_LEAST_WORDS: Final = 8  # of evidence; what is shorter is a part of a table without its head
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
            if record.text("src_dataset") in _ANSWERS:
                yield from pool_row(
                    dataset,
                    [_CITATION.sub("", text).strip() for text in record.texts("references")],
                    _CITATION.sub("", record.text("claim")).strip(),
                    record.one_of("attribution_label", _ATTRIBUTION),
                    question=record.text("question"),
                )


def factcheck_gpt(dataset: str, files: Sequence[Path]) -> Iterator[PoolRow]:
    """Factcheck-GPT: a ``claim`` of an answer, a passage of the web (``evidence``) and its ``stance``.

    Passages that take none are left out: they outnumber the others, and many of them say the claim in part.
    """
    for path in files:
        for record in json_lines(path):
            if record.text("stance") == _NO_STANCE:
                continue
            yield from pool_row(
                dataset,
                [record.text("evidence")],
                record.text("claim"),
                record.one_of("stance", _STANCE),
            )


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
    words of the article that say it, confirmed by another physician. The claim says what was found, also from
    the comparator's side, or something else: which of them is the same in each run. Rows of one article have
    the same ``source``.
    """
    prompts, *answers = files
    columns = ("PromptID", "Outcome", "Intervention", "Comparator")
    asked = {
        record.text("PromptID"): record for record in table(prompts, columns, quoted=True, delimiter=",")
    }
    needed = ("PromptID", "PMCID", "Valid Label", "Valid Reasoning", "Label", "Annotations")
    seen: set[tuple[str, str]] = set()
    for path in answers:
        for record in table(path, needed, quoted=True, delimiter=","):
            name, evidence = record.text("PromptID"), record.text("Annotations")
            found = record.one_of("Label", _TRIAL)
            valid = record.one_of("Valid Label", _VALID) and record.one_of("Valid Reasoning", _VALID)
            told = "\n" not in evidence and len(evidence.split()) >= _LEAST_WORDS
            if not valid or not told or found not in _SAID or (name, evidence) in seen:
                continue
            seen.add((name, evidence))
            if name not in asked:
                raise record.wrong(f"no prompt of its 'PromptID' in {prompts}")
            claim, true = _trial_claim(asked[name], found, random.Random(f"{name} {evidence}"))
            label: Label = "supported" if true else "contradicted"
            yield from pool_row(dataset, [evidence], claim, label, source=record.text("PMCID"))


def _trial_claim(prompt: Record, found: int, random_: random.Random) -> tuple[str, bool]:
    """A sentence about what a trial found of an outcome, and whether it did."""
    outcome, one, other = (prompt.text(name) for name in ("Outcome", "Intervention", "Comparator"))
    if not (outcome and one and other):
        return "", False
    true = random_.random() < _TRUE
    said = found if true else random_.choice([each for each in _SAID if each != found])
    if random_.random() < 0.5:
        one, other, said = other, one, -said
    sentence = random_.choice(_SAID[said])
    return _opened(sentence.format(outcome=_within(outcome), one=_within(one), other=_within(other))), true


def _within(text: str) -> str:
    """Words as they stand within a sentence: "Total mortality" in small letters, "HbA1c" as it is."""
    first = text.split()[0]
    return text[0].lower() + text[1:] if first[1:].islower() else text


def _opened(sentence: str) -> str:
    first = sentence.split()[0]
    return sentence[0].upper() + sentence[1:] if first.islower() else sentence
