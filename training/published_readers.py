"""The rows of public data sets, from the files that their authors published.

A reader takes the data set's name and its files and yields rows in the form of a pool's: ``dataset``,
``contexts``, ``claim``, ``label`` and, where the data have them, ``question``, ``distractors``,
``claim_tokens`` with ``non_supported_spans``, and ``source``: rows of one are held out together. Rows without
a claim or without any context are left out: there is nothing to decide. All raise DataError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from training.examples import Label
from training.passages import detokenised
from training.published_files import Record, bare_table, json_array, json_lines, table

PoolRow: TypeAlias = dict[str, Any]
Reader: TypeAlias = Callable[[str, Sequence[Path]], Iterator[PoolRow]]

_NLI: Final[Mapping[str, Label]] = {
    "entailment": "supported",
    "contradiction": "contradicted",
    "neutral": "unsupported",
}
_FEVER: Final[Mapping[str, Label]] = {
    "SUPPORTS": "supported",
    "REFUTES": "contradicted",
    "NOT ENOUGH INFO": "unsupported",
}
_BEGIN: Final[Mapping[str, Label]] = {
    "Fully attributable": "supported",
    "Not fully attributable": "not_supported",
    "Generic": "not_supported",
}
_SUMMEDITS: Final[Mapping[str, Label]] = {"1": "supported", "0": "not_supported"}
_WICE: Final[Mapping[str, Label]] = {
    "supported": "supported",
    "partially_supported": "partially_supported",
    "not_supported": "not_supported",  # its annotators weren't asked whether the source denies it
}
_BINARY_NLI: Final[Mapping[str, Label]] = {"entailment": "supported", "not_entailment": "not_supported"}
_PAWS: Final[Mapping[str, Label]] = {"1": "supported", "0": "not_supported"}
_METADATA: Final = "(meta data) "  # before titles and authors of WiCE's pages
_SPLIT: Final = "<::::>"  # between the sentences of WikiSplit
_QUOTE: Final = "\ue000"  # apart from quotes within words, until it is known which open
_QUOTED: Final = re.compile(f"{_QUOTE} ?([^{_QUOTE}]*?) ?{_QUOTE}")
"""In pairs: some files open and close with the same mark, so a mark alone doesn't tell which it is."""
_BLANK: Final = re.compile(r" (?=[?!]|n't\b)")  # left where a text has no other sign of being tokenised
_CROWD: Final = "crowd"  # how the genre of MED's examples begins that were written for it
_LOST: Final = "\ufffd"  # VitaminC's no-break spaces
_AS_WRITTEN: Final = {
    **dict.fromkeys(("``", "''", '"'), _QUOTE),
    **dict(zip(("-LRB-", "-RRB-", "-LSB-", "-RSB-", "-LCB-", "-RCB-", "--"), "()[]{}–", strict=True)),
}


def conjnli(dataset: str, files: Sequence[Path]) -> Iterator[PoolRow]:
    """ConjNLI: ``Premise``, ``Hypothesis``, ``Label``; quotes are part of the text."""
    for path in files:
        for record in table(path, ("Premise", "Hypothesis", "Label"), quoted=False):
            yield from pool_row(
                dataset,
                [record.text("Premise")],
                record.text("Hypothesis"),
                record.one_of("Label", _NLI),
            )


def counterfactual_nli(dataset: str, files: Sequence[Path]) -> Iterator[PoolRow]:
    """Counterfactually augmented NLI: ``sentence1`` (premise), ``sentence2``, ``gold_label``."""
    for path in files:
        for record in table(path, ("sentence1", "sentence2", "gold_label"), quoted=True):
            yield from pool_row(dataset, *_pair(record))


def breaking_nli(dataset: str, files: Sequence[Path]) -> Iterator[PoolRow]:
    """Breaking NLI: ``sentence1`` (premise), ``sentence2``, ``gold_label``."""
    for path in files:
        for record in json_lines(path):
            yield from pool_row(dataset, *_pair(record))


