"""How many processors may be used: affinity and the quotas of control groups."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from guardrail.judges.model import default_threads, runtime
from guardrail.judges.model.runtime import usable_processors

HERE = 8


@pytest.fixture(autouse=True)
def eight_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(HERE)), raising=False)


def found(folder: Path, own: str, files: dict[str, str]) -> int:
    for name, content in files.items():
        path = folder / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    (folder / "own").write_text(own, encoding="utf-8")
    return usable_processors(folder / "groups", folder / "own")


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        ("0::/\n", {"cpu.max": "300000 100000\n"}, 3),
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "5000 100000\n"}, 1),
        ("0::/\n", {"cpu.max": "max 100000\n"}, HERE),
        ("0::/\n", {"cpu.max": "6400000 100000\n"}, HERE),
        ("0::/\n", {"cpu.max": "nonsense\n"}, HERE),
        ("0::/\n", {"cpu.max": "100 0\n"}, HERE),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "200000 100000\n"}, 2),
        ("0::/of/the/host\n", {"cpu.max": "100000 100000\n"}, 1),
        ("0::/../etc\n", {"cpu.max": "200000 100000\n", "../etc/cpu.max": "100000 100000\n"}, 2),
        ("4:memory:/\n", {"cpu.max": "100000 100000"}, HERE),
        ("", {}, HERE),
    ],
)  # fmt: skip
def test_the_smaller_of_affinity_and_quotas(
    tmp_path: Path, own: str, files: dict[str, str], expected: int
) -> None:
    assert found(tmp_path, own, files) == expected


def test_where_there_are_no_control_groups(tmp_path: Path) -> None:
    assert usable_processors(tmp_path / "none", tmp_path / "none") == HERE


def test_threads_unless_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for usable, threads in ((1, 1), (2, 2), (8, 2)):
        monkeypatch.setattr(runtime, "usable_processors", lambda count=usable: count)
        assert default_threads() == threads
