"""Which public data sets are trained on as their authors published them, and where their files lie.

Each set has a folder of the ``--data`` folder: a clone of its repository, or what its archive unpacks to. The
files are looked for anywhere below, by the end of their path, plain or with ``.gz``. Only training parts are
read. A set published as a benchmark has none: of those the files named here are trained on, and the rest of
the set (other parts or domains) is left for measuring. Licences: ``training.rows.LICENCES``.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from training import published_evidence as evidence
from training import published_readers as readers
from training.examples import DataError
from training.published_readers import PoolRow, Reader

_SEED: Final = 20261121
_GITHUB: Final = "https://github.com"
_SUMMEDITS: Final = ("podcast", "qmsumm", "sales_email", "scitldr")  # other domains are measured on


@dataclass(frozen=True, slots=True)
class Published:
    """A data set: its folder, the ends of its files' paths, where it is to be had, what reads it.

    ``most``: rows kept, drawn with a fixed seed, of a set of many more than are trained on.
    """

    dataset: str
    folder: str
    files: tuple[str, ...]
    url: str
    read: Reader
    most: int | None = None


PUBLISHED: Final = (
    Published(
        "conjnli",
        "conjnli",
        ("adversarial_train_15k.tsv",),
        f"{_GITHUB}/swarnaHub/ConjNLI",
        readers.conjnli,
    ),
    Published(
        "counterfactual-nli",
        "counterfactual-nli",
        ("NLI/all_combined/train.tsv",),
        f"{_GITHUB}/acmi-lab/counterfactually-augmented-data",
        readers.counterfactual_nli,
    ),
    Published(
        "breaking-nli",
        "breaking-nli",
        ("data/dataset.jsonl",),
        f"{_GITHUB}/BIU-NLP/Breaking_NLI (unpack breaking_nli_dataset.zip)",
        readers.breaking_nli,
    ),
    *(
        Published(
            f"begin-{short}",
            "begin",
            (f"begin_dev_{short}.tsv",),
            f"{_GITHUB}/google/BEGIN-dataset",
            readers.begin,
        )
        for short in ("cmu", "tc")  # wow is measured on
    ),
    *(
        Published(
            f"summedits-{domain}",
            "summedits",
            (f"summedits_{domain}.json",),
            f"{_GITHUB}/salesforce/factualNLG",
            readers.summedits,
        )
        for domain in _SUMMEDITS
    ),
    Published(
        "wice-claim",
        "wice",
        ("entailment_retrieval/claim/train.jsonl",),
        f"{_GITHUB}/ryokamoi/wice",
        readers.wice,
    ),
    Published(
        "wice-subclaim",
        "wice",
        ("non_supported_tokens/train.jsonl", "entailment_retrieval/subclaim/train.jsonl"),
        f"{_GITHUB}/ryokamoi/wice",
        readers.wice,
    ),
    Published(
        "fool-me-twice",
        "fool-me-twice",
        ("dataset/train.jsonl",),
        f"{_GITHUB}/google-research/fool-me-twice",
        readers.fool_me_twice,
    ),
    Published(
        "fever",
        "fever",
        ("train_fitems.jsonl",),
        f"{_GITHUB}/easonnie/combine-FEVER-NSMN (other_resources/nli_fever.md; unpack nli_fever.zip)",
        readers.nli_fever,
        most=15_000,
    ),
    Published(
        "fever-symmetric",
        "fever-symmetric",
        ("symmetric_v0.2/fever_symmetric_dev.jsonl",),
        f"{_GITHUB}/TalSchuster/FeverSymmetric",
        readers.fever_symmetric,
    ),
    *(
        Published(
            f"vitaminc-{part}",
            "vitaminc",
            (f"vitaminc_{part}/test.jsonl",),
            f"{_GITHUB}/TalSchuster/talschuster.github.io (unpack static/vitaminc_{part}.zip)",
            readers.vitaminc,
        )
        for part in ("real", "synthetic")
    ),
    Published(
        "wikisplit",
        "wikisplit",
        ("train.tsv",),
        f"{_GITHUB}/google-research-datasets/wiki-split (unpack train.tsv.zip)",
        readers.wikisplit,
        most=30_000,
    ),
    Published(
        "help",
        "help",
        ("leskexppmb_and.tsv", "leskexppmb_or.tsv"),
        f"{_GITHUB}/verypluming/HELP",
        readers.help_nli,
    ),
    Published("med", "med", ("MED.tsv",), f"{_GITHUB}/verypluming/MED", readers.med),
    Published(
        "paws",
        "paws",
        ("dev.tsv", "test.tsv"),
        f"{_GITHUB}/google-research-datasets/paws (PAWS-Wiki Labeled (Final))",
        readers.paws,
    ),
    Published("taxinli", "taxinli", ("taxinli10k.tsv",), f"{_GITHUB}/microsoft/TaxiNLI", readers.taxinli),
    Published(
        "multinli",
        "multinli",
        ("binary-MNLI/dev.txt", "binary-MNLI/test.txt"),
        f"{_GITHUB}/salesforce/DocNLI",
        readers.binary_nli,
    ),
    Published(
        "attribution-bench",
        "attribution-bench",
        (
            "dev_all_subset_balanced.jsonl",
            "test_all_subset_balanced_sampled500.jsonl",
            "test_ood_all_subset_balanced.jsonl",
        ),
        f"{_GITHUB}/OSU-NLP-Group/AttributionBench",
        evidence.attribution_bench,
    ),
    Published(
        "check-covid",
        "check-covid",
        ("Check-COVID/corpus.json", "train/covidCheck_train_composed+extracted.json"),
        f"{_GITHUB}/posuer/Check-COVID",
        evidence.check_covid,
    ),
    Published(
        "evidence-inference",
        "evidence-inference",
        ("annotations/prompts_merged.csv", "annotations/v2_annotations.csv"),
        f"{_GITHUB}/jayded/evidence-inference",
        evidence.evidence_inference,
    ),
)


@dataclass(frozen=True, slots=True)
class Source:
    """A set that is there, with its files in the order in which they are read."""

    published: Published
    paths: tuple[Path, ...]

    def rows(self) -> Iterator[PoolRow]:
        """Its rows, in the form of a pool's. Raises DataError, also where there is none."""
        rows = self.published.read(self.published.dataset, self.paths)
        if self.published.most is not None:
            rows = _drawn(rows, self.published.most)
        empty = True
        for row in rows:
            empty = False
            yield row
        if empty:
            names = ", ".join(map(str, self.paths))
            raise DataError(f"{names}: no row of {self.published.dataset}; see {self.published.url}")


