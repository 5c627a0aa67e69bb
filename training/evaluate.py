"""How well the local judge tells supported claims from others: alone, in parts, and against plain baselines.

    python -m training.evaluate --data DIR [--verifier FOLDER|none] [--parameters FILE]
        [--untrained FOLDER] [--out FOLDER] [--limit N]

``DIR`` holds ``pool-val.jsonl.gz``, ``expertqa-val.jsonl`` (both labelled by people, neither ever fitted
on) and the data sets trained on, of which only held-out rows are used: the thresholds of those without
verdicts of their own (word overlap, a verifier alone) come from these. In one run: word overlap, the
rules, the same base untrained (``--untrained``: what ``training.export --base`` wrote), the verifier
alone, the whole local judge; beside the data sets, changed sentences and the project's written facts that
nothing was fitted on (``training.written``). Default are the packaged verifier and parameters. Writes
``report.json``, ``report.md`` and ``reliability.png`` to ``--out``.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
from pathlib import Path
from typing import Final

from benchmarks.labelled_sets import EXPERTQA, POOL, require_files
from guardrail.judges.local.combiner import Logistic, Parameters, load_parameters, load_rules_parameters
from guardrail.judges.local.verifier import Verifier, load_verifier
from guardrail.judges.local.verifier_files import packaged_folder
from training.evaluation_data import labelled, made, passages_of_150_words, validation
from training.examining import Examiner
from training.examples import DataError
from training.metrics import without_nan
from training.report import markdown, plot
from training.steps import running
from training.written import measured_rows, read_facts

SEED: Final = 20260101


def untrained_examiner(verifier: Verifier) -> Examiner:
    """Finds out the features of a verifier that no parameters were fitted with."""
    blank = Parameters(
        version=1, provenance={}, supported_at=0.5, partially_supported_at=0.5,
        combiner=Logistic(bias=0.0, weights={}), rarity=load_rules_parameters().rarity,
    )  # fmt: skip
    return Examiner(blank, verifier)


def main() -> None:
    """Run the step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the data files")
    parser.add_argument("--verifier", default="packaged", help="a folder, or none; default: the packaged one")
    parser.add_argument(
        "--parameters", type=Path, help="fitted with the verifier; default: the packaged ones"
    )
    parser.add_argument("--untrained", type=Path, help="a verifier's folder to compare with")
    parser.add_argument("--out", type=Path, default=Path("evaluation"))
    parser.add_argument("--limit", type=int, default=1000, help="most claims of one set (sampled)")
    parser.add_argument("--held-out", type=int, default=60, help="most rows of one set for thresholds")
    parser.add_argument("--pairs", type=int, default=150, help="most changed sentences of one kind")
    parser.add_argument("--written", type=int, default=1000, help="most claims of written facts")
    parser.add_argument("--timed", type=int, default=100, help="claims that are timed")
    options = parser.parse_args()
    require_files(parser, options.data, POOL, EXPERTQA)
    with running(parser, "evaluate"):
        _run(options)


def _run(options: argparse.Namespace) -> None:
    from training.evaluation import evaluate
    from training.measuring import Judges

    whole, name = _whole(options)
    untrained = untrained_examiner(load_verifier(options.untrained)) if options.untrained else None
    held_out = validation(options.data, limit=options.held_out, seed=SEED)
    judges = Judges(Examiner(load_rules_parameters()), whole, untrained, held_out)
    pairs = made(options.data, limit=options.pairs, seed=SEED)
    timed = passages_of_150_words((row for rows in pairs.values() for row in rows), count=options.timed)
    report, bins = evaluate(
        judges,
        labelled(options.data, limit=options.limit, seed=SEED),
        pairs,
        list(timed),
        measured_rows(read_facts(), limit=options.written, seed=SEED) if options.written else (),
    )
    report |= {
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "verifier": name,
        "held_out": len(held_out),
    }
    options.out.mkdir(parents=True, exist_ok=True)
    report = without_nan(report)
    (options.out / "report.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    text = markdown(report)
    (options.out / "report.md").write_text(text, encoding="utf-8")
    print(text)
    plot(options.out / "reliability.png", bins)


def _whole(options: argparse.Namespace) -> tuple[Examiner | None, str | None]:
    """The whole judge with its verifier, and the verifier's name; None where there is to be none."""
    if options.verifier == "none":
        return None, None
    folder = packaged_folder() if options.verifier == "packaged" else Path(options.verifier)
    if folder is None:
        raise DataError("the package has no verifier: name a folder (--verifier), or none")
    verifier = load_verifier(folder)
    return Examiner(load_parameters(options.parameters), verifier), verifier.name


if __name__ == "__main__":
    main()
