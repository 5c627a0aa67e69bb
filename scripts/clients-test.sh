#!/usr/bin/env bash
# Runs the programs of docs/clients.md, in JavaScript, Go, Python and curl, against the gateway of this checkout, and Portkey's gateway
# in front of it. Go and curl must be there, or are installed where root has apt-get; for Node see scripts/node.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/node.sh
. scripts/node.sh
if ! { command -v go && command -v curl; } >/dev/null && [ "$(id -u)" = 0 ]; then
  apt-get update -q >/dev/null
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends golang-go curl >/dev/null
fi
(cd examples/clients && "${npm[@]}" ci --ignore-scripts --no-audit --no-fund)
"${npm[@]}" install --silent --prefix build/portkey --ignore-scripts --no-audit --no-fund @portkey-ai/gateway@1.15.2
GUARDRAIL_TEST_CLIENTS=1 .venv/bin/pytest tests/unit/gateway/test_clients.py tests/integration/in_portkey.py
