# shellcheck shell=bash disable=SC2034,SC2154
# Starts a ddprun-rendezvous for the end-to-end tests, on any free port. Sourced after common.sh.

# Whether the daemon has said on which port it listens; sets at.
listening() { at=$(sed -n 's/.*listens on .*:\([0-9]*\) for ddprun.*/\1/p' "$work/daemon.err"); [[ -n $at ]]; }
# Starts the daemon: more options. Sets at, its port; output in $work/daemon.err.
start_daemon() {
    forget daemon
    DDPRUN_TEST_MARK=$mark "$bin/ddprun-rendezvous" --listen=127.0.0.1:0 "$@" 2>"$work/daemon.err" </dev/null &
    pid[daemon]=$!
    wait_until 10 listening || fail "ddprun-rendezvous does not listen"
}
# Sends a signal to the daemon, waits for its end and sets code: signal.
stop_daemon() {
    kill -"$1" "${pid[daemon]}"
    join daemon 10
}
