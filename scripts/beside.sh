#!/bin/sh
# Runs one command while another runs, which waits for much of its time, and shows what it printed behind the other's.
# Fails where either does.
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
# shellcheck disable=SC2086
{ $first >"$printed" 2>&1 && echo 0 >"$printed.status" || echo "$?" >"$printed.status"; } &
trap 'kill "$!" 2>/dev/null || true; rm -f "$printed" "$printed.status"' EXIT
status=0
"$@" || status="$?"
wait "$!" || true
cat "$printed"
[ "$status" = 0 ] || exit "$status"
exit "$(cat "$printed.status")"