def sources(data: Path) -> list[Source]:
    """The sets whose folders are in ``data``. Raises DataError where one lacks a file, or has it twice."""
    return [
        Source(published, tuple(_file(data / published.folder, name, published) for name in published.files))
        for published in PUBLISHED
        if (data / published.folder).is_dir()
    ]


def folders() -> list[str]:
    """The names of the folders that are looked for."""
    return list(dict.fromkeys(published.folder for published in PUBLISHED))


def _file(folder: Path, name: str, published: Published) -> Path:
    found = sorted(path for tail in (name, f"{name}.gz") for path in folder.rglob(tail) if path.is_file())
    if not found:
        raise DataError(
            f"{folder}: no {name} in it or below, nor {name}.gz; {published.dataset} is published at"
            f" {published.url}; without the folder the set is left out"
        )
    if len(found) > 1:
        raise DataError(f"{folder}: {name} is in it {len(found)} times ({_listed(found)}); leave one")
    return found[0]


def _listed(paths: list[Path]) -> str:
    return ", ".join(map(str, paths[:4]))


def _drawn(rows: Iterable[PoolRow], most: int) -> Iterator[PoolRow]:
    """At most ``most`` of the rows, each with the same chance (Vitter's algorithm R), in bounded memory."""
    random_ = random.Random(_SEED)
    kept: list[PoolRow] = []
    for number, row in enumerate(rows):
        if number < most:
            kept.append(row)
        elif (at := random_.randrange(number + 1)) < most:
            kept[at] = row
    yield from kept
