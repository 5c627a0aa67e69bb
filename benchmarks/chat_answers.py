"""Right answers in the formatting of chat models, and their wrong twins, streamed through the whole guard:
``python -m benchmarks.chat_answers [--part development|measured] [--config FILE] [--show] [--json OUT]``.

Every answer of ``tests/chat_answers`` goes through ``Guard`` in token-sized deltas. Without ``--config`` that
is the default policy with the default judge. Counted are right answers withheld (blocked or redacted),
flagged and untouched, and the same of the wrong ones, where untouched is the failure; all with Wilson's 95 %
intervals, in all and by kind. Deadlines are raised so that the machine's speed decides nothing; answers with
a claim that the judge could not check are counted apart, as unverified.

``--show`` prints the answers that went wrong and why. It is for the development part: the other one only
measures anything as long as nobody who mends the judge has seen it, so it takes ``--force``.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

import uvloop

from benchmarks.frame import command_line
from guardrail.config import LoggingSettings, Settings, load_settings
from guardrail.evals.statistics import wilson
from guardrail.events import Decision, ResponseVerdict, Verdict
from guardrail.guard import Guard
from guardrail.judges.factory import build_judge
from guardrail.logs import configure_logging
from guardrail.printable import escape_controls
from guardrail.routing import PolicyRouter
from tests.chat_answers import ChatCase, Part, load

TOKEN: Final = re.compile(r"\s*\S{1,6}|\s+$")
TIMEOUT_MS: Final = 600_000  # no machine is this slow
AT_ONCE: Final = 2


class Outcome(StrEnum):
    """What became of an answer. UNVERIFIED: the judge could not check all of it."""

    UNTOUCHED = "untouched"
    FLAGGED = "flagged"
    WITHHELD = "withheld"
    UNVERIFIED = "unverified"


_OF_DECISION: Final = {
    Decision.RELEASE: Outcome.UNTOUCHED,
    Decision.FLAG: Outcome.FLAGGED,
    Decision.REDACT: Outcome.WITHHELD,
    Decision.BLOCK: Outcome.WITHHELD,
}


class Judged(NamedTuple):
    """A pair of answers, and the guard's verdicts on them."""

    case: ChatCase
    right: ResponseVerdict
    wrong: ResponseVerdict


def outcome(verdict: ResponseVerdict) -> Outcome:
    """What the verdict means for the reader of the answer."""
    left_open = sum(c.verdict is Verdict.UNVERIFIED and not c.unanswered for c in verdict.claims)
    unanswered = verdict.counts.unverified - left_open
    return Outcome.UNVERIFIED if unanswered else _OF_DECISION[verdict.decision]


async def judged(cases: Iterable[ChatCase], settings: Settings) -> list[Judged]:
    """Every pair of answers with its verdicts, in the order of the cases.

    Two answers are under way at a time: the judge's work is bound by the processor, and more of them would
    only queue, where a judge under load may check claims only in part.
    """
    judge = build_judge(settings.judge)
    turn = asyncio.Semaphore(AT_ONCE)
    try:
        async with Guard(judge, router=patient(settings.router()), limits=settings.limits) as guard:

            async def verdict(case: ChatCase, text: str) -> ResponseVerdict:
                async with turn:
                    return await _verdict(guard, case, text)

            async def pair(case: ChatCase) -> Judged:
                right, wrong = await asyncio.gather(
                    verdict(case, case.answer.right), verdict(case, case.answer.wrong)
                )
                return Judged(case, right, wrong)

            return await asyncio.gather(*map(pair, cases))
    finally:
        await judge.aclose()


def rates(verdicts: Sequence[ResponseVerdict]) -> dict[str, Any]:
    """Number and share of each outcome, with the interval of the share."""
    counts = Counter(map(outcome, verdicts))
    return {"answers": len(verdicts)} | {one.value: _rate(counts[one], len(verdicts)) for one in Outcome}


def report(found: Sequence[Judged]) -> dict[str, Any]:
    """All figures as JSON: of right and wrong answers, in all and by kind, and what was checked only in part.

    ``told_apart`` are the pairs whose right answer was left untouched and whose wrong one was not: a wrong
    answer is also stopped where its twin would have been, for what is the same in both.
    """
    verdicts = [verdict for one in found for verdict in (one.right, one.wrong)]
    return {
        "right": rates([one.right for one in found]),
        "wrong": rates([one.wrong for one in found]),
        "told_apart": _told_apart(found),
        "right_by_kind": _by(found, lambda one: one.case.answer.kind, lambda one: one.right),
        "wrong_by_wrong_kind": _by(found, lambda one: one.case.answer.wrong_kind, lambda one: one.wrong),
        "wrong_by_severity": _by(found, lambda one: one.case.answer.severity_hint, lambda one: one.wrong),
        "degraded_claims": sum(bool(claim.degraded_from) for v in verdicts for claim in v.claims),
        "claims": sum(len(verdict.claims) for verdict in verdicts),
    }


