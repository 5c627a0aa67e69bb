"""Facts written for training, in ``training/written/*.yaml`` -> examples.

A fact is a sentence, a paragraph or a conversation as leaflets, terms or encyclopedias word it (``source``),
what chat assistants may say of it (``says``), and what they may not (``wrong``, with labels). ``slots`` are
values: ``{name}`` stands for one, ``{name!}`` for another one of the same slot. Facts of one file make up the
passages that theirs stand in. In the folder ``twins`` each wrong claim is the twin of the right one in its
place: it has the same words in the wrong order, or a neighbour's name or value.
"""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from guardrail.evidence.sentences import sentence_spans
from training.balance import balanced
from training.chat_wording import chat_worded
from training.examples import DataError, Example, Label
from training.paraphrase import lowered, paraphrased
from training.rows import Row, is_held_out

FOLDER: Final = Path(__file__).parent / "written"
WRITTEN: Final = "written-"
"""How their data sets' names begin; the file's follows."""
LICENCE: Final = "Apache-2.0"
"""This project's: they were written for it."""
TWINS: Final = "twins-"
"""How the names of files begin whose wrong claims are twins of the right ones."""
MEASURED: Final = "written, measured"
"""The ``source`` of examples that nothing at all is fitted on, no combiner either."""
_INSTANCES: Final = 3  # of a fact for each two of its slots, with other values
_MOST_INSTANCES: Final = 9
_ALONE: Final = 0.2  # of passages have the source only
_COMPANY: Final = (2, 8)
_COMPANY_OF_LONG: Final = (0, 3)  # of paragraphs and conversations
_LONG: Final = 60  # words
_SUMMARIES: Final = 4  # of a long source, as many right as wrong
_SUMMED_UP: Final = (2, 3)  # claims in one
_PASSAGES: Final = 0.35  # of examples have their company in passages of their own
_LEFT_OUT: Final = 0.4  # of claims stand once more where nothing says them
_JOINED: Final = 0.3  # of claims are joined with one about another fact
_BOTH_RIGHT: Final = 0.6  # of those
_LINKS: Final = (", and ", "; ", " and ", ", while ", ", whereas ", ". Also, ", ", and also ")
_AS_IT_STANDS: Final = 0.4  # of sources that are claims; others are reworded
_VERBATIM_JOINED: Final = 0.5  # of sources are claims joined with another one
_ANSWERING: Final = ("Yes", "No, ", "According")  # so begins what can't be joined
_MIRRORED: Final = 0.35  # of claims with slots stand once more beside a source with other values
_CHAT: Final = 0.15  # of right claims are worded as chat assistants do
_CHAT_WRONG: Final = 0.4  # of wrong ones: their writers keep to the source's words
_SIDES: Final = (("written", False), ("written", True), (MEASURED, True))
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where there is one
_SLOT: Final = re.compile(r"\{(\w+)(!?)\}")
_BEGINS: Final = re.compile(r"(?:^|[.!?] |\n)\Z")  # what stands before a sentence
_TWIN_INSTANCES: Final = 2
_TWINS_AMONG_OTHERS: Final = 0.5  # of twins' sources stand beside one or two others
_STAYS: Final = ("contradicted", "partially_supported")
"""What a wrong claim that is joined with a right one remains; an unsupported one then is partially so."""

Text = Annotated[str, Field(min_length=5, max_length=1200)]


