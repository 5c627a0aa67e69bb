"""Which rules of the local judge earn their place: all is measured again with one of them left out.

    python -m benchmarks.ablation --data DIR [--rows N] [--pairs N] [--answers N] [--only WORD ...]

``DIR`` holds ``pool-val.jsonl.gz``, ``expertqa-val.jsonl`` and ``lfqa-val.jsonl.gz``. Measured are the claims
of ``benchmarks.offline_sets``, the real answers of ``benchmarks.real_answers`` and two parts of
``benchmarks.chat_answers``, development and reckoning. What the verifier said of a pair of texts is kept, so
a rule costs little more than the work around the verifier. ``--only`` names rules by a part of their names.
Nothing is fitted again: where a feature is left out, the combiner is told its mean, so a new fit might make
up for some of the loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import uvloop

from benchmarks import answer_figures, chat_answers, offline_sets, real_answers
from benchmarks.chat_answers import Outcome
from benchmarks.frame import command_line, markdown
from benchmarks.labelled_answers import LabelledAnswer, read_answers
from benchmarks.labelled_sets import EXPERTQA, POOL, labelled_sets, made_claims, require_files
from guardrail.claims import cutter, detector, severity
from guardrail.claims.detector import Assertion
from guardrail.config import LoggingSettings, Settings, load_settings
from guardrail.evals.statistics import bootstrap
from guardrail.events import Severity
from guardrail.figures import FigureCheck, State, calendar, check_figures, source
from guardrail.figures import check as figures_check
from guardrail.figures.equations import Written
from guardrail.judges.factory import build_judge
from guardrail.judges.local import check, reader, search
from guardrail.judges.local.combiner import word_features
from guardrail.judges.model import Verifier
from guardrail.logs import configure_logging
from tests.exact_answers import ExactCase
from training.rows import Row

LFQA: Final = "lfqa-val.jsonl.gz"
_SHARE: Final = 0.63  # mean of the feature over the validation sets
Patch = tuple[object, str, Any]
"""Where a rule is, its name there, and what stands in for it."""


def _nothing(*_: object, **__: object) -> None:
    return None


def _no(*_: object, **__: object) -> bool:
    return False


def _without(*states: State) -> Callable[..., tuple[FigureCheck, ...]]:
    def found(*given: Any, **named: Any) -> tuple[FigureCheck, ...]:
        return tuple(one for one in check_figures(*given, **named) if one.state not in states)

    return found


def _told(**instead: float) -> Callable[..., dict[str, float]]:
    return lambda *given: word_features(*given) | instead


RULES: Final[Mapping[str, Sequence[Patch]]] = {
    "figures: all": ((check, "check_figures", lambda *_: ()),),
    "figures: conflicts": ((figures_check, "conflicting_figure", _nothing),),
    "figures: exchanged": ((figures_check, "exchanged", lambda *_: {}),),
    "figures: written equations": ((source, "written", lambda *_: Written()),),
    "figures: opposite limits": ((figures_check, "_is_limit_otherwise", _no),),
    "figures: absent": ((check, "check_figures", _without(State.ABSENT)),),
    "figures: reckoning": ((figures_check, "derived", _nothing),),
    "figures: counts that say little": ((figures_check, "_says_little", _no),),
    "figures: calendar": (
        *((calendar, name, _nothing) for name in dir(calendar) if name.startswith("read_")),
        (calendar, "read_date_range", lambda _tokens, _i, found: found),
    ),
    "combiner: share of words": ((check, "word_features", _told(share=_SHARE)),),
    "combiner: figures": ((check, "word_features", _told(figures_absent=0.0, figures_conflicting=0.0)),),
    "silence": ((check, "silence_of", _nothing),),
    "citations: cited first": ((check, "cited_contexts", lambda *_: frozenset()),),
    "reading: question of a short answer": ((reader, "_asking", lambda *_: ""),),
    "reading: lead-in": ((reader, "_leading", lambda *_: ""),),
    "reading: figures in the source's notation": ((reader, "_as_in_source", _nothing),),
    "reading: what figures follow from": ((reader, "_known", lambda *_: ""),),
    "reading: fact by fact": ((check, "facts_of", lambda *_: []),),
    "reading: sentences that lean": ((search, "_leans", _no),),
    "severity: all": ((severity.BuiltinSeverityRater, "_builtin", lambda *_: (Severity.NORMAL, ())),),
    "severity: figures": ((severity, "figure_reasons", lambda *_: frozenset()),),
    "severity: words": ((severity, "_marks", lambda *_: set()),),
    "severity: names": ((severity, "_names_something", _no),),
    "claims: courtesies are none": ((detector, "_frames", _nothing),),
    "claims: assertions in headings": ((cutter, "asserts", lambda *_: Assertion.NONE),),
}


@dataclass(frozen=True, slots=True)
class Material:
    """What every run measures."""

    sets: Mapping[str, list[Row]]
    pairs: Mapping[str, list[Row]]
    answers: Sequence[LabelledAnswer]
    chats: Mapping[str, Sequence[ExactCase]]
    settings: Settings


@contextmanager
def cheaply() -> Iterator[None]:
    """The verifier runs once for the same pair of texts, however often it is asked; and no intervals, as
    drawing claims again takes longer than judging them again."""
    run = Verifier._run
    known: dict[Any, Any] = {}

    def once(self: Verifier, pair: Any) -> Any:
        key = tuple(pair.ids), tuple(pair.type_ids)
        if (found := known.get(key)) is None:
            found = known[key] = run(self, pair)
        return found

    with (
        patch.object(Verifier, "_run", once),
        patch.object(offline_sets, "ROUNDS", 1),
        patch.object(answer_figures, "bootstrap", partial(bootstrap, rounds=1)),
    ):
        yield


def measured(material: Material, left_out: Sequence[Patch] = ()) -> dict[str, float]:
    """The figures with those rules left out, 0..1 by name."""
    with ExitStack() as stack:
        for place, name, instead in left_out:
            stack.enter_context(patch.object(place, name, instead))
        return uvloop.run(_measured(material))


async def _measured(material: Material) -> dict[str, float]:
    settings = material.settings
    judge = build_judge(settings.judge)
    try:
        asking = offline_sets.Asking(judge)
        claims = offline_sets.figures(await asking.all(material.sets), await asking.all(material.pairs))
        known = await real_answers.judged(material.answers, judge, settings)
    finally:
        await judge.aclose()
    found = _of_claims(claims) | _of_answers(real_answers.decided(material.answers, known, settings))
    for name, cases in material.chats.items():
        found |= _of_chat(name, await chat_answers.judged(cases, settings))
    return found


def _of_claims(found: Mapping[str, Any]) -> dict[str, float]:
    return {
        "AUROC": found["macro"]["auroc"].value,
        "bal. acc.": found["macro"]["balanced_accuracy"].value,
        "supp. contr.": found["supported_called_contradicted"].estimate().value,
        "crit. caught": found["critical_caught"],
        "false alarms": found["false_alarms"],
        "written right": 1.0 - found["changed"]["written, faithful"],
        "written others": found["changed"]["written, others"],
    }


def _of_answers(cases: Sequence[answer_figures.Case]) -> dict[str, float]:
    found = answer_figures.figures(cases)
    right, wrong = (found["decisions"][group] for group in ("all supported", "less than half"))
    return {
        "LFQA AUROC": found["claims"]["auroc"].value,
        "LFQA contr.": found["claims"]["supported_called_contradicted"].estimate().value,
        "LFQA right untouched": right["untouched"].estimate().value,
        "LFQA right withheld": right["withheld"].estimate().value,
        "LFQA < half untouched": wrong["untouched"].estimate().value,
    }


def _of_chat(name: str, found: Sequence[chat_answers.Judged]) -> dict[str, float]:
    outcomes = {
        label: [chat_answers.outcome(one.verdict) for one in found if one.case.label == label]
        for label in ("right", "wrong")
    }
    return {
        f"{name} {label} {outcome}": made.count(outcome) / len(made)
        for label, made in outcomes.items()
        for outcome in (Outcome.UNTOUCHED, Outcome.WITHHELD)
    }


def table(whole: Mapping[str, float], others: Mapping[str, Mapping[str, float]]) -> str:
    """Markdown: the whole judge in percent, and what leaving each rule out changes, in points."""
    rows = [["nothing", *(f"{100 * value:.1f}" for value in whole.values())]]
    for name, found in others.items():
        less = [round(100 * (found[column] - whole[column]), 1) for column in whole]
        rows.append([name, *("" if not each else f"{each:+.1f}" for each in less)])
    return markdown(["left out", *whole], rows)


def main() -> None:
    """Command line."""
    parser = command_line(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the labelled sets")
    parser.add_argument("--rows", type=int, default=100, help="most claims of one set (sampled)")
    parser.add_argument("--pairs", type=int, default=60, help="most changed sentences of a kind")
    parser.add_argument("--answers", type=int, help="most answers of LFQA (sampled); default: all")
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD", help="parts of rules' names")
    options = parser.parse_args()
    require_files(parser, options.data, POOL, EXPERTQA, LFQA)
    configure_logging(LoggingSettings(level="warning"))
    seed = offline_sets.SEED
    material = Material(
        labelled_sets(options.data, options.rows, seed),
        made_claims(options.data, options.pairs, seed),
        read_answers(options.data / LFQA, options.answers),
        {
            "chat": chat_answers.load("chat", "development"),
            "reckoning": chat_answers.load("chat", "reckoning"),
        },
        load_settings(None),
    )
    chosen = {name: rule for name, rule in RULES.items() if any(word in name for word in options.only)}
    others = {}
    with cheaply():
        whole = measured(material)
        for name, rule in chosen.items():
            others[name] = measured(material, rule)
            print(f"without {name}", flush=True)
    print(table(whole, others))


if __name__ == "__main__":
    main()
