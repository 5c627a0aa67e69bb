#!/bin/sh
# Runs the tests of the workarounds (consumers/kafka/workarounds.py) with the newest aiokafka that pyproject.toml
# allows, beside the installed one. Does nothing where that is the newest.
set -eu
cd "$(dirname -- "$0")/.."
python="${PYTHON:-.venv/bin/python}"

requirement="$("$python" -c "
import tomllib
wanted = tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies']
print(next(one for one in wanted if one.startswith('aiokafka')))")"
newest="$("$python" -m pip install --quiet --dry-run --upgrade --no-deps --report - "$requirement" | "$python" -c "
import json, sys
print(*(one['metadata']['version'] for one in json.load(sys.stdin)['install']))")"
if [ -z "$newest" ]; then
    echo "newest-aiokafka: the installed release is the newest that $requirement allows"
    exit 0
fi

echo "newest-aiokafka: testing with $newest"
beside="$(mktemp -d)"
trap 'rm -rf "$beside"' EXIT
"$python" -m pip install --quiet --no-deps --target "$beside" "aiokafka==$newest"
# shellcheck disable=SC2046 # the names of tests have no blanks
PYTHONPATH="$beside" "$python" -m pytest -q tests/contract tests/unit/consumers/test_kafka_workarounds.py $(
    PYTHONPATH="$beside" "$python" -c "
from consumers.kafka.workarounds import WORKAROUNDS
print(*sorted({test for each in WORKAROUNDS for test in each.tests}))")
