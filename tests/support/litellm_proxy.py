"""LiteLLM's real proxy, in a virtual environment of its own, with the guardrail of this checkout in it.

The environment is kept in ``$GUARDRAIL_LITELLM_VENVS``, ``~/.cache/guardrail/litellm`` when not set: the
first run makes it, in a minute or two, and later ones find it. The checkout comes in by ``PYTHONPATH``.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from tests.support.kafka_broker import free_ports

ROOT: Final = Path(__file__).parents[2]
PROXY: Final = "litellm[proxy]==1.108.7"
_STARTED: Final = b"Application startup complete"


class LitellmMissing(Exception):
    """It can't be installed here."""


def environment() -> Path:
    """The virtual environment, made where it is not there yet. Raises LitellmMissing."""
    needs = [*tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"], PROXY]
    key = hashlib.sha256("\n".join([sys.version, *needs]).encode()).hexdigest()[:12]
    folder = Path(os.environ.get("GUARDRAIL_LITELLM_VENVS") or Path.home() / ".cache/guardrail/litellm")
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / key
    with (folder / f"{key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two processes of pytest may come at once
        if (made / ".complete").exists():
            return made
        shutil.rmtree(made, ignore_errors=True)
        uv = Path(sys.executable).with_name("uv")
        commands: tuple[list[str | Path], ...] = (
            [uv, "venv", "--quiet", "--python", sys.executable, made],
            [uv, "pip", "install", "--quiet", "--python", made / "bin" / "python", *needs],
        )
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
            if done.returncode:
                raise LitellmMissing(f"{PROXY} can't be installed: {done.stderr.strip()[-500:]}")
        (made / ".complete").touch()
    return made


@asynccontextmanager
async def litellm_proxy(
    venv: Path, folder: Path, upstream: str, guardrail: Mapping[str, Any]
) -> AsyncIterator[tuple[str, str]]:
    """The root of the API of a proxy before ``upstream``, and its key; any model is one of that."""
    model = {"model": "openai/*", "api_base": upstream, "api_key": "none", "num_retries": 0}
    config = {
        "model_list": [{"model_name": "*", "litellm_params": model}],
        "guardrails": [{"guardrail_name": "streaming-guardrail", "litellm_params": dict(guardrail)}],
    }
    key = f"sk-{secrets.token_hex(32)}"
    async with configured_proxy(venv, folder, yaml.safe_dump(config), LITELLM_MASTER_KEY=key) as url:
        yield url, key


@asynccontextmanager
async def configured_proxy(venv: Path, folder: Path, config: str, **environment: str) -> AsyncIterator[str]:
    """The root of the API of a proxy with this configuration, started in ``folder``."""
    (port,) = free_ports(1)
    (folder / "config.yaml").write_text(config)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GUARDRAIL_")}
    process = await asyncio.create_subprocess_exec(
        *(venv / "bin" / "litellm", "--config", folder / "config.yaml"),
        *("--host", "127.0.0.1", "--port", str(port)),
        cwd=folder,
        env=kept | {"PYTHONPATH": str(ROOT), "LITELLM_LOCAL_MODEL_COST_MAP": "True", **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    said = b""
    try:
        async with asyncio.timeout(300):  # a quarter of a minute where nothing else runs
            while _STARTED not in said:
                line = await process.stdout.readline()
                if not line:
                    raise AssertionError(re.sub(rb"\s+\n", b"\n", said)[-3_000:].decode("utf-8", "replace"))
                said += line
        log = asyncio.create_task(process.stdout.read())
        yield f"http://127.0.0.1:{port}"
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
    (folder / "proxy.log").write_bytes(said + await log)
