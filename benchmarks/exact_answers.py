"""Short answers about exact values, through the whole guard: ``python -m benchmarks.exact_answers [--set
tables|things|reckoning|formulas] [--part development|measured] [--show]``.

``tests/exact_answers`` has right and wrong sentences about tables in ten forms, about similar things told
in prose, about what is reckoned or compared, and about formulas. With the default policy and the default
judge, counted are right answers withheld (blocked or redacted), flagged and untouched, and the same of the
wrong ones, where untouched is the failure, with Wilson's 95 % intervals: in all, by form and by kind. Answers
labelled conflict state one of two values that their documents give: those should be flagged.

``--show`` prints the answers that went wrong and why. It is for the development part: the other one only
measures anything as long as nobody who mends the judge has seen it, so it takes ``--force``.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import uvloop

from benchmarks.chat_answers import AT_ONCE, Outcome, heading, outcome, patient, rates, share_line, told
from benchmarks.frame import command_line
from guardrail.config import LoggingSettings, Settings, load_settings
from guardrail.events import ResponseVerdict
from guardrail.guard import Guard
from guardrail.judges.factory import build_judge
from guardrail.logs import configure_logging
from tests.exact_answers import ExactCase, Part, Set, load_exact

Found = Sequence[tuple[ExactCase, ResponseVerdict]]


async def verdicts(cases: Sequence[ExactCase], settings: Settings) -> list[tuple[ExactCase, ResponseVerdict]]:
    """Every case with its verdict, in order."""
    judge = build_judge(settings.judge)
    turn = asyncio.Semaphore(AT_ONCE)
    try:
        async with Guard(judge, router=patient(settings.router()), limits=settings.limits) as guard:

            async def one(case: ExactCase) -> tuple[ExactCase, ResponseVerdict]:
                async with turn:
                    return case, await guard.check(case.question, case.contexts, case.answer)

            return await asyncio.gather(*map(one, cases))
    finally:
        await judge.aclose()


def lines(found: Found) -> list[str]:
    """The figures as text."""
    groups: dict[str, dict[str, list[ResponseVerdict]]] = defaultdict(lambda: defaultdict(list))
    for case, verdict in found:
        groups["in all"][case.label].append(verdict)
        groups["by form"][f"{case.label}, {case.form}"].append(verdict)
        groups["by kind"][f"{case.label}, {case.kind}"].append(verdict)
    text: list[str] = []
    for title, by in groups.items():
        text += ["", heading(title), *(share_line(name, rates(by[name])) for name in sorted(by))]
    return text[1:]


def failures(found: Found) -> list[str]:
    """Right answers that were not left untouched and others that were, with what was said of them."""
    text: list[str] = []
    for case, verdict in found:
        if (outcome(verdict) is Outcome.UNTOUCHED) is not (case.label == "right"):
            text += told(f"{case.id} {case.label}, {case.kind}", case.answer, verdict)
            text += [f"    {case.note}"] if case.note else []
    return text


def main() -> None:
    """Command line."""
    parser = command_line(__doc__)
    parser.add_argument("--set", choices=get_args(Set), default="tables")
    parser.add_argument("--part", choices=get_args(Part), default="development")
    parser.add_argument("--config", type=Path, help="settings: judge, limits and the default policy are used")
    parser.add_argument("--show", action="store_true", help="print the answers that went wrong")
    parser.add_argument("--force", action="store_true", help="show those of the measured part, too")
    arguments = parser.parse_args()
    if arguments.show and arguments.part == "measured" and not arguments.force:
        parser.error("--show: the measured part is not to be looked at while mending; --force shows it")
    configure_logging(LoggingSettings(level="warning"))
    cases = load_exact(arguments.set, arguments.part)
    found = uvloop.run(verdicts(cases, load_settings(arguments.config)))
    print("\n".join(lines(found)))
    if arguments.show:
        print("\n".join(failures(found)))


if __name__ == "__main__":
    main()
