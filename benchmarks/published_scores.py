"""Records what Haystack, Ragas, LlamaIndex and Mastra calculate, for the test that our scores are theirs.

    python -m benchmarks.published_scores

installs the libraries into .cache (minutes, 900 MB; needs Node.js and npm for Mastra), has each compute its
score of every number of supported statements in up to 20, and writes the record beside the test,
tests/unit/evals/published_scores.json.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Final

from benchmarks.peers_systems import CACHE, ROOT, peers_python

MASTRA: Final = "@mastra/evals@1.10.2"
MOST: Final = 20
SCALES: Final = (1, 7, 10, 0.3)
RECORD: Final = ROOT / "tests" / "unit" / "evals" / "published_scores.json"
_HERE: Final = Path(__file__).parent


def main() -> None:
    folder = CACHE / "mastra-evals"
    folder.mkdir(parents=True, exist_ok=True)
    install = ["npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", str(folder), MASTRA]
    subprocess.run(install, check=True)
    mastra = ["node", str(_HERE / "published_scores.mjs"), str(MOST), *map(str, SCALES)]
    found: dict[str, Any] = {
        "command": "python -m benchmarks.published_scores",
        "versions": "haystack-ai 3.4.1, ragas 0.4.3, llama-index-core 0.14.25, @mastra/evals 1.10.2",
        **_json([str(peers_python()), str(_HERE / "published_scores_worker.py"), str(MOST)], ROOT),
        "mastra": _json(mastra, folder),
    }
    lines = [
        f"{json.dumps(name)}: {json.dumps(value, separators=(',', ':'))}" for name, value in found.items()
    ]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"wrote {RECORD.relative_to(ROOT)}")


def _json(command: list[str], folder: Path) -> Any:
    done = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