def lines(figures: dict[str, Any]) -> list[str]:
    """The report as text."""
    found = [heading("in all"), share_line("right", figures["right"]), share_line("wrong", figures["wrong"])]
    found += [f"  right untouched and its twin not: {_cell(figures['told_apart'])}"]
    for title, name in (
        ("right, by kind", "right_by_kind"),
        ("wrong, by kind of error", "wrong_by_wrong_kind"),
        ("wrong, by severity", "wrong_by_severity"),
    ):
        found += ["", heading(title)]
        found += [share_line(kind, figures[name][kind]) for kind in sorted(figures[name])]
    if figures["degraded_claims"]:
        found += ["", f"checked only in part: {figures['degraded_claims']} of {figures['claims']} claims"]
    return found


def failures(found: Sequence[Judged]) -> list[str]:
    """Right answers that were not left untouched and wrong ones that were, with what was said of them."""
    texts: list[str] = []
    for one in found:
        answer = one.case.answer
        if outcome(one.right) is not Outcome.UNTOUCHED:
            texts += told(f"{one.case.id} right, {answer.kind}", answer.right, one.right)
        if outcome(one.wrong) is Outcome.UNTOUCHED:
            texts += told(f"{one.case.id} WRONG, {answer.wrong_kind}", answer.wrong, one.wrong)
    return texts


async def _verdict(guard: Guard, case: ChatCase, text: str) -> ResponseVerdict:
    pieces = TOKEN.findall(text)
    assert "".join(pieces) == text
    found = [
        event
        async for event in guard.stream(case.question, case.contexts, pieces)
        if isinstance(event, ResponseVerdict)
    ]
    return found[0]


def patient(router: PolicyRouter) -> PolicyRouter:
    """The default policy, which waits as long as it takes."""
    policy = router.choose(None, None)
    return PolicyRouter.single(
        policy.model_copy(update={"claim_timeout_ms": TIMEOUT_MS, "incomplete_timeout_ms": TIMEOUT_MS})
    )


def _rate(count: int, of: int) -> dict[str, Any]:
    low, high = wilson(count, of)
    return {"count": count, "share": count / of if of else None, "low": low, "high": high}


def _told_apart(found: Sequence[Judged]) -> dict[str, Any]:
    stopped = {Outcome.FLAGGED, Outcome.WITHHELD}
    apart = [outcome(o.right) is Outcome.UNTOUCHED and outcome(o.wrong) in stopped for o in found]
    return _rate(sum(apart), len(apart))


def _by(
    found: Sequence[Judged], kind: Callable[[Judged], str], verdict: Callable[[Judged], ResponseVerdict]
) -> dict[str, Any]:
    groups: dict[str, list[ResponseVerdict]] = defaultdict(list)
    for one in found:
        groups[kind(one)].append(verdict(one))
    return {name: rates(verdicts) for name, verdicts in groups.items()}


def heading(title: str) -> str:
    return f"{title:24}{'answers':>8}" + "".join(f"{one.value:>31}" for one in Outcome)


def share_line(name: str, figures: dict[str, Any]) -> str:
    cells = "".join(f"{_cell(figures[one.value]):>31}" for one in Outcome)
    return f"  {name:22}{figures['answers']:>8}{cells}"


def _cell(figures: dict[str, Any]) -> str:
    if not figures["count"]:
        return f"0 (below {figures['high']:.1%})"
    return f"{figures['count']} = {figures['share']:.1%} ({figures['low']:.1%} to {figures['high']:.1%})"


def told(title: str, text: str, verdict: ResponseVerdict) -> list[str]:
    found = ["", f"{title}: {verdict.decision} ({verdict.rule}), score {verdict.score}"]
    found += [f"    | {escape_controls(line)}" for line in text.splitlines()]
    for claim in verdict.claims:
        support = "n/a" if claim.support is None else f"{claim.support:.2f}"
        found.append(f"    {claim.verdict} {support} {claim.severity}: {escape_controls(claim.text)}")
        found += [f"        {escape_controls(claim.reasoning)}"] if claim.reasoning else []
    return found


def main() -> None:
    """Command line."""
    parser = command_line(__doc__)
    parser.add_argument("--part", choices=get_args(Part), default="development")
    parser.add_argument("--config", type=Path, help="settings: judge, limits and the default policy are used")
    parser.add_argument("--show", action="store_true", help="print the answers that went wrong")
    parser.add_argument("--force", action="store_true", help="show those of the measured part, too")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures here")
    arguments = parser.parse_args()
    if arguments.show and arguments.part == "measured" and not arguments.force:
        parser.error("--show: the measured part is not to be looked at while mending; --force shows it")
    configure_logging(LoggingSettings(level="warning"))
    found = uvloop.run(judged(load(arguments.part), load_settings(arguments.config)))
    figures = report(found)
    print("\n".join(lines(figures)))
    if arguments.show:
        print("\n".join(failures(found)))
    if arguments.json:
        arguments.json.write_text(json.dumps({"part": arguments.part, **figures}, indent=2) + "\n")


if __name__ == "__main__":
    main()
