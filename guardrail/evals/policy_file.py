"""A tuned policy as a configuration file, with where it comes from in comments.

The file stands alone: ``guardrail config check FILE`` accepts it, ``guardrail run --config FILE`` takes it,
and its policy can be copied into another file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from guardrail.evals.lines import STDIN
from guardrail.evals.statistics import Estimate, Rate, percent
from guardrail.evals.tuning import Tuned
from guardrail.policy import RULE_LISTS, Policy
from guardrail.printable import escape_controls

_WIDTH: Final = 110
_LEFT_OUT: Final = frozenset({"name", "extends", *RULE_LISTS})


def policy_values(policy: Policy) -> dict[str, Any]:
    """What a configuration file says of the policy: everything that differs from the built-in defaults, and
    its rules.
    """
    given = policy.model_dump(mode="json", exclude_defaults=True, exclude=set(_LEFT_OUT))
    return {**given, "rules": [rule.line for rule in policy.rules]}


def written(
    policy: Policy,
    comments: Sequence[str],
    *,
    calibration: str | None = None,
    bands: Mapping[str, Mapping[str, float]] | None = None,
) -> str:
    """The file's text. ``calibration`` is the name of a file beside it; ``bands`` are the cascade's."""
    values: dict[str, Any] = {}
    if calibration is not None or bands:
        values["judge"] = {}
        if calibration is not None:
            values["judge"]["calibration"] = calibration
        if bands:
            values["judge"]["cascade"] = {"bands": {name: dict(band) for name, band in bands.items()}}
    values["policies"] = {policy.name: policy_values(policy)}
    if policy.name != "default":
        values["default_policy"] = policy.name
    body = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return "".join(f"# {line}".rstrip() + "\n" for line in comments) + body


def provenance(
    command: str, files: Sequence[Path], *, version: str, date: str, responses: int, claims: int, labels: int
) -> list[str]:
    """Comments on what the file was made from: files with their hashes, counts, command, version, date."""
    return [
        f"Written by guardrail {version} on {date}:",
        *_lines(f"  {command}"),
        "From:",
        *(line for path in files for line in _lines(f"  {path}, {_kept(path)}")),
        f"  {responses:,} answers with {claims:,} claims, {labels:,} labels",
    ]


def figures(tuned: Tuned) -> list[str]:
    """Comments on what the policy reaches on answers held out, and the one before it beside it."""
    lines = [f"Aim: {tuned.aim}.", concluded(tuned)]
    if tuned.shortfall:
        lines.append(missed(tuned))
    lines += [f"Too few labels: {problem}." for problem in tuned.problems]
    lines += [f"  {name}: {rate(after)}, before {rate(before)}" for name, before, after in shares(tuned)]
    lines += [f"  difference, {name}: {told}" for name, told in differences(tuned).items()]
    changed = [each for each in tuned.settings if each.before != each.after]
    lines.append("Changed:" if changed else "Nothing changed.")
    for each in changed:
        spread = ", ".join(number(value) for value in each.folds)
        told = f"  {each.name} {number(each.before)} -> {number(each.after)}"
        lines.append(told + (f" (chosen in folds: {spread})" if spread else ""))
    return lines


def concluded(tuned: Tuned) -> str:
    """Whether to take the policy, as a sentence."""
    return f"{tuned.why[0].upper()}{tuned.why[1:]}."


def missed(tuned: Tuned) -> str:
    """How the aim is missed, as a sentence."""
    return f"The aim is not reached on answers held out: {tuned.shortfall}."


def shares(tuned: Tuned) -> Iterator[tuple[str, Rate, Rate]]:
    """What the policy does on answers held out: name, before and after."""
    before, after = (counts.rates(tuned.aim.by) for counts in (tuned.baseline_counts, tuned.held_out))
    yield from ((name, before[name], after[name]) for name in after)


def differences(tuned: Tuned) -> dict[str, str]:
    """The differences in words, by name; that of costs only where the aim has some."""
    return {
        name: difference(each, name)
        for name, each in tuned.gains.items()
        if name != "cost" or tuned.aim.cost_miss is not None
    }


def rate(given: Rate, *, counts: bool = True) -> str:
    """A share in percent with its interval, and its counts."""
    if not given.total:
        return "none to count"
    return f"{percent(given)} %" + (f" ({given.count} of {given.total})" if counts else "")


def difference(given: Estimate, name: str) -> str:
    """A difference with its interval: of shares in points, of costs as they are."""
    scale, unit = (1.0, " an answer") if name == "cost" else (100.0, " points")
    digits = 3 if name == "cost" else 1
    value, low, high = (f"{scale * each:+.{digits}f}" for each in (given.value, given.low, given.high))
    return f"{value}{unit} [{low}, {high}]"


def number(value: float | None) -> str:
    """A threshold; a dash where there is none."""
    return "–" if value is None else f"{value:g}"


def _kept(path: Path) -> str:
    """The hash of a file's content, with its kind; that it is not kept for stdin. Raises OSError."""
    if str(path) == STDIN:
        return "stdin, not kept"
    with path.open("rb") as stream:
        return f"sha256 {hashlib.file_digest(stream, 'sha256').hexdigest()}"


def _lines(text: str) -> list[str]:
    """``text`` as comment lines, whatever it contains: line breaks would end the comment."""
    return [escape_controls(text)]
