"""Which share of claims a cascade passes on to its second judge, and how good the first one is on the others.

    python -m benchmarks.cascade_share --data DIR [--lfqa FILE] [--fit]

``DIR`` holds ``pool-val.jsonl.gz`` and ``expertqa-val.jsonl``; ``--lfqa`` adds the rated sentences of real
answers (``lfqa-val.jsonl.gz``). Each claim gets the severity that the guard would give it, is judged by the
local judge, and settled or not by the bands, as ``CascadeJudge`` does it. ``right`` is the share of claims
whose being called SUPPORTED or not agrees with people's labels (wholly supported or not): of those that stay
(``settled``), of those that go on (``open``), and of all. Apart from that, how often SUPPORTED and how often
the other verdicts are right among the settled ones, and how often a CONTRADICTED is wrong because the claim
is supported after all.

``--fit`` chooses the bands in place of the default ones: by severity the lowest ``accept_support`` with which
what is settled is right in at least 99 % of the claims. A band that can't be so sure on at least thirty
claims settles nothing. It prints them with Wilson's interval of that share, and then the tables for them, on
the claims they were chosen on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.answer_figures import counted
from benchmarks.frame import command_line, markdown
from benchmarks.labelled_answers import read_answers
from benchmarks.labelled_sets import EXPERTQA, POOL, labelled_sets, require_files
from guardrail.claims import BuiltinSeverityRater
from guardrail.evals.statistics import Rate
from guardrail.events import SegmentKind, Severity
from guardrail.judges import Judgement, Verdict
from guardrail.judges.cascade import Band, CascadeSettings, settled
from guardrail.judges.local import LocalJudgeSettings
from guardrail.judges.local.check import build_checker
from training.rows import Row

SEED: Final = 20260101
LEAST: Final = 0.99
"""Share of what a fitted band settles that is right."""
_LEAST_CLAIMS: Final = 30  # fewer say nothing of 99 %
_STEPS: Final = 100  # of a probability


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

    def stays(self, settings: CascadeSettings) -> bool:
        """Whether the first judge settles it."""
        return settled(self.judgement, self.severity, settings)


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


def fitted(rows: Sequence[Judged], least: float = LEAST) -> Band:
    """The band of claims of one severity that settles as many as it can and is right in ``least`` of them."""
    for step in range(_STEPS // 2, _STEPS + 1):
        band = Band(accept_support=step / _STEPS)
        inside = _accepted(rows, band)
        if len(inside) >= _LEAST_CLAIMS and sum(row.right for row in inside) >= least * len(inside):
            return band
    return Band(accept_support=1.0)


def _accepted(rows: Sequence[Judged], band: Band) -> list[Judged]:
    settings = CascadeSettings(bands=dict.fromkeys(Severity, band))
    return [row for row in rows if row.accepted and row.stays(settings)]


def show_bands(by_severity: Mapping[Severity, Sequence[Judged]], bands: Mapping[Severity, Band]) -> None:
    """Print the bands, and how right they are."""
    for severity, band in bands.items():
        inside = _accepted(by_severity[severity], band)
        right = counted(Rate(sum(row.right for row in inside), len(inside)))
        print(
            f"{severity.value}: accept_support={band.accept_support:.2f}, right of what it settles: {right} %"
        )


def table(title: str, sets: Mapping[str, Sequence[Judged]], settings: CascadeSettings) -> str:
    """A table in Markdown, in percent."""

    def right(rows: Iterable[Judged]) -> str:
        known = [row.right for row in rows]
        return f"{100 * sum(known) / len(known):.1f}" if known else "–"

    cells = []
    for name, rows in sets.items():
        inside = [row for row in rows if row.stays(settings)]
        contradicted = [row.supported for row in rows if row.judgement.verdict is Verdict.CONTRADICTED]
        cells.append(
            {
                title: name,
                "claims": len(rows),
                "goes on": f"{100 * (1 - len(inside) / max(1, len(rows))):.1f}",
                "settled right": right(inside),
                "open right": right(row for row in rows if not row.stays(settings)),
                "all right": right(rows),
                "SUPPORTED right": right(row for row in inside if row.accepted),
                "others right": right(row for row in inside if not row.accepted),
                "CONTRADICTED wrong": f"{sum(contradicted)} of {len(contradicted)}",
            }
        )
    return markdown(list(cells[0]), [list(row.values()) for row in cells])


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
    options = parser.parse_args()
    require_files(parser, options.data, POOL, EXPERTQA)
    settings, checker, rater = CascadeSettings(), build_checker(LocalJudgeSettings()), BuiltinSeverityRater()
    rows = labelled_sets(options.data, options.limit, SEED)
    if options.lfqa:
        try:
            rows["lfqa"] = rated_sentences(options.lfqa)
        except (OSError, ValueError) as error:
            parser.error(f"--lfqa: {error}")

    def judged(row: Row) -> Judged:
        severity, _ = rater.rate(row.claim, SegmentKind.SENTENCE)
        judgement = checker.check("c", row.as_claim(severity), row.question, row.index())
        return Judged(row.supported, severity, judgement)

    sets = {name: list(map(judged, every)) for name, every in rows.items()}
    sets["all"] = [row for every in sets.values() for row in every]
    if options.fit:
        bands = {severity: fitted(every) for severity, every in by_severity(sets["all"]).items()}
        show_bands(by_severity(sets["all"]), bands)
        settings = CascadeSettings(bands=bands)
    print(table("set", sets, settings))
    for name in ("all", "expertqa", "lfqa"):
        if name in sets:
            of_it = {severity.value: some for severity, some in by_severity(sets[name]).items()}
            print("\n" + table(f"severity, {name}", of_it, settings))


if __name__ == "__main__":
    main()
