"""Installs the extras of pyproject.toml as users do, and runs the tests of each where it is installed.

    python -m scripts.extras           the newest versions, by uv: a part of continuous integration
    python -m scripts.extras --all     the oldest and the newest, by pip and by uv, and each framework's own
                                       packages beside; writes the tables of docs/compatibility.md

Extras share an environment; one that holds back what others install has one of its own.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = ROOT / "build/extras"
PAGE: Final = ROOT / "docs/compatibility.md"
_MARK: Final = "<!-- make compat writes what follows -->\n"
_QUIET: Final = {  # nothing is to leave the machine, nor to be waited for
    "DO_NOT_TRACK": "1",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "RAGAS_DO_NOT_TRACK": "true",
}
_UV: Final = Path(sys.executable).with_name("uv")
_PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

ALWAYS: Final = "(none)"
_INTEGRATIONS: Final = "tests/unit/integrations"
_CONFORMANCE: Final = f"{_INTEGRATIONS}/conformance"
TESTS: Final[Mapping[str, Sequence[str]]] = {
    ALWAYS: [
        # aiokafka's private parts, with the newest release that pyproject.toml allows
        *(f"tests/unit/consumers/test_kafka_{each}.py" for each in ("headers", "workarounds")),
        "tests/unit/judges/llm/test_connection.py",
        "tests/unit/judges/llm/test_chat.py::test_questions_end_by_their_deadline_in_answers_or_an_error",
    ],
    "agent-hooks": [f"{_INTEGRATIONS}/test_agent_hooks.py"],
    "classifier": ["tests/unit/judges/model/test_loading.py"],
    "docs": ["tests/unit/test_site.py::test_every_page_of_the_documentation_is_on_the_site"],
    "examples": ["tests/examples/test_chat_service.py::test_a_reader_who_goes_away_ends_the_answer"],
    "haystack": [f"{_INTEGRATIONS}/in_haystack.py", f"{_CONFORMANCE}/in_haystack.py"],
    "langchain": [f"{_INTEGRATIONS}/test_langchain.py", f"{_INTEGRATIONS}/test_langchain_agents.py"],
    "litellm": [f"{_INTEGRATIONS}/in_litellm.py"],
    "llama-index": [f"{_INTEGRATIONS}/in_llama_index.py", f"{_CONFORMANCE}/in_llama_index.py"],
    "openai-agents": [f"{_INTEGRATIONS}/test_openai_agents.py"],
    "otel": ["tests/unit/test_tracing.py"],
    "parquet": ["tests/unit/evals/test_formats.py::test_parquet_is_read_in_batches_of_rows"],
    "postgres": ["tests/unit/consumers/test_cases.py"],
    "ragas": [f"{_INTEGRATIONS}/in_ragas.py", f"{_CONFORMANCE}/in_ragas.py"],
    "redis": ["tests/unit/judges/test_redis_cache.py"],
    "serve": [f"tests/unit/gateway/test_{each}.py" for each in ("completions", "guard")],
    "report": ["tests/unit/cli/test_report_command.py::test_it_writes_a_page_and_says_what_is_in_it"],
}
"""What shows that an extra works, by its name."""
_LEFT_OUT: Final = {"classifier-torch", "training", "test"}  # gigabytes, and what runs all this
_APART: Final = {"haystack", "ragas", "serve"}
"""Extras that hold back what others install, as Ragas does, and those of which others raise the oldest, as
Haystack's, or hold back the newest, as serve's websockets."""

BESIDE: Final[Mapping[str, str]] = {
    "langchain": "langchain-openai",
    "litellm": "litellm[proxy]",
    "llama-index": "llama-index",
    "serve": "nemoguardrails[server]",
}
"""What people install a framework by where that is more than what its extra requires, or has beside it."""
_OF_BESIDE: Final[Mapping[str, Sequence[str]]] = {
    "litellm[proxy]": ["tests/integration/in_litellm.py", "tests/integration/in_litellm_gateway.py"],
    "nemoguardrails[server]": ["tests/integration/in_nemo.py"],
}
"""Tests for which something must be beside."""
_AT_ONCE: Final = 3  # environments
_OTHER_VERSIONS: Final = ("litellm", "llama-index", "serve")
"""Those that hold back what the guard itself needs: LiteLLM's proxy rich, LlamaIndex and NeMo openai."""


class NotInstalled(Exception):
    """The installer's words."""


@dataclass(frozen=True)
class Place:
    """An environment: what is installed, how, and of which extras the tests run there."""

    extras: Sequence[str]
    beside: str = ""
    installer: str = "uv"
    oldest: bool = False

    @property
    def name(self) -> str:
        what = "all" if len(self.extras) > 2 else self.extras[0].strip("()")
        beside = ["beside"] if self.beside else []
        return "-".join([what, *beside, self.installer, self.age])

    @property
    def age(self) -> str:
        return "oldest" if self.oldest else "newest"

    @property
    def line(self) -> str:
        return f"{self.installer} install '{with_extras('.', self.extras)}' {self.beside}".rstrip()

    @property
    def tests(self) -> Mapping[str, Sequence[str]]:
        left_out = _CONFORMANCE if self.oldest else "\0"  # what theirs does is what its newest version does
        own = {extra: [file for file in TESTS[extra] if left_out not in file] for extra in self.extras}
        return {extra: [*files, *_OF_BESIDE.get(self.beside, ())] for extra, files in own.items()}


