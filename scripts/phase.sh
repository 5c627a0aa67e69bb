#!/bin/sh
# Runs one phase of `make demo` or `make test` (build/demo.log, build/test.log): says what it does, shows what it
# prints, adds that to the log, and on failure names the log. Without a command it says that all went well.
#
#   scripts/phase.sh LOG WHAT COMMAND...
#   scripts/phase.sh LOG WHAT --draws COMMAND...   the terminal is the command's own; the log gets its errors
#   scripts/phase.sh LOG NEXT                      the closing line
set -eu

log="$1"
what="$2"
shift 2
name="make $(basename "$log" .log)"

if [ $# = 0 ]; then
    # The first line of the log has the time of the start, the last of pytest's what it counted.
    minutes=$((($(date +%s) - $(sed -n '1s/^started at \([0-9]*\).*/\1/p' "$log") + 30) / 60))
    counts="$(sed -n 's/^=* *\([0-9][0-9]* passed.*\) in [0-9.]*s.*/: \1/p' "$log" | tail -n 1)"
    missing="$(sed -n 's/^test-requirements: no \([^:]*\):.*/no \1, /p' "$log" | tr -d '\n')"
    took="under a minute"
    [ "$minutes" = 0 ] || took="$minutes min"
    echo "$name: all is well$counts${missing:+ (${missing%, })} in $took; log: $log${what:+; next: $what}" | tee -a "$log"
    exit 0
fi

interrupted=""
trap 'interrupted=yes' INT
echo "$name: $what" | tee -a "$log"
if [ "$1" = --draws ]; then
    shift
    status=0
    "$@" 2>>"$log" || status=$?
    [ "$status" = 0 ] || tail -n 15 "$log" >&2
else
    # The status of a pipe is that of tee, so the command's own goes through a file. After Ctrl-C the command may still
    # have something to say: -i keeps tee until the end, and the trap lets the status be written.
    { trap : INT; "$@" 2>&1 && echo 0 >"$log.status" || echo "$?" >"$log.status"; } | tee -i -a "$log"
    status="$(cat "$log.status")"
    rm -f "$log.status"
fi
if [ -n "$interrupted" ]; then
    echo "$name: stopped; what it printed is in $log" | tee -a "$log" >&2
    exit 130
elif [ "$status" != 0 ]; then
    echo "$name: FAILED, status $status, at: $what. Read $log" | tee -a "$log" >&2
fi
exit "$status"
