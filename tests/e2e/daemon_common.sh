# shellcheck shell=bash disable=SC2034,SC2154
# A ddprun-rendezvous for the end-to-end tests, on any free port. Sourced after common.sh.

listening() { at=$(sed -n 's/.*listens on .*:\([0-9]*\) for ddprun.*/\1/p' "$work/daemon.err"); [[ -n $at ]]; }
# Sets at: its port. More options may follow; output in $work/daemon.err.
start_daemon() {
    forget daemon
    DDPRUN_TEST_MARK=$mark "$bin/ddprun-rendezvous" --listen=127.0.0.1:0 "$@" 2>"$work/daemon.err" </dev/null &
    pid[daemon]=$!
    wait_until 10 listening || fail "ddprun-rendezvous does not listen"
}
stop_daemon() { # signal; sets code
    kill -"$1" "${pid[daemon]}"
    join daemon 10
}
