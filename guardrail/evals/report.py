"""The report of an evaluation: one HTML file that needs nothing else.

All of its texts come from users, documents and models. Jinja escapes every one, control characters and marks
of direction become visible (``guardrail.printable``), and the page's Content-Security-Policy allows its own
style sheet and nothing more: no script, no request, no style from the data. Only numbers and the guard's own
words get into attributes.

Needs the extra ``report`` (Jinja2).
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from guardrail import __version__, render
from guardrail.errors import ConfigError, install_hint
from guardrail.evals.agreement import TITLES, WITHHELD, Agreement
from guardrail.evals.comparison import Changed, Comparison
from guardrail.evals.overview import WORST, WRONG, EvaluationRun, Overview, Slice, named_groups
from guardrail.evals.results import EvaluationResult
from guardrail.evals.statistics import COLUMNS, Estimate, Point, Rate, mean_estimate
from guardrail.events import ClaimVerdict, Context, Decision, Severity, Span, Verdict
from guardrail.printable import escape_controls, shorten
from guardrail.render import counted

try:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup
except ImportError:
    message = f"the report needs Jinja2, which is not installed; {install_hint('report')}"
    raise ConfigError(message) from None

from guardrail.evals import charts  # needs markupsafe

_EXAMPLES: Final = 10
_FAULTS: Final = 5
_MOST_CHARS: Final = 20_000
_MOST_CLAIMS: Final = 100
_MOST_EVIDENCE: Final = 4
_QUOTE_CHARS: Final = 1_000
_AROUND_CHARS: Final = 160
_REASONING_CHARS: Final = 2_000
_TRACE_STEPS: Final = 20
_TRACE_CHARS: Final = 4_000
_MOST_ROWS: Final = 25
_TELLING: Final = 20
"""Answers that a group has before the summary points it out."""

VERDICT_SYMBOLS: Final = {
    Verdict.SUPPORTED: "✓",
    Verdict.PARTIALLY_SUPPORTED: "◐",
    Verdict.UNSUPPORTED: "?",
    Verdict.CONTRADICTED: "✗",
    Verdict.UNVERIFIED: "…",
}
_BADNESS: Final = {
    Verdict.SUPPORTED: 0,
    Verdict.UNVERIFIED: 1,
    Verdict.PARTIALLY_SUPPORTED: 2,
    Verdict.UNSUPPORTED: 3,
    Verdict.CONTRADICTED: 4,
}
_VERDICT_ORDER: Final = sorted(Verdict, key=lambda verdict: -_BADNESS[verdict])
_SEVERITY_ORDER: Final = sorted(Severity, key=lambda severity: -severity.rank)


@dataclass(frozen=True, slots=True)
class AnswerPiece:
    """A stretch of an answer: its text, the worst verdict on it, whether the judge named just these words,
    and the claims that end with it."""

    text: str
    verdict: Verdict | None = None
    named: bool = False
    ends: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Quoted:
    """Evidence and what stands around it in its context, as far as that is known."""

    context_id: str
    source: str
    before: str
    quote: str
    after: str


@dataclass(frozen=True, slots=True)
class ClaimShown:
    """A claim as the report shows it. ``number`` counts from 1 in the order of the text."""

    number: int
    claim: ClaimVerdict
    evidence: tuple[Quoted, ...]
    more_evidence: int
    reasoning: str


@dataclass(frozen=True, slots=True)
class AnswerShown:
    """A result whole, as the report shows it."""

    result: EvaluationResult
    pieces: tuple[AnswerPiece, ...]
    left_out_chars: int
    doubtful: tuple[ClaimShown, ...]
    supported: tuple[ClaimShown, ...]
    left_out_claims: int
    deciding: int | None
    """The number of the claim that decided, if it is one of those that are shown."""


@dataclass(frozen=True, slots=True)
class ChangeShown:
    """An answer that changed, as the report shows it. ``before`` is None where the text is the same."""

    now: AnswerShown
    before: AnswerShown | None
    earlier: EvaluationResult
    claims: tuple[tuple[ClaimVerdict, ClaimVerdict], ...]
    """Those with another verdict now, before and now."""


def write_report(
    evaluation: EvaluationRun,
    path: Path | str,
    compared_with: EvaluationRun | None = None,
    *,
    title: str | None = None,
    worst: int = WORST,
    written: datetime | None = None,
) -> dict[str, Any]:
    """Write the report of ``evaluation`` to ``path``, and give its figures as JSON has them.

    ``compared_with`` is an earlier run over the same answers. ``worst`` is how many answers are shown whole.
    ``written`` is the time that the report bears, by default now. The results of ``evaluation`` are gone
    through once, those of ``compared_with`` twice. Raises OSError.
    """
    overview = Overview(worst=worst)
    comparison = None if compared_with is None else Comparison(compared_with.results, examples=_EXAMPLES)
    for result in evaluation.results:
        overview.add(result)
        if comparison is not None:
            comparison.add(result)
    write_page(path, evaluation, overview, compared_with, comparison, title=title, written=written)
    return {
        **overview.figures(),
        "name": evaluation.name,
        "comparison": None if comparison is None else comparison.figures(),
    }


def write_page(
    path: Path | str,
    run: EvaluationRun,
    overview: Overview,
    other: EvaluationRun | None = None,
    comparison: Comparison | None = None,
    *,
    title: str | None = None,
    written: datetime | None = None,
) -> None:
    """As ``write_report``, where all figures are known. Of ``run`` and ``other`` it needs no more than their
    names and settings; ``overview`` has the answers that are shown whole.
    """
    page = rendered(
        "report.html.j2",
        title=title or "Faithfulness report",
        run=run,
        other=other,
        written=written or datetime.now(UTC),
        overview=overview,
        comparison=comparison,
        whole=overview.whole,
        findings=standing_out(overview),
        worst=[shown(result) for result in overview.worst.in_order()],
        misses=[shown(result) for result in overview.misses.in_order()[:_FAULTS]],
        wrongful=[shown(result) for result in overview.wrongful.in_order()[:_FAULTS]],
        changes=[] if comparison is None else list(map(_change, comparison.examples())),
        groups={name: named_groups(groups) for name, groups in overview.groups.items()},
        most_rows=_MOST_ROWS,
        verdicts=_VERDICT_ORDER,
        severities=_SEVERITY_ORDER,
        decisions=tuple(Decision),
        withheld=WITHHELD,
        wrong=WRONG,
        symbols=VERDICT_SYMBOLS,
        bins=COLUMNS,
        histogram=_histogram(overview),
        times=charts.times(
            overview.whole.latencies_ms,
            f"How long the verdict on an answer took: median {figure_ms(overview.whole.latency_ms(0.5))}",
        )
        if overview.whole.latencies_ms
        else "",
        decision_bar=decision_bar,
        verdict_bar=verdict_bar,
        interval=charts.interval,
        calibration=charts.calibration,
        agreement=overview.agreement,
        curves=_curves(overview.agreement),
        titles=TITLES,
        mean_estimate=mean_estimate,
        apart=apart,
        heat=heat,
        trace_steps=_TRACE_STEPS,
        trace_chars=_TRACE_CHARS,
    )
    Path(path).write_text(page, encoding="utf-8", newline="\n")


def rendered(
    template: str,
    *,
    written: datetime,
    filters: Mapping[str, Callable[..., Any]] | None = None,
    **values: Any,
) -> str:
    """A page of ``report_page``, with everything in it escaped but the package's own style sheet and charts.

    ``filters`` are further ones that its template has.
    """
    environment = Environment(
        loader=PackageLoader("guardrail.evals", "report_page"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "percent": percent,
        "bounds": bounds,
        "figure": figure,
        "signed": signed,
        "p": p_value,
        "ms": figure_ms,
        "usd": usd,
        "words": lambda value: value.replace("_", " ").lower(),
        "short": shorten,
        "counted": counted,
        **(filters or {}),
    }
    css = files("guardrail.evals").joinpath("report_page/report.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    page = environment.get_template(template).render(
        version=__version__,
        written=written.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        # The one text that isn't escaped: the style sheet of this package.
        css=Markup(css),  # noqa: S704
        css_digest=digest,
        **values,
    )
    return page.lstrip()


def _printable(value: Any) -> Any:
    """What stands in the page for a value of the template: no control characters, no marks of direction."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return escape_controls(value.replace("\r\n", "\n"), keep_lines=True)
    return value