@dataclass
class Result:
    place: Place
    versions: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)  # why, by extra


def tried(place: Place) -> Result:
    """Install the environment anew, and run the tests in it. Prints what it does, and what failed."""
    begun = time.monotonic()
    try:
        python = installed(place)
    except NotInstalled as error:
        tell(f"== {place.line}, {place.age}\n{error}")
        return Result(place, failed=dict.fromkeys(place.extras, "can't be installed"))
    ready = time.monotonic()
    versions = listed(python)
    failed = dict(failures(place, python))
    for extra in () if place.beside else place.extras:
        alone = resolved([extra], oldest=place.oldest)
        for package in map(package_of, requirements(extra)):
            if versions.get(package) != alone.get(package):
                failed[extra] = f"{package} is {versions.get(package)} here, alone {alone.get(package)}"
    took = f"   installed in {ready - begun:.0f} s, tested in {time.monotonic() - ready:.0f} s"
    tell(
        "\n".join([f"== {place.line}, {place.age}", took, *(f"   {each}: {failed[each]}" for each in failed)])
    )
    return Result(place, versions, failed)


# ---------------------------------------------------------------------------------------------- installing


def installed(place: Place) -> Path:
    """The interpreter of a new environment. Raises NotInstalled."""
    venv = FOLDER / place.name
    seed = ["--seed"] if place.installer == "pip" else []
    run([_UV, "venv", "--quiet", "--clear", *seed, "--python", sys.executable, venv])
    python = venv / "bin/python"
    command: list[str | Path] = [_UV, "pip", "install", "--python", python]
    if place.installer == "pip":
        command = [python, "-m", "pip", "install", "--disable-pip-version-check"]
    constraints = venv / "oldest.txt"
    pins = resolved(place.extras, oldest=True) if place.oldest else {}
    constraints.write_text("".join(f"{name}=={version}\n" for name, version in pins.items()))
    wanted = [with_extras(str(ROOT), place.extras), *place.beside.split(), *tools()]
    run([*command, "--quiet", "--constraint", constraints, *wanted])
    return python


def with_extras(project: str, extras: Iterable[str]) -> str:
    named = ",".join(each for each in extras if each != ALWAYS)
    return f"{project}[{named}]" if named else project


def requirements(extra: str) -> list[str]:
    if extra == ALWAYS:
        return list(_PROJECT["dependencies"])
    return list(_PROJECT["optional-dependencies"][extra])


def tools() -> list[str]:
    """What the tests themselves need, of the extra ``test``."""
    names = {
        "hypothesis",
        "jsonschema",
        "onnx",
        "openapi-spec-validator",
        "openinference-semantic-conventions",
    }
    names |= {"pandas", "playwright", "pytest", "pytest-asyncio", "pytest-timeout", "pytest-xdist", "trustme"}
    names |= {"types-pyyaml"}
    return [each for each in requirements("test") if package_of(each) in names]


def resolved(extras: Iterable[str], *, oldest: bool) -> dict[str, str]:
    """What the project with these extras comes to, with nothing beside: the newest, or the oldest of what
    pyproject.toml names. Raises NotInstalled.
    """
    options = ["--quiet", "--no-annotate", "--no-header", "--no-sources", "--python", sys.executable]
    options += ["--resolution", "lowest-direct" if oldest else "highest"]
    options += [word for extra in extras if extra != ALWAYS for word in ("--extra", extra)]
    lines = run([_UV, "pip", "compile", *options, "pyproject.toml"]).splitlines()
    return dict(line.partition(" ;")[0].split("==") for line in lines if "==" in line)


def listed(python: Path) -> dict[str, str]:
    lines = run([_UV, "pip", "freeze", "--quiet", "--python", python]).splitlines()
    return dict(line.split("==") for line in lines if "==" in line)


def package_of(requirement: str) -> str:
    (name,) = re.findall(r"^[\w-]+", requirement)
    return str(name).lower()


# ------------------------------------------------------------------------------------------------- testing


