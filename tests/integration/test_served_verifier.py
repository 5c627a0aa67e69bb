"""The shipped verifier on real servers of the Open Inference Protocol: Triton, and MLServer.

Each runs in a virtual environment of its own (tests/support/served_verifier.py); where that can't be made the
tests skip, in CI they fail.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from guardrail.errors import JudgeUnavailable
from guardrail.events import Verdict
from guardrail.judges.local import LocalJudge, LocalJudgeSettings, packaged_folder
from guardrail.judges.model import ServerSettings
from guardrail.verdicts import Judgement
from tests.support.constants import made
from tests.support.environments import EnvironmentMissing
from tests.support.judges import reply_of
from tests.support.served_verifier import NAME, PACKAGES, server_environment, serving
from tests.unit.judges.model.asking import request

pytestmark = pytest.mark.timeout(900)

CONTEXTS = [
    "The standard plan costs $20 per month. The company's office is in Lisbon.",
    "Ana founded the company in 2001 with her brother, and it has 40 employees.",
]
CLAIMS = [
    "The company's office is in Lisbon.",
    "The standard plan costs $95 per month.",
    "It was founded by Ana in 1999.",
    "The company employs forty people.",
    "Its customers are mostly hospitals.",
]


@pytest.fixture(scope="module", params=sorted(PACKAGES))
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    try:
        venv = server_environment(request.param)
    except EnvironmentMissing as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))
    folder = packaged_folder()
    assert folder is not None
    with serving(request.param, venv, folder / "model.onnx", tmp_path_factory.mktemp("served")) as address:
        yield address


def served(url: str, name: str = NAME) -> LocalJudge:
    place = made(ServerSettings, url=url, model=name, timeout_ms=20_000)
    return LocalJudge(LocalJudgeSettings.model_validate({"verifier": {"server": place}}))


async def test_verdicts_are_those_of_the_verifier_in_process(url: str) -> None:
    """Numbers differ by a hundredth: onnxruntime optimises the int8 graph otherwise there."""
    there, here = served(url), LocalJudge()
    try:
        found, own = [(await reply_of(each, request(CLAIMS, CONTEXTS))).judgements for each in (there, here)]
    finally:
        await there.aclose()
        await here.aclose()
    for one, other in zip(found, own, strict=True):
        assert one.support == pytest.approx(other.support, abs=0.03)
        assert one.contradiction == pytest.approx(other.contradiction, abs=0.03)

    def plain(judgement: Judgement) -> Judgement:
        return replace(judgement, support=0.0, contradiction=None, confidence=0.0)

    assert [plain(each) for each in found] == [plain(each) for each in own]
    assert found[0].verdict is Verdict.SUPPORTED
    assert found[1].verdict is Verdict.CONTRADICTED


async def test_a_model_that_the_server_does_not_have(url: str) -> None:
    judge = served(url, "other")
    try:
        with pytest.raises(JudgeUnavailable, match=r"the model other is not ready: load it on the server"):
            await reply_of(judge, request(CLAIMS[1:2], CONTEXTS))
    finally:
        await judge.aclose()