# ------------------------------------------------------------------------------- one answer


def shown(result: EvaluationResult) -> AnswerShown:
    """The result with its claims marked in its text, and evidence beside them."""
    verdict, response = result.verdict, result.response
    claims = verdict.claims if verdict is not None else ()
    deciding = verdict.deciding_claim if verdict is not None else None
    answer = response.answer if response is not None else ""
    contexts = {context.id: context for context in response.contexts} if response is not None else {}
    numbered = [
        _claim(number, claim, contexts) for number, claim in enumerate(claims[:_MOST_CLAIMS], start=1)
    ]
    doubtful = [each for each in numbered if each.claim.verdict is not Verdict.SUPPORTED]
    doubtful.sort(key=lambda each: (-_BADNESS[each.claim.verdict], -each.claim.severity.rank, each.number))
    return AnswerShown(
        result,
        pieces(answer[:_MOST_CHARS], claims[:_MOST_CLAIMS]),
        max(0, len(answer) - _MOST_CHARS),
        tuple(doubtful),
        tuple(each for each in numbered if each.claim.verdict is Verdict.SUPPORTED),
        max(0, len(claims) - _MOST_CLAIMS),
        next((each.number for each in numbered if each.claim.claim_id == deciding), None),
    )


def pieces(text: str, claims: Sequence[ClaimVerdict]) -> tuple[AnswerPiece, ...]:
    """The text cut where a claim, or words that the judge named, begin or end. Joined they are the text."""
    spans = [_within(claim.span, text) for claim in claims]
    named = [_within(span, text) for claim in claims for span in claim.unsupported_spans]
    edges = sorted({0, len(text), *(edge for span in (*spans, *named) for edge in span)})
    found = []
    for start, end in pairwise(edges):
        over = [number for number, span in enumerate(spans, start=1) if span[0] <= start and end <= span[1]]
        worst = max((claims[number - 1].verdict for number in over), key=_BADNESS.__getitem__, default=None)
        found.append(
            AnswerPiece(
                text[start:end],
                worst,
                any(span[0] <= start and end <= span[1] for span in named),
                tuple(number for number in over if spans[number - 1][1] == end),
            )
        )
    return tuple(found)


