"""The shipped verifier on real servers of the Open Inference Protocol: Triton, and MLServer.

Each runs in a virtual environment of its own; where that can't be made the
tests skip, in CI they fail.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from guardrail.errors import JudgeUnavailable
from guardrail.events import Verdict
from guardrail.judges.local import LocalJudge, LocalJudgeSettings, packaged_folder
from guardrail.judges.model import ServerSettings
from guardrail.verdicts import Judgement
from tests.support.constants import made
from tests.support.environments import CACHE, EnvironmentMissing, environment
from tests.support.judges import reply_of
from tests.support.kafka_broker import end_process, free_ports
from tests.unit.judges.model.asking import request

START_TIMEOUT_S: Final = 120.0
NAME: Final = "claims"
PACKAGES: Final = {"triton": ["nvidia-pytriton==0.7.0"], "mlserver": ["mlserver==1.7.1"]}

_TRITON_MODEL: Final = """
import os, sys
sys.path.insert(0, {packages!r})  # the backend's own interpreter ignores PYTHONPATH
import onnxruntime
import triton_python_backend_utils as triton

class TritonPythonModel:
    def initialize(self, args):
        self.graph = onnxruntime.InferenceSession({model!r}, providers=["CPUExecutionProvider"])
        self.inputs = [each.name for each in self.graph.get_inputs()]
        self.outputs = [each.name for each in self.graph.get_outputs()]

    def execute(self, requests):
        answers = []
        for request in requests:
            given = [triton.get_input_tensor_by_name(request, name).as_numpy() for name in self.inputs]
            found = self.graph.run(self.outputs, dict(zip(self.inputs, given)))
            tensors = [triton.Tensor(*each) for each in zip(self.outputs, found)]
            answers.append(triton.InferenceResponse(tensors))
        return answers
"""
_TRITON_CONFIG: Final = """
backend: "python"
max_batch_size: 64
input [
  { name: "input_ids" data_type: TYPE_INT64 dims: [ -1 ] },
  { name: "attention_mask" data_type: TYPE_INT64 dims: [ -1 ] },
  { name: "token_type_ids" data_type: TYPE_INT64 dims: [ -1 ] }
]
output [
  { name: "logits" data_type: TYPE_FP32 dims: [ 2 ] },
  { name: "token_logits" data_type: TYPE_FP32 dims: [ -1 ] }
]
"""
_MLSERVER_MODEL: Final = """
import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse

class Graph(MLModel):
    async def load(self):
        self.graph = onnxruntime.InferenceSession({model!r}, providers=["CPUExecutionProvider"])
        self.inputs_ = [each.name for each in self.graph.get_inputs()]
        self.outputs_ = [each.name for each in self.graph.get_outputs()]
        return True

    async def predict(self, payload):
        feeds = {{each.name: NumpyCodec.decode_input(each) for each in payload.inputs}}
        found = self.graph.run(self.outputs_, {{name: feeds[name] for name in self.inputs_}})
        outputs = [NumpyCodec.encode_output(*each) for each in zip(self.outputs_, found)]
        return InferenceResponse(model_name=self.name, outputs=outputs)
"""


def server_environment(name: str) -> Path:
    """The virtual environment of a server. Raises EnvironmentMissing."""
    library = f"libpython3.{sys.version_info.minor}.so.1.0"
    load = [sys.executable, "-c", f"import ctypes; ctypes.CDLL({library!r})"]
    # Debian's Python does without it; the stub of Triton's Python backend does not.
    if name == "triton" and subprocess.run(load, stderr=subprocess.DEVNULL, check=False).returncode:
        package = f"libpython3.{sys.version_info.minor}"
        raise EnvironmentMissing(f"Triton needs {library} (Debian: apt-get install {package})")
    return environment(CACHE / name, PACKAGES[name])


@contextmanager
def serving(name: str, venv: Path, model: Path, work: Path) -> Iterator[str]:
    """The URL of a server of this name that serves ``model`` as ``claims``; ``work`` is an empty folder."""
    (port, *others) = free_ports(3)
    command, variables = _COMMANDS[name](venv, model, work, port, others)
    output = work / "output"
    with output.open("wb") as written:
        process = subprocess.Popen(
            command, cwd=work, env={**os.environ, **variables}, stdout=written, stderr=subprocess.STDOUT
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(f"{url}/v2/models/{NAME}/ready", process, output)
        yield url
    finally:
        end_process(process, signal.SIGTERM)


def _wait(url: str, process: subprocess.Popen[bytes], output: Path) -> None:
    until = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310 (an address of ours)
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(f"{url} never was ready:\n{output.read_text('utf-8', 'replace')[-3000:]}")


def _packages(venv: Path) -> Path:
    return venv / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"


def _triton(
    venv: Path, model: Path, work: Path, port: int, others: list[int]
) -> tuple[list[str], dict[str, str]]:
    packages = _packages(venv)
    home = packages / "pytriton" / "tritonserver"
    backends = work / "backends"
    shutil.copytree(home / "backends" / "python", backends / "python")
    stub = home / "python_backend_stubs" / f"3.{sys.version_info.minor}" / "triton_python_backend_stub"
    shutil.copy2(stub, backends / "python")
    (backends / "python" / stub.name).chmod(0o755)
    folder = work / "models" / NAME
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(_TRITON_CONFIG, encoding="utf-8")
    text = _TRITON_MODEL.format(packages=str(packages), model=str(model))
    (folder / "1" / "model.py").write_text(text, encoding="utf-8")
    command = [
        str(home / "bin" / "tritonserver"),
        f"--model-repository={work / 'models'}",
        f"--backend-directory={backends}",
        *("--http-address=127.0.0.1", f"--http-port={port}", "--allow-grpc=false", "--allow-metrics=false"),
    ]
    return command, {"LD_LIBRARY_PATH": str(packages / "nvidia_pytriton.libs")}


def _mlserver(
    venv: Path, model: Path, work: Path, port: int, others: list[int]
) -> tuple[list[str], dict[str, str]]:
    ports = {"http_port": port, "grpc_port": others[0], "metrics_port": others[1]}
    served = {"host": "127.0.0.1", **ports, "parallel_workers": 0}
    (work / "settings.json").write_text(json.dumps(served), encoding="utf-8")
    folder = work / NAME
    folder.mkdir()
    described = {"name": NAME, "implementation": "served_graph.Graph", "parameters": {"uri": "."}}
    (folder / "model-settings.json").write_text(json.dumps(described), encoding="utf-8")
    (folder / "served_graph.py").write_text(_MLSERVER_MODEL.format(model=str(model)), encoding="utf-8")
    return [str(venv / "bin" / "mlserver"), "start", str(work)], {"PYTHONPATH": str(folder)}


_COMMANDS: Final = {"triton": _triton, "mlserver": _mlserver}


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