class Fact(BaseModel):
    """An entry of a file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: Text
    slots: dict[str, Annotated[list[str | int | float], Field(min_length=2)]] = Field(default_factory=dict)
    says: Annotated[list[Text], Field(min_length=1)]
    wrong: Annotated[list[tuple[Label, Text]], Field(min_length=1)]

    @model_validator(mode="after")
    def _filled(self) -> Fact:
        right = (self.source, *self.says)
        for text in (*right, *(claim for _, claim in self.wrong)):
            for name, other in _SLOT.findall(text):
                if name not in self.slots:
                    raise ValueError(f"{text!r} names {{{name}}}, which is none of the slots")
                if other and text in right:
                    raise ValueError(f"{text!r}: {{{name}!}} may stand in wrong claims only")
        for label, claim in self.wrong:
            if label == "supported":
                raise ValueError(f"{claim!r} of wrong is labelled supported; move it to says")
            if claim in right:
                raise ValueError(f"{claim!r} of wrong is the source or stands in says; drop one of both")
        return self


@dataclass(frozen=True, slots=True)
class _Instance:
    fact: Fact
    values: dict[str, str]
    others: dict[str, str]

    def text(self, template: str, *, swapped: bool = False) -> str:
        """``swapped``: what the slots stand for is the other value."""
        mine, theirs = (self.others, self.values) if swapped else (self.values, self.others)

        def value(match: re.Match[str]) -> str:
            found = (theirs if match[2] else mine)[match[1]]
            return found[:1].upper() + found[1:] if _BEGINS.search(template, 0, match.start()) else found

        return _SLOT.sub(value, template)


def read_facts(folder: Path = FOLDER) -> dict[str, list[Fact]]:
    """The facts by the names of their files, a folder's name before those in it. Raises DataError that names
    the folder, or file and entry."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no folder; name one that holds facts in YAML files (--facts)")
    found: dict[str, list[Fact]] = {}
    for path in sorted(folder.rglob("*.yaml")):
        name = "-".join(path.relative_to(folder).with_suffix("").parts)
        found[name] = []
        for number, entry in enumerate(_entries(path), 1):
            fact = _fact(entry, where := f"{path}, entry {number}")
            if name.startswith(TWINS) and len(fact.says) != len(fact.wrong):
                raise DataError(
                    f"{where}: {len(fact.says)} of says and {len(fact.wrong)} of wrong; give each its twin"
                )
            found[name].append(fact)
    return found


def _entries(path: Path) -> list[Any]:
    try:
        entries = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)  # noqa: S506 - a safe one
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise DataError(f"{path}: can't be read as YAML ({error})") from error
    if not isinstance(entries, list):
        raise DataError(f"{path}: no list of facts; begin each with '- source: '")
    return entries


def _fact(entry: Any, where: str) -> Fact:
    try:
        return Fact.model_validate(entry)
    except ValidationError as error:
        raise DataError(f"{where}: {error}") from error


def written_examples(facts: Mapping[str, Sequence[Fact]], *, seed: int) -> Iterator[Example]:
    """All claims of the facts, in passages of their source and others of the same file.

    A fifth of the facts, by checksum, is held out; half of these, with ``source`` ``MEASURED``, are only
    measured on. No passage has facts of two of the three kinds.
    """
    random_ = random.Random(seed)
    for domain, every in sorted(facts.items()):
        if domain.startswith(TWINS):
            continue
        for source, held_out in _SIDES:
            mine = [fact for fact in every if _side(fact) == (source, held_out)]
            instances = [instance for fact in mine for instance in _instances(fact, random_)]
            for instance in instances:
                near = [other for other in instances if other.fact is not instance.fact]
                long = instance.fact.source.count(" ") >= _LONG
                made = (_examples, _summaries if long else _verbatim)
                for example in chain.from_iterable(make(instance, near, random_) for make in made):
                    yield replace(example, dataset=WRITTEN + domain, source=source, held_out=held_out)