def _within(span: Span, text: str) -> Span:
    """A file may say anything: the part of the span that the text has."""
    start, end = (min(edge, len(text)) for edge in span)
    return (start, end) if start < end else (start, start)


def _claim(number: int, claim: ClaimVerdict, contexts: Mapping[str, Context]) -> ClaimShown:
    quoted = []
    for evidence in claim.evidence[:_MOST_EVIDENCE]:
        context = contexts.get(evidence.context_id)
        text = "" if context is None else context.text
        start, end = evidence.span
        around = text[start:end] == evidence.quote
        before = text[max(0, start - _AROUND_CHARS) : start] if around else ""
        after = text[end : end + _AROUND_CHARS] if around else ""
        quoted.append(
            Quoted(
                evidence.context_id,
                (context.source or "") if context is not None else "",
                ("…" if around and start > _AROUND_CHARS else "") + before,
                shorten(evidence.quote, _QUOTE_CHARS),
                after + ("…" if around and end + _AROUND_CHARS < len(text) else ""),
            )
        )
    return ClaimShown(
        number,
        claim,
        tuple(quoted),
        max(0, len(claim.evidence) - _MOST_EVIDENCE),
        shorten(claim.reasoning, _REASONING_CHARS),
    )


def _change(change: Changed) -> ChangeShown:
    now, before = change.now, change.before
    known = {claim.claim_id: claim for claim in before.verdict.claims} if before.verdict is not None else {}
    claims = tuple(
        (known[claim.claim_id], claim)
        for claim in (now.verdict.claims if now.verdict is not None else ())
        if claim.claim_id in known and known[claim.claim_id].verdict is not claim.verdict
    )
    same = getattr(now.response, "answer", None) == getattr(before.response, "answer", None)
    return ChangeShown(shown(now), None if same else shown(before), before, claims)


# ------------------------------------------------------------------------------- all answers


def standing_out(overview: Overview) -> list[str]:
    """What a reader in a hurry should know, most important first."""
    whole = overview.whole
    if not whole.judged:
        return ["No answer could be judged."] if whole.results else ["There are no results."]
    found = []
    withheld, flagged = whole.decided(WITHHELD), whole.decided([Decision.FLAG])
    if withheld.count or flagged.count:
        found.append(
            f"{counted(withheld.count, 'answer')} of {whole.judged:,} would be withheld "
            f"({percent(withheld)}), {flagged.count:,} flagged ({percent(flagged)})."
        )
    else:
        found.append(f"All {counted(whole.judged, 'answer')} would be released.")
    wrong = whole.claims_with(WRONG)
    if wrong:
        critical = whole.claims_with(WRONG, [Severity.CRITICAL])
        contradicted = whole.claims_with([Verdict.CONTRADICTED])
        found.append(
            f"{counted(wrong, 'claim')} of {whole.claims:,} {'has' if wrong == 1 else 'have'} no support in "
            f"the documents: {contradicted:,} contradicted, {critical:,} of critical severity."
        )
    if overview.labelled:
        missed = overview.decided(False, [Decision.RELEASE])
        wrongful = overview.decided(True, WITHHELD)
        found.append(
            f"By the labels, {missed.count:,} of {counted(missed.total, 'wrong answer')} would be released "
            f"({percent(missed)}) and {wrongful.count:,} of {counted(wrongful.total, 'right answer')} "
            f"withheld ({percent(wrongful)})."
        )
    for field, groups in overview.groups.items():
        telling = [each for each in groups.values() if each.judged >= _TELLING and apart(each, whole) > 0]
        if telling:
            most = max(telling, key=lambda each: each.decided(WITHHELD).estimate().value)
            found.append(
                f"{field.replace('_', ' ').capitalize()} {shorten(most.name, 60)} has more answers withheld "
                f"than the rest: {percent(most.decided(WITHHELD))} of {most.judged:,}."
            )
    unverified = whole.claims_with([Verdict.UNVERIFIED])
    if unverified:
        found.append(f"{counted(unverified, 'claim')} could not be judged and count in no score.")
    if whole.errors:
        found.append(
            f"{counted(whole.errors, 'result')} of {whole.results:,} are errors, and count nowhere else."
        )
    return found


