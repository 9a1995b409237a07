#!/usr/bin/env bash
# --rehearse: a sound program holds, a planted bug is found and its cause named, and no file of the user's changes. In a
# long run: every fault, every bug, and 20 rehearsals of a C++ worker.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun
unshare --mount true 2>/dev/null || unshare --user --mount true 2>/dev/null || skip "no mount namespaces here"
mkdir "$work/own"
cp "$root/tests/rehearsal/scripts/loop.py" "$work/own/"
echo "of the user's own" >"$work/own/latest.txt"
cd "$work/own"

state() { find . -printf '%P %y %m %s %T@ %i\n' | sort; find . -type f -exec sha256sum {} + | sort; }
# Rehearses with the faults of the list: list, seconds, options and program… Sets code.
rehearse() {
    local faults=$1 seconds=$2 before; shift 2
    before=$(state)
    run "$seconds" --rehearse="$faults" --rehearse-seed=3 --nproc-per-node=2 "$@"
    [[ $(state) == "$before" ]] || fail "the working directory was changed"
    expect_nothing_left 5
    ! compgen -G "$TMPDIR/*rehearsal*" || fail "a folder stays"
}
# A bug is found by this fault, and the report has this: bug, fault, pattern, options…
finds() {
    say "bug: $1"
    rehearse "$2" 120 "${@:4}" loop.py "$1"
    [[ $1 == one_file ]] || expect_code 1
    expect_in "$work/run.out" "$3"
}

say "a sound program holds"
rehearse kill,stop,torn 120 loop.py
expect_code 0
expect_in "$work/run.out" '^rehearsal: all 3 faults held$'
expect_in "$work/run.out" 'results: the same, to the last printed digit'
expect_in "$work/run.out" 'the half of it is left in latest.part0'
finds optimizer kill "the optimizer's state is not restored: the snapshot lacks it"
finds in_place torn 'written in place: a kill during a save tears it'

say "what cannot be played is refused before a start"
run 10 --rehearse=kill,fire loop.py
expect_code 2
expect_in "$work/run.err" '^ddprun: --rehearse=kill,fire: not a list of faults'
run 10 --rehearse-seed=1 loop.py
expect_code 2
run 10 --rehearse --dry-run loop.py
expect_code 2
SLURM_STEP_NUM_TASKS=4 run 10 --rehearse loop.py
expect_code 2
cd /usr
run 10 --rehearse true
expect_code 69
expect_in "$work/run.err" 'the working directory /usr is one of the system'
cd "$work/own"

say "a program that fails undisturbed is not judged"
run 30 --rehearse=kill --no-python false
expect_code 1
expect_in "$work/run.err" 'the undisturbed run ends with 1'
[[ ${DDPRUN_LONG:-} ]] || exit 0

say "every fault, as JSON"
rehearse kill,stop,node,hang,disk,torn 240 --rehearse-format=json loop.py
expect_code 0
python3 - "$work/run.out" <<'P' || fail "not the JSON that was expected"
import json, sys
report = json.load(open(sys.argv[1]))
assert report["held"] and report["seed"] == 3
assert [each["fault"] for each in report["faults"]] == ["kill", "stop", "node", "hang", "disk", "torn"]
P
finds sampler kill 'the position in the data is not restored'
finds scheduler kill 'the learning rate starts again at its first value'
finds scaler kill 'the gradient scaler is not restored'
finds random kill 'the random state is not restored'
finds not_loaded kill 'none is loaded at the start'
finds counter kill 'the counter of steps starts again'
finds wrong_rank kill 'they load the snapshot of rank 0'
finds stale_latest kill 'what names the newest \("latest"\) is stale'
finds one_file kill 'all ranks write to one file: snapshot.pkl'
finds stop_ignored stop 'the stop is ignored' --shutdown-timeout=3
say "bug: a fixed port"
rehearse kill 120 loop.py port
expect_code 1
expect_in "$work/run.err" 'a port is fixed in the script'
say "bug: set_epoch() is not called"
sed 's/set_epoch/take_epoch/' "$root/tests/rehearsal/scripts/loop.py" >forgot.py
rehearse kill 120 forgot.py
expect_in "$work/run.out" 'set_epoch\(\) is not called'

say "a C++ worker: the folder is the same after 20 rehearsals"
if [[ -x $train ]]; then
    for ((round = 1; round <= 20; round++)); do
        rehearse kill 120 --no-python "$train" --steps 60 --log-every 1 --snapshot-every 10 --snapshot-dir snapshots \
            --step-time-ms 20
        expect_code 0
    done
fi