def begin(dataset: str, files: Sequence[Path]) -> Iterator[PoolRow]:
    """BEGIN: a ``response`` to a ``message``, and whether its ``knowledge`` says it."""
    for path in files:
        for record in table(path, ("knowledge", "message", "response", "begin_label"), quoted=False):
            yield from pool_row(
                dataset,
                [record.text("knowledge")],
                record.text("response"),
                record.one_of("begin_label", _BEGIN),
                question=record.text("message"),
            )


def summedits(dataset: str, files: Sequence[Path]) -> Iterator[PoolRow]:
    """SummEdits: a ``summary`` of ``doc``, edited or not; ``label`` 1 is consistent."""
    for path in files:
        for record in json_array(path):
            yield from pool_row(
                dataset, [record.text("doc")], record.text("summary"), record.one_of("label", _SUMMEDITS)
            )


def wice(dataset: str, files: Sequence[Path]) -> Iterator[PoolRow]:
    """WiCE: a claim and the sentences of the pages that it cites, one context.

    A claim may be in two files, with its unsupported tokens marked (``claim_tokens``) and without: the
    files with marks come first, and what they hold is taken from them.
    """
    seen: set[str] = set()
    for path in files:
        for record in json_lines(path):
            name = record.inside("meta").text("id")
            if name in seen:
                continue
            seen.add(name)
            sentences = (text.removeprefix(_METADATA) for text in record.texts("evidence"))
            yield from pool_row(
                dataset,
                [" ".join(text for text in sentences if text)],
                record.text("claim"),
                record.one_of("label", _WICE),
                **_marks(record),
            )


def fool_me_twice(dataset: str, files: Sequence[Path]) -> Iterator[PoolRow]:
    """Fool Me Twice: ``text`` with the sentences that decide it; the others that were retrieved don't."""
    for path in files:
        for record in json_lines(path):
            gold = [item.text("text") for item in record.records("gold_evidence")]
            retrieved = [item.text("text") for item in record.records("retrieved_evidence")]
            yield from pool_row(
                dataset,
                gold,
                record.text("text"),
                record.one_of("label", _FEVER),
                distractors=[text for text in retrieved if text and text not in gold],
            )


def nli_fever(dataset: str, files: Sequence[Path]) -> Iterator[PoolRow]:
    """FEVER in NLI form: the claim is ``query``, the sentences for it ``context``, tokenised."""
    for path in files:
        for record in json_lines(path):
            yield from pool_row(
                dataset,
                [_untokenised(record.text("context"))],
                _untokenised(record.text("query")),
                record.one_of("label", _FEVER),
            )


def fever_symmetric(dataset: str, files: Sequence[Path]) -> Iterator[PoolRow]:
    """FEVER Symmetric 0.2: ``claim``, ``evidence`` and ``label``, tokenised."""
    for path in files:
        for record in json_lines(path):
            yield from pool_row(
                dataset,
                [_untokenised(record.text("evidence"))],
                _untokenised(record.text("claim")),
                record.one_of("label", _FEVER),
            )


def vitaminc(dataset: str, files: Sequence[Path]) -> Iterator[PoolRow]:
    """VitaminC: ``claim``, ``evidence`` and ``label``, tokenised, with the ``page`` of the revision."""
    for path in files:
        for record in json_lines(path):
            yield from pool_row(
                dataset,
                [_untokenised(record.text("evidence").replace(_LOST, " "))],
                _untokenised(record.text("claim").replace(_LOST, " ")),
                record.one_of("label", _FEVER),
                source=record.text("page"),
            )


def wikisplit(dataset: str, files: Sequence[Path]) -> Iterator[PoolRow]:
    """WikiSplit: a sentence, and those that it was split into: each of them is a claim that it supports."""
    for path in files:
        for record in bare_table(path, ("sentence", "split")):
            sentence = _untokenised(record.text("sentence"))
            parts = record.text("split").split(_SPLIT)
            if len(parts) < 2:
                raise record.wrong(f"no {_SPLIT} in column 2")
            for part in parts:
                yield from pool_row(dataset, [sentence], _untokenised(part), "supported")