def twin_examples(facts: Mapping[str, Sequence[Fact]], *, seed: int) -> Iterator[Example]:
    """Right claims of the facts in ``twins``, each followed by its wrong twin in the same passage; held out
    like those of ``written_examples``."""
    random_ = random.Random(seed)
    number = 0
    for domain, every in sorted(facts.items()):
        if not domain.startswith(TWINS):
            continue
        for source, held_out in _SIDES:
            mine = [fact for fact in every if _side(fact) == (source, held_out)]
            for fact in mine * (1 if held_out else _TWIN_INSTANCES):
                instance, *near = (_drawn(each, random_) for each in (fact, *_company(fact, mine, random_)))
                for right, (label, wrong) in zip(fact.says, fact.wrong, strict=True):
                    number += 1
                    chat = random_.random() < _CHAT
                    state = random_.getstate()
                    both: tuple[tuple[str, Label], ...] = ((right, "supported"), (wrong, label))
                    for template, said in both:
                        random_.setstate(state)  # the same words round both, the same company
                        claim = _worded(instance.text(template), random_, float(chat))
                        made = _example(claim, said, instance, near, random_, all_near=True, kind="twin")
                        yield replace(
                            made, dataset=WRITTEN + domain, source=source, held_out=held_out, twin=number
                        )


def _company(fact: Fact, facts: Sequence[Fact], random_: random.Random) -> list[Fact]:
    others = [other for other in facts if other is not fact]
    if random_.random() >= _TWINS_AMONG_OTHERS:
        return []
    return random_.sample(others, min(len(others), random_.randint(1, 2)))


def measured_rows(facts: Mapping[str, Sequence[Fact]], *, limit: int, seed: int) -> list[Row]:
    """At most ``limit`` claims of the facts that nothing is fitted on, balanced as those trained on are: else
    a judge that only counts shared words is measured by what their writers did."""
    measured = {name: [f for f in every if _side(f)[0] == MEASURED] for name, every in facts.items()}
    made = balanced(written_examples(measured, seed=seed), seed=seed)
    rows = [Row(e.dataset, e.contexts, e.claim, e.label) for e in made]
    return random.Random(seed).sample(rows, min(limit, len(rows)))


def _side(fact: Fact) -> tuple[str, bool]:
    held_out = is_held_out(fact.source)
    measured = held_out and zlib.crc32(fact.source.encode()) % 10 == 0
    return (MEASURED if measured else "written"), held_out


