"""The evaluators of other frameworks with the guard in their place, tested in the real frameworks.

Each runs in a virtual environment of its own (tests/support/frameworks.py); where that can't be made the
tests skip, in CI they fail.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.environments import EnvironmentMissing
from tests.support.frameworks import VERSIONS, framework_environment, run_in

pytestmark = pytest.mark.timeout(1100)


@pytest.fixture(scope="module", params=sorted(VERSIONS))
def framework(request: pytest.FixtureRequest) -> tuple[str, Path]:
    try:
        return request.param, framework_environment(request.param)
    except EnvironmentMissing as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


def test_the_guard_does_in_the_framework_what_its_own_evaluator_does(framework: tuple[str, Path]) -> None:
    name, venv = framework
    file = f"tests/unit/integrations/in_{name}.py"
    # What the frameworks warn of is theirs to mend; the fixtures of tests/conftest.py are for Kafka.
    options = ["-q", "-p", "no:cacheprovider", "-o", "filterwarnings=default", "--noconftest"]
    done = run_in(venv, "-m", "pytest", file, *options)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
