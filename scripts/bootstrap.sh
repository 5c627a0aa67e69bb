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
# For a Python without pip, as Debian's is: a release that was tried here, by its hash.
pip_wheel="pip-26.2.1-py3-none-any.whl"
pip_sha256="71138adf1f4ca900cdb7d289c21b7494329f2332b6d85f0e1c42108c0384ed3e"

say() {
    echo "bootstrap: $*" >&2
}

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
    return 1
}

has_pip_to_give() {
    "$1" -c 'import ensurepip, venv' 2>/dev/null
}

# Fails where nothing can be installed: elsewhere than on Debian and Ubuntu, and for others than root.
install_packages() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 1
    say "installing Debian's $* (14 MB, a minute at most)"
    apt-get update -q >/dev/null &&
        DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >/dev/null
}

fetch_pip() {
    # The index is pip's own setting, or the one that uv.lock is made from.
    index="${PIP_INDEX_URL:-$(sed -n 's/.*registry = "\(.*\)".*/\1/p' "$root/uv.lock" | head -n 1)}"
    "$venv/bin/python" - "${index%/}/pip/" "$venv/$pip_wheel" "$pip_sha256" <<'PYTHON'
import hashlib, pathlib, re, subprocess, sys, urllib.parse, urllib.request

page, wheel, sha256 = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
try:
    listed = urllib.request.urlopen(page, timeout=60).read().decode()
    link = re.search(rf'href="([^"#]*/{re.escape(wheel.name)})', listed)
    if link is None:
        sys.exit(f"bootstrap: {page} has no {wheel.name}")
    content = urllib.request.urlopen(urllib.parse.urljoin(page, link[1]), timeout=60).read()
except (OSError, ValueError) as error:
    sys.exit(f"bootstrap: can't fetch {wheel.name} by {page}: {error}")
if hashlib.sha256(content).hexdigest() != sha256:
    sys.exit(f"bootstrap: {wheel.name} has not the hash that scripts/bootstrap.sh expects")
wheel.write_bytes(content)
# A wheel is an archive, and Python runs the program in it from there.
subprocess.run([sys.executable, f"{wheel}/pip", "install", "--quiet", "--no-index", wheel], check=True)
wheel.unlink()
PYTHON
}

create_venv() {
    python="$(find_python)" || {
        install_packages python3 python3-venv || true
        python="$(find_python)" || {
            say "no Python $minimum or later was found (tried \$PYTHON, python3.11 to python3.14, python3)."
            say "Install one (Debian: apt-get install python3 python3-venv), or name it: PYTHON=/path/to/python make demo"
            return 1
        }
    }
    # Debian splits ensurepip off into a package of its own.
    venv_package="$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
    if has_pip_to_give "$python" || install_packages "$venv_package"; then
        "$python" -m venv "$venv"
        return
    fi
    say "$python came without ensurepip and can't be given it here; fetching pip on its own instead (2 MB)"
    if ! "$python" -m venv --without-pip "$venv" || ! fetch_pip; then
        rm -rf "$venv"
        say "that failed. On Debian or Ubuntu install what is missing: sudo apt-get install $venv_package"
        return 1
    fi
}

stamp="$venv/.installed${extras:+-$extras}"
state="$(cksum <"$root/pyproject.toml")"
if [ -x "$venv/bin/python" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$state" ]; then
    exit 0
fi
if ! is_new_enough "$venv/bin/python"; then
    rm -rf "$venv"
    create_venv
elif ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    # Its making was interrupted, or uv made it. What is in it stays.
    "$venv/bin/python" -m ensurepip >/dev/null 2>&1 || fetch_pip
fi
wanted=".${extras:+[$extras]}"
cd "$root"
if [ "$extras" = test ]; then
    say "installing the project and what its tests need into .venv: 340 MB to download, 1.4 GB on disk, a minute or two"
    # uv, which the tests need too, takes a fifth of pip's time. It doesn't know pip's settings: a mirror, say.
    "$venv/bin/python" -m pip install --disable-pip-version-check --quiet uv &&
        "$venv/bin/uv" pip install --python "$venv/bin/python" --editable "$wanted" && installed=yes
else
    say "installing the project into .venv: 70 MB to download, 300 MB on disk, a minute or two on two cores"
fi
[ -n "${installed:-}" ] ||
    "$venv/bin/python" -m pip install --disable-pip-version-check --progress-bar off --editable "$wanted"
echo "$state" >"$stamp"
if [ -n "$extras" ]; then
    echo "$state" >"$venv/.installed"
fi
