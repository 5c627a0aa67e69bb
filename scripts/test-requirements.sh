#!/bin/sh
# Sees to what the tests need besides Python packages. Root on Debian or Ubuntu gets it installed; all others are told
# what is missing, how to install it, and which tests are skipped for it. Where CI is set those fail instead.
#
#   scripts/test-requirements.sh [kafka|all]   kafka: only what a Kafka of its own needs; all: also what make test-all does
set -eu

root="$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)"
python="$root/.venv/bin/python"
case "${1:-}" in
    kafka) tools="Java" ;;
    all) tools="Java Redis PostgreSQL Chromium promtool libpython" ;;
    *) tools="Java Redis PostgreSQL" ;;
esac
outcome="skipped"
[ -z "${CI:-}" ] || outcome="going to fail"

say() {
    echo "test-requirements: $*" >&2
}

has() {
    command -v "$1" >/dev/null 2>&1
}

java_is_here() {
    [ -z "${GUARDRAIL_TEST_KAFKA:-}" ] || return 0
    major="$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)"
    [ "${major:-0}" -ge 17 ] || return 1
    has mvn || [ -d "${GUARDRAIL_KAFKA_CACHE:-}/libs" ] || ls -d "${HOME:-}"/.cache/guardrail/kafka-*/libs >/dev/null 2>&1
}

# Is the tool here? Also sets its packages, Debian's and Homebrew's, and the tests that are skipped without it.
look_for() {
    other=""
    case "$1" in
        Java)
            debian="openjdk-17-jre-headless maven" brew="openjdk@17 maven" tests="tests on a real Kafka"
            other="; or name a Kafka that runs: GUARDRAIL_TEST_KAFKA=HOST:PORT"
            java_is_here
            ;;
        Redis)
            debian="redis-server" brew="redis" tests="tests of verdicts that guards share"
            has redis-server
            ;;
        PostgreSQL)
            debian="postgresql" brew="postgresql" tests="tests of its store of flagged cases"
            has initdb || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1
            ;;
        Chromium)
            debian="chromium" brew="--cask chromium" tests="tests of pages"
            other="; or name a browser: GUARDRAIL_TEST_BROWSER=PROGRAM"
            [ -n "${GUARDRAIL_TEST_BROWSER:-}" ] || has chromium || has google-chrome
            ;;
        promtool)
            debian="prometheus" brew="prometheus" tests="tests of the alert rules"
            has promtool
            ;;
        libpython)
            minor="$("$python" -c 'import sys; print(sys.version_info[1])')"
            debian="libpython3.$minor" brew="python" tests="tests of Triton"
            "$python" -c "import ctypes; ctypes.CDLL('libpython3.$minor.so.1.0')" 2>/dev/null
            ;;
    esac
}

install_missing() {
    packages=""
    for tool in $tools; do
        look_for "$tool" || packages="$packages $debian"
    done
    # Go and uv trust no server without it.
    [ -s /etc/ssl/certs/ca-certificates.crt ] || packages="$packages ca-certificates"
    [ -n "$packages" ] || return 0
    apt-get update -q >/dev/null || return 1
    found=""
    for package in $packages; do
        if [ "$package" = openjdk-17-jre-headless ] && ! apt-cache show "$package" >/dev/null 2>&1; then
            package="default-jre-headless"
        fi
        # Ubuntu, for one, has Chromium as a snap only, which no container can install.
        if apt-cache show "$package" >/dev/null 2>&1; then found="$found $package"; fi
    done
    say "installing$found, in some minutes on two cores:"
    # Package names hold no spaces; RUNLEVEL=1 keeps the new services from being started.
    # shellcheck disable=SC2086
    apt-get install -q --assume-no --no-install-recommends $found 2>&1 | sed -n 's/^\(Need to get\|After this\)/  \1/p' >&2
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -q --no-install-recommends $found >/dev/null
}

if [ "$(id -u)" = 0 ] && has apt-get; then
    install_missing || say "apt-get failed, so that some of it is missing still"
fi
for tool in $tools; do
    look_for "$tool" ||
        say "no $tool: $tests are $outcome. As root: apt-get install $debian; on a Mac: brew install $brew$other"
done
[ "${1:-}" = all ] || exit 0
"$root/scripts/deploy-tools.sh" ||
    say "no Helm: tests of the chart and of the Docker files are $outcome, for the reason above"
"$python" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("torch") is None)' ||
    say "no PyTorch: tests of training and of PyTorch judges are skipped. Some gigabytes bring it: make training-test"
