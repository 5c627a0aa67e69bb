"""Ragas' own test of its two metrics, which its source archive holds, with the names of ours in it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import urllib.request
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parents[4]

_ARCHIVE = (
    "https://files.pythonhosted.org/packages/d2/bc/"
    "3234517692ac0ffae1ec2ec940992e4057844c49ee6c51c07ce385bb98f1/ragas-0.4.3.tar.gz"
)
_SHA256 = "1eb1f61dbc8613ad014fdb8d630cbe9a1caec1ea01664a106993cb756128c001"
_FILE = "tests/e2e/metrics_migration/test_faithfulness_migration.py"
_FOLDER = ROOT / "build/conformance"
_MODELS = {
    "from langchain_openai import": "from tests.unit.integrations.conformance.langchain_model import",
    "from ragas.llms.base import llm_factory": (
        "from tests.unit.integrations.conformance.ragas_models import llm_factory"
    ),
}
"""For theirs and for ours: no key, no network."""
_OURS = {
    "from ragas.metrics._faithfulness import": "from guardrail.integrations.ragas import",
    "from ragas.metrics.collections import": "from guardrail.integrations.ragas import",
}

NAMES = (
    "test_legacy_faithfulness_vs_v2_faithfulness_e2e_compatibility",
    "test_faithfulness_edge_cases",
    "test_faithfulness_high_vs_low_scores",
    "test_faithfulness_migration_requirements_documented",
)


def their_test(module: Any, name: str) -> str:
    """Runs it. Raises if it doesn't pass."""
    wrong = _wrong()["test_theirs" if module.new.__name__.startswith("ragas.") else "test_ours", name]
    assert not wrong, wrong
    return "passed"


@cache
def _wrong() -> Mapping[tuple[str, str], str]:
    """What fails in each test with theirs and with ours; nothing where it passes."""
    text = _source()
    for file, names in {"test_theirs.py": _MODELS, "test_ours.py": {**_MODELS, **_OURS}}.items():
        mapped = text
        for name, other in names.items():
            assert name in text
            mapped = mapped.replace(name, other)
        (_FOLDER / file).write_text(mapped, "utf-8")
    report = _FOLDER / "tests.xml"
    options = ["-p", "no:cacheprovider", "-o", "filterwarnings=default", f"--junitxml={report}"]
    options += ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(_FOLDER)]
    subprocess.run(  # nothing but what the archive holds
        [sys.executable, "-m", "pytest", *options, _FOLDER],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "none"},
        capture_output=True,
        check=False,
    )
    wrong = {}
    for case in ET.parse(report).getroot().findall(".//testcase"):  # noqa: S314 - pytest has written it
        told = [each.get("message", "") for each in case if each.tag in {"failure", "error", "skipped"}]
        wrong[str(case.get("classname")).partition(".")[0], str(case.get("name"))] = "; ".join(told)
    return wrong


def _source() -> str:
    file = _FOLDER / Path(_FILE).name.replace("test_", "ragas-0.4.3-")
    if not file.exists():
        _FOLDER.mkdir(parents=True, exist_ok=True)
        archive, _ = urllib.request.urlretrieve(_ARCHIVE)
        found = hashlib.sha256(Path(archive).read_bytes()).hexdigest()
        assert found == _SHA256, f"{_ARCHIVE} has changed"
        with tarfile.open(archive) as tar:
            inside = tar.extractfile(f"ragas-0.4.3/{_FILE}")
            assert inside is not None
            file.write_bytes(inside.read())
        Path(archive).unlink()
    return file.read_text("utf-8")
