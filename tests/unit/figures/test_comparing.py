"""Comparisons and limits that two figures of the sources decide."""

from __future__ import annotations

import pytest

from guardrail.figures import State, check_figures
from tests.unit.figures.sources import source_of

RAFTS = (
    "The Otter raft carries six people and rents for £85 a day.",
    "The Heron raft carries four people and rents for £60 a day.",
    "The Stork raft carries eight people and rents for £120 a day.",
)
MOWERS = (
    "Running time: the V2 runs for 30 minutes, the V4 for 45 minutes.",
    "Filling takes 50 minutes for the V2, 40 minutes for the V4.",
)
LIFTS = ("The east lift takes 9 minutes, the west lift 14 minutes.",)
ROOMS = ("The garden room costs 80 euros a night and the tower room costs 95 euros a night.",)
APART = ("The garden room costs 80 euros.", "The tower room costs 95 euros.", "Breakfast costs 9 euros.")
HELD = (
    "The old chest is our cheapest one, at 90 euros.",
    "The new chest, which nobody can order, is 70 euros.",
)
SAID = ("The garden room is the cheapest at 80 euros and the tower room costs 95 euros.",)
STONES = ("The mill dates from 1780.", "The chapel dates from 1655.")


def states(claim: str, sources: tuple[str, ...]) -> list[str]:
    return [str(check.state) for check in check_figures(claim, source_of(*sources), range(len(sources)))]


@pytest.mark.parametrize(
    ("claim", "sources"),
    [
        ("The Heron raft is more expensive than the Otter raft.", RAFTS),
        ("The Otter costs less than the Heron.", RAFTS),
        ("Of the rafts, the Otter is the cheapest.", RAFTS),
        ("The west lift is quicker than the east lift.", LIFTS),
        ("You pay more for the Heron raft than for the Otter raft.", RAFTS),
        ("None of the rafts is dearer than the Otter.", RAFTS),
        ("The Heron is the most expensive raft.", RAFTS),
        ("The V2 runs longer than the V4.", MOWERS),
        ("Compared with the east lift, the west lift is faster.", LIFTS),
        ("The mill is older than the chapel.", STONES),
        ("The mill of 1780 is older than the chapel of 1655.", STONES),
        ("The garden room costs the most.", ROOMS),
        ("The tower room is the cheaper of the two.", ROOMS),
        ("The garden room is the more expensive option.", ROOMS),
        ("Of the two, the tower room is cheaper.", ROOMS),
        ("The tower room is the cheapest.", SAID),
    ],
)
def test_what_is_turned_is_in_conflict(claim: str, sources: tuple[str, ...]) -> None:
    assert "conflict" in states(claim, sources)


@pytest.mark.parametrize(
    ("claim", "sources"),
    [
        ("The Otter raft is more expensive than the Heron raft.", RAFTS),
        ("The Heron costs less than the Otter.", RAFTS),
        ("The Heron is the cheapest raft.", RAFTS),
        ("The Heron is not more expensive than the Otter.", RAFTS),
        ("The east lift is quicker than the west lift.", LIFTS),
        ("The chapel is older than the mill.", STONES),
        ("The chapel is more beautiful than the mill.", STONES),
        ("The Otter is cheaper than the ferry.", RAFTS),
        ("The Heron raft is more stable than the Otter raft.", RAFTS),
        ("The garden room is the cheapest, and the tower room costs the most.", ROOMS),
        ("The tower room is the most popular.", ROOMS),
        ("The garden room is one of the most expensive.", ROOMS),
        ("The old chest is the cheapest.", HELD),
        ("The garden room is the cheapest.", SAID),
    ],
)
def test_what_is_so_or_can_not_be_told_is_not(claim: str, sources: tuple[str, ...]) -> None:
    assert not {"conflict", "unchecked"} & set(states(claim, sources))


def test_of_one_other_thing_elsewhere_nothing_is_sure() -> None:
    assert states("The tower room is the cheapest.", APART[:2]) == ["unchecked"]
    assert states("The garden room is the most expensive.", (APART[0], APART[2])) == []


@pytest.mark.parametrize(
    ("claim", "sources", "states_"),
    [
        ("Boats may have an unlimited number of guests.", ["A boat may have 6 guests."], ["unchecked"]),
        ("Take as many towels as you like.", ["Each guest has up to two towels."], ["unchecked"]),
        ("There is no limit on transfers.", ["Transfers are limited to 900 euros a day."], ["unchecked"]),
        ("Guests are not unlimited.", ["A boat may have 6 guests."], []),
        ("Towels are unlimited.", ["There were 6 towels in the room.", "Towels are not restricted."], []),
        ("Calls are unlimited.", ["Calls to Norway cost 9 cents a minute."], []),
        (
            "Gold members make unlimited visits.",
            ["Gold members make 8 visits a month.", "Platinum members make any number of visits."],
            ["unchecked"],
        ),
    ],
)
def test_what_has_a_figure_may_be_limited(claim: str, sources: tuple[str, ...], states_: list[str]) -> None:
    assert states(claim, sources) == states_


@pytest.mark.parametrize(
    ("claim", "source", "state"),
    [
        ("The rink is open until 3 March.", "The rink is open from 3 March.", State.CONFLICT),
        ("The rink is open until 3 March.", "The rink is open until 3 March.", State.FOUND),
        ("The rink is closed until 3 March.", "The rink is open from 3 March.", State.FOUND),
        ("The rink opens on 3 March.", "The rink opens from 3 March on.", State.FOUND),
        ("The rink is open until 3 March.", "The rink is open from 3 March to 9 May.", State.CONFLICT),
        ("The rink is open until 9 May.", "The rink is open from 3 March to 9 May.", State.FOUND),
        ("Orders after 2 p.m. leave today.", "Orders before 2 p.m. leave today.", State.CONFLICT),
        (
            "Orders after 2 p.m. leave tomorrow.",
            "Orders before 2 p.m. leave today, later ones tomorrow.",
            State.UNCHECKED,
        ),
        ("A stay is 4 nights at the most.", "The minimum stay is 4 nights.", State.CONFLICT),
        ("A stay is at least 4 nights.", "The minimum stay is 4 nights.", State.FOUND),
        ("Book no more than 5 days ahead.", "Book at least 5 days ahead.", State.CONFLICT),
        ("Book up to 5 days ahead.", "Book at least 5 days ahead.", State.FOUND),
    ],
)
def test_a_turned_limit_is_not_found(claim: str, source: str, state: State) -> None:
    assert states(claim, (source,))[-1] == state
