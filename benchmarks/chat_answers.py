"""Right answers and wrong ones, written blind, streamed through the whole guard.

    python -m benchmarks.chat_answers [--set chat|tables|things|places|reckoning|formulas|support]
        [--part development|measured|reckoning] [--config FILE] [--show]

The set ``chat`` are right answers in the formatting of chat models and their wrong twins
(``tests/chat_answers``); the others are short answers about exact values: tables in ten forms, similar things
told in prose, what stands in the wrong place (sixteen kinds of error), what is calculated or compared,
formulas, and what a support assistant says of help pages (``tests/exact_answers``). Without ``--config``
the guard has the default policy and the default judge. Counted are right answers withheld (blocked or
redacted), flagged and untouched, and the same of the wrong ones, where untouched is the failure; all with
Wilson's 95 % intervals, in all, by form (of wrong chat answers: severity) and by kind. Answers labelled
conflict state one of two values that their documents give: those should be flagged. Deadlines are raised so
that the machine's speed decides nothing; answers with a claim that the judge could not check are counted
apart, as unverified.

``--show`` prints the answers that went wrong and why. It is for the development part: the other one only
measures anything as long as nobody who mends the judge has seen it, so it takes ``--force``.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple, get_args

import uvloop

from benchmarks.answer_figures import counted
from benchmarks.frame import command_line, markdown
from benchmarks.streams import tokens_of
from guardrail.config import LoggingSettings, Settings, load_settings
from guardrail.evals.statistics import Rate
from guardrail.events import Decision, ResponseVerdict, Verdict
from guardrail.guard import Guard
from guardrail.judges.factory import build_judge
from guardrail.logs import configure_logging
from guardrail.printable import escape_controls
from guardrail.routing import PolicyRouter
from tests import chat_answers
from tests.exact_answers import ExactCase as Case
from tests.exact_answers import Set, load_exact

TIMEOUT_MS: Final = 600_000  # no machine is this slow
AT_ONCE: Final = 2
CHAT: Final = "chat"


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
    """An answer, and the guard's verdict on it."""

    case: Case
    verdict: ResponseVerdict


def load(name: str, part: str) -> list[Case]:
    """The answers of a part of a set. Raises OSError where the set has no such part."""
    if name != CHAT:
        exact: Set = name  # type: ignore[assignment]
        return load_exact(exact, part)  # type: ignore[arg-type]
    found = []
    for pair in chat_answers.load(part):  # type: ignore[arg-type]
        said, about = pair.answer, (pair.question, pair.contexts)
        found.append(Case(pair.id, "", said.kind, "right", *about, said.right, ""))
        found.append(Case(pair.id, said.severity_hint, said.wrong_kind, "wrong", *about, said.wrong, ""))
    return found


def outcome(verdict: ResponseVerdict) -> Outcome:
    """What the verdict means for the reader of the answer."""
    left_open = sum(c.verdict is Verdict.UNVERIFIED and not c.unanswered for c in verdict.claims)
    unanswered = verdict.counts.unverified - left_open
    return Outcome.UNVERIFIED if unanswered else _OF_DECISION[verdict.decision]


async def judged(cases: Iterable[Case], settings: Settings) -> list[Judged]:
    """Every answer with its verdict, in the order of the cases.

    Two answers are under way at a time: the judge's work is bound by the processor, and more of them would
    only queue, where a judge under load may check claims only in part.
    """
    judge, turn = build_judge(settings.judge), asyncio.Semaphore(AT_ONCE)
    patient = {"claim_timeout_ms": TIMEOUT_MS, "incomplete_timeout_ms": TIMEOUT_MS}
    router = PolicyRouter.single(settings.router().choose(None, None).model_copy(update=patient))
    try:
        async with Guard(judge, router=router, limits=settings.limits) as guard:

            async def one(case: Case) -> Judged:
                async with turn:
                    pieces = tokens_of(case.answer)
                    events = [event async for event in guard.stream(case.question, case.contexts, pieces)]
                return Judged(case, next(event for event in events if isinstance(event, ResponseVerdict)))

            return await asyncio.gather(*map(one, cases))
    finally:
        await judge.aclose()


def rates(found: Iterable[Judged], label: str) -> dict[Outcome, Rate]:
    """The share of each outcome among the answers with this label."""
    made = Counter(outcome(one.verdict) for one in found if one.case.label == label)
    return {each: Rate(made[each], made.total()) for each in Outcome}


def report(found: Sequence[Judged]) -> str:
    """All figures as a table in Markdown."""
    groups: dict[str, list[Judged]] = defaultdict(list)
    for one in found:
        case = one.case
        keys = {case.label, f"{case.label}, {case.form}", f"{case.label}, {case.kind}"}
        for name in keys - {f"{case.label}, "}:
            groups[name].append(one)
    rows = [
        [name, len(groups[name]), *map(counted, rates(groups[name], name.partition(",")[0]).values())]
        for name in sorted(groups, key=lambda name: ("," in name, name))
    ]
    claims = [claim for one in found for claim in one.verdict.claims]
    in_part = sum(bool(claim.degraded_from) for claim in claims)
    return (
        markdown(["", "answers", *Outcome], rows)
        + f"\n\nchecked only in part: {in_part} of {len(claims)} claims"
    )


def failures(found: Iterable[Judged]) -> list[str]:
    """Right answers that were not left untouched and others that were, with what was said of them."""
    text: list[str] = []
    for case, verdict in found:
        if (outcome(verdict) is Outcome.UNTOUCHED) is (case.label == "right"):
            continue
        decided = f"{verdict.decision} ({verdict.rule}), score {verdict.score}"
        text += ["", f"{case.id} {case.label}, {case.kind}: {decided}"]
        text += [f"    | {escape_controls(line)}" for line in case.answer.splitlines()]
        for claim in verdict.claims:
            support = "n/a" if claim.support is None else f"{claim.support:.2f}"
            text.append(f"    {claim.verdict} {support} {claim.severity}: {escape_controls(claim.text)}")
            text += [f"        {escape_controls(claim.reasoning)}"] if claim.reasoning else []
        text += [f"    {case.note}"] if case.note else []
    return text


def main() -> None:
    """Command line."""
    parser = command_line(__doc__)
    parser.add_argument("--set", choices=(CHAT, *get_args(Set)), default=CHAT)
    parser.add_argument("--part", choices=get_args(chat_answers.Part), default="development")
    parser.add_argument("--config", type=Path, help="settings: judge, limits and the default policy are used")
    parser.add_argument("--show", action="store_true", help="print the answers that went wrong")
    parser.add_argument("--force", action="store_true", help="show those of the measured part, too")
    arguments = parser.parse_args()
    if arguments.show and arguments.part == "measured" and not arguments.force:
        parser.error("--show: the measured part is not to be looked at while mending; --force shows it")
    configure_logging(LoggingSettings(level="warning"))
    try:
        cases = load(arguments.set, arguments.part)
    except OSError as error:
        parser.error(str(error))
    found = uvloop.run(judged(cases, load_settings(arguments.config)))
    print(report(found))
    if arguments.show:
        print("\n".join(failures(found)))


if __name__ == "__main__":
    main()
