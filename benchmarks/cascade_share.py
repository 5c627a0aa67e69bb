"""Which share of claims a cascade passes on to its second judge, and how good the first one is on the others.

    python -m benchmarks.cascade_share --data DIR [--lfqa FILE] [--fit]

``DIR`` holds ``pool-val.jsonl.gz`` and ``expertqa-val.jsonl``; ``--lfqa`` adds the rated sentences of real
answers (``lfqa-val.jsonl.gz``). Each claim gets the severity that the guard would give it, is judged by the
local judge, and settled or not by the bands, as ``CascadeJudge`` does it. ``right`` is the share of claims
whose being called SUPPORTED or not agrees with people's labels (wholly supported or not): of those that stay
(``settled``), of those that go on (``open``), and of all. Apart from that, how often SUPPORTED and how often
the other verdicts are right among the settled ones, and how often a CONTRADICTED is wrong because the claim
is supported after all.

``--fit`` chooses the bands in place of the default ones: by severity the lowest ``accept_support`` and the
highest ``reject_support`` with which what either settles is right in at least ``--least`` (99 %) of the
claims. A side that can't be so sure on at least thirty claims settles nothing. It prints them with the lower
bound of Wilson's interval of that share, and then the tables for them, on the claims they were chosen on.
``--accept 0.97 --reject 0.03`` measures one band for all severities; ``--words`` leaves the verifier out.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.frame import command_line
from benchmarks.labelled_answers import read_answers
from benchmarks.labelled_sets import EXPERTQA, POOL, labelled_sets, require_files
from guardrail.claims import BuiltinSeverityRater
from guardrail.events import SegmentKind, Severity
from guardrail.judges import Judgement, Verdict
from guardrail.judges.cascade import Band, CascadeSettings, settled
from guardrail.judges.local import LocalJudgeSettings
from guardrail.judges.local.check import ClaimChecker, build_checker
from guardrail.judges.local.settings import VerifierSettings
from guardrail.offline.statistics import wilson
from training.rows import Row

SEED: Final = 20260101
_LEAST_CLAIMS: Final = 30  # fewer say nothing of 99 %
_STEPS: Final = 100  # of a probability
_MIDDLE: Final = _STEPS // 2


@dataclass(frozen=True, slots=True)
class Judged:
    """One claim: what people say, and what the local judge says."""

    supported: bool
    severity: Severity
    judgement: Judgement

    @property
    def accepted(self) -> bool:
        """Whether it is called SUPPORTED."""
        return self.judgement.verdict is Verdict.SUPPORTED

    @property
    def right(self) -> bool:
        """Whether people agree with that."""
        return self.supported == self.accepted


def judged(row: Row, checker: ClaimChecker, rater: BuiltinSeverityRater) -> Judged:
    """The row as the first tier of a cascade sees it."""
    severity, _ = rater.rate(row.claim, SegmentKind.SENTENCE)
    judgement = checker.check("c", row.as_claim(severity), row.question, row.index())
    return Judged(row.supported, severity, judgement)


def rated_sentences(path: Path) -> list[Row]:
    """The sentences of real answers that people rated, each with the one before it. Raises OSError and
    ValueError."""
    rows: list[Row] = []
    for answer in read_answers(path):
        response = answer.response
        contexts = tuple(context.text for context in response.contexts)
        before = ""
        for label in answer.labels:
            text = response.answer[slice(*label.span)].strip()
            if label.label is not None and text:
                rows.append(Row("lfqa", contexts, text, label.label, response.question or "", before))
            before = text
    return rows


def percent(rows: Iterable[bool]) -> float:
    """The share of True; not a number where there are none."""
    known = list(rows)
    return 100 * sum(known) / len(known) if known else float("nan")


def figures(rows: Sequence[Judged], settings: CascadeSettings) -> dict[str, float]:
    """The columns of the table, all but the number of claims in percent."""
    stays = [settled(row.judgement, row.severity, settings) for row in rows]
    inside = [row for row, stay in zip(rows, stays, strict=True) if stay]
    contradicted = (row for row in rows if row.judgement.verdict is Verdict.CONTRADICTED)
    return {
        "claims": len(rows),
        "goes on": percent(not stay for stay in stays),
        "settled right": percent(row.right for row in inside),
        "open right": percent(row.right for row, stay in zip(rows, stays, strict=True) if not stay),
        "all right": percent(row.right for row in rows),
        "SUPPORTED right": percent(row.right for row in inside if row.accepted),
        "others right": percent(row.right for row in inside if not row.accepted),
        "CONTRAD. wrong": percent(row.supported for row in contradicted),
    }


def fitted(rows: Sequence[Judged], least: float) -> Band:
    """The band of claims of one severity: each side settles as many as it can and is right in ``least``."""
    accept, reject = (
        next((line for line, right in _lines(rows, accepted=accepted) if right >= least), nothing)
        for accepted, nothing in ((True, 1.0), (False, 0.0))
    )
    return _band(accept, reject)


def _band(accept: float, reject: float) -> Band:
    """A band with another lower line than the constant."""
    band: Band = type("Band", (Band,), {"__module__": __name__, "reject_support": reject})(
        accept_support=accept
    )
    return band


def _lines(rows: Sequence[Judged], *, accepted: bool) -> Iterator[tuple[float, float]]:
    """Each ``accept_support`` or ``reject_support`` that settles claims enough to tell, those that settle the
    most first, and which share of them is right."""
    for step in range(_MIDDLE + 1):
        line = (_MIDDLE + step if accepted else _MIDDLE - step) / _STEPS
        inside = _settled(rows, _one_sided(line, accepted=accepted), accepted=accepted)
        if len(inside) >= _LEAST_CLAIMS:
            yield line, sum(row.right for row in inside) / len(inside)


def _one_sided(line: float, *, accepted: bool) -> Band:
    return _band(line, 0.0) if accepted else _band(1.0, line)


def _settled(rows: Sequence[Judged], band: Band, *, accepted: bool) -> list[Judged]:
    settings = CascadeSettings(bands=dict.fromkeys(Severity, band))
    return [
        row for row in rows if row.accepted == accepted and settled(row.judgement, row.severity, settings)
    ]


def _told(rows: Sequence[Judged], band: Band, *, accepted: bool) -> str:
    inside = _settled(rows, band, accepted=accepted)
    if not inside:
        share, line = max(
            ((right, line) for line, right in _lines(rows, accepted=accepted)), default=(0.0, 0.0)
        )
        return f"settles nothing; at best {100 * share:.1f} % right, with {line:.2f}"
    right = sum(row.right for row in inside)
    low, _ = wilson(right, len(inside))
    return f"{right} of {len(inside)} right, at least {100 * low:.1f} %"


def show_bands(by_severity: Mapping[Severity, Sequence[Judged]], bands: Mapping[Severity, Band]) -> None:
    """Print the bands, how right each side is, and which share they settle."""
    for severity, band in bands.items():
        rows = by_severity[severity]
        inside = sum(len(_settled(rows, band, accepted=accepted)) for accepted in (True, False))
        print(
            f"{severity.value}: settled {inside} of {len(rows)}\n"
            f"  accept_support={band.accept_support:.2f}: {_told(rows, band, accepted=True)}\n"
            f"  reject_support={band.reject_support:.2f}: {_told(rows, band, accepted=False)}"
        )


def show(title: str, table: Mapping[str, Mapping[str, float]]) -> None:
    """Print a table of rows by name."""
    columns = list(next(iter(table.values())))
    print(f"\n{title:22}" + "".join(f"{column:>17}" for column in columns))
    for name, row in table.items():
        cells = (f"{row[c]:>17.0f}" if c == "claims" else f"{row[c]:>17.1f}" for c in columns)
        print(f"{name:22}" + "".join(cells))


def by_severity(rows: Iterable[Judged]) -> dict[Severity, list[Judged]]:
    """The claims of each severity, those of none too."""
    found: dict[Severity, list[Judged]] = {severity: [] for severity in Severity}
    for row in rows:
        found[row.severity].append(row)
    return found


def main() -> None:
    """Measure and print."""
    parser = command_line(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data files")
    parser.add_argument("--lfqa", type=Path, help="answers with rated sentences, to read too")
    parser.add_argument("--limit", type=int, default=600, help="most claims of one set (sampled)")
    parser.add_argument("--fit", action="store_true", help="choose the bands on these claims")
    parser.add_argument(
        "--least", type=float, default=0.99, help="of what is settled that is right, for --fit"
    )
    parser.add_argument("--accept", type=float, help="accept_support for all severities")
    parser.add_argument("--reject", type=float, help="reject_support for all severities")
    parser.add_argument("--words", action="store_true", help="without the verifier")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    require_files(parser, options.data, POOL, EXPERTQA)
    settings = CascadeSettings()
    if options.accept is not None or options.reject is not None:
        accept = 0.9 if options.accept is None else options.accept
        reject = 0.1 if options.reject is None else options.reject
        band = _band(accept, reject)
        settings = CascadeSettings(bands=dict.fromkeys(Severity, band))

    begun = time.perf_counter()
    local = LocalJudgeSettings(verifier=VerifierSettings(enabled=not options.words))
    checker, rater = build_checker(local), BuiltinSeverityRater()
    rows = labelled_sets(options.data, options.limit, SEED)
    if options.lfqa:
        try:
            rows["lfqa"] = rated_sentences(options.lfqa)
        except (OSError, ValueError) as error:
            parser.error(f"--lfqa: {error}")
    sets = {name: [judged(row, checker, rater) for row in every] for name, every in rows.items()}
    everything = [row for every in sets.values() for row in every]
    if options.fit:
        bands = {
            severity: fitted(every, options.least) for severity, every in by_severity(everything).items()
        }
        show_bands(by_severity(everything), bands)
        settings = CascadeSettings(bands=bands)
    table = {name: figures(every, settings) for name, every in sets.items()}
    table["all"] = figures(everything, settings)
    show("set", table)
    tables = {"sets": table}
    for name, every in (
        ("severities", everything),
        *((n, sets[n]) for n in ("expertqa", "lfqa") if n in sets),
    ):
        tables[name] = {s.value: figures(some, settings) for s, some in by_severity(every).items()}
        show("severity, all sets" if name == "severities" else f"severity, {name}", tables[name])
    print(f"\n{time.perf_counter() - begun:.0f} s")
    if options.json:
        bands_ = {
            severity.value: {"accept_support": band.accept_support, "reject_support": band.reject_support}
            for severity, band in settings.bands.items()
        }
        options.json.write_text(json.dumps({"bands": bands_, **tables}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
