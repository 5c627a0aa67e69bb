"""Examples of the documentation as programs of their own, with a stand-in for the model."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from tests.support.llm_server import LlmServer


async def run_example(code: str, folder: Path, server: LlmServer) -> str:
    """What ``code`` prints, run in ``folder``; the LLM judge it builds asks ``server``."""
    there = {"GUARDRAIL_JUDGE__LLM__BASE_URL": server.url, "OPENAI_API_KEY": "not-sent-there"}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        code,
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("GUARDRAIL_")} | there,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, err.decode()
    return out.decode()
