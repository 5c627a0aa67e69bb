"""Real servers of the Open Inference Protocol around the shipped verifier: Triton and MLServer.

Each lies in a virtual environment of its own below ``~/.cache/guardrail`` (tests/support/environments.py).
Triton comes out of PyPI's nvidia-pytriton, whose program has the Python backend only: a model file of a few
lines runs the graph there, as an operator's Triton would with its onnxruntime backend.
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
from pathlib import Path
from typing import Final

from tests.support.environments import CACHE, EnvironmentMissing, environment
from tests.support.kafka_broker import end_process, free_ports

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