def _instances(fact: Fact, random_: random.Random) -> Iterator[_Instance]:
    wanted = min(_MOST_INSTANCES, _INSTANCES * ((len(fact.slots) + 1) // 2))
    for _ in range(max(1, wanted)):
        yield _drawn(fact, random_)


def _drawn(fact: Fact, random_: random.Random) -> _Instance:
    drawn = {name: random_.sample(values, 2) for name, values in fact.slots.items()}
    return _Instance(fact, {n: str(v[0]) for n, v in drawn.items()}, {n: str(v[1]) for n, v in drawn.items()})


def _examples(instance: _Instance, near: Sequence[_Instance], random_: random.Random) -> Iterator[Example]:
    fact = instance.fact
    for template in fact.says:
        claim = _worded(instance.text(template), random_, _CHAT)
        if random_.random() < _LEFT_OUT and near:
            yield _example(claim, "unsupported", None, near, random_, kind="absent")
        if random_.random() < _JOINED and near:
            yield from _joined(instance, claim, random_.choice(near), random_)
        yield _example(claim, "supported", instance, near, random_)
        if _SLOT.search(template) and random_.random() < _MIRRORED:
            yield _example(claim, "contradicted", instance, near, random_, swapped=True, kind="value")
    for label, template in fact.wrong:
        claim = _worded(instance.text(template), random_, _CHAT_WRONG)
        yield _example(claim, label, instance, near, random_, kind="wrong")


def _joined(instance: _Instance, claim: str, other: _Instance, random_: random.Random) -> Iterator[Example]:
    """Two facts in one claim: both right, or the second one wrong."""
    label: Label = "supported"
    second = other.text(random_.choice(other.fact.says))
    if random_.random() >= _BOTH_RIGHT:
        label, template = random_.choice(other.fact.wrong)
        label, second = label if label in _STAYS else "partially_supported", other.text(template)
    if not claim.startswith(_ANSWERING) and not second.startswith(_ANSWERING):
        both = _linked(claim, second, random_)
        yield _example(both, label, instance, [other], random_, all_near=True, kind="merge")


def _summaries(instance: _Instance, near: Sequence[_Instance], random_: random.Random) -> Iterator[Example]:
    """Several claims about a long source in one, all right or one of them wrong, and a sentence of it."""
    fact = instance.fact
    for number in range(_SUMMARIES):
        count = min(random_.randint(*_SUMMED_UP), len(fact.says))
        parts = [instance.text(template) for template in random_.sample(fact.says, count)]
        label: Label = "supported"
        if number % 2:
            label, template = random_.choice(fact.wrong)
            label = label if label in _STAYS else "partially_supported"
            parts[random_.randrange(count)] = instance.text(template)
        yield _example(" ".join(parts), label, instance, near, random_, kind="merge")
    if "\n" not in fact.source:
        text = instance.text(fact.source)
        spans = list(zip(*sentence_spans(text), strict=True))
        start, end = random_.choice(spans)
        yield _example(text[start:end], "supported", instance, near, random_)


def _verbatim(instance: _Instance, near: Sequence[_Instance], random_: random.Random) -> Iterator[Example]:
    """The source as a claim, as it stands, reworded, or joined with another one."""
    source = instance.text(instance.fact.source)
    claim = source if random_.random() < _AS_IT_STANDS else paraphrased(source, random_)[0]
    yield _example(claim, "supported", instance, near, random_)
    if near and random_.random() < _VERBATIM_JOINED:
        other = random_.choice(near)
        both = _linked(claim, other.text(other.fact.source), random_)
        yield _example(both, "supported", instance, [other], random_, all_near=True)


def _linked(claim: str, second: str, random_: random.Random) -> str:
    return f"{claim.rstrip('.')}{random_.choice(_LINKS)}{lowered(second) or second}"


def _worded(claim: str, random_: random.Random, share: float) -> str:
    return chat_worded(claim, random_) if random_.random() < share else claim


def _example(
    claim: str,
    label: Label,
    instance: _Instance | None,
    near: Sequence[_Instance],
    random_: random.Random,
    *,
    swapped: bool = False,
    all_near: bool = False,
    kind: str | None = None,
) -> Example:
    """A claim beside its source and up to eight ``near`` ones, or all of them (``all_near``).

    ``instance`` None: its source is left out. ``swapped``: its source has the other values. The data set's
    name and ``source`` are left to the caller.
    """
    long = any(other.fact.source.count(" ") >= _LONG for other in near)
    company = random_.randint(*(_COMPANY_OF_LONG if long else _COMPANY))
    count = len(near) if all_near else min(len(near), company)
    if instance is None:
        count = max(1, count)
    if instance is not None and not all_near and random_.random() < _ALONE:
        count = 0
    texts = [other.text(other.fact.source) for other in random_.sample(near, count)]
    if instance is not None:
        texts.append(instance.text(instance.fact.source, swapped=swapped))
    random_.shuffle(texts)
    spans: tuple[tuple[int, int], ...] | None = ((0, len(claim)),) if kind == "absent" else None
    return Example(
        dataset="",
        licence=LICENCE,
        claim=claim,
        contexts=_passages(texts, random_) if random_.random() < _PASSAGES else (_one(texts),),
        label=label,
        kind=None if label == "supported" else kind,
        spans=() if label == "supported" else spans,
        made="written",
    )


def _passages(texts: list[str], random_: random.Random) -> tuple[str, ...]:
    cut = random_.randint(1, len(texts))
    return tuple(_one(part) for part in (texts[:cut], texts[cut:]) if part)


def _one(texts: Sequence[str]) -> str:
    """One text of them; between conversations stands a line."""
    return ("\n\n" if any("\n" in text for text in texts) else " ").join(texts)
