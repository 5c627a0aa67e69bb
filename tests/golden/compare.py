"""What is expected beside what came, field by field."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

TOLERANCE: Final = 0.15
"""By how much a probability may differ. The verifier, rounded to 8 bits, says something else on another
processor: by how much, ``python -m benchmarks.instruction_sets`` measures."""
_PROBABILITIES: Final = frozenset({"support", "contradiction", "confidence", "score"})
_OTHER_FLOATS: Final = 1e-6
"""Of them, as a share: sums may be rounded otherwise."""
_MOST_CHARS: Final = 160

Line = Mapping[str, Any]


def differences(expected: Sequence[Line], found: Sequence[Line], tolerance: float = TOLERANCE) -> list[str]:
    """A line for everything that differs, in the order of the cases; empty when all is as expected."""
    wanted, come = _cases(expected), _cases(found)
    return [
        told
        for case in dict.fromkeys((*wanted, *come))
        for told in _of_case(case, wanted.get(case), come.get(case), tolerance)
    ]


def _cases(lines: Sequence[Line]) -> dict[str, list[Line]]:
    """The lines of each case, which stand below its name."""
    found: dict[str, list[Line]] = {}
    for line in lines:
        if "case" in line:
            below = found[line["case"]] = []
        else:
            below.append(line)
    return found


def _of_case(
    case: str, expected: Sequence[Line] | None, found: Sequence[Line] | None, tolerance: float
) -> Iterator[str]:
    if expected is None or found is None:
        yield f"{case}: {'did not run' if found is None else 'nothing is recorded of it'}"
        return
    wanted, come = _named(expected), _named(found)
    for name, line in wanted.items():
        if name not in come:
            yield f"{case}: {name}: is missing: {_shown(line)}"
        else:
            yield from (f"{case}: {name}: {told}" for told in _between("", line, come[name], tolerance))
    for name, line in come.items():
        if name not in wanted:
            yield f"{case}: {name}: is new: {_shown(line)}"
    if wanted.keys() == come.keys() and list(wanted) != list(come):
        first = next(name for name, other in zip(wanted, come, strict=True) if name != other)
        yield f"{case}: {first}: comes later than expected"


def _named(lines: Sequence[Line]) -> dict[str, Line]:
    """Each line by what it is about, so that one more or less does not make all others differ."""
    found: dict[str, Line] = {}
    for line in lines:
        about = [
            f"{name} {line[name]}" for name in ("type", "to", "key", "seq", "index", "call") if name in line
        ]
        name, times = ", ".join(about).removeprefix("type ") or "guard", 1
        while (unique := name if times == 1 else f"{name} (no. {times})") in found:
            times += 1
        found[unique] = line
    return found


def _between(path: str, expected: Any, found: Any, tolerance: float) -> Iterator[str]:
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        for name in dict.fromkeys((*expected, *found)):
            inner = f"{path}.{name}" if path else str(name)
            if name not in found:
                yield f"{inner}: expected {_shown(expected[name])}, has its ordinary value"
            elif name not in expected:
                yield f"{inner}: expected its ordinary value, is {_shown(found[name])}"
            else:
                yield from _between(inner, expected[name], found[name], tolerance)
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, pair in enumerate(zip(expected, found, strict=True)):
            yield from _between(f"{path}[{number}]", *pair, tolerance)
    elif not _same(path, expected, found, tolerance):
        yield f"{path}: expected {_shown(expected)}, is {_shown(found)}"


def _same(path: str, expected: Any, found: Any, tolerance: float) -> bool:
    if type(expected) is float and type(found) is float:
        if path.rpartition(".")[2] in _PROBABILITIES:
            return abs(expected - found) <= tolerance
        return math.isclose(expected, found, rel_tol=_OTHER_FLOATS)
    return type(expected) is type(found) and bool(expected == found)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"
