#!/bin/sh
# The start of the container, and of the systemd unit before it serves: in the working directory make the keys
# that a new store needs, then run accrual with the arguments given.
#
# first-key    may do everything (read, write, admin), for the README's walk; only this user can read the file
# metrics-key  may read, for Prometheus
set -eu
case "${ACCRUAL_STORE:-}" in
    postgresql*) accrual db init "$ACCRUAL_STORE" ;;
esac
if [ ! -s first-key ]; then
    (umask 077 && accrual keys create --name first --scope read --scope write --scope admin > first-key)
fi
if [ ! -s metrics-key ]; then
    accrual keys create --name metrics --scope read > metrics-key
fi
if [ "$#" -gt 0 ]; then
    exec accrual "$@"
fi
