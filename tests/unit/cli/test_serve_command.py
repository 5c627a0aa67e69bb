"""``guardrail serve`` as a process: it listens, answers, drains, and says what is wrong."""

from __future__ import annotations

import json
import resource
import signal
import ssl
import subprocess
from pathlib import Path
from typing import Any

import httpx2

from tests.support.certificates import Authority
from tests.support.programs import call, command, environment


def logged(process: subprocess.Popen[str], event: str) -> dict[str, Any]:
    """The next line of the log that is this event."""
    assert process.stderr is not None
    for line in process.stderr:
        found: dict[str, Any] = json.loads(line)
        if found["event"] == event:
            return found
    raise AssertionError(f"it ended without {event}")


def test_it_serves_over_tls_until_a_signal(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    issued = authority.issue("localhost")
    files = {"certificate": str(issued.certfile), "private_key": str(issued.keyfile)}
    config = tmp_path / "guardrail.yaml"
    config.write_text(json.dumps({"serve": {**files, "missing_contexts": "judge"}}))
    program = command("serve", "--port", "0", "--config", str(config))
    program = ["sh", "-c", 'ulimit -Sn 256 && exec "$@"', "sh", *program]  # too few files for its streams
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        try:
            ops, port = logged(process, "ops.listening")["port"], logged(process, "serve.listening")["port"]
            reply = httpx2.post(
                f"https://localhost:{port}/v1/check",
                json={"answer": "It costs $79 a month.", "contexts": ["It costs $49 a month."]},
                verify=ssl.create_default_context(cafile=authority.cafile),
                timeout=60,
            )
            soft, most = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
            assert soft == most
            text = httpx2.get(f"http://127.0.0.1:{ops}/metrics").text
            process.send_signal(signal.SIGTERM)
            assert process.wait() == 0
        finally:
            process.kill()
    assert reply.json()["decision"] == "redact"
    assert 'guardrail_http_requests_total{endpoint="check",status="200"} 1.0' in text
    assert "guardrail_claims_total{" in text


def test_other_machines_need_keys() -> None:
    done = call("serve", "--host", "192.0.2.1")
    assert done.returncode == 2
    assert "there are no keys" in " ".join(done.stderr.split())


def test_the_upstream_is_a_base_url() -> None:
    done = call("serve", "--upstream", "api.openai.com")
    assert done.returncode == 2
    assert "no base URL" in " ".join(done.stderr.split())
