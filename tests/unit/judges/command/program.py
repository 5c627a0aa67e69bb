"""A judge program for the tests. Its argument says how it misbehaves; it is run, never imported.

It supports what stands word for word in a context, and contradicts claims with "not".
"""

# ruff: noqa: T201 (what it prints is its protocol)
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path


def verdicts(request: dict) -> list[dict]:  # type: ignore[type-arg]
    found = []
    for claim in request["claims"]:
        text = claim["text"]
        home = next((c["id"] for c in request["contexts"] if text in c["text"]), None)
        verdict = {"id": claim["id"], "verdict": "UNSUPPORTED", "confidence": 0.8}
        if home is not None:
            quotes = [{"context_id": home, "quote": text}, {"context_id": home, "quote": "made up"}]
            verdict |= {"verdict": "SUPPORTED", "confidence": 0.9, "evidence": quotes}
            verdict["reasoning"] = "It stands."
        elif "not" in text.split():
            verdict |= {"verdict": "CONTRADICTED", "confidence": 1.0, "support": 0.01}
        found.append(verdict)
    return found


def main() -> None:
    mode, marks = sys.argv[1], Path(sys.argv[2])
    # One file for each start, so that a test can count them.
    (marks / f"start-{time.time_ns()}-{os.getpid()}").touch()
    if mode == "ends_at_once":
        sys.exit(3)
    if mode == "child":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        (marks / "child").write_text(str(child.pid))
    for line in sys.stdin:
        request = json.loads(line)
        first = not (marks / "asked").exists()
        (marks / "asked").touch()
        if mode in ("hangs", "child") or (mode == "hangs_first" and first):
            time.sleep(600)
        if mode == "dies_first" and first:
            os._exit(7)
        reply = {"protocol": 1, "request_id": request["request_id"], "verdicts": verdicts(request)}
        if mode == "stale":
            print(json.dumps(reply | {"request_id": "of-another", "verdicts": []}), flush=True)
        if mode == "never_ours":
            for _ in range(100):
                print(json.dumps(reply | {"request_id": "of-another"}), flush=True)
        if mode == "huge" and first:
            print("x" * 50_000, flush=True)
        if mode == "garbage" and first:
            print("loading model …", flush=True)
        if mode == "half":
            sys.stdout.write(json.dumps(reply)[:20])
            sys.stdout.flush()
            os._exit(0)
        if mode == "noisy":
            print("a context: " + request["contexts"][0]["text"], file=sys.stderr, flush=True)
        print(json.dumps(reply), flush=True)
        if mode == "one_each":
            sys.exit(0)


if __name__ == "__main__":
    main()