def help_nli(dataset: str, files: Sequence[Path]) -> Iterator[PoolRow]:
    """HELP: ``ori_sentence`` (premise), ``new_sentence``, ``gold_label``; tokenised, "~" within names."""
    for path in files:
        for record in table(path, ("gold_label", "ori_sentence", "new_sentence"), quoted=True):
            yield from pool_row(
                dataset,
                [_untokenised(record.text("ori_sentence").replace("~", " "))],
                _untokenised(record.text("new_sentence").replace("~", " ")),
                record.one_of("gold_label", _NLI),
            )


def med(dataset: str, files: Sequence[Path]) -> Iterator[PoolRow]:
    """MED: ``sentence1`` (premise), ``sentence2``, ``gold_label``, of the ``genre`` crowd: what it took from
    papers are other sets' examples."""
    for path in files:
        for record in table(path, ("genre", "sentence1", "sentence2", "gold_label"), quoted=False):
            if record.text("genre").startswith(_CROWD):
                yield from pool_row(dataset, *_pair(record))


def paws(dataset: str, files: Sequence[Path]) -> Iterator[PoolRow]:
    """PAWS: two sentences of the same words, tokenised, and whether they say the same (1)."""
    for path in files:
        for record in bare_table(path, ("id", "sentence1", "sentence2", "label")):
            if record.text("id") == "id":  # some copies have a line of names
                continue
            yield from pool_row(
                dataset,
                [_untokenised(record.text("sentence1"))],
                _untokenised(record.text("sentence2")),
                record.one_of("label", _PAWS),
            )


def taxinli(dataset: str, files: Sequence[Path]) -> Iterator[PoolRow]:
    """TaxiNLI: ``prem``, ``hyp`` and MultiNLI's ``label``, where those who sorted the pair agreed with it
    (``annotated_label``)."""
    for path in files:
        for record in table(path, ("prem", "hyp", "label", "annotated_label"), quoted=True):
            if record.text("label") == record.text("annotated_label"):
                yield from pool_row(
                    dataset, [record.text("prem")], record.text("hyp"), record.one_of("label", _NLI)
                )


def binary_nli(dataset: str, files: Sequence[Path]) -> Iterator[PoolRow]:
    """MultiNLI as DocNLI publishes it: whether the second column entails the third, tab-separated."""
    for path in files:
        for record in bare_table(path, ("label", "premise", "hypothesis")):
            yield from pool_row(
                dataset,
                [record.text("premise")],
                record.text("hypothesis"),
                record.one_of("label", _BINARY_NLI),
            )


def _pair(record: Record) -> tuple[list[str], str, Label]:
    """What sets in the form of SNLI hold."""
    return [record.text("sentence1")], record.text("sentence2"), record.one_of("gold_label", _NLI)


def pool_row(
    dataset: str, contexts: Sequence[str], claim: str, label: Label, **more: object
) -> Iterator[PoolRow]:
    """The row in a pool's form, or nothing where there is nothing to decide."""
    contexts = [text for text in contexts if text]
    if contexts and claim:
        yield {"dataset": dataset, "contexts": contexts, "claim": claim, "label": label, **more}


def _marks(record: Record) -> dict[str, object]:
    if "claim_tokens" not in record.fields:
        return {}
    tokens, flags = record.texts("claim_tokens"), record.items("non_supported_spans")
    if len(tokens) != len(flags) or not all(isinstance(flag, bool) for flag in flags):
        raise record.wrong(
            "'non_supported_spans' is no list of true and false, one for each of 'claim_tokens'"
        )
    return {"claim_tokens": list(tokens), "non_supported_spans": flags}


def _untokenised(text: str) -> str:
    """Text as written, from the tokens of a treebank."""
    found = detokenised(" ".join(_AS_WRITTEN.get(token, token) for token in text.split()))
    return _QUOTED.sub(r'"\1"', _BLANK.sub("", found)).replace(_QUOTE, '"')