def apart(group: Slice, whole: Slice) -> int:
    """1 if the group has more answers withheld than all have, -1 if fewer, 0 if chance may explain it."""
    found, share = group.decided(WITHHELD).estimate(), whole.decided(WITHHELD).estimate().value
    if math.isnan(found.value) or group.judged == whole.judged:
        return 0
    return (found.low > share) - (found.high < share)


def heat(count: int, total: int) -> int:
    """How dark a cell of a table is, 0 to 4, by its share."""
    return 0 if not count else min(4, 1 + int(4 * count / total))


def decision_bar(part: Slice) -> Markup:
    """The decisions of some results, as shares."""
    return charts.bar([charts.Part(f"d-{each}", each, part.decisions[each]) for each in Decision])


def verdict_bar(part: Slice, severity: Severity) -> Markup:
    """The verdicts on the claims of one severity, as shares."""
    return charts.bar(
        [
            charts.Part(f"v-{each.lower()}", each.lower().replace("_", " "), part.verdicts[severity, each])
            for each in reversed(_VERDICT_ORDER)
        ]
    )


def _histogram(overview: Overview) -> Markup:
    mean = overview.whole.mean_score().value
    stacks = [
        charts.Stack(f"d-{decision}", decision, [counts[at] for at in range(COLUMNS)])
        for decision, counts in reversed(overview.scores_by_decision.items())
    ]
    marks = [charts.Upright("mean", f"mean {mean:.2f}", mean)]
    return charts.histogram(stacks, marks, f"Distribution of {len(overview.whole.scores):,} scores")


class AgreementCurves(NamedTuple):
    """The charts by which a threshold on the score of answers is chosen."""

    precision_recall: Markup
    costs: Markup
    miss_costs: tuple[tuple[str, int], ...]
    """The class of each curve of costs, and what a miss costs there."""


def _curves(found: Agreement | None) -> AgreementCurves | None:
    if found is None or not found.answers.precision_recall or not found.answers.right:
        return None
    styles = dict(zip(found.answers.costs, ("", "second", "third"), strict=True))
    costs = [
        # Of one scale: the cost of letting all wrong answers pass is 1 on each.
        charts.Curve(
            styles[miss],
            f"a miss costs {miss} false alarms",
            [Point(x, y / (line[0].y or 1.0)) for x, y in line],
        )
        for miss, line in found.answers.costs.items()
    ]
    return AgreementCurves(
        charts.curve(
            [charts.Curve("", "by the score alone", found.answers.precision_recall)],
            "Precision over recall of wrong answers",
            points=charts.operating("tuned", "the policy", found.answers.caught, found.answers.false_alarms),
            top=1.0,
        ),
        charts.curve(costs, "Cost over the threshold of the score"),
        tuple((style, miss) for miss, style in styles.items()),
    )


# ------------------------------------------------------------------------------- numbers for people


def percent(rate: Rate) -> str:
    """``12.3 %``; a dash of nothing."""
    return render.percent(rate.count, rate.total)


def bounds(found: Rate | Estimate) -> str:
    """The interval: of a rate in percent, of an estimate as it is; empty where there is none."""
    if isinstance(found, Rate):
        share = found.estimate()
        return "" if math.isnan(share.low) else f"{100 * share.low:.1f} to {100 * share.high:.1f} %"
    return "" if math.isnan(found.low) else f"{found.low:.3f} to {found.high:.3f}"


def figure(value: float | None, digits: int = 3) -> str:
    """A dash for what is undefined."""
    return "–" if value is None or math.isnan(value) else f"{value:,.{digits}f}"


def figure_ms(value: float | None) -> str:
    return "–" if value is None else render.duration(value)


def signed(value: float, digits: int = 3) -> str:
    """With its sign, and a minus that is as wide as a plus."""
    if math.isnan(value):
        return "–"
    told = f"{value:+.{digits}f}".replace("-", "−")
    return told if float(told.replace("−", "-")) else told[1:]


def p_value(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def usd(value: float) -> str:
    """Small amounts keep two digits that say something."""
    return f"${value:,.2f}" if value >= 1 or not value else f"${value:.2g}"
