#!/bin/sh
# Start the container, or prepare the systemd unit: make the keys of a new store in the working directory, then run
# accrual with the given arguments.
#
# first-key    may do everything (read, write, admin); only this user can read the file
# metrics-key  may read, for Prometheus
set -eu
case "${ACCRUAL_STORE:-}" in
    postgresql*) accrual db init "$ACCRUAL_STORE" ;;
esac
# A store that several pods share has its keys already: another pod must not make more.
keys=$(accrual keys list 2>/dev/null || true)
named() { printf '%s\n' "$keys" | grep -qw "$1"; }
if [ ! -s first-key ] && ! named first; then
    (umask 077 && accrual keys create --name first --scope read --scope write --scope admin > first-key)
fi
if [ ! -s metrics-key ] && ! named metrics; then
    accrual keys create --name metrics --scope read > metrics-key
fi
if [ "$#" -gt 0 ]; then
    exec accrual "$@"
fi
