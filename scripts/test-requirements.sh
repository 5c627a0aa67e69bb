#!/bin/sh
# Sees to what the tests need besides Python: Java 17 and Maven for a real Kafka, a Redis server for the shared
# verdict cache, PostgreSQL for the store of flagged cases, a Chromium for the page of the chat service, promtool for
# the alert rules, helm and what checks the chart. Installs them where that is possible (root on Debian or Ubuntu); elsewhere says so and goes on: those tests
# then skip, or fail where CI is set.
#
#   scripts/test-requirements.sh [kafka]      kafka: only what a Kafka of its own needs
set -eu

only="${1:-}"

java_major() {
    java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
}

jars_are_cached() {
    for folder in "${GUARDRAIL_KAFKA_CACHE:-}" "$HOME"/.cache/guardrail/kafka-*; do
        [ -n "$folder" ] && [ -d "$folder/libs" ] && return 0
    done
    return 1
}

kafka_can_run() {
    [ -n "${GUARDRAIL_TEST_KAFKA:-}" ] && return 0
    major="$(java_major || true)"
    [ "${major:-0}" -ge 17 ] && { command -v mvn >/dev/null 2>&1 || jars_are_cached; }
}

redis_can_run() {
    [ "$only" = kafka ] && return 0
    command -v redis-server >/dev/null 2>&1
}

postgres_can_run() {
    [ "$only" = kafka ] && return 0
    command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1
}

browser_can_run() {
    [ "$only" = kafka ] && return 0
    [ -n "${GUARDRAIL_TEST_BROWSER:-}" ] && return 0
    command -v chromium >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1
}

promtool_can_run() {
    [ "$only" = kafka ] && return 0
    command -v promtool >/dev/null 2>&1
}

if [ "$only" != kafka ] && ! "$(dirname -- "$0")/deploy-tools.sh"; then
    echo "test-requirements: without the tools of scripts/deploy-tools.sh the tests of the chart can't run." >&2
fi
if kafka_can_run && redis_can_run && postgres_can_run && browser_can_run && promtool_can_run; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "test-requirements: installing what is missing${only:+ for $only}" >&2
    apt-get update -q >/dev/null
    packages=""
    if ! kafka_can_run; then
        java_package="openjdk-17-jre-headless"
        if ! apt-cache show "$java_package" >/dev/null 2>&1; then
            java_package="default-jre-headless"
        fi
        packages="$java_package maven"
    fi
    redis_can_run || packages="$packages redis-server"
    postgres_can_run || packages="$packages postgresql"
    # Ubuntu has it as a snap only, which no container can install: the tests are skipped there.
    browser_can_run || { apt-cache show chromium >/dev/null 2>&1 && packages="$packages chromium"; }
    promtool_can_run || packages="$packages prometheus"
    # Package names hold no spaces; RUNLEVEL=1 keeps the new services from being started.
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -q --no-install-recommends $packages >/dev/null
fi
if ! kafka_can_run; then
    echo "test-requirements: Java 17 or later and Maven are missing, so the tests on a real Kafka can't run." >&2
    echo "test-requirements: install them (Debian: apt-get install openjdk-17-jre-headless maven; macOS: brew install" >&2
    echo "test-requirements: openjdk@17 maven), or name a running broker: GUARDRAIL_TEST_KAFKA=HOST:PORT make test" >&2
fi
if ! redis_can_run; then
    echo "test-requirements: redis-server is missing, so the tests of the shared verdict cache can't run." >&2
    echo "test-requirements: install it (Debian: apt-get install redis-server; macOS: brew install redis)" >&2
fi
if ! postgres_can_run; then
    echo "test-requirements: PostgreSQL is missing, so its store of flagged cases can't be tested." >&2
    echo "test-requirements: install it (Debian: apt-get install postgresql; macOS: brew install postgresql)" >&2
fi
if ! browser_can_run; then
    echo "test-requirements: chromium is missing, so the test of the chat service's page can't run." >&2
    echo "test-requirements: install it (Debian: apt-get install chromium), or name a browser:" >&2
    echo "test-requirements: GUARDRAIL_TEST_BROWSER=/path/to/chrome make test" >&2
fi
if ! promtool_can_run; then
    echo "test-requirements: promtool is missing, so the alert rules can't be tested (Debian: apt-get install prometheus)." >&2
fi
