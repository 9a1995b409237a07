#!/usr/bin/env bash
# The questions that an operator has about a job of four nodes on a real Slurm cluster, with three faults, and where he
# finds the answers: ddpctl's commands, the page, the metrics. A node comes late; a worker is killed; a host is lost; a
# worker stands still. Then a snapshot, a stop after one more, and what the night has cost.
source "$(dirname "${BASH_SOURCE[0]}")/slurm_common.sh"
need_built ddprun ddpctl train
e2e=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

start_lab 4
cd "$work" # the ledger's folder is made in the working directory
# Asks on the login node, as alice: arguments of ddpctl… Sets code; output in ctl.out and ctl.err.
ctl() {
    code=0
    login env LOGNAME=alice timeout 60 "$bin/ddpctl" "$@" >ctl.out 2>ctl.err </dev/null || code=$?
}
says() { ctl "$1" "${@:3}" && ((code == 0)) && has ctl.out "$2"; } # command, pattern, options…
expect_says() { wait_until 40 says "$@" || fail "ddpctl $1 does not say $2: $(cat ctl.out ctl.err)"; }
field() { ctl status --json && jq -r ".$1" ctl.out; }
# The job's page is served on the login node, for all questions.
get() { [[ $(login python3 "$e2e/http_get.py" "${url%%\?*}$1" "${url##*=}" "$work/got.out") == 200 ]]; }
page_says() { get "$1" && has got.out "$2"; } # path, pattern
expect_page() { wait_until 30 page_says "$@" || fail "$1 does not say $2: $(head -c 3000 got.out)"; }
page=0
clean_up() {
    ((page == 0)) || kill_tree "$page"
    [[ $lab_is_up == no ]] || "$slurmlab" down
}

worker_on() { pgrep -P "$(pgrep -P "$(ddprun_on "$1")" -x job-keeper)" -x train; } # host

# n4 calls when the file `late` is there.
training=("$train" --steps 1000000 --snapshot-every 20 --snapshot-dir "$work/snapshots" --step-time-ms 50 --timeout 600)
cat >start <<EOF
#!/bin/bash
[[ \$SLURMD_NODENAME != n4 ]] || until [[ -e $work/late ]]; do sleep 0.1; done
exec "$ddprun" --nnodes=3:4 --nproc-per-node=1 --lease=2 --last-call=600 $(printf ' %q' "${training[@]}")
EOF
cat >night.sbatch <<EOF
#!/bin/bash
srun --no-kill $work/start
echo "code \$?"
EOF
chmod +x start
job=$(login sbatch --parsable --no-kill -N4 -o "$work/night.out" -e "$work/night.err" night.sbatch)

say "why does it wait?"
expect_says why 'waiting for n4: its ddprun has not called'
expect_says status '^waits +waiting for n4: its ddprun has not called'
login env LOGNAME=alice "$bin/ddpctl" page --json >page.out 2>page.err </dev/null &
page=$!
wait_until 20 has page.out '"url"' || fail "no page: $(cat page.err)"
url=$(jq -r .url page.out)
expect_page status.json 'n4: its ddprun has not called'
touch late
expect_says status '^generation +0 runs .*4 workers'
expect_page metrics '^ddprun_nodes\{.*state="running"\} 4$'

say "which rank died first?"
moves() { (($(field step) > 40)); }
wait_until 60 moves || fail "no training"
kill -KILL "$(worker_on n2)"
expect_says status '^generation +1 runs .*4 workers'
expect_says status 'rank [0-3] .local 0 on n2. was killed by signal 9'
expect_says history 'generation 1: .*rank [0-3] .local 0 on n2. was killed by signal 9'
expect_page status.json 'on n2. was killed by signal 9'
expect_page metrics '^ddprun_restarts_total\{cause="worker",.*\} 1$|^ddprun_restarts_total\{.*cause="worker".*\} 1$'

say "which node is lost, and does the job go on?"
"$slurmlab" poweroff n3
expect_says status '^generation +2 runs .*3 workers'
expect_says status '^n3 +(lost|gone|missing|out_of_service)'
expect_page status.json '"world_size": ?3'

say "what does a rank print, and why does nothing move?"
expect_says logs 'step=' 0
frozen=$(worker_on n4)
kill -STOP "$frozen"
expect_says why 'which is stopped by a signal'
rank=$(sed -n 's/.*for rank \([0-9]*\) .*/\1/p' ctl.out | head -n 1)
ctl stacks "${rank:-0}"
expect_code 0
expect_in ctl.out 'stopped|state T|\bT\b'
kill -CONT "$frozen"
moves_again() { ctl why && has ctl.out 'the job runs, and nothing is known that holds it up'; }
wait_until 40 moves_again || fail "it still stands: $(cat ctl.out ctl.err)"

say "a snapshot now, and a stop after one more"
before=$(field snapshot)
ctl snapshot
expect_code 0
newer() { (($(field snapshot) > before)); }
wait_until 40 newer || fail "no newer snapshot than $before"
ctl stop --after-snapshot
expect_code 0
ended() { has night.out '^code '; }
wait_until 60 ended || fail "the job does not end: $(tail -n 5 night.err)"

say "what did the night cost?"
ctl history
expect_code 0
expect_in ctl.out 'stopped: ddpctl stop by alice@.*, after the snapshot of step'
expect_in ctl.out 'restarts by cause: 1 failed worker, 1 lost node'
ctl history --json
expect_code 0
python3 - <<'PYTHON' || fail "the parts do not add up: $(head -c 3000 ctl.out)"
import datetime, json
history = json.load(open("ctl.out"))
begun, until = (datetime.datetime.fromisoformat(history[name].rstrip("Z")) for name in ("time_from", "time_until"))
whole = (until - begun).total_seconds()
assert whole > 10 and abs(sum(history["seconds"].values()) - whole) <= 0.01 * whole, (whole, history["seconds"])
assert history["seconds"]["training"] > 0 and history["seconds"]["lost"] > 0, history["seconds"]
PYTHON
expect_page status.json '"code": ?143'
expect_page history.json 'lost|node'
kill_tree "$page"
wait "$page" 2>/dev/null || true
page=0
rm -rf "$TMPDIR"/ddprun* # of the host that is off
expect_nothing_left 10
