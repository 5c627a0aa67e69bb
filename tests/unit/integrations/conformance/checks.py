"""Checks of what a framework's evaluator does, asked of theirs and of ours with the same scripted model.

A check is a function of the module that has the evaluator, so that only the import changes, and returns what
it has seen. What theirs did is the measure: ours must do the same, on the keys that theirs has. A check that
fails with theirs is none.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, SupportsFloat

import pytest

PAGE = Path(__file__).parents[4] / "docs/frameworks.md"


@dataclass
class Conformance:
    """``framework`` as its package is called. ``differences`` says of some checks why ours does otherwise."""

    framework: str
    least: int
    """So many checks pass with theirs."""
    theirs: Any
    ours: Any
    checks: Mapping[str, Callable[[Any], Any]]
    differences: Mapping[str, str]
    _told: dict[str, tuple[bool, str]] = field(default_factory=dict)

    def told(self, name: str) -> tuple[bool, str]:
        """Whether the check passes with theirs, and what ours does otherwise, or what fails with theirs."""
        if name not in self._told:
            self._told[name] = _compared(self.checks[name], self.theirs, self.ours)
        return self._told[name]

    def tests(self) -> tuple[Callable[..., None], Callable[[], None]]:
        """One of each check, and one of what the page says."""

        @pytest.mark.parametrize("name", self.checks)
        def of_each(name: str) -> None:
            passes, otherwise = self.told(name)
            if not passes:
                pytest.xfail(f"with theirs, too: {otherwise}")
            if (name in self.differences) is not bool(otherwise):
                pytest.fail(otherwise or "ours does the same: take it out of the differences", pytrace=False)

        def of_page() -> None:
            assert len(self._counted()) >= self.least
            text = PAGE.read_text("utf-8")
            if f"**{self._package}**" not in text:
                pytest.skip(f"the page is about another version than {self._package}")
            assert self.piece() in text, f"python -m {__package__} writes it"

        return of_each, of_page

    def piece(self) -> str:
        """What the page says of them, between two marks."""
        wrong = self._counted()
        said = f"of {len(wrong)} checks that pass with theirs, {wrong.count('')} pass with ours. The others:"
        others = (f"- *{name}*: {why}" for name, why in self.differences.items())
        begin, end = f"<!-- {self.framework} -->", f"<!-- end of {self.framework} -->"
        return "\n".join([begin, "", f"**{self._package}**: {said}", "", *others, "", end])

    def _counted(self) -> list[str]:
        return [wrong for passes, wrong in map(self.told, self.checks) if passes]

    @property
    def _package(self) -> str:
        return f"{self.framework} {metadata.version(self.framework)}"


def done(result: Any) -> Any:
    """What a call returns, also of an asynchronous one."""
    return asyncio.run(result) if inspect.iscoroutine(result) else result


def raised(call: Callable[[], Any]) -> list[str]:
    """The kinds of error that a caller can catch; none if nothing is raised."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - it is what is asked for
        return [each.__name__ for each in (ValueError, TypeError, Exception) if isinstance(error, each)]
    return []


def _compared(check: Callable[[Any], Any], theirs: Any, ours: Any) -> tuple[bool, str]:
    try:
        expected = _seen(check, theirs)
    except Exception as error:  # noqa: BLE001
        return False, f"{type(error).__name__}: {error}"
    assert expected is not None, "a check returns what it has seen"
    try:
        found = _on_keys_of(expected, _seen(check, ours))
    except Exception as error:  # noqa: BLE001
        found = f"{type(error).__name__}: {error}"
    # As text, since a NaN is not equal to a NaN.
    said = [json.dumps(each, ensure_ascii=False) for each in (expected, found)]
    return True, "" if said[0] == said[1] else f"theirs: {said[0]}\nours: {said[1]}"


def _seen(check: Callable[[Any], Any], module: Any) -> Any:
    return _plain(done(check(module)))


def _plain(seen: Any) -> Any:
    """As JSON has it, with numbers of one kind."""
    if isinstance(seen, Mapping):
        return {str(name): _plain(each) for name, each in seen.items()}
    if isinstance(seen, list | tuple):
        return [_plain(each) for each in seen]
    if isinstance(seen, bool | None):
        return seen
    return round(float(seen), 9) if isinstance(seen, SupportsFloat) else str(seen)


def _on_keys_of(expected: Any, found: Any) -> Any:
    if isinstance(expected, dict) and isinstance(found, dict):
        return {name: _on_keys_of(each, found.get(name, "missing")) for name, each in expected.items()}
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        return [_on_keys_of(*pair) for pair in zip(expected, found, strict=True)]
    return found
