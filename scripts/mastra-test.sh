#!/usr/bin/env bash
# Tests integrations/mastra with the real packages of Mastra and the guardrail of this checkout.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
# shellcheck source=scripts/node.sh
. scripts/node.sh
cd integrations/mastra
"${npm[@]}" ci --ignore-scripts --no-audit --no-fund
node_modules/.bin/tsc --project tsconfig.build.json
node_modules/.bin/tsc --noEmit
node --eval 'import("./dist/index.js").then(({ createFaithfulnessScorer }) => createFaithfulnessScorer())'
export GUARDRAIL_PROGRAM=${GUARDRAIL_PROGRAM:-$root/.venv/bin/guardrail} MASTRA_TELEMETRY_DISABLED=1
node --test --test-reporter=spec 'test/*.test.ts'

# The oldest versions that package.json admits, in a copy.
oldest=$(node -p 'Object.entries(require("./package.json").peerDependencies).map(([name, from]) => name + "@" + from.match(/[\d.]+/)[0]).join(" ")')
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r package.json tsconfig.json src test dist "$copy"
cd "$copy"
# shellcheck disable=SC2086 # several words
"${npm[@]}" install --no-save --ignore-scripts --no-audit --no-fund --legacy-peer-deps $oldest
echo '{ "extends": "./tsconfig.json", "include": ["test/examples.ts"] }' > examples.json
node_modules/.bin/tsc --noEmit --project examples.json
node --test --test-reporter=spec test/{scorer,documented,model}.test.ts
