#!/bin/sh
# Runs one command while another runs, which waits for much of its time. Shows what the first printed as soon as it
# ends, and once more at the end if it failed. Fails where either does.
#
#   scripts/beside.sh COMMAND... -- OTHER...
set -eu

printed="$(mktemp)"
first=""
while [ "$1" != -- ]; do
    # Words of ours, which hold neither spaces nor quotes.
    first="$first $1"
    shift
done
shift
{
    status=0
    # shellcheck disable=SC2086
    $first >"$printed" 2>&1 || status="$?"
    echo "$status" >"$printed.status"
    echo
    cat "$printed"
} &
beside="$!"
trap 'kill "$beside" 2>/dev/null || true; rm -f "$printed" "$printed.status"' EXIT
status=0
"$@" || status="$?"
wait "$beside" || true
trap 'rm -f "$printed" "$printed.status"' EXIT
told="$(cat "$printed.status" 2>/dev/null || echo 1)"
[ "$told" = 0 ] || cat "$printed"
[ "$status" = 0 ] || exit "$status"
exit "$told"
