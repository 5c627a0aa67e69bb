"""The servers, started once; these tests run only when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.llama_server import Installation, LlamaServer, install

_HERE = Path(__file__).parent
_MARK = "real_llm"
_FIGURES = pytest.StashKey[list[str]]()

# The first run compiles the server within a fixture.
_TIMEOUT_S = 600
_BUILD_TIMEOUT_S = 4200


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave them out unless ``-m`` names them: ``-m "not kafka"`` must not bring them in."""
    here = [item for item in items if item.path.is_relative_to(_HERE)]
    if _MARK not in str(config.getoption("markexpr")):
        config.hook.pytest_deselected(items=here)
        left_out = set(here)
        items[:] = [item for item in items if item not in left_out]
        return
    for number, item in enumerate(here):
        item.add_marker(getattr(pytest.mark, _MARK))
        item.add_marker(pytest.mark.timeout(_TIMEOUT_S if number else _BUILD_TIMEOUT_S))


@pytest.fixture(scope="session")
def installation() -> Installation:
    return install()


@pytest.fixture(scope="session")
def llama(installation: Installation) -> Iterator[LlamaServer]:
    """A server with four slots that all tests share; none may end it."""
    server = LlamaServer(installation)
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def own_llama(installation: Installation) -> Iterator[LlamaServer]:
    """A server of one test, to kill and start again at will. It runs."""
    server = LlamaServer(installation)
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> list[str]:
    """Lines to be shown at the end of the run."""
    return request.config.stash.setdefault(_FIGURES, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    lines = config.stash.get(_FIGURES, [])
    if lines:
        terminalreporter.section("measured on the real model")
        for line in lines:
            terminalreporter.line(line)