def failures(place: Place, python: Path) -> Iterator[tuple[str, str]]:
    """Each extra whose tests fail, with the first that does."""
    report = python.parents[1] / "tests.xml"
    files = [file for own in place.tests.values() for file in own]
    # What the frameworks warn of is theirs to mend.
    options = ["-q", "-p", "no:cacheprovider", "-o", "filterwarnings=default", f"--junitxml={report}"]
    if place.oldest or place.installer == "pip":
        options += ["-k", "not examples_of_the_page"]  # slow, and the same calls as in the other tests
    done = subprocess.run(  # noqa: S603 - our own tests
        [python, "-m", "pytest", *options, "-n", "2", "--dist", "loadfile", *files],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if not report.exists():
        raise SystemExit(done.stdout[-8000:] + done.stderr[-4000:])
    if done.returncode:
        tell(done.stdout[-12000:])
    cases = ET.parse(report).getroot().findall(".//testcase")  # noqa: S314 - pytest has written it
    told = False
    for extra, own_files in place.tests.items():
        modules = {file.partition("::")[0].removesuffix(".py").replace("/", ".") for file in own_files}
        # The class name of a test in a class goes on behind that of its module.
        own = [
            case
            for case in cases
            if any(f"{case.get('classname') or case.get('name')}.".startswith(f"{each}.") for each in modules)
        ]
        wrong = [case for case in own if case.find("failure") is not None or case.find("error") is not None]
        passed = [case for case in own if case.find("skipped") is None and case not in wrong]
        if wrong:
            told = True
            yield extra, f"{wrong[0].get('name')} fails"
        elif not passed:
            told = True
            yield extra, "no test has run"
    if done.returncode and not told:
        yield from dict.fromkeys(place.extras, f"pytest ends with status {done.returncode}").items()


def environment() -> dict[str, str]:
    kept = {name: each for name, each in os.environ.items() if not name.startswith(("GUARDRAIL_", "PYTEST"))}
    return kept | _QUIET


def run(command: Sequence[str | Path]) -> str:
    done = subprocess.run(  # noqa: S603 - installers, with the names in pyproject.toml
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NotInstalled(done.stderr.strip()[-3000:])
    return done.stdout


def tell(text: str) -> None:
    print(text, flush=True)  # noqa: T201


# ------------------------------------------------------------------------------------------------ the table


def places(*, everything: bool) -> Iterator[Place]:
    known = {ALWAYS, *_PROJECT["optional-dependencies"]} - _LEFT_OUT
    if known != set(TESTS):
        raise SystemExit(f"extras: say in TESTS what shows that {', '.join(known ^ set(TESTS))} works")
    shared = known - _APART - {ALWAYS}
    for installer in ("uv", "pip") if everything else ("uv",):
        # The oldest of what is always installed are too old for some of the extras.
        for group in ((ALWAYS, *sorted(shared)), *((extra,) for extra in sorted(_APART))):
            yield Place(group, installer=installer)
        for group in ((ALWAYS,), tuple(sorted(shared)), *((extra,) for extra in sorted(_APART))):
            if everything:
                yield Place(group, installer=installer, oldest=True)
    for extra in BESIDE if everything else _OTHER_VERSIONS:
        for installer in ("uv", "pip") if everything else ("uv",):
            yield Place((extra,) if extra in _APART else (extra, ALWAYS), BESIDE[extra], installer)


def tables(results: Sequence[Result], day: dt.date) -> str:
    python = ".".join(map(str, sys.version_info[:3]))
    lines = [f"\nOn {day:%d %B %Y}, with Python {python}:\n"]
    lines += [
        "| extra | oldest | pip | uv | newest | pip | uv |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    alone = {
        (each.place.installer, each.place.oldest, extra): each
        for each in results
        if not each.place.beside
        for extra in each.place.extras
    }
    for extra in TESTS:
        cells = [f"`{extra}`" if extra != ALWAYS else "none"]
        for old in (True, False):
            tries = [alone[installer, old, extra] for installer in ("pip", "uv")]
            cells += ["<br>".join(dict.fromkeys(versions_of(each, extra) for each in tries))]
            cells += [outcome(each, extra) for each in tries]
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "\n## Beside the packages of the frameworks\n",
        "| installed | becomes | pip | uv |",
        "| --- | --- | --- | --- |",
    ]
    for extra, packages in BESIDE.items():
        tries = [each for each in results if each.place.beside and extra in each.place.extras]
        tries.sort(key=lambda each: each.place.installer)
        names = [*map(package_of, packages.split()), "openai"]
        became = (", ".join(f"{name} {each.versions.get(name, '?')}" for name in names) for each in tries)
        cells = [f"`'.[{extra}]' {packages}`", "<br>".join(dict.fromkeys(became))]
        lines.append(f"| {' | '.join(cells + [outcome(each, extra) for each in tries])} |")
    return "\n".join(lines) + "\n"


def versions_of(result: Result, extra: str) -> str:
    named = [each for each in map(package_of, requirements(extra)) if each in result.versions]
    if extra == ALWAYS:
        named = ["openai", "httpx2", "pydantic", "onnxruntime"]
    return ", ".join(
        f"{name} {result.versions[name]}" for name in dict.fromkeys(named) if name in result.versions
    )


def outcome(result: Result, extra: str) -> str:
    return result.failed.get(extra, "works")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--all", action="store_true", help="oldest and newest, pip and uv; writes the page")
    everything = parser.parse_args().all
    # Half of the time is waited for the network, disks and servers.
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        results = list(pool.map(tried, places(everything=everything)))
    if everything:
        page = PAGE.read_text("utf-8").partition(_MARK)[0]
        PAGE.write_text(page + _MARK + tables(results, dt.datetime.now(dt.UTC).date()), "utf-8")
    if any(result.failed for result in results):
        sys.exit(1)


if __name__ == "__main__":
    main()
