#!/bin/sh
# Creates .venv and installs the project into it, once per state of pyproject.toml.
#
#   scripts/bootstrap.sh          what running needs
#   scripts/bootstrap.sh test     and what the tests need
set -eu

extras="${1:-}"
root="$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)"
venv="$root/.venv"
minimum="3.11"

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    # ${PYTHON:-} first, so that anybody can choose.
    for name in ${PYTHON:-} python3.13 python3.12 python3.11 python3.14 python3; do
        if is_new_enough "$name"; then
            echo "$name"
            return 0
        fi
    done
    echo "bootstrap: no Python $minimum or later was found (tried \$PYTHON, python3.13, python3.12, python3.11, python3)." >&2
    echo "bootstrap: install one (Debian: apt-get install python3 python3-venv), or name it: PYTHON=/path/to/python make demo" >&2
    return 1
}

create_venv() {
    python="$(find_python)"
    if "$python" -m venv "$venv" >"$root/.venv.log" 2>&1; then
        rm -f "$root/.venv.log"
        return 0
    fi
    rm -rf "$venv"
    # Debian splits ensurepip off into a package of its own.
    version="$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "bootstrap: this Python has no ensurepip; installing python$version-venv" >&2
        apt-get update -q >/dev/null
        DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "python$version-venv" >/dev/null
        "$python" -m venv "$venv"
        rm -f "$root/.venv.log"
        return 0
    fi
    cat "$root/.venv.log" >&2
    rm -f "$root/.venv.log"
    echo "bootstrap: '$python -m venv' failed. On Debian or Ubuntu: sudo apt-get install python$version-venv" >&2
    return 1
}

stamp="$venv/.installed${extras:+-$extras}"
state="$(cksum <"$root/pyproject.toml")"
if [ -x "$venv/bin/python" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$state" ]; then
    exit 0
fi
if ! [ -x "$venv/bin/python" ] || ! is_new_enough "$venv/bin/python"; then
    rm -rf "$venv"
    create_venv
fi
echo "bootstrap: installing into .venv${extras:+ (with $extras)}" >&2
cd "$root"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable ".${extras:+[$extras]}"
echo "$state" >"$stamp"
if [ -n "$extras" ]; then
    echo "$state" >"$venv/.installed"
fi
