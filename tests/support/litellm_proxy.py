"""LiteLLM's real proxy with the guardrail of this checkout, which comes in by ``PYTHONPATH``."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from tests.support.environments import ROOT
from tests.support.kafka_broker import free_ports

_STARTED: Final = b"Application startup complete"


@asynccontextmanager
async def litellm_proxy(
    folder: Path, upstream: str, guardrail: Mapping[str, Any]
) -> AsyncIterator[tuple[str, str]]:
    """The root of the API of a proxy before ``upstream``, and its key; any model is one of that, and so is
    what it passes through to OpenAI.
    """
    model = {"model": "openai/*", "api_base": upstream, "api_key": "none", "num_retries": 0}
    config = {
        "model_list": [{"model_name": "*", "litellm_params": model}],
        "guardrails": [{"guardrail_name": "streaming-guardrail", "litellm_params": dict(guardrail)}],
    }
    key = f"sk-{secrets.token_hex(32)}"
    keys = {"LITELLM_MASTER_KEY": key, "OPENAI_API_KEY": "none", "OPENAI_API_BASE": upstream}
    async with configured_proxy(folder, yaml.safe_dump(config), **keys) as url:
        yield url, key


@asynccontextmanager
async def configured_proxy(folder: Path, config: str, **environment: str) -> AsyncIterator[str]:
    """The root of the API of a proxy with this configuration, started in ``folder``."""
    (port,) = free_ports(1)
    (folder / "config.yaml").write_text(config)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GUARDRAIL_")}
    process = await asyncio.create_subprocess_exec(
        *(Path(sys.executable).with_name("litellm"), "--config", folder / "config.yaml"),
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
