"""What the guard says is what it said when it was recorded; see ``tests/golden/__init__.py``."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import pytest

from tests.golden import cases, compare, normal
from tests.golden.cases import EXPECTED
from tests.golden.record import SEEDS, Lines, expected, joined, replayed, results, turned

_MOST_TOLD: Final = 40
_MOST_BYTES: Final = 450_000


@cache
def all_of_it(group: str) -> list[list[Lines]]:
    """What came of all cases of a group, by case, also of those that are left out of a sample."""
    return replayed(group, SEEDS[:1], "--all")


def recorded(group: str) -> list[list[Lines]]:
    """What came of the cases that are recorded. Of the smaller sample another test wants the others, too."""
    if group != "written":
        return replayed(group, SEEDS[:1])
    ids = {case.id for case in cases.load(group)}
    return [[lines for lines in found if lines[0]["case"] in ids] for found in all_of_it(group)]


@pytest.mark.parametrize("group", cases.group_names())
def test_every_record_is_as_expected_and_stands_clear_of_every_line(group: str) -> None:
    """Also where the verifier says something else by as much as it does on another processor."""
    found, moved = recorded(group)
    told = compare.differences(expected(group), joined(found))
    told += [f"moved: {one}" for one in turned(found, moved)]
    if told:
        more = f"\n… and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
        remedy = f"Only if this is meant to be so: python -m tests.golden.record {group}"
        pytest.fail(
            "\n".join([f"{len(told)} differences:", *told[:_MOST_TOLD]]) + f"{more}\n{remedy}", pytrace=False
        )


def test_every_group_is_recorded_and_nothing_else_and_it_stays_small() -> None:
    assert {path.stem for path in EXPECTED.iterdir()} == set(cases.group_names())
    assert sum(path.stat().st_size for path in EXPECTED.iterdir()) <= _MOST_BYTES
    assert {name: len(cases.load(name)) >= least for name, least in cases.SAMPLES.items()} == dict.fromkeys(
        cases.SAMPLES, True
    )


@pytest.fixture(scope="module")
def of_every_kind() -> list[dict[str, Any]]:
    """Cases that have every kind of record; they are quick."""
    wanted = {"headers", "two-at-a-time", "poison-in-flight", "small-records", "crashed-holding"}
    return [result for result in results("streams") if result["case"] in wanted]


def test_no_change_of_an_output_goes_unnoticed(of_every_kind: list[dict[str, Any]]) -> None:
    """Of every kind of record: each single value changed, left out, or added to, makes a difference."""
    changed = 0
    for result in of_every_kind:
        before = normal.lines(result)
        assert not compare.differences(before, before)
        for what, other in _changes(result):
            changed += 1
            assert compare.differences(before, normal.lines(other)), f"{result['case']}: {what} is not seen"
    assert changed > 1_000


def test_a_record_that_is_lost_repeated_or_late_is_noticed(of_every_kind: list[dict[str, Any]]) -> None:
    for result in of_every_kind:
        before = normal.lines(result)
        for role, records in result["written"].items():
            for number in range(len(records)):
                less, more, later = (copy.deepcopy(result) for _ in range(3))
                del less["written"][role][number]
                more["written"][role].append(records[number])
                later["written"][role].append(later["written"][role].pop(number))
                assert compare.differences(before, normal.lines(less))
                assert compare.differences(before, normal.lines(more))
                if later != result:
                    assert compare.differences(before, normal.lines(later)), f"{role} {number}"


def test_floats_may_differ_a_little_and_no_more() -> None:
    def line(support: float) -> list[dict[str, Any]]:
        return [{"case": "c"}, {"type": "verdict.claim", "support": support}]

    assert not compare.differences(line(0.5), line(0.64))
    assert compare.differences(line(0.5), line(0.66)) == [
        "c: verdict.claim: support: expected 0.5, is 0.66",
    ]
    assert not compare.differences(line(0.5), line(0.66), tolerance=math.inf)


def test_what_stands_near_a_line_is_noticed_and_left_out_of_samples() -> None:
    whole, recorded = (cases.load("written", whole=all_of_it) for all_of_it in (True, False))
    near = {one.partition(":")[0] for one in turned(*all_of_it("written"))}
    assert near
    assert near <= {case.id for case in whole} - {case.id for case in recorded}


def _changes(result: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for role, records in result["written"].items():
        for number, record in enumerate(records):
            where = f"{role} {number}"
            for name, value in (
                ("partition", 9),
                ("key", "another"),
                ("headers", [["x", "y"], *record["headers"]]),
            ):
                yield f"{where} {name}", _with(result, role, number, {name: value})
            if role == "dead_letters":
                yield f"{where} value", _with(result, role, number, {"value": record["value"] + " "})
                continue
            event = json.loads(record["value"])
            for path, other in _mutants(event):
                yield f"{where} {path}", _with(result, role, number, {"value": json.dumps(other)})


def _with(result: dict[str, Any], role: str, number: int, changes: dict[str, Any]) -> dict[str, Any]:
    other = copy.deepcopy(result)
    other["written"][role][number] |= changes
    return other


def _mutants(value: Any) -> Iterator[tuple[str, Any]]:
    """``value`` with one thing changed, for everything in it."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield f"without {name}", {each: value[each] for each in value if each != name}
            for path, other in _mutants(inner):
                yield f"{name}.{path}", {**value, name: other}
        yield "another member", {**value, "unheard of": 1}
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            for path, other in _mutants(inner):
                yield f"{number}.{path}", [*value[:number], other, *value[number + 1 :]]
        yield "another item", [*value, "new"]
    elif isinstance(value, bool) or value is None:
        yield "value", not value
    elif isinstance(value, int | float):
        yield "value", value + 1
    else:
        yield "value", f"~{value}"
