"""Judges that a function of the operator's own makes."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from guardrail.errors import ConfigError
from guardrail.judges import Verdict
from guardrail.judges.cache import fingerprint
from guardrail.judges.factory import build_judge
from guardrail.judges.settings import JudgeSettings
from tests.support.judges import WordJudge, reply_of
from tests.unit.judges.doubles import request

MODULE = """
from tests.support.judges import WordJudge as Words
made = []

def make():
    made.append(Words())
    return made[-1]

def nothing():
    return None

def coroutine():
    return make

def breaks():
    raise OSError("no such model")

def leaves():
    raise SystemExit(0)

def a_class():
    return Words

class Returning(Words):
    async def judge(self, request):
        return []
"""


def built(factory: str) -> object:
    return build_judge(JudgeSettings.model_validate({"kind": "custom", "factory": factory}))


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("own_judges", "own_judges.words", "own_judges.broken", "own_judges.leaves"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    folder = tmp_path / "own_judges"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "words.py").write_text(MODULE)
    (folder / "broken.py").write_text("1 / 0")
    (folder / "leaves.py").write_text("import sys\nsys.exit(0)")
    return folder


@pytest.mark.parametrize("factory", ["own_judges.words:make", "own_judges.words:Words"])
async def test_the_judge_that_a_function_or_class_makes_is_asked(factory: str) -> None:
    judge = build_judge(JudgeSettings.model_validate({"kind": "custom", "factory": factory}))
    reply = await reply_of(judge, request("Anything."))
    assert (judge.name, reply.judgements[0].verdict) == ("words", Verdict.SUPPORTED)
    await judge.aclose()


@pytest.mark.parametrize(
    ("factory", "told"),
    [
        (
            "own_nothing:make",
            "can't be imported (ModuleNotFoundError: No module named 'own_nothing'); install",
        ),
        ("own_judges.words:other", "can't be imported (AttributeError: module 'own_judges.words' has no"),
        (
            "own_judges.broken:make",
            "make failed (ZeroDivisionError in broken.py, line 1)",
        ),
        (
            "own_judges.leaves:make",
            "make failed (SystemExit in leaves.py, line 2)",
        ),
        ("own_judges.words:breaks", "own_judges.words:breaks failed (OSError in words.py, line 16)"),
        ("own_judges.words:leaves", "own_judges.words:leaves failed (SystemExit in words.py, line 19)"),
        ("own_judges.words:made", "own_judges.words:made failed (TypeError in own.py"),
        ("own_judges.words:nothing", "made a NoneType, which lacks a name, judge or aclose; return a"),
        ("own_judges.words:coroutine", "made a function, which lacks a name"),
        ("own_judges.words:a_class", "made the class WordJudge; return an instance"),
        ("own_judges.words:Returning", "made a Returning whose judge returns; let it yield each judgement"),
    ],
)
def test_what_makes_no_judge_is_told_at_start(factory: str, told: str) -> None:
    """The text of an error that the factory raises isn't: it may quote a secret."""
    with pytest.raises(ConfigError) as wrong:
        built(factory)
    assert str(wrong.value).startswith("judge.factory: ")
    assert told in str(wrong.value)


@pytest.mark.parametrize("factory", ["module", "a:b:c", "a-b:c", ""])
def test_a_factory_names_a_module_and_a_function(factory: str) -> None:
    with pytest.raises(ValueError, match="factory"):
        JudgeSettings.model_validate({"factory": factory})


@pytest.mark.parametrize("marked", [True, False])
def test_cached_verdicts_are_of_the_files_of_the_factorys_package(module: Path, marked: bool) -> None:
    """Also of a folder without __init__.py."""
    if not marked:
        (module / "__init__.py").unlink()
    before = fingerprint("custom", "own_judges.words:make")
    assert fingerprint("custom", "own_judges.words:make") == before
    assert fingerprint("custom", "own_judges.words:Words") != before
    (module / "broken.py").write_text("changed")
    assert fingerprint("custom", "own_judges.words:make") != before


def test_a_package_in_several_folders_is_all_of_them(
    module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (module / "__init__.py").unlink()
    second = tmp_path / "second" / "own_judges" / "more.py"
    second.parent.mkdir(parents=True)
    second.touch()
    monkeypatch.syspath_prepend(tmp_path / "second")
    before = fingerprint("custom", "own_judges.words:make")
    second.write_text("changed")
    assert fingerprint("custom", "own_judges.words:make") != before


def test_a_factory_of_the_program_itself_is_refused_where_verdicts_are_cached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = types.ModuleType("__main__")
    program.make = WordJudge  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "__main__", program)
    with pytest.raises(ConfigError, match=r"judge\.factory: the files of __main__ can't be found"):
        built("__main__:make")
    uncached = {"kind": "custom", "factory": "__main__:make", "cache": {"ttl_seconds": 0}}
    assert build_judge(JudgeSettings.model_validate(uncached)).name == "words"
